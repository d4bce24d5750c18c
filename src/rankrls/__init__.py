"""Learning to rank by pairwise regularized least squares.

A preference graph turns ranking into least squares, ``||F (y - f(X))||^2`` with ``F'F`` the graph's Laplacian, and
neither matrix is ever formed. Model selection is then free: one factorisation gives every regularization value and the
exact cross-validated ranking of every query.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Imported on first use, so that the command line's help does not wait for scientific libraries.
_NAMES = {
    "rankrls._errors": ("InputError", "InputWarning"),
    "rankrls._items": ("Items",),
    "rankrls._queries": ("group_to_qid",),
    "rankrls.models._pipelines": ("fit_pairs",),
    "rankrls.models.auto_rankrls": ("AutoRankRLS",),
    "rankrls.models.cg_rankrls": ("CGRankRLS",),
    "rankrls.models.co_ranking_pursuit": ("CoRankingPursuit", "CoRankingPursuitCV"),
    "rankrls.models.co_rankrls": ("CoRankRLS",),
    "rankrls.models.conditional": ("ConditionalRankRLS", "ConditionalRankRLSCV"),
    "rankrls.models.greedy_rankrls": ("GreedyRankRLS",),
    "rankrls.models.rankboost": ("RankBoost",),
    "rankrls.models.ranking_pursuit": ("RankingPursuit", "RankingPursuitCV"),
    "rankrls.models.rankrls": ("RankRLS", "RankRLSCV"),
    "rankrls.models.ranksvm": ("RankSVM", "RankSVMCV"),
    "rankrls.models.sparse_rankrls": ("SparseRankRLS", "SparseRankRLSCV"),
    "rankrls.models.transductive": ("TransductiveRankRLS", "TransductiveRankRLSCV"),
    "rankrls.persistence": ("load", "save"),
    "rankrls.survival": ("survival_pairs",),
}

__all__ = [
    "AutoRankRLS",
    "CGRankRLS",
    "CoRankRLS",
    "CoRankingPursuit",
    "CoRankingPursuitCV",
    "ConditionalRankRLS",
    "ConditionalRankRLSCV",
    "GreedyRankRLS",
    "InputError",
    "InputWarning",
    "Items",
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
    "group_to_qid",
    "load",
    "save",
    "survival_pairs",
]

if TYPE_CHECKING:
    from rankrls._errors import InputError, InputWarning
    from rankrls._items import Items
    from rankrls._queries import group_to_qid
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
    from rankrls.persistence import load, save
    from rankrls.survival import survival_pairs


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
