"""What the pursuits of several views share: how rows and views come in, and the functions that come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Comparisons, LabelledItems, Setting
from rankrls._errors import InputError
from rankrls._rows import take_items
from rankrls.kernels import Kernel
from rankrls.learners.copursuit_problem import CoPursuit, CoPursuitProblem
from rankrls.learners.paths import PursuitPath
from rankrls.learners.pursuit_problem import Terms
from rankrls.learners.views import ViewPlan, select_features
from rankrls.metrics import resolve_measure
from rankrls.models import fitting
from rankrls.models.fitting import check_comparable, check_matrix
from rankrls.models.inputs.parameters import GraphParameters, KernelParameters, choice, estimator, flag, parameter
from rankrls.models.inputs.views import view_plans
from rankrls.models.partly_scored import PartlyScored, PartlyScoredRanker
from rankrls.models.ranking_pursuit import DICTIONARIES
from rankrls.selection.folds import few_folds


@dataclass(frozen=True, eq=False, kw_only=True)
class CoPursuitCandidate:
    """Pursuit of several views on all rows; what is held out stays among the unlabelled ones."""

    setting: Setting
    pursuit: CoPursuit
    choices: dict[str, Any] = field(default_factory=dict)
    square = False

    def problem(self, data: Comparisons) -> CoPursuitProblem:
        """The problem of some labelled rows, which are numbers among all."""
        assert isinstance(data, LabelledItems)
        return CoPursuitProblem(self.pursuit, data, self.setting)


@estimator
class ViewPursuer(PartlyScoredRanker, GraphParameters, KernelParameters):
    """A ranker whose function is a mean of those of several views, each a sum of columns taken one by one."""

    views: Any = parameter(default=None)
    dictionary: str = parameter(default="kernel", check=choice(*DICTIONARIES))
    disjoint: bool = parameter(default=False, check=flag)
    aggregation: str = parameter(default="mean", check=choice("mean", "weighted", "best"))
    shared_basis: bool = parameter(default=True, check=flag)
    kernel: Any = parameter(default="rbf", several=True)
    backfit: bool = parameter(default=True, check=flag)

    @property
    def views_(self) -> tuple[ViewFunction, ...]:
        """The function of each view."""
        check_is_fitted(self, "path_")
        return tuple(ViewFunction(self, v) for v in range(len(self._view_kernels_)))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score items by the weighted mean of the views' functions.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)

        Returns
        -------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        last = slice(max(self.path_.n_stages - 1, 0), None)
        return self._staged(X, last).sum(axis=1)  # of one column, or of none

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Score items after each stage of the path, the last of which is :meth:`predict`.

        Yields
        ------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        yield from self._staged(X, slice(None)).T

    def _staged(self, X: Any, stages: slice) -> NDArray[np.float64]:
        """Scores after some stages, (rows, stages)."""
        X = check_matrix(self, X, reset=False)
        return self._mean([self._stages(v, X, stages) for v in range(len(self._view_kernels_))])

    def _mean(self, parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.asarray(np.tensordot(self._weights(), parts, axes=1))

    def _weights(self) -> NDArray[np.float64]:
        """Of the views; those of models from before there were any are equal."""
        M = len(self._view_kernels_)
        return np.asarray(vars(self).get("view_weights_", np.full(M, 1.0 / M)))

    def _expansions(self) -> Iterator[tuple[Kernel | None, NDArray[np.intp] | None, Any, NDArray[np.float64]]]:
        """What the views add to a score, a sum over a kernel each: kernel, features (None for all), items (None for a
        kernel matrix) and coefficients. Nothing without a stage.
        """
        for v, weight in enumerate(self._weights() if self.path_.n_stages else ()):
            terms = self._terms(v)
            yield terms.kernel, terms.features, terms.items, weight * terms.coefficients[-1]

    def _stages(self, v: int, X: Any, stages: slice) -> NDArray[np.float64]:
        """Scores of a view after some stages, (rows, stages)."""
        terms = self._terms(v)
        return terms.scores(X, terms.coefficients[stages].T)

    def _terms(self, v: int) -> Terms:
        """The function of a view by stage."""
        taken, coefficients = self._view_path(v).merged()
        if hasattr(self, "coef_"):
            return Terms(None, None, taken, coefficients)
        kernel, features = self._view_kernels_[v], self._view_features_[v]
        if kernel.name == "precomputed":
            return Terms(kernel, None, taken, coefficients, features)
        order = np.argsort(self.basis_indices_)
        places = order[np.searchsorted(self.basis_indices_, taken, sorter=order)]
        items = select_features(take_items(self.X_fit_, places), features)
        return Terms(kernel, items, taken, coefficients, features)

    def _view_path(self, v: int) -> PursuitPath:
        return self.path_.view(v)

    def _pursuit(self, rows: PartlyScored, kernel: Mapping[str, Any], nu: float, n_basis: int) -> CoPursuit:
        """The pursuit of all views, with these values of the kernel's parameters."""
        of_features = self.dictionary == "features"
        settings = {**kernel, "kernel_params": self.kernel_params}
        if of_features:
            settings |= {"kernel": "linear", "kernel_params": None}
        names = getattr(self, "feature_names_in_", None)
        data = rows.everything
        Z, given = data.X, data.n_rows if data.kept is None else len(data.kept)  # views name rows as they were given
        numbers = data.given_numbers(np.arange(data.n_rows))
        plans = [plan.of_rows(numbers) for plan in view_plans(self.views, settings, Z.shape[1], names, given)]
        self._check_dictionary(plans, Z.shape[1])
        for v, plan in enumerate(plans):
            self._check_loss(v, plan.loss_rows, rows)
        pursuit = CoPursuit(
            Z=Z,
            layout=data.layout,
            weights=data.weights,
            numbers=numbers,
            unscored=~rows.scored,
            views=plans,
            n_basis=n_basis,
            nu=nu,
            shared=bool(self.shared_basis),
            backfit=bool(self.backfit),
            of_features=of_features,
            disjoint=bool(self.disjoint),
        )
        pursuit.candidates(np.flatnonzero(rows.scored))
        return pursuit

    def _check_dictionary(self, plans: list[ViewPlan], n_features: int) -> None:
        if self.dictionary == "kernel":
            if self.disjoint:
                raise InputError(
                    "disjoint=True is about features: it needs dictionary='features'.", parameter="disjoint"
                )
            return
        for v, plan in enumerate(plans):
            if plan.kernel.name != "linear" or plan.basis_rows is not None:
                raise InputError(
                    f"views[{v}] has a kernel or rows for its basis; with dictionary='features' its columns are "
                    "features. Give it features, and rows of its loss ('loss_rows') if need be.",
                    parameter="views",
                )
        if self.disjoint and n_features < len(plans):
            raise InputError(f"{len(plans)} views cannot be disjoint with {n_features} features.", parameter="disjoint")

    def _check_loss(self, v: int, loss_rows: NDArray[np.bool_] | None, rows: PartlyScored) -> None:
        if loss_rows is None:
            return
        inside = loss_rows[rows.scored]
        if not inside.any():
            raise InputError(f"views[{v}] has no scored row to be fitted on.", parameter="views")
        try:
            check_comparable(rows.known.take(np.flatnonzero(inside)), float(self.regression_weight))
        except InputError as error:
            raise InputError(f"views[{v}]: {error}", parameter="views") from None

    def _store(self, data: LabelledItems, candidate: CoPursuitCandidate, solutions: Any) -> None:
        """Keep the views' functions."""
        fitting.begin(self, data)
        (path,) = solutions.details
        pursuit: CoPursuit = candidate.pursuit
        taken, first = np.unique(path.indices, return_index=True)
        taken = taken[np.argsort(first)]
        numbers = np.arange(pursuit.Z.shape[1]) if pursuit.of_features else pursuit.numbers
        self.path_ = replace(path, indices=numbers[path.indices].astype(np.intp))
        self.basis_indices_ = numbers[taken].astype(np.intp)
        self._view_kernels_ = [plan.kernel for plan in pursuit.views]
        self._view_features_ = [plan.features for plan in pursuit.views]
        self.view_weights_ = self._weigh(data, candidate, float(path.n_stages))
        if pursuit.of_features:
            self.coef_ = np.zeros(pursuit.Z.shape[1])
            self.coef_ = self._mean([view.coef_ for view in self.views_])
        elif not self._is_precomputed():
            self.X_fit_ = take_items(pursuit.Z, taken)

    def _weigh(self, data: LabelledItems, candidate: Any, stages: float) -> NDArray[np.float64]:
        """Weights of the views, by what each is worth on held-out queries if they are not to be equal."""
        M = len(candidate.pursuit.views)
        if self.aggregation == "mean":
            return np.full(M, 1.0 / M)
        self.view_errors_ = np.empty(M)
        try:
            plan = few_folds(
                getattr(self, "cv", None), resolve_measure("disagreement"), data, float(self.regression_weight)
            )
            for v in range(M):
                alone = replace(candidate, pursuit=replace(candidate.pursuit, only=v))
                curve = plan.curve(data, alone, alone.problem(data), np.array([stages]))
                self.view_errors_[v] = curve.mean[0]
        except InputError as error:
            raise InputError(
                f"aggregation judges each view on held-out queries. {error}", parameter="aggregation"
            ) from None
        best = np.arange(M) == np.argmin(self.view_errors_)
        worth = np.maximum(1.0 - 2.0 * self.view_errors_, 0.0)  # Kendall's tau; no better than chance is worth nothing
        weights = best.astype(np.float64) if self.aggregation == "best" else worth
        return weights / weights.sum() if weights.any() else np.full(M, 1.0 / M)

    def _is_precomputed(self) -> bool:
        if self.dictionary == "features":
            return False
        views = self.views if hasattr(self.views, "__iter__") else ()
        named = [view.get("kernel") if isinstance(view, dict) else view for view in views]
        return any(isinstance(kernel, str) and kernel == "precomputed" for kernel in (self.kernel, *named))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags


@dataclass(frozen=True)
class ViewFunction:
    """The function of one view of a fitted :class:`CoRankingPursuit` or :class:`CoRankingPursuitCV`.

    Attributes
    ----------
    model : estimator
    number : int
        Which view.
    """

    model: Any
    number: int

    @property
    def path(self) -> PursuitPath:
        """The rows taken by this view and their coefficients; its losses are those of the scored rows alone."""
        return self.model._view_path(self.number)

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the features, (n,), mostly zeros; dictionary="features"."""
        if not hasattr(self.model, "coef_"):
            raise AttributeError("A view of kernel functions has no weights of features.")
        taken, coefficients = self.path.merged()
        out = np.zeros(self.model.n_features_in_)
        out[taken] = coefficients[-1] if len(coefficients) else 0.0
        return out

    @property
    def support_(self) -> NDArray[np.intp]:
        """Numbers of the features with a weight, ascending; dictionary="features"."""
        return np.flatnonzero(self.coef_)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score items, (m,)."""
        scores = list(self.staged_predict(X))
        return scores[-1] if scores else np.zeros(np.shape(X)[0])

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Score items after each stage."""
        X = check_matrix(self.model, X, reset=False)
        yield from self.model._stages(self.number, X, slice(None)).T
