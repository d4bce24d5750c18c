"""Rows of ``F X`` of a scored graph, for features that are held, dense or sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._compiled.group_pass import level_rows
from rankrls._compiled.threads import threads_worth
from rankrls._sparse import offset_columns, shift_columns
from rankrls.features.blocks import ENTRIES_A_THREAD, Rows, row_numbers, row_slices
from rankrls.features.rows import CANCELLED, FactorRows, cleared, visible_energies, weighted_gram

if TYPE_CHECKING:
    from rankrls.graph.scored import ScoredGraph

_Array = NDArray[np.float64]
_Levels = tuple[_Array, _Array, _Array, _Array]


class ScoredRows(FactorRows):
    """``F X`` of a scored graph.

    Construction takes one pass over X for the means of all groups, O(m n); a block of r rows is then O(r n).
    """

    most_held = 1 << 24  # an eighth of a gigabyte, twice

    def __init__(self, X: Any, graph: ScoredGraph) -> None:
        self.graph: ScoredGraph = graph
        self.n_rows, self.n_features = X.shape
        self._shift = np.zeros(self.n_features)
        if sparse.issparse(X) and not graph.regresses:  # a shift changes no difference, but it would a regression
            columns, shift = offset_columns(X)
            self._shift[columns] = shift
            X = shift_columns(X, columns, shift)
        self.X = X
        self.group_means = graph.group_means(X, threads=threads_worth(X.shape[0] * X.shape[1], ENTRIES_A_THREAD))
        self.query_means = graph.query_means(self.group_means)
        query = graph.group_query
        self._rest = graph.rest(graph.roots, query, self.group_means, self.query_means[query])
        self._root_weight = np.sqrt(graph.weights)

    def factor(self, rows: Rows) -> NDArray[np.float64]:
        graph, numbers = self.graph, row_numbers(rows)
        groups, scale = graph.row_group[numbers], self._root_weight[numbers]
        return self._level(numbers, groups, (graph.roots[0], scale, self.group_means, self._rest))

    def differences(self, rows: Rows) -> NDArray[np.float64]:
        means, numbers = self.query_means, row_numbers(rows)
        queries = self.graph.layout.codes[numbers]
        return self._level(numbers, queries, (np.ones(len(means)), np.ones(len(numbers)), means, self._nothing))

    @cached_property
    def _nothing(self) -> _Array:
        """A row of zeros for each query. To make them for every block would take a tenth of leave-query-out."""
        return np.zeros_like(self.query_means)

    def _level(self, rows: NDArray[np.intp], groups: NDArray[np.intp], levels: _Levels) -> NDArray[np.float64]:
        out = np.empty((len(rows), self.n_features))
        if sparse.issparse(self.X):
            level_rows(self.X[rows].toarray(), np.arange(len(rows), dtype=np.intp), groups, *levels, out)
        else:
            level_rows(self.X, rows, groups, *levels, out)
        return out

    def factor_of(self, rows: Rows, D: NDArray[np.float64], V: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.graph.ties == "exclude" or self.graph.regresses:
            return self.factor(rows) @ V
        scale = self._root_weight[rows] * self.graph.roots[0][self.graph.layout.codes[rows]]
        return scale[:, None] * D

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        return self.query_means + self._shift if self._shift.any() else self.query_means

    def centre_of(self, rows: Rows) -> NDArray[np.intp]:
        return self.graph.layout.codes[rows]

    def combine(self, a: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X'a`` for item coefficients, (n, targets). What the queries' coefficients cancel is never multiplied."""
        graph = self.graph
        if sparse.issparse(self.X):
            return np.asarray(self.X.T @ a)
        out = np.zeros((self.n_features, a.shape[1]))
        if graph.regresses:
            sums = np.zeros((graph.n_blocks, a.shape[1]))
            np.add.at(sums, graph.layout.codes, a)
            out += self.query_means.T @ sums
        for piece in row_slices(0, self.n_rows):
            out += self.differences(piece).T @ a[piece]
        return out

    def equations(self, target: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gram, rhs = self._thin_equations(target) if self.is_thin else super().equations(target)
        return cleared(gram, rhs, self.centring_noise())

    def _thin_equations(self, target: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """``X'DX`` plus the means' part: centring would fill the columns."""
        X, (diagonal, *between) = self.X, self._parts()
        gram = (X.T @ (sparse.diags_array(diagonal) @ X)).toarray()
        raw = gram.diagonal().copy()
        for means, weight in between:
            gram += weighted_gram(means, weight)
        return cleared(0.5 * (gram + gram.T), np.asarray(X.T @ (self.graph.F.T @ target)), CANCELLED * raw)

    def energies(self) -> NDArray[np.float64]:
        if not sparse.issparse(self.X):
            return super().energies()
        diagonal, *between = self._parts()
        out = np.asarray(self.X.multiply(self.X).T @ diagonal)
        for means, weight in between:
            out += weight @ means**2
        return visible_energies(out, self.raw_energies(), self.graph.n_items, squared=True)

    def _parts(self) -> tuple[Any, ...]:
        """``X'LX`` as a weighted sum of squares: the rows' weights, then means and their weights, which may be < 0."""
        graph = self.graph
        e1, e2, e3 = graph.eigenvalues
        q = graph.group_query
        diagonal = graph.weights * e1[graph.row_group]
        if graph.ties == "include":
            return diagonal, (self.group_means, (e3 - e1) * graph.group_weight)
        groups = self.group_means, (e2[q] - e1) * graph.group_weight
        return diagonal, groups, (self.query_means, (e3 - e2) * graph.query_weight)

    def centring_noise(self) -> NDArray[np.float64]:
        graph = self.graph
        if graph.regresses:
            return np.zeros(self.n_features)
        e1, e2, _ = graph.eigenvalues
        largest = np.maximum(e2[graph.layout.codes], e1[graph.row_group])
        offset = np.abs(self.query_means).max(axis=0, initial=0.0)
        noise = 8.0 * float(np.finfo(np.float64).eps) * offset
        return np.asarray(noise**2 * float(graph.weights @ largest))
