"""Products of rows of features with vectors, however the features are stored, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankrls.features import feature_rows as module
from rankrls.features.feature_rows import feature_rows

FORMS = {
    "C order": lambda X: X,
    "Fortran order": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "float32": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_array,
}


@given(
    st.sampled_from(sorted(FORMS)),
    st.integers(0, 40),
    st.integers(1, 9),
    st.sampled_from([0.0, 1e4]),
    st.booleans(),
    st.sampled_from([1, 3]),
    st.integers(0, 2**32 - 1),
)
def test_products_with_vectors(form, rows, columns, offset, in_order, threads, seed):
    rng = np.random.default_rng(seed)
    X = FORMS[form](rng.standard_normal((rows, columns)) + offset)
    numbers = np.arange(rows, dtype=np.intp)
    if not in_order:
        numbers = rng.permutation(rows)[: rows - rows // 3]
    p, a = rng.standard_normal(columns), rng.standard_normal(len(numbers))
    a -= a.mean() if len(a) else 0.0
    exact = (X.toarray() if form == "sparse" else np.asarray(X)).astype(np.longdouble)[numbers]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKRLS_NUM_THREADS", str(threads))
        patch.setattr(module, "ENTRIES_A_THREAD", 1)
        source = feature_rows(X, centred=True)
        scores, combined = source.dot(numbers, p), source.combine(numbers, a)
    wanted = np.asarray(exact @ p, dtype=np.float64)
    rounding = 1e-14 * (1.0 + offset) * (1.0 + rows) * (1.0 + np.abs(p).sum())
    shift = scores[:1] - wanted[:1]  # scores are known up to a constant
    assert scores.shape == wanted.shape
    if rows:
        np.testing.assert_allclose(scores - shift, wanted, rtol=0, atol=rounding)
    np.testing.assert_allclose(combined, np.asarray(a @ exact, dtype=np.float64), rtol=0, atol=rounding)
