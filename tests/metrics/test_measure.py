"""Measures as values: names, choices, errors, and evaluate."""

import inspect

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy.stats import spearmanr
from tests.refusals import Refusal

from rankrls import InputError
from rankrls._compiled.near_ties import merge_near_ties
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
from rankrls.metrics._averages import mean_and_error

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
    with Refusal("average_precision", "kendall_tau", parameter="measure"):
        resolve_measure(name)


@pytest.mark.parametrize(
    ("arguments", "parameter", "refusal"),
    [
        ({"name": "dcg"}, "measure", Refusal("'dcg'", parameter="measure")),
        ({"name": "precision"}, "k", Refusal("needs a depth", parameter="k")),
        ({"name": "ndcg", "k": 0}, "k", Refusal("got 0", parameter="k")),
        ({"name": "ndcg", "k": 2.5}, "k", Refusal("got 2.5", parameter="k")),
        ({"name": "ndcg", "k": True}, "k", Refusal("got True", parameter="k")),
        ({"name": "tau", "k": 3}, "k", Refusal("no depth", parameter="k")),
        ({"name": "ndcg", "convention": "bing"}, "convention", Refusal("'letor', 'trec'", parameter="convention")),
        ({"name": "tau", "convention": "bing"}, "convention", Refusal("got 'bing'", parameter="convention")),
        ({"name": "ndcg", "gain": "cubic"}, "gain", Refusal("exp2", "'cubic'", parameter="gain")),
        ({"name": "ndcg", "discount": 3}, "discount", Refusal("log2", "got 3", parameter="discount")),
        ({"name": "ndcg", "ties": "threshold"}, "ties", Refusal("average", "'threshold'", parameter="ties")),
        ({"name": "map", "ties": "random"}, "ties", Refusal("threshold", "'random'", parameter="ties")),
        ({"name": "map", "denominator": "all"}, "denominator", Refusal("average_precision", parameter="denominator")),
        ({"name": "ndcg", "relevant": 2}, "relevant", Refusal("does not depend")),
        ({"name": "mrr", "gain": "exp2"}, "gain", Refusal("does not depend")),
        ({"name": "map", "relevant": float("nan")}, "relevant", Refusal("finite label", parameter="relevant")),
        ({"name": "map", "empty": "drop"}, "empty", Refusal("got 'drop'", parameter="empty")),
        ({"name": "map", "empty": 2}, "empty", Refusal("got 2", parameter="empty")),
        ({"name": "map", "empty": -0.5}, "empty", Refusal("got -0.5", parameter="empty")),
        ({"name": "map", "single_scores": "yes"}, "single_scores", Refusal("True or False", parameter="single_scores")),
        ({"name": "tau", "empty": -2}, "empty", Refusal("kendall_tau", parameter="empty")),
        ({"name": "tau", "average": "pair"}, "average", Refusal("does not depend")),
        ({"name": "disagreement", "ties": "row"}, "ties", Refusal("does not depend")),
        ({"name": "disagreement", "tied_labels": "count"}, "tied_labels", Refusal(parameter="tied_labels")),
        ({"name": "disagreement", "average": "item"}, "average", Refusal(parameter="average")),
    ],
)
def test_bad_parameters(arguments, parameter, refusal):
    with refusal as error:
        Measure(**arguments)
    assert error.value.parameter == parameter


