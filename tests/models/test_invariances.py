"""What must not change what is learned."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

from rankrls import RankRLS, RankRLSCV
from tests.models.oracles import GRAPHS, graph_id, ranking_data

KINDS = [{"solver": "primal"}, {"solver": "dual"}, {"kernel": "rbf", "gamma": 0.2}]


@st.composite
def problems(draw):
    """Items in any arrangement of queries, ties and weights, and one of the estimator's kinds."""
    m = draw(st.integers(2, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    qid = np.array(draw(st.lists(st.integers(0, 4), min_size=m, max_size=m)))
    y = np.array(draw(st.lists(st.integers(-2, 3), min_size=m, max_size=m)), dtype=float)
    y[:2], qid[:2] = [0, 1], 0  # something to compare
    X = rng.normal(size=(m, draw(st.integers(1, 6))))
    w = rng.integers(1, 4, m).astype(float)
    options = {**draw(st.sampled_from(KINDS)), **draw(st.sampled_from(GRAPHS))}
    return X, y, qid, w, options, rng


def scores(options, X, y, qid, w=None, alpha=0.5, new=None):
    return RankRLS(alpha, **options).fit(X, y, qid=qid, sample_weight=w).predict(X if new is None else new)


@given(problems())
def test_row_order(problem):
    X, y, qid, w, options, rng = problem
    p = rng.permutation(len(y))
    np.testing.assert_allclose(scores(options, X[p], y[p], qid[p], w[p]), scores(options, X, y, qid, w)[p], atol=1e-9)


@given(problems(), st.sampled_from(["int", "str", "tuple", "float", "mixed"]))
def test_names_of_queries(problem, kind):
    X, y, qid, w, options, rng = problem
    names = {
        "int": rng.permutation(np.arange(-3, 2)).tolist(),
        "str": ["b", "a", "", "query 7", "ä"],
        "tuple": [("s", 2), ("s", 1), ("a", 9), (1, 1), (None, 0)],
        "float": [0.5, -1.0, 2.0, np.inf, 1e300],
        "mixed": [1, "1", (1,), 1.5, b"1"],
    }[kind]
    renamed = [names[k] for k in qid]
    np.testing.assert_allclose(scores(options, X, y, renamed, w), scores(options, X, y, qid, w), atol=1e-12)


@given(problems(), st.floats(-1e3, 1e3))
def test_labels_may_be_shifted_query_by_query(problem, shift):
    X, y, qid, w, options, _ = problem
    options["regression_weight"] = 0.0
    moved = y + np.round(shift * (1 + qid) * 8) / 8  # exact, so that ties stay ties
    np.testing.assert_allclose(scores(options, X, moved, qid, w), scores(options, X, y, qid, w), atol=1e-8)


@given(problems(), st.floats(1e-3, 1e3))
def test_labels_scale_the_scores(problem, factor):
    X, y, qid, w, options, _ = problem
    expected = factor * scores(options, X, y, qid, w)
    np.testing.assert_allclose(scores(options, X, factor * y, qid, w), expected, atol=1e-9 * (1 + factor))


@given(problems())
def test_rows_of_weight_zero_do_not_exist(problem):
    X, y, qid, w, options, rng = problem
    w[2:] *= rng.integers(0, 2, len(y) - 2)
    kept = w > 0
    model = RankRLS(0.5, **options).fit(X, y, qid=qid, sample_weight=w)
    expected = RankRLS(0.5, **options).fit(X[kept], y[kept], qid=qid[kept], sample_weight=w[kept])
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-12)
    assert model.n_queries_ == expected.n_queries_ == len(set(qid[kept].tolist()))


@given(problems())
def test_integer_weights_are_repetitions(problem):
    X, y, qid, w, options, _ = problem
    again = np.repeat(np.arange(len(y)), w.astype(int))
    # else repetition adds compared pairs
    assume(options["balance"] != "queries" or options["ties"] == "exclude" or options["regression_weight"] == 1.0)
    weighted = scores(options, X, y, qid, w)
    np.testing.assert_allclose(scores(options, X[again], y[again], qid[again], new=X), weighted, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("graph", [g for g in GRAPHS if g["regression_weight"] != 0.3], ids=graph_id)
def test_equal_weights_act_through_alpha_alone(graph, kind):
    """Weights of 2: pairs weigh 4 under "pairs", 2 under "examples" and 1 under "queries"; squares weigh 2."""
    X, y, qid = ranking_data(2)
    factor = {"pairs": 4.0, "examples": 2.0, "queries": 1.0}[graph["balance"]]
    factor = 2.0 if graph["regression_weight"] == 1.0 else factor
    weighted = scores({**kind, **graph}, X, y, qid, np.full(len(y), 2.0), alpha=0.5)
    np.testing.assert_allclose(weighted, scores({**kind, **graph}, X, y, qid, alpha=0.5 / factor), atol=1e-10)


def test_nothing_that_is_given_is_changed():
    X, y, qid = ranking_data(5)
    w = np.ones(len(y))
    K = X @ X.T
    copies = [np.array(v) for v in (X, y, qid, w, K)]
    for v in (X, y, qid, w, K):
        v.flags.writeable = False
    for options in (*KINDS, {"ties": "exclude"}):
        RankRLSCV(alphas=(1.0, 2.0), **options).fit(X, y, qid=qid, sample_weight=w)
        RankRLS(**options).fit(X, y, qid=qid, sample_weight=w).score(X, y, qid=qid)
    RankRLSCV(alphas=(1.0, 2.0), kernel="precomputed", balance=("pairs", "queries")).fit(K, y, qid=qid)
    RankRLS(kernel="precomputed").fit_pairs(K, [0, 1, 2], [1, 2, 3])
    RankRLS(kernel="precomputed").fit_pairs(K[:3, :3], [0, 1, 2, 0, 1], [1, 2, 0, 2, 0])
    for before, after in zip(copies, (X, y, qid, w, K), strict=True):
        np.testing.assert_array_equal(before, after)
