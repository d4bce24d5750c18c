"""Forward selection of features as a problem whose parameter is their number."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._compiled.threads import map_threads
from rankrls.features.blocks import row_slices
from rankrls.graph import Graph
from rankrls.greedy.forward import ForwardPath, take_forward
from rankrls.greedy.pursuit_problem import Pursuit, PursuitProblem

_FEATURES = Pursuit(None, None, True, 0.0)


class ForwardProblem(PursuitProblem):
    """Lower the held-out error of ``||F (y - X_S w)||^2 + alpha ||w||^2`` by one feature of S after the other.

    Parameters
    ----------
    X : dense or CSR, shape (m, n)
    graph : Graph
    target : ndarray of shape (rows of F,)
    alpha : float
        Positive.
    most : int
        The most features that are asked for: the path is walked once.
    judge : callable, optional
        Takes held-out scores (units, candidates, 1); gives each candidate's measure, and what its rounding is relative
        to. The squared error of the held-out rows of F decides by default.
    greater_is_better : bool
        Which end of that measure is the better one.
    """

    parameter = "n_features"

    def __init__(
        self,
        X: Any,
        graph: Graph,
        target: NDArray[np.float64],
        alpha: float,
        most: int,
        judge: Callable[[NDArray[np.float64]], tuple[Any, Any]] | None = None,
        greater_is_better: bool = False,
    ) -> None:
        super().__init__(_FEATURES, X, graph, target, most)
        self.alpha, self._judge, self._greater = alpha, judge, greater_is_better

    @cached_property
    def walked(self) -> ForwardPath:
        rows = self.graph.factor_rows(self.X)
        blocks, slack = self.graph.blocks_to_hold_out()
        order = np.concatenate(blocks)
        starts = np.concatenate(([0], np.cumsum([len(block) for block in blocks]))).astype(np.intp)
        Z = np.empty((rows.n_rows, rows.n_features))

        def fill(piece: slice) -> NDArray[np.float64]:
            part = Z[piece] = rows.factor(order[piece])
            return np.einsum("ij,ij->j", part, part)

        energies = np.sum(map_threads(fill, row_slices(0, rows.n_rows)), axis=0)
        unseen = rows.visible(energies) == 0.0
        if unseen.any():
            Z[:, unseen] = 0.0  # rounding alone is left of what the graph does not see
        judge = None if self._judge is None else partial(self._measured, order)
        how = self.target[order], starts, slack[order], self.alpha, self.n_basis, judge
        return take_forward(Z, *how, greater_is_better=self._greater)

    def _measured(
        self, order: NDArray[np.intp], ordered: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The measure of held-out residuals (rows of F in the order of the blocks, candidates)."""
        assert self._judge is not None
        graph, columns = self.graph, ordered.shape[1]
        residuals = np.empty_like(ordered)
        residuals[order] = ordered
        target = np.broadcast_to(self.target[:, None], residuals.shape)
        unseen = np.zeros((len(graph.unseen(np.zeros((graph.n_items, 1)))), 0))
        everything = np.arange(graph.n_rows, dtype=np.intp)
        scores = graph.block_scores(everything, target - residuals, target, unseen, np.zeros((0, columns)))
        return self._judge(scores[:, :, None])
