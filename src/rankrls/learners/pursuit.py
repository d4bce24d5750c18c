r"""Matching pursuit in the inner product of a preference graph, in one view or several.

Tsivtsivadze and Heskes, "Semi-supervised ranking pursuit", section 3. With residual ``r = y - f``, a stage selects the
column k and step a that minimize ``(r - a k)' L (r - a k)``:

.. math::

    a = \frac{k' L r}{k' L k} , \qquad \text{gain} = \frac{(k' L r)^2}{k' L k} ,

and then refits the coefficients of all selected columns ("backfitting"). ``L = I`` is kernel matching pursuit
(Vincent and Bengio 2002).

The objective of M views is

.. math::

    \sum_v (y - f_v)' L_v (y - f_v) + \nu \sum_{v,u} (\bar f_v - \bar f_u)' \bar L (\bar f_v - \bar f_u) ,

and this is a least-squares problem. With orthonormal rows H orthogonal to the vector of ones, of which there are M - 1,

.. math::

    \nu \sum_{v,u} \lVert g_v - g_u \rVert^2
    = \sum_j \Bigl\lVert \sqrt{2 \nu M} \sum_v H_{jv} g_v \Bigr\rVert^2 , \qquad g_v = \bar F \bar f_v ,

so that a column of view v is its ``F k`` in the view's own block and ``sqrt(2 nu M) H_jv Fbar kbar`` in block j of the
agreement. In these coordinates, columns are orthonormalized as they are selected, so that refitting all coefficients is
one more projection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from scipy import linalg

from rankrls._cached import cached_property
from rankrls._comparisons import Data, Setting
from rankrls._problems import Candidate, Problem
from rankrls._rows import take_items
from rankrls._typing import Array, Index
from rankrls.kernels import Kernel
from rankrls.learners.paths import CoPursuitPath, Dictionary, PathSolutions, PursuitPath, kernel_columns, sum_of_terms

_EPS = float(np.finfo(np.float64).eps)
_EQUAL = 1e-10
"""Relative difference below which correlations count as equal: rounding alone would decide between them."""


def pursue(dictionary: Dictionary, target: Array, n_basis: int, *, backfit: bool = True) -> PursuitPath:
    """Approximate ``target`` greedily by columns of a dictionary.

    Parameters
    ----------
    dictionary : Dictionary
        Dictionary of N columns, in the inner product of its graph.
    target : ndarray of shape (rows of F,)
        ``F y``, or the weighted strengths of the preferences.
    n_basis : int
        Maximum number of stages.
    backfit : bool
        Whether all coefficients are refitted at each stage; False is plain matching pursuit.

    Returns
    -------
    PursuitPath
        Shorter than ``n_basis`` if no column's correlation with the residual exceeds rounding any more, or all columns
        lie in the span of the selected ones.

    Notes
    -----
    One product with the dictionary per stage, O(n N) for n rows, and O(n p) at stage p for the backfitting: O(P n N)
    for P stages. Equal gains (correlations within a relative 1e-10) go to the lowest index.
    """
    return pursue_in_turn([View(dictionary, target)], n_basis, backfit=backfit).view(0)


def pursue_in_turn(
    views: Sequence[View],
    n_basis: int,
    nu: float = 0.0,
    *,
    backfit: bool = True,
    ids: Sequence[Index] | None = None,
) -> CoPursuitPath:
    """Lower the objective of this module greedily, view by view.

    A stage selects the column of the first view that lowers the objective most, then that of the second, and so on; all
    coefficients are refitted after each.

    Parameters
    ----------
    views, n_basis, nu, backfit : see :func:`rankrls.learners.copursuit.co_pursue`
    ids : sequence of M arrays of intp, optional
        Identifiers of the columns of each view. A column selected by one view is closed to the others.

    Notes
    -----
    O(M N (n + l)) per stage and O(p M^2 (n + l)) for backfitting: linear in columns and rows. A view that cannot
    improve repeats its last column, whose coefficient is unchanged.
    """
    problem = StackedViews(views, nu)
    walk = Walk(problem, n_basis, backfit=backfit)
    energies = problem.energies()
    scales = [np.divide(1.0, np.sqrt(e), out=np.zeros(len(e)), where=e > 0.0) for e in energies]
    last = [0] * len(views)
    while walk.n_stages < n_basis:
        found = False
        for v, scale in enumerate(scales):
            b = problem.product(v, walk.u)
            gains = np.abs(b) * scale
            while (best := walk.best(gains)) is not None:
                if backfit:
                    scale[best] = gains[best] = 0.0  # selected, or in the span of the selected columns
                    if not walk.project(v, best):
                        continue
                else:
                    walk.step(v, best, b[best] / energies[v][best])
                last[v] = best
                found = True
                if ids is not None:
                    for u in set(range(len(views))) - {v}:
                        scales[u][ids[u] == ids[v][best]] = 0.0
                break
        if not found:
            break
        walk.end_stage(last)
    return walk.path()


@dataclass(frozen=True, eq=False)
class View:
    """Columns of a view, in the graph of its labelled rows and in the graph of agreement.

    Attributes
    ----------
    labelled : Dictionary
        ``F_v K_v``, N columns.
    target : ndarray of shape (rows of F_v,)
        ``F_v y``.
    agreement : Dictionary, optional
        ``Fbar Kbar_v``, the same N columns; None for a view without agreement.
    """

    labelled: Dictionary
    target: Array
    agreement: Dictionary | None = None


class OrthonormalColumns:
    """Orthonormal basis of columns that are added one by one, and the triangular factor that recovers them.

    ``column_j = sum_i Q_i R[i, j]``. Gram-Schmidt is applied twice, so the basis is orthogonal up to rounding, however
    dependent the columns are (Daniel, Gragg, Kaufman and Stewart 1976).

    Parameters
    ----------
    n_rows : int
    most : int
        Maximum number of columns.
    tolerance : float
        Share of a column's energy up to which its remainder counts as 0, so that it is in the span of the others.
    """

    def __init__(self, n_rows: int, most: int, tolerance: float) -> None:
        self._Q = np.empty((most, n_rows))
        self._R = np.zeros((most, most))
        self._tolerance = tolerance
        self.rank = 0

    def add(self, column: Array) -> Array | None:
        """New direction of a column, of length 1; None if the column is in the span. O(rows x columns)."""
        k = self.rank
        energy = column @ column
        if k == len(self._Q):
            return None
        Q = self._Q[:k]
        h = Q @ column
        rest = column - h @ Q
        again = Q @ rest
        rest -= again @ Q
        left = rest @ rest
        if not left > self._tolerance * energy:
            return None
        length = float(np.sqrt(left))
        rest /= length
        self._Q[k] = rest
        self._R[:k, k] = h + again
        self._R[k, k] = length
        self.rank = k + 1
        return np.asarray(self._Q[k])

    def inverse(self) -> Array:
        """``R^-1``, (rank, rank): column i contains the coefficients of direction i. O(rank^3 / 3)."""
        k = self.rank
        return np.asarray(linalg.solve_triangular(self._R[:k, :k], np.eye(k), check_finite=False))


class Walk:
    """The selected columns and steps so far, and the residual of the target."""

    def __init__(self, problem: StackedViews, n_basis: int, *, backfit: bool) -> None:
        views = problem.views
        columns = [view.labelled.shape[1] for view in views]
        self.size = max(problem.n_rows, *columns, 10)
        self.u = problem.target.copy()
        self._problem = problem
        self._backfit = backfit
        self._M = len(views)
        self._rounding = 10 * self.size * _EPS
        self._least = self._rounding * float(np.linalg.norm(self.u))
        self._losses = [float(self.u @ self.u)]
        self._view_losses = [problem.parts(self.u)]
        most = min(n_basis * len(views), problem.n_rows, sum(columns)) if backfit else 0
        self._columns = OrthonormalColumns(problem.n_rows, most, self.size * _EPS)
        self._indices: list[tuple[int, ...]] = []
        self._steps: list[Any] = []
        self._places: list[tuple[int, int]] = []  # stage and view of each direction

    @property
    def n_stages(self) -> int:
        return len(self._indices)

    def best(self, gains: Array) -> int | None:
        """Index of the first of the largest gains; None if none exceeds rounding."""
        top = gains.max()
        slack = _EQUAL * top + self._rounding * np.sqrt(self._losses[-1])
        best = int(np.argmax(gains >= top - slack))
        return best if gains[best] > self._least else None

    def project(self, v: int, j: int) -> bool:
        """Refit all coefficients with a further column of a view; False if it is in the span of the selected ones."""
        direction = self._columns.add(self._problem.column(v, j))
        if direction is None:
            return False
        self._steps.append(direction @ self.u)
        self.u -= self._steps[-1] * direction
        self._places.append((self.n_stages, v))
        return True

    def step(self, v: int, j: int, length: float) -> None:
        """Step along a column of a view, changing only its coefficient."""
        self._steps.append(length)
        self.u -= length * self._problem.column(v, j)
        self._places.append((self.n_stages, v))

    def end_stage(self, chosen: Sequence[int]) -> None:
        """End a stage, with the last selected column of each view."""
        self._indices.append(tuple(chosen))
        self._losses.append(float(self.u @ self.u))
        self._view_losses.append(self._problem.parts(self.u))

    def path(self) -> CoPursuitPath:
        """Path of all stages."""
        P = self.n_stages
        M = self._M
        coefficients = np.zeros((P, P, M))
        if P:
            stage, view = np.array(self._places).T
            columns = self._columns.inverse() if self._backfit else np.eye(len(stage))
            after = np.cumsum(columns * np.array(self._steps), axis=1)
            last = np.searchsorted(stage, np.arange(P), side="right") - 1
            coefficients[:, stage, view] = after[:, last].T
        indices = np.array(self._indices, dtype=np.intp).reshape(P, M)
        return CoPursuitPath(indices, coefficients, np.array(self._losses), np.array(self._view_losses))


class StackedViews:
    """Equation (3) as one least-squares problem: one block of rows per view, then M - 1 blocks of agreement."""

    def __init__(self, views: Sequence[View], nu: float) -> None:
        self.views = views
        M = len(views)
        ends = list(accumulate((view.labelled.shape[0] for view in views), initial=0))
        self._blocks = [slice(*edges) for edges in pairwise(ends)]
        self._labelled = ends[-1]
        agree = M > 1 and nu > 0.0
        self._agreements = [view.agreement for view in views if agree and view.agreement is not None]
        self._l = self._agreements[0].shape[0] if self._agreements else 0
        # Rows of a Helmert matrix, scaled so that the squares of these contrasts add up to the disagreement.
        self._H = math.sqrt(2.0 * nu * M) * linalg.helmert(M) if self._l else np.zeros((0, M))
        self._coupling = self._H.T @ self._H  # 2 nu (M - 1) on the diagonal, -2 nu off it
        self.n_rows = self._labelled + self._l * len(self._H)
        self.target = np.zeros(self.n_rows)
        for own, view in zip(self._blocks, views, strict=True):
            self.target[own] = view.target

    def column(self, v: int, j: int) -> Array:
        out = np.zeros(self.n_rows)
        out[self._blocks[v]] = self.views[v].labelled.column(j)
        if self._l:
            out[self._labelled :] = np.multiply.outer(self._H[:, v], self._agreements[v].column(j)).ravel()
        return out

    def parts(self, u: Array) -> Array:
        """Squared length of each view's block, (M,)."""
        return np.array([u[own] @ u[own] for own in self._blocks])

    def product(self, v: int, u: Array) -> Array:
        """Right sides ``b_v`` for all columns of one view."""
        out = self.views[v].labelled.correlations(u[self._blocks[v]])
        if self._l:
            pull = self._H[:, v] @ u[self._labelled :].reshape(-1, self._l)
            out = out + self._agreements[v].correlations(pull)
        return out

    def energies(self) -> list[Array]:
        """``A_vv`` for every column."""
        own = [view.labelled.energies for view in self.views]
        if not self._l:
            return own
        return [x + self._coupling[v, v] * self._agreements[v].energies for v, x in enumerate(own)]

    def systems(self, shared: bool) -> Array:
        """A for every column, or for every combination of columns, (..., M, M)."""
        M = len(self.views)
        sizes = [view.labelled.shape[1] for view in self.views]
        A = np.zeros((*(sizes[:1] if shared else sizes), M, M))
        for v, energies in enumerate(self.energies()):
            A[..., v, v] = energies if shared else self._along(energies, v)
        columns = [dictionary.factored() for dictionary in self._agreements]
        for v, Z in enumerate(columns):
            for u, other in enumerate(columns[:v]):
                products = np.einsum("ij,ij->j", Z, other) if shared else self._along(other.T @ Z, u, v)
                A[..., v, u] = A[..., u, v] = self._coupling[v, u] * products
        return A

    def right_sides(self, u: Array, shared: bool) -> Array:
        """Right sides b for every column, or for every combination of columns, (..., M)."""
        b = [self.product(v, u) for v in range(len(self.views))]
        return np.stack(b if shared else np.broadcast_arrays(*(self._along(x, v) for v, x in enumerate(b))), axis=-1)

    def _along(self, values: Array, *axes: int) -> Array:
        """Values of the columns of some views, with one axis per view."""
        return np.expand_dims(values, [v for v in range(len(self.views)) if v not in axes])


