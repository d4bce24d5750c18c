r"""``X'L(Xp)`` without forming L (Airola, Pahikkala, Salakoski 2010, equation 8).

L is a diagonal plus multiples of means over classes and queries, so that with M, Q the mean rows of X over them

.. math:: X'LX p = X' \mathrm{diag}(w e_1) f + M' \mathrm{diag}((e_2 - e_1) S_c) M p + \dots , \qquad f = X p .

If mean rows hold few entries beside X that is one pass over X: a row's score is known and its contribution added while
the row is in the cache. Otherwise there are two passes, with L f between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
from scipy import sparse

from rankrls._compiled import compiled, n_threads
from rankrls._rows import offset_columns, shift_columns
from rankrls._typing import Array, Index, Matrix
from rankrls.numerics.chunks import CHUNK_VALUES, R, map_chunks
from rankrls.numerics.graph import Graph, LabelledGraph, PreferenceGraph
from rankrls.numerics.runs import averaging, group_means

_FEW = 0.3
"""Mean rows that hold less than this share of the entries of X are few."""
_CACHE = 1 << 18
"""Bytes between rows that are read one after the other, if they are to come from the cache."""
_FEW_GROUPS = 16
"""Up to so many groups have their mean rows made dense: a sparse product takes the memory of all their rows."""


class FeatureProducts:
    """Products with some rows of X and with their transpose: dense (float32 or float64) or CSR, on all threads."""

    def __init__(self, X: Matrix) -> None:
        self.X = X
        self.shape = X.shape
        self.sparse = sparse.issparse(X)
        self.parts: tuple[Matrix, Matrix, Matrix] = (X.data, X.indices, X.indptr) if self.sparse else (None, None, None)

    def scores(self, rows: Index, p: Array) -> Array:
        """``X p`` for some rows."""
        out = np.empty(len(rows))

        def run(a: int, b: int) -> None:
            if self.sparse:
                _dot(*self.parts, rows[a:b], p, out[a:b])
            else:
                out[a:b] = self._block(rows[a:b]) @ p

        for _ in self.over(rows, run):
            pass
        return out

    def combine(self, rows: Index, z: Array) -> Array:
        """``X'z`` for some rows."""

        def run(a: int, b: int) -> Array:
            if not self.sparse:
                return z[a:b] @ self._block(rows[a:b])
            out = np.zeros(self.shape[1])
            _add(*self.parts, rows[a:b], z[a:b], out)
            return out

        return np.asarray(sum(self.over(rows, run), np.zeros(self.shape[1])))

    def over(self, rows: Index, run: Callable[[int, int], R]) -> Iterator[R]:
        """``run(a, b)`` for runs of rows, in order: as many as there are threads, or chunks of a dense X."""
        if self.sparse:
            ends = np.cumsum(self.parts[2][rows + 1] - self.parts[2][rows])
            work = int(ends[-1]) if len(ends) else 0
            count = max(1, min(n_threads(), work // (1 << 16)))
            cuts = [0, *np.searchsorted(ends, np.linspace(0, work, count + 1)[1:-1]).tolist(), len(rows)]
        else:
            cuts = [*range(0, len(rows), max(1, CHUNK_VALUES // max(1, self.shape[1]))), len(rows)]
        return map_chunks(lambda cut: run(*cut), pairwise(cuts))

    def _block(self, rows: Index) -> Array:
        whole = len(rows) and int(rows[-1]) - int(rows[0]) == len(rows) - 1 and bool((np.diff(rows) == 1).all())
        return np.asarray(self.X[rows[0] : rows[-1] + 1] if whole else self.X[rows], dtype=np.float64)


class LaplacianProduct:
    """The n x n matrix ``X'LX``, known by its products ``product @ p``.

    Parameters
    ----------
    features : FeatureProducts
    graph : LabelledGraph or PreferenceGraph
        Over rows of X, or over its items.

    Notes
    -----
    O(stored entries of X) a product; of preferences, O(preferences) beside it. X is not copied.
    """

    def __init__(self, features: FeatureProducts, graph: Graph) -> None:
        self.features = features
        self.graph = graph
        self.n_features = int(features.shape[1])
        self._one_pass: _OnePass | None = None
        if isinstance(graph, PreferenceGraph):
            self._rows = self._order = np.unique(np.concatenate((graph.winners, graph.losers)))
            self._matrix = graph.matrix[self._rows][:, self._rows]
            return
        self._order = np.argsort(graph.rows)
        self._rows = graph.rows[self._order]
        self._place = np.argsort(self._order)
        if features.sparse:
            one = _OnePass(features, graph)
            self._one_pass = one if one.pays else None

    def __matmul__(self, p: Array) -> Array:
        if self._one_pass is not None:
            return self._one_pass(p)
        f = self.features.scores(self._rows, p)
        if isinstance(self.graph, PreferenceGraph):
            return self.features.combine(self._rows, self._matrix @ (f - f.mean()))
        return self.features.combine(self._rows, self.graph.laplacian(f[self._place])[self._order])

    def right_side(self, target: Array) -> Array:
        """``X'F't`` for a target t, (n,)."""
        return self.features.combine(self._rows, self.graph.transposed(target)[self._order])


class _OnePass:
    """The product of CSR rows as a diagonal and mean rows; columns stored everywhere are moved to around zero."""

    def __init__(self, features: FeatureProducts, graph: LabelledGraph) -> None:
        self.features = features
        X = features.X
        # rows of a class in the order in which they stand in X
        order = np.lexsort((graph.rows, np.repeat(np.arange(len(graph.class_lengths)), graph.class_lengths)))
        self.rows = np.ascontiguousarray(graph.rows[order])
        self.weights = graph.weights[order]
        diagonal, levels = graph.levels
        self.diagonal = diagonal[order]
        self.columns = np.zeros(0, dtype=np.intp)
        self.shift = np.zeros(0)
        if not graph.e3:
            self.columns, self.shift = offset_columns(X)
        gap = float(np.median(np.abs(np.diff(self.rows)))) if len(self.rows) > 1 else 0.0
        near = gap * X.nnz * 12.0 < _CACHE * max(X.shape[0], 1) or X.nnz < 1 << 18
        # mean rows have at least as many entries as a row of X: too many are seen before they are made
        entries = sum(len(change) for _, change in levels) * (X.nnz // max(1, X.shape[0]))
        self.means: list[tuple[Matrix, Array, Index]] = []
        self.pays = near and entries <= _FEW * X.nnz
        for starts, change in levels if self.pays else ():
            share = averaging(self.weights, starts).data
            if len(change) <= _FEW_GROUPS:
                runs = (slice(a, b) for a, b in zip(starts[:-1], starts[1:], strict=True))
                M = np.stack([features.combine(self.rows[run], share[run]) for run in runs])
            else:
                M = sparse.csr_array((share, self.rows, starts), shape=(len(change), X.shape[0])) @ X
            self.means.append((shift_columns(sparse.csr_array(M), self.columns, self.shift), change, starts))
        self.pays = self.pays and sum(M.nnz for M, _, _ in self.means) < _FEW * X.nnz

    def __call__(self, p: Array) -> Array:
        f = np.empty(len(self.rows))
        shift = float(self.shift @ p[self.columns])

        def run(a: int, b: int) -> Array:
            out = np.zeros(self.features.shape[1])
            _fused(*self.features.parts, self.rows[a:b], self.diagonal[a:b], p, shift, f[a:b], out)
            return out

        out = np.asarray(sum(self.features.over(self.rows, run), np.zeros(self.features.shape[1])))
        out[self.columns] -= self.shift * float(self.diagonal @ f)
        for M, change, starts in self.means:
            out += M.T @ (change * group_means(f, self.weights, starts))
        return out


def sparse_equations(graph: Graph, X: Matrix) -> tuple[Array, Array]:
    """``X'LX`` and ``X'F't`` of sparse rows, by sparse products with L's diagonal and its means."""
    if isinstance(graph, PreferenceGraph):
        X = shift_columns(X, *offset_columns(X))
        return (X.T @ (graph.matrix @ X)).toarray(), np.asarray(X.T @ graph.transposed(graph.target))
    x = X[graph.rows].astype(np.float64)
    if not graph.e3:
        x = shift_columns(x, *offset_columns(x))
    diagonal, levels = graph.levels
    gram = x.T @ sparse.diags_array(diagonal) @ x
    for starts, weights in levels:
        M = averaging(graph.weights, starts) @ x
        gram = gram + M.T @ sparse.diags_array(weights) @ M
    return gram.toarray(), np.asarray(x.T @ graph.transposed(graph.target))


@compiled
def _dot(data, indices, indptr, rows, p, out):  # type: ignore[no-untyped-def]
    """``X p`` of some CSR rows."""
    one = np.uint64(1)
    for r in range(len(rows)):
        i = np.uint64(rows[r])
        score = 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + one])):
            score += data[k] * p[np.uint64(indices[k])]
        out[r] = score


@compiled
def _add(data, indices, indptr, rows, z, out):  # type: ignore[no-untyped-def]
    """``X'z`` of some CSR rows, added to ``out``."""
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
