"""Text with one JSON object per line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import Any
from weakref import finalize

import numpy as np

from rankrls._errors import InputError
from rankrls._records import several_types, table_of
from rankrls.io._stored import Stored
from rankrls.io._text import Text
from rankrls.io.rows import Lines


class JsonLines(Stored):
    """Text with a JSON object in each line.

    All lines are needed to know the columns and their types: they are read once, into a temporary file of tables.
    """

    text: Text
    lines: Lines

    def __init__(self, source: Any) -> None:
        import pyarrow as pa
        from pyarrow import ipc

        self._source = source
        self._tables = TemporaryFile()  # noqa: SIM115  (closed with the reader)
        finalize(self, self._tables.close)
        self.text = Text(source)
        self.lines = Lines()
        fields: dict[str, Any] = {}
        line = 0
        n_rows = 0
        for block in self.text.blocks():
            records = list[dict[str, Any]]()
            lines = list[int]()
            for text in block.split(b"\n")[:-1]:
                line += 1
                if text.strip():
                    records.append(self._record(text, line))
                    lines.append(line)
            try:
                table = table_of(records)
                _add_fields(fields, table)
            except InputError as error:
                at = None if error.row is None else lines[error.row]
                row = None if error.row is None else n_rows + error.row
                raise error.replace(file=self.text.name, row=row, line=at) from None
            with ipc.new_stream(self._tables, table.schema) as writer:
                writer.write_table(table)
            self.lines.append(n_rows, np.array(lines))
            n_rows += len(lines)
        if not n_rows:
            raise InputError("the file has no rows.", file=self.text.name)
        self.schema = pa.schema([*fields.values()])

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import ipc

        end = self._tables.seek(0, os.SEEK_END)
        place = 0
        while place < end:
            self._tables.seek(place)  # another iteration may have moved it
            tables = [self.schema.empty_table(), ipc.open_stream(self._tables).read_all()]
            place = self._tables.tell()
            batches = pa.concat_tables(tables, promote_options="permissive").select(names).to_batches(rows)
            yield from filter(len, batches)

    def as_lines(self) -> Iterator[bytes]:
        """Lines, unchanged."""
        self._source.seek(0)
        return (line + b"\n" for block in self.text.blocks() for line in block.split(b"\n") if line.strip())

    def _record(self, text: bytes, line: int) -> dict[str, Any]:
        """Object of a line."""
        reason = ""
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            record = None
            reason = f" ({error})"
        if isinstance(record, dict):
            return record
        problem = f"each line needs a JSON object{reason}. For a single array, jq -c '.[]' FILE writes such lines."
        raise InputError(problem, file=self.text.name, line=line)


def _add_fields(fields: dict[str, Any], table: Any) -> None:
    """Extend the columns and their types by those of a table.

    Raises
    ------
    InputError
        If a column has a type that does not suit the earlier one, with its first row.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for field in table.schema:
        known = fields.get(field.name, field)
        try:
            both = pa.unify_schemas([pa.schema([known]), pa.schema([field])], promote_options="permissive")
        except pa.ArrowException:
            row = pc.index(table[field.name].is_valid(), True).as_py()
            raise several_types(field.name, [known.type, field.type], row, table[field.name][row].as_py()) from None
        fields[field.name] = both.field(0)
