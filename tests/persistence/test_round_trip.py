"""What is saved is what is loaded."""

import subprocess
import sys
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
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, SelectPercentile, VarianceThreshold, f_regression
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from tests.refusals import Refusal

import rankrls
from rankrls import (
    AutoRankRLS,
    CGRankRLS,
    ConditionalRankRLS,
    ConditionalRankRLSCV,
    CoRankingPursuit,
    CoRankingPursuitCV,
    CoRankRLS,
    GreedyRankRLS,
    Items,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    SparseRankRLS,
    SparseRankRLSCV,
    TransductiveRankRLS,
    TransductiveRankRLSCV,
    load,
    save,
)
from rankrls._errors import InputWarning
from rankrls.metrics import Measure
from rankrls.persistence import read_info
from rankrls.persistence._registry import restored
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler, TableEncoder


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(48, 6))
    qid = np.repeat(np.arange(12), 4)
    y = np.round(X @ [2.0, 1.0, 0.0, 0.0, -1.0, 0.5] + rng.normal(size=48))
    return X, y, qid


def round_trip(model, tmp_path, **options):
    path = tmp_path / "model.rankrls"
    save(model, path, **options)
    return load(path)


def assert_same(a, b):
    """Two fitted estimators hold the same parameters and the same fitted values."""
    assert type(a) is type(b)
    assert a.get_params() == b.get_params()
    assert vars(a).keys() == vars(b).keys()
    for name in vars(a):
        assert_equal(vars(a)[name], vars(b)[name], name)


def assert_equal(x, y, name):
    assert type(x) is type(y), name
    if isinstance(x, np.ndarray):
        assert x.dtype == y.dtype, name
        assert x.flags.f_contiguous == y.flags.f_contiguous, name
        np.testing.assert_array_equal(x, y, err_msg=name)
    elif sparse.issparse(x):
        assert x.dtype == y.dtype, name
        np.testing.assert_array_equal(x.toarray(), y.toarray(), err_msg=name)
    elif isinstance(x, list | tuple):
        assert len(x) == len(y), name
        for one, other in zip(x, y, strict=True):
            assert_equal(one, other, name)
    elif isinstance(x, dict):
        assert list(x) == list(y), name
        for key in x:
            assert_equal(x[key], y[key], f"{name}.{key}")
    elif type(x).__module__.split(".")[0] in ("rankrls", "sklearn"):
        assert_equal(vars(x), vars(y), name)
    else:
        assert x == y or (x != x and y != y), name


