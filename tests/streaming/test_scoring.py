"""Scores, rankings and measures of data sets against those of all rows in memory."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from rankrls import RankRLS
from rankrls.metrics import Measure, evaluate as evaluate_rows
from rankrls.preprocessing import QueryStandardScaler
from rankrls.streaming import evaluate, predict, query_values
from tests.refusals import Refusal
from tests.streaming.arrays import array_dataset, example
from tests.streaming.test_fit_dataset import CUTS

X, y, qid, w = example(3, weights=True)
MODEL = RankRLS().fit(X, y, qid=qid)
OTHER = RankRLS(alpha=1e4).fit(X, y, qid=qid)


@pytest.mark.parametrize("cuts", CUTS)
def test_scores_and_measures_are_those_of_all_rows(cuts):
    for weights in (None, w):
        data = array_dataset(X, y, qid, weights, CUTS[cuts](qid))
        parts = list(predict(MODEL, data))
        assert [len(part) for part in parts] == [part.n_rows for part in data.parts]
        np.testing.assert_allclose(np.concatenate(parts), MODEL.predict(X), rtol=1e-13)
        expected = evaluate_rows(y, MODEL.predict(X), qid=qid, sample_weight=weights)
        found = evaluate(MODEL, data)
        assert list(found) == list(expected)
        np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-12)


def test_a_pipeline_that_scales_by_query():
    model = make_pipeline(QueryStandardScaler(), RankRLS())
    model.fit(X, y, querystandardscaler__qid=qid, rankrls__qid=qid)
    expected = model.steps[1][1].predict(QueryStandardScaler().fit(X, qid=qid).transform(X, qid=qid))
    found = np.concatenate(list(predict(model, array_dataset(X, y, qid, cuts=(23, 24, 30)))))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_features_are_those_of_the_model_by_name():
    model = RankRLS().fit_dataset(array_dataset(X, y, qid, feature_names=tuple("abcd")))
    data = array_dataset(X, y, qid, feature_names=tuple("abcd"), cuts=(30,))
    np.testing.assert_allclose(np.concatenate(list(predict(model, data))), X @ model.coef_, rtol=1e-12)
    with Refusal("'c'", parameter="features", column="c"):
        predict(model, array_dataset(X, y, qid, feature_names=tuple("abxd")))
    with Refusal("order", parameter="features"):
        evaluate(model, array_dataset(X, y, qid, feature_names=tuple("badc")))
    with Refusal("not defined"):
        evaluate(model, array_dataset(X, 0 * y, qid), measures=["disagreement"])


def test_rows_without_a_label_are_not_evaluated():
    labels = np.where(np.arange(len(y)) % 7 == 0, np.nan, y)
    known = ~np.isnan(labels)
    expected = evaluate_rows(y[known], MODEL.predict(X)[known], qid=qid[known])
    found = evaluate(MODEL, array_dataset(X, labels, qid, cuts=(23,)))
    np.testing.assert_allclose(list(found.values()), list(expected.values()), rtol=1e-12)


@pytest.mark.parametrize("cuts", CUTS)
def test_values_of_queries_are_those_of_all_rows(cuts):
    data = array_dataset(X, y, qid, cuts=CUTS[cuts](qid))
    measures = [Measure("map"), Measure("ndcg", k=3), Measure("disagreement")]
    found = query_values([MODEL, OTHER], data, measures)
    for i, model in enumerate((MODEL, OTHER)):
        for k, measure in enumerate(measures):
            expected = measure(y, model.predict(X), qid=qid, per_query=True)
            np.testing.assert_allclose(found.values[:, i, k], expected, rtol=1e-12)
    assert [int(name) for name in found.names] == list(dict.fromkeys(qid.tolist()))
    assert found.items.sum() == len(y)
