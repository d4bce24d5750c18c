"""Rows of files that are copied unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls._typing import AnyArray
from rankrls.io._text import joined_ids
from rankrls.io.columns import ColumnRoles
from rankrls.io.files import atomic_write, expanded_paths, ids_beside
from rankrls.io.formats import format_of, is_data
from rankrls.io.reading import ReadOptions, open_rows
from rankrls.io.writing import write_stored

_REMEDY = "Convert the files to one schema."


@dataclass(frozen=True)
class Records:
    """Unchanged rows of files, which can be written again.

    Attributes
    ----------
    rows : pyarrow Table
        Rows in the form of :meth:`Reader.unchanged`.
    qid : list or None
        Query id of each row; None if the files have none.
    ending : str
        Ending of the names of such files.
    sizes_ending : str or None
        Ending of the name of the file with query sizes, if there is one.
    """

    rows: Any
    qid: list[Any] | None
    ending: str
    sizes_ending: str | None = None

    def write(self, target: Path, rows: Sequence[int]) -> None:
        """Write some rows, in their order, as one file of the same format.

        If query sizes are in a companion file of the rows, one is written too.
        """
        import pyarrow as pa

        kept = np.zeros(len(self.rows), dtype=bool)
        kept[[*rows]] = True
        found = self.rows.filter(pa.array(kept))
        format = format_of(target)
        write_stored(target, found["line"].to_pylist() if format == "letor" else [found], format)
        if self.sizes_ending is not None and self.qid is not None:
            with atomic_write(f"{target}{self.sizes_ending}", "w") as sizes:
                sizes.writelines(f"{count}\n" for count in Counter(compress(self.qid, kept)).values())


def read_records(path: Path, options: ReadOptions, note: Callable[[str], object]) -> Records:
    """Rows of a file, a folder or a pattern; ``note`` is called if another file contains their query ids.

    Raises
    ------
    InputError
        If a file is not of its format, or has other columns than the first.
    OSError
        If a file cannot be read.
    """
    import pyarrow as pa

    files = expanded_paths(path)
    format = format_of(files[0])
    tables = list[Any]()
    ids = list[AnyArray]()
    for name in files:
        with open_rows(name, format) as file:
            schema = file.schema(ColumnRoles(qid=options.qid, features=(), labels="ignored"))
            found = file.read(replace(schema, columns={k: v for k, v in schema.columns.items() if k == "qid"}))
        ids += [] if found.qid is None else [found.qid]
        with open_rows(name, format) as file:  # text is read once
            tables.append(file.unchanged())
        if tables[-1].column_names != tables[0].column_names:
            raise InputError(f"the columns differ from those of {files[0]}. {_REMEDY}", file=name)
    qid = joined_ids(ids).tolist() if len(ids) == len(files) else None
    bare = files[0].removesuffix(".gz")
    ending = Path(bare).suffix if is_data(bare) else ".txt"
    try:
        rows = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(f"the files have columns of different types ({error}). {_REMEDY}", file=str(path)) from None
    records = Records(rows, qid, ending + files[0].removeprefix(bare))
    beside = ids_beside(path, options.sizes, len(rows), qid is not None, note)
    if beside is None:
        return records
    return replace(records, qid=beside[0].tolist(), sizes_ending=beside[1])
