"""Data larger than memory: parts of whole queries are read and processed, with one result each.

A part is processed by the same functions as all rows in memory. Results are added in the order of the parts, from left
to right, so they have the same bits on any executor on identical hardware.
"""

from __future__ import annotations

from rankrls.streaming.scoring import QueryValues, evaluate, predict, query_values

__all__ = ["QueryValues", "evaluate", "predict", "query_values"]
