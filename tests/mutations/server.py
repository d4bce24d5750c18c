"""Runs pytest in forked children, which find what is slow to import already there. It imports nothing of the project.

A line of input is a JSON list: the arguments of pytest, and a folder for compiled loops or null. The answer is the exit
code.
"""

import json
import os
import sys

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

for line in sys.stdin:
    arguments, loops = json.loads(line)
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(quiet, stream)
        if loops is not None:
            numba.config.CACHE_DIR = loops
        code = BROKEN
        try:
            code = pytest.main(arguments)
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