@pytest.mark.parametrize(
    ("call", "parameter", "row", "refusal"),
    [
        (lambda: ndcg([], []), "y_true", None, Refusal("empty", parameter="y_true")),
        (lambda: ndcg([[1, 0]], [1, 2]), "y_true", None, Refusal("one-dimensional", parameter="y_true")),
        (lambda: ndcg([1, np.nan], [1, 2]), "y_true", 1, Refusal("nan", parameter="y_true", row=1)),
        (lambda: ndcg(["a", "b"], [1, 2]), "y_true", None, Refusal("numbers", parameter="y_true")),
        (lambda: ndcg([1, 0, 1], [1, 2]), "y_score", None, Refusal("2 rows", "3", parameter="y_score")),
        (lambda: ndcg([1, 0], [1, -np.inf]), "y_score", 1, Refusal("-inf", parameter="y_score", row=1)),
        (
            lambda: ndcg([1, 0], [[1, 2], [3, np.nan]]),
            "y_score",
            1,
            Refusal("column 1", parameter="y_score", row=1, column=1),
        ),
        (lambda: ndcg([1, 0], np.zeros((2, 0))), "y_score", None, Refusal("no columns", parameter="y_score")),
        (lambda: ndcg([1, 0], np.zeros((2, 1, 1))), "y_score", None, Refusal("shape")),
        (lambda: ndcg([1, -1], [1, 2]), "gain", 1, Refusal("negative label", parameter="gain", row=1)),
        (lambda: ndcg([1, 5000], [1, 2]), "gain", 1, Refusal("inf", parameter="gain", row=1)),
        (lambda: ndcg([1, 3], [1, 2], gain=[0, 1]), "gain", 1, Refusal("no entry", parameter="gain", row=1)),
        (lambda: ndcg([1, 3], [1, 2], gain=lambda y: -y), "gain", 0, Refusal("-1", parameter="gain", row=0)),
        (lambda: ndcg([1, 3], [1, 2], gain=lambda y: y[:1]), "gain", None, Refusal("shape")),
        (
            lambda: ndcg([1, 3], [1, 2], discount=lambda i: -i),
            "discount",
            None,
            Refusal("not negative", parameter="discount"),
        ),
        (lambda: ndcg([1, 0], [1, 2], docno=["a", "b"]), "docno", None, Refusal("ties='docno'", parameter="docno")),
        (
            lambda: ndcg([1, 0], [1, 2], docno=["a"], convention="trec"),
            "docno",
            None,
            Refusal("one id per row", parameter="docno"),
        ),
        (
            lambda: average_precision([1, 0], [1, 2], k=1, convention="sklearn"),
            "k",
            None,
            Refusal("no depth", parameter="k"),
        ),
        (
            lambda: precision([1, 0], [1, 2], k=None),
            "k",
            None,
            Refusal("needs a depth", parameter="k", remedy="precision@10"),
        ),
        (
            lambda: disagreement_error([1, 0], [1, 2], sample_weight=[1]),
            "sample_weight",
            None,
            Refusal("per row", parameter="sample_weight"),
        ),
        (
            lambda: disagreement_error([1, 0], [1, 2], sample_weight=[1, -1]),
            "sample_weight",
            1,
            Refusal("negative", parameter="sample_weight", row=1),
        ),
        (
            lambda: disagreement_error([1, 0], [1, 2], sample_weight=[np.inf, 1]),
            "sample_weight",
            0,
            Refusal("inf", parameter="sample_weight", row=0),
        ),
        (
            lambda: evaluate([1, 0], [1, 2], measures=["map", "pink"]),
            "measure",
            None,
            Refusal("'pink'", parameter="measure"),
        ),
        (lambda: evaluate([1, 0], [1, 2], measures=[7]), "measure", None, Refusal(parameter="measure")),
        (
            lambda: evaluate([1, 0], [1, 2], measures=lambda y, f: "good"),
            "measure",
            None,
            Refusal("one number", parameter="measure"),
        ),
        (lambda: evaluate([1, 1], [1, 2], measures="tau"), None, None, Refusal("judges nothing")),
        (
            lambda: Measure("tau").per_query(np.ones(2), np.ones(2), query_layout(None, 2), None, "ab"),
            "docno",
            None,
            Refusal("pairs", parameter="docno"),
        ),
    ],
)
def test_bad_input(call, parameter, row, refusal):
    with refusal as error:
        call()
    assert (error.value.parameter, error.value.row) == (parameter, row)


def test_every_row_needs_a_query():
    with Refusal("1 entries", "2 rows", parameter="qid"):
        ndcg([1, 0], [1, 2], qid=[1])


def test_functions_take_their_arguments_as_python_does():
    with Refusal("y_score", kind=TypeError):
        ndcg([1, 0])
    with Refusal("relevant", kind=TypeError):
        ndcg([1, 0], [1, 2], relevant=1)
    with Refusal("positional", kind=TypeError):
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


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("ndgc@10", "'ndcg@10'"),
        ("NDCG 10", "'ndcg@10'"),
        ("precison@5", "'precision@5'"),
        ("disagrement@3", "'disagreement'"),
    ]
    + [("xyzzy", ""), ("", "")],
)
def test_a_name_that_is_nearly_one(given, meant):
    with pytest.raises(InputError) as error:
        resolve_measure(given)
    assert error.value.parameter == "measure"
    assert error.value.remedy == (f"Did you mean {meant}?" if meant else "")


@pytest.mark.parametrize("name", ["disagreement", "pair_accuracy", "tau", "map", "ndcg@5"])
@pytest.mark.parametrize("near", [1e-10, (0.2, 1e-10)])
def test_scores_that_differ_by_rounding_are_judged_as_ties(name, near):
    rng = np.random.default_rng(0)
    y, layout = rng.integers(0, 3, 90).astype(float), query_layout(np.repeat(np.arange(9), 10), 90)
    exact = rng.integers(0, 4, (90, 2)).astype(float)
    noisy = exact * (1.0 + 1e-15 * rng.normal(size=exact.shape))
    merged = merge_near_ties(noisy, layout.order, layout.starts, near)
    measure, w = resolve_measure(name), rng.uniform(size=90)
    found = measure.judge_computed(y, noisy.copy(), layout, w, near=near, overwrite=True)
    assert len(np.unique(noisy)) > len(np.unique(merged))
    for own, expected in zip(found, measure.judge(y, merged, layout, w), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-12)


def test_mean_and_error_are_those_of_the_values_that_are_judged():
    values = np.random.default_rng(0).normal(size=(7, 4))
    values[2, 1] = values[1:, 2] = values[:, 3] = np.nan
    known = [column[~np.isnan(column)] for column in values.T]
    mean, error = mean_and_error(values)
    np.testing.assert_allclose(mean, [part.mean() if len(part) else np.nan for part in known], rtol=1e-12)
    wanted = [part.std(ddof=1) / np.sqrt(len(part)) if len(part) > 1 else np.nan for part in known]
    np.testing.assert_allclose(error, wanted, rtol=1e-12)
