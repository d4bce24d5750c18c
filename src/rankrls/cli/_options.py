"""Options: how they are written, grouped and read."""

from __future__ import annotations

import csv
import json
import math
from ast import literal_eval
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import click

ENGINES = ("solr", "elasticsearch", "opensearch", "elasticsearch-query", "onnx", "sql", "json")
"""What ``rankrls export`` writes, by the functions ``to_...`` of :mod:`rankrls.export`."""
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
    def of_items(self) -> bool:
        """Whether what is ordered are the items of one ranking, and pairs of them are what counts."""
        preferences = self.pairs is not None or self.votes
        return not preferences and bool(self.event or self.everything or self.cv == "leave_pair_out")

    @property
    def measures(self) -> tuple[str, ...]:
        """The measure to choose by, and others to print."""
        return self.metric or ("pair_accuracy" if self.by_pairs or self.of_items else "disagreement",)

    @property
    def tool(self) -> str:
        """The convention of the measures."""
        return self.convention or ("letor" if self.qrels is None else "trec")

    def called(self, measure: str) -> str:
        """What a measure is called: the share of ordered pairs of one ranking is the C-index."""
        return "C-index" if measure == "pair_accuracy" and self.of_items else measure

    @property
    def roles(self) -> dict[str, Any]:
        """Which columns hold what."""
        roles = {name: getattr(self, name) for name in ("label", "qid", "id", "features")}
        return roles | {"ignore": self.ignore or ()}

    def reading(self, *, queries: Any = "optional", labels: Any = "ignored", **how: Any) -> Any:
        """How files of rows are read; by default as a model needs them."""
        from rankrls.io.data import ReadOptions

        sizes = None if self.votes else self.group
        if sizes is not None and not Path(sizes).exists():
            from rankrls._errors import InputError

            problem = f"There is no file {sizes} of query sizes. To name a column of query ids, use --qid."
            raise InputError(problem, parameter="group")
        shown = {name: getattr(self, name) for name in ("event", "position", "impressions")}
        return ReadOptions(**self.roles, **shown, sizes=sizes, queries=queries, labels=labels, **how)


class GroupedOption(click.Option):
    """An option that belongs to a group of the help."""

    def __init__(self, *args: Any, group: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


def names(text: str) -> tuple[str, ...]:
    """The different words between commas; a word with a comma stands in double quotes, as in CSV."""
    words = [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [])]
    if not words or not all(words):
        raise click.BadParameter(f"{text!r} has no name between two commas.")
    return tuple(dict.fromkeys(words))


def grid(text: str) -> Any:
    """``auto``, ``a,b,c``, or ``lo:hi:n`` for n values in geometric steps; the estimator checks the values."""
    try:
        if ":" not in text:
            return text if text == "auto" else [float(word) for word in text.split(",")]
        low, high, n = text.split(":")
        if 0 < float(low) < float(high) < math.inf and int(n) > 1:
            import numpy as np

            return np.geomspace(float(low), float(high), int(n)).tolist()
    except ValueError:
        pass
    raise click.BadParameter(f"{text!r} is not auto, a list a,b,c, or lo:hi:n with 0 < lo < hi and n of at least 2.")


def assignment(text: str) -> tuple[str, Any]:
    """``name=value``, where the value is a literal of JSON or Python, several between commas, or a word."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise click.BadParameter(f"{text!r} is not name=value.")
    return name.strip(), literal(value.strip())


def literal(text: str) -> Any:
    """A value of JSON or Python; a tuple of several between commas; anything else is text."""
    for read in (json.loads, literal_eval):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return read(text)
    if "," in text and text[0] not in "[({\"'":
        return tuple(literal(part.strip()) for part in text.split(","))
    return text


def given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What is not None."""
    return {name: value for name, value in parameters.items() if value is not None}


_TYPES: dict[str, Any] = {
    "FILE": FILE,
    "FILE|COLUMN": FILE,
    "NUMBER|FILE": FILE,
    "NAME,...": names,
    "GRID": grid,
    "NAME=VALUE": assignment,
    "N": click.IntRange(1),
    "K": int,
}


