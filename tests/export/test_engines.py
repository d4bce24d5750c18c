"""An exported file, scored as the engine would score it, ranks as the model does."""

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
    RankBoost,
    RankingPursuit,
    RankRLS,
    SparseRankRLS,
    export as formats,
)
from rankrls.cli._program import ENGINES
from rankrls.export import positive_offset, to_elasticsearch, to_onnx, to_solr
from rankrls.kernels import FORMULAS
from rankrls.preprocessing import LogScaler, QueryMinMaxScaler, QueryStandardScaler
from tests.export import evaluators
from tests.models.oracles import by_view
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
    [QueryMinMaxScaler()],
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


EXPORTS = {name: getattr(formats, f"to_{name}") for name in evaluators.SCORERS}


def engine_scores(engine, exported, X):
    """Scores of X as the engine gives them, with the offset's feature where the file asks for it."""
    values = lambda name: np.ones(len(X)) if name == "rankrls_offset" else X[name].to_numpy()
    return evaluators.SCORERS[engine](exported.content, values, [*X.columns, "rankrls_offset"])


@pytest.mark.parametrize("engine", EXPORTS)
@pytest.mark.parametrize("steps", SCALERS, ids=lambda steps: "+".join(getattr(s, "__repr__", str)() for s in steps))
def test_engine_scores_are_the_models(engine, steps):
    model = fitted(steps)
    X, _, _ = data(seed=1)
    expected = model.predict(X.to_numpy())
    exported = EXPORTS[engine](model, feature_names=NAMES, offset=2.5)
    expected *= exported.factor
    np.testing.assert_allclose(engine_scores(engine, exported, X), expected + 2.5, rtol=1e-6, atol=2e-5)
    plain = EXPORTS[engine](model, feature_names=NAMES)
    np.testing.assert_allclose(engine_scores(engine, plain, X), expected, rtol=1e-6, atol=2e-5)


def test_the_model_that_a_search_chose():
    X, y, _ = data()
    rows = np.arange(len(X))
    pipeline = make_pipeline(StandardScaler(), RankRLS())
    search = GridSearchCV(pipeline, {"rankrls__alpha": [1.0, 100.0]}, cv=[(rows, rows)]).fit(X, y)
    for name, to_engine in EXPORTS.items():
        exported = to_engine(search)
        wanted = exported.factor * search.best_estimator_.predict(X)
        np.testing.assert_allclose(engine_scores(name, exported, X), wanted, rtol=1e-5, atol=1e-4)
    scores = onnx_scores(search, X)
    np.testing.assert_allclose(scores, search.predict(X), atol=1e-4)


def test_offset_that_makes_scores_positive():
    model = fitted([StandardScaler()])
    X, _, _ = data(seed=2)
    offset = positive_offset(model, X.to_numpy())
    scores = engine_scores("elasticsearch", to_elasticsearch(model, feature_names=NAMES, offset=offset), X)
    assert scores.min() == pytest.approx(0.01 * np.ptp(scores), rel=1e-3)
    model.steps[-1][1].coef_ *= 0.0
    assert positive_offset(model, X.to_numpy()) == 0.0


@pytest.mark.parametrize("engine", EXPORTS)
@pytest.mark.parametrize("alpha", [1e-3, 1e3, 1e9])
def test_no_offset_hides_the_order(engine, alpha):
    """Weights of 1e-8 beside an offset of 3 would leave one float32 for all scores."""
    model = fitted([StandardScaler()], alpha=alpha)
    X, _, _ = data(seed=1, m=800)
    wanted = model.predict(X.to_numpy())
    scores = engine_scores(engine, EXPORTS[engine](model, feature_names=NAMES, offset=3.0), X)
    order = np.argsort(wanted)
    apart = np.diff(wanted[order]) > 1e-6 * np.ptp(wanted)
    assert (np.diff(scores[order])[apart] > 0.0).all()


