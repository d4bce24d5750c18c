"""Labels of which some are NaN: what unlabelled queries do to a model, and that searches judge labelled ones."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import CoRankingPursuit, CoRankRLS, InputError, TransductiveRankRLS
from rankrls.metrics import Measure, resolve_measure
from tests.models.oracles import centred, ranking_data
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
        (resolve_measure("ndcg@3"), lambda *a, **k: Measure("ndcg", k=3)(*a, **k)),
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
    scoring = resolve_measure("disagreement")
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
    with Refusal("nothing to evaluate", parameter="y", remedy="folds of the labelled queries"):
        cross_val_score(
            model, X, PARTLY, cv=[(np.flatnonzero(SCORED), unscored)], params={"qid": QID}, error_score="raise"
        )


NEW = np.random.default_rng(1).normal(size=(9, X.shape[1]))
WITH_UNLABELLED = {
    "co_rankrls": lambda: CoRankRLS((1.0,), mu=0.5, kernel="rbf", gamma=0.2, n_views=2),
    "co_rankrls_linear": lambda: CoRankRLS((1.0,), mu=0.5, n_views=2),
    "co_pursuit": lambda: CoRankingPursuit(4, nu=0.5, gamma=0.1),
    "transductive": lambda: TransductiveRankRLS(1.0, penalty=0.5),
}


def new_scores(make, X, y, qid):
    return centred(make().fit(X, y, qid=qid).predict(NEW), np.zeros(len(NEW)))


@pytest.mark.parametrize("name", WITH_UNLABELLED)
def test_they_change_the_ranking_of_new_rows(name):
    make = WITH_UNLABELLED[name]
    with_them = new_scores(make, X, PARTLY, QID)
    assert np.abs(with_them - new_scores(make, X[SCORED], Y[SCORED], QID[SCORED])).max() > 1e-3


@pytest.mark.parametrize("name", WITH_UNLABELLED)
def test_one_that_is_alone_in_its_query_does_nothing(name):
    """Nothing is compared with it, whatever its features and its label might be."""
    make, alone = WITH_UNLABELLED[name], 500.0 + np.arange(6)
    rows = np.vstack((X, 5.0 * np.random.default_rng(2).normal(size=(6, X.shape[1]))))
    more = new_scores(make, rows, np.r_[PARTLY, np.full(6, np.nan)], np.r_[QID, alone])
    np.testing.assert_allclose(more, new_scores(make, X, PARTLY, QID), atol=1e-7)


@pytest.mark.parametrize("name", ["co_rankrls_linear", "transductive"])
def test_where_their_query_lies_does_not_matter_to_linear_functions(name):
    make, place = WITH_UNLABELLED[name], np.where(SCORED, 0.0, QID)
    moved = new_scores(make, X + np.outer(place, np.arange(1.0, X.shape[1] + 1)), PARTLY, QID)
    np.testing.assert_allclose(moved, new_scores(make, X, PARTLY, QID), atol=1e-7)


def test_a_row_with_labels_of_some_targets_is_not_passed_over():
    X, y, qid = ranking_data(3)
    Y = np.column_stack([y, -y])
    model = TransductiveRankRLS().fit(X, Y, qid=qid)
    unlabelled = Y.copy()
    unlabelled[5] = np.nan
    rest = np.delete(np.arange(len(y)), 5)
    assert model.score(X, unlabelled, qid=qid) == model.score(X[rest], Y[rest], qid=qid[rest])
    partly = Y.copy()
    partly[5, 0] = np.nan
    with pytest.raises(InputError, match="row 5"):
        model.score(X, partly, qid=qid)
