"""Data sets in files that memory need not hold: opened, read a part at a time, and written as shards."""

from rankrls.io.datasets.dataset import Address, Dataset, Part, Piece, Span
from rankrls.io.datasets.opening import open_dataset

__all__ = ["Address", "Dataset", "Part", "Piece", "Span", "open_dataset"]
