"""Inspection of a model: its ranking, explanations, uncertainty, and the soundness of its data."""

from rankrls.inspection.explanation import Explanation, PairExplanation, explain
from rankrls.inspection.leaderboards import Leaderboard, leaderboard
from rankrls.inspection.suspicious import SuspiciousFeatures, suspicious_features
from rankrls.inspection.uncertainty import Posterior, pair_posterior, posterior
from rankrls.models._pipelines import selected_features
from rankrls.ranking import Ranking, rank_positions, rank_scores

__all__ = [
    "Explanation",
    "Leaderboard",
    "PairExplanation",
    "Posterior",
    "Ranking",
    "SuspiciousFeatures",
    "explain",
    "leaderboard",
    "pair_posterior",
    "posterior",
    "rank_positions",
    "rank_scores",
    "selected_features",
    "suspicious_features",
]
