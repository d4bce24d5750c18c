"""RankSVM in the LETOR experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _letor_data import Fold
from _letor_protocol import CHOICE, NEARLY_EQUAL, Family, Fitted, Method, timed

from rankrls import RankSVM, RankSVMCV

__all__ = ["CS", "FAMILY"]

CS = tuple(2.0**k for k in range(-26, 11))
"""From where C has no effect on any of the collections but to scale the weights, to where hardly anything changes."""


@dataclass(frozen=True)
class SupportVectors(Method):
    """RankSVMCV with some parameters."""

    parameters: dict[str, Any] = field(default_factory=dict)

    def fit(self, fold: Fold) -> Fitted:
        model = RankSVMCV(CS, scoring=CHOICE, **self.parameters)
        train, validation = fold.train, fold.validation
        given = {"X_val": validation.X, "y_val": validation.y, "qid_val": validation.qid}
        seconds, _ = timed(lambda: model.fit(train.X, train.y, qid=train.qid, **given))
        predict_seconds, scores = timed(lambda: model.predict(fold.test.X))
        table = model.cv_results_
        close = np.flatnonzero(table["mean_score"] >= table["mean_score"].max() - NEARLY_EQUAL)
        equally_good = []
        for row in close:
            one = RankSVM(float(table["C"][row]), **self.parameters).fit(train.X, train.y, qid=train.qid)
            equally_good.append(one.predict(fold.test.X))
        return Fitted(
            scores,
            {"C": model.C_},
            model.selection_,
            model.best_score_,
            seconds,
            predict_seconds,
            np.column_stack(equally_good),
            model.C_at_edge_,
        )

    def words(self, settings: dict[str, Any]) -> str:
        return f"C 2^{np.log2(settings['C']):.0f}"


FAMILY = Family(
    "ranksvm",
    (
        SupportVectors(
            "RankSVM",
            "hinge, every pair weighs the same, as in the paper",
            {"loss": "hinge", "balance": "pairs"},
            paper="RankSVM",
        ),
        SupportVectors(
            "squared", "RankSVM with the squared hinge", {"loss": "squared_hinge", "balance": "pairs"}, variant=True
        ),
        SupportVectors(
            "queries", "RankSVM, every query weighs the same", {"loss": "hinge", "balance": "queries"}, variant=True
        ),
    ),
    f"RankSVM: C is one of {len(CS)} powers of two from 2^{np.log2(CS[0]):.0f} to 2^{np.log2(CS[-1]):.0f}. With every "
    "query weighing the same C has another scale.",
)
