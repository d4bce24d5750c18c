"""Measures as values: names, choices, errors, and evaluate."""

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy.stats import spearmanr

from rankrls._queries import query_layout
from rankrls.metrics import (
    Measure,
    average_precision,
    disagreement_error,
    evaluate,
    kendall_tau,
    ndcg,
    precision,
    reciprocal_rank,
    resolve_measure,
)

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
        ("disagreement", Measure("disagreement_error"), "disagreement"),
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
    assert str(Measure("disagreement", average="pair", convention="trec")) == "disagreement(average='pair')"
    assert str(Measure("ndcg", k=3, gain=np.sqrt)) == "ndcg(gain=sqrt)@3"
    assert Measure("ndcg", gain=[0, 1, 3]) == Measure("ndcg", gain=(0.0, 1.0, 3.0))
    assert len({Measure("ndcg", gain=[0, 1, 3]), Measure("ndcg", gain=(0, 1, 3))}) == 1


@pytest.mark.parametrize("name", ["ncdg", "ndcg@", "ndcg@x", "@5", "", "p @ -3", "map 5"])
def test_unknown_names_list_the_known_ones(name):
    with pytest.raises(ValueError, match=r"unknown measure .*average_precision.*kendall_tau.*tau"):
        resolve_measure(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "dcg"}, "unknown measure 'dcg'"),
        ({"name": "precision"}, "precision needs a depth"),
        ({"name": "ndcg", "k": 0}, "k must be a positive integer"),
        ({"name": "ndcg", "k": 2.5}, "k must be a positive integer"),
        ({"name": "ndcg", "k": True}, "k must be a positive integer"),
        ({"name": "tau", "k": 3}, "has no depth"),
        ({"name": "ndcg", "convention": "bing"}, "convention must be one of letor, trec"),
        ({"name": "tau", "convention": "bing"}, "convention must be one of letor, trec"),
        ({"name": "ndcg", "gain": "cubic"}, "gain of ndcg must be exp2"),
        ({"name": "ndcg", "discount": 3}, "discount of ndcg must be log2"),
        ({"name": "ndcg", "ties": "threshold"}, "ties of ndcg must be row"),
        ({"name": "map", "ties": "random"}, "ties of average_precision must be row"),
        ({"name": "map", "denominator": "all"}, "denominator of average_precision"),
        ({"name": "ndcg", "relevant": 2}, "ndcg does not depend on 'relevant'"),
        ({"name": "mrr", "gain": "exp2"}, "reciprocal_rank does not depend on 'gain'"),
        ({"name": "map", "relevant": float("nan")}, "relevant must be a finite label"),
        ({"name": "map", "empty": "drop"}, "empty must be a number in"),
        ({"name": "map", "empty": 2}, "empty must be a number in"),
        ({"name": "map", "single_scores": "yes"}, "single_scores must be True or False"),
        ({"name": "tau", "empty": -2}, "empty of kendall_tau"),
        ({"name": "tau", "average": "pair"}, "kendall_tau does not depend on 'average'"),
        ({"name": "disagreement", "ties": "row"}, "disagreement does not depend on 'ties'"),
        ({"name": "disagreement", "tied_labels": "count"}, "tied_labels must be"),
        ({"name": "disagreement", "average": "item"}, "average must be"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        Measure(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ndcg([], []), "y_true is empty"),
        (lambda: ndcg([[1, 0]], [1, 2]), "y_true must be one-dimensional"),
        (lambda: ndcg([1, np.nan], [1, 2]), "y_true holds nan in row 1"),
        (lambda: ndcg(["a", "b"], [1, 2]), "y_true must hold numbers"),
        (lambda: ndcg([1, 0, 1], [1, 2]), "y_score has 2 rows but y_true has 3"),
        (lambda: ndcg([1, 0], [1, -np.inf]), "y_score holds -inf in row 1"),
        (lambda: ndcg([1, 0], [[1, 2], [3, np.nan]]), "y_score holds nan in row 1, column 1"),
        (lambda: ndcg([1, 0], np.zeros((2, 0))), "no columns"),
        (lambda: ndcg([1, 0], np.zeros((2, 1, 1))), "y_score must have shape"),
        (lambda: ndcg([1, 0], [1, 2], qid=[1]), "qid has 1 entries but there are 2 rows"),
        (lambda: ndcg([1, -1], [1, 2]), "negative label -1 in row 1"),
        (lambda: ndcg([1, 5000], [1, 2]), "label 5000 in row 1 has the gain inf"),
        (lambda: ndcg([1, 3], [1, 2], gain=[0, 1]), "label 3 in row 1 has no entry among the 2 gains"),
        (lambda: ndcg([1, 3], [1, 2], gain=lambda y: -y), "label 1 in row 0 has the gain -1"),
        (lambda: ndcg([1, 3], [1, 2], gain=lambda y: y[:1]), r"gain\(labels\) must return shape"),
        (lambda: ndcg([1, 3], [1, 2], discount=lambda i: -i), "one finite number, not negative"),
        (lambda: ndcg([1, 0], [1, 2], docno=["a", "b"]), "docno is used where ties='docno'"),
        (lambda: ndcg([1, 0], [1, 2], docno=["a"], convention="trec"), "docno must hold one id per row"),
        (lambda: average_precision([1, 0], [1, 2], k=1, convention="sklearn"), "has no depth k"),
        (lambda: precision([1, 0], [1, 2], k=None), "precision needs a depth"),
        (lambda: disagreement_error([1, 0], [1, 2], sample_weight=[1]), "one weight per row"),
        (lambda: disagreement_error([1, 0], [1, 2], sample_weight=[1, -1]), "negative in row 1"),
        (lambda: disagreement_error([1, 0], [1, 2], sample_weight=[np.inf, 1]), "holds inf in row 0"),
        (lambda: evaluate([1, 0], [1, 2], measures=["map", "pink"]), "unknown measure 'pink'"),
        (lambda: evaluate([1, 0], [1, 2], measures=[7]), "a measure is a name such as"),
        (lambda: evaluate([1, 0], [1, 2], measures=lambda y, f: "good"), "must return one number per query"),
        (lambda: Measure("tau").per_query(np.ones(2), np.ones(2), query_layout(None, 2), None, ["a", "b"]), "docno"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_evaluate_names_what_was_asked_for_in_order():
    asked = ["p@2", "disagreement", Measure("ndcg", k=3, convention="sklearn"), "NDCG@3", reciprocal]
    found = evaluate(Y, F, qid=QID, measures=asked, convention="trec")
    assert list(found) == ["p@2", "disagreement", "ndcg(convention='sklearn')@3", "NDCG@3", "reciprocal"]
    assert found["p@2"] == precision(Y, F, qid=QID, k=2)
    assert found["NDCG@3"] == ndcg(Y, F, qid=QID, k=3, convention="trec")
    assert found["disagreement"] == disagreement_error(Y, F, qid=QID)
    assert found["reciprocal"] == reciprocal_rank(Y, F, qid=QID)
    assert list(evaluate(Y, F, qid=QID)) == [
        *("map", "mrr", "p@5", "p@10", "ndcg@1", "ndcg@5", "ndcg@10", "disagreement")
    ]


def test_evaluate_passes_weights_ids_and_columns_on():
    S, w, names = np.c_[F, [0.0] * 5], [1, 2, 3, 4, 5], ["map", "ndcg@2", "tau", "disagreement"]
    docno = ["a", "c", "b", "d", "e"]
    found = evaluate(
        Y,
        S,
        qid=QID,
        measures=names,
        convention="trec",
        sample_weight=w,
        docno=docno,
    )
    np.testing.assert_array_equal(found["map"], average_precision(Y, S, qid=QID, convention="trec", docno=docno))
    np.testing.assert_array_equal(found["tau"], kendall_tau(Y, S, qid=QID, sample_weight=w))
    np.testing.assert_array_equal(found["disagreement"], disagreement_error(Y, S, qid=QID, sample_weight=w))
    each = evaluate(Y, S, qid=QID, measures=["map"], convention="trec", docno=docno, per_query=True)["map"]
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
    values = measure.per_query(y, S, layout)
    for q, name in enumerate(layout.ids):
        rows = qid == name
        expected = [spearmanr(y[rows], S[rows, c]).statistic if rows.sum() > 8 else np.nan for c in range(2)]
        np.testing.assert_allclose(values[q], expected)
    assert 0 < np.isnan(values).sum() < values.size
    np.testing.assert_allclose(measure.mean(y, S, layout), np.nanmean(values, axis=0))


@pytest.mark.parametrize(
    "measure", [Measure("ndcg", k=3), Measure("map", convention="trec", relevant=2), Measure("tau")], ids=str
)
def test_repr_is_how_it_was_written(measure):
    assert eval(repr(measure)) == measure
    assert "None" not in repr(measure)


def test_types_that_are_not_numpys():
    expected = ndcg(Y, F, qid=QID)
    assert ndcg(pandas.Series(Y), pandas.Series(F), qid=pandas.Series(QID)) == expected
    assert ndcg(polars.Series(Y), polars.Series(F), qid=polars.Series(QID)) == expected
    assert ndcg(pyarrow.array(Y), pyarrow.chunked_array([F[:2], F[2:]]), qid=pyarrow.array(QID)) == expected
    assert ndcg(np.array(Y, np.int8), np.array(F, np.float64), qid=[str(q) for q in QID]) == expected
    assert isinstance(expected, float)


def test_inputs_are_left_alone():
    y, f, w = np.array(Y, float), np.array(F), np.ones(5)
    copies = y.copy(), f.copy(), w.copy()
    evaluate(y, f, qid=QID, measures=["map", "ndcg", "tau"], sample_weight=w)
    for now, before in zip((y, f, w), copies, strict=True):
        np.testing.assert_array_equal(now, before)
