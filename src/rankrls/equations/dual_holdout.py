r"""Held-out scores of whole blocks without refitting, in the dual.

With ``C = F K F' + alpha I`` and ``c = C^-1 F y`` the model without the rows U has the coefficients
``c - C^-1_{:,U} e``, where

.. math::

    e = ( C^{-1}_{UU} )^{-1} c_U = ( I - H_{UU} )^{-1} ( F y - H F y )_U , \qquad H = F K F' C^{-1} ,

so its scores satisfy ``F_U f_U = F_U y_U - e`` at once (Pahikkala, Suominen, Boberg, Salakoski 2007, section 3).
``F_U`` is inverted level by level; what it does not see needs rows of ``K F'``: one for the mean score of each query,
and those of the items that no pair compares (a query of one label, ties excluded), instead of all m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls.equations.holdout import holdout_alphas
from rankrls.equations.spectrum import Spectrum
from rankrls.features.rows import row_numbers
from rankrls.graph import PairGraph, ScoredGraph

__all__ = ["BlockScores", "blind_items", "dual_holdout_scores", "merge_rounding", "solve_positive"]


@dataclass(frozen=True)
class _Holder:
    """Everything that all blocks share."""

    graph: ScoredGraph | PairGraph
    vectors: NDArray[np.float64]  # of F K F', (rows, rows)
    target: NDArray[np.float64]  # (rows, targets)
    unseen: NDArray[np.float64] | None  # in the eigenbasis
    blind: NDArray[np.intp]
    inverse: NDArray[np.float64]  # 1 / (values + alpha), (rows, alphas)
    slack: NDArray[
        np.float64
    ]  # alpha / (values + alpha): the eigenvalues of I - H, bounded by 1 however small alpha is
    right: NDArray[np.float64]  # F y in the eigenbasis, (rows, targets)
    shrunk: NDArray[np.float64]  # slack times right, (rows, alphas * targets)

    @property
    def n_alphas(self) -> int:
        return self.slack.shape[1]


def dual_holdout_scores(
    graph: ScoredGraph | PairGraph,
    decomposition: Spectrum,
    target: NDArray[np.float64],
    unseen: NDArray[np.float64] | None,
    blocks: list[Any],
    alphas: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Score the rows of each block by the model of all other rows.

    Parameters
    ----------
    graph : ScoredGraph or PairGraph
    decomposition : Spectrum
        Of ``F K F'``.
    target : ndarray of shape (rows, targets)
    unseen : ndarray of shape (q + blind items, rows) or None
        As in :class:`rankrls.problems.dual.DualProblem`.
    blocks : list of slices or row numbers
        Disjoint; whole queries of a scored graph, any rows of a pair graph.
    alphas : ndarray
        Positive; see :func:`rankrls.equations.holdout.holdout_alphas` for tiny ones.

    Returns
    -------
    ndarray of shape (rows, alphas, targets)
        Scores of items, or score differences of pairs; NaN for rows in no block.

    Notes
    -----
    O(u m) a block of u rows and alpha for its scores, O(u^2 m) for its part of ``C^-1``.
    """
    s, size = decomposition, len(target)
    alphas = holdout_alphas(alphas, float(s.values.max(initial=0.0)))
    slack = alphas / (s.values[:, None] + alphas)
    right = s.vectors.T @ target
    holder = _Holder(
        graph,
        s.vectors,
        target,
        None if unseen is None else unseen @ s.vectors,
        blind_items(graph),
        s.inverse(alphas),
        slack,
        right,
        (slack[:, :, None] * right[:, None, :]).reshape(size, -1),
    )
    out = np.full((size, len(alphas), right.shape[1]), np.nan)
    if len(blocks) >= n_threads():
        with one_blas_thread():
            map_threads(lambda block: _hold(holder, block, out), blocks)
    else:
        for block in blocks:
            _hold(holder, block, out)
    return out


def _hold(h: _Holder, block: Any, out: NDArray[np.float64]) -> None:
    V = np.ascontiguousarray(h.vectors[block])  # LAPACK's are columns
    u, alphas, targets = V.shape[0], h.n_alphas, h.target.shape[1]
    residual = (V @ h.shrunk).reshape(u, alphas, targets)
    error = np.empty_like(residual)
    scaled = np.empty_like(V)
    for k in range(alphas):
        if (h.slack[:, k] >= 0.0).all():
            part = _symmetric_product(np.multiply(V, np.sqrt(h.slack[:, k]), out=scaled))
        else:
            part = np.multiply(V, h.slack[:, k], out=scaled) @ V.T
        error[:, k] = solve_positive(part, residual[:, k])
    fitted = h.target[block][:, None, :] - error
    if isinstance(h.graph, PairGraph):
        out[block] = fitted / np.sqrt(h.graph.weight[block])[:, None, None]
        return
    assert h.unseen is not None
    x = h.inverse[:, :, None] * (h.right[:, None, :] - (V.T @ error.reshape(u, -1)).reshape(-1, alphas, targets))
    inside = BlockScores(h.graph, block, h.unseen, h.blind)
    scores = inside.scores(fitted.reshape(u, -1), x.reshape(len(h.vectors), -1), np.tile(h.target[block], alphas))
    out[block] = scores.reshape(u, alphas, targets)


def _symmetric_product(A: NDArray[np.float64]) -> NDArray[np.float64]:
    """``A A'``, which numpy knows as symmetric: half the price, and unlike scipy's other threads run meanwhile."""
    return np.asarray(A @ A.T)


class BlockScores:
    """Scores of a block of whole queries from ``F_U f_U`` and the model's coefficients.

    Parameters
    ----------
    graph : ScoredGraph
    block : slice or row numbers
        Whole queries, rows in any order.
    unseen : ndarray of shape (q + blind items, rows)
        Rows of ``K F'``, in the basis of the coefficients that :meth:`scores` will be given.
    blind : ndarray of intp
        See :func:`blind_items`.
    """

    def __init__(self, graph: ScoredGraph, block: Any, unseen: NDArray[np.float64], blind: NDArray[np.intp]) -> None:
        rows = row_numbers(block)
        queries, self.query = np.unique(graph.layout.codes[rows], return_inverse=True)
        self.graph = graph.select(queries)
        # ``select`` keeps its rows in row order; the block may name them in any.
        self.order = np.argsort(rows, kind="stable")
        self.means = unseen[queries]
        self.blind = np.flatnonzero(np.isin(rows, blind))
        self.blind_kernel = unseen[graph.n_blocks + np.searchsorted(blind, rows[self.blind])]

    def scores(self, factored: NDArray[np.float64], x: NDArray[np.float64], target: NDArray[np.float64]) -> Any:
        """Scores of the block's rows from ``F_U f_U``, whose rounding is relative to ``target``."""
        means = (self.means @ x)[self.query]
        deviations = self._deviations(factored)
        deviations[self.blind] = self.blind_kernel @ x - means[self.blind]
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


def blind_items(graph: ScoredGraph | PairGraph) -> NDArray[np.intp]:
    """Items whose scores a scored graph never compares: F has no row for them. Ascending row numbers."""
    if isinstance(graph, PairGraph):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(graph.eigenvalues[0][graph.row_group] == 0.0)


def solve_positive(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve with a matrix, given by its lower triangle, that is positive definite but for rounding or a bad kernel."""
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(A, lower=True, check_finite=False), B, check_finite=False))
    except linalg.LinAlgError:
        full = np.tril(A) + np.tril(A, -1).T
        return np.asarray(linalg.lstsq(full, B, check_finite=False)[0])
