"""Options: how they are written, grouped and read."""

from __future__ import annotations

import csv
import json
import math
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import click

GROUPS = ("data", "model", "choice", "output")
F = TypeVar("F", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)


class Options(SimpleNamespace):
    """The options of one command. Options that only other commands have are None."""

    @property
    def votes(self) -> bool:
        """Whether the files hold votes, with both sides in a row."""
        return any(value is not None for value in (self.left, self.right, self.preferred))

    @property
    def by_pairs(self) -> bool:
        """Whether the model is fitted on preferences, from votes, pairs of rows or censored times."""
        return self.pairs is not None or self.votes or self.event is not None

    @property
    def pair_measure(self) -> str:
        """What the share of preferences in the right order is called."""
        return "pair_accuracy" if self.event is None else "C-index"

    @property
    def roles(self) -> dict[str, Any]:
        """Which columns hold what."""
        return {name: getattr(self, name) for name in ("label", "qid", "id", "features")} | {
            "ignore": self.ignore or ()
        }

    def reading(self, **how: Any) -> Any:
        """How files of rows are read."""
        from rankrls.io.data import ReadOptions

        sizes = None if self.group is None or self.votes else Path(self.group)
        return ReadOptions(**self.roles, event=self.event, utilities=self.labels, sizes=sizes, **how)


class GroupedOption(click.Option):
    """An option that belongs to a group of the help."""

    def __init__(self, *args: Any, group: str = "data", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


class Command(click.Command):
    """A command whose help lists its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups that the command has."""
        for group in GROUPS:
            found = [p for p in self.params if isinstance(p, GroupedOption) and p.group == group]
            rows = [row for p in found if (row := p.get_help_record(ctx))]
            if rows:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(rows)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options that more than one command has."""

    def add(function: F) -> F:
        for each in reversed(options):
            function = each(function)
        return function

    return add


class Words(click.ParamType):
    """Words between commas as a tuple; a word with a comma stands in double quotes, as in CSV."""

    name = "name,..."

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, ...]:
        """The different words, in their order."""
        words = [word.strip() for word in next(csv.reader([value], skipinitialspace=True), [])]
        if not words or not all(words):
            self.fail(f"{value!r} has no name between two commas.", param, ctx)
        return tuple(dict.fromkeys(words))


class Grid(click.ParamType):
    """``auto``, ``a,b,c``, or ``lo:hi:n`` for n values in geometric steps."""

    name = "grid"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The values, which the estimator checks."""
        if value == "auto":
            return value
        try:
            if ":" not in value:
                return [float(word) for word in value.split(",")]
            low, high, n = value.split(":")
            steps = int(n)
            if 0 < float(low) < float(high) < math.inf and steps > 1:
                ratio = math.log(float(high) / float(low)) / (steps - 1)
                return [*(float(low) * math.exp(ratio * k) for k in range(steps - 1)), float(high)]
        except ValueError:
            pass
        self.fail(f"{value!r} is not auto, a list a,b,c, or lo:hi:n with 0 < lo < hi and n of at least 2.", param, ctx)


class Assignment(click.ParamType):
    """``name=value``, where the value is a literal of JSON or Python, several between commas, or a word."""

    name = "name=value"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, Any]:
        """The name and the value."""
        name, sign, text = value.partition("=")
        if not sign or not name.strip():
            self.fail(f"{value!r} is not name=value.", param, ctx)
        return name.strip(), literal(text.strip())


