"""Co-regularized RankRLS: views that agree on labelled and unlabelled rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Data, Features, KnownItems
from rankrls._typing import Array, FoldsLike, Index, ItemsLike, Matrix, Params, RandomState, Values
from rankrls.kernels import Kernel
from rankrls.learners.consensus import ConsensusCandidate, Views
from rankrls.learners.paths import PathSolutions, select_features
from rankrls.learners.pursuit import ViewPlan
from rankrls.models.fitted import ChosenAttributes, Fitted
from rankrls.models.intake import check_matrix
from rankrls.models.parameters import (
    GRAPHS,
    KERNEL,
    SELECTION,
    EachOf,
    Grid,
    KernelLike,
    Scoring,
    Several,
    View,
    auto_or,
    check_seed,
    count,
    descending_grid,
    number,
    options,
)
from rankrls.models.partly_labelled import PartlyLabelledRanker, view_plans
from rankrls.models.ranker import KernelGraphEstimator
from rankrls.models.spec import Accepts, KernelGrid, SearchSpec, Solved
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.scorer import expansion_scores
from rankrls.selection.basis import random_numbers
from rankrls.selection.plans import Plan, Planner

_AGREEMENTS = (0.1, 1.0, 10.0, 100.0)
"""Weights of the agreement, relative to the mean diagonal entry of the centred kernels of the views."""


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
    kernel : KernelGrid
        Kernel of views without their own.
    """

    agreements: tuple[float, ...] | None
    views: Sequence[View] | None
    n_views: int
    random_state: RandomState
    kernel: KernelGrid

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
        everything = data.everything
        queries = np.unique(everything.layout.codes, return_inverse=True)[1]
        graph = LabelledGraph.build(np.zeros(everything.n_rows), queries, weights=everything.weights)
        plans = self.plans(data.features)
        make = [partial(plan.kernel, select_features(everything.X, plan.features)) for plan in plans]
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
        Z = data.everything.X
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
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`
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
        | {"mu": EachOf(auto_or(number(above=0.0))), "n_views": count, "random_state": check_seed}
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
        kernel_params: Params | None = None,
        ties: Several[str] = "include",
        balance: Several[str] = "examples",
        regression_weight: float = 0.0,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        cv: FoldsLike = None,
        verbose: int = 0,
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
        self.kernel_params = kernel_params
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.scoring = scoring
        self.rule = rule
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    def _spec(self) -> ConsensusSpec:
        kernel = self._kernels()
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
        ).choosing(descending_grid(self.alphas, positive=True), self.scoring, self.rule, self.cv, self.verbose)

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
