"""Options: their syntax, groups and values."""

from __future__ import annotations

import csv
import json
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import click

ENGINES = ("solr", "elasticsearch", "opensearch", "elasticsearch-query", "onnx", "sql", "json")
"""Formats of ``rankrls export``, written by the functions ``to_...`` of :mod:`rankrls.export`."""
GROUPS = ("data", "model", "choice", "output")
F = TypeVar("F", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)


class Options(SimpleNamespace):
    """The options of one command. Options that only other commands have are None."""

    def given(self, *names: str) -> dict[str, Any]:
        """Values of the named options that were given."""
        known = vars(self)
        return {name: known[name] for name in names if known[name] is not None and known[name] is not False}

    @property
    def votes(self) -> bool:
        """Whether the files contain votes, with both sides in a row."""
        return bool(self.given("left", "right", "preferred"))

    @property
    def by_pairs(self) -> bool:
        """Whether the model is fitted on preferences, from votes, pairs of rows or censored times."""
        return self.votes or bool(self.given("pairs", "event"))

    @property
    def of_items(self) -> bool:
        """Whether all items form one ranking, evaluated by its pairs."""
        one = self.given("event", "all_rows") or self.cv == "leave_pair_out"
        return bool(one) and self.pairs is None and not self.votes

    @property
    def measures(self) -> tuple[str, ...]:
        """The measure that selects the model, and others to print."""
        return self.metric or ("pair_accuracy" if self.by_pairs or self.of_items else "disagreement",)

    @property
    def tool(self) -> str:
        """The convention of the measures."""
        return self.convention or ("letor" if self.qrels is None else "trec")

    def called(self, measure: str) -> str:
        """Name of a measure: the share of ordered pairs of one ranking is the C-index."""
        return "C-index" if measure == "pair_accuracy" and self.of_items else measure

    @property
    def roles(self) -> dict[str, Any]:
        """Columns named by options, by their roles."""
        return self.given("label", "qid", "id", "features", "ignore")

    def reading(self, *, queries: Any = "optional", labels: Any = "ignored", **how: Any) -> Any:
        """Options for reading files of rows; by default as a model needs them."""
        from rankrls.io.reading import ReadOptions

        sizes = None if self.votes else self.group
        if sizes is not None and not Path(sizes).exists():
            from rankrls._errors import InputError

            problem = f"There is no file {sizes} of query sizes. To name a column of query ids, use --qid."
            raise InputError(problem, parameter="group")
        more = self.given("event", "position", "impressions")
        return ReadOptions(**self.roles, **more, sizes=sizes, queries=queries, labels=labels, **how)


class GroupedOption(click.Option):
    """An option that belongs to a group of the help."""

    def __init__(self, *args: Any, group: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.group = group


def names(text: str) -> tuple[str, ...]:
    """The different words between commas; a word with a comma is in double quotes, as in CSV."""
    words = [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [])]
    if not words or not all(words):
        raise click.BadParameter(f"{text!r} has no name between two commas.")
    return tuple(dict.fromkeys(words))


def option_text(words: Iterable[str]) -> str:
    """Words as the text that :func:`names` reads."""
    return ",".join(f'"{word}"' if "," in word else word for word in words)


def grid(text: str) -> Any:
    """``auto``, ``a,b,c``, or ``lo:hi:n`` for n values in geometric steps; the estimator checks the values."""
    try:
        if ":" not in text:
            return text if text == "auto" else [float(word) for word in text.split(",")]
        import numpy as np

        low, high, n = text.split(":")
        return np.geomspace(float(low), float(high), int(n)).tolist()
    except ValueError:
        problem = f"{text!r} is not auto, a list a,b,c, or lo:hi:n with n values between positive lo and hi."
        raise click.BadParameter(problem) from None


def folds(text: str) -> int | str:
    """A number of folds, or ``leave_pair_out``; the estimator checks the number."""
    if text != "leave_pair_out" and not text.isdecimal():
        raise click.BadParameter(f"{text!r} is neither a number of folds nor leave_pair_out.")
    return int(text) if text.isdecimal() else text


def assignment(text: str) -> tuple[str, Any]:
    """``name=value``, where the value is a literal of JSON or Python, several between commas, or a word."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise click.BadParameter(f"{text!r} is not name=value.")
    return name.strip(), literal(value.strip())


def literal(text: str) -> Any:
    """A value of JSON or Python; a tuple of several between commas; anything else is text."""
    for read in (json.loads, literal_eval):
        with suppress(ValueError, SyntaxError):
            return read(text)
    if "," in text and text[0] not in "[({\"'":
        return tuple(literal(part.strip()) for part in text.split(","))
    return text


def flag(name: str) -> str:
    """The option for a parameter of the commands."""
    return "--global" if name == "all_rows" else f"--{name.replace('_', '-')}"


def given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are not None."""
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
    """An option of a group: a switch if its metavar is empty, a choice if it is a list of words."""
    how: dict[str, Any] = {"metavar": metavar, "type": _TYPES.get(str(metavar))} if metavar else {"is_flag": True}
    if isinstance(metavar, list):
        how = {"metavar": "WORD", "type": click.Choice(metavar)}
        help = f"{help} One of {', '.join(metavar)}."
    return click.option(flag, *names, cls=GroupedOption, group=group, help=help, **how | attributes)


