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
from benchmarks._text import RCV1, documents
from rankrls import RankSVM
from rankrls._queries import query_layout
from rankrls.graph import OrderedPairs
from rankrls.hinge.ranksvm import HingeProblem

SIZE = (723_000, 136, 6000)
QUICK = (40_000, 136, 350)
QUICK_TEXT = (20_000, 6000)
LISTED = 4000
SMALL = (2000, 20, 50)
C = 0.01


def evaluation(X: Any, y: np.ndarray, qid: np.ndarray | None) -> Callable[[], None]:
    """One value and gradient at weights that order the pairs somewhat."""
    pairs = OrderedPairs.build(y, query_layout(qid, len(y)), balance="examples")
    problem = HingeProblem(X, pairs, "squared_hinge", tol=1e-6, max_iter=100)
    w = np.random.default_rng(0).standard_normal(X.shape[1])
    w /= np.std(problem.products.scores(w))

    def run() -> None:
        sweep = problem.sums.sweep(problem.products.scores(w))
        problem.products.combine(sweep.gradient)

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
        at_most(f"RankSVM, value and gradient, 5 grades, {p.name}", ours, "two numpy products", min(theirs), 1.8),
        context(f"RankSVM, whole fit, {p.name}", fit, "two numpy products", min(theirs)),
    ]


def text(size: tuple[int, int]) -> list[dict[str, Any]]:
    """Two classes as they come, and utilities that are all different, in one global ranking."""
    X, classes = documents(*size)
    rng = np.random.default_rng(0)
    utilities = classes + rng.standard_normal(len(classes))
    products = two_products(X)
    lines = []
    for y, what in ((classes, "2 labels"), (utilities, "all labels different")):
        ours, theirs = alternate(evaluation(X, y, None), products, repeats=5)
        job = f"RankSVM, value and gradient, {what}, {X.shape[0] // 1000}k x {X.shape[1] // 1000}k"
        lines.append(at_most(job, ours, "two scipy products", theirs, 1.8))
    return lines


def listed(rows: int) -> list[dict[str, Any]]:
    """Against O(m^2) by numpy, on one global ranking."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 10))
    y = X[:, 0] + rng.standard_normal(rows)
    w = rng.standard_normal(10)
    above = y[:, None] > y

    def all_pairs() -> None:
        f = X @ w
        slack = np.where(above, np.maximum(1.0 - (f[:, None] - f), 0.0), 0.0)
        np.einsum("ij,ij->", slack, slack)
        X.T @ (slack.sum(axis=0) - slack.sum(axis=1))

    ours, theirs = alternate(evaluation(X, y, None), all_pairs, repeats=3)
    return [context(f"RankSVM, value and gradient, m = {rows}", ours, "the same over all pairs by numpy", theirs)]


def linear_svc(rows: int, columns: int, queries: int) -> list[dict[str, Any]]:
    """Against LinearSVC on explicit differences; both to about the same objective."""
    from sklearn.svm import LinearSVC

    p = problem(rows, columns, queries, hard=False)
    lines = []
    for loss, tol in (("squared_hinge", 1e-6), ("hinge", 1e-3)):
        rival = LinearSVC(loss=loss, dual=loss == "hinge", C=C, fit_intercept=False, tol=1e-4, max_iter=20_000)

        def theirs(rival: Any = rival) -> None:
            i, j = (np.concatenate(side) for side in zip(*_pairs(p.y, p.qid), strict=True))
            D = p.X[i] - p.X[j]
            sign = np.where(np.arange(len(D)) % 2, 1.0, -1.0)  # two classes, as it wants them
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rival.fit(D * sign[:, None], sign)

        def ours(loss: str = loss, tol: float = tol) -> RankSVM:
            return RankSVM(C, loss=loss, balance="pairs", tol=tol).fit(p.X, p.y, qid=p.qid)

        mine, his = alternate(ours, theirs, repeats=15)
        lines.append(faster(f"RankSVM, {loss}, {p.name}", mine, "LinearSVC on all differences", his, 2.0))
    return lines


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
        *text(QUICK_TEXT if quick else RCV1),
        *listed(1000 if quick else LISTED),
        *linear_svc(*SMALL),
    ]
