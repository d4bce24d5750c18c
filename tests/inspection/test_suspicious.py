"""Features that look like ids, and features that were made from the labels, against counting by hand."""

import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls.inspection import suspicious_features


def orders_all(x, y, qid):
    """Whether x, or its reverse, puts every pair of different labels of a query in order."""
    signs = {
        np.sign((x[i] - x[j]) * (y[i] - y[j]))
        for i in range(len(y))
        for j in range(i)
        if qid[i] == qid[j] and y[i] != y[j]
    }
    return signs in ({1.0}, {-1.0})


@pytest.mark.parametrize("seed", range(5))
def test_leaks_are_those_that_order_every_pair(seed):
    rng = np.random.default_rng(seed)
    y, qid = rng.integers(0, 4, 90).astype(float), rng.integers(0, 3, 90)
    missing = np.where(rng.random(90) < 0.1, np.nan, y)
    noisy = y + 0.6 * rng.normal(size=90)
    X = np.column_stack([y * 3 - 7, -y + 100 * qid, rng.normal(size=90), noisy, y // 2, missing])
    y[rng.integers(0, 90, 5)] = np.nan
    known = ~np.isnan(y)
    expected = [k for k in range(6) if orders_all(X[known, k], y[known], qid[known])]
    assert suspicious_features(X, y, qid).leaks == tuple(expected) == (0, 1)


def test_ids_are_whole_numbers_that_seldom_repeat():
    rng = np.random.default_rng(0)
    count = 60
    columns = {
        "clicks": rng.integers(0, 9, count),
        "userId": rng.permutation(9000)[:count],
        "stock": rng.permutation(9000)[:count],
        "place": rng.permutation(count) + 5,
        "key": rng.permutation(9000)[:count] + 0.5,
        "product_id": np.repeat(rng.permutation(9000)[: count // 2], 2),
        "brand_id": rng.integers(0, 9, count),
    }
    X = np.column_stack(list(columns.values())).astype(float)
    assert suspicious_features(X, feature_names=[*columns]).ids == (1, 3, 5)
    assert suspicious_features(X).ids == ()
    assert suspicious_features(X[:49], feature_names=[*columns]).ids == ()


def test_few_pairs_say_nothing():
    y = np.r_[np.ones(3), np.zeros(60)]
    assert suspicious_features(y[:, None], y).leaks == ()
    assert suspicious_features(y[:, None], np.r_[np.ones(4), np.zeros(59)]).leaks == ()
    assert suspicious_features(np.c_[y + 1], np.r_[np.ones(3), np.zeros(60)] * 2, np.zeros(63)).leaks == ()
    enough = np.r_[np.ones(10), np.zeros(60)]
    assert suspicious_features(enough[:, None], enough).leaks == (0,)


def test_leaks_are_searched_in_the_first_queries():
    y = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], 3_000)
    X = np.column_stack([y, y, y])
    X[-1, 1] = -1.0  # a later query
    X[39, 2] = -1.0  # the first one
    assert suspicious_features(X, y, np.arange(24_000) // 40).leaks == (0, 1)
    of_one_query = np.sort(y)
    assert suspicious_features(of_one_query[:, None], of_one_query).leaks == (0,)


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ((np.zeros((60, 1)), np.zeros(59)), Refusal("60 rows", parameter="y")),
        ((np.zeros((60, 1)), np.zeros(60), [1, 2]), Refusal("2 entries", parameter="qid")),
        ((np.zeros((60, 1)), None, None, ["a", "b"]), Refusal("2 names", parameter="feature_names")),
    ],
)
def test_what_is_refused(given, refusal):
    X, *rest = given
    names = {"feature_names": rest.pop()} if len(rest) == 3 else {}
    with refusal:
        suspicious_features(X, *rest, **names)
