"""Examples in docstrings run as a reader would paste them: nothing is there but what they import."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.dtest.globs = {"__name__": "__main__"}
