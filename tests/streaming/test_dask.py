"""Dask collections against the same rows in memory and in parts; every cluster is on this machine."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest

import rankrls
from rankrls import InputError
from tests.refusals import Refusal
from tests.streaming.arrays import ArrayDataset, example

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

X, y, qid, w = example(3, queries=40, rows=(2, 20), n=6, weights=True)
NAMES = [f"f{k}" for k in range(6)]


def frame(parts=5, order=None, long=False):
    from dask import dataframe

    rows = np.arange(len(y)) if order is None else order
    ids = np.where(np.arange(len(y)) < 250, 7, qid) if long else qid
    table = pd.DataFrame(X[rows], columns=NAMES).assign(label=y[rows], query=ids[rows], weight=w[rows])
    return dataframe.from_pandas(table, npartitions=parts, sort=False), ids


@pytest.fixture(scope="module")
def cluster():
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
        ) as workers,
        Client(workers) as client,
    ):
        yield client


@pytest.mark.parametrize("kind", ["data frame", "array", "a long query", "shuffle"])
@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_the_choice_is_that_of_all_rows(kind, ties):
    from dask import array

    from rankrls.dask import RankRLSCV

    given = {"scoring": "ndcg@5", "ties": ties}
    with dask.config.set(scheduler="threads"):
        if kind == "array":
            chunks = [array.from_array(a, chunks=(60, *a.shape[1:])) for a in (X, y, qid, w)]
            model = RankRLSCV(**given).fit(chunks[0], chunks[1], qid=chunks[2], sample_weight=chunks[3])
            ids = qid
        else:
            order = np.random.default_rng(0).permutation(len(y)) if kind == "shuffle" else None
            ddf, ids = frame(order=order, long=kind == "a long query")
            model = RankRLSCV(**given, straddling="shuffle" if kind == "shuffle" else "join")
            model.fit(ddf, "label", qid="query", sample_weight="weight")
            assert model.feature_names_in_.tolist() == NAMES
    fitted = rankrls.RankRLSCV(**given).fit(X, y, qid=ids, sample_weight=w)
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-8, atol=1e-12)
    tolerance = 1e-10 if kind != "shuffle" else 1e-3  # ties are broken by the order of the rows
    np.testing.assert_allclose(model.cv_results_["mean_score"], fitted.cv_results_["mean_score"], rtol=tolerance)
    assert model.selection_ == fitted.selection_
    assert model.n_queries_ == fitted.n_queries_


def test_scores_are_lazy_and_the_local_model_is_an_ordinary_one(tmp_path):
    from dask import array

    from rankrls.dask import RankRLS

    ddf, _ = frame()
    with dask.config.set(scheduler="threads"):
        model = RankRLS(0.5).fit(ddf[[*NAMES, "label", "query"]], "label", qid="query")
        scores = model.predict(ddf)
        assert hasattr(scores, "__dask_graph__")
        computed = scores.compute()
        of_array = model.predict(array.from_array(X, chunks=(70, 6))).compute()
    local = model.to_local()
    assert type(local) is rankrls.RankRLS
    rankrls.save(local, tmp_path / "m.rankrls")
    loaded = rankrls.load(tmp_path / "m.rankrls")
    expected = loaded.predict(pd.DataFrame(X, columns=NAMES))
    np.testing.assert_allclose(computed, expected, rtol=1e-12)
    np.testing.assert_allclose(of_array, expected, rtol=1e-12)
    np.testing.assert_array_equal(computed.index, ddf.index.compute())
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X, columns=NAMES)), expected)


def test_a_basis_is_the_same_as_that_of_files():
    from rankrls.dask import SparseRankRLSCV

    ddf, _ = frame()
    with dask.config.set(scheduler="threads"):
        model = SparseRankRLSCV(n_basis=15, gamma=0.1, cv=3).fit(ddf[[*NAMES, "label", "query"]], "label", qid="query")
    data = ArrayDataset(X, y, qid, cuts=(50, 100), feature_names=tuple(NAMES))
    expected = rankrls.SparseRankRLSCV(n_basis=15, gamma=0.1, cv=3).fit_dataset(data)
    np.testing.assert_array_equal(model.X_fit_, expected.X_fit_)
    np.testing.assert_allclose(model.cv_results_["mean_score"], expected.cv_results_["mean_score"], rtol=1e-9)


def whole_partitions():
    """Partitions that end where queries do, and the same cuts for parts of arrays."""
    from dask import array

    starts = np.flatnonzero(np.concatenate(([True], qid[1:] != qid[:-1])))
    cuts = [int(starts[k]) for k in (8, 15, 22, 29, 36)]
    chunks = tuple(np.diff([0, *cuts, len(y)]).tolist())
    return [array.from_array(a, chunks=(chunks, *a.shape[1:])) for a in (X, y, qid, w)], ArrayDataset(
        X, y, qid, w, tuple(cuts)
    )


def bits(model):
    return [model.coef_.tobytes(), model.cv_results_["mean_score"].tobytes(), model.best_score_error_]


def test_a_cluster_gives_the_bits_of_this_process(cluster):
    from rankrls.dask import RankRLSCV

    (A, labels, ids, weights), data = whole_partitions()
    expected = bits(rankrls.RankRLSCV().fit_dataset(data))
    assert bits(RankRLSCV().fit(A, labels, qid=ids, sample_weight=weights)) == expected
    assert bits(rankrls.RankRLSCV().fit_dataset(data, executor=cluster.get_executor())) == expected


@pytest.mark.parametrize("leaves", [2, 9])
def test_a_worker_that_is_killed_changes_no_bit(cluster, leaves):
    """In the first pass, or in the second one."""
    data = whole_partitions()[1]
    slow = SlowDataset(X, y, qid, w, data.cuts)
    expected = bits(rankrls.RankRLSCV().fit_dataset(data))
    killed = []

    def kill():
        time.sleep(0.35 * leaves / 2)
        pid = next(iter(cluster.run(os.getpid).values()))
        killed.append(pid)
        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    start = time.monotonic()
    thread.start()
    found = bits(rankrls.RankRLSCV().fit_dataset(slow, executor=cluster.get_executor()))
    thread.join()
    assert killed
    assert found == expected
    assert time.monotonic() - start < 60
    cluster.wait_for_workers(2, timeout=60)


class SlowDataset(ArrayDataset):
    def read(self, address, names=False):
        time.sleep(0.3)
        return super().read(address, names)


def test_the_engine_of_an_address(cluster):
    from rankrls.dask import executor_of

    data = whole_partitions()[1]
    expected = bits(rankrls.RankRLSCV().fit_dataset(data))
    with executor_of(cluster.scheduler.address) as executor:
        assert bits(rankrls.RankRLSCV().fit_dataset(data, executor=executor)) == expected


def test_conjugate_gradients():
    from rankrls.dask import CGRankRLS

    ddf, ids = frame(long=True)
    given = {"selection": "tikhonov", "tol": 1e-11}
    with dask.config.set(scheduler="threads"):
        model = CGRankRLS((0.5,), **given).fit(ddf, "label", qid="query", sample_weight="weight")
    expected = rankrls.RankRLS(0.5).fit(X, y, qid=ids, sample_weight=w)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-7, atol=1e-9)
    assert type(model.to_local()) is rankrls.CGRankRLS


def test_the_command_line_runs_on_a_cluster(cluster, tmp_path, capsys):
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    from rankrls.cli import main
    from rankrls.persistence import read_info

    (tmp_path / "shards").mkdir()
    table = pa.table({"qid": qid, "label": y, **{name: X[:, k] for k, name in enumerate(NAMES)}})
    for k, start in enumerate(range(0, len(y), 150)):
        pq.write_table(table.slice(start, 150), tmp_path / "shards" / f"{k}.parquet")
    words = ["fit", str(tmp_path / "shards"), "--json", "--memory", "300K", "--model"]
    address = cluster.scheduler.address
    found = []
    for name, more in (("a", []), ("b", ["--scheduler", address])):
        assert main([*words, str(tmp_path / name), *more]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0]["selection"] == found[1]["selection"]
    assert found[0]["parts"] == found[1]["parts"] > 1
    assert read_info(tmp_path / "b")["given"]["streamed"]["engine"] == address
    assert main([*words, str(tmp_path / "c"), "--scheduler", "tcp://10.1.1.1:80"]) == 2
    assert "--insecure" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "http://x", "ws://127.0.0.1:1"])
def test_only_safe_addresses(address):
    from rankrls.dask import executor_of

    with Refusal("secure", parameter="scheduler", remedy="tls"), executor_of(address):
        pass


def test_workers_with_another_version(cluster, monkeypatch):
    from rankrls.dask import executor_of

    monkeypatch.setattr("rankrls.__version__", "9.9")
    with Refusal("9.9", parameter="scheduler", remedy="same"), executor_of(cluster.scheduler.address):
        pass


def test_bad_collections():
    from dask import array

    from rankrls.dask import RankRLS

    ddf, _ = frame()
    with dask.config.set(scheduler="threads"):
        with Refusal("Dask collection", parameter="X", remedy="rankrls.dask"):
            rankrls.RankRLS().fit(ddf, y)
        with Refusal("data frame or array", parameter="X"):
            RankRLS().fit(X, y, qid=qid)
        with Refusal("chunks", parameter="X", remedy="rechunk"):
            RankRLS().fit(array.from_array(X, chunks=(50, 3)), y, qid=qid)
        with Refusal("shuffle", parameter="straddling"):
            RankRLS(straddling="shuffle").fit(array.from_array(X, chunks=(50, 6)), y, qid=qid)
        order = np.random.default_rng(0).permutation(len(y))
        with Refusal("grouped", parameter="qid", remedy="shuffle"):
            RankRLS().fit(frame(order=order)[0][[*NAMES, "label", "query"]], "label", qid="query")
        with Refusal(parameter="y"):
            bad = frame()[0].assign(label=np.nan)
            RankRLS().fit(bad[[*NAMES, "label", "query"]], "label", qid="query")
    with pytest.raises(InputError):
        RankRLS(straddling="never").fit(ddf, "label", qid="query")
