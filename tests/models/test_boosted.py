"""AutoRankRLS with trees and blends: what it chooses, what a blend is made of, files, and what is refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fuzzing.model_files import Changed, npy
from scipy import sparse
from sklearn.model_selection import KFold

from rankrls import AutoRankRLS, InputError, InputWarning, RankRLSCV, load, save
from rankrls._compiled import limited_threads
from rankrls._errors import MissingPackageError
from rankrls.export import to_onnx, to_solr
from rankrls.inspection import explain
from rankrls.learners import trees
from rankrls.metrics import Measure
from rankrls.models import auto_rankrls
from rankrls.persistence import read_info
from rankrls.selection.optimism import Entries


@pytest.fixture(autouse=True)
def small_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "_MOST_TREES", 30)
    monkeypatch.setattr(auto_rankrls, "SETTINGS", ((4, 0.3),))


def _data(seed: int = 0, queries: int = 40, size: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps in two features, and a line in a third."""
    rng = np.random.default_rng(seed)
    m = queries * size
    X = rng.normal(size=(m, 3))
    hidden = 2.0 * (X[:, 0] > 0.3) * (X[:, 1] > 0.0) + 0.3 * X[:, 2] + 0.2 * rng.normal(size=m)
    return X, np.digitize(hidden, [0.5, 2.0]).astype(float), np.repeat(np.arange(queries), size)


def _fitted(**given: Any) -> AutoRankRLS:
    X, y, qid = _data()
    known = {"families": ("linear", "trees", "blend"), "scales": ("raw", "standard"), "n_basis": 30}
    return AutoRankRLS(**(known | given)).fit(X, y, qid=qid)


def test_trees_and_blends_stand_behind_the_others_and_say_how_they_were_judged() -> None:
    model = _fitted(families="all")
    assert list(model.results_["model"]) == ["linear"] * 2 + ["degree 2"] * 2 + ["gaussian"] * 2 + ["laplacian"] * 2 + [
        "trees",
        "blend",
    ]
    assert model.best_params_["model"] in ("trees", "blend")
    assert model.selection_ == "5 folds of 40 queries, the choice of 23 models"
    assert list(model.results_["export"][-2:]) == ["no", "no"]
    assert model.best_score_ < model.results_["mean_score"].max() + 1e-12
    for name, value in model.best_params_.items():
        assert model.cv_results_[name][model.best_index_] == value
    assert _fitted(families="all", cv=3).selection_ == "3 folds of 40 queries, the choice of 23 models"
    linear = _fitted(families=("linear",))
    assert linear.selection_ == "leave-query-out over 40 queries, the choice of 2 models"


def test_trees_are_judged_by_the_mean_scores_of_three_models_without_the_query() -> None:
    model, (X, y, qid) = _fitted(families="trees"), _data()
    values = {}
    for loss in trees.LOSSES:
        held = [_boosting(loss).held_out(k) for k in range(3)]
        values[loss] = [Measure("ndcg", k=10)(y, np.mean(held[:n], axis=0), qid=qid) for n in (1, 3)]
    chosen = model.best_params_["loss"]
    assert model.results_["mean_score"][0] == pytest.approx(values[chosen][1], abs=1e-12)
    assert values[chosen][1] >= max(min(each) for each in values.values())
    np.testing.assert_array_equal(model.predict(X), _boosting(chosen).fitted(3)(X))


def _boosting(loss: str) -> trees.Boosting:
    """The trees of a loss on the folds of cv=5."""
    X, y, _ = _data()
    items = trees.QueryRows(X, y, np.ones(len(y)), 12 * np.arange(41))
    folds = [held for _, held in KFold(5, shuffle=True, random_state=0).split(np.arange(40))]
    seed = int(np.random.default_rng(0).integers(2**30))
    return trees.Boosting(loss, 4, 0.3, items, folds, Measure("ndcg", k=10), seed)


def test_a_blend_is_the_best_mean_of_the_held_out_scores_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, qid = _data()
    with monkeypatch.context() as patch:
        patch.setattr(Entries, "chosen", lambda entries: len(entries.means) - 1)
        model = _fitted()
    alone = _fitted(families="trees")
    boosting = _boosting(alone.best_params_["loss"])
    held = np.mean([boosting.held_out(k) for k in range(3)], axis=0)
    scale = int(np.argmax(model.results_["mean_score"][:2]))
    Z = [X, (X - X.mean(0)) / X.std(0)][scale]
    linear = RankRLSCV(scoring="ndcg@10", cv=5).fit(Z, y, qid=qid)
    columns = np.column_stack((linear.held_out_scores_, held)).reshape(40, 12, 2)
    columns = (columns - columns.mean(axis=1, keepdims=True)).reshape(-1, 2)
    spreads = columns.std(axis=0)
    mixes = {w: np.array([1.0 - w, w]) / spreads for w in (0.2, 0.4, 0.6, 0.8)}
    values = {w: Measure("ndcg", k=10)(y, columns @ mix, qid=qid) for w, mix in mixes.items()}
    best = max(values, key=values.__getitem__)
    assert model.best_params_["weight"] == best
    assert model.results_["mean_score"][-1] == pytest.approx(values[best], abs=1e-9)
    expected = np.column_stack((linear.predict(Z), alone.predict(X))) @ mixes[best]
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6, atol=1e-9)


