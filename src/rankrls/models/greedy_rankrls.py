"""Greedy RankRLS: a linear ranking function of few features, chosen by their held-out error."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from rankrls._checks import check_count
from rankrls._comparisons import Comparisons
from rankrls._errors import InputError
from rankrls.learners.greedy import GreedyProblem, block_rows
from rankrls.metrics import Measure, resolve_measure
from rankrls.models import fitting
from rankrls.models.parameters import GraphParameters, check_measure, estimator, parameter
from rankrls.models.ranker import Candidate, Chooses
from rankrls.selection.plans import Plan
from rankrls.selection.search import search

_DECADES = 6


def _auto_or_count(name: str, value: Any) -> None:
    if value != "auto":
        check_count(name, value)


@estimator
class GreedyRankRLS(SelectorMixin, Chooses, GraphParameters):
    r"""Linear RankRLS on few features, which are selected one by one by exact leave-query-out.

    Minimises, over weights of the features S,

    .. math::

        \tfrac12 \sum_{ij} W_{ij} ( (y_i - y_j) - w_S'(x_{iS} - x_{jS}) )^2 + \alpha \lVert w_S \rVert^2 ,

    where each step adds the feature to S that gives the smallest held-out error. Every query is held out, exactly and
    without refitting. The number of features and alpha are chosen by folds of queries, with the whole selection in each
    fold, because the held-out error of the selection itself is too optimistic.

    Parameters
    ----------
    n_features_to_select : "auto" or int, default="auto"
        How many features to select. "auto" chooses from 1 to ``max_features``.
    alphas : "auto" or array-like, default="auto"
        Regularization values to choose from, positive. "auto" is one for each decade from the largest feature's
        ``x'Lx`` down, six in all.
    max_features : int, default=30
        The largest number to choose from; n if that is less.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of whole queries, or of rows for one global ranking; an int is that many. Without anything to
        choose, None holds nothing out.
    scoring : str, Measure or callable, default="pair_squared_error"
        The measure to choose the number of features and alpha by, as in :class:`RankRLSCV`; for preferences the default
        is their disagreement. Features are always selected by the held-out squared error.
    rule : {"best", "one_se"}, default="best"
        "one_se" takes the fewest features whose measure is within one standard error of the best.
    verbose : as in :class:`RankRLSCV`
    ties, balance, regression_weight : as in :class:`RankRLS`; tuples of ties and balance are chosen from

    Attributes
    ----------
    selected_ : ndarray of shape (k,), intp
        The features in the order of selection.
    coef_ : ndarray of shape (n,)
        Weights, 0 for all other features.
    path_ : ForwardPath
        ``indices``, ``coefficients``, ``losses`` (training) and ``held_out`` (squared error of all held-out rows,
        before the first stage and after each).
    n_features_ : int
        The number of selected features.
    alpha_ : float
    n_features_at_edge_, alpha_at_edge_ : bool
        Whether the choice is at the end of its grid; if something was held out.
    best_params_, best_score_, best_score_error_, cv_results_, selection_, query_scores_ : as in
        :class:`RankingPursuitCV`; all but the first only if something was held out
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has column names.

    Notes
    -----
    O(k m n) for k of n features and m rows, and ``8 m n`` bytes and ``48 n`` for each query, for every alpha and fold.
    Sparse features are filled. Features are not scaled, and one of larger spread is penalised less: standardise them.
    Constant features, and combinations of selected features, are never selected. Of equal features the first one is
    selected. Queries of one item and rows of weight zero are treated as in :class:`RankRLS`. The items of one global
    ranking are held out one by one, exactly as by refits; all pairs must be compared then (``ties="include"``), and
    sample weights need ``balance="examples"``. ``fit_pairs`` makes ``cv`` folds (5 by default) of what will be new
    (:ref:`new`): one selection for each fold and alpha.

    References
    ----------
    Pahikkala, Airola, Naula, Salakoski 2010: Greedy RankRLS: a linear time algorithm for learning sparse ranking
    models.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import GreedyRankRLS
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(300, 40)), np.repeat(np.arange(30), 10)
    >>> y = X[:, 3] - 2 * X[:, 11] + 0.5 * X[:, 30] + rng.normal(size=300)
    >>> model = GreedyRankRLS(rule="one_se").fit(X, y, qid=qid)
    >>> model.selected_, model.transform(X).shape
    (array([11,  3, 30]), (300, 3))
    """

    kernel = "linear"
    _single_target = True

    n_features_to_select: Any = parameter(default="auto", check=_auto_or_count, kw_only=False)
    alphas: Any = parameter(default="auto")
    max_features: int = parameter(default=30, least=1, whole=True)
    scoring: Any = parameter(default="pair_squared_error", check=check_measure)

    def _measure(self, *, preferred: bool) -> Measure:
        measure = resolve_measure(self.scoring)
        return Measure("disagreement") if preferred and measure.name == "pair_squared_error" else measure

    def _folds(self, measure: Measure, data: Comparisons) -> Plan | None:
        return super()._folds(measure, data) if self._chooses or self.cv is not None else None

    @property
    def _chooses(self) -> bool:
        """Whether there is more than one model to choose from."""
        automatic = any(isinstance(one, str) and one == "auto" for one in (self.n_features_to_select, self.alphas))
        return automatic or any(np.size(one) > 1 for one in (self.ties, self.balance, self.alphas))

    def _search(self, data: Comparisons, plan: Plan | None) -> Self:
        given = self.n_features_to_select
        values = None if given == "auto" else np.array([float(given)])
        if plan is None:
            candidate = next(self._candidates(data))
            solutions = candidate.problem(data).path(values)
        else:
            results = search(self._candidates(data), data, plan, self.rule, values, int(self.verbose))
            candidate, solutions = results.candidate, results.solutions
        fitting.begin(self, data)
        fitting.keep(self, solutions[0], candidate.kernel)
        if plan is not None:
            fitting.publish(self, results, plan.description, data)
            self.alpha_at_edge_ = results.edges.get("alpha", False)
        (self.path_,) = solutions.details
        self.selected_, self.n_features_ = (
            self.path_.indices,
            self.path_.n_stages,
        )  # fewer if the rest lie in their span
        self.alpha_ = float(candidate.choices["alpha"])
        if plan is None:
            self.best_params_ = {**candidate.choices, "n_features": self.n_features_}
        return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selected_] = True
        return mask

    def _candidates(self, data: Comparisons) -> Iterator[Candidate]:
        most, n = self.n_features_to_select, data.X.shape[1]
        if most == "auto":
            most = min(n, int(self.max_features))
        if most > n:
            message = f"n_features_to_select is {most}, but X has {n} features."
            raise InputError(message, parameter="n_features_to_select")
        for setting, chosen in fitting.settings_of(self, data):
            alphas = fitting.alphas_of(self, positive=True)
            if alphas is None:
                rows = block_rows(data.X, data.numeric_graphs(setting)[0])
                top = float(rows.squares.sum(axis=0).max(initial=0.0))
                alphas = np.geomspace(top, top * 10.0 ** (1 - _DECADES), _DECADES) if top > 0.0 else np.ones(1)
            for alpha in alphas.tolist():
                problem = partial(GreedyProblem, setting=setting, alpha=alpha, most=int(most))
                yield Candidate({**chosen, "alpha": alpha}, problem)
