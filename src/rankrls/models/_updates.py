"""Which queries a model has seen, so that none is added twice or removed unseen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._queries import QueryLayout
from rankrls.graph import ScoredGraph

__all__ = ["SeenQueries", "query_energies"]


def query_energies(graph: ScoredGraph, Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """``y'Ly`` of each query, summed over targets: a fingerprint of its labels and weights. O(m)."""
    FY = graph.F @ Y
    squares = np.einsum("ij,ij->i", FY, FY)
    return np.bincount(graph.layout.codes, weights=squares, minlength=graph.n_blocks).astype(np.float64)


@dataclass(frozen=True)
class SeenQueries:
    """Rows and label energy of each query seen, by id. A value: updating returns a new one."""

    queries: dict[Any, tuple[int, float]] = field(default_factory=dict)
    n_rows: int = 0

    def __len__(self) -> int:
        return len(self.queries)

    def with_queries(self, layout: QueryLayout, energies: NDArray[np.float64]) -> SeenQueries:
        """These and the layout's queries; an id that is here already is an error."""
        ids = [_key(i) for i in layout.ids]
        if self.queries:
            again = [i for i in ids if i in self.queries]
            if again:
                raise ValueError(
                    f"Query {again[0]!r} has been seen before ({len(again)} such queries in this batch): whole queries "
                    "are added. Forget its old rows first, or give all its rows at once."
                )
        entries = zip(layout.counts.tolist(), energies.tolist(), strict=True)
        return SeenQueries({**self.queries, **dict(zip(ids, entries, strict=True))}, self.n_rows + layout.n_rows)

    def unnamed_batch(self, layout: QueryLayout, energies: NDArray[np.float64], *, add: bool) -> QueryLayout:
        """A batch without qid, under a number of its own: a new one, or that of the batch with these very labels."""
        if add:
            number = max(self.queries, default=-1) + 1
        else:
            entry = (layout.n_rows, float(energies[0]))
            number = next((k for k, known in self.queries.items() if _same(known, entry)), -1)
            if number < 0:
                raise ValueError("No batch with these labels and weights has been seen: it cannot be forgotten.")
        return replace(layout, ids=np.array([number]))

    def without_queries(self, layout: QueryLayout, energies: NDArray[np.float64]) -> SeenQueries:
        """These without the layout's queries, which must be here with the same rows and labels."""
        left = dict(self.queries)
        for raw, count, energy in zip(layout.ids, layout.counts.tolist(), energies.tolist(), strict=True):
            key = _key(raw)
            if key not in left:
                raise ValueError(f"Query {key!r} has not been seen: it cannot be forgotten.")
            rows, old = left.pop(key)
            if not _same((rows, old), (count, energy)):
                raise ValueError(
                    f"Query {key!r} was seen with {rows} rows and other labels or weights than these {count} rows: "
                    "forget needs the very rows that were added."
                )
        if not left:
            raise ValueError("forget would remove every query: nothing would be left of the model.")
        return SeenQueries(left, self.n_rows - layout.n_rows)


def _same(a: tuple[int, float], b: tuple[int, float]) -> bool:
    return a[0] == b[0] and bool(np.isclose(a[1], b[1], rtol=1e-9, atol=1e-12))


def _key(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
