"""Model files: what comes back is what was saved, and what cannot be saved or trusted is refused."""

import zipfile
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, QuantileTransformer, RobustScaler, StandardScaler
from tests.refusals import Refusal

import rankrls
from rankrls import Items, load, save
from rankrls.cli import main
from rankrls.metrics import Measure
from rankrls.persistence import FORMAT_VERSION, read_info
from rankrls.persistence._files import VALUES, class_of
from rankrls.preprocessing import LogScaler, QueryMinMaxScaler, QueryStandardScaler, TableEncoder


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(48, 6))
    qid = np.repeat(np.arange(12), 4)
    y = np.round(X @ [2.0, 1.0, 0.0, 0.0, -1.0, 0.5] + rng.normal(size=48))
    return X, y, qid


def round_trip(model, tmp_path, **options):
    save(model, tmp_path / "model.rankrls", **options)
    return load(tmp_path / "model.rankrls")


def assert_same(a, b, name=""):
    """Two values are of one kind and equal; numbers of numpy come back as those of Python."""
    if isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b, err_msg=name)
        assert a.dtype == b.dtype, name
    elif sparse.issparse(a):
        np.testing.assert_array_equal(a.toarray(), b.toarray(), err_msg=name)
    elif isinstance(a, list | tuple):
        assert type(a) is type(b), name
        for one, other in zip(a, b, strict=True):
            assert_same(one, other, name)
    elif isinstance(a, dict):
        assert list(a) == list(b), name
        for key in a:
            assert_same(a[key], b[key], f"{name}.{key}")
    elif hasattr(a, "__dict__"):
        assert type(a) is type(b), name
        assert_same({k: v for k, v in vars(a).items() if k in vars(b)}, vars(b), name)
    else:
        assert a == b or (a != a and b != b), name


