"""Transductive RankRLS: queries without labels are ranked so that cross-validation goes best."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls.learners.transductive import TransductiveProblem
from rankrls.metrics import resolve_measure
from rankrls.models import fitting
from rankrls.models.parameters import BasisParameters, SelectionParameters, estimator, options, parameter
from rankrls.models.partly_labelled import PartlyLabelled, PartlyLabelledRanker
from rankrls.models.ranker import Candidate
from rankrls.numerics.scorer import Scorer
from rankrls.selection.folds import query_blocks
from rankrls.selection.plans import few_folds
from rankrls.selection.search import search

_PENALTIES = (0.1, 1.0, 10.0, 100.0)


@estimator
class _Transductive(PartlyLabelledRanker, BasisParameters):
    """Fits queries with labels and queries without; y may have several targets."""

    penalty: Any = parameter(default=1.0, above=0.0, several=True)
    solver: str = parameter(default="auto", check=("auto", "primal", "dual"))
    # which items are compared must not depend on the labels that are sought
    ties: str = parameter(default="include", check=("include",))

    def _candidates(self, rows: PartlyLabelled) -> Iterator[Candidate]:
        """The candidates; ``basis`` of each is the model that is solved on all rows."""
        data = rows.everything
        _check_whole_queries(data, rows.labelled)
        how: dict[str, Any] = {"data": data, "folds": query_blocks(data.layout)}
        penalties = sorted((float(value) for value in options(self.penalty, "penalty")), reverse=True)
        for model in fitting.least_squares(self, data):
            for penalty in penalties:
                problem = partial(TransductiveProblem, model=model, penalty=penalty, **how)
                yield Candidate({**model.choices, "penalty": penalty}, problem, model.kernel, model)

    def _store(self, data: LabelledItems, candidate: Candidate, found: tuple[NDArray[np.float64], Scorer]) -> None:
        labels, function = found
        fitting.begin(self, data)
        fitting.keep(self, function, candidate.kernel, data, candidate.basis.basis)
        labels = data.given_rows(labels)
        self.transduction_ = labels[:, 0] if data.one_target else labels


@estimator
class TransductiveRankRLS(_Transductive):
    r"""RankRLS that is also fitted on queries without labels.

    The labels of the unlabelled queries V minimise

    .. math::

        \sum_U \lVert F_U ( y_U - f_{U \setminus U}(X_U) ) \rVert^2 + \gamma \lVert y_V - f_V \rVert^2 ,

    the cross-validated pairwise error over all queries U, labelled or not, each of which is held out and predicted by
    :class:`RankRLS` fitted on all others, plus ``penalty`` = :math:`\gamma` times the distance to the supervised
    prediction :math:`f_V` (that of the model of the labelled queries alone). The model is then RankRLS on all queries,
    with the labels found.

    Parameters
    ----------
    alpha : float, default=1.0
        As in :class:`RankRLS`, but it must be positive.
    penalty : float, default=1.0
        Positive. A large penalty gives the supervised prediction, for unlabelled queries and for new rows.
        :class:`TransductiveRankRLSCV` chooses both.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`
    ties : {"include"}, default="include"
        "exclude" is an error, because the compared pairs would depend on the unknown labels.
    balance, regression_weight : as in :class:`RankRLS`
    solver : {"auto", "primal", "dual"}, default="auto"
        As in :class:`RankRLS`.
    n_basis : int, optional
        Items that a kernel model expands over, as in :class:`SparseRankRLS`: O(m r) evaluations of the kernel for r of
        them, and no m x m matrix. None takes all, unless ``basis_indices`` names some.
    basis_indices : sequence of int, optional
        Row numbers of X to be the basis instead.
    random_state : int, Generator or RandomState, default=0
        For choosing the basis.

    Attributes
    ----------
    transduction_ : ndarray of shape (m,) or (m, targets)
        The label of each training row: as given, or as found for rows of unlabelled queries. NaN for rows of weight
        zero. Only differences within a query are meaningful.
    coef_, dual_coef_, X_fit_, alpha_, n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`
    basis_indices_ : ndarray of shape (r,)
        With a basis only: its row numbers in X. ``dual_coef_`` and ``X_fit_`` are then those of its items.

    Notes
    -----
    The labels are found by conjugate gradients, O(m n) a step for n features; before that O(m n^2 + n^3), and O(u^2 n)
    or O(u n^2 + n^3), whichever is less, for each fold of u rows. In addition to the data, two copies of m n numbers
    are held. With a basis of r items n is replaced by r, and in the dual by m. A basis of all rows gives the dual's
    solution.

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

    alpha: float = parameter(default=1.0, above=0.0, kw_only=False)

    def _solve(self, rows: PartlyLabelled) -> None:
        candidate = next(self._candidates(rows))
        found = candidate.problem(rows.known).path(np.array([float(self.alpha)])).details[0]
        self._store(rows.everything, candidate, found)
        self.alpha_ = float(self.alpha)


