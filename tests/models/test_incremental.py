"""partial_fit: exact, and nothing lost when it refuses."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

from rankrls import RankRLS, SparseRankRLS
from rankrls.models.incremental import UpdateState
from tests.models.oracles import GRAPHS, graph_id, query_rows, ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(50, queries=8)
W = np.random.default_rng(51).random(len(Y)) + 0.2
QUERIES = query_rows(QID)


def take(rows, X=X, Y=Y, W=W):
    return {"X": X[rows], "y": Y[rows], "qid": QID[rows], "sample_weight": W[rows]}


def state_of(model):
    return copy.deepcopy(vars(model))


def assert_same_state(before, after):
    assert before.keys() == after.keys()
    for name, value in before.items():
        if isinstance(value, dict):
            assert_same_state(value, after[name])
        elif isinstance(value, UpdateState):
            assert_same_state(vars(value), vars(after[name]))
        elif name == "equations":
            for old, new in zip(value, after[name], strict=True):
                assert_same_state(vars(old), vars(new))
        elif isinstance(value, list):
            assert all(np.array_equal(old, new) for old, new in zip(value, after[name], strict=True)), name
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, after[name])
        else:
            assert value == after[name], name


@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32", "targets"])
def test_batches_in_any_order_equal_one_fit(kind, graph):
    features = {"sparse": sparse.csr_array(X), "float32": X.astype(np.float32)}.get(kind, X)
    y = np.column_stack((Y, X[:, 0])) if kind == "targets" else Y
    full = RankRLS(0.3, **graph).fit(features, y, qid=QID, sample_weight=W)
    rng = np.random.default_rng(52)
    for _ in range(3):
        batches = np.array_split(rng.permutation(len(QUERIES)), 3)
        model = RankRLS(0.3, solver="primal", **graph)
        for batch in batches:
            rows = rng.permutation(np.concatenate([QUERIES[q] for q in batch]))
            assert model.partial_fit(**take(rows, features, y)) is model
        np.testing.assert_allclose(model.coef_, full.coef_, atol=1e-10)
        assert model.n_queries_ == full.n_queries_
        assert model.coef_.shape == full.coef_.shape


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_first_batch_gives_the_basis_of_shorter_ones(kernel):
    first = np.concatenate(QUERIES[:5])
    rest = np.concatenate(QUERIES[5:])
    rows = np.concatenate((first, rest))
    basis = [0, len(first) - 1, 3]
    assert max(basis) >= len(rest)
    full = SparseRankRLS(0.3, basis_indices=basis, kernel=kernel).fit(**take(rows))
    model = SparseRankRLS(0.3, basis_indices=basis, kernel=kernel).partial_fit(**take(first)).partial_fit(**take(rest))
    np.testing.assert_array_equal(model.basis_indices_, full.basis_indices_)
    np.testing.assert_allclose(model.predict(X), full.predict(X), atol=1e-9)


def test_batches_without_qid_are_rankings_of_their_own():
    first, second = np.arange(0, 12), np.arange(12, len(Y))
    model = RankRLS().partial_fit(X[first], Y[first]).partial_fit(X[second], Y[second])
    batch = np.repeat([0, 1], [12, len(second)])
    order = np.concatenate((first, second))
    np.testing.assert_allclose(model.coef_, RankRLS().fit(X[order], Y[order], qid=batch).coef_, atol=1e-12)
    assert model.n_queries_ == 2


def test_alpha_may_change_between_updates():
    rest = np.concatenate(QUERIES[1:])
    model = RankRLS(1.0, solver="primal").partial_fit(X[rest], Y[rest], qid=QID[rest])
    model.set_params(alpha=50.0).partial_fit(X[QUERIES[0]], Y[QUERIES[0]], qid=QID[QUERIES[0]])
    assert model.alpha_ == 50.0
    np.testing.assert_allclose(model.coef_, RankRLS(50.0).fit(X, Y, qid=QID).coef_, atol=1e-12)


def test_a_first_batch_that_orders_nothing_is_allowed():
    model = RankRLS().partial_fit(X[:3], [1, 1, 1], qid=[7, 7, 7])
    np.testing.assert_array_equal(model.coef_, 0.0)
    model.partial_fit(X[3:6], [0, 1, 2], qid=["a"] * 3)
    np.testing.assert_allclose(model.coef_, RankRLS().fit(X[:6], [1, 1, 1, 0, 1, 2], qid=[7, 7, 7, 8, 8, 8]).coef_)


def test_alpha_zero_and_more_features_than_rows():
    wide = np.random.default_rng(53).normal(size=(len(Y), 60))
    full = RankRLS(0.0).fit(wide, Y, qid=QID)
    model = RankRLS(0.0, solver="primal")
    for rows in QUERIES:
        model.partial_fit(wide[rows], Y[rows], qid=QID[rows])
    np.testing.assert_allclose(model.coef_, full.coef_, atol=1e-9)


SEEN, NEW = QUERIES[3], np.concatenate(QUERIES[6:])
KNOWN = np.concatenate(QUERIES[:6])
REFUSALS = [
    (take(SEEN), Refusal(f"Query {QID[SEEN[0]]}", "seen before", parameter="qid")),
    (take(np.concatenate((NEW, SEEN[:1]))), Refusal("seen before", parameter="qid")),
    ({**take(NEW), "qid": None}, Refusal("qid was 'given'", parameter="qid")),
    ({**take(NEW), "X": X[NEW][:, :3]}, Refusal("3 features", kind=ValueError)),
    ({**take(NEW), "X": X[NEW][1:]}, Refusal("13 rows", "y has 14", parameter="y")),
    ({**take(NEW), "X": np.full((len(NEW), 4), np.nan)}, Refusal("NaN", parameter="X", row=0, column=0)),
    ({**take(NEW), "y": np.full(len(NEW), np.inf)}, Refusal("infinity", parameter="y", row=0)),
    ({**take(NEW), "y": np.zeros((len(NEW), 2))}, Refusal("of 1 targets", "of 2 targets", parameter="y")),
    (
        {**take(NEW), "sample_weight": -np.ones(len(NEW))},
        Refusal("negative", parameter="sample_weight", row=0),
    ),
    ({**take(NEW), "sample_weight": np.zeros(len(NEW))}, Refusal("zero", parameter="sample_weight")),
    ({**take(NEW), "qid": QID[NEW][1:]}, Refusal(parameter="qid")),
]


@pytest.mark.parametrize(("arguments", "refusal"), REFUSALS)
def test_a_refusal_changes_nothing(arguments, refusal):
    model = RankRLS(0.5, solver="primal").partial_fit(**take(KNOWN))
    before = state_of(model)
    with refusal:
        model.partial_fit(**arguments)
    assert_same_state(before, vars(model))
    model.partial_fit(**take(NEW))
    np.testing.assert_allclose(model.coef_, RankRLS(0.5).fit(X, Y, qid=QID, sample_weight=W).coef_, atol=1e-12)


@pytest.mark.parametrize("change", [{"ties": "exclude"}, {"balance": "pairs"}, {"regression_weight": 0.5}], ids=str)
def test_graphs_are_not_mixed(change):
    model = RankRLS().partial_fit(**take(KNOWN)).set_params(**change)
    before = state_of(model)
    with Refusal("mix graphs", parameter=next(iter(change)), remedy="Only alpha"):
        model.partial_fit(**take(NEW))
    assert_same_state(before, vars(model))
    fresh = RankRLS(**change).fit(**take(NEW))
    np.testing.assert_allclose(model.fit(**take(NEW)).coef_, fresh.coef_)


def test_only_weights_of_features_can_be_updated():
    for model in (RankRLS(kernel="rbf"), RankRLS(solver="dual"), RankRLS(kernel="precomputed")):
        assert not hasattr(model, "partial_fit")
        with Refusal("partial_fit", kind=AttributeError):
            model.partial_fit(X, Y, qid=QID)
    with Refusal("a number", parameter="alpha"):
        RankRLS(alpha=-1.0).partial_fit(X, Y, qid=QID)


def test_fit_keeps_no_equations_and_says_so():
    """A model of n features is as large as n weights, unless partial_fit began it."""
    rng = np.random.default_rng(54)
    X, y, qid = rng.normal(size=(1200, 400)), rng.normal(size=1200), np.repeat(np.arange(120), 10)
    fitted, begun = RankRLS().fit(X, y, qid=qid), RankRLS().partial_fit(X, y, qid=qid)
    np.testing.assert_allclose(fitted.coef_, begun.coef_, rtol=1e-9, atol=1e-12)
    assert len(pickle.dumps(fitted)) < 8 * 400 + 3000
    assert len(pickle.dumps(begun)) > 8 * 400**2
    for model in (fitted, begun.fit(X, y, qid=qid)):
        with Refusal("Call partial_fit for the first queries too"):
            model.partial_fit(X, y, qid=qid + 1000)
