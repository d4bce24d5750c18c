"""The benchmarks' clock, memory meter, table and runner: what a figure in the table means."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


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


@pytest.mark.parametrize("folder", ["benchmarks", "comparisons", "fuzzing", "papers"])
def test_every_module_beside_the_library_imports_names_that_it_has(folder):
    """A renamed function is noticed here, and not when somebody measures again."""
    names = sorted(path.stem for path in (ROOT / folder).glob("*.py") if not path.stem.startswith("__"))
    assert names
    program = f"import importlib\nfor name in {names!r}:\n    importlib.import_module('{folder}.' + name)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
