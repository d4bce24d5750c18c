"""Ranking pursuit in several views that agree on unlabelled rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Data, KnownItems
from rankrls._errors import InputError
from rankrls._rows import take_items
from rankrls._typing import Array, FoldsLike, Index, ItemsLike, Matrix, Params, Values
from rankrls.kernels import Kernel
from rankrls.learners.paths import CoPursuitPath
from rankrls.learners.pursuit import CoPursuitCandidate, CoPursuitSettings, Terms, ViewSolutions
from rankrls.metrics import Measure
from rankrls.models.fitted import ChosenAttributes, Fitted
from rankrls.models.intake import check_matrix
from rankrls.models.parameters import (
    GRAPH,
    GRAPHS,
    KERNEL,
    SELECTION,
    Check,
    EachOf,
    KernelLike,
    Scoring,
    Several,
    View,
    count,
    flag,
    number,
    options,
    word,
)
from rankrls.models.partly_labelled import PartlyLabelledRanker, view_plans
from rankrls.models.ranker import KernelGraphEstimator
from rankrls.models.ranking_pursuit import DICTIONARIES
from rankrls.models.spec import Accepts, KernelGrid, SearchSpec, Solved
from rankrls.selection.plans import QueryPlanner

_CHECKS: dict[str, Check] = {
    "dictionary": word(DICTIONARIES),
    "disjoint": flag,
    "aggregation": word(("mean", "weighted", "best")),
    "shared_basis": flag,
    "backfit": flag,
}
_LAST = slice(-1, None)
"""The last stage, if there is one; without stages, the sum over it is 0."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CoPursuitSpec(SearchSpec[ViewSolutions]):
    """All kernels of the views, weights of their agreement and graphs.

    Attributes
    ----------
    kernels : KernelGrid
        Kernels of views without their own.
    views : sequence, or None
        Views; None for both halves of the features.
    nus : tuple of float
        Weights of the agreement, ascending.
    settings : CoPursuitSettings
    aggregation : {"mean", "weighted", "best"}
    """

    kernels: KernelGrid
    views: Sequence[View] | None
    nus: tuple[float, ...]
    settings: CoPursuitSettings
    aggregation: str

    def candidates(self, data: Data) -> Iterator[CoPursuitCandidate]:
        for kernel, chosen_kernel in self.kernels.each():
            views = view_plans(self.views, data.features, kernel)
            for nu in self.nus:
                for setting, chosen in data.settings(self.graphs):
                    choices = {**chosen_kernel, **chosen, "nu": nu}
                    yield CoPursuitCandidate(
                        choices=choices, setting=setting, settings=self.settings, views=views, nu=nu
                    )

    def fitted(self, data: Data, solved: Solved[ViewSolutions]) -> Fitted:
        assert isinstance(data, KnownItems)
        candidate = solved.candidate
        assert isinstance(candidate, CoPursuitCandidate)
        everything = data.everything
        path = solved.solutions.details[0]
        errors = None if self.aggregation == "mean" else self._view_errors(data, candidate, path.n_stages)
        weights = self._view_weights(errors, len(candidate.views))
        taken, first = np.unique(path.indices, return_index=True)
        taken = taken[np.argsort(first)]
        of_features = self.settings.of_features
        numbers = np.asarray if of_features else everything.given_numbers
        terms = candidate.terms(path, everything.X)
        known: Values = {} if errors is None else {"view_errors_": errors}
        if of_features:
            n = everything.X.shape[1]
            known["coef_"] = weights @ [feature_weights(each, n) for each in terms]
        else:
            known["X_fit_"] = take_items(everything.X, taken)
        if solved.found is not None:
            stages = int(solved.value)
            known["best_params_"] = {**solved.found.best_choices, "n_basis": stages}
            known["n_basis_"] = len(taken)
            known["n_basis_at_edge_"] = stages == self.settings.n_basis and path.n_stages == stages
        return Fitted.of(
            data,
            view_weights_=weights,
            path_=replace(path, indices=numbers(path.indices)),
            basis_indices_=numbers(taken),
            _terms_=terms,
            **known,
        )

    def _view_errors(self, known: KnownItems, candidate: CoPursuitCandidate, stages: int) -> Array:
        """Error of each view on held-out queries."""
        plan = QueryPlanner(Measure("disagreement"), known, self.regression_weight).few(self.cv)
        values = np.array([float(stages)])
        errors = []
        for alone in np.eye(len(candidate.views)):
            one = replace(candidate, weights=alone)
            errors.append(plan.curve(known, one, one.problem(known), values).mean[0])
        return np.array(errors)

    def _view_weights(self, errors: Array | None, n_views: int) -> Array:
        """Weights of the views; equal without held-out errors."""
        equal = np.full(n_views, 1.0 / n_views)
        if errors is None:
            return equal
        worth = np.maximum(1.0 - 2.0 * errors, 0.0)  # Kendall's tau
        if self.aggregation == "best":
            worth = (np.arange(n_views) == np.argmin(errors)).astype(np.float64)
        return worth / worth.sum() if worth.any() else equal


