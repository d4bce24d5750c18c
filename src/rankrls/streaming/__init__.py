"""Fits of data that no memory holds: one answer a part, merged in one fixed tree.

A *job* says what is asked of a part (``leaf``) and how the answers of neighbouring parts become one (``merge``). An
*engine* runs the leaves, on threads, in processes or on a cluster, and knows nothing else. The tree of merges depends
on the number of parts alone, and a leaf works on one thread, so that the same parts give the same bits on every engine.
"""

from __future__ import annotations

from rankrls._comparisons import Setting
from rankrls._public import publish
from rankrls.streaming.engine import run
from rankrls.streaming.equation_sums import EquationsJob, EquationSums
from rankrls.streaming.ranked import rank
from rankrls.streaming.scoring import evaluate, predict
from rankrls.streaming.tree import Job, TreeSum, merged, run_leaf

__all__ = [
    "EquationSums",
    "EquationsJob",
    "Job",
    "Setting",
    "TreeSum",
    "evaluate",
    "merged",
    "predict",
    "rank",
    "run",
    "run_leaf",
]

publish(__name__, globals())
