"""Data of any size to Parquet files with whole queries in each row group."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

from rankrls._checks import check_count
from rankrls._errors import InputError
from rankrls.io._source import open_bytes, pieces
from rankrls.io._together import replaced_folder
from rankrls.io.datasets.dataset import Address, Dataset
from rankrls.io.datasets.files import File, Paths, expanded_paths, one_format
from rankrls.io.datasets.grouping import Appearance, grouped
from rankrls.io.datasets.index import begun, cut, together
from rankrls.io.datasets.layout import Layout
from rankrls.io.datasets.opening import begin, opened
from rankrls.io.tables.columns import TableError, Wanted

_GROUP_BYTES = 1 << 24
_MOST_COLUMNS = 20_000
_COPIED_ROWS = 1 << 16
_NAME = re.compile(r"part-[0-9]{5,}\.parquet")


def write_shards(
    path: Paths,
    folder: str | os.PathLike[str],
    *,
    rows_per_file: int,
    sort: bool = False,
    float32: bool = False,
    label: str | None = None,
    qid: str | None = None,
    id: str | None = None,
    features: str | Sequence[str] | None = None,
    ignore: str | Sequence[str] = (),
    feature_names: Sequence[str] | None = None,
    format: Literal["auto", "letor", "csv", "parquet", "arrow"] = "auto",
) -> dict[str, int]:
    r"""Write LETOR text, CSV, Parquet or Arrow files of any size as Parquet files that :func:`open_dataset` reads fast.

    Each row group holds whole queries, as far as 16 MiB of features hold them, and a query lies in one file. The folder
    appears as a whole when everything is written and on disk, or not at all.

    Parameters
    ----------
    path : path or sequence of paths
        As for :func:`open_dataset`; text may be packed with gzip.
    folder : path
        New, empty, or written by this function before: its files are then replaced together.
    rows_per_file : int
        Rows of a file, at most, unless one query has more.
    sort : bool, default=False
        Bring rows of a query together that lie anywhere. Queries come in the order in which their first rows come, and
        rows of a query stay in their order. Without, ids that come back are an error.
    float32 : bool, default=False
        Write features as float32, rounded. Features that are float32 already stay so in any case.
    label, qid, id, features, ignore
        As for :func:`open_dataset`. Every other column has to hold numbers, and is written.
    feature_names : sequence of str, optional
        Names to write; by default those of the files, of LETOR text f1, f2, ...
    format : {"auto", "letor", "csv", "parquet", "arrow"}, default="auto"

    Returns
    -------
    dict
        How many ``files``, ``rows`` and ``queries`` were written, and of how many ``features``.

    Raises
    ------
    InputError
        As :func:`open_dataset` and its parts raise it; for a folder that holds something else or that is read; for a
        value that is too large for float32; for more than 20,000 features. Nothing is left behind.
    OSError
        If a file cannot be read or written, the disk being full for one. The folder keeps its old content.

    Notes
    -----
    O(cells). Memory: a few row groups, and 8 bytes a query. ``sort`` writes the rows once more to the disk, beside the
    folder, in up to 256 pieces, and holds one of these at a time; it keeps some 200 bytes a query. Packed text is
    unpacked to the disk first.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankrls.io import open_dataset, write_shards
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, shards = os.path.join(folder, "a.txt"), os.path.join(folder, "shards")
    ...     with open(text, "w") as file:
    ...         _ = file.write("2 qid:7 1:0.5 2:1\n1 qid:8 1:0.25 2:3\n0 qid:7 1:2 2:4\n")
    ...     print(write_shards(text, shards, rows_per_file=2, sort=True))
    ...     data = open_dataset(shards)
    ...     print([part.X.tolist() for part in data])
    {'files': 2, 'rows': 3, 'queries': 2, 'features': 2}
    [[[0.5, 1.0], [2.0, 4.0], [0.25, 3.0]]]
    """
    wanted = Wanted.checked(label, qid, id, features, ignore, "optional")
    check_count("rows_per_file", rows_per_file)
    given = expanded_paths(path)
    _check_apart(given, Path(folder))
    with (
        replaced_folder(Path(folder), _NAME.fullmatch) as (new, work),
        _plain_copies(given, format, work) as (paths, kind),
    ):
        files = tuple(File.of(file) for file in paths)
        opening = begin(files, wanted, kind)
        size = max(_GROUP_BYTES // (8 * max(opening.n_features, 1)), 1)
        limit = min(size, int(rows_per_file))
        outlines = lambda: opening.outlines(files)
        appearance = Appearance() if sort else None
        seen = (
            together(outlines, files, opening.qid_name) if appearance is None else appearance.noted(begun(outlines()))
        )
        found = cut(seen, limit)
        data = opened(files, opening, found)
        if data.n_features > _MOST_COLUMNS:
            problem, remedy = (
                "{0} features are more columns than Parquet is good for.",
                "Open the text itself in parts.",
            )
            raise InputError(problem, data.n_features, remedy=remedy, file=files[0].name, parameter="features")
        layout = Layout.of(data, found, feature_names, single=float32)
        blocks = _in_order(data, layout) if appearance is None else grouped(data, appearance, layout, work, limit)
        queries = data.n_queries if appearance is None else len(appearance.names)
        with _Writer(new, layout, int(rows_per_file)) as writer:
            for block in blocks:
                writer.write(*block)
    return {"files": writer.files, "rows": data.n_rows, "queries": queries, "features": data.n_features}


def _check_apart(files: Sequence[str], folder: Path) -> None:
    """Refuse to replace a folder that is read."""
    for file in files:
        if Path(os.path.realpath(folder)) in Path(os.path.realpath(file)).parents:
            problem = "the folder would be replaced, and {0} is read from it:"
            raise InputError(problem, file, remedy="Name another folder.", file=str(folder), parameter="folder")


def _in_order(data: Dataset, layout: Layout) -> Iterator[tuple[Any, int]]:
    """The row groups of data whose queries lie together, as :class:`_Writer` takes them."""
    from rankrls._compiled.threads import stream_threads

    long = Counter[int]()  # rows of the queries that come in pieces
    for address in data.parts:
        if address.piece is not None:
            long[address.piece.query] += address.rows

    def table(address: Address) -> tuple[Any, int]:
        part = data.read(address, names=True)
        X = layout.checked(part.X, part.first_row)
        names = part.query_names
        assert names is not None  # they were asked for
        size = address.rows if part.piece is None else 0 if part.piece.index else long[part.piece.query]
        return layout.table(X, part.y, names, part.query - part.query[0], part.ids), size

    return stream_threads(table, data.parts)


class _Writer:
    """Files of at most so many rows, unless a query has more."""

    def __init__(self, folder: Path, layout: Layout, rows_per_file: int) -> None:
        self.files = 0
        self._folder, self._layout, self._most = folder, layout, rows_per_file
        self._file: Any = None
        self._writer: Any = None
        self._rows = 0
        self._disk = ThreadPoolExecutor(1)  # which is waited for while the next file is written
        self._synced: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self._close(whole=raised[0] is None)
            if raised[0] is None and self._synced is not None:
                self._synced.result()
        finally:
            self._disk.shutdown()

    def write(self, table: Any, together: int) -> None:
        """A row group, and how many rows from its first on have to be in one file; 0 behind the first of a query."""
        from pyarrow import parquet

        if self._writer is None or (together and self._rows + together > self._most):
            self._close(whole=True)
            self._file = open(self._folder / f"part-{self.files:05d}.parquet", "wb")  # noqa: SIM115
            self._writer = parquet.ParquetWriter(self._file, table.schema, **self._layout.written(table))
            self.files, self._rows = self.files + 1, 0
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._rows += table.num_rows

    def _close(self, *, whole: bool) -> None:
        if self._writer is None:
            return
        with ExitStack() as held:
            held.enter_context(self._file)
            if whole:
                self._writer.close()
                if self._synced is not None:
                    self._synced.result()
                held.pop_all()
                self._synced = self._disk.submit(_sync, self._file)
            self._writer = None  # which closes itself, as long as its file is open


def _sync(file: BinaryIO) -> None:
    with file:
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _plain_copies(files: Sequence[str], format: str, folder: Path) -> Iterator[tuple[list[str], str]]:
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
            for batch in table.batches(_COPIED_ROWS):
                writer.write_batch(batch)
    return name
