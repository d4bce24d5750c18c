"""Dictionaries of functions, sums of their terms, and what learners find for several values of a parameter.

A pursuit asks three things of its dictionary of columns k: ``k'Lk`` of every column once, the ``energies``; ``K'F'u``
for a residual ``u`` once a stage; and ``F k`` of the column that was chosen. Columns are kernel functions of items, or
features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from scipy import sparse

from rankrls._arrays import to_host
from rankrls._typing import Array, Index, Matrix
from rankrls.kernels import Kernel
from rankrls.numerics.chunks import chunk_rows, chunks, map_chunks
from rankrls.numerics.graph import Graph, LabelledGraph
from rankrls.numerics.scorer import Scorer


class Dictionary:
    """The columns of a matrix, dense or sparse, as a graph over its rows (items) sees them.

    ``F X`` is not held, and sparse X is never filled.

    Attributes
    ----------
    shape : tuple
        Rows of F, and N.
    energies : ndarray of shape (N,)
        ``k'Lk`` of every column; exactly 0 for a column that L does not see.
    """

    def __init__(self, X: Matrix, graph: Graph) -> None:
        self._X = X if getattr(graph, "e3", 0.0) else centred(X)
        self._graph = graph
        self.shape = graph.n_rows, X.shape[1]

        def squares(piece: tuple[int, int]) -> Array:
            Z = graph.part(*piece).factor_rows(self._X)
            return np.asarray(np.einsum("ij,ij->j", Z, Z))

        self.energies = np.sum(list(map_chunks(squares, chunks(graph.starts, chunk_rows(X.shape[1])))), axis=0)

    def factored(self) -> Array:
        """``F X``, (rows of F, N)."""
        return self._graph.factor_rows(self._X)

    def column(self, number: int) -> Array:
        """``F k`` of one column, (rows of F,)."""
        return self._graph.factor_rows(self._X[:, [number]])[:, 0]

    def correlations(self, u: Array) -> Array:
        """``X'F'u`` of every column, (N,)."""
        v = self._graph.transposed(u)
        if isinstance(self._graph, LabelledGraph):
            v = np.nan_to_num(self._graph.restore(v, self._X.shape[0]))
        return np.where(self.energies > 0.0, self._X.T @ v, 0.0)


def kernel_columns(kernel: Kernel, X: Matrix, centres: Matrix) -> Array:
    """``k(x, centre)``, (m, N); of a kernel given as a matrix X itself."""
    if kernel.name == "precomputed":
        return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    return kernel(X) if centres is X else kernel(X, centres)


def select_features(X: Matrix, features: Index | None) -> Any:
    """X, or some of its columns."""
    if features is None:
        return X
    return X[:, features] if sparse.issparse(X) else np.ascontiguousarray(X[:, features])


def sum_of_terms(a: Array, kernel: Kernel | None, items: Matrix, taken: Index, n_features: int) -> Scorer:
    """Functions ``sum_p a_p k_p`` of columns that were taken.

    Parameters
    ----------
    a : ndarray of shape (taken, columns)
    kernel : Kernel or None
        None if features were taken.
    items : array-like or None
        The items whose kernel functions were taken; they play no part for features and kernel matrices.
    taken : ndarray of intp
        Numbers of the features, or of the columns of a kernel matrix.
    n_features : int
        Of X.
    """
    if kernel is None:
        every = np.zeros((n_features, a.shape[1]))
        every[taken] = a
        return Scorer(every)
    if kernel.name == "precomputed":
        return Scorer(None, a, kernel, None, taken)
    weights = np.asarray(items.T @ a, dtype=np.float64) if kernel.is_linear else None
    return Scorer(weights, a, kernel, items)


def centred(X: Matrix) -> Any:
    """X in float64; columns whose offset dwarfs their spread are moved to around zero, if X is dense.

    Only differences of scores matter, and offsets cost digits. X itself where nothing is to be done.
    """
    if sparse.issparse(X):
        return X
    means = X.mean(axis=0, dtype=np.float64)
    far = np.abs(means) > 100.0 * X.std(axis=0, dtype=np.float64)
    if X.dtype == np.float64 and not far.any():
        return X
    return X.astype(np.float64) - np.where(far, means, 0.0)


@dataclass(frozen=True, eq=False)
class StagePath:
    """What a pursuit took, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages, ...), intp
        Columns that each stage took.
    coefficients : ndarray of shape (stages, stages, ...)
        Row p - 1 holds the coefficients of ``indices[:p]`` after stage p, and zeros behind them.
    losses : ndarray of shape (stages + 1,)
        The objective before the first stage and after each; fields of subclasses have an entry for each of these too.
    """

    indices: Index
    coefficients: Array
    losses: Array

    @property
    def n_stages(self) -> int:
        return len(self.indices)

    def at(self, stage: int) -> Self:
        """The path up to a stage."""
        rest = {f.name: vars(self)[f.name][: stage + 1] for f in fields(self)[2:]}
        return replace(self, indices=self.indices[:stage], coefficients=self.coefficients[:stage, :stage], **rest)


@dataclass(frozen=True, eq=False)
class PursuitPath(StagePath):
    """What a pursuit took, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages,), intp
        Column of the dictionary that each stage took; without backfitting one can come back.
    coefficients : ndarray of shape (stages, stages)
        Row p - 1 holds the coefficients of ``indices[:p]`` after stage p, and zeros behind them.
    losses : ndarray of shape (stages + 1,)
        ``(y - f)' L (y - f)`` before the first stage and after each.
    """

    def merged(self) -> tuple[Index, Array]:
        """Distinct columns in the order of choice, and their coefficients after each stage, (stages, columns)."""
        _, first, place = np.unique(self.indices, return_index=True, return_inverse=True)
        order = np.argsort(first)
        if len(order) == self.n_stages:
            return self.indices, self.coefficients
        number = np.argsort(order)[place]  # of each stage's column among the distinct ones
        coefficients = np.zeros((self.n_stages, len(order)))
        np.add.at(coefficients.T, number, self.coefficients.T)
        return self.indices[first[order]], coefficients


@dataclass(frozen=True, eq=False)
class CoPursuitPath(StagePath):
    """What a pursuit of M views took, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages, M), intp
        Column of each view that each stage took. A column that came before adds nothing of its own.
    coefficients : ndarray of shape (stages, stages, M)
        ``coefficients[p - 1, :p, v]`` belong to ``indices[:p, v]`` after stage p.
    losses : ndarray of shape (stages + 1,)
        Equation (3) before the first stage and after each.
    view_losses : ndarray of shape (stages + 1, M)
        Its first part, view by view; the rest of ``losses`` is the disagreement of the views.
    """

    view_losses: Array

    def view(self, number: int) -> PursuitPath:
        """The path of one view."""
        return PursuitPath(
            np.ascontiguousarray(self.indices[:, number]),
            np.ascontiguousarray(self.coefficients[:, :, number]),
            np.ascontiguousarray(self.view_losses[:, number]),
        )


D = TypeVar("D")


@dataclass(frozen=True, eq=False)
class PathSolutions(Generic[D]):
    """Functions of one problem for several values.

    Attributes
    ----------
    coefficients : ndarray of shape (values, size, targets)
    read : callable
        Makes a function of items, such as a Scorer, of coefficients (size, columns).
    details : sequence, optional
        What the solver reports of each solution.
    """

    coefficients: Array
    read: Callable[[Array], Any]
    details: Sequence[D] = ()

    def all_functions(self) -> Any:
        """The functions of every value and target, value by value."""
        values, size, targets = self.coefficients.shape
        return self.read(self.coefficients.transpose(1, 0, 2).reshape(size, values * targets))

    def scores(self, X: Matrix) -> Array:
        """Scores of rows X by every solution, (rows, values, targets), on the host."""
        values, _, targets = self.coefficients.shape
        scores = to_host(self.all_functions()(X))
        return scores.reshape(len(scores), values, targets)

    def __getitem__(self, k: int) -> Any:
        """The solution of value number k, with a column for each target."""
        return self.read(self.coefficients[k])
