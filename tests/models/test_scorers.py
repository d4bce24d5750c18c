"""Ranking measures as scikit-learn scorers: what arrives is judged by query, or refused."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GroupKFold,
    cross_val_score,
    cross_validate,
)

from rankrls import RankRLS
from rankrls.metrics import Measure, make_ranking_scorer
from tests.models.oracles import ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(12, queries=16)
Y = np.digitize(Y, np.quantile(Y, [0.5, 0.8])).astype(float)
W = np.random.default_rng(3).random(len(Y)) + 0.2
FOLDS = list(GroupKFold(4).split(X, Y, QID))
PARAMS = {"qid": QID, "groups": QID}


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_reach_measures_that_use_them():
    model = RankRLS().set_fit_request(sample_weight=True)
    scoring = {"pairs": make_ranking_scorer("pair_accuracy"), "map": make_ranking_scorer("map")}
    found = cross_validate(
        model, X, Y, cv=GroupKFold(4), params={**PARAMS, "sample_weight": W}, scoring=scoring, return_estimator=True
    )
    for k, (_, test) in enumerate(FOLDS):
        scores = found["estimator"][k].predict(X[test])
        wanted = Measure("pair_accuracy")(Y[test], scores, qid=QID[test], sample_weight=W[test])
        assert found["test_pairs"][k] == pytest.approx(wanted)
        assert found["test_map"][k] == pytest.approx(Measure("average_precision")(Y[test], scores, qid=QID[test]))


def test_a_global_ranking_needs_no_qid():
    model = RankRLS().fit(X, Y)
    assert make_ranking_scorer("disagreement")(model, X, Y) == pytest.approx(model.score(X, Y) - 1.0)
    assert cross_val_score(RankRLS(), X, Y, cv=3, scoring=make_ranking_scorer("ndcg")).shape == (3,)


def test_says_what_it_is():
    assert repr(make_ranking_scorer("ndcg@10")) == "make_ranking_scorer('ndcg@10')"
    with Refusal("nonsense", parameter="measure"):
        make_ranking_scorer("nonsense")
