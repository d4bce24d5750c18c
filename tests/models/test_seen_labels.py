"""Pipelines whose last step holds out labels that a step before it has seen."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

from rankrls import AutoRankRLS, GreedyRankRLS, InputWarning, RankRLS, RankRLSCV, fit_pairs
from rankrls.model_selection import leave_query_out
from tests.refusals import Refusal

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(60, 3)))
Y = (X[:, 0] + RNG.normal(size=60) > 0).astype(float)
QID = np.repeat(np.arange(6), 10)
TARGETS = TargetEncoder(target_type="continuous")


def warned(act):
    """The warnings about labels that somebody has seen."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [one for one in caught if isinstance(one.message, InputWarning) and one.message.parameter == "model"]


@pytest.mark.parametrize("last", [RankRLSCV(), GreedyRankRLS(), AutoRankRLS()], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("before", [TARGETS, ColumnTransformer([("t", TARGETS, [0, 1])])], ids=["alone", "inside"])
def test_fit_warns_once_and_points_to_the_caller(before, last):
    model = Pipeline([("encode", before), ("rank", last)])
    (found,) = warned(lambda: model.fit(X, Y, rank__qid=QID))
    assert "TargetEncoder" in str(found.message)
    assert "GroupKFold" in found.message.remedy
    assert found.filename == __file__


def test_in_pipelines_of_pipelines_and_searches():
    (found,) = warned(lambda: make_pipeline(TARGETS, make_pipeline(StandardScaler(), RankRLSCV())).fit(X, Y))
    assert found.filename == __file__
    with sklearn.config_context(enable_metadata_routing=True):
        folds = GroupKFold(2).set_split_request(groups="qid")
        search = GridSearchCV(make_pipeline(SelectKBest(k=2), RankRLSCV()), {"selectkbest__k": [1, 2]}, cv=folds)
        assert {one.filename for one in warned(lambda: search.fit(X, Y, qid=QID))} == {__file__}


def test_preferences():
    class Signs(TransformerMixin, BaseEstimator):
        """A transformer that wants labels, as its tags say, and does without."""

        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return np.sign(X)

        def __sklearn_tags__(self):
            tags = super().__sklearn_tags__()
            tags.target_tags.required = True
            return tags

    (found,) = warned(lambda: fit_pairs(make_pipeline(Signs(), RankRLSCV()), X, [0, 1, 2], [3, 4, 5]))
    assert found.filename == __file__


def test_nothing_is_said_where_nothing_is_amiss():
    assert not warned(lambda: make_pipeline(StandardScaler(), RankRLSCV()).fit(X, Y, rankrlscv__qid=QID))
    assert not warned(lambda: make_pipeline(TARGETS, RankRLS()).fit(X, Y, rankrls__qid=QID))
    assert not warned(lambda: RankRLSCV().fit(TARGETS.fit_transform(X, Y), Y, qid=QID))
    judged_apart = {"X_val": X[:20], "y_val": Y[:20], "qid_val": QID[:20]}
    given = {f"rankrlscv__{name}": value for name, value in ({"qid": QID} | judged_apart).items()}
    assert not warned(lambda: make_pipeline(TARGETS, RankRLSCV()).fit(X, Y, **given))


def test_leave_query_out_does_not_advise_to_transform_first():
    with Refusal("TargetEncoder", parameter="estimator", remedy="LeaveOneGroupOut") as refusal:
        leave_query_out(make_pipeline(TARGETS, RankRLS()), X, Y, qid=QID)
    assert "Transform X" not in str(refusal.value)
