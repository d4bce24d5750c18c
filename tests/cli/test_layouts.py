"""Tables with columns of all kinds, votes, preferences between rows, sizes of groups, and censored times."""

import os
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.refusals import Refusal

from rankrls import AutoRankRLS, RankRLSCV, load, survival_pairs
from rankrls.inspection import leaderboard
from rankrls.io import load_letor, load_votes
from rankrls.preprocessing import TableEncoder

ROLES = ("--label", "grade", "--qid", "query", "--id", "product")
SIDES = ("--left", "left", "--right", "right", "--preferred", "choice")


def shop(seed=0, queries=14):
    """Rows of a shop: categories, gaps, dates, texts, and a column that is no feature."""
    rng = np.random.default_rng(seed)
    m = queries * 8
    brand = rng.choice(["H&M", 'The "Best"', "Zed, Inc", *(["New"] if seed else [])], m)
    words = np.array(["red", "blue", "shoe", "shirt", "summer"])
    frame = pd.DataFrame(
        {
            "query": np.repeat([f"q{k}" for k in range(queries)], 8),
            "product": [f"P{k:03d}" for k in range(m)],
            "grade": np.digitize((brand == "H&M") + rng.normal(size=m), [0.3, 1.0]),
            "brand": brand,
            "price": rng.lognormal(3, 1, m).round(2),
            "stock": rng.integers(0, 9, m),
            "added": [f"2023-{k % 12 + 1:02d}-03" for k in rng.integers(0, 24, m)],
            "title": [" ".join(rng.choice(words, 3)) for _ in range(m)],
        }
    )
    frame.loc[::9, "price"] = np.nan
    return frame


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("train.csv", "test.csv")):
        shop(seed).to_csv(name, index=False)
    return tmp_path


def test_one_error_lists_every_column_that_needs_a_decision(tables, refused, works):
    line = refused("fit", "train.csv", *ROLES, "-m", "m.rankrls", Refusal("train.csv", column="brand"))
    for column in ("'brand': 3 different values", "'added': dates", "'title': ", "'price': "):
        assert column in line
    given = line.partition(" Use ")[2].partition(", or ")[0]
    for part in ("--categorical brand", "--dates added", "--set impute=median"):
        assert part in given
    works("fit", "train.csv", *ROLES, "-m", "m.rankrls", *given.split())
    some = ["--ignore", "stock", "--text", "title", "--dates", "added"]
    line = refused("fit", "train.csv", *ROLES, "-m", "m.rankrls", *some, Refusal(column="brand"))
    assert "Use --categorical brand --set impute=median, or" in line
    pd.read_csv("train.csv").assign(code=[f"k{k:04d}" for k in range(112)]).to_csv("codes.csv", index=False)
    line = refused("fit", "codes.csv", *ROLES, "-m", "m.rankrls", *some, "--columns", "named", Refusal(column="brand"))
    assert "--ignore stock,code " in line
    works("fit", "train.csv", *ROLES, "-m", "m.rankrls", "--columns", "auto")
    pd.read_csv("train.csv").drop(columns="price").to_csv("less.csv", index=False)
    lacking = Refusal("'price'", "needs its features", file="less.csv", column="price", parameter=None)
    refused("predict", "m.rankrls", "less.csv", lacking)


def test_columns_that_need_a_decision_are_named_without_reading_the_file_again(tables, refused):
    """A pipe can be read once."""
    os.mkfifo("pipe.csv")
    writer = threading.Thread(target=lambda: Path("pipe.csv").write_text(Path("train.csv").read_text()))
    writer.start()
    line = refused("fit", "pipe.csv", *ROLES, "-m", "m.rankrls", Refusal("pipe.csv", column="brand"))
    writer.join()
    assert all(f"'{name}': " in line for name in ("brand", "added", "title", "price"))


def test_group_is_a_file_of_sizes_and_no_column_of_query_ids(tables, refused):
    missing = Refusal("query: No such file", kind=OSError)
    refused("fit", "train.csv", "--label", "grade", "--group", "query", "-m", "m.rankrls", missing)


