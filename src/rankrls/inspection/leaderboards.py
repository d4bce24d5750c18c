"""Ratings of items from votes, with what the votes say of their order and what they leave open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.special import stdtrit

from rankrls._errors import InputError
from rankrls._preferences import PreferenceTable
from rankrls._queries import query_layout
from rankrls._shown import Shown, table_text
from rankrls._typing import Array
from rankrls.inspection.uncertainty import checked_prior
from rankrls.models.intake import preferred_items
from rankrls.models.parameters import number
from rankrls.models.rankrls import RankRLS
from rankrls.numerics.concordance import CONFIDENCE
from rankrls.numerics.runs import dense_rows
from rankrls.selection.folds import preference_blocks


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard(Shown):
    """Items from the best to the worst, as :func:`leaderboard` returns them; prints as a table.

    Attributes
    ----------
    item : ndarray of shape (m,)
        The name of each item.
    rating : ndarray of shape (m,)
        The score minus the mean score of all items.
    low, high : ndarray of shape (m,)
        Ends of the rating's confidence interval.
    best_rank, worst_rank : ndarray of shape (m,)
        The ranks that agree with the significant differences.
    votes : ndarray of shape (m,)
        Votes in which the item was compared, ties included.
    alpha, confidence : float
    """

    item: NDArray[Any]
    rating: Array
    low: Array
    high: Array
    best_rank: NDArray[np.intp]
    worst_rank: NDArray[np.intp]
    votes: NDArray[np.intp]
    alpha: float
    confidence: float

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The table by columns, such as ``pandas.DataFrame`` takes."""
        ranks = np.arange(1, len(self.item) + 1)
        names = ("item", "rating", "low", "high", "best_rank", "worst_rank", "votes")
        return {"rank": ranks} | {name: getattr(self, name) for name in names}

    @property
    def head(self) -> list[str]:
        """The names of the columns of :attr:`rows`."""
        return ["", "item", "rating", f"{100 * self.confidence:g} % interval", "ranks", "votes"]

    @property
    def rows(self) -> list[list[str]]:
        """The table as text, row by row."""
        lines = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        return [
            [f"{rank}", f"{item}", f"{rating:+.3f}", f"{low:+.3f} to {high:+.3f}", f"{best} to {worst}", f"{votes}"]
            for rank, item, rating, low, high, best, worst, votes in lines
        ]

    def __str__(self) -> str:
        return table_text(self.head, self.rows, left=2)


