r"""The primal problem with constraints on the signs of weights.

Minimise ``||F X w - target||^2 + alpha ||w||^2`` subject to ``s_j w_j >= 0`` wherever ``s_j`` is not 0. All that the
data say is in the normal equations, so after them every alpha, and every refit without some queries, is a small
quadratic program in n variables. With ``A = X'LX + alpha I`` and ``b = X'L y`` its solution is the only point with

.. math::

    g = A w - b , \qquad g_j = 0 \text{ or } w_j = 0 , \qquad s_j w_j \ge 0 , \qquad s_j g_j \ge 0 \; (s_j \ne 0) ,

(Karush, Kuhn and Tucker; ``g_j = 0`` where ``s_j = 0``). Which weights are zero is found by block principal pivoting:
solve for the weights that are let go, exchange *all* that break a condition, and only the last of them where that has
stopped helping, which cannot cycle (Kim & Park, SIAM Journal on Scientific Computing 33, 2011, algorithm 2, after
Judice & Pires 1994). From a neighbouring problem's zeros one or two solves are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.lapack import dpotrf, dpotrs

from rankrls._compiled.threads import map_threads, one_blas_thread
from rankrls.equations.holdout import holdout_alphas
from rankrls.equations.normal_equations import NormalEquations
from rankrls.features.blocks import row_numbers
from rankrls.features.rows import rows_gram
from rankrls.graph import Graph
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.problem import PathSolutions

__all__ = ["KKT_TOLERANCE", "SignedProblem", "kkt_violation", "solve_signed"]

KKT_TOLERANCE = 1e-10
"""How far the gradient may be from what it must be, see :func:`kkt_violation`."""

_LOST = 100.0
"""A squared pivot of so many ``n eps`` (of a matrix with a diagonal of ones) is told from rounding."""
_CLEAR = 1e5
"""With an alpha that was raised, so many: rounding is not to share out the weights of equal features."""
_LEAST = 1e-12
_PATIENCE = 3
_MAX_PIVOTS = 20
_MAX_RAISES = 100


class _SingularError(Exception):
    """The weights that are let go are not determined."""


@dataclass(frozen=True)
class _Program:
    """Minimise ``x'Ax / 2 - b'x`` over x with ``x_j >= 0`` where ``bounded``.

    In units in which every feature has the same spread and every constrained weight is to be positive, so that one
    tolerance suits all: ``w = units x``.
    """

    A: NDArray[np.float64]
    b: NDArray[np.float64]
    units: NDArray[np.float64]
    bounded: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    size: float  # of the target

    def tolerance(self, x: NDArray[np.float64]) -> float:
        """Of the gradient at x."""
        return KKT_TOLERANCE * max(self.size, float(np.abs(x).sum()))


def _program(
    gram: NDArray[np.float64], rhs: NDArray[np.float64], energy: float, alpha: float, signs: NDArray[np.int8]
) -> _Program:
    diagonal = gram.diagonal() + alpha
    usable = diagonal > 0.0
    units = np.where(signs < 0, -1.0, 1.0)
    units[usable] /= np.sqrt(diagonal[usable])
    A = gram * units
    A *= units[:, None]
    A.flat[:: len(A) + 1] = 1.0
    return _Program(A, rhs * units, units, signs != 0, usable, float(np.sqrt(max(energy, 0.0))))


def solve_signed(
    equations: NormalEquations,
    alphas: NDArray[np.float64],
    signs: NDArray[np.int8],
    *,
    start: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Weights of every alpha under constraints on their signs.

    Parameters
    ----------
    equations : NormalEquations
    alphas : ndarray
        In any order; they are walked from the largest, each from the zeros of the one before.
    signs : ndarray of shape (n,)
        1 for weights that must not be negative, -1 for those that must not be positive, 0 for free ones.
    start : ndarray of shape (alphas, n, targets), bool, optional
        Weights to let go at first for every alpha, instead of those of the alpha before.

    Returns
    -------
    weights : ndarray of shape (alphas, n, targets)
        Exactly 0 where a constraint holds a weight.
    passive : ndarray of shape (alphas, n, targets), bool
        Which weights were let go.

    Notes
    -----
    O(n^3) for each solve, one or two of them for an alpha whose start is good. An alpha that is lost in rounding, 0 or
    close to it with features that depend on each other, is raised tenfold until the weights are determined: next to the
    limit from above, the solution of minimum norm.
    """
    n, targets = equations.rhs.shape
    weights = np.zeros((len(alphas), n, targets))
    passive = np.zeros((len(alphas), n, targets), dtype=bool)
    order = np.argsort(-alphas, kind="stable")
    for t in range(targets):
        go = np.ones(n, dtype=bool)
        for k in order:
            if start is not None:
                go = start[k, :, t]
            weights[k, :, t], go = _solve_one(
                equations.gram, equations.rhs[:, t], float(equations.energy[t]), float(alphas[k]), signs, go
            )
            passive[k, :, t] = go
    return weights, passive


