"""Views that agree on labelled and unlabelled rows: co-regularized RankRLS, and ranking pursuit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankrls._checks import check_word
from rankrls._comparisons import Data, Features, KnownItems
from rankrls._errors import InputError
from rankrls._rows import take_items
from rankrls._typing import (
    Array,
    FoldsLike,
    Index,
    ItemsLike,
    Matrix,
    RandomState,
    Values,
)
from rankrls.kernels import Kernel, check_kernel, resolve_kernel
from rankrls.learners.consensus import ConsensusCandidate, Views
from rankrls.learners.paths import CoPursuitPath, PathSolutions, select_features
from rankrls.learners.pursuit import CoPursuitCandidate, CoPursuitSettings, Terms, ViewPlan, ViewSolutions
from rankrls.models.fitted import ChosenAttributes, Fitted
from rankrls.models.intake import check_matrix
from rankrls.models.parameters import (
    GRAPH,
    GRAPHS,
    KERNEL,
    SELECTION,
    Check,
    Columns,
    Grid,
    KernelLike,
    Scoring,
    Several,
    View,
    auto_or,
    check_seed,
    count,
    descending_grid,
    each_of,
    flag,
    number,
    options,
    word,
)
from rankrls.models.partly_labelled import PartlyLabelledRanker
from rankrls.models.ranker import KernelGraphEstimator
from rankrls.models.ranking_pursuit import DICTIONARIES
from rankrls.models.spec import Accepts, KernelSettings, SearchSpec, Solved
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.scorer import expansion_scores
from rankrls.selection.basis import random_numbers
from rankrls.selection.plans import Plan, Planner

_KEYS = ("features", "kernel", "gamma", "degree", "coef0")

_AGREEMENTS = (0.1, 1.0, 10.0, 100.0)
"""Weights of the agreement, relative to the mean diagonal entry of the centred kernels of the views."""
_CHECKS: dict[str, Check] = {
    "dictionary": word(DICTIONARIES),
    "disjoint": flag,
    "shared_basis": flag,
    "backfit": flag,
}
_LAST = slice(-1, None)
"""The last stage, if there is one; without stages, the sum over it is 0."""


def view_plans(views: Sequence[View] | None, features: Features, kernel: Values) -> list[ViewPlan]:
    """Resolve the views of an estimator; None means the two halves of the features.

    ``kernel`` has the parameters of the kernel of views without their own.
    """
    n = features.count or 0
    if views is None:
        half = (n + 1) // 2
        views = (slice(0, half), slice(half, None)) if n > 1 else ({},)
    if isinstance(views, (str, Mapping)) or not np.iterable(views):
        raise InputError(f"views must be a sequence of views; got {views!r}.", parameter="views")
    plans = [_plan(f"views[{v}]", view, features, kernel) for v, view in enumerate(views)]
    if not plans:
        raise InputError("views is empty: at least one view is needed.", parameter="views")
    return plans


def _plan(where: str, view: View, known: Features, kernel: Values) -> ViewPlan:
    if isinstance(view, str) or callable(view):
        view = {"kernel": view}
    elif not isinstance(view, Mapping):
        view = {"features": view}
    for key in view:
        check_word("views", key, _KEYS)
    given = {**kernel, **view}
    features = _numbers(where, given.pop("features", None), known)
    try:
        check_kernel(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}", parameter="views") from None
    if isinstance(given["kernel"], str) and given["kernel"] == "precomputed":
        raise InputError(f"{where}: views need features, and a precomputed kernel has none.", parameter="kernel")
    shape = np.empty((0, known.count or 0 if features is None else len(features)))
    return ViewPlan(features, resolve_kernel(shape, **given))


def _numbers(where: str, given: Columns | None, features: Features) -> Index | None:
    """Numbers of features, from an index of a numpy array or from names."""
    if given is None:
        return None
    n = features.count or 0
    index = given if isinstance(given, slice) else np.asarray(given)
    if isinstance(index, np.ndarray) and index.dtype.kind in "UO":
        names = () if features.names is None else features.names
        known = {name: k for k, name in enumerate(names)}
        index = np.array([known.get(name, n) for name in index.tolist()])
    try:
        numbers = np.arange(n, dtype=np.intp)[index]
    except IndexError:
        numbers = np.empty(0, dtype=np.intp)
    if numbers.ndim != 1 or not len(numbers):
        problem = f"Features of {where} must be a slice, a mask, or numbers below {n} or known names; got {given!r}."
        raise InputError(problem, parameter="views")
    return numbers


@dataclass(frozen=True, eq=False, kw_only=True)
class ConsensusSpec(SearchSpec[PathSolutions[None]]):
    """All agreements of the views and graphs.

    Attributes
    ----------
    agreements : tuple of float, or None
        Values of mu, ascending; None for an automatic grid.
    views : sequence, or None
        Views; None for random halves of the features.
    n_views : int
    random_state : int, Generator or RandomState
    kernel : dict
        Parameters of the kernel of views without their own.
    """

    agreements: tuple[float, ...] | None
    views: Sequence[View] | None
    n_views: int
    random_state: RandomState
    kernel: Values

    def plans(self, features: Features) -> list[ViewPlan]:
        """Views of the given features."""
        views = self.views
        if views is None:
            rng = random_numbers(self.random_state)
            n = features.count or 0
            views = [np.sort(rng.permutation(n)[: (n + 1) // 2]) for _ in range(self.n_views)]
        return view_plans(views, features, self.kernel)

    def plan(self, planner: Planner[Data]) -> Plan:
        settings = [setting for setting, _ in self.graphs]
        # a shortcut for pairs would evaluate the consensus rather than the prediction
        return planner.exact(self.cv, settings, constrained=True)

    def candidates(self, data: Data) -> Iterator[ConsensusCandidate]:
        assert isinstance(data, KnownItems)
        all_items = data.all_items
        queries = np.unique(all_items.layout.codes, return_inverse=True)[1]
        graph = LabelledGraph.build(np.zeros(all_items.n_rows), queries, weights=all_items.weights)
        plans = self.plans(data.features)
        make = [partial(plan.kernel, select_features(all_items.X, plan.features)) for plan in plans]
        views = Views(make, graph)
        for mu in self._values_of_mu(views):
            consensus = views.agree(mu)
            for setting, chosen in data.settings(self.graphs):
                yield ConsensusCandidate(choices={**chosen, "mu": mu}, consensus=consensus, setting=setting)
            del consensus  # one matrix per view, freed before those of the next agreement

    def _values_of_mu(self, views: Views) -> tuple[float, ...]:
        """Values of mu to try, with the weakest agreement first."""
        if self.agreements is not None:
            return self.agreements
        scale = float(f"{views.scale:.6g}")  # equal for every order of the rows
        return tuple(weight / scale for weight in _AGREEMENTS) if scale > 0.0 else (1.0,)

    def fitted(self, data: Data, solved: Solved[PathSolutions[None]]) -> Fitted:
        assert isinstance(data, KnownItems)
        candidate = solved.candidate
        assert isinstance(candidate, ConsensusCandidate)
        assert solved.found is not None
        views = self.plans(data.features)
        Z = data.all_items.X
        h = candidate.consensus.kernel[:, data.numbers] @ solved.solutions.coefficients[0]
        coefficients = np.hstack(candidate.consensus.view_coefficients(h))
        function: Values = {"dual_coef_": coefficients, "X_fit_": Z}
        if all(plan.kernel.is_linear for plan in views):
            weights = np.zeros(Z.shape[1])
            for plan, a in zip(views, coefficients.T, strict=True):
                features = slice(None) if plan.features is None else plan.features
                weights[features] += select_features(Z, plan.features).T @ a
            function = {"coef_": weights}
        return Fitted.of(
            data,
            mu_=float(candidate.choices["mu"]),
            mu_at_edge_=solved.found.edges.get("mu", False),
            _view_kernels_=[plan.kernel for plan in views],
            _view_features_=[plan.features for plan in views],
            **function,
        )


class CoRankRLS(ChosenAttributes, KernelGraphEstimator, PartlyLabelledRanker):
    r"""Co-regularized RankRLS: several views that agree on labelled and unlabelled rows.

    Minimizes, over a function :math:`f_v` for each of M views and their consensus h on all rows Z,

    .. math::

        \lVert F ( y - h_S ) \rVert^2 + \frac{\alpha}{M} \sum_v \left[ \lVert f_v \rVert^2
        + \mu \lVert C ( f_v(Z) - h ) \rVert^2 \right] ,

    with S the labelled rows and C the centring of Z within its queries, by weighted means and in the weighted norm if
    rows have weights. The prediction is the mean of the views' functions. This method helps if few queries are labelled
    and many rows are not. With many labelled queries, :class:`RankRLSCV` is as good.

    Parameters
    ----------
    alphas : "auto" or array-like, default="auto"
        Positive regularization values to choose from.
    mu : "auto", float or tuple, default="auto"
        Positive weights of the agreement to choose from. "auto" is 0.1, 1, 10 and 100 over the mean diagonal entry of
        the centred kernels of the views.
    views : sequence of views, optional
        Views as in :class:`CoRankingPursuit`. None draws ``n_views`` random halves of the features.
    n_views : int, default=16
        Number of random views, M, if ``views`` is None.
    kernel, gamma, degree, coef0 : as in :class:`RankRLS`
        Kernel of views without their own; not precomputed.
    ties, balance, regression_weight : as in :class:`RankRLS`; ties and balance may be tuples to choose from
    cv, scoring, rule : as in :class:`RankRLSCV`
        Parameters of the selection, in which only labelled queries are evaluated.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the random halves.

    Attributes
    ----------
    alpha_, mu_ : float
    alpha_at_edge_, mu_at_edge_ : bool
    best_params_, best_score_, best_score_error_, best_index_, cv_results_, selection_, query_scores_ : as in
        :class:`RankRLSCV`
    held_out_scores_ : ndarray of shape (m,)
        Scores of the labelled rows of X by models without the labels of their query; NaN for unlabelled rows.
    coef_ : ndarray of shape (n,)
        Weights of the features, if the kernels of all views are linear.
    dual_coef_ : ndarray of shape (rows of Z, M)
        Coefficients of the rows in each view, otherwise.
    X_fit_ : ndarray or sparse array
        The rows Z, if the kernel of a view is not linear.
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    See Also
    --------
    TransductiveRankRLS : Find labels for the unlabelled queries.
    CoRankingPursuit : Views that agree, with few terms.

    Notes
    -----
    O(M l^3) for l rows in total per ``mu``, and ``8 (M + 3) l^2`` bytes; O(s^3) for s labelled rows and all alphas.
    Held-out queries remain among the unlabelled rows. To evaluate new queries, use folds that leave their rows out of
    ``X``. One labelled query, or one global ranking, is evaluated by 5 folds of rows. Rows of weight zero are left out
    of Z too.

    References
    ----------
    Sindhwani and Rosenberg 2008: An RKHS for multi-view learning and manifold co-regularization. Tsivtsivadze, Heskes:
    Semi-supervised ranking pursuit.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import CoRankRLS
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(200, 12)), np.repeat(np.arange(40), 5)
    >>> y = np.where(qid < 6, X.sum(axis=1) + rng.normal(size=200), np.nan)  # 6 of 40 queries are labelled
    >>> model = CoRankRLS(n_views=4).fit(X, y, qid=qid)
    >>> model.selection_, model.predict(X).shape
    ('leave-query-out over 6 queries', (200,))
    """

    _accepts = Accepts(missing_labels=True, several_targets=False)
    _checks = (
        KERNEL
        | GRAPHS
        | SELECTION
        | {"mu": auto_or(each_of(number(above=0.0))), "n_views": count, "random_state": check_seed}
    )

    alpha_: float
    _view_kernels_: list[Kernel]
    _view_features_: list[Index | None]

    def __init__(
        self,
        alphas: Grid = "auto",
        *,
        mu: Several[float | str] = "auto",
        views: Sequence[View] | None = None,
        n_views: int = 16,
        kernel: KernelLike = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        ties: Several[str] = "include",
        balance: Several[str] = "examples",
        regression_weight: float = 0.0,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        cv: FoldsLike = None,
        random_state: RandomState = 0,
    ) -> None:
        self.alphas = alphas
        self.mu = mu
        self.views = views
        self.n_views = n_views
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.scoring = scoring
        self.rule = rule
        self.cv = cv
        self.random_state = random_state

    def _spec(self) -> ConsensusSpec:
        (kernel,) = self._kernels()
        automatic = isinstance(self.mu, str) and self.mu == "auto"
        return ConsensusSpec(
            name=type(self).__name__,
            accepts=self._accepts,
            graphs=self._graphs(),
            agreements=None if automatic else tuple(sorted(float(value) for value in options(self.mu, "mu"))),
            views=self.views,
            n_views=int(self.n_views),
            random_state=self.random_state,
            kernel=kernel,
        ).choosing(descending_grid(self.alphas, positive=True), self.scoring, self.rule, self.cv)

    def predict(self, X: ItemsLike) -> Array:
        """Score items by the mean of the views' functions; see :meth:`RankRLS.predict`."""
        check_is_fitted(self)
        rows = check_matrix(self, X, self._accepts)
        if "coef_" in vars(self):
            return np.asarray(rows @ self.coef_)
        parts = self._expansions()
        return np.asarray(sum(expansion_scores(select_features(rows, f), k.columns(Z), a) for k, f, Z, a in parts))

    def _expansions(self) -> Iterator[tuple[Kernel, Index | None, Matrix, Array]]:
        """The sum over its kernel that each view adds to a score: kernel, features (None for all), items, coefficients.

        For kernels other than linear.
        """
        for kernel, features, a in zip(self._view_kernels_, self._view_features_, self.dual_coef_.T, strict=True):
            yield kernel, features, select_features(self.X_fit_, features), a


