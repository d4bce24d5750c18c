"""Rows of files that are copied unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np

from rankrls._queries import group_to_qid
from rankrls._typing import AnyArray, Mask
from rankrls.io._text import joined_ids
from rankrls.io.columns import ColumnRoles
from rankrls.io.files import atomic_write, expanded_paths, sizes_beside
from rankrls.io.formats import format_of, is_data, open_rows
from rankrls.io.reading import ReadOptions
from rankrls.io.writing import write_stored


@dataclass(frozen=True)
class Records:
    """Unchanged rows of files, which can be written again.

    Attributes
    ----------
    sizes : dict of str to int
        Number of rows of each file, in row order.
    qid : list or None
        Query id of each row; None if the files have none.
    ending : str
        Ending of the names of such files.
    text_keys : list of str
        Keys in the names of the files' folders that are not whole numbers everywhere.
    sizes_ending : str or None
        Ending of the name of the file with query sizes, if there is one.
    """

    sizes: dict[str, int]
    qid: list[Any] | None
    ending: str
    text_keys: list[str]
    sizes_ending: str | None = None

    def write(self, target: Path, rows: Sequence[int]) -> None:
        """Write some rows as one file of the same format, reading the files again in blocks.

        If query sizes are in a companion file of the rows, one is written too.
        """
        kept = np.zeros(sum(self.sizes.values()), dtype=bool)
        kept[[*rows]] = True
        write_stored(target, self._stored(kept), format_of(next(iter(self.sizes))))
        if self.sizes_ending is not None and self.qid is not None:
            with atomic_write(f"{target}{self.sizes_ending}", "w") as sizes:
                sizes.writelines(f"{count}\n" for count in Counter(compress(self.qid, kept)).values())

    def _stored(self, kept: Mask) -> Iterator[Any]:
        """The selected rows of the files."""
        first = 0
        for path, size in self.sizes.items():
            with open_rows(path, format_of(path)) as file:
                for rows in file.stored(kept[first : first + size]):
                    yield _with_texts(rows, self.text_keys) if self.text_keys else rows
            first += size


def _with_texts(table: Any, names: list[str]) -> Any:
    """Table of pyarrow with some columns as text."""
    for name in names:
        table = table.set_column(table.column_names.index(name), name, table[name].cast("string"))
    return table


def read_records(path: Path, options: ReadOptions, note: Callable[[str], object]) -> Records:
    """Query ids of the rows of a file, a folder or a pattern; ``note`` is called if another file contains them.

    Raises
    ------
    InputError
        If a file is not of its format, or has other columns than the first.
    OSError
        If a file cannot be read.
    """
    files = expanded_paths(path)
    format = format_of(files[0])
    sizes = dict[str, int]()
    ids = list[AnyArray]()
    columns = dict[str, Any]()
    text_keys = list[str]()
    for name in files:
        with open_rows(name, format) as file:
            schema = file.schema(ColumnRoles(qid=options.qid, features=(), labels="ignored"))
            rows = file.read(replace(schema, columns={k: v for k, v in schema.columns.items() if k == "qid"}))
            columns = columns or {**file.types}
            other = [column for column, kind in file.types.items() if columns.get(column) != kind]
            text_keys += other
            if [*file.types] != [*columns] or not {*other} <= {*file.keys}:
                raise file.refuse(f"the columns differ from those of {files[0]}. Convert the files to one schema.")
        sizes[name] = rows.n_rows
        ids += [] if rows.qid is None else [rows.qid]
    qid = joined_ids(ids).tolist() if len(ids) == len(files) else None
    bare = files[0].removesuffix(".gz")
    ending = Path(bare).suffix if is_data(bare) else ".txt"
    records = Records(sizes, qid, ending + files[0].removeprefix(bare), [*dict.fromkeys(text_keys)])
    queries = sizes_beside(path, options.sizes, str(path), sum(sizes.values()), qid is not None, note)
    if queries is None:
        return records
    return replace(records, qid=group_to_qid(queries[0]).tolist(), sizes_ending=queries[1])
