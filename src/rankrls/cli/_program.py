"""The commands and their options, and how errors and warnings are printed."""

from __future__ import annotations

import csv
import gc
import json
import os
import re
import shlex
import sys
import traceback
import warnings
from ast import literal_eval
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from io import TextIOWrapper, UnsupportedOperation
from pathlib import Path
from typing import Any

import click

from rankrls import __version__
from rankrls._errors import Located, MissingPackageError, format_setting
from rankrls.cli._options import METHODS, UNLABELLED, Options, option_text
from rankrls.cli._report import Report, flush_output, print_line

ENGINES = ("solr", "elasticsearch", "opensearch", "elasticsearch-query", "onnx", "sql", "json")
"""Formats of ``rankrls export``, written by the functions ``to_...`` of :mod:`rankrls.export`."""
GROUPS = ("data", "model", "choice", "output")
DEBUG = "RANKRLS_DEBUG"
FILE = click.Path(path_type=Path)
_IGNORED = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
_OUTPUTS = ("save", "html", "output", "out")
_FLAGS = {
    "n_features": "--features",
    "feature_names": "--names",
    "X_val": "--vali",
    "scoring": "--metric",
    "alpha": "--alphas",
    "groups": "--group",
    "item_id": "--id",
}
"""Options for parameters of other names."""


def names(text: str) -> tuple[str, ...]:
    """The different words between commas; a word with a comma is in double quotes, as in CSV."""
    words = [word.strip() for word in next(csv.reader([text], skipinitialspace=True), [])]
    if not words or not all(words):
        raise click.BadParameter(f"{text!r} has no name between two commas.")
    return tuple(dict.fromkeys(words))


def grid(text: str) -> Any:
    """``auto``, ``a,b,c``, or ``lo:hi:n`` for n values in geometric steps; the estimator checks the values."""
    try:
        if ":" not in text:
            return text if text == "auto" else [float(word) for word in text.split(",")]
        import numpy as np

        low, high, n = text.split(":")
        return np.geomspace(float(low), float(high), int(n)).tolist()
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not auto, a list a,b,c, or lo:hi:n with n values between positive lo and hi."
        ) from None


def assignment(text: str) -> tuple[str, Any]:
    """``name=value``, where the value is a literal of JSON or Python, several between commas, or a word."""
    name, equals, value = text.partition("=")
    if not equals:
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


class GroupedOption(click.Option):
    """An option of a group of the help: a switch if its metavar is empty, a choice if it is a list of words."""

    def __init__(
        self, group: str, metavar: str | list[str], flag: str, help: str, *names: str, **attributes: Any
    ) -> None:
        how: dict[str, Any] = {"is_flag": True}
        if isinstance(metavar, list):
            how = {"metavar": "WORD", "type": click.Choice(metavar)}
            help = f"{help} One of {', '.join(metavar)}."
        elif metavar:
            how = {"metavar": metavar, "type": _TYPES.get(metavar)}
        super().__init__([flag, *names], help=help, **how | attributes)
        self.group = group
        self.flag = flag


