r"""RankBoost: threshold stumps, boosted on pairs (Freund, Iyer, Schapire and Singer 2003).

With scores :math:`f`, the pair of an item i that should come before an item j weighs

.. math::

    D_{ij} \propto c_{ij} \exp(-(f_i - f_j)) , \qquad
    \pi_i = \sum_{j} D_{ij} - \sum_{j} D_{ji} , \qquad
    r(h) = \sum_{ij} D_{ij} (h(x_i) - h(x_j)) = \sum_i \pi_i h(x_i) .

A round takes the stump :math:`h(x) = [x_k > \theta]` with the largest :math:`|r|`, over every threshold of every
feature, and adds it with the weight :math:`\tfrac12 \ln \frac{1 + r}{1 - r}` (figure 1, the third of the paper's
methods of choosing the weight, and its weak learner of thresholds). Every round multiplies the loss by no more than
:math:`\sqrt{1 - r^2}`; the loss bounds the share of pairs ordered wrongly (theorem 1).

All that a stump needs is the *potential* :math:`\pi`. Between items with labels
:math:`c_{ij} = \rho_q w_i w_j` for :math:`y_i > y_j` inside a query, and the weights factorise over the labels (with
two labels this is the paper's RankBoost.B):

.. math::

    \pi_i = \rho_q \Big[ a_i \sum_{y_j < y_i} b_j - b_i \sum_{y_j > y_i} a_j \Big] , \qquad
    a_i = w_i e^{-f_i} , \quad b_i = w_i e^{f_i} .
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import map_threads

Vector = NDArray[np.float64]

_TIE = 1e-11
"""Two stumps whose r differ by less are equally good: r is a sum of m terms that the order of rows rounds."""
_NEAR_ONE = 1.0 - 1e-10
_WIDEST = 300.0
_LEAST = 1e-280


class Pairs(Protocol):
    """A distribution over pairs of items, known by its potentials."""

    def potentials(self, f: Vector) -> tuple[Vector, float]:
        """Potentials (m,) before they are divided by the sum of all pairs' weights, and that sum.

        The sum is 0 where the weights are beyond float64.
        """
        ...


class LabelPairs:
    """Pairs of items of a query with different labels; O(m) a round.

    Parameters
    ----------
    y : ndarray of shape (m,)
    queries : ndarray of shape (m,), intp
        Number of each item's query, from 0; every query has items.
    weights : ndarray of shape (m,)
    rho : ndarray of shape (queries,)
        Factor of each query's pairs.
    """

    def __init__(self, y: Vector, queries: NDArray[np.intp], weights: Vector, rho: Vector) -> None:
        self._order = np.lexsort((y, queries))
        labels, codes = y[self._order], queries[self._order]
        self._new_query = np.diff(codes, prepend=-1) != 0
        self._new_class = (np.diff(labels, prepend=np.nan) != 0.0) | self._new_query
        self._heads = np.flatnonzero(self._new_query)
        self._codes, self._rho, self._weights = codes, rho[codes], weights[self._order]

    def potentials(self, f: Vector) -> tuple[Vector, float]:
        """Potentials (m,) and the sum of all pairs' weights."""
        f = f[self._order]
        middle = 0.5 * (np.maximum.reduceat(f, self._heads) + np.minimum.reduceat(f, self._heads))
        f = f - middle[self._codes]  # no pair sees it, and exponents stay small
        out = np.empty(len(f))
        if np.abs(f).max() > _WIDEST:
            return np.zeros(len(f)), 0.0
        down, up, own = self._weights * np.exp(-f), self._weights * np.exp(f), np.empty(len(f))
        total = _class_potentials(down, up, self._rho, self._new_class, self._new_query, own)
        out[self._order] = own
        return out, float(total)


