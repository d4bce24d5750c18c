"""What no measure may depend on."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rankrls._queries import query_layout
from rankrls.metrics import Measure, resolve_measure

MEASURES = [
    *(resolve_measure(name) for name in ("disagreement", "pair_accuracy", "tau")),
    Measure("disagreement", tied_labels="half"),
    *(
        resolve_measure(name, convention)
        for name in ("ndcg@3", "map", "p@2", "mrr", "err", "rprec")
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
    values = measure.per_query(y, f.reshape(len(y), -1), layout, **options)
    return dict(zip(layout.ids.tolist(), values.tolist(), strict=True))


def same(one, other):
    assert one.keys() == other.keys()
    for q, values in one.items():
        np.testing.assert_allclose(other[q], values, atol=1e-13)


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


@given(case=judged_scores())
def test_the_labels_themselves_are_a_perfect_ranking(case):
    y, _, qid = case
    for measure in MEASURES:
        if measure.name in ("precision", "err"):
            continue
        for q, (value,) in judge(measure, y, y, qid).items():
            nothing = not (y[qid == q] >= 1).any()
            if np.isfinite(value) and not nothing:
                assert value == pytest.approx(float(measure.greater_is_better), abs=1e-12)
