r"""Co-regularised RankRLS in its consensus form: views that agree with one function on scored and unscored rows.

With the kernels :math:`K_v` of M views on all rows Z, scored or not, C the centring of Z inside its queries and h the
consensus,

.. math::

    \min_{h, f_v} \; \lVert F ( y - h_S ) \rVert^2 + \frac{\alpha}{M} \sum_v \left[ \lVert f_v \rVert^2
    + \mu \lVert C ( f_v(Z) - h ) \rVert^2 \right]

is RankRLS on the scored rows S with the kernel :math:`M [ \sum_v A_v ]^{-1}`, :math:`A_v = (C K_v C + I / \mu)^{-1}`.
What is predicted, on Z too, is :math:`f(x) = \frac1M \sum_v K_v(x, Z) \, C A_v C h`, which on scored rows is not h. So
the scores of held-out rows U are those of f: h without U, on all of Z, by the shortcut of the dual, and then f of U.
The rows of U stay in Z as unscored rows, which makes that a transductive estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls.equations.dual_holdout import dual_holdout_scores
from rankrls.graph import Graph, ScoredGraph
from rankrls.problems.dual import DualProblem, factored_kernel
from rankrls.problems.scorer import Scorer

__all__ = ["Consensus", "ConsensusProblem"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Consensus:
    """What the views make of all rows Z for one weight of their agreement.

    Attributes
    ----------
    kernel : ndarray of shape (Z, Z)
        Of the consensus h.
    reach : ndarray of shape (Z, Z)
        ``f(Z)`` from h.
    views : list of ndarray of shape (Z, Z)
        ``C A_v C / M``, which gives the coefficients of view v from h.
    """

    kernel: Array
    reach: Array
    views: list[Array]

    @classmethod
    def of(cls, kernels: Sequence[Callable[[], Array]], graph: ScoredGraph, mu: float) -> Consensus:
        """From the views' kernel matrices, made one after the other. O(M Z^3), and 8 M Z^2 bytes.

        ``graph`` compares all rows of a query. Its F is ``T W^1/2`` with the row weights W and the centring T of
        ``W^1/2 z``, so that what stands above holds of weighted rows for ``W^1/2 K W^1/2``, T and ``W^1/2 h``.
        """
        root = np.sqrt(graph.weights)
        total: Any = 0.0
        reach: Any = 0.0
        views: list[Array] = []
        for make in kernels:
            K = make()
            A = graph.F @ np.ascontiguousarray((graph.F @ K).T)
            A = 0.5 * (A + A.T)
            A[np.diag_indices_from(A)] += 1.0 / mu
            A = _inverse(A)
            total = total + A
            B = graph.F.T @ np.ascontiguousarray((graph.F.T @ A).T) / len(kernels)
            views.append(B)
            reach = reach + K @ B
        return cls(len(kernels) * _inverse(total) / root / root[:, None], reach, views)

    def view_coefficients(self, scored: NDArray[np.intp], a: Array) -> Array:
        """Coefficients of the rows of Z in each view, (Z, M), from those of the scored rows, (scored, 1)."""
        h = self.kernel[:, scored] @ a
        return np.column_stack([B @ h for B in self.views])


def _inverse(A: Array) -> Array:
    """Of a positive definite matrix, by Cholesky."""
    factor, failed = linalg.lapack.dpotrf(A, lower=1)
    if failed:
        return np.asarray(linalg.pinvh(A))
    inverse, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)


class ConsensusProblem(DualProblem):
    """RankRLS with the consensus kernel on the rows ``scored`` of Z; its functions are those of the views' mean.

    Items are numbers of rows of Z, as a matrix of one column.
    """

    rounding = None

    def __init__(self, consensus: Consensus, scored: NDArray[np.intp], graph: Graph, target: Array) -> None:
        across = consensus.kernel[:, scored]
        read = partial(_read, across, consensus.reach)
        # Held-out scores are read off the image, and so nothing is asked of what F does not see.
        super().__init__(graph, target, factored_kernel(across[scored], graph), np.empty((0, graph.n_rows)), read)
        self._image = (graph.F @ (consensus.reach[scored] @ across).T).T

    def holdout(self, blocks: list[Any], alphas: Array) -> Array:
        return dual_holdout_scores(self.graph, self.spectrum, self.target, None, blocks, alphas, image=self._image)


def _read(across: Array, reach: Array, a: Array) -> Scorer:
    """Functions of rows of Z by their numbers. No method: a problem that holds one of its own is freed late."""
    return _RowScorer(coefficients=across @ a, reach=reach)


@dataclass(frozen=True, eq=False)
class _RowScorer(Scorer):
    """``f(Z)`` from h, the coefficients, for items that are numbers of rows of Z."""

    reach: Any = None

    def __call__(self, X: Any) -> Array:
        assert self.coefficients is not None
        return np.asarray(self.reach[np.asarray(X)[:, 0].astype(np.intp)] @ self.coefficients)
