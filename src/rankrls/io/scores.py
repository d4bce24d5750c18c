"""Scores from files, and the rows they are of."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cell_text import number
from rankrls._errors import InputError
from rankrls.io._rows import quoted
from rankrls.io.data import ReadOptions, Rows
from rankrls.io.tables.columns import ColumnRoles
from rankrls.io.tables.opened import table_format
from rankrls.io.tables.reading import read_table


@dataclass(frozen=True, eq=False)
class Scores:
    """A file of scores: where it lies, a score for each row, and the query ids and ids that stand beside them."""

    path: str
    values: NDArray[np.float64]
    qid: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None

    def of_rows(self, table: Rows) -> NDArray[np.float64]:
        """A score for each row of the data.

        If both have ids, scores are matched by query id and id, whatever their order. Otherwise they are taken in their
        order, and query ids that both have must be the same.

        Raises
        ------
        InputError
            If a row has not exactly one score, or a score not exactly one row.
        """
        named = self.ids is not None and table.docids is not None
        columns = [(self.qid, table.qid), (self.ids, table.docids)] if named else [(self.qid, table.qid)]
        both = [(here, there) for here, there in columns if here is not None and there is not None]
        if not named:
            both.append((np.arange(len(self.values)), np.arange(table.n_rows)))
        mine, theirs = ([*zip(*(map(str, c.tolist()) for c in keys), strict=True)] for keys in zip(*both, strict=True))
        if mine == theirs:
            return self.values
        scores, rows = Counter(mine), Counter(theirs)
        odd = next((key for key in (*rows, *scores) if not scores[key] == rows[key] == 1), None)
        if odd is not None:
            item = ("item" if named else "row") + f" {odd[-1]!r}" + f" of query {odd[0]!r}" * (len(odd) > 1)
            message = f"{len(mine)} scores do not fit the {len(theirs)} rows of {table.path}: {item} has {scores[odd]} "
            message += f"scores and {rows[odd]} rows. Each row needs one score, with the same ids."
            raise InputError(message, file=self.path)
        place = {key: k for k, key in enumerate(mine)}
        return self.values[[place[key] for key in theirs]]


def read_scores(path: Path, options: ReadOptions) -> Scores:
    """Read a file of scores: one a line, or a table as predict writes it; "-" is standard input.

    Of a table the scores are in the column "score", and ids in columns that are called as those of the data.

    Raises
    ------
    InputError
        With the line, for what is no score.
    """
    kind = table_format(path)
    if kind is not None:
        usual = {"label": "", **{role: getattr(options, role) or options.usual_names[role] for role in ("qid", "id")}}
        table = read_table(path, ColumnRoles(features=("score",), labels="ignored", usual=usual), kind)
        return Scores(str(path), table.X[:, 0], table.qid, table.ids)
    raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    lines = raw.removeprefix(b"\xef\xbb\xbf").rstrip().split(b"\n")
    values = [*map(number, lines)]
    if None in values:
        k = values.index(None)
        message = f"a score is one finite number a line; got {quoted(lines[k].strip())}."
        raise InputError(message, file=str(path), line=k + 1)
    return Scores(str(path), np.array(values, dtype=np.float64))
