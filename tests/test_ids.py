"""Names of tests that may differ from process to process are refused when they are collected."""

import gzip
from types import SimpleNamespace

import pytest

from tests.conftest import differs_from_process_to_process, pytest_collection_modifyitems
from tests.refusals import Refusal


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (object(), "an address in memory"),
        (len, None),
        (lambda: None, "an address in memory"),
        (gzip.compress(b"content"), "raw bytes"),
        (b"\x1f\x8b\x08garbage", None),
        ("0x1f", None),
        (1e-300, None),
    ],
    ids=["object", "builtin", "lambda", "gzip", "few bytes", "number", "float"],
)
def test_what_is_refused(value, found):
    assert differs_from_process_to_process(f"test_x.py::test[{value!r}]") == found


def test_the_run_stops():
    items = [SimpleNamespace(nodeid="test_x.py::test[1]"), SimpleNamespace(nodeid=f"test_x.py::test[{object()}]")]
    pytest_collection_modifyitems(items[:1])
    with Refusal("address in memory", kind=pytest.UsageError):
        pytest_collection_modifyitems(items)
