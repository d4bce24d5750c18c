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

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._compiled.threads import map_blocks
from rankrls.equations.holdout import holdout_alphas
from rankrls.equations.spectrum import Spectrum
from rankrls.graph import Graph


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
    s, (size, targets), n_alphas = decomposition, target.shape, len(alphas)
    alphas = holdout_alphas(alphas, float(s.values.max(initial=0.0)))
    inverse = s.inverse(alphas)
    # alpha / (values + alpha): the eigenvalues of I - H, bounded by 1 however small alpha is
    slack = alphas / (s.values[:, None] + alphas)
    right = s.vectors.T @ target
    shrunk = (slack[:, :, None] * right[:, None, :]).reshape(size, -1)
    rest = np.zeros((0, size)) if unseen is None else unseen @ s.vectors
    images = None if image is None else image @ s.vectors
    out = np.full((size, n_alphas, targets), np.nan)

    def hold(block: Any) -> None:
        V = np.ascontiguousarray(s.vectors[block])  # LAPACK's are columns
        u = len(V)
        residual = (V @ shrunk).reshape(u, n_alphas, targets)
        error = np.empty_like(residual)
        scaled = np.empty_like(V)
        for k in range(n_alphas):
            if (slack[:, k] >= 0.0).all():
                np.multiply(V, np.sqrt(slack[:, k]), out=scaled)
                part = scaled @ scaled.T  # which numpy knows as symmetric: half the price, and other threads run
            else:
                part = np.multiply(V, slack[:, k], out=scaled) @ V.T
            error[:, k] = solve_positive(part, residual[:, k])
        x = np.zeros((size, 0))
        if len(rest) or images is not None:
            pulled = (V.T @ error.reshape(u, -1)).reshape(size, n_alphas, targets)
            x = (inverse[:, :, None] * (right[:, None, :] - pulled)).reshape(size, -1)
        if images is not None:
            scores = images[block] @ x
        else:
            fitted = (target[block][:, None, :] - error).reshape(u, -1)
            scores = graph.block_scores(block, fitted, np.tile(target[block], n_alphas), rest, x)
        out[block] = scores.reshape(u, n_alphas, targets)

    map_blocks(hold, blocks)
    return out


def solve_positive(A: NDArray[np.float64], B: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve with a matrix, given by its lower triangle, that is positive definite but for rounding or a bad kernel."""
    try:
        return np.asarray(linalg.cho_solve(linalg.cho_factor(A, lower=True, check_finite=False), B, check_finite=False))
    except linalg.LinAlgError:
        full = np.tril(A) + np.tril(A, -1).T
        return np.asarray(linalg.lstsq(full, B, check_finite=False)[0])
