"""Numerics: models against a dense solve, held-out scores and choices against refits, and held-out values on noise."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.models.oracles import GRAPHS, laplacian, query_rows
from tests.oracles import ridge

from fuzzing.campaign import Refused, Target, Wrong
from fuzzing.cases import chance, choice
from rankrls import (
    CGRankRLS,
    GreedyRankRLS,
    InputError,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVMCV,
    SparseRankRLS,
    SparseRankRLSCV,
    survival_pairs,
)
from rankrls.metrics import evaluate
from rankrls.model_selection import leave_query_out

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
        L = laplacian(self.y, self.qid, self.w, self.graph)
        largest = float(np.linalg.eigvals(self.X.T @ L @ self.X).real.max())
        if largest <= 0.0:
            raise Refused
        self.alpha = largest * 10.0 ** case["log_alpha"]
        self.condition = 1.0 + largest / self.alpha
        weights = ridge(self.X, L, self.y, self.alpha)
        self.expected = self.new @ weights
        least = 1e-6 * float(np.abs(self.y).max())  # data may cancel to nothing but rounding
        self.scale = least + float(np.abs(self.expected).max() + np.abs(self.X @ weights).max())

    def same(self, what: str, found: Any, expected: Any, factor: float = 1e3, least: float = 1e-9) -> None:
        """Raise :class:`Wrong` if scores differ by more than rounding explains."""
        error = float(np.abs(np.asarray(found) - expected).max(initial=0.0)) / self.scale
        bound = least + factor * _EPSILON * self.condition
        if not error <= bound:
            raise Wrong(f"{what} differ by {error:.1e} of the scores, more than {bound:.1e}")

    def fit(self, rows: Any = slice(None), **options: Any) -> Any:
        """A model of some rows."""
        given = {"qid": self.qid[rows], "sample_weight": self.w[rows]}
        return RankRLS(self.alpha, **{**self.graph, **options}).fit(self.X[rows], self.y[rows], **given)


def _solvers(p: Problem) -> None:
    """Primal, dual, the sparse form with every row, a sparse matrix, a precomputed kernel, conjugate gradients."""
    for solver in ("primal", "dual"):
        p.same(f"{solver} scores", p.fit(solver=solver).predict(p.new), p.expected)
    given = {"qid": p.qid, "sample_weight": p.w}
    model = RankRLS(p.alpha, kernel="precomputed", **p.graph).fit(p.X @ p.X.T, p.y, **given)
    p.same("scores of a precomputed kernel", model.predict(p.new @ p.X.T), p.expected)
    model = RankRLS(p.alpha, **p.graph).fit(sparse.csr_array(p.X), p.y, **given)
    p.same("scores of sparse features", model.predict(p.new), p.expected)
    model = SparseRankRLS(p.alpha, n_basis=len(p.y), kernel="linear", **p.graph).fit(p.X, p.y, **given)
    p.same("scores of the sparse form with every row", model.predict(p.new), p.expected)
    if p.condition < 1e4:
        model = CGRankRLS((p.alpha,), selection="tikhonov", tol=1e-9, max_iter=2000, **p.graph).fit(p.X, p.y, **given)
        p.same("scores by conjugate gradients", model.predict(p.new), p.expected, least=1e-5)


def _held_out(p: Problem) -> None:
    """leave_query_out against refits without the query."""
    blocks = query_rows(p.qid)
    for solver in ("primal", "dual"):
        model = RankRLS(p.alpha, solver=solver, **p.graph)
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


def _order(p: Problem) -> None:
    """Choice and value on a few different rows, in two orders; and the value is that of the stored scores."""
    if len(np.unique(p.qid)) == 1:  # folds of rows are drawn
        raise Refused
    X = np.digitize(p.X, np.median(p.X, axis=0).max(initial=0.0) * np.array([0.0, 1.0])).astype(float)
    X = X[p.rng.integers(0, len(X), len(X))]
    y = np.round(2.0 * p.y)
    parameters = choice(p.rng, [{}, {"solver": "dual"}, {"solver": "primal"}, {"kernel": "rbf", "gamma": 0.1}])
    found = []
    for rows in (np.arange(len(y)), p.rng.permutation(len(y))):
        model = RankRLSCV((10.0, 1.0, 0.1, 0.01, 1e-3), **p.graph, **parameters)
        model.fit(X[rows], y[rows], qid=p.qid[rows], sample_weight=p.w[rows])
        if model.held_out_scores_ is not None:
            given = {"qid": p.qid[rows], "sample_weight": p.w[rows], "measures": ["disagreement"]}
            value = evaluate(y[rows], model.held_out_scores_, **given)["disagreement"]
            if not abs(value - model.best_score_) <= 1e-9:
                raise Wrong(f"best_score_ is {model.best_score_}, but that of held_out_scores_ {value}")
        found.append(model)
    one, other = (model.cv_results_["mean_score"] for model in found)
    if found[0].alpha_ != found[1].alpha_ or not np.abs(one - other).max() <= 1e-9:
        raise Wrong(f"in another order of rows {other} are {one}")


def _magnitudes(p: Problem) -> None:
    """Features, labels and weights times a constant: the same choice, or a refusal by name; never NaN."""
    sizes = {name: 4.0 ** int(p.rng.integers(-266, 258)) for name in ("X", "y", "sample_weight")}  # 1e-160 to 1e155
    sizes = {name: size if chance(p.rng, 0.5) else 1.0 for name, size in sizes.items()}
    invariant = RankRLSCV(balance=p.graph["balance"], ties=p.graph["ties"])
    others = [RankRLSCV(kernel="rbf"), SparseRankRLSCV(n_basis=5, kernel="linear"), CGRankRLS(), RankSVMCV()]
    model = choice(p.rng, [invariant, *others, GreedyRankRLS(n_features_to_select=1)])
    before = clone(model)
    try:
        before.fit(p.X, p.y, qid=p.qid, sample_weight=p.w)
    except InputError:
        raise Refused from None
    try:
        model.fit(p.X * sizes["X"], p.y * sizes["y"], qid=p.qid, sample_weight=p.w * sizes["sample_weight"])
    except InputError as error:
        if error.parameter in sizes and not 1e-30 < sizes[error.parameter] < 1e30:
            raise Refused from None
        raise Wrong(f"{model} of {sizes} refused {error.parameter}: {error}") from error
    if not np.isfinite(model.predict(p.new * sizes["X"])).all():
        raise Wrong(f"{model} of {sizes} gives scores that are not finite")
    if model is invariant and not abs(model.best_score_ - before.best_score_) <= 1e-9:
        raise Wrong(f"best_score_ is {model.best_score_} for {sizes}, and {before.best_score_} otherwise")


def _noise(p: Problem) -> None:
    """Items without any relation to their times or preferences: no held-out value is far from one half."""
    items, twice = 60, 1 + int(chance(p.rng, 0.3))
    X = np.repeat(p.rng.normal(size=(items, int(p.rng.integers(1, 300)))), twice, axis=0)
    identity = np.repeat(np.arange(items), twice)
    if chance(p.rng, 0.5):
        time, event = p.rng.exponential(size=items), p.rng.random(items) < 0.7
        winners, losers = survival_pairs(time[identity], event[identity])
    else:
        winners = p.rng.integers(0, len(X), 900)
        losers = (winners + p.rng.integers(1, len(X), 900)) % len(X)
    kernel = {"kernel": choice(p.rng, ["linear", "rbf"])}
    exact = [RankRLSCV(**kernel), RankRLSCV(alphas=(1e-3,), **kernel), SparseRankRLSCV(n_basis=20)]
    model = choice(p.rng, [*exact, RankSVMCV((0.1, 10.0)), RankingPursuitCV(5, gamma=0.1)])
    model.fit_pairs(X, winners, losers, item_id=identity)
    if not abs(model.best_score_ - 0.5) <= 0.33 or not model.selection_.endswith("new items"):
        raise Wrong(f"{model} on noise reports {model.best_score_} by {model.selection_}")


ROUTES: dict[str, Callable[[Problem], None]] = {
    "solvers": _solvers,
    "held out": _held_out,
    "order": _order,
    "magnitudes": _magnitudes,
    "noise": _noise,
}


def judge(case: bytes) -> None:
    """One route on one problem."""
    options = json.loads(case)
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