data, model, choice, output = (partial(GroupedOption, group) for group in GROUPS)
file = partial(click.Argument, type=FILE)
QUERIES = [
    data("COLUMN", "--qid", "Column of the query ids; 'qid' by default."),
    data(
        "FILE|COLUMN",
        "--group",
        "File with the number of rows of each query, if rows have no query ids. Votes: column of groups to hold out.",
    ),
]
COLUMNS = [
    data("COLUMN", "--label", "Column of the labels, where higher is better; 'label' by default."),
    data("COLUMN", "--id", "Column of the items' ids; 'docid' by default."),
    data("NAME,...", "--features", "Feature columns, by names or patterns such as price*. LETOR text: their number."),
    data("NAME,...", "--ignore", "Columns that are not features, by names or patterns."),
    *QUERIES,
]
MODEL_AND_DATA = [file(["model"]), file(["data"]), *COLUMNS]
GLOBAL = data("", "--global", "Rank all rows together, without query ids.", "all_rows")
JSON = output("", "--json", "Print one JSON object.", "as_json")
THREADS = output("N", "--threads", "Threads; all processors by default.")
QUIET = output("", "--quiet", "Print no progress and no notes; fit and split print nothing.", "-q")
CONVENTION = choice(
    "TOOL",
    "--convention",
    "Convention of the measures: letor (default), trec (default with --qrels), sklearn, lightgbm, xgboost, ranklib or "
    "catboost.",
)
QRELS = data("FILE", "--qrels", "TREC judgements; the other files are then TREC runs.")
OUTPUT = output("FILE", "--output", "File to write; - is standard output.", "-o", type=str, default="-")
EVENT = data("COLUMN", "--event", "Column with 1 if the event was observed, 0 if censored. Labels are then times.")
MEASURES = [choice("NAME,...", "--metrics", "Measures; by default those that suit the labels."), CONVENTION]
PAIRS = data(
    "FILE", "--pairs", "Table of preferences between rows: winner, loser and optionally strength, weight, group."
)
TARGET = data("K", "--target", "Number of the target, from 0, if the model has several.")
NAMES = model("FILE", "--names", "Text file with the feature names, one per line, in the order of the columns.")
FORCE = output("", "--force", "Replace a folder of files that this command wrote.")
SIDES = [
    data("COLUMN", "--left", "Votes: column of one side, a name or a text."),
    data("COLUMN", "--right", "Votes: column of the other side."),
]
SCALES = ["none", "minmax", "standard", "minmax-all", "standard-all", "log-all"]
LEARNING = [
    data("FILE", "--vali", "Validation data that select the model; held-out queries do by default."),
    data("FILE", "--test", "Test data to evaluate the model on."),
    data("FILE", "--unlabelled", f"Rows without labels, used by the methods {', '.join(UNLABELLED)}."),
    PAIRS,
    *SIDES,
    data("COLUMN", "--preferred", "Votes: column of the winner: its name or text, left, right, a, b or tie."),
    *COLUMNS,
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
        type=literal,
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
    choice("K", "--cv", "Number of folds of queries, or leave_pair_out; leave-query-out by default.", type=literal),
    CONVENTION,
    JSON,
]


@click.group(
    invoke_without_command=True,
    epilog="Example: rankrls fit train.txt --test test.txt --model m.rankrls",
    context_settings={"max_content_width": 110, "show_default": True},
)
@click.version_option(__version__, message="rankrls %(version)s")
@click.pass_context
def root(context: click.Context) -> None:
    """Learning to rank by pairwise regularized least squares."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


class Command(click.Command):
    """A command, whose work is the function of its name in a module, and whose help lists its options in groups."""

    def __init__(self, *, module: str, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.module = module

    def invoke(self, ctx: click.Context) -> None:
        """Run the command and show its result."""
        from rankrls._compiled import limited_threads
        from rankrls.io.files import check_targets

        work = getattr(import_module(f"rankrls.cli.commands.{self.module}"), str(self.name))
        if not gc.isenabled():  # in the program's own process
            gc.freeze()  # modules are not garbage, and searching them takes a quarter of the time of a small command
            gc.enable()
        every = {parameter.name: None for each in root.commands.values() for parameter in each.params}
        options = Options(**every | ctx.params, words=ctx.obj)  # errors may complete the words of the call
        report = Report(str(self.name), bool(options.as_json), options.quiet)
        outputs = options.given(*_OUTPUTS)
        if options.rows_per_file is not None:
            del outputs["out"]  # it is a folder
        read = [value for name, value in ctx.params.items() if name not in _OUTPUTS]
        inputs = [each for value in read for each in (value if isinstance(value, tuple) else [value])]
        with limited_threads(options.threads):
            check_targets(outputs.values(), [each for each in inputs if isinstance(each, Path)])
            report.show(work(options, report))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups that the command has."""
        for group in GROUPS:
            found = [p for p in self.params if isinstance(p, GroupedOption) and p.group == group]
            if rows := [row for p in found if (row := p.get_help_record(ctx))]:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(rows)


def command(module: str, *parameters: click.Parameter) -> Callable[[Callable[[], None]], click.Command]:
    """Decorator that makes a function's name and docstring a command with the given parameters."""
    return root.command(cls=Command, module=module, params=[*parameters, THREADS, QUIET])


@command(
    "fit",
    file(["train"]),
    output("FILE", "--model", "Model file to write, such as m.rankrls.", "-m", "save"),
    *LEARNING,
)
def fit() -> None:
    """Choose, fit, evaluate and save a model.

    TRAIN is LETOR text, CSV, Parquet or Arrow, or a folder or quoted pattern of Parquet shards.

    Example: rankrls fit train.csv --label grade --qid query --scale standard --metric ndcg@10 --model m.rankrls
    """


