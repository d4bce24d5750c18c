"""The commands and their options, and how errors and warnings are printed."""

from __future__ import annotations

import os
import re
import shlex
import sys
import traceback
import warnings
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from rankrls import __version__
from rankrls._errors import Located, MissingPackageError, format_setting
from rankrls.cli import _options as options
from rankrls.cli._options import FILE, Options, choice, data, model, option_text, output
from rankrls.cli._report import Report, Result, flush_output, print_line

DEBUG = "RANKRLS_DEBUG"
_IGNORED = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)
_OUTPUTS = ("save", "html", "output", "out")


class LaterModule(ModuleType):
    """Stands in for a module until one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        sys.modules.pop(self.__name__, None)
        return getattr(import_module(self.__name__), name)


def import_sklearn() -> None:
    """Import scikit-learn without pandas and ``scipy.stats``, which take longest and are rarely used."""
    later = {name: LaterModule(name) for name in ("pandas", "scipy.stats") if name not in sys.modules}
    sys.modules.update(later)
    import sklearn.preprocessing  # noqa: F401

    for name, module in later.items():
        if sys.modules.get(name) is module:
            del sys.modules[name]


class InOrder(click.Group):
    """A program whose help lists the commands in their own order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands."""
        return [*self.commands]


@click.group(
    cls=InOrder, invoke_without_command=True, epilog="Example: rankrls fit train.txt --test test.txt --model m.rankrls"
)
@click.version_option(__version__, message="rankrls %(version)s")
@click.pass_context
def root(context: click.Context) -> None:
    """Learning to rank by pairwise regularized least squares."""
    if context.invoked_subcommand is None:
        Report().show(Result(text=[f"{context.get_help()}\n"]))


class Command(click.Command):
    """A command, whose work is the function of its name in a module, and whose help lists its options in groups."""

    def __init__(self, *, module: str, params: list[click.Parameter], **attributes: Any) -> None:
        params = [*params, options.THREADS, options.QUIET]
        settings = {"max_content_width": 110, "show_default": True}
        super().__init__(params=params, context_settings=settings, **attributes)
        self.module = module

    def invoke(self, ctx: click.Context) -> None:
        """Run the command and show its result."""
        from rankrls._compiled import limited_threads
        from rankrls.io.files import check_targets

        every = {parameter.name: None for each in root.commands.values() for parameter in each.params}
        found = Options(**every | ctx.params, words=ctx.obj)  # errors may complete the words of the call
        report = Report(bool(found.as_json), found.quiet)
        given = dict(ctx.params)
        outputs = [path for key in _OUTPUTS if (path := given.pop(key, None)) is not None]
        if found.rows_per_file is not None:
            outputs.remove(found.out)  # it is a folder
        inputs = [each for value in given.values() for each in (value if isinstance(value, tuple) else (value,))]
        import_sklearn()
        work = getattr(import_module(f"rankrls.cli.commands.{self.module}"), str(self.name))
        with limited_threads(found.threads), report.watched():
            check_targets(outputs, [each for each in inputs if isinstance(each, Path)])
            report.show(work(found, report))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups that the command has."""
        for group in options.GROUPS:
            found = [p for p in self.params if isinstance(p, options.GroupedOption) and p.group == group]
            if rows := [row for p in found if (row := p.get_help_record(ctx))]:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(rows)


command = partial(root.command, cls=Command)


@command(module="fit")
@click.argument("train", type=FILE)
@output("FILE", "--model", "Model file to write, such as m.rankrls.", "-m", "save")
@options.LEARNING
def fit() -> None:
    """Choose, fit, evaluate and save a model.

    TRAIN is LETOR text, CSV, Parquet or Arrow, or a folder or quoted pattern of Parquet shards.

    Example: rankrls fit train.csv --label grade --qid query --scale standard --metric ndcg@10 --model m.rankrls
    """


