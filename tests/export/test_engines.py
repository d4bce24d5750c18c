"""An exported file, scored as the engine would score it, ranks as the model does."""

import json
import sys

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankrls import CGRankRLS, CoRankingPursuit, RankBoost, RankingPursuit, RankRLS, RankRLSCV, SparseRankRLS
from rankrls.export import (
    positive_offset,
    to_elasticsearch,
    to_json,
    to_onnx,
    to_opensearch,
    to_solr,
    to_vespa,
)
from rankrls.io import load_letor
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler
from tests.export import engines

NAMES = ["bm25(title)", "attribute(age)", "fieldMatch(body).completeness", "query(intent)", "is_new"]
SCALERS = [
    [],
    [StandardScaler()],
    [StandardScaler(with_mean=False)],
    [StandardScaler(with_std=False)],
    [MinMaxScaler()],
    [MinMaxScaler(feature_range=(-1, 3))],
    [MaxAbsScaler()],
    [RobustScaler()],
    [StandardScaler(), MinMaxScaler()],
    ["passthrough", RobustScaler()],
    [QueryMinMaxScaler(feature_range=(-2, 1))],
    [QueryStandardScaler()],
]


def data(seed=0, m=80):
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(m, 5)) * [3.0, 40.0, 0.1, 1.0, 1.0] + [0.0, 300.0, -2.0, 0.0, 0.0]
    X[:, 4] = X[:, 4] > 1.5
    qid = np.repeat(np.arange(m // 8), 8)
    y = np.digitize(X @ [0.5, 0.02, 5.0, -1.0, 1.0] + rng.normal(size=m), [7.0, 9.0]).astype(float)
    return pd.DataFrame(X, columns=NAMES), y, qid


def fitted(steps, **parameters):
    X, y, qid = data()
    Z = X.to_numpy()
    steps = [step if step == "passthrough" else clone(step) for step in steps]
    for step in steps:
        Z = Z if step == "passthrough" else step.fit_transform(Z)
    ranker = RankRLS(**parameters).fit(Z, y, qid=qid)
    return make_pipeline(*steps, ranker) if steps else ranker


def engine_scores(engine, exported, X):
    """Scores of X as the engine gives them, with the offset's feature where the file asks for it."""
    values = lambda name: np.ones(len(X)) if name == "rankrls_offset" else X[name].to_numpy()
    if engine == "solr":
        return engines.solr(exported.content, values)
    if engine in ("elasticsearch", "opensearch"):
        return engines.elasticsearch(exported.content, values, [*X.columns, "rankrls_offset"])
    if engine == "vespa":
        return engines.vespa(exported.content, values, list(X.columns))
    return engines.plain(exported.content, values)


EXPORTS = {
    "solr": to_solr,
    "elasticsearch": to_elasticsearch,
    "opensearch": to_opensearch,
    "vespa": to_vespa,
    "json": to_json,
}


@pytest.mark.parametrize("engine", EXPORTS)
@pytest.mark.parametrize("scaler", ["beside", "fold"])
@pytest.mark.parametrize("steps", SCALERS, ids=lambda steps: "+".join(getattr(s, "__repr__", str)() for s in steps))
def test_engine_scores_are_the_models(engine, scaler, steps):
    model = fitted(steps)
    X, _, qid = data(seed=1)
    exported = EXPORTS[engine](model, feature_names=NAMES, scaler=scaler, offset=2.5)
    scores = engine_scores(engine, exported, X)
    expected = model.predict(X.to_numpy())
    np.testing.assert_allclose(scores, expected + 2.5, rtol=0, atol=2e-4 if scaler == "fold" else 2e-5)
    for q in np.unique(qid):
        rows = qid == q
        gaps = np.diff(np.sort(expected[rows]))
        if gaps.min() > 1e-3:
            np.testing.assert_array_equal(np.argsort(scores[rows]), np.argsort(expected[rows]))


@pytest.mark.parametrize("engine", EXPORTS)
@pytest.mark.parametrize("scaler", ["beside", "fold"])
def test_without_an_offset_scores_differ_by_one_constant_at_most(engine, scaler):
    model = fitted([StandardScaler()])
    X, _, _ = data(seed=1)
    exported = EXPORTS[engine](model, feature_names=NAMES, scaler=scaler)
    difference = engine_scores(engine, exported, X) - model.predict(X.to_numpy())
    assert np.ptp(difference) < 5e-4
    told = [float(n.split("predict ")[1].split(",")[0].rstrip(".")) for n in exported.notes if "of predict" in n]
    if scaler == "beside" or engine in ("vespa", "json"):
        assert abs(difference[0]) < 5e-4
        assert not told
    else:
        assert told == pytest.approx([difference[0]], abs=1e-3)
        assert abs(told[0]) > 0.1


def test_a_min_max_scaler_becomes_the_engines_own():
    model = fitted([MinMaxScaler()])
    X, _, _ = data()
    norm = to_solr(model, feature_names=NAMES).json()["features"][1]["norm"]
    assert norm["class"] == "org.apache.solr.ltr.norm.MinMaxNormalizer"
    assert float(norm["params"]["min"]) == pytest.approx(X[NAMES[1]].min())
    assert float(norm["params"]["max"]) == pytest.approx(X[NAMES[1]].max())
    norm = to_elasticsearch(model, feature_names=NAMES).json()["model"]["model"]["feature_normalizers"][NAMES[1]]
    ends = {"minimum": pytest.approx(X[NAMES[1]].min()), "maximum": pytest.approx(X[NAMES[1]].max())}
    assert norm == {"min_max": ends}


def test_offset_that_makes_scores_positive():
    model = fitted([StandardScaler()])
    X, _, _ = data(seed=2)
    offset = positive_offset(model, X.to_numpy())
    scores = engine_scores("elasticsearch", to_elasticsearch(model, feature_names=NAMES, offset=offset), X)
    assert scores.min() == pytest.approx(1.0, abs=1e-4)
    assert positive_offset(model, X.to_numpy(), margin=-100.0) == 0.0


def test_features_of_weight_zero_are_left_out():
    X, y, _ = data()
    X = X.assign(constant=7.0)
    model = RankRLS().fit(X, y)
    assert model.coef_[-1] == 0.0
    exported = to_solr(model)
    assert [f["name"] for f in exported.json()["features"]] == NAMES
    assert any("1 features have weight 0" in note for note in exported.notes)


def test_one_target_of_several():
    X, y, _ = data()
    model = RankRLS().fit(X, np.column_stack((y, -2 * y)))
    scores = engine_scores("json", to_json(model, target=1), X)
    np.testing.assert_allclose(scores, model.predict(X)[:, 1])
    with pytest.raises(ValueError, match="has 2 targets; say which"):
        to_json(model)
    with pytest.raises(ValueError, match="from 0 to 1; got 2"):
        to_json(model, target=2)


KERNELS = [
    ("linear", {}),
    ("rbf", {"gamma": 0.3}),
    ("laplacian", {"gamma": 0.2}),
    ("polynomial", {"degree": 2, "gamma": 0.1}),
    ("poly", {"degree": 3, "coef0": 0.5}),
    ("sigmoid", {"gamma": 0.01, "coef0": 0.0, "alpha": 50.0}),
]


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(("kernel", "parameters"), KERNELS, ids=lambda v: v if isinstance(v, str) else "")
@pytest.mark.parametrize("targets", [None, 2])
def test_onnx_scores_are_the_models(kernel, parameters, scaled, targets):
    X, y, qid = data()
    X = X.to_numpy(np.float32).astype(float)
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X)
    model = RankRLS(kernel=kernel, **parameters)
    Y = y if targets is None else np.column_stack((y, y**2))
    model.fit(Z, Y, qid=qid)
    wanted, given = model.predict(Z), Z.astype(np.float32)
    exported = to_onnx(model, "m", offset=1.5)
    if scaled:
        exported, given = to_onnx(make_pipeline(scaler, model), "m", offset=1.5), X.astype(np.float32)
    session = onnxruntime.InferenceSession(exported.content)
    (scores,) = session.run(None, {"X": given})
    assert scores.dtype == np.float32
    assert scores.shape == wanted.shape
    np.testing.assert_allclose(scores, wanted + 1.5, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    assert [i.name for i in session.get_inputs()] == ["X"]


@pytest.mark.parametrize(
    "estimator", [RankBoost(n_estimators=40), SparseRankRLS(n_basis=15), RankingPursuit(), CGRankRLS()]
)
def test_onnx_of_the_other_families(estimator):
    X, y, qid = data()
    X = X.to_numpy(np.float32)
    model = make_pipeline(StandardScaler(), estimator).fit(X, y, **{f"{type(estimator).__name__.lower()}__qid": qid})
    (scores,) = onnxruntime.InferenceSession(to_onnx(model).content).run(None, {"X": X})
    Z = model[0].transform(X.astype(np.float64))
    wanted = model[-1].predict(Z)
    near = np.zeros(len(X), dtype=bool)
    if hasattr(model[-1], "thresholds_"):  # the scaled value may round to the other side of a threshold it is equal to
        near = (np.abs(Z[:, model[-1].features_] - model[-1].thresholds_) < 1e-6).any(axis=1)
        assert near.mean() < 0.2
    np.testing.assert_allclose(scores[~near], wanted[~near], rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


CO_VIEWS = {
    "halves": None,
    "one": [{}],
    "kernels": ["laplacian", {"kernel": "poly", "features": [4, 0, 2], "degree": 2}, {"kernel": "linear"}],
    "rows": [{"features": [1], "rows": np.arange(10, 80)}, {"rows": np.arange(0, 80, 2), "gamma": 0.3}],
}


@pytest.mark.parametrize("views", CO_VIEWS)
@pytest.mark.parametrize("shared_basis", [True, False])
def test_onnx_of_co_ranking_pursuit_is_the_mean_of_its_views(views, shared_basis):
    X, y, qid = data()
    X = X.to_numpy(np.float32)
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X.astype(np.float64))
    n_basis = 2 if views == "kernels" and not shared_basis else 7  # all combinations of three views are many
    model = CoRankingPursuit(n_basis, views=CO_VIEWS[views], shared_basis=shared_basis).fit(Z, y, qid=qid)
    exported = to_onnx(make_pipeline(scaler, model), offset=0.5)
    (scores,) = onnxruntime.InferenceSession(exported.content).run(None, {"X": X})
    wanted = np.mean([view.predict(Z) for view in model.views_], axis=0) + 0.5
    assert np.ptp(wanted) > 0.1
    assert scores.shape == wanted.shape
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


def test_onnx_of_co_ranking_pursuit_without_a_stage():
    X = np.zeros((4, 2))
    model = CoRankingPursuit(3).fit(X, [0, 1, 2, 3])
    assert model.path_.n_stages == 0
    (scores,) = onnxruntime.InferenceSession(to_onnx(model).content).run(None, {"X": np.ones((3, 2), np.float32)})
    np.testing.assert_array_equal(scores, model.predict(np.ones((3, 2))))


def test_onnx_stumps_are_strict_at_their_threshold():
    X = np.array([[0.0], [1.0], [2.0], [3.0]], dtype=np.float32)
    model = RankBoost(n_estimators=3).fit(X, [0, 0, 1, 1])
    at = np.array(model.thresholds_, dtype=np.float32)[:, None]
    points = np.vstack((at, np.nextafter(at, np.float32(9)), np.nextafter(at, np.float32(-9))))
    (scores,) = onnxruntime.InferenceSession(to_onnx(model).content).run(None, {"X": points})
    np.testing.assert_allclose(scores, model.predict(points), rtol=1e-6)


@pytest.mark.shared_data
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_onnx_ranks_ohsumed_as_the_model_does(kernel, data_dir):
    folder = data_dir / "ohsumed_letor1" / "Fold1"
    train, test = load_letor(folder / "trainingset.txt"), load_letor(folder / "testset.txt")
    scaler = StandardScaler().fit(train.X)
    some = slice(0, 1500) if kernel == "rbf" else slice(None)
    model = RankRLS(kernel=kernel, alpha=10.0)
    model.fit(scaler.transform(train.X)[some], train.y[some], qid=train.qid[some])
    X = test.X.astype(np.float32)
    wanted = model.predict(scaler.transform(X.astype(np.float64)))
    session = onnxruntime.InferenceSession(to_onnx(make_pipeline(scaler, model)).content)
    (scores,) = session.run(None, {"X": X})
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    for q in np.unique(test.qid):
        rows = test.qid == q
        np.testing.assert_array_equal(
            np.argsort(-scores[rows], kind="stable"), np.argsort(-wanted[rows].astype(np.float32), kind="stable")
        )


def refused(model, match, export=to_solr, **arguments):
    arguments.setdefault("feature_names", NAMES)
    with pytest.raises(ValueError, match=match):
        export(model, **arguments)


def test_refusals_say_what_to_do():
    X, y, qid = data()
    linear = RankRLS().fit(X.to_numpy(), y, qid=qid)
    refused(linear, "fitted on 5 columns without names", feature_names=None)
    refused(linear, "4 names; the model has 5", feature_names=NAMES[:4])
    refused(linear, "Features 0 and 4 are both called 'a'", feature_names=["a", "b", "c", "d", "a"])
    refused(linear, "name of feature 2 is empty", feature_names=["a", "b", " ", "d", "e"])
    refused(linear, "scaler must be 'beside' or 'fold'", scaler="none")
    refused(linear, "offset must be a finite number", offset=np.inf)
    refused(linear, "offset must be a finite number", offset="large")
    refused(RankRLS().fit(X, y), "column 0 is 'bm25\\(title\\)' there and 'a' here", feature_names=list("abcde"))
    refused(RankRLS(kernel="rbf").fit(X, y), "not linear .RankRLS, its kernel is 'rbf'.*to_onnx")
    refused(StandardScaler().fit(X), "Only a fitted estimator of rankrls")
    refused(linear, "no Vespa rank feature", export=to_vespa, feature_names=["a b", *"cdef"])
    refused(linear, "phase must be one of", export=to_vespa, phase="third-phase")
    refused(linear, "cannot be a rank profile's name", export=to_vespa, name="my profile")
    for engine in (to_solr, to_elasticsearch, to_opensearch):
        taken = [*NAMES[:4], "rankrls_offset"]
        refused(linear, "name of the offset", export=engine, feature_names=taken, offset=1.0)
        refused(linear, "constant of 1e\\+60, which does not fit into float32", export=engine, offset=1e60)
    X = X.to_numpy()
    by_query = QueryStandardScaler().fit(X, qid=qid)
    refused(make_pipeline(by_query, linear), "cannot know its query's other documents.*StandardScaler, MinMaxScaler")
    refused(make_pipeline(MinMaxScaler(clip=True).fit(X), linear), "clip=False")
    refused(make_pipeline(PCA().fit(X), linear), "step PCA cannot be exported; StandardScaler")
    huge = RankRLS().fit(X, y)
    huge.coef_ = huge.coef_ * [1, 1, 1e60, 1, 1]
    refused(huge, "does not fit into float32")
    with pytest.raises(ValueError, match="known by its matrix only"):
        to_onnx(RankRLS(kernel="precomputed").fit(np.eye(4), [0, 1, 2, 3]))
    with pytest.raises(ValueError, match="known by its matrix only"):
        to_onnx(CoRankingPursuit(2, kernel="precomputed").fit(np.eye(4), [0, 1, 2, 3]))
    with pytest.raises(ValueError, match="a Python function"):
        to_onnx(RankRLS(kernel=lambda a, b: float(a @ b)).fit(X, y))
    with pytest.raises(ValueError, match="a Python function"):
        to_onnx(CoRankingPursuit(2, views=["rbf", lambda a, b: float(a @ b)]).fit(X, y))


def test_onnx_missing_is_said(monkeypatch):
    X, y, _ = data()
    model = RankRLS().fit(X, y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'rankrls\[onnx\]'"):
        to_onnx(model)


def test_published_examples_have_the_exported_form():
    """The example of Solr's javadoc and that of the Elasticsearch plugin's guide, from models of their weights."""
    model = RankRLS().fit(np.eye(3), [0, 1, 2])
    model.coef_ = np.array([1.0, 0.5, 0.1])
    names = ["userTextTitleMatch", "originalScore", "isBook"]
    assert to_solr(model, "myModelName", feature_names=names).json() == {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "name": "myModelName",
        "features": [{"name": "userTextTitleMatch"}, {"name": "originalScore"}, {"name": "isBook"}],
        "params": {"weights": {"userTextTitleMatch": 1.0, "originalScore": 0.5, "isBook": 0.1}},
    }
    model.coef_ = np.array([0.3, 0.5, 0.1])
    scaler = StandardScaler().fit(np.eye(3))
    scaler.mean_, scaler.scale_ = np.array([1970.0, 0.0, 0.0]), np.array([30.0, 1.0, 1.0])
    names = ["release_year", "body_query", "recency"]
    for export in (to_elasticsearch, to_opensearch):
        found = export(make_pipeline(scaler, model), "my_linear_model", feature_names=names).json()
        found["model"]["model"]["definition"] = json.loads(found["model"]["model"]["definition"])
        assert found == {
            "model": {
                "name": "my_linear_model",
                "model": {
                    "type": "model/linear",
                    "feature_normalizers": {"release_year": {"standard": {"mean": 1970, "standard_deviation": 30}}},
                    "definition": {"release_year": 0.3, "body_query": 0.5, "recency": 0.1},
                },
            }
        }


def test_selecting_models_and_saving(tmp_path):
    X, y, qid = data()
    model = RankRLSCV().fit(X, y, qid=qid)
    to_solr(model).save(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["name"] == "rankrls"
    to_onnx(model).save(tmp_path / "model.onnx")
    assert onnxruntime.InferenceSession(tmp_path / "model.onnx").get_inputs()[0].shape == ["rows", 5]
