r"""Labels for queries that have none: those under which cross-validation goes best.

Let V be the rows of the queries without labels, S all others. Whole folds U of queries are held out in their turn, and
the labels of V minimise

.. math::

    J(y_V) = \sum_U \lVert F_U ( y_U - f_{U \setminus U} ) \rVert^2 + \gamma \lVert y_V - f_V \rVert^2 ,

where :math:`f_{U \setminus U}` are the scores of U by the model of all other rows, with :math:`y_V` among their labels,
and :math:`f_V` those of V by the model of S (Pahikkala, Suominen, Boberg, Salakoski 2007, equation 11). Held-out errors
are linear in the labels: with H the smoother of :math:`F y` and :math:`Q` block diagonal with the blocks
:math:`(I - H_{UU})^{-1}`, they are :math:`R y`, :math:`R = Q (I - H) F`. So

.. math::

    y_V = ( R_V' R_V + \gamma I )^{-1} ( \gamma f_V - R_V' R_S y_S ) ,

which is theorem 2 of the paper. The graph must not look at labels: tied pairs are included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.blas import dsyrk

from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls.graph import ScoredGraph
from rankrls.solvers.dual import DualProblem
from rankrls.solvers.dual_holdout import BlockScores, blind_items, merge_rounding, solve_positive
from rankrls.solvers.holdout import holdout_alphas
from rankrls.solvers.primal import PrimalProblem
from rankrls.solvers.rows import row_numbers

__all__ = ["Transduction", "transduce"]


@dataclass(frozen=True)
class Transduction:
    """Labels found, and the model of all rows with them.

    Attributes
    ----------
    labels : ndarray of shape (rows of V, targets)
    supervised : ndarray of shape (rows of V, targets)
        ``f_V``, the scores by the model of the other rows.
    coefficients : ndarray
        As the problem's ``solve`` gives them.
    """

    labels: NDArray[np.float64]
    supervised: NDArray[np.float64]
    coefficients: NDArray[np.float64]


def transduce(
    problem: PrimalProblem | DualProblem, hidden: NDArray[np.intp], folds: list[Any], alpha: float, penalty: float
) -> Transduction:
    """Find the labels of the rows ``hidden``.

    Parameters
    ----------
    problem : PrimalProblem or DualProblem
        On a scored graph with tied pairs included, with a target of 0 in the hidden rows.
    hidden : ndarray of intp
        Ascending; whole queries.
    folds : list of slices or row numbers
        Whole queries, every row in one of them.
    alpha, penalty : float
        Positive; ``penalty`` is gamma. An alpha below 1e-10 of the largest eigenvalue counts as that.

    Notes
    -----
    Dual: O(m^3), by an inverse and no spectrum. Primal: O(m n^2 + n^3) and O(u^3) for each fold of u rows.
    """
    alpha = float(holdout_alphas(np.array([alpha]), problem.spectrum_bound())[0])
    parts = [np.sort(row_numbers(fold)) for fold in folds]
    if isinstance(problem, PrimalProblem):
        return _primal(problem, hidden, parts, alpha, penalty)
    return _dual(problem, hidden, parts, alpha, penalty)


def _hidden_graph(problem: PrimalProblem | DualProblem, hidden: NDArray[np.intp]) -> ScoredGraph:
    assert isinstance(problem.graph, ScoredGraph)
    return problem.graph.select(np.unique(problem.graph.layout.codes[hidden]))


def _dual(
    problem: DualProblem, hidden: NDArray[np.intp], folds: list[NDArray[np.intp]], alpha: float, penalty: float
) -> Transduction:
    """``I - H = alpha C^-1``: everything from the inverse of ``C = F K F' + alpha I``."""
    graph, target = problem.graph, problem.target
    assert isinstance(graph, ScoredGraph)
    assert problem.unseen is not None
    inside = _hidden_graph(problem, hidden)
    inverse = problem.inverse(alpha)
    c = inverse @ target
    columns = inverse[:, hidden]
    # The model of S: hold out V.
    error = solve_positive(columns[hidden], c[hidden])
    supervised = BlockScores(graph, hidden, problem.unseen, blind_items(graph)).scores(
        -error, c - columns @ error, np.zeros_like(error)
    )
    R = np.empty((len(target), len(hidden) + c.shape[1]))
    R[:, : len(hidden)] = (inside.F.T @ columns.T).T
    R[:, len(hidden) :] = c

    def hold(fold: NDArray[np.intp]) -> None:
        R[fold] = solve_positive(inverse[np.ix_(fold, fold)], R[fold])

    if len(folds) >= n_threads():
        with one_blas_thread():
            map_threads(hold, folds)
    else:
        for fold in folds:
            hold(fold)
    R_V, known = R[:, : len(hidden)], R[:, len(hidden) :]
    A = np.asarray(dsyrk(1.0, R_V.T, lower=1))
    A[np.diag_indices_from(A)] += penalty
    labels = _with_ties(solve_positive(A, penalty * supervised - R_V.T @ known), inside)
    c += columns @ (inside.F @ labels)
    return Transduction(labels, supervised, np.asarray(graph.F.T @ c))


