r"""One walk over the columns of one view or several, all of whose coefficients are fitted anew at each step.

The objective of M views is

.. math::

    \sum_v (y - f_v)' L_v (y - f_v) + \nu \sum_{v,u} (\bar f_v - \bar f_u)' \bar L (\bar f_v - \bar f_u) ,

and all of it is least squares. With orthonormal rows H that do not see the vector of ones, of which there are M - 1,

.. math::

    \nu \sum_{v,u} \lVert g_v - g_u \rVert^2
    = \sum_j \Bigl\lVert \sqrt{2 \nu M} \sum_v H_{jv} g_v \Bigr\rVert^2 , \qquad g_v = \bar F \bar f_v ,

so that a column of view v is its ``F k`` in the view's own block and ``sqrt(2 nu M) H_jv Fbar kbar`` in block j of the
agreement. In these coordinates the columns are made orthonormal as they come, so that a new fit of all coefficients is
one more projection, and never a refit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls.greedy.dictionaries import Dictionary, HeldDictionary

_EPS = float(np.finfo(np.float64).eps)
_EQUAL = 1e-10
"""Correlations that differ by less than this share count as equal: rounding alone would decide between them."""
_CANCELLED = 1e-2
"""Share of its energy: a column that keeps no more loses a digit of its orthogonality; another pass restores it."""
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Path:
    """What a pursuit took, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages, ...), intp
        Columns that each stage took.
    coefficients : ndarray of shape (stages, stages, ...)
        Row p - 1 holds the coefficients of ``indices[:p]`` after stage p, and zeros behind them.
    losses : ndarray of shape (stages + 1,)
        The objective before the first stage and after each; fields of subclasses have an entry for each of these too.
    """

    indices: NDArray[np.intp]
    coefficients: Array
    losses: Array

    @property
    def n_stages(self) -> int:
        return len(self.indices)

    def at(self, stage: int) -> Self:
        """The path up to a stage."""
        rest = {f.name: getattr(self, f.name)[: stage + 1] for f in fields(self)[2:]}
        return replace(self, indices=self.indices[:stage], coefficients=self.coefficients[:stage, :stage], **rest)


@dataclass(frozen=True, eq=False)
class PursuitPath(Path):
    """What a pursuit took, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages,), intp
        Column of the dictionary that each stage took; without backfitting one can come back.
    coefficients : ndarray of shape (stages, stages)
        Row p - 1 holds the coefficients of ``indices[:p]`` after stage p, and zeros behind them.
    losses : ndarray of shape (stages + 1,)
        ``(y - f)' L (y - f)`` before the first stage and after each.
    """

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Distinct columns after each stage, (stages,)."""
        first = np.zeros(self.n_stages, dtype=np.intp)
        first[np.unique(self.indices, return_index=True)[1]] = 1
        return np.cumsum(first)

    def merged(self) -> tuple[NDArray[np.intp], Array]:
        """Distinct columns in the order of choice, and their coefficients after each stage, (stages, columns)."""
        _, first, place = np.unique(self.indices, return_index=True, return_inverse=True)
        order = np.argsort(first)
        if len(order) == self.n_stages:
            return self.indices, self.coefficients
        number = np.argsort(order)[place]  # of each stage's column among the distinct ones
        coefficients = np.zeros((self.n_stages, len(order)))
        np.add.at(coefficients.T, number, self.coefficients.T)
        return self.indices[first[order]], coefficients


@dataclass(frozen=True, eq=False)
class CoPursuitPath(Path):
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

    view_losses: Array

    def view(self, number: int) -> PursuitPath:
        """The path of one view."""
        return PursuitPath(
            np.ascontiguousarray(self.indices[:, number]),
            np.ascontiguousarray(self.coefficients[:, :, number]),
            np.ascontiguousarray(self.view_losses[:, number]),
        )


@dataclass(frozen=True, eq=False)
class View:
    """A view's columns, as the graph of its scored rows and the graph of agreement see them.

    Attributes
    ----------
    scored : Dictionary
        ``F_v K_v``, N columns.
    target : ndarray of shape (rows of F_v,)
        ``F_v y``.
    agreement : HeldDictionary, optional
        ``Fbar Kbar_v``, the same N columns; None for a view that agrees with no other.
    """

    scored: Dictionary
    target: Array
    agreement: HeldDictionary | None = None


