"""The compiled loops: sorting, tiling, threads."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rankrls._compiled.pair_counts import tiles
from rankrls._compiled.sorting import sort_descending
from rankrls._queries import query_layout
from rankrls.metrics import resolve_measure


@pytest.mark.parametrize("n", [0, 1, 2, 11, 12, 13, 24, 25, 100, 1000, 4097])
@pytest.mark.parametrize("distinct", [1, 3, 10**6])
def test_sorting_is_numpys_stable_sort(n, distinct):
    values = np.random.default_rng(n + distinct).integers(0, distinct, n) - distinct / 2
    keys, rows = values.copy(), np.arange(n, dtype=np.uint64)
    sort_descending(keys, rows, np.empty(n), np.empty(n, np.uint64), n)
    expected = np.argsort(-values, kind="stable")
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(keys, values[expected])


@pytest.mark.parametrize("n", [64, 200, 1000])
@pytest.mark.parametrize("kind", ["one far away", "infinite", "tiny range", "huge range", "two clusters"])
def test_sorting_values_that_are_not_spread_evenly(n, kind):
    values = np.random.default_rng(n).normal(size=n)
    values[n // 3 :: 7] = values[0]
    if kind == "one far away":
        values[n // 2] = 1e300
    elif kind == "infinite":
        values[[3, n // 2]] = np.inf, -np.inf
    elif kind == "tiny range":
        values *= 5e-324 * n
    elif kind == "huge range":
        values *= 1e308 / np.abs(values).max()
    else:
        values[: n // 2] += 1e12
    keys, rows = values.copy(), np.arange(n, dtype=np.uint64)
    sort_descending(keys, rows, np.empty(n), np.empty(n, np.uint64), n)
    expected = np.argsort(-values, kind="stable")
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(keys, values[expected])


@pytest.mark.parametrize("n", [0, 1, 2, 13, 100, 4097])
@pytest.mark.parametrize("distinct", [1, 3, 10**6])
@pytest.mark.parametrize("swaps", [0, 3, 10**4])
def test_sorting_again_keeps_the_order_of_what_is_equal(n, distinct, swaps):
    """What is nearly sorted, and what is not sorted at all."""
    rng = np.random.default_rng(n + distinct + swaps)
    values = np.sort(rng.integers(0, distinct, n) - distinct / 2)[::-1].copy()
    for i in rng.integers(0, max(n - 1, 1), swaps if n > 1 else 0):
        values[[i, i + 1]] = values[[i + 1, i]]
    keys, rows = values.copy(), np.arange(n, dtype=np.uint64)
    sort_descending(keys, rows, np.empty(n), np.empty(n, np.uint64), n)
    expected = np.argsort(-values, kind="stable")
    np.testing.assert_array_equal(rows, expected)
    np.testing.assert_array_equal(keys, values[expected])


def test_sorting_leaves_what_lies_beyond_n():
    keys, rows = np.arange(40.0), np.arange(40, dtype=np.uint64)
    sort_descending(keys, rows, np.empty(40), np.empty(40, np.uint64), 30)
    np.testing.assert_array_equal(keys, [*range(29, -1, -1), *range(30, 40)])


@pytest.mark.parametrize("sizes", [[5], [1, 1, 1], [1000, 1, 1], [3] * 50])
@pytest.mark.parametrize("columns", [1, 2, 21])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_tiles_cover_every_query_and_column_once(sizes, columns, threads, monkeypatch):
    monkeypatch.setenv("RANKRLS_NUM_THREADS", str(threads))
    covered = np.zeros((len(sizes), columns), dtype=int)
    for a, b, c, d in tiles(np.concatenate(([0], np.cumsum(sizes))), columns):
        covered[a:b, c:d] += 1
    np.testing.assert_array_equal(covered, 1)


def _case():
    rng = np.random.default_rng(0)
    y, S = rng.integers(0, 3, 3000).astype(float), rng.normal(size=(3000, 4))
    return y, S, query_layout(rng.integers(0, 40, 3000), 3000)


def _judge(name):
    return resolve_measure(name).per_query(*_case())


NAMES = ["disagreement", "tau", "ndcg@10", "map"]


@pytest.mark.parametrize("name", [*NAMES, "p@5", "mrr", "pair_accuracy"])
@pytest.mark.parametrize("kind", ["near", "unlike", "tied"])
def test_a_column_is_judged_as_if_it_were_alone(name, kind):
    """Each column is sorted from the order of the last one, which says nothing about items with equal scores."""
    rng = np.random.default_rng(1)
    y, S, layout = _case()
    if kind == "near":
        S = S[:, :1] + 0.05 * rng.normal(size=S.shape)
    elif kind == "tied":
        S = rng.integers(0, [2, 5, 1, 30], S.shape).astype(float)
    measure = resolve_measure(name)
    alone = np.hstack([measure.per_query(y, S[:, [k]], layout) for k in range(S.shape[1])])
    np.testing.assert_array_equal(measure.per_query(y, S, layout), alone)


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_threads_changes_nothing(name, monkeypatch):
    found = []
    for threads in ("1", "3", "8"):
        monkeypatch.setenv("RANKRLS_NUM_THREADS", threads)
        found.append(_judge(name))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_four_threads_at_once():
    alone = [_judge(name) for name in NAMES]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(_judge, NAMES * 3))
    for i, values in enumerate(together):
        np.testing.assert_array_equal(values, alone[i % 4])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child():
    alone = _judge("ndcg@10")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(_judge, ("ndcg@10",)), alone)
