r"""Leave-pair-out without refitting: each pair of items of a query is held out in turn.

If tied pairs are included, the graph of one ranking is a multiple of the centring matrix, so the model is ridge
regression with an unpenalized intercept. In the coordinates ``z = sqrt(w) y``, its smoother is

.. math:: H = Z \, \mathrm{diag}(1 / (\lambda + \alpha)) \, Z' + u u' , \qquad u = \sqrt{w / S} .

Without the items U = {i, j}, the errors solve the 2 x 2 system ``(I - H)_UU e = (z - H z)_U`` (Pahikkala, Airola,
Boberg, Salakoski 2008, "Exact and efficient leave-pair-out cross-validation for ranking RLS"), and the held-out
difference of scores is ``(y_i - e_i / sqrt(w_i)) - (y_j - e_j / sqrt(w_j))``. The graph of the other m - 2 items has
different weights, which are equivalent to a different alpha (:func:`pair_alphas`). With several queries and balance
"examples", each query has an intercept; a query of two items leaves nothing for its intercept to explain, so u is 0
there. For plain regression (``regression_weight=1``), which has no intercept, u is 0 everywhere.

Items with preferences are held out with all preferences that involve them. A fold of items is refitted, with one
decomposition for all alphas. Pairs of items need no refit: the preferences that involve item i or j are a unit, and
:func:`rankrls.numerics.holdout.hold_out` predicts the one between i and j by the model of all others. All preferences
between two items count as one, so a unit has fewer than twice as many rows as there are items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rankrls._arrays import squared_lengths
from rankrls._compiled import compiled
from rankrls._errors import InputError
from rankrls._typing import Array, Index, Matrix
from rankrls.numerics.eigen import EPS, check_semidefinite, symmetric_eigen
from rankrls.numerics.graph import LabelledGraph, PreferenceGraph
from rankrls.numerics.holdout import Rounding, hold_out
from rankrls.numerics.runs import chunks, dense_rows, group_sums, lengths_to_starts, map_chunks
from rankrls.numerics.smoother import DualSmoother, Equations, Smoother
from rankrls.numerics.units import solved

_ROWS = 128
_UNIT_ROWS = 1 << 14
_TIED = 128.0 * EPS
_ROUNDED = 64.0 * EPS
_CANCELLED = 8.0 * EPS
"""Rounding error of ``1 - H_ii`` where it is computed as a difference."""


def unsupported_reason(graph: LabelledGraph, *, balance: str, weighted: bool) -> str | None:
    """Reason why pairs cannot be held out without refitting, as the end of a sentence; None if they can."""
    if _is_regression(graph):
        return None
    if graph.excludes_ties:
        return "ties='exclude' makes the graph depend on which labels are left"
    if graph.e3:
        return "regression_weight between 0 and 1 makes the mean of a query depend on how many of its items are left"
    several = len(graph.starts) > 2
    if several and balance != "examples":
        return f"with several queries and balance={balance!r} a pair changes the weight of its query among the others"
    if weighted and balance != "examples":
        return f"with sample_weight and balance={balance!r} every pair changes the scale of the graph by its own factor"
    left = np.diff(graph.starts) - 1
    if left.sum() - left.max(initial=0) < 1 and left.max(initial=0) < 3:
        return "fewer than four items leave nothing comparable"
    return None


def pair_alphas(graph: LabelledGraph, alphas: Array, balance: str, held_out: int = 2) -> Array:
    """Alphas that are equivalent, with ``rho S`` of all m items, to the given ones with that of those not held out."""
    if _is_regression(graph):
        return alphas
    left = graph.n_rows - float(held_out)
    scale = {"examples": 1.0, "pairs": left, "queries": 2.0 / max(left - 1.0, 1.0)}[balance]
    return np.asarray(alphas * (float(graph.e1[0]) / scale))


def _is_regression(graph: LabelledGraph) -> bool:
    """Whether L is the diagonal matrix of the weights: regression without an intercept."""
    return graph.e3 == 1.0


def held_out_concordance(
    smoother: Smoother, graph: LabelledGraph, X: Matrix, alphas: Array, balance: str = "examples"
) -> tuple[Array, Array]:
    """Concordance of all pairs of different labels inside queries, with each pair left out in turn.

    Parameters
    ----------
    smoother : Smoother
        Smoother of the graph and X.
    graph : LabelledGraph
        Graph for which :func:`unsupported_reason` returns None.
    X : as for ``hold_out``
    alphas : ndarray
        Positive regularization values.
    balance : str
        Balance of the graph.

    Returns
    -------
    score : ndarray of shape (targets, alphas)
        Share of the pairs that are scored in the order of their labels, plus half the share of tied scores; the weight
        of a pair is the product of its items' weights. NaN for a target without pairs.
    influence : ndarray of shape (items, alphas)
        Projection of the mean over the targets that have pairs, a U-statistic, onto its items (Hoeffding 1948). Its
        norm is the standard error; NaN if no target has pairs.

    Notes
    -----
    O(m^2 k) per alpha with k eigenvectors, and memory for m k numbers and blocks of 128 x m. Targets share all but a
    few operations per pair.
    """
    plan = _Plan.of(smoother, graph, X)
    seen = plan.comparable_weight()
    total = seen.sum(axis=0)
    compared = total > 0.0

    def evaluate_alpha(alpha: float) -> tuple[Array, Array]:
        won = plan.won(alpha)
        share = np.divide(won.sum(axis=0), total, out=np.full_like(total, np.nan), where=compared)
        influence = (won - share * seen)[:, compared] / total[compared]
        return share, 2.0 * influence.sum(axis=1) / (compared.sum() or np.nan)

    shares, influences = zip(*map_chunks(evaluate_alpha, pair_alphas(graph, alphas, balance).tolist()), strict=True)
    return np.stack(shares, axis=1), np.stack(influences, axis=1)


def held_out_margins(
    smoother: Smoother, graph: LabelledGraph, X: Matrix, alphas: Array, i: Index, j: Index, balance: str = "examples"
) -> Array:
    """Scores of items ``i`` (rows of X) minus those of ``j`` by the model without both, (pairs, alphas); 0 for ties.

    Both items must be in the same query. O(k) per pair and alpha.
    """
    plan = _Plan.of(smoother, graph, X)
    a = graph.place[i]
    b = graph.place[j]
    gap = plan.y[a, 0] - plan.y[b, 0]

    def margins(alpha: float) -> Array:
        left, W, diagonal, rest = plan.solved(alpha)
        own = diagonal[a]
        other = diagonal[b]
        cross = np.einsum("ij,ij->i", left[a], W[b])
        det = own * other - cross**2
        lead = gap * det - (other * rest[a, 0] - cross * rest[b, 0]) * plan.scale[a]
        lead += (own * rest[b, 0] - cross * rest[a, 0]) * plan.scale[b]
        edge = plan.tie[0] * np.abs(own * other) + plan.tie[1] * (np.abs(own) + np.abs(other))
        found: Array = np.divide(lead, det, out=np.zeros(len(a)), where=np.abs(lead) > edge)
        return found

    return np.stack(list(map_chunks(margins, pair_alphas(graph, alphas, balance).tolist())), axis=1)


def held_out_labels(
    smoother: Smoother, graph: LabelledGraph, X: Matrix, alphas: Array, folds: Sequence[Index], balance: str
) -> Array:
    """Labels of the items of one ranking as predicted by the model without their fold, (items, alphas, targets).

    A label is the score plus the mean of labels minus scores over the other items. Folds contain rows of X; each row is
    in one of them. O(m k) per alpha, and O(u^2 k + u^3) for each fold of u items.
    """
    plan = _Plan.of(smoother, graph, X)
    sizes = np.array([len(fold) for fold in folds])
    out = np.empty((graph.n_rows, len(alphas), graph.y.shape[1]))
    for u in np.unique(sizes).tolist():
        rows = np.stack([fold for fold in folds if len(fold) == u])
        here = graph.place[rows]
        for k, alpha in enumerate(pair_alphas(graph, alphas, balance, u).tolist()):
            left, W, diagonal, rest = plan.solved(alpha)
            for a in range(0, len(rows), max(1, _ROWS // u)):
                chunk = here[a : a + max(1, _ROWS // u)]
                system = left[chunk] @ W[chunk].transpose(0, 2, 1)
                system[:, np.arange(u), np.arange(u)] = diagonal[chunk]
                errors = solved(system, rest[chunk])
                out[graph.rows[chunk], k] = graph.y[chunk] - errors * plan.scale[chunk][:, :, None]
    return out


@dataclass(frozen=True)
class _Plan:
    """Quantities shared by all alphas. Off its diagonal, ``I - H`` is ``W W'`` in the dual, else ``-W W' - u u'``."""

    smoother: Smoother
    graph: LabelledGraph
    Z: Array
    y: Array  # centred, (m, targets)
    u: Array
    scale: Array  # 1 / sqrt(w)
    sign: float
    values: Array  # eigenvalues of the columns of Z

    @classmethod
    def of(cls, s: Smoother, graph: LabelledGraph, X: Matrix) -> _Plan:
        lengths = graph.lengths
        w = graph.weights
        regression = _is_regression(graph)
        y = graph.y if regression else replace(graph, rows=np.arange(graph.n_rows)).read(graph.y)[0]
        free = ((lengths != 2) | (len(lengths) == 1)) & (not regression)
        u = np.sqrt(w * np.repeat(free / group_sums(w, graph.starts), lengths))
        if isinstance(s, DualSmoother):
            check_semidefinite(s.values)
            values = s.values
            Z = _without_means(s.directions, u, graph.starts)
            live = values != 0.0
            # If F alone has a null space, its eigenvectors are those of the intercepts, which are left out.
            if np.count_nonzero(~live) == len(lengths) and free.all():
                values = values[live]
                Z = np.linalg.qr(Z[:, live][:, ::-1])[0][:, ::-1]  # those of the largest values change least
            return cls(s, graph, Z, y, u, 1.0 / np.sqrt(w), 1.0, values)
        D, means = graph.read(X)
        Z = graph.factor(D @ s.directions, None if means is None else means @ s.directions)
        return cls(s, graph, Z, y, u, 1.0 / np.sqrt(w), -1.0, s.values)

    @property
    def tie(self) -> tuple[float, float]:
        """Error bound of a lead: factors of the product and of the sum of two diagonal entries of ``I - H``."""
        most = float(np.abs(self.y).max(initial=0.0))
        return _TIED * most, _CANCELLED * most * (self.sign < 0.0)

    def solved(self, alpha: float) -> tuple[Array, Array, Array, Array]:
        """Matrices A and B with ``AB'`` equal to ``I - H`` off the diagonal, that diagonal, and ``z - H z``."""
        s = self.smoother
        z = self.y / self.scale[:, None]
        if self.sign > 0.0:
            W = self.Z * np.sqrt(alpha / (np.maximum(self.values, 0.0) + alpha))
            return W, W, np.einsum("ij,ij->i", W, W), W @ (W.T @ z)
        W = self.Z * np.sqrt(s.inverse(np.array([alpha]))[:, 0])
        diagonal = 1.0 - np.einsum("ij,ij->i", W, W) - self.u**2
        both = np.column_stack((W, self.u))
        return -both, both, diagonal, z - W @ (W.T @ z)

    def comparable_weight(self) -> Array:
        """Weight of each item's pairs with items of its query that have different labels, (m, targets)."""
        w = self.graph.weights
        query = np.repeat(np.arange(len(self.graph.lengths)), self.graph.lengths)
        inside = np.bincount(query, w)[query]
        seen = []
        for y in self.graph.y.T:
            label = np.unique(query + 1j * y, return_inverse=True)[1]
            seen.append(w * (inside - np.bincount(label, w)[label]))
        return np.column_stack(seen)

    def won(self, alpha: float) -> Array:
        """Weight of each item's pairs that are ordered correctly, and half that of tied ones, (m, targets)."""
        left, W, diagonal, rest = self.solved(alpha)
        won = np.zeros_like(self.y)
        for begin, end in pairwise(self.graph.starts.tolist()):
            for a in range(begin, end, _ROWS):
                b = min(a + _ROWS, end)
                block = left[a:b] @ W[begin:b].T
                _compare(block, a, begin, self.y, diagonal, rest, self.scale, self.graph.weights, self.tie, won)
        return won


