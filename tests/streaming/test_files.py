"""Streamed fits of files, and files that change on the way."""

from __future__ import annotations

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankrls import RankRLS, RankRLSCV
from rankrls.io import TableError, open_dataset
from rankrls.metrics import evaluate as measured
from rankrls.streaming import evaluate
from rankrls.streaming.stream import Stream
from tests.refusals import Refusal
from tests.streaming.arrays import example
from tests.streaming.test_fit_dataset import assert_same_choice

X, y, qid, w = example(1, queries=50, rows=(2, 15), n=5, weights=True)


@pytest.fixture
def folder(tmp_path):
    table = pa.table({"qid": qid, "label": y, "w": w, **{f"f{k}": X[:, k] for k in range(5)}})
    for k, start in enumerate(range(0, len(y), 110)):
        pq.write_table(table.slice(start, 110), tmp_path / f"part-{k}.parquet", row_group_size=40)
    return tmp_path


@pytest.mark.parametrize("rows_per_part", [None, 60, 17, 5])
def test_files_give_the_fit_of_all_rows(folder, rows_per_part):
    data = open_dataset(folder, weight="w", rows_per_part=rows_per_part)
    fitted = RankRLSCV(scoring="map").fit(X, y, qid=qid, sample_weight=w)
    assert_same_choice(RankRLSCV(scoring="map").fit_dataset(data), fitted, X, qid)


def test_a_shard_that_changes_between_the_passes(folder, monkeypatch):
    """By another process, with the same size and number of rows."""
    data, path = open_dataset(folder, weight="w", rows_per_part=60), folder / "part-1.parquet"
    original = path.read_bytes()

    def measure(labels, scores):
        return 0.0

    calls = []
    read = type(data).read

    def changing(self, address, *, names=False):
        calls.append(address.number)
        if len(calls) == len(self.parts):
            path.write_bytes(original)
            os.utime(path, ns=(1, 1))
        return read(self, address, names=names)

    monkeypatch.setattr(type(data), "read", changing)
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "1")
    model = RankRLSCV(scoring=measure)
    with Refusal("changed", file="part-1.parquet"):
        model.fit_dataset(data)
    assert not hasattr(model, "coef_")


def test_features_that_are_missing_name_their_file(folder):
    table = pq.read_table(folder / "part-1.parquet")
    column = table["f2"].to_pylist()
    column[7] = None
    pq.write_table(table.set_column(5, "f2", pa.array(column, pa.float64())), folder / "part-1.parquet")
    with pytest.raises(TableError, match="part-1.*row 7.*f2"):
        RankRLSCV().fit_dataset(open_dataset(folder, weight="w"))


def test_text_files(tmp_path):
    from rankrls.io import save_letor

    save_letor(tmp_path / "rows.txt", np.round(X, 6), y, qid)
    data = open_dataset(tmp_path / "rows.txt", rows_per_part=60)
    fitted = RankRLSCV().fit(np.round(X, 6), y, qid=qid)
    assert_same_choice(RankRLSCV().fit_dataset(data), fitted, np.round(X, 6), qid)


def test_one_ranking_of_all_rows(tmp_path):
    """Which is one query that is longer than a part: all but leave-query-out is as in memory."""
    table = pa.table({"qid": np.zeros(len(y), dtype=int), "label": y, **{f"f{k}": X[:, k] for k in range(5)}})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=70)
    data = open_dataset(tmp_path / "rows.parquet", rows_per_part=50)
    assert (data.n_queries, len(data.parts) > 3) == (1, True)
    model, whole = RankRLS(alpha=2.0).fit_dataset(data), RankRLS(alpha=2.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-10)
    found = evaluate(model, data, measures=["disagreement", "ndcg@10"])
    expected = measured(y, whole.predict(X), measures=["disagreement", "ndcg@10"])
    assert found == pytest.approx(expected, rel=1e-12)
    with Refusal("Leave-query-out"):
        RankRLSCV().fit_dataset(data)
    for scoring in ("disagreement", "pair_squared_error"):
        with Refusal("folds", parameter="cv", remedy="validation"):
            RankRLSCV(scoring=scoring, cv=3).fit_dataset(data)
    chosen = RankRLSCV(scoring="disagreement").fit_dataset(data, validation=data)
    expected = RankRLSCV(scoring="disagreement").fit(X, y, X_val=X, y_val=y)
    assert chosen.alpha_ == pytest.approx(expected.alpha_, rel=1e-9)


def test_decoding_is_part_of_the_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "4")
    pq.write_table(
        pa.table({"qid": [1, 1, 2, 2], "label": [0.0, 1, 0, 1], "f": [1.0, 2, 3, 4]}), tmp_path / "a.parquet"
    )
    data = open_dataset(tmp_path / "a.parquet")
    of = lambda memory: Stream(data, memory=memory, leaf_bytes=lambda rows: 1000.0)
    assert of(1000).leaf == 1000.0 + 24.0 * 4  # no more than three times the data
    assert [of(memory).workers for memory in (1000, 2100, 2200, 1e9)] == [1, 1, 2, 4]
