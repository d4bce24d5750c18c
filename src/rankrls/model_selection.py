"""Held-out scores without refitting; nested estimates and permutation tests, which repeat the selection of a model."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import check_consistent_length, indexable

from rankrls._checks import check_finite, refusing, vector_of
from rankrls._comparisons import Data, LabelledItems, PreferredItems
from rankrls._curves import QueryEvaluator
from rankrls._errors import InputError, warn_of_cost, warn_user
from rankrls._queries import QueryLayout, query_layout
from rankrls._shown import Shown, p_text, table_text
from rankrls._typing import (
    AnyArray,
    Array,
    HasShape,
    IdsLike,
    Index,
    ItemsLike,
    LabelsLike,
    Matrix,
    Splitter,
    Values,
    VectorLike,
)
from rankrls.metrics._measure import Measure, mean_and_error, mean_of_judged, preference_accuracy
from rankrls.metrics._scorer import predict_by_query
from rankrls.models.fitted import ChosenAttributes, lost_feature_warning
from rankrls.models.intake import check_comparable, labelled_items, preferred_items
from rankrls.models.parameters import Grid, check_grid, number, options
from rankrls.models.ranker import Chooses, Ranker
from rankrls.models.rankrls import RankRLS, RankRLSCV, SparseRankRLS
from rankrls.models.spec import LeastSquaresSpec
from rankrls.numerics.concordance import CONFIDENCE
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.pairs import held_out_concordance, held_out_labels
from rankrls.selection.folds import check_folds_leave_something, preference_units
from rankrls.selection.least_squares import LeastSquaresProblem
from rankrls.selection.plans import (
    PairsPlan,
    Plan,
    UnitsPlan,
    check_query_pairs,
    preference_concordance,
    query_concordance,
    why_pairs_cannot_be_held_out,
)
from rankrls.selection.search import progress, reaches
from rankrls.survival import survival_pairs

__all__ = [
    "NestedEstimate",
    "PairHoldout",
    "PermutationTest",
    "leave_pair_out",
    "leave_preference_out",
    "leave_query_out",
    "leave_rows_out",
    "nested_estimate",
    "permutation_test",
]

_BATCH = 1 << 24
"""Maximum number of held-out scores of the permutations that share a factorization."""


def leave_query_out(
    estimator: RankRLS | SparseRankRLS,
    X: ItemsLike,
    y: LabelsLike,
    *,
    qid: IdsLike,
    alphas: VectorLike | None = None,
    groups: IdsLike | None = None,
    sample_weight: VectorLike | None = None,
) -> Array:
    """Score every row by a model fitted without the row's query.

    The result equals refitting without each query, for every alpha, from one factorization: the scores minimize
    ``||F (y - f)||^2 + alpha ||f||^2`` over all queries except the row's own.

    Parameters
    ----------
    estimator : RankRLS or SparseRankRLS
        Estimator whose parameters are used; it need not be fitted and is not changed.
    X, y, sample_weight : as in :meth:`RankRLS.fit`
    qid : array-like of shape (m,)
        One query id per row.
    alphas : sequence of float, optional
        Positive regularization values; by default the estimator's own alpha.
    groups : array-like of shape (m,), optional
        Groups of queries that are held out together (folds, users, ...); every query must be in one group. By default,
        each query is held out alone.

    Returns
    -------
    ndarray of shape (m,), (m, alphas), (m, targets) or (m, alphas, targets)
        Held-out scores in row order; the axis of alphas exists if ``alphas`` is given, that of targets if y has two
        dimensions. NaN for rows with weight zero. Only differences within a query are meaningful.

    Raises
    ------
    ValueError
        If alpha is not positive, a query is in two groups, or no query with two different labels is left when a group
        is held out.

    See Also
    --------
    rankrls.RankRLSCV : Choose alpha by these scores.
    leave_pair_out : Hold out pairs of one ranking.
    leave_preference_out : Hold out preferences.

    Notes
    -----
    Primal: O(m n^2 + n^3) shared by all alphas; each small query then costs about ten thin products for all alphas
    together. Dual: O(m^3), then O(u^2 m) per query of u items and alpha. Queries with one item are scored too. Scores
    of a query that differ only by rounding are made equal: a weight that no other query determines is 0 up to rounding,
    and this error would otherwise order the items.

    The basis of SparseRankRLS is selected once, from all rows, and can contain held-out items.

    If a model fits every label, an alpha below 1e-11 of the largest eigenvalue is not evaluated, because of rounding
    errors: its scores are NaN, with one warning.

    References
    ----------
    Pahikkala, Suominen, Boberg, Salakoski: Transductive ranking via pairwise regularized least-squares. MLG 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> from rankrls.metrics import Measure
    >>> from rankrls.model_selection import leave_query_out
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(40, 3)), np.repeat(np.arange(8), 5)
    >>> y = X @ [1.0, 2.0, 0.0] + rng.normal(size=40)
    >>> scores = leave_query_out(RankRLS(), X, y, qid=qid, alphas=[0.1, 1.0, 10.0])
    >>> scores.shape
    (40, 3)
    >>> [round(float(e), 2) for e in Measure("disagreement")(y, scores, qid=qid)]
    [0.11, 0.11, 0.1]
    """
    spec, grid = checked_spec(estimator, alphas, "leave_query_out")
    if qid is None:
        raise InputError("leave_query_out needs qid, one query id per row.", parameter="qid")
    data = labelled_items(spec, X, y, qid, sample_weight)
    layout = data.layout if groups is None else group_layout(groups, data)
    _check_whole(data, layout)
    blocks = layout.blocks
    check_folds_leave_something(
        data,
        blocks,
        spec.regression_weight,
        remedy="Leave-query-out needs at least two such queries in different groups.",
        parameter="qid" if groups is None else "groups",
    )
    folds = None if layout is data.layout else [np.unique(data.layout.codes[block]) for block in blocks]
    problem = next(spec.candidates(data)).problem(data)
    return scores_of_given_rows(problem.held_out_scores(grid, folds), data, alphas)


def group_layout(groups: IdsLike, data: LabelledItems) -> QueryLayout:
    """Layout of the groups of the rows of positive weight; ``groups`` has one entry for each given row."""
    codes = query_layout(groups, data.n_given, name="groups").codes
    return query_layout(codes if data.kept is None else codes[data.kept], data.n_rows)


def scores_of_given_rows(scores: Array, data: LabelledItems, alphas: VectorLike | None) -> Array:
    """Held-out scores (rows, alphas, targets) as returned, without an axis for a single target or the own alpha."""
    scores = data.given_rows(scores)
    if data.one_target:
        scores = scores[:, :, 0]
    return scores[:, 0] if alphas is None else scores


def _check_whole(data: LabelledItems, layout: QueryLayout) -> None:
    """Refuse groups that contain parts of queries, and a single group."""
    first = data.layout.order[data.layout.starts[:-1]]
    split = layout.codes[first][data.layout.codes] != layout.codes
    if split.any():
        row = int(np.argmax(split))
        raise InputError(
            f"Query {data.layout.ids[data.layout.codes[[row]]].tolist()[0]!r} is in two groups. Its items are compared "
            "with each other, so it can only be held out as a whole.",
            parameter="groups",
            row=int(data.given_numbers(np.array([row]))[0]),
        )
    if layout.n_queries < 2:
        what = "query" if layout is data.layout else "group of queries"
        raise InputError(f"There is a single {what}: holding it out leaves no data to fit.")


def leave_preference_out(
    estimator: RankRLS | SparseRankRLS,
    X: ItemsLike,
    winners: VectorLike,
    losers: VectorLike,
    *,
    strength: VectorLike | None = None,
    weight: VectorLike | None = None,
    groups: IdsLike | None = None,
    alphas: VectorLike | None = None,
) -> Array:
    """Predict each preference by a model fitted without it and without the others in its group.

    The result equals refitting :meth:`rankrls.RankRLS.fit_pairs` without each preference or group, for every alpha,
    from one factorization.

    Parameters
    ----------
    estimator : RankRLS or SparseRankRLS
        Estimator whose parameters are used; it need not be fitted and is not changed.
    X, winners, losers, strength, weight : as in :meth:`rankrls.RankRLS.fit_pairs`
    groups : array-like of shape (p,), optional
        Groups of preferences (of an annotator, a prompt, a query, a fold) that are held out together. By default, each
        preference is held out alone.
    alphas : sequence of float, optional
        Positive regularization values; by default the estimator's own alpha.

    Returns
    -------
    ndarray of shape (p,) or (p, alphas)
        Held-out score of each winner minus that of its loser, which is positive if the preference is predicted
        correctly. NaN for preferences with weight zero.

    Raises
    ------
    ValueError
        If alpha is not positive, or fewer than two preferences or groups have a strength other than 0.

    See Also
    --------
    leave_query_out : Hold out queries.
    leave_pair_out : Hold out pairs of one ranking.

    Notes
    -----
    Both items of a held-out preference stay in other preferences, so this estimates the order of new votes between
    known items. For new items, use ``RankRLSCV.fit_pairs``, or pass groups without common items.

    Primal: O(p n^2 + n^3) once, then O(p n) for single preferences and O(u n^2) for a group of u, for all alphas
    together. Dual: O(min(p, m)^3) once. Other preferences between the same two items are not held out; to hold them out
    together, assign them to one group.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> from rankrls.model_selection import leave_preference_out
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 3))
    >>> winners, losers = rng.integers(30, size=(2, 100))
    >>> winners, losers = winners[winners != losers], losers[winners != losers]
    >>> swap = X[winners, 0] + rng.normal(size=len(winners)) < X[losers, 0]
    >>> winners, losers = np.where(swap, losers, winners), np.where(swap, winners, losers)
    >>> lead = leave_preference_out(RankRLS(), X, winners, losers, alphas=[0.1, 10.0])
    >>> (lead > 0).mean(axis=0).round(2)
    array([0.73, 0.72])
    """
    spec, grid = checked_spec(estimator, alphas, "leave_preference_out")
    data = preferred_items(spec, X, winners, losers, strength, weight, groups=groups)
    preference_units(data)  # refuses data that leave nothing to fit
    problem = next(spec.candidates(data)).problem(data)
    lead = problem.held_out_scores(grid)[:, :, 0]
    if weight is not None:
        counts = np.asarray(weight) > 0.0
        out = np.full((len(counts), len(grid)), np.nan)
        out[counts] = lead
        lead = out
    return lead[:, 0] if alphas is None else lead


def checked_spec(estimator: object, alphas: Grid | None, what: str) -> tuple[LeastSquaresSpec, Array]:
    """Checked specification of an estimator, and the grid of alphas."""
    if not isinstance(estimator, RankRLS | SparseRankRLS):
        raise InputError(
            f"{what} needs RankRLS or SparseRankRLS; got {type(estimator).__name__}. Pass one of these with the "
            "chosen parameters (best_params_). Instead of a pipeline, pass its last step and the transformed X.",
            parameter="estimator",
        )
    grid = check_grid("alphas", [estimator.alpha] if alphas is None else alphas)
    model = clone(estimator).set_params(alpha=float(grid[0]))
    return model._spec(), grid


def labelled_data(
    spec: LeastSquaresSpec,
    X: ItemsLike,
    y: LabelsLike,
    qid: IdsLike | None,
    sample_weight: VectorLike | None,
    beta: float = 0.0,
) -> LabelledItems:
    """Checked data with one target and items to compare, unless a part ``beta`` of the loss is regression."""
    data = labelled_items(spec, X, y, qid, sample_weight, comparable=False)
    check_comparable(data, beta)
    if data.Y.shape[1] != 1:
        raise InputError(f"y must have one target; it has {data.Y.shape[1]}.", parameter="y")
    return data


def query_parts(qid: Sequence[Hashable] | AnyArray, shares: Sequence[float], seed: int) -> list[Index]:
    """Rows of each part, ascending, with sizes nearest to the shares of the queries.

    The part of a query depends on the seed and on the ids, not on the order of the rows.

    Raises
    ------
    InputError
        If a part would be empty.
    """
    layout = query_layout(qid, len(qid))
    n = layout.n_queries
    ends = np.round(np.cumsum(shares) / np.sum(shares) * n).astype(int)
    if (np.diff(ends, prepend=0) == 0).any():
        raise InputError(f"{n} queries are too few for {len(shares)} parts of these shares: one would be empty.")
    # drawn from the sorted ids, so that the order of the rows does not matter
    order = np.array(sorted(range(n), key=lambda k: str(layout.ids[k])))
    drawn = np.split(np.random.default_rng(seed).permutation(order), ends[:-1])
    return [np.flatnonzero(np.isin(layout.codes, queries)) for queries in drawn]


def query_folds(qid: Sequence[Hashable] | AnyArray, k: int, seed: int) -> list[tuple[Index, Index, Index]]:
    """Training, validation and test rows of each of k folds: a k-th of the queries to test, the next to validate."""
    parts = query_parts(qid, [1.0] * k, seed)
    all_rows = np.arange(len(qid))
    folds = []
    for test, validation in zip(parts, [*parts[1:], parts[0]], strict=True):
        folds.append((np.setdiff1d(all_rows, np.concatenate((validation, test))), validation, test))
    return folds


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
    With ``event``: O(m d) per pair, alpha and step of conjugate gradients, about five of them, with d = min(m, n) (m
    for a kernel), and O(m d^2) for a pair with much influence, as most pairs have under a kernel.

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
    >>> result.n_pairs, round(float(result.score), 3)
    (391, 0.798)
    >>> [round(float(end), 2) for end in result.interval]
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
        found = concordance(problem=problem, alphas=grid, confidence=confidence)
    except InputError as refusal:
        raise refusal if event is None else refusal.replace(parameter="event") from None
    k = 0 if alphas is None else slice(None)
    low, high = found.interval[:, k]
    return PairHoldout(
        alpha=grid[k],
        score=found.score[k],
        standard_error=found.error[k],
        interval=(low, high),
        differences=None if found.margins is None else found.margins[:, k],
        n_pairs=found.n_pairs,
        confidence=confidence,
    )


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
    basis of SparseRankRLS is selected once, from all rows, and can contain held-out items. Alphas that are lost in
    rounding have NaN, as in :func:`leave_query_out`.

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
    found[:, problem.unresolved(grid, max(map(len, folds)))] = np.nan
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
    given = np.asarray(pairs)
    if given.ndim != 2 or given.shape[1] != 2 or not len(given) or given.dtype.kind not in "iu":
        raise InputError(
            f"pairs must contain two row numbers each, shape (p, 2); got shape {given.shape} of dtype {given.dtype}.",
            parameter="pairs",
        )
    m = data.n_given
    rows = np.clip(given, 0, m - 1)
    kept = np.ones(m, dtype=bool) if data.kept is None else data.kept
    out = (np.cumsum(kept) - 1)[rows]
    codes = data.layout.codes[out]
    y = data.Y[out, 0]
    refusals = {
        f"the rows are 0 to {m - 1}": (rows != given).any(axis=1),
        "a row cannot be paired with itself": rows[:, 0] == rows[:, 1],
        "a row has weight zero": ~kept[rows].all(axis=1),
        "they belong to different queries, whose scores cannot be compared": codes[:, 0] != codes[:, 1],
        "their labels are equal, so neither order is correct": y[:, 0] == y[:, 1],
    }
    for reason, bad in refusals.items():
        if bad.any():
            k = int(np.argmax(bad))
            a, b = given[k].tolist()
            raise InputError(f"Pair {k}, rows {a} and {b}: {reason}.", parameter="pairs", row=a)
    return out[:, 0], out[:, 1]


@dataclass(frozen=True, eq=False, repr=False)
class NestedEstimate(Shown):
    """Result of :func:`nested_estimate`.

    Attributes
    ----------
    score : float
        Mean of the measure over the held-out queries, or over the folds of one ranking.
    standard_error : float
        Standard error of this mean; somewhat too small, because folds share training rows.
    values : ndarray of shape (queries,) or (folds,)
        Values that are averaged; NaN if there is nothing to compare.
    choices : list of dict
        ``best_params_`` for each fold.
    fold : ndarray of shape (m,), intp
        Fold of each row, from 0.
    held_out_scores : ndarray of shape (m,)
        Score of each row by the model that was selected and fitted without the row's fold.
    measure, protocol : str
    """

    score: float
    standard_error: float
    values: Array
    choices: list[Values]
    fold: Index
    held_out_scores: Array
    measure: str
    protocol: str

    def __str__(self) -> str:
        score = f"{self.score:.4f} ± {self.standard_error:.4f} (standard error)"
        lines = [f"Nested {self.measure} {score}, by {self.protocol}, with the choice repeated in each"]
        for name in self.choices[0]:
            values = [each[name] for each in self.choices]
            shown = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
            if len({*shown}) > 1:
                lines.append(f"{name} of each: {', '.join(shown)}")
        return "\n".join(lines)


def nested_estimate(
    estimator: Ranker,
    X: ItemsLike,
    y: VectorLike,
    *,
    event: VectorLike | None = None,
    qid: IdsLike | None = None,
    item_id: IdsLike | None = None,
    cv: int = 5,
    random_state: int = 0,
) -> NestedEstimate:
    """Estimate the quality of a model including its selection, which is repeated without each fold.

    The held-out score of a selected model is optimistic, because the selection used it. Here each fold is scored by a
    model whose alpha, kernel, ... were selected using the other folds.

    Parameters
    ----------
    estimator : RankRLSCV, or another estimator with ``scoring``
        Estimator to evaluate; it need not be fitted and is not changed.
    X, y, qid : as in :meth:`RankRLSCV.fit`
        With ``qid``, folds contain whole queries. Otherwise they are stratified folds of rows, and rows are compared
        only within their fold, because scores of different models are not comparable.
    event : array-like of shape (m,), optional
        1 if the event was observed; y then contains right-censored times. The estimator is fitted to the pairs of
        :func:`~rankrls.survival_pairs`, with items held out, and the measure is the C-index. Folds are of items, and
        only rows with the same ``qid`` are compared.
    item_id : array-like of shape (m,), optional
        Item ids, for use with ``event``: rows with equal ids are the same item (patient) and are in the same fold. By
        default, each row is an item.
    cv : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the folds; the mean over several seeds is a better estimate.

    Returns
    -------
    NestedEstimate

    See Also
    --------
    permutation_test : Test whether the value is better than chance.
    leave_pair_out : Hold out pairs, with a fixed alpha.

    Notes
    -----
    ``cv`` fits of the estimator.

    References
    ----------
    Varma, Simon: Bias in error estimation when using cross-validation for model selection. BMC Bioinformatics 7, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLSCV
    >>> from rankrls.model_selection import nested_estimate
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=60)  # sixty patients
    >>> X = rng.normal(size=(60, 200))  # two hundred genes
    >>> X[:, :20] += 0.5 * y[:, None]
    >>> nested_estimate(RankRLSCV(scoring="pair_accuracy", alphas=(1.0, 100.0)), X, y)
    Nested pair_accuracy 0.7838 ± 0.0269 (standard error), by 5 folds of 60 rows, with the choice repeated in each
    alpha of each: 100, 100, 100, 1, 100
    """
    measure = measure_of_choice(estimator, event, "nested_estimate")
    number(least=2, whole=True)("cv", cv)
    number(least=0, whole=True)("random_state", random_state)
    y = vector_of("y", y, "one label per row")
    check_finite("y", y, "label")
    with refusing("X"):
        rows: Matrix = indexable(X, y, event)[0]
    event = None if event is None else np.asarray(event)
    layout = query_layout(qid, len(y))
    ids = None if qid is None else layout.ids[layout.codes]
    items = query_layout(np.arange(len(y)) if item_id is None else item_id, len(y), name="item_id").codes
    if item_id is not None and event is None:
        raise InputError("item_id needs censored times (event). For labels, queries are held out.", parameter="item_id")
    fold, protocol = _folds(y, event, ids, items, cv, random_state)
    scores = np.empty(len(y))
    values = np.full(cv, np.nan)
    choices = []
    for each in range(cv):
        train = np.flatnonzero(fold != each)
        test = np.flatnonzero(fold == each)
        own = None if ids is None else ids[train]
        model = clone(estimator)
        X_train, y_train = _safe_split(model, rows, y, train)
        if event is None:
            model.fit(X_train, y_train, qid=own)
        else:
            winners, losers = survival_pairs(y_train, event[train], qid=own)
            model.fit_pairs(X_train, winners, losers, item_id=items[train])
        held_out = _safe_split(model, rows, y, test, train)[0]
        scores[test] = predict_by_query(model, held_out, None if ids is None else ids[test])
        choices.append(dict(model.best_params_))
        if event is not None:
            values[each] = _concordance(scores[test], y[test], event[test], None if ids is None else ids[test])
    if event is None:
        values = measure(y, scores, qid=fold if ids is None else ids, per_query=True)
    mean, error = (float(each[0]) for each in mean_and_error(values[:, None]))
    name = "C-index" if event is not None else str(measure)
    return NestedEstimate(mean, error, values, choices, fold, scores, name, protocol)


def measure_of_choice(estimator: object, event: object, what: str) -> Measure:
    """Measure by which an estimator selects a model; other estimators are refused."""
    if not isinstance(estimator, ChosenAttributes) or not isinstance(estimator, Ranker):
        raise InputError(
            f"{what} repeats the selection of a model, so it needs an estimator with cross-validation (cv), such as "
            f"RankRLSCV; got {type(estimator).__name__}.",
            parameter="estimator",
        )
    if event is not None and not isinstance(estimator, Chooses):
        raise InputError(f"{type(estimator).__name__} cannot be fitted to censored times.", parameter="event")
    spec = estimator._spec()
    spec = spec if event is None else spec.for_preferences()
    return spec.required_measure


def _folds(
    y: Array, event: AnyArray | None, qid: AnyArray | None, items: Index, k: int, seed: int
) -> tuple[Index, str]:
    """Fold of each row, and a description of the folds."""
    rng = np.random.default_rng(seed)
    by_query = qid is not None and event is None
    layout = query_layout(qid if by_query else items, len(y))
    n = layout.n_queries
    what = "queries" if by_query else "rows" if n == len(y) else "items"
    if k > n:
        raise InputError(f"cv must be at most {n}, the number of {what}; got {k}.", parameter="cv")
    first = layout.order[layout.starts[:-1]]
    draws = np.empty(n)
    draws[layout.by_id] = rng.random(n)
    # every k successive units in the order of their labels go to different folds
    labels = [] if by_query else [y[first]]
    if event is not None:
        labels.append(event[first])
    fold = np.empty(n, dtype=np.intp)
    fold[np.lexsort([draws, *labels])] = np.concatenate([rng.permutation(k) for _ in range(0, n, k)])[:n]
    return fold[layout.codes], f"{k} folds of {n} {what}"


def _concordance(scores: Array, time: Array, event: AnyArray, qid: AnyArray | None) -> float:
    """C-index of one fold; NaN if it has no comparable pair."""
    try:
        winners, losers = survival_pairs(time, event, qid=qid)
    except InputError:
        return np.nan
    return float(preference_accuracy(scores, winners, losers))


@dataclass(frozen=True, eq=False, repr=False)
class PermutationTest(Shown):
    """Result of :func:`permutation_test`.

    Attributes
    ----------
    score : float
        Held-out measure of the selected model, ``best_score_``.
    p_value : float
        (1 + permutations at least as good) / (1 + permutations).
    permuted_scores : ndarray of shape (permutations,)
        The same measure with permuted labels.
    protocol : str
        Description of the selection and hold-out of models.
    shared : bool
        Whether the permutations shared one factorization rather than being refitted.
    """

    score: float
    p_value: float
    permuted_scores: Array
    protocol: str
    shared: bool

    def __str__(self) -> str:
        low, middle, high = np.quantile(self.permuted_scores, [0.025, 0.5, 0.975]).tolist()
        p = p_text(self.p_value)
        return (
            f"Permutation test of {self.protocol}, with the choice repeated in each permutation\n"
            f"held out {self.score:.4f}, of {len(self.permuted_scores)} permutations {middle:.4f} "
            f"({low:.4f} to {high:.4f}): p {p if p.startswith('<') else f'= {p}'}"
        )


def permutation_test(
    estimator: Ranker,
    X: ItemsLike,
    y: LabelsLike,
    *,
    n_permutations: int = 1000,
    event: VectorLike | None = None,
    qid: IdsLike | None = None,
    item_id: IdsLike | None = None,
    sample_weight: VectorLike | None = None,
    random_state: int = 0,
) -> PermutationTest:
    """Test whether the held-out measure of a selected model is better than chance.

    Labels are permuted within queries. Each permutation repeats the whole selection (of alpha, kernel, ...), and its
    best held-out measure is compared with that of the data, so that the p-value accounts for the selection.

    Parameters
    ----------
    estimator : RankRLSCV, or another estimator with ``best_score_``
        Estimator to test; it need not be fitted and is not changed.
    X, y, qid, sample_weight : as in :meth:`RankRLSCV.fit`
    n_permutations : int, default=1000
    event : array-like of shape (m,), optional
        1 if the event was observed; y then contains right-censored times, which are permuted with their events. The
        estimator is fitted to the pairs of :func:`~rankrls.survival_pairs`, with items held out.
    item_id : array-like of shape (m,), optional
        Item ids, for use with ``event``: rows with equal ids are the same item, as in :func:`nested_estimate`.
    random_state : int, default=0

    Returns
    -------
    PermutationTest

    See Also
    --------
    nested_estimate : Estimate the value on new data.
    leave_pair_out : The value with a confidence interval.

    Notes
    -----
    The graph of RankRLSCV does not depend on the labels if ``ties="include"``. If queries or pairs are held out
    exactly, the permutations are then targets of one factorization: for 150 items with 3,000 features, 1,000 of them
    took the processor time of about 13 refits, 0.15 s. All other cases are refitted: other estimators, folds of rows,
    splitters, ``event`` (comparable pairs depend on the times), ``positive``, and ``rule="one_se"``. A warning is
    issued if refits will take more than a minute, and a progress bar is shown on a terminal.

    References
    ----------
    Phipson, Smyth: Permutation p-values should never be zero. Statistical Applications in Genetics and Molecular
    Biology 9, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLSCV
    >>> from rankrls.model_selection import permutation_test
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=40)  # forty patients
    >>> X = rng.normal(size=(40, 200))  # two hundred genes
    >>> X[:, :20] += 0.5 * y[:, None]
    >>> permutation_test(RankRLSCV(scoring="pair_accuracy"), X, y, n_permutations=99).p_value
    0.03
    """
    number(least=1, whole=True)("n_permutations", n_permutations)
    number(least=0, whole=True)("random_state", random_state)
    with refusing("X"):
        check_consistent_length(X, y, event)
    measure = measure_of_choice(estimator, event, "permutation_test")
    model: Any = clone(estimator)
    permuted = np.empty(n_permutations)
    labels: AnyArray = np.asarray(y)
    layout = query_layout(qid, len(labels))
    rng = np.random.default_rng(random_state)

    def orders(count: int) -> Index:
        """Permutations of the rows inside their queries, (count, rows)."""
        out = np.empty((count, len(labels)), dtype=np.intp)
        out[:, layout.order] = np.argsort(layout.codes + 0.5 * rng.random(out.shape), axis=1)
        return out

    def fitted(order: Index | slice) -> Any:
        if event is None:
            return model.fit(X, labels[order], qid=qid, sample_weight=sample_weight)
        winners, losers = survival_pairs(labels[order], np.asarray(event)[order], qid=qid)
        return model.fit_pairs(X, winners, losers, item_id=item_id)

    start = perf_counter()
    fitted(slice(None))
    seconds = perf_counter() - start
    score = held_out_score(model)
    protocol = model.selection_
    shared = event is None and labels.size == len(labels) and _fixes_graph(model)
    if shared:
        spec = model._spec()
        data = labelled_items(spec, X, y, qid, sample_weight)
        plan = spec.query_plan(data)
        shared = isinstance(plan, PairsPlan | UnitsPlan)
    if not shared:
        job = f"A fit for each of {n_permutations} permutations"
        remedy = "Use fewer (n_permutations), or a model with fewer values to choose from."
        warn_of_cost(seconds * n_permutations, job, remedy, "n_permutations")
        for k in progress(range(n_permutations), "permutations"):
            permuted[k] = fitted(orders(1)[0]).best_score_
    else:
        labels = labels.ravel()
        kept = slice(None) if data.kept is None else data.kept
        size = max(1, _BATCH // (21 * data.n_rows))
        for batch in np.split(permuted, range(size, len(permuted), size)):
            Y = np.asarray(labels[orders(len(batch))][:, kept].T, dtype=np.float64)
            batch[:] = _best_scores(spec, replace(data, Y=Y), plan)
    sign = 1.0 if measure.greater_is_better else -1.0
    good = int(np.count_nonzero(reaches(sign * permuted, sign * score, 1.0)))
    return PermutationTest(score, (1 + good) / (1 + len(permuted)), permuted, protocol, shared)


def held_out_score(model: Any) -> float:
    """``best_score_`` of a fitted model; a model without held-out data is refused."""
    score = float(vars(model).get("best_score_", np.nan))
    if np.isnan(score):
        remedy = "Set folds (cv) or validation data (X_val)."
        raise InputError(
            f"Nothing was held out: this {type(model).__name__} had nothing to select. {remedy}", parameter="cv"
        )
    return score


def _fixes_graph(model: Ranker) -> bool:
    """Whether permuted labels have the graph and the held-out parts of the labels."""
    if not isinstance(model, RankRLSCV):
        return False
    splits = isinstance(model.cv, Splitter) and not isinstance(model.cv, str)  # may depend on the labels
    return model.positive is False and options(model.ties) == ("include",) and model.rule == "best" and not splits


def _best_scores(spec: LeastSquaresSpec, data: LabelledItems, plan: Plan) -> Array:
    """Best score that a search would find for each target of the data."""
    found = []
    for candidate in spec.candidates(data):
        problem = candidate.problem(data)
        (graph,) = data.numeric_graphs(candidate.setting)
        values = problem.axis() if spec.grid is None else spec.grid
        found.append(np.fmax.reduce(_goodness(plan, problem, graph, values)))
    best: Array = np.fmax.reduce(np.stack(found))
    return best if plan.measure.greater_is_better else -best


def _goodness(plan: Plan, problem: LeastSquaresProblem, graph: LabelledGraph, values: Array) -> Array:
    """Goodness of each alpha for each target, by held-out pairs or queries, (alphas, targets); greater is better."""
    if isinstance(plan, UnitsPlan):
        (chunks,) = problem.hold_out(values, QueryEvaluator(plan.measure), plan.folds)
        means = np.stack([mean_of_judged(each[0]) for each in np.concatenate(chunks, axis=2)], axis=1)
        means[problem.unresolved(values)] = np.nan
        return means if plan.measure.greater_is_better else -means
    (solver,) = problem.solvers
    share = held_out_concordance(solver.smoother, graph, solver.features, values, problem.setting.balance)[0].T
    return share if plan.measure.greater_is_better else share - 1.0