@dataclass(frozen=True, eq=False, kw_only=True)
class CoPursuitSpec(SearchSpec[ViewSolutions]):
    """All kernels of the views, weights of their agreement and graphs.

    Attributes
    ----------
    kernels : KernelSettings
        Kernels of views without their own.
    views : sequence, or None
        Views; None for both halves of the features.
    nus : tuple of float
        Weights of the agreement, ascending.
    settings : CoPursuitSettings
    """

    kernels: KernelSettings
    views: Sequence[View] | None
    nus: tuple[float, ...]
    settings: CoPursuitSettings

    def candidates(self, data: Data) -> Iterator[CoPursuitCandidate]:
        several = [name for name in self.kernels[0] if len({kernel[name] for kernel in self.kernels}) > 1]
        for kernel in self.kernels:
            views = view_plans(self.views, data.features, kernel)
            chosen_kernel = {name: kernel[name] for name in several}
            for nu in self.nus:
                for setting, chosen in data.settings(self.graphs):
                    choices = {**chosen_kernel, **chosen, "nu": nu}
                    yield CoPursuitCandidate(
                        choices=choices, setting=setting, settings=self.settings, views=views, nu=nu
                    )

    def fitted(self, data: Data, solved: Solved[ViewSolutions]) -> Fitted:
        assert isinstance(data, KnownItems)
        assert isinstance(solved.candidate, CoPursuitCandidate)
        all_items = data.all_items
        path = solved.solutions.details[0]
        terms = solved.candidate.terms(path, all_items.X)
        taken, first = np.unique(path.indices, return_index=True)
        taken = taken[np.argsort(first)]
        known: Values = {}
        numbers: Callable[[Index], Index] = np.asarray
        if self.settings.of_features:
            known["view_coef_"] = np.array([each.feature_weights(all_items.X.shape[1]) for each in terms])
            known["coef_"] = known["view_coef_"].mean(axis=0)
        else:
            numbers = all_items.given_numbers
            known["X_fit_"] = take_items(all_items.X, taken)
        if solved.found is not None:
            stages = int(solved.value)
            known["best_params_"] = {**solved.found.best_choices, "n_basis": stages}
            known["n_basis_"] = len(taken)
            known["n_basis_at_edge_"] = stages == self.settings.n_basis and path.n_stages == stages
        return Fitted.of(
            data,
            path_=replace(path, indices=numbers(path.indices)),
            basis_indices_=numbers(taken),
            _terms_=terms,
            **known,
        )


