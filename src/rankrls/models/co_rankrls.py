"""Co-regularised RankRLS: views of scored and unscored rows that agree."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Comparisons
from rankrls._errors import InputError
from rankrls._public import publish
from rankrls.graph import ScoredGraph
from rankrls.kernels import Kernel
from rankrls.models.families.partly_scored import PartlyScoredRanker
from rankrls.models.families.selecting import SelectingRanker
from rankrls.models.inputs.parameters import (
    GraphParameters,
    KernelParameters,
    SelectionParameters,
    check_parameters,
    estimator,
    number,
    options,
    parameter,
)
from rankrls.models.inputs.unscored import PartlyScored
from rankrls.models.inputs.validation import check_matrix
from rankrls.models.inputs.views import view_plans
from rankrls.problems.consensus import Views
from rankrls.problems.problem import PathSolutions, Solutions
from rankrls.problems.scorer import expansion_scores
from rankrls.problems.views import ViewPlan, select_features
from rankrls.selection.candidates import Agreeing
from rankrls.selection.costs import Cost, consensus_cost, dense_cost
from rankrls.selection.plans import Plan
from rankrls.selection.search import Results

__all__ = ["CoRankRLS"]

_AGREEMENTS = (0.1, 1.0, 10.0, 100.0)
"""Weights of the agreement, relative to the mean square of the centred views."""


@estimator
class CoRankRLS(PartlyScoredRanker, SelectingRanker, GraphParameters, KernelParameters, SelectionParameters):  # type: ignore[misc]
    r"""Co-regularised RankRLS: several views of scored and unscored rows that agree on all of them.

    Minimises, over a function :math:`f_v` for each of M views and their consensus h on all rows Z,

    .. math::

        \lVert F ( y - h_S ) \rVert^2 + \frac{\alpha}{M} \sum_v \left[ \lVert f_v \rVert^2
        + \mu \lVert C ( f_v(Z) - h ) \rVert^2 \right] ,

    with S the scored rows and C the centring of Z inside its queries. The prediction is the mean of the views'
    functions. It helps where few queries are scored and many rows are not; with many scored queries it gains nothing
    that :class:`RankRLSCV` does not reach.

    Parameters
    ----------
    alphas : "auto" or array-like, default="auto"
        Regularization values to choose from, positive.
    mu : "auto", float or tuple, default="auto"
        Weights of the agreement to choose from, positive. "auto" is 0.1, 1, 10 and 100 over the mean diagonal entry of
        the views' centred kernels.
    views : sequence of views, optional
        As in :class:`CoRankingPursuit`, without ``rows``. None makes ``n_views`` random halves of the features.
    n_views : int, default=16
        M, if there are no ``views``.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`
        Of the views that name none; not precomputed.
    ties, balance, regression_weight : as in :class:`RankRLS`; tuples of ties and balance are chosen from
    cv, scoring, rule : as in :class:`RankRLSCV`
        Queries, folds and validation data that are judged are the scored ones.
    random_state : int or RandomState, default=0
        Draws the halves.

    Attributes
    ----------
    alpha_, mu_ : float
    alpha_at_edge_, mu_at_edge_ : bool
    best_params_, best_score_, best_score_error_, best_index_, cv_results_, selection_, query_scores_ : as in
        :class:`RankRLSCV`
    held_out_scores_ : ndarray of shape (m,)
        Scores of the scored rows of X by models without their query's labels; NaN for unscored rows.
    coef_ : ndarray of shape (n,)
        Weights of the features if the kernels of all views are linear.
    dual_coef_ : ndarray of shape (rows of Z, M)
        Coefficients of the rows in each view; kernels other than linear.
    X_fit_ : ndarray or sparse array
        The rows Z, those of ``X_unscored`` last; likewise.
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Notes
    -----
    O(M l^3) for l rows in all and each ``mu``, and ``8 (M + 3) l^2`` bytes; if all views are linear and have N < l
    features in all, O(l N^2) and no matrix of that size. O(s^3) for s scored rows and all alphas.
    What is held out stays among the unscored rows: for queries that are new altogether, judge by folds that leave
    their rows out of ``X``. One scored query, and one global ranking, are judged by 5 folds of rows. Rows of weight
    zero are left out of Z too.

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
    >>> y = np.where(qid < 6, X.sum(axis=1) + rng.normal(size=200), np.nan)  # 6 of 40 queries are scored
    >>> model = CoRankRLS(n_views=4).fit(X, y, qid=qid)
    >>> model.selection_, model.predict(X).shape
    ('leave-query-out over 6 queries', (200,))
    """

    fit_pairs = None  # type: ignore[assignment]  # preferences have no unscored rows beside them

    alphas: Any = parameter(default="auto", kw_only=False)
    mu: Any = parameter(default="auto")
    views: Any = parameter(default=None)
    n_views: int = parameter(default=16, check=number(least=1, whole=True))
    random_state: Any = parameter(default=0)

    def _learn(self, rows: PartlyScored) -> None:
        with self._holding(_all=rows.everything, _view_plans=self._plans(rows.everything.X)):
            self._choose(rows.known, self._plan(self._measure(), rows.known), self._grid())

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
        if hasattr(self, "coef_"):
            return np.asarray(X @ self.coef_)
        scores = [
            expansion_scores(select_features(X, features), kernel.columns(items), a[:, None])
            for kernel, features, items, a in self._expansions()
        ]
        return np.asarray(np.sum(scores, axis=0)[:, 0])

    def _expansions(self) -> Iterator[tuple[Kernel, NDArray[np.intp] | None, Any, NDArray[np.float64]]]:
        """What each view adds to a score, a sum over its kernel: kernel, features (None for all), items, coefficients.

        Of kernels other than linear.
        """
        for kernel, features, a in zip(self._view_kernels_, self._view_features_, self.dual_coef_.T, strict=True):
            yield kernel, features, select_features(self.X_fit_, features), a

    def _check(self) -> None:
        check_parameters(self, several=True)
        if not (isinstance(self.mu, str) and self.mu == "auto"):
            for value in options(self.mu, "mu"):
                number(above=0.0)("mu", value)
        for name in ("kernel", "gamma", "degree", "coef0"):
            if len(options(getattr(self, name), name)) > 1:
                raise InputError(f"{{{name}}} is one value here, which every view without one of its own has.")
        if self.kernel == "precomputed":
            raise InputError("Views are made of features: a precomputed {kernel} has none.")

    def _data_kernel(self) -> str:
        return "linear"

    def _constrained(self) -> bool:
        return True  # pairs that are held out without refitting would be judged by the consensus, not by the prediction

    def _plans(self, Z: Any) -> list[ViewPlan]:
        """The views."""
        n, names = Z.shape[1], getattr(self, "feature_names_in_", None)
        views = self.views
        if views is None:
            rng, half = check_random_state(self.random_state), (n + 1) // 2
            views = [{"features": np.sort(rng.permutation(n)[:half])} for _ in range(int(self.n_views))]
        settings = {name: options(getattr(self, name), name)[0] for name in ("kernel", "gamma", "degree", "coef0")}
        plans = view_plans(views, {**settings, "kernel_params": self.kernel_params}, n, names, Z.shape[0])
        for number_, plan in enumerate(plans):
            own_rows = plan.loss_rows is not None or plan.basis_rows is not None
            if own_rows or plan.kernel.name == "precomputed":
                raise InputError("views[{0}] has rows or a kernel matrix of its own.", number_, parameter="views")
        return plans

    def _candidates(self, comparisons: Comparisons) -> Iterator[Agreeing]:
        plans, data = self._view_plans, self._all
        kernels = [plan.kernel for plan in plans]
        features = [select_features(data.X, plan.features) for plan in plans]
        graph = ScoredGraph.build(np.zeros((data.n_rows, 1)), data.layout, weights=data.weights)
        views = Views.of(kernels, features, graph, comparisons.X[:, 0].astype(np.intp))
        for mu in self._agreements(views):
            consensus = views.agree(mu)
            for setting, chosen in self._settings(comparisons):
                yield Agreeing(kernel=kernels[0], setting=setting, choices={**chosen, "mu": mu}, consensus=consensus)
            del consensus  # a matrix for each view, before those of the next agreement

    def _cheaper(self, linear: bool) -> str:
        return "{n_views} says how many of them there are; linear views with fewer features than rows need none."

    def _costs(self, data: Comparisons, plan: Plan, values: int) -> list[Cost]:
        plans, (m, n) = self._view_plans, self._all.X.shape
        widths = [n if plan.features is None else len(plan.features) for plan in plans]
        if all(plan.kernel.is_linear for plan in plans) and sum(widths) < m:
            return []
        agreements = len(_AGREEMENTS) if isinstance(self.mu, str) else len(options(self.mu, "mu"))
        judged = plan.cost(partial(dense_cost, data.n_rows, 0.0), values)
        whole = consensus_cost(m, sum(widths) / len(widths), len(widths), agreements)
        count = agreements * len(self._settings(data))
        each = Cost(whole.products / count + judged.products, judged.cubes, whole.bytes + judged.bytes, m)
        return [each] * count

    def _agreements(self, views: Views) -> list[float]:
        """The values of mu to try, the least agreement first."""
        if not (isinstance(self.mu, str) and self.mu == "auto"):
            return sorted(float(value) for value in options(self.mu, "mu"))
        scale = float(f"{views.scale:.6g}")  # the same in any order of the rows
        return [weight / scale for weight in _AGREEMENTS] if scale > 0.0 else [1.0]

    def _adopt(self, comparisons: Comparisons, candidate: Any, solutions: Solutions) -> None:
        assert isinstance(solutions, PathSolutions)
        Z, views = self._all.X, self._view_plans
        rows = comparisons.X[:, 0].astype(np.intp)
        coefficients = np.hstack(
            candidate.consensus.view_coefficients(candidate.consensus.columns(rows) @ solutions.coefficients[0])
        )
        self._view_kernels_ = [plan.kernel for plan in views]
        self._view_features_ = [plan.features for plan in views]
        if all(plan.kernel.is_linear for plan in views):
            self.coef_ = np.zeros(Z.shape[1])
            for plan, a in zip(views, coefficients.T, strict=True):
                features = slice(None) if plan.features is None else plan.features
                self.coef_[features] += select_features(Z, plan.features).T @ a
        else:
            self.dual_coef_, self.X_fit_ = coefficients, Z

    def _publish(self, results: Results, description: str, data: Any) -> None:
        super()._publish(results, description, data)
        self.mu_ = float(self.best_params_["mu"])
        self.mu_at_edge_ = results.edges.get("mu", False)


publish("rankrls", {**globals(), "__name__": "rankrls"})
