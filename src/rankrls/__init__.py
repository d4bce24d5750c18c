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
    "AutoRankRLS": "rankrls.models",
    "CGRankRLS": "rankrls.models",
    "GreedyRankRLS": "rankrls.models",
    "RankBoost": "rankrls.models",
    "RankRLS": "rankrls.models",
    "RankRLSCV": "rankrls.models",
    "TransductiveRankRLS": "rankrls.models",
    "TransductiveRankRLSCV": "rankrls.models",
    "CoRankingPursuitCV": "rankrls.models",
    "CoRankRLS": "rankrls.models",
    "CoRankingPursuit": "rankrls.models",
    "ConditionalRankRLS": "rankrls.models",
    "ConditionalRankRLSCV": "rankrls.models",
    "RankSVM": "rankrls.models",
    "RankSVMCV": "rankrls.models",
    "RankingPursuit": "rankrls.models",
    "RankingPursuitCV": "rankrls.models",
    "SparseRankRLS": "rankrls.models",
    "SparseRankRLSCV": "rankrls.models",
    "InputError": "rankrls._errors",
    "InputWarning": "rankrls._errors",
    "Items": "rankrls._items",
    "fit_pairs": "rankrls.models",
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
    from rankrls.models import (
        AutoRankRLS,
        CGRankRLS,
        ConditionalRankRLS,
        ConditionalRankRLSCV,
        CoRankingPursuit,
        CoRankingPursuitCV,
        CoRankRLS,
        GreedyRankRLS,
        RankBoost,
        RankingPursuit,
        RankingPursuitCV,
        RankRLS,
        RankRLSCV,
        RankSVM,
        RankSVMCV,
        SparseRankRLS,
        SparseRankRLSCV,
        TransductiveRankRLS,
        TransductiveRankRLSCV,
        fit_pairs,
    )
    from rankrls.persistence import (
        load,
        save,
    )
    from rankrls.survival import survival_pairs


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'rankrls' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