def test_a_blend_with_a_model_of_whole_queries_is_that(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _, qid = _data()
    monkeypatch.setattr(Entries, "chosen", lambda entries: len(entries.means) - 1)
    model = _fitted(scales="query")
    assert (model.best_params_["model"], model.best_params_["scale"]) == ("blend", "query")
    linear, grown = model.best_estimator_.models_
    Z = np.hstack([X, linear.steps[0][1].fit_transform(X, qid=qid)[:, 3:]])
    parts = np.column_stack([linear[-1].predict(linear.steps[1][1].transform(Z)), grown.predict(X)])
    expected = parts @ model.best_estimator_.weights_
    np.testing.assert_allclose(model.predict(X, qid=qid), expected, atol=1e-9)
    whole = qid < 20
    np.testing.assert_allclose(model.predict(X[whole], qid=qid[whole]), expected[whole], atol=1e-9)
    with pytest.raises(InputError, match="Predict with qid"):
        model.predict(X)


def test_leaves_are_compared_with_the_better_loss_by_trees_that_did_not_see_the_query(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(auto_rankrls, "SETTINGS", ((4, 0.3), (2, 0.3), (6, 0.3)))
    model = _fitted(families="trees")
    found = model.cv_results_
    tried = set(zip(found["loss"], found["leaves"], strict=True))
    assert {("rankrls", 4), ("lambdarank", 4)} <= tried
    (better,) = {loss for loss, leaves in tried if leaves != 4}
    assert tried == {("rankrls", 4), ("lambdarank", 4), (better, 2), (better, 6)}
    values = {}
    _, y, qid = _data()
    for loss in trees.LOSSES:
        boosting = _boosting(loss)
        scores = boosting.screened_scores()
        values[loss] = Measure("ndcg", k=10)(y, scores, qid=qid)
        other = y.copy()
        other[np.isin(qid, boosting.folds[1])] = 0.0
        changed = replace(boosting, data=replace(boosting.data, y=other)).screened_scores()
        held = np.isin(qid, boosting.folds[1])
        np.testing.assert_array_equal(changed[held], scores[held])
        assert not np.array_equal(changed, scores)
    assert better == max(values, key=lambda loss: values[loss])
    cheap = found["screened"] & (found["leaves"] == 4)
    for loss, value in zip(found["loss"][cheap], found["mean_score"][cheap], strict=True):
        assert value == pytest.approx(values[loss])


def test_a_seed_makes_it_deterministic_on_any_number_of_threads() -> None:
    X, _, _ = _data()
    first, second, other = _fitted(), _fitted(), _fitted(families="trees", random_state=1)
    with limited_threads(1):
        alone = _fitted()
    for model in (second, alone):
        np.testing.assert_array_equal(model.predict(X), first.predict(X))
        np.testing.assert_array_equal(model.cv_results_["mean_score"], first.cv_results_["mean_score"])
    assert not np.array_equal(other.predict(X), _fitted(families="trees").predict(X))


@pytest.mark.parametrize("family", ["trees", "blend"])
def test_files_come_back_and_other_systems_are_refused(family: str, tmp_path: Any, monkeypatch: Any) -> None:
    X, _, qid = _data()
    chosen = (lambda entries: len(entries.means) - 1) if family == "blend" else (lambda entries: 2)
    monkeypatch.setattr(Entries, "chosen", chosen)
    model = _fitted()
    assert model.best_params_["model"] == family
    path = tmp_path / "m.rankrls"
    save(model, path)
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))
    assert read_info(path)["selection"]["chosen"]["model"] == model.best_params_["model"]
    with pytest.raises(InputError, match="not linear"):
        explain(model, X, qid=qid)
    with pytest.raises(InputError, match="cannot be exported as ONNX"):
        to_onnx(model)
    with pytest.raises(InputError, match="Fit a linear model"):
        to_solr(model, feature_names=list("abc"))
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("name", "value"),
    [("value", np.nan), ("value", np.inf), ("threshold", np.nan), ("feature", 3), ("left", 0), ("roots", 1)],
)
def test_damaged_trees_of_a_file_are_refused(name: str, value: float, tmp_path: Any) -> None:
    path = tmp_path / "m.rankrls"
    save(_fitted(families="trees"), path)
    changed = Changed(path.read_bytes())
    member = changed.state["best_estimator_"]["state"]["trees_"]["state"][name]["array"]
    array = changed.array(member)
    array[0] = value
    changed.parts[member] = npy(array)
    path.write_bytes(changed.content())
    for read in (load, read_info):
        with pytest.raises(InputError, match="boosted trees"):
            read(path)


