"""Trees as arrays: their scores are LightGBM's to the last bit, and arrays that are no trees are refused."""

from __future__ import annotations

from dataclasses import replace

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse

from rankrls.learners.trees import Trees, grown_trees, rankrls_derivatives

_ODD = (0.0, -0.0, np.nan, np.inf, -np.inf, 1e-36, -1e-36, 1e-35, 1e-34, 5e-324, 1e299, -1e299)
"""What comparisons may take for zero, for missing, or for beyond any threshold."""


def _features(rng, rows, n):
    """Numbers, counts with many zeros, and columns with gaps, infinities and one value."""
    X = rng.normal(size=(rows, n)) * 10.0 ** rng.integers(-40, 40, size=n)
    X[:, ::3] = rng.poisson(0.5, size=X[:, ::3].shape)
    for j in rng.choice(n, size=n // 2, replace=False):
        odd = rng.random(rows) < 0.2
        X[odd, j] = rng.choice(_ODD, size=odd.sum())
    X[:, rng.integers(n)] = 1.0
    return X


def _grown(rng, X, loss, leaves, number):
    """A model of LightGBM, as AutoRankRLS has it grow one."""
    starts = np.arange(0, len(X) + 1, 10)
    y = rng.integers(0, 3, size=len(X)).astype(float)
    weights = rng.uniform(0.5, 2.0, size=len(X))
    parameters = {"num_leaves": leaves, "metric": "None", "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 3}
    parameters |= {"feature_fraction": 0.5, "seed": int(rng.integers(1000)), "force_row_wise": True}
    objective = loss if loss == "lambdarank" else lambda f, _: rankrls_derivatives(f, y, starts, weights)
    data = lightgbm.Dataset(X, y, weight=weights, group=np.diff(starts))
    return lightgbm.train({**parameters, "objective": objective}, data, number)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), loss=st.sampled_from(["rankrls", "lambdarank"]), leaves=st.sampled_from([2, 7, 31]))
def test_scores_are_those_of_lightgbm_to_the_last_bit(seed, loss, leaves):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    models = [_grown(rng, _features(rng, 200, n), loss, leaves, int(rng.integers(1, 25))) for _ in range(3)]
    trees = grown_trees(models, n)
    Z = _features(rng, 600, n)
    odd = rng.random(Z.shape) < 0.1
    Z[odd] = rng.choice(_ODD, size=odd.sum())
    inside = trees.threshold[np.abs(trees.threshold) < 1e300]
    if len(inside):  # an item on a threshold
        Z[:100] = rng.choice(inside, size=(100, n))
    for model in models:
        np.testing.assert_array_equal(grown_trees([model], n)(Z), model.predict(Z))
    np.testing.assert_array_equal(trees(Z), np.mean([model.predict(Z) for model in models], axis=0))
    with np.errstate(over="ignore", under="ignore"):
        single = Z.astype(np.float32)
    np.testing.assert_array_equal(trees(single), np.mean([model.predict(single) for model in models], axis=0))
    stored = sparse.csr_array(np.where(np.abs(Z) < 1e-30, 0.0, Z))
    expected = np.mean([model.predict(sparse.csr_matrix(stored)) for model in models], axis=0)
    np.testing.assert_array_equal(trees(stored), expected)


def test_a_model_without_splits_and_items_of_no_row():
    rng = np.random.default_rng(0)
    X = np.ones((40, 2))
    model = _grown(rng, X, "lambdarank", 7, 3)
    trees = grown_trees([model], 2)
    np.testing.assert_array_equal(trees(X), model.predict(X))
    assert trees(X[:0]).shape == (0,)


def _small():
    """Two models, of two trees and of one: x0 <= 0.5, then x1; a leaf alone; x1."""
    numbers = {"feature": [0, 1, 1], "left": [-1, -2, -5], "right": [1, -3, -6], "roots": [0, -4, 2]}
    arrays = {name: np.array(values, dtype=np.int32) for name, values in numbers.items()}
    threshold, value = np.array([0.5, 0.0, 1.0]), np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    arrays["sizes"] = np.array([2, 1])
    return Trees(**arrays, threshold=threshold, missing=np.array([0, 1, 2], dtype=np.int8), value=value, n_features=2)


def test_scores_by_hand():
    X = np.array([[0.5, 0.0], [1.0, 0.0], [1.0, 2.0], [np.nan, np.nan], [9.0, np.nan]])
    np.testing.assert_array_equal(_small()(X), [12.5, 13.0, 22.0, 20.5, 21.0])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("left", [0, -2, -5]),  # a node that is its own child
        ("left", [-1, -2, -4]),  # the leaf of another tree
        ("right", [1, -3, -7]),
        ("right", [3, -3, -6]),
        ("roots", [0, -4]),
        ("roots", [0, -4, 0]),  # a tree that is walked twice
        ("roots", [1, -4, 2]),
        ("feature", [0, 1, 2]),
        ("feature", [0, -1, 1]),
        ("feature", [0, 1]),
        ("missing", [0, 1, 3]),
        ("missing", [0, 1, -1]),
        ("missing", [0, 1, 2, 0]),
        ("threshold", [0.5, np.nan, 1.0]),
        ("threshold", [0.5, 0.0]),
        ("value", [1.0, 2.0, 4.0, 8.0, 16.0, np.nan]),
        ("value", [1.0, 2.0, 4.0, 8.0, -np.inf, 32.0]),
        ("value", [1e308, 2.0, 4.0, 1e308, 16.0, 32.0]),  # each is finite, and a score is not
        ("value", [1.0, 2.0, 4.0, 8.0, 16.0]),
        ("sizes", [2, 2]),
        ("sizes", [4, -1]),
        ("sizes", []),
        ("n_features", 1),
    ],
)
def test_what_is_no_forest_is_refused(name, wrong):
    trees = _small()
    value = wrong if name == "n_features" else np.array(wrong, dtype=vars(trees)[name].dtype)
    with pytest.raises(ValueError, match="boosted trees"):
        replace(trees, **{name: value})


@pytest.mark.parametrize("name", ["feature", "threshold", "missing", "left", "right", "value", "roots", "sizes"])
@pytest.mark.parametrize("wrong", [lambda a: a.astype(np.int16), lambda a: a[:, None], lambda a: a.astype(">f8")])
def test_arrays_of_other_types_are_refused(name, wrong):
    trees = _small()
    with pytest.raises(ValueError, match="boosted trees"):
        replace(trees, **{name: wrong(vars(trees)[name])})


def test_items_of_other_features_are_refused():
    with pytest.raises(ValueError, match="3 features"):
        _small()(np.zeros((2, 3)))
