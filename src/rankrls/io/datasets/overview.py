"""What is in a data set, as people want to see it before they learn from it."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.io._table import counted_labels
from rankrls.io.datasets.dataset import Span
from rankrls.io.datasets.files import Paths
from rankrls.io.datasets.index import Levels, Outline, Watch
from rankrls.io.datasets.opening import look
from rankrls.io.tables.columns import Wanted

__all__ = ["overview"]


class _Noted:
    """Labels, rows of queries and units, beside what another watch is told."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.levels, self.labels, self.sizes = Levels(), 0, array("q")
        self.units, self.largest, self._unit = 0, 0, Span(-1, 0, 0, 0, 0, 0)

    def add(self, outline: Outline, begins: NDArray[np.bool_]) -> None:
        self._watch.add(outline, begins)
        self.levels.add(outline.y, None, slice(None))
        self.labels += 0 if outline.y is None else int(np.count_nonzero(~np.isnan(outline.y)))
        at = np.flatnonzero(begins)
        ends = np.r_[at, len(begins)]
        if ends[0]:
            self.sizes[-1] += int(ends[0])
        self.sizes.extend(np.diff(ends).tolist())
        if outline.unit is not self._unit:
            self._unit, self.units = outline.unit, self.units + 1
            self.largest = max(self.largest, outline.unit.rows)

    def finish(self) -> None:
        self._watch.finish()


def overview(path: Paths, wanted: Wanted, format: str) -> dict[str, Any]:
    """What is in a data set, as plain values.

    Memory is that of opening, 8 bytes a query, and the different labels.
    """
    noted: list[_Noted] = []

    def around(watch: Watch) -> _Noted:
        noted.append(_Noted(watch))
        return noted[-1]

    data = look(path, wanted, format, None, around)
    found = noted[-1]
    labels, counts, _ = found.levels.merged()
    sizes = np.array(found.sizes)
    shape = {"least": int(sizes.min()), "median": float(np.median(sizes)), "most": int(sizes.max())}
    groups = {"number": found.units, "largest": found.largest} if data.source.format == "parquet" else None
    return {
        "format": data.source.format,
        "files": len(data.files),
        "bytes": sum(file.size for file in data.files),
        "rows": data.n_rows,
        "queries": data.n_queries,
        "rows_per_query": shape,
        "labels": counted_labels(labels, counts, data.n_rows - found.labels),
        "features": data.n_features,
        "feature_names": None if data.feature_names is None else [*data.feature_names],
        "dtype": str(data.source.dtype),
        "sparse": not data.source.dense,
        "parts": len(data.parts),
        **({"row_groups": groups} if groups else {}),
    }
