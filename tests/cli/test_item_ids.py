"""Items by their ids: scores go to the rows they are of, and numbers are not taken for what they are not."""

import numpy as np
import pandas as pd
import pytest
from tests.refusals import Refusal

from rankrls.io import load_pairs
from rankrls.persistence import read_info

ENDINGS = ["csv", "tsv", "parquet"]


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


@pytest.fixture
def shop(tmp_path, rows, rankrls):
    """train.csv, test.csv, shuffled.csv with ids that are unique inside a query only; m.rankrls; its s.csv, s.txt."""
    for seed, name in ((1, "train"), (3, "test")):
        X, y, qid = rows(seed)
        frame = pd.DataFrame(X, columns=list("abcde")).assign(query=[f"q {q}" for q in qid], grade=y)
        frame["sku"] = [f"s{(7 * k) % 8}" for k in range(len(X))]
        frame["title"] = "red shoes"
        write(frame, tmp_path / f"{name}.csv")
    write(frame.sample(frac=1, random_state=0), tmp_path / "shuffled.csv")
    columns = ("--label", "grade", "--qid", "query", "--id", "sku", "--ignore", "title")
    assert rankrls("fit", tmp_path / "train.csv", *columns, "-m", tmp_path / "m.rankrls", "-q").status == 0
    for name in ("s.txt", *(f"s.{ending}" for ending in ENDINGS)):
        assert rankrls("predict", tmp_path / "m.rankrls", tmp_path / "test.csv", "-o", tmp_path / name).status == 0
    return tmp_path


def measured(result):
    assert result.status == 0, result.err
    return result.json["measures"]


JUDGE = ("--label", "grade", "--qid", "query", "--metrics", "ndcg@10,map", "--json")


@pytest.mark.parametrize("ending", ENDINGS)
def test_scores_go_to_the_rows_they_are_of(ending, shop, rankrls):
    data, scores = shop / "shuffled.csv", shop / f"s.{ending}"
    expected = measured(rankrls("evaluate", shop / "m.rankrls", data, "--metrics", "ndcg@10,map", "--json"))
    for more in (("--id", "sku", "--ignore", "title"), ("--id", "sku"), ()):
        assert measured(rankrls("evaluate", "--scores", scores, data, *JUDGE, *more)) == expected
    tau = ("--label", "grade", "--metrics", "tau", "--json", "--global")
    one = measured(rankrls("evaluate", "--scores", scores, data, *tau))
    assert one == measured(rankrls("evaluate", "--scores", shop / "s.txt", shop / "test.csv", *tau))
    for files in ((shop / "m.rankrls", scores), (scores, shop / "m.rankrls")):
        found = rankrls("compare", data, *files, "--metrics", "ndcg@10", "--json")
        assert found.status == 0, found.err
        assert "0/12/0" in rankrls("compare", data, *files, "--metrics", "ndcg@10").out
    write(pd.read_csv(shop / "test.csv")[["query", "sku", "a"]].rename(columns={"a": "score"}), shop / "other.csv")
    found = rankrls("compare", data, scores, shop / "other.csv", *JUDGE[:4], "--metrics", "ndcg@10")
    assert found.status == 0, found.err
    assert f"{expected['ndcg@10']['value']:.4f} [" in found.out


def test_plain_scores_need_no_features(shop, rankrls):
    expected = measured(
        rankrls("evaluate", shop / "m.rankrls", shop / "test.csv", "--metrics", "ndcg@10,map", "--json")
    )
    write(pd.read_csv(shop / "test.csv"), shop / "test.parquet")
    for name in ("test.csv", "test.parquet"):
        found = rankrls("evaluate", "--scores", shop / "s.txt", shop / name, *JUDGE)
        assert measured(found) == expected
        assert found.json["data"]["features"] is None
    (shop / "votes.csv").write_text("0,1\n2,1\n")
    for name in ("test.csv", "test.parquet"):  # not even labels and queries
        votes = ("--pairs", shop / "votes.csv", "--json")
        found = measured(rankrls("evaluate", "--scores", shop / "s.txt", shop / name, *votes))
        assert found["pair_accuracy"]["preferences"] == 2