def _solve_one(
    gram: NDArray[np.float64],
    rhs: NDArray[np.float64],
    energy: float,
    alpha: float,
    signs: NDArray[np.int8],
    start: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    lost = _LOST * len(rhs) * np.finfo(np.float64).eps
    for _ in range(_MAX_RAISES):
        program = _program(gram, rhs, energy, alpha, signs)
        try:
            x, passive = _pivot(program, start, lost=lost)
        except _SingularError:
            diagonal = gram.diagonal()
            alpha = max(10.0 * alpha, _LEAST * float(diagonal[diagonal > 0.0].min()))
            lost = _CLEAR * len(rhs) * np.finfo(np.float64).eps
        else:
            return np.asarray(program.units * x) + 0.0, passive  # no -0
    raise ValueError("X'LX is too large for float64: scale the features.")


def _pivot(
    program: _Program, start: NDArray[np.bool_], *, lost: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The solution, and which weights are let go there."""
    passive = (start | ~program.bounded) & program.usable
    fewest, patience = len(start) + 1, _PATIENCE
    for _ in range(_MAX_PIVOTS + 2 * len(start)):
        x = _passive_solution(program, passive, lost)
        wrong = _wrong(program, x, passive)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return x, passive
        if count < fewest:
            fewest, patience = count, _PATIENCE
        elif patience > 0:
            patience -= 1
        else:  # Murty's rule: one at a time always arrives
            last = int(np.flatnonzero(wrong)[-1])
            wrong[:] = False
            wrong[last] = True
        passive = passive ^ wrong
    return _by_bounds(program, lost)


def _wrong(program: _Program, x: NDArray[np.float64], passive: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which constraints hold a weight that should be let go, or should hold one that is."""
    gradient = program.A @ x - program.b
    broken = np.where(passive, x < 0.0, gradient < -program.tolerance(x))
    return np.asarray(program.bounded & program.usable & broken)


def _passive_solution(program: _Program, passive: NDArray[np.bool_], lost: float) -> NDArray[np.float64]:
    x = np.zeros(len(passive))
    which = np.flatnonzero(passive)
    if len(which):
        # LAPACK itself: the wrappers of scipy.linalg cost as much as a solve in fifty variables.
        R, failed = dpotrf(program.A[np.ix_(which, which)], lower=1, overwrite_a=1, clean=0)
        if failed or R.diagonal().min() ** 2 <= lost:
            raise _SingularError
        x[which] = dpotrs(R, program.b[which], lower=1)[0]
    return x


def _by_bounds(program: _Program, lost: float) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The same by the active set method of Stark & Parker, which descends at every step; for what pivots too long."""
    from scipy.optimize import lsq_linear  # seldom needed, and slow to import

    which = np.flatnonzero(program.usable)
    try:
        R = linalg.cholesky(program.A[np.ix_(which, which)], lower=True, check_finite=False)
    except linalg.LinAlgError:
        raise _SingularError from None
    target = linalg.solve_triangular(R, program.b[which], lower=True, check_finite=False)
    low = np.where(program.bounded[which], 0.0, -np.inf)
    found = lsq_linear(R.T, target, (low, np.inf), method="bvls", tol=1e-15, max_iter=100 * len(which) + 100)
    passive = np.zeros(len(program.b), dtype=bool)
    passive[which] = (found.x > 0.0) | ~program.bounded[which]
    x = _passive_solution(program, passive, lost)
    if _wrong(program, x, passive).any():
        raise _SingularError
    return x, passive


def kkt_violation(
    equations: NormalEquations, alpha: float, signs: NDArray[np.int8], weights: NDArray[np.float64]
) -> float:
    """How far weights (n, targets) are from the solution: 0 at it, at most :data:`KKT_TOLERANCE` for what is returned.

    The largest part of the gradient that should not be there, relative to ``sqrt(A_jj) max(|F y|, sum_k sqrt(A_kk)
    |w_k|)``: of a feature, by the lengths of the feature and of what it is multiplied with. Infinite for a weight of
    the wrong sign.
    """
    worst = 0.0
    for t in range(equations.rhs.shape[1]):
        p = _program(equations.gram, equations.rhs[:, t], float(equations.energy[t]), alpha, signs)
        x = weights[:, t] / p.units
        if (x[p.bounded] < 0.0).any():
            return float(np.inf)
        gradient = (p.A @ x - p.b)[p.usable]
        held = (p.bounded & (x == 0.0))[p.usable]
        wrong = np.where(held, np.maximum(-gradient, 0.0), np.abs(gradient))
        scale = p.tolerance(x) / KKT_TOLERANCE
        worst = max(worst, float(wrong.max(initial=0.0)) / scale if scale > 0.0 else 0.0)
    return worst


class SignedProblem(PrimalProblem):
    """Minimise ``||F X w - target||^2 + alpha ||w||^2`` with constraints on the signs of w.

    Parameters
    ----------
    X : dense (float32 or float64) or CSR, shape (m, n)
    graph : Graph
    target : ndarray of shape (rows of F, targets)
    signs : ndarray of shape (n,)
        1 not negative, -1 not positive, 0 free.

    Notes
    -----
    O(m n^2) once, then O(n^3) for each alpha.
    """

    def __init__(self, X: Any, graph: Graph, target: NDArray[np.float64], signs: NDArray[np.int8]) -> None:
        super().__init__(X, graph, target, own_units=True)
        self.signs = signs

    spreads = None

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        return PathSolutions(solve_signed(self.equations, values, self.signs)[0], self.read)

    def holdout(self, blocks: list[Any], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Held-out scores of the rows of each block, trained on all the others.

        Without the queries U the normal equations are less by ``X_U'L_U X_U`` and ``X_U'L_U y_U``, since no edge leaves
        a query; the constrained problem is solved on what is left, from the zeros of the full one: exact.
        O(u n^2 + alphas n^3) for a block of u rows.
        """
        resolved = holdout_alphas(alphas, self.spectrum_bound())
        if not self.graded:
            alphas = resolved
        _, start = solve_signed(self.equations, alphas, self.signs)
        columns = len(alphas) * self.target.shape[1]
        out = np.full((self.rows.n_rows, columns), np.nan)

        def hold(block: Any) -> None:
            left = self._without(block)
            path, _ = solve_signed(left, alphas, self.signs, start=start)
            W = path.transpose(1, 0, 2).reshape(len(self.signs), columns)
            for piece in self.rows.pieces(block):
                out[piece] = self.rows.scores(piece, W)

        with one_blas_thread():
            map_threads(hold, blocks)
        return out.reshape(self.rows.n_rows, len(alphas), -1)

    def _without(self, block: Any) -> NormalEquations:
        """The normal equations of all other rows."""
        own = self.target[row_numbers(block)]
        gram, rhs = rows_gram(self.rows, block, self.target, threads=1)
        return self.equations - NormalEquations(gram, rhs, np.einsum("ij,ij->j", own, own))
