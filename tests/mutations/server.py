"""Runs pytest in forked children, which find what is slow to import already there. It imports nothing of the project.

A line of input is a JSON list: the arguments of pytest, and a folder for compiled loops or null. The answer is a JSON
list too: the exit code, and the first test that failed.
"""

import json
import os
import sys
from contextlib import suppress

os.environ |= {"SCIPY_ARRAY_API": "1", "OPENBLAS_NUM_THREADS": "1"}  # as tests/conftest.py, before numpy

import numba
import pandas as pd
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.optimize
import scipy.sparse.csgraph
import scipy.stats
import sklearn.linear_model
import sklearn.model_selection
import sklearn.pipeline
import sklearn.utils.estimator_checks

SHARED = (pd, pyarrow, scipy, sklearn)
BROKEN = 70
"""Exit code of a child in which pytest itself failed."""


class FirstFailure:
    """Writes the name of the first test that fails to a file."""

    def __init__(self, file: int) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self.file, report.nodeid.encode())


def run_pytest(arguments: list[str], loops: str | None, failure: int) -> None:
    """The life of a child."""
    code = BROKEN
    try:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(quiet, stream)
        if loops is not None:
            numba.config.CACHE_DIR = loops
        code = pytest.main(["-x", *arguments], plugins=[FirstFailure(failure)])
    finally:
        os._exit(code)


def serve() -> None:
    """Answer the lines of standard input."""
    for line in sys.stdin:
        answer, failure = os.pipe()
        child = os.fork()
        if child == 0:
            run_pytest(*json.loads(line), failure)
        os.close(failure)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with os.fdopen(answer) as file, suppress(BrokenPipeError):  # whoever asked may be gone
            print(json.dumps([code, file.read()]), flush=True)


if __name__ == "__main__":
    serve()
