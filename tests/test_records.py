"""Dicts of rows, as every function takes them that takes data frames."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from rankrls import RankRLS
from rankrls.io import load_pairs, load_votes
from rankrls.preprocessing import TableEncoder
from tests.refusals import Refusal

rng = np.random.default_rng(0)
FRAME = pd.DataFrame({"price": rng.normal(size=24).round(3), "stock": rng.integers(0, 9, 24).astype(float)})
SHOP = FRAME.assign(brand=rng.choice(["H&M", "Zed"], 24))
Y = rng.integers(0, 3, 24)


def rows_of(frame):
    return frame.to_dict("records")


def test_a_model_takes_rows_with_its_features_in_any_order():
    """And with other fields beside them; one dict is one row."""
    model = RankRLS().fit(rows_of(FRAME), Y)
    same = RankRLS().fit(FRAME, Y)
    assert model.feature_names_in_.tolist() == same.feature_names_in_.tolist()
    scores = same.predict(FRAME)
    np.testing.assert_array_equal(model.predict(rows_of(SHOP[["brand", "stock", "price"]])), scores)
    np.testing.assert_array_equal(model.predict(rows_of(SHOP)[3]), scores[3:4])
    with pytest.raises(ValueError, match="price"):
        model.predict({"stock": 1.0})


def test_an_encoder_takes_rows():
    nested = [{"item": {"price": row["price"], "brand": row["brand"]}, "stock": row["stock"]} for row in rows_of(SHOP)]
    columns = {"item.price": SHOP["price"], "item.brand": SHOP["brand"], "stock": SHOP["stock"]}
    encoder = TableEncoder(categorical="item.brand")
    X = encoder.fit_transform(nested)
    np.testing.assert_array_equal(X, TableEncoder(categorical="item.brand").fit_transform(columns))
    np.testing.assert_array_equal(encoder.transform(nested[5]), X[5:6])
    model = make_pipeline(encoder, RankRLS()).fit(nested, Y)
    np.testing.assert_array_equal(model.predict(nested[5]), model.predict(nested)[5:6])


def test_votes_and_pairs_are_rows():
    rows = [
        {"a": "owl", "b": "crow", "winner": "a", "turns": [{"text": "x"}]},
        {"a": "owl", "b": "jay", "winner": "tie"},
    ]
    sides = {"left": "a", "right": "b", "preferred": "winner"}
    votes = load_votes(rows, **sides)
    same = load_votes(pd.DataFrame(rows), **sides)
    assert votes.items.tolist() == same.items.tolist() == ["owl", "crow", "jay"]
    assert votes.strength.tolist() == same.strength.tolist() == [1.0, 0.0]
    pairs = load_pairs([{"winner": 2, "loser": 0}, {"winner": 1, "loser": 2}])
    assert (pairs.winners.tolist(), pairs.losers.tolist()) == ([2, 1], [0, 2])


def test_columns_are_no_rows():
    columns = {name: FRAME[name].to_list() for name in FRAME}
    with Refusal("dict of columns", parameter="X"):
        RankRLS().fit(columns, Y)
    with Refusal("dict of columns", parameter="X"):
        RankRLS().fit(FRAME, Y).predict({name: FRAME[name].to_numpy() for name in FRAME})


def test_rows_that_make_no_table():
    with Refusal("several types", "int, str", column="price"):
        TableEncoder().fit([{"price": 1}, {"price": "2"}])
    with Refusal("rows", parameter="X"):
        TableEncoder().fit([{}])