@compiled
def _class_potentials(down, up, rho, new_class, new_query, out):  # type: ignore[no-untyped-def]
    """``rho [a_i (b of lower labels) - b_i (a of higher labels)]``, and the sum of all pairs' weights."""
    m = len(down)
    below = own = total = 0.0
    for i in range(m):
        if new_query[i]:
            below = own = 0.0
        elif new_class[i]:
            below += own
            own = 0.0
        out[i] = rho[i] * down[i] * below
        total += out[i]
        own += up[i]
    above = own = 0.0
    for i in range(m - 1, -1, -1):
        out[i] -= rho[i] * up[i] * above
        own += down[i]
        if new_query[i]:
            above = own = 0.0
        elif new_class[i]:
            above += own
            own = 0.0
    return total


@dataclass(frozen=True, eq=False)
class PreferencePairs:
    """Listed preferences; O(preferences) a round.

    A negative strength turns its preference round, one of strength 0 orders nothing; otherwise strengths play no part.
    """

    winners: NDArray[np.intp]
    losers: NDArray[np.intp]
    n_items: int
    strength: Vector
    weight: Vector

    def potentials(self, f: Vector) -> tuple[Vector, float]:
        """Potentials (m,) and the sum of all pairs' weights."""
        sign = np.sign(self.strength)
        with np.errstate(over="ignore", under="ignore"):
            D = self.weight * np.abs(sign) * np.exp(-sign * (f[self.winners] - f[self.losers]))
        total = float(D.sum())
        if not np.isfinite(total):
            return np.zeros(len(f)), 0.0
        at = np.concatenate((self.winners, self.losers))
        return np.asarray(np.bincount(at, np.concatenate((sign * D, -sign * D)), self.n_items)), total


class CodedColumns:
    """Every feature's values as numbers of its distinct values.

    Parameters
    ----------
    X : ndarray or sparse array of shape (m, n)
        Rows that a sparse column does not store have the number of zero.

    Notes
    -----
    O(m n log m), or O(non-zeros log m), once; two or four bytes a value.
    """

    def __init__(self, X: Any) -> None:
        self._X, (self.n_rows, n) = columns_of(X), X.shape
        thin = self._thin = sparse.issparse(self._X)
        sizes = np.diff(self._X.indptr) if thin else np.full(n, self.n_rows)
        self._starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.intp)
        self._rows = np.asarray(self._X.indices if thin else [], dtype=np.int32)
        self._codes = np.empty(self._starts[-1], dtype=np.min_scalar_type(self.n_rows))
        self._zeros = np.full(n, -1, dtype=np.intp)
        self.distinct = map_threads(self._encode, range(n))

    def _encode(self, j: int) -> NDArray[Any]:
        own = slice(self._starts[j], self._starts[j + 1])
        values = self._X.data[own] if self._thin else self._X[:, j]
        if len(values) < self.n_rows:
            values = np.append(values, values.dtype.type(0.0))
        distinct, codes = np.unique(values, return_inverse=True)
        size = self._starts[j + 1] - self._starts[j]
        self._codes[own] = codes[:size]
        if size < self.n_rows:
            self._zeros[j] = codes[-1]
        return np.asarray(distinct)

    def best(self, potential: Vector) -> tuple[int, float, float, NDArray[np.bool_]] | None:
        """The stump with the largest ``|r|``: feature, threshold, r, and which rows are above.

        Values that differ by rounding are equal: of equals the lowest feature, then the lowest threshold. None where
        no r is larger than rounding.
        """
        largest = np.array(
            map_threads(lambda j: np.abs(self._tails(j, potential)).max(initial=0.0), range(len(self.distinct)))
        )
        top = largest.max(initial=0.0)
        if not top > _TIE:
            return None
        j = int(np.argmax(largest >= top - _TIE))
        tails = self._tails(j, potential)
        k = int(np.argmax(np.abs(tails) >= top - _TIE))
        low, high = (float(value) for value in self.distinct[j][k : k + 2])
        middle = 0.5 * low + 0.5 * high
        own = slice(self._starts[j], self._starts[j + 1])
        above = np.full(self.n_rows, self._zeros[j] > k)
        above[self._rows[own] if self._thin else slice(None)] = self._codes[own] > k
        return j, middle if low <= middle < high else low, float(tails[k]), above

    def _tails(self, j: int, potential: Vector) -> Vector:
        """Sums of the potential over the rows above each distinct value but the last."""
        sums = np.zeros(len(self.distinct[j]))
        _histogram(self._starts[j], self._starts[j + 1], self._rows, self._codes, self._zeros[j], potential, sums)
        return sums[:0:-1].cumsum()[::-1]


