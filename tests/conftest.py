"""Shared settings: they must be in place before scipy is imported."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")

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
