r"""RankBoost: threshold stumps, boosted on pairs (Freund, Iyer, Schapire and Singer 2003).

With scores :math:`f`, the weight of the pair of an item i that should precede an item j is

.. math::

    D_{ij} \propto c_{ij} \exp(-(f_i - f_j)) , \qquad
    \pi_i = \sum_{j} D_{ij} - \sum_{j} D_{ji} , \qquad
    r(h) = \sum_{ij} D_{ij} (h(x_i) - h(x_j)) = \sum_i \pi_i h(x_i) .

A round selects the stump :math:`h(x) = [x_k > \theta]` with the largest :math:`|r|`, over every threshold of every
feature, and adds it with the weight :math:`\tfrac12 \ln \frac{1 + r}{1 - r}` (figure 1, the third of the paper's
methods of choosing the weight, and its weak learner of thresholds). Every round multiplies the loss by at most
:math:`\sqrt{1 - r^2}`; the loss bounds the share of pairs ordered wrongly (theorem 1).

A stump depends only on the *potential* :math:`\pi`. For labelled items,
:math:`c_{ij} = \rho_q w_i w_j` for :math:`y_i > y_j` inside a query, and the weights factorize over the labels (for
two labels, this is the paper's RankBoost.B):

.. math::

    \pi_i = \rho_q \Big[ a_i \sum_{y_j < y_i} b_j - b_i \sum_{y_j > y_i} a_j \Big] , \qquad
    a_i = w_i e^{-f_i} , \quad b_i = w_i e^{f_i} .
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rankrls._comparisons import Data, GraphSetting
from rankrls._compiled import compiled, map_threads
from rankrls._problems import Candidate, Problem
from rankrls._typing import AnyArray, Array, Index, Mask, Matrix
from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from rankrls.numerics.runs import dense_rows

_TIE = 1e-11
"""Difference of r below which two stumps are equally good: r is a sum of m terms, rounded depending on row order."""
_NEAR_ONE = 1.0 - 1e-10
_WIDEST = 300.0
_LEAST = 1e-280


class ExpPairs:
    """Pairs of items of a query with different labels, weighted by a graph without ties; O(m) per round."""

    def __init__(self, graph: LabelledGraph) -> None:
        self._graph = graph
        self._new_query = np.zeros(graph.n_rows, dtype=bool)
        self._new_query[graph.starts[:-1]] = True
        self._new_class = (np.diff(graph.y[:, 0], prepend=np.nan) != 0.0) | self._new_query
        self._rho = graph.rho

    def potentials(self, f: Array) -> tuple[Array, float]:
        """Potentials (m,) before division by the total weight of all pairs, and this total.

        The total is 0 if the weights exceed the range of float64.
        """
        rows = self._graph.rows
        w = self._graph.weights
        starts = self._graph.starts[:-1]
        f = f[rows]
        out = np.zeros(len(rows))
        own = np.empty(len(rows))
        middle = 0.5 * (np.maximum.reduceat(f, starts) + np.minimum.reduceat(f, starts))
        f = f - np.repeat(middle, self._graph.lengths)  # cancels in every pair, and keeps exponents small
        if np.abs(f).max() > _WIDEST:
            return out, 0.0
        total = _class_potentials(w * np.exp(-f), w * np.exp(f), self._rho, self._new_class, self._new_query, own)
        out[rows] = own
        return out, float(total)


@compiled
def _class_potentials(down, up, rho, new_class, new_query, out):  # type: ignore[no-untyped-def]
    """``rho [a_i (b of lower labels) - b_i (a of higher labels)]``, and the total weight of all pairs."""
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


class PreferencePairs:
    """Listed preferences; O(preferences) per round.

    A negative strength reverses its preference, and strength 0 orders nothing; otherwise strengths are ignored.
    """

    def __init__(self, graph: PreferenceGraph) -> None:
        self._graph = graph
        self._sign = np.sign(graph.strength)

    def potentials(self, f: Array) -> tuple[Array, float]:
        """Potentials and total weight, as for ExpPairs."""
        B = self._graph.incidence
        sign = self._sign
        with np.errstate(over="ignore", under="ignore"):
            D = self._graph.weights * np.abs(sign) * np.exp(-sign * (B @ f))
        total = float(D.sum())
        return (B.T @ (sign * D), total) if np.isfinite(total) else (np.zeros(len(f)), 0.0)


Pairs = ExpPairs | PreferencePairs


class CodedColumns:
    """Nonzero values of every feature, coded as numbers of its distinct values.

    O(values log m) once; at most eight bytes per value.
    """

    def __init__(self, X: Matrix) -> None:
        self._X = columns_of(X)
        self.n_rows = X.shape[0]
        self._codes = np.empty(self._X.nnz, dtype=np.min_scalar_type(self.n_rows))
        self._zeros = np.full(X.shape[1], -1, dtype=np.intp)
        self.distinct = map_threads(self._encode, range(X.shape[1]))

    def _encode(self, j: int) -> AnyArray:
        own = slice(*self._X.indptr[j : j + 2])
        values = self._X.data[own]
        size = len(values)
        if size < self.n_rows:
            values = np.append(values, values.dtype.type(0.0))
        distinct, codes = np.unique(values, return_inverse=True)
        self._codes[own] = codes[:size]
        if size < self.n_rows:
            self._zeros[j] = codes[-1]
        return np.asarray(distinct)

    def best(self, potential: Array) -> tuple[int, float, float, Mask] | None:
        """The stump with the largest ``|r|``: feature, threshold, r, and a mask of the rows above.

        Values that differ by rounding are equal; ties go to the lowest feature, then to the lowest threshold. None if
        no ``|r|`` exceeds rounding.
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
        own = slice(*self._X.indptr[j : j + 2])
        above = np.full(self.n_rows, self._zeros[j] > k)
        above[self._X.indices[own]] = self._codes[own] > k
        return j, middle if low <= middle < high else low, float(tails[k]), above

    def _tails(self, j: int, potential: Array) -> Array:
        """Sums of the potential over the rows above each distinct value except the last."""
        own = slice(*self._X.indptr[j : j + 2])
        sums = np.bincount(self._codes[own], potential[self._X.indices[own]], len(self.distinct[j]))
        if self._zeros[j] >= 0:
            sums[self._zeros[j]] -= sums.sum()  # potentials sum to zero
        return sums[:0:-1].cumsum()[::-1]


