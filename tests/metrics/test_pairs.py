"""Measures over pairs against enumeration, scipy and scikit-learn."""

from dataclasses import fields
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kendalltau
from sklearn.metrics import roc_auc_score
from tests.refusals import Refusal

from rankrls._compiled.pair_counts import PairCounts, count_pairs
from rankrls._queries import query_layout
from rankrls.metrics import Measure, disagreement_error, kendall_tau, pair_accuracy, pair_squared_error


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
    options = {"qid": qid, "sample_weight": w, "tied_labels": tied_labels}
    np.testing.assert_allclose(disagreement_error(y, f, per_query=True, **options), expected, rtol=1e-12)
    assert disagreement_error(y, f, **options) == pytest.approx(np.nanmean(expected), rel=1e-12)
    pooled = sum(e for e, _ in counts) / sum(n for _, n in counts)
    assert disagreement_error(y, f, average="pair", **options) == pytest.approx(pooled, rel=1e-12)
    assert pair_accuracy(y, f, average="pair", **options) == pytest.approx(1 - pooled, rel=1e-12)


@pytest.mark.parametrize("labels", [2, 5, 24, 25, 60, 10**6])
@pytest.mark.parametrize("values", [1, 3, 10**6])
def test_one_long_query_with_few_and_many_labels(labels, values):
    rng = np.random.default_rng(labels + values)
    y, f = rng.integers(0, labels, 150) - 7.5, rng.integers(0, values, (150, 2)).astype(float)
    w = rng.uniform(size=150)
    for column, error in enumerate(disagreement_error(y, f, sample_weight=w)):
        e, n = enumerate_pairs(y, f[:, column], w)
        assert error == pytest.approx(e / n, rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("values", [5, 10**6])
@pytest.mark.parametrize(("n", "labels"), [(40, 3), (64, 10**6), (65, 10**6), (129, 30), (300, 150)])
def test_counts_of_every_kind_of_pair(n, labels, values, weighted):
    rng = np.random.default_rng(3)
    y, f = rng.integers(0, labels, n + 70).astype(float), rng.integers(0, values, (n + 70, 3)).astype(float)
    w = rng.uniform(size=n + 70) if weighted else np.ones(n + 70)
    # after another query, of which nothing may remain
    counts = count_pairs(y, f, np.arange(n + 70), np.array([0, 70, n + 70]), w if weighted else None)
    counts = PairCounts(*(getattr(counts, field.name)[1:] for field in fields(counts)))
    y, f, w = y[70:], f[70:], w[70:]
    i, j = np.triu_indices(n, 1)
    pair = w[i] * w[j]
    order, tied = y[i] != y[j], y[i] == y[j]
    assert counts.ordered[0] == pytest.approx(pair[order].sum())
    assert counts.tied[0] == pytest.approx(pair[tied].sum())
    for c in range(3):
        apart = f[i, c] != f[j, c]
        against = np.sign(f[i, c] - f[j, c]) == -np.sign(y[i] - y[j])
        assert counts.wrong[0, c] == pytest.approx(pair[order & apart & against].sum())
        assert counts.level[0, c] == pytest.approx(pair[order & ~apart].sum())
        assert counts.apart[0, c] == pytest.approx(pair[apart].sum())
        assert counts.tied_apart[0, c] == pytest.approx(pair[tied & apart].sum())


@pytest.mark.parametrize("n", [4096, 4097])
def test_very_long_queries_are_counted_as_by_weights(n):
    rng = np.random.default_rng(n)
    y, f = rng.integers(0, n // 2, n).astype(float), rng.integers(0, n, (n, 2)).astype(float)
    plain, weighted = (count_pairs(y, f, np.arange(n), np.array([0, n]), w) for w in (None, np.full(n, 0.5)))
    for field in fields(plain):
        np.testing.assert_array_equal(getattr(plain, field.name), 4.0 * getattr(weighted, field.name))


@pytest.mark.parametrize("seed", range(5))
def test_one_query_with_a_binary_label_is_one_minus_auc_weights_included(seed):
    rng = np.random.default_rng(seed)
    y, f = rng.integers(0, 2, 80), rng.integers(0, 30, 80).astype(float)
    w = rng.uniform(0.1, 3, 80)
    assert disagreement_error(y, f) == pytest.approx(1 - roc_auc_score(y, f), rel=1e-12)
    assert pair_accuracy(y, f, sample_weight=w) == pytest.approx(roc_auc_score(y, f, sample_weight=w), rel=1e-12)


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
    np.testing.assert_allclose(kendall_tau(y, f, qid=qid, per_query=True), expected, atol=1e-14)
    assert kendall_tau(y, f, qid=qid) == pytest.approx(np.nanmean(expected), rel=1e-12)
    with_zero = np.nan_to_num(expected, nan=0.0)
    assert kendall_tau(y, f, qid=qid, empty=0.0) == pytest.approx(with_zero.mean(), rel=1e-12)


def test_the_two_papers_variants_on_a_worked_example():
    # Pairs (2, 1), (2, 1'), (1, 1') with scores 3, 4, 1: one wrong, one right, one tied pair kept apart.
    y, f = [2, 1, 1], [3.0, 4.0, 1.0]
    assert disagreement_error(y, f) == 0.5
    assert disagreement_error(y, f, tied_labels="half") == pytest.approx(1.5 / 3)
    assert disagreement_error(y, [3.0, 1.0, 1.0], tied_labels="half") == 0.0
    assert disagreement_error(y, [0.0, 0.0, 0.0]) == 0.5
    assert disagreement_error(y, [0.0, 0.0, 0.0], tied_labels="half") == pytest.approx(1 / 3)


def test_single_items_and_tied_labels_are_not_judged():
    y, f, qid = [1, 2, 2, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5], ["one", "tied", "tied", "two", "two"]
    np.testing.assert_array_equal(disagreement_error(y, f, qid=qid, per_query=True), [np.nan, np.nan, 0.0])
    assert disagreement_error(y, f, qid=qid) == 0.0
    np.testing.assert_array_equal(
        disagreement_error(y, f, qid=qid, per_query=True, tied_labels="half"), [np.nan, 0.5, 0.0]
    )


@pytest.mark.parametrize("measure", [disagreement_error, pair_accuracy])
def test_nothing_to_judge_is_an_error(measure):
    for y, qid, w in (
        ([1, 1, 1], None, None),
        ([1, 2, 3], [0, 1, 2], None),
        ([1, 2, 3], None, [1, 0, 0]),
    ):
        with Refusal("no query", "ordered pair"):
            measure(y, [1.0, 2.0, 3.0], qid=qid, sample_weight=w)
        assert np.isnan(measure(y, [1.0, 2.0, 3.0], qid=qid, sample_weight=w, per_query=True)).all()
    with Refusal("two different scores"):
        kendall_tau([1, 2, 3], [0.0, 0.0, 0.0])


def test_constant_scores_with_uneven_weights_have_no_tau():
    w = np.random.default_rng(0).uniform(size=50)
    tau = kendall_tau(np.arange(50.0), np.zeros((50, 1)), sample_weight=w, per_query=True)
    assert np.isnan(tau).all()


def test_a_column_without_tau_does_not_spoil_the_others():
    tau = kendall_tau([1, 2, 3], np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0]]))
    np.testing.assert_array_equal(tau, [np.nan, 1.0])