@pytest.mark.parametrize("named", [True, False])
def test_encoded_columns_are_those_of_table_encoder(tables, works, named):
    how = ["--columns", "auto"]
    parameters = {"columns": "auto"}
    if named:
        parameters = {"columns": "named", "categorical": "brand", "dates": "added", "text": "title"}
        how = ["--categorical", "brand", "--dates", "added", "--text", "title", "--set", "impute=median"]
    found = works("fit", "train.csv", *ROLES, "-m", "m.rankrls", *how, "--alphas", "1", "--json").json
    uses = {name: use["kind"] for name, use in found["columns_used"].items()}
    assert (uses["brand"], uses["added"], uses["price"]) == ("category", "date", "number")
    train, test = shop(0), shop(1)
    columns = ["brand", "price", "stock", "added", "title"]
    encoder = TableEncoder(**parameters)
    model = RankRLSCV(alphas=[1.0]).fit(encoder.fit_transform(train[columns]), train["grade"], qid=train["query"])
    scores = [float(line) for line in works("predict", "m.rankrls", "test.csv").out.split()]
    np.testing.assert_allclose(scores, model.predict(encoder.transform(test[columns])), rtol=1e-8)


def test_missing_and_unseen_cells_are_counted_at_every_prediction(tables, works):
    works("fit", "train.csv", *ROLES, "-m", "m.rankrls", "--columns", "auto")
    err = works("predict", "m.rankrls", "test.csv").err
    missing, new = int(shop(1)["price"].isna().sum()), int((shop(1)["brand"] == "New").sum())
    assert f"price {missing} missing" in err
    assert f"brand {new} unseen" in err


def test_models_of_tables_are_explained_and_exported(tables, works):
    works("fit", "train.csv", *ROLES, "-m", "m.rankrls", "--columns", "auto", "--ignore", "title")
    assert "price" in works("explain", "m.rankrls", "test.csv", "P000", "P003").out
    works("export", "m.rankrls", "model.json", "--format", "solr")
    assert "brand" in (tables / "features.json").read_text()
    assert "brand" in (tables / "fields.json").read_text()
    works("export", "m.rankrls", "shop.sql", "--format", "sql", "--dialect", "sqlite", "--name", "score")
    assert (tables / "shop.sql").read_text().endswith('AS "score"')
    works("export", "m.rankrls", "shop.json", "--format", "json")
    assert "def score(" in (tables / "score.py").read_text()
    assert "function score(" in (tables / "score.mjs").read_text()


def test_a_model_is_not_written_over_the_files_beside_it(tables, works, refused):
    works("fit", "train.csv", *ROLES, "-m", "m.rankrls", "--columns", "auto", "--ignore", "title")
    refused("export", "m.rankrls", "features.json", "--format", "solr", Refusal("features.json", parameter="path"))
    refused("export", "m.rankrls", "m.json", "--format", "solr", "--dialect", "duckdb", Refusal(parameter="dialect"))
    assert not (tables / "features.json").exists()


