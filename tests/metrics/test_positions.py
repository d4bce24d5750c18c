"""Measures of positions against other tools, and against enumeration of the orders that ties allow."""

from itertools import pairwise, permutations

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from sklearn.metrics import average_precision_score, ndcg_score
from tests.refusals import Refusal

from rankrls.metrics import average_precision, ndcg, precision, reciprocal_rank
from rankrls.metrics._ranked import rank_sums


def textbook(name, ranked, k, relevant_in_query, best):
    """One measure of one ranked list of labels, as a sentence of a textbook."""
    k = len(ranked) if k is None else k
    hits = [float(label >= 1) for label in ranked]
    if name == "ndcg":
        dcg = lambda labels: sum(label / np.log2(i + 2) for i, label in enumerate(labels[:k]))
        return dcg(ranked) / dcg(best) if dcg(best) else 0.0
    if name == "precision":
        return sum(hits[:k]) / k
    if name == "average_precision":
        found = [sum(hits[: i + 1]) / (i + 1) for i in range(min(k, len(hits))) if hits[i]]
        return sum(found) / relevant_in_query if relevant_in_query else 0.0
    return next((1 / (i + 1) for i, hit in enumerate(hits[:k]) if hit), 0.0)


FUNCTIONS = {
    "ndcg": lambda *a, **k: ndcg(*a, gain="linear", discount="log2", **k),
    "average_precision": average_precision,
    "precision": precision,
    "reciprocal_rank": reciprocal_rank,
}


def orders_of(scores):
    """Every order of the rows that sorts the scores."""
    return [p for p in permutations(range(len(scores))) if all(scores[a] >= scores[b] for a, b in pairwise(p))]


@pytest.mark.parametrize(
    ("name", "k"), [(n, k) for n in FUNCTIONS for k in (1, 2, 3, 5, 9, None) if (n, k) != ("precision", None)]
)
def test_ties_by_row_and_averaged_over_every_order(name, k):
    rng = np.random.default_rng(7)
    for _ in range(25):
        m = rng.integers(1, 7)
        y, f = rng.integers(0, 3, m), rng.integers(0, 3, m).astype(float)
        orders = orders_of(f)
        found, best = int(np.sum(y >= 1)), sorted(y, reverse=True)
        values = [textbook(name, y[list(order)], k, found, best) for order in orders]
        rows_in_order = next(i for i, p in enumerate(orders) if list(p) == np.argsort(-f, kind="stable").tolist())
        options = {} if k is None else {"k": k}
        assert FUNCTIONS[name](y, f, ties="row", **options) == pytest.approx(values[rows_in_order], abs=1e-14)
        assert FUNCTIONS[name](y, f, ties="average", **options) == pytest.approx(np.mean(values), abs=1e-13)


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_what_the_first_relevant_item_is_worth_is_up_to_the_measure(depth):
    """With discounts of 1 it is whether there is one, as trec_eval's success has it."""
    rng = np.random.default_rng(depth)
    for discounts in (np.ones(depth), rng.random(depth)):
        for _ in range(10):
            m = rng.integers(1, 7)
            hits, f = rng.integers(0, 2, m).astype(float), rng.integers(0, 3, m).astype(float)
            worth = [
                next((discounts[i] for i, row in enumerate(p[:depth]) if hits[row]), 0.0)
                for p in orders_of(f)  # every order that ties allow
            ]
            rows, starts = np.arange(m), np.array([0, m])
            found = rank_sums("first", hits, f[:, None], rows, starts, discounts=discounts, ties="average")
            assert found.item() == pytest.approx(np.mean(worth), abs=1e-13)


