"""RankBoost: boosted threshold stumps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Comparisons
from rankrls._errors import InputError
from rankrls._public import publish
from rankrls.boosting.boosting import Boosting, EdgeWeights, LevelWeights, PairWeights, Stump
from rankrls.boosting.stumps import StepFunctions, bin_features, by_columns, column_values
from rankrls.metrics import resolve_measure
from rankrls.models.families.base import Ranker
from rankrls.models.inputs.parameters import BALANCES, check_parameters, choice, estimator, number, parameter
from rankrls.models.inputs.validation import (
    check_matrix,
)
from rankrls.selection.choice import is_better
from rankrls.selection.judging import Curve
from rankrls.selection.plans import Validation
from rankrls.selection.rules import RULES
from rankrls.selection.search import Results

__all__ = ["RankBoost"]

_CHUNK = 25
"""Rounds whose validation scores are judged together."""


@estimator
class RankBoost(Ranker):
    r"""RankBoost: a sum of threshold stumps that is boosted on pairs.

    Lowers, one stump at a time, the exponential loss of the pairs,

    .. math::

        \sum_q \rho_q \sum_{y_i > y_j} w_i w_j \exp(-(f(x_i) - f(x_j))) , \qquad
        f(x) = \sum_t \alpha_t [ x_{j_t} > \theta_t ] ,

    over the pairs of items of a query with different labels. Each round takes the stump with the largest
    :math:`|r|`, :math:`r = \sum D_{ij} (h(x_i) - h(x_j))` under the loss's present weights D of the pairs, and gives it
    the weight :math:`\tfrac12 \ln \frac{1+r}{1-r}`. The loss, divided by its value before the first round, bounds the
    share of training pairs that are ordered wrongly.

    Parameters
    ----------
    n_estimators : int, default=300
        Rounds; the most that are tried where validation data are given.
    learning_rate : float, default=1.0
        In (0, 1]; every stump's weight is multiplied by it. 1 is the paper's algorithm.
    max_bins : int or None, default=256
        A feature with no more distinct values has a threshold between any two neighbouring ones. One with more is cut
        at quantiles into at most this many bins, and stumps see no difference inside a bin. None: every threshold of
        every feature, at two or four bytes a value and a slower round.
    balance : {"pairs", "examples", "queries"}, default="examples"
        What counts the same: each pair (the paper's uniform distribution), each example, or each query.
    scoring : str, Measure or callable, default="disagreement"
        What the validation data choose the number of rounds by; see :func:`rankrls.metrics.resolve_measure`.
    patience : int, optional
        Stop after this many rounds in which the measure of the validation data has not become better. None: all rounds
        are run and the best number of them is taken.
    rule : {"best", "one_se"}, default="best"
        "one_se" keeps the fewest rounds whose measure on the validation data is within one standard error of the best.

    Attributes
    ----------
    n_estimators_ : int
        Stumps of the model. Fewer than asked for where validation data say so, or where ``stopped_`` says why.
    features_, thresholds_, weights_ : ndarray of shape (rounds,)
        ``weights_[t]`` is added to the score of an item with ``x[features_[t]] > thresholds_[t]``.
    train_loss_ : ndarray of shape (rounds,)
        Mean of ``exp(-(f_i - f_j))`` over the training pairs, as they are weighed, after each round.
    feature_importances_ : ndarray of shape (n,)
        Sum of the absolute weights of each feature's stumps, as a share of all; zeros without stumps.
    stopped_ : str
        Why no further round was run: "n_estimators"; "patience"; "no edge", no stump ordered the pairs better than
        chance; "separated", one stump ordered all that had weight; "exhausted", the weights were beyond float64.
    validation_scores_ : ndarray of shape (rounds run,)
        The measure of the validation data after each round; only where they were given, as the following.
    best_score_, best_score_error_ : float
        The measure of the choice in its own units, and its standard error over queries.
    best_params_ : dict
        ``n_estimators``.
    cv_results_ : dict of ndarray
        One entry a round: ``n_estimators``, ``mean_score``, ``standard_error``; ``best_index_`` is that of the choice.
    selection_ : str
        How it was chosen, in words.
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Notes
    -----
    Features are binned once, O(m n log m), one byte a value up to 256 bins. A round then is O(m) for the weights of
    the pairs, which factorise over items and labels and are never held one by one, and one pass over the bins: O(m n),
    or O(non-zeros) for sparse X, whose rows outside a column's entries are at 0. Stumps that are equally good: the
    lowest feature, then the lowest threshold. Equally good numbers of rounds: the smallest.

    Scores are invariant to increasing transformations of training features, but for where between two training values
    a threshold stands: halfway. There are no missing values. A query of one item, or of one label, contributes nothing.

    References
    ----------
    Freund, Iyer, Schapire, Singer: An efficient boosting algorithm for combining preferences. Journal of Machine
    Learning Research 4, 2003, pages 933-969.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankBoost
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> qid = np.repeat(np.arange(12), 5)
    >>> y = np.abs(X[:, 1]) > 0.7  # no linear function orders these
    >>> model = RankBoost(n_estimators=20).fit(X, y, qid=qid)
    >>> model.features_[:3], model.thresholds_[:3].round(2)
    (array([1, 1, 1]), array([ 0.71, -0.69,  0.71]))
    >>> model.score(X, y, qid=qid)
    1.0
    """

    _multiplies_features = False
    _single_target = True

    n_estimators: int = parameter(default=300, check=number(least=1, whole=True), kw_only=False)
    learning_rate: float = parameter(default=1.0, check=number(above=0.0, most=1.0))
    max_bins: int | None = parameter(default=256, check=number(least=2, whole=True, none=True))
    balance: str = parameter(default="examples", check=choice(*BALANCES))
    scoring: Any = parameter(default="disagreement")
    patience: int | None = parameter(default=None, check=number(least=1, whole=True, none=True))
    rule: str = parameter(default="best", check=choice(*RULES))

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
        """Learn from items with labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)
            float32 is not upcast whole; sparse X is not made dense.
        y : array-like of shape (m,)
            Labels, higher is better.
        qid : array-like of shape (m,), optional
            One query id per row, in any order, of any hashable type. None makes everything one global ranking.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative; a pair weighs ``w_i w_j``.
        X_val, y_val, qid_val : optional
            Validation data to choose the number of rounds by.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For bad input, naming the row and column; and where no query holds two different labels.
        """
        check_parameters(self)
        measure = resolve_measure(self.scoring)
        data = self._labelled(X, y, qid, sample_weight)
        validation = self._validation(measure, data, X_val, y_val, qid_val)
        if validation is None and self.patience is not None:
            raise InputError("{patience} needs validation data.", remedy="Give {X_val, y_val, qid_val}.")
        return self._learn(data, LevelWeights(data.ordered(self.balance)), data.weights, validation)

    def fit_pairs(self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None) -> Self:
        r"""Learn from preferences: lower :math:`\sum_e c_e \exp(-(f_{i_e} - f_{j_e}))`.

        Parameters
        ----------
        X : as for :meth:`fit`
            The items; those in no preference are allowed, and take part in the quantiles of ``max_bins``.
        winners, losers : array-like of int, shape (p,)
            Row numbers of X; row ``winners[e]`` was preferred to row ``losers[e]``.
        strength : array-like of shape (p,), optional
            Only its sign plays a part: a negative one turns the preference round, 0 is a tie and orders nothing.
        weight : array-like of shape (p,), optional
            How much each preference counts; 1 by default.

        Returns
        -------
        self

        Notes
        -----
        O(p) more a round. ``balance``, ``scoring`` and ``patience`` play no part.
        """
        check_parameters(self)
        data = self._preferred(X, winners, losers, strength, weight)
        return self._learn(data, EdgeWeights(data.graph), None, None)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score items.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)

        Returns
        -------
        ndarray of shape (m,)
            Higher is better. Only differences between items of the same query mean anything.

        Notes
        -----
        O(m log stumps) for each feature that a stump looks at: the stumps of a feature are one step function.
        """
        check_is_fitted(self)
        return self.scorer_(check_matrix(self, X, reset=False))

    @property
    def scorer_(self) -> StepFunctions:
        """The fitted function: a sum of steps."""
        return StepFunctions.of(self.features_, self.thresholds_, self.weights_)

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Scores after each round, one array of shape (m,) at a time; the last are those of :meth:`predict`.

        Parameters
        ----------
        X : as for :meth:`predict`
        """
        check_is_fitted(self)
        X = by_columns(check_matrix(self, X, reset=False))
        scores = np.zeros(X.shape[0])
        for feature, threshold, weight in zip(self.features_, self.thresholds_, self.weights_, strict=True):
            scores[column_values(X, feature) > threshold] += weight
            yield scores.copy()

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Sum of the absolute weights of each feature's stumps, as a share of all."""
        check_is_fitted(self)
        sums = np.bincount(self.features_, weights=np.abs(self.weights_), minlength=self.n_features_in_)
        total = sums.sum()
        return np.asarray(sums / total if total > 0.0 else sums, dtype=np.float64)

    def _learn(
        self,
        data: Comparisons,
        pairs: PairWeights,
        weights: NDArray[np.float64] | None,
        validation: Validation | None,
    ) -> Self:
        max_bins = None if self.max_bins is None else int(self.max_bins)
        boosting = Boosting(pairs, bin_features(data.X, pairs.order, weights, max_bins), float(self.learning_rate))
        watch = None if validation is None else _Watch(validation, self.patience)
        stumps: list[Stump] = []
        stopped = ""
        while not stopped and len(stumps) < self.n_estimators and boosting.status == "running":
            rounds = (boosting.round() for _ in range(min(_CHUNK, self.n_estimators - len(stumps))))
            chunk = [stump for stump in rounds if stump is not None]
            stumps += chunk
            if watch is not None and chunk and watch.look(chunk):
                stopped = "patience"
        self._begin(data)
        if watch is not None:
            stumps = stumps[: self._publish(watch)]
        self.n_estimators_ = len(stumps)
        self.features_ = np.array([s.feature for s in stumps], dtype=np.intp)
        self.thresholds_ = np.array([s.threshold for s in stumps])
        self.weights_ = np.array([s.weight for s in stumps])
        self.train_loss_ = np.array([s.loss for s in stumps])
        self.stopped_ = stopped or ("n_estimators" if boosting.status == "running" else boosting.status)
        return self

    def _publish(self, watch: _Watch) -> int:
        """Choose by the validation data; returns how many rounds are kept."""
        curve = watch.curve
        rounds = np.arange(1, len(curve.mean) + 1)
        results = Results(watch.validation.greater_is_better, self.rule, "n_estimators")
        if len(rounds):
            results.add({}, rounds.astype(np.float64), curve)
        self.validation_scores_ = curve.mean
        self.best_score_, self.best_score_error_ = results.best_score, results.best_error
        self.best_index_ = max(results.best_index, 0)
        kept = self.best_index_ + 1 if len(rounds) else 0
        self.best_params_ = {"n_estimators": kept}
        self.cv_results_ = {"n_estimators": rounds, "mean_score": curve.mean, "standard_error": curve.error}
        self.selection_ = watch.validation.description
        return kept


