"""What ``fit_pairs`` was given, as a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from rankrls._preferences import check_preferences
from rankrls.graph import PairGraph
from rankrls.models._validation import check_matrix, check_operator, holds_objects

__all__ = ["pair_graph"]


def pair_graph(
    estimator: Any,
    X: Any,
    winners: Any,
    losers: Any,
    strength: Any,
    weight: Any,
    *,
    kernel: Any,
    groups: Any = None,
) -> tuple[Any, PairGraph]:
    """Check items and preferences; preferences of weight zero are dropped.

    Errors name the preference (its position, from 0) and the item.
    """
    if holds_objects(X, kernel):
        X = list(X)
        m = len(X)
    else:
        is_operator = isinstance(X, LinearOperator)
        X = check_operator(estimator, X, reset=True) if is_operator else check_matrix(estimator, X, reset=True)
        m = X.shape[0]
    given = check_preferences(winners, losers, m, strength, weight)
    if not len(given.winners):
        raise ValueError("There are no preferences to learn from.")
    codes = _group_codes(groups, len(given.winners))
    kept = given.weight > 0.0
    if not kept.any():
        raise ValueError("All preferences have weight zero: there is nothing to learn from.")
    if not kept.all():
        given = given.rows(kept)
        codes = None if codes is None else np.unique(codes[kept], return_inverse=True)[1]
    if not given.strength.any():
        raise ValueError("Every strength is 0: ties alone order nothing.")
    i, j, s, c = given
    return X, PairGraph(i, j, m, s, c, codes)


def _group_codes(groups: Any, p: int) -> NDArray[np.intp] | None:
    if groups is None:
        return None
    from rankrls._queries import query_layout

    try:
        return query_layout(groups, p).codes
    except ValueError as error:
        raise ValueError(str(error).replace("qid", "groups").replace("query id", "group")) from None
