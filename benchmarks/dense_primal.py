"""Fitting a dense problem of web search size, input validation included: 21 regularization values against bare X'X."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks._data import Problem, problem
from benchmarks._harness import alternate, at_most, one_thread, peak_above
from rankrls import RankRLS, RankRLSCV

SIZE = (723_000, 136, 6000)
QUICK = (40_000, 136, 350)
SMALL_SHARE = 0.3
"""Memory above the data that is still no second copy of X, as a share of X."""


def path_of_21(p: Problem) -> None:
    """All 21 models; a few rows choose one of them."""
    few = slice(0, int(np.searchsorted(p.qid, 5)))
    RankRLSCV(balance="examples").fit(p.X, p.y, qid=p.qid, X_val=p.X[few], y_val=p.y[few], qid_val=p.qid[few])


def one_alpha(p: Problem) -> None:
    RankRLS().fit(p.X, p.y, qid=p.qid)


def leave_query_out(p: Problem) -> None:
    RankRLSCV().fit(p.X, p.y, qid=p.qid)


def load(rows: int, columns: int, queries: int, dtype: str) -> Problem:
    return problem(rows, columns, queries, dtype=dtype)


def warm_up() -> None:
    for dtype in ("float64", "float32"):
        small = problem(600, 5, 12, dtype=dtype)
        path_of_21(small)
        leave_query_out(small)


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    size = QUICK if quick else SIZE
    warm_up()
    lines = []
    for offset, limit in ((0.0, 1.8), (1e7, 2.5)):
        p = problem(*size, offset=offset)
        name = f"fit, 21 alphas, {p.name}" + (f", columns offset by {offset:g}" if offset else "")
        gram = lambda X=p.X: X.T @ X
        ours, single, *bare = alternate(
            lambda p=p: path_of_21(p), lambda p=p: one_alpha(p), gram, one_thread(gram), repeats=5
        )
        lines.append(at_most(name, ours, "numpy X'X", min(bare), limit))
        lines.append(at_most(name.replace("21 alphas", "RankRLS, one alpha"), single, "numpy X'X", min(bare), limit))
        del p, gram
    for dtype, share in (("float64", SMALL_SHARE), ("float32", 2 * SMALL_SHARE)):  # in float32 blocks are twice X's
        whole = float(np.dtype(dtype).itemsize * size[0] * size[1])
        for then, what in (("path_of_21", "fit, 21 alphas"), ("one_alpha", "fit, RankRLS")):
            above = peak_above("benchmarks.dense_primal", "load", then, (*size, dtype))
            job = f"memory above the data, {what}, {size[0]} x {size[1]}, {dtype}"
            lines.append(at_most(job, above / 1e6, "X", whole / 1e6, share, "MB"))
    return lines
