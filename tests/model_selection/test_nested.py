"""The nested estimate: a loop of choices on the rows outside of each fold."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from rankrls import AutoRankRLS, CoRankRLS, GreedyRankRLS, RankBoost, RankRLSCV, SparseRankRLSCV
from rankrls._errors import InputError
from rankrls.metrics import resolve_measure
from rankrls.model_selection import nested_estimate
from tests.models.forms import SPARSE
from tests.refusals import Refusal


def study(seed=0):
    rng = np.random.default_rng(seed)
    X, qid = rng.normal(size=(60, 8)), rng.permutation(np.repeat([f"q{k}" for k in range(12)], 5))
    return X, np.round(X[:, 0] + rng.normal(size=60)) + 2.0, qid


MODELS = {
    "labels": RankRLSCV(scoring="pair_accuracy"),
    "kernels": RankRLSCV(kernel=("linear", "rbf"), gamma=0.1, rule="one_se"),
    "ndcg": RankRLSCV(scoring="ndcg@3"),
    "basis": SparseRankRLSCV(n_basis=10),
    "features": GreedyRankRLS(max_features=4),
    "auto": AutoRankRLS(n_basis=20),
}


@pytest.mark.filterwarnings("ignore:Without qid")
@pytest.mark.parametrize("queries", [True, False])
@pytest.mark.parametrize("case", MODELS)
def test_it_is_a_loop_of_choices(case, queries):
    X, y, qid = study()
    qid = qid if queries else None
    found = nested_estimate(MODELS[case], X, y, qid=qid, cv=4)
    assert found.protocol == ("4 folds of 12 queries" if queries else "4 folds of 60 rows")
    values = []
    for fold in range(4):
        train, test = found.fold != fold, found.fold == fold
        own = {"qid": qid[train]} if queries else {}
        model = clone(MODELS[case]).fit(X[train], y[train], **own)
        assert model.best_params_ == found.choices[fold]
        scores = model.predict(X[test])
        np.testing.assert_allclose(found.held_out_scores[test], scores, rtol=1e-12, atol=1e-12)
        measure = resolve_measure("pair_squared_error" if case == "features" else model.scoring)
        for query in np.unique(qid[test]) if queries else [None]:
            rows = slice(None) if query is None else qid[test] == query
            values.append(measure(y[test][rows], scores[rows], per_query=True)[0])
    np.testing.assert_allclose(found.score, np.nanmean(values), rtol=1e-12)
    known = np.array(values)[~np.isnan(values)]
    np.testing.assert_allclose(found.standard_error, known.std(ddof=1) / np.sqrt(len(known)), rtol=1e-9)


def test_censored_times_are_compared_inside_folds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 100))
    time, event = np.exp(X[:, 0] + rng.normal(size=60)), rng.random(60) < 0.6
    found = nested_estimate(RankRLSCV(), X, time, event=event)
    shares = []
    for fold in range(5):
        inside, train = np.flatnonzero(found.fold == fold), np.flatnonzero(found.fold != fold)
        pairs = [(j, i) for i in train if event[i] for j in train if time[j] > time[i]]
        winners, losers = np.searchsorted(train, np.array(pairs)).T
        model = RankRLSCV(scoring="pair_accuracy").fit_pairs(X[train], winners, losers)
        assert model.alpha_ == pytest.approx(found.choices[fold]["alpha"], rel=1e-6)
        f = dict(zip(inside, model.predict(X[inside]), strict=True))
        right = [f[j] > f[i] for i in inside if event[i] for j in inside if time[j] > time[i]]
        shares.append(np.mean(right))
    np.testing.assert_allclose(found.values, shares, rtol=1e-12)
    assert found.score == pytest.approx(np.mean(shares))
    assert str(found).startswith(f"Nested C-index {found.score:.4f} ")


def test_folds_have_whole_queries_and_labels_like_the_rest():
    X, y, qid = study()
    by_query = nested_estimate(RankRLSCV(alphas=(1.0,)), X, y, qid=qid).fold
    assert all(len({*by_query[qid == query]}) == 1 for query in qid)
    order = np.random.default_rng(1).permutation(60)
    moved = nested_estimate(RankRLSCV(alphas=(1.0,)), X[order], y[order], qid=qid[order])
    np.testing.assert_array_equal(moved.fold, by_query[order])
    binary = (np.arange(60) % 4 == 0).astype(float)
    fold = nested_estimate(RankRLSCV(alphas=(1.0,)), X, binary).fold
    np.testing.assert_array_equal(np.bincount(fold), 12)
    np.testing.assert_array_equal(np.bincount(fold[binary == 1.0]), 3)


def test_it_is_unbiased_where_nothing_is_to_be_found():
    """The choice's own score is too good; the nested one is not."""
    rng, nested, chosen = np.random.default_rng(0), [], []
    model = RankRLSCV(kernel="rbf", gamma=(0.01, 0.1, 1.0), scoring="pair_accuracy", alphas=(0.01, 0.1, 1.0, 10.0))
    for seed in range(30):
        X, y = rng.normal(size=(30, 3)), np.tile([0.0, 1.0], 15)
        nested.append(nested_estimate(model, X, y, random_state=seed).score)
        chosen.append(clone(model).fit(X, y).best_score_)
    error = np.std(nested, ddof=1) / np.sqrt(30)
    assert abs(np.mean(nested) - 0.5) < 3.0 * error
    assert np.mean(chosen) > np.mean(nested) + 2.0 * error


