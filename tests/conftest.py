"""Shared settings: they must be in place before numpy and scipy are imported."""

import gc
import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
# Matrices are small here, and xdist has a process for each core: more threads of BLAS would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Tests start many processes, each of which would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.pop("COLUMNS", None)  # xdist sets 80 for its workers; tables of results depend on it

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data sets, where there is one."""
    folder = os.environ.get("RANKRLS_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("RANKRLS_DATA does not name a folder of real data")
    return Path(folder)


def pytest_collection_finish():
    """Thousands of tests and their parameters stay to the end: no collection of garbage looks at them again."""
    gc.freeze()
