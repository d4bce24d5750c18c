"""Files to arrays and back."""

from rankrls._public import publish
from rankrls.io._atomic import atomic_write
from rankrls.io._columns import ColumnTable, TableError
from rankrls.io._pairs import PairsError, PairTable, load_pairs
from rankrls.io._reader import load_letor
from rankrls.io._table import Comments, LetorError, LetorTable
from rankrls.io._table_writer import save_table
from rankrls.io._tables import load_table
from rankrls.io._writer import save_letor

__all__ = [
    "ColumnTable",
    "Comments",
    "LetorError",
    "LetorTable",
    "PairTable",
    "PairsError",
    "TableError",
    "atomic_write",
    "load_letor",
    "load_pairs",
    "load_table",
    "save_letor",
    "save_table",
]

publish(__name__, globals())
