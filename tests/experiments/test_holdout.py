"""The hold-out experiments on small data, against plain computations."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_predict

from rankrls import RankRLS, RankRLSCV, TransductiveRankRLS
from rankrls.io import load_letor
from rankrls.metrics import disagreement_error
from rankrls.preprocessing import QueryMinMaxScaler

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def experiment(monkeypatch):
    """``experiment(name)`` imports a script of the experiments, as it would run."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    yield importlib.import_module
    for name, module in list(sys.modules.items()):
        if str(EXPERIMENTS) in str(getattr(module, "__file__", "")):
            sys.modules.pop(name)


def letor_file(path, seed, queries):
    rng = np.random.default_rng(seed)
    lines = []
    for q in range(queries):
        X = rng.normal(size=(rng.integers(4, 9), 4))
        y = (X[:, 0] + rng.normal(size=len(X)) > 0.3).astype(int)
        lines += [
            f"{label} qid:{100 * seed + q} " + " ".join(f"{j}:{v:.4f}" for j, v in enumerate(row, start=1))
            for label, row in zip(y, X, strict=True)
        ]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def data(tmp_path):
    for fold in (1, 2):
        folder = tmp_path / "OHSUMED" / f"Fold{fold}"
        folder.mkdir(parents=True)
        for k, name in enumerate(("trainingset", "validationset", "testset")):
            letor_file(folder / f"{name}.txt", 10 * fold + k + 1, (12, 4, 6)[k])
    return tmp_path


def test_shortcuts_equal_refits(experiment, data, capsys):
    holdout = experiment("holdout")
    assert holdout.main(["--data", str(data), "--quick", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    names = {row["data"] for row in out["agreement"]}
    assert {"breast cancer, linear", "diabetes, rbf", "OHSUMED, linear, 5 folds"} <= names
    for row in out["agreement"]:
        assert row["gap"] < 1e-8
        assert row["faster"] == pytest.approx(row["refit_seconds"] / row["seconds"])
    for row in out["bias"]:
        assert abs(row["mean"]["leave-pair-out"] - 0.5) < 5 * row["error"]["leave-pair-out"]
    assert len(out["bias"]) == len(holdout.SETTINGS)


def test_a_gap_is_an_exit_status(experiment, monkeypatch, capsys):
    holdout = experiment("holdout")
    wrong = holdout.Agreement("data", "way", 10, 5, 1, 1e-3, 0.1, 5.0)
    monkeypatch.setattr(holdout, "agreements", lambda data, quick: [wrong])
    monkeypatch.setattr(holdout, "SETTINGS", ((12, 6, 2, 1.0),))
    assert holdout.main(["--quick"]) == 1
    shown = capsys.readouterr().out
    assert "NO" in shown
    assert " 50\n" in shown
    assert "leave-one-out, pooled" in shown


def test_pooled_scores_are_those_of_scikit_learn(experiment):
    bias = experiment("_holdout_bias")
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(15, 4)), rng.integers(0, 2, 15).astype(float)
    for cv in (LeaveOneOut(), KFold(5, shuffle=True, random_state=1)):
        folds = [test for _, test in cv.split(X)]
        np.testing.assert_allclose(bias.pooled(X, y, 2.0, folds), cross_val_predict(Ridge(2.0), X, y, cv=cv))


def test_transductive_table_equals_a_plain_computation(experiment, data, capsys):
    transductive = experiment("transductive")
    assert transductive.main(["--data", str(data), "--dataset", "ohsumed", "--quick", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["ohsumed"]
    assert [(r["share"], r["penalty"]) for r in rows] == [(0.1, 0.1), (0.1, 10.0), (0.5, 0.1), (0.5, 10.0)]
    parts = [load_letor(data / "OHSUMED" / "Fold1" / f"{name}.txt") for name in ("trainingset", "testset")]
    X = np.vstack([QueryMinMaxScaler().fit_transform(p.X, qid=p.qid) for p in parts])
    y, qid = (np.concatenate([getattr(p, name) for p in parts]) for name in ("y", "qid"))
    test = np.isin(qid, parts[1].qid)
    scored = np.isin(qid, np.random.default_rng(1).permutation(np.unique(parts[0].qid))[:6])
    alpha = RankRLSCV(transductive.ALPHAS).fit(X[scored], y[scored], qid=qid[scored]).alpha_
    supervised = RankRLS(alpha).fit(X[scored], y[scored], qid=qid[scored]).predict(X[test])
    model = TransductiveRankRLS(alpha, penalty=10.0).fit(X, np.where(scored, y, np.nan), qid=qid)
    row = rows[3]
    assert row["scored"] == 6
    assert row["supervised"] == pytest.approx(disagreement_error(y[test], supervised, qid=qid[test]))
    assert row["transductive"] == pytest.approx(disagreement_error(y[test], model.transduction_[test], qid=qid[test]))
    assert row["predicted"] == pytest.approx(disagreement_error(y[test], model.predict(X[test]), qid=qid[test]))
    assert row["wins"] + row["ties"] + row["losses"] <= 6
    assert transductive.main(["--data", str(data), "--dataset", "ohsumed", "--quick"]) == 0
    assert "labels found" in capsys.readouterr().out


@pytest.mark.parametrize("script", ["holdout", "transductive"])
def test_data_that_are_not_there(experiment, script, tmp_path, capsys):
    assert experiment(script).main(["--data", str(tmp_path / "none"), "--quick"]) == 2
    assert "is not a folder" in capsys.readouterr().err
