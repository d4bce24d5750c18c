"""The 2007 paper's protocol, section 3.1: choose on a fold's validation queries, judge on its test queries."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _letor_data import Fold, Rows, joined
from numpy.typing import NDArray

from rankrls import RankRLS, RankRLSCV
from rankrls.metrics import Measure, average_precision, evaluate

__all__ = ["ALPHAS", "COLUMNS", "MEASURES", "NEARLY_EQUAL", "Column", "Outcome", "run_fold", "wider_range"]

MEASURES = ("map", *(f"ndcg@{k}" for k in range(1, 11)), *(f"p@{k}" for k in range(1, 11)))
ALPHAS = tuple(2.0**k for k in range(-15, 26))
"""The paper does not give its grid. Every power of two from where regularization has no effect on any of the
collections to beyond the largest eigenvalue of X'LX."""
NEARLY_EQUAL = 0.005
"""Differences of this size in MAP are called none, between the paper and us as between choices on validation data."""
_CHOICE = Measure("map", convention="letor")


@dataclass(frozen=True)
class Column:
    """One learner of the table. ``paper`` is the name there of what it is compared with."""

    name: str
    what: str
    parameters: dict[str, Any]
    paper: str | None = None
    leave_query_out: bool = False
    one_ranking: bool = False

    def qid(self, rows: Rows) -> NDArray[np.int64] | None:
        """The queries to learn from: None where documents of different queries are compared too."""
        return None if self.one_ranking else rows.qid


_PAIRS = {"balance": "pairs", "ties": ("include", "exclude")}
COLUMNS = (
    Column("RankRLS", "every pair weighs the same, as in the paper", _PAIRS, paper="RankRLS"),
    Column(
        "RLS",
        "regularized least squares on the labels, no intercept (regression_weight=1)",
        {"balance": "pairs", "regression_weight": 1.0},
        paper="RLS",
    ),
    Column(
        "RLS + b",
        "RLS with an unpenalised intercept: the same as RankRLS on all documents as one ranking",
        {"balance": "examples"},
        paper="RLS",
        one_ranking=True,
    ),
    Column("examples", "RankRLS, every document weighs the same", {**_PAIRS, "balance": "examples"}),
    Column(
        "no split",
        "RankRLS chosen by exact leave-query-out on the training and validation queries together",
        _PAIRS,
        leave_query_out=True,
    ),
)


@dataclass(frozen=True)
class Outcome:
    """One learner on one fold."""

    fold: int
    alpha: float
    ties: str
    selection: str
    chosen_by: float
    seconds: float
    test: dict[str, float]
    per_query: dict[str, NDArray[np.float64]] = field(repr=False)
    map_of_label_2: float
    at_edge: bool


def run_fold(column: Column, fold: Fold) -> tuple[Outcome, RankRLSCV]:
    """Choose alpha and ties, judge on the test queries."""
    model = RankRLSCV(alphas=ALPHAS, scoring=_CHOICE, **column.parameters)
    start = time.perf_counter()
    if column.leave_query_out:
        rows = joined(fold.train, fold.validation)
        model.fit(rows.X, rows.y, qid=rows.qid)
    else:
        model.fit(
            fold.train.X,
            fold.train.y,
            qid=column.qid(fold.train),
            X_val=fold.validation.X,
            y_val=fold.validation.y,
            qid_val=fold.validation.qid,
        )
    seconds = time.perf_counter() - start
    test = fold.test
    scores = model.predict(test.X)
    per_query = evaluate(test.y, scores, qid=test.qid, measures=MEASURES, convention="letor", per_query=True)
    outcome = Outcome(
        fold=fold.number,
        alpha=model.alpha_,
        ties=model.best_params_["ties"],
        selection=model.selection_,
        chosen_by=model.best_score_,
        seconds=seconds,
        test={measure: float(np.mean(values)) for measure, values in per_query.items()},
        per_query=per_query,
        map_of_label_2=float(average_precision(test.y, scores, qid=test.qid, convention="letor", relevant=2)),
        at_edge=model.alpha_at_edge_,
    )
    return outcome, model


def wider_range(column: Column, fold: Fold, model: RankRLSCV) -> dict[str, tuple[float, float]]:
    """Least and largest test figure among the choices that the validation queries cannot tell from the best.

    These are the alphas and ties whose validation MAP is within ``NEARLY_EQUAL`` of the best: another grid may end at
    any of them.
    """
    table = model.cv_results_
    close = np.flatnonzero(table["mean_score"] >= table["mean_score"].max() - NEARLY_EQUAL)
    fixed = {name: value for name, value in column.parameters.items() if name != "ties"}
    predictions = []
    for row in close:
        one = RankRLS(float(table["alpha"][row]), ties=table["ties"][row], **fixed)
        one.fit(fold.train.X, fold.train.y, qid=column.qid(fold.train))
        predictions.append(one.predict(fold.test.X))
    scores = np.column_stack(predictions)
    figures = evaluate(fold.test.y, scores, qid=fold.test.qid, measures=MEASURES, convention="letor")
    return {measure: (float(np.min(values)), float(np.max(values))) for measure, values in figures.items()}
