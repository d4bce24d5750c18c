"""A call that lacks options is answered with the whole call, which works as it is printed."""

import shlex

import numpy as np
import pandas as pd
import pytest
from tests.refusals import Refusal

from rankrls import load


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Six queries of eight products, with names of the columns and of the file to be given."""
    monkeypatch.chdir(tmp_path)

    def write(path, label, query, item, **columns):
        rng = np.random.default_rng(0)
        queries = np.repeat([f"shoes {k}" for k in range(6)], 8)
        price = rng.normal(size=48).round(3)
        grade = np.digitize(price + 0.3 * rng.normal(size=48), [-0.5, 0.7])
        frame = pd.DataFrame({query: queries, "price": price, item: [f"p{k}" for k in range(48)], label: grade})
        frame = frame.assign(**columns)
        frame.to_parquet(path) if path.endswith(".parquet") else frame.to_csv(path, index=False)

    return write


def proposed(result):
    assert result.status == 2
    return shlex.split(result.err.split("Perhaps: rankrls ")[1])


@pytest.mark.parametrize("path", ["shop.csv", "shop data.parquet"])
@pytest.mark.parametrize(
    ("label", "query", "item", "columns", "expected"),
    [
        ("Grade", "search_id", "sku", {}, {"--label": "Grade", "--qid": "search_id", "--id": "sku"}),
        ("user rating", "query", "product", {"tint": ["red", "blue"] * 24}, {"--columns": "auto"}),
        ("relevance", "search", "product", {}, {"--label": "relevance", "--qid": "search", "--id": "product"}),
        ("label", "qid", "docid", {}, {}),
    ],
    ids=lambda value: str(value)[:12],
)
@pytest.mark.parametrize("given", [(), ("-m", "m.rankrls")], ids=str)
def test_the_printed_call_works(table, rankrls, path, label, query, item, columns, expected, given):
    table(path, label, query, item, **columns)
    if given and not expected:
        return  # nothing is missing
    call = proposed(rankrls("fit", path, *given))
    assert all(call[call.index(flag) + 1] == name for flag, name in expected.items())
    assert rankrls(*call).status == 0
    model = load(call[call.index("-m" if given else "--model") + 1])
    assert {*model.feature_names_in_} - {query} == {"price", *columns}  # words of queries may be features


def test_letor_text_lacks_only_the_file_of_the_model(files, rankrls):
    call = proposed(rankrls("fit", "train.txt"))
    assert call == ["fit", "train.txt", "--model", "train.rankrls"]
    assert rankrls(*call).status == 0


def test_columns_that_look_like_none_are_left_to_the_user(table, rankrls):
    table("shop.csv", "a", "b", "c", other=[0, 1, 2] * 16)
    assert proposed(rankrls("cv", "shop.csv")) == [
        *("cv", "shop.csv", "--label", "COLUMN", "--qid", "COLUMN", "--columns", "auto")
    ]


def test_a_column_that_the_user_named_is_not_replaced(table, rankrls):
    table("shop.csv", "grade", "query", "sku")
    result = rankrls("fit", "shop.csv", "--label", "grad", "-m", "m.rankrls")
    assert "'grade'" in result.err
    assert "--label grade" not in result.err


@pytest.mark.parametrize("path", ["patients.csv", "patients.parquet"])
@pytest.mark.parametrize(("time", "event", "kind"), [("days", "died", bool), ("OS.time", "OS status", int)])
def test_censored_times_are_proposed_as_such(rankrls, tmp_path, monkeypatch, path, time, event, kind):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.normal(60.0, 9.0, 40).round(2)
    times = rng.exponential(10.0, 40).round(2)
    frame = pd.DataFrame({"patient_id": [f"p{k}" for k in range(40)], "age": age, "smoker": rng.integers(0, 2, 40)})
    frame = frame.assign(**{event: rng.integers(0, 2, 40).astype(kind), time: times})
    frame.to_parquet(path) if path.endswith(".parquet") else frame.to_csv(path, index=False)
    call = proposed(rankrls("fit", path))
    assert call[2:6] == ["--label", time, "--event", event]
    assert "--qid" not in call
    assert rankrls(*call).status == 0
    model = load("patients.rankrls")
    assert {*model.feature_names_in_} >= {"age", "smoker"}
    assert not {*model.feature_names_in_} & {time, event}
    frame.assign(query="q").to_parquet("other.parquet")  # a query says that it is something else
    assert "--event" not in proposed(rankrls("fit", "other.parquet"))


@pytest.mark.parametrize(
    ("name", "codes"),
    [("censored", [0, 1]), ("is censored", [False, True]), ("status", [1, 2]), ("status", ["alive", "dead"])],
    ids=str,
)
def test_events_that_are_coded_otherwise_are_left_to_the_user(rankrls, tmp_path, monkeypatch, name, codes):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(60.0, 9.0, 40), "time": rng.exponential(10.0, 40)})
    frame.assign(**{name: rng.choice(codes, 40)}).to_csv("patients.csv", index=False)
    assert proposed(rankrls("fit", "patients.csv"))[2:6] == ["--label", "time", "--event", "COLUMN_WITH_1_IF_OBSERVED"]
    frame.assign(event=rng.integers(0, 2, 40), **{name: rng.choice(codes, 40)}).to_csv("patients.csv", index=False)
    assert proposed(rankrls("fit", "patients.csv"))[2:6] == ["--label", "time", "--event", "event"]


@pytest.mark.parametrize(
    ("names", "group"),
    [
        (("model_a", "model_b", "winner"), "question_id"),
        (("left", "right", "choice"), None),
        (("answer 1", "answer 2", "preferred answer"), "judge"),
    ],
    ids=str,
)
def test_votes_are_proposed_as_such(rankrls, tmp_path, monkeypatch, names, group):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    sides = np.array([rng.permutation(["ash", "elm", "oak"])[:2] for _ in range(60)])
    frame = pd.DataFrame({names[0]: sides[:, 0], names[1]: sides[:, 1], names[2]: rng.choice(["a", "b", "tie"], 60)})
    frame = frame.assign(length_a=rng.integers(1, 90, 60), length_b=rng.integers(1, 90, 60))
    (frame if group is None else frame.assign(**{group: np.arange(60) % 7})).to_csv("votes.csv", index=False)
    roles = ("left", "right", "preferred")
    expected = [word for role, name in zip(roles, names, strict=True) for word in (f"--{role}", name)]
    expected += [] if group is None else ["--group", group]
    for command in ("fit", "cv"):
        call = proposed(rankrls(command, "votes.csv"))
        assert call[2:] == expected + ["--model", "votes.rankrls"] * (command == "fit")
        assert rankrls(*call).status == 0


def test_the_call_for_a_folder_works_without_an_encoder(table, rankrls, refused, tmp_path):
    (tmp_path / "shop").mkdir()
    table("shop/part.parquet", "grade", "query", "sku", tint=["red", "blue"] * 24, **{"a, b": ["x"] * 48})
    call = proposed(rankrls("fit", "shop"))
    assert call[call.index("--ignore") + 1] == 'tint,"a, b"'
    assert rankrls(*call).status == 0
    given = ("fit", "shop", "--label", "grade", "--qid", "query", "-m", "m.rankrls")
    refused(*given, "--columns", "auto", Refusal("rankrls split"))
