"""The memory that is available, and the one check against it: a dense kernel matrix."""

from __future__ import annotations

import os

from rankrls._errors import InputError

_GIB = 2.0**30


def check_kernel_matrix(rows: int, columns: int) -> None:
    """Refuse a dense kernel matrix that is larger than the available memory.

    Raises
    ------
    InputError
    """
    need = 8.0 * rows * columns
    available = available_memory() if need > _GIB else None
    if available is not None and need > available:
        raise InputError(
            f"The kernel matrix of {rows} x {columns} items takes {need / _GIB:.3g} GiB of memory, and "
            f"{available / _GIB:.3g} GiB are available. SparseRankRLS (or SparseRankRLSCV) expands over a basis of "
            "some hundred items instead; for a linear kernel, CGRankRLS needs no such matrix.",
            parameter="kernel",
        )


def available_memory() -> float | None:
    """Bytes that this process may still take; None if the system does not say."""
    found = []
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError):
        try:
            found.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
        except (AttributeError, OSError, ValueError):
            return None
    try:  # a container's own limit, less what it holds except for files that can be dropped
        base = "/sys/fs/cgroup/memory."
        with open(base + "max", encoding="ascii") as most, open(base + "current", encoding="ascii") as held:
            limit, used = float(most.read()), float(held.read())
        with open(base + "stat", encoding="ascii") as lines:
            dropped = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
        found.append(limit - used + dropped)
    except (OSError, ValueError):
        pass
    return min(found, default=None)
