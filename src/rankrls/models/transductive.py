"""Transductive RankRLS: queries without labels are ranked so that cross-validation goes best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls.learners.transductive import TransductiveProblem
from rankrls.metrics import resolve_measure
from rankrls.models import fitting
from rankrls.models.inputs.basis import make_basis
from rankrls.models.inputs.parameters import (
    GraphParameters,
    KernelParameters,
    SelectionParameters,
    check_alpha,
    check_parameters,
    check_seed,
    choice,
    estimator,
    number,
    options,
    parameter,
)
from rankrls.models.partly_labelled import partly_labelled
from rankrls.models.ranker import Candidate, Ranker
from rankrls.numerics.scorer import Scorer
from rankrls.selection.folds import few_folds, group_blocks
from rankrls.selection.least_squares import LeastSquares
from rankrls.selection.search import search

__all__ = ["TransductiveRankRLS", "TransductiveRankRLSCV"]

_PENALTIES = (0.1, 1.0, 10.0, 100.0)


@estimator
class _Transductive(Ranker, GraphParameters, KernelParameters):
    """What fits queries without labels."""

    # groups are folds of queries here: those of a splitter do not travel into fit unless asked for.
    __metadata_request__fit = {"qid": True, "groups": False}  # noqa: RUF012
    _takes_unlabelled = True

    penalty: Any = parameter(default=1.0, check=number(above=0.0), several=True)
    solver: str = parameter(default="auto", check=choice("auto", "primal", "dual"))
    n_basis: Any = parameter(default=None, check=number(least=1, whole=True, none=True))
    basis: str = parameter(default="random", check=choice("random", "kmeans"))
    basis_indices: Any = parameter(default=None)
    random_state: Any = parameter(default=0, check=check_seed)

    def fit(self, X: Any, y: Any, *, qid: Any = None, groups: Any = None, sample_weight: Any = None) -> Self:
        """Learn from queries with labels and queries without.

        Parameters
        ----------
        X : as for :meth:`RankRLS.fit`
        y : array-like of shape (m,) or (m, targets)
            NaN in every row of a query without labels. Without NaN this is :class:`RankRLS`.
        qid : array-like of shape (m,), optional
            One query id per row. None makes everything one labelled query.
        groups : array-like of shape (m,), optional
            Queries of one group are one fold of the cross-validated error. Each query is a fold by default.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative; a pair weighs ``w_i w_j``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For bad input; where a query has labels in some of its rows only; where no query has labels; and where
            there is but one fold.
        """
        self._check()
        rows = partly_labelled(self, X, y, qid, sample_weight)
        data = rows.everything
        _check_whole_queries(data, rows.labelled)
        needed = not rows.labelled.all() or (hasattr(self, "alphas") and data.n_queries > 1)
        self._solve(data, rows.known, group_blocks(data, groups) if needed else [])
        return self

    def _solve(self, data: LabelledItems, known: LabelledItems, folds: Sequence[Any]) -> None:
        raise NotImplementedError

    def _candidates(self, data: LabelledItems, folds: Sequence[Any]) -> Iterator[Candidate]:
        """The candidates; ``basis`` of each is the model that is solved on all rows."""
        has_basis = self.n_basis is not None or self.basis_indices is not None
        if has_basis and self.solver != "auto":
            raise InputError(
                f"With a basis (n_basis, basis_indices) there is one solver; got {self.solver!r}. Leave solver='auto'.",
                parameter="solver",
            )
        for kernel, choices in fitting.kernels_of(self, data.X):
            for setting, chosen in fitting.settings_of(self, data):
                make = partial(make_basis, self, data, kernel) if has_basis else None
                model = LeastSquares(kernel=kernel, setting=setting, solver=self.solver, make_basis=make)
                for penalty in sorted((float(value) for value in options(self.penalty, "penalty")), reverse=True):
                    how: dict[str, Any] = {"model": model, "data": data, "folds": folds, "penalty": penalty}
                    problem = partial(TransductiveProblem, **how)
                    yield Candidate({**choices, **chosen, "penalty": penalty}, problem, kernel, model)

    def _store(self, data: LabelledItems, candidate: Candidate, found: tuple[NDArray[np.float64], Scorer]) -> None:
        labels, function = found
        fitting.begin(self, data)
        fitting.keep(self, function.over(data.kept), candidate.kernel)
        fitting.keep_basis(self, candidate.basis.basis, data)
        labels = data.given_rows(labels)
        self.transduction_ = labels[:, 0] if data.one_target else labels

    def _check(self) -> None:
        check_parameters(self, several=hasattr(self, "alphas"))
        if "exclude" in options(self.ties, "ties"):
            raise InputError(
                "ties='exclude' compares only items with different labels, but the labels of unlabelled "
                "queries are not known. Use ties='include'.",
                parameter="ties",
            )


@estimator
class TransductiveRankRLS(_Transductive):
    r"""RankRLS that also learns from queries without labels.

    The labels of the unlabelled queries V minimise

    .. math::

        \sum_U \lVert F_U ( y_U - f_{U \setminus U}(X_U) ) \rVert^2 + \gamma \lVert y_V - f_V \rVert^2 ,

    the cross-validated pairwise error over all queries U, labelled or not, each held out in its turn and predicted by
    :class:`RankRLS` on all others, plus ``penalty`` = :math:`\gamma` times the distance to the supervised prediction
    :math:`f_V` (that of the model of the labelled queries alone). The model is then RankRLS on all queries, with the
    labels found.

    Parameters
    ----------
    alpha : float, default=1.0
        As in :class:`RankRLS`, but positive.
    penalty : float, default=1.0
        Positive. A large penalty gives the supervised prediction, for the unlabelled queries as for new rows.
        :class:`TransductiveRankRLSCV` chooses both.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`
    ties : {"include"}, default="include"
        "exclude" is an error: which items are compared would depend on the labels that are sought.
    balance, regression_weight : as in :class:`RankRLS`
    solver : {"auto", "primal", "dual"}, default="auto"
        As in :class:`RankRLS`.
    n_basis : int, optional
        Items that a kernel model expands over, as in :class:`SparseRankRLS`: O(m r) evaluations of the kernel for r of
        them, and no m x m matrix. None takes all, unless ``basis_indices`` names some.
    basis : {"random", "kmeans"}, default="random"
        How they are chosen; unlabelled queries lend items too.
    basis_indices : sequence of int, optional
        Row numbers of X to be the basis instead.
    random_state : int, Generator or RandomState, default=0
        For choosing the basis.

    Attributes
    ----------
    transduction_ : ndarray of shape (m,) or (m, targets)
        The label of each training row: as given, or as found for rows of unlabelled queries. NaN for rows of weight
        zero. Only differences inside a query mean anything.
    coef_, dual_coef_, X_fit_, alpha_, n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`
    basis_indices_ : ndarray of shape (r,) or None
        With a basis only: its row numbers in X. ``dual_coef_`` and ``X_fit_`` are then those of its items.

    Notes
    -----
    The labels are found by conjugate gradients, O(m n) a step for n features; before that O(m n^2 + n^3), and O(u^2 n)
    or O(u n^2 + n^3), whichever is less, for each fold of u rows. Beside the data m n numbers are held twice. With a
    basis of r items the same, r in the place of n, and in the dual m. A basis of all rows gives the dual's solution.

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

    alpha: float = parameter(default=1.0, check=lambda name, value: check_alpha(value), kw_only=False)

    def _check(self) -> None:
        super()._check()
        if float(self.alpha) == 0.0:
            raise InputError(
                "alpha must be positive: queries are held out, which nothing determines at alpha = 0.",
                parameter="alpha",
            )

    def _solve(self, data: LabelledItems, known: LabelledItems, folds: Sequence[Any]) -> None:
        candidate = next(self._candidates(data, folds))
        self._store(data, candidate, candidate.problem(known).path(np.array([float(self.alpha)])).details[0])
        self.alpha_ = float(self.alpha)


