"""The BLAS call that lets other threads run."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from scipy.linalg import cython_blas

from rankrls._compiled import blas
from rankrls._compiled.blas import add_gram
from rankrls._compiled.threads import map_threads, one_blas_thread
from tests.refusals import Refusal


@pytest.fixture
def without_address(monkeypatch):
    monkeypatch.setattr(blas, "_routine", lambda module, name: None)


def check(shape, order="C", dtype=np.float64):
    rng = np.random.default_rng(0)
    B = np.asarray(rng.standard_normal(shape), dtype=dtype, order=order)
    before = rng.standard_normal((shape[1], shape[1]))
    gram = np.array(before, order="F")
    add_gram(gram, B)
    upper = np.triu_indices(shape[1])
    wide = B.astype(np.float64)
    np.testing.assert_allclose(gram[upper], (before + wide.T @ wide)[upper], rtol=1e-13, atol=1e-13)
    below = np.tril_indices(shape[1], -1)
    np.testing.assert_array_equal(gram[below], before[below])


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (1, 1), (0, 4), (4, 0), (300, 65)])
def test_upper_triangle_is_added(shape):
    check(shape)


@pytest.mark.parametrize(("order", "dtype"), [("F", np.float64), ("C", np.float32)])
def test_other_layouts_are_copied(order, dtype):
    check((9, 5), order, dtype)


def test_rows_with_gaps_between_them():
    B = np.random.default_rng(1).standard_normal((20, 12))[::2, 3:8]
    gram = np.zeros((5, 5), order="F")
    add_gram(gram, B)
    np.testing.assert_allclose(np.triu(gram), np.triu(B.T @ B), rtol=1e-13)


def test_without_the_address(without_address):
    check((9, 5))
    check((0, 4))


def test_a_routine_of_another_form_is_not_called(monkeypatch):
    given = (b"U", b"N", 3, 4, 1.0, np.ones((4, 3)), 3, 1.0, np.zeros((3, 3), order="F"), 3)
    assert blas.call("cython_blas", "dsyrk", *given)
    assert not blas.call("cython_blas", "dsyrk", *given[:-1])
    assert not blas.call("cython_blas", "dsyrk", *given[:2], 3.0, *given[3:])
    assert not blas.call("cython_blas", "dsyrk", 1, *given[1:])
    monkeypatch.setattr(blas, "_routine", blas._routine.__wrapped__)
    for capsules in ({}, {"dsyrk": cython_blas.__pyx_capi__["dgemm"]}):
        monkeypatch.setattr(cython_blas, "__pyx_capi__", capsules)
        assert not blas.call("cython_blas", "dsyrk", *given)


@pytest.mark.parametrize(
    "gram", [np.zeros((3, 3)), np.zeros((2, 2), order="F"), np.zeros((3, 3), dtype=np.float32, order="F")]
)
def test_gram_of_a_wrong_form(gram):
    with Refusal("Fortran order", kind=TypeError):
        add_gram(gram, np.ones((4, 3)))


def test_threads_with_a_matrix_each():
    blocks = [np.random.default_rng(k).standard_normal((50, 30)) for k in range(16)]

    def gram_of(B):
        gram = np.zeros((30, 30), order="F")
        for _ in range(20):
            add_gram(gram, B)
        return gram

    with one_blas_thread():
        grams = map_threads(gram_of, blocks, threads=4)
    for gram, B in zip(grams, blocks, strict=True):
        np.testing.assert_allclose(np.triu(gram), 20.0 * np.triu(B.T @ B), rtol=1e-12, atol=1e-12)


def test_other_threads_run_meanwhile():
    B, gram = np.ones((512, 1500)), np.zeros((1500, 1500), order="F")
    thread = threading.Thread(target=lambda: [add_gram(gram, B) for _ in range(4)])
    ticks = 0
    with one_blas_thread():
        thread.start()
        while thread.is_alive():
            ticks += 1
            time.sleep(0)
        thread.join()
    assert ticks > 200  # with the interpreter's lock held, a few each call
