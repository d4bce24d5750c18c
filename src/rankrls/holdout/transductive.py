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

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg.blas import dsyrk

from rankrls._cached import cached_property
from rankrls._compiled.threads import map_blocks
from rankrls.equations.dual_holdout import solve_positive
from rankrls.equations.holdout import holdout_alphas
from rankrls.features.blocks import row_numbers
from rankrls.graph import ScoredGraph
from rankrls.graph.block_scores import merge_rounding
from rankrls.problems.dual import DualProblem
from rankrls.problems.primal import PrimalProblem

_FEW = 256
"""Up to so many hidden rows of a fold have F as a matrix."""
_HELD_BYTES = 1 << 30
"""Of what the primal needs of the unscored rows; beyond that it is computed anew in each of a few passes."""


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


@dataclass(frozen=True, eq=False)
class HiddenRows:
    """Rows whose labels are sought, and what their folds are of the graph, for any alpha and penalty.

    Attributes
    ----------
    graph : ScoredGraph
    rows : ndarray of intp
        Ascending; whole queries.
    folds : list of slices or row numbers
        Whole queries, every row in one of them.
    """

    graph: ScoredGraph
    rows: NDArray[np.intp]
    folds: list[Any]

    @cached_property
    def inside(self) -> ScoredGraph:
        """The graph of the hidden rows."""
        return self.graph.select(np.unique(self.graph.layout.codes[self.rows]))

    @cached_property
    def parts(self) -> list[_Part]:
        """The folds with what is hidden of them."""
        place = np.full(self.graph.n_items, -1, dtype=np.intp)
        place[self.rows] = np.arange(len(self.rows))
        parts = []
        for fold in (np.sort(row_numbers(fold)) for fold in self.folds):
            mine = np.flatnonzero(place[fold] >= 0)
            own = place[fold[mine]]
            graph = self.inside.select(np.unique(self.inside.layout.codes[own])) if len(own) else None
            parts.append(_Part(fold, mine, own, graph))
        return parts


@dataclass(frozen=True, eq=False)
class _Part:
    """A fold, its hidden rows by their places in it and among all hidden rows, and their graph."""

    rows: NDArray[np.intp]
    mine: NDArray[np.intp]
    own: NDArray[np.intp]
    graph: Any

    @cached_property
    def F(self) -> Any:
        """The graph's F, of few rows as a matrix: it is multiplied often."""
        return self.graph.F @ np.eye(len(self.own)) if len(self.own) <= _FEW else self.graph.F


def transduce(problem: PrimalProblem | DualProblem, hidden: HiddenRows, alpha: float, penalty: float) -> Transduction:
    """Find the labels of the rows ``hidden``.

    Parameters
    ----------
    problem : PrimalProblem or DualProblem
        On a scored graph with tied pairs included, with a target of 0 in the hidden rows.
    hidden : HiddenRows
    alpha, penalty : float
        Positive; ``penalty`` is gamma. An alpha below 1e-10 of the largest eigenvalue counts as that.

    Notes
    -----
    Dual: O(m^3), by an inverse and no spectrum. Primal: O(m n^2 + n^3) and O(u^2 n) or O(u n^2 + n^3), whichever is
    less, for each fold of u rows; of ``F X`` only a fold is held, and for the rows ``hidden`` 2n numbers each where
    those fit into a gigabyte.
    """
    alpha = float(holdout_alphas(np.array([alpha]), problem.spectrum_bound())[0])
    return _transduced(problem, hidden, alpha, penalty)


@singledispatch
def _transduced(problem: Any, given: HiddenRows, alpha: float, penalty: float) -> Transduction:
    raise NotImplementedError(f"Labels cannot be found for a {type(problem).__name__}.")


@_transduced.register
def _dual(problem: DualProblem, given: HiddenRows, alpha: float, penalty: float) -> Transduction:
    """``I - H = alpha C^-1``: everything from the inverse of ``C = F K F' + alpha I``."""
    graph, target, hidden, inside = given.graph, problem.target, given.rows, given.inside
    assert problem.unseen is not None
    inverse = problem.inverse(alpha)
    c = inverse @ target
    columns = inverse[:, hidden]
    # The model of S: hold out V.
    error = solve_positive(columns[hidden], c[hidden])
    supervised = graph.block_scores(hidden, -error, np.zeros_like(error), problem.unseen, c - columns @ error)
    R = np.empty((len(target), len(hidden) + c.shape[1]))
    R[:, : len(hidden)] = (inside.F.T @ columns.T).T
    R[:, len(hidden) :] = c

    def hold(fold: NDArray[np.intp]) -> None:
        R[fold] = solve_positive(inverse[np.ix_(fold, fold)], R[fold])

    map_blocks(hold, [part.rows for part in given.parts])
    R_V, known = R[:, : len(hidden)], R[:, len(hidden) :]
    A = np.asarray(dsyrk(1.0, R_V.T, lower=1))
    A[np.diag_indices_from(A)] += penalty
    labels = _with_ties(solve_positive(A, penalty * supervised - R_V.T @ known), inside)
    c += columns @ (inside.F @ labels)
    return Transduction(labels, supervised, np.asarray(graph.F.T @ c))


