"""A command that is killed at any step, interrupted or out of space leaves the old target or the new one."""

import subprocess
import sys

import pytest
from fuzzing.campaign import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and limits as Linux has them")


def test_some_trials():
    command = [sys.executable, "-m", "fuzzing.faults", "--minutes", "0.15", "--seed", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert " sound" in done.stdout
    assert "wrong" not in done.stdout
