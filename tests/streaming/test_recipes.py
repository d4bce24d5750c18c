"""Engines that are not part of the library: the guide's code for them, as it stands there, where they are installed."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankrls import RankRLSCV
from rankrls.io import open_dataset
from tests.streaming.arrays import example

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "streaming.rst"
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def recipe(name):
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", GUIDE.read_text("utf-8"))
    (block,) = (textwrap.dedent(block) for block in blocks if f"class {name}" in block)
    return block


@pytest.fixture
def data(tmp_path):
    X, y, qid, _ = example(5, queries=40, rows=(5, 20), n=4)
    columns = {f"f{k}": X[:, k].astype(np.float32) for k in range(X.shape[1])}
    pq.write_table(pa.table({"qid": np.sort(qid), "label": y, **columns}), tmp_path / "rows.parquet")
    return open_dataset(tmp_path / "rows.parquet", rows_per_part=150)


def bits_of(recipe_name, data, **known):
    names = {"data": data, "RankRLSCV": RankRLSCV, **known}
    exec(compile(recipe(recipe_name), str(GUIDE), "exec"), names)
    model = names["model"]
    return model.coef_.tobytes(), model.cv_results_["mean_score"].tobytes()


def bits_here(data):
    assert len(data.parts) > 2
    model = RankRLSCV().fit_dataset(data)
    return model.coef_.tobytes(), model.cv_results_["mean_score"].tobytes()


def test_spark(data, monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.host", "127.0.0.1").config("spark.log.level", "ERROR").getOrCreate()
    try:
        assert bits_of("SparkExecutor", data, spark=spark) == bits_here(data)
    finally:
        spark.stop()


def test_ray(data):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        assert bits_of("RayExecutor", data) == bits_here(data)
    finally:
        ray.shutdown()