@pytest.mark.parametrize(
    "model",
    [
        rankrls.AutoRankRLS(scoring="tau", n_basis=20),
        rankrls.CGRankRLS((0.1, 1.0), random_state=0),
        rankrls.CoRankingPursuit(3, views=([0, 1], {"kernel": "linear"}), nu=0.2),
        rankrls.CoRankingPursuitCV(3, nu=(0.0, 0.1), gamma=0.1, cv=2),
        rankrls.CoRankRLS((0.1, 1.0), kernel="rbf", n_views=2),
        rankrls.GreedyRankRLS(max_features=3, cv=3),
        rankrls.RankBoost(5),
        rankrls.RankingPursuit(3, dictionary="features"),
        rankrls.RankingPursuitCV(4, gamma=(0.1, 1.0), cv=3),
        rankrls.RankRLS(alpha=0.5, ties="exclude", balance="queries"),
        rankrls.RankRLS(kernel="poly", degree=2, coef0=0.5),
        rankrls.RankRLS(positive={1: -1, 3: 1}),
        rankrls.RankRLSCV(scoring=Measure("map", relevant=0.0)),
        rankrls.RankRLSCV(kernel=("linear", "rbf"), gamma=(0.1, None), ties=("include", "exclude")),
        rankrls.RankRLSCV((1.0, 10.0), cv=[(np.arange(24), np.arange(24, 48)), (np.arange(24, 48), np.arange(24))]),
        rankrls.RankSVM(kernel="rbf", n_basis=20),
        rankrls.RankSVMCV((0.1, 1.0), cv=3),
        rankrls.SparseRankRLS(basis_indices=[1, 1, 5], kernel="poly"),
        rankrls.SparseRankRLSCV(n_basis=20, gamma=(0.1, 1.0)),
        rankrls.TransductiveRankRLS(kernel="rbf", n_basis=20),
        rankrls.TransductiveRankRLSCV([0.5, 2.0], penalty=(0.5, 5.0), cv=2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["dense", "sparse", "frame"])
def test_every_estimator_comes_back(model, kind, data, tmp_path):
    X, y, qid = data
    if kind == "sparse":
        X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    if kind == "frame":
        X = pd.DataFrame(X, columns=list("abcdef"))
    if kind == "sparse" and isinstance(model, rankrls.RankBoost):
        X = X.toarray().astype(np.float32)
    if isinstance(model, rankrls.TransductiveRankRLS | rankrls.TransductiveRankRLSCV):
        y = np.where(qid < 3, np.nan, y)
    model = clone(model).fit(X, y, qid=qid)
    again = round_trip(model, tmp_path)
    assert vars(again).keys() == vars(model).keys()
    assert_same(model, again)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.rank(X, qid=qid), model.rank(X, qid=qid))


@pytest.mark.parametrize("name", VALUES)
def test_listed_classes_are_where_they_should_be(name):
    assert class_of(name).__name__ == name


def test_every_public_estimator_is_tested():
    marks = test_every_estimator_comes_back.pytestmark
    tested = {type(model).__name__ for mark in marks if mark.args[0] == "model" for model in mark.args[1]}
    estimators = {n for n in rankrls.__all__ if hasattr(getattr(rankrls, n), "fit") and not n.startswith("Conditional")}
    assert tested == estimators


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("items", [None, Items(np.arange(10.0).reshape(5, 2))])
def test_conditional_models_come_back(kernel, items, tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(8, 8)), rng.normal(size=(8, 5))
    X = X @ X.T if kernel == "precomputed" else X
    for model in (
        rankrls.ConditionalRankRLS(kernel=kernel, item_kernel="rbf"),
        rankrls.ConditionalRankRLSCV([0.1, 1.0], kernel=kernel),
    ):
        again = round_trip(model.fit(X, Y, items=items), tmp_path)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_targets_pairs_and_precomputed_kernels(data, tmp_path):
    X, y, qid = data
    again = round_trip(rankrls.RankRLS().fit(X, np.column_stack([y, -y]), qid=qid), tmp_path)
    assert again.predict(X).shape == (48, 2)
    assert read_info(tmp_path / "model.rankrls")["n_targets"] == 2
    model = rankrls.RankRLS(kernel="rbf").fit_pairs(X, [0, 1, 2], [3, 4, 5])
    np.testing.assert_array_equal(round_trip(model, tmp_path).predict(X), model.predict(X))
    assert not read_info(tmp_path / "model.rankrls")["updatable"]
    model = rankrls.RankRLS(kernel="precomputed").fit(X @ X.T, y, qid=qid)
    np.testing.assert_array_equal(round_trip(model, tmp_path).predict(X[:5] @ X.T), model.predict(X[:5] @ X.T))


@pytest.mark.parametrize("ids", [list(range(12)), [f"q{k}\0\ud800é" for k in range(12)], [("u", k) for k in range(12)]])
def test_learning_goes_on_where_it_stopped(ids, data, tmp_path):
    X, y, qid = data
    labels = [ids[k] for k in qid]
    model = rankrls.RankRLS(alpha=0.1).partial_fit(X[:32], y[:32], qid=labels[:32])
    again = round_trip(model, tmp_path)
    assert read_info(tmp_path / "model.rankrls")["updatable"]
    for one in (model, again):
        one.partial_fit(X[32:], y[32:], qid=labels[32:])
    np.testing.assert_array_equal(again.coef_, model.coef_)
    with Refusal("seen before", parameter="qid"):
        again.partial_fit(X[:32], y[:32], qid=labels[:32])


def test_not_updatable_is_small_and_says_so(data, tmp_path):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(300, 150)), rng.normal(size=300), np.repeat(np.arange(100), 3)
    model = rankrls.RankRLS().partial_fit(X, y, qid=qid)
    save(model, tmp_path / "large.rankrls")
    small = round_trip(model, tmp_path, updatable=False)
    path = tmp_path / "model.rankrls"
    assert path.stat().st_size < 20_000 < 180_000 < (tmp_path / "large.rankrls").stat().st_size
    np.testing.assert_array_equal(small.predict(X), model.predict(X))
    assert not read_info(path)["updatable"]
    with Refusal("Call partial_fit for the first queries"):
        small.partial_fit(X, y, qid=qid + 1000)


SKLEARN = [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler(), QuantileTransformer(n_quantiles=9)]


@pytest.mark.parametrize("scaler", [*SKLEARN, LogScaler(), "passthrough"])
def test_pipelines_of_scikit_learns_scalers(scaler, data, tmp_path):
    X, y, _ = data
    model = make_pipeline(scaler, rankrls.RankRLS()).fit(X, y)
    np.testing.assert_array_equal(round_trip(model, tmp_path).predict(X), model.predict(X))


@pytest.mark.parametrize("scaler", [QueryMinMaxScaler(), QueryStandardScaler()], ids=repr)
def test_pipelines_of_query_scalers(scaler, data, tmp_path):
    X, y, qid = data
    X_new, new = X[::-1] * 3 + 1, np.repeat(np.arange(6), 8)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(scaler, rankrls.RankRLSCV(kernel="rbf")).fit(X, y, qid=qid)
        again = round_trip(model, tmp_path)
        np.testing.assert_array_equal(again.predict(X_new, qid=new), model.predict(X_new, qid=new))
    model = make_pipeline(clone(scaler), rankrls.RankRLS()).fit(X, y)  # one query: the scaler learns
    np.testing.assert_array_equal(round_trip(model, tmp_path).predict(X_new), model.predict(X_new))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_pipelines_of_tables(make, data, tmp_path):
    X, y, qid = data
    table = {
        "brand": np.random.default_rng(3).choice(["H&M", 'a "b"', ""], 48).tolist(),
        "price": [None, *X[1:, 0]],
        "title": [" ".join(f"word{k % (i + 2)}" for k in range(i, i + 5)) for i in range(48)],
        "added": [f"2024-{k % 12 + 1:02d}-03" for k in range(48)],
        "place": [[float(k), 1.0 / (k + 1)] for k in range(48)],
        "query": ["word1 word3", "word2"] * 24,
    }
    encoder = TableEncoder(
        query_text="query",
        text_features=["matches", "similarity", "word", "tfidf"],
        impute="mean",
    )
    model = make_pipeline(encoder, rankrls.RankRLSCV()).fit(make(table), y, rankrlscv__qid=qid)
    again = round_trip(model, tmp_path)
    new = make({name: cells[::-1] for name, cells in table.items()})
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert again[0].columns_ == model[0].columns_
    assert again[0].features_ == model[0].features_
    assert again[0].count_unusual(new) == model[0].count_unusual(new)
    assert read_info(tmp_path / "model.rankrls")["steps"] == ["TableEncoder"]


