"""The options that are about data of other forms: a column an item, votes, shards, what is read a part at a time."""

# ruff: noqa: RUF009  (what makes a field here is dataclasses.field with metadata)

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankrls.cli._declared import option, switch
from rankrls.cli._values import number, one_or_more, separated, word


@dataclass(frozen=True)
class DataOptions:
    """What was said of items that all queries rank, of votes, of shards, and of data that are read a part at a time.

    Attributes
    ----------
    utilities
        The columns of a table in which a row is a query and ranks the same items as all others: one column an item, by
        names or patterns such as 'item_*', higher is better, empty where it is not known. For --method conditional.
    items
        Features of the items: a table with a row for each, which --item-id names as the columns of --labels are called.
        For predict, other items than those of TRAIN.
    item_id
        The column of --items that names them; "item" by default.
    hold_out
        what is held out to choose by, since predictions are for new ones: queries (default), items, or both.
    fit_intercept
        give each item a level of its own that is not penalised.
    winner
        TRAIN holds votes, with both sides in a row: the column of the winners' names or texts, or a pattern such as w_*
        for columns of features.
    loser
        The same of the losers.
    left
        Of votes with a column that says which was preferred: one side, as for --winner.
    right
        The other side.
    preferred
        Of --left and --right the one that was preferred: left or right, the column's name or what stands in it, or tie.
        --ties exclude leaves ties out.
    strength_column
        Of votes: the column that says by how much the winner should lead; 0 is a tie.
    sides
        What one column on either side holds: names, each with a rating of its own, or texts, whose words are features.
        By default names if there are few of them for the votes.
    rows_per_file
        Write Parquet files of at most so many rows into the folder OUT, with whole queries in each, in little memory;
        DATA may then be a folder or a quoted pattern too.
    sort
        With --rows-per-file: bring rows of a query together that lie anywhere, on the disk.
    float32
        With --rows-per-file: write features as float32.
    memory
        Memory for the data, as 4G. What needs more is read a part at a time; a folder or a quoted pattern such as
        'shards/*.parquet' always is.
    checkpoint
        Of data that are read a part at a time: a folder for what is finished. A fit that was killed goes on from it.
    scheduler
        Let the workers of a Dask cluster read and add up the parts: the address of its scheduler, tls:// or on this
        machine tcp://.
    insecure
        With --scheduler: allow tcp:// to other machines. Whoever reaches a scheduler can run code on its workers.
    """

    utilities: tuple[str, ...] | None = option("NAME,...", "fit cv", reads=separated, flags=("--labels",))
    items: Path | None = option("FILE", "fit cv predict", kind=Path)
    item_id: str | None = option("COLUMN", "fit cv predict")
    hold_out: str | None = option("WORD", "fit cv", reads=word("queries", "items", "both"))
    fit_intercept: bool = switch("fit cv")
    winner: Any = option("COLUMN", "fit cv", reads=one_or_more)
    loser: Any = option("COLUMN", "fit cv", reads=one_or_more)
    left: Any = option("COLUMN", "fit cv", reads=one_or_more)
    right: Any = option("COLUMN", "fit cv", reads=one_or_more)
    preferred: str | None = option("COLUMN", "fit cv")
    strength_column: str | None = option("COLUMN", "fit cv", flags=("--strength",))
    sides: str | None = option("WORD", "fit cv", reads=word("names", "texts"))
    rows_per_file: int | None = option("N", "convert", kind=int, reads=number(1))
    sort: bool = switch("convert")
    float32: bool = switch("convert")
    memory: str | None = option("SIZE", "fit predict rank evaluate compare")
    checkpoint: Path | None = option("FOLDER", "fit", kind=Path)
    scheduler: str | None = option("ADDRESS", "fit")
    insecure: bool = switch("fit")
