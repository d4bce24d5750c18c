"""Dictionaries of functions for matching pursuit: columns k, known by what the preference graph sees of them.

A pursuit asks three things of its dictionary: ``k'Lk`` of every column once, ``K'F'u`` for a residual ``u`` once a
stage, and ``F k`` of the column that was chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.linalg import lapack

from rankrls._compiled.threads import map_threads
from rankrls.equations.normal_equations import normal_equations
from rankrls.features.blocks import row_slices
from rankrls.features.rows import FactorRows, visible_energies
from rankrls.graph import Graph
from rankrls.kernels import Kernel

CACHE_BYTES = 4 << 30
"""Columns are held up to here, and computed anew at every stage beyond."""

_BLOCK_BYTES = 64 << 20
_STRIP = 1 << 17
"""Entries of some columns that stay in the second-level cache while they are worked on."""
_PASSES = 16
"""A Gram matrix of n columns takes about as long as n / 16 passes over the features."""


class Dictionary(Protocol):
    """N columns over the rows of ``F``."""

    @property
    def n_columns(self) -> int: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def energies(self) -> NDArray[np.float64]:
        """``k'Lk`` of every column, (N,); exactly 0 for a column that L does not see."""
        ...

    def column(self, number: int) -> NDArray[np.float64]:
        """``F k`` of one column, (rows of F,)."""
        ...

    def correlations(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """``K'F'u`` of every column, (N,)."""
        ...


@dataclass(frozen=True, eq=False)
class HeldDictionary:
    """``F K`` in memory, one row a dictionary column: a stage reads it once, row by row.

    Attributes
    ----------
    Z : ndarray of shape (N, rows of F)
        ``(F K)'``.
    energies : ndarray of shape (N,)
    """

    Z: NDArray[np.float64]
    energies: NDArray[np.float64]

    @property
    def n_columns(self) -> int:
        return self.Z.shape[0]

    @property
    def n_rows(self) -> int:
        return self.Z.shape[1]

    def column(self, number: int) -> NDArray[np.float64]:
        return self.Z[number]

    def correlations(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self.Z @ u)


class BlockDictionary:
    """Kernel columns block by block, held without ``F`` or computed anew whenever they are needed.

    Parameters
    ----------
    block : callable
        ``block(slice)`` are some columns as rows, (columns, items).
    n_columns : int
    graph : Graph
    """

    def __init__(self, block: Callable[[slice], NDArray[np.float64]], n_columns: int, graph: Graph) -> None:
        self._block = block
        self._graph = graph
        self.n_columns = n_columns
        self.n_rows = graph.n_rows
        self._step = max(1, _BLOCK_BYTES // (8 * max(graph.n_items, graph.n_rows)))
        self.energies = np.empty(n_columns)
        for part in row_slices(0, n_columns, self._step):
            columns = block(part)
            energies = np.asarray(graph.quadratic(columns.T))
            self.energies[part] = visible_energies(energies, columns**2 @ graph.degrees, graph.n_items)

    def column(self, number: int) -> NDArray[np.float64]:
        return np.asarray(self._graph.F @ self._block(slice(number, number + 1))[0])

    def correlations(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        v = self._graph.F.T @ u
        out = np.empty(self.n_columns)
        for part in row_slices(0, self.n_columns, self._step):
            out[part] = self._block(part) @ v
        return out


class FeatureDictionary:
    """The features themselves, where ``F X`` is not held: CSR, or dense and too large for a copy.

    Dense features are centred block by block at every stage; sparse ones are never filled.
    """

    def __init__(self, rows: FactorRows) -> None:
        self._rows = rows
        self._graph = rows.graph
        self.n_columns, self.n_rows = rows.n_features, rows.n_rows
        self.energies = rows.energies()

    def column(self, number: int) -> NDArray[np.float64]:
        X = self._rows.X
        if sparse.issparse(X):
            pick = np.zeros(self.n_columns)
            pick[number] = 1.0
            x = X @ pick
        else:
            x = X[:, number].astype(np.float64)
        return np.asarray(self._graph.F @ x)

    def correlations(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._rows.combine((self._graph.F.T @ u)[:, None])[:, 0]


def kernel_dictionary(
    kernel: Kernel, X: Any, centres: Any | None, graph: Graph, *, cache_bytes: float = CACHE_BYTES
) -> Dictionary:
    """The functions ``k(., centre)`` on the items X.

    Parameters
    ----------
    kernel : Kernel
    X : dense, CSR or list, m items; with a precomputed kernel the matrix (m, N) itself
    centres : the same kind of N items, or None for X
    graph : Graph
    cache_bytes : float
        ``F K`` is held up to here, or K where preferences outnumber items; beyond, K is computed at each stage.

    Notes
    -----
    Held: 8 m N bytes, and 2 m N operations a stage.
    """
    items, N = graph.n_items, _length(X if centres is None else centres)
    if kernel.name == "precomputed":
        N = X.shape[1]
    held = 8.0 * items * N <= cache_bytes
    if held and graph.n_rows <= 2 * items and 8.0 * graph.n_rows * N <= cache_bytes:
        return held_dictionary(kernel_columns(kernel, X, centres), graph)
    if held or callable(kernel.name) or kernel.name == "precomputed":
        K = kernel_columns(kernel, X, centres)
        return BlockDictionary(lambda part: K[part], N, graph)
    Z = X if centres is None else centres
    return BlockDictionary(lambda part: kernel(Z[part], X), N, graph)


def kernel_columns(kernel: Kernel, X: Any, centres: Any | None) -> NDArray[np.float64]:
    """``k(x, centre)`` with one row a centre, (N, m), in memory of its own."""
    if kernel.name == "precomputed":
        return np.array((X.toarray() if sparse.issparse(X) else X).T, dtype=np.float64, order="C")
    if centres is None:
        return kernel(X)
    if callable(kernel.name):  # it need not be symmetric
        return np.ascontiguousarray(kernel(X, centres).T)
    return kernel(centres, X)


def held_dictionary(K: NDArray[np.float64], graph: Graph) -> HeldDictionary:
    """From columns as rows, (N, items), which are destroyed."""
    N, degrees = K.shape[0], graph.degrees
    raw = np.empty(N)
    Z = K if graph.n_rows == graph.n_items else np.empty((N, graph.n_rows))

    def fill(part: slice) -> None:
        columns = np.ascontiguousarray(K[part].T)
        raw[part] = np.einsum("i,ij,ij->j", degrees, columns, columns)
        Z[part] = (graph.F @ columns).T

    map_threads(fill, row_slices(0, N, max(8, _STRIP // max(graph.n_rows, 1))))
    return _held(Z, raw, graph)


def _held(Z: NDArray[np.float64], raw: NDArray[np.float64], graph: Graph) -> HeldDictionary:
    energies = visible_energies(np.einsum("ij,ij->i", Z, Z), raw, graph.n_items)
    Z[energies == 0.0] = 0.0
    return HeldDictionary(Z, energies)


def feature_dictionary(X: Any, graph: Graph, *, cache_bytes: float = CACHE_BYTES) -> Dictionary:
    """The columns of X. Dense X is copied once as ``F X`` where that takes no more than ``cache_bytes``."""
    rows = graph.factor_rows(X)
    if sparse.issparse(X) or 8.0 * rows.n_rows * rows.n_features > cache_bytes:
        return FeatureDictionary(rows)
    Z = np.empty((rows.n_features, rows.n_rows))

    def fill(piece: slice) -> None:
        Z[:, piece] = rows.factor(piece).T

    map_threads(fill, row_slices(0, rows.n_rows))
    return _held(Z, rows.raw_energies(), graph)


def pays_to_reduce(X: Any, graph: Graph, stages: int) -> bool:
    """Whether the Gram matrix of dense features costs less than that many passes over them."""
    n = X.shape[1]
    return not sparse.issparse(X) and graph.n_rows > 4 * n and _PASSES * min(stages, n) > n


def reduced_features(
    X: Any, graph: Graph, target: NDArray[np.float64]
) -> tuple[HeldDictionary, NDArray[np.float64], float]:
    """The same pursuit in at most n coordinates instead of m: through the triangle of ``X'LX``.

    With ``X'LX = R'R`` and ``R't = X'Ly``, ``||F X w - F y||^2 = ||R w - t||^2 + rest`` for every w. O(m n^2) once,
    then O(n^2) a stage whatever the number of rows.

    Parameters
    ----------
    X : dense, (m, n)
    graph : Graph
    target : ndarray of shape (rows of F,)

    Returns
    -------
    dictionary : HeldDictionary
        The columns of R.
    target : ndarray of shape (rank,)
    rest : float
        What every loss has beside.

    Notes
    -----
    The columns are brought to length 1 first, so that a short one loses no digit to a long one; what is left of a
    column beside the others is then known to half the digits, which is where a pursuit counts it as dependent.
    """
    rows = graph.factor_rows(X)
    equations = normal_equations(rows, target[:, None])
    n = X.shape[1]
    energies = visible_energies(np.diag(equations.gram).copy(), rows.raw_energies(), graph.n_items)
    lengths = np.sqrt(energies)
    scale = np.divide(1.0, lengths, out=np.zeros(n), where=lengths > 0.0)
    gram = equations.gram * scale
    gram *= scale[:, None]
    gram[np.diag_indices(n)] = scale > 0.0
    triangle, pivots, rank, _ = lapack.dpstrf(gram, tol=n * np.finfo(np.float64).eps, overwrite_a=1)
    order = pivots - 1
    R = np.triu(triangle[:rank])
    t = linalg.solve_triangular(R[:, :rank], (equations.rhs[:, 0] * scale)[order[:rank]], trans="T", check_finite=False)
    Z = np.empty((n, rank))
    Z[order] = R.T
    Z *= lengths[:, None]
    return HeldDictionary(Z, energies), t, max(float(equations.energy[0] - t @ t), 0.0)


def _length(items: Any) -> int:
    return len(items) if isinstance(items, list) else int(items.shape[0])
