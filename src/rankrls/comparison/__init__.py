"""Comparison of rankings, with tests of whether a difference could be due to chance."""

from rankrls.comparison.report import ChangedQuery, MeasureReport, RankingReport, compare_rankings, compare_runs
from rankrls.comparison.significance import (
    Comparison,
    Interval,
    PairComparison,
    PairedTest,
    bootstrap_interval,
    compare_per_query,
    holm,
    paired_randomization,
    paired_wilcoxon,
)

__all__ = [
    "ChangedQuery",
    "Comparison",
    "Interval",
    "MeasureReport",
    "PairComparison",
    "PairedTest",
    "RankingReport",
    "bootstrap_interval",
    "compare_per_query",
    "compare_rankings",
    "compare_runs",
    "holm",
    "paired_randomization",
    "paired_wilcoxon",
]
