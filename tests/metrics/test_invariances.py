"""What no measure may depend on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankrls._queries import query_layout
from rankrls.metrics import Measure, resolve_measure

MEASURES = [
    *(resolve_measure(name) for name in ("disagreement", "pair_accuracy", "tau")),
    Measure("disagreement", tied_labels="half", average="pair"),
    *(
        resolve_measure(name, convention)
        for name in ("ndcg", "ndcg@3", "map", "p@2", "mrr")
        for convention in ("letor", "trec", "sklearn")
    ),
]
by_name = pytest.mark.parametrize("measure", MEASURES, ids=str)
few = settings(max_examples=15)  # of each of many measures, which share most of their code


@st.composite
def judged_scores(draw, distinct=False):
    m = draw(st.integers(1, 14))
    y = draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))
    qid = draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))
    values = st.permutations(range(m)) if distinct else st.lists(st.integers(-3, 3), min_size=m, max_size=m)
    return np.array(y, float), np.array(draw(values), float) / 4, np.array(qid)


def judge(measure, y, f, qid, **options):
    layout = query_layout(qid, len(y))
    values, average = measure.judge(y, f.reshape(len(y), -1), layout, **options)
    return dict(zip(layout.ids.tolist(), values.tolist(), strict=True)), average


def same(one, other):
    assert one[0].keys() == other[0].keys()
    for q, values in one[0].items():
        np.testing.assert_allclose(other[0][q], values, atol=1e-13)
    np.testing.assert_allclose(other[1], one[1], atol=1e-13)


@by_name
@few
@given(case=judged_scores())
def test_strictly_increasing_transforms_of_the_scores(measure, case):
    y, f, qid = case
    same(judge(measure, y, f, qid), judge(measure, y, np.exp(2 * f) - 5, qid))


@by_name
@few
@given(case=judged_scores(distinct=True), data=st.data())
def test_row_order_where_no_scores_are_tied(measure, case, data):
    y, f, qid = case
    mixed = np.array(data.draw(st.permutations(range(len(y)))))
    same(judge(measure, y, f, qid), judge(measure, y[mixed], f[mixed], qid[mixed]))


@by_name
@few
@given(case=judged_scores())
def test_gathering_the_rows_of_each_query(measure, case):
    y, f, qid = case
    sorted_rows = np.argsort(qid, kind="stable")
    same(judge(measure, y, f, qid), judge(measure, y[sorted_rows], f[sorted_rows], qid[sorted_rows]))


@by_name
@few
@given(case=judged_scores())
def test_the_names_of_the_queries(measure, case):
    y, f, qid = case
    named = np.array([f"query {9 - q}" for q in qid])
    ours, theirs = judge(measure, y, f, qid), judge(measure, y, f, named)
    np.testing.assert_array_equal(list(ours[0].values()), list(theirs[0].values()))
    np.testing.assert_array_equal(ours[1], theirs[1])


@by_name
@few
@given(case=judged_scores(), data=st.data())
def test_columns_and_memory_layouts(measure, case, data):
    y, f, qid = case
    order = np.array(data.draw(st.permutations(range(len(f)))))
    S = np.stack([f, f[order], -f], axis=1)
    layout = query_layout(qid, len(y))
    together = measure.per_query(y, S, layout)
    frozen = S.copy()
    frozen.flags.writeable = False
    for same_scores in (np.asfortranarray(S), frozen, np.repeat(S, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(measure.per_query(y, same_scores, layout), together)
    for column in range(3):
        np.testing.assert_array_equal(measure.per_query(y, S[:, column], layout), together[:, column])


@given(case=judged_scores(), shift=st.integers(-5, 5))
def test_label_shift_moves_no_pair(case, shift):
    y, f, qid = case
    for measure in MEASURES[:4]:
        same(judge(measure, y, f, qid), judge(measure, y + shift, f, qid))


@given(case=judged_scores(distinct=True))
def test_reversing_the_scores_reverses_the_pairs(case):
    y, f, qid = case
    for name, total in (("disagreement", 1.0), ("pair_accuracy", 1.0), ("tau", 0.0)):
        forward, backward = (judge(resolve_measure(name), y, s, qid)[0] for s in (f, -f))
        for q, value in forward.items():
            np.testing.assert_allclose(value[0] + backward[q][0], total if np.isfinite(value[0]) else np.nan)


@given(case=judged_scores())
def test_the_labels_themselves_are_a_perfect_ranking(case):
    y, _, qid = case
    for measure in MEASURES:
        if measure.name == "precision":
            continue
        for q, (value,) in judge(measure, y, y, qid)[0].items():
            nothing = not (y[qid == q] >= 1).any()
            if np.isfinite(value) and not nothing:
                assert value == pytest.approx(float(measure.greater_is_better), abs=1e-12)
