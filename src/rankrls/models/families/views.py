"""What the pursuits of several views share: how rows and views come in, and the functions that come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Comparisons
from rankrls._errors import InputError
from rankrls.features.columns import take_items
from rankrls.greedy.copursuit_problem import CoPursuit, ViewTerms
from rankrls.greedy.pursuit import PursuitPath
from rankrls.kernels import Kernel
from rankrls.models.families.base import Ranker
from rankrls.models.inputs.parameters import GraphParameters, KernelParameters, choice, estimator, flag, parameter
from rankrls.models.inputs.unscored import PartlyScored, partly_scored
from rankrls.models.inputs.validation import check_comparable, check_matrix
from rankrls.models.inputs.views import view_plans
from rankrls.problems.problem import Solutions
from rankrls.problems.views import select_features

__all__ = ["ViewFunction", "ViewPursuer"]


@estimator
class ViewPursuer(Ranker, GraphParameters, KernelParameters):
    """A ranker whose function is the mean of those of several views, each a sum of columns taken one by one."""

    _single_target = True
    _learns_unscored = True

    views: Any = parameter(default=None)
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
        """Score items by the mean of the views' functions.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)

        Returns
        -------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        X = check_matrix(self, X, reset=False)
        last = slice(self.path_.n_stages - 1, None) if self.path_.n_stages else slice(0)
        parts = [self._stages(v, X, last) for v in range(len(self._view_kernels_))]
        return np.asarray(np.mean(parts, axis=0)[:, 0]) if self.path_.n_stages else np.zeros(X.shape[0])

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Score items after each stage of the path, the last of which is :meth:`predict`.

        Yields
        ------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        X = check_matrix(self, X, reset=False)
        parts = [self._stages(v, X, slice(None)) for v in range(len(self._view_kernels_))]
        yield from np.mean(parts, axis=0).T

    def _stages(self, v: int, X: Any, stages: slice) -> NDArray[np.float64]:
        """Scores of a view after some stages, (rows, stages)."""
        terms = self._terms(v)
        return terms.scores(X, np.ascontiguousarray(terms.coefficients[stages].T))

    def _terms(self, v: int) -> ViewTerms:
        """The function of a view by stage."""
        taken, coefficients = self._view_path(v).merged()
        kernel, features = self._view_kernels_[v], self._view_features_[v]
        if kernel.name == "precomputed":
            return ViewTerms(kernel, features, None, taken, coefficients)
        order = np.argsort(self.basis_indices_)
        places = order[np.searchsorted(self.basis_indices_, taken, sorter=order)]
        items = select_features(take_items(self.X_fit_, places), features)
        return ViewTerms(kernel, features, items, taken, coefficients)

    def _view_path(self, v: int) -> PursuitPath:
        return self.path_.view(v)

    def _rows(self, X: Any, y: Any, qid: Any, sample_weight: Any, X_unscored: Any, qid_unscored: Any) -> PartlyScored:
        """What ``fit`` was given, checked."""
        form = "precomputed" if self._is_precomputed() else "linear"
        return partly_scored(self, X, y, qid, sample_weight, X_unscored, qid_unscored, kernel=form)

    def _pursuit(self, rows: PartlyScored, kernel: Mapping[str, Any], nu: float, n_basis: int) -> CoPursuit:
        """The pursuit of all views, with these values of the kernel's parameters."""
        settings = {**kernel, "kernel_params": self.kernel_params}
        names = getattr(self, "feature_names_in_", None)
        given = int(rows.numbers.max()) + 1
        if rows.known.kept is not None:  # views name rows as they were given, those of weight zero among them
            given = max(given, len(rows.known.kept))
        plans = view_plans(self.views, settings, rows.Z.shape[1], names, given)
        plans = [plan.of_rows(rows.numbers) for plan in plans]
        for v, plan in enumerate(plans):
            self._check_loss(v, plan.loss_rows, rows)
        pursuit = CoPursuit(
            Z=rows.Z,
            layout=rows.layout,
            weights=rows.weights,
            numbers=rows.numbers,
            unscored=~rows.scored,
            views=plans,
            n_basis=n_basis,
            nu=nu,
            shared=bool(self.shared_basis),
            increments=self.agreement == "increments",
            backfit=bool(self.backfit),
        )
        pursuit.candidates(np.flatnonzero(rows.scored))
        return pursuit

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
        self.path_ = replace(path, indices=pursuit.numbers[path.indices].astype(np.intp))
        self.basis_indices_ = pursuit.numbers[taken].astype(np.intp)
        self._view_kernels_ = [plan.kernel for plan in pursuit.views]
        self._view_features_ = [plan.features for plan in pursuit.views]
        if not self._is_precomputed():
            self.X_fit_ = take_items(pursuit.Z, taken)

    def _is_precomputed(self) -> bool:
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

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score items, (m,)."""
        scores = list(self.staged_predict(X))
        return scores[-1] if scores else np.zeros(np.shape(X)[0])

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Score items after each stage."""
        X = check_matrix(self.model, X, reset=False)
        yield from self.model._stages(self.number, X, slice(None)).T

    def expansion(self) -> tuple[Kernel, NDArray[np.intp] | None, Any, NDArray[np.float64]]:
        """The last stage's sum: kernel, features (None for all), items (None for a kernel matrix), coefficients."""
        terms = self.model._terms(self.number)
        return terms.kernel, terms.features, terms.items, terms.coefficients[-1]
