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
second term of b. A is singular where no graph sees the columns; the paper takes it to be positive
definite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.learners.paths import CoPursuitPath
from rankrls.learners.pursuit import StackedViews, View, Walk

MAX_COMBINATIONS = 4_000_000
"""Combinations of one column a view, at most: beyond, one column is shared by the views, or refused."""

_EPS = float(np.finfo(np.float64).eps)
Array = NDArray[np.float64]


def co_pursue(
    views: Sequence[View],
    n_basis: int,
    nu: float,
    *,
    shared: bool = True,
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
    problem = StackedViews(views, nu)
    sizes = [view.scored.n_columns for view in views]
    if not shared and math.prod(sizes) > MAX_COMBINATIONS:
        raise InputError(
            f"All combinations of columns would be {' x '.join(f'{N:,}' for N in sizes)} = "
            f"{math.prod(sizes):,} small systems, more than {MAX_COMBINATIONS:,}. Share one column "
            "between the views (shared_basis=True), or give views fewer rows to take columns from.",
            parameter="shared_basis",
        )
    walk = Walk(problem, n_basis, backfit=backfit)
    systems = _Systems(problem.systems(shared), size=walk.size)
    closed = np.zeros(systems.shape, dtype=bool)
    while walk.n_stages < n_basis:
        b = problem.spread([problem.product(v, walk.u) for v in range(len(views))], shared)
        gains = np.sqrt(systems.gains(b))
        gains[closed] = 0.0
        while True:
            best = walk.best(gains.ravel())
            if best is None:
                return walk.path()
            where = np.unravel_index(best, systems.shape)
            chosen = tuple(int(where[0 if shared else v]) for v in range(len(views)))
            if not backfit:
                for v, (j, length) in enumerate(zip(chosen, systems.solve(where, b), strict=True)):
                    walk.step(v, j, length)
                break
            if sum(walk.project(v, j) for v, j in enumerate(chosen)):
                break
            closed[where] = True  # all in the span of those taken
            gains[where] = 0.0
        walk.end_stage(chosen)
    return walk.path()


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
