"""Ratings of items from votes, with confidence intervals and the ranks that the votes leave open."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, stdtrit
from sklearn.base import BaseEstimator

from rankrls._checks import check_finite, check_word, vector_of
from rankrls._errors import InputError, InputWarning, warn_user
from rankrls._queries import query_layout
from rankrls._shown import Shown, table_text
from rankrls._typing import AnyArray, Array, IdsLike, Index, ItemsLike, Matrix, VectorLike
from rankrls.inspection.uncertainty import checked_prior
from rankrls.models.intake import preferred_items
from rankrls.models.parameters import number
from rankrls.models.rankrls import RankRLS
from rankrls.numerics.concordance import CONFIDENCE
from rankrls.numerics.graph import PreferenceGraph
from rankrls.numerics.runs import dense_rows
from rankrls.selection.folds import preference_units

_BLOCK = 1 << 22
"""Maximum number of feature values of votes in memory at a time."""
_FAR = 300.0
"""Chances of margins beyond it would vanish in float64."""
_UNRESOLVED = 1e-11
"""Alpha, relative to the votes' total weight, below which rounding errors dominate the ratings."""
_TILE = 64
"""Number of items compared with all others at a time."""


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(Shown):
    """Items from best to worst, returned by :func:`leaderboard`; prints as a table.

    Attributes
    ----------
    item : ndarray of shape (m,)
        Name of each item.
    rating : ndarray of shape (m,)
        Score minus the mean score of all items, or minus that of the anchor, on the requested scale.
    low, high : ndarray of shape (m,)
        Bounds of the confidence interval of the rating.
    best_rank, worst_rank : ndarray of shape (m,)
        Range of ranks consistent with the significant differences.
    votes : ndarray of shape (m,)
        Number of votes on the item, including ties.
    alpha, confidence : float
    scale : {"share", "elo"}
    effects : dict of str to ndarray of shape (k,), or None
        Effects of the controls, by columns: ``control``, ``effect`` (change in the difference of two ratings per unit
        of the control), ``low`` and ``high``, the bounds of its confidence interval.
    """

    item: AnyArray
    rating: Array
    low: Array
    high: Array
    best_rank: Index
    worst_rank: Index
    votes: Index
    alpha: float
    confidence: float
    scale: str = "share"
    effects: dict[str, AnyArray] | None = None

    @property
    def columns(self) -> dict[str, AnyArray]:
        """The table by columns, as accepted by ``pandas.DataFrame``."""
        ranks = np.arange(1, len(self.item) + 1)
        names = ("item", "rating", "low", "high", "best_rank", "worst_rank", "votes")
        return {"rank": ranks} | {name: vars(self)[name] for name in names}

    @property
    def head(self) -> list[str]:
        """Column names of :attr:`rows`."""
        return ["", "item", "rating", f"{100 * self.confidence:g} % interval", "ranks", "votes"]

    @property
    def rows(self) -> list[list[str]]:
        """The table as text, row by row."""
        number = "{:+.3f}" if self.scale == "share" else "{:.0f}"
        lines = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        rows = []
        for rank, item, rating, low, high, best, worst, votes in lines:
            interval = f"{number.format(low)} to {number.format(high)}"
            rows.append([f"{rank}", f"{item}", number.format(rating), interval, f"{best} to {worst}", f"{votes}"])
        return rows

    def __str__(self) -> str:
        table = table_text(self.head, self.rows, left=2)
        if self.effects is None:
            return table
        lines = zip(*(column.tolist() for column in self.effects.values()), strict=True)
        rows = [[f"{name}", f"{effect:+.3g}", f"{low:+.3g} to {high:+.3g}"] for name, effect, low, high in lines]
        return f"{table}\n\n{table_text(['control', 'effect', self.head[3]], rows)}"


