"""Rows of a file as they are, to be passed on: nothing in them is lost or written otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankrls._queries import group_to_qid
from rankrls.io._atomic import atomic_write
from rankrls.io._letor import letor_lines, letor_query_ids
from rankrls.io._writer import packed
from rankrls.io.data import ReadOptions
from rankrls.io.sizes import sizes_beside
from rankrls.io.tables.arrays import read_arrays
from rankrls.io.tables.columns import ColumnRoles, TableError, plan_columns
from rankrls.io.tables.opened import open_table
from rankrls.io.tables.writing import write_tables

_PARTS = (".train", ".vali", ".valid", ".test")
"""What LightGBM's files end in: it says which part they are, and not which format."""


@dataclass(frozen=True)
class Records:
    """Rows of a file.

    Attributes
    ----------
    qid : sequence
        Query id of each row; None if the file has none.
    ending : str
        What the names of such files end in.
    write : callable
        ``write(path, rows)`` writes some of them, in their order, as a file of the same kind; if a file beside the rows
        says how many each query has, with one too.
    """

    qid: Sequence[Any] | None
    ending: str
    write: Callable[[Path, Sequence[int]], None]


def read_records(path: Path, options: ReadOptions, note: Callable[[str], object]) -> Records:
    """Read a file's rows as they are; ``note`` is told where their queries come from, if that is another file.

    Raises
    ------
    InputError
        For a file that is no such format.
    OSError
        If it cannot be read.
    """
    kind = options.format_of(path)
    gzip = ".gz" if path.name.lower().endswith(".gz") else ""
    suffix = Path(path.name[: len(path.name) - len(gzip)]).suffix
    if suffix.lower() in _PARTS or not suffix + gzip:
        suffix = {"letor": ".txt"}.get(kind, f".{kind}")
    qid, n_rows, write = _letor(path) if kind == "letor" else _table(path, options, kind)
    sizes = sizes_beside(path, options.sizes, str(path), n_rows, qid is not None, note)
    if sizes is None:
        return Records(qid, suffix + gzip, write)
    queries = group_to_qid(sizes[0]).tolist()

    def write_both(target: Path, rows: Sequence[int]) -> None:
        write(target, rows)
        with atomic_write(f"{target}{sizes[1]}", "w") as file:
            file.writelines(f"{count}\n" for count in Counter(queries[row] for row in rows).values())

    return Records(queries, suffix + gzip, write_both)


def _letor(path: Path) -> tuple[list[Any] | None, int, Callable[[Path, Sequence[int]], None]]:
    """The text is read again for each file that is written, and only blocks of it are held."""
    n_rows, qid = letor_query_ids(path)

    def write(target: Path, chosen: Sequence[int]) -> None:
        kept = np.zeros(n_rows, dtype=bool)
        kept[[*chosen]] = True
        with atomic_write(target) as file, packed(file, str(target)) as sink:
            sink.writelines(line for line, wanted in zip(letor_lines(path), kept, strict=True) if wanted)

    return None if qid is None else qid.tolist(), n_rows, write


def _table(
    path: Path, options: ReadOptions, kind: str
) -> tuple[list[Any] | None, int, Callable[[Path, Sequence[int]], None]]:
    with open_table(path, kind, TableError) as table:
        roles = ColumnRoles(qid=options.qid, features=(), labels="ignored", usual={"label": "", "id": ""})
        plan = plan_columns(table, roles)
        rows = table.whole().combine_chunks()
        found = read_arrays(table, plan, batches=[(0, batch) for batch in rows.to_batches()]).texts.get("qid")
    ids = None if found is None else found.tolist()
    return ids, rows.num_rows, lambda target, chosen: write_tables(target, [rows.take([*chosen])], kind)
