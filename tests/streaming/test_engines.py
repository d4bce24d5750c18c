"""Threads and processes of this machine give the same bits, and a worker that dies is one error, not a wait."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from tests.processes import processes
from tests.refusals import Refusal
from tests.streaming.engines import MODELS, Counter, bits, counted, small


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, mp_context=processes()) as found:
        yield found


@pytest.mark.parametrize("name", MODELS)
def test_threads_change_no_bit(name, monkeypatch):
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "1")
    expected = bits(MODELS[name]().fit_dataset(small()))
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "3")
    assert bits(MODELS[name]().fit_dataset(small())) == expected
    with ThreadPoolExecutor(2) as threads:
        assert bits(MODELS[name]().fit_dataset(small(), executor=threads)) == expected


def test_a_worker_of_another_version(monkeypatch):
    """Whatever the engine, a leaf looks at the version that has sent it."""
    from rankrls.streaming.engine import _leaf

    with Refusal("0.0", parameter="executor", remedy="same"):
        _leaf("0.0", (None, small()), small().parts[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_processes_change_no_bit(name, pool):
    assert bits(MODELS[name]().fit_dataset(small(), executor=pool)) == bits(MODELS[name]().fit_dataset(small()))


@pytest.mark.slow
def test_a_pool_whose_worker_was_killed_ends_and_the_next_one_goes_on(tmp_path):
    """A pool of processes does not outlive a worker; what was finished is in the checkpoint."""
    (tmp_path / "count").mkdir()
    counter = Counter(tmp_path / "count", after=len(small().parts) + 3)
    given = {"checkpoint": tmp_path / "sums"}
    with ProcessPoolExecutor(2, mp_context=processes()) as mortal, pytest.raises(BrokenExecutor):
        MODELS["primal"]().fit_dataset(counted(counter), executor=mortal, **given)
    assert counter.killed
    before = counter.done
    model = MODELS["primal"]().fit_dataset(counted(counter), **given)
    assert counter.done - before <= len(small().parts)
    assert bits(model) == bits(MODELS["primal"]().fit_dataset(small()))
