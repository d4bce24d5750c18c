"""Rows of files that are passed on as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from rankrls._queries import group_to_qid
from rankrls.io.columns import ColumnRoles
from rankrls.io.files import atomic_write, sizes_beside
from rankrls.io.formats import FORMATS, format_of, open_rows
from rankrls.io.reading import ReadOptions
from rankrls.io.writing import write_stored


@dataclass(frozen=True)
class Records:
    """Rows of a file as they are, which can be written again.

    Attributes
    ----------
    path : Path
    qid : list or None
        Query id of each row; None if the file has none.
    n_rows : int
    ending : str
        How names of such files end.
    sizes_ending : str or None
        The ending of the name of the file with the sizes of the queries, if there is one.
    """

    path: Path
    qid: list[Any] | None
    n_rows: int
    ending: str
    sizes_ending: str | None = None

    def write(self, target: Path, rows: Sequence[int]) -> None:
        """Write some rows as a file of the same format, reading it again: only blocks of it are held.

        If the sizes of the queries are in a file beside the rows, one is written too.
        """
        kept = np.zeros(self.n_rows, dtype=bool)
        kept[[*rows]] = True
        format = format_of(self.path)
        with open_rows(self.path, format) as file:
            write_stored(target, file.stored(kept), format)
        if self.sizes_ending is not None and self.qid is not None:
            with atomic_write(f"{target}{self.sizes_ending}", "w") as sizes:
                sizes.writelines(f"{count}\n" for count in Counter(compress(self.qid, kept)).values())


def read_records(path: Path, options: ReadOptions, note: Callable[[str], object]) -> Records:
    """The query ids of a file's rows; ``note`` is called if they come from another file.

    Raises
    ------
    InputError
        For a file that is not of its format.
    OSError
        If it cannot be read.
    """
    format = format_of(path)
    with open_rows(path, format) as file:
        schema = file.schema(ColumnRoles(qid=options.qid, features=(), labels="ignored"))
        columns = {role: name for role, name in schema.columns.items() if role == "qid"}
        found = file.read(replace(schema, columns=columns))
    name = path.name.lower()
    bare = name.removesuffix(".gz")
    ending = next((ending for ending in FORMATS[format].endings if bare.endswith(ending)), ".txt")
    qid = None if found.qid is None else found.qid.tolist()
    records = Records(path, qid, found.n_rows, ending + ".gz" * name.endswith(".gz"))
    sizes = sizes_beside(path, options.sizes, str(path), found.n_rows, qid is not None, note)
    if sizes is None:
        return records
    return replace(records, qid=group_to_qid(sizes[0]).tolist(), sizes_ending=sizes[1])
