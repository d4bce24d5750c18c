"""Co-regularised RankRLS: views of labelled and unlabelled rows that agree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import LabelledItems, Setting
from rankrls.kernels import Kernel
from rankrls.learners.consensus import Consensus, ConsensusProblem, Views
from rankrls.learners.copursuit import ViewPlan
from rankrls.learners.paths import select_features
from rankrls.metrics import resolve_measure
from rankrls.models import fitting
from rankrls.models.parameters import (
    KernelParameters,
    SelectionParameters,
    check_seed,
    estimator,
    number,
    options,
    parameter,
)
from rankrls.models.partly_labelled import PartlyLabelled, PartlyLabelledRanker, view_plans
from rankrls.models.ranker import Candidate
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.scorer import expansion_scores
from rankrls.selection.basis import permuting
from rankrls.selection.plans import exact_plan
from rankrls.selection.search import search

_AGREEMENTS = (0.1, 1.0, 10.0, 100.0)
"""Weights of the agreement, relative to the mean square of the centred views."""


def _auto_or_positive(name: str, value: Any) -> None:
    if not (isinstance(value, str) and value == "auto"):
        number(above=0.0)(name, value)


@estimator
class CoRankRLS(PartlyLabelledRanker, KernelParameters, SelectionParameters):
    r"""Co-regularised RankRLS: several views of labelled and unlabelled rows that agree on all of them.

    Minimises, over a function :math:`f_v` for each of M views and their consensus h on all rows Z,

    .. math::

        \lVert F ( y - h_S ) \rVert^2 + \frac{\alpha}{M} \sum_v \left[ \lVert f_v \rVert^2
        + \mu \lVert C ( f_v(Z) - h ) \rVert^2 \right] ,

    with S the labelled rows and C the centring of Z within its queries, by weighted means and in the weighted norm if
    rows have weights. The prediction is the mean of the views' functions. It helps if few queries are labelled and many
    rows are not. With many labelled queries, :class:`RankRLSCV` is as good.

    Parameters
    ----------
    alphas : "auto" or array-like, default="auto"
        Regularization values to choose from, positive.
    mu : "auto", float or tuple, default="auto"
        Weights of the agreement to choose from, positive. "auto" is 0.1, 1, 10 and 100 over the mean diagonal entry of
        the views' centred kernels.
    views : sequence of views, optional
        As in :class:`CoRankingPursuit`. None draws ``n_views`` random halves of the features.
    n_views : int, default=16
        M, if there are no ``views``.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`
        For views without their own kernel; not precomputed.
    ties, balance, regression_weight : as in :class:`RankRLS`; tuples of ties and balance are chosen from
    cv, scoring, rule : as in :class:`RankRLSCV`
        Only labelled queries are evaluated.
    random_state : int, Generator, RandomState or None, default=0
        Draws the halves.

    Attributes
    ----------
    alpha_, mu_ : float
    alpha_at_edge_, mu_at_edge_ : bool
    best_params_, best_score_, best_score_error_, best_index_, cv_results_, selection_, query_scores_ : as in
        :class:`RankRLSCV`
    held_out_scores_ : ndarray of shape (m,)
        Scores of the labelled rows of X by models without their query's labels; NaN for unlabelled rows.
    coef_ : ndarray of shape (n,)
        Weights of the features if the kernels of all views are linear.
    dual_coef_ : ndarray of shape (rows of Z, M)
        Coefficients of the rows in each view; kernels other than linear.
    X_fit_ : ndarray or sparse array
        The rows Z; kernels other than linear.
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Notes
    -----
    O(M l^3) for l rows in all and each ``mu``, and ``8 (M + 3) l^2`` bytes. O(s^3) for s labelled rows and all alphas.
    Held-out queries stay among the unlabelled rows. To evaluate new queries, use folds that leave their rows out of
    ``X``. One labelled query, and one global ranking, are evaluated by 5 folds of rows. Rows of weight zero are left
    out of Z too.

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

    _single_target = True

    alphas: Any = parameter(default="auto", kw_only=False)
    mu: Any = parameter(default="auto", check=_auto_or_positive, several=True)
    views: Any = parameter(default=None)
    n_views: int = parameter(default=16, least=1, whole=True)
    random_state: Any = parameter(default=0, check=check_seed)

    def _solve(self, rows: PartlyLabelled) -> None:
        alphas, measure, data = fitting.alphas_of(self, positive=True), resolve_measure(self.scoring), rows.known
        plans = self._plans(rows.everything.X.shape[1])
        settings = [setting for setting, _ in fitting.settings_of(self, data)]
        # pairs that are held out without refitting would be evaluated by the consensus, not by the prediction
        plan = exact_plan(self.cv, measure, data, settings, constrained=True)
        results = search(self._candidates(rows, plans), data, plan, self.rule, alphas, int(self.verbose))
        fitting.begin(self, data)
        self._store(rows, plans, results)
        fitting.publish(self, results, plan.description, data)
        self.mu_ = float(self.best_params_["mu"])
        self.mu_at_edge_ = results.edges.get("mu", False)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score items by the mean of the views' functions; as :meth:`RankRLS.predict`."""
        check_is_fitted(self)
        X = fitting.check_matrix(self, X, reset=False)
        if hasattr(self, "coef_"):
            return np.asarray(X @ self.coef_)
        parts = self._expansions()
        return np.asarray(sum(expansion_scores(select_features(X, f), k.columns(Z), a) for k, f, Z, a in parts))

    def _expansions(self) -> Iterator[tuple[Kernel, NDArray[np.intp] | None, Any, NDArray[np.float64]]]:
        """What each view adds to a score, a sum over its kernel: kernel, features (None for all), items, coefficients.

        Of kernels other than linear.
        """
        for kernel, features, a in zip(self._view_kernels_, self._view_features_, self.dual_coef_.T, strict=True):
            yield kernel, features, select_features(self.X_fit_, features), a

    def _plans(self, n: int) -> list[ViewPlan]:
        """The views of n features."""
        views = self.views
        if views is None:
            rng = permuting(self.random_state)
            views = [np.sort(rng.permutation(n)[: (n + 1) // 2]) for _ in range(int(self.n_views))]
        return view_plans(views, self, {name: getattr(self, name) for name in ("kernel", "gamma", "degree", "coef0")})

    def _candidates(self, rows: PartlyLabelled, plans: list[ViewPlan]) -> Iterator[Candidate]:
        data, known = rows.everything, rows.known
        queries = np.unique(data.layout.codes, return_inverse=True)[1]
        graph = LabelledGraph.build(np.zeros(data.n_rows), queries, weights=data.weights)
        make = [partial(plan.kernel, select_features(data.X, plan.features)) for plan in plans]
        views = Views(make, graph, known.X[:, 0].astype(np.intp))
        for mu in self._agreements(views):
            consensus = views.agree(mu)
            for setting, chosen in fitting.settings_of(self, known):
                yield Candidate({**chosen, "mu": mu}, partial(_problem, consensus, setting), basis=consensus)
            del consensus  # a matrix for each view, before those of the next agreement

    def _agreements(self, views: Views) -> list[float]:
        """The values of mu to try, the least agreement first."""
        if self.mu != "auto":
            return sorted(float(value) for value in options(self.mu, "mu"))
        scale = float(f"{views.scale:.6g}")  # the same in any order of the rows
        return [weight / scale for weight in _AGREEMENTS] if scale > 0.0 else [1.0]

    def _store(self, data: PartlyLabelled, views: list[ViewPlan], chosen: Any) -> None:
        """Keep the views' functions."""
        consensus, Z = chosen.candidate.basis, data.everything.X
        h = consensus.columns(data.known.X[:, 0].astype(np.intp)) @ chosen.solutions.coefficients[0]
        coefficients = np.hstack(consensus.view_coefficients(h))
        self._view_kernels_ = [plan.kernel for plan in views]
        self._view_features_ = [plan.features for plan in views]
        if all(plan.kernel.is_linear for plan in views):
            self.coef_ = np.zeros(Z.shape[1])
            for plan, a in zip(views, coefficients.T, strict=True):
                features = slice(None) if plan.features is None else plan.features
                self.coef_[features] += select_features(Z, plan.features).T @ a
        else:
            self.dual_coef_, self.X_fit_ = coefficients, Z


def _problem(consensus: Consensus, setting: Setting, known: LabelledItems) -> ConsensusProblem:
    """The problem of some labelled rows, which are numbers among all."""
    return ConsensusProblem(consensus, known.X[:, 0].astype(np.intp), known.numeric_graphs(setting)[0])
