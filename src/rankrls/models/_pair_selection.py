"""Choosing by held-out preferences."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from rankrls._errors import InputError
from rankrls.graph import PairGraph
from rankrls.metrics._preferences import right_order
from rankrls.models._selection import Curve, mean_and_error

__all__ = ["pair_blocks", "pair_curve"]


def pair_blocks(graph: PairGraph, cv: Any, grouped: bool) -> tuple[list[Any], str]:
    """Preferences that are held out together, and how to say it."""
    blocks = [np.arange(graph.n_rows)[graph.rows_of(b)] for b in range(graph.n_blocks)]
    what = "groups of preferences" if grouped else "preferences"
    if len(blocks) < 2:
        raise ValueError(f"Leaving out {what} needs at least two; there is {len(blocks)}.")
    if cv is None:
        return blocks, f"leave-one-out over {len(blocks)} {what}"
    if not isinstance(cv, Integral) or isinstance(cv, bool):
        raise ValueError(f"For preferences cv is None or a number of folds; got {cv!r}. Use groups for other folds.")
    k = int(cv)
    if not 2 <= k <= len(blocks):
        raise InputError(f"{{cv={k}}} folds need from 2 to {len(blocks)} {what}.", parameter="cv")
    splits = KFold(k, shuffle=True, random_state=0).split(np.empty(len(blocks)))
    return [np.concatenate([blocks[b] for b in test]) for _, test in splits], f"{k} folds of {len(blocks)} {what}"


def pair_curve(graph: PairGraph, blocks: list[Any], differences: NDArray[np.float64], greater_is_better: bool) -> Curve:
    """Weighted share of held-out preferences ordered rightly (ties half), blocks counting the same."""
    right, weight = right_order(differences, graph.strength, graph.weight)
    rows = np.concatenate(blocks)
    starts = np.concatenate(([0], np.cumsum([len(b) for b in blocks])))[:-1]
    total = np.add.reduceat(weight[rows], starts)
    good = np.add.reduceat(weight[rows, None] * right[rows], starts, axis=0)
    values = np.divide(good, total[:, None], out=np.full(good.shape, np.nan), where=total[:, None] > 0.0)
    if len(rows) == len(blocks):  # single preferences: their weights count between them too
        mean = np.asarray((weight @ right) / weight.sum())
        spread = (weight**2) @ (right - mean) ** 2
        error = np.sqrt(spread) / weight.sum()
    else:
        mean, error = mean_and_error(values)
    if not greater_is_better:
        mean, values = 1.0 - mean, 1.0 - values
    return Curve(mean, error, values)
