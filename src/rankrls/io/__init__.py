"""Conversion of files to arrays and back."""

from rankrls.io.dataset import Dataset, open_dataset, write_shards
from rankrls.io.files import atomic_write
from rankrls.io.preferences import PairTable, load_pairs, load_votes
from rankrls.io.reading import load_letor, load_table
from rankrls.io.rows import Rows, resolve_conflicts
from rankrls.io.trec import load_qrels, load_run
from rankrls.io.writing import save_letor, save_table

__all__ = [
    "Dataset",
    "PairTable",
    "Rows",
    "atomic_write",
    "load_letor",
    "load_pairs",
    "load_qrels",
    "load_run",
    "load_table",
    "load_votes",
    "open_dataset",
    "resolve_conflicts",
    "save_letor",
    "save_table",
    "write_shards",
]
