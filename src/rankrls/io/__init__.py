"""Files to arrays and back."""

from rankrls.io._atomic import atomic_write
from rankrls.io._pairs import PairsError, PairTable, load_pairs
from rankrls.io._reader import load_letor
from rankrls.io._table import Comments, LetorError, LetorTable
from rankrls.io._writer import save_letor

__all__ = [
    "Comments",
    "LetorError",
    "LetorTable",
    "PairTable",
    "PairsError",
    "atomic_write",
    "load_letor",
    "load_pairs",
    "save_letor",
]
