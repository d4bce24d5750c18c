"""Measures of a ranking's quality, per query and averaged, in the conventions of the tools that people compare with."""

from rankrls._public import publish
from rankrls.metrics._evaluate import evaluate
from rankrls.metrics._functions import (
    average_precision,
    disagreement_error,
    kendall_tau,
    ndcg,
    pair_accuracy,
    precision,
    reciprocal_rank,
)
from rankrls.metrics._measure import Measure, RankingMeasure
from rankrls.metrics._preferences import preference_accuracy
from rankrls.metrics._resolve import resolve_measure
from rankrls.metrics._scorer import RankingScorer, make_ranking_scorer

__all__ = [
    "Measure",
    "RankingMeasure",
    "RankingScorer",
    "average_precision",
    "disagreement_error",
    "evaluate",
    "kendall_tau",
    "make_ranking_scorer",
    "ndcg",
    "pair_accuracy",
    "precision",
    "preference_accuracy",
    "reciprocal_rank",
    "resolve_measure",
]

publish(__name__, globals())
