"""Measures of positions against other tools, and against enumeration of the orders that ties allow."""

from itertools import pairwise, permutations

import numpy as np
import pytest
import pytrec_eval
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score
from tests.refusals import Refusal

from rankrls.metrics import Measure, evaluate, resolve_measure
from rankrls.metrics._table import BY_NAME, MEASURES


def textbook(name, ranked, k, relevant_in_query, best):
    """One measure of one ranked list of labels, as a sentence of a textbook."""
    k = len(ranked) if k is None else k
    hits = [float(label >= 1) for label in ranked]
    if name == "ndcg":
        dcg = lambda labels: sum(label / np.log2(i + 2) for i, label in enumerate(labels[:k]))
        return dcg(ranked) / dcg(best) if dcg(best) else 0.0
    if name == "precision":
        return sum(hits[:k]) / k
    if name == "recall":
        return sum(hits[:k]) / relevant_in_query if relevant_in_query else 0.0
    if name == "success":
        return float(any(hits[:k]))
    if name == "r_precision":
        return sum(hits[:relevant_in_query]) / relevant_in_query if relevant_in_query else 0.0
    if name == "err":
        chances = [(2.0**label - 1.0) / 16.0 for label in ranked]
        return sum(c / (i + 1) * np.prod([1.0 - before for before in chances[:i]]) for i, c in enumerate(chances[:k]))
    if name == "average_precision":
        found = [sum(hits[: i + 1]) / (i + 1) for i in range(min(k, len(hits))) if hits[i]]
        return sum(found) / relevant_in_query if relevant_in_query else 0.0
    if name == "reciprocal_rank":
        return next((1 / (i + 1) for i, hit in enumerate(hits[:k]) if hit), 0.0)
    if name == "rbp":
        return sum(0.2 * 0.8**i for i, hit in enumerate(hits[:k]) if hit)
    if name == "bpref":
        others = len(ranked) - relevant_in_query
        above = [i - sum(hits[:i]) for i, hit in enumerate(hits) if hit]
        shares = [min(a, relevant_in_query) / min(others, relevant_in_query) if others else 0.0 for a in above]
        return sum(1 - share for share in shares) / relevant_in_query if relevant_in_query else 0.0
    raise ValueError(f"{name} has no sentence here.")


NAMES = [definition.name for definition in MEASURES if not definition.over_pairs]


def measure_of(name, k, ties):
    own = {"gain": "linear", "discount": "log2"} if name == "ndcg" else {}
    return Measure(name, k=k, ties=ties, **own)


def orders_of(scores):
    """Every order of the rows that sorts the scores."""
    return [p for p in permutations(range(len(scores))) if all(scores[a] >= scores[b] for a, b in pairwise(p))]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, None])
def test_ties_by_row_and_averaged_over_every_order(name, k):
    definition = BY_NAME[name]
    if k is None and definition.depth == "needed":
        k = 4
    k = None if definition.depth == "none" else k
    rng = np.random.default_rng(7)
    for _ in range(25):
        m = rng.integers(1, 7)
        y, f = rng.integers(0, 3, m), rng.integers(0, 3, m).astype(float)
        orders = orders_of(f)
        found, best = int(np.sum(y >= 1)), sorted(y, reverse=True)
        values = [textbook(name, y[list(order)], k, found, best) for order in orders]
        rows_in_order = next(i for i, p in enumerate(orders) if list(p) == np.argsort(-f, kind="stable").tolist())
        assert measure_of(name, k, "row")(y, f) == pytest.approx(values[rows_in_order], abs=1e-14)
        if "average" in definition.ties:
            assert measure_of(name, k, "average")(y, f) == pytest.approx(np.mean(values), abs=1e-13)


@pytest.mark.parametrize("name", ["ndcg@3", "map", "mrr"])
def test_places_order_tied_rows(name):
    """Rows sorted by label have the value of the rows as they were."""
    rng = np.random.default_rng(1)
    qid = np.repeat(np.arange(30), 12)
    y, f = rng.integers(0, 3, 360).astype(float), rng.integers(0, 4, (360, 3)).astype(float)
    measure = resolve_measure(name)
    expected = measure(y, f, qid=qid, per_query=True)
    order = np.lexsort((y, qid))
    scores = np.ascontiguousarray(f[order].T)
    found = measure.values(scores, y[order], np.arange(0, 361, 12), places=np.arange(360)[order])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def random_judgements(seed, queries=30):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 25, queries)
    qid = rng.permutation(np.repeat(np.arange(queries), sizes))
    m = len(qid)
    y = rng.integers(0, 4, m) * (rng.random(m) > 0.5)
    return y, rng.integers(0, 9, m) / 8.0, qid, np.array([f"d{i}" for i in rng.permutation(m)])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 3, 10, None])