def _without_means(V: Array, u: Array, starts: Index) -> Array:
    """Eigenvectors made orthogonal to the intercepts again, with which they mix if their eigenvalue is close to 0."""
    means = np.add.reduceat(u[:, None] * V, starts[:-1], axis=0)
    return np.asarray(V - u[:, None] * np.repeat(means, np.diff(starts), axis=0))


@compiled
def _compare(block, first, begin, y, diagonal, rest, scale, w, tie, won):  # type: ignore[no-untyped-def]
    """Compare each row of a block with all rows of its query before it, for every target (columns of y and rest).

    The weight of correctly ordered pairs, and half that of tied ones, is added to both items of a pair. Each pair
    solves a 2 x 2 system, whose determinant is negative only by rounding, at leverage 1. There are no branches, so
    that targets are compared several at once.
    """
    for r in range(block.shape[0]):
        i = first + r
        own = diagonal[i]
        for j in range(begin, i):
            other = diagonal[j]
            cross = block[r, j - begin]
            det = own * other - cross * cross
            sign = -1.0 if det < 0.0 else 1.0
            of_i = sign * (other * scale[i] + cross * scale[j])
            of_j = sign * (own * scale[j] + cross * scale[i])
            det = sign * det
            edge = tie[0] * abs(own * other) + tie[1] * (abs(own) + abs(other))
            half = 0.5 * w[i] * w[j]
            for p in range(won.shape[1]):
                gap = y[i, p] - y[j, p]
                lead = gap * det - of_i * rest[i, p] + of_j * rest[j, p]
                lead = lead if gap > 0.0 else -lead
                right = (gap != 0.0) * (half * (lead >= -edge) + half * (lead > edge))
                won[i, p] += right
                won[j, p] += right


