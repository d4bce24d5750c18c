"""The row of an item, by its id or number; scores of rows from files; rankings of items as text."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import number
from rankrls._errors import InputError
from rankrls.io._rows import quoted
from rankrls.io.columns import ColumnRoles
from rankrls.io.data import ReadOptions, Rows
from rankrls.io.opened import Source, table_format
from rankrls.io.preferences import PairTable, load_pairs
from rankrls.io.tables import read_table
from rankrls.ranking import Ranking, rank_scores


def row_of(item: str, table: Rows, query: str | None = None) -> int:
    """The row of an item, in one query if that is given; items are named by their ids, or by row numbers without ids.

    Raises
    ------
    InputError
        If there is no such row, or more than one.
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

    ``note`` is told of columns that are not read.
    """
    ids: Any = table.docids
    pairs = load_pairs(path, n_items=table.n_rows, ids=ids)
    if pairs.ignored:
        known = "winner, loser, strength, weight and group"
        note(f"{path}: unused columns: {', '.join(map(repr, pairs.ignored))}. Columns with a meaning are {known}.")
    return pairs


def read_scores(path: Path, options: ReadOptions, rows: Rows) -> NDArray[np.float64]:
    """A score for each row from a file: one a line, or a table as predict writes it; "-" is standard input.

    Of a table the scores are in the column "score", and ids in columns that are called as those of the data.

    Raises
    ------
    InputError
        With the line, for what is no score; and if there are not as many as rows, or ids of both differ.
    """
    kind, both = table_format(path), list[tuple[Any, Any]]()
    if kind is not None:
        usual = {"label": "", **{role: getattr(options, role) or options.usual_names[role] for role in ("qid", "id")}}
        table = read_table(path, ColumnRoles(features=("score",), labels="ignored", usual=usual), kind)
        values, both = table.X[:, 0], [(table.qid, rows.qid), (table.ids, rows.docids)]
    else:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        lines = raw.removeprefix(b"\xef\xbb\xbf").rstrip().split(b"\n")
        found = [*map(number, lines)]
        if None in found:
            k = found.index(None)
            message = f"a line must be one finite score; got {quoted(lines[k].strip())}."
            raise InputError(message, file=str(path), line=k + 1)
        values = np.array(found, dtype=np.float64)
    known = [(mine, theirs) for mine, theirs in both if mine is not None and theirs is not None]
    if len(values) != rows.n_rows or any([*map(str, mine)] != [*map(str, theirs)] for mine, theirs in known):
        message = f"{len(values)} scores do not fit the {rows.n_rows} rows of {rows.path}."
        raise InputError(f"{message} Each row needs one, in the same order and with the same ids.", file=str(path))
    return values


def tab_lines(columns: Iterable[NDArray[Any] | None], rows: int) -> str:
    """Columns of some rows as text between tabs; one that is None is empty."""
    text = io.StringIO()
    cells = ([""] * rows if column is None else column.tolist() for column in columns)
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(zip(*cells, strict=True))
    return text.getvalue()


def trec_ranking(
    scores: NDArray[np.float64], qid: NDArray[Any] | None, docno: Sequence[str], k: int | None = None
) -> Ranking:
    """The items of each query in the order that trec_eval gives equal scores.

    It holds scores in single precision, and puts the greater document id first.
    """
    most = np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        single = np.clip(scores.astype(np.float32), -most, most).astype(np.float64)
    found = rank_scores(single, qid=qid, k=k, docno=docno)
    return replace(found, scores=scores[found.rows])


def trec_rows(ranking: Ranking, names: Sequence[str], run: str) -> str:
    """A run, ``query Q0 document rank score run`` a line; without query ids everything is query 1.

    Parameters
    ----------
    ranking : Ranking
        As :func:`trec_ranking` gives it.
    names : sequence of str
        Document ids of the ranked items, in their order.
    run : str
        Its name.

    Raises
    ------
    InputError
        If a query or a document is not named by one word.
    """
    queries = ["1"] * len(ranking) if ranking.qid is None else [str(query) for query in ranking.qid.tolist()]
    called = [str(name) for name in names]
    for k, word in chain(enumerate(called), enumerate(queries)):
        if len(word.split()) != 1:
            row = int(ranking.rows[k])
            raise InputError(f"ids in the trec format cannot contain blanks; row {row} has {word!r}.", row=row)
    columns = zip(queries, called, ranking.positions.tolist(), ranking.scores.tolist(), strict=True)
    return "".join(f"{q} Q0 {name} {place} {score!r} {run}\n" for q, name, place, score in columns)