def feature_weights(terms: Terms, n: int) -> Array:
    """Weights of n features, most of which are zero."""
    out = np.zeros(n)
    out[terms.taken] = terms.coefficients[-1] if len(terms.coefficients) else 0.0
    return out


class _StagedSum:
    """Sum of terms that were selected stage by stage."""

    def _staged(self, X: ItemsLike, stages: slice) -> Array:
        """Scores after some stages, (rows, stages)."""
        raise NotImplementedError

    def predict(self, X: ItemsLike) -> Array:
        """Return scores of items, (m,); see :meth:`RankRLS.predict`."""
        return np.asarray(self._staged(X, _LAST).sum(axis=1))

    def staged_predict(self, X: ItemsLike) -> Iterator[Array]:
        """Yield scores of items, (m,), after each stage of the path; the last are those of :meth:`predict`."""
        yield from self._staged(X, slice(None)).T


class ViewPursuer(_StagedSum, KernelGraphEstimator, PartlyLabelledRanker):
    """A ranker whose function is a weighted mean of the functions of several views, each a sum of selected columns."""

    _accepts = Accepts(missing_labels=True, several_targets=False)

    path_: CoPursuitPath
    view_weights_: Array
    _terms_: list[Terms]

    @property
    def views_(self) -> tuple[ViewFunction, ...]:
        """Function of each view."""
        check_is_fitted(self, "path_")
        return tuple(ViewFunction(self, v) for v in range(len(self._terms_)))

    def _staged(self, X: ItemsLike, stages: slice) -> Array:
        check_is_fitted(self)
        X = check_matrix(self, X, self._accepts)
        parts = [terms.scores(X, stages) for terms in self._terms_]
        return np.tensordot(self.view_weights_, parts, axes=1)

    def _expansions(self) -> Iterator[tuple[Kernel | None, Index | None, Matrix, Array]]:
        """The sum over a kernel that each view adds to a score: kernel, features (None for all), items and
        coefficients. Empty without a stage.
        """
        for terms, weight in zip(self._terms_, self.view_weights_, strict=True) if self.path_.n_stages else ():
            yield terms.kernel, terms.features, terms.items, weight * terms.coefficients[-1]


@dataclass(frozen=True)
class ViewFunction(_StagedSum):
    """The function of one view of a fitted :class:`CoRankingPursuit` or :class:`CoRankingPursuitCV`.

    Attributes
    ----------
    model : estimator
    number : int
        Number of the view.
    """

    model: ViewPursuer
    number: int

    @property
    def coef_(self) -> Array:
        """Weights of the features, (n,), most of which are zero; dictionary="features"."""
        terms = self.model._terms_[self.number]
        if terms.kernel is not None:
            raise AttributeError("A view of kernel functions has no weights of features.")
        return feature_weights(terms, self.model.n_features_in_)

    @property
    def support_(self) -> Index:
        """Numbers of the features with nonzero weight, ascending; dictionary="features"."""
        return np.flatnonzero(self.coef_)

    def _staged(self, X: ItemsLike, stages: slice) -> Array:
        return self.model._terms_[self.number].scores(check_matrix(self.model, X, self.model._accepts), stages)


