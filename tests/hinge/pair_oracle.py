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


def pair_sums(f, winners, losers, weights, margin):
    """Weight, slack, half squared slack, its gradient and the Laplacian of the pairs with slack."""
    m = len(f)
    gradient, L = np.zeros(m), np.zeros((m, m))
    sums = np.zeros(3)
    for i, j, c in zip(winners, losers, weights, strict=True):
        if f[i] - f[j] < margin:
            x = margin - (f[i] - f[j])
            sums += c, c * x, c * x * x / 2
            gradient[i] -= c * x
            gradient[j] += c * x
            L[i, i] += c
            L[j, j] += c
            L[i, j] -= c
            L[j, i] -= c
    return sums, gradient, L


def objective(w, D, c, s, C, loss):
    """1/2 |w|^2 + C sum c loss(s - D w), for D the differences of the pairs."""
    x = np.maximum(s - D @ w, 0.0)
    return 0.5 * w @ w + C * (c @ (x**2 if loss == "squared_hinge" else x))


def optimum(D, c, s, C, loss):
    """Minimiser from the dual, a box-constrained quadratic program over all pairs, and the dual's value."""
    G = D @ D.T
    if loss == "squared_hinge":
        G = G + np.diag(1.0 / (2.0 * C * c))
        upper = np.full(len(c), np.inf)
    else:
        upper = C * c
    top = max(np.linalg.eigvalsh(G)[-1], 1e-300)
    result = optimize.minimize(
        lambda a: (0.5 * a @ G @ a - a @ s, G @ a - s),
        np.minimum(upper, 1.0 / top),
        jac=True,
        bounds=[(0.0, u) for u in upper],
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 200000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 50},
    )
    return D.T @ result.x, -result.fun