@pytest.mark.parametrize(
    "model",
    [
        AutoRankRLS(scoring="tau", n_basis=20),
        RankRLS(alpha=0.5, ties="exclude", balance="queries"),
        RankRLS(alpha=0.0, solver="dual"),
        RankRLS(kernel="rbf", gamma=0.3, regression_weight=0.2),
        RankingPursuit(5, gamma=0.3, ties="exclude"),
        RankingPursuit(3, dictionary="features", backfit=False),
        RankingPursuitCV(4, gamma=(0.1, 1.0), cv=3),
        GreedyRankRLS(max_features=3, cv=3),
        CoRankRLS(n_views=2, mu=1.0),
        CoRankRLS((0.1, 1.0), kernel="rbf", n_views=2),
        CoRankingPursuit(3, views=([0, 1], {"kernel": "linear"}), nu=0.2),
        RankRLS(kernel="poly", degree=2, coef0=0.5),
        RankRLS(kernel="laplacian"),
        RankRLS(kernel="sigmoid", gamma=0.1),
        RankRLS(positive=[0, 2]),
        RankRLS(positive={1: -1, 3: 1}),
        RankRLSCV(positive=True),
        TransductiveRankRLS(penalty=0.5),
        TransductiveRankRLSCV([0.5, 2.0], penalty=(0.5, 5.0), cv=2),
        CoRankingPursuitCV(3, nu=(0.0, 0.1), gamma=0.1, cv=2),
        TransductiveRankRLS(kernel="rbf", balance="pairs"),
        TransductiveRankRLS(kernel="rbf", n_basis=20),
        SparseRankRLS(n_basis=20),
        SparseRankRLSCV(n_basis=20, gamma=(0.1, 1.0), ties=("include", "exclude")),
        SparseRankRLS(kernel="linear", basis="kmeans", n_basis=5),
        SparseRankRLS(basis_indices=[1, 1, 5], kernel="poly"),
        RankSVM(),
        RankSVMCV((0.1, 1.0), kernel=("linear", "rbf"), cv=3),
        RankSVM(loss="hinge", kernel="rbf", n_basis=20),
        CGRankRLS(random_state=0),
        CGRankRLS((0.1, 1.0), selection="tikhonov", cv=3, scoring="tau"),
        RankRLSCV(),
        RankRLSCV(kernel=("linear", "rbf"), gamma=(0.1, None), ties=("include", "exclude")),
        RankRLSCV((0.1, 1.0), scoring="ndcg@3", rule="one_se", cv=3),
        RankRLSCV(scoring=Measure("map", relevant=0.0), cv=GroupKFold(4)),
        RankRLSCV((1.0, 10.0), cv=[(np.arange(24), np.arange(24, 48)), (np.arange(24, 48), np.arange(24))]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "frame"])
def test_fit(model, kind, data, tmp_path):
    X, y, qid = data
    if getattr(model, "scoring", None) == "ndcg@3":
        y = y - y.min()
    if kind == "float32":
        X = X.astype(np.float32)
    if kind == "sparse":
        X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    if kind == "frame":
        X = pd.DataFrame(X, columns=list("abcdef"))
    if isinstance(model, TransductiveRankRLS | TransductiveRankRLSCV):
        y = np.where(qid < 3, np.nan, y)
    model.fit(X, y, qid=qid)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.rank(X, qid=qid), model.rank(X, qid=qid))
    if isinstance(model, RankRLSCV) and not isinstance(model.cv, str | int | None):
        for one in (model, again):  # splitters and splits have no equality
            one.cv = None
    assert_same(again, model)


def test_several_targets(data, tmp_path):
    X, y, qid = data
    Y = np.column_stack([y, -y, X[:, 0]])
    for model in (RankRLS(), RankRLS(kernel="rbf"), RankRLS(ties="exclude")):
        again = round_trip(model.fit(X, Y, qid=qid), tmp_path)
        assert again.predict(X).shape == (48, 3)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert read_info(tmp_path / "model.rankrls")["n_targets"] == 3


@pytest.mark.parametrize("model", [RankRLS(), RankRLS(kernel="rbf"), RankRLSCV()], ids=repr)
def test_fit_pairs(model, data, tmp_path):
    X, _, _ = data
    rng = np.random.default_rng(1)
    winners, losers = rng.permutation(48)[:20], rng.permutation(48)[:20]
    kept = winners != losers
    model.fit_pairs(X, winners[kept], losers[kept])
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert not read_info(tmp_path / "model.rankrls")["updatable"]


def test_precomputed_kernel(data, tmp_path):
    X, y, qid = data
    model = RankRLS(kernel="precomputed").fit(X @ X.T, y, qid=qid)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(X[:5] @ X.T), model.predict(X[:5] @ X.T))


@pytest.mark.parametrize("ids", ["int", "str", "float", "tuple"])
def test_learning_goes_on_where_it_stopped(ids, data, tmp_path):
    X, y, qid = data
    named = {
        "int": list(range(12)),
        "str": [f"q{k}\0\ud800é" for k in range(12)],
        "float": [k + 0.1 for k in range(12)],
        "tuple": [("user", k) for k in range(12)],
    }[ids]
    labels = [named[k] for k in qid]
    first, last = slice(0, 32), slice(32, 48)
    model = RankRLS(alpha=0.1).fit(X[first], y[first], qid=labels[first])
    again = round_trip(model, tmp_path)
    assert read_info(tmp_path / "model.rankrls")["updatable"]
    for one in (model, again):
        one.partial_fit(X[last], y[last], qid=labels[last])
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_allclose(again.coef_, RankRLS(alpha=0.1).fit(X, y, qid=labels).coef_, rtol=1e-9)
    again.forget(X[last], y[last], qid=labels[last])
    np.testing.assert_allclose(
        again.coef_, RankRLS(alpha=0.1).fit(X[first], y[first], qid=labels[first]).coef_, rtol=1e-9
    )
    with Refusal("seen before", parameter="qid"):
        again.partial_fit(X[first], y[first], qid=labels[first])


