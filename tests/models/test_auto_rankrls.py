"""AutoRankRLS: its models against the estimators that they are, its choice against the rule, its figures by refits."""

from __future__ import annotations

import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from rankrls import AutoRankRLS, InputError, InputWarning, RankRLSCV, SparseRankRLSCV, load, save, survival_pairs
from rankrls.export import to_onnx, to_solr
from rankrls.model_selection import nested_estimate
from rankrls.models import auto_rankrls
from rankrls.models._pipelines import names_of_features
from rankrls.preprocessing import QueryStandardScaler
from tests.refusals import Refusal

NAMES = ["linear", "degree 2", "gaussian"]


def _data(kind: str = "product", queries: int = 40, size: int = 12) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    m = queries * size
    X, qid = rng.normal(size=(m, 3)), np.repeat(np.arange(queries), size)
    hidden = {"line": X @ [1.0, 0.5, 0.0], "product": X[:, 0] * X[:, 1], "wave": np.sin(4.0 * X[:, 0])}[kind]
    return X, np.digitize(hidden + 0.2 * rng.normal(size=m), [0.3, 1.0]).astype(float), qid


@pytest.mark.parametrize(("kind", "families"), [("line", NAMES[:1]), ("product", NAMES[1:]), ("wave", NAMES[2:])])
def test_the_family_that_made_the_labels_is_found(kind: str, families: list[str]) -> None:
    X, y, qid = _data(kind)
    model = AutoRankRLS(n_basis=100).fit(X, y, qid=qid)
    assert model.best_params_["model"] in families  # a wide Gaussian is next to a polynomial
    assert list(model.results_["model"]) == ["linear"] * 4 + ["degree 2"] * 2 + ["gaussian"] * 2
    assert model.skipped_ == {}


def _scaled(X: np.ndarray) -> dict[str, np.ndarray]:
    logs = np.arcsinh(X)
    at = np.linspace(0.0, 1.0, 200)
    ranks = np.column_stack([np.interp(column, np.quantile(column, at), at) for column in X.T])
    features = {"raw": X, "standard": X / X.std(axis=0), "log": logs / logs.std(axis=0), "ranks": ranks}
    for key in ("standard", "log"):
        features[key] = features[key] - features[key].mean(axis=0)
    return features


def _expected(model: str, gamma: float, n_basis: int) -> Any:
    if model == "linear":
        return RankRLSCV(scoring="ndcg@10")
    known = {"degree 2": {"kernel": "polynomial", "degree": 2}, "gaussian": {"kernel": "rbf"}}
    kernel = known.get(model, {"kernel": "laplacian"})
    return SparseRankRLSCV(scoring="ndcg@10", gamma=gamma, n_basis=n_basis, **kernel)


def test_each_row_of_the_table_is_that_estimator_on_those_features() -> None:
    X, y, qid = _data()
    model = AutoRankRLS(n_basis=60, families=(*NAMES, "laplacian")).fit(X, y, qid=qid)
    features = _scaled(X)
    for row in range(10):
        own = {name: column[row] for name, column in model.results_.items()}
        expected = _expected(own["model"], own["gamma"], 60).fit(features[own["scale"]], y, qid=qid)
        assert own["mean_score"] == pytest.approx(expected.best_score_, abs=1e-9)
        assert own["alpha"] == pytest.approx(expected.alpha_, rel=1e-9)


def _gammas(family: str, Z: np.ndarray) -> list[float]:
    if family == "degree 2":
        return [1.0 / (Z**2).sum(axis=1).mean()]
    if family == "gaussian":
        apart = ((Z[:, None] - Z[None]) ** 2).sum(axis=2).mean()
        return [width / apart for width in (0.03125, 0.125, 0.5, 2.0, 8.0)]
    return [width / Z.std(axis=0).sum() for width in (0.1, 0.4, 1.6)]


