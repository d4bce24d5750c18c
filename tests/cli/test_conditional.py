"""A row is a query that ranks the same items as all others: one column of labels an item."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.refusals import Refusal, told

from rankrls import ConditionalRankRLSCV, Items, load
from rankrls.metrics import disagreement_error, kendall_tau
from rankrls.persistence import read_info

FEATURES, ITEMS = ["age", "visits", "spent"], [f"item_{k}" for k in range(5)]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    Y = np.round(X @ rng.normal(size=(3, 5)) + rng.normal(size=(30, 5)), 2)
    out = pd.DataFrame(Y, columns=ITEMS)
    out.insert(2, "who", [f"c{k}" for k in range(30)])
    for k, name in enumerate(FEATURES):
        out.insert(2 * k, name, X[:, k])
    return out


@pytest.fixture
def partly(frame):
    """Some utilities are not known; of one query only one is."""
    out = frame.copy()
    out.loc[[3, 8, 8, 21], "item_1"] = np.nan
    out.loc[5, ITEMS[:4]] = np.nan
    return out


def write(frame, path):
    """As CSV, or as Parquet."""
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


LABELS = ("--method", "conditional", "--labels", "item_*", "--id", "who")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("which", ["frame", "partly"])
def test_files_give_what_python_gives(which, ending, request, tmp_path, rankrls):
    data = request.getfixturevalue(which)
    path, model = write(data, tmp_path / f"d.{ending}"), tmp_path / "m.rankrls"
    result = rankrls("fit", path, *LABELS, "--fit-intercept", "--metric", "tau", "-m", model, "--json")
    assert result.status == 0, result.err
    X, Y = (np.ascontiguousarray(data[names].to_numpy()) for names in (FEATURES, ITEMS))
    expected = ConditionalRankRLSCV(fit_intercept=True, scoring="tau").fit(X, Y)
    found = load(model)
    assert (found.alpha_, found.best_score_) == (expected.alpha_, expected.best_score_)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.feature_names_in_, FEATURES)
    described = result.json["data"]["train"]
    assert (described["queries"], described["items"]) == (30, 5)
    assert described["labels"].get("none", 0) == np.isnan(Y).sum()
    assert read_info(model)["given"]["columns"] == {"id": "who", "utilities": ITEMS}
    if which == "frame":  # the measure that was chosen by, from the scores of held-out queries
        held = result.json["measures"]["held_out"]["tau"]["value"]
        assert held == pytest.approx(expected.best_score_, abs=1e-12)

    new = write(data[["who", *reversed(FEATURES)]].head(4), tmp_path / f"new.{ending}")
    assert rankrls("predict", model, new, "-o", tmp_path / "s.parquet").status == 0
    scores = pd.read_parquet(tmp_path / "s.parquet")
    assert [*scores] == ["who", *ITEMS]
    np.testing.assert_array_equal(scores[ITEMS], expected.predict(X[:4]))
    lines = np.loadtxt(rankrls("predict", model, new).out.splitlines())
    np.testing.assert_array_equal(lines, expected.predict(X[:4]))


def test_new_queries_judge_and_are_ranked(frame, partly, tmp_path, rankrls):
    train, test, model = write(frame, tmp_path / "a.csv"), write(partly, tmp_path / "b.csv"), tmp_path / "m.rankrls"
    found = rankrls("fit", train, *LABELS, "--test", test, "-m", model, "--json").json
    scores, Y = load(model).predict(frame[FEATURES]), partly[ITEMS].to_numpy()
    known = ~np.isnan(Y)
    row = np.nonzero(known)[0]
    for name, measure in (("disagreement", disagreement_error), ("tau", kendall_tau)):
        expected = measure(Y[known], scores[known], qid=row)
        assert found["measures"]["test"][name]["value"] == pytest.approx(expected)
        judged = rankrls("evaluate", model, test, "--json").json["measures"][name]
        assert judged["value"] == pytest.approx(expected)
    # two models of the same items side by side
    assert rankrls("fit", test, *LABELS, "--alphas", "50", "-m", tmp_path / "n.rankrls").status == 0
    compared = rankrls("compare", test, model, tmp_path / "n.rankrls", "--json")
    assert compared.status == 0, compared.err
    assert rankrls("rank", model, test, "--top", "2", "-o", tmp_path / "r.csv").status == 0
    ranked = pd.read_csv(tmp_path / "r.csv")
    best = np.argsort(-scores, axis=1)[:, :2]
    assert ranked["item"].tolist() == np.array(ITEMS)[best].ravel().tolist()
    assert ranked["row"].tolist() == np.repeat(np.arange(30), 2).tolist()
    assert ranked["query"].tolist() == np.repeat(frame["who"], 2).tolist()
    text = rankrls("rank", model, test, "--top", "2").out.splitlines()[1:]
    assert [line.split("\t")[-1] for line in text] == ranked["row"].astype(str).tolist()


def test_curve_kernel_scale_and_encoded_columns(partly, tmp_path, rankrls):
    partly["city"] = np.where(np.arange(30) % 3, "Turku", "Gent")
    path, grid = write(partly, tmp_path / "d.csv"), ("--kernel", "rbf", "--gamma", "0.1", "--alphas", "0.1:10:3")
    more = (*LABELS, *grid, "--columns", "auto", "--scale", "standard-all", "--cv", "3")
    found = rankrls("cv", path, *more, "--json").json
    assert [entry["alpha"] for entry in found["curve"]] == pytest.approx([10, 1, 0.1])
    assert found["selection"]["how"] == "3 folds of 30 queries"
    assert rankrls("fit", path, *more, "-m", tmp_path / "m.rankrls").status == 0
    rows = partly.drop(columns=[*ITEMS, "who"])
    scores = np.loadtxt(rankrls("predict", tmp_path / "m.rankrls", path).out.splitlines())
    np.testing.assert_allclose(scores, load(tmp_path / "m.rankrls").predict(rows), atol=1e-12)


def test_labels_are_named_and_left_out(frame, tmp_path, rankrls):
    """Names in their order, a pattern less what is ignored, and a column called "label" that is none."""
    path = write(frame.rename(columns={"age": "label"}), tmp_path / "d.csv")
    given = ("--method", "conditional", "--ignore", "who,item_3", "-m", tmp_path / "m.rankrls", "--alphas", "1")
    assert rankrls("fit", path, *given, "--labels", "item_4,item_0,item_?").status == 0
    given = read_info(tmp_path / "m.rankrls")
    assert given["given"]["columns"] == {"utilities": ["item_4", "item_0", "item_1", "item_2"]}
    assert given["feature_names"] == ["label", *FEATURES[1:]]


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--method", "conditional"], Refusal("--labels", parameter="utilities")),
        (["--labels", "item_*"], Refusal("--method conditional", parameter="utilities")),
        ([*LABELS, "--qid", "who"], Refusal("--qid", "--labels", parameter="qid")),
        ([*LABELS, "--label", "item_1"], Refusal("--labels", parameter="label")),
        ([*LABELS, "--group", "g.txt"], Refusal("--group", parameter="group")),
        ([*LABELS, "--global"], Refusal("--global", parameter="everything")),
        ([*LABELS, "--pairs", "p.csv"], Refusal("--pairs", parameter="pairs")),
        ([*LABELS, "--ties", "exclude"], Refusal("--ties", parameter="ties")),
        ([*LABELS, "--vali", "v.csv"], Refusal("conditional", parameter="method", remedy="test")),
        ([*LABELS, "--kernel", "rbf,linear"], Refusal("one value", parameter="kernel")),
        ([*LABELS, "--scale", "minmax"], Refusal("one row", parameter="scale", remedy="minmax-all")),
        (["--method", "conditional", "--labels", "itm_*"], Refusal("itm_*", column="itm_*")),
        (["--method", "conditional", "--labels", "item_*"], Refusal("'who'", column="who", line=2)),
        ([*LABELS, "--features", "age,item_2"], Refusal("item_2", column="item_2", parameter="features")),
        ([*LABELS, "--input-format", "letor"], Refusal("LETOR", parameter="utilities")),
    ],
    ids=told,
)
def test_what_does_not_fit_is_refused(words, refusal, frame, tmp_path, refused):
    refused("fit", write(frame, tmp_path / "d.csv"), *words, "-m", tmp_path / "m.rankrls", refusal)


@pytest.mark.parametrize("bad", ["inf", "many"])
def test_a_bad_utility_is_named(bad, frame, tmp_path, refused):
    frame["item_2"] = frame["item_2"].astype(object)
    frame.loc[4, "item_2"] = bad
    train = write(frame, tmp_path / "d.csv")
    refused(
        "fit", train, *LABELS, "-m", tmp_path / "m.rankrls", Refusal("item_2", column="item_2", line=6, file="d.csv")
    )


def test_what_a_model_of_items_cannot_be_asked(frame, tmp_path, rankrls, refused):
    train, model = write(frame, tmp_path / "d.csv"), tmp_path / "m.rankrls"
    assert rankrls("fit", train, *LABELS, "--alphas", "1", "-m", model).status == 0
    refused("predict", model, train, "--qid", "who", Refusal("query", parameter="qid", file="m.rankrls"))
    refused("rank", model, train, "--global", Refusal("--global", file="m.rankrls"))
    less = write(frame.drop(columns="item_3"), tmp_path / "less.csv")
    refused("evaluate", model, less, Refusal("item_3", column="item_3", file="less.csv"))
    other = tmp_path / "n.rankrls"
    assert rankrls("fit", less, *LABELS, "--alphas", "1", "-m", other).status == 0
    refused("compare", train, model, other, Refusal("item_0", file="n.rankrls"))
    assert json.loads(rankrls("info", model, "--json").out)["given"]["method"] == "conditional"


def test_items_with_features(frame, tmp_path, rankrls, refused):
    """Rows of the items' table are taken by their names; new items are predicted for."""
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(8, 2))
    items = pd.DataFrame(Z, columns=["size", "price"])
    items.insert(0, "item", [*ITEMS, "x", "y", "z"])
    train, model = write(frame, tmp_path / "d.csv"), tmp_path / "m.rankrls"
    table, given = write(items[:5][::-1], tmp_path / "i.csv"), (*LABELS, "--hold-out", "both", "--cv", "3")
    result = rankrls("fit", train, *given, "--items", table, "-m", model, "--json")
    assert result.status == 0, result.err
    X, Y = (np.ascontiguousarray(frame[names].to_numpy()) for names in (FEATURES, ITEMS))
    expected = ConditionalRankRLSCV(hold_out="both", cv=3).fit(X, Y, items=Items(Z[:5]))
    found = load(model)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert result.json["selection"]["value"] == expected.best_score_
    new = write(items[5:][["price", "size", "item"]], tmp_path / "new.csv")
    assert rankrls("predict", model, train, "--items", new, "-o", tmp_path / "s.parquet").status == 0
    scores = pd.read_parquet(tmp_path / "s.parquet")
    assert [*scores] == ["who", "x", "y", "z"]
    np.testing.assert_array_equal(scores[["x", "y", "z"]], expected.predict(X, items=Items(Z[5:])))
    fit = ("fit", train, "-m", model)
    refused(*fit, *LABELS, "--items", new, Refusal("item_0", column="item_0", parameter="items", file="new.csv"))
    twice = write(items.assign(item=["item_0"] * 8), tmp_path / "twice.csv")
    refused(*fit, *LABELS, "--items", twice, Refusal("item_0", row=1, parameter="items", file="twice.csv"))
    refused(*fit, *LABELS, "--item-id", "item", Refusal("--items", parameter="item_id"))
    refused(*fit, "--items", table, Refusal("--method conditional", parameter="items"))
    assert rankrls("fit", train, *LABELS, "--alphas", "1", "-m", model).status == 0
    refused("predict", model, train, "--items", new, Refusal("items", parameter="items", file="m.rankrls"))