def option(group: str, metavar: Any, flag: str, help: str, *names: str, **attributes: Any) -> Callable[[F], F]:
    """An option of a group: a switch, or with a value whose metavar says its type, or one of a list of words."""
    how: dict[str, Any] = {"metavar": metavar, "type": _TYPES.get(str(metavar))} if metavar else {"is_flag": True}
    if isinstance(metavar, list):
        how = {"metavar": "WORD", "type": click.Choice(metavar)}
    return click.option(flag, *names, cls=GroupedOption, group=group, help=help, **how | attributes)


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options that more than one command has."""

    def add(function: F) -> F:
        for each in reversed(options):
            function = each(function)
        return function

    return add


data, model, choice, output = (partial(option, group) for group in GROUPS)
_GROUP = "File of query sizes, if rows have no query ids. Votes: column of the groups to hold out together."
QUERIES = together(
    data("COLUMN", "--qid", "Column of the query ids; 'qid' by default."),
    data("FILE|COLUMN", "--group", _GROUP),
)
COLUMNS = together(
    data("COLUMN", "--label", "Column of the labels of a table; 'label' by default."),
    data("COLUMN", "--id", "Column of the items' ids; 'docid' by default."),
    data("NAME,...", "--features", "Feature columns, names or patterns (price*). LETOR text: number of features."),
    data("NAME,...", "--ignore", "Columns that are not features, names or patterns."),
    QUERIES,
)
MODEL_AND_DATA = together(click.argument("model", type=FILE), click.argument("data", type=FILE), COLUMNS)
GLOBAL = data("", "--global", "One ranking of all rows; query ids are not used.", "everything")
JSON = output("", "--json", "Print one JSON object.", "as_json")
THREADS = GroupedOption(
    ["--threads"], group="output", metavar="N", type=click.IntRange(1), help="Threads; all processors by default."
)
QUIET = GroupedOption(
    ["-q", "--quiet"], group="output", is_flag=True, help="No progress and no notes; fit and split print nothing."
)
CONVENTION = choice(
    "TOOL",
    "--convention",
    "Convention: letor (default; with --qrels trec), trec, sklearn, lightgbm, xgboost, ranklib or catboost.",
)
QRELS = data("FILE", "--qrels", "TREC judgements; the other files are TREC runs.")
OUTPUT = output("FILE", "--output", "File to write; - is standard output.", "-o", type=str, default="-")
EVENT = data("COLUMN", "--event", "Column with 1 if the event was observed, else 0; labels are times.")
MEASURES = together(choice("NAME,...", "--metrics", "Measures; by default those that suit the labels."), CONVENTION)
PAIRS = data("FILE", "--pairs", "Preferences between rows: winner, loser, strength, weight, group.")
TARGET = data("K", "--target", "Number of the target, from 0, if the model has several.")
NAMES = model("FILE", "--names", "Feature names, one per line, in column order.")
FORCE = output("", "--force", "Replace a folder of files that this command wrote.")
SIDES = together(
    data("COLUMN", "--left", "Votes: column of one side."),
    data("COLUMN", "--right", "Votes: column of the other side."),
)
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
    "ranksvm": "RankSVMCV",
    "rankboost": "RankBoost",
}
SCALES = ["none", "minmax", "standard", "minmax-all", "standard-all", "log-all"]
_SCALING = "minmax and standard scale within each query, minmax-all, standard-all and log-all over all rows."
LEARNING = together(
    data("FILE", "--vali", "Validation data that select the model; by default held-out queries do."),
    data("FILE", "--test", "Evaluate the model on these data."),
    data("FILE", "--unlabelled", "Rows without labels, for methods that use them."),
    PAIRS,
    SIDES,
    data("COLUMN", "--preferred", "Votes: column of the preferred side, or tie."),
    COLUMNS,
    EVENT,
    data("COLUMN", "--position", "Column of the position where a row was shown; labels are clicks."),
    data("COLUMN", "--impressions", "Column of how often a row was shown; once by default."),
    GLOBAL,
    data(
        ["auto", "named"],
        "--columns",
        "auto detects what each column is; by default columns are numbers, unless named.",
    ),
    data("NAME,...", "--categorical", "Columns of categories."),
    data("NAME,...", "--dates", "Columns of dates."),
    data("NAME,...", "--text", "Columns of texts."),
    model([*METHODS], "--method", f"{', '.join(METHODS)}.", default="rankrls"),
    model("NAME,...", "--kernel", "Kernel, or several to choose from; linear by default. Any other name lists them."),
    model("GRID", "--alphas", "Regularization: auto, a,b,c, or lo:hi:n."),
    model("DEVICE", "--device", "Device for torch: cuda, cpu, ...; by default numpy is used."),
    model(SCALES, "--scale", _SCALING, default="none"),
    model("NAME=VALUE", "--set", "Any parameter of the estimator or TableEncoder.", "parameters", multiple=True),
    choice(
        "NAME,...",
        "--metric",
        "Measures to print; the first selects the model (default: disagreement, or C-index for one ranking).",
    ),
    choice(["items", "votes", "groups"], "--new", "Preferences: what the model will meet, and is held out."),
    choice("K", "--cv", "K folds of queries, or leave_pair_out; leave-query-out by default.", type=str),
    CONVENTION,
    JSON,
)
