r"""Hold-out of items: preferences between them, predicted without any preference that involves one of them.

A fold of items is refitted, with one decomposition for all alphas. Pairs of items need no refit. With features Z of the
items, L the Laplacian of the preferences and r the net strength that each item won, the model of all items is ``A v =
Z'r``, ``A = Z'LZ + alpha I``. Without the items U = {i, j} the Laplacian is ``L - E_U``, where E_U is that of the
preferences at i or j, and

.. math:: (A - Z' E_U Z) \, v_U = Z' r_U .

With ``A = R'R`` and ``P = Z R^{-1}`` the matrix is ``I - P' E_U P``. All but a few of its eigenvalues are close to 1,
since each other item loses two of its many preferences: conjugate gradients, for many pairs at once, need few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import linalg

from rankrls._arrays import squared_lengths
from rankrls._errors import InputError
from rankrls._typing import Array, Index, Matrix
from rankrls.numerics.chunks import map_chunks
from rankrls.numerics.eigen import EPS, symmetric_eigen
from rankrls.numerics.graph import PreferenceGraph
from rankrls.numerics.runs import dense_rows
from rankrls.numerics.smoother import Equations

_VALUES = 1 << 20
_GOAL = 1e-12
_STEPS = 60
_TIED = 1e-10
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


def hold_out_preferred_pairs(Z: Array, graph: PreferenceGraph, alphas: Array, i: Index, j: Index) -> Array:
    """Scores of items ``i`` minus those of ``j`` by the model without both, (pairs, alphas); 0 for ties.

    Parameters
    ----------
    Z : ndarray of shape (items, d)
        Features in which the model is linear with the penalty ``alpha ||v||^2``, with offsets removed.
    graph : PreferenceGraph
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
    O(items d) per pair, alpha and step, of which about ten are needed; memory for items x items numbers.
    """
    m = graph.n_items
    known = np.bincount(np.concatenate((graph.winners, graph.losers)), minlength=m)
    key, counts = np.unique(_keys(graph.winners, graph.losers, m), return_counts=True)
    alone = known[i] + known[j] - counts[np.searchsorted(key, _keys(i, j, m))] == graph.n_rows
    if alone.any():
        k = int(np.argmax(alone))
        problem = f"Without rows {j[k]} and {i[k]}, no comparable pair is left to fit. Use other data or folds (cv)."
        raise InputError(problem, parameter="winners")
    W = np.zeros((m, m))
    won = np.zeros((m, m))
    np.add.at(W, (graph.winners, graph.losers), graph.weights)
    np.add.at(won, (graph.winners, graph.losers), graph.weights * graph.strength)
    W = W + W.T
    won = won - won.T
    G = Z.T @ (W.sum(axis=1)[:, None] * Z - W @ Z)
    out = np.empty((len(i), len(alphas)))
    size = max(1, _VALUES // max(m, 1))
    for a, alpha in enumerate(alphas.tolist()):
        P = linalg.solve_triangular(linalg.cholesky(G + alpha * np.eye(len(G)), lower=True), Z.T, lower=True).T
        for k in range(0, len(i), size):
            out[k : k + size, a] = _margins(P, W, won, i[k : k + size], j[k : k + size])
    return out


def _keys(i: Index, j: Index, m: int) -> Index:
    return np.minimum(i, j) * m + np.maximum(i, j)


def _margins(P: Array, W: Array, won: Array, i: Index, j: Index) -> Array:
    columns = np.arange(len(i))
    at_i = W[:, i]
    at_j = W[:, j]

    def removed(F: Array, which: Index) -> Array:
        """``E_U F``, one column for each of the given pairs."""
        own = np.arange(len(which))
        of_i = at_i[:, which]
        of_j = at_j[:, which]
        from_i = F - F[i[which], own]
        from_j = F - F[j[which], own]
        out = of_i * from_i + of_j * from_j
        out[i[which], own] = -np.einsum("kc,kc->c", of_i, from_i)
        out[j[which], own] = -np.einsum("kc,kc->c", of_j, from_j)
        return np.asarray(out)

    right = won.sum(axis=1)[:, None] - won[:, i] - won[:, j]
    right[i, columns] = right[j, columns] = 0.0
    b = P.T @ right
    u = np.zeros_like(b)
    rest = b.copy()
    p = b.copy()
    square = np.einsum("dc,dc->c", rest, rest)
    goal = _GOAL**2 * square
    left = columns[square > 0.0]
    for _ in range(_STEPS):
        if not len(left):
            break
        product = p[:, left] - P.T @ removed(P @ p[:, left], left)
        step = square[left] / np.einsum("dc,dc->c", p[:, left], product)
        u[:, left] += step * p[:, left]
        rest[:, left] -= step * product
        new = np.einsum("dc,dc->c", rest[:, left], rest[:, left])
        p[:, left] = rest[:, left] + new / square[left] * p[:, left]
        square[left] = new
        left = left[new > goal[left]]
    for c in left:  # almost nothing is left to fit
        whole = np.eye(len(b)) - P.T @ removed(P, np.full(P.shape[1], c))
        u[:, c] = np.linalg.solve(whole, b[:, c])
    found = np.einsum("cd,dc->c", P[i] - P[j], u)
    sizes = np.linalg.norm(P, axis=1)
    found[np.abs(found) <= _TIED * (sizes[i] + sizes[j]) * np.linalg.norm(u, axis=0)] = 0.0
    return np.asarray(found)
