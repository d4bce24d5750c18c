"""Pursuit of several views as a problem on the scored ones of some rows; its parameter is the number of stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._comparisons import LabelledItems, Setting
from rankrls._errors import InputError
from rankrls._queries import QueryLayout
from rankrls._rows import take_items
from rankrls.learners.copursuit import co_pursue
from rankrls.learners.dictionaries import HeldDictionary, kernel_columns
from rankrls.learners.graphs import graph_of
from rankrls.learners.paths import CoPursuitPath, PursuitPath
from rankrls.learners.pursuit import View, pursue_in_turn
from rankrls.learners.pursuit_problem import Terms
from rankrls.learners.solutions import PathSolutions
from rankrls.learners.views import ViewPlan, select_features
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.scorer import Scorer

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CoPursuit:
    """Views of all rows and how they are walked, whichever rows are scored.

    Attributes
    ----------
    Z : dense, CSR or kernel matrix
        All rows.
    layout : QueryLayout
        Of all rows.
    weights : ndarray or None
        Of all rows.
    numbers : ndarray of intp
        What the rows are called in the path.
    unscored : ndarray of bool
        The rows that never have a label. If there are none, the views agree on the scored rows.
    views : sequence of ViewPlan
    n_basis : int
        Stages at most.
    nu : float
    shared, backfit : bool
        As of :func:`rankrls.learners.copursuit.co_pursue`.
    of_features : bool
        Whether the columns are the features themselves, taken by one view after the other.
    disjoint : bool
        Whether a feature that one view has taken is closed to the others.
    only : int, optional
        The view whose function alone is the solution; the mean of all by default.
    """

    Z: Any
    layout: QueryLayout
    weights: Array | None
    numbers: NDArray[np.intp]
    unscored: NDArray[np.bool_]
    views: Sequence[ViewPlan]
    n_basis: int
    nu: float
    shared: bool = True
    backfit: bool = True
    of_features: bool = False
    disjoint: bool = False
    only: int | None = None

    def candidates(self, scored: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """The rows whose columns each view may take, or the features."""
        if self.of_features:
            everything = np.arange(self.Z.shape[1], dtype=np.intp)
            return [everything if plan.features is None else plan.features for plan in self.views]
        everyone = np.zeros(len(self.unscored), dtype=bool)
        everyone[scored] = True
        masks = [everyone if plan.basis_rows is None else plan.basis_rows for plan in self.views]
        for v, mask in enumerate(masks):
            if not mask.any():
                raise InputError(f"views[{v}] has no row of positive weight in its basis.", parameter="views")
        if not self.shared:
            return [np.flatnonzero(mask) for mask in masks]
        common = np.logical_and.reduce(masks)
        if not common.any():
            raise InputError(
                "The views have no rows in common whose columns they could share. Use shared_basis=False to "
                "try all combinations of their rows.",
                parameter="views",
            )
        return [np.flatnonzero(common)] * len(self.views)

    def agreement(self, scored: LabelledItems, setting: Setting) -> tuple[NDArray[np.intp], LabelledGraph]:
        """The rows on which the views agree, and their graph: all pairs of rows without a label."""
        rows = scored.X[:, 0].astype(np.intp)
        if not self.unscored.any():
            return rows, _labelled(scored, setting)
        rest = np.delete(np.arange(len(self.unscored)), rows)
        graph = LabelledGraph.build(
            np.zeros(len(rest)),
            np.unique(self.layout.codes[rest], return_inverse=True)[1],
            weights=None if self.weights is None else self.weights[rest],
            balance=setting.balance,
            regression_weight=setting.regression_weight,
        )
        return rest, graph

    def walk(self, views: list[View], candidates: list[NDArray[np.intp]]) -> CoPursuitPath:
        """The path over the views' columns, with the candidates' numbers in it."""
        if self.of_features:
            ids = candidates if self.disjoint else None
            path = pursue_in_turn(views, self.n_basis, self.nu, backfit=self.backfit, ids=ids)
        else:
            how = {"shared": self.shared, "backfit": self.backfit}
            path = co_pursue(views, self.n_basis, self.nu, **how)
        taken = [own[stages] for own, stages in zip(candidates, path.indices.T, strict=True)]
        return replace(path, indices=np.column_stack(taken).astype(np.intp))

    def columns(self, plan: ViewPlan, of: NDArray[np.intp], candidates: NDArray[np.intp]) -> Array:
        """A view's columns as rows, (candidates, rows ``of``)."""
        if self.of_features:
            X = take_items(self.Z, of)[:, candidates]
            return np.array((X.toarray() if sparse.issparse(X) else X).T, dtype=np.float64, order="C")
        X = select_features(self.Z, plan.features)
        if plan.kernel.name == "precomputed":
            return kernel_columns(plan.kernel, X[of][:, candidates], None)
        return kernel_columns(plan.kernel, X[of], X[candidates])