@dataclass(frozen=True, eq=False)
class Stumps:
    """A sum of stumps ``weights[t] [x[features[t]] > thresholds[t]]``.

    Attributes
    ----------
    features : ndarray of shape (rounds,), intp
    thresholds, weights : ndarray of shape (rounds,)
    losses : ndarray of shape (rounds,)
        Mean of ``exp(-(f_i - f_j))`` over the pairs after each round.
    """

    features: Index
    thresholds: Array
    weights: Array
    losses: Array

    def __call__(self, X: Matrix) -> Array:
        """Scores of the rows of X. O(rows x rounds)."""
        scores = np.zeros(X.shape[0])
        for stage in self.staged(X):
            scores = stage
        return scores

    def staged(self, X: Matrix) -> Iterator[Array]:
        """Scores of the rows of X after each round."""
        X = columns_of(X) if sparse.issparse(X) else X
        scores = np.zeros(X.shape[0])
        for feature, threshold, weight in zip(self.features, self.thresholds, self.weights, strict=True):
            scores = scores + weight * (dense_rows(X[:, [feature]], slice(None))[:, 0] > threshold)
            yield scores


def boost(pairs: Pairs, X: Matrix, rounds: int) -> tuple[Stumps, str]:
    """Run RankBoost, and return the reason why it stopped.

    Parameters
    ----------
    pairs : ExpPairs or PreferencePairs
    X : ndarray or sparse array of shape (m, n)
    rounds : int
        Maximum number of rounds.

    Returns
    -------
    stumps : Stumps
    stopped : str
        "n_estimators"; "no edge", no stump orders the pairs better than chance; "separated", one stump orders all pairs
        with weight and would be selected forever; "exhausted", weights exceed the range of float64.

    Notes
    -----
    A round costs O(m) for the weights and one pass over the codes.
    """
    columns = CodedColumns(X)
    f = np.zeros(X.shape[0])
    stopped = "n_estimators"
    potential, first = pairs.potentials(f)
    total = first
    found = list[tuple[int, float, float, float]]()
    while len(found) < rounds and stopped == "n_estimators":
        if not total > _LEAST * first:
            stopped = "exhausted"
            break
        best = columns.best(potential / total)
        if best is None:
            stopped = "no edge"
            break
        feature, threshold, r, above = best
        if abs(r) >= _NEAR_ONE:
            stopped = "separated"
            r = float(np.copysign(_NEAR_ONE, r))
        weight = float(np.arctanh(r))
        f[above] += weight
        potential, total = pairs.potentials(f)
        found.append((feature, threshold, weight, total / first))
    features, *numbers = np.array(found, dtype=np.float64).reshape(-1, 4).T
    return Stumps(features.astype(np.intp), *numbers), stopped


def columns_of(X: Matrix) -> sparse.csc_array:
    """X as a CSC array with duplicate entries summed and zeros removed."""
    out = sparse.csc_array(X, copy=True)
    out.sum_duplicates()
    out.eliminate_zeros()
    return out


@dataclass(frozen=True, eq=False, kw_only=True)
class RankBoostCandidate(Candidate["StagedScores"]):
    """RankBoost on labelled items or on preferences."""

    balance: str
    rounds: int

    def problem(self, data: Data) -> RankBoostProblem:
        return RankBoostProblem(self, data)


class RankBoostProblem(Problem["StagedScores"]):
    """RankBoost, run once; its parameter is the number of rounds."""

    parameter = "n_estimators"

    def __init__(self, candidate: RankBoostCandidate, data: Data) -> None:
        (graph,) = data.numeric_graphs(GraphSetting("exclude", candidate.balance))
        pairs: Pairs = graph.by_kind(ExpPairs, PreferencePairs)
        self.stumps, self.stopped = boost(pairs, data.X, candidate.rounds)

    def axis(self) -> Array:
        """All numbers of rounds; 0 if no stump orders anything."""
        n_rounds = len(self.stumps.features)
        return np.arange(min(1.0, n_rounds), n_rounds + 1.0)

    def path(self, values: Array) -> StagedScores:
        """Models with the given numbers of rounds."""
        return StagedScores(self.stumps, self.stopped, values.astype(np.intp))


@dataclass(frozen=True, eq=False)
class StagedScores:
    """Models with some numbers of rounds."""

    stumps: Stumps
    stopped: str
    rounds: Index

    def scores(self, X: Matrix) -> Array:
        """Scores of the rows of X after each number of rounds, (rows, numbers, 1)."""
        stages = np.stack([np.zeros(X.shape[0]), *self.stumps.staged(X)])
        return stages[self.rounds].T[:, :, None]