@estimator
class TransductiveRankRLSCV(_Transductive, SelectionParameters):
    r"""Transductive RankRLS whose alpha and penalty are chosen by folds of the labelled queries.

    Minimises what :class:`TransductiveRankRLS` minimises. A held-out query loses its labels and stays among the
    unlabelled queries, so it is scored as they are. To evaluate new queries, use folds that leave out their rows, as
    :func:`sklearn.model_selection.cross_val_score` does.

    Parameters
    ----------
    alphas : "auto" or array-like, default="auto"
        Regularization values to choose from, positive. "auto" is every third value of the grid of :class:`RankRLSCV`.
    penalty : float or tuple, default=(0.1, 1.0, 10.0, 100.0)
        Values to choose from, positive.
    kernel, gamma, degree, coef0, balance : as in :class:`TransductiveRankRLS`, or a tuple of values to choose from
    kernel_params, ties, regression_weight, solver : as in :class:`TransductiveRankRLS`
    n_basis, basis_indices, random_state : as in :class:`TransductiveRankRLS`
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of the labelled queries, each query alone if there are no more; an int is that many. Your own
        folds name rows of X; rows without a label are ignored. Every fold is refitted.
    scoring, rule, verbose : as in :class:`RankRLSCV`

    Attributes
    ----------
    alpha_, best_params_, best_score_, best_score_error_, best_index_, cv_results_, selection_, query_scores_,
    alpha_at_edge_, penalty_at_edge_ : as in :class:`RankRLSCV`
    held_out_scores_ : ndarray of shape (m,) or (m, targets)
        Scores of the labelled rows of X by models without their query's labels; NaN for unlabelled rows.
    transduction_, coef_, dual_coef_, X_fit_, basis_indices_, n_queries_, n_features_in_, feature_names_in_ : as in
        :class:`TransductiveRankRLS`

    Notes
    -----
    One :class:`TransductiveRankRLS` for each fold, alpha, penalty and other value of a tuple.

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

    alphas: Any = parameter(default="auto", kw_only=False)
    penalty: Any = parameter(default=_PENALTIES, above=0.0, several=True)

    def _solve(self, rows: PartlyLabelled) -> None:
        alphas, known = fitting.alphas_of(self, positive=True), rows.known
        plan = few_folds(self.cv, resolve_measure(self.scoring), known, float(self.regression_weight))
        results = search(self._candidates(rows), known, plan, self.rule, alphas, int(self.verbose))
        self._store(rows.everything, results.candidate, results.solutions.details[0])
        fitting.publish(self, results, plan.description, known)


def _check_whole_queries(data: LabelledItems, labelled: NDArray[np.bool_]) -> None:
    """Refuse queries with labels in some of their rows only."""
    codes = data.layout.codes
    partly = np.flatnonzero(~labelled & np.isin(codes, codes[labelled]))
    if len(partly):
        row = int(data.given_numbers(partly)[0])
        name = data.layout.ids[codes[partly[:1]]].tolist()[0]
        where = f"row {row}, in query {name!r}, which has labels" if data.has_qid else f"row {row}"
        raise InputError(
            f"Input y contains NaN: {where}. Each query needs labels in all its rows or in none: drop its "
            f"rows without a label{'' if data.has_qid else ', or pass qid'}.",
            parameter="y",
            row=row,
        )
