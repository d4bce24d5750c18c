"""Options that exclude each other, and options that need another one."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rankrls._errors import InputError

__all__ = ["TOLD", "check_together"]

TOLD = (
    *("columns", "categorical", "dates", "text", "query_text", "text_features", "impute", "date_format"),
    "min_frequency",
)
"""The options that say something of columns; they are parameters of :class:`~rankrls.preprocessing.TableEncoder`."""
_OF_ROWS = ("label", "qid", "id", "ids", "features", "ignore", "input_format", *TOLD)
_EXCLUSIVE = (
    ("verbose", "quiet", ""),
    *((name, "cv", "choose by validation data or by folds") for name in ("vali", "vali_pairs")),
    *(("pairs", name, "both say what is compared") for name in ("winner", "left", "event")),
    *(("event", name, "both say what is compared") for name in ("winner", "left")),
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
    *(
        (name, of, "preferences are all that is compared")
        for name in ("vali_pairs", "test_pairs", "metrics")
        for of in ("winner", "left", "event")
    ),
    *((name, of, "votes have no columns of rows") for name in _OF_ROWS for of in ("winner", "left")),
    *(
        (name, of, "it is about labels, and preferences have none")
        for name in ("balance", "regression_weight")
        for of in ("pairs", "winner", "left", "event")
    ),
    *(("ties", of, "it is about labels, and preferences have none") for of in ("pairs", "event")),
)
"""Two options, and why they exclude each other."""
_NEEDS = (
    ("vali_pairs", "pairs", "a model of labels is chosen by {vali} or {cv}"),
    ("item_id", "items", "it names a column of that table"),
    ("insecure", "scheduler", "it is about its address"),
    *((name, "rows_per_file", "it is about Parquet shards") for name in ("sort", "float32")),
)
"""An option, another one that it needs, and why."""


def check_together(told: Collection[str], flag_of: Callable[[str], str]) -> None:
    """Refuse options that exclude each other, and one without another that it needs."""
    for one, other, why in _EXCLUSIVE:
        if one in told and other in told:
            says = (flag_of(one), flag_of(other), why and f": {why}")
            raise InputError("{0} and {1} exclude each other{2}.", *says, parameter=one)
    for one, other, why in _NEEDS:
        if one in told and other not in told:
            raise InputError(f"{{{one}}} needs {{{other}}}: {why}.", parameter=one)
