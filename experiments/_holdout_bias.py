"""What held-out AUC is on average where the labels are drawn at random, so that 0.5 is right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from rankrls import RankRLS
from rankrls.model_selection import leave_pair_out, tournament_leave_pair_out

__all__ = ["METHODS", "Bias", "bias"]

METHODS = ("leave-one-out, pooled", "5 folds, pooled", "leave-pair-out", "tournament")


@dataclass(frozen=True)
class Bias:
    """Mean AUC of each method over random samples, the means' standard errors, and how often the interval held 0.5."""

    items: int
    positives: int
    features: int
    alpha: float
    samples: int
    mean: dict[str, float]
    error: dict[str, float]
    coverage: float


def bias(items: int, positives: int, features: int, alpha: float, samples: int, seed: int = 0) -> Bias:
    """Features and labels without any relation, ``samples`` times."""
    rng = np.random.default_rng(seed)
    values = np.empty((samples, len(METHODS)))
    covered = 0
    for sample in range(samples):
        X = rng.normal(size=(items, features))
        y = rng.permutation(np.arange(items) < positives).astype(float)
        pairs = leave_pair_out(RankRLS(alpha), X, y)
        covered += pairs.interval[0] <= 0.5 <= pairs.interval[1]
        folds = [test for _, test in KFold(5, shuffle=True, random_state=sample).split(X)]
        values[sample] = (
            roc_auc_score(y, pooled(X, y, alpha, [np.array([i]) for i in range(items)])),
            roc_auc_score(y, pooled(X, y, alpha, folds)),
            pairs.score,
            tournament_leave_pair_out(RankRLS(alpha), X, y).auc,
        )
    mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(samples)
    return Bias(
        items,
        positives,
        features,
        alpha,
        samples,
        dict(zip(METHODS, mean.tolist(), strict=True)),
        dict(zip(METHODS, error.tolist(), strict=True)),
        covered / samples,
    )


def pooled(
    X: NDArray[np.float64], y: NDArray[np.float64], alpha: float, folds: list[NDArray[np.intp]]
) -> NDArray[np.float64]:
    """Scores of each fold by ridge regression with an intercept on the others: the smoother's blocks, no refit."""
    m = len(y)
    Z = X - X.mean(axis=0)
    H = Z @ np.linalg.solve(Z.T @ Z + alpha * np.eye(Z.shape[1]), Z.T) + 1.0 / m
    residual = y - H @ y
    out = np.empty(m)
    for fold in folds:
        out[fold] = y[fold] - np.linalg.solve(np.eye(len(fold)) - H[np.ix_(fold, fold)], residual[fold])
    return out
