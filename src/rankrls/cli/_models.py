"""Options to estimators, and estimators to scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from rankrls.cli import _options
from rankrls.metrics import resolve_measure

if TYPE_CHECKING:
    from rankrls.io import LetorTable

__all__ = ["Learning", "final_step", "model_scores", "n_features_of", "one_score_a_row"]


@dataclass(frozen=True)
class Learning:
    """The options of ``fit`` and ``cv`` that say how to learn, as they were given."""

    kernel: str
    gamma: str
    degree: str
    coef0: str
    alphas: str
    ties: str
    balance: str
    regression_weight: float
    scale: str
    metric: str
    convention: str
    rule: str
    folds: int | None

    def estimator(self) -> Any:
        """The selecting estimator that the options ask for; a wrong one is a ValueError that names it."""
        from rankrls.models import RankRLSCV

        if self.folds is not None and self.folds < 2:
            raise ValueError(f"--cv must be at least 2; got {self.folds}.")
        if not 0.0 <= self.regression_weight <= 1.0:
            raise ValueError(f"--regression-weight must be a number from 0 to 1; got {self.regression_weight:g}.")
        _options.check_choice("--scale", self.scale, _options.SCALES)
        gamma = _options.parse_numbers("--gamma", self.gamma)
        if any(g is not None and g <= 0 for g in np.atleast_1d(np.array(gamma, dtype=object))):
            raise ValueError(f"--gamma must be positive; got {self.gamma!r}.")
        degree = _options.parse_numbers("--degree", self.degree, int)
        if any(d is None or d < 1 for d in np.atleast_1d(np.array(degree, dtype=object))):
            raise ValueError(f"--degree must be at least 1; got {self.degree!r}.")
        return RankRLSCV(
            _options.parse_alphas(self.alphas),
            cv=self.folds,
            scoring=resolve_measure(self.metric, self.convention),
            rule=_options.check_choice("--rule", self.rule, _options.RULES),
            kernel=_options.parse_choices("--kernel", self.kernel, _options.KERNELS),
            gamma=gamma,
            degree=degree,
            coef0=_options.parse_numbers("--coef0", self.coef0),
            ties=_options.parse_choices("--ties", self.ties, _options.TIES, "both"),
            balance=_options.parse_choices("--balance", self.balance, _options.BALANCES),
            regression_weight=self.regression_weight,
        )

    def scaler(self) -> Any:
        """A scaler that looks at one query at a time, or None."""
        from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler

        if self.scale == "none":
            return None
        return QueryMinMaxScaler() if self.scale == "minmax" else QueryStandardScaler()


def with_scaler(scaler: Any, estimator: Any) -> Any:
    """What is saved: the fitted estimator, behind the fitted scaler where there is one."""
    return estimator if scaler is None else Pipeline([("scale", scaler), ("rank", estimator)])


def final_step(model: Any) -> Any:
    """The ranker itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def n_features_of(model: Any) -> int:
    """Features that a model or pipeline takes."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    return int(next(step.n_features_in_ for step in steps if hasattr(step, "n_features_in_")))


def model_scores(model: Any, table: LetorTable) -> NDArray[np.float64]:
    """Scores of a file's rows, (m,) or (m, targets), scaled as the training data were."""
    if not isinstance(model, Pipeline):
        return np.asarray(model.predict(table.X))
    X: Any = table.X
    for _, step in model.steps[:-1]:
        if step is None or step == "passthrough":
            continue
        if not getattr(step, "fitted_with_qid_", False):
            X = step.transform(X)
        elif table.qid is None:
            raise ValueError(f"{table.path}: the model scales features inside each query, so every line needs a qid.")
        else:
            X = step.transform(X, qid=table.qid)
    return np.asarray(final_step(model).predict(X))


def one_score_a_row(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of a model with one target."""
    if scores.ndim == 1:
        return scores
    if scores.shape[1] == 1:
        return scores[:, 0]
    raise ValueError(f"The model gives {scores.shape[1]} scores a row, one for each target; judging needs one.")
