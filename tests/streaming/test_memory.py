"""Memory does not grow with the rows."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow
ROWS = 40_000
JOBS = {
    "leave-query-out": "RankRLSCV(scoring='ndcg@10').fit_dataset(data)",
    "comparison": "query_values([a, b], data, [Measure('map')])",
    "scores": "[len(part) for part in predict(a, data)]",
}
SCRIPT = """
    import json, resource, sys
    from rankrls import RankRLS, RankRLSCV
    from rankrls.metrics import Measure
    from rankrls.io import open_dataset
    from rankrls.streaming import predict, query_values
    small = open_dataset(sys.argv[1], rows_per_part=10_000)
    a, b = RankRLS().fit_dataset(small), RankRLS(alpha=10.0).fit_dataset(small)
    peaks = []
    for path in sys.argv[1:]:
        data = open_dataset(path, rows_per_part=10_000)
        JOB
        peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    print(json.dumps(peaks))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Shards, and eight times as many."""
    home, rng = tmp_path_factory.mktemp("shards"), np.random.default_rng(0)
    for times in (1, 8):
        (home / str(times)).mkdir()
        for k in range(times):
            X = rng.normal(size=(ROWS, 30)).astype(np.float32)
            qid = np.arange(ROWS) // 20 + k * ROWS
            y = np.digitize(X[:, 0] + rng.normal(size=ROWS), [0.0, 1.0]).astype(float)
            columns = {f"f{j}": X[:, j] for j in range(30)}
            pq.write_table(pa.table({"qid": qid, "label": y, **columns}), home / str(times) / f"{k}.parquet")
    return [home / "1", home / "8"]


@pytest.mark.parametrize("job", JOBS)
def test_eight_times_the_rows_take_the_same_memory(job, folders):
    """The peak of a process after the small data, and after the large ones."""
    script = textwrap.dedent(SCRIPT).replace("JOB", JOBS[job])
    done = subprocess.run([sys.executable, "-c", script, *map(str, folders)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    small, large = json.loads(done.stdout)
    assert large <= 1.2 * small