@command(module="fit")
@click.argument("train", type=FILE)
@options.LEARNING
@choice("", "--nested", "Also repeat the whole choice without each of 5 folds, and evaluate on that fold.")
@choice("N", "--permutations", "Also test with N permutations of the labels, repeating the choice for each.")
def cv() -> None:
    """Evaluate every candidate model, and save none.

    Example: rankrls cv train.txt --metric ndcg@10 --kernel linear,rbf --alphas 1e-3:1e3:13
    """


@command(module="predict")
@options.MODEL_AND_DATA
@options.PAIRS
@options.SIDES
@options.OUTPUT
def predict() -> None:
    """Score the rows of a file.

    Prints one score per row. Only score differences within a query are meaningful. If FILE is a table (.csv, .parquet,
    ...), it gets ids and scores. With --pairs, or with --left and --right, the command prints the probability that a
    vote prefers the first of two items.

    Example: rankrls predict m.rankrls test.txt -o scores.txt
    """


@command(module="predict")
@options.MODEL_AND_DATA
@output("N", "--top", "Number of items of each query to list; all by default.", "-k")
@output(["tsv", "trec"], "--format", "Format of the lines.", "layout", default="tsv")
@output("NAME", "--run", "Name of the run in trec lines, one word.", default="rankrls")
@options.OUTPUT
@options.GLOBAL
@options.TARGET
def rank() -> None:
    """List the items of each query, best first.

    Items with equal scores stay in the order of the file; in trec runs they are ordered as trec_eval does.

    Example: rankrls rank m.rankrls test.txt --top 10
    """


@command(module="models")
@options.MODEL_AND_DATA
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@output("N", "--top", "Number of features to show; 0 shows all.", "-k", type=click.IntRange(0), default=10)
@data("QID", "--query", "Id of the query of A and B, if their ids occur in several.")
@options.TARGET
@options.NAMES
@options.JSON
def explain() -> None:
    """Explain why item A is ranked above item B.

    Lists how much each feature contributes to the score difference, for a linear model. A and B are item ids, or row
    numbers from 0 if the items have no ids. Without B, A is compared with the mean of its query.

    Example: rankrls explain m.rankrls test.txt --query 3 doc12 doc7
    """


@command(module="evaluate")
@click.argument("files", type=FILE, metavar="[MODEL] DATA", nargs=-1, required=True)
@data(
    "FILE", "--scores", "File of scores to evaluate instead of a model: one per line, or a table with a column score."
)
@options.QRELS
@options.PAIRS
@options.COLUMNS
@options.EVENT
@options.GLOBAL
@options.MEASURES
@output("", "--per-query", "Also print the values of each query.")
@options.JSON
def evaluate() -> None:
    """Evaluate the ranking of a file's queries.

    The ranking is that of a model or of a file of scores. Prints measures with 95 % intervals.

    Example: rankrls evaluate m.rankrls test.txt --metrics map,ndcg@10   (or: --scores scores.txt test.txt, or: --qrels
    qrels.txt run.txt)
    """


@command(module="evaluate")
@click.argument("data", type=FILE)
@click.argument("models", type=FILE, metavar="MODEL...", nargs=-1)
@choice("FILE", "--baseline", "Model or scores to compare the others with; by default all pairs are compared.")
@options.QRELS
@options.COLUMNS
@options.MEASURES
@output("FILE", "--html", "Web page with charts to write.")
@output("N", "--top", "Number of most changed queries to show.", default=5)
@options.JSON
def compare() -> None:
    """Compare rankings of one file query by query.

    MODEL is a model, or a file with the scores of any tool. Prints means with bootstrap intervals, and randomization
    and Wilcoxon tests adjusted by Holm.

    Example: rankrls compare test.txt a.rankrls lightgbm_scores.txt --metrics ndcg@10 --html report.html   (or: --qrels
    qrels.txt a.run b.run)
    """