class CoRankingPursuit(ViewPursuer):
    r"""Semi-supervised ranking pursuit: views that fit the labelled rows and agree on the unlabelled ones.

    M functions, one per view, each a sum of at most P kernel columns or features, minimize

    .. math::

        \sum_v (y - f_v)' L (y - f_v) + \nu \sum_{v,u} (\bar f_v - \bar f_u)' \bar L (\bar f_v - \bar f_u) ,

    where the bar refers to the unlabelled rows and ``Lbar`` compares those of the same query. Each stage selects one
    column per view, which together lower the objective most, and then refits all coefficients of all views. The
    prediction is a mean of the views' functions (``aggregation``).

    Parameters
    ----------
    n_basis : int, default=10
        P, the number of stages.
    views : sequence of views, optional
        Views. A view is a list, slice or mask of features (or their names); or a kernel's name or function; or a dict
        with any of ``features``, ``kernel``, ``gamma``, ``degree``, ``coef0`` and ``kernel_params``. By default two
        views, the first and the second half of the features. Columns are those of labelled rows.
    nu : float, default=1.0
        Weight of the agreement; with 0 the views need not agree.
    dictionary : {"kernel", "features"}, default="kernel"
        Dictionary of columns. With "features", the columns are the features of a view, and each view is a linear
        function of few of them. A stage selects a feature for the first view, then one for the second, and so on,
        O(M N (n + l)) for N features; kernels and ``shared_basis`` are ignored. Several views of all features,
        ``({}, {})``, are several solutions; with ``disjoint`` they share no feature.
    disjoint : bool, default=False
        Whether a feature can be selected by one view only. The views are then several solutions without a common
        feature, each nearly as good (section 1 of the paper).
    aggregation : {"mean", "weighted", "best"}, default="mean"
        Aggregation of the views' functions: their mean; a mean weighted by 1 - 2 e, at least 0, with each view's
        disagreement error e on held-out queries; or the view with the smallest error. The last two fit 5 folds of the
        labelled queries (or ``cv``) for each view.
    shared_basis : bool, default=True
        Whether a stage selects the same row in every view, O(P M^3 n l). Otherwise all combinations of rows are tried,
        O(n^M) of them, up to 4 million.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`, default="rbf"
        Kernel of views without their own; not precomputed.
    ties, balance, regression_weight : as in :class:`RankRLS`
        Graph of the labelled rows; all pairs of unlabelled rows of a query are compared.
    backfit : bool, default=True
        Whether all coefficients are refitted at each stage.

    Attributes
    ----------
    views_ : tuple of ViewFunction
        Functions of the views, each with ``predict`` and ``staged_predict``.
    path_ : CoPursuitPath
        ``indices`` (stages, M), ``coefficients``, ``losses`` (the objective) and ``view_losses`` of every stage.
    basis_indices_ : ndarray of shape (r,), intp
        Rows, or features, selected by any view, in the order of selection.
    X_fit_ : ndarray or sparse array of shape (r, n)
        The selected rows; dictionary="kernel".
    coef_ : ndarray of shape (n,)
        Weights of the features; dictionary="features". Each of ``views_`` has its own ``coef_`` and ``support_``.
    view_weights_ : ndarray of shape (M,)
        Weights of the views in the prediction; they sum to 1.
    view_errors_ : ndarray of shape (M,)
        Disagreement error of each view on held-out labelled queries, unless ``aggregation`` is "mean".
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    See Also
    --------
    CoRankingPursuitCV : Choose the number of stages and nu.
    CoRankRLS : Views that agree, without selection of terms.

    Notes
    -----
    Memory is 8 N (n + l) bytes per view for N columns, n labelled and l unlabelled rows; time is linear in the
    unlabelled rows. Without unlabelled rows, the views agree on the labelled ones. One view, or ``nu=0`` without a
    shared basis, is :class:`RankingPursuit`.

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

    _checks = KERNEL | GRAPH | {"n_basis": count, "nu": number(least=0.0)} | _CHECKS

    def __init__(
        self,
        n_basis: int = 10,
        *,
        nu: float = 1.0,
        views: Sequence[View] | None = None,
        dictionary: str = "kernel",
        disjoint: bool = False,
        aggregation: str = "mean",
        shared_basis: bool = True,
        kernel: KernelLike = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: Params | None = None,
        backfit: bool = True,
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
    ) -> None:
        self.n_basis = n_basis
        self.nu = nu
        self.views = views
        self.dictionary = dictionary
        self.disjoint = disjoint
        self.aggregation = aggregation
        self.shared_basis = shared_basis
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.backfit = backfit
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight

    def _spec(self) -> CoPursuitSpec:
        return _spec_of(self, self.n_basis)


class CoRankingPursuitCV(ChosenAttributes, ViewPursuer):
    r"""Ranking pursuit in several views, with terms and agreement selected by folds of labelled queries.

    Has the same objective as :class:`CoRankingPursuit`. Each fold is one run, whose path is evaluated after every stage
    ("P is estimated using a cross-validation procedure", section 3.1). A held-out query loses its labels and remains
    among the unlabelled rows.

    Parameters
    ----------
    max_basis : int, default=50
        Maximum number of stages to choose from.
    nu : float or tuple, default=(0.0, 0.01, 0.1, 1.0)
        Weights of the agreement to choose from; with 0 the views need not agree.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        Held-out units. None is 5 folds of the labelled queries (each query alone if there are no more), and of rows for
        one ranking; an int is a number of folds. Folds given as rows are row numbers of X; rows without a label are
        ignored. Every fold is refitted.
    scoring, verbose : as in :class:`RankRLSCV`
    rule : {"best", "one_se"}, default="best"
        Selection rule; "one_se" selects the fewest stages whose measure is within one standard error of the best.
    kernel, gamma, degree, coef0, ties, balance : as in :class:`CoRankingPursuit`, or a tuple of values to choose from
        Kernel parameters apply to views without their own kernel.
    views, dictionary, disjoint, aggregation, shared_basis, backfit, kernel_params, regression_weight : as in
        :class:`CoRankingPursuit`

    Attributes
    ----------
    best_params_ : dict
        ``n_basis`` (stages), ``nu``, ties, balance and the selected parameters of the kernel.
    n_basis_at_edge_ : bool
        Whether ``max_basis`` was selected. If so, increase it.
    n_basis_ : int
        Number of distinct columns selected by any view.
    held_out_scores_ : ndarray of shape (m,) or None
        Scores of the labelled rows of X by models without the labels of their query; NaN for unlabelled rows.
    nu_at_edge_ : bool
        Whether the selected nu is at an end of its grid.
    cv_results_, best_score_, best_score_error_, best_index_, selection_, query_scores_ : as in
        :class:`RankingPursuitCV`
    views_, path_, basis_indices_, X_fit_, coef_, view_weights_, view_errors_, n_queries_, n_features_in_,
    feature_names_in_ : as in :class:`CoRankingPursuit`

    See Also
    --------
    CoRankingPursuit : Fit given parameters.
    CoRankRLS : Views that agree, without selection of terms.

    Notes
    -----
    One pursuit per fold and one on all rows, for each combination. If measures are equal, the fewest stages are
    selected, then the smallest ``nu``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import CoRankingPursuitCV
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(200, 6)), np.repeat(np.arange(40), 5)
    >>> y = np.where(qid < 8, X.sum(axis=1) + rng.normal(size=200), np.nan)
    >>> model = CoRankingPursuitCV(10, gamma=0.1, nu=(0.0, 0.1)).fit(X, y, qid=qid)
    >>> model.selection_, sorted(model.best_params_)
    ('5 folds of 8 queries', ['balance', 'n_basis', 'nu', 'ties'])
    """

    _checks = GRAPHS | SELECTION | {"max_basis": count, "nu": EachOf(number(least=0.0))} | _CHECKS

    def __init__(
        self,
        max_basis: int = 50,
        *,
        nu: Several[float] = (0.0, 0.01, 0.1, 1.0),
        views: Sequence[View] | None = None,
        dictionary: str = "kernel",
        disjoint: bool = False,
        aggregation: str = "mean",
        shared_basis: bool = True,
        kernel: Several[KernelLike] = "rbf",
        gamma: Several[float | None] = None,
        degree: Several[int] = 3,
        coef0: Several[float] = 1.0,
        kernel_params: Params | None = None,
        backfit: bool = True,
        ties: Several[str] = "include",
        balance: Several[str] = "examples",
        regression_weight: float = 0.0,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        cv: FoldsLike = None,
        verbose: int = 0,
    ) -> None:
        self.max_basis = max_basis
        self.nu = nu
        self.views = views
        self.dictionary = dictionary
        self.disjoint = disjoint
        self.aggregation = aggregation
        self.shared_basis = shared_basis
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.backfit = backfit
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.scoring = scoring
        self.rule = rule
        self.cv = cv
        self.verbose = verbose

    def _spec(self) -> CoPursuitSpec:
        spec = _spec_of(self, self.max_basis)
        return spec.choosing(None, self.scoring, self.rule, self.cv, self.verbose)


def _spec_of(model: CoRankingPursuit | CoRankingPursuitCV, n_basis: int) -> CoPursuitSpec:
    """Specification from the parameters that both classes have, with a maximum number of terms per view."""
    kernels = model._kernels()
    of_features = model.dictionary == "features"
    if model.disjoint and not of_features:
        problem = "disjoint=True keeps the features of views apart, so it needs dictionary='features'."
        raise InputError(problem, parameter="disjoint")
    return CoPursuitSpec(
        name=type(model).__name__,
        accepts=model._accepts,
        graphs=model._graphs(),
        kernels=kernels,
        views=model.views,
        nus=tuple(sorted(float(value) for value in options(model.nu, "nu"))),
        settings=CoPursuitSettings(
            int(n_basis), of_features, bool(model.backfit), bool(model.shared_basis), bool(model.disjoint)
        ),
        aggregation=model.aggregation,
    )