@compiled
def _histogram(first, last, rows, codes, zero, potential, sums):  # type: ignore[no-untyped-def]
    """Add up the potential of the rows of each code; rows that are not stored have the code ``zero``."""
    if len(rows) == 0:
        for k in range(first, last):
            sums[codes[k]] += potential[k - first]
        return
    stored = 0.0
    for k in range(first, last):
        value = potential[rows[k]]
        sums[codes[k]] += value
        stored += value
    if zero >= 0:
        sums[zero] -= stored  # potentials sum to zero


@dataclass(frozen=True)
class Stump:
    """One round: ``weight * [x[feature] > threshold]`` was added.

    ``loss`` is the mean of ``exp(-(f_i - f_j))`` over the pairs after this round.
    """

    feature: int
    threshold: float
    weight: float
    loss: float


class Boosting:
    """RankBoost on the rows of some sorted columns, one round a step.

    Iterating gives stumps until there is none; ``status`` then says why: "no edge" (no stump orders the pairs better
    than chance), "separated" (one stump orders all that have weight, and would be chosen for ever), "exhausted"
    (weights beyond float64). A round is O(m) for the weights and one pass over the codes.
    """

    def __init__(self, pairs: Pairs, columns: CodedColumns) -> None:
        self.pairs, self.columns, self.status = pairs, columns, "running"

    def __iter__(self) -> Iterator[Stump]:
        f = np.zeros(self.columns.n_rows)
        potential, total = self.pairs.potentials(f)
        first = total
        while self.status == "running":
            found = self.columns.best(potential / total) if total > _LEAST * first else None
            if found is None:
                self.status = "no edge" if total > _LEAST * first else "exhausted"
                return
            feature, threshold, r, above = found
            if abs(r) >= _NEAR_ONE:
                self.status, r = "separated", float(np.copysign(_NEAR_ONE, r))
            weight = 0.5 * float(np.log1p(r) - np.log1p(-r))
            f[above] += weight
            potential, total = self.pairs.potentials(f)
            yield Stump(feature, threshold, weight, total / first)


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
    thresholds: list[Vector]
    levels: list[Vector]

    @classmethod
    def of(cls, features: NDArray[np.intp], thresholds: Vector, weights: Vector) -> StepFunctions:
        """The sum of stumps ``weights[t] [x_j > thresholds[t]]`` with ``j = features[t]``."""
        used = np.unique(features)
        cuts, levels = [], []
        for feature in used:
            own = features == feature
            distinct, number = np.unique(thresholds[own], return_inverse=True)
            cuts.append(distinct)
            levels.append(np.concatenate(([0.0], np.cumsum(np.bincount(number, weights=weights[own])))))
        return cls(used, cuts, levels)

    def __call__(self, X: Any) -> Vector:
        """Scores of the rows of X. O(rows x features used x log stumps), whatever the number of stumps."""
        X = columns_of(X)
        out = np.zeros(X.shape[0])
        for feature, cuts, levels in zip(self.features, self.thresholds, self.levels, strict=True):
            values = column_values(X, feature).astype(np.float64)
            out += levels[np.searchsorted(cuts, values, side="left")]
        return out


def columns_of(X: Any) -> Any:
    """Sparse X by columns, entries that stand twice added up and zeros left out; dense X as it is."""
    if not sparse.issparse(X):
        return X
    out = sparse.csc_array(X, copy=True)
    out.sum_duplicates()
    out.eliminate_zeros()
    return out


def column_values(X: Any, feature: int) -> NDArray[Any]:
    """One column of a dense or CSC matrix, dense."""
    if not sparse.issparse(X):
        return np.asarray(X[:, feature])
    own = slice(X.indptr[feature], X.indptr[feature + 1])
    out = np.zeros(X.shape[0], dtype=X.data.dtype)
    out[X.indices[own]] = X.data[own]
    return out
