"""The boundary: what a user passes becomes float64 arrays, or one clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_labels", "check_scores", "check_weights"]


def check_labels(y_true: Any) -> NDArray[np.float64]:
    """Labels as a finite float64 vector."""
    y = _as_float(y_true, "y_true")
    if y.ndim != 1:
        raise ValueError(f"y_true must be one-dimensional, one label per row; got shape {y.shape}.")
    if len(y) == 0:
        raise ValueError("y_true is empty: there is nothing to judge.")
    _check_finite(y, "y_true", "label")
    return y


def check_scores(y_score: Any, n_rows: int) -> NDArray[np.float64]:
    """Scores as a finite float64 vector or matrix with one row per label."""
    scores = _as_float(y_score, "y_score")
    if scores.ndim not in (1, 2):
        raise ValueError(f"y_score must have shape (m,) or (m, columns); got {scores.shape}.")
    if len(scores) != n_rows:
        raise ValueError(f"y_score has {len(scores)} rows but y_true has {n_rows}: one score per label is needed.")
    if scores.ndim == 2 and scores.shape[1] == 0:
        raise ValueError("y_score has no columns.")
    _check_finite(scores, "y_score", "score")
    return scores


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Row weights as a finite, non-negative float64 vector, or None."""
    if sample_weight is None:
        return None
    w = _as_float(sample_weight, "sample_weight")
    if w.shape != (n_rows,):
        raise ValueError(f"sample_weight must have one weight per row, shape ({n_rows},); got {w.shape}.")
    _check_finite(w, "sample_weight", "weight")
    if (w < 0).any():
        row = int(np.argmax(w < 0))
        raise ValueError(f"sample_weight is negative in row {row} ({w[row]:g}): weights must be 0 or more.")
    return w


def _as_float(values: Any, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers: {error}.") from None


def _check_finite(values: NDArray[np.float64], name: str, what: str) -> None:
    good = np.isfinite(values)
    if good.all():
        return
    at = np.unravel_index(int(np.argmin(good)), values.shape)
    where = f"row {at[0]}" + (f", column {at[1]}" if values.ndim == 2 else "")
    raise ValueError(f"{name} holds {values[at]} in {where}: every {what} must be a finite number.")