def test_ndcg_average_precision_and_auc_are_scikit_learns(seed, k):
    y, f, qid, _ = random_judgements(seed)
    measures = [Measure("ndcg", k=k, convention="sklearn"), Measure("map", convention="sklearn"), Measure("auc")]
    ours = np.stack([measure(y, f, qid=qid, per_query=True) for measure in measures], axis=1)
    for q, (value, area, auc) in zip(dict.fromkeys(qid.tolist()), ours, strict=True):
        labels, scores = y[qid == q], f[qid == q]
        relevant = labels >= 1
        if len(labels) > 1:
            assert value == pytest.approx(ndcg_score([labels], [scores], k=k), abs=1e-13)
        assert area == pytest.approx(average_precision_score(relevant, scores) if relevant.any() else 0.0, abs=1e-13)
        if len(set(relevant)) == 2:
            assert auc == pytest.approx(roc_auc_score(relevant, scores), abs=1e-13)
        else:
            assert np.isnan(auc)


@pytest.mark.parametrize("seed", range(3))
def test_trec_convention_is_trec_evals(seed):
    y, f, qid, docno = random_judgements(seed)
    y = y.astype(int) - (np.random.default_rng(seed).random(len(y)) > 0.9)  # trec_eval allows negative judgements
    f = f * (1 + 1e-12 * np.random.default_rng(seed).normal(size=len(f)))  # ties in single precision only
    qrel, run = {}, {}
    for q, d, label, score in zip(qid, docno, y, f, strict=True):
        qrel.setdefault(str(q), {})[str(d)] = int(label)
        run.setdefault(str(q), {})[str(d)] = float(score)
    names = {"map": "map", "ndcg": "ndcg", "mrr": "recip_rank", "rprec": "Rprec"}
    for ours, theirs in (("p", "P"), ("ndcg", "ndcg_cut"), ("map", "map_cut"), ("recall", "recall")):
        names |= {f"{ours}@{k}": f"{theirs}_{k}" for k in (5, 10, 20)}
    names |= {f"success@{k}": f"success_{k}" for k in (1, 5)}
    wanted = {"map", "ndcg", "recip_rank", "Rprec", "success.1,5"}
    wanted |= {f"{name}.5,10,20" for name in ("P", "ndcg_cut", "map_cut", "recall")}
    theirs = pytrec_eval.RelevanceEvaluator(qrel, wanted).evaluate(run)
    found = evaluate(y, f, qid=qid, docno=docno, measures=list(names), convention="trec", per_query=True)
    for ours, name in names.items():
        expected = [theirs[str(q)][name] for q in dict.fromkeys(qid.tolist())]
        np.testing.assert_allclose(found[ours], expected, atol=1e-12, err_msg=ours)


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
TOOLS = {
    "ndcg@1": 0.6666666666666666,
    "ndcg@3": 0.6643083535261465,
    "ndcg@5": 0.7418825677694594,
    "ndcg@10": 0.7961580829145527,
    "map@1": 0.6666666666666666,
    "map@3": 0.6759259259259259,
    "map@10": 0.7799603174603175,
}
XGBOOST = {"p@1": 0.3333333333333333, "p@3": 0.4444444444444444, "p@10": 0.4694444444444444, "map": 0.806475468975469}


def test_boosting_tools_figures():
    for convention, figures in (("xgboost", TOOLS | XGBOOST), ("lightgbm", TOOLS | {"map@5": 0.7189814814814813})):
        found = evaluate(*_flat(), qid=_qid(), measures=list(figures), convention=convention)
        assert found == pytest.approx(figures, abs=1e-14)
    minus = [Measure(name, k=3, convention="xgboost", empty=0) for name in ("ndcg", "map")]
    values = [measure(*_flat(), qid=_qid()) for measure in minus]
    assert values == pytest.approx([0.3309750201928132, 0.3425925925925926], abs=1e-14)


