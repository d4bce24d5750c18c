"""Held-out scores of whole queries of a scored graph, from what F sees of them and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rankrls.graph.scored import ScoredGraph


def query_scores(
    graph: ScoredGraph,
    rows: NDArray[np.intp],
    factored: NDArray[np.float64],
    target: NDArray[np.float64],
    unseen: NDArray[np.float64],
    x: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Scores of whole queries: ``F_U`` is inverted level by level, the rest are means of queries and faint items.

    See :meth:`rankrls.graph.Graph.block_scores`.
    """
    queries, query = np.unique(graph.layout.codes[rows], return_inverse=True)
    inside = graph.select(queries)
    order = np.argsort(rows, kind="stable")  # ``select`` keeps its rows in row order
    k1, k2, _ = (np.divide(1.0, k, out=np.zeros_like(k), where=k > 0.0) for k in inside.roots)
    levels = k1, k2, np.zeros(len(queries))

    def deviations(z: NDArray[np.float64]) -> NDArray[np.float64]:
        """From the query means, given ``F z``."""
        out = np.empty_like(z)
        out[order] = inside.apply_levels(z[order] / np.sqrt(inside.weights)[:, None], levels, np.ones(len(z)))
        return out

    faint = np.flatnonzero(np.isin(rows, graph.faint_rows))
    scores = deviations(factored)
    scores[faint] = unseen[graph.n_blocks + np.searchsorted(graph.faint_rows, rows[faint])] @ x
    noise = 1e-14 * np.abs(deviations(target)).max(axis=0, initial=0.0)
    return merge_rounding(scores, query, noise) + (unseen[queries] @ x)[query]


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
