"""What exact leave-query-out saves: a refit for every query and regularization value, as one would write it in numpy.

A refit here is the least a refit can be: X'LX of the other queries by taking the query's own part off a total that is
computed once, a Cholesky solve for each alpha, the query's scores. Ridge regression refitted from its rows, as
scikit-learn's cross-validation does, is the second denominator. Both are timed on some of the queries and scaled up to
all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.linear_model import Ridge

from benchmarks._data import Problem, problem
from benchmarks._harness import alternate, context, faster, timed
from rankrls import RankRLS, RankRLSCV
from rankrls.model_selection import leave_query_out

ALPHAS = 2.0 ** np.arange(-5, 16)
TRIED = 6
"""Queries whose refits are timed."""


def centred(p: Problem, query: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = p.qid == query
    return rows, p.X[rows] - p.X[rows].mean(axis=0), p.y[rows] - p.y[rows].mean()


def refit_from_rows(p: Problem, query: int, Z: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Scores of a query under each alpha, every model refitted by scikit-learn from the other queries' centred rows."""
    rows = p.qid == query
    models = [Ridge(alpha=alpha, fit_intercept=False, solver="cholesky").fit(Z[~rows], z[~rows]) for alpha in ALPHAS]
    return np.column_stack([p.X[rows] @ model.coef_ for model in models])


def refit_from_sums(p: Problem, query: int, gram: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The same from X'LX and X'Ly of all queries."""
    rows, Z, z = centred(p, query)
    A, b = gram - Z.T @ Z, right - Z.T @ z
    scores = np.empty((len(z), len(ALPHAS)))
    for k, alpha in enumerate(ALPHAS):
        shifted = A + alpha * np.eye(len(A))
        scores[:, k] = p.X[rows] @ linalg.solve(shifted, b, assume_a="pos", overwrite_a=True)
    return scores


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    lines = []
    for rows, queries in ((4000, 40), (8000, 80)) if quick else ((25_000, 250), (50_000, 500), (100_000, 1000)):
        p = problem(rows, 50, queries, hard=False)
        ours = lambda p=p: RankRLSCV(tuple(ALPHAS)).fit(p.X, p.y, qid=p.qid)
        (own,) = alternate(ours, repeats=5)
        parts = [centred(p, query)[1:] for query in range(queries)]
        Z, z = np.concatenate([Z for Z, _ in parts]), np.concatenate([z for _, z in parts])
        from_rows, scores = timed(lambda p=p, Z=Z, z=z: [refit_from_rows(p, q, Z, z) for q in range(TRIED)])
        exact = leave_query_out(RankRLS(), p.X, p.y, qid=p.qid, alphas=ALPHAS)
        for query in range(TRIED):
            check_same(scores[query], exact[p.qid == query])
        gram, right = Z.T @ Z, Z.T @ z
        from_sums, scores = timed(lambda p=p, g=gram, r=right: [refit_from_sums(p, q, g, r) for q in range(TRIED)])
        for query in range(TRIED):
            check_same(scores[query], exact[p.qid == query])
        job = f"leave-query-out of 21 alphas, {p.name}"
        lines += [
            faster(job, own, "21 x q scikit-learn refits", from_rows / TRIED * queries, queries / 2),
            context(job, own, "21 x q solves of downdated sums", from_sums / TRIED * queries),
        ]
    return lines


def check_same(refitted: np.ndarray, exact: np.ndarray) -> None:
    gap = np.abs((refitted - refitted.mean(axis=0)) - (exact - exact.mean(axis=0))).max()
    if not gap < 1e-8 * np.abs(refitted).max():
        raise RuntimeError(f"Leave-query-out differs from refitting by {gap:.2g}.")
