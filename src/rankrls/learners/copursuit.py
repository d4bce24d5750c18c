r"""Ranking pursuit in several views at once, which are drawn together on unlabelled rows.

Tsivtsivadze and Heskes, "Semi-supervised ranking pursuit", section 3.1. One function per view minimizes equation (3),

.. math::

    \sum_v (y - f_v)' L_v (y - f_v) + \nu \sum_{v,u} (\bar f_v - \bar f_u)' \bar L (\bar f_v - \bar f_u) ,

by one column per view at each stage. With residuals ``r_v``, the steps ``a`` on columns ``k_v`` solve the M x M system

.. math::

    A_{vv} = k_v' L_v k_v + 2 \nu (M-1) \bar k_v' \bar L \bar k_v , \qquad
    A_{vu} = -2 \nu \bar k_v' \bar L \bar k_u , \qquad
    b_v = k_v' L_v r_v + 2 \nu \sum_{u \neq v} \bar k_v' \bar L (\bar f_u - \bar f_v) ,

and lower the objective by ``b' A^-1 b``. The paper's own J(a, gamma) makes only the increments agree and lacks the
second term of b. A is singular for columns in the null space of the graphs; the paper takes it as positive definite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankrls._cached import cached_property
from rankrls._comparisons import Data, KnownItems, Setting
from rankrls._errors import InputError
from rankrls._problems import Candidate, Problem
from rankrls._rows import take_items
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.kernels import Kernel
from rankrls.learners.paths import CoPursuitPath, Dictionary, kernel_columns, select_features, sum_of_terms
from rankrls.learners.pursuit import PursuitSettings, StackedViews, View, Walk, pursue_in_turn

MAX_COMBINATIONS = 4_000_000
"""Maximum number of combinations of one column per view; beyond it, the views must share their columns."""

_EPS = float(np.finfo(np.float64).eps)


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
    walk = Walk(problem, n_basis, backfit=backfit)
    W, regular = _decomposed(problem.systems(shared), walk.size)
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
            chosen = tuple(int(where[0 if shared else v]) for v in range(len(views)))
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
    regular = values[..., 0] > size * _EPS
    return units * vectors / np.sqrt(np.where(regular[..., None], values, 1.0))[..., None, :], regular


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
    setting : Setting
    settings : CoPursuitSettings
    views : sequence of ViewPlan
    nu : float
        Weight of the agreement on the rows that never have a label, or on all rows if there are none.
    weights : ndarray of shape (views,), optional
        Weights of the views in the solution; equal by default.
    """

    setting: Setting
    settings: CoPursuitSettings
    views: Sequence[ViewPlan]
    nu: float
    weights: Array | None = None

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
        data = self.labelled.everything
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
                columns = X[rows]
                apart_columns = X[apart]
            else:
                numbers.append(rows)
                columns = kernel_columns(view.kernel, X[rows], X[rows])
                apart_columns = kernel_columns(view.kernel, X[apart], X[rows])
            agrees = Dictionary(apart_columns, agreement) if agree else None
            views.append(View(Dictionary(columns, graph), graph.target[:, 0], agrees))
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
        Z = self.labelled.everything.X
        stages = np.minimum(values.astype(np.intp), path.n_stages)
        weights = self.candidate.weights
        if weights is None:
            weights = np.full(len(self.candidate.views), 1.0 / len(self.candidate.views))
        details = [path.at(int(stage)) for stage in stages]
        return ViewSolutions(Z, self.candidate.terms(path, Z), weights, stages, details)

    def axis(self) -> Array:
        """All numbers of stages."""
        return np.arange(1.0, self.candidate.settings.n_basis + 1.0)


@dataclass(frozen=True, eq=False)
class ViewSolutions:
    """Weighted sums of the views' functions after some stages, for row numbers of Z."""

    Z: Matrix
    terms: Sequence[Terms]
    weights: Array
    stages: Index
    details: Sequence[CoPursuitPath]

    def scores(self, numbers: Any) -> Array:
        """Scores of rows, (rows, stages, 1)."""
        rows = take_items(self.Z, numbers[:, 0].astype(np.intp))
        parts = [np.hstack((np.zeros((rows.shape[0], 1)), part.scores(rows))) for part in self.terms]
        return np.tensordot(self.weights, parts, axes=1)[:, self.stages, None]
