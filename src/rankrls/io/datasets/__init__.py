"""Data sets in files that memory need not hold: opened, read a part at a time, and written as shards."""

from rankrls.io.datasets.dataset import Address, Dataset, Part, Piece, Span
from rankrls.io.datasets.opening import open_dataset
from rankrls.io.datasets.shards import write_shards

__all__ = ["Address", "Dataset", "Part", "Piece", "Span", "open_dataset", "write_shards"]