def test_what_a_file_says(data, tmp_path):
    X, y, qid = data
    before = datetime.now(UTC)
    model = rankrls.RankRLSCV(scoring="map").fit(pd.DataFrame(X, columns=list("abcdef")), y, qid=qid)
    path = tmp_path / "model.rankrls"
    save(model, path, provenance={"sha256": "ab" * 32, "rows": 48})
    info = read_info(path)
    assert info["format_version"] == FORMAT_VERSION
    assert info["versions"]["rankrls"] == rankrls.__version__
    assert abs((datetime.fromisoformat(info["created"]) - before).total_seconds()) < 60
    assert (info["estimator"], info["alpha"], info["kernel"]) == ("RankRLSCV", model.alpha_, {"name": "linear"})
    assert (info["n_queries"], info["n_features"], info["n_targets"]) == (12, 6, 1)
    assert info["feature_names"] == list("abcdef")
    selection = [info["selection"][name] for name in ("how", "value", "standard_error", "measure")]
    assert selection == [model.selection_, model.best_score_, model.best_score_error_, "map"]
    assert info["given"] == {"sha256": "ab" * 32, "rows": 48}
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert all(m.compress_type == zipfile.ZIP_STORED for m in archive.infolist())


def test_what_is_given_may_be_called_as_what_the_model_says(data, tmp_path, capsys):
    X, y, qid = data
    path, same = str(tmp_path / "m.rankrls"), {"feature_names": 5, "steps": {"a": 1}, "selected_features": ["a"]}
    save(rankrls.RankRLS().fit(X, y, qid=qid), path, provenance={"alpha": [1], **same})
    assert read_info(path)["given"]["feature_names"] == 5
    assert main(["info", path]) == 0
    assert ["alpha", "1"] in [line.split() for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("given", [{"a": object()}, {"a": float("nan")}, [1, 2], "text"])
def test_provenance_must_be_json(given, data, tmp_path):
    X, y, qid = data
    with pytest.raises((TypeError, ValueError)):
        save(rankrls.RankRLS().fit(X, y, qid=qid), tmp_path / "m", provenance=given)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_saved(data, tmp_path):
    X, y, qid = data

    class Local(rankrls.RankRLS):
        pass

    stamps = np.array([np.datetime64("2020-01-01") + np.timedelta64(int(k), "D") for k in qid])
    not_finite = rankrls.RankRLS().fit(X, y, qid=qid)
    not_finite.coef_ = np.append(not_finite.coef_[:-1], np.nan)
    refused = [
        (
            rankrls.RankRLS(kernel=lambda x, z: float(x @ z)).fit(X, y),
            Refusal("<lambda>", "function", parameter="kernel"),
        ),
        (rankrls.RankRLSCV(scoring=lambda t, s: 0.5).fit(X, y, qid=qid), Refusal("<lambda>", parameter="scoring")),
        (rankrls.RankRLS(positive=pd.Index([0])).fit(X, y), Refusal("Index", parameter="positive")),
        (make_pipeline(PCA(2), rankrls.RankRLS()).fit(X, y), Refusal("PCA", "skops", parameter="steps")),
        (make_pipeline(StandardScaler(), Ridge()).fit(X, y), Refusal("pipeline", "Ridge", parameter="model")),
        (Local().fit(X, y), Refusal("Local", parameter="model")),
        (Ridge().fit(X, y), Refusal("got Ridge", parameter="model")),
        (not_finite, Refusal("finite", parameter="model")),
        (rankrls.RankRLS().partial_fit(X, y, qid=stamps), Refusal("date")),
        (rankrls.RankRLS(), Refusal("not fitted", kind=NotFittedError)),
        (make_pipeline(StandardScaler(), rankrls.RankRLSCV()), Refusal("not fitted", kind=NotFittedError)),
    ]
    path = tmp_path / "model.rankrls"
    path.write_bytes(b"old")
    for model, refusal in refused:
        with refusal:
            save(model, path)
    with pytest.raises(FileNotFoundError):
        save(rankrls.RankRLS().fit(X, y), tmp_path / "none" / "m.rankrls")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["model.rankrls"]
