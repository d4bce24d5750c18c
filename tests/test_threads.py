"""Threads of this package, of its callers, and forks between them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import rankrls._compiled as threads_module
from rankrls import RankRLS, RankRLSCV
from rankrls._compiled import (
    compiled,
    limited_threads,
    map_threads,
    n_threads,
    one_blas_thread,
)
from tests.refusals import Refusal

VARIABLES = ("RANKRLS_NUM_THREADS", "OMP_NUM_THREADS")


@pytest.fixture(autouse=True)
def several_threads_of_blas():
    """The other tests have one."""
    with threadpool_limits(3, user_api="blas"):
        threads_module._give_up_control()
        yield


@pytest.fixture
def no_limits(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_how_many_threads(no_limits):
    assert n_threads() == joblib.cpu_count()
    if hasattr(os, "sched_setaffinity"):
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(before)})
        try:
            assert n_threads() == 1
        finally:
            os.sched_setaffinity(0, before)
    assert n_threads() == joblib.cpu_count()
    no_limits.setenv("OMP_NUM_THREADS", "3")
    assert n_threads() == 3
    no_limits.setenv("OMP_NUM_THREADS", "5,2")  # one number for each level of nesting
    assert n_threads() == 5
    no_limits.setenv("RANKRLS_NUM_THREADS", "2")
    assert n_threads() == 2
    for useless in ("", "0", "-1", "many", "1.5"):
        no_limits.setenv("RANKRLS_NUM_THREADS", useless)
        assert n_threads() == 5


def test_results_come_in_order(no_limits):
    no_limits.setenv("RANKRLS_NUM_THREADS", "4")

    def slow_first(k):
        time.sleep(0.02 * (k == 0))
        return k * k

    assert map_threads(slow_first, range(9)) == [k * k for k in range(9)]
    assert map_threads(slow_first, iter([])) == []
    here = threading.get_ident()
    assert map_threads(lambda _: threading.get_ident(), [1]) == [here]  # one item needs no pool
    with limited_threads(1):
        assert map_threads(lambda _: threading.get_ident(), [1, 2, 3]) == [here] * 3
    both = threading.Barrier(2, timeout=60.0)
    assert {*map_threads(lambda _: both.wait(), [1, 2])} == {0, 1}  # they run at the same time


def test_the_first_error_is_raised(no_limits):
    no_limits.setenv("RANKRLS_NUM_THREADS", "3")
    done = []

    def work(k):
        if k in (1, 2):
            time.sleep(0.02 * (k == 1))
            raise ValueError(f"item {k}")
        done.append(k)

    with Refusal("item 1", kind=ValueError):  # of the first item, whichever failed first
        map_threads(work, range(80))
    before = len(done)
    assert before < 80
    time.sleep(0.02)
    assert len(done) == before  # nothing runs on behind the caller's back


def test_an_interruption_stops_between_blocks(no_limits):
    """Ctrl-C in a fit: the running blocks end, and no other one begins."""
    no_limits.setenv("RANKRLS_NUM_THREADS", "2")
    before, done = signal.signal(signal.SIGINT, signal.default_int_handler), []

    def work(k):
        if k == 1:
            signal.raise_signal(signal.SIGINT)  # noticed by the main thread
        time.sleep(0.05)
        done.append(k)

    try:
        with pytest.raises(KeyboardInterrupt):
            map_threads(work, range(200))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(done) < 10


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def overlapping(first, second):
    """What BLAS has while two threads of the caller limit it, the first one to come being the first one to go."""
    inside, seen = threading.Barrier(2, timeout=60.0), {}

    def outer():
        with limited_threads(first):
            inside.wait()
            inside.wait()

    thread = threading.Thread(target=outer)
    thread.start()
    inside.wait()
    with limited_threads(second):
        seen["both"] = set(blas_threads())
        inside.wait()
        thread.join()
        seen["one"] = set(blas_threads())
    return seen


@pytest.mark.parametrize(("first", "second"), [(2, 2), (1, 2), (2, 1), (1, 1)])
def test_overlapping_limits_restore_what_there_was(first, second):
    before = blas_threads()
    assert overlapping(first, second) == {"both": {min(first, second)}, "one": {second}}
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_forked_inside_a_limit_is_not_limited():
    before = blas_threads()
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with one_blas_thread():
        child = context.Process(target=lambda: sender.send(blas_threads()))
        child.start()
        assert receiver.poll(60)
        assert receiver.recv() == before
        child.join(60)
    assert blas_threads() == before


def test_limits_hold_for_the_blas_of_scipy_whenever_it_is_loaded():
    program = """
import threadpoolctl
from rankrls._compiled import one_blas_thread
with one_blas_thread():
    pass
import scipy.linalg
with one_blas_thread():
    print({pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"})
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "3", "OMP_NUM_THREADS": "3"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "{1}\n"


def some_data(m=600, n=12):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(m, n)), rng.integers(0, m // 12, m)
    return X, np.round(X[:, 0] + rng.normal(size=m)), qid


def learn(kind):
    """One run through everything that is threaded; what came out."""
    X, y, qid = some_data()
    if kind == "rbf":
        X, y, qid = X[:170], y[:170], qid[:170]
    model = RankRLSCV((0.1, 1.0, 10.0), ties="exclude", **({"kernel": "rbf"} if kind == "rbf" else {}))
    model.fit(X, y, qid=qid)
    alone = RankRLSCV((0.1, 1.0)).fit(X[:120], y[:120])
    plain = RankRLS(balance="pairs", kernel=kind).fit(X.astype(np.float32), y, qid=qid)
    pairs = RankRLS(kernel=kind).fit_pairs(X, np.arange(200) % 90, 90 + np.arange(200) % 77)
    parts = [m.predict(X) for m in (model, plain, pairs)]
    return np.concatenate(
        [*parts, model.held_out_scores_, alone.cv_results_["mean_score"], [model.score(X, y, qid=qid)]]
    )


@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_the_number_of_threads_changes_nothing_but_rounding(kind, no_limits):
    results = []
    for count in ("1", "2", "3", "7"):
        no_limits.setenv("RANKRLS_NUM_THREADS", count)
        results.append(learn(kind))
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_the_same_run_gives_the_same_bits(kind, no_limits):
    no_limits.setenv("RANKRLS_NUM_THREADS", "2")
    np.testing.assert_array_equal(learn(kind), learn(kind))


@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_four_threads_of_the_caller(kind, no_limits):
    no_limits.setenv("RANKRLS_NUM_THREADS", "2")
    before = blas_threads()
    expected = learn(kind)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(learn, [kind] * 8))
    for result in results:
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10)
    assert blas_threads() == before


def _learn_and_send(kind, pipe):
    pipe.send(learn(kind))
    pipe.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python's own advice against forking threads
@pytest.mark.parametrize("kind", ["linear", "rbf"])
def test_a_forked_child_fits_after_its_parent(kind):
    expected = learn(kind)
    context = multiprocessing.get_context("fork")
    for _ in range(2):
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_learn_and_send, args=(kind, sender))
        child.start()
        sender.close()
        assert receiver.poll(60), "the child hangs"
        np.testing.assert_allclose(receiver.recv(), expected, rtol=1e-10, atol=1e-10)
        child.join(60)
        assert child.exitcode == 0


def test_a_loop_whose_code_cannot_be_cached_is_compiled_all_the_same():
    namespace = {}
    exec("def double(x):\n    return 2 * x\n", namespace)  # has no file, hence no place for a cache
    assert compiled(namespace["double"])(21) == 42
