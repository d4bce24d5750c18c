"""Pairwise losses by listing every pair."""

from __future__ import annotations

import numpy as np
from scipy import optimize


def listed_pairs(y, qid, w=None, balance="pairs"):
    """Winners, losers and weights ``rho_q w_i w_j`` of all ordered pairs, by their definition."""
    m = len(y)
    w = np.ones(m) if w is None else w
    winners, losers, weights = [], [], []
    for query in dict.fromkeys(qid):
        rows = [i for i in range(m) if qid[i] == query]
        pairs = [(i, j) for i in rows for j in rows if y[i] > y[j]]
        rho = {
            "pairs": 1.0,
            "examples": 1.0 / sum(w[i] for i in rows),
            "queries": 1.0 / sum(w[i] * w[j] for i, j in pairs) if pairs else 0.0,
        }[balance]
        for i, j in pairs:
            winners.append(i)
            losers.append(j)
            weights.append(rho * w[i] * w[j])
    return np.array(winners, dtype=int), np.array(losers, dtype=int), np.array(weights)


def pair_sums(f, winners, losers, weights):
    """The squared hinge over listed pairs, its gradient, and the Laplacian of the pairs that have loss."""
    m = len(f)
    gradient, L, loss = np.zeros(m), np.zeros((m, m)), 0.0
    for i, j, c in zip(winners, losers, weights, strict=True):
        x = 1.0 - (f[i] - f[j])
        if x > 0.0:
            d = np.eye(m)[i] - np.eye(m)[j]
            loss += c * x * x
            gradient -= 2.0 * c * x * d
            L += c * np.outer(d, d)
    return loss, gradient, L


def objective(w, D, c, s, C):
    """1/2 |w|^2 + C sum c max(0, s - D w)^2, for D the differences of the pairs."""
    return 0.5 * w @ w + C * (c @ np.maximum(s - D @ w, 0.0) ** 2)


def optimum(D, c, s, C):
    """Minimizer from the dual, a box-constrained quadratic program over all pairs, and the dual's value."""
    G = D @ D.T + np.diag(1.0 / (2.0 * C * c))
    top = np.linalg.eigvalsh(G)[-1]
    result = optimize.minimize(
        lambda a: (0.5 * a @ G @ a - a @ s, G @ a - s),
        np.full(len(c), 1.0 / top),
        jac=True,
        bounds=[(0.0, np.inf)] * len(c),
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 200000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 50},
    )
    return D.T @ result.x, -result.fun
