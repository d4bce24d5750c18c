"""Leave-pair-out: the concordance index of a ranking, with each pair held out in turn, without refitting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from rankrls._checks import refusing
from rankrls._comparisons import Data, LabelledItems, PreferredItems
from rankrls._errors import InputError, warn_user
from rankrls._shown import Shown, table_text
from rankrls._typing import Array, HasShape, IdsLike, Index, ItemsLike, LabelsLike, Matrix, VectorLike
from rankrls.model_selection.query_holdout import checked_spec, group_layout, labelled_data, scores_of_given_rows
from rankrls.models.fitted import lost_feature_warning
from rankrls.models.intake import labelled_items, preferred_items
from rankrls.models.parameters import Grid, number
from rankrls.models.rankrls import RankRLS
from rankrls.models.sparse_rankrls import SparseRankRLS
from rankrls.models.spec import LeastSquaresSpec
from rankrls.numerics.concordance import CONFIDENCE
from rankrls.numerics.pairs import held_out_labels
from rankrls.selection.folds import check_folds_leave_something
from rankrls.selection.leave_pair_out import (
    check_query_pairs,
    preference_concordance,
    query_concordance,
    why_pairs_cannot_be_held_out,
)
from rankrls.survival import survival_pairs


@dataclass(frozen=True, eq=False, repr=False)
class PairHoldout(Shown):
    """Result of :func:`leave_pair_out`: one number per alpha, or plain floats without ``alphas``.

    Attributes
    ----------
    alpha : float or ndarray of shape (alphas,)
        Regularization values.
    score : float or ndarray of shape (alphas,)
        Concordance index of the held-out pairs; for a binary label, the AUC.
    standard_error : float or ndarray of shape (alphas,)
        Standard error of the score, from the mean concordances of the items.
    interval : tuple of (low, high)
        Confidence interval of the score; each bound has the shape of ``score``.
    differences : ndarray of shape (pairs,) or (pairs, alphas), or None
        For given pairs, the held-out score of the first row minus that of the second; 0 for a tie.
    n_pairs : int
        Number of held-out pairs.
    confidence : float
        Confidence level of the interval.
    """

    alpha: Any
    score: Any
    standard_error: Any
    interval: tuple[Any, Any]
    differences: Array | None
    n_pairs: int
    confidence: float

    def __str__(self) -> str:
        columns = (self.alpha, self.score, self.standard_error, *self.interval)
        values = np.stack([np.atleast_1d(column) for column in columns], axis=1).tolist()
        rows = [[f"{a:.4g}", f"{s:.4f}", f"{e:.4f}", f"{low:.4f} to {high:.4f}"] for a, s, e, low, high in values]
        names = ["alpha", "C-index", "std. error", f"{100 * self.confidence:g} % interval"]
        return f"Leave-pair-out over {self.n_pairs} pairs\n{table_text(names, rows)}"


def leave_pair_out(
    estimator: RankRLS | SparseRankRLS,
    X: ItemsLike,
    y: LabelsLike,
    *,
    event: VectorLike | None = None,
    pairs: HasShape | Sequence[Sequence[int]] | None = None,
    alphas: Grid | None = None,
    qid: IdsLike | None = None,
    sample_weight: VectorLike | None = None,
    confidence: float = CONFIDENCE,
) -> PairHoldout:
    r"""Evaluate a ranking by the order of each pair of items, using a model fitted without the two items.

    The score is :math:`\frac{1}{N} \sum_{y_i > y_j} [ f_i > f_j ] + \frac12 [ f_i = f_j ]`, with f fitted without i and
    j. It equals refits without each pair, from one factorization. For binary labels it is the area under the ROC curve,
    without the bias of pooling scores of different models.

    Parameters
    ----------
    estimator : RankRLS or SparseRankRLS
        Estimator whose parameters are used; it need not be fitted and is not changed. It needs ``ties="include"``.
    X, y, sample_weight : as in :meth:`RankRLS.fit`
        Data with one target; the weight of a pair is the product of the weights of its rows.
    event : array-like of shape (m,), optional
        1 if the event was observed, 0 if the item was censored; y then contains right-censored times. The model is
        fitted by ``fit_pairs`` to the comparable pairs of :func:`~rankrls.survival_pairs`, and the score is Harrell's
        C-index of these pairs; higher scores mean longer times. For RankRLS without ``sample_weight`` and ``pairs``.
    pairs : array-like of shape (p, 2), optional
        Row numbers of the pairs to hold out. By default all pairs with different labels, whose differences are not
        returned.
    alphas : "auto" or sequence of float, optional
        Positive regularization values; "auto" is a grid relative to the spectrum, as in :class:`rankrls.RankRLSCV`. By
        default the estimator's own alpha.
    qid : array-like of shape (m,), optional
        Query ids, to hold out only pairs within queries, all with the same weight; needs ``balance="examples"``. By
        default all rows are one ranking.
    confidence : float, default=0.95
        Confidence level of the interval.

    Returns
    -------
    PairHoldout

    Raises
    ------
    ValueError
        If the pairs of the estimator's graph cannot be held out without refitting, with the reason; if a pair has equal
        labels, is of different queries, or has unknown rows; if nothing is left to compare without a pair.

    See Also
    --------
    nested_estimate : Evaluate a model together with its choice.
    permutation_test : Test whether the value is better than chance.
    leave_query_out : Hold out queries.

    Notes
    -----
    With ``event``: O(m d) per pair, alpha and step of conjugate gradients, about ten of them, with d = min(m, n) (m for
    a kernel), and m x m memory. They are iterated to 1e-12; pairs that do not converge are solved directly.

    Primal: O(m n^2 + n^3), then O(m^2 n) per alpha; dual: O(m^3) per alpha. Memory for a few hundred rows of m pairs at
    a time, and in the dual two m x m matrices.

    The standard error is that of the projection of the U-statistic on its items (Hoeffding 1948); for a binary label it
    is that of DeLong et al. (1988) with n instead of n - 1. The interval is normal on the logit scale (Pepe 2003). If
    all pairs have the same result, there is no standard error, and the interval is that of Clopper and Pearson (1934),
    where the number of trials is the largest number of pairs without a common item. Both ignore the variation between
    training samples. For labels unrelated to the features and 20 to 100 items, the 95 % interval contained 0.5 in 80 to
    86 % of the samples. For given ``pairs`` that share few items, intervals are too wide.

    The basis of SparseRankRLS is selected once, from all rows, and can contain held-out items.

    References
    ----------
    Pahikkala, Airola, Boberg, Salakoski: Exact and efficient leave-pair-out cross-validation for ranking RLS.
    AKRR 2008.

    Airola, Pahikkala, Waegeman, De Baets, Salakoski: An experimental comparison of cross-validation techniques for
    estimating the area under the ROC curve. Computational Statistics & Data Analysis 55, 2011.

    DeLong, DeLong, Clarke-Pearson: Comparing the areas under two or more correlated receiver operating characteristic
    curves. Biometrics 44, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> from rankrls.model_selection import leave_pair_out
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=40)  # forty patients
    >>> X = rng.normal(size=(40, 200))  # two hundred genes
    >>> X[:, :20] += 0.5 * y[:, None]
    >>> result = leave_pair_out(RankRLS(alpha=10.0), X, y)
    >>> result.n_pairs, round(result.score, 3)
    (391, 0.798)
    >>> [round(end, 2) for end in result.interval]
    [0.63, 0.9]
    >>> leave_pair_out(RankRLS(), X, y, alphas=[1.0, 100.0], pairs=[(0, 3), (1, 4)]).differences.shape
    (2, 2)
    """
    auto = isinstance(alphas, str) and alphas == "auto"
    spec, grid = checked_spec(estimator, None if auto else alphas, "leave_pair_out")
    number(above=0.0, below=1.0)("confidence", confidence)
    data: Data
    if event is None:
        data = labelled = labelled_data(spec, X, y, qid, sample_weight)
        parameter = "positive" if spec.signed else "estimator"
        settings = [setting for setting, _ in spec.graphs]
        check_query_pairs(labelled, settings, constrained=spec.signed, parameter=parameter)
        chosen = None if pairs is None else _labelled_pairs(pairs, labelled)
        concordance = partial(query_concordance, labelled, pairs=chosen)
    else:
        data = preferred = _comparable_items(spec, X, y, event, qid, sample_weight=sample_weight, pairs=pairs)
        concordance = partial(preference_concordance, preferred)
    problem = next(spec.candidates(data)).problem(data)
    if problem.lost_feature is not None:
        warn_user(lost_feature_warning(data, problem.lost_feature))
    grid = problem.axis() if auto else grid
    try:
        found = concordance(problem=problem, alphas=grid, confidence=float(confidence))
    except InputError as refusal:
        raise refusal if event is None else refusal.replace(parameter="event") from None
    columns: list[Any] = [grid, found.score, found.error, *found.interval]
    margins = found.margins
    if alphas is None:
        columns = [float(column[0]) for column in columns]
        margins = None if margins is None else margins[:, 0]
    alpha, score, error, low, high = columns
    return PairHoldout(alpha, score, error, (low, high), margins, found.n_pairs, float(confidence))


def leave_rows_out(
    estimator: RankRLS | SparseRankRLS,
    X: ItemsLike,
    y: LabelsLike,
    *,
    groups: IdsLike | None = None,
    alphas: VectorLike | None = None,
    sample_weight: VectorLike | None = None,
) -> Array:
    r"""Predict the label of every row of one ranking by a model fitted without the row or its group.

    The result equals refitting without each row or group, for every alpha, from one factorization. The predicted label
    is the score plus the mean of labels minus scores over the fitted rows.

    Parameters
    ----------
    estimator : RankRLS or SparseRankRLS
        Estimator whose parameters are used; it need not be fitted and is not changed. It needs ``ties="include"``.
    X, y, sample_weight : as in :meth:`RankRLS.fit`
        Data of one ranking; y may have several targets.
    groups : array-like of shape (m,), optional
        Groups of rows that are held out together, such as folds or visits of one patient. By default, each row is held
        out alone.
    alphas : sequence of float, optional
        Positive regularization values; by default the estimator's own alpha.

    Returns
    -------
    ndarray of shape (m,), (m, alphas), (m, targets) or (m, alphas, targets)
        Predicted labels in row order; the axis of alphas exists if ``alphas`` is given, that of targets if y has two
        dimensions. NaN for rows with weight zero.

    Raises
    ------
    InputError
        If the rows of the estimator's graph cannot be held out without refitting, with the reason; if there is a single
        group; or if the labels without a group are all equal.

    Notes
    -----
    **Do not compute an AUC or a C-index over all these numbers**: rows of different groups are scored by different
    models, and on noise such an AUC is below one half. Compare rows of one group, plot predictions against labels, or
    use :func:`leave_pair_out`, which compares two rows by the same model.

    O(m n^2 + n^3) or, in the dual, O(m^3), and O(u^2 k + u^3) per group of u rows and alpha, with k eigenvectors. The
    basis of SparseRankRLS is selected once, from all rows, and can contain held-out items.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> from rankrls.model_selection import leave_rows_out
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 3))
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=40)
    >>> predicted = leave_rows_out(RankRLS(), X, y)
    >>> round(float(np.corrcoef(y, predicted)[0, 1]), 2)
    0.9
    """
    spec, grid = checked_spec(estimator, alphas, "leave_rows_out")
    data = labelled_items(spec, X, y, None, sample_weight)
    reason = why_pairs_cannot_be_held_out(data, [setting for setting, _ in spec.graphs], constrained=spec.signed)
    if reason is not None:
        raise InputError(f"Rows cannot be held out without refitting: {reason}.", parameter="estimator")
    folds = group_layout(np.arange(data.n_given) if groups is None else groups, data).blocks
    if len(folds) < 2:
        raise InputError("There is a single group: holding it out leaves no data to fit.", parameter="groups")
    most_common = [np.unique(labels, return_counts=True)[1].max() for labels in data.Y.T]
    large = [fold for fold in folds if len(fold) >= data.n_rows - max(most_common)]  # others leave two distinct labels
    remedy = "Hold out fewer rows together."
    check_folds_leave_something(data, large, spec.regression_weight, remedy=remedy, parameter="groups")
    problem = next(spec.candidates(data)).problem(data)
    (solver,) = problem.solvers
    (graph,) = data.numeric_graphs(problem.setting)
    found = held_out_labels(solver.smoother, graph, solver.features, grid, folds, problem.setting.balance)
    return scores_of_given_rows(found, data, alphas)


def _comparable_items(
    spec: LeastSquaresSpec,
    X: ItemsLike,
    time: LabelsLike,
    event: VectorLike,
    qid: IdsLike | None,
    **others: object,
) -> PreferredItems:
    """Comparable pairs of the items, for a model whose pairs can be held out, without ``others``."""
    if spec.basis is not None or spec.signed:
        raise InputError("To hold out pairs of censored times, use RankRLS without positive.", parameter="estimator")
    for name, value in others.items():
        if value is not None:
            raise InputError(f"event cannot be used with {name}. Leave one of them out.", parameter="event")
    with refusing("X"):
        check_consistent_length(X, time, event)
    winners, losers = survival_pairs(time, event, qid=qid)
    return preferred_items(spec, X, winners, losers, None, None)


def _labelled_pairs(pairs: object, data: LabelledItems) -> tuple[Index, Index]:
    """Both items of each pair, as numbers of the remaining rows."""
    given = _row_pairs(pairs, data.n_given)
    out = given
    if data.kept is not None:
        _refuse_pairs(given, ~data.kept[given].all(axis=1), "a row has weight zero")
        out = (np.cumsum(data.kept) - 1)[given]
    codes = data.layout.codes[out]
    y = data.Y[out, 0]
    different = codes[:, 0] != codes[:, 1]
    _refuse_pairs(given, different, "they belong to different queries, whose scores cannot be compared")
    _refuse_pairs(given, y[:, 0] == y[:, 1], "their labels are equal, so neither order is correct")
    return out[:, 0], out[:, 1]


def _row_pairs(pairs: object, m: int) -> Index:
    """Two different rows of each pair, (pairs, 2)."""
    given = np.asarray(pairs)
    if given.ndim != 2 or given.shape[1] != 2 or not len(given) or given.dtype.kind not in "iu":
        raise InputError(
            f"pairs must contain two row numbers each, shape (p, 2); got shape {given.shape} of dtype {given.dtype}.",
            parameter="pairs",
        )
    _refuse_pairs(given, ((given < 0) | (given >= m)).any(axis=1), f"the rows are 0 to {m - 1}")
    _refuse_pairs(given, given[:, 0] == given[:, 1], "a row cannot be paired with itself")
    return given.astype(np.intp)


def _refuse_pairs(given: Index, bad: Matrix, what: str) -> None:
    """Refuse the first of the bad pairs."""
    if bad.any():
        k = int(np.argmax(bad))
        a, b = given[k].tolist()
        raise InputError(f"Pair {k}, rows {a} and {b}: {what}.", parameter="pairs", row=a)
