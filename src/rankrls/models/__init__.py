"""The estimators: a thin scikit-learn skin over the solvers."""

from rankrls.models.rankrls import RankRLS
from rankrls.models.rankrls_cv import RankRLSCV

__all__ = ["RankRLS", "RankRLSCV"]
