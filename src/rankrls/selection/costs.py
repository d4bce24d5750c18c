"""What a fit will take, in time and in memory, before it begins; and what is said if that is too much."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import n_threads, one_blas_thread
from rankrls._errors import InputError, InputWarning
from rankrls.equations.eigen import symmetric_eigen

FEWER = "{n_basis} says over how many of them to expand: some hundred are often as good."
"""What takes less than the matrix of a kernel, for models that can have a basis."""
_LONG = 30.0
"""Seconds from which on a fit is announced."""
SURELY_SHORT = 5e9
"""Multiplications in all that no machine takes long for: its speed is not measured then."""
_GIB = 2.0**30
_PASS = 8.0
"""A pass over a matrix waits for memory: it takes as long as so many times its multiplications in products."""
_NEWTON = 1000.0
"""Passes over the features that a RankSVM takes for one C; large values take more, small ones fewer."""


@dataclass(frozen=True)
class Cost:
    """What a computation takes.

    Attributes
    ----------
    products : float
        Multiplications of matrix products and of what is as fast.
    cubes : float
        The sum of n^3 over decompositions into eigenvectors.
    bytes : float
        Memory beside the data, at most.
    matrix : int
        Rows of the largest matrix of all items that is held; 0 if there is none.
    """

    products: float = 0.0
    cubes: float = 0.0
    bytes: float = 0.0
    matrix: int = 0

    def __add__(self, other: Cost) -> Cost:
        """One after the other."""
        memory, matrix = max(self.bytes, other.bytes), max(self.matrix, other.matrix)
        return Cost(self.products + other.products, self.cubes + other.cubes, memory, matrix)

    def times(self, count: float) -> Cost:
        """So many times, one after the other."""
        return Cost(count * self.products, count * self.cubes, self.bytes, self.matrix)


@dataclass(frozen=True)
class Speed:
    """Seconds that this machine takes for a multiplication and for a unit of :attr:`Cost.cubes`."""

    product: float
    cube: float

    @classmethod
    def measured(cls) -> Speed:
        """Of a product and a decomposition of 512 rows on one thread, which takes a tenth of a second.

        Larger ones take 0.8 times as long for each unit. Products gain by all threads, decompositions in half of their
        work: the other half waits for memory.
        """
        n, threads = 512, n_threads()
        A = np.random.default_rng(0).normal(size=(n, n))
        with one_blas_thread():  # on a busy machine several would wait for each other in calls as small as these
            start = perf_counter()
            S = A @ A.T
            product = perf_counter() - start
            start = perf_counter()
            symmetric_eigen(S, overwrite=True)
            cube = perf_counter() - start
        return cls(product / n**3 / threads, 0.8 * cube / n**3 * (0.5 + 0.5 / threads))

    def seconds(self, cost: Cost) -> float:
        """How long something takes."""
        return self.product * cost.products + self.cube * cost.cubes


def dense_cost(m: int, n: float, lengths: NDArray[np.intp] | None, values: int) -> Cost:
    """Of RankRLS with the matrix of a kernel of m items with n features.

    Parameters
    ----------
    m : int
    n : float
    lengths : ndarray of int, or None
        Items in each block that is held out from the spectrum; None for one solution by Cholesky.
    values : int
        Regularization values.
    """
    kernel = float(m) ** 2 * (n + 20.0)
    if lengths is None:
        return Cost(kernel + float(m) ** 3, bytes=16.0 * m**2, matrix=m)
    held = m * float((0.5 * lengths.astype(np.float64) ** 2 + 4.0 * lengths).sum()) * values
    seen = float(m) ** 2 * (len(lengths) + values)
    return Cost(kernel + held + seen, float(m) ** 3, 20.0 * m**2 + 8.0 * m * len(lengths), m)


def primal_cost(m: int, columns: int, evaluated: float, lengths: NDArray[np.intp] | None, values: int) -> Cost:
    """Of RankRLS with a weight for each of some columns, of which ``evaluated`` multiplications make one row.

    The same blocks are held out as in :func:`rankrls.equations.holdout.holdout_scores`.
    """
    k = float(columns)
    once = m * (evaluated + 2.0 * k**2)
    if lengths is None:
        return Cost(once + k**3, bytes=16.0 * k**2)
    rows = lengths.astype(np.float64)
    # Products of few columns are half as fast, and the held-out scores are sorted and judged.
    held = rows * (evaluated + 2.0 * k**2) + np.minimum(48.0 * rows * k * values, rows * k**2 + 120.0 * k**3)
    return Cost(once + float(held.sum()) + 1000.0 * m * values, k**3, 40.0 * k**2 + 16.0 * m * values)


def transductive_cost(m: int, n: float, hidden: int) -> Cost:
    """Of transductive RankRLS with the matrix of a kernel of m items, the labels of ``hidden`` of which are sought.

    An inverse, and three columns beside it of each row whose label is sought.
    """
    share = hidden / m
    products = float(m) ** 2 * (n + 20.0) + float(m) ** 3 * (1.0 + 3.0 * share)
    return Cost(products, bytes=8.0 * m**2 * (2.0 + 3.0 * share + share**2), matrix=m)


def consensus_cost(m: int, n: float, views: int, agreements: int) -> Cost:
    """Of what several views with n features make of m rows, for some weights of their agreement.

    An inverse for each view and some passes over it. Those of the best agreement are held beside those of the next.
    """
    products = views * (float(m) ** 2 * (n + 20.0 + 10.0 * _PASS) + 0.5 * float(m) ** 3)
    held = views * min(agreements, 2) + 8.0
    return Cost(agreements * products, bytes=8.0 * m**2 * held, matrix=m)


def hinge_cost(m: int, n: float, size: int, values: int) -> Cost:
    """Of RankSVM over a basis of so many of m items with n features, for some values of C."""
    k = float(size)
    products = m * k * (n + 20.0 + k) + values * _NEWTON * _PASS * m * k
    return Cost(products, k**3, 8.0 * (2.0 * k**2 + m * k), m if size == m else 0)


def pursuit_cost(m: int, n: float, columns: int, stages: int, most: float) -> Cost:
    """Of a pursuit among kernel functions of m items.

    Up to ``most`` bytes their values are held; beyond, they are computed anew at each stage.
    """
    entries = float(m) * columns
    if 8.0 * entries <= most:
        return Cost(entries * (n + 20.0 + stages * _PASS), bytes=8.0 * entries, matrix=m)
    return Cost(entries * stages * (n + 20.0), matrix=m)


def free_memory() -> float | None:
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
    try:  # a container's own limit, less what it holds but for files that can be dropped
        base = "/sys/fs/cgroup/memory."
        with open(base + "max", encoding="ascii") as most, open(base + "current", encoding="ascii") as held:
            limit, used = float(most.read()), float(held.read())
        with open(base + "stat", encoding="ascii") as lines:
            dropped = sum(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
        found.append(limit - used + dropped)
    except (OSError, ValueError):
        pass
    return min(found, default=None)


def in_words(seconds: float) -> str:
    """A time as people say it.

    Examples
    --------
    >>> from rankrls.selection.costs import in_words
    >>> in_words(0.4), in_words(42.0), in_words(610.0), in_words(9000.0)
    ('1 second', '42 seconds', '10 minutes', '2.5 hours')
    """
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.2g} {unit}"
    whole = max(1, round(seconds))
    return f"{whole} second{'s' if whole > 1 else ''}"


def cheaper(linear: bool) -> str:
    """What to take instead of the matrix of a kernel, which may be the linear one."""
    if linear:
        return "{CGRankRLS} needs no such matrix."
    return "{SparseRankRLSCV} learns from all of them over a basis of some hundred items."


def check_affordable(cost: Cost, *, remedy: str, speed: Speed | None = None, free: float | None = None) -> None:
    """Say what fits with the matrix of a kernel take, if that is much, before they begin.

    Parameters
    ----------
    cost : Cost
        Of all of them.
    remedy : str
        What takes less, as :func:`cheaper` says it.
    speed : Speed, optional
        Measured if it matters, by default.
    free : float, optional
        Bytes; what the system says by default.

    Raises
    ------
    InputError
        If they need more memory than is free.

    Warns
    -----
    InputWarning
        If they take more than 30 seconds or half of the memory that is free.
    """
    if not cost.matrix or cost.products + cost.cubes < SURELY_SHORT:
        return
    free = free_memory() if free is None else free
    need = cost.bytes / _GIB
    if free is not None and cost.bytes > free:
        raise InputError(
            "The matrix of the {kernel} of {2} items does not fit: solving with it takes {0:.2g} GiB of memory, and "
            "{1:.2g} GiB are free.",
            *(need, free / _GIB, cost.matrix),
            remedy=remedy,
        )
    seconds = (Speed.measured() if speed is None else speed).seconds(cost)
    if seconds > _LONG or (free is not None and cost.bytes > 0.5 * free):
        warnings.warn(
            InputWarning(
                "The matrix of the {kernel} of {2} items will take about {0} and {1:.2g} GiB of memory.",
                *(in_words(seconds), need, cost.matrix),
                remedy=remedy,
            ),
            stacklevel=5,
        )
