"""RankRLS and RLS in the LETOR experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _letor_data import Fold, Rows, joined
from _letor_protocol import CHOICE, NEARLY_EQUAL, Family, Fitted, Method, timed
from numpy.typing import NDArray

from rankrls import RankRLS, RankRLSCV

__all__ = ["ALPHAS", "FAMILY"]

ALPHAS = tuple(2.0**k for k in range(-15, 26))
"""The paper does not give its grid. Every power of two from where regularization has no effect on any of the
collections to beyond the largest eigenvalue of X'LX."""


@dataclass(frozen=True)
class LeastSquares(Method):
    """RankRLSCV with some parameters."""

    parameters: dict[str, Any] = field(default_factory=dict)
    leave_query_out: bool = False
    one_ranking: bool = False

    def qid(self, rows: Rows) -> NDArray[np.int64] | None:
        """The queries to learn from: None where documents of different queries are compared too."""
        return None if self.one_ranking else rows.qid

    def fit(self, fold: Fold) -> Fitted:
        model = RankRLSCV(alphas=ALPHAS, scoring=CHOICE, **self.parameters)
        train, validation = fold.train, fold.validation
        if self.leave_query_out:
            rows = joined(train, validation)
            seconds, _ = timed(lambda: model.fit(rows.X, rows.y, qid=rows.qid))
        else:
            given = {"X_val": validation.X, "y_val": validation.y, "qid_val": validation.qid}
            seconds, _ = timed(lambda: model.fit(train.X, train.y, qid=self.qid(train), **given))
        predict_seconds, scores = timed(lambda: model.predict(fold.test.X))
        settings = {"alpha": model.alpha_}
        if isinstance(self.parameters.get("ties"), tuple):
            settings["ties"] = model.best_params_["ties"]
        return Fitted(
            scores,
            settings,
            model.selection_,
            model.best_score_,
            seconds,
            predict_seconds,
            self._equally_good(fold, model) if self.paper else None,
            model.alpha_at_edge_,
        )

    def _equally_good(self, fold: Fold, model: RankRLSCV) -> NDArray[np.float64]:
        table = model.cv_results_
        close = np.flatnonzero(table["mean_score"] >= table["mean_score"].max() - NEARLY_EQUAL)
        fixed = {name: value for name, value in self.parameters.items() if name != "ties"}
        predictions = []
        for row in close:
            one = RankRLS(float(table["alpha"][row]), ties=table["ties"][row], **fixed)
            one.fit(fold.train.X, fold.train.y, qid=self.qid(fold.train))
            predictions.append(one.predict(fold.test.X))
        return np.column_stack(predictions)

    def words(self, settings: dict[str, Any]) -> str:
        return f"alpha 2^{np.log2(settings['alpha']):.0f}" + (f", {settings['ties']}" if "ties" in settings else "")


_PAIRS = {"balance": "pairs", "ties": ("include", "exclude")}
FAMILY = Family(
    "rankrls",
    (
        LeastSquares("RankRLS", "every pair weighs the same, as in the paper", _PAIRS, paper="RankRLS"),
        LeastSquares(
            "RLS",
            "regularized least squares on the labels, no intercept (regression_weight=1)",
            {"balance": "pairs", "regression_weight": 1.0},
            paper="RLS",
        ),
        LeastSquares(
            "RLS + b",
            "RLS with an unpenalised intercept: the same as RankRLS on all documents as one ranking",
            {"balance": "examples"},
            paper="RLS",
            one_ranking=True,
            variant=True,
        ),
        LeastSquares(
            "examples", "RankRLS, every document weighs the same", {**_PAIRS, "balance": "examples"}, variant=True
        ),
        LeastSquares(
            "no split",
            "RankRLS chosen by exact leave-query-out on the training and validation queries together",
            _PAIRS,
            leave_query_out=True,
            variant=True,
        ),
    ),
    f"RankRLS and RLS: alpha is one of {len(ALPHAS)} powers of two from 2^{np.log2(ALPHAS[0]):.0f} to "
    f"2^{np.log2(ALPHAS[-1]):.0f} (the paper does not give its grid), chosen with the treatment of ties.",
)