class CoPursuitProblem:
    """Lower equation (3) stage by stage. Items are numbers of rows, as a matrix of one column."""

    parameter = "n_basis"

    def __init__(self, pursuit: CoPursuit, scored: LabelledItems, setting: Setting) -> None:
        self.pursuit, self.scored, self.setting = pursuit, scored, setting

    @cached_property
    def walked(self) -> CoPursuitPath:
        """The whole path, with numbers of rows, or features, in it."""
        pursuit, rows = self.pursuit, self.scored.X[:, 0].astype(np.intp)
        candidates = pursuit.candidates(rows)
        agree_on, agreement = pursuit.agreement(self.scored, self.setting)
        agrees = len(candidates) > 1 and pursuit.nu > 0.0
        views = []
        for v, (plan, own) in enumerate(zip(pursuit.views, candidates, strict=True)):
            inside = np.arange(len(rows)) if plan.loss_rows is None else np.flatnonzero(plan.loss_rows[rows])
            scored = self.scored if plan.loss_rows is None else self.scored.take(inside)
            if not scored.n_rows:
                raise InputError(f"views[{v}] has no scored row to be fitted on.", parameter="views")
            graph = _labelled(scored, self.setting)
            views.append(
                View(
                    HeldDictionary.of(pursuit.columns(plan, rows[inside], own), graph),
                    graph.target[:, 0],
                    HeldDictionary.of(pursuit.columns(plan, agree_on, own), agreement) if agrees else None,
                )
            )
        return pursuit.walk(views, candidates)

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        stages = values.astype(np.intp)
        used = enumerate(self.pursuit.views)
        terms = [self._terms(plan, self.walked.view(v)) for v, plan in used if self.pursuit.only in (None, v)]
        coefficients = np.hstack(
            [np.vstack((np.zeros(part.coefficients.shape[1]), part.coefficients)) for part in terms]
        )
        last = np.minimum(stages, self.walked.n_stages)
        details = [self.walked.at(int(stage)) for stage in last]
        return PathSolutions(coefficients[last][:, :, None], partial(_read, terms, self.pursuit.Z), details)

    def _terms(self, plan: ViewPlan, path: PursuitPath) -> Terms:
        taken, coefficients = path.merged()
        if self.pursuit.of_features:
            return Terms(None, None, taken, coefficients)
        items = None
        if plan.kernel.name != "precomputed":
            items = select_features(take_items(self.pursuit.Z, taken), plan.features)
        return Terms(plan.kernel, items, taken, coefficients, plan.features)

    def axis(self) -> NDArray[np.float64]:
        """All numbers of stages."""
        return np.arange(1.0, self.pursuit.n_basis + 1.0)


def _read(terms: list[Terms], Z: Any, a: Array) -> Scorer:
    return _MeanOfViews(coefficients=a, items=Z, terms=terms)


@dataclass(frozen=True, eq=False)
class _MeanOfViews(Scorer):
    """The mean of the views' functions, for rows by their numbers."""

    terms: Sequence[Terms] = ()

    def __call__(self, X: Any) -> Array:
        assert self.coefficients is not None
        rows = take_items(self.items, np.asarray(X)[:, 0].astype(np.intp))
        cuts = np.cumsum([len(part.taken) for part in self.terms])[:-1]
        parts = zip(self.terms, np.split(self.coefficients, cuts), strict=True)
        return np.asarray(np.mean([part.scores(rows, a) for part, a in parts], axis=0))


def _labelled(data: LabelledItems, setting: Setting) -> LabelledGraph:
    graph = graph_of(data, setting)
    assert isinstance(graph, LabelledGraph)
    return graph