class ViewPursuer(KernelGraphEstimator, PartlyLabelledRanker):
    """A ranker whose function is the mean of the functions of several views, each a sum of selected columns."""

    _accepts = Accepts(missing_labels=True, several_targets=False)

    dictionary: str
    disjoint: bool
    views: Sequence[View] | None
    backfit: bool
    shared_basis: bool
    nu: Several[float]

    path_: CoPursuitPath
    view_coef_: Array
    _terms_: list[Terms]

    def _pursuit(self, n_basis: int) -> CoPursuitSpec:
        """Specification with a maximum number of terms per view."""
        kernels = self._kernels()
        of_features = self.dictionary == "features"
        if self.disjoint and not of_features:
            problem = "disjoint=True keeps the features of views apart, so it needs dictionary='features'."
            raise InputError(problem, parameter="disjoint")
        return CoPursuitSpec(
            name=type(self).__name__,
            accepts=self._accepts,
            graphs=self._graphs(),
            kernels=kernels,
            views=self.views,
            nus=tuple(sorted(float(value) for value in options(self.nu, "nu"))),
            settings=CoPursuitSettings(
                n_basis=int(n_basis),
                of_features=of_features,
                backfit=bool(self.backfit),
                shared_basis=bool(self.shared_basis),
                disjoint=bool(self.disjoint),
            ),
        )

    def _staged(self, X: ItemsLike, view: int | None, stages: slice) -> Array:
        """Scores after some stages, (rows, stages)."""
        check_is_fitted(self)
        X = check_matrix(self, X, self._accepts)
        views = self._terms_ if view is None else [self._terms_[view]]
        return np.asarray(np.mean([terms.scores(X, stages) for terms in views], axis=0))

    def predict(self, X: ItemsLike, *, view: int | None = None) -> Array:
        """Return scores of items.

        Parameters
        ----------
        X : as for :meth:`RankRLS.predict`
        view : int, optional
            Number of a view, whose function is used alone; by default, the mean of all.

        Returns
        -------
        ndarray of shape (m,)
        """
        return np.asarray(self._staged(X, view, _LAST).sum(axis=1))

    def staged_predict(self, X: ItemsLike, *, view: int | None = None) -> Iterator[Array]:
        """Yield scores of items, (m,), after each stage of the path; the last are those of :meth:`predict`.

        Parameters
        ----------
        X, view : as for :meth:`predict`
        """
        yield from self._staged(X, view, slice(None)).T

    def _expansions(self) -> Iterator[tuple[Kernel | None, Index | None, Matrix, Array]]:
        """The sum over a kernel that each view adds to a score: kernel, features (None for all), items and
        coefficients. Empty without a stage.
        """
        for terms in self._terms_ if self.path_.n_stages else ():
            yield terms.kernel, terms.features, terms.items, terms.coefficients[-1] / len(self._terms_)


