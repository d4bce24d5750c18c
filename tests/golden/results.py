"""Results of a few hundred fits, kept so that changes of the numerics show.

``python -m tests.golden.results`` writes them.

Each case is an estimator with its data, made from a seed. What is kept of a case are the scores of some new rows, less
their mean (constants mean nothing), what was chosen, and its held-out value. Only public names are used.
"""

import itertools
import json
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

import rankrls as rr

FILE = Path(__file__).with_name("results.json")
KERNELS = {
    "linear": {},
    "rbf": {"gamma": 0.2},
    "laplacian": {"gamma": 0.1},
    "polynomial": {"gamma": 0.3, "degree": 2},
    "sigmoid": {"gamma": 0.01},
}
TIES, BALANCES = ("include", "exclude"), ("pairs", "examples", "queries")


class Data:
    """Sixty rows in twelve queries of 2 to 8, with graded labels, weights and new rows; one query's rows are apart."""

    def __init__(self, seed=0, n=5):
        rng = np.random.default_rng(seed)
        sizes = [2, 8, 5, 3, 6, 4, 7, 5, 3, 6, 5, 6]
        self.qid = np.repeat(np.arange(12), sizes)
        m = len(self.qid)
        self.X = rng.normal(size=(m, n)) + rng.normal(size=(12, n))[self.qid]
        w = rng.normal(size=n) / np.sqrt(n)
        self.real = self.X @ w + 0.3 * np.sin(3 * self.X[:, 0]) + 0.5 * rng.normal(size=m)
        self.y = np.digitize(self.real, [-1.0, 0.0, 1.0]).astype(float)
        self.weight = rng.uniform(0.2, 2.0, size=m)
        order = rng.permutation(m)
        for name in ("qid", "X", "real", "y", "weight"):
            setattr(self, name, getattr(self, name)[order])
        self.new = rng.normal(size=(7, n))
        pairs = [(i, j) for q in range(12) for i, j in itertools.permutations(np.flatnonzero(self.qid == q), 2)]
        better = [(i, j) for i, j in pairs if self.y[i] > self.y[j]]
        chosen = rng.permutation(len(better))[:80]
        self.winners, self.losers = np.array(better)[chosen].T
        self.strength, self.pair_weight = rng.uniform(0.5, 2.0, size=(2, 80))
        self.groups = self.qid[self.winners]
        self.partly = np.where(self.qid >= 9, np.nan, self.y)


