r"""Matching pursuit in the inner product of a preference graph, in one view or several.

Tsivtsivadze and Heskes, "Semi-supervised ranking pursuit", section 3. In one view, with residual ``r = y - f``, a
stage selects the column k and step a that minimize ``(r - a k)' L (r - a k)``:

.. math::

    a = \frac{k' L r}{k' L k} , \qquad \text{gain} = \frac{(k' L r)^2}{k' L k} ,

and then refits the coefficients of all selected columns ("backfitting"). ``L = I`` is kernel matching pursuit
(Vincent and Bengio 2002).

The objective of M views, drawn together on unlabelled rows (section 3.1), is equation (3),

.. math::

    \sum_v (y - f_v)' L_v (y - f_v) + \nu \sum_{v,u} (\bar f_v - \bar f_u)' \bar L (\bar f_v - \bar f_u) .

A stage selects one column per view. With residuals ``r_v``, the steps ``a`` on columns ``k_v`` solve the M x M system

.. math::

    A_{vv} = k_v' L_v k_v + 2 \nu (M-1) \bar k_v' \bar L \bar k_v , \qquad
    A_{vu} = -2 \nu \bar k_v' \bar L \bar k_u , \qquad
    b_v = k_v' L_v r_v + 2 \nu \sum_{u \neq v} \bar k_v' \bar L (\bar f_u - \bar f_v) ,

and lower the objective by ``b' A^-1 b``. The paper's own J(a, gamma) makes only the increments agree and lacks the
second term of b. A is singular for columns in the null space of the graphs; the paper takes it as positive definite.

Equation (3) is a least-squares problem. With M - 1 orthonormal rows H that are orthogonal to the vector of ones,

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
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from scipy import linalg

from rankrls._cached import cached_property
from rankrls._comparisons import Data, GraphSetting, KnownItems
from rankrls._errors import InputError
from rankrls._problems import Candidate, Problem
from rankrls._rows import take_items
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.kernels import Kernel
from rankrls.learners.paths import (
    CoPursuitPath,
    Dictionary,
    PathSolutions,
    PursuitPath,
    kernel_columns,
    orthogonal_part,
    select_features,
    sum_of_terms,
)
from rankrls.numerics.eigen import EPS

MAX_COMBINATIONS = 4_000_000
"""Maximum number of combinations of one column per view; beyond it, the views must share their columns."""
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
    """Lower equation (3) greedily, view by view.

    A stage selects the column of the first view that lowers the objective most, then that of the second, and so on; all
    coefficients are refitted after each.

    Parameters
    ----------
    views, n_basis, nu, backfit : see :func:`co_pursue`
    ids : sequence of M arrays of intp, optional
        Identifiers of the columns of each view. A column selected by one view is closed to the others.

    Notes
    -----
    O(M N (n + l)) per stage and O(p M^2 (n + l)) for backfitting: linear in columns and rows. A view that cannot
    improve repeats its last column, whose coefficient is unchanged.
    """
    problem = StackedViews(views, nu)
    walk = Walk(problem, backfit=backfit)
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
        Maximum number of stages.
    nu : float
        Weight of the agreement; with 0 and unshared columns, the M pursuits are independent.
    shared : bool
        Whether a stage selects the same column number in every view; otherwise all combinations are tried.
    backfit : bool
        Whether all coefficients of all views are refitted in equation (3) at each stage.

    Raises
    ------
    ValueError
        If there are more than ``MAX_COMBINATIONS`` combinations.

    Notes
    -----
    With n labelled and l unlabelled rows and N columns per view: once O(M^2 N l) for shared columns and O(M^2 N^2 l +
    N^M M^3) for all combinations; then a stage costs O(M N (n + l)) for the right sides, O(N M^2) or O(N^M M^2) for
    the choice and O(p M^2 (n + l)) for backfitting: linear in the unlabelled rows. Equal gains go to the lowest index,
    first by the first view.
    """
    problem = StackedViews(views, nu)
    sizes = [view.labelled.shape[1] for view in views]
    if not shared and math.prod(sizes) > MAX_COMBINATIONS:
        raise InputError(
            f"All combinations of columns would be {' x '.join(f'{N:,}' for N in sizes)} = "
            f"{math.prod(sizes):,} small systems, more than {MAX_COMBINATIONS:,}. Share one column "
            "between the views (shared_basis=True).",
            parameter="shared_basis",
        )
    walk = Walk(problem, backfit=backfit)
    W, regular = _decomposed(problem.systems(shared), problem.size)
    closed = ~regular
    while walk.n_stages < n_basis:
        b = problem.right_sides(walk.u, shared)
        gains = np.linalg.norm(np.einsum("...vk,...v->...k", W, b), axis=-1)
        gains[closed] = 0.0
        while True:
            best = walk.best(gains.ravel())
            if best is None:
                return walk.path()
            where = np.unravel_index(best, closed.shape)
            chosen = tuple(map(int, where))
            if shared:
                chosen *= len(views)
            if not backfit:
                for v, length in enumerate(W[where] @ (W[where].T @ b[where])):
                    walk.step(v, chosen[v], length)
                break
            if sum(walk.project(v, j) for v, j in enumerate(chosen)):
                break
            closed[where] = True  # all in the span of the selected columns
            gains[where] = 0.0
        walk.end_stage(chosen)
    return walk.path()