def leaderboard(
    winners: Any,
    losers: Any,
    *,
    strength: Any = None,
    weight: Any = None,
    groups: Any = None,
    X: Any = None,
    names: Any = None,
    estimator: Any = None,
    confidence: float = CONFIDENCE,
) -> Leaderboard:
    r"""Rate items by votes: rating, confidence interval, and the ranks that agree with the significant differences.

    With votes of strength 1 and ties of strength 0 the difference of two ratings is the expected share of wins minus
    the expected share of losses between the two items.

    Parameters
    ----------
    winners, losers : array-like of shape (p,)
        Ids of items, such as names; or row numbers of ``X``, or of ``names``, if these are given.
    strength, weight : array-like of shape (p,), optional
        As in :meth:`RankRLS.fit_pairs`; a tie has strength 0.
    groups : array-like of shape (p,), optional
        Groups of votes that are not independent, such as those of one voter or on one prompt. Without groups, intervals
        are too narrow if voters or prompts differ.
    X : array-like or sparse matrix of shape (m, n), optional
        Features of the items. By default each item has its own rating.
    names : sequence of length m, optional
        Names of the rows of X; their numbers by default.
    estimator : RankRLS or SparseRankRLS, optional
        Only its parameters are used. By default RankRLS with ``alpha=1``: each item starts with one tie against an item
        of rating 0.
    confidence : float, default=0.95

    Returns
    -------
    Leaderboard

    Notes
    -----
    The covariance of the scores is that of the exact jackknife over groups, :math:`\frac{G - 1}{G} \sum_g (u_g - \bar
    u)(u_g - \bar u)'`, with :math:`u_g = A^{-1} Z_g' C_g (s_g - p_g)`, :math:`p_g` the held-out differences of group g
    and :math:`A = Z'CZ + \alpha I`. To this :math:`\alpha \bar{s^2} A^{-2}` is added, the effect of the penalty on
    scores with the prior variance :math:`\bar{s^2} / \alpha`, with :math:`\bar{s^2}` the mean squared strength, 1 for
    votes. Intervals take a quantile of Student's distribution with G - 1 degrees of freedom. An item's best rank is 1 +
    the number of items whose score is significantly greater, its worst rank m - the number of those whose score is
    significantly smaller, each by its own test. O(p n^2 + n^3 + m^2 n).

    Use a small alpha. The alpha that predicts votes best can make all ratings much too small.

    References
    ----------
    Miller: The jackknife, a review. Biometrika 61, 1974.

    Massey: Statistical models applied to the rating of sports teams. Bluefield College, 1997.

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
    if X is None:
        if names is None:
            layout = query_layout([*winners, *losers], len(winners) + len(losers), name="winners")
            names = layout.ids[layout.by_id]
            numbers = np.argsort(layout.by_id)[layout.codes]
            winners, losers = np.split(numbers, [len(winners)])
        X = sparse.eye_array(len(names), format="csr")
    spec, prior = checked_prior(estimator, None, None, "leaderboard")
    assert prior is not None
    number(above=0.0, below=1.0)("confidence", confidence)
    data = preferred_items(spec, X, winners, losers, strength, weight, groups=groups)
    preference_blocks(data)  # refuses what leaves nothing
    table = data.preferences
    m = data.n_rows
    items = np.arange(m) if names is None else np.asarray(names)
    if items.shape != (m,):
        raise InputError(f"names has shape {items.shape}; it needs one name for each of {m} items.", parameter="names")
    problem = next(spec.candidates(data)).problem(data)
    alpha = prior
    Z = dense_rows(problem.solvers[0].item_features, slice(None))
    held_out = problem.held_out_scores(np.array([alpha]))[:, 0, 0]
    scores, covariance = _scores_and_covariance(Z, table, held_out, alpha)
    quantile = stdtrit(table.n_groups - 1, 0.5 + confidence / 2)
    variance = np.diag(covariance)
    apart = np.sqrt(np.maximum(variance[:, None] + variance - 2.0 * covariance, 0.0))
    above = scores[:, None] - scores > quantile * apart
    half = quantile * np.sqrt(variance)
    order = np.argsort(-scores, kind="stable")
    votes = np.bincount(np.concatenate((table.winners, table.losers)), minlength=m)
    return Leaderboard(
        item=items[order],
        rating=scores[order],
        low=(scores - half)[order],
        high=(scores + half)[order],
        best_rank=(1 + above.sum(axis=0))[order],
        worst_rank=(m - above.sum(axis=1))[order],
        votes=votes[order],
        alpha=alpha,
        confidence=float(confidence),
    )


def _scores_and_covariance(Z: Array, table: PreferenceTable, held_out: Array, alpha: float) -> tuple[Array, Array]:
    """Scores less their mean, and their covariance; Z holds features of the items."""
    p = table.n_rows
    n_groups = table.n_groups
    of_item = sparse.eye_array(table.n_items, format="csr")
    between = of_item[table.winners] - of_item[table.losers]
    weighted = between.T * table.weight
    inverse = cho_factor(Z.T @ (weighted @ between @ Z) + alpha * np.eye(Z.shape[1]))
    centred = cho_solve(inverse, (Z - Z.mean(axis=0)).T).T
    moves = centred @ Z.T  # of the scores, by what is added to each item's share of the gradient
    scores = moves @ (weighted @ table.strength)
    missed = table.weight * (table.strength - held_out)
    each = np.arange(p)
    codes = each if table.groups is None else table.groups
    grouped = sparse.csr_array((missed, (codes, each)), shape=(n_groups, p)) @ between
    total = grouped.sum(axis=0)
    spread = (grouped.T @ grouped).toarray() - np.outer(total, total) / n_groups
    noise = np.mean(table.weight * table.strength**2)  # at most: that of votes without any order
    jackknife = (1.0 - 1.0 / n_groups) * (moves @ spread @ moves.T)
    return scores, jackknife + alpha * noise * (centred @ centred.T)
