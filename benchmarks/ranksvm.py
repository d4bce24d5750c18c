"""One value and gradient of RankSVM against the two matrix products that it contains; RankSVM against listed pairs.

The value and gradient are those of the solver: scores ``X w``, the sums over the ordered pairs, ``X'g``. The products
are numpy's and scipy's. Rivals that list pairs are a value and gradient in O(m^2) by numpy, and scikit-learn's
LinearSVC on the differences of all pairs, with the same objective and no intercept.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._data import problem
from benchmarks._harness import alternate, at_most, context, faster, one_thread
from rankrls import RankSVM
from rankrls._queries import query_layout
from rankrls.learners.ranksvm import HingePairs
from rankrls.numerics.graph import LabelledGraph

SIZE = (723_000, 136, 6000)
QUICK = (40_000, 136, 350)
SMALL = (2000, 20, 50)
C = 0.01


def evaluation(X: Any, y: np.ndarray, qid: np.ndarray | None) -> Callable[[], None]:
    """One value and gradient at weights that order the pairs somewhat."""
    pairs = HingePairs(LabelledGraph.build(y, query_layout(qid, len(y)).codes, ties="exclude"))
    w = np.random.default_rng(0).standard_normal(X.shape[1])
    w /= np.std(X @ w)

    def run() -> None:
        X.T @ pairs.active(X @ w).gradient

    return run


def two_products(X: Any) -> Callable[[], None]:
    rng = np.random.default_rng(0)
    w, g = rng.standard_normal(X.shape[1]), rng.standard_normal(X.shape[0])

    def run() -> None:
        X @ w
        X.T @ g

    return run


def graded(size: tuple[int, int, int]) -> list[dict[str, Any]]:
    p = problem(*size)
    products = two_products(p.X)
    ours, *theirs, fit = alternate(
        evaluation(p.X, p.y, p.qid),
        products,
        one_thread(products),
        lambda: RankSVM(C, balance="queries").fit(p.X, p.y, qid=p.qid),
        repeats=3,
    )
    return [
        at_most(f"RankSVM, value and gradient, 5 grades, {p.name}", ours, "two numpy products", min(theirs), 3.0),
        context(f"RankSVM, whole fit, {p.name}", fit, "two numpy products", min(theirs)),
    ]


def linear_svc(rows: int, columns: int, queries: int) -> list[dict[str, Any]]:
    """Against LinearSVC on explicit differences; both to about the same objective."""
    from sklearn.svm import LinearSVC

    p = problem(rows, columns, queries, hard=False)
    rival = LinearSVC(loss="squared_hinge", dual=False, C=C, fit_intercept=False, tol=1e-4, max_iter=20_000)

    def theirs() -> None:
        i, j = (np.concatenate(side) for side in zip(*_pairs(p.y, p.qid), strict=True))
        D = p.X[i] - p.X[j]
        sign = np.where(np.arange(len(D)) % 2, 1.0, -1.0)  # two classes, as it wants them
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rival.fit(D * sign[:, None], sign)

    ours, his = alternate(lambda: RankSVM(C, balance="pairs").fit(p.X, p.y, qid=p.qid), theirs, repeats=15)
    return [faster(f"RankSVM, {p.name}", ours, "LinearSVC on all differences", his, 1.0)]


def _pairs(y: np.ndarray, qid: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Winners and losers of every query."""
    out = []
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        i, j = np.nonzero(y[rows, None] > y[rows])
        out.append((rows[i], rows[j]))
    return out


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    small = problem(600, 5, 12)
    RankSVM().fit(small.X, small.y, qid=small.qid)
    return [
        *graded(QUICK if quick else SIZE),
        *linear_svc(*SMALL),
    ]
