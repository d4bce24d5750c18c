"""Conditional ranking of 1000 items for 1000 queries: exact leave-query-out of 21 alphas, disagreement error included.

The limit is what the formulas multiply: two eigendecompositions of that size and three products an alpha (the
coefficients, the diagonal of what is held out, and the scores, which a squared error can do without). Beside
it there are the two kernel matrices, the centring, and judging 21 million held-out scores. Of the products the diagonal
is not made, but interpolated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from benchmarks._harness import alternate, at_most, one_thread
from rankrls import ConditionalRankRLSCV, Items

ALPHAS = tuple(2.0 ** np.arange(-12, 9))


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    size, repeats = (150, 1) if quick else (1000, 3)
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(2, size, 10))
    Y = np.tanh(X @ Z.T) + rng.normal(size=(size, size))
    items = Items(Z)
    gaussian = {"kernel": "rbf", "gamma": 0.1, "item_kernel": "rbf", "item_gamma": 0.1}
    ours = lambda: ConditionalRankRLSCV(ALPHAS, **gaussian).fit(X, Y, items=items)
    squared = lambda: ConditionalRankRLSCV(ALPHAS, scoring="pair_squared_error", **gaussian).fit(X, Y, items=items)
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))

    def limit(products: int) -> None:
        for _ in range(2):
            linalg.eigh(K, driver="evd")
        for _ in range(products):
            K @ Y

    two, three = (lambda n=n: limit(n * len(ALPHAS)) for n in (2, 3))
    runs = (ours, squared, three, one_thread(three), two, one_thread(two))
    own, by_squares, *alone = alternate(*runs, repeats=repeats)
    job, rival = f"conditional, {size} x {size}, 21 alphas held out", "two eigh and {} products"
    return [
        at_most(f"{job}, disagreement error", own, rival.format(3 * len(ALPHAS)), min(alone[:2]), 1.3),
        at_most(f"{job}, squared error of pairs", by_squares, rival.format(2 * len(ALPHAS)), min(alone[2:]), 1.3),
    ]
