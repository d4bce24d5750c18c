"""How much memory data take where they are held, and how large their parts may be where they are not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from rankrls._compiled.threads import n_threads
from rankrls.io.tables.formats import table_format
from rankrls.selection.costs import free_memory
from rankrls.streaming.fitting import leaf_bytes
from rankrls.streaming.stream import bytes_of

_LEAST_ROWS = 50
_GROWTH = 2.5
"""What reading rows and learning from them takes, in sizes of their features in float64."""


def exceeds_memory(path: Path, memory: Any = None) -> bool:
    """Whether a fit of all rows of a file takes more than some memory, by default what is free; about."""
    allowed = free_memory() if memory is None else bytes_of(memory)
    return allowed is not None and _needed(path) > allowed


def _needed(path: Path) -> float:
    if table_format(path) == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        with suppress(pa.ArrowException, OSError):  # a file that is none is named where it is read
            found = pq.read_metadata(path)
            return 8.0 * _GROWTH * found.num_rows * found.num_columns
    return _GROWTH * path.stat().st_size


def rows_that_fit(memory: Any, n_features: int, *, values: int) -> int:
    """Rows of a part that a fit of some values of alpha works on in a thread's share of memory; at least fifty."""
    share = (bytes_of(memory) or 0.0) / n_threads()
    of = leaf_bytes(n_features, 1, values=values)
    return max(_LEAST_ROWS, int((share - of(0)) / (of(1) - of(0))))