def several(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Options that more than one command has, as one decorator."""

    def add(function: F) -> F:
        for each in reversed(options):
            function = each(function)
        return function

    return add


data, model, choice, output = (partial(option, group) for group in GROUPS)
QUERIES = several(
    data("COLUMN", "--qid", "Column of the query ids; 'qid' by default."),
    data(
        "FILE|COLUMN",
        "--group",
        "File with the number of rows of each query, if rows have no query ids. Votes: column of groups to hold out.",
    ),
)
COLUMNS = several(
    data("COLUMN", "--label", "Column of the labels, where higher is better; 'label' by default."),
    data("COLUMN", "--id", "Column of the items' ids; 'docid' by default."),
    data("NAME,...", "--features", "Feature columns, by names or patterns such as price*. LETOR text: their number."),
    data("NAME,...", "--ignore", "Columns that are not features, by names or patterns."),
    QUERIES,
)
MODEL_AND_DATA = several(click.argument("model", type=FILE), click.argument("data", type=FILE), COLUMNS)
GLOBAL = data("", "--global", "Rank all rows together, without query ids.", "all_rows")
JSON = output("", "--json", "Print one JSON object.", "as_json")
THREADS = GroupedOption(
    ["--threads"], group="output", metavar="N", type=click.IntRange(1), help="Threads; all processors by default."
)
QUIET = GroupedOption(
    ["-q", "--quiet"], group="output", is_flag=True, help="Print no progress and no notes; fit and split print nothing."
)
CONVENTION = choice(
    "TOOL",
    "--convention",
    "Convention of the measures: letor (default), trec (default with --qrels), sklearn, lightgbm, xgboost, ranklib or "
    "catboost.",
)
QRELS = data("FILE", "--qrels", "TREC judgements; the other files are then TREC runs.")
OUTPUT = output("FILE", "--output", "File to write; - is standard output.", "-o", type=str, default="-")
EVENT = data("COLUMN", "--event", "Column with 1 if the event was observed, 0 if censored. Labels are then times.")
MEASURES = several(choice("NAME,...", "--metrics", "Measures; by default those that suit the labels."), CONVENTION)
PAIRS = data(
    "FILE", "--pairs", "Table of preferences between rows: winner, loser and optionally strength, weight, group."
)
TARGET = data("K", "--target", "Number of the target, from 0, if the model has several.")
NAMES = model("FILE", "--names", "Text file with the feature names, one per line, in the order of the columns.")
FORCE = output("", "--force", "Replace a folder of files that this command wrote.")
SIDES = several(
    data("COLUMN", "--left", "Votes: column of one side, a name or a text."),
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
"""The learning methods of ``rankrls fit``, and their estimators."""
UNLABELLED = ("transductive", "co-rankrls", "co-pursuit")
"""Methods that use rows without labels."""
SCALES = ["none", "minmax", "standard", "minmax-all", "standard-all", "log-all"]
LEARNING = several(
    data("FILE", "--vali", "Validation data that select the model; held-out queries do by default."),
    data("FILE", "--test", "Test data to evaluate the model on."),
    data("FILE", "--unlabelled", f"Rows without labels, used by the methods {', '.join(UNLABELLED)}."),
    PAIRS,
    SIDES,
    data("COLUMN", "--preferred", "Votes: column of the winner: its name or text, left, right, a, b or tie."),
    COLUMNS,
    EVENT,
    data("COLUMN", "--position", "Column of the position where a row was shown. Labels are then clicks."),
    data("COLUMN", "--impressions", "Column of how often a row was shown; once by default."),
    GLOBAL,
    data(
        ["auto", "named"],
        "--columns",
        "How to use columns that no option names: as their cells suggest, or as numbers.",
    ),
    data("NAME,...", "--categorical", "Columns of categories."),
    data("NAME,...", "--dates", "Columns of dates."),
    data("NAME,...", "--text", "Columns of texts."),
    model([*METHODS], "--method", "Learning method.", default="rankrls"),
    model(
        "NAME,...",
        "--kernel",
        "Kernel, or several to choose from: linear, rbf, laplacian, polynomial, sigmoid. Linear by default.",
    ),
    model("GRID", "--alphas", "Regularization: auto, a,b,c, or lo:hi:n for n geometric steps; auto by default."),
    model("DEVICE", "--device", "Device on which torch computes, such as cuda or cpu; without it numpy does."),
    model(SCALES, "--scale", "Scaling of the features, within each query or (-all) over all rows.", default="none"),
    model(
        "NAME=VALUE",
        "--set",
        "Value of any other parameter of the estimator or TableEncoder; may be given several times.",
        "parameters",
        multiple=True,
    ),
    choice(
        "NAME,...",
        "--metric",
        "Measures to print; the first selects the model. By default disagreement; pair_accuracy for preferences; the "
        "C-index for one ranking.",
    ),
    choice(
        ["items", "votes", "groups"],
        "--new",
        "What the model will meet and is held out, of preferences. By default groups, if any; votes, if items are "
        "names; otherwise items.",
    ),
    choice("K", "--cv", "Number of folds of queries, or leave_pair_out; leave-query-out by default.", type=folds),
    CONVENTION,
    JSON,
)