@command(
    "fit",
    file(["train"]),
    *LEARNING,
    choice("", "--nested", "Also repeat the whole choice without each of 5 folds, and evaluate on that fold."),
    choice("N", "--permutations", "Also test with N permutations of the labels, repeating the choice for each."),
)
def cv() -> None:
    """Evaluate every candidate model, and save none.

    Example: rankrls cv train.txt --metric ndcg@10 --kernel linear,rbf --alphas 1e-3:1e3:13
    """


@command(
    "predict",
    *MODEL_AND_DATA,
    PAIRS,
    *SIDES,
    OUTPUT,
)
def predict() -> None:
    """Score the rows of a file.

    Prints one score per row. Only score differences within a query are meaningful. If FILE is a table (.csv, .parquet,
    ...), it gets ids and scores. With --pairs, or with --left and --right, the command prints the probability that a
    vote prefers the first of two items.

    Example: rankrls predict m.rankrls test.txt -o scores.txt
    """


@command(
    "predict",
    *MODEL_AND_DATA,
    output("N", "--top", "Number of items of each query to list; all by default.", "-k"),
    output(["tsv", "trec"], "--format", "Format of the lines.", "layout", default="tsv"),
    OUTPUT,
    GLOBAL,
    TARGET,
)
def rank() -> None:
    """List the items of each query, best first.

    Items with equal scores stay in the order of the file; in trec runs they are ordered as trec_eval does.

    Example: rankrls rank m.rankrls test.txt --top 10
    """


@command(
    "models",
    *MODEL_AND_DATA,
    click.Argument(["first"], metavar="A"),
    click.Argument(["second"], metavar="[B]", required=False),
    output("N", "--top", "Number of features to show; 0 shows all.", "-k", type=click.IntRange(0), default=10),
    data("QID", "--query", "Id of the query of A and B, if their ids occur in several."),
    TARGET,
    NAMES,
    JSON,
)
def explain() -> None:
    """Explain why item A is ranked above item B.

    Lists how much each feature contributes to the score difference, for a linear model. A and B are item ids, or row
    numbers from 0 if the items have no ids. Without B, A is compared with the mean of its query.

    Example: rankrls explain m.rankrls test.txt --query 3 doc12 doc7
    """


@command(
    "evaluate",
    file(["files"], metavar="[MODEL] DATA", nargs=-1, required=True),
    data(
        "FILE",
        "--scores",
        "File of scores to evaluate instead of a model: one per line, or a table with a column score.",
    ),
    QRELS,
    PAIRS,
    *COLUMNS,
    EVENT,
    GLOBAL,
    *MEASURES,
    output("", "--per-query", "Also print the values of each query."),
    JSON,
)
def evaluate() -> None:
    """Evaluate the ranking of a file's queries.

    The ranking is that of a model or of a file of scores. Prints measures with 95 % intervals.

    Example: rankrls evaluate m.rankrls test.txt --metrics map,ndcg@10   (or: --scores scores.txt test.txt, or: --qrels
    qrels.txt run.txt)
    """


@command(
    "evaluate",
    file(["data"]),
    file(["models"], metavar="MODEL...", nargs=-1),
    choice("FILE", "--baseline", "Model or scores to compare the others with; by default all pairs are compared."),
    QRELS,
    *COLUMNS,
    *MEASURES,
    output("FILE", "--html", "Web page of the tables to write."),
    JSON,
)
def compare() -> None:
    """Compare rankings of one file query by query.

    MODEL is a model, or a file with the scores of any tool. Prints means with bootstrap intervals, and randomization
    and Wilcoxon tests adjusted by Holm.

    Example: rankrls compare test.txt a.rankrls lightgbm_scores.txt --metrics ndcg@10 --html report.html   (or: --qrels
    qrels.txt a.run b.run)
    """


@command(
    "models",
    file(["model"]),
    click.Argument(["out"], metavar="FILE"),
    output([*ENGINES], "--format", "Format to write.", "engine", required=True),
    model("NAME", "--name", "Name of the model in the engine, or of the column in SQL.", default="rankrls"),
    NAMES,
    model("NAME", "--store", "Feature store of Solr; for a model of a table its name by default."),
    model(["duckdb", "sqlite", "postgresql"], "--dialect", "Dialect of SQL; duckdb by default."),
    model(
        "NUMBER|FILE", "--offset", "Number to add to every score, or a file of rows whose scores are to be positive."
    ),
    TARGET,
)
def export() -> None:
    """Write a model for search engines, databases or services.

    Example: rankrls export m.rankrls model.json --format solr --name my_model
    """


