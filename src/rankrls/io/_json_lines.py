"""Text with one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rankrls._errors import InputError
from rankrls._records import table_of
from rankrls.io._stored import Frame
from rankrls.io._text import Text
from rankrls.io.rows import Lines


class JsonLines(Frame):
    """Text with a JSON object in each line, read into a table."""

    text: Text
    lines: Lines

    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        self._source = source
        self.text = Text(source)
        self.lines = Lines()
        tables = []
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
                tables.append(table_of(records))
            except InputError as error:
                at = None if error.row is None else lines[error.row]
                row = None if error.row is None else n_rows + error.row
                raise error.replace(file=self.text.name, row=row, line=at) from None
            self.lines.append(n_rows, lines)
            n_rows += len(lines)
        if not n_rows:
            raise InputError("the file has no rows.", file=self.text.name)
        try:
            table = pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowException as error:
            raise InputError(f"a column contains values of several types ({error}).", file=self.text.name) from None
        super().__init__(table)

    def as_lines(self) -> Iterator[bytes]:
        """Lines, unchanged."""
        self._source.seek(0)
        return (line + b"\n" for block in self.text.blocks() for line in block.split(b"\n") if line.strip())

    def _record(self, text: bytes, line: int) -> dict[str, Any]:
        """Object of a line."""
        problem = "each line needs a JSON object, {...}. For a single array, jq -c '.[]' FILE writes such lines."
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            if line > 1 or not text.lstrip().startswith(b"["):  # else an array is written on several lines
                problem = f"the line is not JSON ({error})."
            raise InputError(problem, file=self.text.name, line=line) from None
        if not isinstance(record, dict):
            raise InputError(problem, file=self.text.name, line=line)
        return record