def test_the_kernels_that_are_best_over_a_third_of_the_basis_are_fitted_over_all_of_it() -> None:
    X, y, qid = _data()
    X = np.exp(X)  # the best two Gaussians are on the same scale
    model = AutoRankRLS(n_basis=60, families=(*NAMES, "laplacian")).fit(X, y, qid=qid)
    features = _scaled(X)
    for family in ("degree 2", "gaussian", "laplacian"):
        values = {}
        for scale, Z in features.items():
            gamma = _gammas(family, Z)[len(_gammas(family, Z)) // 2]
            values[scale, gamma] = _expected(family, gamma, 20).fit(Z, y, qid=qid).best_score_
        for scale, _ in sorted(values, key=lambda one: values[one])[-2:]:
            for gamma in _gammas(family, features[scale]):
                values[scale, gamma] = _expected(family, gamma, 20).fit(features[scale], y, qid=qid).best_score_
        best = sorted(values, key=lambda one: values[one])[-2:]
        own = model.results_["model"] == family
        assert sorted(model.results_["scale"][own]) == sorted(scale for scale, _ in best)
        assert sorted(model.results_["gamma"][own]) == pytest.approx(sorted(gamma for _, gamma in best))
        screened = model.cv_results_["screened"] & (model.cv_results_["model"] == family)
        named = zip(model.cv_results_["scale"][screened], model.cv_results_["gamma"][screened], strict=True)
        assert len(set(named)) == len(values) - 2
        for scale, gamma in set(values) - set(best):
            this = screened & (model.cv_results_["scale"] == scale)
            this &= np.isclose(model.cv_results_["gamma"], gamma, rtol=1e-9)
            found = model.cv_results_["mean_score"][this].max()
            assert found == pytest.approx(values[scale, gamma], abs=1e-9)


def test_prices_are_ranked_by_logarithms_or_ranks() -> None:
    X, y, qid = _data("line")
    model = AutoRankRLS(n_basis=60, families="linear").fit(np.exp(4.0 * X), y, qid=qid)
    assert model.best_params_["scale"] in ("log", "ranks")
    table = dict(zip(model.results_["scale"], model.results_["mean_score"], strict=True))
    assert min(table["log"], table["ranks"]) > max(table["raw"], table["standard"]) + 0.02
    some = AutoRankRLS(n_basis=60, families="linear", scales="log").fit(np.exp(4.0 * X), y, qid=qid)
    assert list(some.results_["scale"]) == ["log"]
    with pytest.raises(InputError, match="scales must be one of"):
        AutoRankRLS(scales="square").fit(X, y, qid=qid)


@pytest.mark.parametrize("queries", [15, 60])
def test_the_rule_takes_the_first_model_that_is_behind_by_so_many_standard_errors_of_the_difference(
    queries: int,
) -> None:
    X, y, qid = _data(queries=queries)
    more = 1.0 + (30.0 / queries) ** 2
    for rule, allowed in (("one_se", more), ("half_se", 0.5 * more), ("best", 0.0)):
        model = AutoRankRLS(n_basis=60, rule=rule).fit(X, y, qid=qid)
        table = model.results_
        behind = table["mean_score"].max() - table["mean_score"]
        np.testing.assert_allclose(table["behind"], behind, atol=1e-12)
        within = behind <= allowed * table["behind_error"] + 1e-12
        assert np.argmax(table["chosen"]) == np.argmax(within)
        assert table["chosen"].sum() == 1
        k = model.best_index_
        for name, value in model.best_params_.items():
            assert model.cv_results_[name][k] == value


def test_the_error_of_a_difference_is_paired() -> None:
    X, y, qid = _data("wave")
    X = X * [1.0, 50.0, 0.2]
    model = AutoRankRLS(families="linear", scales=("raw", "standard", "ranks")).fit(X, y, qid=qid)
    features = _scaled(X)
    searches = [RankRLSCV(scoring="ndcg@10").fit(features[key], y, qid=qid) for key in ("raw", "standard", "ranks")]
    values = np.array([search.query_scores_ for search in searches])
    top = int(np.argmax(values.mean(axis=1)))
    apart = values[top] - values
    expected = apart.std(axis=1, ddof=1) / np.sqrt(apart.shape[1])
    np.testing.assert_allclose(model.results_["behind_error"], expected, atol=1e-9)
    alone = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    assert (np.delete(expected, top) < 0.6 * np.delete(np.hypot(alone, alone[top]), top)).all()


@pytest.mark.parametrize("other", ["best", "one_se"])
def test_the_default_rule_allows_half_a_standard_error(other: str) -> None:
    X, y, qid = _data("line", queries=80)
    default, half, wrong = (
        AutoRankRLS(n_basis=60, **rule).fit(X, y, qid=qid).best_params_
        for rule in ({}, {"rule": "half_se"}, {"rule": other})
    )
    assert default == half
    assert default != wrong


def test_its_own_value_is_never_what_is_reported() -> None:
    rng = np.random.default_rng(3)
    qid = np.repeat(np.arange(24), 8)
    gaps = []
    for seed in range(4):
        X, y = rng.normal(size=(192, 5)), np.random.default_rng(seed).integers(0, 3, 192).astype(float)
        model = AutoRankRLS(n_basis=40).fit(X, y, qid=qid)
        own = model.results_["mean_score"][model.results_["chosen"]][0]
        assert model.optimism_ >= 0.0
        assert model.best_score_ == pytest.approx(own - model.optimism_)
        assert "20 models" in model.selection_
        gaps.append(model.optimism_)
    # nothing can be learned here, so that all of the best one's lead is the choice's own
    assert np.mean(gaps) > 0.01


def test_an_error_is_corrected_upwards() -> None:
    X, y, qid = _data()
    model = AutoRankRLS(n_basis=40, scoring="disagreement").fit(X, y, qid=qid)
    own = model.results_["mean_score"][model.results_["chosen"]][0]
    assert model.best_score_ == pytest.approx(own + model.optimism_)
    assert model.best_score_ >= own


def test_one_ranking_is_judged_by_pairs_or_folds() -> None:
    X, y, _ = _data(queries=8)
    pairs = AutoRankRLS(scoring="disagreement", n_basis=30).fit(X, y)
    assert pairs.selection_.startswith("leave-pair-out")
    assert 0.0 < pairs.optimism_ < 0.1
    with pytest.warns(InputWarning, match="first positions"):
        folds = AutoRankRLS(n_basis=30).fit(X, y)
    assert folds.selection_.startswith("5 folds")
    assert folds.predict(X).shape == (len(X),)


def test_nothing_depends_on_time() -> None:
    X, y, qid = _data()
    first, second = (AutoRankRLS(n_basis=40).fit(X, y, qid=qid) for _ in range(2))
    for name in first.cv_results_:
        np.testing.assert_array_equal(first.cv_results_[name], second.cv_results_[name])
    assert first.optimism_ == second.optimism_
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = AutoRankRLS(n_basis=len(X)).fit(X[order], y[order], qid=qid[order])
    straight = AutoRankRLS(n_basis=len(X)).fit(X, y, qid=qid)
    assert shuffled.best_params_["model"] == straight.best_params_["model"]
    np.testing.assert_allclose(shuffled.results_["mean_score"], straight.results_["mean_score"], atol=1e-6)


def test_a_model_that_cannot_be_fitted_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, qid = _data()
    spec = SparseRankRLSCV._spec

    def failing(ranker: SparseRankRLSCV) -> Any:
        if ranker.kernel == "polynomial":
            raise InputError("It overflows.")
        return spec(ranker)

    monkeypatch.setattr(SparseRankRLSCV, "_spec", failing)
    with pytest.warns(InputWarning, match="overflows"):
        model = AutoRankRLS(n_basis=40).fit(X, y, qid=qid)
    assert model.skipped_ == {f"degree 2, {scale}": "It overflows" for scale in ("raw", "standard", "log", "ranks")}
    monkeypatch.setattr(auto_rankrls, "RankRLSCV", lambda **given: SparseRankRLSCV(kernel="polynomial"))
    with pytest.raises(InputError, match="overflows"):
        AutoRankRLS(n_basis=len(X)).fit(X, y, qid=qid)


@pytest.mark.parametrize("kind", ["line", "product", "wave"])
def test_models_are_saved_and_exported_as_they_say(kind: str, tmp_path: Path) -> None:
    X, y, qid = _data(kind)
    X = 100.0 * X
    model = AutoRankRLS(n_basis=40).fit(X, y, qid=qid)
    save(model, tmp_path / "m.rankrls")
    again = load(tmp_path / "m.rankrls")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.results_["export"].tolist() == model.results_["export"].tolist()
    exports = model.results_["export"][model.results_["chosen"]][0]
    for export, words in (
        (lambda m: to_solr(m, feature_names=list("abc")), ("all",)),
        (lambda m: to_onnx(m, "m"), ("all", "onnx")),
    ):
        if exports in words:
            assert export(model).content
        else:
            with pytest.raises(ValueError):
                export(model)


def test_a_linear_choice_is_explained_in_the_names_of_its_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    X, y, qid = _data("line")
    table = pandas.DataFrame(100.0 * X + 5.0, columns=["price", "rating", "age"])
    model = AutoRankRLS(n_basis=40).fit(table, y, qid=qid)
    assert model.best_params_["model"] == "linear"
    assert "price" in to_solr(model).content
    assert names_of_features(model, None, 3) == ("price", "rating", "age")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.predict(table).shape == y.shape


def test_sparse_features_are_evaluated_as_the_same_dense_ones() -> None:
    X, y, qid = _data("line")
    X[np.abs(X) < 0.7] = 0.0
    model = AutoRankRLS(n_basis=40).fit(sparse.csr_array(X), y, qid=qid)
    dense = AutoRankRLS(n_basis=40, rule="best").fit(X, y, qid=qid)
    assert set(model.results_["scale"]) == {"raw", "standard", "log"}
    assert model.results_["mean_score"][0] == pytest.approx(dense.results_["mean_score"][0], abs=1e-9)


@pytest.mark.parametrize("family", NAMES)
def test_sparse_features_stay_sparse(family: str) -> None:
    rng = np.random.default_rng(0)
    X, y, qid = sparse.random_array((240, 20_000), density=0.002, format="csr", rng=rng), _data()[1], _data()[2]
    tracemalloc.start()
    try:
        AutoRankRLS(families=family, n_basis=40).fit(X, y[:240], qid=qid[:240])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * 8 * np.prod(X.shape)


def test_validation_data_are_scaled_like_the_others() -> None:
    X, y, qid = _data("line")
    X = 100.0 * X
    train, other = qid < 30, qid >= 30
    validation = {"X_val": X[other], "y_val": y[other], "qid_val": qid[other]}
    model = AutoRankRLS(families="linear", scales=("raw", "standard", "query"))
    model.fit(X[train], y[train], qid=qid[train], **validation)
    assert model.selection_ == "validation data with 10 queries, the choice of 3 models"
    scaler = StandardScaler().fit(X[train])
    beside = QueryStandardScaler(passthrough=True)
    joint = StandardScaler().fit(beside.fit_transform(X[train], qid=qid[train]))
    features = {
        "raw": lambda rows, ids: rows,
        "standard": lambda rows, ids: scaler.transform(rows),
        "query": lambda rows, ids: joint.transform(beside.transform(rows, qid=ids)),
    }
    for scale, value in zip(model.results_["scale"], model.results_["mean_score"], strict=True):
        one = RankRLSCV(scoring="ndcg@10")
        scaled = features[scale](X[other], qid[other])
        one.fit(features[scale](X[train], qid[train]), y[train], qid=qid[train], **validation | {"X_val": scaled})
        assert value == pytest.approx(one.best_score_, abs=1e-9)


def test_several_targets_and_weights_go_to_the_models() -> None:
    X, y, qid = _data("line", queries=15)
    Y, weight = np.column_stack([y, -y]), np.where(np.arange(len(y)) % 5, 1.0, 0.0)
    model = AutoRankRLS(n_basis=30, scoring="disagreement").fit(X, Y, qid=qid, sample_weight=weight)
    expected = RankRLSCV().fit(X, Y, qid=qid, sample_weight=weight)
    assert model.results_["mean_score"][0] == pytest.approx(expected.best_score_)
    assert model.predict(X).shape == Y.shape


def test_a_scale_is_that_of_the_weighted_rows() -> None:
    X, y, qid = _data("line", queries=15)
    weight = np.where(np.arange(len(y)) % 5, 1.0, 0.25)
    X[::5] *= 100.0
    model = AutoRankRLS(families="linear", scales="standard", scoring="disagreement")
    model.fit(X, y, qid=qid, sample_weight=weight)
    scaled = StandardScaler().fit(X, sample_weight=weight).transform(X)
    expected = RankRLSCV().fit(scaled, y, qid=qid, sample_weight=weight)
    np.testing.assert_allclose(model.predict(X), expected.predict(scaled), rtol=1e-7, atol=1e-9)


def _relative(seed: int = 0, size: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offers that are chosen if they are cheap for their query, of which each has a level and a spread of its own."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(40), size)
    apart = rng.normal(size=len(qid))
    price = 50.0 * rng.normal(size=40)[qid] + np.exp(2.0 * rng.normal(size=40))[qid] * apart
    y = np.digitize(-apart + 0.3 * rng.normal(size=len(qid)), [0.5, 1.5]).astype(float)
    return np.column_stack([price, rng.normal(size=len(qid))]), y, qid


def test_features_are_compared_inside_queries_where_that_is_asked_for() -> None:
    X, y, qid = _relative()
    model = AutoRankRLS(families="linear", scales="all").fit(X, y, qid=qid)
    assert list(model.results_["scale"]) == ["raw", "standard", "log", "ranks", "query"]
    assert model.best_params_["scale"] == "query"
    assert list(model.results_["export"]) == ["all", "all", "onnx", "no", "no"]
    groups = qid[:, None] == np.arange(40)
    inside = [(column - m) / s for column in X.T for m, s in [_moments(column, groups)]]
    Z = StandardScaler().fit_transform(np.column_stack([X, *inside]))
    expected = RankRLSCV(scoring="ndcg@10").fit(Z, y, qid=qid)
    assert model.results_["mean_score"][-1] == pytest.approx(expected.best_score_, abs=1e-9)
    np.testing.assert_allclose(model.predict(X, qid=qid), expected.predict(Z), atol=1e-8)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(model.predict(X[order], qid=qid[order]), model.predict(X, qid=qid)[order], atol=1e-9)
    assert model.score(X, y, qid=qid) == pytest.approx(expected.score(Z, y, qid=qid))
    assert (model.rank(X, qid=qid) == expected.rank(Z, qid=qid)).all()


def _moments(column: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread of a column in each row's query."""
    mean = (groups.T @ column) / groups.sum(axis=0)
    spread = np.sqrt((groups.T @ (column - groups @ mean) ** 2) / groups.sum(axis=0))
    return groups @ mean, groups @ spread


@pytest.mark.parametrize("kind", ["relative", "line", "pairs"])
def test_whether_predict_needs_qid_depends_on_what_is_asked_for_and_never_on_the_data(kind: str) -> None:
    X, y, qid = {"relative": _relative(), "line": _data("line"), "pairs": _relative(size=2)}[kind]
    model = AutoRankRLS(families="linear", scales=("raw", "query")).fit(X, y, qid=qid)
    assert list(model.results_["scale"]) == (["raw"] if kind == "pairs" else ["raw", "query"])
    with pytest.raises(InputError, match="Predict with qid") as refused:
        model.predict(X)
    assert refused.value.parameter == "qid"
    default = AutoRankRLS(families="linear").fit(X, y, qid=qid)
    np.testing.assert_array_equal(default.predict(X, qid=qid), default.predict(X))
    one = AutoRankRLS(families="linear", scales="all", cv=3, scoring="tau").fit(X, y)
    assert "query" not in one.results_["scale"]
    assert one.predict(X).shape == y.shape


@pytest.mark.parametrize("scales", ["raw", "query"])
def test_a_fitted_model_does_not_read_its_parameters(scales: str) -> None:
    X, y, qid = _data("line")
    model = AutoRankRLS(families="linear", scales=scales).fit(X, y, qid=qid)
    scores = model.predict(X, qid=qid)
    model.set_params(families="unknown", scales="raw" if scales == "query" else "all")
    with Refusal("unknown", parameter="families"):
        model.fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.predict(X, qid=qid), scores)
    if scales == "query":
        with Refusal("Predict with qid", parameter="qid"):
            model.predict(X)
    else:
        np.testing.assert_array_equal(model.predict(X), scores)


@pytest.mark.parametrize("kind", ["one ranking", "pairs of rows", "sparse", "preferences"])
def test_scales_of_which_none_suits_the_data_are_refused(kind: str) -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = AutoRankRLS(families="linear", scales="query", scoring="disagreement")
    with Refusal("None of the scales query", parameter="scales"):
        if kind == "one ranking":
            model.fit(X, X[:, 0])
        elif kind == "pairs of rows":
            model.fit(X, X[:, 0], qid=np.repeat(np.arange(20), 2))
        elif kind == "sparse":
            model.fit(sparse.csr_array(X), X[:, 0], qid=np.repeat(np.arange(4), 10))
        else:
            model.fit_pairs(X, np.arange(20), np.arange(20, 40))


def test_models_of_queries_are_saved_and_evaluated_in_new_queries_and_not_exported(tmp_path: Path) -> None:
    X, y, qid = _relative()
    model = AutoRankRLS(families="linear", scales="query").fit(X, y, qid=qid)
    save(model, tmp_path / "m.rankrls")
    np.testing.assert_array_equal(load(tmp_path / "m.rankrls").predict(X, qid=qid), model.predict(X, qid=qid))
    for export in (lambda: to_solr(model, feature_names=["price", "rating"]), lambda: to_onnx(model, "m")):
        with pytest.raises(ValueError, match=r"quer"):
            export()
    found = nested_estimate(AutoRankRLS(families="linear", scales="query"), X, y, qid=qid, cv=4)
    assert found.score == pytest.approx(model.best_score_, abs=0.05)


def _patients(seed: int, *, signal: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, and the pairs of patients of whom one is known to live longer."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    times = rng.exponential(size=60) * np.exp(signal * np.sin(2.0 * X[:, 0]))
    return X, *survival_pairs(times, rng.random(60) < 0.7)


def test_of_preferences_each_row_of_the_table_is_that_estimator_evaluated_on_new_items() -> None:
    X, winners, losers = _patients(0, signal=2.0)
    how = {"n_basis": 60, "scoring": "pair_accuracy"}
    model = AutoRankRLS(**how, families=(*NAMES, "laplacian"), scales=("raw", "standard")).fit_pairs(X, winners, losers)
    assert model.selection_ == "5 x 5 folds of 57 items: new items, the choice of 20 models"
    assert list(model.results_["model"]) == [name for name in (*NAMES, "laplacian") for _ in range(2)]
    features = _scaled(X)
    for row in range(8):
        own = {name: column[row] for name, column in model.results_.items()}
        expected = _expected(own["model"], own["gamma"], 60).set_params(scoring="pair_accuracy")
        if own["model"] != "linear":  # over all items: there are at most twice as many as in the basis
            known = {name: getattr(expected, name) for name in ("scoring", "kernel", "gamma", "degree")}
            expected = RankRLSCV(**known)
        expected.fit_pairs(features[own["scale"]], winners, losers)
        assert own["mean_score"] == pytest.approx(expected.best_score_, abs=1e-9)
    own = model.results_["mean_score"][model.results_["chosen"]][0]
    assert model.best_score_ == pytest.approx(own - model.optimism_)
    right = model.predict(X)[winners] > model.predict(X)[losers]
    assert right.mean() > model.best_score_ > 0.6


def test_rows_of_one_item_are_held_out_together_and_all_scales_and_families_are_those_of_preferences() -> None:
    X, winners, losers = _patients(0, signal=0.0)
    twice = np.vstack([X, X])
    model = AutoRankRLS(scoring="pair_accuracy", families="gaussian", scales="raw", n_basis=20)
    model.fit_pairs(twice, winners, losers + 60, item_id=np.tile(np.arange(60), 2))
    assert "folds of 55 items" in model.selection_  # that are compared, of 60
    assert model.best_score_ < 0.6  # known items would be ordered rightly
    every = AutoRankRLS(scoring="pair_accuracy", families="all", scales="all", n_basis=20).fit_pairs(X, winners, losers)
    assert set(every.results_["model"]) == {*NAMES, "laplacian"}
    assert "query" not in every.cv_results_["scale"]
    assert every.predict(X).shape == (60,)
    with pytest.raises(InputError, match="need labels"):
        AutoRankRLS(scoring="pair_accuracy", families="trees").fit_pairs(X, winners, losers)
    with pytest.raises(InputError, match="pair_accuracy"):
        AutoRankRLS().fit_pairs(X, winners, losers)


@pytest.mark.slow
def test_on_patients_without_signal_the_reported_share_is_one_half() -> None:
    how = {"scoring": "pair_accuracy", "n_basis": 60, "scales": ("raw", "ranks")}
    reported = [AutoRankRLS(**how).fit_pairs(*_patients(seed, signal=0.0)).best_score_ for seed in range(20)]
    assert np.mean(reported) == pytest.approx(0.5, abs=0.03)
