"""Boosted trees: their loss against the explicit Laplacian, and scores against LightGBM alone."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
from scipy import sparse

from rankrls._queries import query_layout
from rankrls.learners import trees
from rankrls.learners.trees import Boosting, QueryRows, rankrls_derivatives, unsupported_reason
from rankrls.metrics import Measure

NDCG = Measure("ndcg", k=5)


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(trees, "_MOST_TREES", 30)
    monkeypatch.setattr(trees, "_PATIENCE", 4)


def _data(seed=0, queries=15, size=20, n=4):
    rng = np.random.default_rng(seed)
    m = queries * size
    X = rng.normal(size=(m, n))
    y = np.digitize((X[:, 0] > 0) * 1.0 * (X[:, 1] > 0) + 0.4 * rng.normal(size=m), [0.5, 1.2]).astype(float)
    return QueryRows(X, y, rng.uniform(0.5, 2.0, m), np.arange(queries + 1) * size)


def _boosting(data, loss="rankrls", measure=NDCG):
    return Boosting(loss, 5, 0.2, data, [np.arange(k, 15, 5) for k in range(5)], measure, 7)


def _dataset(data, rows):
    return lightgbm.Dataset(data.X[rows], data.y[rows], weight=data.weights[rows], group=[20] * (len(rows) // 20))


def _laplacian_loss(query, rows, data):
    """The derivatives of ``(f - y)'L(f - y) / 2``, with L written out."""
    same, w = query[rows][:, None] == query[rows], data.weights[rows]
    pairs = same * np.outer(w, w) / (same @ w)
    L = np.diag(pairs.sum(axis=1)) - pairs
    return lambda f, _: (L @ (f - data.y[rows]), np.diag(L))


def test_derivatives_are_those_of_the_explicit_laplacian():
    rng = np.random.default_rng(0)
    sizes = [1, 4, 7, 2]
    starts, q = np.cumsum([0, *sizes]), np.repeat(np.arange(4), sizes)
    f, y, w = rng.normal(size=(3, len(q)))
    w = np.exp(w)
    L = np.zeros((len(q), len(q)))
    for i in range(len(q)):
        for j in range(len(q)):
            if q[i] == q[j] and i != j:
                pair = w[i] * w[j] / w[q == q[i]].sum()
                L[i, i] += pair
                L[i, j] -= pair
    gradient, hessian = rankrls_derivatives(f, y, starts, w)
    np.testing.assert_allclose(gradient, L @ (f - y), atol=1e-12)
    np.testing.assert_allclose(hessian, np.diag(L), atol=1e-12)


@pytest.mark.parametrize("loss", ["rankrls", "lambdarank"])
@pytest.mark.parametrize("measure", [NDCG, Measure("disagreement")])
def test_scores_are_those_of_lightgbm_without_the_fold(loss, measure):
    data, query = _data(), np.repeat(np.arange(15), 20)
    boosting = _boosting(data, loss, measure)

    def lightgbm_on(some, n_trees, seed, **how):
        parameters = {"num_leaves": 5, "seed": seed, "learning_rate": 0.2, "feature_fraction": 0.5}
        parameters |= {"metric": "None", "verbosity": -1, "deterministic": True, "num_threads": 1}
        objective = _laplacian_loss(query, some, data) if loss == "rankrls" else "lambdarank"
        parameters |= {"force_row_wise": True, "objective": objective}
        return lightgbm.train(parameters, _dataset(data, some), n_trees, **how)

    for k in range(5):
        rest = [q for other in range(5) if other != k for q in boosting.folds[other]]
        watched, grown = rest[::5], [q for i, q in enumerate(rest) if i % 5]
        rows = np.concatenate([np.flatnonzero(query == q) for q in grown])
        other = np.concatenate([np.flatnonzero(query == q) for q in watched])
        every = np.concatenate([np.flatnonzero(query == q) for q in rest])
        known = {"qid": query[other], "sample_weight": data.weights[other] if measure.definition.over_pairs else None}
        value = lambda f, y=data.y[other], known=known: measure(y, f, **known)
        judge = lambda f, _, value=value: ("m", value(f), measure.greater_is_better)
        stop = lightgbm.early_stopping(4, verbose=False)
        first = lightgbm_on(rows, 30, 7 + k, valid_sets=[_dataset(data, other)], feval=judge, callbacks=[stop])
        assert boosting.numbers[k] == round(1.25 * first.best_iteration)
        held = np.isin(query, boosting.folds[k])
        for repetition in range(2):
            expected = lightgbm_on(every, boosting.numbers[k], 7 + 5 * repetition + k).predict(data.X[held])
            np.testing.assert_allclose(boosting.held_out(repetition)[held], expected, rtol=1e-6, atol=1e-9)
    number = round(1.25 * np.mean(boosting.numbers))
    each = [lightgbm_on(np.arange(300), number, 1007 + k).predict(data.X) for k in range(2)]
    np.testing.assert_allclose(boosting.fitted(2)(data.X), np.mean(each, axis=0), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", ["rankrls", "lambdarank"])
def test_labels_of_a_fold_never_reach_its_own_scores(loss):
    data = _data()
    before, y = _boosting(data, loss), data.y.copy()
    held = data.rows(before.folds[2])
    y[held] = 2.0 - y[held]
    after = _boosting(QueryRows(data.X, y, data.weights, data.starts), loss).held_out(1)
    np.testing.assert_array_equal(after[held], before.held_out(1)[held])
    assert not np.array_equal(after, before.held_out(1))


def test_what_cannot_be_grown_is_said():
    layout = query_layout(np.repeat(np.arange(12), 2), 24)
    y = np.tile([0.0, 1.0], 12)[:, None]
    assert unsupported_reason("lambdarank", y, layout) is None
    assert "whole numbers" in unsupported_reason("lambdarank", y - 0.5, layout)
    assert unsupported_reason("rankrls", y - 0.5, layout) is None
    assert "there are 0" in unsupported_reason("rankrls", 0.0 * y, layout)


def test_gaps_and_sparse_features_are_taken():
    data = _data()
    X = np.where(np.abs(data.X) < 0.5, 0.0, data.X)
    dense = _boosting(QueryRows(X, data.y, data.weights, data.starts))
    found = _boosting(QueryRows(sparse.csr_array(X), data.y, data.weights, data.starts))
    np.testing.assert_allclose(found.held_out(0), dense.held_out(0), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.fitted(2)(sparse.csr_array(X)), dense.fitted(2)(X), rtol=1e-6, atol=1e-9)
    X = np.where(np.abs(data.X) < 0.1, np.nan, data.X)
    assert np.isfinite(_boosting(QueryRows(X, data.y, data.weights, data.starts)).held_out(0)).all()
