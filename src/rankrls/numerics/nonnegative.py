r"""Weights with given signs: minimizers of ``w'(X'LX + alpha I)w - 2 w'X'F't`` subject to ``s_j w_j >= 0``.

Weights with ``s_j = 0`` are free, and are eliminated first: with f the free and c the constrained features,
``w_f = A_ff^-1 (b_f - A_fc w_c)`` leaves a problem in ``A_cc - A_cf A_ff^-1 A_fc = R'R`` and
``b_c - A_cf A_ff^-1 b_f``: nonnegative least squares in R (Lawson & Hanson, Solving least squares problems, 1974,
chapter 23).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.numerics.eigen import EPS
from rankrls.numerics.graph import Graph
from rankrls.numerics.smoother import Equations

Signs = NDArray[np.int8]
_OFF = 1e-12
"""Error bound of held-out scores, relative to the product of the lengths of item and weights."""


def signed_path(equations: Equations, alphas: Array, signs: Signs) -> Array:
    """Weights for every alpha under sign constraints, (alphas, n, targets); exactly 0 where a constraint is active.

    Parameters
    ----------
    equations : Equations
    alphas : ndarray
        Regularization values. If features are linearly dependent, an alpha that is lost in rounding is raised until the
        weights are determined.
    signs : ndarray of shape (n,)
        1 for a weight that must not be negative, -1 for one that must not be positive, 0 for a free one.

    Notes
    -----
    O(n^3) per alpha.
    """
    out = np.empty((len(alphas), *equations.right.shape))
    for k, alpha in enumerate(alphas.tolist()):
        diagonal = equations.gram.diagonal() + alpha
        # in units where all features have the same spread and all constrained weights must not be negative
        units = np.divide(1.0, np.sqrt(diagonal), out=np.zeros(len(diagonal)), where=diagonal > 0.0)
        units = np.where(signs < 0, -units, units)
        A = equations.gram * units * units[:, None]
        A.flat[:: len(A) + 1] = 1.0
        out[k] = units[:, None] * _solve(A, units[:, None] * equations.right, signs != 0)
    return out + 0.0  # no -0


def _solve(A: Array, B: Array, bounded: Mask) -> Array:
    """Minimize ``x'Ax - 2 b'x`` over x with ``x_j >= 0`` where bounded, for each column b of B."""
    for ridge in (0.0, 1e-13, 1e-11, 1e-9):
        try:
            lifted = A + ridge * np.eye(len(A))
            order = np.concatenate((np.flatnonzero(~bounded), np.flatnonzero(bounded)))
            # free weights come first, so the last block of the factor is that of the Schur complement
            R = linalg.cholesky(lifted[np.ix_(order, order)], check_finite=False)
        except linalg.LinAlgError:
            continue
        if R.diagonal().min(initial=1.0) ** 2 > 100.0 * len(A) * EPS:
            break
    else:
        raise FloatingPointError("X'LX is not finite: scale the features.")
    from scipy.optimize import nnls  # slow to import and rarely needed

    target = linalg.solve_triangular(R, B[order], trans=1, check_finite=False)
    x = np.zeros_like(B)
    free = int(np.count_nonzero(~bounded))
    for k in range(B.shape[1]):
        own = np.zeros(0)
        if free < len(A):
            own = nnls(R[free:, free:], target[free:, k], maxiter=30 * len(A))[0]
            own = _solved_again(R[free:, free:], target[free:, k], own)
        # where the right-hand side is 0, x contains rounding errors; a constrained weight is exactly 0
        own[own <= 1e3 * EPS * own.max(initial=0.0)] = 0.0
        rest = target[:free, k] - R[:free, free:] @ own
        x[order, k] = np.concatenate((linalg.solve_triangular(R[:free, :free], rest, check_finite=False), own))
    return x


def _solved_again(R: Array, target: Array, x: Array) -> Array:
    """Minimizer over the positive entries of x, because nnls may leave old values in columns it has dropped."""
    while (x > 0.0).any():
        on = np.flatnonzero(x > 0.0)
        Q, T = linalg.qr(R[:, on], mode="economic", check_finite=False)
        x = np.zeros_like(x)
        x[on] = linalg.solve_triangular(T, Q.T @ target, check_finite=False)
        if (x[on] > 0.0).all():
            break
    return x


def hold_out_signed(equations: Equations, graph: Graph, X: Matrix, alphas: Array, signs: Signs, units: Index) -> Array:
    """Scores of each unit of a graph by the sign-constrained model of all other units; see ``hold_out``.

    No pair spans two queries, so the normal equations without a unit are those of all data minus those of the unit. The
    constrained problem is solved again for them. O(u n^2 + alphas n^3) for a unit of u rows.
    """
    deviations, centres = graph.read(X)
    full = np.linalg.norm(signed_path(equations, alphas, signs), axis=1)
    scores, levels, off = np.zeros((3, equations.right.shape[1], len(alphas), len(deviations)))
    for a, b in pairwise(units.tolist()):
        unit = graph.part(a, b)
        rows = slice(graph.starts[a], graph.starts[b])
        w = signed_path(equations - Equations.of(unit, X), alphas, signs)
        of_targets = w.transpose(2, 0, 1)
        scores[..., rows] = of_targets @ deviations[rows].T
        norms = np.maximum(np.linalg.norm(w, axis=1), full).T
        off[..., rows] = _OFF * norms[..., None] * np.linalg.norm(deviations[rows], axis=1)
        if centres is not None:
            levels[..., rows] = np.repeat(of_targets @ centres[a:b].T, np.diff(unit.starts), axis=-1)
    graph.tie(scores, off, levels)
    return scores
