"""Dask collections against the same rows in memory and in parts; every cluster is on this machine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import rankrls
from rankrls import InputError
from tests.refusals import Refusal
from tests.streaming.arrays import ArrayDataset, example
from tests.streaming.engines import MODELS, Counter, dask_blocks, fit_collections, killed, local_cluster
from tests.streaming.engines import bits as engine_bits

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
    with local_cluster() as client:
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


def test_conjugate_gradients():
    from rankrls.dask import CGRankRLS

    ddf, ids = frame(long=True)
    given = {"selection": "tikhonov", "tol": 1e-11}
    with dask.config.set(scheduler="threads"):
        model = CGRankRLS((0.5,), **given).fit(ddf, "label", qid="query", sample_weight="weight")
    expected = rankrls.RankRLS(0.5).fit(X, y, qid=ids, sample_weight=w)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-7, atol=1e-9)
    assert type(model.to_local()) is rankrls.CGRankRLS


def test_every_iterate_is_judged_as_of_files():
    from dask import array

    from rankrls.dask import CGRankRLS

    given = {"alphas": (0.1, 10.0, 1000.0), "patience": 3}
    chunks = [array.from_array(a, chunks=(60, *a.shape[1:])) for a in (X, y, qid, w)]
    with dask.config.set(scheduler="threads"):
        model = CGRankRLS(**given).fit(chunks[0], chunks[1], qid=chunks[2], sample_weight=chunks[3])
    expected = rankrls.CGRankRLS(**given).fit_dataset(ArrayDataset(X, y, qid, w, cuts=(50, 100)))
    np.testing.assert_allclose(model.validation_surface_, expected.validation_surface_, rtol=1e-9)
    assert model.best_params_ == expected.best_params_
    assert model.selection_ == expected.selection_


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


def test_sparse_chunks():
    from dask import array

    from rankrls.dask import CGRankRLS, RankRLSCV

    S = np.where(np.random.default_rng(0).random(X.shape) < 0.5, X, 0.0)
    chunks = [array.from_array(a, chunks=(60, *a.shape[1:])) for a in (S, y, qid)]
    chunks[0] = chunks[0].map_blocks(sparse.csr_matrix, dtype=float, meta=np.zeros((0, 6)))
    with dask.config.set(scheduler="threads"):
        model = RankRLSCV(scoring="map").fit(chunks[0], chunks[1], qid=chunks[2])
        iterated = CGRankRLS((0.5,), selection="tikhonov", tol=1e-11).fit(chunks[0], chunks[1], qid=chunks[2])
        scores = model.predict(chunks[0]).compute()
    fitted = rankrls.RankRLSCV(scoring="map").fit(sparse.csr_array(S), y, qid=qid)
    np.testing.assert_allclose(model.coef_, fitted.coef_, rtol=1e-8)
    np.testing.assert_allclose(scores, fitted.predict(S), rtol=1e-8)
    np.testing.assert_allclose(iterated.coef_, rankrls.RankRLS(0.5).fit(S, y, qid=qid).coef_, rtol=1e-7)


@pytest.mark.parametrize(("name", "passes"), [("primal", 0.5), ("primal", 1.5), ("cg", 3.5)])
def test_a_client_that_is_killed_goes_on(name, passes, tmp_path):
    from rankrls import dask as of_dask

    counts, sums = tmp_path / "count", tmp_path / "sums"
    counts.mkdir()
    before = int(passes * 6)
    assert killed(fit_collections, counts, before, name, sums)
    local, counter, undisturbed = MODELS[name](), Counter(counts, seconds=0.0), Counter(tmp_path, seconds=0.0)
    cls = getattr(of_dask, type(local).__name__)
    with dask.config.set(scheduler="synchronous"):
        A, labels, ids, weights = dask_blocks(undisturbed)
        expected = cls(**local.get_params()).fit(A, labels, qid=ids, sample_weight=weights)
        A, labels, ids, weights = dask_blocks(counter)
        given = {"qid": ids, "sample_weight": weights, "checkpoint": sums}
        model = cls(**local.get_params()).fit(A, labels, **given)
        assert counter.done - before == undisturbed.done - before + 1, "one block was being read"
        cls(**local.get_params()).fit(A, labels, **given)
        assert counter.done == undisturbed.done + 1
        with Refusal("other data", parameter="checkpoint"):
            cls(**local.get_params()).fit(A, labels + 1, **given)
    assert engine_bits(model) == engine_bits(expected)


@pytest.mark.parametrize(
    "name", ["RankRLS", "SparseRankRLSCV", "CGRankRLS", "RankSVM", "GreedyRankRLS", "RankBoost", "TransductiveRankRLS"]
)
def test_ordinary_fits_refuse_collections_by_name(name):
    """Instead of bringing them to this process."""
    from dask import array

    cls = getattr(rankrls, name)
    A, labels = array.from_array(X, chunks=(60, 6)), array.from_array(y, chunks=(60,))
    for ddf in (A, frame()[0][NAMES]):
        with Refusal("Dask collection", parameter="X", remedy="rankrls.dask"):
            cls().fit(ddf, y, qid=qid)
    with Refusal("Dask collection", parameter="y", remedy="rankrls.dask"):
        cls().fit(X, labels, qid=qid)
    with Refusal("Dask collection", parameter="qid", remedy="rankrls.dask"):
        cls().fit(X, y, qid=array.from_array(qid, chunks=(60,)))


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
