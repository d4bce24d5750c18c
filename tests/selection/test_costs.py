"""What is said of a fit's time and memory before it begins."""

from __future__ import annotations

import ctypes
import re
import resource
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

from rankrls import (
    CGRankRLS,
    CoRankRLS,
    InputError,
    InputWarning,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    SparseRankRLSCV,
    TransductiveRankRLS,
    TransductiveRankRLSCV,
)
from rankrls.model_selection import (
    leave_pair_out,
    leave_preference_out,
    leave_query_out,
    tournament_leave_pair_out,
)
from rankrls.selection import costs, progress
from rankrls.selection.costs import Cost, Speed, cheaper, check_affordable, dense_cost, free_memory
from tests.processes import processes
from tests.refusals import Refusal

GIB = 2.0**30


_MMAP_THRESHOLD = -3
"""What malloc.h calls M_MMAP_THRESHOLD."""


def _data(m: int = 1800, n: int = 3) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(m, n)), rng.integers(0, 3, m).astype(float), np.repeat(np.arange(m // 20), 20)


def _partly_known(model: Any, y: Any, qid: Any) -> Any:
    """The labels of every other query only, for models that learn from the others too."""
    learns_unscored = isinstance(model, CoRankRLS | TransductiveRankRLS | TransductiveRankRLSCV)
    return np.where(qid % 2 == 0, y, np.nan) if learns_unscored else y


@pytest.fixture
def short_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "free_memory", lambda: 1e3)
    monkeypatch.setattr(costs, "SURELY_SHORT", 0.0)


def test_what_does_not_fit_is_refused_before_any_matrix_is_made() -> None:
    cost = dense_cost(50_000, 100, np.full(2500, 20), 21)
    with pytest.raises(InputError) as caught:
        check_affordable(cost, free=16 * GIB, remedy=cheaper(False))
    error = caught.value
    assert error.parameter == "kernel"
    assert "SparseRankRLSCV" in error.remedy
    assert "50000" in str(error)
    assert "16 GiB" in str(error)
    # 2.5 matrices of 50000 x 50000 numbers, and a mean of each query
    needed = (2.5 * 50_000**2 + 2500 * 50_000) * 8 / GIB
    assert f"{needed:.2g} GiB" in str(error)


@pytest.mark.parametrize(("seconds", "free", "warns"), [(29.0, 100.0, False), (31.0, 100.0, True), (1.0, 1.9, True)])
def test_long_and_large_fits_are_announced(seconds: float, free: float, warns: bool) -> None:
    cost = Cost(cubes=1e12, bytes=GIB, matrix=10_000)
    speed = Speed(product=0.0, cube=seconds / 1e12)
    if not warns:
        check_affordable(cost, speed=speed, free=free * GIB, remedy=cheaper(False))
        return
    with pytest.warns(InputWarning, match=re.escape("10000")) as caught:
        check_affordable(cost, speed=speed, free=free * GIB, remedy=cheaper(False))
    assert caught[0].message.parameter == "kernel"
    assert "SparseRankRLSCV" in caught[0].message.remedy


@pytest.mark.parametrize("model", [RankRLS(kernel="rbf"), RankRLSCV(kernel="rbf"), RankRLSCV(kernel=("linear", "rbf"))])
@pytest.mark.usefixtures("short_of_memory")
def test_estimators_refuse_a_matrix_that_does_not_fit(model: Any) -> None:
    X, y, qid = _data()
    with pytest.raises(InputError, match="does not fit") as caught:
        model.fit(X, y, qid=qid)
    assert caught.value.parameter == "kernel"
    with pytest.raises(InputError, match="does not fit"):
        model.fit_pairs(X, [0, 2, 4], [1, 3, 5])
    assert not hasattr(model, "n_queries_")


@pytest.mark.parametrize(
    ("model", "instead"),
    [
        (RankSVM(kernel="rbf"), "n_basis"),
        (RankSVMCV(kernel="rbf"), "n_basis"),
        (RankSVM(kernel="rbf", n_basis=600), "n_basis"),
        (TransductiveRankRLS(kernel="rbf"), "n_basis"),
        (TransductiveRankRLSCV(kernel="rbf"), "n_basis"),
        (CoRankRLS(kernel="rbf", n_views=2), "n_views"),
        (RankingPursuit(5), "cache_size"),
        (RankingPursuitCV(5, kernel=("rbf", "laplacian")), "cache_size"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("short_of_memory")
def test_other_losses_and_pursuits_refuse_it_with_what_they_have_instead(model: Any, instead: str) -> None:
    X, y, qid = _data(600)
    labels = _partly_known(model, y, qid)
    with Refusal("does not fit", parameter="kernel", remedy=instead):
        model.fit(X, labels, qid=qid)
    assert not hasattr(model, "n_queries_")


@pytest.mark.parametrize(
    "model",
    [
        RankSVM(),
        RankSVM(kernel="rbf", n_basis=20),
        RankingPursuit(3, dictionary="features"),
        RankingPursuit(2, cache_size=0),
        TransductiveRankRLS(kernel="rbf", n_basis=20),
    ],
    ids=str,
)
@pytest.mark.usefixtures("short_of_memory")
def test_they_need_no_such_matrix_with_it(model: Any) -> None:
    X, y, qid = _data(100)
    labels = _partly_known(model, y, qid)
    assert model.fit(X, labels, qid=qid).n_queries_ == 5


@pytest.mark.usefixtures("short_of_memory")
def test_held_out_scores_refuse_it_too() -> None:
    X, y, qid = _data(60)
    model = RankRLS(kernel="rbf")
    for hold_out in (
        lambda: leave_query_out(model, X, y, qid=qid),
        lambda: leave_pair_out(model, X, y, qid=qid),
        lambda: leave_preference_out(model, X, [0, 2, 4], [1, 3, 5]),
        lambda: tournament_leave_pair_out(model, X, y > 0),
    ):
        with pytest.raises(InputError, match="does not fit"):
            hold_out()


@pytest.mark.usefixtures("short_of_memory")
def test_a_linear_model_of_many_features_is_told_of_conjugate_gradients() -> None:
    X, y, qid = _data(400, 500)
    with pytest.raises(InputError, match="does not fit") as caught:
        RankRLSCV().fit(X, y, qid=qid)
    assert "CGRankRLS" in caught.value.remedy


@pytest.mark.parametrize("model", [RankRLSCV(), SparseRankRLSCV(n_basis=20), CGRankRLS()])
@pytest.mark.usefixtures("short_of_memory")
def test_models_without_such_a_matrix_are_never_refused(model: Any) -> None:
    X, y, qid = _data()
    assert model.fit(X, y, qid=qid).n_queries_ == 90


def test_small_fits_are_not_measured_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Speed, "measured", lambda: pytest.fail("measured"))
    X, y, qid = _data(600)
    RankRLSCV(kernel="rbf").fit(X, y, qid=qid)


def test_the_system_says_what_is_free() -> None:
    free = free_memory()
    assert free is None or 1e6 < free < 1e15


def test_costs_add_up_in_time_and_not_in_memory() -> None:
    total = Cost(1.0, 2.0, 30.0, 4) + Cost(10.0, 20.0, 3.0, 40)
    assert total == Cost(11.0, 22.0, 30.0, 40)
    assert total.times(3) == Cost(33.0, 66.0, 30.0, 40)
    assert Speed(2.0, 3.0).seconds(total) == 11.0 * 2.0 + 22.0 * 3.0


def _peak(model: Any) -> float:
    """What this process holds at most while the model is fitted, in matrices of all items."""
    ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 2**17)  # what is freed goes back to the system
    X, y, qid = _data(2100, 10)  # more than two blocks: what is smaller has temporaries as large as itself
    y = _partly_known(model, y, qid)
    model.fit(X[:800], y[:800], qid=qid[:800])  # compiled loops, buffers of BLAS
    base, most, done = _held(), [0], threading.Event()

    def watch() -> None:
        while not done.is_set():
            most.append(_held())
            time.sleep(0.001)

    thread = threading.Thread(target=watch)
    thread.start()
    model.fit(X, y, qid=qid)
    done.set()
    thread.join()
    return (max(most) - base) / (8 * len(y) ** 2)


def _held() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("model", "matrices"),
    [
        (RankRLS(kernel="rbf"), 2.0),
        (RankRLSCV(kernel="rbf"), 2.55),
        (RankRLSCV(kernel="rbf", gamma=(0.05, 0.1)), 2.55),
        (RankRLSCV(kernel="rbf", ties=("include", "exclude")), 2.55),
        (RankSVM(kernel="rbf"), 3.0),
        (TransductiveRankRLS(kernel="rbf"), 3.75),
        (RankingPursuit(5), 1.0),
        (CoRankRLS(kernel="rbf", n_views=2, mu=(1.0, 10.0)), 12.0),
    ],
    ids=str,
)
def test_a_fit_holds_no_more_matrices_than_are_announced(model: Any, matrices: float) -> None:
    with ProcessPoolExecutor(1, mp_context=processes()) as pool:
        held = pool.submit(_peak, model).result()
    # beside them what does not grow as fast: scores of 21 values, a mean of each query, buffers of threads
    assert held < matrices + 0.6


def test_a_search_says_how_far_it_has_come(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, qid = _data(200)
    steps: list[Any] = []
    RankRLSCV(ties=("include", "exclude"), kernel=("linear", "rbf"), verbose=steps.append).fit(X, y, qid=qid)
    assert [(step.done, step.total) for step in steps] == [(k, 4) for k in range(5)]
    scores = [step.score for step in steps[1:]]
    assert scores == sorted(scores, reverse=True)  # the best disagreement so far
    assert all(step.left > 0.0 for step in steps[:-1])
    assert steps[-1].left == 0.0
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    RankRLSCV(verbose=1).fit(X, y, qid=qid)
    out, err = capsys.readouterr()
    assert not out
    assert "RankRLSCV: 1 of 1 candidates, best so far" in err
    RankRLSCV().fit(X, y, qid=qid)
    assert capsys.readouterr() == ("", "")