def test_not_updatable_is_small_and_says_so(data, tmp_path):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(300, 150)), rng.normal(size=300), np.repeat(np.arange(100), 3)
    model = RankRLS().fit(X, y, qid=qid)
    save(model, tmp_path / "large.rankrls")
    save(model, tmp_path / "small.rankrls", updatable=False)
    assert (tmp_path / "small.rankrls").stat().st_size < 20_000 < 180_000 < (tmp_path / "large.rankrls").stat().st_size
    assert hasattr(model, "_equations_")  # saving changes nothing
    small = load(tmp_path / "small.rankrls")
    np.testing.assert_array_equal(small.predict(X), model.predict(X))
    assert not read_info(tmp_path / "small.rankrls")["updatable"]
    with Refusal("continue"):
        small.partial_fit(X, y, qid=qid + 1000)


def test_query_ids_that_json_cannot_hold(data, tmp_path):
    X, y, qid = data
    stamps = np.array([np.datetime64("2020-01-01") + np.timedelta64(int(k), "D") for k in qid])
    model = RankRLS().fit(X, y, qid=stamps)
    with Refusal("datetime.date", parameter="qid", remedy="updatable=False"):
        save(model, tmp_path / "model.rankrls")
    assert not list(tmp_path.iterdir())
    again = round_trip(model, tmp_path, updatable=False)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler])
def test_pipeline_of_column_scalers(scaler, data, tmp_path):
    X, y, _ = data
    model = make_pipeline(scaler(), RankRLS()).fit(X, y)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert read_info(tmp_path / "model.rankrls")["steps"] == [scaler.__name__]


@pytest.mark.parametrize("scaler", [QueryMinMaxScaler(), QueryMinMaxScaler((-1, 1)), QueryStandardScaler()], ids=repr)
def test_pipeline_of_query_scalers(scaler, data, tmp_path):
    X, y, qid = data
    X_new, new = X[::-1] * 3 + 1, np.repeat(np.arange(6), 8)
    with sklearn.config_context(enable_metadata_routing=True):
        scaler.set_fit_request(qid=True).set_transform_request(qid=True)
        model = make_pipeline(scaler, RankRLSCV(kernel="rbf")).fit(X, y, qid=qid)
        again = round_trip(model, tmp_path)
        np.testing.assert_array_equal(again.predict(X_new, qid=new), model.predict(X_new, qid=new))
        assert again.predict(X_new, qid=new).std() > 0
    model = make_pipeline(clone(scaler), RankRLS()).fit(X, y)  # one query: the scaler learns
    np.testing.assert_array_equal(round_trip(model, tmp_path).predict(X_new), model.predict(X_new))


def texts(n):
    return [" ".join(f"word{k % (i + 2)}" for k in range(i, i + 5)) for i in range(n)]


@pytest.mark.parametrize(
    "transformer",
    [
        *(PCA(3), TruncatedSVD(3), Nystroem(n_components=4), RBFSampler(n_components=4), PolynomialFeatures()),
        *(
            SplineTransformer(n_knots=4),
            SplineTransformer(extrapolation="periodic", include_bias=False),
            KBinsDiscretizer(3),
            KBinsDiscretizer(3, encode="ordinal"),
        ),
        *(QuantileTransformer(n_quantiles=5), PowerTransformer(), Normalizer(), Binarizer(), VarianceThreshold()),
        *(SelectKBest(k=3), SelectKBest(f_regression, k=2), SelectPercentile()),
        *(SimpleImputer(), SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)),
        FeatureUnion([("scaled", StandardScaler()), ("parts", make_pipeline(MaxAbsScaler(), PCA(2)))]),
    ],
    ids=lambda v: type(v).__name__,
)
def test_pipeline_of_transformers(transformer, data, tmp_path):
    X, y, _ = data
    model = make_pipeline(transformer, RankRLS(alpha=3.0)).fit(X, y)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(X[::-1] * 0.9), model.predict(X[::-1] * 0.9))
    assert np.ptp(model.predict(X)) > 0.0


