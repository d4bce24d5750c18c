"""Examples in docstrings run as a reader would paste them: nothing is there but what they import."""

from importlib.util import find_spec

import pytest

# Dask comes with an extra: without it there is nothing to import these examples from.
collect_ignore_glob = [] if find_spec("distributed") else ["src/rankrls/dask/*"]


def pytest_collection_modifyitems(config, items):
    examples = [item for item in items if isinstance(item, pytest.DoctestItem)]
    for item in examples:
        item.dtest.globs = {"__name__": "__main__"}
    # A class that carries its public module is found in the public package too; it is run where it is defined.
    defined = {item.dtest.docstring for item in examples if ".__test__." in item.name}
    again = [item for item in examples if item.path.name == "__init__.py" and item.dtest.docstring in defined]
    config.hook.pytest_deselected(items=again)
    items[:] = [item for item in items if item not in again]
