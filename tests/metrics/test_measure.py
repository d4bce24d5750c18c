"""Measures as values: names, choices, errors, and evaluate."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.refusals import Refusal

from rankrls._queries import query_layout
from rankrls.metrics import Measure, evaluate, resolve_measure
from rankrls.metrics._measure import mean_and_error

Y, F, QID = [2, 0, 1, 0, 1], [0.3, 0.5, 0.1, 0.2, 0.7], [1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("name", "measure", "text"),
    [
        ("ndcg@10", Measure("ndcg", k=10), "ndcg@10"),
        (" NDCG @ 10", Measure("ndcg", k=10), "ndcg@10"),
        ("map", Measure("average_precision"), "map"),
        ("p@5", Measure("precision", k=5), "p@5"),
        ("precision@5", Measure("precision", k=5), "p@5"),
        ("mrr", Measure("reciprocal_rank"), "mrr"),
        ("tau", Measure("kendall_tau"), "tau"),
        ("disagreement", Measure("disagreement"), "disagreement"),
        ("pair_accuracy", Measure("pair_accuracy"), "pair_accuracy"),
    ],
)
def test_names(name, measure, text):
    assert resolve_measure(name) == measure
    assert str(measure) == text
    assert measure.greater_is_better is (text != "disagreement")
    assert resolve_measure(measure) is measure
    assert resolve_measure(text) == measure


def test_names_show_what_is_not_the_default():
    assert str(Measure("map", convention="trec", relevant=2)) == "map(convention='trec', relevant=2)"
    assert str(Measure("disagreement", tied_labels="half", convention="trec")) == "disagreement(tied_labels='half')"
    assert str(Measure("ndcg", k=3, gain="linear")) == "ndcg(gain='linear')@3"
    assert Measure("ndcg", gain=[0, 1, 3]) == Measure("ndcg", gain=(0.0, 1.0, 3.0))
    assert len({Measure("ndcg", gain=[0, 1, 3]), Measure("ndcg", gain=(0, 1, 3))}) == 1


@pytest.mark.parametrize("name", ["ncdg", "ndcg@", "ndcg@x", "@5", "", "p @ -3", "map 5"])
def test_unknown_names_list_the_known_ones(name):
    with Refusal("average_precision", "kendall_tau", parameter="measure"):
        resolve_measure(name)


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"name": "dcg"}, "measure"),
        ({"name": ["dcg"]}, "measure"),
        ({"name": "precision"}, "k"),
        ({"name": "ndcg", "k": 0}, "k"),
        ({"name": "ndcg", "k": True}, "k"),
        ({"name": "tau", "k": 3}, "k"),
        ({"name": "rprec", "k": 3}, "k"),
        ({"name": "ndcg", "convention": "bing"}, "convention"),
        ({"name": "ndcg", "gain": "cubic"}, "gain"),
        ({"name": "ndcg", "gain": ["low"]}, "gain"),
        ({"name": "ndcg", "gain": [[0, 1]]}, "gain"),
        ({"name": "ndcg", "discount": 3}, "discount"),
        ({"name": "ndcg", "ties": "threshold"}, "ties"),
        ({"name": "err", "ties": "average"}, "ties"),
        ({"name": "map", "denominator": "all"}, "denominator"),
        ({"name": "ndcg", "relevant": 2}, "relevant"),
        ({"name": "map", "relevant": float("nan")}, "relevant"),
        ({"name": "map", "empty": float("inf")}, "empty"),
        ({"name": "map", "empty": "no"}, "empty"),
        ({"name": "disagreement", "tied_labels": "count"}, "tied_labels"),
    ],
)
def test_bad_parameters(arguments, parameter):
    with Refusal(parameter=parameter):
        Measure(**arguments)


@pytest.mark.parametrize(
    ("call", "parameter", "row"),
    [
        (lambda: Measure("ndcg")([], []), "y_true", None),
        (lambda: Measure("ndcg")([[1, 0]], [1, 2]), "y_true", None),
        (lambda: Measure("ndcg")([1, np.nan], [1, 2]), "y_true", 1),
        (lambda: Measure("ndcg")([1, 0, 1], [1, 2]), "y_score", None),
        (lambda: Measure("ndcg")([1, 0], [1, -np.inf]), "y_score", 1),
        (lambda: Measure("ndcg")([1, 0], [1, 2], qid=[1]), "qid", None),
        (lambda: Measure("ndcg")([1, -1], [1, 2]), "gain", None),
        (lambda: Measure("ndcg")([1, 5000], [1, 2]), "gain", None),
        (lambda: Measure("ndcg", gain=[0, 1])([1, 3], [1, 2]), "gain", None),
        (lambda: Measure("ndcg", gain=[0, -1, -2, -3])([1, 3], [1, 2]), "gain", None),
        (lambda: Measure("err")([1, 5], [1, 2]), "highest", None),
        (lambda: Measure("ndcg", convention="trec")([1, 0], [1, 2], docno=["a"]), "docno", None),
        (lambda: Measure("map", k=1, convention="sklearn")([1, 0], [1, 2]), "k", None),
        (lambda: Measure("tau")([1, 0], [1, 2], sample_weight=[1]), "sample_weight", None),
        (lambda: Measure("tau")([1, 0], [1, 2], sample_weight=[1, -1]), "sample_weight", 1),
        (lambda: evaluate([1, 0], [1, 2], measures=["map", "pink"]), "measure", None),
        (lambda: evaluate([1, 0], [1, 2], measures=[7]), "measure", None),
        (lambda: evaluate([1, 0], [1, 2], measures=lambda y, f: "good"), "measure", None),
        (lambda: evaluate([1, 1], [1, 2], measures="tau"), "y_true", None),
    ],
)
def test_bad_input(call, parameter, row):
    with Refusal(parameter=parameter, row=row):
        call()


def test_evaluate_names_what_was_asked_for_in_order():
    asked = ["p@2", "disagreement", Measure("ndcg", k=3, convention="sklearn"), "NDCG@3", reciprocal]
    found = evaluate(Y, F, qid=QID, measures=asked, convention="trec")
    assert list(found) == ["p@2", "disagreement", "ndcg(convention='sklearn')@3", "NDCG@3", "reciprocal"]
    assert found["p@2"] == Measure("p", k=2)(Y, F, qid=QID)
    assert found["NDCG@3"] == Measure("ndcg", k=3, convention="trec")(Y, F, qid=QID)
    assert found["reciprocal"] == Measure("mrr")(Y, F, qid=QID)
    assert list(evaluate(Y, F, qid=QID)) == [
        *("map", "mrr", "p@5", "p@10", "ndcg@1", "ndcg@5", "ndcg@10", "disagreement")
    ]


def test_evaluate_passes_weights_ids_and_columns_on():
    S, w, docno = np.c_[F, [0.0] * 5], [1, 2, 3, 4, 5], ["a", "c", "b", "d", "e"]
    data = {"qid": QID, "sample_weight": w, "docno": docno}
    found = evaluate(Y, S, measures=["map", "ndcg@2", "tau", "disagreement"], convention="trec", **data)
    np.testing.assert_array_equal(found["map"], Measure("map", convention="trec")(Y, S, qid=QID, docno=docno))
    for name in ("tau", "disagreement"):
        np.testing.assert_array_equal(found[name], Measure(name)(Y, S, qid=QID, sample_weight=w))
    each = evaluate(Y, S, measures=["map"], convention="trec", per_query=True, **data)["map"]
    assert each.shape == (2, 2)
    np.testing.assert_allclose(each.mean(axis=0), found["map"])


def reciprocal(y, f):
    return 1 / (1 + np.flatnonzero(y[np.argsort(-f)] >= 1)[0])


def test_a_function_is_called_per_query_and_column():
    rng = np.random.default_rng(0)
    y, S, qid = rng.normal(size=30), rng.normal(size=(30, 2)), rng.integers(0, 4, 30)

    def spearman(y, f):
        return spearmanr(y, f).statistic if len(y) > 8 else np.nan

    measure = resolve_measure(spearman)
    assert str(measure) == "spearman"
    assert measure.greater_is_better
    layout = query_layout(qid, 30)
    values = measure(y, S, qid=qid, per_query=True)
    for q, name in enumerate(layout.ids):
        rows = qid == name
        expected = [spearmanr(y[rows], S[rows, c]).statistic if rows.sum() > 8 else np.nan for c in range(2)]
        np.testing.assert_allclose(values[q], expected)
    assert 0 < np.isnan(values).sum() < values.size
    np.testing.assert_allclose(measure(y, S, qid=qid), np.nanmean(values, axis=0))


@pytest.mark.parametrize(
    "measure", [Measure("ndcg", k=3), Measure("map", convention="trec", relevant=2), Measure("tau")], ids=str
)
def test_repr_is_how_it_was_written(measure):
    assert eval(repr(measure)) == measure
    assert "None" not in repr(measure)


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("hit@10", "success@10"),
        ("HR@5", "success@5"),
        ("pre@3", "p@3"),
        ("PrecisionAt:top=3", "precision@3"),
        ("NDCG:top=10", "ndcg@10"),
        ("concordance_index", "pair_accuracy"),
        ("hit_rate@5", "success@5"),
        ("ndcg_cut_10", "ndcg@10"),
        ("NDCG_cut.5", "ndcg@5"),
        ("P_5", "p@5"),
        ("recall_100", "recall@100"),
        ("recip_rank", "mrr"),
        ("c-index", "pair_accuracy"),
    ],
)
def test_names_of_other_tools_are_understood(given, ours):
    assert resolve_measure(given) == resolve_measure(ours)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("ndcg@-1", "ndcg"),
        ("ndcg@1.5", "ndcg"),
        ("ndcg@", "ndcg"),
        ("hit@k", "success"),
        ("kendal_tau@5", "kendall_tau"),
        ("nddcg", "ndcg"),
    ],
)
def test_what_was_meant_is_suggested(given, meant):
    with Refusal(f"unknown measure {given!r}. Did you mean {meant!r}?", parameter="measure"):
        resolve_measure(given)


def test_nothing_is_meant_by_names_that_are_like_none():
    for given in ("rmse", "", "@10", "ndcg(convention='sklearn')@3"):
        with Refusal("unknown measure", parameter="measure") as refusal:
            resolve_measure(given)
        assert "Did you mean" not in str(refusal.value)


def test_the_standard_error_of_a_mean_over_queries_that_have_a_value():
    values = np.array([[1.0, np.nan, 3.0], [2.0, np.nan, np.nan], [4.0, 5.0, np.nan], [np.nan, 7.0, np.nan]])
    mean, error = mean_and_error(values)
    np.testing.assert_allclose(mean, [7.0 / 3.0, 6.0, 3.0])
    np.testing.assert_allclose(error, [np.std([1.0, 2.0, 4.0], ddof=1) / np.sqrt(3.0), 1.0, np.nan])
