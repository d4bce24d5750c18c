r"""Hold-out of items: preferences between them, predicted without any preference that involves one of them.

A fold of items is refitted, with one decomposition for all alphas. Pairs of items need no refit: the preferences that
involve item i or j are a unit, and :func:`rankrls.numerics.holdout.hold_out` predicts the one between i and j by the
model of all others. All preferences between two items count as one, so a unit has fewer than twice as many rows as
there are items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rankrls._arrays import squared_lengths
from rankrls._errors import InputError
from rankrls._typing import Array, Index, Matrix
from rankrls.numerics.chunks import chunks, map_chunks
from rankrls.numerics.eigen import EPS, symmetric_eigen
from rankrls.numerics.graph import PreferenceGraph
from rankrls.numerics.holdout import Rounding, hold_out
from rankrls.numerics.runs import dense_rows, lengths_to_starts
from rankrls.numerics.smoother import Equations, Smoother

_ROWS = 1 << 14
_ROUNDED = 64.0 * EPS


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
        some = slice(*chunk)
        units = [np.union1d(of_item[a], of_item[b]) for a, b in zip(i[some], j[some], strict=True)]
        part = known.take(np.concatenate(units))
        own = starts[chunk[0] : chunk[1] + 1] - starts[chunk[0]]
        of_part = Rounding(sizes[part.winners] + sizes[part.losers], norms)
        found = hold_out(smoother, part, items, alphas, units=own, rounding=of_part)
        between = part.rows == np.repeat(number[some], np.diff(own))
        return np.asarray(found[0][:, between].T)

    found = np.concatenate(list(map_chunks(margins, chunks(starts, _ROWS))))
    return np.where(i < j, found.T, -found.T).T


def _one_for_each_pair(graph: PreferenceGraph) -> PreferenceGraph:
    """Graph with the same L and ``F't``, and one preference for each pair of items with preferences."""
    ends = np.sort([graph.winners, graph.losers], axis=0)
    (first, second), number = np.unique(ends, axis=1, return_inverse=True)
    sign = np.where(graph.winners < graph.losers, 1.0, -1.0)
    weights = np.bincount(number.ravel(), graph.weights).astype(np.float64)
    strength = np.bincount(number.ravel(), sign * graph.weights * graph.strength) / weights
    return PreferenceGraph.build(first, second, graph.n_items, strength=strength, weights=weights)
