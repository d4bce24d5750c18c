"""Comparing rankings: is one better than another over queries, or was it luck?"""

from rankrls.comparison.per_query import Comparison, PairComparison, compare_per_query
from rankrls.comparison.significance import (
    Interval,
    PairedTest,
    bootstrap_interval,
    holm,
    paired_randomization,
    paired_wilcoxon,
)

__all__ = [
    "Comparison",
    "Interval",
    "PairComparison",
    "PairedTest",
    "bootstrap_interval",
    "compare_per_query",
    "holm",
    "paired_randomization",
    "paired_wilcoxon",
]
