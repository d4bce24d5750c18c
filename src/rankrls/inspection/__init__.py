"""Reading a model: what it ranks first, why, how sure it is, what it would ask next, and whether its data are sound."""

from rankrls._public import publish
from rankrls.inspection.asking import Questions, pairs_to_ask
from rankrls.inspection.doubts import DoubtfulFeatures, doubtful_features
from rankrls.inspection.explanation import Explanation, PairExplanation, explain
from rankrls.inspection.ranked import rank_items
from rankrls.inspection.uncertainty import Posterior, pair_posterior, posterior
from rankrls.ranking import Ranking, borda_scores, rank_positions, rank_scores

__all__ = [
    "DoubtfulFeatures",
    "Explanation",
    "PairExplanation",
    "Posterior",
    "Questions",
    "Ranking",
    "borda_scores",
    "doubtful_features",
    "explain",
    "pair_posterior",
    "pairs_to_ask",
    "posterior",
    "rank_items",
    "rank_positions",
    "rank_scores",
]

publish(__name__, globals())
