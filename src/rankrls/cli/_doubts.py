"""What about the features of training data should be looked at twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._queries import QueryLayout, query_layout
from rankrls.io.data import Rows, few
from rankrls.metrics import resolve_measure

__all__ = ["doubts"]

_ROWS = 50  # fewer may be as they are by chance
_PAIRS = 200
_SAMPLE = 20_000
_ID = re.compile(r"(?i)(^|[\W_])(id|key|index|row|nr|no|number|sku|ean|uuid)$|(?-i:[a-z]Id$)")


def doubts(table: Rows) -> Iterator[str]:
    """Features that look like ids, and features that order the labels as no honest one does."""
    X: Any = table.X
    if not isinstance(X, np.ndarray) or len(X) < _ROWS:
        return
    names = table.feature_names
    ids = [] if names is None else [name for k, name in enumerate(names) if _like_ids(X[:, k], name)]
    if ids:
        yield (
            f"{few(ids)}: a different whole number in each row is a feature, and looks like an id "
            f"(--ignore {','.join(ids[:3])} leaves it out)."
        )
    if table.y is not None and table.y.ndim == 1:
        rows = np.flatnonzero(~np.isnan(table.y))
        layout = query_layout(None if table.qid is None else table.qid[rows], len(rows))
        whole = len(rows) == len(X)
        perfect = [str(table.feature_ids[k]) for k in _perfect(X if whole else X[rows], table.y[rows], layout)]
        if perfect:
            found = "this feature alone puts all rows in the order of their labels."
            yield f"{few(perfect)}: {found} Was it made from them, or after them?"


def _like_ids(values: NDArray[np.float64], name: str) -> bool:
    if not (values == np.floor(values)).all():
        return False
    ordered = np.sort(values)
    if (ordered[1:] == ordered[:-1]).any():
        return False
    return bool(_ID.search(name)) or ordered[-1] - ordered[0] == len(values) - 1


def _perfect(X: NDArray[np.float64], y: NDArray[np.float64], layout: QueryLayout) -> list[int]:
    """Columns whose order, or its reverse, is that of the labels in every query that has two different ones."""
    measure, columns = resolve_measure("disagreement"), np.arange(X.shape[1])
    rows = np.arange(len(y))
    if len(y) > _SAMPLE:  # whole queries first, and then all rows for what is left
        rows = layout.order[: layout.starts[max(int(np.searchsorted(layout.starts, _SAMPLE)), 1)]]
    for part in [rows] if len(rows) == len(y) else [rows, np.arange(len(y))]:
        inside = query_layout(layout.codes[part], len(part))
        if not len(columns) or _n_pairs(y[part], inside) < _PAIRS:
            return []
        errors = np.asarray(measure.mean(y[part], np.ascontiguousarray(X[np.ix_(part, columns)], np.float64), inside))
        columns = columns[(errors == 0.0) | (errors == 1.0)]
    return [int(k) for k in columns]


def _n_pairs(y: NDArray[np.float64], layout: QueryLayout) -> int:
    """Pairs of different labels inside queries."""
    same = np.unique(np.stack((layout.codes, y)), axis=1, return_counts=True)[1]
    return int((layout.counts.astype(np.int64) ** 2).sum() - (same.astype(np.int64) ** 2).sum()) // 2