def test_the_offset_of_one_target():
    X, y, _ = data()
    model = RankRLS().fit(X, np.column_stack((y, -100.0 - y)))
    with Refusal("2 targets", parameter="target"):
        positive_offset(model, X)
    scores = engine_scores("solr", to_solr(model, target=1, offset=positive_offset(model, X, 1)), X)
    assert 0.0 < scores.min() < 0.02 * np.ptp(scores)


def test_features_of_weight_zero_are_left_out():
    X, y, _ = data()
    X = X.assign(constant=7.0)
    model = RankRLS().fit(X, y)
    assert model.coef_[-1] == 0.0
    exported = to_solr(model)
    assert [f["name"] for f in exported.json()["features"]] == NAMES
    renamed = to_solr(model, feature_names=[*"abcde", "constant"])
    assert [f["name"] for f in renamed.json()["features"]] == [*"abcde"]


def test_one_target_of_several():
    X, y, _ = data()
    model = RankRLS().fit(X, np.column_stack((y, -2 * y)))
    exported = to_solr(model, target=1)
    wanted = exported.factor * model.predict(X)[:, 1]
    np.testing.assert_allclose(engine_scores("solr", exported, X), wanted, rtol=1e-6, atol=2e-5)
    with Refusal("2 targets", parameter="target"):
        to_solr(model)
    with Refusal("got 2", parameter="target"):
        to_solr(model, target=2)


OWN = {
    "rbf": {"gamma": 0.3},
    "polynomial": {"degree": 2, "gamma": 0.1},
    "poly": {"degree": 3, "coef0": 0.5},
    "sigmoid": {"gamma": 0.01, "coef0": 0.0, "alpha": 50.0},
}


def onnx_scores(model, X, **options):
    session = onnxruntime.InferenceSession(to_onnx(model, **options).content)
    (scores,) = session.run(None, {"X": np.asarray(X, dtype=options.get("input_dtype", "float64"))})
    return scores


@pytest.mark.parametrize("kernel", FORMULAS)
@pytest.mark.parametrize("targets", [None, 2])
def test_onnx_scores_are_the_models(kernel, targets):
    X, y, qid = data()
    scaler = StandardScaler().fit(X.to_numpy())
    model = RankRLS(kernel=kernel, **OWN.get(kernel, {"gamma": 0.2}))
    Y = y if targets is None else np.column_stack((y, y**2))
    model.fit(scaler.transform(X.to_numpy()), Y, qid=qid)
    pipeline = make_pipeline(scaler, model)
    wanted = pipeline.predict(X.to_numpy())
    scores = onnx_scores(pipeline, X, offset=1.5)
    assert scores.shape == wanted.shape
    np.testing.assert_allclose(scores, wanted + 1.5, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())