def _primal(
    problem: PrimalProblem, hidden: NDArray[np.intp], folds: list[NDArray[np.intp]], alpha: float, penalty: float
) -> Transduction:
    r"""In the features ``Z = F X V (lambda + alpha)^-1/2``, where ``H = Z Z'``.

    ``I - H`` is the identity less a matrix of rank n, and Q is block diagonal, so that

    .. math::

        R_V' R_V + \gamma I = D + U \begin{pmatrix} 0 & -I \\ -I & -Z'Q^2Z \end{pmatrix}^{-1} U' ,
        \qquad D = F_V' (Q^2)_{VV} F_V + \gamma I , \quad U = F_V' ( Z_V , \; (Q^2 Z)_V ) ,

    D block diagonal with a block for each fold: 2n more unknowns instead of a dense matrix of all rows.
    """
    s, target = problem.spectrum, problem.target
    inside = _hidden_graph(problem, hidden)
    root = 1.0 / np.sqrt(np.maximum(s.values, 0.0) + alpha)
    vectors = s.vectors * root
    Z = problem.rows.factor(np.arange(problem.rows.n_rows)) @ vectors
    supervised = problem.holdout([hidden], np.array([alpha]))[hidden, 0]
    place = np.full(len(target), -1, dtype=np.intp)
    place[hidden] = np.arange(len(hidden))

    error = target - Z @ (Z.T @ target)  # (I - H) F y; below Q of it, twice
    n = Z.shape[1]
    U = np.empty((len(hidden), 2 * n))
    W = np.zeros((n, n))
    blocks = []
    for fold in folds:
        mine = place[fold] >= 0
        own = place[fold][mine]
        Q = _HeldOut(Z[fold])
        QZ = Q(Z[fold])
        W += QZ.T @ QZ
        error[fold] = Q(Q(error[fold]))
        if len(own):
            part = inside.select(np.unique(inside.layout.codes[own]))
            U[own, :n], U[own, n:] = part.F.T @ Z[fold][mine], part.F.T @ Q(QZ)[mine]
            blocks.append((own, (part.F.T @ Q.columns(np.flatnonzero(mine)).T).T))
    right = penalty * supervised - inside.F.T @ (error[hidden] - Z[hidden] @ (Z.T @ error))
    labels = _with_ties(_solve_updated(_Foldwise(blocks, penalty), U, W, right), inside)
    w = vectors @ (Z.T @ target + Z[hidden].T @ (inside.F @ labels))
    return Transduction(labels, supervised, w)


def _with_ties(labels: NDArray[np.float64], graph: ScoredGraph) -> NDArray[np.float64]:
    """Labels of which rounding orders none: items with equal features have equal labels."""
    codes = graph.layout.codes
    means = graph.query_means(graph.group_means(labels))[codes]
    return merge_rounding(labels - means, codes, np.zeros(labels.shape[1])) + means


class _Foldwise:
    """Block diagonal ``B_U' B_U + penalty I``, one block for each fold."""

    def __init__(self, blocks: list[tuple[NDArray[np.intp], NDArray[np.float64]]], penalty: float) -> None:
        self.parts = []
        for own, B in blocks:
            A = B.T @ B
            A[np.diag_indices_from(A)] += penalty
            self.parts.append((own, A, linalg.cho_factor(A, lower=True, check_finite=False)))

    def __matmul__(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.empty_like(V)
        for own, A, _ in self.parts:
            out[own] = A @ V[own]
        return out

    def solve(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.empty_like(V)
        for own, _, factor in self.parts:
            out[own] = linalg.cho_solve(factor, V[own], check_finite=False)
        return out


def _solve_updated(
    D: _Foldwise, U: NDArray[np.float64], W: NDArray[np.float64], right: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Solve with ``D + U [W, -I; -I, 0] U'`` by the matrix inversion lemma, refined once."""
    n = len(W)
    one = np.eye(n)
    spread = D.solve(U)
    middle = np.block([[np.zeros((n, n)), -one], [-one, -W]]) + U.T @ spread
    factor = linalg.lu_factor(middle, check_finite=False)  # indefinite

    def solve(B: NDArray[np.float64]) -> NDArray[np.float64]:
        x = D.solve(B)
        return np.asarray(x - spread @ linalg.lu_solve(factor, U.T @ x, check_finite=False))

    def product(x: NDArray[np.float64]) -> NDArray[np.float64]:
        a, b = np.split(U.T @ x, 2)
        return np.asarray(D @ x + U @ np.concatenate((W @ a - b, -a)))

    x = solve(right)
    return np.asarray(x + solve(right - product(x)))


class _HeldOut:
    """``Q_U = (I - Z_U Z_U')^-1`` by the smaller of the rows' and the columns' matrix."""

    def __init__(self, Z: NDArray[np.float64]) -> None:
        self.Z = Z
        self.by_rows = Z.shape[0] <= Z.shape[1]
        slack = -(Z @ Z.T if self.by_rows else Z.T @ Z)
        slack[np.diag_indices_from(slack)] += 1.0
        self.slack = slack

    def __call__(self, B: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.by_rows:
            return solve_positive(self.slack, B)
        return np.asarray(B + self.Z @ solve_positive(self.slack, self.Z.T @ B))

    def columns(self, which: NDArray[np.intp]) -> NDArray[np.float64]:
        """``Q_U`` in some columns, dense."""
        unit = np.zeros((len(self.Z), len(which)))
        unit[which, np.arange(len(which))] = 1.0
        return self(unit)
