r"""RankBoost: the distribution over pairs, and the rounds.

With scores :math:`f`, the pair of an item i and an item j that i should come before weighs

.. math::

    D_{ij} \propto c_{ij} \exp(-(f_i - f_j)) , \qquad
    \pi_i = \sum_{j} D_{ij} - \sum_{j} D_{ji} , \qquad
    r(h) = \sum_{ij} D_{ij} (h(x_i) - h(x_j)) = \sum_i \pi_i h(x_i) .

All that a weak learner needs is the *potential* :math:`\pi` (Freund, Iyer, Schapire and Singer 2003, on finding weak
rankings). Between items with labels :math:`c_{ij} = \rho_q w_i w_j` for :math:`y_i > y_j` inside a query, and the
weights factorise:

.. math::

    \pi_i = \rho_q \Big[ a_i \sum_{y_j < y_i} b_j - b_i \sum_{y_j > y_i} a_j \Big] , \qquad
    a_i = w_i e^{-f_i} , \quad b_i = w_i e^{f_i} ,

which is a sum for each label of the query, added up from below and from above. (Two labels are the paper's
RankBoost.B.) No pair is ever looked at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import balanced_blocks, map_threads, n_threads
from rankrls.boosting.stumps import Bins
from rankrls.graph import OrderedPairs, PairGraph

TIE = 1e-11
"""Two stumps whose r differ by less are equally good: r is a sum of m terms that the order of rows rounds."""
_NEAR_ONE = 1.0 - 1e-10
_WIDE = 100.0
_WIDEST = 600.0
_LEAST = 1e-280


class PairWeights(ABC):
    """The distribution over pairs, known by its potentials.

    Attributes
    ----------
    order : ndarray of shape (m,), intp
        Scores and potentials are in this order of the rows.
    """

    order: NDArray[np.intp]

    @abstractmethod
    def potentials(self, f: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        """Potentials (m,) before they are divided by the sum of all pairs' weights, and that sum.

        The sum is 0 where the weights are beyond float64.
        """


class LevelWeights(PairWeights):
    """Pairs of items of a query with different labels: O(m) a round, rows sorted by query and label."""

    def __init__(self, pairs: OrderedPairs) -> None:
        self.pairs, self.order = pairs, pairs.order
        self._weights, self._query_levels = pairs.weights[pairs.order], pairs.query_classes

    def potentials(self, f: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        if np.abs(f).max(initial=0.0) > _WIDE:
            f = self._centred(f)
            if np.abs(f).max() > 0.5 * _WIDEST:
                return np.zeros(len(f)), 0.0
        pairs, starts = self.pairs, self.pairs.layout.starts
        out = np.empty(len(f))
        totals = np.empty(len(pairs.rho))

        def run(block: tuple[int, int]) -> None:
            rows = slice(starts[block[0]], starts[block[1]])
            growth = np.exp(f[rows])
            w, levels = self._weights[rows], (pairs.rho, pairs.class_starts, self._query_levels)
            _level_potentials(w / growth, w * growth, *levels, *block, out[rows], totals)

        map_threads(run, balanced_blocks(starts, n_threads()))
        return out, float(totals.sum())

    def _centred(self, f: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores less the middle of their query's: pairs see no difference, and exponents stay small."""
        layout = self.pairs.layout
        heads = layout.starts[:-1]
        middle = 0.5 * (np.maximum.reduceat(f, heads) + np.minimum.reduceat(f, heads))
        return f - np.repeat(middle, layout.counts)


@compiled
def _level_potentials(down, up, rho, level_starts, query_levels, first, last, out, totals):  # type: ignore[no-untyped-def]
    """``rho [a_i (b of lower labels) - b_i (a of higher labels)]``, and each query's sum over pairs."""
    one = np.uint64(1)
    offset = np.uint64(level_starts[np.uint64(query_levels[np.uint64(first)])])
    for q in range(np.uint64(first), np.uint64(last)):
        low = np.uint64(query_levels[q])
        high = np.uint64(query_levels[q + one])
        scale = rho[q]
        below = 0.0
        total = 0.0
        for c in range(low, high):
            own = 0.0
            for i in range(np.uint64(level_starts[c]) - offset, np.uint64(level_starts[c + one]) - offset):
                out[i] = scale * down[i] * below
                total += out[i]
                own += up[i]
            below += own
        totals[q] = total
        above = 0.0
        c = high
        while c > low:
            c -= one
            own = 0.0
            for i in range(np.uint64(level_starts[c]) - offset, np.uint64(level_starts[c + one]) - offset):
                out[i] -= scale * up[i] * above
                own += down[i]
            above += own


