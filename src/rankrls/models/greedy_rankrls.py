"""Greedy RankRLS: a linear ranking function of few features, chosen by their held-out error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from rankrls._checks import check_count
from rankrls._comparisons import Comparisons, Setting
from rankrls._errors import InputError
from rankrls.kernels import Kernel
from rankrls.learners.graphs import graph_of
from rankrls.learners.greedy_problem import GreedyProblem, GreedyRows
from rankrls.metrics import Measure, RankingMeasure, resolve_measure
from rankrls.models import fitting
from rankrls.models.inputs.parameters import (
    GraphParameters,
    SelectionParameters,
    check_alphas,
    check_parameters,
    estimator,
    number,
    parameter,
)
from rankrls.models.ranker import Ranker
from rankrls.selection.folds import few_folds, few_preference_folds
from rankrls.selection.plans import Plan
from rankrls.selection.search import search

__all__ = ["GreedyRankRLS"]

_LINEAR = Kernel("linear")
_DECADES = 6
_SQUARED_ERROR = "pair_squared_error"


@dataclass(eq=False)
class RowsOf:
    """The rows of the comparisons that were asked for last, of one setting: values of alpha share them."""

    setting: Setting
    last: tuple[Comparisons, GreedyRows] | None = None

    def of(self, comparisons: Comparisons) -> GreedyRows:
        """The rows of some comparisons."""
        if self.last is None or self.last[0] is not comparisons:
            graph = graph_of(comparisons, self.setting)
            self.last = comparisons, GreedyRows(comparisons.X, graph, self.setting.balance)
        return self.last[1]


@dataclass(frozen=True, eq=False, kw_only=True)
class GreedyCandidate:
    """Features taken one by one for one alpha, which is among the choices."""

    choices: dict[str, Any]
    rows: RowsOf
    n_features: int
    square = False

    def problem(self, comparisons: Comparisons) -> GreedyProblem:
        """The problem of some data."""
        return GreedyProblem(self.rows.of(comparisons), self.choices["alpha"], self.n_features)


@estimator
class GreedyRankRLS(SelectorMixin, Ranker, GraphParameters, SelectionParameters):
    r"""Linear RankRLS on few features, taken one by one by exact leave-query-out.

    Minimises, over weights of the features S,

    .. math::

        \tfrac12 \sum_{ij} W_{ij} ( (y_i - y_j) - w_S'(x_{iS} - x_{jS}) )^2 + \alpha \lVert w_S \rVert^2 ,

    where S grows by the feature with which the held-out error is least: every query is left out in its turn, exactly
    and without refitting. How many features are taken, and alpha, is chosen by folds of queries, each of which runs the
    whole selection again, since the selection's own held-out error has seen every choice.

    Parameters
    ----------
    n_features_to_select : "auto" or int, default="auto"
        How many features to take. "auto" chooses from 1 to ``max_features``.
    alphas : "auto" or array-like, default="auto"
        Regularization values to choose from, positive. "auto" is one for each decade from the largest feature's
        ``x'Lx`` down, six in all.
    max_features : int, default=30
        The largest number to choose from; n if that is less.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of whole queries, or of rows for one global ranking; an int is that many.
    scoring : str, Measure or callable, default="squared_error"
        By what the number of features and alpha are chosen; features are always taken by the held-out squared error.
        "squared_error" is that of pairs (for preferences their disagreement); otherwise any measure of rankings, as in
        :class:`RankRLSCV`.
    rule : {"best", "one_se"}, default="best"
        "one_se" takes the fewest features whose measure is within one standard error of the best.
    verbose : as in :class:`RankRLSCV`
    ties, balance, regression_weight : as in :class:`RankRLS`; tuples of ties and balance are chosen from

    Attributes
    ----------
    selected_ : ndarray of shape (k,), intp
        The features in the order in which they were taken.
    coef_ : ndarray of shape (n,)
        Weights, 0 for all other features.
    path_ : ForwardPath
        ``indices``, ``coefficients``, ``losses`` (training) and ``held_out`` (squared error of all held-out rows,
        before the first stage and after each).
    n_features_ : int
        How many were taken.
    alpha_ : float
    n_features_at_edge_, alpha_at_edge_ : bool
        Whether the choice is at the end of what was tried; where something was chosen.
    best_params_, best_score_, best_score_error_, cv_results_, selection_, query_scores_ : as in
        :class:`RankingPursuitCV`; where something was chosen
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had column names.

    Notes
    -----
    O(k m n) for k of n features and m rows, and ``8 m n`` bytes and ``48 n`` for each query, for every alpha and fold.
    Sparse features are filled. Features are not scaled, and one of larger spread is penalised less: standardise them.
    Constant features, and such as are combinations of those taken, are never taken. Equal features: the lowest number
    is taken. Queries of one item and rows of weight zero are treated as in :class:`RankRLS`. The items of one global
    ranking are left out one by one, each with a mean of its own, exactly as a refit on the others would; all pairs have
    to be compared then (``ties="include"``). With ``balance`` other than "examples" every distinct sample weight costs
    another product with X a stage. ``fit_pairs`` leaves out each preference, or each group of them; ``cv`` is
    then the number of folds of groups, 5 by default.

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

    n_features_to_select: Any = parameter(default="auto", kw_only=False)
    alphas: Any = parameter(default="auto")
    max_features: int = parameter(default=30, check=number(least=1, whole=True))
    scoring: Any = parameter(default="squared_error")

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
    ) -> Self:
        """Choose the number of features and alpha, then select from all rows of X.

        Parameters
        ----------
        X, y, qid, sample_weight, X_val, y_val, qid_val : as in :meth:`RankRLSCV.fit`, with one target

        Returns
        -------
        self
        """
        self._check()
        measure = resolve_measure(Measure(_SQUARED_ERROR) if self._by_squares else self.scoring)
        data = fitting.labelled(self, X, y, qid, sample_weight)
        plan: Plan | None = fitting.validation(self, measure, data, X_val, y_val, qid_val)
        if plan is None and self._chooses:
            plan = few_folds(self.cv, measure, data, float(self.regression_weight))
        return self._select(data, plan)

    def fit_pairs(
        self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None, groups: Any = None
    ) -> Self:
        """Choose by folds of preferences, or of groups of them; then select from all.

        Parameters
        ----------
        X, winners, losers, strength, weight, groups : as in :meth:`RankRLSCV.fit_pairs`
            Groups are held out together in each step, too.

        Returns
        -------
        self
        """
        self._check()
        measure: RankingMeasure = Measure("disagreement")
        if not self._by_squares:
            measure = resolve_measure(self.scoring)
        data = fitting.preferred(self, X, winners, losers, strength, weight, groups)
        return self._select(data, few_preference_folds(self.cv, measure, data) if self._chooses else None)

    def _select(self, data: Comparisons, plan: Plan | None) -> Self:
        given = self.n_features_to_select
        values = None if given == "auto" else np.array([float(given)])
        if plan is None:
            candidate = next(self._candidates(data))
            solutions = candidate.problem(data).path(np.array([float(given)]))
        else:
            results = search(self._candidates(data), data, plan, self.rule, values, int(self.verbose))
            candidate, solutions = results.best_state.candidate, results.best_state.solutions
        fitting.begin(self, data)
        fitting.keep(self, solutions[0], _LINEAR)
        if plan is not None:
            fitting.publish(self, results, plan.description, data)
            self.alpha_at_edge_ = results.edges.get("alpha", False)
        self.path_ = solutions.details[0]
        self.selected_, self.n_features_ = (
            self.path_.indices,
            self.path_.n_stages,
        )  # fewer if the rest lie in their span
        self.alpha_ = float(candidate.choices["alpha"])
        return self

    @property
    def _chooses(self) -> bool:
        """Whether there is more than one model to choose from."""
        tuples = (self.ties, self.balance, (0, 0) if self._automatic else self.alphas)
        return self.n_features_to_select == "auto" or any(np.size(one) > 1 for one in tuples)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selected_] = True
        return mask

    def _check(self) -> None:
        check_parameters(self, several=True)
        if self.n_features_to_select != "auto":
            check_count("n_features_to_select", self.n_features_to_select)
        if not self._automatic:
            check_alphas(self.alphas, positive=True)

    @property
    def _automatic(self) -> bool:
        return isinstance(self.alphas, str) and self.alphas == "auto"

    @property
    def _by_squares(self) -> bool:
        return getattr(self.scoring, "name", self.scoring) in ("squared_error", _SQUARED_ERROR)

    def _candidates(self, data: Comparisons) -> Iterator[GreedyCandidate]:
        most = self._most(data.X.shape[1])
        for setting, chosen in fitting.settings_of(self, data):
            rows = RowsOf(setting)
            for alpha in self._alphas(rows.of(data)):
                yield GreedyCandidate(choices={**chosen, "alpha": float(alpha)}, rows=rows, n_features=most)

    def _most(self, n: int) -> int:
        """The most features that are taken, of n."""
        given = self.n_features_to_select
        if given == "auto":
            return min(n, int(self.max_features))
        if given > n:
            raise InputError(
                f"n_features_to_select is {given}, but X has {n} features.", parameter="n_features_to_select"
            )
        return int(given)

    def _alphas(self, rows: GreedyRows) -> NDArray[np.float64]:
        """What to choose from, the most regularized first."""
        if not self._automatic:
            return np.sort(check_alphas(self.alphas))[::-1]
        top = float(rows.rows.squares.sum(axis=0).max(initial=0.0))
        return np.geomspace(top, top * 10.0 ** (1 - _DECADES), _DECADES) if top > 0.0 else np.ones(1)