def leaderboard(
    winners: Any,
    losers: Any,
    *,
    strength: VectorLike | None = None,
    weight: VectorLike | None = None,
    groups: IdsLike | None = None,
    X: ItemsLike | None = None,
    names: Sequence[Hashable] | AnyArray | None = None,
    controls: Mapping[str, VectorLike] | None = None,
    scale: str = "share",
    anchor: tuple[Hashable, float] | None = None,
    estimator: BaseEstimator | None = None,
    confidence: float = CONFIDENCE,
) -> Leaderboard:
    r"""Rate items by votes: ratings, confidence intervals, and ranks consistent with the significant differences.

    With votes of strength 1 and ties of strength 0, the difference of two ratings is the expected share of wins minus
    the expected share of losses between the two items. On the Elo scale, they are ratings of the Bradley-Terry model:
    an item is expected to win :math:`1 / (1 + 10^{-d / 400})` of the votes against an item rated d lower.

    Parameters
    ----------
    winners, losers : array-like of shape (p,)
        Ids of items, such as names, or row numbers of ``X`` or ``names`` if given.
    strength, weight : array-like of shape (p,), optional
        Strengths and weights as in :meth:`rankrls.RankRLS.fit_pairs`; a tie has strength 0.
    groups : array-like of shape (p,), optional
        Groups of dependent votes, such as those of one voter or on one prompt. Without groups, intervals are too narrow
        if voters or prompts differ.
    X : array-like or sparse matrix of shape (m, n), optional
        Features of the items. By default each item has its own rating.
    names : sequence of length m, optional
        Names of the rows of X; row numbers by default.
    controls : mapping of str to array-like of shape (p,), or data frame, optional
        Differences in features of the two answers of each vote, the winner's minus the loser's, such as lengths.
        Ratings then apply at equal features, and ``effects`` of the :class:`Leaderboard` contains the effect of each
        with its interval.
    scale : {"share", "elo"}, default="share"
        Least-squares ratings of shares of votes, or ratings of the Bradley-Terry model by penalized maximum likelihood,
        for which strengths must be between 0 (a tie) and 1.
    anchor : tuple of (item, float), optional
        An item and its rating. Other items are rated relative to it, and intervals are those of differences from it. By
        default, the mean rating is 0, or 1000 on the Elo scale.
    estimator : RankRLS or SparseRankRLS, optional
        Estimator whose parameters are used. By default RankRLS with ``alpha=1``, which adds one virtual tie per item,
        against an item of rating 0.
    confidence : float, default=0.95

    Returns
    -------
    Leaderboard

    See Also
    --------
    rankrls.RankRLS.fit_pairs : Fit items with features.
    rankrls.io.load_votes : Read votes from a file.
    pair_posterior : The probability that one item is better.

    Notes
    -----
    The covariance of the scores is that of the exact jackknife over groups, :math:`\frac{G - 1}{G} \sum_g (u_g - \bar
    u)(u_g - \bar u)'`, with :math:`u_g = A^{-1} Z_g' C_g (s_g - p_g)`, :math:`p_g` the held-out differences of group g
    and :math:`A = Z'CZ + \alpha I`. To this, :math:`\alpha \bar{s^2} A^{-2}` is added, the effect of the penalty on
    scores with the prior variance :math:`\bar{s^2} / \alpha`, with :math:`\bar{s^2}` the mean squared strength, 1 for
    votes. Intervals use a quantile of Student's t distribution with G - 1 degrees of freedom. The best rank of an item
    is 1 + the number of items whose score is significantly greater, and its worst rank is m - the number of those whose
    score is significantly smaller, without correction for multiple tests. O(n^3 + m n^2 + m^2 n + p n^2), the last term
    O(p n) for items without features, and one solution in the votes of each group, or in the features if these are
    fewer; memory in addition to X is a matrix of m x n, one of p x n (sparse if X is) and five of n x n numbers. A
    warning is issued if votes do not connect all items.

    Use a small alpha. The alpha that predicts votes best can shrink all ratings far too much.

    On the Elo scale, the same applies to the weighted least squares of the last Newton step; the prior variance of
    scores is then :math:`1 / \alpha`, and each step costs O(n^3 + p n^2). Controls are further features of the votes;
    they are scaled to a mean square of 1 before they are penalized.

    References
    ----------
    Miller: The jackknife, a review. Biometrika 61, 1974.

    Massey: Statistical models applied to the rating of sports teams. Bluefield College, 1997.

    Bradley, Terry: Rank analysis of incomplete block designs. Biometrika 39, 1952.

    Examples
    --------
    >>> from rankrls.inspection import leaderboard
    >>> winners = ["owl", "owl", "crow", "owl", "crow", "jay", "crow", "crow"] * 5
    >>> losers = ["crow", "jay", "jay", "jay", "owl", "crow", "jay", "jay"] * 5
    >>> leaderboard(winners, losers)
       item  rating     95 % interval   ranks  votes
    1  owl   +0.323  +0.091 to +0.554  1 to 2     20
    2  crow  +0.133  -0.108 to +0.374  1 to 2     30
    3  jay   -0.455  -0.629 to -0.282  3 to 3     30
    """
    estimator = RankRLS() if estimator is None else estimator
    is_named = X is None
    if X is None:
        if names is None:
            if not len(winners):
                raise InputError("There are no votes.", parameter="winners")
            layout = query_layout([*winners, *losers], len(winners) + len(losers), name="winners")
            names = layout.ids[layout.by_id]
            numbers = layout.codes_by_id
            winners, losers = np.split(numbers, [len(winners)])
        X = sparse.eye_array(len(names), format="csr")
    spec, prior = checked_prior(estimator, None, None, "leaderboard")
    assert prior is not None
    number(above=0.0, below=1.0)("confidence", confidence)
    check_word("scale", scale, ("share", "elo"))
    data = preferred_items(spec, X, winners, losers, strength, weight, groups=groups)
    preference_units(data)  # refuses votes in a single group
    table = data.preferences
    m = data.n_rows
    items = np.arange(m) if names is None else np.asarray(names)
    if items.shape != (m,):
        raise InputError(f"names has shape {items.shape}; it needs one name for each of {m} items.", parameter="names")
    solver = next(spec.candidates(data)).problem(data).solvers[0]
    graph = data.graph
    votes = np.bincount(np.concatenate((table.winners, table.losers)), minlength=m)
    if is_named:
        _warn_of_components(graph, votes)
    Z = solver.item_features
    n = Z.shape[1]
    differences = graph.incidence @ Z
    sizes = np.zeros(0)
    if controls is not None:
        C = _checked_controls(controls, len(winners), weight)[graph.rows]
        sizes = np.sqrt(np.average(C**2, axis=0, weights=graph.weights))
        both = (differences, C / sizes)
        differences = sparse.hstack(both, format="csr") if sparse.issparse(differences) else np.hstack(both)
    counts = graph.weights
    strengths = graph.strength
    total = float(counts @ (differences * differences).sum(axis=1))
    if prior < _UNRESOLVED * total:
        problem = f"alpha = {prior:.3g} is too small for votes of total weight {counts.sum():.3g}. Use a larger alpha."
        raise InputError(problem, parameter="estimator")
    spread = float(np.mean(counts * strengths**2))  # upper bound: that of votes without any order
    unit = 1.0
    level = 0.0
    if scale == "elo":
        if table.strength.min() < 0.0 or table.strength.max() > 1.0:
            raise InputError("scale='elo' needs strengths from 0 (a tie) to 1.", parameter="strength")
        counts, strengths = _bradley_terry(differences, counts, strengths, prior)
        spread = 1.0
        unit = 400.0 / np.log(10.0)
        level = 1000.0
    reference = None
    if anchor is not None:
        reference, level = _checked_anchor(anchor, items)
    weights, covariance = _weights(differences, counts, strengths, graph.starts, prior, spread)
    origin = Z.mean(axis=0) if reference is None else dense_rows(Z, np.array([reference]))[0]
    scores = Z @ weights[:n] - origin @ weights[:n]
    rows = Z @ covariance[:n, :n] - origin @ covariance[:n, :n]
    variance = (Z * rows).sum(axis=1) - rows @ origin
    quantile = stdtrit(table.n_groups - 1, 0.5 + confidence / 2)
    best, worst = _ranks(Z, origin, rows, scores, variance, quantile)
    order = np.argsort(-scores, kind="stable")
    rating = level + unit * scores[order]
    half = (unit * quantile * np.sqrt(np.maximum(variance, 0.0)))[order]
    effects = None
    if controls is not None:
        effect = unit * weights[n:] / sizes
        error = unit * quantile * np.sqrt(np.diagonal(covariance)[n:]) / sizes
        ends = {"low": effect - error, "high": effect + error}
        effects = {"control": np.array([*controls]), "effect": effect, **ends}
    return Leaderboard(
        item=items[order],
        rating=rating,
        low=rating - half,
        high=rating + half,
        best_rank=best[order],
        worst_rank=worst[order],
        votes=votes[order],
        alpha=prior,
        confidence=float(confidence),
        scale=scale,
        effects=effects,
    )