def kernel_features(K: Array) -> Array:
    """Features of the items in which the functions of a kernel are linear with the same penalty, up to constants."""
    K = K - K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    values, vectors = symmetric_eigen(K, len(K))
    live = values > 0.0
    return np.asarray(vectors[:, live] * np.sqrt(values[live]))


def feature_rounding(Z: Matrix) -> tuple[Array, Array]:
    """Sizes of the items (items,) and units of the weights (d,): see :func:`hold_out_items`."""
    squares = Z * Z  # of a sparse array Z**2 would sort the user's entries
    means = squares.mean(axis=0)
    units = np.sqrt(np.where(means > 0.0, means, 1.0))
    return np.sqrt(squares @ units**-2.0), units


def kernel_rounding(Z: Array) -> tuple[Array, Array]:
    """Sizes and units for :func:`kernel_features`, whose rounding depends on the kernel's largest eigenvalue."""
    values = squared_lengths(Z, axis=0)
    top = float(values.max(initial=0.0))
    return np.full(len(Z), 0.25 * np.sqrt(top)), np.sqrt(top / values)


def hold_out_items(
    Z: Matrix,
    graph: PreferenceGraph,
    folds: Sequence[tuple[Index, Index]],
    weights: Callable[[Equations], Array],
    rounding: tuple[Array, Array],
) -> list[Array]:
    """Margins of preferences by a model fitted to other preferences, for each fold, (preferences, alphas); 0 for ties.

    Parameters
    ----------
    Z : ndarray or csr_array of shape (items, d)
        Features in which the model is linear, with offsets removed.
    graph : PreferenceGraph
        Graph in which each preference is its own group.
    folds : sequence of (ndarray of int, ndarray of int)
        Numbers of the fitted preferences, and of those whose margins are returned.
    weights : callable
        Function of the equations that returns the weights (d, alphas) of the fitted model.
    rounding : (ndarray of shape (items,), ndarray of shape (d,))
        Sizes s and units u: a margin is a tie if it is within rounding of ``(s_i + s_j) ||u w||``.

    Notes
    -----
    O(items d^2 + preferences d) plus one decomposition per fold. Folds are spread over threads.
    """
    sizes, units = rounding

    def margins(fold: tuple[Index, Index]) -> Array:
        train, test = fold
        w = weights(Equations.of(graph.take(train), Z))
        winners = graph.winners[test]
        losers = graph.losers[test]
        items, numbers = np.unique(np.concatenate((winners, losers)), return_inverse=True)
        scores = dense_rows(Z, items) @ w
        first, second = numbers.reshape(2, -1)
        out = scores[first] - scores[second]
        level = _ROUNDED * (sizes[winners] + sizes[losers])
        out[np.abs(out) <= level[:, None] * np.linalg.norm(units[:, None] * w, axis=0)] = 0.0
        return np.asarray(out)

    return list(map_chunks(margins, folds))


