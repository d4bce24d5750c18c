"""Preferences from files: ``fit --pairs`` and ``evaluate --pairs`` give what the estimator and plain counting give."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from tests.refusals import Refusal

import rankrls as library
from rankrls import RankRLSCV, load
from rankrls.cli import _methods
from rankrls.cli._options import Options, names_of_options
from rankrls.io import load_letor
from rankrls.persistence import read_info


@pytest.fixture
def votes(tmp_path, rows, letor):
    """items.txt with docid comments; votes.csv by docid and rows.csv by row number, the same 150 votes of 5 people."""
    X, y, _ = rows(3, queries=5)
    letor(tmp_path / "items.txt", X, y, docid=True)
    rng = np.random.default_rng(3)
    a, b = rng.integers(len(X), size=(2, 150))
    a, b = a[a != b], b[a != b]
    first = (X[a] - X[b]) @ [2.0, -1.0, 0.5, 0, 0] + rng.normal(size=len(a)) > 0
    winners, losers = np.where(first, a, b), np.where(first, b, a)
    strength, weight = rng.integers(0, 3, size=len(a)), rng.integers(1, 4, size=len(a))
    person = rng.integers(5, size=len(a))
    with open(tmp_path / "votes.csv", "w") as file:
        file.write("group,weight,strength,winner,loser\n")
        for p, c, s, i, j in zip(person, weight, strength, winners, losers, strict=True):
            file.write(f"p{p},{c},{s},d{i},d{j}\n")
    with open(tmp_path / "rows.csv", "w") as file:
        for i, j in zip(winners, losers, strict=True):
            file.write(f"{i},{j}\n")
    return tmp_path, X, winners, losers, strength, weight, person


def test_fit_by_row_numbers(votes, rankrls):
    folder, X, winners, losers, *_ = votes
    result = rankrls("fit", folder / "items.txt", "--pairs", folder / "rows.csv", "-m", folder / "m.rankrls", "--json")
    assert result.status == 0, result.err
    expected = RankRLSCV(scoring="pair_accuracy").fit_pairs(X, winners, losers)
    found = result.json
    assert found["chosen"]["alpha"] == pytest.approx(expected.alpha_, rel=1e-12)
    assert found["selection"]["how"] == expected.selection_
    assert found["selection"]["measure"] == "pair_accuracy"
    assert found["selection"]["value"] == pytest.approx(expected.best_score_, rel=1e-12)
    assert found["pairs"]["train"]["preferences"] == len(winners)
    assert found["measures"] == {}
    np.testing.assert_allclose(load(folder / "m.rankrls").predict(X), expected.predict(X), rtol=1e-12)


def test_fit_by_ids_with_everything_the_table_says(votes, rankrls):
    folder, X, winners, losers, strength, weight, person = votes
    result = rankrls(
        *("fit", folder / "items.txt", "--pairs", folder / "votes.csv", "--ids", "docid", "-m", folder / "m.rankrls"),
        *("--kernel", "rbf,linear", "--json"),
    )
    assert result.status == 0, result.err
    expected = RankRLSCV(scoring="pair_accuracy", kernel=("rbf", "linear")).fit_pairs(
        X, winners, losers, strength=strength, weight=weight, groups=person
    )
    assert result.json["selection"]["how"] == "leave-one-out over 5 groups of preferences"
    assert result.json["selection"]["value"] == pytest.approx(expected.best_score_, rel=1e-12)
    assert result.json["chosen"]["kernel"] == expected.best_params_["kernel"]
    np.testing.assert_allclose(load(folder / "m.rankrls").predict(X), expected.predict(X), rtol=1e-9)
    info = read_info(folder / "m.rankrls")["given"]["pairs"]["train"]
    assert (info["preferences"], info["groups"], info["ties"]) == (len(winners), 5, int((strength == 0).sum()))
    shown = rankrls("info", folder / "m.rankrls").out
    assert "Preferences" in shown
    assert info["sha256"][:16] in shown
    table = load_letor(folder / "items.txt")
    (folder / "comments.csv").write_text(f"{table.comments[4]},{table.comments[0]}\n{table.comments[1]},docid = d3\n")
    by_comment = ("--pairs", folder / "comments.csv", "--ids", "comment")
    result = rankrls("fit", folder / "items.txt", *by_comment, "-m", folder / "m.rankrls", "--alphas", "2", "--json")
    assert result.json["pairs"]["train"]["items"] == 4
    expected = RankRLSCV((2.0,)).fit_pairs(X, [4, 1], [0, 3])
    np.testing.assert_allclose(load(folder / "m.rankrls").predict(X), expected.predict(X), rtol=1e-12)


def share(scores, i, j, s, c):
    lead = np.sign(scores[i] - scores[j])
    judged = s != 0
    right = (1 + lead[judged]) / 2
    return right @ c[judged] / c[judged].sum(), right, c[judged], judged


def test_test_preferences_and_evaluate(votes, rows, letor, rankrls):
    folder, X, _, _, strength, weight, person = votes
    new, y, qid = rows(4, queries=6)
    letor(folder / "new.txt", new, y, qid)
    rng = np.random.default_rng(5)
    i = rng.integers(len(new), size=60)
    j = (i + rng.integers(1, len(new), size=60)) % len(new)
    s, c, p = strength[:60], weight[:60], person[:60]
    with open(folder / "new.csv", "w") as file:
        file.write("winner\tloser\tstrength\tweight\tgroup\n")
        file.writelines(f"{a}\t{b}\t{d}\t{e}\tp{g}\n" for a, b, d, e, g in zip(i, j, s, c, p, strict=True))
    model = folder / "m.rankrls"
    test = ("--test", folder / "new.txt", "--test-pairs", folder / "new.csv")
    result = rankrls("fit", folder / "items.txt", "--pairs", folder / "rows.csv", *test, "-m", model, "--json")
    scores = load(model).predict(new)
    value, right, counts, judged = share(scores, i, j, s, c)
    found = result.json["measures"]["test"]["pair_accuracy"]
    assert found["value"] == pytest.approx(value, rel=1e-12)
    assert found["preferences"] == judged.sum()
    sums = [np.sum((counts * (right - value))[p[judged] == g]) for g in range(5)]
    assert found["standard_error"] == pytest.approx(np.sqrt(np.sum(np.square(sums))) / counts.sum(), rel=1e-12)
    again = rankrls("evaluate", model, folder / "new.txt", "--pairs", folder / "new.csv", "--json").json
    entry = again["measures"]["pair_accuracy"]
    assert {name: entry[name] for name in found} == found
    ends = [max(0, value - 1.96 * found["standard_error"]), min(1, value + 1.96 * found["standard_error"])]
    assert entry["interval"] == pytest.approx(ends)
    (folder / "s.txt").write_text("\n".join(map(repr, scores.tolist())))
    given = rankrls("evaluate", "--scores", folder / "s.txt", folder / "new.txt", "--pairs", folder / "new.csv")
    assert f"{value:.4f}" in given.out
    assert f" {judged.sum()}\n" in given.out
    # without --test they are between the rows that were learnt from; labels of --test are judged as labels
    inner = rankrls(
        *("fit", folder / "items.txt", "--pairs", folder / "rows.csv", "--test-pairs", folder / "rows.csv"),
        *("-m", model, "--json"),
    ).json["measures"]["test"]["pair_accuracy"]
    _, X, winners, losers, *_ = votes
    ones = np.ones(len(winners))
    value, right, *_ = share(load(model).predict(X), winners, losers, ones, ones)
    assert inner["value"] == pytest.approx(value)
    assert inner["standard_error"] == pytest.approx(right.std() / np.sqrt(len(right)))
    labels = rankrls(
        *("fit", folder / "items.txt", "--pairs", folder / "rows.csv", "--test", folder / "new.txt", "-m", model),
        "--json",
    )
    assert "ndcg@10" in labels.json["measures"]["test"]


def test_what_people_read(votes, rankrls):
    folder, *_ = votes
    command = ("--pairs", folder / "votes.csv", "--ids", "docid")
    result = rankrls(
        *("fit", folder / "items.txt", *command, "--test-pairs", folder / "votes.csv", "-m", folder / "m.rankrls"),
    )
    for word in ("Preferences", "votes.csv", "groups", "pair_accuracy", "over preferences", "± 0."):
        assert word in result.out
    assert result.err == ""
    curve = rankrls("cv", folder / "items.txt", *command, "--alphas", "1,10,100")
    assert "pair_accuracy by leave-one-out over 5 groups" in curve.out
    assert curve.out.count("linear") == 1
    assert not rankrls("cv", folder / "items.txt", *command, "--json").json["measures"]


def test_a_model_of_queries_judges_inside_queries(files, rankrls, refused):
    model = files / "m.rankrls"
    rankrls("fit", files / "train.txt", "-m", model, "-q")
    (files / "in.csv").write_text("0,1\n9,8\n")
    assert rankrls("evaluate", model, files / "test.txt", "--pairs", files / "in.csv").status == 0
    (files / "across.csv").write_text("0,1\n1,9\n")
    command = ("evaluate", model, files / "test.txt", "--pairs", files / "across.csv")
    refused(*command, Refusal("preference 1", "query 300", "query 301", file="across.csv"))
    (files / "flat.txt").write_text("1 5:1\n0 1:2\n")
    refused("evaluate", model, files / "flat.txt", "--pairs", files / "in.csv", Refusal("every line needs a qid"))


@pytest.mark.parametrize(
    ("text", "options", "refusal"),
    [
        ("0,1\n1,40\n", [], Refusal("'40'", "0 to 39", row=1, column="loser", file="bad.csv", line=2)),
        ("0,1\nd1,3\n", [], Refusal("'d1'", "no row number", row=1, column="winner", file="bad.csv", line=2)),
        (
            "d0,d1\nd1,d99\n",
            ["--ids", "docid"],
            Refusal("no item", "'d99'", row=1, column="loser", file="bad.csv", line=2),
        ),
        ("0,1\n1,1\n", [], Refusal("'1'", "with itself", row=1, column="winner", file="bad.csv", line=2)),
        ("0,1,much\n", [], Refusal("'much'", "not a number", column="strength", file="bad.csv", line=1)),
        ("0,1,1,0\n1,2,1,0\n", [], Refusal("every preference", "weight 0", column="weight", file="bad.csv")),
        ("winner,loser\n", [], Refusal("no row", file="bad.csv")),
        ("0,1,0\n1,2,0\n", [], Refusal("Every strength", parameter="strength")),
        ("0,1\n", [], Refusal("Leaving out", "at least two")),
        ("0,1\n1,2\n", ["--ids", "name"], Refusal("--ids", "row, docid, comment", parameter="ids")),
        ("0,1\n1,2\n", ["--ties", "exclude"], Refusal("--ties", "--pairs", parameter="ties")),
        ("0,1\n1,2\n", ["--balance", "pairs"], Refusal("--balance", "about labels", parameter="balance")),
        (
            "0,1\n1,2\n",
            ["--regression-weight", "0.5"],
            Refusal("--regression-weight", "about labels", parameter="regression_weight"),
        ),
        ("0,1\n1,2\n", ["--metric", "map"], Refusal("'disagreement' or 'pair_accuracy'", parameter="scoring")),
        ("0,1\n1,2\n", ["--vali", "items.txt"], Refusal("--method rankrls", "leaving some out")),
        ("0,1\n1,2\n", ["--vali-pairs", "bad.csv"], Refusal("--method rankrls", "leaving some out")),
        ("0,1\n1,2\n", ["--test-pairs", "none.csv"], Refusal("none.csv: No such file", kind=OSError)),
        ("0,1\n1,2\n", ["--cv", "3"], Refusal("--cv 3", "2 to 2", parameter="cv")),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list | tuple) else str(v),
)
def test_bad_input(text, options, refusal, votes, refused, monkeypatch):
    folder, *_ = votes
    monkeypatch.chdir(folder)
    (folder / "bad.csv").write_text(text)
    before = sorted(folder.iterdir())
    refused("fit", "items.txt", "--pairs", "bad.csv", "-m", "m.rankrls", *options, refusal)
    assert sorted(folder.iterdir()) == before


def test_options_that_do_not_go_together(files, letor, rows, refused, rankrls):
    (files / "p.csv").write_text("0,1\n1,2\n")
    fit = ("fit", files / "train.txt", "-m", files / "m.rankrls")
    refused(*fit, "--vali-pairs", files / "p.csv", Refusal("--vali-pairs", "--pairs", parameter="vali_pairs"))
    refused(*fit, "--pairs", files / "p.csv", "--ids", "docid", Refusal("'docid = NAME'"))
    refused(*fit, "--pairs", files / "p.csv", "--ids", "comment", Refusal("no line has a comment"))
    refused(*fit, "--method", "magic", Refusal("--method", "one of rankrls", parameter="method"))
    rankrls(*fit, "-q")
    judge = ("evaluate", files / "m.rankrls", files / "test.txt", "--pairs", files / "p.csv")
    refused(*judge, "--metrics", "map", Refusal("--pairs", "--metrics", "exclude", parameter="judged_pairs"))
    refused(*judge, "--per-query", Refusal("--pairs", "--per-query", "exclude", parameter="judged_pairs"))
    (files / "ties.csv").write_text("0,1,0\n")
    refused(*judge[:3], "--pairs", files / "ties.csv", Refusal("No preference", file="ties.csv"))


def test_every_method_takes_options_that_exist():
    options = names_of_options()
    for name, method in _methods.METHODS.items():
        assert set(method.takes.split()) <= options.keys()
        assert issubclass(getattr(library, method.estimator), BaseEstimator)
        assert f"{name}: " in " ".join(Options.__doc__.split())  # what --method says of it
