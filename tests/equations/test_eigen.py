"""Eigendecompositions in little memory, against what they are made for: S V = V diag(values), V'V = I."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from rankrls.equations.eigen import symmetric_eigen


def _matrix(n: int, rank: int, scale: float = 1.0) -> np.ndarray:
    Z = np.random.default_rng(n).normal(size=(n, rank))
    return np.asarray(scale * (Z @ Z.T - 3.0 * np.outer(Z[:, 0], Z[:, 0])))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(("n", "rank", "scale"), [(7, 3, 1.0), (1000, 1000, 1.0), (1100, 40, 1e-160)])
def test_vectors_and_values_are_those_of_the_matrix(
    n: int, rank: int, scale: float, overwrite: bool, order: str
) -> None:
    S = _matrix(n, rank, scale)
    values, vectors = symmetric_eigen(np.array(S, order=order), overwrite=overwrite)
    top = np.abs(values).max()
    assert np.abs(S @ vectors - vectors * values).max() < 1e-12 * top
    assert np.abs(vectors.T @ vectors - np.eye(n)).max() < 1e-12
    assert np.all(np.diff(values) >= 0.0)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(S / scale) * scale, rtol=0.0, atol=1e-12 * top)


def test_a_matrix_is_only_destroyed_where_that_is_allowed() -> None:
    S = _matrix(1000, 30)
    before = S.copy()
    symmetric_eigen(S)
    assert np.array_equal(S, before)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    S = _matrix(1000, 30)
    S[3, 3] = value
    with pytest.raises(np.linalg.LinAlgError):
        symmetric_eigen(S, overwrite=True)


def test_other_threads_run_meanwhile() -> None:
    """A progress bar moves while a large matrix is decomposed; a busy machine may hold it up, but not each time."""
    assert any(_watched_decomposition() for _ in range(3))


def _watched_decomposition() -> bool:
    S, moments, done = _matrix(1300, 1300), [], threading.Event()

    def watch() -> None:
        while not done.is_set():
            moments.append(time.perf_counter())
            time.sleep(0.002)

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.perf_counter()
    symmetric_eigen(S, overwrite=True)
    took = time.perf_counter() - start
    done.set()
    thread.join()
    inside = [moment for moment in moments if start < moment < start + took]
    return len(inside) > 10 and max(np.diff([start, *inside, start + took])) < 0.7 * took
