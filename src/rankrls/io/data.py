"""Rows of files of any format that belong together: training data and what is judged, or a model and its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._errors import InputError
from rankrls._queries import group_to_qid
from rankrls.io._letor import letor_lines, letor_query_ids, load_letor
from rankrls.io._rows import Source, few, joined_ids
from rankrls.io.columns import ColumnRoles, find_columns, matching
from rankrls.io.files import atomic_write, has_positions, number_lines, sizes_beside
from rankrls.io.judgements import conflict_text
from rankrls.io.opened import ENDINGS, open_table, table_format
from rankrls.io.preferences import PairTable, load_pairs
from rankrls.io.rows import Rows
from rankrls.io.tables import read_columns, read_raw, read_table
from rankrls.io.writing import packed, save_letor, save_table, write_tables

_OF_TABLES = ("label", "qid", "id", "ignore", "event", "position", "impressions")


@dataclass(frozen=True)
class ReadOptions(ColumnRoles):
    """How files are read: the roles of their columns, and what the first file or a model has fixed.

    Attributes
    ----------
    features : tuple of str, optional
        Of LETOR text one word, how many.
    queries : {"required", "optional", "ignored"}
        Whether every row needs a query id; "ignored" makes one ranking of all rows.
    names : tuple of str, optional
        Features that are known by name. Of a table these columns are taken, and no others.
    n_features, zero_based, dense
        As for :func:`load_letor`.
    raw : bool
        Whether columns of tables stay as they are, for an encoder; ``names`` are then those that it looks at.
    missing : tuple of str
        Cell texts that become null in such columns of text files; by default those of ``MISSING``.
    sizes : path, optional
        A file with the number of rows of each query, for rows without query ids. By default the file beside them that
        is called the same with ``.query`` or ``.group`` behind, if there is one.
    """

    queries: Literal["required", "optional", "ignored"] = "required"
    names: tuple[str, ...] | None = None
    n_features: int | None = None
    zero_based: bool | Literal["auto"] = "auto"
    dense: bool | Literal["auto"] = "auto"
    raw: bool = False
    missing: tuple[str, ...] = ()
    sizes: Path | None = None

    def called(self, usual: Mapping[str, str | None]) -> Self:
        """The same, where columns of labels, query ids and ids have other usual names; those that are None do not."""
        return replace(self, usual={**self.usual, **{role: name for role, name in usual.items() if name is not None}})

    def like(self, table: Rows) -> Self:
        """How another file is read that has to agree with one that has been."""
        return replace(
            self,
            names=table.feature_names,
            n_features=table.n_features,
            zero_based="auto" if table.first_feature is None else table.zero_based,
            dense=isinstance(table.X, np.ndarray),
            sizes=None,
        )

    def format_of(self, path: object) -> str:
        """``letor``, ``csv``, ``parquet`` or ``arrow``."""
        return table_format(path) or "letor"

    def read(self, path: Path, note: Callable[[str], object], *, source: Any = None) -> Rows:
        """Read a file.

        Parameters
        ----------
        path : path
        note : callable
            Called with each note for the user.
        source : binary file, optional
            What is read instead, if the path is only a name.

        Raises
        ------
        InputError
            For a file that cannot be read so, with the line; and for one without query ids where they are required.
        OSError
            If the file cannot be read.
        """
        given = path if source is None else source
        format = self.format_of(path)
        if format == "letor":
            table = self._letor(path, given)
        elif self.raw:
            table = read_raw(given, self, format, self.names, self.missing)
        else:
            wanted = self if self.names is None else replace(self, features=self.names, ignore=())
            table = read_table(given, wanted, format)
        if self.queries != "ignored":
            sizes = sizes_beside(path, self.sizes, table.path, table.n_rows, table.qid is not None, note)
            if sizes is not None:
                table = replace(table, qid=group_to_qid(sizes[0]))
            self.check_queries(table)
        clicks = self.position is not None or has_positions(path)
        judged = self.labels != "ignored" and self.event is None and not clicks
        if judged and (conflict := conflict_text(table)):
            note(f"{table.path}: {conflict} rankrls convert --conflicts keeps one row of each.")
        return replace(table, qid=None) if self.queries == "ignored" else table

    def check_queries(self, table: Rows) -> None:
        """Refuse rows without query ids where they are required."""
        if table.qid is None and self.queries == "required":
            near = like_queries(table)
            what = "no line has a qid."
            remedy = "Give the sizes of the queries (group), or rank"
            if table.feature_names is not None:
                what = "there is no column 'qid'" + (f"; there is {near[0]!r}." if near else ".")
                remedy = "Name it (qid), or rank"
            message = f"{what} {remedy} all rows together (global)."
            raise InputError(message, file=table.path, parameter="qid")

    def _letor(self, path: Path, source: Any) -> Rows:
        count = self.n_features
        endings = f"tables end in {', '.join(ENDINGS)}."
        why = f"needs a table, but by its ending this file is LETOR text ({endings})"
        if self.raw:
            raise InputError(f"what is not a number {why}", file=str(path))
        if not self.names:  # else a table has been read before
            count = self.count(str(path)) if count is None else count
            for role in () if self.usual else _OF_TABLES:
                if getattr(self, role):
                    raise InputError(f"{role} {why}", parameter=role, file=str(path))
        try:
            return load_letor(source, n_features=count, zero_based=self.zero_based, dense=self.dense)
        except InputError as error:
            if error.column == "label" or (error.line is None and error.parameter is None):  # perhaps no LETOR text
                raise error.replace(message=f"{error.message} (It is read as LETOR text; {endings})") from error
            raise


def like_queries(table: Rows) -> list[str]:
    """The columns that are probably those of query ids, by their names."""
    return [name for name in table.feature_names or () if "query" in name.lower()]


def read_names(path: Path) -> list[str]:
    """Names of features from a file, one a line."""
    try:
        return [line.strip() for line in path.read_text("utf-8-sig").strip().splitlines()]
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text. It needs one feature name per line.", file=str(path)) from None


def write_rows(path: Path, table: Rows, names: Sequence[str] | None, note: Callable[[str], object]) -> None:
    """Write a table in the format of the file's name: everything that the format can hold.

    Parameters
    ----------
    path : path
    table : Rows
    names : sequence of str, optional
        Of the features, if they are not to be called as in the table.
    note : callable
        Called with a note about what the format cannot hold.

    Raises
    ------
    InputError
        For what LETOR text, or a table, cannot hold.
    """
    if table_format(path) is None:
        assert table.y is not None
        comments: Sequence[str] | None = table.comments
        if comments is None and table.docids is not None:
            comments = [f"docid = {name}" for name in table.docids]
        save_letor(path, table.X, table.y, table.qid, comments=comments, zero_based=table.zero_based)
        if table.feature_names is not None:
            names = ", ".join(table.feature_names)
            note(f"LETOR text has no names; the features 1 to {table.n_features} are {names}.")
        return
    called = {"label": table.label, "qid_name": table.qid_name, "id_name": table.id_name}
    given: Any = {key: name for key, name in called.items() if name is not None}
    names = names or table.feature_names or [f"f{name}" for name in table.feature_ids]
    ids = table.docids
    save_table(path, table.X, table.y, table.qid, ids=ids, feature_names=names, **given)
    if table.comments and ids is None:
        note(f"the comments of {table.path} are left out: they do not all name a docid.")


def stacked(scored: Rows, more: Rows) -> tuple[Any, NDArray[np.float64], NDArray[Any] | None]:
    """Features, labels and query ids of rows with labels and, behind them, of further ones without (NaN).

    Raises
    ------
    InputError
        If one file has query ids and the other has none.
    """
    assert scored.y is not None
    dense = isinstance(scored.X, np.ndarray) and isinstance(more.X, np.ndarray)
    X = np.vstack((scored.X, more.X)) if dense else sparse.csr_array(sparse.vstack((scored.X, more.X)))
    y = np.concatenate((scored.y, np.full(more.n_rows, np.nan)))
    if (scored.qid is None) != (more.qid is None):
        odd = scored if scored.qid is None else more
        message = "there are no query ids, but the other file has some. Both need them."
        raise InputError(message, file=odd.path, parameter="qid")
    if scored.qid is None or more.qid is None:
        return X, y, None
    return X, y, joined_ids([scored.qid, more.qid])


def feature_columns(words: Sequence[str], table: Rows, parameter: str) -> list[int]:
    """The columns of X that names and patterns stand for, or numbers as the file counts if it has no names.

    Raises
    ------
    InputError
        For a feature that the file does not have.
    """
    numbers = {name: k for k, name in enumerate(table.feature_ids)}
    out: list[int] = []
    for word in words:
        found = [word] if word in numbers else matching(word, [*numbers])
        if not found:
            message = f"{parameter} names feature {word!r}, which {table.path} does not have ({few([*numbers])})."
            raise InputError(message, parameter=parameter)
        out += [numbers[name] for name in found]
    return out


@dataclass(frozen=True)
class Records:
    """Rows of a file as they are, which can be written again.

    Attributes
    ----------
    qid : sequence
        Query id of each row; None if the file has none.
    ending : str
        The ending of the names of such files.
    """

    path: Path
    format: str
    qid: list[Any] | None
    n_rows: int
    ending: str
    sizes_ending: str | None = None

    def write(self, target: Path, rows: Sequence[int]) -> None:
        """Write some rows as a file of the same kind, reading it again: only blocks of it are held.

        If the sizes of the queries are in a file beside the rows, one is written too.
        """
        kept = np.zeros(self.n_rows, dtype=bool)
        kept[[*rows]] = True
        if self.format == "letor":
            with atomic_write(target) as file, packed(file, str(target)) as sink:
                sink.writelines(compress(letor_lines(self.path), kept))
        else:
            with open_table(self.path, self.format) as table:
                write_tables(target, _filtered(table.stored(), kept), self.format)
        if self.sizes_ending is not None and self.qid is not None:
            with atomic_write(f"{target}{self.sizes_ending}", "w") as file:
                file.writelines(f"{count}\n" for count in Counter(compress(self.qid, kept)).values())


def _filtered(batches: Iterable[Any], kept: NDArray[np.bool_]) -> Iterator[Any]:
    """Some of the rows of batches."""
    import pyarrow as pa

    first = 0
    for batch in batches:
        yield pa.Table.from_batches([batch.filter(pa.array(kept[first : first + batch.num_rows]))])
        first += batch.num_rows


def read_records(path: Path, options: ReadOptions, note: Callable[[str], object]) -> Records:
    """The query ids of a file's rows; ``note`` is called if they come from another file.

    Raises
    ------
    InputError
        For a file that is not of its format.
    OSError
        If it cannot be read.
    """
    kind = options.format_of(path)
    name = path.name.lower()
    ending = next((ending for ending in ENDINGS if name.removesuffix(".gz").endswith(ending)), ".txt")
    if kind == "letor":
        n_rows, qid = letor_query_ids(path)
    else:
        with open_table(path, kind) as table:
            roles = ColumnRoles(qid=options.qid, features=(), labels="ignored", usual={"label": "", "id": ""})
            found = read_columns(table, find_columns(table, roles))
            n_rows = len(found.X)
            qid = found.by_role.get("qid")
    records = Records(path, kind, None if qid is None else qid.tolist(), n_rows, ending + ".gz" * name.endswith(".gz"))
    sizes = sizes_beside(path, options.sizes, str(path), n_rows, qid is not None, note)
    if sizes is None:
        return records
    return replace(records, qid=group_to_qid(sizes[0]).tolist(), sizes_ending=sizes[1])


def row_of(item: str, table: Rows, query: str | None = None) -> int:
    """The row of an item, in one query if that is given; items are named by their ids, or by row numbers without ids.

    Raises
    ------
    InputError
        If no row has this name, or several have it.
    """
    names = [*map(str, range(table.n_rows))] if table.docids is None else table.docids
    inside = [query] * table.n_rows if query is None or table.qid is None else [*map(str, table.qid.tolist())]
    found = [row for row, of in enumerate(zip(names, inside, strict=True)) if of == (item, query)]
    if len(found) != 1:
        where = "" if query is None else f" of query {query}"
        count = f"{len(found)} rows{where} have" if found else f"no row{where} has"
        if table.docids is None:
            message = f"{count} the number {item!r}; rows have numbers from 0 to {table.n_rows - 1}."
            raise InputError(f"{message} For ids, name their column (id).", file=table.path)
        column = repr(table.id_name) if table.feature_names is not None else "'docid = ' in comments"
        message = f"{count} the id {item!r}; ids are those of {column}, such as {str(names[0])!r}."
        raise InputError(message + " Add the query (query)." * (len(found) > 1), file=table.path)
    return found[0]


def read_pairs(path: Source, table: Rows, note: Callable[[str], Any]) -> PairTable:
    """The preferences of a file between the rows of a table, named by their ids, or by row numbers without ids.

    ``note`` is called with the columns that are not read.
    """
    ids: Any = table.docids
    pairs = load_pairs(path, n_items=table.n_rows, ids=ids)
    if pairs.ignored:
        known = "winner, loser, strength, weight and group"
        note(f"{path}: unused columns: {', '.join(map(repr, pairs.ignored))}. Known columns are {known}.")
    return pairs


def read_scores(path: Path, options: ReadOptions, rows: Rows) -> NDArray[np.float64]:
    """A score for each row from a file: one a line, or a table as predict writes it; "-" is standard input.

    Of a table the scores are in the column "score", and ids in columns that are called as those of the data.

    Raises
    ------
    InputError
        With the line, for what is no score; and if there are not as many as rows, or ids of both differ.
    """
    kind = table_format(path)
    both: list[tuple[Any, Any]] = []
    if kind is not None:
        usual = {"label": "", **{role: getattr(options, role) or options.usual_names[role] for role in ("qid", "id")}}
        table = read_table(path, ColumnRoles(features=("score",), labels="ignored", usual=usual), kind)
        values: NDArray[np.float64] = table.X[:, 0]
        both = [(table.qid, rows.qid), (table.ids, rows.docids)]
    else:
        values = number_lines(path, "score of one row")
    known = [(mine, theirs) for mine, theirs in both if mine is not None and theirs is not None]
    if len(values) != rows.n_rows or any([*map(str, mine)] != [*map(str, theirs)] for mine, theirs in known):
        message = f"{len(values)} scores do not fit the {rows.n_rows} rows of {rows.path}."
        raise InputError(f"{message} Each row needs one, in the same order and with the same ids.", file=str(path))
    return values
