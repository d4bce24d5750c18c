"""One matrix in every form that scipy has for it."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def unsorted(A):
    out = sparse.csr_array(A)
    for first, last in zip(out.indptr[:-1], out.indptr[1:], strict=True):
        out.indices[first:last] = out.indices[first:last][::-1].copy()
        out.data[first:last] = out.data[first:last][::-1].copy()
    out.has_sorted_indices = False
    return out


def duplicated(A):
    """Entries that are stored twice add up; half of each is stored, out of order."""
    half = sparse.coo_array(A / 2)
    again = np.random.default_rng(0).permutation(2 * half.nnz)
    rows, columns, data = (np.tile(values, 2)[again] for values in (half.row, half.col, half.data))
    order = np.argsort(rows, kind="stable")
    starts = np.searchsorted(rows[order], np.arange(len(A) + 1))
    return sparse.csr_array((data[order], columns[order], starts), shape=A.shape)


def wide_indices(A):
    out = sparse.csr_array(A)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def explicit_zeros(A):
    m, n = A.shape
    return sparse.csr_array((A.ravel(), np.tile(np.arange(n), m), n * np.arange(m + 1)), shape=A.shape)


SPARSE = {
    "csr array": sparse.csr_array,
    "csc array": sparse.csc_array,
    "coo array": sparse.coo_array,
    "lil array": sparse.lil_array,
    "csr matrix": sparse.csr_matrix,
    "csc matrix": sparse.csc_matrix,
    "coo matrix": sparse.coo_matrix,
    "unsorted indices": unsorted,
    "64-bit indices": wide_indices,
    "duplicates": duplicated,
    "explicit zeros": explicit_zeros,
}
