"""Where results go that come a part at a time: standard output, a file of text, or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._report import Report, Result
from rankrls.io import atomic_write
from rankrls.io.tables.formats import table_format

__all__ = ["is_table", "write_lines", "write_table"]


def is_table(output: str, what: str) -> bool:
    """Whether a name is that of a table; one that cannot be written a part at a time is refused."""
    kind = None if output == "-" else table_format(output)
    if kind not in (None, "parquet"):
        problem = f"{what} of data that are read a part at a time go into a .parquet file or into text."
        raise InputError(problem, parameter="output")
    return kind is not None


def write_lines(output: str, report: Report, lines: Iterable[str]) -> Result:
    """Write text as it comes."""
    if output == "-":
        sys.stdout.writelines(lines)
        return Result()
    with report.working("writing", f"writing {output}"), atomic_write(output, "w") as file:
        file.writelines(lines)
    return Result()


def write_table(output: str, report: Report, types: Mapping[str, str], parts: Iterable[Sequence[Any]]) -> Result:
    """Write columns of some types as they come."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()])
    with (
        report.working("writing", f"writing {output}"),
        atomic_write(output) as file,
        pq.ParquetWriter(file, schema) as writer,
    ):
        for columns in parts:
            writer.write_table(pa.table(dict(zip(types, columns, strict=True)), schema=schema))
    return Result()
