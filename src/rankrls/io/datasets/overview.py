"""What is in a data set, as people want to see it before they learn from it."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np

from rankrls.io._table import counted_labels
from rankrls.io.datasets.files import Paths
from rankrls.io.datasets.index import Begun, Levels
from rankrls.io.datasets.opening import look
from rankrls.io.datasets.runs import run_sizes
from rankrls.io.tables.columns import Wanted


class _Noted:
    """Labels, rows of queries and units of what is handed on."""

    def watched(self, found: Begun) -> Begun:
        """What is handed on, from the beginning."""
        self.levels, self.sizes = Levels(), array("q")
        self.units, self.largest = 0, 0
        last = None
        for outline, begins in found:
            self.levels.add(outline.y, None, slice(None))
            rest, sizes = run_sizes(begins)
            if rest:
                self.sizes[-1] += rest
            self.sizes.extend(sizes)
            if outline.unit is not last:
                last, self.units = outline.unit, self.units + 1
                self.largest = max(self.largest, outline.unit.rows)
            yield outline, begins


def overview(path: Paths, wanted: Wanted, format: str) -> dict[str, Any]:
    """What is in a data set, as plain values.

    Memory is that of opening, 8 bytes a query, and the different labels.
    """
    found = _Noted()
    data = look(path, wanted, format, None, found.watched)
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
        "labels": counted_labels(labels, counts, data.n_rows - int(counts.sum())),
        "features": data.n_features,
        "feature_names": None if data.feature_names is None else [*data.feature_names],
        "dtype": str(data.source.dtype),
        "sparse": not data.source.dense,
        "parts": len(data.parts),
        **({"row_groups": groups} if groups else {}),
    }
