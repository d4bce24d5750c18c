"""Without the optional packages: the core works, imports none of them, and the rest names its extra."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
IMPORTS = """
import sys
import rankrls, rankrls.cli
early = {"numpy", "scipy", "numba", "sklearn"} & set(sys.modules)
assert not early, f"imported before they are needed: {early}"
import sklearn.base  # which imports pandas itself, where that is installed
before = set(sys.modules)
from rankrls import *
from rankrls import comparison, export, inspection, io, metrics, model_selection, plots, preprocessing
late = {"matplotlib", "onnx", "pandas", "polars", "pyarrow"} & (set(sys.modules) - before)
assert not late, f"imported before they are needed: {late}"
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, encoding="utf-8", env={**os.environ})


def test_importing_is_cheap_and_pulls_in_nothing_optional():
    done = run("-c", IMPORTS)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_what_a_bare_installation_can_do():
    done = run(str(HERE / "bare.py"), "--block")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all well" in done.stdout
