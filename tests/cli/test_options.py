"""The options: what each command has, and that help and reading agree with the table they come from."""

import re
from dataclasses import is_dataclass

import pytest
from tests.refusals import Refusal

from rankrls.cli._commands import COMMANDS
from rankrls.cli._methods import METHODS
from rankrls.cli._options import Options, flag_of, names_of_options

COLUMNS = "--label --qid --id --features --ignore --input-format --group"
VOTES = "--event --winner --loser --left --right --preferred --strength --sides"
LEARNING = (
    "--method --vali --unscored --pairs --vali-pairs --ids --kernel --gamma --degree --coef0 --alphas --ties --balance "
    "--regression-weight --scale --metric --metrics --convention --tied-labels --rule --cv --global --positive "
    "--selection --max-iter --tol --patience --random-state "
    "--within-query --time-limit --nested --n-basis --basis --max-features "
    "--max-basis --penalty --nu --mu --n-views --Cs --loss "
    "--n-estimators --learning-rate --max-bins --columns --categorical --dates --text "
    "--query-text --text-features --impute --date-format --min-frequency --labels --fit-intercept "
    "--items --item-id --hold-out"
)

HAS = {
    "fit": (
        f"-m --model --memory --checkpoint --scheduler --insecure --test --test-pairs {LEARNING} {VOTES} {COLUMNS} "
        "--json --threads -v --verbose -q --quiet"
    ),
    "cv": f"--leave-pair-out {LEARNING} {VOTES} {COLUMNS} --json --threads -v --verbose -q --quiet",
    "predict": f"-o --output --items --item-id --memory {COLUMNS} --threads -v --verbose -q --quiet",
    "rank": (
        f"-k --top --format --ids --run --target --global -o --output --memory {COLUMNS} --threads "
        "-v --verbose -q --quiet"
    ),
    "explain": f"--ids --query -k --top --names --target {COLUMNS} --json -v --verbose -q --quiet",
    "evaluate": (
        "--scores --memory --metrics --convention --tied-labels --per-query --pairs --ids --global --event "
        f"{COLUMNS} --json --threads -v --verbose -q --quiet"
    ),
    "compare": (
        f"--metrics --convention --tied-labels --baseline --html --title --top --memory {COLUMNS} --json --threads "
        "-v --verbose -q --quiet"
    ),
    "export": "--format --name --names --store --phase --fold --offset --definitions --target -q --quiet",
    "convert": f"--names --rows-per-file --sort --float32 {COLUMNS} -v --verbose -q --quiet",
    "split": f"--parts --folds --seed {COLUMNS} --json -v --verbose -q --quiet",
    "info": "--label --qid --id --features --ignore --input-format --json",
}
ARGUMENTS = {
    "fit": "TRAIN",
    "cv": "TRAIN",
    "predict": "MODEL DATA",
    "rank": "MODEL DATA",
    "explain": "MODEL DATA A [B]",
    "evaluate": "[MODEL] DATA",
    "compare": "DATA MODEL...",
    "export": "MODEL FILE",
    "convert": "DATA OUT",
    "split": "DATA FOLDER",
    "info": "FILE",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_options(command, rankrls):
    shown = rankrls(command, "--help").out
    options = shown.partition("Options:")[2].partition("Example:")[0]
    flags = {flag for line in re.findall(r"(?m)^  (-.*?)(?:  |$)", options) for flag in re.findall(r"--?[\w-]+", line)}
    assert flags == {*HAS[command].split(), "--help"}
    assert shown.startswith(f"Usage: rankrls {command} [OPTIONS] {ARGUMENTS[command]}\n")


def test_every_option_has_help(rankrls):
    """Help is read from the docstring: none may be missing, and none may be left over."""
    for command in COMMANDS:
        options = rankrls(command, "--help").out.partition("Options:")[2].partition("Example:")[0]
        for entry in re.findall(r"(?m)^  -.*(?:\n {4,}.*)*", options):
            assert re.search(r"  +\S.*[.\]]$", entry.rstrip()), entry
    texts = [cls.__doc__ for cls in Options.__mro__ if is_dataclass(cls)]
    documented = re.findall(r"(?m)^    (\w+)\n {8}\S", "\n".join(texts))
    assert len(documented) == len(set(documented))
    assert set(documented) == set(Options.__dataclass_fields__)


def test_defaults_are_what_they_were():
    usual = Options.read({})
    assert (usual.kernel, usual.gamma, usual.degree, usual.coef0, usual.alphas) == ("linear", None, 3, 1.0, "auto")
    assert (usual.ties, usual.balance, usual.regression_weight, usual.scale) == ("include", "examples", 0.0, "none")
    assert (usual.method, usual.convention, usual.rule, usual.cv) == ("rankrls", "letor", None, None)
    assert (usual.top_features, usual.top_queries, usual.top_items, usual.seed) == (10, 5, None, 0)
    assert (usual.parts, usual.output, usual.run, usual.phase) == ([60.0, 20.0, 20.0], "-", "rankrls", "second-phase")
    assert usual.changed() == []


def test_every_option_of_learning_is_of_a_method():
    of_all = {"method", "vali", "pairs", "vali_pairs", "ids", "scale", "metric", "metrics", "convention", "everything"}
    of_all |= {"columns", "categorical", "dates", "text", "query_text", "text_features", "impute", "date_format"}
    of_all |= {"min_frequency", "unscored", "utilities", "items", "item_id"}
    taken = {name for method in METHODS.values() for name in method.takes.split()}
    for name in names_of_options():
        about = Options.__dataclass_fields__[name].metadata["option"]
        if flag_of(name) in LEARNING.split() and about.commands == "fit cv":
            assert (name in taken) != (name in of_all), name


@pytest.mark.parametrize("value", ["9" * 400, "-" + "9" * 400])
def test_numbers_larger_than_any_float(value, files, refused):
    fit = ("fit", files / "train.txt", "-m", files / "m.rankrls", "--method", "cg")
    refused(
        *fit, f"--random-state={value}", Refusal("--random-state", "from 0 to 4294967295", parameter="random_state")
    )
    refused(
        "cv",
        files / "train.txt",
        "--kernel",
        "poly",
        f"--degree=-{value.strip('-')}",
        Refusal("--degree", "must be", parameter="degree"),
    )


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (("--lable", "x"), "'--label'?"),
        (("--metric", "ndgc@10"), "'ndcg@10'?"),
        (("--rule", "bst"), "'best'?"),
        (("--method", "rankrsl"), "'rankrls'?"),
        (("--kernel", "lineer"), "'linear'?"),
    ],
)
def test_what_was_perhaps_meant(files, refused, given, meant):
    refused(
        "fit", files / "train.txt", "-m", files / "m.rankrls", *given, Refusal(f"Did you mean {meant}", kind=Exception)
    )
