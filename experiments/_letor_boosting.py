"""RankBoost in the LETOR experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _letor_data import Fold
from _letor_protocol import CHOICE, NEARLY_EQUAL, Family, Fitted, Method, timed

from rankrls import RankBoost

__all__ = ["FAMILY"]

ROUNDS = 500


@dataclass(frozen=True)
class Boosted(Method):
    """RankBoost, its rounds chosen by the validation queries."""

    parameters: dict[str, Any] = field(default_factory=dict)

    def fit(self, fold: Fold) -> Fitted:
        model = RankBoost(ROUNDS, scoring=CHOICE, **self.parameters)
        train, validation = fold.train, fold.validation
        given = {"X_val": validation.X, "y_val": validation.y, "qid_val": validation.qid}
        seconds, _ = timed(lambda: model.fit(train.X, train.y, qid=train.qid, **given))
        predict_seconds, scores = timed(lambda: model.predict(fold.test.X))
        whole = RankBoost(len(model.validation_scores_), **self.parameters).fit(train.X, train.y, qid=train.qid)
        close = np.flatnonzero(model.validation_scores_ >= model.best_score_ - NEARLY_EQUAL)
        stages = [stage for t, stage in enumerate(whole.staged_predict(fold.test.X)) if t in set(close.tolist())]
        return Fitted(
            scores,
            {"rounds": model.n_estimators_},
            model.selection_,
            model.best_score_,
            seconds,
            predict_seconds,
            np.column_stack(stages),
            model.n_estimators_ == ROUNDS,
        )


FAMILY = Family(
    "rankboost",
    (
        Boosted(
            "RankBoost",
            "every threshold of every feature, every pair weighs the same, as in the paper",
            {"balance": "pairs", "max_bins": None},
            paper="RankBoost",
        ),
        Boosted(
            "small steps",
            "RankBoost with stumps of a tenth of the weight (learning_rate=0.1), every document weighs the same",
            {"balance": "examples", "learning_rate": 0.1},
            variant=True,
        ),
    ),
    f"RankBoost: the number of rounds, up to {ROUNDS}, is chosen.",
)
