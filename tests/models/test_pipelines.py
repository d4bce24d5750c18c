"""``fit_pairs`` of a pipeline is its last step's on what its transformers make of the items."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from rankrls import GreedyRankRLS, RankBoost, RankingPursuit, RankRLS, RankRLSCV, RankSVM, SparseRankRLS, fit_pairs
from tests.refusals import Refusal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)) * [1.0, 10.0, 100.0, 0.1] + 5.0
A, B = RNG.integers(0, 40, (2, 90))
A, B = A[A != B], B[A != B]
STRENGTH, WEIGHT = RNG.random(len(A)) + 0.1, RNG.random(len(A)) + 0.1


@pytest.mark.parametrize(
    "last",
    [RankRLS(), RankRLS(kernel="rbf"), RankSVM(), RankBoost(10), RankingPursuit(3), SparseRankRLS(n_basis=10)],
    ids=lambda e: type(e).__name__,
)
def test_is_the_last_step_on_transformed_items(last):
    if "random_state" in last.get_params():
        last.set_params(random_state=0)
    model = make_pipeline(StandardScaler(), PCA(3, random_state=0), clone(last))
    options = {"weight": WEIGHT} | ({} if isinstance(last, RankBoost) else {"strength": STRENGTH})
    assert fit_pairs(model, X, A, B, **options) is model
    Z = PCA(3, random_state=0).fit_transform(StandardScaler().fit_transform(X))
    expected = last.fit_pairs(Z, A, B, **options)
    np.testing.assert_array_equal(model.predict(X), expected.predict(Z))


def test_frames_sparse_items_and_no_transformer():
    frame = pd.DataFrame(X, columns=list("abcd"))
    scaler = StandardScaler().set_output(transform="pandas")
    free = fit_pairs(make_pipeline(scaler, RankRLS()), frame, A, B)[-1].coef_
    assert free[1] != 0.0
    for sign in (1, -1):
        model = make_pipeline(scaler, RankRLS(positive={"b": sign}))
        fit_pairs(model, frame, A, B)
        assert model[-1].feature_names_in_.tolist() == list("abcd")
        if sign * free[1] > 0.0:
            np.testing.assert_allclose(model[-1].coef_, free, rtol=1e-7)
        else:
            assert model[-1].coef_[1] == 0.0
    thin = sparse.csr_array(np.where(X > 5.0, X, 0.0))
    scaled = fit_pairs(make_pipeline(MaxAbsScaler(), RankRLS()), thin, A, B)
    np.testing.assert_allclose(scaled[-1].coef_, RankRLS().fit_pairs(MaxAbsScaler().fit_transform(thin), A, B).coef_)
    expected = RankRLS().fit_pairs(X, A, B).coef_
    for model in (RankRLS(), make_pipeline(RankRLS()), make_pipeline("passthrough", RankRLS())):
        fitted = fit_pairs(model, X, A, B)
        final = fitted.steps[-1][1] if isinstance(fitted, Pipeline) else fitted
        np.testing.assert_array_equal(final.coef_, expected)


def test_groups_reach_the_last_step():
    groups = np.arange(len(A)) % 5
    model = fit_pairs(make_pipeline(StandardScaler(), RankRLSCV()), X, A, B, groups=groups)
    assert model[-1].selection_ == "leave-one-out over 5 groups of preferences: new groups, known items"


@pytest.mark.parametrize("model", [make_pipeline(StandardScaler(), Ridge()), Ridge(), RankRLS], ids=range(3))
def test_a_last_step_without_preferences_is_refused_before_anything_is_fitted(model):
    model = model if isinstance(model, type) else clone(model)
    with Refusal("preferences", parameter="model"):
        fit_pairs(model, X, A, B)
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    assert not hasattr(first, "n_features_in_")


def test_a_pipeline_with_a_cache_predicts_by_its_fitted_steps(tmp_path):
    """It fits clones of its steps."""
    cached = make_pipeline(StandardScaler(), PCA(3, random_state=0), RankRLS(), memory=str(tmp_path))
    plain = make_pipeline(StandardScaler(), PCA(3, random_state=0), RankRLS())
    found = fit_pairs(cached, X, A, B).predict(X)
    np.testing.assert_allclose(found, fit_pairs(plain, X, A, B).predict(X), rtol=1e-12)


def test_selected_features_of_whatever_predict_takes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    y = np.round(X @ [2.0, 0.0, 1.0, 0.0])
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = GreedyRankRLS(2).fit(table, y, qid=np.arange(40) // 5)
    for form in (table, table.to_dict("records"), [*table.iloc[:, ::-1].to_dict("records")]):
        np.testing.assert_array_equal(model.transform(form), X[:, [0, 2]])
    with Refusal("names should match", parameter="X"):
        model.transform(table[["a", "b", "c"]])
    assert [*model.set_output(transform="pandas").transform(table)] == ["a", "c"]
