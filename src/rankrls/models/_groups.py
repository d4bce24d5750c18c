"""Queries that are held out together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._queries import QueryLayout, query_layout
from rankrls.models._selection import query_blocks
from rankrls.models._validation import TrainingData

__all__ = ["group_blocks", "group_codes", "group_layout"]


def group_blocks(data: TrainingData, groups: Any) -> list[Any]:
    """Rows of each query, or of each group of whole queries: at least two.

    Parameters
    ----------
    data : TrainingData
    groups : array-like of shape (rows given,) or None
        A group for each row as it was given, rows of weight zero included.

    Raises
    ------
    ValueError
        Where a query lies in two groups, or there is but one query or group.
    """
    layout = data.layout
    codes = None
    if groups is not None:
        rows = group_codes(data, groups)
        codes = rows[layout.order[layout.starts[:-1]]]
        split = codes[layout.codes] != rows
        if split.any():
            query = layout.ids[layout.codes[[int(np.argmax(split))]]].tolist()[0]
            raise ValueError(
                f"Query {query!r} lies in two groups; only whole queries can be held out: its items are compared with "
                "each other."
            )
        codes = np.unique(codes, return_inverse=True)[1].astype(np.intp)
    blocks = query_blocks(layout, codes)
    if len(blocks) < 2:
        what = "query" if groups is None else "group of queries"
        raise ValueError(f"There is a single {what}: holding it out leaves nothing to learn from.")
    return blocks


def group_codes(data: TrainingData, groups: Any) -> NDArray[np.intp]:
    """Group number of each row that is left."""
    given = data.layout.n_rows if data.kept is None else len(data.kept)
    rows = group_layout(groups, given).codes
    return rows if data.kept is None else rows[data.kept]


def group_layout(groups: Any, m: int) -> QueryLayout:
    """Rows of each group, with errors that speak of groups."""
    try:
        return query_layout(groups, m)
    except ValueError as error:
        raise ValueError(str(error).replace("query id", "group").replace("qid", "groups")) from None
