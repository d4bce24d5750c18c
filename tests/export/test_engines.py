"""An exported file, scored as the engine would score it, ranks as the model does."""

import json
import sys

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankrls import (
    CGRankRLS,
    CoRankingPursuit,
    CoRankRLS,
    GreedyRankRLS,
    RankBoost,
    RankingPursuit,
    RankRLS,
    RankRLSCV,
    SparseRankRLS,
)
from rankrls import export as formats
from rankrls._errors import InputError
from rankrls._kernel_table import KERNELS
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
from tests.refusals import Refusal

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


EXPORTS = {name: getattr(formats, f"to_{name}") for name in engines.SCORERS}


def engine_scores(engine, exported, X):
    """Scores of X as the engine gives them, with the offset's feature where the file asks for it."""
    values = lambda name: np.ones(len(X)) if name == "rankrls_offset" else X[name].to_numpy()
    return engines.SCORERS[engine](exported.content, values, [*X.columns, "rankrls_offset"])


def test_every_engine_is_scored():
    assert set(EXPORTS) == set(formats.ENGINES) - {"onnx"}  # which onnxruntime scores


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
    if abs(difference[0]) < 5e-4:
        assert not told
    else:
        assert scaler == "fold"
        assert told == pytest.approx([difference[0]], abs=1e-3)


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


def test_the_model_that_a_search_chose():
    X, y, _ = data()
    rows = np.arange(len(X))
    pipeline = make_pipeline(StandardScaler(), RankRLS())
    search = GridSearchCV(pipeline, {"rankrls__alpha": [1.0, 100.0]}, cv=[(rows, rows)]).fit(X, y)
    for name, to_engine in EXPORTS.items():
        difference = engine_scores(name, to_engine(search), X) - search.best_estimator_.predict(X)
        assert np.ptp(difference) < 1e-4
    (scores,) = onnxruntime.InferenceSession(to_onnx(search).content).run(None, {"X": X.to_numpy(np.float32)})
    np.testing.assert_allclose(scores, search.predict(X), atol=1e-4)


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
    with Refusal("2 targets", parameter="target"):
        to_json(model)
    with Refusal("got 2", parameter="target"):
        to_json(model, target=2)


OWN = {
    "rbf": {"gamma": 0.3},
    "polynomial": {"degree": 2, "gamma": 0.1},
    "poly": {"degree": 3, "coef0": 0.5},
    "sigmoid": {"gamma": 0.01, "coef0": 0.0, "alpha": 50.0},
}


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("targets", [None, 2])
def test_onnx_scores_are_the_models(kernel, scaled, targets):
    X, y, qid = data()
    X = X.to_numpy(np.float32).astype(float)
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X)
    model = RankRLS(kernel=kernel, **OWN.get(kernel, {"gamma": 0.2}))
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
def test_onnx_of_co_ranking_pursuit_is_the_weighted_mean_of_its_views(views, shared_basis):
    X, y, qid = data()
    X = X.to_numpy(np.float32)
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X.astype(np.float64))
    n_basis = 2 if views == "kernels" and not shared_basis else 7  # all combinations of three views are many
    model = CoRankingPursuit(n_basis, views=CO_VIEWS[views], shared_basis=shared_basis, aggregation="weighted")
    model.fit(Z, y, qid=qid)
    exported = to_onnx(make_pipeline(scaler, model), offset=0.5)
    (scores,) = onnxruntime.InferenceSession(exported.content).run(None, {"X": X})
    wanted = model.view_weights_ @ [view.predict(Z) for view in model.views_] + 0.5
    assert np.ptp(wanted) > 0.1
    assert scores.shape == wanted.shape
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


