"""Judging 21 score columns of 723k rows in 6000 queries, labels 0 to 4: one number per query, column and measure.

The rivals judge the same columns of the first queries only, as they would need minutes for all, and their time is
scaled up by the number of rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

ROWS, COLUMNS, QUERIES = 723_000, 21, 6000
RIVAL_QUERIES = 25
GOAL = "about 1 s"
WITHIN = 1.2


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores and query ids; 120 rows a query on average, some 5 and some 400."""
    rng = np.random.default_rng(0)
    shares = rng.gamma(4.0, size=QUERIES)
    lengths = 1 + rng.multinomial(ROWS - QUERIES, shares / shares.sum())
    y = rng.choice(5, ROWS, p=[0.5, 0.3, 0.15, 0.03, 0.02]).astype(float)
    scores = 0.3 * y[:, None] + rng.normal(size=(ROWS, COLUMNS))
    return y, scores, np.repeat(np.arange(QUERIES), lengths)


def seconds(run: Callable[[], Any], repeats: int = 3) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def rivals(y: np.ndarray, scores: np.ndarray, qid: np.ndarray) -> dict[str, tuple[str, Callable[[], Any]]]:
    """For each measure a rival's name and its run over the first queries and every column."""
    from scipy.stats import kendalltau
    from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

    few = [np.flatnonzero(qid == q) for q in range(RIVAL_QUERIES)]

    def each(judge: Callable[[np.ndarray, np.ndarray], Any]) -> Callable[[], Any]:
        return lambda: [judge(y[rows], scores[rows, c]) for rows in few for c in range(COLUMNS)]

    def numpy_pairs(labels: np.ndarray, f: np.ndarray) -> float:
        higher = labels[:, None] > labels
        gap = f[:, None] - f
        return float((np.sum(higher & (gap < 0)) + 0.5 * np.sum(higher & (gap == 0))) / max(1, higher.sum()))

    def auc(labels: np.ndarray, f: np.ndarray) -> float:
        relevant = labels >= 1
        return float(roc_auc_score(relevant, f)) if relevant.any() and not relevant.all() else 0.0

    def precisions(labels: np.ndarray, f: np.ndarray) -> float:
        return float(average_precision_score(labels >= 1, f)) if (labels >= 1).any() else 0.0

    return {
        "disagreement": ("numpy, pair matrices", each(numpy_pairs)),
        "pair_accuracy": ("scikit-learn roc_auc_score, binary", each(auc)),
        "tau": ("scipy kendalltau", each(lambda labels, f: kendalltau(labels, f).statistic)),
        "ndcg": ("scikit-learn ndcg_score", each(lambda labels, f: ndcg_score([labels], [f]))),
        "ndcg@10": ("pytrec_eval", trec(y, scores, few, "ndcg_cut.10")),
        "map": ("scikit-learn average_precision_score", each(precisions)),
        "p@10": ("pytrec_eval", trec(y, scores, few, "P.10")),
        "mrr": ("pytrec_eval", trec(y, scores, few, "recip_rank")),
    }


def trec(y: np.ndarray, scores: np.ndarray, few: list[np.ndarray], measure: str) -> Callable[[], Any]:
    """pytrec_eval over dictionaries that are built beforehand: its own time only."""
    import pytrec_eval

    qrel = {str(q): {str(i): int(y[i]) for i in rows} for q, rows in enumerate(few)}
    runs = [{str(q): {str(i): float(scores[i, c]) for i in rows} for q, rows in enumerate(few)} for c in range(COLUMNS)]
    evaluator = pytrec_eval.RelevanceEvaluator(qrel, {measure})
    return lambda: [evaluator.evaluate(run) for run in runs]


def jobs() -> list[dict[str, Any]]:
    """One line per measure, and one for a single query of all rows."""
    from rankrls._queries import query_layout
    from rankrls.metrics import resolve_measure

    y, scores, qid = problem()
    layout = query_layout(qid, ROWS)
    rows = []
    for name, (rival, run) in rivals(y, scores, qid).items():
        measure = resolve_measure(name)
        measure.per_query(y[:50], scores[:50], query_layout(qid[:50], 50))  # compiled before the clock starts
        ours = seconds(lambda measure=measure: measure.per_query(y, scores, layout))
        theirs = seconds(run, 1) * ROWS / int((qid < RIVAL_QUERIES).sum())
        rows.append(_line(f"{name}, {ROWS // 1000}k x {COLUMNS}, {QUERIES} queries", ours, rival, theirs))
    whole = query_layout(None, ROWS)
    measure = resolve_measure("disagreement")
    target = y + np.random.default_rng(1).normal(size=ROWS)
    ours = seconds(lambda: measure.per_query(target, scores, whole), 1)
    sorting = seconds(lambda: [np.argsort(scores[:, c], kind="stable") for c in range(COLUMNS)], 1)
    line = _line(
        f"disagreement, {ROWS // 1000}k x {COLUMNS}, one query, all labels distinct",
        ours,
        "numpy argsort alone",
        sorting,
    )
    rows.append({**line, "goal": "at most 2x", "met": ours <= 2 * sorting})
    return rows


def _line(job: str, ours: float, rival: str, theirs: float) -> dict[str, Any]:
    return {
        "job": job,
        "ours": ours,
        "rival": rival,
        "rival_seconds": theirs,
        "ratio": theirs / ours,
        "goal": GOAL,
        "met": ours <= WITHIN,
    }


if __name__ == "__main__":
    for row in jobs():
        print(
            f"{row['job']:62s} {row['ours']:7.3f} s  {row['rival']:36s} {row['rival_seconds']:9.2f} s "
            f"{row['ratio']:8.1f}x  {row['goal']:10s} {'met' if row['met'] else 'NOT MET'}"
        )
