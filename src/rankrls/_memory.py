"""The memory that is available, and the one check against it: a dense kernel matrix."""

from __future__ import annotations

import os
from contextlib import suppress

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
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        found += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
        found.append(float(limit.read()))  # of a container
    with suppress(AttributeError, OSError, ValueError):
        found.append(float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=None)