@dataclass
class _Judgements:
    """The measure of every round so far, and when patience has come to its end.

    ``rounds`` has of each its mean, the standard error, and what the rounding of the mean is relative to.
    """

    sign: float
    patience: int | None
    rounds: list[tuple[float, ...]] = field(default_factory=list)
    best: int = 0

    def take(self, curve: Curve) -> bool:
        """Take the judgement of some more rounds; True if patience ended, the rounds after that not taken."""
        for one in zip(curve.mean.tolist(), curve.error.tolist(), curve.size.tolist(), strict=True):
            self.rounds.append(one)
            (mean, _, size), top = one, self.rounds[self.best][0]
            # A round that ties all that tau compares cannot be judged: it is not the best, and patience has not begun.
            if np.isnan(top) or is_better(self.sign * mean, self.sign * top, size):
                self.best = len(self.rounds) - 1
            if self.patience is not None and len(self.rounds) - 1 - self.best >= self.patience:
                return True
        return False

    @property
    def curve(self) -> Curve:
        """The measure of every round so far."""
        mean, error, size = np.array(self.rounds, dtype=np.float64).reshape(-1, 3).T
        return Curve(mean, error, scale=size)


class _Watch(_Judgements):
    """Validation scores round by round, judged in chunks of rounds."""

    def __init__(self, validation: Validation, patience: int | None) -> None:
        super().__init__(1.0 if validation.greater_is_better else -1.0, patience)
        self.validation = validation
        self._X = by_columns(validation.X)
        self._scores = np.zeros(self._X.shape[0])

    def look(self, chunk: list[Stump]) -> bool:
        """Judge some more rounds; True if patience has come to its end."""
        columns = np.empty((len(self._scores), len(chunk)), order="F")
        for t, stump in enumerate(chunk):
            self._scores[column_values(self._X, stump.feature) > stump.threshold] += stump.weight
            columns[:, t] = self._scores
        return self.take(self.validation.judge.curve(columns[:, :, None]))


publish("rankrls", {**globals(), "__name__": "rankrls"})