def cases():
    """(name, function that returns a fitted model and the rows to score); iterative solvers have ``~`` in front."""
    data, wide = Data(), Data(1, n=90)
    q, w = {"qid": data.qid}, {"qid": data.qid, "sample_weight": data.weight}
    X, y, new = data.X, data.y, data.new

    def fit(model, X, *rest, on=new, **given):
        return lambda: (model.fit(X, *rest, **given), on)

    def fit_pairs(model, X=X, on=new, **given):
        return lambda: (model.fit_pairs(X, data.winners, data.losers, **given), on)

    # One regularization value: every graph, kernel and weight.
    for kernel, ties, balance, weighted in itertools.product(KERNELS, TIES, BALANCES, (False, True)):
        model = rr.RankRLS(0.5, kernel=kernel, ties=ties, balance=balance, **KERNELS[kernel])
        yield f"RankRLS {kernel} {ties} {balance} {'weights' * weighted}", fit(model, X, y, **(w if weighted else q))
    for beta, alpha, solver in itertools.product((0.0, 0.3, 1.0), (1e-3, 1.0, 1e3), ("primal", "dual")):
        model = rr.RankRLS(alpha, regression_weight=beta, solver=solver)
        yield f"RankRLS {solver} beta {beta} alpha {alpha}", fit(model, X, data.real, **w)
    for ties, n in itertools.product(TIES, ("tall", "wide")):
        d = data if n == "tall" else wide
        yield f"RankRLS {n} {ties} global", fit(rr.RankRLS(2.0, ties=ties), d.X, d.y, on=d.new)
        yield (
            f"RankRLS {n} {ties} csr",
            fit(rr.RankRLS(2.0, ties=ties), sparse.csr_array(d.X), d.y, qid=d.qid, on=d.new),
        )
        yield (
            f"RankRLS {n} {ties} float32",
            fit(rr.RankRLS(2.0, ties=ties), d.X.astype(np.float32), d.y, qid=d.qid, on=d.new.astype(np.float32)),
        )
        targets = np.column_stack((d.y, d.real))
        yield f"RankRLS {n} {ties} two targets", fit(rr.RankRLS(2.0, ties=ties), d.X, targets, qid=d.qid, on=d.new)
    yield "RankRLS precomputed", fit(rr.RankRLS(kernel="precomputed"), X @ X.T + 1, y, on=new @ X.T + 1, **q)
    for positive in (True, [0, 2], {1: -1}):
        yield f"RankRLS positive {positive}", fit(rr.RankRLS(0.1, positive=positive), X, y, **q)
    yield "~RankRLS cg", fit(rr.CGRankRLS((0.5,), selection="tikhonov", tol=1e-9), X, y, **w)

    # The choice of the regularization value by exact hold-out.
    for kernel, ties, balance in itertools.product(KERNELS, TIES, BALANCES):
        model = rr.RankRLSCV(kernel=kernel, ties=ties, balance=balance, **KERNELS[kernel])
        yield f"RankRLSCV {kernel} {ties} {balance}", fit(model, X, y, **w)
    for scoring, cv, n in itertools.product(
        ("disagreement", "ndcg@3", "map", "pair_squared_error"), (None, 4), ("tall", "wide")
    ):
        d, labels = (data, data.y) if n == "tall" else (wide, wide.y)
        labels = (labels >= 2).astype(float) if scoring == "map" else labels
        model = rr.RankRLSCV(scoring=scoring, cv=cv)
        yield f"RankRLSCV {scoring} cv {cv} {n}", fit(model, d.X, labels, qid=d.qid, on=d.new)
    grid = tuple(np.geomspace(1e-3, 1e3, 7))
    for ties, balance in itertools.product(TIES, BALANCES):
        model = rr.RankRLSCV(grid, cv="leave_pair_out", ties=ties, balance=balance)
        yield f"RankRLSCV leave-pair-out {ties} {balance}", fit(model, X, data.real)
    yield "RankRLSCV leave-pair-out queries", fit(rr.RankRLSCV(grid, cv="leave_pair_out"), X, data.real, **q)
    yield "RankRLSCV one_se", fit(rr.RankRLSCV(grid, rule="one_se"), X, y, **q)
    yield (
        "RankRLSCV validation",
        fit(rr.RankRLSCV(grid), X[:40], y[:40], qid=data.qid[:40], X_val=X[40:], y_val=y[40:], qid_val=data.qid[40:]),
    )
    several = rr.RankRLSCV(grid, kernel=("linear", "rbf"), gamma=(0.05, 0.3), ties=TIES, balance=("pairs", "examples"))
    yield "RankRLSCV several candidates", fit(several, X, y, **q)
    yield "RankRLSCV two targets", fit(rr.RankRLSCV(grid), X, np.column_stack((y, data.real)), **q)
    yield "RankRLSCV positive", fit(rr.RankRLSCV(grid, positive=True), X, y, **q)

    # Preferences.
    weights = {"strength": data.strength, "weight": data.pair_weight}
    for kernel, given in itertools.product([name for name in KERNELS if name != "sigmoid"], ({}, weights)):
        model = rr.RankRLS(0.3, kernel=kernel, **KERNELS[kernel])
        yield f"RankRLS pairs {kernel} {'weights' * bool(given)}", fit_pairs(model, **given)
        model = rr.RankRLSCV(grid, kernel=kernel, **KERNELS[kernel])
        yield f"RankRLSCV pairs {kernel} {'weights' * bool(given)}", fit_pairs(model, **given)
    yield "RankRLSCV pairs groups", fit_pairs(rr.RankRLSCV(grid), groups=data.groups)
    yield "RankRLS pairs wide", fit_pairs(rr.RankRLS(0.3), wide.X, wide.new)
    yield "RankRLS pairs items", fit_pairs(rr.RankRLS(0.3), np.eye(60), np.eye(60))

    # A basis, and conjugate gradients.
    basis = {"basis_indices": list(range(0, 60, 4))}
    for kernel, ties in itertools.product([name for name in KERNELS if name != "sigmoid"], TIES):
        settings = {**KERNELS[kernel], **basis, "kernel": kernel, "ties": ties}
        yield f"SparseRankRLS {kernel} {ties}", fit(rr.SparseRankRLS(0.5, **settings), X, y, **w)
        yield f"SparseRankRLSCV {kernel} {ties}", fit(rr.SparseRankRLSCV(grid, **settings), X, y, **q)
    yield "SparseRankRLS random basis", fit(rr.SparseRankRLS(0.5, n_basis=20, random_state=3), X, y, **q)
    yield "SparseRankRLS pairs", fit_pairs(rr.SparseRankRLS(0.5, gamma=0.2, **basis))
    for selection, n in itertools.product(("tikhonov", "early_stopping", "hybrid"), ("tall", "wide")):
        d = data if n == "tall" else wide
        model = rr.CGRankRLS((0.1, 1.0, 10.0) if selection != "early_stopping" else "auto", selection=selection, cv=3)
        yield f"~CGRankRLS {selection} {n}", fit(model, sparse.csr_array(d.X), d.y, qid=d.qid, on=d.new)
    yield "~CGRankRLS pairs", fit_pairs(rr.CGRankRLS((0.1, 1.0), selection="tikhonov", cv=3), groups=data.groups)

    # Few terms.
    for dictionary in ("kernel", "features"):
        terms = {"dictionary": dictionary, "gamma": 0.2}
        yield f"RankingPursuit {dictionary}", fit(rr.RankingPursuit(5, **terms), X, y, **w)
        yield f"RankingPursuitCV {dictionary}", fit(rr.RankingPursuitCV(8, **terms), X, y, **q)
    yield "RankingPursuit regression", fit(rr.RankingPursuit(5, gamma=0.2, regression_weight=0.5), X, data.real, **q)
    views = {"views": ([0, 1, 2], [2, 3, 4]), "gamma": 0.2}
    yield "CoRankingPursuit", fit(rr.CoRankingPursuit(4, nu=0.1, **views), X, data.partly, **q)
    yield "CoRankingPursuitCV", fit(rr.CoRankingPursuitCV(4, cv=3, **views), X, data.partly, **q)
    for size in (2, "auto"):
        yield f"GreedyRankRLS {size}", fit(rr.GreedyRankRLS(size, max_features=4), X, y, **q)

    # Unlabelled rows, other losses, and the rest.
    yield "TransductiveRankRLS", fit(rr.TransductiveRankRLS(0.5), X, data.partly, **q)
    yield "TransductiveRankRLS rbf", fit(rr.TransductiveRankRLS(0.5, kernel="rbf", gamma=0.2), X, data.partly, **q)
    yield "TransductiveRankRLSCV", fit(rr.TransductiveRankRLSCV(grid, cv=3), X, data.partly, **q)
    yield "CoRankRLS", fit(rr.CoRankRLS((1.0,), kernel="rbf", gamma=0.1, n_views=2, mu=0.5), X, data.partly, **q)
    items = rr.Items(wide.new[:6, :3])
    Y = X[:20, :3] @ wide.new[:6, :3].T + 0.1 * data.real[:20, None]
    yield "ConditionalRankRLS", fit(rr.ConditionalRankRLS(0.5, kernel="rbf", gamma=0.1), X[:20], Y, items=items)
    yield "ConditionalRankRLSCV", fit(rr.ConditionalRankRLSCV(grid), X[:20], Y, items=items)
    yield "~RankSVM", fit(rr.RankSVM(0.5), X, y, **q)
    yield "~RankSVM weights", fit(rr.RankSVM(0.5, balance="pairs"), X, y, **w)
    yield "~RankSVM rbf", fit(rr.RankSVM(0.5, kernel="rbf", gamma=0.2), X, y, **q)
    yield "~RankSVMCV", fit(rr.RankSVMCV((0.01, 0.1, 1.0), cv=3), X, y, **q)
    yield "~RankSVM pairs", fit_pairs(rr.RankSVM(0.5))
    yield "RankBoost", fit(rr.RankBoost(10), X, y, **q)
    for scoring in ("ndcg@10", "disagreement"):
        yield (
            f"AutoRankRLS {scoring}",
            fit(rr.AutoRankRLS(scoring=scoring, rule="one_se", scales=("raw", "standard")), X, y, **q),
        )
    winners, losers = rr.survival_pairs(np.abs(data.real), data.y > 0)
    yield "survival", lambda: (rr.RankRLSCV(grid).fit_pairs(X, winners, losers), new)


def result(run):
    """What is kept of one case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rr.InputWarning)
        model, rows = run()
    scores = np.asarray(model.predict(rows), dtype=float)
    out = {"scores": (scores - scores.mean(axis=0)).round(14).tolist()}
    for name in ("alpha_", "C_", "best_score_"):
        value = getattr(model, name, None)
        if isinstance(value, (int, float, np.number)) and value == value:
            out[name] = float(value)
    return out


if __name__ == "__main__":
    known = {name: result(run) for name, run in cases()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(kept)}" for name, kept in known.items())
    FILE.write_text(f"{{\n{lines}\n}}\n")
    print(f"{len(known)} cases, {FILE.stat().st_size} bytes")
