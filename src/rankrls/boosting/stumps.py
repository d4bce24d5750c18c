r"""Threshold stumps :math:`h(x) = [x_j > \theta]` over binned features, and sums of them.

A feature's values are turned once into numbers of bins, one byte each where there are no more than 256, and every round
of boosting then reads the bins. A stump's sum of potentials is a sum of its feature's histogram from the top, so that
all thresholds of a feature cost one pass over its bins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import map_threads, n_threads

_COLUMNS = 8
"""Dense columns that are binned together: a row's neighbours share its cache line."""
_ROWS = 8192
"""Rows of a block in the pass over dense bins: their potentials stay in the second-level cache."""

_FEW_BINS = 1024
"""Bins a feature up to which several copies of a histogram fit in the caches."""


@dataclass(frozen=True, eq=False)
class Bins(ABC):
    """Features as numbers of bins: a value's bin is the number of thresholds below it.

    Attributes
    ----------
    n_rows : int
    thresholds : ndarray
        Those of all features, one feature after the other, ascending.
    starts : ndarray of shape (n + 1,), intp
        ``thresholds[starts[j]:starts[j + 1]]`` are those of feature j, which has one bin more.
    """

    n_rows: int
    thresholds: NDArray[np.float64]
    starts: NDArray[np.intp]

    @property
    def n_features(self) -> int:
        return len(self.starts) - 1

    @property
    def bin_starts(self) -> NDArray[np.intp]:
        """Where each feature's bins begin in the histograms."""
        return self.starts + np.arange(len(self.starts))

    @abstractmethod
    def histograms(self, potential: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of ``potential`` (m,) over the rows of each bin, one feature after the other. One pass over the bins."""

    @abstractmethod
    def above(self, feature: int, k: int) -> NDArray[np.bool_]:
        """Which rows are above threshold number ``k`` of a feature."""

    def best(self, potential: NDArray[np.float64], tolerance: float) -> tuple[int, int, float] | None:
        r"""Feature and threshold with the largest :math:`|\sum_i \pi_i [x_{ij} > \theta]|`, and that sum.

        Sums within ``tolerance`` of the largest are equal, since the order of rows rounds them: of equals the lowest
        feature, then the lowest threshold. None where no sum is larger than ``tolerance``, or there is no threshold.
        """
        sums = self.histograms(potential)
        starts = self.bin_starts
        largest = np.zeros(self.n_features)
        _largest(sums, starts, largest)
        top = float(largest.max(initial=0.0))
        if not top > tolerance:
            return None
        feature = int(np.argmax(largest >= top - tolerance))
        tails = np.cumsum(sums[starts[feature] : starts[feature + 1]][::-1])[::-1][1:]
        k = int(np.argmax(np.abs(tails) >= top - tolerance))
        return feature, k, float(tails[k])


@dataclass(frozen=True, eq=False)
class DenseBins(Bins):
    """``codes[j, i]`` is the bin of row i in feature j."""

    codes: NDArray[Any]

    def histograms(self, potential: NDArray[np.float64]) -> NDArray[np.float64]:
        starts = self.bin_starts
        sums = np.empty(starts[-1])
        n = self.n_features
        edges = np.linspace(0, n, min(n_threads(), n) + 1).astype(np.intp)

        def run(part: tuple[int, int]) -> None:
            few = starts[part[1]] - starts[part[0]] <= _FEW_BINS * (part[1] - part[0])
            rows, copies = (_ROWS, 4) if few else (self.n_rows, 1)
            _dense_histograms(self.codes, part[0], part[1], potential, starts, rows, copies, sums)

        map_threads(run, list(zip(edges[:-1], edges[1:], strict=True)))
        return sums

    def above(self, feature: int, k: int) -> NDArray[np.bool_]:
        return np.asarray(self.codes[feature] > k)


@dataclass(frozen=True, eq=False)
class SparseBins(Bins):
    """Bins of the stored values, column by column; the rows that a column does not store are in ``zero_bins[j]``.

    ``rows[columns[j]:columns[j + 1]]`` and ``codes`` likewise are those of feature j. ``zero_bins`` is -1 where every
    row is stored.
    """

    columns: NDArray[np.intp]
    rows: NDArray[np.intp]
    codes: NDArray[Any]
    zero_bins: NDArray[np.intp]

    def histograms(self, potential: NDArray[np.float64]) -> NDArray[np.float64]:
        starts = self.bin_starts
        sums = np.zeros(starts[-1])
        total = float(potential.sum())
        wanted = np.linspace(0, self.columns[-1], n_threads() + 1)
        edges = np.unique(np.r_[0, np.searchsorted(self.columns, wanted[1:-1]), self.n_features]).astype(np.intp)

        def run(part: tuple[int, int]) -> None:
            _sparse_histograms(
                self.columns, self.rows, self.codes, self.zero_bins, part[0], part[1], potential, total, starts, sums
            )

        map_threads(run, list(zip(edges[:-1], edges[1:], strict=True)))
        return sums

    def above(self, feature: int, k: int) -> NDArray[np.bool_]:
        out = np.full(self.n_rows, self.zero_bins[feature] > k)
        part = slice(self.columns[feature], self.columns[feature + 1])
        out[self.rows[part]] = self.codes[part] > k
        return out


@compiled
def _dense_histograms(codes, first, last, potential, starts, rows, copies, sums):  # type: ignore[no-untyped-def]
    # Four copies of the sums: rows that follow one another often share a bin, and each would wait for the one before.
    one = np.uint64(1)
    four = np.uint64(4)
    m = np.uint64(codes.shape[1])
    offset = np.uint64(starts[first])
    length = np.uint64(starts[last]) - offset
    part = np.zeros((copies, length))
    second = np.uint64(copies > 1)
    third = second + second
    fourth = third + second
    block = np.uint64(rows)
    low = np.uint64(0)
    while low < m:
        high = min(low + block, m)
        whole = low + (high - low) // four * four
        for j in range(np.uint64(first), np.uint64(last)):
            base = np.uint64(starts[j]) - offset
            i = low
            while i < whole:
                part[0, base + np.uint64(codes[j, i])] += potential[i]
                part[second, base + np.uint64(codes[j, i + one])] += potential[i + one]
                part[third, base + np.uint64(codes[j, i + one + one])] += potential[i + one + one]
                part[fourth, base + np.uint64(codes[j, i + four - one])] += potential[i + four - one]
                i += four
            while i < high:
                part[0, base + np.uint64(codes[j, i])] += potential[i]
                i += one
        low = high
    for b in range(length):
        sums[offset + b] = part[0, b]
        if copies > 1:
            sums[offset + b] += part[1, b] + (part[2, b] + part[3, b])


@compiled
def _sparse_histograms(  # type: ignore[no-untyped-def]
    columns, rows, codes, zero_bins, first, last, potential, total, starts, sums
):
    for j in range(np.uint64(first), np.uint64(last)):
        base = np.uint64(starts[j])
        stored = 0.0
        for p in range(np.uint64(columns[j]), np.uint64(columns[j + np.uint64(1)])):
            value = potential[np.uint64(rows[p])]
            sums[base + np.uint64(codes[p])] += value
            stored += value
        if zero_bins[j] >= 0:
            sums[base + np.uint64(zero_bins[j])] += total - stored


@compiled
def _largest(sums, starts, largest):  # type: ignore[no-untyped-def]
    one = np.uint64(1)
    for j in range(np.uint64(len(largest))):
        tail = 0.0
        best = 0.0
        b = np.uint64(starts[j + one]) - one
        while b > np.uint64(starts[j]):
            tail += sums[b]
            best = max(best, abs(tail))
            b -= one
        largest[j] = best


def cut_points(
    values: NDArray[np.floating], weights: NDArray[np.float64] | None, max_bins: int | None
) -> NDArray[np.float64]:
    """Thresholds for one feature, halfway between neighbouring values, ascending.

    Parameters
    ----------
    values : ndarray of shape (m,)
    weights : ndarray of shape (m,), optional
        Row weights; 1 by default.
    max_bins : int or None
        With no more distinct values than this (or None) there is a threshold between any two: the stumps are all
        stumps there are. With more, a value that holds more than twice its share of the weight has a bin of its own,
        and the others are cut at quantiles of their weight.

    Notes
    -----
    O(m log m). A threshold is never equal to the value above it, so that ``x > threshold`` holds for that value.
    """
    if weights is None:
        ordered = np.sort(values)
    else:
        order = np.argsort(values, kind="stable")
        ordered = values[order]
    heads = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1))
    distinct = ordered[heads].astype(np.float64)
    last = np.arange(len(distinct) - 1)
    if max_bins is not None and len(distinct) > max_bins:
        counts = np.diff(np.append(heads, len(ordered))) if weights is None else np.add.reduceat(weights[order], heads)
        last = _quantile_cuts(counts.astype(np.float64), max_bins)
    low, high = distinct[last], distinct[last + 1]
    middle = 0.5 * low + 0.5 * high
    return np.where((middle >= low) & (middle < high), middle, low)


def _quantile_cuts(weights: NDArray[np.float64], n_bins: int) -> NDArray[np.intp]:
    """Values after which a bin ends."""
    heavy = weights > 2.0 * weights.sum() / n_bins
    light = np.where(heavy, 0.0, weights)
    places = max(1, n_bins - 2 * int(heavy.sum()))  # a heavy value may split the bin that it stands in
    share = (np.cumsum(light) - 0.5 * light) / light.sum()
    number = np.minimum((share * places).astype(np.intp), places - 1)
    ends = (number[1:] != number[:-1]) | heavy[1:] | heavy[:-1]
    return np.flatnonzero(ends).astype(np.intp)


def bin_features(X: Any, order: NDArray[np.intp], weights: NDArray[np.float64] | None, max_bins: int | None) -> Bins:
    """Bins of the features of X, its rows in the given order.

    Parameters
    ----------
    X : ndarray or csr_array of shape (m, n)
        float32 or float64. Sparse X is never made dense: rows that a column does not store are in the bin of zero.
    order : ndarray of shape (m,), intp
        Row ``order[i]`` of X becomes row i.
    weights : ndarray of shape (m,), optional
        Weights of the rows of X, for the quantiles.
    max_bins : int or None
        See :func:`cut_points`.

    Notes
    -----
    O(m n log m), or O(non-zeros log m), once; one byte a value (two or four with more than 256 or 65536 bins).
    Threaded over blocks of columns.
    """
    if sparse.issparse(X):
        return _bin_sparse(by_columns(X), order, weights, max_bins)
    m, n = X.shape
    unchanged = bool((order == np.arange(m)).all())

    codes = np.empty((n, m), dtype=_code_type(m if max_bins is None else max_bins))

    def run(low: int) -> list[NDArray[np.float64]]:
        block = X[:, low : low + _COLUMNS]
        block = np.ascontiguousarray((block if unchanged else block[order]).T)
        w = None if weights is None else weights[order]
        out = []
        for j, values in enumerate(block, start=low):
            out.append(cut_points(values, w, max_bins))
            codes[j] = _codes(out[-1], values)
        return out

    thresholds, starts = _joined([cuts for block in map_threads(run, range(0, n, _COLUMNS)) for cuts in block])
    return DenseBins(m, thresholds, starts, codes)


def _bin_sparse(
    X: sparse.csc_array, order: NDArray[np.intp], weights: NDArray[np.float64] | None, max_bins: int | None
) -> SparseBins:
    m, n = X.shape
    place = np.empty(m, dtype=X.indices.dtype)
    place[order] = np.arange(m)
    w = np.ones(m) if weights is None else weights
    total = float(w.sum())
    columns = X.indptr.astype(np.intp)
    zero_bins = np.full(n, -1, dtype=np.intp)
    codes = np.empty(len(X.data), dtype=_code_type(m if max_bins is None else max_bins))

    def run(j: int) -> NDArray[np.float64]:
        part = slice(columns[j], columns[j + 1])
        values, own = X.data[part], w[X.indices[part]]
        seen, seen_weights = values, own
        if len(values) < m:
            seen = np.append(values, values.dtype.type(0.0))
            seen_weights = np.append(own, max(total - own.sum(), 0.0))
        cuts = cut_points(seen, seen_weights, max_bins)
        if len(values) < m:
            zero_bins[j] = np.searchsorted(cuts, 0.0, side="left")
        codes[part] = _codes(cuts, values)
        return cuts

    thresholds, starts = _joined(map_threads(run, range(n)))
    return SparseBins(m, thresholds, starts, columns, place[X.indices], codes, zero_bins)


def _codes(cuts: NDArray[np.float64], values: NDArray[np.floating]) -> NDArray[np.intp]:
    return np.searchsorted(cuts, values.astype(np.float64, copy=False), side="left")


def _joined(cuts: list[NDArray[np.float64]]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    starts = np.concatenate(([0], np.cumsum([len(c) for c in cuts]))).astype(np.intp)
    return (np.concatenate(cuts) if cuts else np.empty(0)), starts


def _code_type(n_bins: int) -> Any:
    return np.min_scalar_type(max(n_bins - 1, 0))


def by_columns(X: Any) -> Any:
    """Sparse X by columns, entries that stand twice added up; dense X as it is."""
    if not sparse.issparse(X):
        return X
    out = sparse.csc_array(X, copy=X.format == "csc")
    out.sum_duplicates()
    return out


def column_values(X: Any, feature: int) -> NDArray[np.floating]:
    """One column of a dense or CSC matrix, dense."""
    if not sparse.issparse(X):
        return np.asarray(X[:, feature])
    part = slice(X.indptr[feature], X.indptr[feature + 1])
    out = np.zeros(X.shape[0], dtype=X.data.dtype)
    out[X.indices[part]] = X.data[part]
    return out


@dataclass(frozen=True, eq=False)
class StepFunctions:
    r"""A sum of stumps as one step function a feature: :math:`f(x) = \sum_j g_j(x_j)`.

    Attributes
    ----------
    features : ndarray of shape (k,), intp
        Features that any stump looks at, ascending.
    thresholds : list of ndarray
        Distinct thresholds of each, ascending.
    levels : list of ndarray
        Value of ``g_j`` below all thresholds (0), above the first, above the second, ...
    """

    features: NDArray[np.intp]
    thresholds: list[NDArray[np.float64]]
    levels: list[NDArray[np.float64]]

    @classmethod
    def of(
        cls, features: NDArray[np.intp], thresholds: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> StepFunctions:
        """The sum of stumps ``weights[t] [x_j > thresholds[t]]`` with ``j = features[t]``."""
        used = np.unique(features)
        cuts, levels = [], []
        for feature in used:
            own = features == feature
            distinct, number = np.unique(thresholds[own], return_inverse=True)
            cuts.append(distinct)
            levels.append(np.concatenate(([0.0], np.cumsum(np.bincount(number, weights=weights[own])))))
        return cls(used, cuts, levels)

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """Scores of the rows of X. O(rows x features used x log stumps), whatever the number of stumps."""
        m = X.shape[0]
        out = np.zeros(m)
        if sparse.issparse(X):
            X = by_columns(X)
            for feature, cuts, levels in zip(self.features, self.thresholds, self.levels, strict=True):
                out += levels[np.searchsorted(cuts, column_values(X, feature).astype(np.float64), side="left")]
            return out

        def score(rows: slice) -> None:
            block = np.ascontiguousarray(X[rows][:, self.features].T, dtype=np.float64)
            for values, cuts, levels in zip(block, self.thresholds, self.levels, strict=True):
                out[rows] += levels[np.searchsorted(cuts, values, side="left")]

        map_threads(score, [slice(low, low + _ROWS) for low in range(0, m, _ROWS)])
        return out
