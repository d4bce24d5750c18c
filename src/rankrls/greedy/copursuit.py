r"""Ranking pursuit of several views at once, which are drawn together where there are no scores.

Tsivtsivadze and Heskes, "Semi-supervised ranking pursuit", section 3.1. M functions, one a view, minimise equation (3),

.. math::

    \sum_v (y - f_v)' L_v (y - f_v) + \nu \sum_{v,u} (\bar f_v - \bar f_u)' \bar L (\bar f_v - \bar f_u) ,

by one column a view at each stage. With residuals ``r_v`` the steps ``a`` on columns ``k_v`` solve the M x M system

.. math::

    A_{vv} = k_v' L_v k_v + 2 \nu (M-1) \bar k_v' \bar L \bar k_v , \qquad
    A_{vu} = -2 \nu \bar k_v' \bar L \bar k_u , \qquad
    b_v = k_v' L_v r_v + 2 \nu \sum_{u \neq v} \bar k_v' \bar L (\bar f_u - \bar f_v) ,

and lower the objective by ``b' A^-1 b``. The paper's own J(a, gamma) lets only the increments agree and has not the
second term of b ("increments"). A is singular where no graph sees the columns; the paper takes it to be positive
definite.

All of it is least squares: with orthonormal rows H that do not see the vector of ones, of which there are M - 1,

.. math::

    \nu \sum_{v,u} \lVert g_v - g_u \rVert^2
    = \sum_j \Bigl\lVert \sqrt{2 \nu M} \sum_v H_{jv} g_v \Bigr\rVert^2 , \qquad g_v = \bar F \bar f_v ,

so that a column of view v is its ``F k`` in the view's own block and ``sqrt(2 nu M) H_jv Fbar kbar`` in block j of the
agreement, and fitting all coefficients anew is a projection, as in the supervised pursuit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._errors import InputError
from rankrls.greedy.dictionaries import HeldDictionary
from rankrls.greedy.pursuit import OrthonormalColumns, PursuitPath, first_of_best

__all__ = ["MAX_COMBINATIONS", "CoPursuitPath", "View", "co_pursue", "co_pursue_in_turn"]

MAX_COMBINATIONS = 4_000_000
"""Combinations of one column a view, at most: beyond, one column is shared by the views, or refused."""

_EPS = float(np.finfo(np.float64).eps)
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class View:
    """A view's columns, as the graph of its scored rows and the graph of agreement see them.

    Attributes
    ----------
    scored : HeldDictionary
        ``F_v K_v``, N columns.
    target : ndarray of shape (rows of F_v,)
        ``F_v y``.
    agreement : HeldDictionary
        ``Fbar Kbar_v``, the same N columns.
    """

    scored: HeldDictionary
    target: Array
    agreement: HeldDictionary


@dataclass(frozen=True, eq=False)
class CoPursuitPath:
    """What a pursuit of M views took, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages, M), intp
        Column of each view that each stage took. A column that came before adds nothing of its own.
    coefficients : ndarray of shape (stages, stages, M)
        ``coefficients[p - 1, :p, v]`` belong to ``indices[:p, v]`` after stage p.
    losses : ndarray of shape (stages + 1,)
        Equation (3) before the first stage and after each.
    view_losses : ndarray of shape (stages + 1, M)
        Its first part, view by view; the rest of ``losses`` is the disagreement of the views.
    """

    indices: NDArray[np.intp]
    coefficients: Array
    losses: Array
    view_losses: Array

    @property
    def n_stages(self) -> int:
        return len(self.indices)

    def at(self, stage: int) -> CoPursuitPath:
        """The path up to a stage."""
        end = stage + 1
        return CoPursuitPath(
            self.indices[:stage], self.coefficients[:stage, :stage], self.losses[:end], self.view_losses[:end]
        )

    def view(self, number: int) -> PursuitPath:
        """The path of one view."""
        return PursuitPath(
            np.ascontiguousarray(self.indices[:, number]),
            np.ascontiguousarray(self.coefficients[:, :, number]),
            np.ascontiguousarray(self.view_losses[:, number]),
        )


def co_pursue(
    views: Sequence[View],
    n_basis: int,
    nu: float,
    *,
    shared: bool = True,
    increments: bool = False,
    backfit: bool = True,
) -> CoPursuitPath:
    """Lower equation (3) greedily.

    Parameters
    ----------
    views : sequence of M View
    n_basis : int
        Stages at most.
    nu : float
        Weight of the agreement; 0 is M independent pursuits, where their columns are not shared.
    shared : bool
        Whether a stage takes the same column number in every view; otherwise all combinations are tried.
    increments : bool
        Whether a stage is chosen (and without backfitting stepped) by the paper's J(a, gamma).
    backfit : bool
        Whether all coefficients of all views are fitted anew in equation (3) at each stage.

    Raises
    ------
    ValueError
        Where there are more than ``MAX_COMBINATIONS`` combinations.

    Notes
    -----
    With n scored and l unscored rows and N columns a view: once O(M^2 N l) for shared columns and O(M^2 N^2 l +
    N^M M^3) for all combinations; then a stage takes O(M N (n + l)) for the right sides, O(N M^2) or O(N^M M^2) for
    the choice and O(p M^2 (n + l)) to backfit: linear in the unscored rows. Equal gains go to the lowest index, of the
    first view first.
    """
    problem = _Stacked(views, nu)
    sizes = [view.scored.n_columns for view in views]
    if not shared and math.prod(sizes) > MAX_COMBINATIONS:
        raise InputError(
            "All combinations of columns would be {0} = {1:,} small systems, more than {2:,}.",
            " x ".join(f"{N:,}" for N in sizes),
            math.prod(sizes),
            MAX_COMBINATIONS,
            parameter="shared_basis",
            remedy="Share one column between the views ({shared_basis=True}), or give {views} fewer rows to take "
            "columns from.",
        )
    walk = _Walk(problem, n_basis, backfit=backfit)
    systems = _Systems(problem.systems(shared), size=walk.size)
    closed = np.zeros(systems.shape, dtype=bool)
    while walk.n_stages < n_basis:
        b = problem.spread(problem.products(walk.u, increments), shared)
        gains = np.sqrt(systems.gains(b))
        gains[closed] = 0.0
        while True:
            best = walk.best(gains.ravel())
            if best is None:
                return walk.path()
            where = np.unravel_index(best, systems.shape)
            chosen = tuple(int(where[0 if shared else v]) for v in range(len(views)))
            if not backfit:
                walk.step(chosen, systems.solve(where, b))
                break
            if sum(walk.project(v, j) for v, j in enumerate(chosen)):
                break
            closed[where] = True  # all in the span of those taken
            gains[where] = 0.0
        walk.end_stage(chosen)
    return walk.path()


def co_pursue_in_turn(
    views: Sequence[View],
    n_basis: int,
    nu: float,
    *,
    backfit: bool = True,
    ids: Sequence[NDArray[np.intp]] | None = None,
) -> CoPursuitPath:
    """Lower equation (3) greedily, the views one after the other.

    A stage takes the column of the first view that lowers the objective most, then that of the second, and so on; all
    coefficients are fitted anew at each.

    Parameters
    ----------
    views, n_basis, nu, backfit : as of :func:`co_pursue`
    ids : sequence of M arrays of intp, optional
        What the columns of each view are called. A column that one view has taken is closed to the others.

    Notes
    -----
    O(M N (n + l)) a stage and O(p M^2 (n + l)) to backfit: linear in columns and rows. A view to which nothing is left
    to gain repeats its last column, whose coefficient stays.
    """
    problem = _Stacked(views, nu)
    walk = _Walk(problem, n_basis, backfit=backfit)
    energies = problem.energies()
    scales = [np.divide(1.0, np.sqrt(e), out=np.zeros(len(e)), where=e > 0.0) for e in energies]
    last = [0] * len(views)
    while walk.n_stages < n_basis:
        steps = np.zeros(len(views))
        found = False
        for v, scale in enumerate(scales):
            b = problem.product(v, walk.u)
            gains = np.abs(b) * scale
            while (best := walk.best(gains)) is not None:
                if backfit:
                    scale[best] = gains[best] = 0.0  # taken, or in the span of those taken
                    if not walk.project(v, best):
                        continue
                else:
                    steps[v] = b[best] / energies[v][best]
                    walk.u -= steps[v] * problem.column(v, best)
                last[v], found = best, True
                if ids is not None:
                    for u in set(range(len(views))) - {v}:
                        scales[u][ids[u] == ids[v][best]] = 0.0
                break
        if not found:
            break
        walk.end_stage(tuple(last), None if backfit else steps)
    return walk.path()


class _Walk:
    """What is taken, step by step, and what is left of the target."""

    def __init__(self, problem: _Stacked, n_basis: int, *, backfit: bool) -> None:
        views = problem.views
        self.size = max(problem.n_rows, *(view.scored.n_columns for view in views), 10)
        self.u = problem.target.copy()
        self._problem, self._backfit, self._M = problem, backfit, len(views)
        self._rounding = 10 * self.size * _EPS
        self._least = self._rounding * float(np.linalg.norm(self.u))
        self._losses, self._view_losses = [float(self.u @ self.u)], [problem.parts(self.u)]
        most = min(n_basis * len(views), problem.n_rows) if backfit else 0
        self._columns = OrthonormalColumns(problem.n_rows, most, self.size * _EPS)
        self._indices: list[tuple[int, ...]] = []
        self._steps: list[Any] = []
        self._places: list[tuple[int, int]] = []  # stage and view of each direction

    @property
    def n_stages(self) -> int:
        return len(self._indices)

    def best(self, gains: Array) -> int | None:
        """The first of the largest gains; None if none is more than rounding."""
        best = first_of_best(gains, self._rounding * np.sqrt(self._losses[-1]))
        return best if gains[best] > self._least else None

    def project(self, v: int, j: int) -> bool:
        """Fit all coefficients anew with a column of a view; False if it lies in the span of those taken."""
        direction = self._columns.add(self._problem.column(v, j))
        if direction is None:
            return False
        self._steps.append(direction @ self.u)
        self.u -= self._steps[-1] * direction
        self._places.append((self.n_stages, v))
        return True

    def step(self, chosen: tuple[int, ...], steps: Array) -> None:
        """Step along one column a view."""
        self._steps.append(steps)
        for v, j in enumerate(chosen):
            self.u -= steps[v] * self._problem.column(v, j)

    def end_stage(self, chosen: tuple[int, ...], steps: Array | None = None) -> None:
        """One stage more; ``steps`` if they were taken already and not kept."""
        self._indices.append(chosen)
        if steps is not None:
            self._steps.append(steps)
        self._losses.append(float(self.u @ self.u))
        self._view_losses.append(self._problem.parts(self.u))

    def path(self) -> CoPursuitPath:
        """All stages."""
        P, M = self.n_stages, self._M
        coefficients = np.zeros((P, P, M))
        if self._backfit and P:
            stage, view = np.array(self._places).T
            after = np.cumsum(self._columns.inverse() * np.array(self._steps), axis=1)
            last = np.searchsorted(stage, np.arange(P), side="right") - 1
            coefficients[:, stage, view] = after[:, last].T
        elif P:
            coefficients[:] = np.array(self._steps)
            coefficients *= np.tri(P)[:, :, None]
        indices = np.array(self._indices, dtype=np.intp).reshape(P, M)
        return CoPursuitPath(indices, coefficients, np.array(self._losses), np.array(self._view_losses))


class _Stacked:
    """Equation (3) as one least-squares problem: a block of rows a view, then M - 1 blocks of agreement."""

    def __init__(self, views: Sequence[View], nu: float) -> None:
        self.views = views
        M = len(views)
        self._rows = np.cumsum([0, *(view.scored.n_rows for view in views)])
        self._l = views[0].agreement.n_rows if M > 1 and nu > 0.0 else 0
        # Rows of an orthogonal matrix below its row of ones, times what makes squares of differences of them.
        self._H = math.sqrt(2.0 * nu * M) * linalg.helmert(M) if self._l else np.zeros((0, M))
        self._coupling = self._H.T @ self._H  # 2 nu (M - 1) on the diagonal, -2 nu off it
        self.n_rows = int(self._rows[-1]) + self._l * len(self._H)
        self.target = np.zeros(self.n_rows)
        for v, view in enumerate(views):
            self.target[self._block(v)] = view.target

    def _block(self, v: int) -> slice:
        return slice(int(self._rows[v]), int(self._rows[v + 1]))

    def column(self, v: int, j: int) -> Array:
        out = np.zeros(self.n_rows)
        out[self._block(v)] = self.views[v].scored.column(j)
        if self._l:
            out[self._rows[-1] :] = np.multiply.outer(self._H[:, v], self.views[v].agreement.column(j)).ravel()
        return out

    def parts(self, u: Array) -> Array:
        """The squares of each view's block, (M,)."""
        return np.array([u[self._block(v)] @ u[self._block(v)] for v in range(len(self.views))])

    def products(self, u: Array, increments: bool) -> list[Array]:
        """The right sides ``b_v`` for every column of every view."""
        return [self.product(v, u, increments) for v in range(len(self.views))]

    def product(self, v: int, u: Array, increments: bool = False) -> Array:
        """``b_v`` for every column of one view."""
        out = self.views[v].scored.correlations(u[self._block(v)])
        if self._l and not increments:
            pull = self._H[:, v] @ u[self._rows[-1] :].reshape(-1, self._l)
            out = out + self.views[v].agreement.correlations(pull)
        return out

    def energies(self) -> list[Array]:
        """``A_vv`` of every column."""
        return [
            view.scored.energies + self._coupling[v, v] * view.agreement.energies for v, view in enumerate(self.views)
        ]

    def spread(self, values: Sequence[Array], shared: bool) -> list[Array]:
        """Values of each view's columns along an axis of their own, where combinations are tried."""
        if shared:
            return list(values)
        M = len(values)
        return [x.reshape([-1 if axis == v else 1 for axis in range(M)]) for v, x in enumerate(values)]

    def systems(self, shared: bool) -> list[list[Array]]:
        """The lower triangle of A for every column, or combination of columns, entries broadcast."""
        M = len(self.views)
        out = [[np.zeros(1)] * v + [x] for v, x in enumerate(self.spread(self.energies(), shared))]
        for v in range(M) if self._l else ():
            for u in range(v):
                left, right = self.views[v].agreement.Z, self.views[u].agreement.Z
                if shared:
                    out[v][u] = self._coupling[v, u] * np.einsum("ij,ij->i", left, right)
                else:
                    cross = self._coupling[v, u] * (right @ left.T)
                    shape = [cross.shape[0] if axis == u else cross.shape[1] if axis == v else 1 for axis in range(M)]
                    out[v][u] = cross.reshape(shape)
        if not shared:
            out = [[x.reshape([1] * M) if x.size == 1 else x for x in row] for row in out]
        return out


