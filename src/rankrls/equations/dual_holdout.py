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

from rankrls._compiled.threads import map_blocks
from rankrls.equations.holdout import holdout_alphas
from rankrls.equations.spectrum import Spectrum
from rankrls.graph import Graph

__all__ = ["dual_holdout_scores", "solve_positive"]


@dataclass(frozen=True)
class _Holder:
    """Everything that all blocks share."""

    graph: Graph
    vectors: NDArray[np.float64]  # of F K F', (rows, rows)
    target: NDArray[np.float64]  # (rows, targets)
    unseen: NDArray[np.float64]  # in the eigenbasis
    inverse: NDArray[np.float64]  # 1 / (values + alpha), (rows, alphas)
    # alpha / (values + alpha): the eigenvalues of I - H, bounded by 1 however small alpha is
    slack: NDArray[np.float64]
    right: NDArray[np.float64]  # F y in the eigenbasis, (rows, targets)
    shrunk: NDArray[np.float64]  # slack times right, (rows, alphas * targets)
    image: NDArray[np.float64] | None  # in the eigenbasis

    @property
    def n_alphas(self) -> int:
        return self.slack.shape[1]


def dual_holdout_scores(
    graph: Graph,
    decomposition: Spectrum,
    target: NDArray[np.float64],
    unseen: NDArray[np.float64] | None,
    blocks: list[Any],
    alphas: NDArray[np.float64],
    *,
    image: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Score the rows of each block by the model of all other rows.

    Parameters
    ----------
    graph : Graph
    decomposition : Spectrum
        Of ``F K F'``.
    target : ndarray of shape (rows, targets)
    unseen : ndarray of shape (any, rows) or None
        ``graph.unseen`` of the columns of ``K F'``; None stands for no rows.
    blocks : list of slices or row numbers
        Disjoint; whole queries of a scored graph, any rows of a pair graph.
    alphas : ndarray
        Positive; see :func:`rankrls.equations.holdout.holdout_alphas` for tiny ones.
    image : ndarray of shape (rows, rows), optional
        What scores are made of, if they are other functions of c than those that are fitted: a row for each score.

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
        np.zeros((0, size)) if unseen is None else unseen @ s.vectors,
        s.inverse(alphas),
        slack,
        right,
        (slack[:, :, None] * right[:, None, :]).reshape(size, -1),
        None if image is None else image @ s.vectors,
    )
    out = np.full((size, len(alphas), right.shape[1]), np.nan)
    map_blocks(lambda block: _hold(holder, block, out), blocks)
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
    x = np.zeros((len(h.vectors), 0))
    if len(h.unseen) or h.image is not None:
        x = h.inverse[:, :, None] * (h.right[:, None, :] - (V.T @ error.reshape(u, -1)).reshape(-1, alphas, targets))
        x = x.reshape(len(x), -1)
    if h.image is not None:
        out[block] = (h.image[block] @ x).reshape(u, alphas, targets)
        return
    inside = h.graph.block_scores(block, h.unseen)
    scores = inside.scores(fitted.reshape(u, -1), x, np.tile(h.target[block], alphas))
    out[block] = scores.reshape(u, alphas, targets)


def _symmetric_product(A: NDArray[np.float64]) -> NDArray[np.float64]:
    """``A A'``, which numpy knows as symmetric: half the price, and unlike scipy's other threads run meanwhile."""
    return np.asarray(A @ A.T)


def solve_positive(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve with a matrix, given by its lower triangle, that is positive definite but for rounding or a bad kernel."""
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(A, lower=True, check_finite=False), B, check_finite=False))
    except linalg.LinAlgError:
        full = np.tril(A) + np.tril(A, -1).T
        return np.asarray(linalg.lstsq(full, B, check_finite=False)[0])