@pytest.fixture
def votes(tmp_path, monkeypatch):
    """Votes between five names of different strength."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    strength = dict(zip("abcde", (2.0, 1.0, 0.0, -1.0, -2.0), strict=True))
    rows = []
    for _ in range(300):
        left, right = rng.choice(list(strength), 2, replace=False)
        better = strength[left] - strength[right] + rng.logistic() > 0
        rows.append((left, right, "tie" if rng.random() < 0.1 else left if better else right))
    pd.DataFrame(rows, columns=["left", "right", "choice"]).to_csv("votes.csv", index=False)
    return tmp_path


def test_votes_give_a_leaderboard(votes, works, refused):
    found = works("fit", "votes.csv", *SIDES, "-m", "m.rankrls", "--json").json
    assert [each["item"] for each in found["leaderboard"]] == [*"abcde"]
    assert sum(each["votes"] for each in found["leaderboard"]) == 2 * found["pairs"]["train"]["preferences"]
    table = load_votes("votes.csv", left="left", right="right", preferred="choice")
    board = leaderboard(table.winners, table.losers, strength=table.strength, names=table.items)
    shown = works("fit", "votes.csv", *SIDES, "-m", "m.rankrls").out
    for row, line, of in zip(
        board.rows, shown.split("Leaderboard")[1].splitlines()[2:], found["leaderboard"], strict=False
    ):
        assert line.split() == " ".join(row).split()
        assert f"{of['low']:+.3f} to {of['high']:+.3f}" == row[3]
    assert found["selection"] == works("cv", "votes.csv", *SIDES, "--json").json["selection"]
    words = ("fit", "votes.csv", *SIDES, "--label", "x", "-m", "m.rankrls")
    refused(*words, Refusal("cannot be used together", parameter="preferred"))
    refused("fit", "votes.csv", *SIDES[:4], "-m", "m.rankrls", Refusal(parameter="preferred"))


@pytest.mark.parametrize(
    "names", [["owl", "crow", "jay"], ["model-1", "model-2", "model-3"], ["an owl", "a crow", "x"]]
)
def test_a_few_votes_are_between_names(tmp_path, names, works):
    a, b, c = names
    (tmp_path / "v.csv").write_text(f"left,right,choice\n{a},{b},left\n{b},{c},left\n{a},{c},left\n")
    found = works("fit", tmp_path / "v.csv", *SIDES, "-m", tmp_path / "m.rankrls", "--json").json
    assert [each["item"] for each in found["leaderboard"]] == names


def test_votes_with_an_empty_side_and_tables_without_items(votes, works, refused):
    works("fit", "votes.csv", *SIDES, "-m", "m.rankrls")
    (votes / "plain.csv").write_text("a,b\n1,2\n")
    refused("predict", "m.rankrls", "plain.csv", Refusal("Columns: a, b", column="item"))
    (votes / "empty.csv").write_text("left,right,choice\n" + "a,b,left\n" * 9 + "a,,left\n")
    refused("fit", "empty.csv", *SIDES, "-m", "m.rankrls", Refusal("column 'right' is empty", row=9))


def test_preferences_between_rows(files, works, refused):
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 96, (60, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    text = "winner,loser\n" + "".join(f"d{i},d{j}\n" for i, j in pairs)
    (files / "pairs.csv").write_text(text)
    found = works("fit", "train.txt", "--pairs", "pairs.csv", "-m", "m.rankrls", "--alphas", "1,10", "--json").json
    data = load_letor("train.txt", dense=True)
    model = RankRLSCV(alphas=[1.0, 10.0]).fit_pairs(data.X, *pairs.T)
    assert found["chosen"]["alpha"] == model.alpha_
    judged = works("evaluate", "m.rankrls", "train.txt", "--pairs", "pairs.csv", "--json").json
    scores = model.predict(data.X)
    assert judged["measures"]["pair_accuracy"]["value"] == pytest.approx(
        np.mean(scores[pairs[:, 0]] > scores[pairs[:, 1]])
    )
    (files / "bad.csv").write_text("winner,loser\nd1,d999\n")
    refused("fit", "train.txt", "--pairs", "bad.csv", "-m", "m.rankrls", Refusal("d999", file="bad.csv", line=2))


def test_sizes_of_groups_are_queries(files, rows, letor, works, refused):
    X, y, _ = rows(1)
    letor(files / "flat.txt", X, y)
    (files / "sizes").write_text("8\n" * 12)
    expected = works("fit", "train.txt", "-m", "m.rankrls", "--json").json["chosen"]
    assert works("fit", "flat.txt", "--group", "sizes", "-m", "m.rankrls", "--json").json["chosen"] == expected
    (files / "flat.txt.query").write_text("8\n" * 12)
    result = works("fit", "flat.txt", "-m", "m.rankrls", "--json")
    assert result.json["chosen"] == expected
    assert "flat.txt.query" in result.err
    (files / "sizes").write_text("8\n" * 11)
    refused("fit", "flat.txt", "--group", "sizes", "-m", "m.rankrls", Refusal("88", parameter="group"))


@pytest.fixture
def patients(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    time = np.exp(X[:, 0] + 0.5 * rng.normal(size=60)).round(3)
    event = (rng.random(60) < 0.7).astype(int)
    frame = pd.DataFrame(X, columns=[*"abcd"]).assign(time=time, event=event)
    frame.to_csv("patients.csv", index=False)
    return frame


def test_censored_times(patients, works, refused):
    given = ("patients.csv", "--label", "time", "--event", "event", "--global", "--alphas", "1,10")
    found = works("fit", *given, "-m", "m.rankrls", "--json").json
    winners, losers = survival_pairs(patients["time"], patients["event"])
    model = RankRLSCV(alphas=[1.0, 10.0]).fit_pairs(patients[[*"abcd"]].to_numpy(), winners, losers)
    assert found["chosen"]["alpha"] == model.alpha_
    assert found["selection"]["measure"] == "C-index"
    judged = works("evaluate", "m.rankrls", *given[:6], "--json").json["measures"]["C-index"]
    scores = load("m.rankrls").predict(patients[[*"abcd"]])
    assert judged["value"] == pytest.approx(np.mean(scores[winners] > scores[losers]))
    for options in ((), ("--global",), ("--label", "time")):  # the model file says which times are censored
        assert works("evaluate", "m.rankrls", "patients.csv", *options, "--json").json["measures"]["C-index"] == judged
    assert "event" in works("info", "m.rankrls", "--json").json["given"]["columns"]
    wanted = Refusal("evaluate each model", parameter="qid", file="patients.csv")
    patients[["time"]].rename(columns={"time": "score"}).to_csv("scores.csv", index=False)
    refused("compare", "patients.csv", "m.rankrls", "scores.csv", wanted)
    assert "C-index" in works("cv", *given).out
    refused("fit", *given[:4], "none", "-m", "m.rankrls", Refusal("none", kind=Exception))
    patients.assign(event=2).to_csv("bad.csv", index=False)
    wrong = Refusal("observed", parameter="event", file="bad.csv", line=2)
    refused("fit", "bad.csv", *given[1:], "-m", "m.rankrls", wrong)


def test_patients_are_held_out_by_their_ids(patients, works, refused):
    given = ("twice.csv", "--label", "time", "--event", "event", "--global", "--alphas", "1", "--id", "patient")
    pd.concat([patients, patients]).assign(patient=[f"p{k}" for k in [*range(60), *range(60)]]).to_csv(
        given[0], index=False
    )
    found = works("fit", *given, "-m", "m.rankrls")
    assert "Chosen by 5 x 5 folds of 58 items: new items" in found.out
    nested = works("cv", *given, "--nested", "--json").json["nested"]
    assert nested["protocol"] == "5 folds of 60 items"
    assert "new votes, known items" in works("cv", *given, "--new", "votes").out
    words = ("fit", "patients.csv", "--label", "time", "--global", "--new", "items", "-m", "m.rankrls")
    refused(*words, Refusal("preferences", parameter="new"))


def test_models_of_censored_times_are_compared_on_new_patients(patients, works):
    given = ("patients.csv", "--label", "time", "--event", "event", "--global", "--method", "auto")
    settings = ("--set", "families=all", "--set", "n_basis=20")
    found = works("fit", *given, *settings, "-m", "m.rankrls", "--json").json
    assert {model["model"] for model in found["models"]} == {"linear", "degree 2", "gaussian", "laplacian"}
    assert "folds of 58 items: new items" in found["selection"]["how"]
    winners, losers = survival_pairs(patients["time"], patients["event"])
    model = AutoRankRLS(scoring="pair_accuracy", n_basis=20, families="all")
    model.fit_pairs(patients[[*"abcd"]].to_numpy(), winners, losers)
    assert found["chosen"]["model"] == model.best_params_["model"]
    assert found["selection"]["value"] == pytest.approx(model.best_score_)
    assert np.isfinite(np.array(works("predict", "m.rankrls", "patients.csv").out.split(), dtype=float)).all()


def test_one_small_ranking_by_leave_pair_out(patients, works):
    given = ("patients.csv", "--label", "time", "--ignore", "event", "--global", "--alphas", "1,10")
    result = works("cv", *given, "--cv", "leave_pair_out")
    assert "by held-out C-index" in result.out
    assert "95 % interval" in result.out
    curve = works("cv", *given, "--cv", "leave_pair_out", "--json").json["curve"]
    assert all(entry["low"] < entry["mean_score"] < entry["high"] for entry in curve)


def clicked(rows):
    """Rows of 60 queries with clicks, positions and impressions, and these as a data frame."""
    X, y, qid = rows(1, queries=60)
    rng = np.random.default_rng(0)
    position = np.concatenate([rng.permutation(8) + 1 for _ in range(60)])
    clicks = rng.binomial(20, (0.1 + 0.4 * y) / position)
    frame = pd.DataFrame(X, columns=[*"abcde"]).assign(query=qid, clicked=clicks, place=position, seen=20)
    return X, clicks, qid, position, frame


SHOWN = ("--label", "clicked", "--qid", "query", "--position", "place", "--impressions", "seen", "-m", "m.rankrls")


def test_clicks_with_their_positions(files, rows, works, rankrls):
    X, clicks, qid, position, frame = clicked(rows)
    frame.to_csv(files / "clicks.csv", index=False)
    result = works("fit", "clicks.csv", *SHOWN, "--json").json
    model = RankRLSCV().fit(X, clicks, qid=qid, position=position, impressions=np.full(480, 20))
    saved = load(files / "m.rankrls")
    np.testing.assert_allclose(saved.coef_, model.coef_, rtol=1e-9)
    assert saved.propensities_.positions.tolist() == [*range(1, 9)]
    assert result["examination"]["2"]["examination"] == pytest.approx(model.propensities_.examination[1])
    assert result["measures"]["held_out"]["disagreement"]["value"] == pytest.approx(model.best_score_)
    assert works("info", "m.rankrls", "--json").json["examination"] == result["examination"]
    assert "Examination\n" in works("info", "m.rankrls").out
    assert str(model.propensities_) in works("cv", "clicks.csv", *SHOWN[:-2]).out
    assert works("predict", "m.rankrls", "clicks.csv").out.count("\n") == 480


def test_positions_beside_rows(files, rows, letor, works, refused):
    X, clicks, qid, position, _ = clicked(rows)
    letor(files / "clicks.txt", X, clicks > 5, qid)
    beside = files / "clicks.txt.position"
    beside.write_text("\n".join(map(str, position)) + "\n")
    result = works("fit", "clicks.txt", "-m", "m.rankrls", "--json")
    model = RankRLSCV().fit(X, clicks > 5, qid=qid, position=position)
    assert result.json["examination"]["3"]["examination"] == pytest.approx(model.propensities_.examination[2])
    assert "clicks.txt.position" in result.err
    refused("fit", "clicks.txt", "--model", beside.name, Refusal("would be overwritten"))
    letor(files / "clicks.txt", X, clicks + 2, qid)
    wrong = Refusal("--impressions", file="clicks.txt", parameter="clicks", row=0)
    refused("fit", "clicks.txt", "-m", "m.rankrls", wrong)
    words = ["fit", "clicks.txt", "-m", "m", "--method", "ranksvm"]
    refused(*words, Refusal("cannot be fitted to clicks", parameter="position"))
    beside.write_text("1\n" * 479)
    refused("fit", "clicks.txt", "-m", "m", Refusal("479", file=str(beside.name), parameter="position"))
    beside.write_text("1\nx\n" * 240)
    refused("fit", "clicks.txt", "-m", "m", Refusal("not a whole number", file=str(beside.name), line=2))


def test_wrong_positions_and_clicks_are_refused_by_row(files, rows, refused):
    *_, frame = clicked(rows)
    wrong = {"place": (np.nan, "has an empty cell"), "seen": (-1, "Row 7"), "clicked": (21, "Row 7")}
    for column, (value, text) in wrong.items():
        frame.assign(**{column: frame[column].where(frame.index != 7, value)}).to_csv("bad.csv", index=False)
        refused("fit", "bad.csv", *SHOWN, Refusal(text, file="bad.csv", row=7))
    refused("fit", "bad.csv", *SHOWN, "--event", "seen", Refusal("cannot be used together", parameter="position"))


def test_votes_between_ids_and_their_probabilities(files, works, refused):
    """With features of the items and without; predict gives what predict_win_probability says."""
    rng = np.random.default_rng(0)
    items = pd.DataFrame(rng.normal(size=(8, 3)), columns=[*"abc"]).assign(docid=[f"i{k}" for k in range(8)])
    items.to_csv("items.csv", index=False)
    first, second = rng.integers(8, size=(2, 200))
    first, second = first[first != second], second[first != second]
    margin = items["a"].to_numpy()[first] - items["a"].to_numpy()[second] + rng.normal(size=len(first))
    choice = np.where(np.abs(margin) < 0.2, "tie", np.where(margin > 0, "left", "right"))
    names = items["docid"].to_numpy()
    pd.DataFrame({"left": names[first], "right": names[second], "choice": choice}).to_csv("votes.csv", index=False)
    works("fit", "items.csv", "--pairs", "votes.csv", "-m", "m.rankrls")
    X, left_wins = items[[*"abc"]].to_numpy(), margin > 0
    winners, losers = np.where(left_wins, first, second), np.where(left_wins, second, first)
    model = RankRLSCV(scoring="pair_accuracy").fit_pairs(X, winners, losers, strength=(choice != "tie").astype(float))
    np.testing.assert_allclose(load("m.rankrls").coef_, model.coef_, rtol=1e-9)
    found = np.loadtxt(works("predict", "m.rankrls", "items.csv", "--pairs", "votes.csv").out.splitlines())
    np.testing.assert_allclose(found, model.predict_win_probability(X[first], X[second]), rtol=1e-9)

    sides = ("--left", "left", "--right", "right")
    works("fit", "votes.csv", *sides, "--preferred", "choice", "-m", "names.rankrls")
    works("predict", "names.rankrls", "votes.csv", *sides, "-o", "p.csv")
    table, ranker = pd.read_csv("p.csv"), load("names.rankrls")
    assert [*table] == ["left", "right", "difference", "probability"]
    lead = ranker.predict({"item": table["left"].to_numpy()}) - ranker.predict({"item": table["right"].to_numpy()})
    np.testing.assert_allclose(table["difference"], lead, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(table["probability"], 1.0 / (1.0 + np.exp(-ranker[-1].win_slope_ * lead)), rtol=1e-9)

    items[["docid"]].to_csv("ids.csv", index=False)
    refused("fit", "ids.csv", "--pairs", "votes.csv", "-m", "m", Refusal(parameter="features"))
    (files / "others.csv").write_text("winner,loser\ni0,none\n")
    refused("predict", "m.rankrls", "items.csv", "--pairs", "others.csv", Refusal("'none'", parameter="pairs"))
    twice = pd.concat([items, items[3:4].assign(a=5.0)]).assign(qid=[1] * 8 + [2])
    twice.to_csv("twice.csv", index=False)
    refused("predict", "m.rankrls", "twice.csv", "--pairs", "votes.csv", Refusal("'i3'", "several", parameter="pairs"))
    refused("predict", "m.rankrls", "votes.csv", *sides, Refusal("needs features", parameter="left"))
    works("fit", "train.txt", "-m", "labels.rankrls")
    refused("predict", "labels.rankrls", "test.txt", "--pairs", "votes.csv", Refusal("has no win probabilities"))


def test_of_very_many_comparable_pairs_some_are_drawn(patients, works, monkeypatch):
    given = ("patients.csv", "--label", "time", "--event", "event", "--global", "--alphas", "1,10")
    assert "drawn" not in works("fit", *given, "-m", "all.rankrls").err
    monkeypatch.setattr("rankrls.cli._files._MOST_PAIRS", 200)
    found = works("fit", *given, "-m", "drawn.rankrls")
    assert "200 of the comparable pairs of patients are drawn" in found.err
    correlation = np.corrcoef(*(load(name).predict(patients[[*"abcd"]]) for name in ("all.rankrls", "drawn.rankrls")))
    assert correlation[0, 1] > 0.9
