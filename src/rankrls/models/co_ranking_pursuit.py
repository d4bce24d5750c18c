"""Ranking pursuit of several views that agree where there are no scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import LabelledItems, Setting
from rankrls._errors import InputError
from rankrls.features.columns import take_items
from rankrls.graph import ScoredGraph
from rankrls.greedy.copursuit import CoPursuitPath, View, co_pursue
from rankrls.greedy.dictionaries import held_dictionary, kernel_columns
from rankrls.greedy.pursuit import PursuitPath
from rankrls.greedy.pursuit_problem import expanded
from rankrls.kernels import Kernel
from rankrls.models.families.base import Ranker
from rankrls.models.inputs.parameters import (
    GraphParameters,
    KernelParameters,
    check_parameters,
    choice,
    estimator,
    flag,
    number,
    parameter,
)
from rankrls.models.inputs.unscored import partly_scored, unscored_layout, with_unscored
from rankrls.models.inputs.validation import (
    check_comparable,
    check_matrix,
)
from rankrls.models.inputs.views import ViewPlan, select_features, view_plans

__all__ = ["CoRankingPursuit", "ViewFunction"]


@estimator
class CoRankingPursuit(Ranker, GraphParameters, KernelParameters):
    r"""Semi-supervised ranking pursuit: views that fit the scored rows and agree on the unscored ones.

    M functions, one a view, each a sum of at most P kernel columns, minimise

    .. math::

        \sum_v (y - f_v)' L (y - f_v) + \nu \sum_{v,u} (\bar f_v - \bar f_u)' \bar L (\bar f_v - \bar f_u) ,

    where the bar means the unscored rows and ``Lbar`` compares those of the same query. Each stage takes one column a
    view, those that lower it most together, and then fits all coefficients of all views anew. The prediction is the
    mean of the views' functions.

    Parameters
    ----------
    n_basis : int, default=10
        P, the number of stages.
    views : sequence of views, optional
        A view is a list, slice or mask of features (or their names); or a kernel's name or function; or a dict with any
        of ``features``, ``kernel``, ``gamma``, ``degree``, ``coef0``, ``kernel_params``, ``loss_rows``, ``basis_rows``
        and ``rows``. By default two views, the first and the second half of the features.

        ``loss_rows`` (numbers or a mask over the rows of X and then of X_unscored) are the rows whose labels the view
        is fitted to; unscored rows among them do not count. ``basis_rows`` are the rows whose columns it may take,
        scored or not. Each is all scored rows by default; ``rows`` stands for whichever of the two is not given. The
        views agree on all unscored rows in any case.
    nu : float, default=1.0
        Weight of the agreement; 0 leaves the views alone.
    shared_basis : bool, default=True
        Whether a stage takes the same row in every view, O(P M^3 n l). Otherwise all combinations of rows are tried,
        O(n^M) of them, up to 4 million; views of different rows need this, or have rows in common.
    agreement : {"functions", "increments"}, default="functions"
        "functions" takes the step that lowers the objective above. "increments" is the paper's own J(a, gamma), in
        which only the steps of a stage are drawn together.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`, default="rbf"
        Of the views that name none. With "precomputed", X is the kernel matrix between all rows, scored or not, and
        views differ by their rows; ``predict`` takes the kernel with all of them.
    ties, balance, regression_weight : as in :class:`RankRLS`
        All pairs of unscored rows of a query are compared.
    backfit : bool, default=True
        Whether all coefficients are fitted again at each stage.

    Attributes
    ----------
    views_ : tuple of ViewFunction
        The views' own functions, each with ``predict`` and ``staged_predict``.
    path_ : CoPursuitPath
        ``indices`` (stages, M), ``coefficients``, ``losses`` (the objective) and ``view_losses`` of every stage.
        Indices count the rows of X and then those of X_unscored.
    basis_indices_ : ndarray of shape (r,), intp
        The rows taken by any view, in the order of choice.
    X_fit_ : ndarray or sparse array of shape (r, n)
        Those rows, unless the kernel is precomputed.
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Notes
    -----
    Memory 8 N (n + l) bytes a view for N columns, n scored and l unscored rows; time linear in the unscored rows.
    Without unscored rows the views agree on the scored ones. One view, or ``nu=0`` without a shared basis, is
    :class:`RankingPursuit`.

    References
    ----------
    Tsivtsivadze, Heskes: Semi-supervised ranking pursuit. Section 3.1, equation (3).

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import CoRankingPursuit
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(200, 6)), np.repeat(np.arange(40), 5)
    >>> y = np.where(qid < 8, X.sum(axis=1) + rng.normal(size=200), np.nan)
    >>> model = CoRankingPursuit(4, views=([0, 1, 2], [3, 4, 5]), nu=0.1).fit(X, y, qid=qid)
    >>> model.path_.indices.shape, len(model.views_)
    ((4, 2), 2)
    >>> np.allclose(model.predict(X), np.mean([view.predict(X) for view in model.views_], axis=0))
    True
    """

    _learns_unscored = True
    _single_target = True

    n_basis: int = parameter(default=10, check=number(least=1, whole=True), kw_only=False)
    views: Any = parameter(default=None)
    nu: float = parameter(default=1.0, check=number(least=0.0))
    shared_basis: bool = parameter(default=True, check=flag)
    agreement: str = parameter(default="functions", check=choice("functions", "increments"))
    kernel: Any = parameter(default="rbf", several=True)
    backfit: bool = parameter(default=True, check=flag)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        X_unscored: Any = None,
        qid_unscored: Any = None,
    ) -> Self:
        """Learn from rows with labels and rows without.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)
        y : array-like of shape (m,)
            Labels, higher is better; NaN marks an unscored row.
        qid : array-like of shape (m,), optional
            One query id per row. None makes everything one global ranking.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative; rows of X_unscored weigh 1.
        X_unscored : array-like, sparse matrix or data frame of shape (l, n), optional
            Further unscored rows.
        qid_unscored : array-like of shape (l,), optional
            Their queries, needed where there is a qid. An id of an unscored row of X is the same query.

        Returns
        -------
        self
        """
        check_parameters(self)
        form = "precomputed" if self._is_precomputed() else "linear"
        data, numbers, known = partly_scored(self, X, y, qid, sample_weight, kernel=form)
        m, unscored = data.layout.n_rows if data.kept is None else len(data.kept), ~known
        scored = data.take(np.flatnonzero(known))
        check_comparable(scored, float(self.regression_weight))
        X_all, more = with_unscored(self, data, X_unscored, qid_unscored, precomputed=self._is_precomputed())
        numbers = np.concatenate((numbers, m + np.arange(more)))
        is_scored = np.concatenate((~unscored, np.zeros(more, dtype=bool)))
        plans = view_plans(
            self.views,
            self._kernel_settings(),
            X_all.shape[1],
            getattr(self, "feature_names_in_", None),
            m + more,
        )
        plans = [plan.of_rows(numbers) for plan in plans]
        candidates = self._candidates(plans, is_scored)
        agreement = self._agreement_graph(data, scored, unscored, more, qid_unscored)
        on = np.flatnonzero(~is_scored) if not is_scored.all() else np.flatnonzero(is_scored)
        views = [
            self._view(v, plan, X_all, scored, is_scored, rows, on, agreement)
            for v, (plan, rows) in enumerate(zip(plans, candidates, strict=True))
        ]
        path = co_pursue(
            views,
            int(self.n_basis),
            float(self.nu),
            shared=bool(self.shared_basis),
            increments=self.agreement == "increments",
            backfit=bool(self.backfit),
        )
        self._begin(scored)
        self._take(path, plans, candidates, numbers, X_all)
        return self

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
        kernel, features, basis, taken, coefficients = self._terms(v)
        return expanded(
            kernel, select_features(X, features), basis, taken, np.ascontiguousarray(coefficients[stages].T)
        )

    def _terms(self, v: int) -> tuple[Kernel, NDArray[np.intp] | None, Any, NDArray[np.intp], NDArray[np.float64]]:
        """A view's kernel, features, items (None for a kernel matrix), their row numbers and coefficients by stage."""
        taken, coefficients = self._view_path(v).merged()
        kernel, features = self._view_kernels_[v], self._view_features_[v]
        if kernel.name == "precomputed":
            return kernel, features, None, taken, coefficients
        order = np.argsort(self.basis_indices_)
        places = order[np.searchsorted(self.basis_indices_, taken, sorter=order)]
        return kernel, features, select_features(take_items(self.X_fit_, places), features), taken, coefficients

    def _view_path(self, v: int) -> PursuitPath:
        return self.path_.view(v)

    def _view(
        self,
        number: int,
        plan: ViewPlan,
        X_all: Any,
        scored: LabelledItems,
        is_scored: NDArray[np.bool_],
        candidates: NDArray[np.intp],
        agree_on: NDArray[np.intp],
        agreement: ScoredGraph,
    ) -> View:
        """The columns of a view on its scored rows and where the views agree."""
        own = scored
        rows = np.flatnonzero(is_scored)
        if plan.loss_rows is not None:
            inside = plan.loss_rows[rows]
            if not inside.any():
                raise InputError("views[{0}] has no scored row to be fitted on.", number, parameter="views")
            own, rows = scored.take(np.flatnonzero(inside)), rows[inside]
            try:
                check_comparable(own, float(self.regression_weight))
            except InputError as error:
                raise InputError("views[{0}]: {1}", number, error, parameter="views") from None
        (comparison,) = own.graphs(self._setting())
        X_view = select_features(X_all, plan.features)

        def columns(of: NDArray[np.intp]) -> NDArray[np.float64]:
            if plan.kernel.name == "precomputed":
                return kernel_columns(plan.kernel, X_view[of][:, candidates], None)
            return kernel_columns(plan.kernel, X_view[of], X_view[candidates])

        return View(
            held_dictionary(columns(rows), comparison.graph),
            comparison.target[:, 0],
            held_dictionary(columns(agree_on), agreement),
        )

    def _candidates(self, plans: list[ViewPlan], is_scored: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
        """The rows whose columns each view may take."""
        masks = [is_scored if plan.basis_rows is None else plan.basis_rows for plan in plans]
        for v, mask in enumerate(masks):
            if not mask.any():
                raise InputError("views[{0}] has no row of positive weight in its basis.", v, parameter="views")
        if not self.shared_basis:
            return [np.flatnonzero(mask) for mask in masks]
        common = np.logical_and.reduce(masks)
        if not common.any():
            raise InputError(
                "The {views} have no rows in common whose columns they could share.",
                remedy="Use {shared_basis=False} to try all combinations of their rows.",
                parameter="views",
            )
        return [np.flatnonzero(common)] * len(plans)

    def _agreement_graph(
        self, data: LabelledItems, scored: LabelledItems, unscored: NDArray[np.bool_], more: int, qid_unscored: Any
    ) -> ScoredGraph:
        """Of the unscored rows, all of whose pairs are compared; without any, of the scored rows."""
        if not unscored.any() and not more:
            (comparison,) = scored.graphs(self._setting())
            return ScoredGraph.of(comparison.graph)
        rows = np.flatnonzero(unscored)
        layout = unscored_layout(data, rows, more, qid_unscored)
        weights = None
        if data.weights is not None:
            weights = np.concatenate((data.weights[rows], np.ones(more)))
        return ScoredGraph.build(
            np.zeros((layout.n_rows, 1)),
            layout,
            weights=weights,
            ties="include",
            balance=self.balance,
            regression_weight=float(self.regression_weight),
        )

    def _take(
        self,
        path: CoPursuitPath,
        plans: list[ViewPlan],
        candidates: list[NDArray[np.intp]],
        numbers: NDArray[np.intp],
        X_all: Any,
    ) -> None:
        rows = np.empty_like(path.indices)  # in X_all
        for v, own in enumerate(candidates):
            rows[:, v] = own[path.indices[:, v]]
        taken, first = np.unique(rows, return_index=True)
        taken = taken[np.argsort(first)]
        self.path_ = replace(path, indices=numbers[rows].astype(np.intp))
        self.basis_indices_ = numbers[taken].astype(np.intp)
        self._view_kernels_ = [plan.kernel for plan in plans]
        self._view_features_ = [plan.features for plan in plans]
        if not self._is_precomputed():
            self.X_fit_ = take_items(X_all, taken)

    def _setting(self) -> Setting:
        return Setting(self.ties, self.balance, float(self.regression_weight))

    def _kernel_settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("kernel", "gamma", "degree", "coef0", "kernel_params")}

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
    """The function of one view of a fitted :class:`CoRankingPursuit`.

    Attributes
    ----------
    model : CoRankingPursuit
    number : int
        Which view.
    """

    model: CoRankingPursuit
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
        kernel, features, items, _, coefficients = self.model._terms(self.number)
        return kernel, features, items, coefficients[-1]
