"""Options to estimators, and estimators to scores."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from rankrls.cli import _options
from rankrls.cli._columns import NOT_SAID, Columns
from rankrls.cli._data import Labels, Queries, read_for_model
from rankrls.cli._methods import method_of
from rankrls.cli._report import Report
from rankrls.metrics import resolve_measure
from rankrls.metrics._scorer import predict_by_query

if TYPE_CHECKING:
    from rankrls.io import ColumnTable, LetorTable

__all__ = ["Learning", "StoredModel", "final_step", "load_model", "with_scaler"]

_OF_ALL = ("scale", "metric", "convention", "method", "own")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "kernel": (_options.KERNELS,),
    "ties": (_options.TIES, "both"),
    "balance": (_options.BALANCES,),
}


@dataclass(frozen=True)
class Learning:
    """The options of ``fit`` and ``cv`` that say how to learn, as they were given.

    ``own`` are those of the method alone (see :mod:`rankrls.cli._methods`); None was not given.
    """

    kernel: str = "linear"
    gamma: str = "auto"
    degree: str = "3"
    coef0: str = "1"
    alphas: str = "auto"
    ties: str = "include"
    balance: str = "examples"
    regression_weight: float = 0.0
    scale: str = "none"
    metric: str = "disagreement"
    convention: str = "letor"
    rule: str = "best"
    folds: int | None = None
    method: str = "rankrls"
    own: dict[str, Any] = field(default_factory=dict)

    def estimator(self) -> Any:
        """The estimator that the options ask for; a wrong one is a ValueError that names it."""
        method, own = method_of(self.method, self.own)
        if self.folds is not None and self.folds < 2:
            raise ValueError(f"--cv must be at least 2; got {self.folds}.")
        if not 0.0 <= self.regression_weight <= 1.0:
            raise ValueError(f"--regression-weight must be a number from 0 to 1; got {self.regression_weight:g}.")
        _options.check_choice("--scale", self.scale, _options.SCALES)
        for option in fields(self):
            if option.name in (*_OF_ALL, *method.takes) or getattr(self, option.name) == option.default:
                continue
            flag = "--cv" if option.name == "folds" else f"--{option.name.replace('_', '-')}"
            raise ValueError(f"{flag} means nothing to --method {self.method}.")
        return method.build(self, own)

    def parsed(self, name: str) -> Any:
        """What an option's text means; a tuple where it names several values."""
        text = getattr(self, name)
        if name == "alphas":
            return _options.parse_alphas(text)
        if name == "rule":
            return _options.check_choice("--rule", text, _options.RULES)
        if name in _CHOICES:
            return _options.parse_choices(f"--{name}", text, *_CHOICES[name])
        values = _options.parse_numbers(f"--{name}", text, int if name == "degree" else float)
        if name == "gamma" and any(g is not None and g <= 0 for g in np.atleast_1d(np.array(values, dtype=object))):
            raise ValueError(f"--gamma must be positive; got {text!r}.")
        if name == "degree" and any(d is None or d < 1 for d in np.atleast_1d(np.array(values, dtype=object))):
            raise ValueError(f"--degree must be at least 1; got {text!r}.")
        return values

    def parsed_one(self, name: str) -> Any:
        """The same, for a method that takes one value."""
        value = self.parsed(name)
        if isinstance(value, tuple):
            raise ValueError(f"--{name} of --method {self.method} is one value; got {getattr(self, name)!r}.")
        return value

    def measure(self) -> Any:
        """What to choose by."""
        return resolve_measure(self.metric, self.convention)

    def scaler(self) -> Any:
        """A scaler that looks at one query at a time, or at all training rows together; or None."""
        if self.scale == "none":
            return None
        if self.scale.endswith("-all"):
            from sklearn.preprocessing import MinMaxScaler, StandardScaler

            return MinMaxScaler() if self.scale == "minmax-all" else StandardScaler()
        from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler

        return QueryMinMaxScaler() if self.scale == "minmax" else QueryStandardScaler()


def with_scaler(scaler: Any, estimator: Any) -> Any:
    """What is saved: the fitted estimator, behind the fitted scaler where there is one."""
    return estimator if scaler is None else Pipeline([("scale", scaler), ("rank", estimator)])


def final_step(model: Any) -> Any:
    """The ranker itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


@dataclass(frozen=True)
class StoredModel:
    """A model as its file has it: how it reads data, and what it makes of them.

    Attributes
    ----------
    model : Any
        The estimator, or a pipeline that ends in one.
    n_features : int
        Features that it takes.
    zero_based : bool or "auto"
        Whether the training data counted features from 0; "auto" where the file does not say.
    names : tuple of str, or None
        The features' names, where it knows them.
    usual : dict
        What the training data called the columns of labels, query ids and items' ids.
    ids : str or None
        What named an item in the preferences that it was fitted on or judged by (``--ids``).
    """

    model: Any
    n_features: int
    zero_based: Any
    names: tuple[str, ...] | None = None
    usual: dict[str, str] = field(default_factory=dict)
    ids: str | None = None

    @property
    def by_query(self) -> bool:
        """Whether its scores can be compared inside a query only."""
        return bool(getattr(final_step(self.model), "_fitted_with_qid", False))

    @property
    def first_step(self) -> Any:
        """What a file's features go into: the first step of a pipeline, or the estimator."""
        return self.model.steps[0][1] if isinstance(self.model, Pipeline) else self.model

    def read(
        self,
        path: Path,
        report: Report,
        *,
        queries: Queries,
        columns: Columns = NOT_SAID,
        labels: Labels = "ignored",
    ) -> LetorTable | ColumnTable:
        """A file's rows, with the columns that the model was fitted on."""
        return read_for_model(
            path,
            report,
            queries=queries,
            n_features=self.n_features,
            zero_based=self.zero_based,
            columns=columns.like(self.usual),
            labels=labels,
            names=self.names,
        )

    def scores(self, table: LetorTable | ColumnTable) -> NDArray[np.float64]:
        """Scores of a file's rows, (m,) or (m, targets), scaled as the training data were."""
        if table.qid is None and scales_by_query(self.model):
            raise ValueError(f"{table.path}: the model scales features inside each query, so every line needs a qid.")
        return np.asarray(predict_by_query(self.model, table.X, table.qid))

    def one_score_a_row(self, table: LetorTable | ColumnTable) -> NDArray[np.float64]:
        """The same of a model with one target, (m,)."""
        scores = self.scores(table)
        if scores.ndim == 1:
            return scores
        if scores.shape[1] == 1:
            return scores[:, 0]
        raise ValueError(f"The model gives {scores.shape[1]} scores a row, one for each target; judging needs one.")


def load_model(path: Path, report: Report) -> StoredModel:
    """Load a model file."""
    from rankrls.persistence import load, read_info

    with report.working("loading", f"loading {path}"):
        given, model = read_info(path)["given"], load(path)
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    n_features = next(step.n_features_in_ for step in steps if hasattr(step, "n_features_in_"))
    names = getattr(steps[0], "feature_names_in_", None)
    usual = given.get("columns")
    usual = {k: v for k, v in usual.items() if isinstance(v, str)} if isinstance(usual, dict) else {}
    names = None if names is None else tuple(str(name) for name in names)
    ids = given.get("ids") if given.get("ids") in _options.IDS else None
    return StoredModel(model, int(n_features), given.get("zero_based", "auto"), names, usual, ids)


def scales_by_query(model: Any) -> bool:
    """Whether the model cannot score a row without the others of its query."""
    return isinstance(model, Pipeline) and any(getattr(step, "fitted_with_qid_", False) for _, step in model.steps)
