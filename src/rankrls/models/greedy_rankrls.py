"""Greedy RankRLS: a linear ranking function of few features, chosen by their held-out error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from rankrls._checks import check_count
from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems, Setting
from rankrls._errors import InputError
from rankrls._public import publish
from rankrls.kernels import Kernel
from rankrls.metrics import Measure, RankingMeasure, resolve_measure
from rankrls.models.families.selecting import ChosenByFolds
from rankrls.models.inputs.parameters import (
    GraphParameters,
    SelectionParameters,
    check_alphas,
    check_parameters,
    estimator,
    number,
    parameter,
)
from rankrls.problems.problem import Solutions
from rankrls.selection.candidates import Candidate, ForwardSelected
from rankrls.selection.folds import judge_of
from rankrls.selection.plans import Nothing, Plan
from rankrls.selection.search import Results

__all__ = ["GreedyRankRLS"]

_LINEAR = Kernel("linear")
_DECADES = 6
_SQUARED_ERROR = "pair_squared_error"


@estimator
class GreedyRankRLS(SelectorMixin, ChosenByFolds, GraphParameters, SelectionParameters):
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
        By what features are taken, and by what their number and alpha are chosen. "squared_error" takes features by
        the held-out loss itself and chooses by :func:`rankrls.metrics.pair_squared_error` (for preferences by their
        disagreement). Any measure of rankings, as in :class:`RankRLSCV`, costs one evaluation a candidate and stage.
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
        ``indices``, ``coefficients``, ``losses`` (training) and ``held_out`` (the criterion, summed squared error or
        the measure, before the first stage and after each).
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
    O(k m n) for k of n features and m rows, which are read once for each feature that is taken, and ``8 m (n + 2 k)``
    bytes and ``48 n`` for each query, for every alpha and fold; O(k^2 m n) by a measure other than the squared error.
    Sparse features are filled. Features are not scaled, and one of larger spread is penalised less: standardise them.
    Constant features, and such as are combinations of those taken, are never taken. Equal features: the lowest number
    is taken. Queries of one item and rows of weight zero are treated as in :class:`RankRLS`. The items of one global
    ranking are left out one by one, each with a mean of its own; all pairs have to be compared then
    (``ties="include"``). ``fit_pairs`` leaves out each preference, or each group of them; ``cv`` is
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

    @property
    def _chooses(self) -> bool:
        """Whether there is more than one model to choose from."""
        tuples = (self.ties, self.balance, (0, 0) if self._automatic else self.alphas)
        return self.n_features_to_select == "auto" or any(np.size(one) > 1 for one in tuples)

    def _plan(self, measure: RankingMeasure, data: LabelledItems) -> Plan:
        return super()._plan(measure, data) if self._chooses else Nothing()

    def _preference_plan(self, measure: RankingMeasure, data: PreferredItems) -> Plan:
        return super()._preference_plan(measure, data) if self._chooses else Nothing()

    def _choose(self, data: Comparisons, plan: Plan, grid: NDArray[np.float64] | None) -> None:
        if not isinstance(plan, Nothing):
            return super()._choose(data, plan, grid)
        self._solve(data, float(self.n_features_to_select), next(self._candidates(data)))

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

    def _measure(self, *, of_preferences: bool = False) -> RankingMeasure:
        if not self._by_squares:
            return resolve_measure(self.scoring)
        return Measure("disagreement" if of_preferences else _SQUARED_ERROR)

    def _grid(self) -> NDArray[np.float64] | None:
        given = self.n_features_to_select
        return None if given == "auto" else np.array([float(given)])

    def _adopt(self, comparisons: Comparisons, candidate: Candidate, solutions: Solutions) -> None:
        super()._adopt(comparisons, candidate, solutions)
        self.path_ = solutions.details[0]
        self.selected_, self.n_features_ = self.path_.indices, self.path_.n_stages
        self.alpha_ = float(candidate.choices["alpha"])

    def _publish(self, results: Results, description: str, data: Any) -> None:
        super()._publish(results, description, data)
        self.n_features_ = self.path_.n_stages  # fewer than were chosen if the rest lie in their span
        self.alpha_at_edge_ = results.edges.get("alpha", False)

    def _candidates(self, comparisons: Comparisons) -> Iterator[ForwardSelected]:
        most = self._most(comparisons.X.shape[1])
        for setting, chosen in self._settings(comparisons):
            for alpha in self._alphas(comparisons, setting):
                yield ForwardSelected(
                    kernel=_LINEAR,
                    setting=setting,
                    choices={**chosen, "alpha": float(alpha)},
                    alpha=float(alpha),
                    n_features=most,
                    judge=None if self._by_squares else self._judge_of,
                )

    def _judge_of(self, comparisons: Comparisons) -> Any:
        return judge_of(self._measure(), comparisons)

    def _most(self, n: int) -> int:
        """The most features that are taken, of n."""
        given = self.n_features_to_select
        if given == "auto":
            return min(n, int(self.max_features))
        if given > n:
            problem = "{n_features_to_select} is {0}, but X has {1} features."
            raise InputError(problem, given, n)
        return int(given)

    def _alphas(self, comparisons: Comparisons, setting: Setting) -> NDArray[np.float64]:
        """What to choose from, the most regularized first."""
        if not self._automatic:
            return np.sort(check_alphas(self.alphas))[::-1]
        energies = comparisons.graphs(setting)[0].graph.factor_rows(comparisons.X).energies()
        top = float(energies.max(initial=0.0))
        return np.geomspace(top, top * 10.0 ** (1 - _DECADES), _DECADES) if top > 0.0 else np.ones(1)


publish("rankrls", {**globals(), "__name__": "rankrls"})
