"""Transductive RankRLS: queries without labels are ranked to minimize the cross-validation error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rankrls._comparisons import Data, KnownItems, LabelledItems
from rankrls._errors import InputError
from rankrls._typing import FoldsLike, Mask, RandomState
from rankrls.learners.transductive import TransductiveCandidate, TransductiveSolutions
from rankrls.models.fitted import ChosenAttributes, Fitted
from rankrls.models.parameters import (
    BASIS,
    GRAPH,
    GRAPHS,
    KERNEL,
    SELECTION,
    Check,
    Grid,
    KernelLike,
    Scoring,
    Several,
    descending_grid,
    each_of,
    number,
    options,
    word,
)
from rankrls.models.partly_labelled import PartlyLabelledRanker
from rankrls.models.ranker import KernelGraphEstimator
from rankrls.models.spec import LeastSquaresSpec, SearchSpec, Solved
from rankrls.selection.basis import BasisSpec

_PENALTIES = (0.1, 1.0, 10.0, 100.0)
_CHECKS: dict[str, Check] = {
    "n_basis": number(least=1, whole=True, none=True),
    "random_state": BASIS["random_state"],
    # the compared items must not depend on the labels to be estimated
    "ties": word(("include",)),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class TransductiveSpec(SearchSpec[TransductiveSolutions]):
    """RankRLS on all rows, with all penalties.

    Attributes
    ----------
    model : LeastSquaresSpec
        Specification of RankRLS on all rows.
    penalties : tuple of float
        Penalties in descending order.
    """

    model: LeastSquaresSpec
    penalties: tuple[float, ...]

    def candidates(self, data: Data) -> Iterator[TransductiveCandidate]:
        assert isinstance(data, KnownItems)
        all_items = data.all_items
        _check_whole_queries(all_items, data.labelled)
        for model in self.model.candidates(all_items):
            for penalty in self.penalties:
                yield TransductiveCandidate(
                    kernel=model.kernel,
                    choices={**model.choices, "penalty": penalty},
                    model=model,
                    penalty=penalty,
                )

    def fitted(self, data: Data, solved: Solved[TransductiveSolutions]) -> Fitted:
        assert isinstance(data, KnownItems)
        assert isinstance(solved.candidate, TransductiveCandidate)
        all_items = data.all_items
        labels, function = solved.solutions.details[0]
        labels = all_items.given_rows(labels)
        return Fitted.of(
            all_items,
            function,
            solved.candidate.kernel,
            solved.candidate.basis,
            alpha_=solved.value,
            transduction_=labels[:, 0] if all_items.one_target else labels,
        )


class TransductiveRankRLS(KernelGraphEstimator, PartlyLabelledRanker):
    r"""RankRLS that is also fitted to queries without labels.

    The labels of the unlabelled queries V minimize

    .. math::

        \sum_U \lVert F_U ( y_U - f_{U \setminus U}(X_U) ) \rVert^2 + \gamma \lVert y_V - f_V \rVert^2 ,

    the cross-validated pairwise error over all queries U, labelled or not, each held out and predicted by
    :class:`RankRLS` fitted to all others, plus ``penalty`` = :math:`\gamma` times the distance to the supervised
    prediction :math:`f_V` (that of the model of the labelled queries alone). The model is then RankRLS on all queries,
    with the estimated labels.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularization parameter as in :class:`RankRLS`, but positive.
    penalty : float, default=1.0
        Positive weight of the distance to the supervised prediction, which a large penalty returns for unlabelled
        queries and for new rows. :class:`TransductiveRankRLSCV` selects both parameters.
    kernel, gamma, degree, coef0 : as in :class:`RankRLS`
    ties : {"include"}, default="include"
        Tied pairs must be included: otherwise the compared pairs would depend on the unknown labels.
    balance, regression_weight : as in :class:`RankRLS`
    n_basis : int, optional
        Number of items that a kernel model expands over, as in :class:`SparseRankRLS`: O(m r) evaluations of the kernel
        for r items, and no m x m matrix. None uses all items, unless ``basis_indices`` is given.
    basis_indices : sequence of int, optional
        Row numbers in X of the basis, instead of random ones.
    random_state : int, Generator or RandomState, default=0
        Seed of the random basis.

    Attributes
    ----------
    transduction_ : ndarray of shape (m,) or (m, targets)
        Label of each training row: as given, or as estimated for rows of unlabelled queries. NaN for rows of weight
        zero. Only differences within a query are meaningful.
    coef_, dual_coef_, X_fit_, alpha_, n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`
    basis_indices_ : ndarray of shape (r,)
        Row numbers in X of the basis, if there is one. ``dual_coef_`` and ``X_fit_`` then refer to its items.

    See Also
    --------
    TransductiveRankRLSCV : Choose alpha and the penalty.
    CoRankRLS : Views that agree on unlabelled rows.

    Notes
    -----
    The labels are estimated by conjugate gradients, O(m n) per step for n features; before that, O(m n^2 + n^3), and
    O(u^2 (u + n)) per query of u rows. In addition to the data, two copies of m n
    numbers are stored. With a basis of r items, n is replaced by r, and in the dual by m. A basis of all rows gives the
    dual's solution.

    References
    ----------
    Pahikkala, Suominen, Boberg, Salakoski: Transductive ranking via pairwise regularized least-squares. MLG 2007.
    Equations (10) to (12).

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import TransductiveRankRLS
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(40, 3)), np.repeat(np.arange(8), 5)
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=40)
    >>> partly = np.where(qid >= 4, np.nan, y)
    >>> model = TransductiveRankRLS(penalty=0.1).fit(X, partly, qid=qid)
    >>> model.transduction_.shape
    (40,)
    >>> from rankrls.metrics import Measure
    >>> round(Measure("disagreement")(y[20:], model.transduction_[20:], qid=qid[20:]), 3)
    0.125
    >>> gaussian = TransductiveRankRLS(kernel="rbf", n_basis=15).fit(X, partly, qid=qid)
    >>> gaussian.dual_coef_.shape
    (15,)
    """

    _checks = KERNEL | GRAPH | {"alpha": number(above=0.0), "penalty": number(above=0.0)} | _CHECKS

    alpha_: float

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        penalty: float = 1.0,
        kernel: KernelLike = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_basis: int | None = None,
        basis_indices: Sequence[int] | None = None,
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
        random_state: RandomState = 0,
    ) -> None:
        self.alpha = alpha
        self.penalty = penalty
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_basis = n_basis
        self.basis_indices = basis_indices
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.random_state = random_state

    def _spec(self) -> TransductiveSpec:
        return _spec_of(self).at(self.alpha)


class TransductiveRankRLSCV(ChosenAttributes, KernelGraphEstimator, PartlyLabelledRanker):
    r"""Transductive RankRLS with alpha and penalty selected by folds of the labelled queries.

    Has the same objective as :class:`TransductiveRankRLS`. A held-out query loses its labels and remains among the
    unlabelled queries, so it is scored like them. To evaluate new queries, use folds that leave out their rows, as
    :func:`sklearn.model_selection.cross_val_score` does.

    Parameters
    ----------
    alphas : "auto" or array-like, default="auto"
        Positive regularization values to choose from. "auto" is every third value of the grid of :class:`RankRLSCV`.
    penalty : float or tuple, default=(0.1, 1.0, 10.0, 100.0)
        Positive penalties to choose from.
    kernel, gamma, degree, coef0, balance : as in :class:`TransductiveRankRLS`, or a tuple of values to choose from
    ties, regression_weight : as in :class:`TransductiveRankRLS`
    n_basis, basis_indices, random_state : as in :class:`TransductiveRankRLS`
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        Held-out units. None is 5 folds of the labelled queries (each query alone if there are no more); an int is a
        number of folds. Folds given as rows are row numbers of X; rows without a label are ignored. Every fold is
        refitted.
    scoring, rule : as in :class:`RankRLSCV`

    Attributes
    ----------
    alpha_, best_params_, best_score_, best_score_error_, best_index_, cv_results_, selection_, query_scores_,
    alpha_at_edge_ : as in :class:`RankRLSCV`
    penalty_at_edge_ : bool
        The same for the penalty.
    held_out_scores_ : ndarray of shape (m,) or (m, targets)
        Scores of the labelled rows of X by models without the labels of their query; NaN for unlabelled rows.
    transduction_, coef_, dual_coef_, X_fit_, basis_indices_, n_queries_, n_features_in_, feature_names_in_ : as in
        :class:`TransductiveRankRLS`

    See Also
    --------
    TransductiveRankRLS : Fit given parameters.
    CoRankRLS : Views that agree on unlabelled rows.

    Notes
    -----
    One :class:`TransductiveRankRLS` per fold, alpha, penalty and combination of the other parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import TransductiveRankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(120, 10)), np.repeat(np.arange(12), 10)
    >>> y = np.where(qid < 4, X[:, 0] + X[:, 1] + rng.normal(size=120), np.nan)
    >>> model = TransductiveRankRLSCV([1.0, 10.0, 100.0]).fit(X, y, qid=qid)
    >>> model.selection_, sorted(model.best_params_)
    ('4 folds of 4 queries', ['alpha', 'balance', 'kernel', 'penalty', 'ties'])
    """

    _checks = GRAPHS | SELECTION | {"penalty": each_of(number(above=0.0))} | _CHECKS

    alpha_: float

    def __init__(
        self,
        alphas: Grid = "auto",
        *,
        penalty: Several[float] = _PENALTIES,
        kernel: Several[KernelLike] = "linear",
        gamma: Several[float | None] = None,
        degree: Several[int] = 3,
        coef0: Several[float] = 1.0,
        n_basis: int | None = None,
        basis_indices: Sequence[int] | None = None,
        ties: str = "include",
        balance: Several[str] = "examples",
        regression_weight: float = 0.0,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        cv: FoldsLike = None,
        random_state: RandomState = 0,
    ) -> None:
        self.alphas = alphas
        self.penalty = penalty
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_basis = n_basis
        self.basis_indices = basis_indices
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.scoring = scoring
        self.rule = rule
        self.cv = cv
        self.random_state = random_state

    def _spec(self) -> TransductiveSpec:
        grid = descending_grid(self.alphas, positive=True)
        return _spec_of(self).choosing(grid, self.scoring, self.rule, self.cv)


def _spec_of(model: TransductiveRankRLS | TransductiveRankRLSCV) -> TransductiveSpec:
    """Specification from the parameters that both classes have."""
    basis = None
    if model.n_basis is not None or model.basis_indices is not None:
        basis = BasisSpec(model.n_basis, model.basis_indices, model.random_state)
    least_squares = model._least_squares(basis=basis)
    return TransductiveSpec(
        name=least_squares.name,
        accepts=model._accepts,
        kind=least_squares.kind,
        graphs=least_squares.graphs,
        model=least_squares,
        penalties=tuple(sorted((float(each) for each in options(model.penalty, "penalty")), reverse=True)),
    )


def _check_whole_queries(data: LabelledItems, labelled: Mask) -> None:
    """Refuse queries with labels in only some of their rows."""
    codes = data.layout.codes
    partly = np.flatnonzero(~labelled & np.isin(codes, codes[labelled]))
    if len(partly):
        row = int(data.given_numbers(partly)[0])
        query = data.layout.ids[codes[partly[0]]]
        where = f"row {row}, in query {query!s}, which has labels" if data.has_qid else f"row {row}"
        remedy = "Drop its rows without a label." if data.has_qid else "Drop its rows without a label, or pass qid."
        problem = f"Input y contains NaN: {where}. Each query needs labels in all its rows or in none. {remedy}"
        raise InputError(problem, parameter="y", row=row)
