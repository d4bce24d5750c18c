"""What the pursuits of several views share: how rows and views come in, and the functions that come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Comparisons, LabelledItems
from rankrls._errors import InputError
from rankrls.features.columns import take_items
from rankrls.greedy.copursuit_problem import CoPursuit
from rankrls.greedy.pursuit_problem import Terms
from rankrls.greedy.walk import PursuitPath
from rankrls.kernels import Kernel
from rankrls.metrics import resolve_measure
from rankrls.models.families.partly_scored import PartlyScoredRanker
from rankrls.models.families.pursuits import DICTIONARIES
from rankrls.models.families.selecting import few_folds
from rankrls.models.inputs.parameters import GraphParameters, KernelParameters, choice, estimator, flag, parameter
from rankrls.models.inputs.unscored import PartlyScored
from rankrls.models.inputs.validation import check_comparable, check_matrix
from rankrls.models.inputs.views import view_plans
from rankrls.problems.problem import Solutions
from rankrls.problems.views import ViewPlan, select_features


@estimator
class ViewPursuer(PartlyScoredRanker, GraphParameters, KernelParameters):
    """A ranker whose function is a mean of those of several views, each a sum of columns taken one by one."""

    views: Any = parameter(default=None)
    dictionary: str = parameter(default="kernel", check=choice(*DICTIONARIES))
    disjoint: bool = parameter(default=False, check=flag)
    aggregation: str = parameter(default="mean", check=choice("mean", "weighted", "best"))
    shared_basis: bool = parameter(default=True, check=flag)
    agreement: str = parameter(default="functions", check=choice("functions", "increments"))
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

    def _data_kernel(self) -> str:
        return "precomputed" if self._is_precomputed() else "linear"

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
            increments=self.agreement == "increments",
            backfit=bool(self.backfit),
            of_features=of_features,
            disjoint=bool(self.disjoint),
        )
        pursuit.candidates(np.flatnonzero(rows.scored))
        return pursuit

    def _check_dictionary(self, plans: list[ViewPlan], n_features: int) -> None:
        if self.dictionary == "kernel":
            if self.disjoint:
                problem = "{disjoint=True} is about features: it needs {dictionary='features'}."
                raise InputError(problem)
            return
        if self.agreement != "functions":
            problem = "With {dictionary='features'} the functions agree; {agreement} is for kernel functions."
            raise InputError(problem, parameter="agreement")
        for v, plan in enumerate(plans):
            if plan.kernel.name != "linear" or plan.basis_rows is not None:
                raise InputError(
                    "views[{0}] has a kernel or rows for its basis; with {dictionary='features'} its columns are "
                    "features.",
                    v,
                    remedy="Give it features, and rows of its loss ('loss_rows') if need be.",
                    parameter="views",
                )
        if self.disjoint and n_features < len(plans):
            problem = "{0} views cannot be disjoint with {1} features."
            raise InputError(problem, len(plans), n_features, parameter="disjoint")

    def _check_loss(self, v: int, loss_rows: NDArray[np.bool_] | None, rows: PartlyScored) -> None:
        if loss_rows is None:
            return
        inside = loss_rows[rows.scored]
        if not inside.any():
            raise InputError("views[{0}] has no scored row to be fitted on.", v, parameter="views")
        try:
            check_comparable(rows.known.take(np.flatnonzero(inside)), float(self.regression_weight))
        except InputError as error:
            raise InputError("views[{0}]: {1}", v, error, parameter="views") from None

    def _adopt(self, comparisons: Comparisons, candidate: Any, solutions: Solutions) -> None:
        (path,) = solutions.details
        pursuit: CoPursuit = candidate.pursuit
        taken, first = np.unique(path.indices, return_index=True)
        taken = taken[np.argsort(first)]
        numbers = np.arange(pursuit.Z.shape[1]) if pursuit.of_features else pursuit.numbers
        self.path_ = replace(path, indices=numbers[path.indices].astype(np.intp))
        self.basis_indices_ = numbers[taken].astype(np.intp)
        self._view_kernels_ = [plan.kernel for plan in pursuit.views]
        self._view_features_ = [plan.features for plan in pursuit.views]
        self.view_weights_ = self._weigh(comparisons, candidate, float(path.n_stages))
        if pursuit.of_features:
            self.coef_ = np.zeros(pursuit.Z.shape[1])
            self.coef_ = self._mean([view.coef_ for view in self.views_])
        elif not self._is_precomputed():
            self.X_fit_ = take_items(pursuit.Z, taken)

    def _weigh(self, comparisons: Comparisons, candidate: Any, stages: float) -> NDArray[np.float64]:
        """Weights of the views, by what each is worth on held-out queries if they are not to be equal."""
        M = len(candidate.pursuit.views)
        if self.aggregation == "mean":
            return np.full(M, 1.0 / M)
        assert isinstance(comparisons, LabelledItems)
        self.view_errors_ = np.empty(M)
        try:
            plan = few_folds(
                getattr(self, "cv", None), resolve_measure("disagreement"), comparisons, float(self.regression_weight)
            )
            for v in range(M):
                alone = replace(candidate, pursuit=replace(candidate.pursuit, only=v))
                curve = plan.curve(comparisons, alone, alone.problem(comparisons), np.array([stages]))
                self.view_errors_[v] = curve.mean[0]
        except InputError as error:
            problem = "{aggregation} judges each view on held-out queries. {0}"
            raise InputError(problem, error) from None
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
