"""Kernels against their definitions, pair by pair."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import sparse

from rankrls import RankRLS, RankRLSCV, RankSVM, SparseRankRLS, _arrays, kernels
from rankrls.kernels import FORMULAS, Formula, Kernel, kernel_parameters, resolve_kernel
from tests.refusals import Refusal

DEFINITIONS = {
    "linear": lambda x, z: sum(a * b for a, b in zip(x, z, strict=True)),
    "rbf": lambda x, z: math.exp(-0.3 * sum((a - b) ** 2 for a, b in zip(x, z, strict=True))),
    "laplacian": lambda x, z: math.exp(-0.3 * sum(abs(a - b) for a, b in zip(x, z, strict=True))),
    "polynomial": lambda x, z: (0.3 * sum(a * b for a, b in zip(x, z, strict=True)) + 0.7) ** 3,
    "sigmoid": lambda x, z: math.tanh(0.3 * sum(a * b for a, b in zip(x, z, strict=True)) + 0.7),
}
DEFINITIONS["poly"] = DEFINITIONS["polynomial"]


def test_every_kernel_has_a_definition():
    assert set(DEFINITIONS) == set(FORMULAS)


def kernel(name):
    return Kernel(name, gamma=0.3, degree=3, coef0=0.7)


def by_definition(name, X, Z):
    return np.array([[DEFINITIONS[name](x, z) for z in Z.tolist()] for x in X.tolist()])


@pytest.mark.parametrize("name", DEFINITIONS)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9), st.integers(1, 5))
def test_equal_to_the_definition(name, seed, rows, others, n):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(rows, n)), rng.normal(size=(others, n))
    X[rng.random(X.shape) < 0.3] = 0.0
    expected, own = by_definition(name, X, Z), by_definition(name, X, X)
    for left in (X, sparse.csr_array(X), np.asfortranarray(X)):
        np.testing.assert_allclose(kernel(name)(left), own, rtol=1e-10, atol=1e-13)
        for right in (Z, sparse.csr_array(Z)):
            np.testing.assert_allclose(kernel(name)(left, right), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("tile", [1, 3, 7, 1024])
@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_tiles_and_threads_change_nothing(name, tile, wrap, monkeypatch):
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(17, 3)), rng.normal(size=(8, 3))
    expected, own = by_definition(name, X, Z), by_definition(name, X, X)
    monkeypatch.setattr(kernels, "_TILE", tile)
    monkeypatch.setattr(_arrays, "_CACHED_VALUES", 1)  # strips of 16 rows
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "3")
    K = kernel(name)(wrap(X))
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K, own, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(kernel(name)(wrap(X), wrap(Z)), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("offset", [1e7, -1e9])
def test_distances_survive_an_offset(name, offset):
    rng = np.random.default_rng(3)
    X, Z = np.round(rng.normal(size=(12, 3)) * 64) / 64, np.round(rng.normal(size=(5, 3)) * 64) / 64
    expected, own = by_definition(name, X, Z), by_definition(name, X, X)
    for left in (X + offset, sparse.csr_array(X + offset)):
        np.testing.assert_allclose(kernel(name)(left), own, rtol=1e-7)
        for right in (Z + offset, sparse.csr_array(Z + offset)):
            np.testing.assert_allclose(kernel(name)(left, right), expected, rtol=1e-7)


def test_a_gaussian_of_an_item_with_itself_is_one():
    X = 1e6 * np.random.default_rng(4).normal(size=(20, 30))
    np.testing.assert_array_equal(np.diag(kernel("rbf")(X)), 1.0)
    assert (kernel("rbf")(X, X) <= 1.0).all()


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array])
def test_the_distance_of_equal_rows_is_zero(wrap):
    rng = np.random.default_rng(9)
    for scale in (1.0, 0.3, 1e6):
        X = scale * np.repeat(rng.normal(size=(8, 40)), 2, axis=0)
        K = Kernel("rbf", gamma=0.01 / scale**2)(wrap(X))
        np.testing.assert_array_equal(K[np.arange(0, 16, 2), np.arange(1, 16, 2)], 1.0)


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_precomputed_is_a_copy(wrap):
    K = np.arange(9.0).reshape(3, 3)
    given_K = wrap(K)
    out = Kernel("precomputed")(given_K)
    np.testing.assert_array_equal(out, K)
    out[0, 0] = 99.0
    assert given_K[0, 0] == 0.0


def test_functions_take_rows_or_objects():
    overlap = Kernel(lambda a, b: 2.0 * len(set(a) & set(b)))
    words = ["abc", "bcd", ""]
    np.testing.assert_array_equal(overlap(words), [[6, 4, 0], [4, 6, 0], [0, 0, 0]])
    np.testing.assert_array_equal(overlap(words, ["b"]), [[2], [2], [0]])
    X = np.random.default_rng(5).normal(size=(4, 2))
    np.testing.assert_allclose(Kernel(np.dot)(X), X @ X.T)
    assert not overlap.is_linear
    assert Kernel("linear").is_linear


@pytest.mark.parametrize(
    ("value", "refusal"),
    [
        (np.nan, Refusal("returned", "items 1", parameter="kernel")),
        ("no", Refusal("returned", "items 1", parameter="kernel")),
    ],
)
def test_what_a_function_must_return(value, refusal):
    with refusal:
        Kernel(lambda a, b: value if a != b else 1.0)(["x", "y"])


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("cached", [1, 40, 1 << 17])
def test_columns_equal_the_definition(name, cached, monkeypatch):
    monkeypatch.setattr(_arrays, "_CACHED_VALUES", cached)
    rng = np.random.default_rng(6)
    X, Z = rng.normal(size=(37, 3)), rng.normal(size=(8, 3))
    expected = by_definition(name, X, Z)
    for right in (Z, Z.astype(np.float32), sparse.csr_array(Z)):
        columns = kernel(name).columns(right)
        for left in (X, sparse.csr_array(X)):
            np.testing.assert_allclose(columns(left), expected, rtol=1e-5 if right.dtype == np.float32 else 1e-10)
    assert (kernel("rbf").columns(X)(X) <= 1.0).all()
    np.testing.assert_allclose(np.diag(kernel("rbf").columns(1e6 * X)(1e6 * X)), 1.0, atol=1e-3)


def test_columns_of_a_given_matrix_and_of_a_function():
    K = np.arange(12.0).reshape(3, 4)
    for given_K in (K, sparse.csr_array(K)):
        np.testing.assert_array_equal(Kernel("precomputed").columns(np.array([2, 0]))(given_K), K[:, [2, 0]])
    overlap = Kernel(lambda a, b: len(set(a) & set(b)))
    np.testing.assert_array_equal(overlap.columns(["b", "cd"])(["abc", "bcd", ""]), [[1, 1], [1, 2], [0, 0]])


def test_a_row_of_the_table_says_which_parameters_make_a_difference():
    """Of every kernel, the values change with a parameter exactly if its row names it."""
    x, z = np.array([[0.7, -0.4]]), np.array([[0.2, 0.9]])
    base = {"gamma": 0.3, "degree": 2, "coef0": 0.7}
    for name in FORMULAS:
        for parameter, other in (("gamma", 0.5), ("degree", 3), ("coef0", 0.2)):
            changed = Kernel(name, **{**base, parameter: other})(x, z) != Kernel(name, **base)(x, z)
            assert changed.all() == (parameter in kernel_parameters(name))
    assert kernel_parameters("precomputed") == kernel_parameters(np.dot) == ()


def test_the_default_gamma_is_one_over_the_features():
    assert resolve_kernel(np.zeros((3, 4)), "rbf", None, 3, 1.0) == Kernel("rbf", 0.25, 3, 1.0)
    assert resolve_kernel(["a", "b"], max, None, 3, 1.0) == Kernel(max)


def test_a_kernel_of_distances_that_the_package_does_not_know(monkeypatch):
    """A row of the table is all that a kernel needs: the rational quadratic, 1 / (1 + gamma ||x - z||^2)."""
    steps = lambda kernel: (("multiply", kernel.gamma), ("add", 1.0), ("pow", -1.0))
    monkeypatch.setitem(FORMULAS, "rational", Formula(("rational",), "square", ("gamma",), steps))
    rng = np.random.default_rng(8)
    X, Z = rng.normal(size=(9, 3)) + 1e4, rng.normal(size=(4, 3)) + 1e4
    expected = 1.0 / (1.0 + 0.3 * ((X[:, None] - Z) ** 2).sum(axis=2))
    for left in (X, sparse.csr_array(X)):
        for right in (Z, sparse.csr_array(Z)):
            np.testing.assert_allclose(kernel("rational")(left, right), expected, rtol=1e-9)
            np.testing.assert_allclose(kernel("rational").columns(right)(left), expected, rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(kernel="polynomial", degree=300, gamma=90.0),
        RankRLSCV(kernel="polynomial", degree=300, gamma=90.0),
        SparseRankRLS(kernel="polynomial", degree=300, gamma=90.0),
        RankSVM(kernel="polynomial", degree=300, gamma=90.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_polynomial_that_overflows_is_refused(model):
    X = np.random.default_rng(0).normal(size=(12, 3))
    with Refusal("too large", parameter="degree", remedy="Scale"):
        model.fit(10.0 * X, np.arange(12) % 3, qid=np.arange(12) // 4)
