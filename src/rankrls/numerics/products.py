r"""``X'L(Xp)`` without forming L (Airola, Pahikkala, Salakoski 2010, equation 8).

L is a diagonal plus multiples of means over classes and queries. With M and Q the mean rows of X over them,

.. math:: X'LX p = X' \mathrm{diag}(w e_1) f + M' \mathrm{diag}((e_2 - e_1) S_c) M p + \dots , \qquad f = X p .

If the mean rows have few entries compared with X, one pass over X suffices: the score of a row is computed and its
contribution added while the row is in the cache. Otherwise there are two passes, with L f between them.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._compiled import compiled, n_threads
from rankrls._rows import offset_columns, shift_columns
from rankrls._typing import Array, Index, Matrix
from rankrls.numerics.chunks import CHUNK_VALUES, left_fold, map_chunks
from rankrls.numerics.graph import Graph, LabelledGraph
from rankrls.numerics.runs import averaging, group_means

_FEW = 0.3
"""Share of the entries of X below which the mean rows allow the product in one pass."""
_CACHE = 1 << 18
"""Largest typical distance in bytes of rows read one after the other, if they are to come from the cache."""


class RowProducts:
    """Products with the given rows of X, dense (float32 or float64) or CSR, and their transpose, on all threads."""

    def __init__(self, X: Matrix, rows: Index) -> None:
        self.X = X
        self.rows = rows
        self.n_features = int(X.shape[1])
        self.sparse = sparse.issparse(X)
        self.parts: tuple[Matrix, Matrix, Matrix] = (X.data, X.indices, X.indptr) if self.sparse else (None, None, None)

    @cached_property
    def runs(self) -> list[tuple[int, int]]:
        """Runs of the rows; for sparse X at most one per thread, with equally many stored entries."""
        if self.sparse:
            ends = np.cumsum(np.diff(self.parts[2])[self.rows], dtype=np.intp)
            work = int(ends[-1]) if len(ends) else 0
            count = max(1, min(n_threads(), work // (1 << 16)))
            inner = np.searchsorted(ends, np.linspace(0, work, count + 1)[1:-1]).tolist()
        else:
            inner = [*range(0, len(self.rows), max(1, CHUNK_VALUES // max(1, self.n_features)))][1:]
        return list(pairwise([0, *inner, len(self.rows)]))

    def scores(self, p: Array) -> Array:
        """``X p``."""
        out = np.empty(len(self.rows))

        def run(cut: tuple[int, int]) -> None:
            part = slice(*cut)
            if self.sparse:
                _dot(*self.parts, self.rows[part], p, out[part])
            else:
                out[part] = self._block(self.rows[part]) @ p

        for _ in map_chunks(run, self.runs):
            pass
        return out

    def combine(self, z: Array) -> Array:
        """``X'z``."""

        def run(cut: tuple[int, int]) -> Array:
            part = slice(*cut)
            if not self.sparse:
                return z[part] @ self._block(self.rows[part])
            out = np.zeros(self.n_features)
            _add(*self.parts, self.rows[part], z[part], out)
            return out

        return left_fold(map_chunks(run, self.runs))

    def _block(self, rows: Index) -> Array:
        whole = len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1 and bool((np.diff(rows) == 1).all())
        return np.asarray(self.X[rows[0] : rows[-1] + 1] if whole else self.X[rows], dtype=np.float64)


class LaplacianProduct:
    """The n x n matrix ``X'LX``, available through its products ``product @ p``.

    Parameters
    ----------
    X : ndarray or csr_array
    graph : LabelledGraph or PreferenceGraph
        Graph over rows of X, which are the items of preferences.

    Notes
    -----
    O(stored entries of X) per product, plus O(preferences) for preferences. X is not copied.
    """

    def __init__(self, X: Matrix, graph: Graph) -> None:
        self.n_features = int(X.shape[1])
        self._graph = graph
        self._order = np.argsort(graph.items)
        self._rows = RowProducts(X, graph.items[self._order])
        self._one_pass: _OnePass | None = None
        if self._rows.sparse:
            self._one_pass = graph.by_kind(partial(_one_pass, X), lambda _: None)

    def __matmul__(self, p: Array) -> Array:
        if self._one_pass is not None:
            return self._one_pass(p)
        f = np.empty(len(self._order))
        f[self._order] = self._rows.scores(p)
        return self._rows.combine(self._graph.laplacian(f)[self._order])

    def right_side(self, target: Array) -> Array:
        """``X'F't`` for a target t, (n,)."""
        return self._rows.combine(self._graph.transposed(target)[self._order])