def test_files_with_trees_as_text_are_refused(tmp_path: Any) -> None:
    path = tmp_path / "m.rankrls"
    save(_fitted(families="trees"), path)
    changed = Changed(path.read_bytes())
    changed.state["best_estimator_"]["state"]["trees_"]["state"] = {"texts": {"tuple": ["tree"]}, "n_features": 3}
    path.write_bytes(changed.content())
    with pytest.raises(InputError, match="reads no Trees made of n_features, texts: fit the model again"):
        load(path)


def test_without_lightgbm_one_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingPackageError, match=r"rankrls\[trees\]"):
        _fitted(families="all")
    assert _fitted(families="linear").best_params_["model"] == "linear"


def test_gaps_are_for_trees_alone() -> None:
    X, y, qid = _data()
    X[::7, 0] = np.nan
    with pytest.warns(InputWarning, match="NaN"):
        model = AutoRankRLS(families=("linear", "trees")).fit(X, y, qid=qid)
    assert list(model.results_["model"]) == ["trees"]
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(InputError, match="NaN"):
        AutoRankRLS(families="linear").fit(X, y, qid=qid)


def test_weights_reach_the_trees_and_rows_of_weight_zero_are_gone() -> None:
    X, y, qid = _data()
    weight = np.where(np.arange(len(y)) % 4, 1.0, 0.0)
    model = AutoRankRLS(families="trees").fit(X, y, qid=qid, sample_weight=weight)
    kept = weight > 0.0
    again = AutoRankRLS(families="trees").fit(X[kept], y[kept], qid=qid[kept])
    np.testing.assert_allclose(model.predict(X), again.predict(X), rtol=1e-9)
    other = AutoRankRLS(families="trees").fit(X, y, qid=qid, sample_weight=1.0 + X[:, 0] ** 2)
    assert not np.allclose(other.predict(X), again.predict(X))


def test_sparse_features_and_rows_between_those_of_other_queries() -> None:
    X, y, qid = _data()
    X[np.abs(X) < 0.4] = 0.0
    order = np.random.default_rng(0).permutation(len(y))
    for query in np.unique(qid):  # the rows of a query stay in their order: sums of others round otherwise
        own = qid[order] == query
        order[own] = np.sort(order[own])
    families = ("linear", "trees", "blend")
    model = AutoRankRLS(families=families, scales="raw").fit(sparse.csr_array(X[order]), y[order], qid=qid[order])
    expected = AutoRankRLS(families=families, scales="raw").fit(X, y, qid=qid)
    assert list(model.results_["model"]) == list(families)
    np.testing.assert_allclose(model.results_["mean_score"], expected.results_["mean_score"], rtol=1e-9)
    np.testing.assert_allclose(model.predict(sparse.csr_array(X)), expected.predict(X), rtol=1e-8, atol=1e-10)


def test_what_trees_cannot_do_is_skipped_with_its_reason() -> None:
    X, y, qid = _data(queries=6)
    with pytest.warns(InputWarning, match="10 queries"):
        few = AutoRankRLS(families="all", n_basis=20).fit(X, y, qid=qid)
    assert set(few.skipped_) == {"trees, raw", "blend, raw"}
    with pytest.warns(InputWarning, match="there are 1"):
        AutoRankRLS(families=("linear", "trees"), scoring="disagreement").fit(X, y)
    X, y, qid = _data(queries=18, size=2)  # too few rows for any split
    with pytest.warns(InputWarning, match="LightGBM cannot grow"):
        AutoRankRLS(families=("linear", "trees")).fit(X, y, qid=qid)
    X, y, qid = _data()
    with pytest.warns(InputWarning, match="folds that hold out each query"):
        _fitted(cv=[(np.flatnonzero(qid > 5), np.flatnonzero(qid <= 5))])
    with pytest.raises(InputError, match="families"):
        AutoRankRLS(families=("linear", "forest")).fit(X, y, qid=qid)
