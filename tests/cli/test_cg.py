"""``--method cg``: what it was told reaches the estimator, and an interrupted run leaves a whole model."""

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls import CGRankRLS, load
from rankrls.io import load_letor
from rankrls.persistence import read_info


def same(result, expected, table):
    assert result.status == 0, result.err
    assert result.json["method"] == "cg"
    assert result.json["chosen"]["alpha"] == pytest.approx(expected.alpha_, rel=1e-12)
    assert result.json["chosen"]["n_iter"] == expected.n_iter_
    assert result.json["selection"]["value"] == pytest.approx(expected.best_score_, rel=1e-9)
    assert result.json["selection"]["how"] == expected.selection_
    np.testing.assert_allclose(
        load(result.json["model"]).predict(table.X), expected.predict(table.X), rtol=1e-7, atol=1e-9
    )


def test_validation_data(files, rankrls):
    train, vali, test = (load_letor(files / f"{name}.txt") for name in ("train", "vali", "test"))
    result = rankrls(
        *("fit", files / "train.txt", "--vali", files / "vali.txt", "--test", files / "test.txt", "--method", "cg"),
        *("--selection", "tikhonov", "--alphas", "0.1:1000:9", "--ties", "exclude", "--balance", "pairs"),
        *("--max-iter", 40, "--tol", "1e-9", "--patience", 3, "-m", files / "m.rankrls", "--json"),
    )
    expected = CGRankRLS(
        tuple(np.geomspace(0.1, 1000, 9)), selection="tikhonov", ties="exclude", balance="pairs", max_iter=40, tol=1e-9
    ).fit(train.X, train.y, qid=train.qid, X_val=vali.X, y_val=vali.y, qid_val=vali.qid)
    same(result, expected, test)
    assert result.json["measures"]["validation"]["disagreement"]["value"] == pytest.approx(expected.best_score_)
    assert result.json["measures"].keys() == {"validation", "test"}
    shown = rankrls("info", files / "m.rankrls").out
    assert "CGRankRLS" in shown


def test_the_simplest_within_one_standard_error(files, rankrls):
    train, vali = (load_letor(files / f"{name}.txt") for name in ("train", "vali"))
    result = rankrls(
        *("fit", files / "train.txt", "--vali", files / "vali.txt", "--method", "cg", "--selection", "tikhonov"),
        *("--alphas", "0.1:1e6:9", "--rule", "one_se", "-m", files / "m.rankrls", "--json"),
    )
    best, expected = (
        CGRankRLS(tuple(np.geomspace(0.1, 1e6, 9)), selection="tikhonov", rule=rule).fit(
            train.X, train.y, qid=train.qid, X_val=vali.X, y_val=vali.y, qid_val=vali.qid
        )
        for rule in ("best", "one_se")
    )
    assert expected.alpha_ > best.alpha_
    same(result, expected, train)
    assert result.json["selection"]["rule"] == "one_se"


@pytest.mark.parametrize("selection", ["early_stopping", "hybrid"])
def test_a_part_held_out_and_folds(selection, files, rankrls):
    train = load_letor(files / "train.txt")
    for folds in (None, 3):
        expected = CGRankRLS(selection=selection, cv=folds, scoring="map", random_state=0).fit(
            train.X, train.y, qid=train.qid
        )
        options = () if folds is None else ("--cv", folds)
        result = rankrls(
            *("fit", files / "train.txt", "--method", "cg", "--selection", selection, "--metric", "map", *options),
            *("-m", files / "m.rankrls", "--json"),
        )
        same(result, expected, train)
    curve = rankrls("cv", files / "train.txt", "--method", "cg", "--alphas", "1,10,100", "--json")
    assert [entry["alpha"] for entry in curve.json["curve"]] == [1.0, 10.0, 100.0]
    assert "chosen" in rankrls("cv", files / "train.txt", "--method", "cg", "--alphas", "1,10,100").out


