"""Executors and clusters give the bits of threads, also if a worker is killed; Dask collections give the same fits."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import rankrls
from rankrls import RankRLSCV, SparseRankRLSCV
from rankrls.io import save_table, write_shards
from tests.processes import FORKED, processes
from tests.refusals import Refusal
from tests.streaming.arrays import array_dataset, example, starts_of
from tests.streaming.test_fit_dataset import assert_same_choice

X, y, qid, w = example(3, queries=40, rows=(2, 20), n=6, weights=True)
CUTS = tuple(starts_of(qid)[[3, 8, 15, 22, 29, 36]].tolist())
NAMES = [f"f{k}" for k in range(6)]
MODELS = {
    "primal": lambda: RankRLSCV(scoring="map", ties="exclude"),
    "sparse": lambda: SparseRankRLSCV(n_basis=15, gamma=0.1, scoring="map", random_state=0),
}
of_clusters = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def data(**given):
    return array_dataset(X, y, qid, w, CUTS, **given)


def bits(model):
    names = ("coef_", "dual_coef_", "X_fit_", "alpha_", "best_score_", "best_score_error_")
    known = [np.asarray(getattr(model, name)) for name in names if getattr(model, name, None) is not None]
    return [value.tobytes() for value in (*known, model.cv_results_["mean_score"], model.cv_results_["standard_error"])]


@pytest.mark.parametrize("name", MODELS)
def test_threads_and_processes_give_the_same_bits(name, monkeypatch):
    expected = bits(MODELS[name]().fit_dataset(data()))
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "3")
    assert bits(MODELS[name]().fit_dataset(data())) == expected
    with ThreadPoolExecutor(2) as pool:
        assert bits(MODELS[name]().fit_dataset(data(), executor=pool)) == expected
    with ProcessPoolExecutor(2, mp_context=processes()) as pool:
        assert bits(MODELS[name]().fit_dataset(data(), executor=pool)) == expected


def test_what_is_no_executor():
    with Refusal("Dask client", parameter="executor"):
        RankRLSCV().fit_dataset(data(), executor="threads")


@contextmanager
def local_cluster():
    """Two workers of one thread each."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    processes()
    how = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with dask.config.set(FORKED), distributed.LocalCluster(**how) as workers, distributed.Client(workers) as client:
        yield client


class TestClusters:
    """On this machine."""

    pytestmark = of_clusters

    @pytest.fixture(scope="class")
    def client(self):
        with local_cluster() as client:
            yield client

    @pytest.mark.parametrize("name", MODELS)
    def test_a_cluster_gives_the_bits_of_this_process(self, name, client):
        expected = bits(MODELS[name]().fit_dataset(data()))
        assert bits(MODELS[name]().fit_dataset(data(), executor=client)) == expected
        assert bits(MODELS[name]().fit_dataset(data(), executor=client.get_executor())) == expected

    def test_a_worker_that_is_killed_changes_no_bit(self, client, tmp_path):
        (tmp_path / "kill").touch()
        killed = MODELS["primal"]().fit_dataset(data(killed_by=tmp_path / "kill"), executor=client)
        assert not (tmp_path / "kill").exists()
        assert bits(killed) == bits(MODELS["primal"]().fit_dataset(data()))

    def test_collections(self, client):
        from rankrls import dask as of_dask

        model = of_dask.RankRLSCV(scoring="map", ties="exclude").fit(*arrays()[:2], **arrays()[2])
        assert bits(model) == bits(MODELS["primal"]().fit_dataset(data()))


def saved_table(path):
    """The rows as a Parquet file."""
    save_table(path, X, y, qid, ids=[f"d{k}" for k in range(len(y))], feature_names=NAMES)
    return path


def arrays(features=X):
    from dask import array

    chunks = tuple(np.diff([0, *CUTS, len(y)]).tolist())
    found = [array.from_array(a, chunks=(chunks, *a.shape[1:])) for a in (features, y, qid, w)]
    return found[0], found[1], {"qid": found[2], "sample_weight": found[3]}


def frame(order=None):
    from dask import dataframe

    rows = np.arange(len(y)) if order is None else order
    table = pd.DataFrame(X[rows], columns=NAMES).assign(label=y[rows], query=qid[rows], weight=w[rows])
    return dataframe.from_pandas(table, npartitions=5, sort=False)


