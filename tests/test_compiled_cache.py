"""The cache of compiled loops: a damaged, full or unwritable one costs time, and never a result."""

import importlib.util

import numba
import pytest

LOOP = """
from rankrls._compiled import compiled

@compiled
def tripled(x):
    total = 0.0
    for k in range(3):
        total += x
    return total
"""


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """``fresh()`` is the loop as a new process has it, with its machine code in a folder of the test's own."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "loops.py").write_text(LOOP)
    spec = importlib.util.spec_from_file_location("loops_of_a_test", tmp_path / "loops.py")

    def load():
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.tripled

    return load


def parts(tmp_path, ending):
    return [*(tmp_path / "cache").rglob(f"*.{ending}")]


DAMAGES = {
    "cut": lambda data: data[: len(data) // 2],
    "garbage": lambda data: b"\x80\x05garbage" * 30,
}


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_made_anew(ending, damage, fresh, tmp_path):
    fresh()(2.0)
    (path,) = parts(tmp_path, ending)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert fresh()(2.0) == 6.0
    again = fresh()
    assert again(2.0) == 6.0
    assert sum(again.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("damaged", [False, True])
def test_a_full_disk(damaged, fresh, tmp_path, monkeypatch):
    if damaged:
        fresh()(2.0)
        parts(tmp_path, "nbi")[0].write_bytes(b"")

    def full(self, path):
        raise OSError(28, "No space left on device", path)

    with monkeypatch.context() as patch:
        patch.setattr("numba.core.caching.IndexDataCacheFile._open_for_write", full)
        loop = fresh()
        assert [loop(2.0), loop(2)] == [6.0, 6.0]  # two compilations