def test_preferences(files, rows, letor, rankrls):
    X, y, _ = rows(6, queries=6)
    letor(files / "items.txt", X, y)
    rng = np.random.default_rng(6)
    sets = {}
    for name, number in (("p", 120), ("v", 60)):
        i = rng.integers(len(X), size=number)
        j = (i + rng.integers(1, len(X), size=number)) % len(X)
        first = X[i, 0] - X[j, 0] + 0.3 * rng.normal(size=number) > 0
        winners, losers, s = np.where(first, i, j), np.where(first, j, i), rng.integers(0, 3, size=number)
        sets[name] = (winners, losers, s)
        lines = [f"{a},{b},{c}\n" for a, b, c in zip(winners, losers, s, strict=True)]
        (files / f"{name}.csv").write_text("".join(lines))
    (i, j, s), (iv, jv, sv) = sets["p"], sets["v"]
    command = ("fit", files / "items.txt", "--pairs", files / "p.csv", "--method", "cg", "-m", files / "m.rankrls")
    result = rankrls(*command, "--vali-pairs", files / "v.csv", "--json")
    expected = CGRankRLS(scoring="pair_accuracy").fit_pairs(
        X, i, j, strength=s, winners_val=iv, losers_val=jv, strength_val=sv
    )
    table = load_letor(files / "items.txt")
    same(result, expected, table)
    lead = np.sign(expected.predict(X)[iv] - expected.predict(X)[jv])[sv > 0]
    found = result.json["measures"]["validation"]["pair_accuracy"]
    assert found["value"] == pytest.approx(((1 + lead) / 2).mean())
    assert found["value"] == pytest.approx(expected.best_score_)
    vali = load_letor(files / "vali.txt")
    result = rankrls(*command, "--vali", files / "vali.txt", "--json")
    expected = CGRankRLS(scoring="pair_accuracy").fit_pairs(
        X, i, j, strength=s, X_val=vali.X, y_val=vali.y, qid_val=vali.qid
    )
    same(result, expected, table)
    (files / "across.csv").write_text("0,9\n10,1\n3,4\n")
    result = rankrls(*command, "--vali", files / "vali.txt", "--vali-pairs", files / "across.csv", "--json")
    expected = CGRankRLS(scoring="pair_accuracy").fit_pairs(
        X, i, j, strength=s, X_val=vali.X, winners_val=[0, 10, 3], losers_val=[9, 1, 4]
    )
    same(result, expected, table)


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (["--method", "cg", "--kernel", "rbf"], Refusal("--kernel", "--method cg", parameter="kernel")),
        (["--method", "cg", "--ties", "both"], Refusal("--ties", "one value", parameter="ties")),
        (["--method", "cg", "--balance", "all"], Refusal("--balance", "one value", parameter="balance")),
        (["--method", "cg", "--max-iter", "0"], Refusal("--max-iter", "at least 1", "got 0", parameter="max_iter")),
        (["--method", "cg", "--patience", "0"], Refusal("--patience", "at least 1", parameter="patience")),
        (["--method", "cg", "--tol", "-1"], Refusal("--tol", "at least 0", parameter="tol")),
        (["--method", "cg", "--tol", "nan"], Refusal("--tol", "a finite number", parameter="tol")),
        (
            ["--method", "cg", "--selection", "grid"],
            Refusal("--selection", "tikhonov, early_stopping, hybrid", parameter="selection"),
        ),
        (["--max-iter", "5"], Refusal("--method cg and ranksvm", "not of rankrls")),
        (
            ["--method", "cg", "--pairs", "p.csv", "--vali-pairs", "p.csv", "--cv", "3"],
            Refusal("--vali-pairs", "--cv", "exclude", parameter="vali_pairs"),
        ),
        (
            ["--method", "cg", "--pairs", "p.csv", "--vali-pairs", "far.csv"],
            Refusal("'400'", "is no row", row=0, column="loser", file="far.csv", line=1),
        ),
        (["--method", "cg", "--vali", "flat.txt"], Refusal("no line has a qid", file="flat.txt")),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_bad_input(options, refusal, files, refused, monkeypatch):
    monkeypatch.chdir(files)
    (files / "p.csv").write_text("0,1\n2,1\n")
    (files / "far.csv").write_text("0,400\n")
    (files / "flat.txt").write_text("1 1:1\n0 1:2\n")
    refused("fit", "train.txt", "-m", "m.rankrls", *options, refusal)
    assert not (files / "m.rankrls").exists()


def test_progress(files, rankrls, capsys):
    result = rankrls(
        *("fit", files / "train.txt", "--method", "cg", "--vali", files / "vali.txt", "-m", files / "m.rankrls"),
        "--verbose",
    )
    assert "choosing and fitting: iteration 1 of at most 500" in result.err
    assert "disagreement so far 0." in result.err
    assert read_info(files / "m.rankrls")["parameters"]["verbose"] == 0


SLOW = """
import signal, sys, time
from contextlib import contextmanager
from rankrls.cli import main
from rankrls.cli._report import Report

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that started the tests with & had it ignored

working = Report.working

@contextmanager
def slowly(self, part, what):
    with working(self, part, what) as say:
        def tell_slowly(text, left):
            say(text, left)
            iteration = int(text.split()[1])
            if iteration == 3:
                print("three", flush=True)
            time.sleep(0.05 if iteration > 2 else 0)
        yield tell_slowly if part == "fitting" else say

Report.working = slowly
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a POSIX matter")
@pytest.mark.parametrize("command", ["fit", "cv"])
def test_an_interrupted_run_keeps_its_best_model(command, files, rows, letor):
    """A real process and a real signal, between iterations that have been judged."""
    X, y, qid = rows(7, queries=30, n=40)
    letor(files / "long.txt", X, y, qid)
    model = ("-m", files / "m.rankrls") if command == "fit" else ()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, command, files / "long.txt", "--method", "cg", "--vali", files / "long.txt"]
        + [*model, "--tol", "0", "--patience", "10000", "--max-iter", "10000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout.readline() == "three\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert err.splitlines()[-1] == "rankrls: interrupted"
    if command == "cv":
        assert not (files / "m.rankrls").exists()
        return
    assert "interrupted: the best model found so far is kept, alpha" in err
    assert f"Saved {files / 'm.rankrls'}" in out
    kept = load(files / "m.rankrls")
    assert kept.interrupted_
    assert np.isfinite(kept.predict(X)).all()
    table = load_letor(files / "long.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few iterations do not converge
        expected = CGRankRLS(max_iter=kept.validation_surface_.shape[1], tol=0.0, patience=10_000).fit(
            table.X, table.y, qid=table.qid, X_val=table.X, y_val=table.y, qid_val=table.qid
        )
    assert (expected.alpha_, expected.n_iter_) == (kept.alpha_, kept.n_iter_)
    assert expected.best_score_ == pytest.approx(kept.best_score_, abs=1e-9)
    assert read_info(files / "m.rankrls")["given"]["interrupted"] is True
