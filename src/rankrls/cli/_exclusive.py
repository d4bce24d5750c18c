"""Options that exclude each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rankrls._errors import InputError

__all__ = ["check_together"]

_EXCLUSIVE = (
    ("verbose", "quiet", ""),
    *((name, "cv", "choose by validation data or by folds") for name in ("vali", "vali_pairs")),
    *(("pairs", name, "both say what is compared") for name in ("winner", "left", "event")),
    *(
        (name, "utilities", "a row is a query, with a column for each of its items")
        for name in ("label", "qid", "group", "everything", "ids", "pairs", "test_pairs", "winner", "left", "event")
    ),
    ("judged_pairs", "event", "both say what is compared"),
    *(("tied_labels", name, "preferences have no labels") for name in ("judged_pairs", "winner", "left", "event")),
    *(("event", name, "pairs of times are judged by the C-index") for name in ("per_query", "metrics", "metric")),
    *(("judged_pairs", name, "one judges by preferences, the other by labels") for name in ("metrics", "per_query")),
    *(  # there is no shortcut under constraints
        ("leave_pair_out", name, "it judges by the C-index of held-out pairs")
        for name in ("vali", "cv", "pairs", "winner", "left", "metric", "metrics", "tied_labels", "positive")
    ),
)
"""Two options, and why they exclude each other."""


def check_together(values: Mapping[str, Any], flag_of: Callable[[str], str]) -> None:
    """Refuse two options that exclude each other."""
    for one, other, why in _EXCLUSIVE:
        if values[one] not in (None, False) and values[other] not in (None, False):
            says = (flag_of(one), flag_of(other), why and f": {why}")
            raise InputError("{0} and {1} exclude each other{2}.", *says, parameter=one)
