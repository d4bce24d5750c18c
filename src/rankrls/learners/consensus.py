r"""Co-regularized RankRLS in its consensus form: views that agree with one function on labelled and unlabelled rows.

With the kernels :math:`K_v` of M views on all rows Z, labelled or not, C the centring of Z inside its queries and h the
consensus,

.. math::

    \min_{h, f_v} \; \lVert F ( y - h_S ) \rVert^2 + \frac{\alpha}{M} \sum_v \left[ \lVert f_v \rVert^2
    + \mu \lVert C ( f_v(Z) - h ) \rVert^2 \right]

is RankRLS on the labelled rows S with the kernel :math:`M [ \sum_v A_v ]^{-1}`, :math:`A_v = (C K_v C + I / \mu)^{-1}`
(Sindhwani and Rosenberg 2008). The predictions, also on Z, are :math:`f(x) = \frac1M \sum_v K_v(x, Z) \, C A_v C h`,
which differ from h on labelled rows. So the scores of held-out rows U are those of f: first h without U on all of Z, by
the dual shortcut, and then f on U. The rows of U stay in Z as unlabelled rows: a transductive estimate.

With row weights W, C is the centring of ``W^1/2 z``, and all of this applies to ``W^1/2 K W^1/2`` and ``W^1/2 h``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import linalg

from rankrls._cached import cached_property
from rankrls._comparisons import Data, GraphSetting, KnownItems
from rankrls._problems import Candidate, Problem
from rankrls._typing import Array, Index
from rankrls.learners.paths import PathSolutions
from rankrls.numerics.eigen import definite_inverse
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.smoother import DualEquations


@dataclass(frozen=True, eq=False)
class Views:
    """Kernels of the views on all rows Z, given as functions that compute the matrices one at a time.

    The graph covers all rows, and its items weigh the same; its F is C.
    """

    kernels: Sequence[Callable[[], Array]]
    graph: LabelledGraph

    @cached_property
    def scale(self) -> float:
        """Mean diagonal entry of the centred kernels."""
        traces = [np.trace(self._centred(make())) for make in self.kernels]
        return float(np.mean(traces) / self.graph.weights.sum())

    def _centred(self, K: Array) -> Array:
        return np.asarray(self.graph.factor_rows(np.ascontiguousarray(self.graph.factor_rows(K).T)))

    def agree(self, mu: float) -> Consensus:
        """Consensus of the views for one weight of their agreement. O(M m^3), and 8 (M + 5) m^2 bytes."""
        views = list[Array]()
        total: Any = 0.0
        reach: Any = 0.0
        for v, make in enumerate(self.kernels):
            K = make()
            C = self._centred(K)
            C[np.diag_indices_from(C)] += 1.0 / mu
            A = definite_inverse(C, f"kernel of views[{v}]")
            views.append(A)
            total = total + A
            reach = reach + self.graph.item_coefficients(A @ self.graph.factor_rows(K)).T
        root = np.sqrt(self.graph.restore(self.graph.weights))
        number = np.argsort(self.graph.rows)
        kernel = definite_inverse(total, "sum of the views")[np.ix_(number, number)]
        kernel *= len(views) / np.outer(root, root)
        return Consensus(kernel, reach / len(views), views, self.graph)


@dataclass(frozen=True, eq=False)
class Consensus:
    """The function that the views agree on over all rows Z, for one weight of their agreement."""

    kernel: Array  # of the consensus h
    reach: Array  # maps h to f
    views: list[Array]  # A
    graph: LabelledGraph

    def view_coefficients(self, h: Array) -> list[Array]:
        """Coefficients of the rows of Z in each view, computed from h; both (Z, columns)."""
        return [self.graph.item_coefficients(A @ self.graph.factor_rows(h)) / len(self.views) for A in self.views]


@dataclass(frozen=True, eq=False, kw_only=True)
class ConsensusCandidate(Candidate["PathSolutions[None]"]):
    """Consensus of all views for one weight of their agreement and one graph of the labelled rows."""

    consensus: Consensus
    setting: GraphSetting

    def problem(self, data: Data) -> ConsensusProblem:
        assert isinstance(data, KnownItems)
        return ConsensusProblem(self.consensus, data.numbers, data.numeric_graphs(self.setting)[0])


class ConsensusProblem(Problem["PathSolutions[None]"]):
    """RankRLS with the consensus kernel on the rows ``labelled`` of Z; its functions are the mean of the views.

    Items are row numbers of Z, as a matrix with one column; the graph is that of the labelled rows.
    """

    parameter = "alpha"

    def __init__(self, consensus: Consensus, labelled: Index, graph: LabelledGraph) -> None:
        self.graph = graph
        self._across = consensus.kernel[:, labelled]
        self._read = partial(_read, self._across, consensus)
        self._smoother = DualEquations.of_kernel(np.array(self._across[labelled], order="C"), graph).smoother()
        predictions = consensus.reach[labelled] @ self._across
        # Maps the dual coefficients c, in the directions of the smoother, to scores of the labelled rows.
        self._image = graph.factor_rows(np.ascontiguousarray(predictions.T)).T @ self._smoother.directions

    def axis(self) -> Array:
        """An automatic grid of alphas."""
        return self._smoother.grid()

    def path(self, values: Array) -> PathSolutions[None]:
        """Functions for several alphas."""
        return PathSolutions(self._smoother.path(values), self._read)

    def scores_without(self, blocks: Sequence[Any], values: Array) -> Array:
        """Scores of the rows of each block by the model fitted without it, (rows, alphas, targets).

        With ``C = F K F' + alpha I`` the coefficients without the rows U are ``c - C^-1_{:,U} (C^-1_{UU})^-1 c_U``.
        """
        s = self._smoother
        place = np.empty(self.graph.n_rows, dtype=np.intp)
        place[self.graph.rows] = np.arange(self.graph.n_rows)
        out = np.full((len(place), len(values), s.right.shape[1]), np.nan)
        for k, inverse in enumerate(s.inverse(values).T):
            for block in blocks:
                rows = np.arange(len(place))[block]
                V = s.directions[place[rows]]
                c = V @ (inverse[:, None] * s.right)
                e = linalg.lstsq((V * inverse) @ V.T, c, check_finite=False)[0]
                out[rows, k] = self._image[rows] @ (inverse[:, None] * (s.right - V.T @ e))
        return out


def _read(across: Array, consensus: Consensus, a: Array) -> Callable[[Any], Array]:
    """Function of row numbers of Z. Not a method: a problem that contains its own bound method is freed late."""
    h = across @ a
    return lambda X: consensus.reach[X[:, 0].astype(np.intp)] @ h