def _decomposed(A: Array, size: int) -> tuple[Array, Mask]:
    """W with ``A^-1 = W W'`` for small systems, (..., M, M), and a mask of those nonsingular up to rounding."""
    diagonal = np.diagonal(A, axis1=-2, axis2=-1)
    units = np.divide(1.0, np.sqrt(diagonal), out=np.zeros(diagonal.shape), where=diagonal > 0.0)[..., None]
    values, vectors = np.linalg.eigh(A * units * np.swapaxes(units, -1, -2))
    regular = values[..., 0] > size * EPS
    return units * vectors / np.sqrt(np.where(regular[..., None], values, 1.0))[..., None, :], regular


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


class Walk:
    """The selected columns and steps so far, and the residual of the target."""

    def __init__(self, problem: StackedViews, *, backfit: bool) -> None:
        self.u = problem.target.copy()
        self._problem = problem
        self._backfit = backfit
        self._rounding = 10 * problem.size * EPS
        self._least = self._rounding * float(np.linalg.norm(self.u))
        self._losses = [float(self.u @ self.u)]
        self._view_losses = [problem.parts(self.u)]
        self._indices = list[Sequence[int]]()
        self._steps = list[float]()
        self._taken = list[tuple[int, int, int]]()  # stage, view and column of each step
        self._Q = np.empty((0, problem.n_rows))  # directions of the steps with backfitting

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
        column = self._problem.column(v, j)
        rest = orthogonal_part(column, self._Q)
        left = rest @ rest
        if not left > self._problem.size * EPS * (column @ column):
            return False
        direction = rest / np.sqrt(left)
        self._Q = np.vstack((self._Q, direction))
        self._add(v, j, direction, float(direction @ self.u))
        return True

    def step(self, v: int, j: int, length: float) -> None:
        """Step along a column of a view, changing only its coefficient."""
        self._add(v, j, self._problem.column(v, j), length)

    def _add(self, v: int, j: int, direction: Array, length: float) -> None:
        self.u -= length * direction
        self._steps.append(length)
        self._taken.append((self.n_stages, v, j))

    def end_stage(self, chosen: Sequence[int]) -> None:
        """End a stage, with the last selected column of each view."""
        self._indices.append(tuple(chosen))
        self._losses.append(float(self.u @ self.u))
        self._view_losses.append(self._problem.parts(self.u))

    def path(self) -> CoPursuitPath:
        """Path of all stages."""
        P = self.n_stages
        M = len(self._problem.views)
        coefficients = np.zeros((P, P, M))
        if P:
            stage, view, _ = np.array(self._taken).T
            of_directions = np.eye(len(stage))  # coefficients of the columns in each direction
            if self._backfit:
                columns = np.array([self._problem.column(v, j) for _, v, j in self._taken])
                of_directions = linalg.solve_triangular(self._Q @ columns.T, of_directions)
            after = np.cumsum(of_directions * np.array(self._steps), axis=1)
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
        self.size = max(self.n_rows, *(view.labelled.shape[1] for view in views), 10)
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
    setting : GraphSetting
    settings : PursuitSettings
    """

    setting: GraphSetting
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


@dataclass(frozen=True)
class ViewPlan:
    """One view of the data: a subset of the features (None for all), and a kernel on them."""

    features: Index | None
    kernel: Kernel


@dataclass(frozen=True, eq=False)
class Terms:
    """The function of a view after each stage: a sum of selected columns.

    Attributes
    ----------
    taken : ndarray of intp
        Numbers of the selected rows or features.
    coefficients : ndarray of shape (stages, taken)
    kernel : Kernel or None
        None if features were selected.
    features : ndarray of intp, or None for all
        Features that the kernel uses, and that the items have.
    items : array-like or None
        The selected rows; None for features.
    """

    taken: Index
    coefficients: Array
    kernel: Kernel | None = None
    features: Index | None = None
    items: Matrix = None

    def feature_weights(self, n: int) -> Array:
        """Weights of n features, most of which are zero."""
        weights = np.zeros(n)
        weights[self.taken] = self.coefficients[-1] if len(self.coefficients) else 0.0
        return weights

    def scores(self, X: Matrix, stages: Any = slice(None)) -> Array:
        """Scores of items after some stages, (rows, stages)."""
        a = np.ascontiguousarray(self.coefficients[stages].T)
        X = select_features(X, self.features)
        return sum_of_terms(a, self.kernel, self.items, self.taken, X.shape[1])(X)


@dataclass(frozen=True)
class CoPursuitSettings(PursuitSettings):
    """Settings of pursuits in several views.

    Attributes
    ----------
    shared_basis : bool
        Whether a stage selects the same row in every view; ignored for features, which views select in turn.
    disjoint : bool
        Whether a feature selected by one view is closed to the others.
    """

    shared_basis: bool
    disjoint: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class CoPursuitCandidate(Candidate["ViewSolutions"]):
    """Pursuit in all views, for one graph of the labelled rows.

    Attributes
    ----------
    setting : GraphSetting
    settings : CoPursuitSettings
    views : sequence of ViewPlan
    nu : float
        Weight of the agreement on the rows that never have a label, or on all rows if there are none.
    """

    setting: GraphSetting
    settings: CoPursuitSettings
    views: Sequence[ViewPlan]
    nu: float

    def problem(self, data: Data) -> CoPursuitProblem:
        assert isinstance(data, KnownItems)
        return CoPursuitProblem(self, data)

    def terms(self, path: CoPursuitPath, Z: Matrix) -> list[Terms]:
        """Function of each view; Z contains all rows."""
        out = []
        for v, view in enumerate(self.views):
            taken, coefficients = path.view(v).merged()
            if self.settings.of_features:
                out.append(Terms(taken, coefficients))
            else:
                items = select_features(Z[taken], view.features)
                out.append(Terms(taken, coefficients, view.kernel, view.features, items))
        return out


@dataclass(frozen=True, eq=False)
class CoPursuitProblem(Problem["ViewSolutions"]):
    """Lower equation (3) stage by stage. Items are row numbers, as a matrix with one column."""

    candidate: CoPursuitCandidate
    labelled: KnownItems

    parameter = "n_basis"

    @cached_property
    def walked(self) -> CoPursuitPath:
        """The whole path, with numbers of rows or features as indices."""
        candidate = self.candidate
        settings = candidate.settings
        data = self.labelled.all_items
        rows = self.labelled.numbers
        (graph,) = self.labelled.numeric_graphs(candidate.setting)
        apart = rows
        agreement = graph
        if not self.labelled.labelled.all():  # all pairs of rows without labels are compared
            apart = np.delete(np.arange(data.n_rows), rows)
            rest = data.take(apart, items=False)
            (agreement,) = rest.numeric_graphs(replace(candidate.setting, ties="include"))
        agree = len(candidate.views) > 1 and candidate.nu > 0.0
        views = []
        numbers = []  # of the columns of each view
        for view in candidate.views:
            X = select_features(data.X, view.features)
            if settings.of_features:
                numbers.append(np.arange(X.shape[1]) if view.features is None else view.features)
            else:
                numbers.append(rows)
                X = kernel_columns(view.kernel, X, X[rows])
            agrees = Dictionary(X[apart], agreement) if agree else None
            views.append(View(Dictionary(X[rows], graph), graph.target[:, 0], agrees))
        if settings.of_features:
            ids = numbers if settings.disjoint else None
            path = pursue_in_turn(views, settings.n_basis, candidate.nu, backfit=settings.backfit, ids=ids)
        else:
            shared = settings.shared_basis
            path = co_pursue(views, settings.n_basis, candidate.nu, shared=shared, backfit=settings.backfit)
        taken = [own[stages] for own, stages in zip(numbers, path.indices.T, strict=True)]
        return replace(path, indices=np.column_stack(taken).astype(np.intp))

    def path(self, values: Array) -> ViewSolutions:
        """Functions after the given stages; the details are the paths up to there."""
        path = self.walked
        Z = self.labelled.all_items.X
        stages = np.minimum(values.astype(np.intp), path.n_stages)
        details = [path.at(int(stage)) for stage in stages]
        return ViewSolutions(Z, self.candidate.terms(path, Z), stages, details)

    def axis(self) -> Array:
        """All numbers of stages."""
        return np.arange(1.0, self.candidate.settings.n_basis + 1.0)


@dataclass(frozen=True, eq=False)
class ViewSolutions:
    """Means of the views' functions after some stages, for row numbers of Z."""

    Z: Matrix
    terms: Sequence[Terms]
    stages: Index
    details: Sequence[CoPursuitPath]

    def scores(self, numbers: Any) -> Array:
        """Scores of rows, (rows, stages, 1)."""
        rows = take_items(self.Z, numbers[:, 0].astype(np.intp))
        parts = [np.hstack((np.zeros((rows.shape[0], 1)), part.scores(rows))) for part in self.terms]
        return np.asarray(np.mean(parts, axis=0))[:, self.stages, None]