def _checked_controls(controls: Mapping[str, VectorLike], n_votes: int, weight: VectorLike | None) -> Array:
    """Columns of controls, with one row per vote of positive weight."""
    try:
        by_name = dict(controls)
    except (TypeError, ValueError):
        raise InputError(
            "controls must have names: pass a dict of columns, or a data frame.", parameter="controls"
        ) from None
    kept = slice(None) if weight is None else np.asarray(weight) > 0.0
    columns = []
    for name, values in by_name.items():
        column = vector_of("controls", values, "one number for each vote")
        if len(column) != n_votes:
            problem = f"The control {name!r} has {len(column)} values; it needs one for each of {n_votes} votes."
            raise InputError(problem, parameter="controls")
        check_finite("controls", column, f"value of {name!r}")
        if not column[kept].any():
            raise InputError(f"The control {name!r} is 0 in each vote. Leave it out.", parameter="controls")
        columns.append(column[kept])
    return np.column_stack(columns)


def _warn_of_components(graph: PreferenceGraph, votes: Index) -> None:
    """Warn if some items are not connected with others by any chain of votes."""
    sizes = np.unique(graph.components[votes > 0], return_counts=True)[1]
    if len(sizes) > 1:
        problem = f"The votes form {len(sizes)} sets of items with no vote between them; the largest has {sizes.max()}."
        remedy = "Ratings compare items of different sets only by their shares of wins. Rate each set separately."
        warn_user(InputWarning(f"{problem} {remedy}", parameter="winners"))


