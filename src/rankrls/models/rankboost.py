"""RankBoost: boosted threshold stumps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankrls._checks import refuse_foreign_arguments
from rankrls._comparisons import Data
from rankrls._typing import Array, IdsLike, Index, ItemsLike, LabelsLike, Values, VectorLike
from rankrls.learners.rankboost import RankBoostCandidate, StagedScores, Stumps
from rankrls.models.fitted import Fitted
from rankrls.models.intake import check_matrix, labelled_items, validation_plan
from rankrls.models.parameters import BALANCES, SELECTION, Scoring, count, word
from rankrls.models.ranker import FitsPreferences
from rankrls.models.spec import Accepts, SearchSpec, Solved
from rankrls.selection.plans import Planner


@dataclass(frozen=True, eq=False, kw_only=True)
class RankBoostSpec(SearchSpec[StagedScores]):
    """RankBoost, whose number of rounds can be selected by validation data."""

    balance: str
    n_estimators: int

    def plan(self, planner: Planner[Data]) -> None:
        return None

    def candidates(self, data: Data) -> Iterator[RankBoostCandidate]:
        yield RankBoostCandidate(balance=self.balance, rounds=self.n_estimators)

    def fitted(self, data: Data, solved: Solved[StagedScores]) -> Fitted:
        stumps = solved.solutions.stumps
        known: Values = {}
        rounds = len(stumps.features)
        if solved.found is not None:
            rounds = int(solved.value)
            known["best_params_"] = {"n_estimators": rounds}
        return Fitted.of(
            data,
            n_estimators_=rounds,
            stopped_=solved.solutions.stopped,
            features_=stumps.features[:rounds],
            thresholds_=stumps.thresholds[:rounds],
            weights_=stumps.weights[:rounds],
            train_loss_=stumps.losses[:rounds],
            **known,
        )


class RankBoost(FitsPreferences):
    r"""RankBoost: a sum of threshold stumps, boosted on pairs.

    Lowers, one stump at a time, the exponential loss of the pairs,

    .. math::

        \sum_q \rho_q \sum_{y_i > y_j} w_i w_j \exp(-(f(x_i) - f(x_j))) , \qquad
        f(x) = \sum_t \alpha_t [ x_{j_t} > \theta_t ] ,

    over the pairs of items of a query with different labels. Each round adds the stump with the largest :math:`|r|`,
    :math:`r = \sum D_{ij} (h(x_i) - h(x_j))` for the current weights D of the pairs, with the weight :math:`\tfrac12
    \ln \frac{1+r}{1-r}`. The loss divided by its value before the first round bounds the share of training pairs that
    are ordered incorrectly.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of rounds; the maximum if there are validation data.
    balance : {"pairs", "examples", "queries"}, default="examples"
        Units of equal weight: pairs (the paper's uniform distribution), examples, or queries.
    scoring : str, Measure or callable, default="disagreement"
        Measure used to select the number of rounds on validation data; see :func:`rankrls.metrics.resolve_measure`.
    rule : {"best", "one_se"}, default="best"
        Selection rule; "one_se" selects the fewest rounds whose measure on the validation data is within one standard
        error of the best.

    Attributes
    ----------
    n_estimators_ : int
        Number of stumps. Smaller than ``n_estimators`` if validation data selected fewer, or for the reason in
        ``stopped_``.
    features_, thresholds_, weights_ : ndarray of shape (rounds,)
        ``weights_[t]`` is added to the score of an item with ``x[features_[t]] > thresholds_[t]``.
    train_loss_ : ndarray of shape (rounds,)
        Mean of ``exp(-(f_i - f_j))`` over the weighted training pairs after each round.
    feature_importances_ : ndarray of shape (n,)
        Sum of the absolute weights of each feature's stumps, as a share of the total; zeros without stumps.
    stopped_ : str
        Reason for the end of the rounds: "n_estimators"; "no edge", no stump ordered the pairs better than chance;
        "separated", one stump ordered all pairs with weight; "exhausted", the weights exceeded the range of float64.
    best_score_, best_score_error_ : float
        Measure of the selected model on the validation data, and its standard error over queries. These and the
        following attributes exist only with validation data.
    best_params_ : dict
        Selected ``n_estimators``.
    cv_results_ : dict of ndarray
        One entry per round: ``n_estimators``, ``mean_score``, ``standard_error``; ``best_index_`` is the selected one.
    selection_ : str
        Description of the selection.
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    See Also
    --------
    AutoRankRLS : Boosted trees of LightGBM, with ``families="all"``.

    Notes
    -----
    The values of each feature are numbered once, O(m n log m), with two or four bytes per value. A round then costs
    O(m) for the weights of the pairs, which factorize over items and labels and are never stored individually, and one
    pass over the numbers: O(m n), or O(non-zeros) for sparse X. Every threshold of every feature is tried. Among
    equally good stumps, the lowest feature is selected, then the lowest threshold; among equally good numbers of
    rounds, the smallest.

    ``fit_pairs`` lowers :math:`\sum_e c_e \exp(-(f_{i_e} - f_{j_e}))`, O(p) more per round. Only the sign of a strength
    is used: a negative one reverses the preference, and 0 is a tie, which has no effect. ``balance`` and ``scoring``
    are then ignored.

    Scores are invariant to increasing transformations of training features, except for the position of a threshold
    halfway between two training values. Missing values are not allowed. A query with one item or one label has no
    effect.

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

    _accepts = Accepts(several_targets=False, clicks=False, overflowing_products=True)
    _checks = SELECTION | {"n_estimators": count, "balance": word(BALANCES)}

    n_estimators_: int
    stopped_: str
    features_: Index
    thresholds_: Array
    weights_: Array
    train_loss_: Array

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        balance: str = "examples",
        scoring: Scoring = "disagreement",
        rule: str = "best",
    ) -> None:
        self.n_estimators = n_estimators
        self.balance = balance
        self.scoring = scoring
        self.rule = rule

    def _spec(self) -> RankBoostSpec:
        self._check_parameters()
        return RankBoostSpec(
            name=type(self).__name__,
            accepts=self._accepts,
            balance=self.balance,
            n_estimators=int(self.n_estimators),
        ).choosing(None, self.scoring, self.rule)

    @refuse_foreign_arguments
    def fit(
        self,
        X: ItemsLike,
        y: LabelsLike,
        *,
        qid: IdsLike | None = None,
        sample_weight: VectorLike | None = None,
        X_val: ItemsLike | None = None,
        y_val: LabelsLike | None = None,
        qid_val: IdsLike | None = None,
    ) -> Self:
        """Fit items with labels; validation data select the number of rounds.

        Parameters
        ----------
        X, y, qid, sample_weight, X_val, y_val, qid_val : as in :meth:`RankRLSCV.fit`, with one target

        Returns
        -------
        self
        """
        spec = self._spec()
        data = labelled_items(spec, X, y, qid, sample_weight)
        return self._set_fitted(spec.fit(data, validation_plan(spec, data, X_val, y_val, qid_val)))

    def predict(self, X: ItemsLike) -> Array:
        """Score items.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)

        Returns
        -------
        ndarray of shape (m,)
            Scores; higher is better. Only differences between items of the same query are meaningful.

        Notes
        -----
        O(m log stumps) per feature with stumps, which form one step function.
        """
        check_is_fitted(self)
        return self.scorer_(check_matrix(self, X, self._accepts))

    @property
    def scorer_(self) -> Stumps:  # type: ignore[override]
        """The fitted function."""
        return Stumps(self.features_, self.thresholds_, self.weights_, self.train_loss_)

    def staged_predict(self, X: ItemsLike) -> Iterator[Array]:
        """Yield scores after each round, (m,); the last are those of :meth:`predict`.

        Parameters
        ----------
        X : as for :meth:`predict`
        """
        check_is_fitted(self)
        yield from self.scorer_.staged(check_matrix(self, X, self._accepts))

    @property
    def feature_importances_(self) -> Array:
        """Sum of the absolute weights of each feature's stumps, as a share of the total."""
        check_is_fitted(self)
        sums = np.bincount(self.features_, weights=np.abs(self.weights_), minlength=self.n_features_in_)
        return np.asarray(sums / max(sums.sum(), np.finfo(np.float64).tiny))
