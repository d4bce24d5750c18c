"""Choosing by held-out preferences."""

from __future__ import annotations

from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from rankrls._errors import InputError
from rankrls.graph import PairGraph
from rankrls.metrics._averages import mean_and_error
from rankrls.metrics._preferences import right_order
from rankrls.models._selection import Curve

__all__ = ["check_something_is_left", "pair_blocks", "pair_curve"]


def pair_blocks(graph: PairGraph, cv: Any, grouped: bool) -> tuple[list[Any], str]:
    """Preferences that are held out together, and how to say it."""
    blocks = [np.arange(graph.n_rows)[graph.rows_of(b)] for b in range(graph.n_blocks)]
    what = "groups of preferences" if grouped else "preferences"
    if len(blocks) < 2:
        raise ValueError(f"Leaving out {what} needs at least two; there is {len(blocks)}.")
    if cv is None:
        check_something_is_left(graph, blocks, "group")
        return blocks, f"leave-one-out over {len(blocks)} {what}"
    if not isinstance(cv, Integral) or isinstance(cv, bool):
        raise ValueError(f"For preferences cv is None or a number of folds; got {cv!r}. Use groups for other folds.")
    k = int(cv)
    if not 2 <= k <= len(blocks):
        raise ValueError(f"cv={k} folds need from 2 to {len(blocks)} {what}.")
    splits = KFold(k, shuffle=True, random_state=0).split(np.empty(len(blocks)))
    folds = [np.concatenate([blocks[b] for b in test]) for _, test in splits]
    check_something_is_left(graph, folds, "fold")
    return folds, f"{k} folds of {len(blocks)} {what}"


def check_something_is_left(graph: PairGraph, blocks: list[Any], what: str) -> None:
    """Refuse blocks of preferences of which one alone holds all that order anything."""
    ordering = (block for block in blocks if graph.strength[block].any())
    if len(list(islice(ordering, 2))) < 2:
        raise InputError(
            "Only one {0} of preferences has a strength other than 0: without it there is nothing to learn from.",
            what,
            remedy="Give other folds ({cv}), or other groups." if what == "fold" else "",
            parameter="cv" if what == "fold" else "strength",
        )


def pair_curve(graph: PairGraph, blocks: list[Any], differences: NDArray[np.float64], greater_is_better: bool) -> Curve:
    """Weighted share of held-out preferences ordered rightly, or wrongly (ties half), blocks counting the same."""
    right, weight = right_order(differences, graph.strength, graph.weight)
    if not greater_is_better:
        right = 1.0 - right  # here, where it is exact
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
    return Curve(mean, error, values)
