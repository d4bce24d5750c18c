"""Rows of ``F X``, block by block: what every least-squares solver works on.

Differences are taken before anything is multiplied: an offset that the columns share inside a query, however large,
is gone before a product can round it. ``F X`` is never held whole unless a solver asks for all of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled.blas import add_gram
from rankrls._compiled.threads import blas_threads_for, map_threads, n_threads, one_blas_thread, threads_worth
from rankrls.features.blocks import BLOCK_ROWS, Rows, mirror, row_numbers, row_slices

SAFE_COLUMNS = 8
_A_THREAD = 1 << 23
"""Multiplications of a Gram matrix that a thread is worth."""
_MANY_COLUMNS = 1024
_SPARSE_BELOW = 0.1
"""Below this density the products of sparse matrices beat dense ones of the same shape."""
CANCELLED = 1e-13
"""What is left of a feature when its part that no edge sees was squared and taken off: less than this is rounding."""


class FactorRows(ABC):
    """Rows of ``F X`` for a graph and a feature matrix.

    Attributes
    ----------
    X : dense, CSR, or :class:`rankrls.features.columns.BasisColumns`
    graph : rankrls.graph.Graph
    n_rows, n_features : int
    most_held : float
        Entries of ``F X`` that may be held at once, for the rows of one block.
    """

    X: Any
    graph: Any
    n_rows: int
    n_features: int
    most_held: float = np.inf

    @abstractmethod
    def factor(self, rows: Rows) -> NDArray[np.float64]:
        """``(F X)[rows]``, dense, float64, in memory of its own."""

    @abstractmethod
    def differences(self, rows: Rows) -> NDArray[np.float64]:
        """What held-out rows are predicted from: items minus their query's mean, or winners minus losers."""

    def products(self, V: NDArray[np.float64]) -> Callable[[Rows], NDArray[np.float64]]:
        """``differences(rows) @ V`` of rows to come, in which equal rows give equal products."""
        return lambda rows: row_products(self.differences(rows), V)

    def factor_of(self, rows: Rows, D: NDArray[np.float64], V: NDArray[np.float64]) -> NDArray[np.float64]:
        """``factor(rows) @ V``, given ``D = differences(rows) @ V``; without a second product if there is a way."""
        return self.factor(rows) @ V

    @property
    def centres(self) -> NDArray[np.float64]:
        """What the differences are taken from: the means of the queries, or one row of zeros."""
        return np.zeros((1, self.n_features))

    def centre_of(self, rows: Rows) -> NDArray[np.intp]:
        """Number of each row's centre."""
        return np.zeros(len(row_numbers(rows)), dtype=np.intp)

    def scores(self, rows: Rows, W: NDArray[np.float64]) -> NDArray[np.float64]:
        """What held-out rows are judged by under weights W of the features, (rows, columns of W)."""
        own, number = np.unique(self.centre_of(rows), return_inverse=True)
        return row_products(self.differences(rows), W) + (self.centres[own] @ W)[number]

    def keys(self, rows: Rows) -> list[Any]:
        """A hashable for each row, the same for items of equal features: their scores are equal, whatever rounding."""
        return [row.tobytes() for row in self.differences(rows) + 0.0]

    @property
    def is_thin(self) -> bool:
        """Whether the rows are sparse, and of so low a density that products of sparse matrices are faster."""
        held = self._held
        return bool(sparse.issparse(held) and held.nnz < _SPARSE_BELOW * held.shape[0] * held.shape[1])

    @property
    def _held(self) -> Any:
        return self.X

    def pieces(self, which: Rows) -> list[Rows]:
        """Whole blocks of the graph cut into pieces that the other methods take."""
        if isinstance(which, slice):
            return list(row_slices(which.start, which.stop))
        return [which[piece] for piece in row_slices(0, len(which))]

    def gram_threads(self) -> int:
        """How many pieces to multiply at once, each with a Gram matrix of its own; 1 leaves the threads to BLAS."""
        return 1 if self.n_features > _MANY_COLUMNS else n_threads()

    def sample(self, wanted: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Random rows that :meth:`pieces` can cut, ascending, about as many as wanted."""
        return np.sort(rng.choice(self.n_rows, wanted, replace=False)).astype(np.intp)

    def equations(self, target: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``(FX)'FX`` and ``(FX)'target``, of shapes (n, n) and (n, targets)."""
        return rows_gram(self, slice(0, self.n_rows), target)

    def combine(self, a: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X'a`` for coefficients of the items that sum to zero, (n, targets)."""
        if sparse.issparse(self.X):
            return np.asarray(self.X.T @ a)
        centre = self.X.mean(axis=0, dtype=np.float64)
        out = np.zeros((self.n_features, a.shape[1]))
        for piece in row_slices(0, self.X.shape[0]):
            out += (self.X[piece] - centre).T @ a[piece]
        return out

    def energies(self) -> NDArray[np.float64]:
        """``x'Lx`` of every column x, (n,); exactly 0 for a column that L does not see."""
        out = np.zeros(self.n_features)
        for piece in self.pieces(slice(0, self.n_rows)):
            block = self.factor(piece)
            out += np.einsum("ij,ij->j", block, block)
        return self.visible(out)

    def visible(self, energies: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of squares of the columns of ``F X``, exactly 0 for a column that L does not see."""
        return visible_energies(energies, self.raw_energies(), self.graph.n_items)

    def raw_energies(self) -> NDArray[np.float64]:
        """The same from the columns' own sizes, of which differences leave the energies: the scale of rounding."""
        degrees, X = self.graph.degrees, self.X
        if sparse.issparse(X):
            return np.asarray(X.multiply(X).T @ degrees)
        out = np.zeros(self.n_features)
        for piece in row_slices(0, X.shape[0]):
            out += degrees[piece] @ X[piece].astype(np.float64) ** 2
        return out


def row_products(X: NDArray[np.floating], W: NDArray[np.float64]) -> NDArray[np.float64]:
    """``X W`` of dense X in float64, in which equal rows give equal products to the last bit.

    BLAS does not keep that promise for a vector or a few columns: it adds up the rows at the end of a block in another
    order, and rounding would rank items with equal features. From a handful of columns on its kernels do.
    """
    X = X.astype(np.float64, copy=False)
    columns = W if W.ndim == 2 else W[:, None]
    if columns.shape[1] >= SAFE_COLUMNS:
        return np.asarray(X @ W)
    out = np.empty((X.shape[0], columns.shape[1]))
    for k in range(columns.shape[1]):
        np.einsum("ij,j->i", X, np.ascontiguousarray(columns[:, k]), out=out[:, k])
    return out if W.ndim == 2 else out[:, 0]


def rows_gram(
    rows: FactorRows, which: Rows, target: NDArray[np.float64], *, threads: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``B'B`` and ``B' target`` for the rows B of ``F X`` named by ``which`` (a slice, or row numbers)."""
    n = rows.n_features
    pieces = rows.pieces(which)
    multiplications = float(len(pieces) * BLOCK_ROWS * n * n)
    most = min(rows.gram_threads(), max(1, len(pieces)), threads_worth(multiplications, _A_THREAD))
    threads = most if threads is None else min(threads, most)

    def run(some: list[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gram = np.zeros((n, n), order="F")
        rhs = np.zeros((target.shape[1], n))
        for piece in some:
            B = rows.factor(piece)
            add_gram(gram, B)
            rhs += target[piece].T @ B  # reads B in its order, in half the time of B'target
        return gram, rhs.T

    if threads == 1:
        with blas_threads_for(multiplications):
            parts = [run(pieces)]
    else:
        # Each thread walks a run of neighbouring blocks, so that it streams through the rows.
        cuts = np.linspace(0, len(pieces), threads + 1).astype(int)
        with one_blas_thread():
            parts = map_threads(run, [pieces[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)])
    gram, rhs = parts[0]
    for more_gram, more_rhs in parts[1:]:
        gram += more_gram
        rhs += more_rhs
    mirror(gram.T)
    return gram.T, rhs


def weighted_gram(M: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """``M' diag(weight) M``."""
    return np.asarray(M.T @ (weight[:, None] * M))


def cleared(
    gram: NDArray[np.float64], rhs: NDArray[np.float64], noise: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Without the features of which there is nothing but rounding, however small it is beside others; in place."""
    gone = gram.diagonal() <= noise
    if gone.any():
        gram[gone], gram[:, gone], rhs[gone] = 0.0, 0.0, 0.0
    return gram, rhs


def visible_energies(
    energies: NDArray[np.float64], raw: NDArray[np.float64], n_items: int, *, squared: bool = False
) -> NDArray[np.float64]:
    """Energies with what is mere rounding of the columns' own size set to 0.

    Means are taken before squares, so that a column's rounding enters squared, except where ``squared``.
    """
    relative = max(n_items, 10) * np.finfo(np.float64).eps
    seen = energies > (relative if squared else relative**2) * raw
    return np.where(seen, energies, 0.0)
