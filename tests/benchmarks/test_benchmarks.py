"""The benchmarks' clock, memory meter, table and runner: what a figure in the table means."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


def test_runs_take_turns_and_medians_are_reported(monkeypatch):
    from benchmarks import _harness

    now = [0.0]
    monkeypatch.setattr(_harness.time, "perf_counter", lambda: now[0])
    takes = {"a": iter([9.0, 1.0, 30.0, 2.0]), "b": iter([9.0, 50.0, 1.0, 40.0])}
    order = []

    def run(name):
        order.append(name)
        now[0] += next(takes[name])

    # The first, slow run of each is the warm-up.
    assert _harness.alternate(lambda: run("a"), lambda: run("b"), repeats=3) == [2.0, 40.0]
    assert order == ["a", "b"] * 4
    takes["a"] = iter([3.0])
    assert _harness.alternate(lambda: run("a"), repeats=1, warm_up=False) == [3.0]


def test_a_goal_is_judged_in_the_right_direction():
    from benchmarks._harness import at_most, context, faster, skipped, within

    assert at_most("j", 1.5, "r", 1.0, 1.6)["met"] is True
    assert at_most("j", 1.7, "r", 1.0, 1.6)["met"] is False
    assert at_most("j", 1.5, "r", 1.0, 1.6)["ratio"] == 1.5
    assert faster("j", 0.1, "r", 6.0, 50.0)["met"] is True
    assert faster("j", 0.2, "r", 6.0, 50.0)["met"] is False
    assert faster("j", 0.1, "r", 6.0, 50.0)["ratio"] == pytest.approx(60.0)
    assert within("j", 0.9, 1.0)["met"] is True
    assert within("j", 1.1, 1.0)["met"] is False
    assert context("j", 1.0, "r", 2.0)["met"] is None
    assert skipped("j", "r", "not there")["goal"] == "skipped: not there"


def test_every_job_gives_the_columns_of_the_table():
    from benchmarks.__main__ import table
    from benchmarks._harness import at_most, faster, skipped

    lines = [
        at_most("fit", 0.5, "numpy X'X", 0.4, 1.6),
        faster("cross-validation", 0.1, "RLScore", 3.0, 50.0),
        skipped("pairs", "RLScore", "not importable"),
    ]
    rows = table(lines).splitlines()
    assert rows[0].split() == ["job", "ours", "rival", "or", "limit", "its", "ratio", "goal", "met"]
    assert rows[2].split() == ["fit", "0.5", "s", "numpy", "X'X", "0.4", "s", "1.25", "at", "most", "1.6x", "yes"]
    assert rows[3].split()[-1] == "NO"
    assert "skipped: not importable" in rows[4]
    assert len({len(row) for row in rows}) == 1


def test_memory_above_the_data_is_what_the_work_takes(tmp_path, monkeypatch):
    """A job that makes a copy is seen to, one that works in blocks is not."""
    from benchmarks._harness import peak_above

    (tmp_path / "eater.py").write_text(
        "import numpy as np\n"
        "def warm_up(): np.ones(10) * 2\n"
        "def load(n): return np.ones(n)\n"
        "def copy(X): return X * 2.0\n"
        "def blocks(X): return sum(float((X[i : i + 4096] * 2.0).sum()) for i in range(0, len(X), 4096))\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    entries = 8_000_000
    assert peak_above("eater", "load", "copy", [entries]) == pytest.approx(8.0 * entries, rel=0.1)
    assert abs(peak_above("eater", "load", "blocks", [entries])) < 0.1 * 8.0 * entries
    with pytest.raises(RuntimeError, match="failed"):
        peak_above("eater", "load", "nothing_of_that_name", [10])


def test_problems_are_what_they_are_called():
    from benchmarks._data import problem

    p = problem(3000, 24, 50, offset=1e7)
    assert p.X.shape == (3000, 24)
    assert len(np.unique(p.qid)) == 50
    assert set(np.unique(p.y)) == {0.0, 1.0, 2.0, 3.0, 4.0}
    assert (np.abs(p.X.mean(axis=0) - 1e7) < 1e3).all()
    lengths = np.bincount(problem(3000, 4, 50, even=True).qid)
    assert (lengths == 60).all()
    assert problem(100, 4, 5, dtype="float32").X.dtype == np.float32


@pytest.mark.slow
def test_a_job_runs_apart_and_its_lines_are_kept(tmp_path):
    out = tmp_path / "lines.json"
    command = [sys.executable, "-m", "benchmarks", "letor_size", "leave_pair_out", "--quick", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert found["quick"] is True
    assert [line["job"] for line in found["lines"] if "one alpha" in line["job"]]
    assert all(line["met"] is None for line in found["lines"])
    for line in found["lines"]:
        assert line["job"] in done.stdout
    unknown = subprocess.run([sys.executable, "-m", "benchmarks", "nothing"], cwd=ROOT, capture_output=True, text=True)
    assert unknown.returncode == 2
    assert "unknown job nothing" in unknown.stderr