CATBOOST = {
    "ndcg@3": 0.6481279287868444,
    "ndcg": 0.8207436539914378,
    "map@3": 0.2962962962962963,
    "map": 0.45489919031585696,
    "mrr": 0.4444444444444444,
    "p@3": 0.38888888888888884,
    "recall@3": 0.6805555555555555,
}
"""What eval_metric of CatBoost 1.2.10 returns: NDCG for the labels, the others for labels >= 1."""


def test_catboosts_figures():
    y, scores = _flat()
    found = evaluate(y, scores, qid=_qid(), measures=list(CATBOOST), convention="catboost")
    assert found == pytest.approx(CATBOOST, abs=1e-14)
    exponential = Measure("ndcg", k=3, convention="catboost", gain="exp2")
    assert exponential(y, scores, qid=_qid()) == pytest.approx(0.6307224965427295, abs=1e-14)


def test_xgboosts_mean_of_weighted_queries():
    y, scores = _flat()
    found = evaluate(y, scores, qid=_qid(), measures=["map@3", "p@3"], convention="xgboost", per_query=True)
    means = [np.average(values, weights=[1, 2, 0.5, 3, 1.5, 4]) for values in found.values()]
    assert means == pytest.approx([0.68981481481481488, 0.36111111111111110], abs=1e-14)  # printed by XGBoost 3.2.0


def _flat():
    return np.concatenate(LABELS), np.concatenate(SCORES)


def _qid():
    return np.repeat(np.arange(len(LABELS)), [len(labels) for labels in LABELS])


def test_ranklibs_choices_by_hand():
    # RankLib's scorers: gain 2^rel - 1 over log2(i + 1); precision over min(k, items); nothing relevant counts 0.
    y, f, qid = [0, 2, 1, 0], [0.9, 0.5, 0.4, 0.3], [1, 1, 1, 2]
    first = (3 / np.log2(3) + 1 / 2) / (3 + 1 / np.log2(3))
    found = evaluate(y, f, qid=qid, measures=["ndcg@10", "p@10", "map@1"], convention="ranklib")
    assert found == pytest.approx({"ndcg@10": first / 2, "p@10": (2 / 3) / 2, "map@1": 0.0})


def test_letor_discount_and_short_lists():
    # Gains 0, 3, 1 at positions 1, 2, 3; the second query has one item for k = 5.
    y, f, qid = [0, 2, 1, 1], [3.0, 2.0, 1.0, 0.0], [1, 1, 1, 2]
    found = evaluate(y, f, qid=qid, measures=["ndcg@5", "p@5"], per_query=True)
    np.testing.assert_allclose(found["ndcg@5"], [(0 + 3 + 1 / np.log2(3)) / (3 + 1), 1.0])
    np.testing.assert_allclose(found["p@5"], [2 / 5, 1 / 5])


@pytest.mark.parametrize("name", ["ndcg", "map", "mrr", "p@2", "recall@2", "success@2", "rprec", "err"])
def test_queries_without_anything_relevant(name):
    y, f, qid = [0, 0, 1, 0], [1.0, 2.0, 2.0, 1.0], [7, 7, 8, 8]
    plain = resolve_measure(name)
    found = plain(y, f, qid=qid, per_query=True)[1]
    for empty, value in ((None, 0.0), ("skip", np.nan), (1, 1.0)):
        values = Measure(plain.name, k=plain.k, empty=empty)(y, f, qid=qid, per_query=True)
        np.testing.assert_array_equal(values, [value, found])
    with Refusal("every query is skipped"):
        Measure(plain.name, k=plain.k, empty="skip")([0, 0], [1.0, 2.0])


def test_gains_of_ones_own():
    y, f = [3, 0, 1, 2], [0.4, 0.3, 0.2, 0.1]
    table = Measure("ndcg", gain=[0, 1, 3, 7], discount="log2")(y, f)
    assert table == pytest.approx(Measure("ndcg", gain="exp2", discount="log2")(y, f))
    assert Measure("ndcg", discount="log2")([0.5, 0], [0.1, 0.2]) == pytest.approx(1 / np.log2(3))


def test_a_higher_bar_for_relevance():
    values = [
        Measure(name, k=k, relevant=2)([1, 2, 0], [0.9, 0.8, 0.7])
        for name, k in (("map", None), ("mrr", None), ("p", 1))
    ]
    assert values == [0.5, 0.5, 0.0]
