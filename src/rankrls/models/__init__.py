"""The estimators: a thin scikit-learn skin over the problems."""

from rankrls.models._pipeline_pairs import fit_pairs
from rankrls.models.cg_rankrls import CGRankRLS
from rankrls.models.co_ranking_pursuit import CoRankingPursuit
from rankrls.models.rankboost import RankBoost
from rankrls.models.ranking_pursuit import RankingPursuit
from rankrls.models.ranking_pursuit_cv import RankingPursuitCV
from rankrls.models.rankrls import RankRLS
from rankrls.models.rankrls_cv import RankRLSCV
from rankrls.models.ranksvm import RankSVM
from rankrls.models.ranksvm_cv import RankSVMCV
from rankrls.models.sparse_rankrls import SparseRankRLS
from rankrls.models.sparse_rankrls_cv import SparseRankRLSCV
from rankrls.models.transductive import TransductiveRankRLS

__all__ = [
    "CGRankRLS",
    "CoRankingPursuit",
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
    "fit_pairs",
]
