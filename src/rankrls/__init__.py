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
_HOMES = {
    "AutoRankRLS": "rankrls.models.auto_rankrls",
    "CGRankRLS": "rankrls.models.cg_rankrls",
    "GreedyRankRLS": "rankrls.models.greedy_rankrls",
    "RankBoost": "rankrls.models.rankboost",
    "RankRLS": "rankrls.models.rankrls",
    "RankRLSCV": "rankrls.models.rankrls",
    "TransductiveRankRLS": "rankrls.models.transductive",
    "TransductiveRankRLSCV": "rankrls.models.transductive",
    "CoRankingPursuitCV": "rankrls.models.co_ranking_pursuit",
    "CoRankRLS": "rankrls.models.co_rankrls",
    "CoRankingPursuit": "rankrls.models.co_ranking_pursuit",
    "ConditionalRankRLS": "rankrls.models.conditional",
    "ConditionalRankRLSCV": "rankrls.models.conditional",
    "RankSVM": "rankrls.models.ranksvm",
    "RankSVMCV": "rankrls.models.ranksvm",
    "RankingPursuit": "rankrls.models.ranking_pursuit",
    "RankingPursuitCV": "rankrls.models.ranking_pursuit",
    "SparseRankRLS": "rankrls.models.sparse_rankrls",
    "SparseRankRLSCV": "rankrls.models.sparse_rankrls",
    "InputError": "rankrls._errors",
    "InputWarning": "rankrls._errors",
    "Items": "rankrls._items",
    "fit_pairs": "rankrls.models._pipelines",
    "group_to_qid": "rankrls._queries",
    "load": "rankrls.persistence",
    "save": "rankrls.persistence",
    "survival_pairs": "rankrls.survival",
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
    from rankrls.persistence import (
        load,
        save,
    )
    from rankrls.survival import survival_pairs


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
