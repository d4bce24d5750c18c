"""The LETOR experiment against a plain computation of the same protocol, and against the paper."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
NAMES = {"ohsumed": ("trainingset", "validationset", "testset"), "MQ2008": ("train", "vali", "test")}


@pytest.fixture
def letor(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    yield importlib.import_module("letor")
    for name in ("letor", "_letor_data", "_letor_methods", "_letor_report", "_paper_tables", "_text"):
        sys.modules.pop(name, None)


def parts_of(seed):
    """Training, validation and test rows: raw features at different scales, queries of 1 to 14 documents."""
    rng = np.random.default_rng(seed)
    w = np.array([1.0, -2.0, 0.5])
    parts = []
    for part in range(3):
        qid = np.repeat(np.arange(8) + 10 * part, [9, 1, 14, 7, 10, 12, 8, 11])
        X = rng.normal(size=(len(qid), 3)).round(3)
        noisy = X @ w + rng.normal(size=len(qid))
        y = (noisy > 0.5).astype(int) + (noisy > 2.0)
        parts.append((X * [1.0, 100.0, 0.01], y, qid))
    return parts


def write(folder, seed, names):
    folder.mkdir(parents=True)
    for (X, y, qid), name in zip(parts_of(seed), names, strict=True):
        lines = [
            f"{label} qid:{q} " + " ".join(f"{j}:{value:.6f}" for j, value in enumerate(row, start=1))
            for row, label, q in zip(X, y, qid, strict=True)
        ]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def data(tmp_path):
    for fold in (1, 2):
        write(tmp_path / "Some-ohsumed" / "Data" / f"Fold{fold}", fold, NAMES["ohsumed"])
    write(tmp_path / "MQ2008" / "Fold1", 3, NAMES["MQ2008"])
    return tmp_path


def scaled(X, qid):
    out = np.zeros_like(X)
    for q in np.unique(qid):
        rows = qid == q
        low, high = X[rows].min(axis=0), X[rows].max(axis=0)
        out[rows] = np.divide(X[rows] - low, high - low, out=np.zeros_like(X[rows]), where=high > low)
    return out


def laplacian(y, qid, ties):
    W = (qid[:, None] == qid).astype(float)
    if ties == "exclude":
        W *= y[:, None] != y
    return np.diag(W.sum(axis=1)) - W


def mean_average_precision(y, scores, qid):
    values = []
    for q in np.unique(qid):
        relevant = (y[qid == q] >= 1)[np.argsort(-scores[qid == q], kind="stable")]
        hits = np.cumsum(relevant)
        precisions = hits[relevant] / (np.flatnonzero(relevant) + 1)
        values.append(precisions.mean() if relevant.any() else 0.0)
    return np.mean(values)


def plain_protocol(seed, alphas, ties_to_try, L_of):
    """Choose by validation MAP, largest alpha and earliest treatment of ties first; MAP of the test queries."""
    (Xt, yt, qt), (Xv, yv, qv), (Xs, ys, qs) = [(scaled(np.round(X, 6), q), y, q) for X, y, q in parts_of(seed)]
    best, chosen = -1.0, None
    for ties in ties_to_try:
        L = L_of(yt, qt, ties)
        for alpha in sorted(alphas, reverse=True):
            w = np.linalg.solve(Xt.T @ L @ Xt + alpha * np.eye(3), Xt.T @ L @ yt)
            value = mean_average_precision(yv, Xv @ w, qv)
            if value > best + 1e-12:
                best, chosen = value, w
    return mean_average_precision(ys, Xs @ chosen, qs)


def test_same_figures_as_a_plain_computation(letor, data, capsys):
    from _letor_methods import ALPHAS

    assert letor.main(["--data", str(data), "--dataset", "ohsumed", "--methods", "RankRLS,RLS,RLS + b", "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["collection"] == "ohsumed"
    graphs = {
        "RankRLS": (("include", "exclude"), laplacian),
        "RLS": (("include",), lambda y, qid, ties: np.eye(len(y))),
        "RLS + b": (("include",), lambda y, qid, ties: np.eye(len(y)) - 1.0 / len(y)),
    }
    for column, (ties, graph) in graphs.items():
        for fold in result["folds"][column]:
            expected = plain_protocol(fold["fold"], ALPHAS, ties, graph)
            assert fold["map"] == pytest.approx(expected, abs=1e-9), (column, fold["fold"])
        mean = np.mean([fold["map"] for fold in result["folds"][column]])
        assert result["mean"][column]["map"] == pytest.approx(mean)
        assert result["paper"][column]["map"] is None  # the paper's figures are averages over five folds


def test_finds_every_collection_and_either_set_of_file_names(letor, data, capsys):
    assert letor.main(["--data", str(data), "--folds", "1", "--methods", "RankRLS,RLS"]) == 0
    text = capsys.readouterr().out
    assert "LETOR 1.0 OHSUMED, average" in text
    assert "LETOR 4.0 MQ2008, average" in text
    assert "NDCG@10" in text
    assert "won/tied/lost" in text


def test_a_folder_of_folds_needs_its_name(letor, tmp_path, capsys):
    write(tmp_path / "files" / "Fold1", 1, NAMES["ohsumed"])
    folder = str(tmp_path / "files")
    assert letor.main(["--data", folder]) == 2
    assert "No LETOR collection found" in capsys.readouterr().err
    assert letor.main(["--data", folder, "--dataset", "trec2004", "--methods", "RankRLS,RLS"]) == 0
    assert "LETOR 1.0 TREC2004, average" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "nowhere"], "not a folder"),
        (["--data", "{data}", "--dataset", "trec2003"], "No LETOR 1.0 TREC2003 found"),
        (["--data", "{data}", "--dataset", "ohsumed", "--folds", "7"], "not [7]"),
        (["--data", "{data}", "--dataset", "ohsumed", "--folds", "one"], "must be numbers"),
        (["--data", "{data}", "--methods", "RankRLS,magic"], "must be some of RankRLS, RLS"),
    ],
)
def test_one_clear_line_on_bad_input(letor, data, capsys, options, message):
    assert letor.main([option.format(data=data) for option in options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_tables_of_the_paper_are_complete(letor):
    from _letor_report import MEASURES
    from _paper_tables import METHODS, PAPER

    for table in PAPER.values():
        assert set(table) == set(MEASURES)
        for row in table.values():
            assert tuple(row) == METHODS
            assert all(0.0 < value < 1.0 for value in row.values())
        for method in METHODS:  # precision at one document is NDCG at one where labels are binary
            if table is not PAPER["ohsumed"]:
                assert table["p@1"][method] == table["ndcg@1"][method]


def test_gaussian_is_chosen_by_leave_query_out_on_training_and_validation_queries(letor, data, capsys, monkeypatch):
    import _letor_methods

    monkeypatch.setattr(_letor_methods, "GAMMAS", (0.25, 4.0))
    monkeypatch.setattr(_letor_methods, "SPARSE_ALPHAS", (0.01, 1.0, 100.0))
    options = ["--data", str(data), "--dataset", "ohsumed", "--folds", "2", "--methods", "Gaussian", "--json"]
    assert letor.main(options) == 0
    (result,) = json.loads(capsys.readouterr().out)
    (fold,) = result["folds"]["Gaussian"]
    (Xt, yt, qt), (Xv, yv, qv), (Xs, ys, qs) = [(scaled(np.round(X, 6), q), y, q) for X, y, q in parts_of(2)]
    X, y, qid = np.vstack((Xt, Xv)), np.concatenate((yt, yv)), np.concatenate((qt, qv))
    gaussian = lambda A, B, gamma: np.exp(-gamma * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    def scores(gamma, alpha, balance, ties, rows, X_new):
        """Of a dense solution on some rows; all of them are in the basis."""
        L = laplacian(y[rows], qid[rows], ties)
        for q in np.unique(qid[rows]):
            own = qid[rows] == q
            pairs = np.trace(L[np.ix_(own, own)]) / 2
            rho = {"pairs": 1.0, "examples": 1.0 / own.sum(), "queries": 1.0 / max(pairs, 1.0)}[balance]
            L[np.ix_(own, own)] *= rho
        K = gaussian(X[rows], X, gamma)
        a = np.linalg.lstsq(K.T @ L @ K + alpha * gaussian(X, X, gamma), K.T @ L @ y[rows], rcond=1e-13)[0]
        return gaussian(X_new, X, gamma) @ a

    def held_out(*setting):
        out = np.zeros(len(y))
        for q in np.unique(qid):
            out[qid == q] = scores(*setting, np.flatnonzero(qid != q), X[qid == q])
        return mean_average_precision(y, out, qid)

    chosen = tuple(fold[name] for name in ("gamma", "alpha", "balance", "ties"))
    best = held_out(*chosen)
    everything = np.arange(len(y))
    assert fold["map"] == pytest.approx(mean_average_precision(ys, scores(*chosen, everything, Xs), qs), abs=1e-6)
    for other in (
        (0.25, 1.0, "pairs", "include"),
        (4.0, 100.0, "queries", "exclude"),
        (0.25, 0.01, "examples", "include"),
    ):
        assert held_out(*other) <= best + 1e-9


def test_published_predictions_are_judged_beside_ours(letor, data, capsys):
    rng = np.random.default_rng(0)
    folder = data / "Some-ohsumed" / "Data" / "official_results" / "RankSVM"
    folder.mkdir(parents=True)
    maps = []
    for fold in (1, 2):
        _, _, (_, y, qid) = parts_of(fold)
        scores = rng.normal(size=len(y)).round(4)
        (folder / f"{fold}_Prediction_0.1").write_text("".join(f"{s}\n" for s in scores))
        maps.append(mean_average_precision(y, scores, qid))
    options = ["--data", str(data), "--dataset", "ohsumed", "--methods", "RankRLS,RLS"]
    assert letor.main([*options, "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["mean"]["LETOR RankSVM"]["map"] == pytest.approx(np.mean(maps))
    (folder / "2_Prediction_0.1").write_text("0.5\n0.25\n")
    assert letor.main(options) == 2
    assert "has 2 scores; fold 2 has 72 documents" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.shared_data
def test_map_of_the_paper_is_reached(letor, data_dir, capsys, monkeypatch):
    import _letor_methods

    monkeypatch.setattr(_letor_methods, "CS", _letor_methods.CS[6:-6:6])
    monkeypatch.setattr(_letor_methods, "ROUNDS", 150)  # of 500; at most 91 are chosen
    options = ["--data", str(data_dir), "--dataset", "ohsumed", "--methods", "RankRLS,RLS,RLS + b,RankSVM,RankBoost"]
    assert letor.main([*options, "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    for name, near in {"RankRLS": 0.005, "RLS": 0.005, "RankSVM": 0.005, "RankBoost": 0.015}.items():
        assert abs(result["mean"][name]["map"] - result["paper"][name]["map"]) < near
    assert abs(result["mean"]["RLS + b"]["map"] - result["paper"]["RLS"]["map"]) < 0.005
    for name in ("LETOR RankSVM", "LETOR RankBoost"):
        assert result["mean"][name]["map"] == pytest.approx(result["paper"][name]["map"], abs=0.0006)
