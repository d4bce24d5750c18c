"""Boosted trees in the LETOR experiment: LightGBM's LambdaMART and CatBoost's QueryRMSE."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from _letor_data import Fold, Rows
from _letor_protocol import Family, Fitted, Method, timed
from numpy.typing import NDArray

from rankrls.metrics import average_precision

__all__ = ["FAMILIES"]

TREES = 1000
STEP = 10
"""CatBoost is judged after every so many trees."""
PATIENCE = 100
"""A run ends when the validation MAP has not become better for so many trees."""


def _sizes(rows: Rows) -> NDArray[np.intp]:
    """Documents of each query; a query's documents follow one another in LETOR's files."""
    heads = np.flatnonzero(np.append(True, rows.qid[1:] != rows.qid[:-1]))
    return np.diff(np.append(heads, len(rows.qid)))


def _map(rows: Rows, scores: Any) -> Any:
    return average_precision(rows.y, np.asarray(scores, dtype=np.float64), qid=rows.qid, convention="letor")


@dataclass(frozen=True)
class Trees(Method):
    """A grid of runs; each is stopped, and the best one chosen, by the MAP of the validation queries."""

    grid: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    @abstractmethod
    def run(self, fold: Fold, parameters: dict[str, Any]) -> tuple[float, int, Any]:
        """Validation MAP, number of trees, and a function from X to scores."""

    def fit(self, fold: Fold) -> Fitted:
        choices = [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]
        seconds, runs = timed(lambda: [self.run(fold, choice) for choice in choices])
        best = max(range(len(runs)), key=lambda k: runs[k][0])
        value, trees, predict = runs[best]
        predict_seconds, scores = timed(lambda: predict(fold.test.X))
        return Fitted(
            np.asarray(scores, dtype=np.float64),
            {"trees": trees, **choices[best]},
            f"validation data with {len(np.unique(fold.validation.qid))} queries",
            value,
            seconds,
            predict_seconds,
        )


class LambdaMart(Trees):
    """LightGBM, objective lambdarank."""

    def run(self, fold: Fold, parameters: dict[str, Any]) -> tuple[float, int, Any]:
        import lightgbm

        train, validation = fold.train, fold.validation

        def mean_average_precision(scores: Any, data: Any) -> tuple[str, float, bool]:
            return "map", _map(validation, scores), True

        data = lightgbm.Dataset(train.X, train.y, group=_sizes(train))
        model = lightgbm.train(
            {
                **{"objective": "lambdarank", "metric": "None", "seed": 0, "num_threads": 1, "verbosity": -1},
                **{"deterministic": True, "force_row_wise": True},
                **parameters,
            },
            data,
            TREES,
            valid_sets=[lightgbm.Dataset(validation.X, validation.y, group=_sizes(validation), reference=data)],
            feval=mean_average_precision,
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        return float(model.best_score["valid_0"]["map"]), int(model.best_iteration), model.predict


class QueryRmse(Trees):
    """CatBoost, loss QueryRMSE: squared error of the labels less a mean of each query, RankRLS's loss on trees."""

    def run(self, fold: Fold, parameters: dict[str, Any]) -> tuple[float, int, Any]:
        from catboost import CatBoost, Pool

        train, validation = fold.train, fold.validation
        model = CatBoost(
            {
                "loss_function": "QueryRMSE",
                "iterations": TREES,
                "random_seed": 0,
                "thread_count": 1,
                "logging_level": "Silent",
                "allow_writing_files": False,
                **parameters,
            }
        )
        model.fit(Pool(train.X, train.y, group_id=train.qid))
        stages = np.column_stack([np.asarray(s) for s in model.staged_predict(validation.X, eval_period=STEP)])
        values = _map(validation, stages)
        best = int(np.argmax(values))
        trees = min((best + 1) * STEP, TREES)
        return float(values[best]), trees, lambda X: model.predict(X, ntree_end=trees)


def _missing(package: str) -> str | None:
    return None if find_spec(package) else f"{package} is not installed (pip install 'rankrls[bench]')"


FAMILIES = (
    Family(
        "lightgbm",
        (
            LambdaMart(
                "LambdaMART",
                "LightGBM, objective lambdarank",
                {"num_leaves": (4, 15, 31), "min_data_in_leaf": (20, 100), "learning_rate": (0.05,)},
            ),
        ),
        f"LambdaMART: leaves of a tree and documents of a leaf are chosen from a grid of 6, trees up to {TREES} by "
        f"stopping when {PATIENCE} have brought nothing.",
        lambda: _missing("lightgbm"),
    ),
    Family(
        "catboost",
        (
            QueryRmse(
                "QueryRMSE",
                "CatBoost, loss QueryRMSE",
                {"depth": (2, 4, 6), "learning_rate": (0.05,)},
            ),
        ),
        f"QueryRMSE: the depth is chosen from 3, trees up to {TREES} in steps of {STEP}.",
        lambda: _missing("catboost"),
    ),
)