@estimator
class TransductiveRankRLSCV(_Transductive, SelectionParameters):
    r"""Transductive RankRLS whose alpha and penalty are chosen by folds of the labelled queries.

    Minimises what :class:`TransductiveRankRLS` minimises. A query that is held out loses its labels and stays among the
    unlabelled ones; its scores are those that the unlabelled queries will get. Queries that are new altogether are
    judged by folds that leave their rows out, as of :func:`sklearn.model_selection.cross_val_score`.

    Parameters
    ----------
    alphas : "auto" or array-like, default="auto"
        Regularization values to choose from, positive. "auto" is every third value of the grid of :class:`RankRLSCV`.
    penalty : float or tuple, default=(0.1, 1.0, 10.0, 100.0)
        Values to choose from, positive.
    kernel, gamma, degree, coef0, balance : as in :class:`TransductiveRankRLS`, or a tuple of values to choose from
    kernel_params, ties, regression_weight, solver : as in :class:`TransductiveRankRLS`
    n_basis, basis, basis_indices, random_state : as in :class:`TransductiveRankRLS`
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of the labelled queries, each query alone if there are no more; an int is that many. Folds of
        your own name rows of X, of which those without a label are passed over. Every fold is refitted.
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
    One :class:`TransductiveRankRLS` for each fold, alpha, penalty and whatever else is given as a tuple.

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
    penalty: Any = parameter(default=_PENALTIES, check=number(above=0.0), several=True)

    def _solve(self, data: LabelledItems, known: LabelledItems, folds: Sequence[Any]) -> None:
        alphas, measure = fitting.alphas_of(self, positive=True), resolve_measure(self.scoring)
        plan = few_folds(self.cv, measure, known, float(self.regression_weight))
        results = search(self._candidates(data, folds), known, plan, self.rule, alphas, int(self.verbose))
        self._store(data, results.best_state.candidate, results.best_state.solutions.details[0])
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
            f"Input y contains NaN: {where}. A query has labels in all its rows or in none: drop rows without a label "
            f"from a query that has some{'' if data.has_qid else ', or pass qid'}.",
            parameter="y",
            row=row,
        )
