"""Files that cannot be read a part at a time, as copies that can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rankrls._errors import InputError
from rankrls.io._source import open_bytes, pieces
from rankrls.io.datasets.files import one_format
from rankrls.io.tables.columns import TableError

__all__ = ["plain_copies"]

_ROWS = 1 << 16


@contextmanager
def plain_copies(files: Sequence[str], format: str, folder: Path) -> Iterator[tuple[list[str], str]]:
    """The files, packed ones unpacked and Arrow files as Parquet, and their format.

    Errors about a copy name the file that it was made of.
    """
    kind = one_format(files) if format == "auto" else format
    copies = {_copied(file, kind, str(folder / str(k))): file for k, file in enumerate(files)}
    try:
        yield [*copies], "parquet" if kind == "arrow" else kind
    except InputError as error:
        if error.file in copies:
            raise error.located(file=copies[error.file]) from None
        raise


def _copied(file: str, kind: str, name: str) -> str:
    """The file itself, or its copy."""
    if kind == "arrow":
        return _as_parquet(file, name + ".parquet")
    with open(file, "rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    if not packed:
        return file
    with open_bytes(file, TableError) as (_, _, source, _), open(name, "wb") as out:
        out.writelines(pieces(source))
    return name


def _as_parquet(file: str, name: str) -> str:
    from pyarrow import parquet

    from rankrls.io.tables.arrow import ArrowTable

    with open(file, "rb") as stream:
        table = ArrowTable(file, stream, "arrow", "", TableError)
        with parquet.ParquetWriter(name, table.schema) as writer:
            for batch in table.batches(_ROWS):
                writer.write_batch(batch)
    return name
