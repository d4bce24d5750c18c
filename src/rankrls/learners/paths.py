"""Dictionaries of functions, sums of their terms, and solutions of learners for several values of a parameter.

A pursuit needs three quantities of the columns k of its dictionary: ``k'Lk`` of every column once, the ``energies``;
``K'F'u`` for a residual ``u`` once per stage; and ``F k`` of the selected column. Columns are kernel functions of
items, or features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from scipy import sparse

from rankrls._arrays import to_host
from rankrls._rows import offset_columns, shift_columns
from rankrls._typing import Array, Index, Matrix
from rankrls.kernels import Kernel
from rankrls.numerics.graph import Graph
from rankrls.numerics.runs import chunk_rows, chunks, map_chunks
from rankrls.numerics.scorer import Scorer


class Dictionary:
    """Columns of a dense or sparse matrix, in the inner product of a graph over its rows (items).

    ``F X`` is not stored, and sparse X is never made dense.

    Attributes
    ----------
    shape : tuple
        Number of rows of F, and N.
    energies : ndarray of shape (N,)
        ``k'Lk`` of every column; exactly 0 for a column in the null space of L.
    """

    def __init__(self, X: Matrix, graph: Graph) -> None:
        self._X = X if graph.sees_constants else without_offset(X)
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
        """``X'F'u`` for every column, (N,)."""
        v = self._graph.item_coefficients(u, self._X.shape[0])
        return np.where(self.energies > 0.0, self._X.T @ v, 0.0)


def kernel_columns(kernel: Kernel, X: Matrix, centres: Matrix) -> Array:
    """``k(x, centre)``, (m, N); for a precomputed kernel, X itself."""
    if kernel.name == "precomputed":
        return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    return kernel(X) if centres is X else kernel(X, centres)


def orthogonal_part(column: Array, Q: Array) -> Array:
    """The part of a column that is orthogonal to the orthonormal rows of Q.

    Gram-Schmidt is applied twice, so that it is orthogonal up to rounding, however dependent the columns are (Daniel,
    Gragg, Kaufman and Stewart 1976).
    """
    rest = column - (Q @ column) @ Q
    return np.asarray(rest - (Q @ rest) @ Q)


def select_features(X: Matrix, features: Index | None) -> Any:
    """X, or the given columns of it."""
    return X if features is None else X[:, features]


def sum_of_terms(a: Array, kernel: Kernel | None, items: Matrix, taken: Index, n_features: int) -> Scorer:
    """Functions ``sum_p a_p k_p`` of selected columns.

    Parameters
    ----------
    a : ndarray of shape (taken, columns)
    kernel : Kernel or None
        None if features were selected.
    items : array-like or None
        Items whose kernel functions were selected; ignored for features and kernel matrices.
    taken : ndarray of intp
        Numbers of the selected features, or of the columns of a kernel matrix.
    n_features : int
        Number of features of X.
    """
    if kernel is None:
        every = np.zeros((n_features, a.shape[1]))
        every[taken] = a
        return Scorer(every)
    if kernel.name == "precomputed":
        return Scorer(None, a, kernel, None, taken)
    weights = np.asarray(items.T @ a, dtype=np.float64) if kernel.is_linear else None
    return Scorer(weights, a, kernel, items)


def without_offset(X: Matrix) -> Matrix:
    """Items X relative to their mean; sparse items relative to the offsets of columns stored in every row.

    Only differences of scores matter, and offsets cost digits.
    """
    return shift_columns(X, *offset_columns(X)) if sparse.issparse(X) else X - X.mean(axis=0, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class StagePath:
    """The columns selected by a pursuit, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages, ...), intp
        Columns selected at each stage.
    coefficients : ndarray of shape (stages, stages, ...)
        Row p - 1 contains the coefficients of ``indices[:p]`` after stage p, followed by zeros.
    losses : ndarray of shape (stages + 1,)
        Objective before the first stage and after each; further fields of subclasses also have stages + 1 entries.
    """

    indices: Index
    coefficients: Array
    losses: Array

    @property
    def n_stages(self) -> int:
        return len(self.indices)

    def at(self, stage: int) -> Self:
        """The path up to the given stage."""
        rest = {f.name: vars(self)[f.name][: stage + 1] for f in fields(self)[2:]}
        return replace(self, indices=self.indices[:stage], coefficients=self.coefficients[:stage, :stage], **rest)


@dataclass(frozen=True, eq=False)
class PursuitPath(StagePath):
    """The columns selected by a pursuit, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages,), intp
        Column of the dictionary selected at each stage; without backfitting, columns can repeat.
    coefficients : ndarray of shape (stages, stages)
        Row p - 1 contains the coefficients of ``indices[:p]`` after stage p, followed by zeros.
    losses : ndarray of shape (stages + 1,)
        ``(y - f)' L (y - f)`` before the first stage and after each.
    """

    def merged(self) -> tuple[Index, Array]:
        """Distinct columns in the order of choice, and their coefficients after each stage, (stages, columns)."""
        distinct = np.array(list(dict.fromkeys(self.indices.tolist())), dtype=np.intp)
        return distinct, self.coefficients @ (self.indices[:, None] == distinct)


@dataclass(frozen=True, eq=False)
class CoPursuitPath(StagePath):
    """The columns selected by a pursuit in M views, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages, M), intp
        Column of each view selected at each stage; a repeated column adds nothing of its own.
    coefficients : ndarray of shape (stages, stages, M)
        ``coefficients[p - 1, :p, v]`` are the coefficients of ``indices[:p, v]`` after stage p.
    losses : ndarray of shape (stages + 1,)
        Equation (3) before the first stage and after each.
    view_losses : ndarray of shape (stages + 1, M)
        Its first part, view by view; the rest of ``losses`` is the disagreement of the views.
    """

    view_losses: Array

    def view(self, number: int) -> PursuitPath:
        """The path of the given view."""
        return PursuitPath(self.indices[:, number], self.coefficients[:, :, number], self.view_losses[:, number])


D = TypeVar("D")


@dataclass(frozen=True, eq=False)
class PathSolutions(Generic[D]):
    """Functions that solve one problem, for several values of its parameter.

    Attributes
    ----------
    coefficients : ndarray of shape (values, size, targets)
    read : callable
        Function that converts coefficients (size, columns) to a function of items, such as a Scorer.
    details : sequence, optional
        Results that the solver reports for each solution.
    """

    coefficients: Array
    read: Callable[[Array], Any]
    details: Sequence[D] = ()

    def all_functions(self) -> Any:
        """Functions for every value and target, value by value."""
        values, size, targets = self.coefficients.shape
        return self.read(self.coefficients.transpose(1, 0, 2).reshape(size, values * targets))

    def scores(self, X: Matrix) -> Array:
        """Scores of the rows of X by every solution, (rows, values, targets), on the host."""
        values, _, targets = self.coefficients.shape
        scores = to_host(self.all_functions()(X))
        return scores.reshape(len(scores), values, targets)

    def __getitem__(self, k: int) -> Any:
        """The solution for value number k, with one column per target."""
        return self.read(self.coefficients[k])