@command(
    "convert",
    file(["data"]),
    file(["out"]),
    *COLUMNS,
    NAMES,
    data(["mean", "last", "refuse"], "--conflicts", "Label for an item that has several in one query."),
    output("N", "--rows-per-file", "Write Parquet shards of at most N rows into the folder OUT."),
    output("", "--sort", "Shards: bring the rows of each query together, which otherwise must be adjacent."),
    FORCE,
)
def convert() -> None:
    """Write data in another format, or as Parquet shards.

    The ending of OUT decides: .csv, .tsv, .jsonl, .parquet, .arrow, else LETOR text; .gz packs.

    Example: rankrls convert huge.txt shards --rows-per-file 1000000
    """


@command(
    "convert",
    file(["data"]),
    file(["folder"]),
    output(
        "A,B[,C]",
        "--parts",
        "Shares of the queries for train, vali and test, or for train and test.",
        type=literal,
        default="60,20,20",
    ),
    output("K", "--folds", "Write folders Fold1 to FoldK instead, as in LETOR.", type=click.IntRange(3)),
    output("N", "--seed", "Random seed.", type=click.IntRange(0), default=0),
    FORCE,
    *QUERIES,
    JSON,
)
def split() -> None:
    """Split data into train, vali and test parts of whole queries.

    DATA is a file, or a folder or a quoted pattern of files.

    Example: rankrls split all.csv parts --qid query
    """


@command(
    "models",
    file(["about"], metavar="MODEL"),
    JSON,
)
def info() -> None:
    """Describe a model file.

    Example: rankrls info m.rankrls
    """


def run(argv: list[str]) -> int:
    """Run the program; returns the exit status."""
    sys.stdout = sys.stdout or open(os.devnull)  # noqa: SIM115 - None if it is closed: this refuses to be written
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for names that its encoding lacks
    try:
        with warnings.catch_warnings():
            for category in _IGNORED:
                warnings.simplefilter("ignore", category)
            warnings.filterwarnings("ignore", message=".* does not have valid feature names")
            warnings.showwarning = lambda message, *_, **__: print_line(f"note: {_with_options(message)}")
            root(argv, prog_name="rankrls", standalone_mode=False, obj=argv)
        return 0
    except SystemExit:  # raised by click when the reader of the help, such as head, has closed the pipe
        return 0
    except click.Abort:
        return 130
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exception(error)
        status, text = _status_and_text(error)
        print_line(f"error: {text}")
        flush_output()
        return status


def _with_options(message: Warning | Exception | str) -> str:
    """A message with the options of the command line in place of the parameters of Python; errors name theirs."""
    if not isinstance(message, Located):
        return str(message)
    flags = dict(_FLAGS)
    options = [p for each in root.commands.values() for p in each.params if isinstance(p, GroupedOption)]
    flags |= {each.flag[2:].replace("-", "_"): each.flag for each in options}
    text = message.message
    for name, value in message.settings.items():
        word = shlex.quote(option_text([value] if isinstance(value, str) else value))
        option = f"{flags[name]} {word}" if name in flags else f"--set {name}={word}"
        text = text.replace(format_setting(name, value), option)
    text = re.sub(r"\((\w+)\)", lambda found: f"({flags.get(found[1], found[1])})", text)
    text = str(message.replace(message=text))
    flag = flags.get(message.parameter or "")
    return text if flag is None or flag in text or isinstance(message, Warning) else f"{text} ({flag})"


def _status_and_text(error: Exception) -> tuple[int, str]:
    """The exit status and the message of an error: 2 for bad input, 1 for anything else."""
    text = str(error)
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "rankrls"
        return 2, f"{error.format_message().rstrip('.')} (see {where} --help)"
    if isinstance(error, UnsupportedOperation):
        return 2, "standard output is closed, so the result is lost."
    if isinstance(error, OSError):
        return 2, f"{os.fsdecode(error.filename)}: {error.strerror}" if error.filename else error.strerror or text
    if isinstance(error, MemoryError):
        return 1, f"not enough memory: {text or 'the data are too large for this machine'}"
    if isinstance(error, ValueError | MissingPackageError):  # LinAlgError is a ValueError
        return 2, _with_options(error)
    return 1, f"internal error: {type(error).__name__}: {text}; run with {DEBUG}=1 to see where, and please report it"
