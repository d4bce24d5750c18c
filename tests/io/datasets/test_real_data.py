"""The benchmark collections a part at a time, and as shards."""

import numpy as np
import pytest
import scipy.sparse as sp

from rankrls.io import load_letor, load_table, open_dataset, write_shards

pytestmark = pytest.mark.shared_data


@pytest.mark.parametrize(
    ("name", "test", "rows"), [("mq2008_letor4", "test", 15211), ("ohsumed_letor1", "testset", 16140)]
)
def test_five_test_files_are_one_data_set(data_dir, tmp_path, name, test, rows):
    paths = [data_dir / name / f"Fold{k}" / f"{test}.txt" for k in (2, 3, 4, 5, 1)]
    tables = [load_letor(path) for path in paths]
    data = open_dataset(paths, rows_per_part=1000)
    parts = [data.read(address, names=True) for address in data.parts]
    assert (data.n_rows, data.n_queries) == (rows, sum(len(np.unique(table.qid)) for table in tables))
    X = np.concatenate([part.X for part in parts])
    assert np.array_equal(X, np.concatenate([table.X for table in tables]))
    assert np.array_equal(np.concatenate([part.y for part in parts]), np.concatenate([table.y for table in tables]))
    docids = [docid for table in tables for docid in table.docids]
    assert [docid for part in parts for docid in part.ids] == docids
    write_shards(paths, tmp_path / "shards", rows_per_file=4000)
    shards = [load_table(path) for path in sorted((tmp_path / "shards").iterdir())]
    assert np.array_equal(np.concatenate([shard.X for shard in shards]), X)
    assert [docid for shard in shards for docid in shard.ids] == docids
    assert [q for shard in shards for q in shard.qid] == [q for table in tables for q in table.qid]


def test_two_hundred_thousand_sparse_features(data_dir):
    path = data_dir / "parse_ranking" / "rank_train.light"
    table, data = load_letor(path), open_dataset(path, rows_per_part=500)
    assert (data.n_features, data.source.dense) == (table.n_features, False)
    found = sp.vstack([part.X for part in data], format="csr")
    assert (found != table.X).nnz == 0
    assert np.array_equal(np.concatenate([part.y for part in data]), table.y)
