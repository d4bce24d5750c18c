"""The table of everything that was tried, and the choice from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.models._choice import best_within_rounding, check_judged, is_better, reaches
from rankrls.models._selection import Curve

__all__ = ["Results", "choices_at_edges"]

_AT_EDGE = "_at_edge_"


def choices_at_edges(estimator: Any) -> dict[str, bool]:
    """Of each parameter that a fitted estimator chose from a grid (its name in ``best_params_``): is it at an edge?"""
    return {
        name.removesuffix(_AT_EDGE): bool(value) for name, value in vars(estimator).items() if name.endswith(_AT_EDGE)
    }


@dataclass
class Results:
    """Collects one curve a combination and keeps the best one's state, so that only that much stays in memory."""

    greater_is_better: bool
    rule: str
    parameter: str = "alpha"
    rows: list[tuple[dict[str, Any], float, float, float]] = field(default_factory=list)
    best_index: int = -1
    best_alpha: float = np.nan
    best_score: float = np.nan
    best_error: float = np.nan
    best_params: dict[str, Any] = field(default_factory=dict)
    best_state: Any = None
    best_values: NDArray[np.float64] | None = None
    best_scores: NDArray[np.float64] | None = None
    at_edge: bool = False
    _top: float = -np.inf

    def add(self, params: dict[str, Any], alphas: NDArray[np.float64], curve: Curve, state: Any) -> None:
        """Take the curve of one combination: the values of ``parameter``, the simplest model first among equals.

        ``alphas`` descend, so that the first of equals is the largest; numbers of terms ascend.
        """
        first = len(self.rows)
        entries = zip(alphas.tolist(), curve.mean.tolist(), curve.error.tolist(), strict=True)
        self.rows.extend((params, alpha, mean, error) for alpha, mean, error in entries)
        goodness = curve.mean if self.greater_is_better else -curve.mean
        check_judged(goodness)
        scale = curve.size
        k = int(np.argmax(best_within_rounding(goodness, scale)))
        if not is_better(goodness[k], self._top, scale[k]):
            return
        self._top = float(goodness[k])
        if self.rule == "one_se" and not np.isnan(curve.error[k]):
            k = int(np.argmax(reaches(goodness, goodness[k] - curve.error[k], scale[k])))
        self.best_index = first + k
        self.best_alpha, self.best_score, self.best_error = (
            float(alphas[k]),
            float(curve.mean[k]),
            float(curve.error[k]),
        )
        self.best_params, self.best_state = params, state
        self.best_values = None if curve.values is None else curve.values[:, k].copy()
        self.best_scores = None if curve.scores is None else curve.scores[:, k].copy()
        self.at_edge = len(alphas) > 2 and k in (0, len(alphas) - 1)

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns for ``cv_results_``."""
        names = list(dict.fromkeys(name for params, *_ in self.rows for name in params))
        columns: dict[str, NDArray[Any]] = {}
        for name in names:
            column = np.empty(len(self.rows), dtype=object)
            column[:] = [params.get(name) for params, *_ in self.rows]
            columns[name] = column
        numbers = np.array([row[1:] for row in self.rows], dtype=np.float64).reshape(-1, 3)
        columns[self.parameter], columns["mean_score"], columns["standard_error"] = numbers.T.copy()
        return columns
