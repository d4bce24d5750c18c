"""Contributions add up to the scores that the model gives, and their differences to differences of scores."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.refusals import Refusal

from rankrls import AutoRankRLS, CGRankRLS, RankBoost, RankingPursuit, RankRLS, RankSVM, SparseRankRLS
from rankrls.inspection import explain
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler

NAMES = ["age", "length", "sound", "width"]
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 1e4, 0.0, -2.0]
QID = np.repeat(["u", "v", "w", "u"], 10)
Y = np.round(X @ [1.0, 0.1, 0.0, -1.0] + rng.normal(size=40))


def check(found, scores, qid=QID, tolerance=1e-10):
    """The definition, pair by pair."""
    size = max(1.0, np.abs(scores).max())
    np.testing.assert_allclose(np.ravel(found.contributions.sum(axis=1)), scores, rtol=0, atol=tolerance * size)
    dense = found.contributions.toarray() if sparse.issparse(found.contributions) else found.contributions
    for a, b in [(0, 1), (5, 3), (30, 9)]:
        pair = found.pair(a, b)
        assert pair.difference == pytest.approx(scores[a] - scores[b], abs=tolerance * size)
        order = [found.feature_names.index(name) for name in pair.feature_names]
        np.testing.assert_allclose(pair.contributions, (dense[a] - dense[b])[order], atol=tolerance * size)
        assert (np.diff(np.abs(pair.contributions)) <= 0).all()
    for a in (0, 12):
        above = scores[a] - scores[np.asarray(qid) == qid[a]].mean()
        assert found.pair(a).difference == pytest.approx(above, abs=tolerance * size)


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(),
        RankRLS(solver="dual"),
        CGRankRLS(alphas=(1.0,)),
        RankSVM(max_iter=50),
        RankingPursuit(3, dictionary="features"),
        SparseRankRLS(kernel="linear", n_basis=20),
    ],
    ids=lambda model: type(model).__name__ + getattr(model, "solver", ""),
)
def test_sums_are_scores(model):
    Z = StandardScaler().fit_transform(X)
    fitted = model.fit(Z, Y, qid=QID)
    found = explain(fitted, Z, qid=QID)
    check(found, fitted.predict(Z))
    assert found.feature_names == ("x0", "x1", "x2", "x3")
    assert found.units == "as given"


@pytest.mark.parametrize("kind", ["all", "minmax", "standard"])
def test_scaled_pipelines_with_names(kind):
    frame = pd.DataFrame(X, columns=NAMES)
    scaler = {"all": StandardScaler(), "minmax": QueryMinMaxScaler(), "standard": QueryStandardScaler()}[kind]
    Z = scaler.fit_transform(frame) if kind == "all" else scaler.fit_transform(frame, qid=QID)
    ranker = RankRLS().fit(Z, Y, qid=QID)
    found = explain(make_pipeline(scaler, "passthrough", ranker), frame, qid=QID)
    check(found, ranker.predict(Z))
    assert found.feature_names == tuple(NAMES)
    np.testing.assert_allclose(found.values, Z)
    assert found.units == f"after {type(scaler).__name__}"
    assert f"(features {found.units})" in str(found.pair(0, 1))
    if kind == "all":  # unscaled, the pair's parts are the same
        weights = ranker.coef_ / scaler.scale_
        pair = found.pair(0, 1)
        order = [NAMES.index(name) for name in pair.feature_names]
        np.testing.assert_allclose(pair.contributions, (weights * (X[0] - X[1]))[order], atol=1e-10)
    renamed = explain(make_pipeline(scaler, ranker), frame, qid=QID, feature_names=["a", "b", "c", "d"])
    assert renamed.feature_names == ("a", "b", "c", "d")


def test_transformers_that_make_columns():
    """One-hot columns, and a search around everything."""
    frame = pd.DataFrame({"kind": np.array(["red", "blue"])[(X[:, 0] > 0).astype(int)], "size": X[:, 1] - 1e4})
    prepare = ColumnTransformer([("one", OneHotEncoder(), ["kind"]), ("all", StandardScaler(), ["size"])])
    search = GridSearchCV(make_pipeline(prepare, RankRLS()), {"rankrls__alpha": [0.1, 1.0]}, cv=2).fit(frame, Y)
    found = explain(search, frame)
    check(found, search.predict(frame), qid=np.zeros(40))
    assert found.feature_names == ("one__kind_blue", "one__kind_red", "all__size")


@pytest.mark.parametrize("scales", ["raw", "log", "query"])
@pytest.mark.parametrize("nested", [False, True])
def test_a_model_that_compares_models_knows_its_columns_by_name(scales, nested):
    frame = pd.DataFrame(X, columns=NAMES)
    model = AutoRankRLS(families="linear", scales=scales, scoring="disagreement").fit(frame, Y, qid=QID)
    searched = make_pipeline("passthrough", model) if nested else model
    found = explain(searched, frame, qid=QID)
    check(found, model.predict(frame, qid=QID))
    np.testing.assert_array_equal(explain(searched, frame.to_dict("records"), qid=QID).values, found.values)
    with pytest.raises(ValueError, match="same order"):
        explain(searched, frame[NAMES[::-1]], qid=QID)


def test_sparse_features_stay_sparse():
    S = sparse.random_array((40, 300), density=0.05, rng=np.random.default_rng(1), format="csr")
    model = RankRLS(alpha=0.1).fit(S, Y, qid=QID)
    found = explain(model, S, qid=QID)
    assert sparse.issparse(found.contributions)
    assert found.contributions.nnz <= S.nnz
    check(found, model.predict(S))


def test_offsets_cancel_before_they_are_rounded():
    """A column around 1e12 that two items share to the last bit adds nothing to their difference."""
    far = X.copy()
    far[:, 1] = 1e12
    far[:, 1] += np.arange(40) % 2 * 0.5
    model = RankRLS().fit(X, Y)
    pair = explain(model, far).pair(0, 2)
    assert pair.difference == pytest.approx(float((X[0] - X[2]) @ (model.coef_ * [1, 0, 1, 1])), abs=1e-12)
    pair = explain(model, far).pair(0, 1)
    part = dict(zip(pair.feature_names, pair.contributions, strict=True))["x1"]
    assert part == pytest.approx(-0.5 * model.coef_[1], rel=1e-12)


def test_tables():
    model = RankRLS().fit(X - [0, 1e4, 0, 0], Y, qid=QID)
    found = explain(model, X, qid=QID, feature_names=NAMES)
    pair = found.pair(3, 2)
    assert pair.contributions.sum() == pytest.approx(pair.difference)
    np.testing.assert_allclose(pair.weights * -np.diff(pair.values)[:, 0], pair.contributions, rtol=1e-9)
    rows = pair.rows(2)
    assert rows[-1][0] == "2 others"
    assert json.loads(json.dumps(pair.as_dict()))["query"] == "u"
    assert json.loads(json.dumps(explain(model, X, qid=np.repeat([7, 3], 20)).pair(3).as_dict()))["query"] == 7
    assert sum(row[1] for row in rows) == pytest.approx(pair.difference)
    lines = pair.table(2).splitlines()
    word = "above" if pair.difference > 0 else "below"
    assert lines[0] == f"row 3 ranks {word} row 2 in query u by {abs(pair.difference):.4g}"
    assert lines[1].split() == ["contribution", "row", "3", "row", "2", "weight"]
    assert lines[2].startswith(pair.feature_names[0])
    assert len(lines) == 5
    assert "row 3 ranks" in str(found.pair(3))
    assert "the mean" in str(found.pair(3))
    assert "pear ranks" in found.pair(3, names=["pear"]).title
    assert {"pear", "plum"} <= {*found.pair(3, 2, names=["pear", "plum"]).table().split()}
    same = np.vstack((X[0], X[0]))
    assert "have the same score" in str(explain(model, same, qid=["q", "q"]).pair(0, 1))
    assert explain(model, same, qid=["q", "q"]).pair(0, 1).rows() == []


def test_what_is_refused():
    rbf = RankRLS(kernel="rbf").fit(X, Y, qid=QID)
    linear = RankRLS().fit(X, Y, qid=QID)
    two = RankRLS().fit(X, np.column_stack((Y, -Y)), qid=QID)
    assert explain(two, X, qid=QID, target=1).pair(0, 1).difference == pytest.approx(
        -explain(two, X, qid=QID, target=0).pair(0, 1).difference
    )
    found = explain(linear, X, qid=QID)
    for call, refusal in (
        (lambda: explain(rbf, X, qid=QID), Refusal("not linear", "kernel='linear'")),
        (lambda: explain(RankBoost(3).fit(X, Y, qid=QID), X, qid=QID), Refusal("not linear", "RankBoost")),
        (lambda: explain(linear, X), Refusal("fitted with qid", "explain", parameter="qid")),
        (lambda: explain(two, X, qid=QID), Refusal("2 targets", parameter="target")),
        (
            lambda: explain(linear, X, qid=QID, feature_names=["a"]),
            Refusal("1 names", "takes 4", parameter="feature_names"),
        ),
        (lambda: explain(StandardScaler().fit(X), X), Refusal("estimator of rankrls", parameter="model")),
    ):
        with refusal:
            call()
    for call, parameter, refusal in (
        (lambda: found.pair(0, 11), "b", Refusal("query u", "query v", parameter="b", row=11)),
    ):
        with refusal as error:
            call()
        assert error.value.parameter == parameter
    across = explain(RankRLS().fit(X, Y), X, qid=QID).pair(0, 11)  # one ranking of everything: rows can be compared
    assert across.query is None
