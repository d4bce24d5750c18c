"""scikit-learn's searches and scores over labels of which some are NaN: scored queries are judged, and nothing else."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import CoRankingPursuit, CoRankRLS, RankRLS, TransductiveRankRLS
from rankrls.metrics import Measure, make_ranking_scorer
from tests.models.oracles import ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(5, queries=24)
SCORED = np.isin(QID, np.unique(QID)[2:14])
PARTLY = np.where(SCORED, Y, np.nan)
HELD = np.array_split(np.unique(QID[SCORED]), 3)
FOLDS = [(np.flatnonzero(~np.isin(QID, held)), np.flatnonzero(np.isin(QID, held))) for held in HELD]
LEARNERS = {
    "transductive": (TransductiveRankRLS(), {"penalty": [0.1, 10.0]}),
    "co_rankrls": (CoRankRLS((1.0,), n_views=2), {"mu": [0.1, 10.0]}),
    "co_pursuit": (CoRankingPursuit(3, gamma=0.1), {"nu": [0.0, 1.0]}),
}


@pytest.fixture(params=LEARNERS)
def learner(request):
    with config_context(enable_metadata_routing=True):
        yield LEARNERS[request.param]


def looped(model, measure, y=PARTLY, folds=FOLDS):
    """Each fold's value by its scored rows alone, without scikit-learn."""
    out = []
    for train, test in folds:
        fold = clone(model).fit(X[train], y[train], qid=QID[train])
        rows = test[~np.isnan(y[test])]
        out.append(measure(y[rows], fold.predict(X[rows]), qid=QID[rows]))
    return out


def test_a_search_judges_the_scored_queries(learner):
    model, grid = learner
    ((name, values),) = grid.items()
    for scoring, measure in (
        (None, lambda *a, **k: 1.0 - Measure("disagreement")(*a, **k)),
        (make_ranking_scorer("ndcg@3"), lambda *a, **k: Measure("ndcg", k=3)(*a, **k)),
    ):
        search = GridSearchCV(model, grid, cv=FOLDS, scoring=scoring, error_score="raise").fit(X, PARTLY, qid=QID)
        wanted = [np.mean(looped(clone(model).set_params(**{name: value}), measure)) for value in values]
        np.testing.assert_allclose(search.cv_results_["mean_test_score"], wanted)
        alone = clone(model).set_params(**{name: values[int(np.argmax(wanted))]}).fit(X, PARTLY, qid=QID)
        np.testing.assert_allclose(search.predict(X), alone.predict(X))


def test_unscored_rows_of_a_test_fold_are_passed_over(learner):
    """Folds that hold out unscored queries too, behind a pipeline; and by hand, with weights."""
    model = make_pipeline(StandardScaler(), learner[0])
    more = [
        (train[QID[train] != q], np.r_[test, np.flatnonzero(q == QID)])
        for (train, test), q in zip(FOLDS, np.unique(QID[~SCORED]), strict=False)
    ]
    scoring = make_ranking_scorer("disagreement")
    found = cross_val_score(model, X, PARTLY, cv=more, params={"qid": QID}, scoring=scoring, error_score="raise")
    np.testing.assert_allclose(-found, looped(model, Measure("disagreement"), folds=more))
    W = np.random.default_rng(0).random(len(Y)) + 0.5
    fitted = learner[0].fit(X, PARTLY, qid=QID)
    rows = np.flatnonzero(SCORED)
    for judge in (scoring, lambda m, *a, **k: m.score(*a, **k)):
        some = judge(fitted, X[rows], Y[rows], qid=QID[rows], sample_weight=W[rows])
        np.testing.assert_allclose(judge(fitted, X, PARTLY, qid=QID, sample_weight=W), some, rtol=1e-12)
    texts = [f"query {q}" for q in QID]
    np.testing.assert_allclose(fitted.score(X, PARTLY, qid=texts), fitted.score(X[rows], Y[rows], qid=QID[rows]))


def test_a_fold_without_a_scored_query_is_refused(learner):
    model, _ = learner
    unscored = np.flatnonzero(~SCORED)
    with Refusal("scored query", parameter="y", remedy="folds of the scored queries"):
        cross_val_score(
            model, X, PARTLY, cv=[(np.flatnonzero(SCORED), unscored)], params={"qid": QID}, error_score="raise"
        )


def test_others_still_refuse_nan():
    model = RankRLS().fit(X, Y, qid=QID)
    for judge in (model.score, lambda *a, **k: make_ranking_scorer("ndcg")(model, *a, **k)):
        with Refusal("row 0", row=0):
            judge(X, PARTLY, qid=QID)
