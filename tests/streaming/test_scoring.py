"""Scores and measures of data sets against those of all rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from rankrls import RankRLS
from rankrls.comparison import compare_dataset, compare_rankings
from rankrls.metrics import evaluate as evaluate_rows
from rankrls.preprocessing import QueryStandardScaler
from rankrls.ranking import rank_scores
from rankrls.streaming import evaluate, predict, rank
from tests.refusals import Refusal
from tests.streaming.arrays import ArrayDataset, example
from tests.streaming.test_fit_dataset import CUTS

X, y, qid, w = example(3, weights=True)
MODEL = RankRLS().fit(X, y, qid=qid)


@pytest.mark.parametrize("cuts", CUTS)
def test_scores_come_in_the_order_of_the_rows(cuts):
    data = ArrayDataset(X, y, qid, w, CUTS[cuts](len(y)))
    parts = list(predict(MODEL, data))
    assert [len(part) for part in parts] == [address.rows for address in data.parts]
    np.testing.assert_allclose(np.concatenate(parts), MODEL.predict(X), rtol=1e-13)


@pytest.mark.parametrize("weights", [None, w])
@pytest.mark.parametrize("cuts", CUTS)
def test_measures_are_those_of_all_rows(weights, cuts):
    data = ArrayDataset(X, y, qid, weights, CUTS[cuts](len(y)))
    expected = evaluate_rows(y, MODEL.predict(X), qid=qid, sample_weight=weights)
    found = evaluate(MODEL, data)
    assert list(found) == list(expected)
    np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-12)
    assert evaluate(MODEL, data, measures="tau", convention="trec").keys() == {"tau"}


def test_a_pipeline_that_scales_by_query():
    model = make_pipeline(QueryStandardScaler(), RankRLS())
    model.fit(X, y, querystandardscaler__qid=qid, rankrls__qid=qid)
    expected = model.steps[1][1].predict(QueryStandardScaler().fit(X, qid=qid).transform(X, qid=qid))
    found = np.concatenate(list(predict(model, ArrayDataset(X, y, qid, cuts=(23, 24, 30)))))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_piece_of_a_query_cannot_be_scaled():
    model = make_pipeline(QueryStandardScaler(), RankRLS())
    model.fit(X, y, querystandardscaler__qid=qid, rankrls__qid=qid)
    with Refusal("longer than a part", parameter="data", remedy="rows a part"):
        list(predict(model, ArrayDataset(X, y, qid, cuts=(5,))))


def test_other_features_are_told_by_name():
    model = RankRLS().fit_dataset(ArrayDataset(X, y, qid, feature_names=tuple("abcd")))
    data = ArrayDataset(X, y, qid, feature_names=tuple("abcd"), cuts=(30,))
    np.testing.assert_array_equal(np.concatenate(list(predict(model, data))), X @ model.coef_)
    with Refusal("'c'", parameter="features", column="c"):
        predict(model, ArrayDataset(X, y, qid, feature_names=tuple("abxd")))
    with Refusal("order", parameter="features"):
        evaluate(model, ArrayDataset(X, y, qid, feature_names=tuple("badc")))
    with Refusal("judges nothing"):
        evaluate(model, ArrayDataset(X, 0 * y, qid), measures=["disagreement"])


OTHER = RankRLS(alpha=1e4).fit(X, y, qid=qid)


@pytest.mark.parametrize("cuts", CUTS)
def test_models_are_compared_as_on_all_rows(cuts):
    data = ArrayDataset(X, y, qid, cuts=CUTS[cuts](len(y)))
    scores = {"first": MODEL.predict(X), "second": OTHER.predict(X)}
    given = {"measures": ["map", "ndcg@3", "disagreement"], "n_resamples": 200}
    expected = compare_rankings(y, scores, qid=qid, **given)
    found = compare_dataset({"first": MODEL, "second": OTHER}, data, **given)
    assert list(found.qid) == [str(q) for q in expected.qid]
    np.testing.assert_array_equal(found.items, expected.items)
    for a, b in zip(found.measures, expected.measures, strict=True):
        assert a.name == b.name
        for name in scores:
            np.testing.assert_array_equal(a.per_query[name], b.per_query[name])
        assert a.randomization == b.randomization
        assert a.intervals == b.intervals
    assert [c.difference for c in found.changed("map", "first", "second")] == [
        c.difference for c in expected.changed("map", "first", "second")
    ]


def test_what_is_compared_is_checked():
    data = ArrayDataset(X, y, qid)
    with Refusal("mapping", parameter="models"):
        compare_dataset([MODEL], data)
    with Refusal("two rankings"):
        compare_dataset({"only": MODEL}, data)
    with Refusal("only one", parameter="qid"):
        compare_dataset({"a": MODEL, "b": OTHER}, ArrayDataset(X, y, np.zeros(len(y))))
    with Refusal("empty", parameter="measures"):
        compare_dataset({"a": MODEL, "b": OTHER}, data, measures=[])


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("cuts", CUTS)
def test_rankings_are_those_of_all_rows(cuts, k):
    data = ArrayDataset(np.round(X), y, qid, cuts=CUTS[cuts](len(y)))
    parts = list(rank(MODEL, data, k=k))
    expected = rank_scores(MODEL.predict(np.round(X)), qid=qid, k=k)
    rows, positions, scores, names = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "positions", "scores", "qid")
    )
    np.testing.assert_array_equal(rows, expected.rows)
    np.testing.assert_array_equal(positions, expected.positions)
    np.testing.assert_allclose(scores, expected.scores, rtol=1e-13)
    assert names.tolist() == [str(q) for q in expected.qid]
    assert all(part.of(names[0]).tolist() == expected.of(expected.qid[0]).tolist() for part in parts[:1] if len(part))
