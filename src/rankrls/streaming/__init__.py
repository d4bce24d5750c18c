"""Data larger than memory: parts of whole queries are read and processed, one result each.

A part is processed by the functions that process all rows in memory. The results come in the order of the parts and are
added from left to right, so that they have the same bits on any executor on identical hardware.
"""

from __future__ import annotations

from rankrls.streaming.scoring import QueryValues, evaluate, predict, query_values

__all__ = ["QueryValues", "evaluate", "predict", "query_values"]
