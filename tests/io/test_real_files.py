"""The benchmark collections as their publishers wrote them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from rankrls.io import load_letor

pytestmark = pytest.mark.shared_data


def test_ohsumed(data_dir):
    tables = [load_letor(data_dir / "ohsumed_letor1" / f"Fold{k}" / "testset.txt") for k in (2, 3, 4, 5, 1)]
    assert sum(t.n_rows for t in tables) == 16140
    assert {t.n_features for t in tables} == {25}
    y = np.concatenate([t.y for t in tables])
    assert np.unique(y, return_counts=True)[1].tolist() == [11303, 2585, 2252]
    assert len(np.unique(np.concatenate([t.qid for t in tables]))) == 106
    assert all(isinstance(t.X, np.ndarray) for t in tables)
    assert tables[-1].comments[0] == "docid = 7612"
    assert tables[-1].X[0, :3].tolist() == [2.0, 1.38629436, 0.28571429]
    raw = b"".join(Path(t.path).read_bytes() for t in tables)
    assert hashlib.sha256(raw).hexdigest() == "37e1a13e82245a7845c0f7f64c4b0f3dfc58d6e7c895fd26895a7e2cd42cb6c3"
    assert tables[-1].sha256 == hashlib.sha256(Path(tables[-1].path).read_bytes()).hexdigest()


def test_mq2008(data_dir):
    tables = [load_letor(data_dir / "mq2008_letor4" / f"Fold{k}" / "test.txt") for k in (2, 3, 4, 5, 1)]
    assert sum(t.n_rows for t in tables) == 15211
    assert {t.n_features for t in tables} == {46}
    assert len(np.unique(np.concatenate([t.qid for t in tables]))) == 784
    assert set(np.unique(np.concatenate([t.y for t in tables]))) == {0, 1, 2}
    assert tables[-1].comments[0] == "docid = GX004-93-7097963 inc = 0.0428115405134536 prob = 0.860366"


def test_every_value_is_what_python_reads(data_dir):
    path = data_dir / "mq2008_letor4" / "Fold1" / "vali.txt"
    table = load_letor(path)
    for row, line in zip(table.X, path.read_text().splitlines(), strict=True):
        assert row.tolist() == [float(t.split(":")[1]) for t in line.partition("#")[0].split()[2:]]


def test_parses_with_two_hundred_thousand_features(data_dir):
    path = data_dir / "parse_ranking" / "rank_train.light"
    table = load_letor(path)
    assert isinstance(table.X, sp.csr_array)
    assert table.n_rows == 100
    assert len(np.unique(table.qid)) == 22
    rows = [
        {int(i): float(v) for i, v in (t.split(":") for t in line.split()[1:] if not t.startswith("qid"))}
        for line in path.read_text().splitlines()
    ]
    first = table.first_feature
    X = table.X
    for row, (a, b) in zip(rows, zip(X.indptr, X.indptr[1:], strict=False), strict=True):
        assert dict(zip((X.indices[a:b] + first).tolist(), X.data[a:b].tolist(), strict=True)) == row
