"""Options that exclude each other, and options that need another one."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

from rankrls._errors import InputError

TOLD = (
    *("columns", "categorical", "dates", "text", "query_text", "text_features", "impute", "date_format"),
    "min_frequency",
)
"""The options that say something of columns; they are parameters of :class:`~rankrls.preprocessing.TableEncoder`."""
_OF_ROWS = " ".join(("label", "qid", "id", "ids", "features", "ignore", "input_format", *TOLD))
_EXCLUSIVE = (
    ("verbose", "quiet", ""),
    ("vali vali_pairs", "cv", "choose by validation data or by folds"),
    ("pairs event judged_pairs", "winner left event", "both say what is compared"),
    (
        "label qid group everything ids pairs test_pairs winner left event",
        "utilities",
        "a row is a query, with a column for each of its items",
    ),
    ("tied_labels", "judged_pairs winner left event", "preferences have no labels"),
    ("event", "per_query metrics metric", "pairs of times are judged by the C-index"),
    ("judged_pairs", "metrics per_query", "one judges by preferences, the other by labels"),
    (  # there is no shortcut under constraints
        "leave_pair_out",
        "vali cv pairs winner left metric metrics tied_labels positive",
        "it judges by the C-index of held-out pairs",
    ),
    ("vali_pairs test_pairs metrics", "winner left event", "preferences are all that is compared"),
    (_OF_ROWS, "winner left", "votes have no columns of rows"),
    ("balance regression_weight", "pairs winner left event", "it is about labels, and preferences have none"),
    ("ties", "pairs event", "it is about labels, and preferences have none"),
)
"""Options, others that none of them goes with, and why."""
_NEEDS = (
    ("vali_pairs", "pairs", "a model of labels is chosen by {vali} or {cv}"),
    ("item_id", "items", "it names a column of that table"),
    ("insecure", "scheduler", "it is about its address"),
    *((name, "rows_per_file", "it is about Parquet shards") for name in ("sort", "float32")),
)
"""An option, another one that it needs, and why."""


def check_together(told: Collection[str]) -> None:
    """Refuse options that exclude each other, and one without another that it needs."""
    for ones, others, why in _EXCLUSIVE:
        for one, other in product(ones.split(), others.split()):
            if one in told and other in told and one != other:
                problem = f"{{{one}}} and {{{other}}} exclude each other{why and ': '}{why}."
                raise InputError(problem, parameter=one)
    for one, other, why in _NEEDS:
        if one in told and other not in told:
            raise InputError(f"{{{one}}} needs {{{other}}}: {why}.", parameter=one)
