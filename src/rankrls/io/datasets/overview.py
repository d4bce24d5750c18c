"""What is in data, as people want to see it before they learn from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankrls._queries import query_layout
from rankrls.io._table import counted_labels
from rankrls.io.data import ReadOptions
from rankrls.io.datasets.dataset import Dataset, open_dataset
from rankrls.io.datasets.files import expanded_paths
from rankrls.io.tables.opened import table_format


def overview(path: Path, options: ReadOptions) -> dict[str, Any]:
    """What is in a file, or in Parquet files that are one data set, as plain values.

    Memory is that of the table of a single file, or of the labels and query ids of a data set.
    """
    files = expanded_paths(path)
    kind = table_format(files[0]) or "letor"
    asked = {name: getattr(options, name) for name in ("label", "qid", "id", "features", "ignore")}
    data: Any = open_dataset(path, labels="optional", **asked) if kind == "parquet" else None
    tables = [*_without_features(data)] if data else [options.read(Path(files[0]), lambda text: None)]
    found = data or tables[0]
    size = np.concatenate([query_layout(table.qid, table.n_rows).counts for table in tables])
    y = np.concatenate([np.full(table.n_rows, np.nan) if table.y is None else table.y for table in tables])
    return {
        "format": kind,
        "files": len(files),
        "bytes": sum(Path(file).stat().st_size for file in files),
        "rows": int(size.sum()),
        "queries": len(size),
        "rows_per_query": {"least": int(size.min()), "median": float(np.median(size)), "most": int(size.max())},
        "labels": counted_labels(y),
        "features": found.n_features,
        "feature_names": None if found.feature_names is None else [*found.feature_names],
        "dtype": str(data.parts[0].dtype if data else found.X.dtype),
        "sparse": not data and not isinstance(found.X, np.ndarray),
        **({"parts": len(data.parts)} if data else {}),
    }


def _without_features(data: Dataset) -> Iterator[Any]:
    """The labels and query ids of each part."""
    for part in data.parts:
        yield replace(part, plan=replace(part.plan, features=(), numbers={})).read()
