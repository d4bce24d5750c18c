"""The estimators: a thin scikit-learn skin over problems, comparisons and the search."""

from rankrls._public import publish
from rankrls.models._pipelines import fit_pairs
from rankrls.models.auto_rankrls import AutoRankRLS
from rankrls.models.cg_rankrls import CGRankRLS
from rankrls.models.co_ranking_pursuit import CoRankingPursuit, CoRankingPursuitCV
from rankrls.models.co_rankrls import CoRankRLS
from rankrls.models.conditional import ConditionalRankRLS, ConditionalRankRLSCV
from rankrls.models.greedy_rankrls import GreedyRankRLS
from rankrls.models.rankboost import RankBoost
from rankrls.models.ranking_pursuit import RankingPursuit, RankingPursuitCV
from rankrls.models.rankrls import RankRLS, RankRLSCV
from rankrls.models.ranksvm import RankSVM, RankSVMCV
from rankrls.models.sparse_rankrls import SparseRankRLS, SparseRankRLSCV
from rankrls.models.transductive import TransductiveRankRLS, TransductiveRankRLSCV

__all__ = [
    "AutoRankRLS",
    "CGRankRLS",
    "CoRankRLS",
    "CoRankingPursuit",
    "CoRankingPursuitCV",
    "ConditionalRankRLS",
    "ConditionalRankRLSCV",
    "GreedyRankRLS",
    "RankBoost",
    "RankRLS",
    "RankRLSCV",
    "RankSVM",
    "RankSVMCV",
    "RankingPursuit",
    "RankingPursuitCV",
    "SparseRankRLS",
    "SparseRankRLSCV",
    "TransductiveRankRLS",
    "TransductiveRankRLSCV",
    "fit_pairs",
]

publish("rankrls", globals())