def random_judgements(seed, queries=30):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 25, queries)
    qid = rng.permutation(np.repeat(np.arange(queries), sizes))
    m = len(qid)
    y = rng.integers(0, 4, m) * (rng.random(m) > 0.5)
    return y, rng.integers(0, 9, m) / 8.0, qid, np.array([f"d{i}" for i in rng.permutation(m)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_ndcg_and_average_precision_are_scikit_learns(seed, k):
    y, f, qid, _ = random_judgements(seed)
    ours = ndcg(y, f, qid=qid, k=k, convention="sklearn", per_query=True)
    precisions = average_precision(y, f, qid=qid, convention="sklearn", per_query=True)
    for q, value, area in zip(dict.fromkeys(qid.tolist()), ours, precisions, strict=True):
        labels, scores = y[qid == q], f[qid == q]
        if len(labels) > 1:
            assert value == pytest.approx(ndcg_score([labels], [scores], k=k), abs=1e-13)
        if (labels >= 1).any():
            assert area == pytest.approx(average_precision_score(labels >= 1, scores), abs=1e-13)
        else:
            assert area == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_trec_convention_is_trec_evals(seed):
    y, f, qid, docno = random_judgements(seed)
    y = y.astype(int) - (np.random.default_rng(seed).random(len(y)) > 0.9)  # trec_eval allows negative judgements
    f = f * (1 + 1e-12 * np.random.default_rng(seed).normal(size=len(f)))  # ties in single precision only
    qrel, run = {}, {}
    for q, d, label, score in zip(qid, docno, y, f, strict=True):
        qrel.setdefault(str(q), {})[str(d)] = int(label)
        run.setdefault(str(q), {})[str(d)] = float(score)
    depths = (5, 10, 20)
    wanted = {"map", "ndcg", "recip_rank"} | {f"{n}.5,10,20" for n in ("P", "ndcg_cut", "map_cut")}
    theirs = pytrec_eval.RelevanceEvaluator(qrel, wanted).evaluate(run)
    ids = [str(q) for q in dict.fromkeys(qid.tolist())]
    options = {"qid": qid, "docno": docno, "convention": "trec", "per_query": True}

    def agree(ours, key):
        np.testing.assert_allclose(ours, [theirs[q][key] for q in ids], atol=1e-12)

    agree(average_precision(y, f, **options), "map")
    agree(ndcg(y, f, **options), "ndcg")
    agree(reciprocal_rank(y, f, **options), "recip_rank")
    for k in depths:
        agree(precision(y, f, k=k, **options), f"P_{k}")
        agree(ndcg(y, f, k=k, **options), f"ndcg_cut_{k}")
        agree(average_precision(y, f, k=k, **options), f"map_cut_{k}")


def test_trec_convention_is_ir_measures_average():
    y, f, qid, docno = random_judgements(11)
    qrels = [ir_measures.Qrel(str(q), d, int(label)) for q, d, label in zip(qid, docno, y, strict=True)]
    run = [ir_measures.ScoredDoc(str(q), d, s) for q, d, s in zip(qid, docno, f, strict=True)]
    theirs = ir_measures.calc_aggregate(
        [ir_measures.nDCG @ 10, ir_measures.AP, ir_measures.AP @ 5, ir_measures.P @ 5, ir_measures.RR], qrels, run
    )
    options = {"qid": qid, "docno": docno, "convention": "trec"}
    assert ndcg(y, f, k=10, **options) == pytest.approx(theirs[ir_measures.nDCG @ 10], abs=1e-12)
    assert average_precision(y, f, **options) == pytest.approx(theirs[ir_measures.AP], abs=1e-12)
    assert average_precision(y, f, k=5, **options) == pytest.approx(theirs[ir_measures.AP @ 5], abs=1e-12)
    assert precision(y, f, k=5, **options) == pytest.approx(theirs[ir_measures.P @ 5], abs=1e-12)
    assert reciprocal_rank(y, f, **options) == pytest.approx(theirs[ir_measures.RR], abs=1e-12)


# Six queries, one without relevant items, two of one item, ties. The figures below were printed by the tools for
# exactly these labels and scores: LightGBM 4.7.0 (evaluation of init_score with trees of learning rate 1e-300) and
# XGBoost 3.2.0 (evaluation of base_margin with no tree; map and pre on labels >= 1, as it wants them).
LABELS = [[2, 0, 1, 1, 0, 3], [0, 0, 0], [1], [0], [0, 2, 0, 1, 4, 0, 0, 1, 1, 0, 2, 0], [1, 1, 1, 0]]
SCORES = [
    [0.5, 0.9, 0.5, 0.1, 0.5, 0.3],
    [0.2, 0.1, 0.3],
    [0.7],
    [0.4],
    [0.3, 0.1, 0.9, 0.3, 0.3, 0.8, 0.2, 0.7, 0.3, 0.6, 0.05, 0.3],
    [0.1, 0.4, 0.2, 0.3],
]
BOOSTING = [
    (ndcg, 1, 0.6666666666666666),
    (ndcg, 3, 0.6643083535261465),
    (ndcg, 5, 0.7418825677694594),
    (ndcg, 10, 0.7961580829145527),
    (average_precision, 1, 0.6666666666666666),
    (average_precision, 3, 0.6759259259259259),
    (average_precision, 10, 0.7799603174603175),
]


@pytest.mark.parametrize("convention", ["lightgbm", "xgboost"])
@pytest.mark.parametrize(("measure", "k", "figure"), BOOSTING)
def test_boosting_tools_figures(convention, measure, k, figure):
    value = measure(*_flat(), qid=_qid(), k=k, convention=convention)
    assert value == pytest.approx(figure, abs=1e-14)


@pytest.mark.parametrize(("k", "figure"), [(1, 0.3333333333333333), (3, 0.4444444444444444), (10, 0.4694444444444444)])
def test_xgboosts_precision(k, figure):
    assert precision(*_flat(), qid=_qid(), k=k, convention="xgboost") == pytest.approx(figure, abs=1e-14)


def test_xgboosts_minus_and_whole_map():
    y, f = _flat()
    assert ndcg(y, f, qid=_qid(), k=3, convention="xgboost", empty=0) == pytest.approx(0.3309750201928132, abs=1e-14)
    assert average_precision(y, f, qid=_qid(), k=3, convention="xgboost", empty=0.0) == pytest.approx(
        0.3425925925925926
    )
    assert average_precision(y, f, qid=_qid(), convention="xgboost") == pytest.approx(0.806475468975469, abs=1e-14)


def test_lightgbms_map_at_5():
    value = average_precision(*_flat(), qid=_qid(), k=5, convention="lightgbm")
    assert value == pytest.approx(0.7189814814814813, abs=1e-14)


def _flat():
    return np.concatenate(LABELS), np.concatenate(SCORES)


def _qid():
    return np.repeat(np.arange(len(LABELS)), [len(labels) for labels in LABELS])


def test_ranklibs_choices_by_hand():
    # RankLib's scorers: gain 2^rel - 1 over log2(i + 1); precision over min(k, items); nothing relevant counts 0.
    y, f, qid = [0, 2, 1, 0], [0.9, 0.5, 0.4, 0.3], [1, 1, 1, 2]
    first = (3 / np.log2(3) + 1 / 2) / (3 + 1 / np.log2(3))
    assert ndcg(y, f, qid=qid, k=10, convention="ranklib") == pytest.approx(first / 2)
    assert precision(y, f, qid=qid, k=10, convention="ranklib") == pytest.approx((2 / 3) / 2)
    assert average_precision(y, f, qid=qid, k=1, convention="ranklib") == 0.0


def test_letor_discount_and_short_lists():
    # Gains 0, 3, 1 at positions 1, 2, 3; the second query has one item for k = 5.
    y, f, qid = [0, 2, 1, 1], [3.0, 2.0, 1.0, 0.0], [1, 1, 1, 2]
    first = (0 + 3 + 1 / np.log2(3)) / (3 + 1)
    np.testing.assert_allclose(ndcg(y, f, qid=qid, k=5, per_query=True), [first, 1.0])
    np.testing.assert_allclose(precision(y, f, qid=qid, k=5, per_query=True), [2 / 5, 1 / 5])


@pytest.mark.parametrize("measure", [ndcg, average_precision, reciprocal_rank, lambda *a, **k: precision(*a, k=2, **k)])
def test_queries_without_anything_relevant(measure):
    y, f, qid = [0, 0, 1, 0], [1.0, 2.0, 2.0, 1.0], [7, 7, 8, 8]
    found = measure(y, f, qid=qid, per_query=True)[1]
    np.testing.assert_array_equal(measure(y, f, qid=qid, per_query=True), [0.0, found])
    np.testing.assert_array_equal(measure(y, f, qid=qid, per_query=True, empty="skip"), [np.nan, found])
    np.testing.assert_array_equal(measure(y, f, qid=qid, per_query=True, empty=1), [1.0, found])
    assert measure(y, f, qid=qid, empty="skip") == found
    with Refusal("every query is skipped"):
        measure([0, 0], [1.0, 2.0], empty="skip")


def test_gains_and_discounts_of_ones_own():
    y, f = [3, 0, 1, 2], [0.4, 0.3, 0.2, 0.1]
    table = ndcg(y, f, gain=[0, 1, 3, 7], discount="log2")
    assert table == pytest.approx(ndcg(y, f, gain="exp2", discount="log2"))
    assert table == pytest.approx(ndcg(y, f, gain=lambda v: 2**v - 1, discount=lambda i: 1 / np.log2(i + 1)))
    assert ndcg([0.5, 0], [0.1, 0.2], gain="exp2", discount="log2") == pytest.approx(1 / np.log2(3))


def test_a_higher_bar_for_relevance():
    y, f = [1, 2, 0], [0.9, 0.8, 0.7]
    assert average_precision(y, f, relevant=2) == 0.5
    assert reciprocal_rank(y, f, relevant=2) == 0.5
    assert precision(y, f, k=1, relevant=2) == 0.0