@given(
    y=st.lists(st.integers(0, 3), min_size=2, max_size=7),
    data=st.data(),
)
def test_integer_weights_are_repetition(y, data):
    m = len(y)
    f = data.draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))
    times = data.draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))
    qid = data.draw(st.lists(st.integers(0, 1), min_size=m, max_size=m))
    repeated = [np.repeat(v, times) for v in (y, f, qid)]
    left = set(zip(repeated[0].tolist(), repeated[2].tolist(), strict=True))
    assume(len(left) > len(set(repeated[2].tolist())))  # some query keeps two different labels
    for average in ("query", "pair"):
        weighted = disagreement_error(y, f, qid=qid, sample_weight=times, average=average)
        assert weighted == pytest.approx(disagreement_error(*repeated[:2], qid=repeated[2], average=average))


@given(st.integers(0, 10**6))
def test_pair_squared_error_is_that_of_listed_pairs(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 12))
    y, f, w, qid = rng.normal(size=m) + 5, rng.normal(size=(m, 2)), rng.uniform(0, 2, m), rng.integers(0, 3, m)
    found = pair_squared_error(y, f, qid=qid, sample_weight=w, per_query=True)
    for k, q in enumerate(dict.fromkeys(qid)):
        i, j = np.array(list(combinations(np.flatnonzero(qid == q), 2)), dtype=int).reshape(-1, 2).T
        error = (((y[i] - y[j])[:, None] - (f[i] - f[j])) ** 2 * (w[i] * w[j])[:, None]).sum(axis=0)
        expected = error / (w[i] * w[j]).sum() if len(i) else np.full(2, np.nan)
        np.testing.assert_allclose(found[k], expected, rtol=1e-9)


def test_pair_squared_error_needs_two_items_and_no_document_ids():
    with pytest.raises(ValueError) as error:
        pair_squared_error([1.0], [2.0])
    assert "two items" in str(error.value)
    with pytest.raises(ValueError) as error:
        Measure("pair_squared_error").per_query(np.arange(3.0), np.arange(3.0), query_layout(None, 3), docno=[1, 2, 3])
    assert error.value.parameter == "docno"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "measure",
    [
        Measure("disagreement"),
        Measure("disagreement", tied_labels="half"),
        Measure("pair_accuracy"),
        Measure("kendall_tau"),
        Measure("kendall_tau", empty=0.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("labels", [3, 40])
def test_the_error_of_one_ranking_is_the_jackknife_over_its_items(measure, weighted, labels):
    rng = np.random.default_rng(labels)
    m = 35
    y, F = rng.integers(0, labels, m).astype(float), rng.integers(0, 9, (m, 4)) / 3.0
    F[:, 3] = 1.0  # no pair is apart
    w = rng.uniform(0.5, 2.0, m) if weighted else None

    def value(rows):
        layout = query_layout(None, len(rows))
        return measure.mean(y[rows], F[rows], layout, None if w is None else w[rows])

    without = np.array([value(np.delete(np.arange(m), i)) for i in range(m)])
    expected = np.sqrt((m - 1) / m * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    found = measure.error_of_one(y, F, query_layout(None, m), w)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found[:3] > 0.0).all()


def test_the_error_of_one_ranking_is_that_of_repeated_samples():
    """The spread of the error over many samples of items, which the jackknife of each of them estimates."""
    rng = np.random.default_rng(0)
    measure, m, layout = Measure("disagreement"), 120, query_layout(None, 120)
    drawn = [(rng.normal(size=m), rng.normal(size=(m, 1))) for _ in range(300)]
    values = [measure.mean(y, y[:, None] + noise, layout)[0] for y, noise in drawn]
    errors = [measure.error_of_one(y, y[:, None] + noise, layout)[0] for y, noise in drawn]
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)


def test_a_measure_without_pairs_has_no_error_of_one_ranking():
    y, layout = np.array([1.0, 0.0, 2.0]), query_layout(None, 3)
    for measure in (Measure("ndcg", k=3), Measure("pair_squared_error")):
        assert np.isnan(measure.error_of_one(y, y[:, None], layout)).all()
