"""What the command line says is in its own words: options, not parameters, arrays or classes."""

import re

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls._errors import InputError
from rankrls.cli._spelling import said

ODD = [
    "--method cg --selection early_stopping --max-iter 1",
    "--method cg --selection tikhonov --max-iter 2",
    "--method cg --tol 2",
    "--method cg --random-state 99999999999",
    "--method cg --vali tied.txt",
    "--method cg --pairs one.csv",
    "--method rankboost --patience 5",
    "--method rankboost --patience 5 --pairs three.csv",
    "--method rankboost --learning-rate 2",
    "--method rankboost --n-estimators 2 --vali tied.txt",
    "--method ranksvm --Cs 0",
    "--method ranksvm --tol 0",
    "--method ranksvm --Cs 1 --max-iter 1",
    "--method ranksvm --cv 50",
    "--method sparse",
    "--method sparse --kernel sigmoid --gamma 100",
    "--method pursuit --alphas 1",
    "--method pursuit --max-basis 0",
    "--cv 50",
    "--metric p",
    "--metric tau@3",
    "--convention trek",
    "--pairs one.csv",
    "--pairs three.csv --cv 9",
    "--pairs three.csv --metric map",
    "--pairs ties.csv",
    "--alphas 0",
    "--regression-weight 2",
    "--features 2",
]
FILES = ["", "--global", "--method cg", "--method ranksvm --Cs 1", "--method rankboost", "--metric ndcg@3", "--vali"]
PYTHON = re.compile(
    r"(?<![\w./-])(?:\w+=|None|True|False|[a-z]+_[a-z_]+|X|y|m|C|tol|cv|[A-Z][a-z]*[A-Z]\w+)(?![\w.]*\.(?:txt|csv)|[\w/-])"
)
ALLOWED = {"RankRLS", "RankSVM", "NDCG", "kendall_tau", "one_se", "pair_accuracy", "early_stopping", "squared_hinge"}


def python_words(text):
    found = {match.group() for match in PYTHON.finditer(text)} - ALLOWED
    return {word for word in found if len(word) == 1 or not word.isupper()}  # FILE, MRR


@pytest.fixture
def odd(files, rows, letor):
    X, y, qid = rows(1)
    letor(files / "tied.txt", X, y * 0, qid)
    letor(files / "one.txt", X[:8], y[:8], qid[:8])
    letor(files / "negative.txt", X, y - 5, qid)
    letor(files / "wide.txt", np.hstack((X, X)), y, qid)
    letor(files / "noqid.txt", X, y)
    (files / "one.csv").write_text("0,1\n")
    (files / "three.csv").write_text("0,1\n1,2\n2,3\n")
    (files / "ties.csv").write_text("winner,loser,strength\n0,1,0\n1,2,0\n")
    return files


@pytest.mark.parametrize("options", ODD)
def test_odd_options(options, odd, rankrls, monkeypatch):
    monkeypatch.chdir(odd)
    said = rankrls("fit", "train.txt", "-m", "m.rankrls", *options.split()).err
    assert said.startswith("rankrls: ")
    assert not python_words(said), said


@pytest.mark.parametrize("name", ["tied", "one", "negative", "wide", "noqid"])
@pytest.mark.parametrize("options", FILES)
def test_odd_files(name, options, odd, rankrls, monkeypatch):
    monkeypatch.chdir(odd)
    train = ("train.txt", "--vali", f"{name}.txt") if options == "--vali" else (f"{name}.txt", *options.split())
    said = rankrls("fit", *train, "-m", "m.rankrls").err
    assert not python_words(said), said


def test_features_that_training_did_not_have(odd, rankrls, refused, monkeypatch):
    monkeypatch.chdir(odd)
    hint = "(train.txt has 5 features; --features N sets another number.)"
    line = refused(
        "fit",
        "train.txt",
        "--test",
        "wide.txt",
        "-m",
        "m.rankrls",
        Refusal("beyond the 5 features", parameter="n_features", file="wide.txt", line=1),
    )
    assert line.endswith(hint)
    line = refused("fit", "train.txt", "--test", "noqid.txt", "-m", "m.rankrls", Refusal("no line has a qid"))
    assert not line.endswith(hint)


