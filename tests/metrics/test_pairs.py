"""Measures over pairs against enumeration, scipy and scikit-learn."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import kendalltau
from tests.refusals import Refusal

from rankrls.metrics import Measure
from rankrls.metrics._table import Chunk, count_pairs

TOLERANCE = 64 * np.finfo(float).eps


def enumerate_pairs(y, f, w=None, *, tied_labels="ignore"):
    """(errors, pairs) of one query, by the 2007 paper's d, pair by pair."""
    w = np.ones(len(y)) if w is None else w
    errors = pairs = 0.0
    for i, j in combinations(range(len(y)), 2):
        if y[i] == y[j] and tied_labels == "ignore":
            continue
        errors += w[i] * w[j] * 0.5 * abs(np.sign(y[i] - y[j]) - np.sign(f[i] - f[j]))
        pairs += w[i] * w[j]
    return errors, pairs


def random_queries(rng, *, queries=12, longest=9, labels=3, values=4):
    sizes = rng.integers(1, longest + 1, queries)
    qid = np.repeat(np.arange(queries), sizes)
    m = len(qid)
    mixed = rng.permutation(m)
    y = rng.integers(0, labels, m).astype(float)
    f = rng.integers(0, values, m) / 2.0
    return y, f, rng.uniform(0.0, 2.0, m) * (rng.random(m) > 0.1), qid[mixed]


def in_order_of_appearance(qid):
    return list(dict.fromkeys(qid.tolist()))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tied_labels", ["ignore", "half"])
@pytest.mark.parametrize("weighted", [False, True])
def test_disagreement_is_the_enumerated_one(seed, tied_labels, weighted):
    y, f, w, qid = random_queries(np.random.default_rng(seed))
    w = w if weighted else None
    counts = [
        enumerate_pairs(y[qid == q], f[qid == q], None if w is None else w[qid == q], tied_labels=tied_labels)
        for q in in_order_of_appearance(qid)
    ]
    expected = np.array([e / n if n else np.nan for e, n in counts])
    data = {"qid": qid, "sample_weight": w}
    measure = Measure("disagreement", tied_labels=tied_labels)
    np.testing.assert_allclose(measure(y, f, per_query=True, **data), expected, rtol=1e-12)
    assert measure(y, f, **data) == pytest.approx(np.nanmean(expected), rel=1e-12)


@pytest.mark.parametrize("longest", [0, 10**6], ids=["sorted", "compared"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "labels"), [(40, 3), (129, 30), (300, 10**6)])
def test_counts_of_every_kind_of_pair(n, labels, weighted, longest, monkeypatch):
    """Both ways of counting against every pair."""
    monkeypatch.setattr("rankrls.metrics._table.LONGEST", longest)
    monkeypatch.setattr("rankrls.metrics._table.LONGEST_WEIGHTED", longest)
    rng = np.random.default_rng(n + labels)
    y = np.concatenate([np.sort(rng.integers(0, labels, size)) for size in (70, n)]).astype(float)
    f = np.where(rng.random((3, n + 70)) < 0.5, rng.integers(0, 5, (3, n + 70)), rng.normal(size=(3, n + 70)))
    w = rng.uniform(size=n + 70) if weighted else None
    choices = Measure("disagreement").choices
    chunk = Chunk(f, y, w, np.array([0, 70, n + 70]), None, choices)
    counts = count_pairs(chunk, same=True)
    assert not count_pairs(chunk, same=False).apart.any()
    y, f, w = y[70:], f[:, 70:], np.ones(n) if w is None else w[70:]
    low, high = np.nonzero(y[:, None] < y)
    i, j = (k[i < j] for i, j in [np.nonzero(y[:, None] == y)] for k in (i, j))
    assert counts.ordered[1] == pytest.approx((w[low] * w[high]).sum())
    assert counts.tied[1] == pytest.approx((w[i] * w[j]).sum())
    for c in range(3):
        above = f[c, low] > f[c, high]
        not_below = f[c, low] >= f[c, high]
        assert counts.above[1, c] == pytest.approx((w[low] * w[high])[above].sum())
        assert counts.not_below[1, c] == pytest.approx((w[low] * w[high])[not_below].sum())
        apart = f[c, i] != f[c, j]
        assert counts.apart[1, c] == pytest.approx((w[i] * w[j])[apart].sum())


@pytest.mark.parametrize("seed", range(4))
def test_kendall_tau_is_scipys(seed):
    y, f, _, qid = random_queries(np.random.default_rng(seed))
    expected = np.array(
        [
            kendalltau(y[qid == q], f[qid == q]).statistic if np.sum(qid == q) > 1 else np.nan
            for q in in_order_of_appearance(qid)
        ]
    )
    assert 0 < np.isnan(expected).sum() < len(expected)
    np.testing.assert_allclose(Measure("kendall_tau")(y, f, qid=qid, per_query=True), expected, atol=1e-14)
    assert Measure("kendall_tau")(y, f, qid=qid) == pytest.approx(np.nanmean(expected), rel=1e-12)
    with_zero = np.nan_to_num(expected, nan=0.0)
    assert Measure("kendall_tau", empty=0.0)(y, f, qid=qid) == pytest.approx(with_zero.mean(), rel=1e-12)


@pytest.mark.parametrize("measure", [Measure("disagreement"), Measure("pair_accuracy")])
def test_nothing_to_judge_is_an_error(measure):
    for y, qid, w in (
        ([1, 1, 1], None, None),
        ([1, 2, 3], [0, 1, 2], None),
        ([1, 2, 3], None, [1, 0, 0]),
    ):
        with Refusal("no query", "two items"):
            measure(y, [1.0, 2.0, 3.0], qid=qid, sample_weight=w)
        assert np.isnan(measure(y, [1.0, 2.0, 3.0], qid=qid, sample_weight=w, per_query=True)).all()
    with Refusal("two different scores"):
        Measure("kendall_tau")([1, 2, 3], [0.0, 0.0, 0.0])


def test_constant_scores_with_uneven_weights_have_no_tau():
    w = np.random.default_rng(0).uniform(size=5000)
    qid = np.repeat(np.arange(100), 50)
    tau = Measure("kendall_tau")(np.arange(5000.0), np.zeros((5000, 1)), qid=qid, sample_weight=w, per_query=True)
    assert np.isnan(tau).all()


@given(st.integers(0, 10**6))
def test_pair_squared_error_is_that_of_listed_pairs(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 12))
    y, f, w, qid = rng.normal(size=m) + 5, rng.normal(size=(m, 2)), rng.uniform(0, 2, m), rng.integers(0, 3, m)
    found = Measure("pair_squared_error")(y, f, qid=qid, sample_weight=w, per_query=True)
    for k, q in enumerate(dict.fromkeys(qid)):
        i, j = np.array(list(combinations(np.flatnonzero(qid == q), 2)), dtype=int).reshape(-1, 2).T
        error = (((y[i] - y[j])[:, None] - (f[i] - f[j])) ** 2 * (w[i] * w[j])[:, None]).sum(axis=0)
        expected = error / (w[i] * w[j]).sum() if len(i) else np.full(2, np.nan)
        np.testing.assert_allclose(found[k], expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_tau_of_equal_scores_is_not_defined_whatever_rounding_leaves(seed):
    rng = np.random.default_rng(seed)
    y = np.r_[0, 1, rng.integers(0, 3, 9)]
    tau = Measure("kendall_tau")
    with Refusal("two different scores"):
        tau(y, np.ones(11), sample_weight=rng.random(11))