@dataclass(frozen=True)
class PursuitSettings:
    """Settings of pursuits.

    Attributes
    ----------
    n_basis : int
        Maximum number of stages.
    of_features : bool
        Whether the dictionary contains the features rather than the kernel functions of items.
    backfit : bool
        Whether all coefficients are refitted at each stage.
    """

    n_basis: int
    of_features: bool
    backfit: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class PursuitCandidate(Candidate["PathSolutions[PursuitPath]"]):
    """Ranking pursuit in one dictionary, for one graph.

    Attributes
    ----------
    setting : Setting
    settings : PursuitSettings
    """

    setting: Setting
    settings: PursuitSettings

    def problem(self, data: Data) -> PursuitProblem:
        return PursuitProblem(self, data)


@dataclass(frozen=True, eq=False)
class PursuitProblem(Problem["PathSolutions[PursuitPath]"]):
    """Lower ``||F (y - f)||^2`` by one column of a dictionary at a time.

    The parameter is the number of stages.
    """

    candidate: PursuitCandidate
    data: Data

    parameter = "n_basis"

    @property
    def kernel(self) -> Kernel | None:
        """Kernel of the dictionary; None for features."""
        return None if self.candidate.settings.of_features else self.candidate.kernel

    @cached_property
    def walked(self) -> PursuitPath:
        """The whole path."""
        X = self.data.X
        (graph,) = self.data.numeric_graphs(self.candidate.setting)
        dictionary = Dictionary(X if self.kernel is None else kernel_columns(self.kernel, X, X), graph)
        settings = self.candidate.settings
        return pursue(dictionary, graph.target[:, 0], settings.n_basis, backfit=settings.backfit)

    def path(self, values: Array) -> PathSolutions[PursuitPath]:
        """Functions after the given stages; a path that ended early is constant from there. Details are its parts."""
        taken, coefficients = self.walked.merged()
        every = np.vstack((np.zeros(len(taken)), coefficients))
        last = np.minimum(values.astype(np.intp), self.walked.n_stages)
        X = self.data.X
        items = None if self.kernel is None else take_items(X, taken)
        n_features = 0 if isinstance(X, list) else X.shape[1]
        read = partial(sum_of_terms, kernel=self.kernel, items=items, taken=taken, n_features=n_features)
        return PathSolutions(every[last][:, :, None], read, [self.walked.at(int(stage)) for stage in last])

    def axis(self) -> Array:
        """All numbers of stages."""
        return np.arange(1.0, self.candidate.settings.n_basis + 1.0)
