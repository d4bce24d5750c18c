"""Delimited text: blocks of whole rows, which pyarrow splits into cells."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from rankrls._compiled import n_threads, stream_threads
from rankrls._errors import InputError
from rankrls.io._stored import Stored
from rankrls.io._text import BLANKS, SAVE_AS_UTF8, Text
from rankrls.io.rows import Lines

_BLOCK = 1 << 22
_THREADS = 2  # number of threads that split text into cells; parsing the numbers takes longer
_DELIMITERS = (b",", b";", b"\t", b"|")
_QUOTED = re.compile(rb'"(?:[^"]|"")*(?:"|$)')
_OPEN_CELL = re.compile(rb'"(?:[^"]++|"")*+"?')


class _RowBlock(NamedTuple):
    """Whole rows of text, and the number of lines before them."""

    text: bytes
    before: int


class Delimited(Stored):
    """Delimited text, which pyarrow reads as text, in blocks of whole rows.

    Attributes
    ----------
    text, lines
        As for :class:`Stored`.
    """

    textual = True
    text: Text
    lines: Lines

    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        self.text = Text(source)
        self.lines = Lines()
        self._refuse = partial(InputError, file=self.text.name)
        blocks = self.text.blocks()
        first = next(blocks, b"")
        start = first.lstrip(b" \r\n")
        if not start:
            raise self._refuse("the file is empty.")
        bare = _QUOTED.sub(b"", start.partition(b"\n")[0])
        tabs = self.text.name.removesuffix(".gz").lower().endswith((".tsv", ".tab"))
        self._delimiter = "\t" if tabs else max(_DELIMITERS, key=bare.count).decode()
        self._blocks = self._checked(chain([start], blocks), first.count(b"\n") - start.count(b"\n"))
        self._first = next(self._blocks)
        header = next(csv.reader(io.StringIO(self._first.text.decode(), newline=""), delimiter=self._delimiter))
        self.schema = pa.schema([(name.strip(BLANKS), pa.string()) for name in header])

    def _checked(self, blocks: Iterable[bytes], line: int) -> Iterator[_RowBlock]:
        """Rows in UTF-8 with matching quotes; otherwise pyarrow reads all rows up to the next quote as one cell."""
        ends = re.escape(f"{self._delimiter}\r\n".encode())
        # stretches without quotes, quotes inside cells that begin with none, and cells in quotes
        pattern = rb'(?:[^"]++|(?<![ENDS])"|"(?:[^"]++|"")*+"(?=[ENDS]))*+'
        well_formed = re.compile(pattern.replace(b"ENDS", ends))
        before = line
        rows = cell = b""
        for block in chain(blocks, [b""]):
            bad = block.find(b"\0")  # pyarrow may lose such rows
            try:
                block.decode()
            except UnicodeDecodeError as error:
                bad = error.start
            if bad >= 0:
                line += 1 + (cell + block).count(b"\n", 0, len(cell) + bad)
                problem = f"this is not UTF-8 text: {SAVE_AS_UTF8}"
                if block[bad] == 0:
                    problem = "there is a NUL byte, which text cannot contain: the file is damaged or not text."
                raise self._refuse(problem, line=line)
            text = b"\n" + cell + block
            end = well_formed.match(text, 1).end()  # type: ignore[union-attr]
            line = line + text.count(b"\n", 1, end)
            cell = text[end:]
            if cell and not (block and _OPEN_CELL.fullmatch(cell)):
                raise self._refuse('a cell begins with a quote (") but does not end with one.', line=line + 1)
            rows += block
            if rows and not cell and (len(rows) >= _BLOCK or not block):
                yield _RowBlock(rows, before)
                before = line
                rows = b""

    def batches(self, names: list[str], rows: int, groups: range | None) -> Iterator[Any]:
        """Batches of the given columns, without blanks around cells; a file is read once."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from pyarrow import csv

        called = [*map(str, range(len(self.schema)))]
        numbers = dict(zip(self.schema.names, called, strict=True))
        keeping = csv.ConvertOptions(
            check_utf8=False,  # checked above
            column_types=dict.fromkeys(called, pa.string()),
            include_columns=[numbers[name] for name in names],
            strings_can_be_null=False,
        )

        def parse(block: _RowBlock) -> tuple[_RowBlock, Any, list[tuple[int, int]]]:
            """Cells of a block; and the number of fields and position of its first row that does not fit the names."""
            blank: list[Any] = []
            odd: list[Any] = []

            def skip(row: Any) -> str:
                if not odd:
                    (odd if row.text.strip() else blank).append(row)
                return "skip"

            cutting = csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=skip)
            reading = csv.ReadOptions(
                use_threads=False,
                block_size=len(block.text) + 1,
                column_names=called,
                skip_rows_after_names=int(block is self._first),
            )
            found = csv.read_csv(pa.BufferReader(block.text), reading, cutting, keeping)
            return block, found, [(row.actual_columns, row.number - 1 - len(blank)) for row in odd]

        first_row = -1  # the line of names
        blocks = chain([self._first], self._blocks)
        for block, found, odd in stream_threads(parse, blocks, threads=min(n_threads(), _THREADS)):
            n_rows = found.num_rows + int(block is self._first)
            self.lines.append(first_row, self._row_lines(block, n_rows))
            for n_fields, place in odd:
                row = first_row + place
                have = f"the row has {n_fields} field{'s' * (n_fields != 1)}, but the header has {len(self.schema)}."
                remedy = f"Add or remove fields, or write a field with {self._delimiter!r} inside in double quotes."
                raise self._refuse(f"{have} {remedy}", row=row, line=self.lines.of(row))
            first_row += n_rows
            for batch in found.combine_chunks().to_batches():
                yield pa.RecordBatch.from_arrays([*map(pc.ascii_trim_whitespace, batch.columns)], names=names)

    def _row_lines(self, block: _RowBlock, n_rows: int) -> Sequence[int]:
        """Lines of a block's rows, including that of the names."""
        if block.text.count(b"\n") == n_rows:
            return range(block.before + 1, block.before + 1 + n_rows)
        rows = csv.reader(io.StringIO(block.text.decode(), newline=""), delimiter=self._delimiter)
        n = len(self.schema)
        with suppress(csv.Error):  # a field that is too long for Python
            return [block.before + rows.line_num for cells in rows if len(cells) == n or "".join(cells).strip()]
        return ()