class TestCollections:
    """Without a cluster."""

    pytestmark = of_clusters

    @pytest.fixture(autouse=True)
    def _threads(self):
        with pytest.importorskip("dask").config.set(scheduler="threads"):
            yield

    @pytest.mark.parametrize("kind", ["array", "sparse", "cut queries", "shuffled"])
    def test_the_choice_is_that_of_all_rows(self, kind):
        from rankrls import dask as of_dask

        features = X if kind != "sparse" else np.where(np.random.default_rng(0).random(X.shape) < 0.5, X, 0.0)
        model = of_dask.RankRLSCV()
        if kind in ("array", "sparse"):
            A, labels, given = arrays(features)
            if kind == "sparse":
                A = A.map_blocks(sparse.csr_matrix, dtype=float, meta=np.zeros((0, 6)))
            model.fit(A, labels, **given)
            np.testing.assert_allclose(model.predict(A).compute(), features @ model.coef_, rtol=1e-8)
        else:
            order = np.random.default_rng(0).permutation(len(y)) if kind == "shuffled" else None
            model.fit(frame(order), "label", qid="query", sample_weight="weight")
            assert model.feature_names_in_.tolist() == NAMES
        fitted = RankRLSCV().fit(features, y, qid=qid, sample_weight=w)
        assert_same_choice(model, fitted, features, qid)

    def test_a_basis_is_drawn_of_all_rows(self):
        from rankrls import dask as of_dask

        model = of_dask.SparseRankRLSCV(n_basis=15, gamma=0.1, scoring="map", random_state=0)
        model.fit(*arrays()[:2], **arrays()[2])
        assert bits(model) == bits(MODELS["sparse"]().fit_dataset(data()))

    def test_scores_are_lazy_and_the_local_model_is_an_ordinary_one(self, tmp_path):
        from rankrls import dask as of_dask

        table = frame()
        model = of_dask.RankRLS(0.5).fit(table[[*NAMES, "label", "query"]], "label", qid="query")
        scores = model.predict(table)
        assert hasattr(scores, "__dask_graph__")
        local = model.to_local()
        assert type(local) is rankrls.RankRLS
        rankrls.save(local, tmp_path / "m.rankrls")
        expected = rankrls.load(tmp_path / "m.rankrls").predict(pd.DataFrame(X, columns=NAMES))
        np.testing.assert_allclose(scores.compute(), expected, rtol=1e-12)
        np.testing.assert_array_equal(scores.compute().index, table.index.compute())

    def test_parquet_shards(self, tmp_path):
        from dask import dataframe

        from rankrls import dask as of_dask

        write_shards(saved_table(tmp_path / "a.parquet"), tmp_path / "shards", rows_per_file=len(y) // 4)
        shards = dataframe.read_parquet(str(tmp_path / "shards" / "*.parquet"))
        assert shards.npartitions > 3
        model = of_dask.RankRLSCV().fit(shards.drop(columns="docid"), "label", qid="qid")
        assert_same_choice(model, RankRLSCV().fit(X, y, qid=qid), X, qid)
        np.testing.assert_allclose(model.predict(shards).compute(), X @ model.coef_, rtol=1e-8)

    def test_columns_that_cannot_be_used(self, tmp_path):
        from rankrls import dask as of_dask

        text = frame().assign(docid="a")
        for X, label, refusal in (
            (text, "label", Refusal("'docid'", "Drop", parameter="X", column="docid")),
            (frame(), "lable", Refusal("'lable'", "'label'", parameter="y", column="lable")),
            (frame(), np.ones(len(y)), Refusal("name a column", parameter="y")),
            (frame(), frame()["label"], Refusal("name a column", parameter="y")),
        ):
            with refusal:
                of_dask.RankRLS().fit(X, label, qid="query")

    def test_bad_collections(self):
        from dask import array

        from rankrls import dask as of_dask

        with Refusal("data frame or array", parameter="X"):
            of_dask.RankRLS().fit(X, y, qid=qid)
        with Refusal("rechunk", parameter="qid"):
            chunks = [array.from_array(a, chunks=(60, *a.shape[1:])) for a in (X, y, qid)]
            of_dask.RankRLS().fit(*chunks[:2], qid=chunks[2])

    @pytest.mark.parametrize("name", ["RankRLS", "SparseRankRLSCV", "CGRankRLS", "RankSVM", "RankBoost"])
    def test_ordinary_fits_refuse_collections_by_name(self, name):
        with Refusal("Dask collection", parameter="X"):
            getattr(rankrls, name)().fit(arrays()[0], y, qid=qid)
