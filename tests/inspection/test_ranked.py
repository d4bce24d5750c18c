"""Positions and lists, against sorting by hand and trec_eval's own order."""

import numpy as np
from hypothesis import given, strategies as st
from tests.refusals import Refusal

from rankrls import RankRLS
from rankrls.inspection import rank_positions, rank_scores

ROWS = st.lists(
    st.tuples(
        st.sampled_from([-1.0, -0.0, 0.0, 0.5, 2.0]), st.sampled_from("abc"), st.sampled_from(["d1", "d10", "d9"])
    ),
    max_size=12,
)


def by_hand(rows, k, by_id):
    """(query, row, position) of the rows, queries in order of first appearance."""
    out = []
    for query in dict.fromkeys(q for _, q, _ in rows):
        own = [i for i, (_, q, _) in enumerate(rows) if q == query]
        if by_id:
            own = sorted(own, key=lambda i: rows[i][2], reverse=True)
            own = [i for name in dict.fromkeys(rows[i][2] for i in own) for i in sorted(own) if rows[i][2] == name]
        own = sorted(own, key=lambda i: -rows[i][0])  # stable
        out += [(query, i, place) for place, i in enumerate(own[:k], 1)]
    return out


@given(ROWS, st.sampled_from([None, 1, 3]), st.booleans())
def test_lists_are_what_sorting_gives(rows, k, by_id):
    scores, qid, names = ([row[j] for row in rows] for j in range(3))
    docno = names if by_id else None
    ranking = rank_scores(scores, qid=qid, k=k, docno=docno)
    expected = by_hand(rows, k, by_id)
    assert list(zip(ranking.qid.tolist(), ranking.rows.tolist(), ranking.positions.tolist(), strict=True)) == expected
    assert ranking.scores.tolist() == [scores[i] for _, i, _ in expected]
    if k is None:
        positions = rank_positions(scores, qid=qid, docno=docno)
        assert positions[ranking.rows].tolist() == ranking.positions.tolist()


def test_several_targets_and_no_queries():
    scores = np.array([[1.0, 3.0], [2.0, 2.0], [2.0, 1.0]])
    assert rank_positions(scores).tolist() == [[3, 1], [1, 2], [2, 3]]
    ranking = rank_scores(scores[:, 0], k=2)
    assert ranking.qid is None
    assert ranking.rows.tolist() == [1, 2]
    assert len(rank_scores([]).rows) == 0


def test_the_best_of_a_model_are_those_of_its_positions():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(30, 3)), np.repeat([3, 1, 2], 10)
    ranker = RankRLS().fit(X, rng.integers(0, 3, 30), qid=qid)
    found = rank_scores(ranker.predict(X), qid=qid, k=4)
    positions = ranker.rank(X, qid=qid)
    np.testing.assert_array_equal(positions[found.rows], found.positions)
    assert sorted(positions[found.rows]) == sorted([1, 2, 3, 4] * 3)


def test_bad_scores_numbers_and_names():
    for call, parameter in (
        (lambda: rank_scores([1.0, np.nan]), "scores"),
        (lambda: rank_scores(np.zeros((2, 2))), "scores"),
        (lambda: rank_scores([1.0], k=0), "k"),
        (lambda: rank_scores([1.0], docno=["a", "b"]), "docno"),
    ):
        with Refusal(parameter=parameter):
            call()
