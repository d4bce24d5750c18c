"""Rows of a part that fit into some memory."""

from __future__ import annotations

import re
from typing import Any

from rankrls._compiled.threads import n_threads
from rankrls._errors import InputError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_IN_FLIGHT = 3.0
"""Parts that a thread holds at once, in sizes of their features in float64: as decoded, centred, and rotated."""
_LEAST_ROWS = 50


def bytes_of(memory: Any) -> float:
    """How much memory a text such as ``"4G"`` or a number of bytes stands for.

    Examples
    --------
    >>> from rankrls.streaming.memory import bytes_of
    >>> bytes_of("1.5G"), bytes_of(1000)
    (1610612736.0, 1000.0)
    """
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)(?:i?B)?\s*", str(memory), re.IGNORECASE)
    if found is None or isinstance(memory, bool) or not float(found[1]) > 0.0:
        problem = f"memory must be a number of bytes, or a text such as '4G'; got {memory!r}."
        raise InputError(problem, parameter="memory")
    return float(found[1]) * _UNITS[found[2].upper()]


def rows_per_part(memory: Any, n_features: int) -> int:
    """Rows of the parts of a data set of which all threads together take about so much memory; at least fifty.

    Parameters
    ----------
    memory : str or float
        Beside the process itself and a few matrices of n_features x n_features for each thread.
    n_features : int

    Examples
    --------
    >>> from rankrls.streaming.memory import rows_per_part
    >>> rows_per_part("1K", 100)
    50
    """
    threads = n_threads()
    share = bytes_of(memory) / threads - 4.0 * 8.0 * n_features**2
    return max(_LEAST_ROWS, int(share / (_IN_FLIGHT * 8.0 * max(1, n_features))))
