"""Features of training data that deserve a second look: likely ids, and columns derived from the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankrls._checks import numbers_of
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._typing import AnyArray, Array, Index
from rankrls.preprocessing._table_encoder import like_ids

_ROWS = 50  # patterns in fewer rows may be due to chance
_PAIRS = 200
_SAMPLE = 20_000


@dataclass(frozen=True)
class SuspiciousFeatures:
    """The result of :func:`suspicious_features`, as column numbers.

    Attributes
    ----------
    ids : tuple of int
        Columns of whole numbers that count the rows, or are named like ids and rarely repeat.
    leaks : tuple of int
        Columns that alone sort all rows by their labels, or in the reverse order.
    """

    ids: tuple[int, ...]
    leaks: tuple[int, ...]


def suspicious_features(
    X: AnyArray, y: ArrayLike | None = None, qid: Any = None, *, feature_names: Sequence[str] | None = None
) -> SuspiciousFeatures:
    """Find features that look like ids, and features that alone sort all rows by their labels.

    Parameters
    ----------
    X : ndarray of shape (m, n)
        Features of training data.
    y : array-like of shape (m,), optional
        Labels; rows whose label is NaN are left out. Without labels, leaks are not searched.
    qid : array-like of shape (m,), optional
        One query id per row; by default, all rows are one query.
    feature_names : sequence of n str, optional
        Names of the columns of X; without names, ids are not searched.

    Returns
    -------
    SuspiciousFeatures

    Raises
    ------
    InputError
        If the numbers of rows or columns are inconsistent.

    Notes
    -----
    O(m log m) per feature. Leaks are searched in the first queries, which have 20,000 rows. Nothing is reported for
    fewer than 50 rows, and no leaks if fewer than 200 pairs of rows with different labels share a query, because such
    patterns can be due to chance. A feature with equal values in rows with different labels is not a leak.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls.inspection import suspicious_features
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 60)
    >>> X = np.column_stack([np.arange(60), 2.5 * y, rng.normal(size=60)])
    >>> suspicious_features(X, y, feature_names=["product_id", "sold", "price"])
    SuspiciousFeatures(ids=(0,), leaks=(1,))
    """
    X = numbers_of("X", X)
    m, n = X.shape
    if feature_names is not None and len(feature_names) != n:
        raise InputError(
            f"feature_names has {len(feature_names)} names, but X has {n} columns.", parameter="feature_names"
        )
    labels = np.full(m, np.nan) if y is None else numbers_of("y", y)
    if labels.shape != (m,):
        raise InputError(f"y has shape {labels.shape}, but X has {m} rows.", parameter="y")
    if m < _ROWS:
        return SuspiciousFeatures((), ())
    ids = tuple(k for k, name in enumerate(feature_names or ()) if like_ids(name, X[:, k]))
    return SuspiciousFeatures(ids, _leaks(X, labels, query_layout(qid, m).codes))


def _leaks(X: AnyArray, y: Array, codes: Index) -> tuple[int, ...]:
    """Columns that order the rows by label, or in reverse, in each of the first queries with different labels."""
    known = np.flatnonzero(~np.isnan(y))
    first_codes = np.sort(codes[known], kind="stable")[:_SAMPLE]
    rows = known[codes[known] <= first_codes.max(initial=0)]
    rows = rows[np.lexsort((y[rows], codes[rows]))]
    same_query = np.diff(codes[rows]) == 0
    firsts = np.flatnonzero(np.append(True, ~same_query | (np.diff(y[rows]) != 0)))  # of rows with equal labels
    alike = np.diff(firsts, append=len(rows))
    if (np.bincount(codes[rows]) ** 2).sum() - (alike**2).sum() < 2 * _PAIRS:
        return ()
    values = X[rows]
    low = np.minimum.reduceat(values, firsts)
    high = np.maximum.reduceat(values, firsts)
    next_label = same_query[firsts[1:] - 1]
    rising = (high[:-1] < low[1:])[next_label].all(axis=0)
    falling = (low[:-1] > high[1:])[next_label].all(axis=0)
    return tuple(np.flatnonzero(rising | falling).tolist())
