"""Writers of rows into open files, by format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import IO, Any

_QUOTED = '["\\r\\n,;\\t|]|^\ufeff|^$'
"""Pattern of cells that are written in quotes."""


def write_parquet(file: IO[bytes], path: str, tables: Iterable[Any]) -> None:
    """Write tables of pyarrow one after another."""
    _write_typed(parquet_writer, file, tables)


def parquet_writer(file: Any, schema: Any, repeating: Sequence[str] = ()) -> Any:
    """Writer of a Parquet file, with dictionaries of texts, whole numbers and ``repeating`` columns.

    Other numbers rarely repeat: with a dictionary they are larger, and take longer to write.
    """
    from pyarrow import parquet, types

    coded = {*repeating}
    coded |= {field.name for field in schema if not (types.is_floating(field.type) or types.is_nested(field.type))}
    return parquet.ParquetWriter(file, schema, use_dictionary=[*coded], write_statistics=[*coded])


def write_arrow(file: IO[bytes], path: str, tables: Iterable[Any]) -> None:
    """Write tables of pyarrow one after another."""
    from pyarrow import ipc

    _write_typed(ipc.new_file, file, tables)


def _write_typed(open_writer: Any, file: IO[bytes], tables: Iterable[Any]) -> None:
    tables = iter(tables)
    first = next(tables)
    with open_writer(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def write_lines(file: IO[bytes], path: str, lines: Iterable[bytes]) -> None:
    """Write lines of text."""
    file.writelines(lines)


def write_json(file: IO[bytes], path: str, rows: Iterable[Any]) -> None:
    """Write lines of text, or tables of pyarrow as lines of JSON."""
    for part in rows:
        lines = [part] if isinstance(part, bytes) else (f"{json.dumps(row)}\n".encode() for row in part.to_pylist())
        file.writelines(lines)


def write_delimited(file: IO[bytes], path: str, tables: Iterable[Any]) -> None:
    """Write tables of pyarrow as delimited text in the shortest decimals, with quotes if cells need them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    delimiter = "," if path.lower().removesuffix(".gz").endswith(".csv") else "\t"
    header: list[str] = []
    for table in tables:
        if not header:
            header = table.column_names
            file.write((delimiter.join(map(_cell, header)) + "\n").encode())
        texts = [column for column in table.columns if not pa.types.is_primitive(column.type)]
        odd = any(pc.any(pc.match_substring_regex(column, _QUOTED)).as_py() for column in texts)
        how = csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="needed" if odd else "none")
        csv.write_csv(table, file, how)


def _cell(text: str) -> str:
    """A text as a cell, in quotes if it would otherwise be read differently."""
    return '"' + text.replace('"', '""') + '"' if re.search(_QUOTED, text) else text
