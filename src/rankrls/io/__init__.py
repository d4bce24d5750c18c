"""Files to arrays and back."""

from rankrls._public import publish
from rankrls.io._atomic import atomic_write
from rankrls.io._reader import load_letor
from rankrls.io._table import Comments, LetorError, LetorTable
from rankrls.io._writer import save_letor
from rankrls.io.datasets import Dataset, open_dataset, write_shards
from rankrls.io.preferences import PairsError, PairTable, load_pairs
from rankrls.io.tables.columns import ColumnTable, TableError
from rankrls.io.tables.reading import load_table
from rankrls.io.tables.writing import save_table
from rankrls.io.votes import VoteTable, load_votes

__all__ = [
    "ColumnTable",
    "Comments",
    "Dataset",
    "LetorError",
    "LetorTable",
    "PairTable",
    "PairsError",
    "TableError",
    "VoteTable",
    "atomic_write",
    "load_letor",
    "load_pairs",
    "load_table",
    "load_votes",
    "open_dataset",
    "save_letor",
    "save_table",
    "write_shards",
]

publish(__name__, globals())
