"""Greedy RankRLS as a problem of the search: its parameter is the number of features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._errors import InputError
from rankrls.learners.greedy import BlockRows, ForwardPath, HeldRows, PreferenceRows, take_forward
from rankrls.learners.solutions import PathSolutions
from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from rankrls.numerics.runs import dense_rows
from rankrls.numerics.scorer import Scorer

Graph = LabelledGraph | PreferenceGraph

_FEW_ITEMS = 16
"""Products by items cost BLAS's time for blocks x items; by rows they cost a loop over rows."""


class GreedyRows:
    """The rows of one graph as forward selection reads them, for any alpha."""

    def __init__(self, X: Any, graph: Graph, balance: str) -> None:
        self.graph, self.target = graph, graph.target[:, 0]
        self.n_features = X.shape[1]
        self.rows: BlockRows
        if isinstance(graph, PreferenceGraph) and (len(graph.starts) - 1) * graph.n_items < _FEW_ITEMS * graph.n_rows:
            items = dense_rows(X, slice(None))
            items -= items[0].copy()
            items -= items.mean(axis=0)
            self.rows = PreferenceRows(items, graph.winners, graph.losers, graph.scale, graph.starts)
        else:
            starts = graph.starts
            one_by_one = len(starts) == 2
            self.rows = HeldRows(graph.factor_rows(X), np.arange(graph.n_rows + 1) if one_by_one else starts)
        self.slack: NDArray[np.float64] | None = None
        self._growth: NDArray[np.float64] | None = None
        if isinstance(graph, LabelledGraph) and len(graph.starts) == 2:
            self._hold_out_items(graph, balance)

    def _hold_out_items(self, graph: LabelledGraph, balance: str) -> None:
        """Items of one ranking: the level that they are compared with moves, and the graph's scale."""
        if graph.excludes_ties or graph.e3:
            wrong, right = ("ties", "'include'") if graph.excludes_ties else ("regression_weight", "0")
            raise InputError(
                f"items of one ranking are held out only if every pair is compared: give qid, or {wrong}={right}.",
                parameter=wrong,
            )
        w = graph.weights
        total, squares = float(w.sum()), float((w**2).sum())
        self.slack = 1.0 - w / total
        if balance == "pairs":
            self._growth = total / (total - w)
        elif balance == "queries":  # e2 = 2 S / (S^2 - sum w^2)
            rest = total - w
            pairs = rest**2 - squares + w**2
            self._growth = np.where(pairs > 0.0, total / (total**2 - squares) * pairs / rest, 1.0)

    def walked(self, alpha: float, most: int) -> ForwardPath:
        """The selection of up to ``most`` features."""
        held = None if self._growth is None else alpha * self._growth
        return take_forward(self.rows, self.target, alpha, most, self.slack, held)


class GreedyProblem:
    """Lower the held-out error of ``||F (y - X_S w)||^2 + alpha ||w||^2`` by one feature of S after the other.

    Parameters
    ----------
    rows : GreedyRows
    alpha : float
        Positive.
    most : int
        The most features that are asked for: the path is walked once.
    """

    parameter = "n_features"

    def __init__(self, rows: GreedyRows, alpha: float, most: int) -> None:
        self.rows, self.alpha, self.most = rows, alpha, most

    @cached_property
    def walked(self) -> ForwardPath:
        """The whole path."""
        return self.rows.walked(self.alpha, self.most)

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        """The models of some numbers of features; the details are the paths up to there."""
        paths = [self.walked.at(int(min(value, self.walked.n_stages))) for value in values]
        weights = np.zeros((len(values), self.rows.n_features, 1))
        for own, path in zip(weights, paths, strict=True):
            if path.n_stages:
                own[path.indices, 0] = path.coefficients[-1]
        return PathSolutions(weights, Scorer, paths)

    def axis(self) -> NDArray[np.float64]:
        """All numbers of features."""
        return np.arange(1.0, self.most + 1.0)