@pytest.mark.parametrize(
    "transformer",
    [
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(min_frequency=9, handle_unknown="infrequent_if_exist", sparse_output=False, dtype=np.float32),
        OneHotEncoder(drop="first"),
        OneHotEncoder(drop="if_binary", min_frequency=9, handle_unknown="infrequent_if_exist"),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
        OrdinalEncoder(min_frequency=9, encoded_missing_value=-2),
        TargetEncoder(target_type="continuous"),
        SimpleImputer(strategy="most_frequent"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", ["text", "numbers", "with missing"])
def test_pipeline_of_categories(transformer, kind, data, tmp_path):
    _, y, _ = data
    codes = np.random.default_rng(0).choice(4, size=(48, 2), p=[0.4, 0.3, 0.2, 0.1])
    table = {"text": np.array(list("abcd"), dtype=object), "numbers": np.array([1.0, 2.0, 4.0, 8.0])}
    X = table.get(kind, np.array(["a", "b", "c", np.nan], dtype=object))[codes]
    if isinstance(transformer, SimpleImputer):
        if kind == "text":
            X[0, 0] = np.nan
        transformer = make_pipeline(transformer, OneHotEncoder())
    model = make_pipeline(transformer, RankRLS()).fit(X, y)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert np.ptp(model.predict(X)) > 0.0


@pytest.mark.parametrize(
    "transformer",
    [
        CountVectorizer(ngram_range=(1, 2)),
        CountVectorizer(max_features=3),
        TfidfVectorizer(sublinear_tf=True),
        TfidfVectorizer(use_idf=False),
        HashingVectorizer(n_features=32),
        make_pipeline(CountVectorizer(), TfidfTransformer(), TruncatedSVD(3)),
    ],
    ids=repr,
)
def test_pipeline_of_text(transformer, data, tmp_path):
    _, y, _ = data
    model = make_pipeline(transformer, RankRLS()).fit(texts(48), y)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(texts(60)), model.predict(texts(60)))
    assert np.ptp(model.predict(texts(48))) > 0.0


def test_pipeline_of_columns(data, tmp_path):
    X, y, _ = data
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(kind=[*"xyz"] * 16, text=texts(48))
    columns = ColumnTransformer(
        [
            ("scaled", StandardScaler(), ["a", "b"]),
            ("kept", "passthrough", slice("c", "d")),
            ("kinds", OneHotEncoder(), ["kind"]),
            ("words", CountVectorizer(), "text"),
        ],
        remainder="drop",
    )
    model = make_pipeline(columns, RankRLS()).fit(frame, y)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(frame[::-1]), model.predict(frame[::-1]))
    assert list(again[0].get_feature_names_out()) == list(columns.get_feature_names_out())


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_pipeline_of_a_table(make, data, tmp_path):
    X, y, qid = data
    rng = np.random.default_rng(3)
    table = {
        **{"brand": rng.choice(["H&M", 'a "b"', ""], 48).tolist(), "price": [*X[:, 0]], "title": texts(48)},
        **{"added": [f"2024-{k % 12 + 1:02d}-03" for k in range(48)], "query": ["word1 word3", "word2"] * 24},
    }
    table["price"][5] = None
    encoder = TableEncoder(
        query_text="query", text_features=["matches", "similarity", "word"], impute={"price": 0, "added": "mean"}
    )
    model = make_pipeline(encoder, RankRLSCV()).fit(make(table), y, rankrlscv__qid=qid)
    again = round_trip(model, tmp_path)
    new = make({name: cells[::-1] for name, cells in table.items()})
    np.testing.assert_array_equal(again.predict(new), model.predict(new))
    assert again[0].columns_ == model[0].columns_
    assert again[0].features_ == model[0].features_
    assert again[0].count_unusual(new) == {"price": {"missing": 1}, "brand": {"missing": table["brand"].count("")}}
    assert read_info(tmp_path / "model.rankrls")["steps"] == ["TableEncoder"]
    numbers = make_pipeline(TableEncoder(), RankRLS()).fit(make({"price": table["price"]}), y)
    np.testing.assert_array_equal(round_trip(numbers, tmp_path).predict(new), numbers.predict(new))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_pipeline_of_scikit_learns_columns(make, data, tmp_path):
    X, y, _ = data
    frame = make({"a": X[:, 0], "b": X[:, 1], "kind": [*"xyz"] * 16})
    columns = ColumnTransformer([("scaled", StandardScaler(), ["a", "b"]), ("kinds", OneHotEncoder(), ["kind"])])
    model = make_pipeline(columns, RankRLS()).fit(frame, y)
    np.testing.assert_array_equal(round_trip(model, tmp_path).predict(frame[::-1]), model.predict(frame[::-1]))


@pytest.mark.parametrize(
    "transformer",
    [
        TargetEncoder(target_type="continuous"),
        SelectKBest(f_regression, k=2),
        ColumnTransformer([("codes", TargetEncoder(target_type="continuous"), [0, 1])]),
    ],
    ids=lambda t: type(t).__name__,
)
def test_labels_seen_before_the_last_step_are_said(transformer, data, tmp_path):
    X, y, qid = data
    name = "SelectKBest" if isinstance(transformer, SelectKBest) else "TargetEncoder"
    with pytest.warns(InputWarning, match=name):
        model = make_pipeline(transformer, RankRLSCV()).fit(np.round(X), y, rankrlscv__qid=qid)
    with pytest.warns(InputWarning, match=name) as caught:
        save(model, tmp_path / "model.rankrls")
    assert "GroupKFold" in caught[0].message.remedy
    assert read_info(tmp_path / "model.rankrls")["selection"]["labels_seen_by"] == [name]
    model = make_pipeline(transformer, RankRLS()).fit(np.round(X), y, rankrls__qid=qid)
    save(model, tmp_path / "model.rankrls")  # nothing was held out


@pytest.mark.parametrize(
    ("transformer", "where"),
    [
        (CountVectorizer(tokenizer=str.split, token_pattern=None), "tokenizer"),
        (FunctionTransformer(np.abs), "func"),
        (SelectKBest(lambda X, y: np.abs(X).sum(axis=0), k=2), "score_func"),
        (Nystroem(kernel=lambda x, z: float(x @ z), n_components=3), "kernel"),
        (RBFSampler(random_state=np.random.RandomState(0)), "random_state"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_functions_inside_transformers_are_refused(transformer, where, data, tmp_path):
    X, y, _ = data
    X = texts(48) if isinstance(transformer, CountVectorizer) else np.abs(X).round()
    model = make_pipeline(transformer, RankRLS()).fit(X, y)
    with Refusal(f"steps[0][1].{where} is", parameter="steps") as caught:
        save(model, tmp_path / "m")
    assert ("before the pipeline" in caught.value.remedy) == (where != "random_state")
    assert not list(tmp_path.iterdir())


def test_rare_categories_beside_missing_ones(data, tmp_path):
    y, path = data[1][:12], tmp_path / "model.rankrls"
    X = np.array([["a"] * 4 + ["b"] * 3 + ["c", "d"] + [np.nan] * 3], dtype=object).T
    model = make_pipeline(OrdinalEncoder(min_frequency=2, encoded_missing_value=-1), RankRLS()).fit(X, y)
    save(model, path)
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))


def test_another_version_of_scikit_learn_is_said(data, tmp_path, monkeypatch):
    X, y, _ = data
    path = tmp_path / "model.rankrls"
    for model in (make_pipeline(StandardScaler(), RankRLS()), RankRLS()):
        save(model.fit(X, y), path)
        with monkeypatch.context() as other:
            other.setattr(sklearn, "__version__", "0.99.0")
            if isinstance(model, RankRLS):
                load(path)  # nothing of scikit-learn is in it
                continue
            with pytest.warns(InconsistentVersionWarning, match="0.99.0") as caught:
                again = load(path)
            assert caught[0].message.original_sklearn_version == read_info(path)["versions"]["scikit-learn"]
            np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_parameter_that_a_file_does_not_know_has_its_default(data, tmp_path):
    X, y, qid = data
    model = RankRLS(alpha=2.0).fit(X, y, qid=qid)
    del model.positive  # as if it had been saved before there was this parameter
    again = restored("rankrls.RankRLS", dict(vars(model)))
    assert again.positive is False
    np.testing.assert_array_equal(again.coef_, model.coef_)


def test_pipeline_with_a_step_that_does_nothing(data, tmp_path):
    X, y, _ = data
    model = make_pipeline("passthrough", RankRLS(kernel="rbf")).fit(X, y)
    np.testing.assert_array_equal(round_trip(model, tmp_path).predict(X), model.predict(X))


def test_metadata_requests_survive(data, tmp_path):
    X, y, qid = data
    with sklearn.config_context(enable_metadata_routing=True):
        model = RankRLS().set_fit_request(sample_weight=True).fit(X, y, qid=qid)
        again = round_trip(model, tmp_path)
        assert again.get_metadata_routing().fit.requests["sample_weight"] is True
        assert again.get_metadata_routing().fit.requests["qid"] is True


def test_provenance(data, tmp_path):
    X, y, qid = data
    before = datetime.now(UTC)
    model = RankRLSCV(scoring="map").fit(pd.DataFrame(X, columns=list("abcdef")), y, qid=qid)
    path = tmp_path / "model.rankrls"
    save(model, path, provenance={"sha256": "ab" * 32, "rows": 48})
    info = read_info(path)
    assert info["format_version"] == 1
    assert info["versions"]["rankrls"] == rankrls.__version__
    assert info["versions"]["numpy"] == np.__version__
    assert {"python", "scipy", "scikit-learn"} <= info["versions"].keys()
    assert abs((datetime.fromisoformat(info["created"]) - before).total_seconds()) < 60
    assert info["estimator"] == "RankRLSCV"
    assert info["parameters"]["alphas"] == "auto"
    assert info["alpha"] == model.alpha_
    assert info["kernel"] == {"name": "linear"}
    assert (info["n_queries"], info["n_features"], info["n_targets"]) == (12, 6, 1)
    assert info["feature_names"] == list("abcdef")
    assert info["selection"]["how"] == model.selection_
    assert info["selection"]["value"] == model.best_score_
    assert info["selection"]["standard_error"] == model.best_score_error_
    assert info["selection"]["measure"] == "map"
    assert info["given"] == {"sha256": "ab" * 32, "rows": 48}
    # nothing of the model is made to read it
    code = (
        "import sys; from rankrls.persistence import read_info; read_info(sys.argv[1]); print('sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("given", [{"a": object()}, {"a": float("nan")}, [1, 2], "text"])
def test_provenance_must_be_json(given, data, tmp_path):
    X, y, qid = data
    with Refusal("provenance", "JSON", kind=ValueError):
        save(RankRLS().fit(X, y, qid=qid), tmp_path / "m", provenance=given)
    assert not list(tmp_path.iterdir())


def module_level_kernel(x, z):
    return float(x @ z)


def test_save_refuses_what_load_could_not_trust(data, tmp_path):
    X, y, qid = data

    class Local(RankRLS):
        pass

    with_object = RankRLSCV().fit(X, y, qid=qid)
    with_object.cv = iter([(np.arange(3), np.arange(3))])
    refused = [
        (RankRLS(kernel=lambda x, z: float(x @ z)), Refusal("<lambda>", "function", parameter="kernel")),
        (RankRLS(kernel=module_level_kernel), Refusal("function 'module_level_kernel'", parameter="kernel")),
        (RankRLSCV(scoring=lambda t, s: 0.5), Refusal("<lambda>", "function", parameter="scoring")),
        (RankRLSCV(scoring=Measure("ndcg", k=3, gain=np.abs)), Refusal("gain", parameter="scoring")),
        (RankRLS(positive=pd.Index([0])), Refusal("Index", parameter="positive")),
        (Local(), Refusal("Local")),
    ]
    path = tmp_path / "model.rankrls"
    path.write_bytes(b"old")
    for model, refusal in refused:
        model.fit(X, y, qid=qid)
        with refusal:
            save(model, path)
    with Refusal("cannot be saved", parameter="cv"):
        save(with_object, path)
    objects = ["a", "bb", "ccc", "d"]
    model = RankRLS(kernel=lambda x, z: float(len(x) * len(z))).fit(objects, [1, 2, 3, 0], qid=[0, 0, 0, 0])
    with Refusal("trust", parameter="kernel"):
        save(model, path)
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["model.rankrls"]


def test_save_refuses_what_load_would_refuse(data, tmp_path):
    X, y, qid = data
    model = RankRLS().fit(X, y, qid=qid)
    model.coef_ = np.append(model.coef_[:-1], np.nan)
    with Refusal("not finite", parameter="coef_"):
        save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_save_refuses_what_is_no_fitted_model(data, tmp_path):
    X, y, _ = data
    with pytest.raises(NotFittedError):
        save(RankRLS(), tmp_path / "m")
    with pytest.raises(NotFittedError):
        save(make_pipeline(StandardScaler(), RankRLSCV()), tmp_path / "m")
    with Refusal("got Ridge"):
        save(Ridge().fit(X, y), tmp_path / "m")
    with Refusal("pipeline", "Ridge"):
        save(make_pipeline(StandardScaler(), Ridge()).fit(X, y), tmp_path / "m")
    with Refusal("KNNImputer", parameter="steps", remedy="transformer"):
        save(make_pipeline(KNNImputer(), RankRLS()).fit(X, y), tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there(data, tmp_path):
    X, y, qid = data
    with pytest.raises(FileNotFoundError):
        save(RankRLS().fit(X, y, qid=qid), tmp_path / "none" / "m.rankrls")
    with pytest.raises(IsADirectoryError):
        save(RankRLS().fit(X, y, qid=qid), tmp_path)


def test_a_full_disk_leaves_the_old_file(data, tmp_path):
    resource = pytest.importorskip("resource", reason="limits on the size of a file are a POSIX matter")
    X, y, qid = data
    path = tmp_path / "model.rankrls"
    save(RankRLS().fit(X, y, qid=qid), path)
    old = path.read_bytes()
    large = RankRLS(kernel="rbf").fit(np.repeat(X, 40, axis=1), y, qid=qid)  # X_fit_ alone is 92 kB
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, hard))
    try:
        with Refusal(str(path.resolve()), kind=OSError):
            save(large, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["model.rankrls"]


def test_the_file_is_a_plain_zip(data, tmp_path):
    X, y, qid = data
    save(RankRLS(kernel="rbf").fit(sparse.csr_array(X), y, qid=qid), tmp_path / "m.rankrls")
    with zipfile.ZipFile(tmp_path / "m.rankrls") as archive:
        assert archive.testzip() is None
        assert all(m.compress_type == zipfile.ZIP_STORED for m in archive.infolist())


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("items", [None, Items(np.arange(10.0).reshape(5, 2), ids=["a", "b", "c", "d", "e"])])
def test_conditional_models_come_back(kernel, items, tmp_path):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(8, 8)), rng.normal(size=(8, 5))
    X = X @ X.T if kernel == "precomputed" else X
    for model in (
        ConditionalRankRLS(kernel=kernel, item_kernel="rbf"),
        ConditionalRankRLSCV([0.1, 1.0], kernel=kernel),
    ):
        model.fit(X, Y, items=items)
        rankrls.save(model, tmp_path / "m.rankrls")
        again = load(tmp_path / "m.rankrls")
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert (again.items_ is None) == (items is None)
        assert items is None or again.items_.ids == items.ids


def test_an_interruption_between_two_steps_of_the_archive(tmp_path, monkeypatch, data):
    """A member that has been opened and not yet entered: closing the archive must not hide the interruption."""
    X, y, _ = data
    model = RankRLS().fit(X, y)
    rankrls.save(model, tmp_path / "m.rankrls")
    before = (tmp_path / "m.rankrls").read_bytes()
    original = zipfile.ZipFile.open

    def interrupted(self, name, mode="r", **options):
        opened = original(self, name, mode, **options)
        if str(getattr(name, "filename", name)).endswith(".npy"):
            raise KeyboardInterrupt
        return opened

    monkeypatch.setattr(zipfile.ZipFile, "open", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rankrls.save(model, tmp_path / "m.rankrls")
    assert (tmp_path / "m.rankrls").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m.rankrls"]
