"""Arrays to tables with named columns."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankrls._cell_text import number
from rankrls._errors import InputError
from rankrls.io._atomic import atomic_write
from rankrls.io._rows import BLANKS, coded, is_utf8, objects
from rankrls.io._writer import as_features, check_shape, packed
from rankrls.io.tables.formats import table_format
from rankrls.io.tables.text import DELIMITERS

_BLOCK_CELLS = 1 << 18
_UNUSUAL = re.compile(rf'["\r\n{re.escape("".join(DELIMITERS))}]|^[ \t\v\f\ufeff]|[ \t\v\f]$|^$')


def save_table(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    *,
    ids: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    label: str = "label",
    qid_name: str = "qid",
    id_name: str = "docid",
) -> None:
    """Write learning-to-rank data as a table that :func:`load_table` reads back: CSV, TSV, Parquet or Arrow.

    The columns are the label, the query id, the item's id, as far as they are given, and then the features. The file
    is written under another name and renamed when it is complete and on disk.

    Parameters
    ----------
    path : path
        Ends in ``.csv``, ``.tsv``, either with ``.gz``, ``.parquet``, ``.arrow`` or ``.feather``.
    X : array-like or sparse array of shape (m, n)
        Features; of a sparse one the zeros are written too.
    y : array-like of shape (m,), optional
        Labels; NaN is an empty cell.
    qid, ids : array-like of shape (m,), optional
        Whole numbers or strings: any text of UTF-8 that is not empty and holds no NUL.
    feature_names : sequence of n str, optional
        By default f1, f2, ...
    label, qid_name, id_name : str
        Names of those columns.

    Raises
    ------
    ValueError
        If the path's ending is none of these, lengths differ, a feature is NaN or infinite, an id is empty, holds a NUL
        or is not UTF-8, or two columns have the same name. Nothing is left behind.
    OSError
        If the file cannot be written. The target keeps its old content.

    Notes
    -----
    O(m n). Numbers of text are the shortest decimals that are the same float64. Memory is a block of rows. Strings all
    of which look like whole numbers are read back from text as such.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankrls.io import save_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.csv")
    ...     save_table(path, [[0.5, 1e-9], [0, 4]], [2, 0], qid=["a b", "c"], feature_names=["bm25", "age"])
    ...     with open(path) as file:
    ...         print(file.read(), end="")
    label,qid,bm25,age
    2,a b,0.5,1e-9
    0,c,0,4
    """
    features = as_features(X)
    rows, n = features.shape
    names = [f"f{k}" for k in range(1, n + 1)] if feature_names is None else [str(name) for name in feature_names]
    if len(names) != n:
        raise InputError(f"feature_names has {len(names)} names, but X has {n} columns.", parameter="feature_names")
    leading: list[tuple[str, NDArray[Any]]] = []
    for what, name, values in (("y", label, y), ("qid", qid_name, qid), ("ids", id_name, ids)):
        if values is None:
            continue
        column = np.asarray(values, dtype=np.float64) if what == "y" else _ids(what, values)
        check_shape(what, column, rows, "value")
        leading.append((name, column))

    def block(part: slice) -> list[NDArray[Any]]:
        values = features[part] if isinstance(features, np.ndarray) else features[part].toarray()
        finite = np.isfinite(values)
        if not finite.all():
            row, column = (int(v) for v in np.argwhere(~finite)[0])
            at, name = part.start + row, names[column]
            message = f"X is {values[row, column]} in row {at}, column {name!r}: features must be finite."
            raise InputError(message, parameter="X", row=at, column=name)
        return [*(column[part] for _, column in leading), *values.T]

    everything = [*(name for name, _ in leading), *names]
    blocks = map(block, _steps(rows, len(everything)))
    write_blocks(path, everything, blocks)


def write_blocks(
    path: str | os.PathLike[str],
    names: Sequence[str],
    blocks: Iterable[Sequence[NDArray[Any]]],
) -> None:
    """Write columns that come some rows at a time as the table that the path's ending says.

    Parameters
    ----------
    path : path
    names : sequence of str
    blocks : iterable
        The columns of the first rows, of the next ones, and so on.
    """
    path = os.fspath(path)
    check_names(names)
    kind = table_format(path)
    if kind is None or (kind != "csv" and path.lower().endswith(".gz")):
        message = "the name of a table ends in .csv, .tsv (either with .gz), .parquet, .arrow or .feather."
        raise InputError(message, file=path)
    if kind == "csv" and all(number(name.encode()) is not None for name in names):
        message = "the names of the columns are all numbers, which text does not keep. Write Parquet instead."
        raise InputError(message, file=path)
    opened, first = _text(path, names) if kind == "csv" else _typed(path, names, kind), 0
    with opened as sink:
        for block in blocks:
            for part in _steps(len(block[0]), len(names)):
                sink([_column(name, column[part], first) for name, column in zip(names, block, strict=True)])
                first += part.stop - part.start


def _steps(rows: int, columns: int) -> Iterator[slice]:
    """Rows a few at a time; none at all are one step."""
    step = max(_BLOCK_CELLS // columns, 1)
    return (slice(start, min(start + step, rows)) for start in range(0, max(rows, 1), step))


def check_names(names: Sequence[str]) -> None:
    """Refuse names of columns that are there twice, or that no file can hold."""
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"two columns are called {name!r}; names must differ.", column=name)
        if not is_utf8(name):
            raise InputError(f"the name of column {name!r} is not UTF-8 text.", column=name)


Sink = Callable[[list[Any]], object]


@contextmanager
def _text(path: str, names: Sequence[str]) -> Iterator[Sink]:
    """Delimited text, quoted where it has to be, in the shortest decimals."""
    import pyarrow as pa
    import pyarrow.compute as pc

    delimiter = "," if path.lower().removesuffix(".gz").endswith(".csv") else "\t"

    def cells(column: Any) -> Any:
        if pa.types.is_floating(column.type):
            column = column.cast(pa.float64())
        if not pa.types.is_dictionary(column.type):
            return pc.fill_null(column.cast(pa.large_string()), "")
        texts = column.dictionary.to_pylist()
        return pa.array([*map(cell, map(_unlike_blanks, texts))], pa.large_string()).take(column.indices)

    with atomic_write(path) as file, packed(file, path) as sink:
        sink.write((delimiter.join(cell(_unlike_blanks(name)) for name in names) + "\n").encode())

        def write(columns: list[Any]) -> None:
            lines = pc.binary_join_element_wise(*map(cells, columns), pa.scalar(delimiter, pa.large_string()))
            sink.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())

        yield write


@contextmanager
def _typed(path: str, names: Sequence[str], kind: str) -> Iterator[Sink]:
    """A format that has types; its schema is that of the first block."""
    import pyarrow as pa

    opened: list[Any] = []
    with atomic_write(path) as file:

        def write(columns: list[Any]) -> None:
            plain = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in columns]
            table = pa.Table.from_arrays(plain, names=[*names])
            if not opened:
                opened.append(_writer(file, table.schema, kind))
            opened[0].write_table(table)

        try:
            yield write
        finally:
            for one in opened:
                one.close()


def write_arrow(path: str | os.PathLike[str], table: Any, kind: str) -> None:
    """Write a table of pyarrow as a file of some format; as delimited text its cells are texts."""
    import pyarrow.compute as pc

    if kind == "csv":
        with _text(os.fspath(path), table.column_names) as write:
            for batch in table.to_batches():
                write([pc.ascii_trim_whitespace(column).dictionary_encode() for column in batch.columns])
        return
    with atomic_write(path) as file, _writer(file, table.schema, kind) as writer:
        writer.write_table(table)


def _writer(file: Any, schema: Any, kind: str) -> Any:
    from pyarrow import ipc, parquet

    return parquet.ParquetWriter(file, schema) if kind == "parquet" else ipc.new_file(file, schema)


def _column(name: str, values: NDArray[Any], start: int) -> Any:
    """Some rows of a column for pyarrow; ids that are texts as codes of their different ones."""
    import pyarrow as pa

    if values.dtype.kind not in "UTO":
        return pa.array(np.ascontiguousarray(values), from_pandas=True)
    texts, codes = coded(map(str, values.tolist()))
    for code, text in enumerate(texts):
        if "\0" in text or not is_utf8(text):
            row = start + int(np.argmax(codes == code))
            message = f"the text {text!r} in row {row}, column {name!r}, holds a NUL, or is not UTF-8."
            raise InputError(message, row=row, column=name)
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(texts, pa.string()))


def _ids(what: str, values: Any) -> NDArray[Any]:
    """Ids as they are: an array of fixed width would cut off what it takes for padding."""
    items = values if isinstance(values, list | tuple) else np.asarray(values).tolist()
    if not any(isinstance(item, str) for item in items):
        return np.asarray(items)
    texts = objects(map(str, items))
    if "" in items:
        row = items.index("")
        raise InputError(f"{what} is empty in row {row}: every row needs an id.", parameter=what, row=row)
    return texts


def _unlike_blanks(text: str) -> str:
    """Refuse a text that would be read back as another one."""
    if text != text.strip(BLANKS):
        message = f"{text!r} begins or ends with a blank, which text does not keep. Write Parquet instead."
        raise InputError(message)
    return text


def cell(text: str) -> str:
    """A text as a cell: in quotes if it would be read otherwise without."""
    return '"' + text.replace('"', '""') + '"' if _UNUSUAL.search(text) else text