def _checked_anchor(anchor: tuple[Hashable, float], items: AnyArray) -> tuple[int, float]:
    """Row number of the anchor, and its rating."""
    try:
        name, level = anchor
        (place,) = np.flatnonzero(items == name).tolist()
        number()("anchor", level)
        return place, float(level)
    except (TypeError, ValueError):
        raise InputError(
            f"anchor must be one of the items and its rating, a finite number; got {anchor!r}.", parameter="anchor"
        ) from None


def _bradley_terry(D: Matrix, counts: Array, strengths: Array, alpha: float) -> tuple[Array, Array]:
    """Weights and strengths of the last Newton step for the Bradley-Terry model with penalty ``alpha ||v||^2 / 2``."""
    from sklearn.linear_model import LogisticRegression  # imported here because it imports scipy.stats

    shares = 0.5 + 0.5 * strengths
    twice = sparse.vstack([D, D], format="csr") if sparse.issparse(D) else np.vstack([D, D])
    outcomes = np.repeat([1, 0], len(counts))
    model = LogisticRegression(C=1.0 / alpha, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    model.fit(twice, outcomes, np.concatenate((counts * shares, counts * (1.0 - shares))))
    margins = D @ model.coef_[0]
    bounded = np.clip(margins, -_FAR, _FAR)
    won = expit(bounded)
    lost = expit(-bounded)  # more precise than 1 - won
    return counts * won * lost, margins + shares / won - (1.0 - shares) / lost


def _weights(
    D: Matrix, counts: Array, strengths: Array, starts: Index, alpha: float, spread: float
) -> tuple[Array, Array]:
    """Weights of the features, (n,), and their covariance, (n, n). O(n^3 + p n^2), and a solution for each group.

    D contains the differences of features of each vote, (p, n). The prior variance of the scores is ``spread / alpha``.
    """
    n_groups = len(starts) - 1
    counted = D * counts[:, None]
    gram = D.T @ counted
    system = (gram.toarray() if sparse.issparse(gram) else gram) + alpha * np.eye(D.shape[1])
    inverse = np.linalg.inv(system)
    weights = inverse @ (counted.T @ strengths)
    missed = counts * _held_out_residuals(D, counts, strengths - D @ weights, starts, system, inverse)
    of_groups = sparse.csr_array((missed, np.arange(len(counts)), starts), shape=(n_groups, len(counts))) @ D
    total = of_groups.sum(axis=0)
    spreads = of_groups.T @ of_groups
    share = 1.0 - 1.0 / n_groups
    inner = share * (spreads @ inverse) + alpha * spread * inverse
    inner -= (share / n_groups) * np.outer(total, total @ inverse)
    return weights, inverse @ inner


def _ranks(
    Z: Matrix, origin: Array, rows: Array, scores: Array, variance: Array, quantile: float
) -> tuple[Index, Index]:
    """Best and worst rank of each item, by scores with covariance ``rows (Z - origin)'``. O(m^2 n)."""
    m = len(scores)
    level = rows @ origin
    best = np.empty(m, dtype=np.intp)
    worst = np.empty(m, dtype=np.intp)
    for start in range(0, m, _TILE):
        tile = slice(start, start + _TILE)
        covariance = (Z @ rows[tile].T).T - level[tile, None]
        apart = variance[tile, None] + variance - 2.0 * covariance
        gap = scores[tile, None] - scores
        differ = gap * gap > np.maximum(quantile**2 * apart, 0.0)
        best[tile] = 1 + (differ & (gap < 0.0)).sum(axis=1)
        worst[tile] = m - (differ & (gap > 0.0)).sum(axis=1)
    return best, worst


def _held_out_residuals(
    D: Matrix, counts: Array, residuals: Array, starts: Index, system: Array, inverse: Array
) -> Array:
    r"""Residual of each vote, (p,), in the model without the votes of its group.

    ``s_g - p_g = (I - D_g A^{-1} D_g' C_g)^{-1} r_g`` for the residuals r; for more votes than features, ``r_g + D_g (A
    - D_g' C_g D_g)^{-1} D_g' C_g r_g``. Groups of equally many votes are solved together.
    """
    n = D.shape[1]
    out = np.empty(len(residuals))
    sizes = np.diff(starts)
    for size in np.unique(sizes).tolist():
        firsts = starts[:-1][sizes == size]
        for chunk in np.array_split(firsts, 1 + len(firsts) * size * n // _BLOCK):
            rows = chunk[:, None] + np.arange(size)
            features = dense_rows(D, rows.ravel()).reshape(len(chunk), size, n)
            counted = (counts[rows][:, :, None] * features).transpose(0, 2, 1)
            r = residuals[rows][:, :, None]
            if size <= n:
                turned = (D[rows.ravel()] @ inverse).reshape(features.shape)
                held_out = np.linalg.solve(np.eye(size) - turned @ counted, r)
            else:
                held_out = r + features @ np.linalg.solve(system - counted @ features, counted @ r)
            out[rows] = held_out[:, :, 0]
    return out