class EdgeWeights(PairWeights):
    """Preferences, one weight each: O(preferences + m) a round.

    A negative strength turns its preference round, one of strength 0 orders nothing; otherwise strengths play no part.
    """

    def __init__(self, graph: PairGraph) -> None:
        self.graph, self.order = graph, np.arange(graph.n_items, dtype=np.intp)

    def potentials(self, f: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        graph = self.graph
        sign = np.sign(graph.strength)
        with np.errstate(over="ignore", under="ignore"):
            D = graph.weight * np.abs(sign) * np.exp(-sign * graph.differences(f))
        total = float(D.sum())
        if not np.isfinite(total):
            return np.zeros(len(f)), 0.0
        D *= sign
        return graph.scattered(D, -D), total


@dataclass(frozen=True)
class Stump:
    """One round: ``weight * [x[feature] > threshold]`` was added.

    Attributes
    ----------
    r : float
        What the stump was chosen by, from -1 to 1.
    loss : float
        Mean of ``exp(-(f_i - f_j))`` over the pairs after this round, the product of the rounds' Z. It bounds the
        share of pairs that are ordered wrongly.
    """

    feature: int
    threshold: float
    weight: float
    r: float
    loss: float


class Boosting:
    r"""RankBoost with threshold stumps, one round a call.

    Each round takes the stump with the largest :math:`|r|` and adds it with the weight

    .. math:: \alpha = \nu \tfrac12 \ln \frac{1 + r}{1 - r}

    (Freund, Iyer, Schapire and Singer 2003: figure 1, the third of their methods of choosing :math:`\alpha`, and their
    weak learner of thresholds). With :math:`\nu = 1` every round multiplies the loss by a :math:`Z` of no more than
    :math:`\sqrt{1 - r^2}`; the loss bounds the share of pairs ordered wrongly (their theorem 1).

    Parameters
    ----------
    pairs : PairWeights
    bins : Bins
        Rows in the order of ``pairs``.
    learning_rate : float
        :math:`\nu`.

    Attributes
    ----------
    status : str
        "running"; or why there is no further round: "no edge" (no stump orders the pairs better than chance),
        "separated" (one stump orders all that have weight, and would be chosen for ever), "exhausted" (weights beyond
        float64).
    scores : ndarray of shape (m,)
        In the order of ``pairs``.

    Notes
    -----
    A round is O(m) for the weights and one pass over the bins, O(m n) or O(non-zeros). Of equally good stumps the
    lowest feature, then the lowest threshold.
    """

    def __init__(self, pairs: PairWeights, bins: Bins, learning_rate: float = 1.0) -> None:
        self.pairs = pairs
        self.bins = bins
        self.learning_rate = learning_rate
        self.status = "running"
        self.scores = np.zeros(bins.n_rows)
        self._potential, self._total = pairs.potentials(self.scores)
        self._first_total = self._total

    def round(self) -> Stump | None:
        """Add one stump; None where ``status`` says that there is none."""
        if self.status != "running":
            return None
        if not self._total > _LEAST * self._first_total:
            self.status = "exhausted"
            return None
        found = self.bins.best(self._potential / self._total, TIE)
        if found is None:
            self.status = "no edge"
            return None
        feature, k, r = found
        if abs(r) >= _NEAR_ONE:
            self.status, r = "separated", float(np.copysign(_NEAR_ONE, r))
        weight = self.learning_rate * 0.5 * float(np.log1p(r) - np.log1p(-r))
        self.scores[self.bins.above(feature, k)] += weight
        self._potential, self._total = self.pairs.potentials(self.scores)
        threshold = float(self.bins.thresholds[self.bins.starts[feature] + k])
        return Stump(feature, threshold, weight, r, self._total / self._first_total)
