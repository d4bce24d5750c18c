"""Preferences as they come in: row numbers of winners and losers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.graph import PairGraph
from rankrls.models._validation import check_matrix, holds_objects

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
        X = check_matrix(estimator, X, reset=True)
        m = X.shape[0]
    i = _row_numbers("winners", winners, m)
    j = _row_numbers("losers", losers, m)
    if len(i) != len(j):
        raise ValueError(f"winners has {len(i)} entries but losers has {len(j)}: each preference needs one of both.")
    if not len(i):
        raise ValueError("There are no preferences to learn from.")
    same = i == j
    if same.any():
        e = int(np.argmax(same))
        raise ValueError(f"Preference {e} compares row {i[e]} with itself; remove such pairs.")
    s = _values("strength", strength, len(i), 1.0)
    c = _values("weight", weight, len(i), 1.0)
    if (c < 0.0).any():
        e = int(np.argmax(c < 0.0))
        raise ValueError(f"weight must not be negative; preference {e} has {c[e]}.")
    codes = _group_codes(groups, len(i))
    kept = c > 0.0
    if not kept.any():
        raise ValueError("All preferences have weight zero: there is nothing to learn from.")
    if not kept.all():
        i, j, s, c = i[kept], j[kept], s[kept], c[kept]
        codes = None if codes is None else np.unique(codes[kept], return_inverse=True)[1]
    if not (s != 0.0).any():
        raise ValueError("Every strength is 0: ties alone order nothing.")
    return X, PairGraph(i, j, m, s, c, codes)


def _row_numbers(name: str, values: Any, m: int) -> NDArray[np.intp]:
    numbers = np.asarray(values)
    if numbers.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, one row number per preference; got shape {numbers.shape}.")
    if len(numbers) and numbers.dtype.kind not in "iu":
        whole = numbers.dtype.kind == "f" and np.isfinite(numbers).all() and (numbers == np.floor(numbers)).all()
        if not whole:
            raise ValueError(f"{name} must hold whole row numbers of X; got dtype {numbers.dtype}.")
    out = numbers.astype(np.intp)
    outside = (out < 0) | (out >= m)
    if outside.any():
        e = int(np.argmax(outside))
        raise ValueError(f"{name}[{e}] is {out[e]}, but X has rows 0 to {m - 1}.")
    return out


def _values(name: str, values: Any, p: int, default: float) -> NDArray[np.float64]:
    if values is None:
        return np.full(p, default)
    try:
        out = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numeric, one value per preference.") from None
    if out.ndim == 0:
        out = np.full(p, float(out))
    if out.shape != (p,):
        raise ValueError(f"{name} has shape {out.shape}; it needs one value for each of the {p} preferences.")
    if not np.isfinite(out).all():
        e = int(np.argmin(np.isfinite(out)))
        raise ValueError(f"{name} must be finite; preference {e} has {out[e]}.")
    return out


def _group_codes(groups: Any, p: int) -> NDArray[np.intp] | None:
    if groups is None:
        return None
    from rankrls._queries import query_layout

    try:
        return query_layout(groups, p).codes
    except ValueError as error:
        raise ValueError(str(error).replace("qid", "groups").replace("query id", "group")) from None