@command(module="models")
@click.argument("model", type=FILE)
@click.argument("out", metavar="FILE")
@output([*options.ENGINES], "--format", "Format to write.", "engine", required=True)
@model("NAME", "--name", "Name of the model in the engine, or of the column in SQL.", default="rankrls")
@options.NAMES
@model("NAME", "--store", "Feature store of Solr; for a model of a table its name by default.")
@model(["duckdb", "sqlite", "postgresql"], "--dialect", "Dialect of SQL; duckdb by default.")
@model("NUMBER|FILE", "--offset", "Number to add to every score, or a file of rows whose scores are to be positive.")
@options.TARGET
def export() -> None:
    """Write a model for search engines, databases or services.

    Example: rankrls export m.rankrls model.json --format solr --name my_model
    """


@command(module="convert")
@click.argument("data", type=FILE)
@click.argument("out", type=FILE)
@options.COLUMNS
@options.NAMES
@data(["mean", "last", "refuse"], "--conflicts", "Label for an item that has several in one query.")
@output("N", "--rows-per-file", "Write Parquet shards of at most N rows into the folder OUT.")
@output("", "--sort", "Shards: bring the rows of each query together, which otherwise must be adjacent.")
@options.FORCE
def convert() -> None:
    """Write data in another format, or as Parquet shards.

    The ending of OUT decides: .csv, .tsv, .jsonl, .parquet, .arrow, else LETOR text; .gz packs.

    Example: rankrls convert huge.txt shards --rows-per-file 1000000
    """


@command(module="convert")
@click.argument("data", type=FILE)
@click.argument("folder", type=FILE)
@output(
    "A,B[,C]", "--parts", "Shares of the queries for train, vali and test, or for train and test.", default="60,20,20"
)
@output("K", "--folds", "Write folders Fold1 to FoldK instead, as in LETOR.", type=click.IntRange(3))
@output("N", "--seed", "Random seed.", type=click.IntRange(0), default=0)
@options.FORCE
@options.QUERIES
@options.JSON
def split() -> None:
    """Split data into train, vali and test parts of whole queries.

    DATA is a file, or a folder or a quoted pattern of files.

    Example: rankrls split all.csv parts --qid query
    """


@command(module="models")
@click.argument("about", type=FILE, metavar="MODEL")
@options.JSON
def info() -> None:
    """Describe a model file.

    Example: rankrls info m.rankrls
    """


def run(argv: list[str]) -> int:
    """Run the program; returns the exit status."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - None if it is closed
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
        if os.environ.get(DEBUG, "") not in ("", "0"):
            traceback.print_exception(error)
        status, text = _status_and_text(error)
        print_line(f"error: {text}")
        flush_output()
        return status


def _with_options(message: Warning | Exception | str) -> str:
    """A message with the options of the command line in place of the parameters of Python; errors name theirs."""
    if not isinstance(message, Located):
        return str(message)
    every = [max(p.opts, key=len) for each in root.commands.values() for p in each.params if p.opts[0][0] == "-"]
    flags = {"n_features": "--features", "feature_names": "--names", "X_val": "--vali"}
    flags |= {"scoring": "--metric", "alpha": "--alphas", "groups": "--group", "item_id": "--id"}
    flags |= {flag[2:].replace("-", "_"): flag for flag in every}
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
    if isinstance(error, IsADirectoryError):
        return 2, f"{os.fsdecode(error.filename)} is a folder. Name a file."
    if isinstance(error, OSError):
        return 2, f"{os.fsdecode(error.filename)}: {error.strerror}" if error.filename else error.strerror or text
    if isinstance(error, MemoryError):
        return 1, f"not enough memory: {text or 'the data are too large for this machine'}"
    if isinstance(error, ValueError | MissingPackageError):  # LinAlgError is a ValueError
        return 2, _with_options(error)
    return 1, f"internal error: {type(error).__name__}: {text}; run with {DEBUG}=1 to see where, and please report it"