def literal(text: str) -> Any:
    """A value of JSON or Python; a tuple of several between commas; anything else is text."""
    for read in (json.loads, literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    if "," in text and text[0] not in "[({\"'":
        return tuple(literal(part.strip()) for part in text.split(","))
    return text


def one_or_several(values: Sequence[Any] | None) -> Any:
    """A value if there is one, and a tuple of several."""
    return values if values is None else values[0] if len(values) == 1 else tuple(values)


def given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What is not None."""
    return {name: value for name, value in parameters.items() if value is not None}


_TYPES: dict[str, Any] = {
    "FILE": FILE,
    "NAME,...": Words(),
    "GRID": Grid(),
    "NAME=VALUE": Assignment(),
    "N": click.IntRange(1),
    "K": int,
    "WORD": None,
}


def option(group: str, metavar: str, flag: str, help: str, *names: str, **attributes: Any) -> Callable[[F], F]:
    """An option of a group, whose metavar says its type; a switch if it has none."""
    how: dict[str, Any] = {"is_flag": True} if not metavar else {"metavar": metavar, "type": _TYPES.get(metavar)}
    return click.option(flag, *names, cls=GroupedOption, group=group, help=help, **how | attributes)


COLUMNS = together(
    option("data", "COLUMN", "--label", "Column of the labels of a table; 'label' by default."),
    option("data", "COLUMN", "--qid", "Column of the query ids; 'qid' by default."),
    option("data", "COLUMN", "--id", "Column of the items' ids; 'docid' by default."),
    option("data", "NAME,...", "--features", "Feature columns, names or patterns (price*). LETOR text: how many."),
    option("data", "NAME,...", "--ignore", "Columns that are not features, names or patterns."),
)
SIZES = option("data", "FILE", "--group", "Number of rows of each query, one per line, if rows have no qid.", type=str)
GLOBAL = option("data", "", "--global", "One ranking of all rows; query ids are not used.", "everything")
JSON = option("output", "", "--json", "Print one JSON object.", "as_json")
THREADS = option("output", "N", "--threads", "Threads; all processors by default.")
QUIET = option("output", "", "--quiet", "No progress and no notes; fit prints nothing.", "-q")
CONVENTION = option(
    "choice", "TOOL", "--convention", "letor (default), trec, sklearn, lightgbm, xgboost or ranklib.", default="letor"
)
OUTPUT = option("output", "FILE", "--output", "File to write; - is standard output.", "-o", type=str, default="-")
EVENT = option("data", "COLUMN", "--event", "Labels are times; 1 where the event was observed, else 0.")
MEASURES = option("choice", "NAME,...", "--metrics", "Measures; by default those that suit the labels.")
ITEMS = option("data", "FILE", "--items", "Conditional ranking: features of the items.")
PAIRS = option("data", "FILE", "--pairs", "Preferences between rows: winner, loser, strength, weight, group.")
TARGET = option("data", "K", "--target", "Target (from 0) of a model of several.")
NAMES = option("model", "FILE", "--names", "Feature names, one per line, in column order.")
IDS = option("data", "WORD", "--ids", "row, docid or comment.", type=click.Choice(["row", "docid", "comment"]))
FORCE = option("output", "", "--force", "Write into a folder that is not empty.")
METHODS = {
    "rankrls": "RankRLSCV",
    "auto": "AutoRankRLS",
    "cg": "CGRankRLS",
    "sparse": "SparseRankRLSCV",
    "pursuit": "RankingPursuitCV",
    "greedy": "GreedyRankRLS",
    "transductive": "TransductiveRankRLSCV",
    "co-rankrls": "CoRankRLS",
    "co-pursuit": "CoRankingPursuitCV",
    "conditional": "ConditionalRankRLSCV",
    "ranksvm": "RankSVMCV",
    "rankboost": "RankBoost",
}
SCALES = ["none", "minmax", "standard", "minmax-all", "standard-all"]
LEARNING = together(
    option("data", "FILE", "--vali", "Choose by these data; by default by held-out queries."),
    option("data", "FILE", "--test", "Evaluate the model on these data."),
    option("data", "FILE", "--unlabelled", "More rows, without labels, for methods that use them."),
    PAIRS,
    option("data", "NAME,...", "--left", "Votes: the column, or the features (l_*), of one side."),
    option("data", "NAME,...", "--right", "Votes: the other side."),
    option("data", "COLUMN", "--preferred", "Votes: the column that says which side was preferred, or tie."),
    COLUMNS,
    option("data", "FILE|COLUMN", "--group", "Sizes of queries; of votes, what is held out together."),
    EVENT,
    GLOBAL,
    option("data", "NAME,...", "--labels", "Conditional ranking: a column of labels for each item (item_*)."),
    ITEMS,
    option("data", "SIZE", "--memory", "Memory for the rows of Parquet shards, such as 4G."),
    option(
        "data", "WORD", "--columns", "auto: decide by its cells what a column is.", type=click.Choice(["auto", "named"])
    ),
    option("data", "NAME,...", "--categorical", "Columns of categories."),
    option("data", "NAME,...", "--dates", "Columns of dates."),
    option("data", "NAME,...", "--text", "Columns of texts."),
    option("model", "NAME", "--method", f"{', '.join(METHODS)}.", type=click.Choice([*METHODS]), default="rankrls"),
    option("model", "NAME,...", "--kernel", "linear (default), rbf, polynomial, ..., or several."),
    option("model", "GRID", "--alphas", "Regularization: auto, a,b,c, or lo:hi:n."),
    option(
        "model",
        "WORD",
        "--scale",
        "In each query minmax, standard; over all rows minmax-all, standard-all.",
        type=click.Choice(SCALES),
    ),
    option(
        "model",
        "NAME=VALUE",
        "--set",
        "Any parameter of the estimator or TableEncoder; repeatable.",
        "parameters",
        multiple=True,
    ),
    option("choice", "NAME,...", "--metric", "Choose by the first measure (by default disagreement), print all."),
    option("choice", "K", "--cv", "K folds of queries, or leave_pair_out; leave-query-out by default.", type=str),
    option("choice", "", "--leave-pair-out", "The same as --cv leave_pair_out.", hidden=True),
    CONVENTION,
    JSON,
    THREADS,
    QUIET,
)
