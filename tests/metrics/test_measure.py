"""Measures as values: names, choices, errors, and evaluate."""

import inspect

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy.stats import spearmanr

from rankrls._errors import InputError
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
    ("arguments", "parameter", "words"),
    [
        ({"name": "dcg"}, "measure", "'dcg'"),
        ({"name": "precision"}, "k", "needs a depth"),
        ({"name": "ndcg", "k": 0}, "k", "got 0"),
        ({"name": "ndcg", "k": 2.5}, "k", "got 2.5"),
        ({"name": "ndcg", "k": True}, "k", "got True"),
        ({"name": "tau", "k": 3}, "k", "no depth"),
        ({"name": "ndcg", "convention": "bing"}, "convention", "'letor', 'trec'"),
        ({"name": "tau", "convention": "bing"}, "convention", "got 'bing'"),
        ({"name": "ndcg", "gain": "cubic"}, "gain", "exp2 .* callable; got 'cubic'"),
        ({"name": "ndcg", "discount": 3}, "discount", "log2 .* callable; got 3"),
        ({"name": "ndcg", "ties": "threshold"}, "ties", "average; got 'threshold'"),
        ({"name": "map", "ties": "random"}, "ties", "threshold; got 'random'"),
        ({"name": "map", "denominator": "all"}, "denominator", "average_precision"),
        ({"name": "ndcg", "relevant": 2}, "relevant", "does not depend"),
        ({"name": "mrr", "gain": "exp2"}, "gain", "does not depend"),
        ({"name": "map", "relevant": float("nan")}, "relevant", "finite label"),
        ({"name": "map", "empty": "drop"}, "empty", "got 'drop'"),
        ({"name": "map", "empty": 2}, "empty", "got 2"),
        ({"name": "map", "empty": -0.5}, "empty", "got -0.5"),
        ({"name": "map", "single_scores": "yes"}, "single_scores", "True or False"),
        ({"name": "tau", "empty": -2}, "empty", "kendall_tau"),
        ({"name": "tau", "average": "pair"}, "average", "does not depend"),
        ({"name": "disagreement", "ties": "row"}, "ties", "does not depend"),
        ({"name": "disagreement", "tied_labels": "count"}, "tied_labels", "ignore | half"),
        ({"name": "disagreement", "average": "item"}, "average", "query | pair"),
    ],
)
def test_bad_parameters(arguments, parameter, words):
    with pytest.raises(InputError, match=words) as error:
        Measure(**arguments)
    assert error.value.parameter == parameter


@pytest.mark.parametrize(
    ("call", "parameter", "row", "words"),
    [
        (lambda: ndcg([], []), "y_true", None, "empty"),
        (lambda: ndcg([[1, 0]], [1, 2]), "y_true", None, "one-dimensional"),
        (lambda: ndcg([1, np.nan], [1, 2]), "y_true", 1, "nan"),
        (lambda: ndcg(["a", "b"], [1, 2]), "y_true", None, "numbers"),
        (lambda: ndcg([1, 0, 1], [1, 2]), "y_score", None, "2 rows .* 3"),
        (lambda: ndcg([1, 0], [1, -np.inf]), "y_score", 1, "-inf"),
        (lambda: ndcg([1, 0], [[1, 2], [3, np.nan]]), "y_score", 1, "column 1"),
        (lambda: ndcg([1, 0], np.zeros((2, 0))), "y_score", None, "no columns"),
        (lambda: ndcg([1, 0], np.zeros((2, 1, 1))), "y_score", None, "shape"),
        (lambda: ndcg([1, -1], [1, 2]), "gain", 1, "negative label"),
        (lambda: ndcg([1, 5000], [1, 2]), "gain", 1, "gain inf"),
        (lambda: ndcg([1, 3], [1, 2], gain=[0, 1]), "gain", 1, "no entry"),
        (lambda: ndcg([1, 3], [1, 2], gain=lambda y: -y), "gain", 0, "gain -1"),
        (lambda: ndcg([1, 3], [1, 2], gain=lambda y: y[:1]), "gain", None, "shape"),
        (lambda: ndcg([1, 3], [1, 2], discount=lambda i: -i), "discount", None, "not negative"),
        (lambda: ndcg([1, 0], [1, 2], docno=["a", "b"]), "docno", None, "ties='docno'"),
        (lambda: ndcg([1, 0], [1, 2], docno=["a"], convention="trec"), "docno", None, "one id per row"),
        (lambda: average_precision([1, 0], [1, 2], k=1, convention="sklearn"), "k", None, "no depth"),
        (lambda: precision([1, 0], [1, 2], k=None), "k", None, "needs a depth"),
        (lambda: disagreement_error([1, 0], [1, 2], sample_weight=[1]), "sample_weight", None, "per row"),
        (lambda: disagreement_error([1, 0], [1, 2], sample_weight=[1, -1]), "sample_weight", 1, "negative"),
        (lambda: disagreement_error([1, 0], [1, 2], sample_weight=[np.inf, 1]), "sample_weight", 0, "inf"),
        (lambda: evaluate([1, 0], [1, 2], measures=["map", "pink"]), "measure", None, "'pink'"),
        (lambda: evaluate([1, 0], [1, 2], measures=[7]), "measure", None, "a measure is"),
        (lambda: evaluate([1, 0], [1, 2], measures=lambda y, f: "good"), "measure", None, "one number"),
        (lambda: evaluate([1, 1], [1, 2], measures="tau"), None, None, "judges nothing"),
        (
            lambda: Measure("tau").per_query(np.ones(2), np.ones(2), query_layout(None, 2), None, "ab"),
            "docno",
            None,
            "pairs",
        ),
    ],
)
def test_bad_input(call, parameter, row, words):
    with pytest.raises(InputError, match=words) as error:
        call()
    assert (error.value.parameter, error.value.row) == (parameter, row)


def test_every_row_needs_a_query():
    with pytest.raises(ValueError, match="1 entries .* 2 rows"):
        ndcg([1, 0], [1, 2], qid=[1])


def test_functions_take_their_arguments_as_python_does():
    with pytest.raises(TypeError, match="y_score"):
        ndcg([1, 0])
    with pytest.raises(TypeError, match="relevant"):
        ndcg([1, 0], [1, 2], relevant=1)
    with pytest.raises(TypeError, match="positional"):
        ndcg([1, 0], [1, 2], [1, 1])
    assert list(inspect.signature(kendall_tau).parameters) == [
        *("y_true", "y_score", "qid", "sample_weight", "empty", "per_query")
    ]


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