def test_scores_that_do_not_fit(shop, rankrls, refused):
    scores, data = pd.read_csv(shop / "s.csv"), shop / "shuffled.csv"
    bad = shop / "bad.csv"
    judge = ("evaluate", "--scores", bad, data, *JUDGE)
    first = scores.loc[0, "query"], scores.loc[0, "sku"]

    write(scores[1:], bad)
    refused(
        *judge, Refusal(f"bad.csv: there is no score for item '{first[1]}' of query '{first[0]}' (row ", file="bad.csv")
    )
    write(scores.replace({"sku": {"s3": "other"}}), bad)
    refused(*judge, Refusal("no score", "item 's3'", file="bad.csv"))
    write(pd.concat([scores, scores[:1].assign(sku="new")]), bad)
    refused(
        *judge,
        Refusal(
            f"bad.csv: row {len(scores)}, counted from 0, is item 'new' of query '{first[0]}', which ", file="bad.csv"
        ),
    )
    twice = scores.copy()
    twice.loc[1, "sku"] = first[1]
    write(twice, bad)
    refused(
        *judge,
        Refusal(
            f"rows 0 and 1, counted from 0, of {bad} are both item '{first[1]}' of query '{first[0]}'", file="bad.csv"
        ),
    )
    write(scores.drop(columns="sku"), bad)
    refused(*judge, Refusal("row 0", "query 'q 300'", file="bad.csv"))
    write(scores.drop(columns="sku")[1:], bad)
    refused(*judge, Refusal(f"bad.csv has {len(scores) - 1} scores, but {data} has {len(scores)} rows."))
    # ids that are not unique do no harm where they are the same row by row
    test = pd.read_csv(shop / "test.csv").assign(sku="same")
    write(test, shop / "same.csv")
    write(scores.assign(sku="same"), bad)
    right = measured(rankrls("evaluate", "--scores", shop / "s.txt", shop / "test.csv", *JUDGE))
    assert measured(rankrls("evaluate", "--scores", bad, shop / "same.csv", *JUDGE)) == right
    # other ids are other ids: in order, with a note
    write(scores.rename(columns={"sku": "docid"}), bad)
    found = rankrls("evaluate", "--scores", bad, shop / "test.csv", *JUDGE, "--id", "sku")
    assert measured(found) == right
    assert f"rows of {bad} are taken in their order: its ids are in column 'docid', the data's in 'sku'." in found.err


@pytest.fixture
def votes(tmp_path, rows):
    """items.csv with integer ids in another order than the rows; votes.csv by id; what the votes are as rows."""
    X, *_ = rows(3, queries=5)
    rng = np.random.default_rng(1)
    ids = rng.permutation(len(X))
    write(pd.DataFrame(X, columns=list("abcde")).assign(docid=ids), tmp_path / "items.csv")
    a, b = rng.integers(len(X), size=(2, 200))
    a, b = a[a != b], b[a != b]
    first = (X[a] - X[b]) @ [2.0, -1.0, 0.5, 0, 0] > 0
    winners, losers = np.where(first, a, b), np.where(first, b, a)
    write(pd.DataFrame({"winner": ids[winners], "loser": ids[losers]}), tmp_path / "votes.csv")
    write(pd.DataFrame({"winner": winners, "loser": losers}), tmp_path / "rows.csv")
    return tmp_path