def hold_out_preferred_pairs(
    smoother: Smoother,
    graph: PreferenceGraph,
    Z: Matrix,
    alphas: Array,
    i: Index,
    j: Index,
    rounding: tuple[Array, Array],
) -> Array:
    """Scores of items ``i`` minus those of ``j`` by the model without both, (pairs, alphas); 0 for ties.

    Parameters
    ----------
    smoother : Smoother
        Primal smoother of the graph and Z.
    graph : PreferenceGraph
    Z, rounding : as for :func:`hold_out_items`
    alphas : ndarray
        Positive regularization values.
    i, j : ndarray of shape (pairs,), intp
        Pairs with a preference in the graph.

    Raises
    ------
    InputError
        If, without a pair, no preference is left to fit.

    Notes
    -----
    O(items d) per pair, alpha and step of conjugate gradients, of which about five are needed.
    """
    known = _one_for_each_pair(graph)
    by_item = abs(known.incidence).T.tocsr()
    of_item = np.split(by_item.indices, by_item.indptr[1:-1])
    counts = np.diff(by_item.indptr)
    starts = lengths_to_starts(counts[i] + counts[j] - 1)
    alone = np.diff(starts) == known.n_rows
    if alone.any():
        k = int(np.argmax(alone))
        problem = f"Without rows {j[k]} and {i[k]}, no comparable pair is left to fit. Use other data or folds (cv)."
        raise InputError(problem, parameter="winners")
    number = np.searchsorted(
        known.winners * known.n_items + known.losers, np.minimum(i, j) * known.n_items + np.maximum(i, j)
    )
    sizes, scale = rounding
    norms = np.linalg.norm(scale[:, None] * smoother.path(alphas)[:, :, 0].T, axis=0)[None]
    items = dense_rows(Z, slice(None)) @ smoother.directions

    def margins(chunk: tuple[int, int]) -> Array:
        these = slice(*chunk)
        units = [np.union1d(of_item[a], of_item[b]) for a, b in zip(i[these], j[these], strict=True)]
        part = known.take(np.concatenate(units))
        own = starts[chunk[0] : chunk[1] + 1] - starts[chunk[0]]
        of_part = Rounding(sizes[part.winners] + sizes[part.losers], norms)
        found = hold_out(smoother, part, items, alphas, units=own, rounding=of_part)
        between = part.rows == np.repeat(number[these], np.diff(own))
        return np.asarray(found[0][:, between].T)

    found = np.concatenate(list(map_chunks(margins, chunks(starts, _UNIT_ROWS))))
    return np.where(i < j, found.T, -found.T).T


def _one_for_each_pair(graph: PreferenceGraph) -> PreferenceGraph:
    """Graph with the same L and ``F't``, and one preference for each pair of items with preferences."""
    ends = np.sort([graph.winners, graph.losers], axis=0)
    (first, second), number = np.unique(ends, axis=1, return_inverse=True)
    sign = np.where(graph.winners < graph.losers, 1.0, -1.0)
    weights = np.bincount(number.ravel(), graph.weights).astype(np.float64)
    strength = np.bincount(number.ravel(), sign * graph.weights * graph.strength) / weights
    return PreferenceGraph.build(first, second, graph.n_items, strength=strength, weights=weights)