class OrthonormalColumns:
    """An orthonormal basis of columns that come one by one, and the triangle that leads back to them.

    ``column_j = sum_i Q_i R[i, j]``. Gram-Schmidt, a second time where the first cancels more than a digit: orthogonal
    to rounding whatever the columns' condition (Daniel, Gragg, Kaufman and Stewart 1976).

    Parameters
    ----------
    n_rows : int
    most : int
        Columns at most.
    tolerance : float
        A column of whose energy no larger share is left lies in the span of the others.
    """

    def __init__(self, n_rows: int, most: int, tolerance: float) -> None:
        self._Q = np.empty((most, n_rows))
        self._R = np.zeros((most, most))
        self._tolerance = tolerance
        self.rank = 0

    def add(self, column: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The column's new direction, of length 1; None where it has none. O(rows x columns)."""
        k = self.rank
        energy = column @ column
        if k == len(self._Q):
            return None
        Q = self._Q[:k]
        h = Q @ column
        rest = column - h @ Q
        left = rest @ rest
        if left < _CANCELLED * energy:
            again = Q @ rest
            rest -= again @ Q
            h += again
            left = rest @ rest
        if not left > self._tolerance * energy:
            return None
        length = float(np.sqrt(left))
        rest /= length
        self._Q[k] = rest
        self._R[:k, k] = h
        self._R[k, k] = length
        self.rank = k + 1
        return self._Q[k]

    def inverse(self) -> NDArray[np.float64]:
        """``R^-1``, (rank, rank): column i holds the coefficients of direction i. O(rank^3 / 3)."""
        k = self.rank
        return np.asarray(linalg.solve_triangular(self._R[:k, :k], np.eye(k), check_finite=False))


class Walk:
    """What is taken, step by step, and what is left of the target."""

    def __init__(self, problem: StackedViews, n_basis: int, *, backfit: bool) -> None:
        views = problem.views
        self.size = max(problem.n_rows, *(view.scored.n_columns for view in views), 10)
        self.u = problem.target.copy()
        self._problem, self._backfit, self._M = problem, backfit, len(views)
        self._rounding = 10 * self.size * _EPS
        self._least = self._rounding * float(np.linalg.norm(self.u))
        self._losses, self._view_losses = [float(self.u @ self.u)], [problem.parts(self.u)]
        columns = sum(view.scored.n_columns for view in views)
        most = min(n_basis * len(views), problem.n_rows, columns) if backfit else 0
        self._columns = OrthonormalColumns(problem.n_rows, most, self.size * _EPS)
        self._indices: list[tuple[int, ...]] = []
        self._steps: list[Any] = []
        self._lengths = np.zeros(len(views))
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

    def step(self, v: int, j: int, length: float) -> None:
        """Step along a column of a view, whose coefficient alone changes."""
        self._lengths[v] = length
        self.u -= length * self._problem.column(v, j)

    def end_stage(self, chosen: Sequence[int]) -> None:
        """One stage more, with the last column that each view has taken."""
        self._indices.append(tuple(chosen))
        if not self._backfit:
            self._steps.append(self._lengths)
            self._lengths = np.zeros(self._M)
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


class StackedViews:
    """Equation (3) as one least-squares problem: a block of rows a view, then M - 1 blocks of agreement."""

    def __init__(self, views: Sequence[View], nu: float) -> None:
        self.views = views
        M = len(views)
        ends = list(accumulate((view.scored.n_rows for view in views), initial=0))
        self._blocks = [slice(*edges) for edges in pairwise(ends)]
        self._scored = ends[-1]
        agree = M > 1 and nu > 0.0
        self._agreements = [view.agreement for view in views if agree and view.agreement is not None]
        self._l = self._agreements[0].n_rows if self._agreements else 0
        # Rows of an orthogonal matrix below its row of ones, times what makes squares of differences of them.
        self._H = math.sqrt(2.0 * nu * M) * linalg.helmert(M) if self._l else np.zeros((0, M))
        self._coupling = self._H.T @ self._H  # 2 nu (M - 1) on the diagonal, -2 nu off it
        self.n_rows = self._scored + self._l * len(self._H)
        self.target = np.zeros(self.n_rows)
        for own, view in zip(self._blocks, views, strict=True):
            self.target[own] = view.target

    def column(self, v: int, j: int) -> Array:
        out = np.zeros(self.n_rows)
        out[self._blocks[v]] = self.views[v].scored.column(j)
        if self._l:
            out[self._scored :] = np.multiply.outer(self._H[:, v], self._agreements[v].column(j)).ravel()
        return out

    def parts(self, u: Array) -> Array:
        """The squares of each view's block, (M,)."""
        return np.array([u[own] @ u[own] for own in self._blocks])

    def product(self, v: int, u: Array, increments: bool = False) -> Array:
        """The right side ``b_v`` for every column of one view."""
        out = self.views[v].scored.correlations(u[self._blocks[v]])
        if self._l and not increments:
            pull = self._H[:, v] @ u[self._scored :].reshape(-1, self._l)
            out = out + self._agreements[v].correlations(pull)
        return out

    def energies(self) -> list[Array]:
        """``A_vv`` of every column."""
        own = [view.scored.energies for view in self.views]
        if not self._l:
            return own
        return [x + self._coupling[v, v] * self._agreements[v].energies for v, x in enumerate(own)]

    def spread(self, values: Sequence[Array], shared: bool) -> list[Array]:
        """Values of each view's columns along an axis of their own, where combinations are tried."""
        return list(values) if shared else [self._along(x, v) for v, x in enumerate(values)]

    def _along(self, values: Array, *axes: int) -> Array:
        """Values of the columns of some views, with an axis for each view."""
        return np.expand_dims(values, [v for v in range(len(self.views)) if v not in axes])

    def systems(self, shared: bool) -> list[list[Array]]:
        """The lower triangle of A for every column, or combination of columns, entries broadcast."""
        none = np.zeros(1 if shared else (1,) * len(self.views))
        out = [[none] * v + [x] for v, x in enumerate(self.spread(self.energies(), shared))]
        for v, view in enumerate(self._agreements):
            for u, other in enumerate(self._agreements[:v]):
                if shared:
                    products = np.einsum("ij,ij->i", view.Z, other.Z)
                else:
                    products = self._along(other.Z @ view.Z.T, u, v)
                out[v][u] = self._coupling[v, u] * products
        return out


def first_of_best(values: NDArray[np.float64], slack: float) -> int:
    """The lowest index whose value is the largest, up to rounding."""
    top = values.max(initial=0.0)
    return int(np.argmax(values >= top - (_EQUAL * top + slack))) if values.size else 0