def test_views_of_features_are_a_linear_model():
    X, y, qid = data()
    model = CoRankingPursuit(3, views=({}, {}), dictionary="features", disjoint=True).fit(X, y, qid=qid)
    weights = json.loads(to_solr(model).content)["params"]["weights"]
    np.testing.assert_allclose([weights[name] for name in X.columns if name in weights], model.coef_[model.coef_ != 0])
    (scores,) = onnxruntime.InferenceSession(to_onnx(model).content).run(None, {"X": X.to_numpy(np.float32)})
    np.testing.assert_allclose(scores, model.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("views", [None, ["laplacian", {"kernel": "linear", "features": [4, 0]}]])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_onnx_of_co_rankrls_is_the_sum_of_its_views(views, is_sparse):
    X, _, qid = data()
    X = X.to_numpy(np.float32)
    scaler = StandardScaler(with_mean=False).fit(X)
    Z = scaler.transform(X.astype(np.float64))
    model = CoRankRLS([0.1], mu=1.0, views=views, n_views=3, kernel="rbf", gamma=0.3)
    y = np.where(qid < 4, Z[:, 0] - Z[:, 1], np.nan)
    model.fit(sparse.csr_array(Z) if is_sparse else Z, y, qid=qid)
    (scores,) = onnxruntime.InferenceSession(to_onnx(make_pipeline(scaler, model)).content).run(None, {"X": X})
    wanted = model.predict(Z)
    assert np.ptp(wanted) > 0.1
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


def test_an_engine_computes_only_the_features_that_were_taken():
    X, y, qid = data()
    model = GreedyRankRLS(2, alphas=[1.0]).fit(X, y, qid=qid)
    weights = json.loads(to_solr(model).content)["params"]["weights"]
    assert weights == {X.columns[j]: pytest.approx(model.coef_[j]) for j in model.selected_}
    (scores,) = onnxruntime.InferenceSession(to_onnx(model).content).run(None, {"X": X.to_numpy(np.float32)})
    np.testing.assert_allclose(scores, model.predict(X), rtol=1e-4, atol=1e-4)


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


def refused(model, parameter, words, export=to_solr, **arguments):
    if export is not to_onnx:
        arguments.setdefault("feature_names", NAMES)
    with pytest.raises(InputError, match=words) as error:
        export(model, **arguments)
    assert error.value.parameter == parameter
    return error.value


def test_refusals_say_what_to_do():
    X, y, qid = data()
    linear = RankRLS().fit(X.to_numpy(), y, qid=qid)
    assert "data frame" in refused(linear, "feature_names", "without names", feature_names=None).remedy
    refused(linear, "feature_names", "4 names.* 5 features", feature_names=NAMES[:4])
    same = refused(linear, "feature_names", "0 and 4 .* 'a'", feature_names=["a", "b", "c", "d", "a"])
    assert same.column == 4
    assert refused(linear, "feature_names", "empty", feature_names=["a", "b", " ", "d", "e"]).column == 2
    refused(linear, "scaler", "'beside', 'fold'", scaler="none")
    refused(linear, "offset", "finite", offset=np.inf)
    refused(linear, "offset", "got 'large'", offset="large")
    renamed = refused(RankRLS().fit(X, y), "feature_names", "'bm25.title.' .* 'a'", feature_names=list("abcde"))
    assert renamed.column == 0
    with Refusal("got StandardScaler", parameter="model"):
        to_solr(StandardScaler().fit(X), feature_names=NAMES)
    refused(linear, "feature_names", "Vespa", export=to_vespa, feature_names=["a b", *"cdef"])
    refused(linear, "phase", "'third-phase'", export=to_vespa, phase="third-phase")
    refused(linear, "name", "profile", export=to_vespa, name="my profile")
    with Refusal("not linear", "to_onnx"):
        to_solr(RankRLS(kernel="rbf").fit(X, y), feature_names=NAMES)
    for engine in (to_solr, to_elasticsearch, to_opensearch):
        taken = [*NAMES[:4], "rankrls_offset"]
        refused(linear, "feature_names", "name of the offset", export=engine, feature_names=taken, offset=1.0)
        refused(linear, "offset", "1e\\+60.* float32", export=engine, offset=1e60)
    X = X.to_numpy()
    by_query = QueryStandardScaler().fit(X, qid=qid)
    error = refused(make_pipeline(by_query, linear), "model", "by query")
    assert "StandardScaler, MinMaxScaler" in error.remedy
    assert "clip=False" in refused(make_pipeline(MinMaxScaler(clip=True).fit(X), linear), "model", "not linear").remedy
    assert "StandardScaler" in refused(make_pipeline(PCA().fit(X), linear), "model", "step PCA").remedy
    huge = RankRLS().fit(X, y)
    huge.coef_ = huge.coef_ * [1, 1, 1e60, 1, 1]
    error = refused(huge, None, "float32")
    assert error.column == NAMES[2]
    nothing = RankRLS().fit(X, y)
    nothing.coef_ = 0.0 * nothing.coef_
    refused(nothing, "model", "weights are 0")
    function = lambda a, b: float(a @ b)
    for model, words in (
        (RankRLS(kernel="precomputed").fit(np.eye(4), [0, 1, 2, 3]), "by its matrix only"),
        (CoRankingPursuit(2, kernel="precomputed").fit(np.eye(4), [0, 1, 2, 3]), "by its matrix only"),
        (RankRLS(kernel=function).fit(X, y), "Python function"),
        (CoRankingPursuit(2, views=["rbf", function]).fit(X, y), "Python function"),
    ):
        refused(model, "model", words, export=to_onnx)


def test_every_engine_is_in_the_table():
    from rankrls import export

    assert {f"to_{name}" for name in export.ENGINES} == {name for name in export.__all__ if name.startswith("to_")}
    assert set(export.__all__) <= set(dir(export))
    with Refusal("to_nothing", kind=AttributeError):
        export.to_nothing


def test_onnx_missing_is_said(monkeypatch):
    X, y, _ = data()
    model = RankRLS().fit(X, y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with Refusal("pip install 'rankrls[onnx]'", kind=ImportError):
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