def test_onnx_keeps_small_differences_beside_a_large_constant():
    """Scores of about 1e6 in a range of .4 are as many different values as those of predict."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) * 1e-3 + 1e6
    model = RankRLS(alpha=1e-3).fit(X, (X - 1e6) @ [100.0, 10.0, 1.0])
    scores = onnx_scores(model, X, offset=1e6)
    assert len(np.unique(scores)) == 120
    np.testing.assert_array_equal(np.argsort(scores), np.argsort(model.predict(X)))


@pytest.mark.parametrize(
    "estimator", [RankBoost(n_estimators=40), SparseRankRLS(n_basis=15), RankingPursuit(), CGRankRLS()]
)
def test_onnx_of_the_other_families(estimator):
    X, y, qid = data()
    model = make_pipeline(StandardScaler(), estimator).fit(X, y, **{f"{type(estimator).__name__.lower()}__qid": qid})
    wanted = model.predict(X)
    np.testing.assert_allclose(onnx_scores(model, X), wanted, rtol=1e-8, atol=1e-8 * np.abs(wanted).max())


CO_VIEWS = {
    "halves": None,
    "one": [{}],
    "kernels": ["laplacian", {"kernel": "poly", "features": [4, 0, 2], "degree": 2}, {"kernel": "linear"}],
    "widths": [{"features": [1]}, {"gamma": 0.3}],
}


@pytest.mark.parametrize("views", CO_VIEWS)
@pytest.mark.parametrize("shared_basis", [True, False])
def test_onnx_of_co_ranking_pursuit_is_the_mean_of_its_views(views, shared_basis):
    X, y, qid = data()
    X = X.to_numpy()
    scaler = StandardScaler().fit(X)
    Z = scaler.transform(X)
    n_basis = 2 if views == "kernels" and not shared_basis else 7  # all combinations of three views are many
    model = CoRankingPursuit(n_basis, views=CO_VIEWS[views], shared_basis=shared_basis)
    model.fit(Z, y, qid=qid)
    scores = onnx_scores(make_pipeline(scaler, model), X, offset=0.5)
    wanted = np.mean(by_view(model, Z), axis=0) + 0.5
    assert np.ptp(wanted) > 0.1
    assert scores.shape == wanted.shape
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("views", [None, ["laplacian", {"kernel": "linear", "features": [4, 0]}]])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_onnx_of_co_rankrls_is_the_sum_of_its_views(views, is_sparse):
    X, _, qid = data()
    X = X.to_numpy()
    scaler = StandardScaler(with_mean=False).fit(X)
    Z = scaler.transform(X)
    model = CoRankRLS([0.1], mu=1.0, views=views, n_views=3, kernel="rbf", gamma=0.3)
    y = np.where(qid < 4, Z[:, 0] - Z[:, 1], np.nan)
    model.fit(sparse.csr_array(Z) if is_sparse else Z, y, qid=qid)
    scores = onnx_scores(make_pipeline(scaler, model), X)
    wanted = model.predict(Z)
    assert np.ptp(wanted) > 0.1
    np.testing.assert_allclose(scores, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "polynomial"])
def test_onnx_of_no_items_is_the_zero_function(kernel):
    model = RankingPursuit(kernel=kernel).fit(np.ones((6, 2)), np.arange(6.0))
    assert onnx_scores(model, np.ones((3, 2)), offset=1.5).tolist() == [1.5, 1.5, 1.5]


@pytest.mark.parametrize("estimator", [RankRLS(), RankRLS(kernel="rbf"), RankRLS(kernel="laplacian"), RankBoost()])
def test_onnx_scores_any_number_of_rows_of_either_type(estimator):
    X, y, qid = data()
    model = estimator.fit(X.to_numpy(), y, qid=qid)
    assert onnx_scores(model, np.zeros((0, 5))).shape == (0,)
    rounded = X.to_numpy(dtype=np.float32)
    scores = onnx_scores(model, rounded, input_dtype="float32")
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, model.predict(rounded.astype(float)), rtol=1e-8, atol=1e-8 * np.ptp(scores))
    with Refusal("float16", parameter="input_dtype"):
        to_onnx(model, input_dtype="float16")


def test_onnx_coefficients_have_two_axes():
    """Runtimes before 1.21 cannot multiply no rows by a vector."""
    onnx = pytest.importorskip("onnx")
    X, y, _ = data()
    for model in (RankRLS(), RankRLS(kernel="rbf"), RankBoost()):
        graph = onnx.load_from_string(to_onnx(model.fit(X.to_numpy(), y)).content).graph
        shapes = {constant.name: len(constant.dims) for constant in graph.initializer}
        factors = [name for node in graph.node if node.op_type == "MatMul" for name in node.input if name in shapes]
        assert {shapes[name] for name in factors} == {2}


@pytest.mark.parametrize("estimator", [RankRLS(), RankBoost()])
def test_onnx_of_a_missing_number_is_nan(estimator):
    X, y, qid = data()
    model = estimator.fit(X.to_numpy(), y, qid=qid)
    X.iloc[3, 1] = np.nan
    missing = np.isnan(onnx_scores(model, X))
    assert missing.nonzero()[0].tolist() == [3]


def test_onnx_takes_logarithms():
    X, y, qid = data()
    X = X.to_numpy() * [1.0, -1.0, 1e6, 1.0, 1.0]
    model = make_pipeline(LogScaler(), RankRLS()).fit(X, y, rankrls__qid=qid)
    np.testing.assert_allclose(onnx_scores(model, X), model.predict(X), rtol=1e-8, atol=1e-8)
    with Refusal("logarithm", parameter="model"):
        to_solr(model, feature_names=NAMES)


def test_onnx_stumps_are_strict_at_their_threshold():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = RankBoost(n_estimators=3).fit(X, [0, 0, 1, 1])
    at = np.array(model.thresholds_)[:, None]
    points = np.vstack((at, np.nextafter(at, 9), np.nextafter(at, -9)))
    np.testing.assert_allclose(onnx_scores(model, points), model.predict(points), rtol=1e-12)


def test_refusals_say_what_to_do():
    X, y, qid = data()
    linear = RankRLS().fit(X.to_numpy(), y, qid=qid)
    scaled = lambda step: make_pipeline(step, linear)
    nothing = RankRLS().fit(X.to_numpy(), y)
    nothing.coef_ = 0.0 * nothing.coef_
    given = {"feature_names": NAMES}
    for call, parameter, words in (
        (lambda: to_solr(linear), "feature_names", "data frame"),
        (lambda: to_solr(linear, feature_names=NAMES[:4]), "feature_names", "4 names"),
        (lambda: to_solr(linear, feature_names=list("abcda")), "feature_names", "'a'"),
        (lambda: to_solr(StandardScaler().fit(X), **given), "model", "StandardScaler"),
        (lambda: to_solr(RankRLS(kernel="rbf").fit(X, y), **given), None, "ONNX"),
        (lambda: to_solr(scaled(QueryStandardScaler().fit(X.to_numpy(), qid=qid)), **given), "model", "within queries"),
        (lambda: to_solr(scaled(MinMaxScaler(clip=True).fit(X.to_numpy())), **given), "model", "clip"),
        (lambda: to_solr(scaled(PCA().fit(X.to_numpy())), **given), "model", "PCA"),
        (lambda: to_solr(nothing, **given), "model", "weights are 0"),
        (lambda: to_onnx(RankRLS(kernel="precomputed").fit(np.eye(4), [0, 1, 2, 3])), "model", "matrix"),
        (lambda: to_onnx(RankRLS(kernel=lambda a, b: float(a @ b)).fit(X, y)), "model", "Python function"),
    ):
        with Refusal(words, parameter=parameter):
            call()


def test_every_engine_is_in_the_table():
    others = {"onnx", "opensearch", "elasticsearch-query", "sql", "json"}  # scored by tests of their own
    assert set(EXPORTS) == set(ENGINES) - others
    assert formats.to_opensearch is formats.to_elasticsearch
    written = {f"to_{name.replace('-', '_')}" for name in ENGINES}
    assert written == {name for name in formats.__all__ if name.startswith("to_")}


def test_onnx_missing_is_said(monkeypatch):
    X, y, _ = data()
    model = RankRLS().fit(X, y)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with Refusal("pip install 'rankrls[onnx]'", kind=ImportError):
        to_onnx(model)


def test_a_published_example_has_the_exported_form():
    """The example of Solr's javadoc, from a model of its weights."""
    model = RankRLS().fit(np.eye(3), [0, 1, 2])
    model.coef_ = np.array([1.0, 0.5, 0.1])
    names = ["userTextTitleMatch", "originalScore", "isBook"]
    assert to_solr(model, "myModelName", feature_names=names).json() == {
        "class": "org.apache.solr.ltr.model.LinearModel",
        "name": "myModelName",
        "features": [{"name": "userTextTitleMatch"}, {"name": "originalScore"}, {"name": "isBook"}],
        "params": {"weights": {"userTextTitleMatch": 1.0, "originalScore": 0.5, "isBook": 0.1}},
    }