class _Systems:
    """Many small symmetric systems, eliminated once for all right sides: ``A = T D T'`` with unit triangles T.

    ``A[v][u]``, u <= v, are arrays that broadcast to ``shape``. A system is singular where a pivot is no more than
    rounding of its diagonal entry.
    """

    def __init__(self, A: list[list[Array]], *, size: int) -> None:
        self.size = size
        self._A = A
        self.shape = np.broadcast_shapes(*(x.shape for row in A for x in row))
        rest = [list(row) for row in A]
        self._pivots: list[Array] = []
        self._factors: list[list[Array]] = []
        self._singular = np.zeros(self.shape, dtype=bool)
        for k in range(len(A)):
            lost = rest[k][k] <= size * _EPS * A[k][k]
            self._singular |= lost
            pivot = np.where(lost, 1.0, rest[k][k])
            factors = [rest[i][k] / pivot for i in range(k + 1, len(A))]
            for i in range(k + 1, len(A)):
                for j in range(k + 1, i + 1):
                    rest[i][j] = rest[i][j] - factors[i - k - 1] * rest[j][k]
            self._pivots.append(pivot)
            self._factors.append(factors)

    def gains(self, b: Sequence[Array]) -> Array:
        """``b' A^-1 b`` of every system, 0 where it is singular."""
        left = list(b)
        out = np.zeros(self.shape)
        for k, pivot in enumerate(self._pivots):
            out += left[k] ** 2 / pivot
            for i, factor in enumerate(self._factors[k], start=k + 1):
                left[i] = left[i] - factor * left[k]
        out[self._singular] = 0.0
        return out

    def solve(self, where: tuple[np.intp, ...], b: Sequence[Array]) -> Array:
        """``A^-1 b`` of one system, (M,)."""
        M = len(b)
        A = np.zeros((M, M))
        for v in range(M):
            for u in range(v + 1):
                A[v, u] = A[u, v] = np.broadcast_to(self._A[v][u], self.shape)[where]
        return np.linalg.solve(A, np.array([np.broadcast_to(x, self.shape)[where] for x in b]))
