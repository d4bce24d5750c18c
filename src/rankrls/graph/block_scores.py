"""Held-out scores of whole queries of a scored graph, from what F sees of them and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls.features.blocks import row_numbers
from rankrls.graph._base import BlockScores

if TYPE_CHECKING:
    from rankrls.graph.scored import ScoredGraph

__all__ = ["QueryScores", "merge_rounding"]


class QueryScores(BlockScores):
    """Scores of whole queries: ``F_U`` is inverted level by level, the rest are means of queries and faint items."""

    def __init__(self, graph: ScoredGraph, block: Any, unseen: NDArray[np.float64]) -> None:
        rows = row_numbers(block)
        queries, self.query = np.unique(graph.layout.codes[rows], return_inverse=True)
        self.graph = graph.select(queries)
        # ``select`` keeps its rows in row order; the block may name them in any.
        self.order = np.argsort(rows, kind="stable")
        self.means = unseen[queries]
        self.faint = np.flatnonzero(np.isin(rows, graph.faint_rows))
        self.faint_kernel = unseen[graph.n_blocks + np.searchsorted(graph.faint_rows, rows[self.faint])]

    def scores(
        self, factored: NDArray[np.float64], x: NDArray[np.float64], target: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        means = (self.means @ x)[self.query]
        deviations = self._deviations(factored)
        deviations[self.faint] = self.faint_kernel @ x
        noise = 1e-14 * np.abs(self._deviations(target)).max(axis=0, initial=0.0)
        return merge_rounding(deviations, self.query, noise) + means

    def _deviations(self, factored: NDArray[np.float64]) -> NDArray[np.float64]:
        """Deviations from the query means of z, given ``F z``."""
        graph, (k1, k2, _) = self.graph, self.graph.inverse_roots
        out = np.empty_like(factored)
        scaled = factored[self.order] / np.sqrt(graph.weights)[:, None]
        out[self.order] = graph.apply_levels(scaled, (k1, k2, np.zeros(graph.n_blocks)))
        return out


def merge_rounding(
    scores: NDArray[np.float64], query: NDArray[np.intp], noise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Make scores of a query equal where they differ by rounding only; in place.

    Items with equal features have equal scores, and real data are full of them. The dual gets each score on a way of
    its own, so that rounding would order them; a tie has to stay one to be judged as one.
    """
    for t in range(scores.shape[1]):
        column = scores[:, t]
        by_score = np.lexsort((column, query))
        values = column[by_score]
        near = 1e-10 * np.abs(values).max(initial=0.0) + noise[t]
        starts = np.ones(len(values), dtype=bool)
        starts[1:] = (np.diff(values) > near) | (np.diff(query[by_score]) != 0)
        column[by_score] = values[starts][np.cumsum(starts) - 1]
    return scores
