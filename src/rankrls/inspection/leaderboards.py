"""Ratings of items from votes, with what the votes say of their order and what they leave open."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, lapack
from scipy.special import stdtrit

from rankrls._errors import InputError, InputWarning, warn_user
from rankrls._queries import query_layout
from rankrls._shown import Shown, table_text
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.inspection.uncertainty import checked_prior
from rankrls.models.intake import preferred_items
from rankrls.models.parameters import number
from rankrls.models.rankrls import RankRLS
from rankrls.numerics.chunks import map_chunks
from rankrls.numerics.concordance import CONFIDENCE
from rankrls.numerics.graph import PreferenceGraph
from rankrls.numerics.runs import dense_rows, lengths_to_starts
from rankrls.selection.folds import preference_blocks

_BLOCK = 1 << 22
"""Features of items in memory at a time."""
_TILE = 256
"""Items whose pairs with as many others are compared at a time."""


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
        return {"rank": ranks} | {name: vars(self)[name] for name in names}

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
    significantly smaller, each by its own test. O(n^3 + m n^2 + m^2 n + p n), and a solution in the items of each
    group; beside X two matrices of m x n and five of n x n numbers. A warning says if votes do not connect all items.

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
    is_named = X is None
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
    solver = next(spec.candidates(data)).problem(data).solvers[0]
    assert isinstance(solver.graph, PreferenceGraph)
    votes = np.bincount(np.concatenate((table.winners, table.losers)), minlength=m)
    if is_named:
        _warn_of_components(solver.graph, votes > 0)
    found = _Ratings.of(solver.item_features, solver.graph, prior)
    order = np.argsort(-found.scores, kind="stable")
    rating = found.scores[order]
    quantile = stdtrit(table.n_groups - 1, 0.5 + confidence / 2)
    half = (quantile * np.sqrt(found.variance))[order]
    best, worst = found.ranks(order, quantile)
    return Leaderboard(
        item=items[order],
        rating=rating,
        low=rating - half,
        high=rating + half,
        best_rank=best,
        worst_rank=worst,
        votes=votes[order],
        alpha=prior,
        confidence=float(confidence),
    )


def _warn_of_components(graph: PreferenceGraph, voted: Mask) -> None:
    """Warn if some items were never compared with others, over any number of votes."""
    sizes = np.unique(graph.components[voted], return_counts=True)[1]
    if len(sizes) > 1:
        problem = f"The votes fall into {len(sizes)} sets of items, the largest of {sizes.max()}, with no vote between."
        remedy = "Ratings compare items of different sets only by their shares of wins. Rate each set by itself."
        warn_user(InputWarning(f"{problem} {remedy}", parameter="winners"))


@dataclass(frozen=True, eq=False)
class _Ratings:
    """Scores less their mean, with covariance ``C Z B Z'C``, which is never formed; C takes off the mean of columns.

    Attributes
    ----------
    Z : ndarray or csr_array of shape (m, n)
    scores, variance : ndarray of shape (m,)
    rows : ndarray of shape (m, n)
        ``C Z B``.
    """

    Z: Matrix
    scores: Array
    rows: Array
    variance: Array

    @classmethod
    def of(cls, Z: Matrix, graph: PreferenceGraph, alpha: float) -> _Ratings:
        """From features in which functions weigh ``alpha ||v||^2``. O(n^3 + m n^2), and ``A^-1`` for each group."""
        n = Z.shape[1]
        n_groups = len(graph.starts) - 1
        gram = Z.T @ (graph.matrix @ Z)
        inverse = _inverse((gram.toarray() if sparse.issparse(gram) else gram) + alpha * np.eye(n))
        turned = Z @ inverse
        scores = turned @ (Z.T @ graph.transposed(graph.target)[:, 0])
        missed = _missed(Z, turned, graph, scores)
        del turned
        of_groups = missed @ Z
        total = of_groups.sum(axis=0)
        spread = of_groups.T @ of_groups
        share = 1.0 - 1.0 / n_groups
        noise = alpha * np.mean(graph.weights * graph.strength**2)  # at most: that of votes without any order
        inner = share * (spread @ inverse) + noise * inverse
        inner -= (share / n_groups) * np.outer(total, total @ inverse)
        B = inverse @ inner
        del inverse, inner
        mean = Z.mean(axis=0)
        rows = Z @ B
        rows -= mean @ B
        variance = np.asarray((Z.multiply(rows) if sparse.issparse(Z) else Z * rows).sum(axis=1)) - rows @ mean
        return cls(Z, scores - scores.mean(), rows, np.maximum(variance, 0.0))

    def ranks(self, order: Index, quantile: float) -> tuple[Index, Index]:
        """The best and the worst rank of each item, in descending order of the scores. O(m^2 n), in blocks of rows."""
        m = len(order)
        Z = self.Z[order]
        rows = self.rows[order]
        scores = self.scores[order]
        variance = self.variance[order]
        level = rows @ self.Z.mean(axis=0)
        best = np.ones(m, dtype=np.intp)
        worst = np.full(m, m, dtype=np.intp)

        def outranked(a: int) -> tuple[Index, Index]:
            """The significant differences of a tile's items to later ones, and of each later item to the tile's."""
            b = min(a + _TILE, m)
            below = np.zeros(b - a, dtype=np.intp)
            above = np.zeros(m - a, dtype=np.intp)
            for c in range(a, m, _TILE):
                d = min(c + _TILE, m)
                covariance = (Z[c:d] @ rows[a:b].T).T - level[a:b, None]
                apart = variance[a:b, None] + variance[c:d] - 2.0 * covariance
                gap = np.maximum(scores[a:b, None] - scores[c:d], 0.0)
                differ = gap * gap > np.maximum(quantile**2 * apart, 0.0)
                below += differ.sum(axis=1)
                above[c - a : d - a] = differ.sum(axis=0)
            return below, above

        firsts = range(0, m, _TILE)
        for a, (below, above) in zip(firsts, map_chunks(outranked, firsts), strict=True):
            worst[a : a + len(below)] -= below
            best[a:] += above
        return best, worst


def _inverse(A: Array) -> Array:
    """The inverse of a positive definite matrix, which is destroyed. O(n^3)."""
    factor = cholesky(A, overwrite_a=True, check_finite=False)
    upper, _ = lapack.dpotri(factor, overwrite_c=True)
    inverse = upper + upper.T
    np.fill_diagonal(inverse, upper.diagonal())
    return np.asarray(inverse)


def _missed(Z: Matrix, turned: Array, graph: PreferenceGraph, scores: Array) -> sparse.csr_array:
    r"""What the model without each group misses of it, ``u_g = D_g'C_g (s_g - p_g)`` in its items, (groups, items).

    With ``G = Z A^{-1} Z'`` of the group's items, their scores f and ``L_g = D_g'C_g D_g``, ``(I - L_g G) u_g =
    D_g'C_g s_g - L_g f``. Groups of equally many items are solved together.
    """
    n_groups = len(graph.starts) - 1
    m = graph.n_items
    group = np.repeat(np.arange(n_groups), np.diff(graph.starts))
    keys, numbers = np.unique(
        np.concatenate((group * m + graph.winners, group * m + graph.losers)), return_inverse=True
    )
    owners, items = np.divmod(keys, m)
    winners, losers = numbers.reshape(2, -1)
    inside = replace(graph, winners=winners, losers=losers, n_items=len(keys))
    right = inside.transposed(inside.target)[:, 0] - inside.laplacian(scores[items])
    counts = np.bincount(owners)
    firsts = lengths_to_starts(counts)[:-1]
    out = np.empty(len(keys))
    for k in np.unique(counts).tolist():
        places = firsts[counts == k][:, None] + np.arange(k)
        size = max(1, _BLOCK // (k * Z.shape[1]))
        for a in range(0, len(places), size):
            some = places[a : a + size]
            flat = some.ravel()
            features = dense_rows(Z, items[flat]).reshape(len(some), k, -1)
            between = turned[items[some]] @ features.transpose(0, 2, 1)
            product = inside.matrix[flat][:, flat] @ between.reshape(-1, k)  # group by group
            left = np.eye(k) - product.reshape(between.shape)
            out[some] = np.linalg.solve(left, right[some][:, :, None])[:, :, 0]
    return sparse.csr_array((out, (owners, items)), shape=(n_groups, m))