@_transduced.register
def _primal(problem: PrimalProblem, given: HiddenRows, alpha: float, penalty: float) -> Transduction:
    r"""In the features ``Z = F X V (lambda + alpha)^-1/2``, where ``H = Z Z'``; a fold at a time.

    ``I - H`` is the identity less a matrix of rank n, and Q is block diagonal, so that

    .. math::

        R_V' R_V + \gamma I = D + U \begin{pmatrix} 0 & -I \\ -I & -Z'Q^2Z \end{pmatrix}^{-1} U' ,
        \qquad D = F_V' (Q^2)_{VV} F_V + \gamma I , \quad U = F_V' ( Z_V , \; (Q^2 Z)_V ) ,

    D block diagonal with a block for each fold: 2n more unknowns instead of a dense matrix of all rows.
    """
    s, target, hidden, inside = problem.spectrum, problem.target, given.rows, given.inside
    scale = 1.0 / np.sqrt(np.maximum(s.values, 0.0) + alpha)
    known = scale[:, None] * (s.vectors.T @ problem.equations.rhs)  # Z'F y
    supervised = problem.holdout([hidden], np.array([alpha]))[hidden, 0]
    vectors = problem.directions * scale

    def hold(fold: NDArray[np.intp]) -> _ByRows | _ByColumns:
        Z = np.empty((len(fold), len(scale)))
        for piece in problem.rows.pieces(fold):
            Z[np.searchsorted(fold, row_numbers(piece))] = problem.rows.factor(piece) @ vectors
        return _ByRows(Z) if Z.shape[0] <= Z.shape[1] else _ByColumns(Z)

    some = [part for part in given.parts if len(part.own)]
    held: list[_Share] = []
    holds = 16 * len(hidden) * len(scale) <= _HELD_BYTES
    W, back = np.zeros((len(scale), len(scale))), np.zeros_like(known)
    right = penalty * supervised
    for part in given.parts:
        Q = hold(part.rows)
        error = Q.squared(target[part.rows] - Q.Z @ known)  # Q^2 (I - H) F y
        W += Q.gram
        back += Q.Z.T @ error
        if len(part.own):
            right[part.own] -= part.F.T @ error[part.mine]
            if holds:
                held.append(Q.share(part, penalty))
    parts: Callable[[], Iterable[_Share]]
    parts = (lambda: held) if holds else (lambda: (hold(part.rows).share(part, penalty) for part in some))
    labels, ahead = _solve_updated(parts, W, right, back)
    w = problem.unwhitened(s.vectors @ (scale[:, None] * (known + ahead)))
    return Transduction(_with_ties(labels, inside), supervised, w)


def _with_ties(labels: NDArray[np.float64], graph: ScoredGraph) -> NDArray[np.float64]:
    """Labels of which rounding orders none: items with equal features have equal labels."""
    codes = graph.layout.codes
    means = graph.query_means(graph.group_means(labels))[codes]
    return merge_rounding(labels - means, codes, np.zeros(labels.shape[1])) + means


