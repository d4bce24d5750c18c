"""The parse ranking experiment against dense solutions, on made-up sentences."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).parents[2] / "experiments"


@pytest.fixture
def experiment(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    before = set(sys.modules)
    yield importlib.import_module("parse_ranking")
    for name in set(sys.modules) - before:
        if str(EXPERIMENTS) in str(getattr(sys.modules[name], "__file__", "")):
            sys.modules.pop(name)


def sentences(seed, n_sentences=13, longest=9):
    """Parses whose goodness has a level of its own in each sentence; one sentence is all tied."""
    rng = np.random.default_rng(seed)
    sentence = np.repeat(np.arange(n_sentences) + 100 * seed, rng.integers(3, longest, n_sentences))
    sentence = rng.permutation(sentence)
    X = rng.normal(size=(len(sentence), 5)).round(3)
    level = rng.normal(size=1000 * (seed + 1))
    y = np.round(np.tanh(X[:, 0] + X[:, 1] ** 2 + 0.2 * rng.normal(size=len(X))) + level[sentence], 2)
    y[sentence == sentence[0]] = 0.5
    return X, y, sentence


def write(path, seed, extra=0, **options):
    X, y, sentence = sentences(seed, **options)
    X = np.column_stack((X, np.zeros((len(y), extra)), np.ones(len(y))))
    lines = [
        f"{label:g} qid:{s} " + " ".join(f"{j}:{v:g}" for j, v in enumerate(row, start=1) if v)
        for row, label, s in zip(X, y, sentence, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def parts(experiment):
    import _parse_protocol as protocol

    return [protocol.Sentences(*sentences(seed)) for seed in (0, 1)]


def laplacian(sentence, beta):
    W = (sentence[:, None] == sentence).astype(float)
    return beta * np.eye(len(W)) + (1 - beta) * (np.diag(W.sum(axis=1)) - W)


def by_sentence(test, scores, measure):
    """One value a sentence, in the order of their first rows."""
    out = []
    for name in dict.fromkeys(test.sentence):
        y, f = test.y[test.sentence == name], scores[test.sentence == name]
        below = y[:, None] < y
        if measure == "disagreement":  # equation (1) of 2008, without the diagonal in N
            apart = np.sign(y[:, None] - y) - np.sign(f[:, None] - f)
            out.append(0.5 * np.abs(apart).sum() / (len(y) * (len(y) - 1)))
        elif not below.any():
            out.append(np.nan)
        else:
            wrong = ((f[:, None] > f) + 0.5 * (f[:, None] == f))[below].sum()
            tied = np.triu(y[:, None] == y, 1).sum()
            out.append((below.sum() - 2 * wrong) / np.sqrt(below.sum() * (below.sum() + tied)))
    return np.array(out)


@pytest.mark.parametrize("number", range(7))
def test_figures_are_those_of_a_dense_solution(experiment, parts, monkeypatch, number):
    import _parse_protocol as protocol

    monkeypatch.setattr(protocol, "ALPHAS", (0.1, 3.0))
    monkeypatch.setattr(protocol, "GAMMAS", (0.2,))
    column = protocol.COLUMNS[number]
    train, test = parts
    first, second = protocol.drawn(train, 3, 2, np.random.default_rng(5))
    used = train.take(np.concatenate((first, second)))
    outcome = protocol.judge(column, used, test, len(first) if column.sparse else None)
    X, Z = used.X, used.X[: len(first)] if column.sparse else used.X
    if outcome.kernel == "linear":
        kernel = lambda A, B: A @ B.T
    else:
        assert outcome.kernel == "rbf 2^-2"  # 0.2, rounded
        kernel = lambda A, B: np.exp(-0.2 * ((A[:, None] - B[None]) ** 2).sum(axis=2))
    L, K = laplacian(used.sentence, column.regression_weight), kernel(X, Z)
    a = np.linalg.lstsq(K.T @ L @ K + outcome.alpha * kernel(Z, Z), K.T @ L @ used.y, rcond=1e-12)[0]
    expected = by_sentence(test, kernel(test.X, Z) @ a, column.measure)
    np.testing.assert_allclose(outcome.values, expected, rtol=1e-9)
    assert np.isnan(expected).sum() == (column.measure == "kendall_tau")


def test_draws_distinct_parses_of_each_sentence(experiment, parts):
    import _parse_protocol as protocol

    train = parts[0]
    first, second = protocol.drawn(train, 3, 2, np.random.default_rng(0))
    assert len(set(first) | set(second)) == len(first) + len(second)
    for name, length in zip(*np.unique(train.sentence, return_counts=True), strict=True):
        assert (train.sentence[first] == name).sum() == 3
        assert (train.sentence[second] == name).sum() == min(2, length - 3)


def test_splits_by_sentence(experiment, parts):
    import _parse_protocol as protocol

    left, right = protocol.split(parts[0], 0.4, np.random.default_rng(0))
    assert left.shape[1] == 5
    assert right.shape[1] == 8
    assert not set(left.sentence) & set(right.sentence)
    assert len(left.y) + len(right.y) == len(parts[0].y)


def test_kernel_that_tells_nothing_apart_is_not_chosen(experiment, parts, monkeypatch):
    import _parse_protocol as protocol

    train, test = parts
    # Gamma so large that all scores of new sentences are 0: tau-b is 0/0 there, and must not be left out.
    monkeypatch.setattr(protocol, "GAMMAS", (1e6,))
    assert protocol.judge(protocol.COLUMNS[1], train, test).kernel == "linear"


def test_tables_from_two_files_of_different_width(experiment, tmp_path, capsys):
    write(tmp_path / "train.txt", 0)
    write(tmp_path / "test.txt", 1, extra=3)
    files = ["--train", str(tmp_path / "train.txt"), "--test", str(tmp_path / "test.txt")]
    assert experiment.main([*files, "--repetitions", "2"]) == 0
    text = capsys.readouterr().out
    assert "Kendall's tau-b (2007, table 8)" in text
    assert "0.444" in text
    assert "2008: sparse RankRLS - RankRLS" in text
    only = ["--repetitions", "1", "--basis", "20", "--tables", "2008", "--json"]
    assert experiment.main([*files, *only, "--gammas", "0.125", "0.5"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert set(result["tables"]) == {"2008"}
    tables = result["tables"]["2008"]
    assert tables["sparse RankRLS"]["mean"] == pytest.approx(tables["RankRLS"]["mean"])  # all rows are the basis
    assert tables["full RankRLS"]["mean"] == pytest.approx(tables["RankRLS"]["mean"])
    assert "the sparse learners are the basic ones" in result["notes"][-1]


def test_one_file_is_split(experiment, tmp_path, capsys):
    write(tmp_path / "all.txt", 0, n_sentences=30)
    assert experiment.main(["--train", str(tmp_path / "all.txt"), "--repetitions", "1", "--share", "0.6"]) == 0
    assert "of 18 sentences to learn from" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "{folder}"], "No rank_train.light"),
        (["--train", "{folder}/none.txt"], "none.txt"),
        (["--train", "{folder}/plain.txt"], "has no qid"),
        (["--train", "{folder}/all.txt", "--basis", "1"], "--basis must be at least 2"),
        (["--train", "{folder}/all.txt", "--share", "2"], "--share must lie between"),
        (["--train", "{folder}/all.txt", "--repetitions", "0"], "--repetitions must be at least 1"),
    ],
)
def test_one_clear_line_on_bad_input(experiment, tmp_path, capsys, options, message):
    write(tmp_path / "all.txt", 0)
    (tmp_path / "plain.txt").write_text("1 1:2\n0 1:3\n")
    assert experiment.main([option.format(folder=tmp_path) for option in options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.shared_data
def test_reads_the_sample(experiment, data_dir):
    import _parse_protocol as protocol

    folder = data_dir / "parse_ranking"
    train, test = protocol.load([folder / "rank_train.light", folder / "rank_test.light"])
    assert train.shape == (100, 22)
    assert test.shape == (100, 20)
    assert train.X.shape[1] == test.X.shape[1] == 195097
