"""Runs with gaps, ties and unjudged documents, against trec_eval and definitions written out."""

import numpy as np
import pytest
import pytrec_eval
from tests.refusals import Refusal

from rankrls.metrics import Measure, evaluate, evaluate_run


def random_run(seed):
    """Judgements and a run of overlapping queries and documents, with ties, some in single precision only."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for q in range(30):
        documents = np.array([f"d{k}" for k in rng.permutation(40)])
        judged = documents[: rng.integers(1, 30)]
        retrieved = rng.permutation(documents)[: rng.integers(1, 30)]
        scores = np.round(rng.normal(size=len(retrieved)), 1) * (1 + 1e-12 * rng.normal(size=len(retrieved)))
        labels = rng.choice([-1, 0, 0, 0, 1, 2], size=len(judged)) if q else np.zeros(len(judged), dtype=int)
        if q != 3:
            qrels[f"q{q}"] = dict(zip(judged.tolist(), labels.tolist(), strict=True))
        if q != 5:
            run[f"q{q}"] = dict(zip(retrieved.tolist(), scores.tolist(), strict=True))
    return qrels, run


NAMES = {"map": "map", "ndcg": "ndcg", "mrr": "recip_rank", "rprec": "Rprec", "bpref": "bpref"} | {
    f"{ours}@{k}": f"{theirs}_{k}"
    for ours, theirs in (("p", "P"), ("ndcg", "ndcg_cut"), ("map", "map_cut"), ("recall", "recall"))
    for k in (5, 10, 100)
}


@pytest.mark.parametrize("seed", range(5))
def test_values_are_trec_evals(seed):
    qrels, run = random_run(seed)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values()) | {"success_5"})
    theirs = evaluator.evaluate(run)
    found = evaluate_run(qrels, run, measures=[*NAMES, "success@5"], per_query=True)
    for ours, name in (NAMES | {"success@5": "success_5"}).items():
        expected = [theirs.get(query, {name: 0.0})[name] for query in qrels]  # trec_eval -c
        np.testing.assert_allclose(found[ours], expected, atol=1e-12, err_msg=ours)
    means = evaluate_run(qrels, run, measures=["map"])
    assert means["map"] == pytest.approx(np.mean(found["map"]), abs=1e-14)


@pytest.mark.parametrize("persistence", [0.5, 0.95])
def test_rank_biased_precision_is_its_definition(persistence):
    qrels, run = random_run(0)
    measure = Measure("rbp", persistence=persistence, convention="trec")
    (found,) = evaluate_run(qrels, run, measures=[measure], per_query=True).values()
    for value, (query, labels) in zip(found, qrels.items(), strict=True):
        documents = run.get(query, {})
        ranked = sorted(documents, key=lambda name: (np.float32(documents[name]), name), reverse=True)
        gains = [persistence**i for i, name in enumerate(ranked) if labels.get(name, 0) >= 1]
        assert value == pytest.approx((1 - persistence) * sum(gains), abs=1e-13)


def test_measures_over_pairs_put_what_was_not_retrieved_below_all_judged_documents():
    qrels, run = random_run(1)
    found = evaluate_run(qrels, run, measures=["disagreement", "auc"], per_query=True)
    for k, (query, labels) in enumerate(qrels.items()):
        judged = {name: label for name, label in labels.items() if label >= 0}
        scores = [run.get(query, {}).get(name, -1e9) for name in judged]
        for name in found:
            if len(judged) < 2:
                continue
            expected = evaluate([*judged.values()], scores, measures=[name], per_query=True)[name]
            np.testing.assert_allclose(found[name][k], expected[0])


def test_a_score_beyond_single_precision_was_retrieved():
    qrels = {"q": {"a": 0, "b": 1}}
    assert evaluate_run(qrels, {"q": {"a": 0.0, "b": -1e300}}, measures=["map"])["map"] == 0.5
    assert evaluate_run(qrels, {"q": {"a": 0.0}}, measures=["map"])["map"] == 0.0


def test_what_cannot_be_evaluated_is_refused():
    qrels = {"q1": {"a": 1}}
    with Refusal("no query in common", "'q1'", "'1'", parameter="run"):
        evaluate_run(qrels, {"1": {"a": 1.0}})
    with Refusal("finite", "of query", parameter="run"):
        evaluate_run(qrels, {"q1": {"a": np.inf}})
    with Refusal("every judged document", parameter="measures"):
        evaluate_run(qrels, {"q1": {"a": 1.0}}, measures=["pair_squared_error"])
    with Refusal("above 0 and below 1", parameter="persistence"):
        Measure("rbp", persistence=1)
