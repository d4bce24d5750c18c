"""Data larger than memory: parts of whole queries are read, worked on and forgotten, one result each.

What is done to a part is what is done in memory to all rows. The results come in the order of the parts, whatever ran
the tasks, and are added from left to right: the same bits on any executor of one kind of machine.
"""

from __future__ import annotations

from rankrls.streaming.scoring import QueryValues, evaluate, predict, query_values

__all__ = ["QueryValues", "evaluate", "predict", "query_values"]