class _OnePass:
    """Product with CSR rows from a diagonal and mean rows; columns stored in every row are shifted towards zero."""

    def __init__(self, X: Matrix, graph: LabelledGraph) -> None:
        # rows of a class in their order in X
        order = np.lexsort((graph.rows, np.repeat(np.arange(len(graph.class_lengths)), graph.class_lengths)))
        rows = np.ascontiguousarray(graph.rows[order])
        self.rows = RowProducts(X, rows)
        self.weights = graph.weights[order]
        diagonal, levels = graph.levels
        self.diagonal = diagonal[order]
        self.columns = np.zeros(0, dtype=np.intp)
        self.shift = np.zeros(0)
        if not graph.e3:
            self.columns, self.shift = offset_columns(X)
        gap = float(np.median(np.abs(np.diff(rows)))) if len(rows) > 1 else 0.0
        near = gap * X.nnz * 12.0 < _CACHE * max(X.shape[0], 1) or X.nnz < 1 << 18
        # mean rows have at least as many entries as a row of X: too many are noticed before they are computed
        entries = sum(len(change) for _, change in levels) * (X.nnz // max(1, X.shape[0]))
        self.means: list[tuple[Matrix, Array, Index]] = []
        self.pays = near and entries <= _FEW * X.nnz
        for starts, change in levels if self.pays else ():
            share = averaging(self.weights, starts).data
            # other types of numbers would make scipy copy those of X
            groups = share, rows.astype(X.indices.dtype), starts.astype(X.indptr.dtype)
            M = sparse.csr_array(groups, shape=(len(change), X.shape[0])) @ X
            self.means.append((shift_columns(M, self.columns, self.shift), change, starts))
        self.pays = self.pays and sum(M.nnz for M, _, _ in self.means) < _FEW * X.nnz

    def __call__(self, p: Array) -> Array:
        rows = self.rows
        f = np.empty(len(rows.rows))
        shift = float(self.shift @ p[self.columns])

        def run(cut: tuple[int, int]) -> Array:
            part = slice(*cut)
            out = np.zeros(rows.n_features)
            _fused(*rows.parts, rows.rows[part], self.diagonal[part], p, shift, f[part], out)
            return out

        out = left_fold(map_chunks(run, rows.runs))
        out[self.columns] -= self.shift * float(self.diagonal @ f)
        for M, change, starts in self.means:
            out += M.T @ (change * group_means(f, self.weights, starts))
        return out


def _one_pass(X: Matrix, graph: LabelledGraph) -> _OnePass | None:
    """The product in one pass; None if mean rows have too many entries."""
    product = _OnePass(X, graph)
    return product if product.pays else None


@compiled
def _dot(data, indices, indptr, rows, p, out):  # type: ignore[no-untyped-def]
    """``X p`` for the given CSR rows."""
    one = np.uint64(1)
    for r in range(len(rows)):
        i = np.uint64(rows[r])
        score = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + one])):
            score += data[k] * p[np.uint64(indices[k])]
        out[r] = score


@compiled
def _add(data, indices, indptr, rows, z, out):  # type: ignore[no-untyped-def]
    """``X'z`` for the given CSR rows, added to ``out``."""
    one = np.uint64(1)
    for r in range(len(rows)):
        i = np.uint64(rows[r])
        value = z[r]
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + one])):
            out[np.uint64(indices[k])] += value * data[k]


@compiled
def _fused(data, indices, indptr, rows, diagonal, p, shift, f, out):  # type: ignore[no-untyped-def]
    """``f = X p - shift``, and ``X' diag f`` added to ``out``: each row is read once."""
    one = np.uint64(1)
    for r in range(len(rows)):
        i = np.uint64(rows[r])
        score = -shift
        a = np.uint64(indptr[i])
        b = np.uint64(indptr[i + one])
        for k in range(a, b):
            score += data[k] * p[np.uint64(indices[k])]
        f[r] = score
        score *= diagonal[r]
        for k in range(a, b):
            out[np.uint64(indices[k])] += score * data[k]
