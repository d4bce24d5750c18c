"""Numerics: the same model by every route, on random data, against a dense solve and against refits."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
from numpy.random import Generator
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from tests.models.oracles import GRAPHS, laplacian, query_rows
from tests.oracles import gaussian, refined_dual_coefficients, ridge

from attack.campaign import Refused, Target, Wrong
from attack.cases import chance, choice
from rankrls import InputError, RankRLS, RankRLSCV, SparseRankRLS
from rankrls.metrics import Measure
from rankrls.model_selection import leave_query_out

__all__ = ["TARGET"]

_PAIRS = GRAPHS.index({"ties": "exclude", "balance": "pairs", "regression_weight": 0.0})
_EPSILON = float(np.finfo(float).eps)


class Problem:
    """Random items of queries, a graph, and an alpha that is not too small for the data."""

    def __init__(self, case: dict[str, Any]) -> None:
        rng = np.random.default_rng(case["seed"])
        self.rng, self.graph = rng, GRAPHS[case["graph"]]
        m, n = case["rows"], case["columns"]
        self.X = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-case["spread"], case["spread"], n)
        self.X[:, 0] *= 10.0 ** case["far"]  # a price, or a sentinel among small numbers
        if case["rounded"]:
            self.X = np.round(self.X, 1)
        self.qid = rng.integers(0, case["queries"], m)
        self.y = rng.integers(0, 4, m).astype(float) if case["graded"] else rng.normal(size=m)
        self.y[:2], self.qid[:2] = [0.0, 1.0], 0  # something to compare
        self.w = rng.integers(1, 4, m).astype(float) if case["weighted"] else np.ones(m)
        self.new = rng.normal(size=(5, n)) * np.abs(self.X).max(axis=0)
        self.rbf = case["rbf"]
        gamma = 0.5 / max(float(np.var(self.X) * n), 1e-300)
        self.kernel = {"kernel": "rbf", "gamma": gamma} if self.rbf else {}
        L = laplacian(self.y, self.qid, self.w, self.graph)
        K, K_new = (gaussian(Z, self.X, gamma) if self.rbf else Z @ self.X.T for Z in (self.X, self.new))
        self.K, self.K_new, self.lost = K, K_new, 0.0
        product = L @ K if self.rbf else self.X.T @ L @ self.X
        largest = float(np.linalg.eigvals(product).real.max())
        if largest <= 0.0:
            raise Refused
        self.alpha = largest * 10.0 ** case["log_alpha"]
        least = 1e-6 * float(np.abs(self.y).max())  # data may cancel to nothing but rounding
        if self.rbf:
            self._solve_with_kernel(L, gamma, least)
            return
        self.condition = 1.0 + largest / self.alpha
        weights = ridge(self.X, L, self.y, self.alpha)
        self.expected = self.new @ weights
        self.scale = least + float(np.abs(self.expected).max() + np.abs(self.X @ weights).max())

    def _solve_with_kernel(self, L: Any, gamma: float, least: float) -> None:
        """The scores in extended precision, and what rounding in double precision may do to them.

        An error E of the kernel matrix moves the scores of new items by ``k'F'(F K F' + alpha I)^-1 F E a``, where
        ``|k'F'(F K F' + alpha I)^-1| <= 1 / (2 sqrt(alpha))``; one of k by its product with a. If directions of K are
        left out whose eigenvalues are below a cutoff, the scores lose at most ``sqrt(cutoff) |a|``.
        """
        m = len(self.y)
        X, new = (Z.astype(np.longdouble) for Z in (self.X, self.new))
        a = refined_dual_coefficients(gaussian(X, X, gamma), L, self.y, self.alpha)
        self.expected = np.asarray(gaussian(new, X, gamma) @ a, dtype=float)
        self.scale = least + float(np.abs(self.expected).max() + np.abs(self.K @ a).max())
        size = float(np.linalg.norm(a))
        amplified = m * np.sqrt(np.linalg.norm(L, 2) / self.alpha) * size / 2.0
        self.condition = 1.0 + float(amplified + np.abs(a).sum()) / self.scale
        self.lost = float(np.sqrt(m * _EPSILON * np.linalg.norm(self.K, 2)) * size) / self.scale

    def same(self, what: str, found: Any, expected: Any, factor: float = 1e3, least: float = 1e-9) -> None:
        """Raise :class:`Wrong` if scores differ by more than rounding explains."""
        error = float(np.abs(np.asarray(found) - expected).max(initial=0.0)) / self.scale
        bound = least + factor * _EPSILON * self.condition
        if not error <= bound:
            raise Wrong(f"{what} differ by {error:.1e} of the scores, more than {bound:.1e}")

    def fit(self, rows: Any = slice(None), **options: Any) -> Any:
        """A model of some rows."""
        given = {"qid": self.qid[rows], "sample_weight": self.w[rows]}
        return RankRLS(self.alpha, **{**self.graph, **self.kernel, **options}).fit(self.X[rows], self.y[rows], **given)


def _solvers(p: Problem) -> None:
    """Primal, dual, the sparse form with every row, a sparse matrix, a precomputed kernel, conjugate gradients."""
    for solver in ("dual",) if p.rbf else ("primal", "dual"):
        p.same(f"{solver} scores", p.fit(solver=solver).predict(p.new), p.expected)
    given = {"qid": p.qid, "sample_weight": p.w}
    model = RankRLS(p.alpha, kernel="precomputed", **p.graph).fit(p.K, p.y, **given)
    p.same("scores of a precomputed kernel", model.predict(p.K_new), p.expected)
    if not p.rbf:
        model = RankRLS(p.alpha, **p.graph).fit(sparse.csr_array(p.X), p.y, **given)
        p.same("scores of sparse features", model.predict(p.new), p.expected)
    options = p.kernel if p.rbf else {"kernel": "linear"}
    model = SparseRankRLS(p.alpha, n_basis=len(p.y), **options, **p.graph).fit(p.X, p.y, **given)
    p.same("scores of the sparse form with every row", model.predict(p.new), p.expected, least=1e-9 + p.lost)
    if p.condition < 1e4:
        p.same("scores by conjugate gradients", p.fit(solver="cg").predict(p.new), p.expected, least=1e-5)


def _held_out(p: Problem) -> None:
    """leave_query_out against refits without the query."""
    blocks = query_rows(p.qid)
    for solver in ("dual",) if p.rbf else ("primal", "dual"):
        model = RankRLS(p.alpha, solver=solver, **p.graph, **p.kernel)
        found = leave_query_out(model, p.X, p.y, qid=p.qid, sample_weight=p.w)
        for rows in blocks:
            rest = np.setdiff1d(np.arange(len(p.y)), rows)
            try:
                expected = p.fit(rest, solver=solver).predict(p.X[rows])
            except InputError:  # nothing is left to compare
                continue
            got = found[rows]
            if np.isnan(got).all():
                continue
            if p.graph["regression_weight"] == 0.0:  # what a query's scores have in common means nothing
                got, expected = got - got.mean(), expected - expected.mean()
            size = max(float(np.abs(p.X[rows]).max() / max(np.abs(p.X[rest]).max(), 1e-300)), 1.0)
            p.same(f"{solver} scores held out", got, expected, factor=1e4 * size, least=1e-8 * size)


def _preferences(p: Problem) -> None:
    """All pairs of the queries as preferences; the graph is the one that they make."""
    i, j = np.nonzero((p.qid[:, None] == p.qid) & (p.y[:, None] > p.y))
    for solver in ("dual",) if p.rbf else ("primal", "dual"):
        options = {**p.kernel, "solver": solver}
        model = RankRLS(p.alpha, **options).fit_pairs(p.X, i, j, strength=p.y[i] - p.y[j], weight=p.w[i] * p.w[j])
        p.same(f"{solver} scores of preferences", model.predict(p.new), p.expected)


def _weights(p: Problem) -> None:
    """Whole weights are repetitions of rows."""
    if p.graph["balance"] == "queries" and p.graph["ties"] == "include" and p.graph["regression_weight"] != 1.0:
        raise Refused  # repetition adds compared pairs
    again = np.repeat(np.arange(len(p.y)), p.w.astype(int))
    options = {**p.graph, **p.kernel}
    repeated = RankRLS(p.alpha, **options).fit(p.X[again], p.y[again], qid=p.qid[again])
    p.same("scores of repeated rows", repeated.predict(p.new), p.expected)


def _updates(p: Problem) -> None:
    """Queries one after another against a fit of all."""
    if p.rbf:
        raise Refused
    blocks = query_rows(p.qid)
    order = [blocks[k] for k in p.rng.permutation(len(blocks))]
    model = RankRLS(p.alpha, **p.graph)
    take = lambda rows: (p.X[rows], p.y[rows])
    given = lambda rows: {"qid": p.qid[rows], "sample_weight": p.w[rows]}
    try:
        model.fit(*take(blocks[0]), **given(blocks[0]))
    except InputError:
        raise Refused from None
    later = [rows for rows in order if rows[0] != blocks[0][0]]
    for rows in later:
        model.partial_fit(*take(rows), **given(rows))
    p.same("scores after partial_fit", model.predict(p.new), p.expected, factor=1e4)


def _order(p: Problem) -> None:
    """Rows in another order, queries of other names, other numbers of threads: the same choice and scores."""
    if len(np.unique(p.qid)) < 2:
        raise Refused  # folds of rows are taken in the order of the rows
    permuted = p.rng.permutation(len(p.y))
    names = [f"query {k}" for k in p.rng.permutation(10_000)[: p.qid.max() + 1]]
    measures = [Measure("ndcg", k=3, ties="average"), "tau", "squared_error"]  # equal scores must not be in row order
    options = {**p.kernel, **p.graph, "scoring": choice(p.rng, measures)}
    y = np.abs(np.round(p.y))
    found = []
    for rows, ids, threads in ((np.arange(len(y)), p.qid, "1"), (permuted, np.array(names)[p.qid], "2")):
        with mock.patch.dict(os.environ, {"RANKRLS_NUM_THREADS": threads}):
            try:
                model = RankRLSCV(**options).fit(p.X[rows], y[rows], qid=ids[rows], sample_weight=p.w[rows])
            except InputError as error:
                found.append((type(error).__name__, error.parameter, None))
                continue
            found.append((model.alpha_, model.best_score_, model.predict(p.new)))
    a, b = found
    if a[2] is None or b[2] is None:
        if a[:2] != b[:2]:
            raise Wrong(f"refused in one order only: {a[:2]} and {b[:2]}")
        raise Refused
    if abs(a[0] - b[0]) > 1e-6 * a[0]:
        raise Wrong(f"alpha is {a[0]!r} and {b[0]!r}, measures {a[1]!r} and {b[1]!r}")
    if np.abs(a[2] - b[2]).max() > 1e-5 * (1e-300 + np.abs(a[2]).max()):
        raise Wrong(f"scores differ by {np.abs(a[2] - b[2]).max():.1e}")


ROUTES: dict[str, Callable[[Problem], None]] = {
    "solvers": _solvers,
    "held out": _held_out,
    "preferences": _preferences,
    "weights": _weights,
    "updates": _updates,
    "order": _order,
}


def judge(case: bytes) -> None:
    """One route on one problem."""
    options = json.loads(case)
    if options["route"] == "preferences":
        options["graph"] = _PAIRS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            ROUTES[options["route"]](Problem(options))
        except (ConvergenceWarning, InputError):
            raise Refused from None


def make(rng: Generator) -> bytes:
    """A problem and a route."""
    rows = int(rng.integers(3, choice(rng, [8, 30, 60])))
    case: dict[str, Any] = {
        "route": choice(rng, [*ROUTES]),
        "seed": int(rng.integers(2**32)),
        "graph": int(rng.integers(len(GRAPHS))),
        "rows": rows,
        "columns": int(rng.integers(1, choice(rng, [4, 12, 80]))),
        "queries": int(rng.integers(1, max(2, rows // 2))),
        "spread": choice(rng, [0.0, 0.0, 1.0, 2.0]),
        "far": choice(rng, [0.0, 0.0, 0.0, 3.0, 6.0]),
        "rounded": chance(rng, 0.2),
        "graded": chance(rng, 0.6),
        "weighted": chance(rng, 0.5),
        "rbf": chance(rng, 0.3),
        "log_alpha": round(float(rng.uniform(-7.0, 3.0)), 3),
    }
    return json.dumps(case).encode()


def warm_up() -> None:
    """Compile the loops."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        try:
            judge(make(rng))
        except (Refused, Wrong):
            continue


TARGET = Target("numerics", make, judge, warm_up, share=3.0, seconds=60.0)