def test_numbers_that_may_be_ids_or_rows(votes, rankrls, refused):
    items, model = votes / "items.csv", votes / "m.rankrls"
    fit = ("fit", items, "--pairs", votes / "votes.csv", "-m", model)
    for command in (fit, ("cv", *fit[1:4])):
        refused(*command, Refusal("ids or", "row numbers", file="votes.csv"))
    assert not model.exists()
    found = rankrls(*fit, "--ids", "docid", "--json").json
    assert found["selection"]["value"] > 0.95
    assert read_info(model)["given"]["ids"] == "docid"
    judge = ("evaluate", model, items, "--pairs", votes / "votes.csv", "--json")
    by_id = measured(rankrls(*judge))  # the model remembers
    assert by_id["pair_accuracy"]["value"] > 0.95
    assert by_id == measured(rankrls("evaluate", model, items, "--pairs", votes / "rows.csv", "--ids", "row", "--json"))
    assert measured(rankrls(*judge, "--ids", "row"))["pair_accuracy"]["value"] < 0.8
    row = int(np.flatnonzero(pd.read_csv(items)["docid"] == 7)[0])
    assert rankrls("explain", model, items, "7", "--json").json["a"] == row
    write(pd.read_csv(items).drop(columns="docid"), votes / "bare.csv")
    refused("evaluate", model, votes / "bare.csv", *judge[3:5], Refusal("fitted with --ids docid"))
    # rows, remembered too where it was said
    assert rankrls(*fit[:3], votes / "rows.csv", "-m", model, "--ids", "row", "-q").status == 0
    assert measured(rankrls(*judge[:4], votes / "rows.csv", "--json"))["pair_accuracy"]["value"] > 0.95
    # a model that remembers nothing
    bare = ("fit", votes / "bare.csv", "--pairs", votes / "rows.csv", "-m", model)
    assert rankrls(*bare, "-q").status == 0
    assert "ids" not in read_info(model)["given"]
    refused(*judge, Refusal("--ids docid", "--ids row"))
    refused("explain", model, items, "7", "8", Refusal("ids or", "row numbers", "'7'", file="items.csv"))


@pytest.mark.parametrize("shift", [1, 1000, -1], ids=["one more", "far", "text"])
def test_one_reading_that_fits_is_taken(shift, votes, rankrls, refused):
    """Ids that are no row numbers are ids, and row numbers that are no ids are rows."""
    items, model = pd.read_csv(votes / "items.csv"), votes / "m.rankrls"
    pairs = pd.read_csv(votes / "votes.csv")

    def called(column):
        return [f"item {k}" for k in column] if shift < 0 else column + shift

    items["docid"] = called(items["docid"])
    write(items, votes / "called.csv")
    write(pairs.assign(winner=called(pairs["winner"]), loser=called(pairs["loser"])), votes / "called_votes.csv")
    fit = ("fit", votes / "called.csv", "-m", model, "--json", "--pairs")
    found = rankrls(*fit, votes / "called_votes.csv")
    assert found.status == 0, found.err
    assert found.json["selection"]["value"] > 0.95
    assert read_info(model)["given"]["ids"] == "docid"
    if shift == 1:  # most rows are ids too
        refused(*fit, votes / "rows.csv", Refusal("ids or", "row numbers"))
        return
    found = rankrls(*fit, votes / "rows.csv")
    assert found.status == 0, found.err
    assert found.json["selection"]["value"] > 0.95
    assert "ids" not in read_info(model)["given"]


def test_ids_that_are_the_row_numbers(votes, rankrls):
    items = pd.read_csv(votes / "items.csv")
    write(items.assign(docid=range(len(items))), votes / "items.csv")
    found = rankrls("fit", votes / "items.csv", "--pairs", votes / "rows.csv", "-m", votes / "m.rankrls", "--json")
    assert found.status == 0, found.err
    assert found.json["selection"]["value"] > 0.95


def test_columns_of_preferences_that_mean_nothing(votes, rankrls):
    pairs = pd.read_csv(votes / "votes.csv").assign(annotater=1, wieght=2.0)
    model = votes / "m.rankrls"
    for ending in ("csv", "parquet"):
        path = write(pairs, votes / f"more.{ending}")
        assert load_pairs(path).ignored == ("annotater", "wieght")
        found = rankrls(
            *("fit", votes / "items.csv", "--pairs", path, "--test-pairs", path, "--ids", "docid", "-m", model)
        )
        note = f"{path}: the columns 'annotater', 'wieght' are not looked at ('wieght' for 'weight'?); those that mean"
        assert found.err.count(note) == 1
        assert found.err.count("note") == 1
    assert load_pairs(votes / "votes.csv").ignored == ()
    assert rankrls("fit", votes / "items.csv", "--pairs", votes / "votes.csv", "--ids", "docid", "-m", model).err == ""
