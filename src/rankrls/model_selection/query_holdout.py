"""Held-out scores of whole queries and of preferences without refitting, and random parts of whole queries."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from sklearn.base import clone

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls._typing import AnyArray, Array, IdsLike, Index, ItemsLike, LabelsLike, VectorLike
from rankrls.models.intake import check_comparable, labelled_items, preferred_items
from rankrls.models.parameters import Grid, check_grid
from rankrls.models.rankrls import RankRLS
from rankrls.models.sparse_rankrls import SparseRankRLS
from rankrls.models.spec import LeastSquaresSpec
from rankrls.selection.folds import check_folds_leave_something, preference_units


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
        Groups of queries that are held out together (folds, users, ...); every query must be in one group. With
        ``regression_weight=1``, which compares no items, any rows can form a group. By default, each query is held out
        alone.

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
    beta = spec.regression_weight
    layout = data.layout if groups is None else group_layout(groups, data)
    if beta == 1.0:  # no item is compared with another: any rows can be held out together
        data = replace(data, layout=layout)
    _check_whole(data, layout)
    blocks = layout.blocks
    check_folds_leave_something(
        data,
        blocks,
        beta,
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
    given = np.asarray(weight, dtype=np.float64)  # NaN for None
    if given.ndim == 1:
        kept = given > 0.0
        full = np.full((len(kept), len(grid)), np.nan)
        full[kept] = lead
        lead = full
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
    everything = np.arange(len(qid))
    folds = []
    for test, validation in zip(parts, [*parts[1:], parts[0]], strict=True):
        folds.append((np.setdiff1d(everything, np.concatenate((validation, test))), validation, test))
    return folds
