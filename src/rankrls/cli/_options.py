"""Options that several commands have, and what their texts mean."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from rankrls._kernel_table import KERNELS

__all__ = [
    "SCALES",
    "Alphas",
    "Balance",
    "Coef0",
    "Convention",
    "Degree",
    "Everything",
    "Folds",
    "Gamma",
    "Ids",
    "Json",
    "Kernel",
    "LeavePairOut",
    "Measures",
    "Metric",
    "Pairs",
    "Quiet",
    "RegressionWeight",
    "Rows",
    "Rule",
    "Scale",
    "TestPairs",
    "Threads",
    "Ties",
    "Train",
    "Vali",
    "ValiPairs",
    "Verbose",
    "check_choice",
    "parse_alphas",
    "parse_choices",
    "parse_names",
    "parse_numbers",
]

TIES = ("include", "exclude")
BALANCES = ("pairs", "examples", "queries")
SCALES = ("none", "minmax", "standard", "minmax-all", "standard-all")
RULES = ("best", "one_se")
IDS = ("row", "docid", "comment")

Train = Annotated[
    Path,
    typer.Argument(
        metavar="TRAIN",
        show_default=False,
        help="Training data: LETOR / SVMlight text or CSV, plain or gzip; Parquet; Arrow.",
    ),
]
Rows = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", show_default=False, help="LETOR / SVMlight text or CSV, plain or gzip; Parquet; Arrow."
    ),
]
Vali = Annotated[
    Path | None,
    typer.Option(
        "--vali",
        metavar="FILE",
        help="Choose by these data. Without: exact leave-query-out on TRAIN, or what --method can do instead.",
    ),
]
Kernel = Annotated[str, typer.Option("--kernel", metavar="NAME[,NAME]", help=f"{', '.join(KERNELS)}; or several.")]
Gamma = Annotated[
    str,
    typer.Option(
        "--gamma",
        metavar="G[,G]",
        help="Factor in all kernels but linear; auto is 1 / features.",
    ),
]
Degree = Annotated[str, typer.Option("--degree", metavar="D[,D]", help="Degree of the polynomial kernel.")]
Coef0 = Annotated[str, typer.Option("--coef0", metavar="C[,C]", help="Constant in the polynomial and sigmoid kernels.")]
Alphas = Annotated[
    str,
    typer.Option(
        "--alphas", metavar="GRID", help="Regularization values: auto, a list a,b,c, or lo:hi:n for n geometric steps."
    ),
]
Ties = Annotated[
    str, typer.Option("--ties", metavar="WORD", help="Pairs with equal labels: include, exclude, or both to choose.")
]
Balance = Annotated[
    str,
    typer.Option(
        "--balance",
        metavar="WORD[,WORD]",
        help="What counts the same: pairs, examples, queries; or several.",
    ),
]
RegressionWeight = Annotated[
    float,
    typer.Option("--regression-weight", metavar="B", help="0 ranks, 1 is least squares on the labels themselves."),
]
Scale = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="WORD",
        help="Scale features inside each query: minmax or standard; by the training rows, as search engines can: "
        "minmax-all or standard-all.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Choose by: disagreement (the default), map, ndcg@10, p@5, mrr, tau, ...; pair_accuracy with --pairs.",
    ),
]
Pairs = Annotated[
    Path | None,
    typer.Option(
        "--pairs",
        metavar="FILE",
        help="Learn from preferences between TRAIN's rows instead of its labels: a table of winner, loser and if "
        "wanted strength, weight, group; text with commas or tabs needs no line that names the columns.",
    ),
]
ValiPairs = Annotated[
    Path | None,
    typer.Option("--vali-pairs", metavar="FILE", help="Choose by these preferences: rows of --vali, else of TRAIN."),
]
TestPairs = Annotated[
    Path | None,
    typer.Option("--test-pairs", metavar="FILE", help="Judge by these preferences: rows of --test, else of TRAIN."),
]
Ids = Annotated[
    str | None,
    typer.Option(
        "--ids",
        metavar="WORD",
        help="What names an item in a table of preferences. row: the number of its row, from 0; docid: its id, in a "
        "table's column of ids or behind 'docid =' in its comment; comment: its whole comment. By default what the "
        "model was fitted with; else docid or row, whichever fits all the preferences.",
    ),
]
Measures = Annotated[
    str | None,
    typer.Option("--metrics", metavar="NAME,...", help="Measures to print; by default those that suit the labels."),
]
Convention = Annotated[
    str,
    typer.Option(
        "--convention", metavar="TOOL", help="Whose NDCG, MAP, ...: letor, trec, sklearn, lightgbm, xgboost, ranklib."
    ),
]
Rule = Annotated[
    str,
    typer.Option(
        "--rule",
        metavar="WORD",
        help="Choose the best, or by one_se the simplest within one standard error of it.",
    ),
]
Folds = Annotated[
    int | None, typer.Option("--cv", metavar="K", help="K folds of whole queries instead of leave-query-out.")
]
LeavePairOut = Annotated[
    bool,
    typer.Option(
        "--leave-pair-out",
        help="Leave out each pair of rows instead: the C-index (AUC) of every alpha, with intervals.",
    ),
]
Everything = Annotated[
    bool, typer.Option("--global", help="One ranking of all rows, whatever their qid; for files without qid.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, and nothing else there.")]
Threads = Annotated[int | None, typer.Option("--threads", metavar="N", help="Threads; by default all processors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say what is being done, and how long it took.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes; fit prints nothing at all.")]


def parse_names(option: str, text: str) -> tuple[str, ...]:
    """Words between commas; one that holds a comma stands in quotes, as in CSV."""
    from rankrls.io.tables.cells import split_words

    words = tuple(word.strip() for word in split_words(text, option))
    if not words or not all(words):
        raise ValueError(f"{option} needs a word between commas; got {text!r}.")
    return tuple(dict.fromkeys(words))


def check_choice(option: str, word: str, choices: tuple[str, ...]) -> str:
    """One of some words."""
    if word not in choices:
        raise ValueError(f"{option} must be one of {', '.join(choices)}; got {word!r}.")
    return word


def parse_choices(option: str, text: str, choices: tuple[str, ...], everything: str = "all") -> Any:
    """One of some words, or a tuple of several; one more word means all of them."""
    if text.strip() == everything:
        return choices
    return _one_or_more(tuple(check_choice(option, word, choices) for word in parse_names(option, text)))


def parse_numbers(option: str, text: str, kind: type[float] | type[int] = float) -> Any:
    """A number, or a tuple of several; ``auto`` is None."""
    return _one_or_more(
        tuple(None if word == "auto" else _number(option, word, kind) for word in parse_names(option, text))
    )


def parse_alphas(text: str, flag: str = "--alphas") -> Any:
    """``auto``, ``a,b,c`` or ``lo:hi:n``."""
    text = text.strip()
    if text == "auto":
        return "auto"
    if ":" in text:
        return _geometric(text, flag)
    values = tuple(_number(flag, word, float) for word in parse_names(flag, text))
    for value in values:
        if value < 0:
            raise ValueError(f"{flag} must not be negative; got {value:g}.")
    return values


def _geometric(text: str, flag: str) -> tuple[float, ...]:
    parts = text.split(":")
    if len(parts) != 3:
        raise ValueError(f"{flag} must be auto, a list a,b,c or lo:hi:n; got {text!r}.")
    low, high = (_number(flag, part, float) for part in parts[:2])
    steps = _number(flag, parts[2], int)
    if not 0 < low < high or steps < 2:
        raise ValueError(f"{flag} lo:hi:n needs 0 < lo < hi and at least 2 steps; got {text!r}.")
    ratio = math.log(high / low)
    return (low, *(low * math.exp(ratio * k / (steps - 1)) for k in range(1, steps - 1)), high)


def _number(option: str, word: str, kind: type[float] | type[int]) -> Any:
    try:
        value = kind(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        what = "a whole number" if kind is int else "a finite number"
        raise ValueError(f"{option} needs {what}; got {word!r}.")
    return value


def _one_or_more(values: tuple[Any, ...]) -> Any:
    return values[0] if len(values) == 1 else values