class CoRankingPursuit(ViewPursuer):
    r"""Semi-supervised ranking pursuit: views that fit the labelled rows and agree on the unlabelled ones.

    M functions, one per view, each a sum of at most P kernel columns or features, minimize

    .. math::

        \sum_v (y - f_v)' L (y - f_v) + \nu \sum_{v,u} (\bar f_v - \bar f_u)' \bar L (\bar f_v - \bar f_u) ,

    where the bar refers to the unlabelled rows and ``Lbar`` compares those of the same query. Each stage selects one
    column per view, which together lower the objective most, and then refits all coefficients of all views. The
    prediction is the mean of the views' functions.

    Parameters
    ----------
    n_basis : int, default=10
        P, the number of stages.
    views : sequence of views, optional
        Views. A view is a list, slice or mask of features (or their names); or a kernel's name or function; or a dict
        with any of ``features``, ``kernel``, ``gamma``, ``degree`` and ``coef0``. By default two
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
    shared_basis : bool, default=True
        Whether a stage selects the same row in every view, O(P M^3 n l). Otherwise all combinations of rows are tried,
        O(n^M) of them, up to 4 million.
    kernel, gamma, degree, coef0 : as in :class:`RankRLS`, default="rbf"
        Kernel of views without their own; not precomputed.
    ties, balance, regression_weight : as in :class:`RankRLS`
        Graph of the labelled rows; all pairs of unlabelled rows of a query are compared.
    backfit : bool, default=True
        Whether all coefficients are refitted at each stage.

    Attributes
    ----------
    path_ : CoPursuitPath
        ``indices`` (stages, M), ``coefficients``, ``losses`` (the objective) and ``view_losses`` of every stage.
    basis_indices_ : ndarray of shape (r,), intp
        Rows, or features, selected by any view, in the order of selection.
    X_fit_ : ndarray or sparse array of shape (r, n)
        The selected rows; dictionary="kernel".
    coef_ : ndarray of shape (n,)
        Weights of the features; dictionary="features". The mean of ``view_coef_``.
    view_coef_ : ndarray of shape (M, n)
        Weights of the features in each view; dictionary="features".
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
    >>> model.path_.indices.shape
    (4, 2)
    >>> np.allclose(model.predict(X), np.mean([model.predict(X, view=v) for v in range(2)], axis=0))
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
        shared_basis: bool = True,
        kernel: KernelLike = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
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
        self.shared_basis = shared_basis
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.backfit = backfit
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight

    def _spec(self) -> CoPursuitSpec:
        return self._pursuit(self.n_basis)


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
    scoring : as in :class:`RankRLSCV`
    rule : {"best", "one_se"}, default="best"
        Selection rule; "one_se" selects the fewest stages whose measure is within one standard error of the best.
    kernel, gamma, degree, coef0, ties, balance : as in :class:`CoRankingPursuit`, or a tuple of values to choose from
        Kernel parameters apply to views without their own kernel.
    views, dictionary, disjoint, shared_basis, backfit, regression_weight : as in
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
    path_, basis_indices_, X_fit_, coef_, view_coef_, n_queries_, n_features_in_,
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

    _checks = GRAPHS | SELECTION | {"max_basis": count, "nu": each_of(number(least=0.0))} | _CHECKS

    def __init__(
        self,
        max_basis: int = 50,
        *,
        nu: Several[float] = (0.0, 0.01, 0.1, 1.0),
        views: Sequence[View] | None = None,
        dictionary: str = "kernel",
        disjoint: bool = False,
        shared_basis: bool = True,
        kernel: Several[KernelLike] = "rbf",
        gamma: Several[float | None] = None,
        degree: Several[int] = 3,
        coef0: Several[float] = 1.0,
        backfit: bool = True,
        ties: Several[str] = "include",
        balance: Several[str] = "examples",
        regression_weight: float = 0.0,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        cv: FoldsLike = None,
    ) -> None:
        self.max_basis = max_basis
        self.nu = nu
        self.views = views
        self.dictionary = dictionary
        self.disjoint = disjoint
        self.shared_basis = shared_basis
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.backfit = backfit
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.scoring = scoring
        self.rule = rule
        self.cv = cv

    def _spec(self) -> CoPursuitSpec:
        return self._pursuit(self.max_basis).choosing(None, self.scoring, self.rule, self.cv)
