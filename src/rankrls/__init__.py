"""Learning to rank by pairwise regularized least squares.

A preference graph turns ranking into least squares, ``||F (y - f(X))||^2`` with ``F'F`` the graph's Laplacian, and
neither matrix is ever formed. Model selection is then free: one factorization gives every regularization value and the
exact cross-validated ranking of every query.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Imported on first use, so that the command line's help does not wait for scientific libraries.
_NAMES = {
    "rankrls._errors": ("InputError", "InputWarning"),
    "rankrls._comparisons": ("Items",),
    "rankrls._queries": ("group_to_qid", "query_weight_to_sample_weight"),
    "rankrls.models._pipelines": ("fit_pairs",),
    "rankrls.models.auto_rankrls": ("AutoRankRLS",),
    "rankrls.models.cg_rankrls": ("CGRankRLS",),
    "rankrls.models.co_regularized": ("CoRankRLS", "CoRankingPursuit", "CoRankingPursuitCV"),
    "rankrls.models.conditional": ("ConditionalRankRLS", "ConditionalRankRLSCV"),
    "rankrls.models.greedy_rankrls": ("GreedyRankRLS",),
    "rankrls.models.rankboost": ("RankBoost",),
    "rankrls.models.ranking_pursuit": ("RankingPursuit", "RankingPursuitCV"),
    "rankrls.models.rankrls": ("RankRLS", "RankRLSCV", "SparseRankRLS", "SparseRankRLSCV"),
    "rankrls.models.ranksvm": ("RankSVM", "RankSVMCV"),
    "rankrls.models.transductive": ("TransductiveRankRLS", "TransductiveRankRLSCV"),
    "rankrls.persistence": ("load", "save"),
    "rankrls.survival": ("survival_pairs",),
}

__all__ = sorted(name for names in _NAMES.values() for name in names)

if TYPE_CHECKING:
    from rankrls._comparisons import Items as Items
    from rankrls._errors import InputError as InputError, InputWarning as InputWarning
    from rankrls._queries import (
        group_to_qid as group_to_qid,
        query_weight_to_sample_weight as query_weight_to_sample_weight,
    )
    from rankrls.models._pipelines import fit_pairs as fit_pairs
    from rankrls.models.auto_rankrls import AutoRankRLS as AutoRankRLS
    from rankrls.models.cg_rankrls import CGRankRLS as CGRankRLS
    from rankrls.models.co_regularized import (
        CoRankingPursuit as CoRankingPursuit,
        CoRankingPursuitCV as CoRankingPursuitCV,
        CoRankRLS as CoRankRLS,
    )
    from rankrls.models.conditional import (
        ConditionalRankRLS as ConditionalRankRLS,
        ConditionalRankRLSCV as ConditionalRankRLSCV,
    )
    from rankrls.models.greedy_rankrls import GreedyRankRLS as GreedyRankRLS
    from rankrls.models.rankboost import RankBoost as RankBoost
    from rankrls.models.ranking_pursuit import RankingPursuit as RankingPursuit, RankingPursuitCV as RankingPursuitCV
    from rankrls.models.rankrls import (
        RankRLS as RankRLS,
        RankRLSCV as RankRLSCV,
        SparseRankRLS as SparseRankRLS,
        SparseRankRLSCV as SparseRankRLSCV,
    )
    from rankrls.models.ranksvm import RankSVM as RankSVM, RankSVMCV as RankSVMCV
    from rankrls.models.transductive import (
        TransductiveRankRLS as TransductiveRankRLS,
        TransductiveRankRLSCV as TransductiveRankRLSCV,
    )
    from rankrls.persistence import load as load, save as save
    from rankrls.survival import survival_pairs as survival_pairs


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
