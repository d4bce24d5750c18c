"""Scores that are equal but for rounding: which are made equal, and that no choice depends on the order of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, example, given, reject, strategies as st

from rankrls import InputError, RankRLS, RankRLSCV
from rankrls._queries import query_layout
from rankrls.metrics import evaluate
from rankrls.numerics.ties import tie, tied

RNG = np.random.default_rng(0)
NINE = np.array(
    [
        [0, 0, 1, 0, 1, 0, 1, 0],
        [0, 1, 0, 1, 0, 0, 1, 1],
        [1, 1, 0, 0, 1, 0, 1, 0],
        [0, 0, 0, 0, 0, 1, 1, 0],
        [0, 1, 0, 0, 0, 0, 0, 1],
        [0, 1, 1, 0, 1, 0, 1, 0],
        [1, 0, 1, 0, 1, 1, 0, 0],
        [0, 1, 0, 0, 1, 0, 0, 1],
        [0, 0, 1, 0, 1, 0, 0, 0],
    ]
)
NINE_Y, NINE_Q = np.array([0, 2, 1, 0, 1, 2, 0, 1, 0]), np.array([1, 0, 1, 0, 1, 1, 1, 2, 1])


def evaluated(model, y, q, w=None):
    return evaluate(y, model.held_out_scores_, qid=q, measures=["disagreement"], sample_weight=w)["disagreement"]


@pytest.mark.parametrize("order", [np.array([2, 0, 3, 4, 8, 6, 7, 5, 1]), *(RNG.permutation(9) for _ in range(30))])
def test_five_models_that_are_equally_good_on_paper_are_so_in_any_order_of_rows(order):
    X, y, q = NINE[order], NINE_Y[order], NINE_Q[order]
    model = RankRLSCV((1e-3, 0.01, 0.1, 1.0, 10.0), balance="pairs", solver="dual").fit(X, y, qid=q)
    np.testing.assert_allclose(model.cv_results_["mean_score"], 3 / 44, rtol=1e-12)  # in exact arithmetic
    assert model.alpha_ == 10.0
    assert evaluated(model, y, q) == pytest.approx(model.best_score_, abs=1e-14)


# LAPACK's dsyevr, asked for an interval of values, fails here with the loops of one processor (Haswell).
CLUSTERED = (
    np.array(
        [
            [2, 0, 0, 0, 1, 2, 1, 0, 1, 1, 2],
            [2, 2, 0, 2, 0, 1, 0, 0, 1, 0, 1],
            [0, 0, 2, 1, 2, 2, 2, 1, 0, 1, 2],
            [2, 2, 2, 1, 1, 0, 0, 0, 1, 1, 1],
            [2, 2, 2, 2, 2, 0, 2, 2, 0, 1, 1],
            [2, 2, 0, 1, 0, 2, 0, 1, 2, 1, 2],
            [1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1],
            [2, 0, 1, 1, 2, 1, 1, 0, 2, 1, 1],
            [0, 2, 1, 1, 2, 1, 0, 0, 0, 0, 1],
            [0, 1, 2, 1, 1, 0, 2, 0, 2, 1, 1],
            [2, 2, 2, 1, 0, 2, 2, 1, 1, 0, 2],
            [0, 1, 0, 2, 1, 0, 0, 0, 0, 2, 2],
            [1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
            [2, 2, 2, 0, 1, 2, 1, 0, 1, 1, 2],
        ],
        dtype=float,
    ),
    np.array([1, 0, 0, 2, 2, 1, 0, 0, 2, 0, 1, 2, 0, 2]),
    np.array([0, 0, 0, 0, 1, 0, 1, 2, 1, 0, 2, 0, 1, 2]),
    np.array([1, 1, 0.5, 0.5, 0.5, 0.5, 2, 1, 2, 1, 2, 1, 1, 0.5]),
    np.array([1, 6, 0, 4, 10, 7, 2, 11, 12, 9, 5, 13, 8, 3]),
)


@st.composite
def discrete_data(draw):
    m, n, top = draw(st.integers(6, 15)), draw(st.integers(2, 11)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X, y, q = rng.integers(0, top + 1, (m, n)), rng.integers(0, 3, m), rng.integers(0, draw(st.integers(2, 3)), m)
    assume(sum(len(set(y[q == query])) > 1 for query in set(q)) > 1)
    return X.astype(float), y, q, draw(st.sampled_from([None, rng.choice([0.5, 1.0, 2.0], m)])), rng.permutation(m)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"solver": "dual"}, {"solver": "primal"}, {"kernel": "rbf", "gamma": 0.1}, {"ties": "exclude"}, {"cv": 2}],
    ids=str,
)
@example(data=CLUSTERED, balance="pairs")
@given(data=discrete_data(), balance=st.sampled_from(["pairs", "examples"]))
def test_choice_and_value_do_not_depend_on_the_order_of_discrete_rows(parameters, data, balance):
    X, y, q, w, order = data
    found = []
    for rows in (np.arange(len(y)), order):
        weights = None if w is None else w[rows]
        model = RankRLSCV((10.0, 1.0, 0.1, 0.01, 1e-3), balance=balance, **parameters)
        try:
            model.fit(X[rows], y[rows], qid=q[rows], sample_weight=weights)
        except InputError:  # a fold leaves nothing to compare
            reject()
        assert evaluated(model, y[rows], q[rows], weights) == pytest.approx(model.best_score_, abs=1e-12)
        found.append(model)
    one, other = found
    np.testing.assert_allclose(other.cv_results_["mean_score"], one.cv_results_["mean_score"], rtol=0, atol=1e-12)
    assert other.alpha_ == one.alpha_


@pytest.mark.parametrize("scale", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("balance", ["pairs", "examples", "queries"])
@pytest.mark.parametrize("repeated", [1, 5, 100])
def test_features_to_which_labels_are_orthogonal_order_nothing(repeated, balance, scale):
    """Parity of three truth values: products of labels and features cancel to rounding, which must not rank items."""
    corners = np.repeat(np.array([*np.ndindex(2, 2, 2)]), repeated, axis=0)
    X = np.tile(corners, (5, 1)) * scale
    y = np.tile(corners.sum(axis=1) % 2, 5)
    q = np.repeat(np.arange(5), len(corners))
    model = RankRLSCV((1e4, 1.0, 1e-3), balance=balance).fit(X, y, qid=q)
    np.testing.assert_array_equal(model.cv_results_["mean_score"], 0.5)


def test_preferences_that_cancel_order_nothing():
    """Without the preferences of two items, as many are for each kind of item as against it."""
    X = np.array([[1.0, 0.0], [0.0, 1.0]] * 3)
    winners = np.array([2, 2, 1, 2, 1, 3, 4, 2, 0, 4, 3, 4, 3, 0, 2, 0, 0, 2, 3, 2, 4, 3, 0, 0, 1, 3, 3, 2, 4, 4, 0, 1])
    losers = np.array([1, 1, 3, 1, 4, 2, 0, 0, 2, 3, 4, 0, 0, 1, 4, 1, 4, 3, 0, 0, 2, 1, 1, 2, 0, 4, 2, 1, 0, 0, 4, 4])
    model = RankRLSCV((10.0,), cv="leave_pair_out", scoring="pair_accuracy").fit_pairs(X, winners, losers, new="items")
    right = []
    for first, second in zip(winners, losers, strict=True):
        rest = ~np.isin(np.column_stack((winners, losers)), (first, second)).any(axis=1)
        scores = RankRLS(10.0).fit_pairs(X, winners[rest], losers[rest]).predict(X)
        right.append(0.5 + 0.5 * np.sign(np.round(scores[first] - scores[second], 9)))
    assert model.best_score_ == np.mean(right)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_huge_cell_of_validation_data_counts_in_its_query_alone(kernel):
    rng = np.random.default_rng(0)
    X, q = rng.normal(size=(120, 5)), np.arange(120) // 10
    y = (X[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int)
    X_val = rng.normal(size=(60, 5))
    y_val, q_val = (X_val[:, 0] > 0).astype(int), np.arange(60) // 6
    huge = X_val.copy()
    huge[0, 0] *= 1e15
    values = []
    for items in (X_val, huge):
        model = RankRLSCV((10.0, 1.0, 0.1), kernel=kernel).fit(X, y, qid=q, X_val=items, y_val=y_val, qid_val=q_val)
        values.append(model.cv_results_["mean_score"])
    np.testing.assert_array_less(np.abs(values[1] - values[0]), 1.0 / 10 + 1e-12)  # one query of ten


def test_scores_that_are_tied_have_one_value_and_others_keep_their_order():
    scores = np.array([[0.0, 0.9, 1.8, 2.7, 10.0, 10.0]])
    tie(scores, np.array([0, 6]), np.full((1, 6), 0.5))
    np.testing.assert_array_equal(scores, [[0.0, 0.0, 1.8, 1.8, 10.0, 10.0]])  # near is not transitive, equal is
    scores = np.array([[1e-12, 0.0, 3e-12, 1e-12]])
    tie(scores, np.array([0, 3, 4]), np.zeros((1, 4)), np.full((1, 4), 1e6))
    assert scores[0, 1] < scores[0, 0] < scores[0, 2] < 1e6 + 1e-8  # an offset hides no difference
    assert scores[0, 3] == 1e6


@pytest.mark.parametrize("tail", ["outlier", "pareto"])
def test_an_outlier_makes_no_other_scores_equal(tail):
    """Scores in steps of .001 beside one of 1e5 are as far apart as without it, and rounding is still a tie."""
    rng = np.random.default_rng(0)
    x = np.append(1e5, 0.001 * np.arange(299)) if tail == "outlier" else rng.pareto(0.5, 300)
    sizes = 64 * np.finfo(float).eps * np.abs(x - x.mean())
    noisy = np.repeat(x + 0.1 * sizes * rng.normal(size=(5, 300)), 2, axis=1)
    noisy[:, ::2] *= 1.0 + 1e-16
    off = np.ascontiguousarray(np.broadcast_to(np.repeat(sizes, 2), noisy.shape))
    tie(noisy, np.array([0, 600]), off)
    np.testing.assert_array_equal(noisy[:, ::2], noisy[:, 1::2])
    assert min(len(np.unique(scores)) for scores in noisy) > 0.95 * 300


def test_predictions_of_equal_items_are_tied_by_score():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    model = RankRLS(kernel="rbf", gamma=0.1, alpha=1e-8).fit(X, rng.integers(0, 3, 200))
    again = np.repeat(rng.normal(size=(1, 5)), 600, axis=0)
    again = np.where(np.arange(600)[:, None] % 3 == 0, rng.normal(size=(600, 5)), again)
    y = np.arange(600) % 3 > 0
    predictions = model.predict(again)
    same = np.flatnonzero(y)
    assert len(np.unique(tied(predictions[:, None], query_layout(None, 600))[same])) == 1
    labels = np.zeros(600)
    labels[same[::2]] = 1.0
    assert model.score(again[same], labels[same]) == 0.5