def test_refusals():
    X, y, qid = study()
    for bad in ({"cv": 1}, {"cv": 13}):
        with pytest.raises(InputError, match="cv"):
            nested_estimate(RankRLSCV(), X, y, qid=qid, **bad)
    with pytest.raises(InputError, match="nested_estimate repeats the selection"):
        nested_estimate(Ridge(), X, y)
    with pytest.raises(InputError, match="random_state"):
        nested_estimate(RankRLSCV(), X, y, random_state=-1)
    with pytest.raises(InputError, match="one label per row"):
        nested_estimate(RankRLSCV(), X, np.column_stack((y, y)))
    with pytest.raises(InputError, match="row 3"):
        nested_estimate(RankRLSCV(), X, np.where(np.arange(60) == 3, np.nan, y))
    with pytest.raises(InputError, match="CoRankRLS cannot be fitted to censored times"):
        nested_estimate(CoRankRLS(), X, y, event=np.ones(60))
    for rows in (50, 61):
        with pytest.raises(InputError, match="inconsistent numbers"):
            nested_estimate(RankRLSCV(), np.zeros((rows, 2)), y)
        with pytest.raises(InputError, match="inconsistent numbers"):
            nested_estimate(RankRLSCV(), X, y, event=np.ones(rows))


def test_ids_may_be_tuples():
    X, y, qid = study()
    found = nested_estimate(RankRLSCV(alphas=(1.0,)), X, y, qid=[(query, 0) for query in qid])
    np.testing.assert_array_equal(
        found.held_out_scores, nested_estimate(RankRLSCV(alphas=(1.0,)), X, y, qid=qid).held_out_scores
    )


@pytest.mark.parametrize("alphas", [[1.0], (1.0,), np.array([1.0])])
def test_a_selection_of_features_is_repeated_if_nothing_else_is_chosen(alphas):
    X, y, qid = study()
    model = GreedyRankRLS(2, alphas=alphas)
    found = nested_estimate(model, X, y, qid=qid)
    for fold in range(5):
        train, test = found.fold != fold, found.fold == fold
        one = clone(model).fit(X[train], y[train], qid=qid[train])
        np.testing.assert_allclose(found.held_out_scores[test], one.predict(X[test]))
        assert found.choices[fold] == {"ties": "include", "balance": "examples", "alpha": 1.0, "n_features": 2}


def test_an_estimator_that_needs_validation_data_is_refused():
    X, y, qid = study()
    with Refusal("RankBoost", "cross-validation", parameter="estimator"):
        nested_estimate(RankBoost(), X, y, qid=qid)


def test_rows_of_one_patient_are_in_one_fold():
    """Each patient has two almost equal rows: a model that has seen one knows the other."""
    rng = np.random.default_rng(1)
    X, time = np.repeat(rng.normal(size=(40, 200)), 2, axis=0), np.repeat(rng.exponential(size=40), 2)
    patient = np.repeat(np.arange(40), 2)
    found = nested_estimate(RankRLSCV((1.0,)), X, time, event=np.ones(80), item_id=patient)
    assert all(len({*found.fold[patient == each]}) == 1 for each in range(40))
    assert found.protocol == "5 folds of 40 items"
    assert abs(found.score - 0.5) < 0.1
    assert nested_estimate(RankRLSCV((1.0,)), X, time, event=np.ones(80)).score > 0.7
    with Refusal("censored times", parameter="item_id"):
        nested_estimate(RankRLSCV((1.0,)), X, time, item_id=patient)


@pytest.mark.parametrize("form", SPARSE.values(), ids=SPARSE)
def test_any_sparse_form(form):
    X, y, qid = study()
    found = nested_estimate(RankRLSCV(alphas=(1.0,)), form(X), y, qid=qid)
    expected = nested_estimate(RankRLSCV(alphas=(1.0,)), X, y, qid=qid)
    np.testing.assert_allclose(found.held_out_scores, expected.held_out_scores, atol=1e-9)
