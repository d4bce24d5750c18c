"""The options of ``rankrls convert`` that are about shards."""

from __future__ import annotations

from dataclasses import dataclass

from rankrls.cli._declared import option, switch
from rankrls.cli._values import number

__all__ = ["ShardOptions"]


@dataclass(frozen=True)
class ShardOptions:
    """What was said of shards.

    Attributes
    ----------
    rows_per_file
        Write Parquet files of at most so many rows into the folder OUT, with whole queries in each, in little memory;
        DATA may then be a folder or a quoted pattern too.
    sort
        With --rows-per-file: bring rows of a query together that lie anywhere, on the disk.
    float32
        With --rows-per-file: write features as float32.
    """

    rows_per_file: int | None = option("N", "convert", kind=int, reads=number(1))
    sort: bool = switch("convert")
    float32: bool = switch("convert")
