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

KKT_TOLERANCE = 1e-10
"""How far the gradient may be from what it must be, relative to the lengths of a feature and of what it weighs."""

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


class _Program:
    """Minimise ``x'Ax / 2 - b'x`` over x with ``x_j >= 0`` where ``bounded``: one alpha and one target.

    In units in which every feature has the same spread and every constrained weight is to be positive, so that one
    tolerance suits all: ``w = units x``. ``lost`` is the squared pivot that is not told from rounding.
    """

    def __init__(
        self, equations: NormalEquations, target: int, alpha: float, signs: NDArray[np.int8], lost: float
    ) -> None:
        diagonal = equations.gram.diagonal() + alpha
        self.bounded, self.usable, self.lost = signs != 0, diagonal > 0.0, lost
        self.units = np.where(signs < 0, -1.0, 1.0)
        self.units[self.usable] /= np.sqrt(diagonal[self.usable])
        self.A = equations.gram * self.units
        self.A *= self.units[:, None]
        self.A.flat[:: len(self.A) + 1] = 1.0
        self.b = equations.rhs[:, target] * self.units
        self.size = float(np.sqrt(max(float(equations.energy[target]), 0.0)))

    def pivoted(self, start: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The solution, and which weights are let go there."""
        passive = (start | ~self.bounded) & self.usable
        fewest, patience = len(start) + 1, _PATIENCE
        for _ in range(_MAX_PIVOTS + 2 * len(start)):
            x = self._solution(passive)
            wrong = self._wrong(x, passive)
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
        return self._by_bounds()

    def _wrong(self, x: NDArray[np.float64], passive: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which constraints hold a weight that should be let go, or should hold one that is."""
        gradient = self.A @ x - self.b
        tolerance = KKT_TOLERANCE * max(self.size, float(np.abs(x).sum()))
        broken = np.where(passive, x < 0.0, gradient < -tolerance)
        return np.asarray(self.bounded & self.usable & broken)

    def _solution(self, passive: NDArray[np.bool_]) -> NDArray[np.float64]:
        x = np.zeros(len(passive))
        which = np.flatnonzero(passive)
        if len(which):
            # LAPACK itself: the wrappers of scipy.linalg cost as much as a solve in fifty variables.
            R, failed = dpotrf(self.A[np.ix_(which, which)], lower=1, overwrite_a=1, clean=0)
            if failed or R.diagonal().min() ** 2 <= self.lost:
                raise _SingularError
            x[which] = dpotrs(R, self.b[which], lower=1)[0]
        return x

    def _by_bounds(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """By the active set method of Stark & Parker, which descends at every step; for what pivots too long."""
        from scipy.optimize import lsq_linear  # seldom needed, and slow to import

        which = np.flatnonzero(self.usable)
        try:
            R = linalg.cholesky(self.A[np.ix_(which, which)], lower=True, check_finite=False)
        except linalg.LinAlgError:
            raise _SingularError from None
        target = linalg.solve_triangular(R, self.b[which], lower=True, check_finite=False)
        low = np.where(self.bounded[which], 0.0, -np.inf)
        found = lsq_linear(R.T, target, (low, np.inf), method="bvls", tol=1e-15, max_iter=100 * len(which) + 100)
        passive = np.zeros(len(self.b), dtype=bool)
        passive[which] = (found.x > 0.0) | ~self.bounded[which]
        x = self._solution(passive)
        if self._wrong(x, passive).any():
            raise _SingularError
        return x, passive


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
            weights[k, :, t], go = _solve_one(equations, t, float(alphas[k]), signs, go)
            passive[k, :, t] = go
    return weights, passive


def _solve_one(
    equations: NormalEquations, target: int, alpha: float, signs: NDArray[np.int8], start: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    diagonal, unit = equations.gram.diagonal(), len(signs) * float(np.finfo(np.float64).eps)
    lost = _LOST * unit
    for _ in range(_MAX_RAISES):
        program = _Program(equations, target, alpha, signs, lost)
        try:
            x, passive = program.pivoted(start)
        except _SingularError:
            alpha = max(10.0 * alpha, _LEAST * float(diagonal[diagonal > 0.0].min()))
            lost = _CLEAR * unit
        else:
            return np.asarray(program.units * x) + 0.0, passive  # no -0
    raise ValueError("X'LX is too large for float64: scale the features.")


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