def test_numbers_that_overflow_are_said_once(files, rows, letor, refused):
    X, y, qid = rows(1)
    letor(files / "huge.txt", X * 1e200, y, qid)
    for method in ("rankrls", "cg"):
        feature = 1 + int(np.argmax(np.abs(X)) % X.shape[1])
        refusal = Refusal(f"of feature {feature} ", "products overflow", column=str(feature), file="huge.txt")
        refused("fit", files / "huge.txt", "-m", files / "m.rankrls", "--method", method, refusal)


def test_export_and_explain_too(odd, rankrls, monkeypatch):
    monkeypatch.chdir(odd)
    rankrls("fit", "train.txt", "-m", "m.rankrls", "--quiet")
    rankrls("fit", "train.txt", "-m", "k.rankrls", "--quiet", "--kernel", "rbf")
    (odd / "names.txt").write_text("a\nb\n")
    for command, match in (
        ("export m.rankrls - --format solr --names names.txt", "--names has 2 names; the model has 5 features"),
        ("export m.rankrls - --format solr", "Give --names, one a column"),
        ("export m.rankrls - --format vespa --phase third", "--phase must be one of"),
        ("export m.rankrls - --format json --target 7", "--target must be from 0 to 0; got 7"),
        ("export k.rankrls - --format json", "export to ONNX (--format onnx)"),
        ("explain m.rankrls train.txt 0 1 --target 7", "--target must be"),
        ("explain m.rankrls train.txt 0 1 --names names.txt", "--names"),
    ):
        said = rankrls(*command.split())
        assert said.status == 2
        assert match in said.err
        assert not python_words(said.err), said.err


def test_a_mark_of_byte_order_is_no_part_of_a_name_or_number(odd, rankrls, monkeypatch):
    """As some editors and shells put before UTF-8."""
    monkeypatch.chdir(odd)
    rankrls("fit", "train.txt", "-m", "m.rankrls", "--quiet")
    rankrls("predict", "m.rankrls", "test.txt", "-o", "s.txt")
    for name, text in (("names.txt", "a\nb\nc\nd\ne\n"), ("s.txt", (odd / "s.txt").read_text())):
        (odd / name).write_text(text, "utf-8-sig")
    exported = rankrls("export", "m.rankrls", "-", "--format", "json", "--names", "names.txt")
    assert exported.json["features"][0]["name"] == "a"
    judged = [
        rankrls("evaluate", *words, "test.txt", "--json").json for words in (("m.rankrls",), ("--scores", "s.txt"))
    ]
    assert judged[0]["measures"] == judged[1]["measures"]


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{max_iter=5} steps; raise {max_iter} or {tol}.", "--max-iter 5 steps; raise --max-iter or --tol."),
        ("choose one of ({cv}), or {scoring='map'}.", "choose one of (--cv), or --metric map."),
        ("the control of cvs and max_iterations stays", "the control of cvs and max_iterations stays"),
        ("data/max_iter.txt:3: bad; max_iter.txt", "data/max_iter.txt:3: bad; max_iter.txt"),
        ("{everything} and {top_items} as written", "--global and --top as written"),
        ("Give {X_val, y_val, qid_val}.", "Give --vali."),
        ("choose {gain='positive'} or a {gain} of your own", "choose --convention trec or a gain of your own"),
        ("{RankSVMCV} stopped at {alpha=2}", "--method ranksvm stopped at alpha=2"),
    ],
)
def test_parameters_are_spelled_as_options(template, shown):
    assert said(InputError(template)) == shown


def test_what_names_no_parameter_is_as_it_was():
    assert said(ValueError("max_iter=5 {tol}")) == "max_iter=5 {tol}"
    assert said(InputError("{0} {tol}", "{cv} max_iter")) == "{cv} max_iter --tol"
