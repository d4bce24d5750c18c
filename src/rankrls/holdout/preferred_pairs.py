r"""Leave-pair-out for preferences: two items held out together, with every preference that one of them is in.

With features Z of the items, L the Laplacian of the preferences and r the net strength that each item won, the model of
all items is ``A v = Z'r``, ``A = Z'LZ + alpha I``. Without the items U = {i, j} the Laplacian is ``L - E_U``, E_U that
of the preferences at i or at j, and

.. math::

    (A - Z' E_U Z) \, v_U = Z' r_U .

E_U has rank up to m, so there is no small system as there is for the complete graph of labels. It is small in another
sense: each other item loses two of its many preferences. With ``A = R R'`` and ``P = Z R^{-T}`` the matrix is
``I - P' E_U P``, whose eigenvalues lie close to 1 but for a few, and conjugate gradients need few steps. They are taken
for many pairs at once, and a product with E_U is O(m).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from rankrls._errors import InputError
from rankrls.graph import PairGraph

_VALUES = 1 << 20  # of one array of a block of pairs
_PRECISION = 1e-12
_STEPS = 60
_NEAR = 1e-10  # of the largest lead: a tie


def held_out_preferences(
    kernel: Any,
    X: Any,
    graph: PairGraph,
    alphas: NDArray[np.float64],
    i: NDArray[np.intp],
    j: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Held-out scores of items ``i`` less those of items ``j``, (pairs, alphas); 0 for ties.

    Parameters
    ----------
    kernel : Kernel
    X : array, or list of objects
        The items.
    graph : PairGraph
    alphas : ndarray
        Positive.
    i, j : ndarray of shape (pairs,), intp
        Pairs with a preference in the graph.

    Raises
    ------
    InputError
        If a pair leaves no preference to learn from.
    """
    m = graph.n_items
    known = np.bincount(np.concatenate((graph.winners, graph.losers)), minlength=m)
    key = lambda a, b: np.minimum(a, b) * m + np.maximum(a, b)
    pairs, counts = np.unique(key(graph.winners, graph.losers), return_counts=True)
    alone = known[i] + known[j] - counts[np.searchsorted(pairs, key(i, j))] == graph.n_rows
    if alone.any():
        k = int(np.argmax(alone))
        problem = "Without rows {0} and {1} no comparable pair is left to learn from."
        raise InputError(problem, j[k], i[k], parameter="event", row=int(j[k]))
    Z = _features(kernel, X)
    out = np.stack([held_out_leads(Z, graph, float(alpha), i, j) for alpha in alphas], axis=1)
    out[np.abs(out) <= _NEAR * np.abs(out).max(axis=0, initial=0.0)] = 0.0
    return out


def _features(kernel: Any, X: Any) -> NDArray[np.float64]:
    """At most as many features as items, in which the kernel's functions are linear with the same penalty."""
    if kernel.is_linear and X.shape[1] <= X.shape[0]:
        Z = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        return np.asarray(Z - Z.mean(axis=0))
    K = kernel(X)
    K = K - K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]  # constants order nothing
    values, vectors = np.linalg.eigh(K)
    kept = values > len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


def held_out_leads(
    Z: NDArray[np.float64], graph: PairGraph, alpha: float, i: NDArray[np.intp], j: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Scores of items ``i`` less those of items ``j`` by the model without the two, shape (pairs,).

    Parameters
    ----------
    Z : ndarray of shape (m, d)
        Features in which the model is linear, with the penalty ``alpha ||v||^2``.
    graph : PairGraph
    alpha : float
        Positive.
    i, j : ndarray of shape (pairs,), intp

    Notes
    -----
    O(m d) for each pair and step, O(m d^2) once, and O(m^2) memory for the preferences.
    """
    m = len(Z)
    W, won = np.zeros((m, m)), np.zeros((m, m))
    np.add.at(W, (graph.winners, graph.losers), graph.weight)
    np.add.at(won, (graph.winners, graph.losers), graph.weight * graph.strength)
    W, won = W + W.T, won - won.T
    A = Z.T @ (W.sum(axis=1)[:, None] * Z - W @ Z)
    A.flat[:: len(A) + 1] += alpha
    P = solve_triangular(cholesky(A, lower=True), Z.T, lower=True).T
    size = max(1, _VALUES // max(m, 1))
    blocks = [slice(k, k + size) for k in range(0, len(i), size)]
    return np.concatenate([_leads(P, W, won, i[block], j[block]) for block in blocks])


def _leads(
    P: NDArray[np.float64], W: NDArray[np.float64], won: NDArray[np.float64], i: NDArray[np.intp], j: NDArray[np.intp]
) -> NDArray[np.float64]:
    columns = np.arange(len(i))
    at_i, at_j = W[:, i], W[:, j]

    def removed(F: NDArray[np.float64], which: NDArray[np.intp]) -> NDArray[np.float64]:
        """``E_U F`` of some pairs."""
        own = np.arange(len(which))
        of_i, of_j = at_i[:, which], at_j[:, which]
        from_i, from_j = F - F[i[which], own], F - F[j[which], own]
        out = of_i * from_i + of_j * from_j
        out[i[which], own] = -np.einsum("kc,kc->c", of_i, from_i)
        out[j[which], own] = -np.einsum("kc,kc->c", of_j, from_j)
        return np.asarray(out)

    right = won.sum(axis=1)[:, None] - won[:, i] - won[:, j]
    right[i, columns] = right[j, columns] = 0.0
    u = _conjugate_gradients(P, removed, P.T @ right)
    return np.asarray(np.einsum("cd,dc->c", P[i] - P[j], u))


def _conjugate_gradients(P: NDArray[np.float64], removed, b: NDArray[np.float64]) -> NDArray[np.float64]:  # type: ignore[no-untyped-def]
    """Solve ``(I - P'E_U P) u_U = b_U``, a column for each pair; those that converge leave."""
    u, residual = np.zeros_like(b), b.copy()
    direction, left = residual.copy(), np.arange(b.shape[1])
    square = np.einsum("dc,dc->c", residual, residual)
    enough = _PRECISION**2 * square
    left = left[square > 0.0]
    for _ in range(_STEPS):
        if not len(left):
            return u
        p = direction[:, left]
        product = p - P.T @ removed(P @ p, left)
        step = square[left] / np.einsum("dc,dc->c", p, product)
        u[:, left] += step * p
        residual[:, left] -= step * product
        new = np.einsum("dc,dc->c", residual[:, left], residual[:, left])
        direction[:, left] = residual[:, left] + new / square[left] * p
        square[left] = new
        left = left[new > enough[left]]
    for c in left:  # next to nothing was left to learn from
        whole = np.eye(len(b)) - P.T @ removed(P, np.full(P.shape[1], c))
        u[:, c] = np.linalg.solve(whole, b[:, c])
    return u
