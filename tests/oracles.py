"""Dense, slow, obvious versions of what the library does: the tests' oracles."""

from __future__ import annotations

import numpy as np


def explicit_laplacian(y, qid, w=None, *, ties="include", balance="examples", beta=0.0):
    """L = D - W by its definition, pair by pair."""
    m = len(y)
    w = np.ones(m) if w is None else w
    W = np.zeros((m, m))
    for query in set(qid):
        rows = [i for i in range(m) if qid[i] == query]
        pairs = [(i, j) for i in rows for j in rows if i != j and (ties == "include" or y[i] != y[j])]
        if balance == "pairs":
            rho = 1.0
        elif balance == "examples":
            rho = 1.0 / sum(w[i] for i in rows)
        else:
            rho = 1.0 / (0.5 * sum(w[i] * w[j] for i, j in pairs)) if pairs else 0.0
        for i, j in pairs:
            W[i, j] = rho * w[i] * w[j]
    return beta * np.diag(w) + (1 - beta) * (np.diag(W.sum(axis=1)) - W)


def dual_coefficients(K, L, y, alpha):
    """(LK + alpha I)^-1 L y, equation (8) of the 2007 paper as it stands."""
    return np.linalg.solve(L @ K + alpha * np.eye(len(y)), L @ y)


def refined_dual_coefficients(K, L, y, alpha):
    """The same in extended precision, for K in it: solves in double precision, each of what is still left over."""
    a, left = np.zeros(len(y), dtype=K.dtype), L @ y.astype(K.dtype)
    for _ in range(8):
        a += np.linalg.solve((L @ K + alpha * np.eye(len(y))).astype(float), left.astype(float))
        left = L @ (y - K @ a) - alpha * a
    return a


def ridge(X, L, y, alpha):
    """Minimizer of (y - Xw)'L(y - Xw) + alpha w'w, as one stacked least-squares problem: no squared condition."""
    values, vectors = np.linalg.eigh(L)
    F = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    n = X.shape[1]
    stacked = np.vstack((F @ X, np.sqrt(alpha) * np.eye(n)))
    return np.linalg.lstsq(stacked, np.concatenate((F @ y, np.zeros(n))), rcond=None)[0]


def gaussian(X, Z, gamma):
    """exp(-gamma ||x - z||^2), pair by pair."""
    return np.exp(-gamma * ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))