def _solve_updated(
    parts: Callable[[], Iterable[_Share]], W: NDArray[np.float64], right: NDArray[np.float64], back: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve with ``D + U [W, -I; -I, 0] U'`` and ``right + U [back; 0]`` by the inversion lemma, refined once.

    Four passes over the parts. Returns the solution and its product with the first half of ``U'``.
    """
    n, one = len(W), np.eye(len(W))
    middle = np.block([[np.zeros((n, n)), -one], [-one, -W]])
    right, along = right.copy(), np.zeros((2 * n, right.shape[1]))
    for part in parts():
        right[part.own] += part.U[:, :n] @ back
        solved = part.D.solve(np.hstack((part.U, right[part.own])))
        middle += part.U.T @ solved[:, : 2 * n]
        along += part.U.T @ solved[:, 2 * n :]
    factor = linalg.lu_factor(middle, check_finite=False)  # indefinite
    along = linalg.lu_solve(factor, along, check_finite=False)

    x, below = np.empty_like(right), np.zeros_like(along)
    for part in parts():
        x[part.own] = part.D.solve(right[part.own] - part.U @ along)
        below += part.U.T @ x[part.own]
    a, b = np.split(below, 2)
    shift = np.concatenate((W @ a - b, -a))

    step, along = np.empty_like(right), np.zeros_like(along)
    for part in parts():
        rest = right[part.own] - part.D @ x[part.own] - part.U @ shift
        step[part.own] = part.D.solve(rest)
        along += part.U.T @ step[part.own]
    along = linalg.lu_solve(factor, along, check_finite=False)

    ahead = np.zeros_like(back)
    for part in parts():
        x[part.own] += step[part.own] - part.D.solve(part.U @ along)
        ahead += part.U[:, :n].T @ x[part.own]
    return x, ahead


@dataclass(frozen=True)
class _Share:
    """What one fold adds: its rows of V, their graph, its block of D and its rows of U."""

    own: NDArray[np.intp]
    D: _Dense | _Spread
    U: NDArray[np.float64]


class _ByRows:
    """``Q = (I - Z Z')^-1`` of a fold of no more rows than columns. O(u^2 n)."""

    def __init__(self, Z: NDArray[np.float64]) -> None:
        self.Z = Z
        slack = -(Z @ Z.T)
        slack[np.diag_indices_from(slack)] += 1.0
        # LAPACK itself: what scipy checks takes longer than a query of a few rows.
        _, self.Q, failed = linalg.lapack.dposv(slack, np.eye(len(Z)), lower=1)
        if failed:
            self.Q = solve_positive(slack, np.eye(len(Z)))
        self.QZ = self.Q @ Z

    def squared(self, B: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Q^2 B``."""
        return np.asarray(self.Q @ (self.Q @ B))

    @property
    def gram(self) -> NDArray[np.float64]:
        """``Z'Q^2 Z``."""
        return np.asarray(self.QZ.T @ self.QZ)

    def share(self, part: _Part, penalty: float) -> _Share:
        own_rows = self.Q[part.mine]
        back = part.F.T @ np.hstack((self.Z[part.mine], own_rows @ self.QZ, own_rows))
        cut = 2 * self.Z.shape[1]
        return _Share(part.own, _Dense(back[:, cut:].T, penalty), np.ascontiguousarray(back[:, :cut]))


class _ByColumns:
    """``Q`` of a fold of more rows than columns, by the eigenvectors of ``S = I - Z'Z``. O(u n^2 + n^3).

    ``Q = I + Z S^-1 Z'``, so that ``Q^2 = I + Z (S^-1 + S^-2) Z'``, ``Q^2 Z = Z S^-2`` and ``Z'Q^2Z = S^-2 - S^-1``.
    """

    def __init__(self, Z: NDArray[np.float64]) -> None:
        self.Z = Z
        slack = -(Z.T @ Z)
        slack[np.diag_indices_from(slack)] += 1.0
        values, self.vectors = linalg.eigh(slack, overwrite_a=True, check_finite=False, driver="evd")
        self.inverse = 1.0 / np.maximum(values, len(Z) * np.finfo(np.float64).eps)

    def squared(self, B: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Q^2 B``."""
        return np.asarray(B + self.Z @ (self._function(self.inverse + self.inverse**2) @ (self.Z.T @ B)))

    @property
    def gram(self) -> NDArray[np.float64]:
        """``Z'Q^2 Z``."""
        return self._function(self.inverse**2 - self.inverse)

    def share(self, part: _Part, penalty: float) -> _Share:
        P = part.graph.F.T @ self.Z[part.mine]
        U = np.hstack((P, P @ self._function(self.inverse**2)))
        return _Share(
            part.own, _Spread(part.graph, P, self.vectors * np.sqrt(self.inverse + self.inverse**2), penalty), U
        )

    def _function(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((self.vectors * values) @ self.vectors.T)


class _Dense:
    """``B'B + penalty I``."""

    def __init__(self, B: NDArray[np.float64], penalty: float) -> None:
        self.A = B.T @ B
        self.A[np.diag_indices_from(self.A)] += penalty
        self._factor, failed = linalg.lapack.dpotrf(self.A, lower=1)
        if failed:
            raise linalg.LinAlgError("the block of a fold is not positive definite")

    def __matmul__(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.A @ V)

    def solve(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(linalg.lapack.dpotrs(self._factor, V, lower=1)[0])


class _Spread:
    """``L + penalty I + P root root' P'``, nothing of it formed: for more rows than P has columns."""

    def __init__(self, graph: ScoredGraph, P: NDArray[np.float64], root: NDArray[np.float64], penalty: float) -> None:
        self.graph, self.penalty = graph, penalty
        self.Y = P @ root
        inner = self.Y.T @ ridge_inverse(graph, penalty, self.Y)
        inner[np.diag_indices_from(inner)] += 1.0
        self._factor = linalg.cho_factor(inner, lower=True, check_finite=False)

    def __matmul__(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.graph.L @ V + self.penalty * V + self.Y @ (self.Y.T @ V))

    def solve(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        x = ridge_inverse(self.graph, self.penalty, V)
        inner = linalg.cho_solve(self._factor, self.Y.T @ x, check_finite=False)
        return x - ridge_inverse(self.graph, self.penalty, self.Y @ inner)


def ridge_inverse(graph: ScoredGraph, penalty: float, V: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""``(L + penalty I)^-1 V`` of a scored graph with tied pairs included, by Sherman and Morrison. O(m).

    In a query of weight S, ``L = diag(e1 w) + (e3 - e1) / S w w'``. The denominator is written as a sum of positive
    terms, :math:`\sum_i \frac{w_i}{S} \frac{\gamma + e_3 w_i}{\gamma + e_1 w_i}`: as it stands in the textbook it
    cancels for a small penalty.
    """
    w, query = graph.weights, graph.layout.codes
    e1, _, e3 = graph.eigenvalues
    diagonal = penalty + e1[query] * w
    kept = graph.group_means((penalty + e3[query] * w) / diagonal)
    x = V / diagonal[:, None]
    step = ((e3 - e1) / kept)[:, None] * graph.group_means(x)
    return np.asarray(x - (w / diagonal)[:, None] * step[query])
