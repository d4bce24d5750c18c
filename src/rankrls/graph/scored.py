r"""The graph of items with labels inside queries: three nested means.

With row weights ``w``, let ``S_q`` be the weight of a query, ``S_c`` the weight of the items of the query that share
a label (a *class*), and ``zq``, ``zc`` the weighted means of ``z`` over them. Then

.. math::

    (Lz)_i = w_i [ e_1 (z_i - z_c) + e_2 (z_c - z_q) + e_3 z_q ] ,
    \qquad
    (Fz)_i = \sqrt{w_i} [ \sqrt{e_1} (z_i - z_c) + \sqrt{e_2} (z_c - z_q) + \sqrt{e_3} z_q ]

with the levels' eigenvalues

.. math::

    e_1 = \beta + (1 - \beta) \rho_q a_c , \quad e_2 = \beta + (1 - \beta) \rho_q S_q , \quad e_3 = \beta ,

where ``a_c = S_q - S_c`` if tied pairs are excluded and ``S_q`` if they are included. ``F'F = L`` because, in the
coordinates ``sqrt(w) z``, the three parts are orthogonal projections.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._checks import check_word
from rankrls._compiled.group_pass import level_rows, weighted_sums
from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls.features.blocks import Rows, row_numbers
from rankrls.features.columns import BasisColumns
from rankrls.features.feature_rows import FeatureRows
from rankrls.features.rows import FactorRows
from rankrls.graph._base import Graph, GraphOperator, Matrix, faint_rows
from rankrls.graph.block_scores import query_scores
from rankrls.graph.labels import (
    Balance,
    Ties,
    balance_factors,
    group_sums,
    label_classes,
)
from rankrls.graph.scored_columns import ColumnRows
from rankrls.graph.scored_product import ScoredProduct
from rankrls.graph.scored_rows import ScoredRows

Levels = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class ScoredGraph(Graph):
    """Pairwise comparisons of labelled items inside their queries.

    Built by :meth:`from_labels` or :meth:`build`. Groups are the label classes inside queries where tied pairs are
    excluded, and the queries themselves where they are included.

    Attributes
    ----------
    layout : QueryLayout
        The rows of each query.
    weights : ndarray of shape (m,)
        Row weights, positive.
    order : ndarray of shape (m,), intp
        Permutation that brings the rows of each group together, the groups of each query together.
    group_starts : ndarray of shape (g + 1,), intp
        ``order[group_starts[k]:group_starts[k + 1]]`` are the rows of group ``k``.
    group_query : ndarray of shape (g,), intp
        Query of each group, ascending.
    group_weight, query_weight : ndarray
        ``S_c`` and ``S_q``.
    eigenvalues : tuple of ndarray
        ``e_1`` of each group, ``e_2`` and ``e_3`` of each query.
    """

    layout: QueryLayout
    weights: NDArray[np.float64]
    ties: Ties
    order: NDArray[np.intp]
    group_starts: NDArray[np.intp]
    group_query: NDArray[np.intp]
    group_weight: NDArray[np.float64]
    query_weight: NDArray[np.float64]
    eigenvalues: Levels

    @classmethod
    def build(
        cls,
        y: NDArray[np.float64],
        layout: QueryLayout,
        *,
        weights: NDArray[np.float64] | None = None,
        ties: Ties = "include",
        balance: Balance = "examples",
        regression_weight: float = 0.0,
    ) -> ScoredGraph:
        """Build the graph of labels ``y``.

        Parameters
        ----------
        y : ndarray of shape (m,) or (m, targets)
            Labels. Equality is ``==`` in float64. Several targets share a graph only where it does not look at the
            labels, that is with ``ties="include"``.
        layout : QueryLayout
            The rows of each query.
        weights : ndarray of shape (m,), optional
            Positive row weights; a pair weighs ``w_i w_j``. 1 by default.
        ties : {"include", "exclude"}
            Whether pairs of items with equal labels are compared.
        balance : {"pairs", "examples", "queries"}
            What counts the same: every pair (``rho = 1``), every example (``1 / S_q``), or every query
            (1 / the weight of its compared pairs).
        regression_weight : float in [0, 1]
            ``beta``: 0 ranks, 1 regresses.

        Notes
        -----
        A query of one item, or with excluded ties of one label, compares nothing and contributes nothing.
        O(m) with tied pairs included and contiguous queries, O(m log m) otherwise.
        """
        check_word("ties", ties, get_args(Ties))
        check_word("balance", balance, get_args(Balance))
        m = layout.n_rows
        unit = weights is None
        w = np.ones(m) if weights is None else np.asarray(weights, dtype=np.float64)
        queries = np.arange(layout.n_queries, dtype=np.intp)
        if ties == "exclude":
            if y.ndim > 1 and y.shape[1] > 1:
                raise InputError(
                    "With ties excluded each target has a graph of its own.",
                    parameter="y",
                    remedy="Build one graph for each target.",
                )
            order, group_starts, group_query = label_classes(y.reshape(m), layout)
            if len(group_query) == m:
                ties = "include"  # no two labels of a query are tied: the same graph, and no class level to carry
        if ties == "include":
            order, group_starts, group_query = layout.order, layout.starts, queries
        sorted_w = w if unit else w[order]
        group_weight = group_sums(sorted_w, group_starts)
        query_starts = np.searchsorted(group_query, np.arange(layout.n_queries + 1)).astype(np.intp)
        query_weight = group_sums(group_weight, query_starts)
        compared = query_weight[group_query] - group_weight if ties == "exclude" else query_weight
        alone, ends = (group_weight, query_starts) if ties == "exclude" else (sorted_w, layout.starts)
        rho = balance_factors(balance, query_weight, group_sums(alone**2, ends) if balance == "queries" else alone)
        beta = float(regression_weight)
        e1 = beta + (1.0 - beta) * rho[group_query] * compared
        e2 = beta + (1.0 - beta) * rho * query_weight
        e3 = np.full(layout.n_queries, beta)
        return cls(layout, w, ties, order, group_starts, group_query, group_weight, query_weight, (e1, e2, e3))

    @staticmethod
    def of(graph: Graph) -> ScoredGraph:
        """The graph itself, for a method that needs the queries and labels of one.

        Raises
        ------
        InputError
            If it is a graph of another kind.
        """
        if not isinstance(graph, ScoredGraph):
            raise InputError("This needs labelled items; preferences between items have no labels.")
        return graph

    @classmethod
    def from_labels(
        cls,
        y: Any,
        qid: Any = None,
        *,
        weights: Any = None,
        ties: Ties = "include",
        balance: Balance = "examples",
        regression_weight: float = 0.0,
    ) -> ScoredGraph:
        """The graph of labels as a user has them; see :meth:`build`.

        Parameters
        ----------
        y : array-like of shape (m,) or (m, targets)
        qid : array-like of shape (m,), optional
            One query id per row. None is one query of all rows.
        weights : array-like of shape (m,), optional
        ties, balance, regression_weight : as for :meth:`build`

        Raises
        ------
        ValueError
            For labels that are not finite, weights that are not positive, and lengths that differ.

        Examples
        --------
        >>> import numpy as np
        >>> from rankrls.graph import ScoredGraph
        >>> graph = ScoredGraph.from_labels([2, 1, 1], balance="pairs", ties="exclude")
        >>> graph.L @ np.eye(3)
        array([[ 2., -1., -1.],
               [-1.,  1.,  0.],
               [-1.,  0.,  1.]])
        """
        labels = np.asarray(y, dtype=np.float64)
        if labels.ndim not in (1, 2) or not np.isfinite(labels).all():
            raise InputError("{y} must hold finite labels, of shape (m,) or (m, targets).", parameter="y")
        w = None if weights is None else np.asarray(weights, dtype=np.float64)
        if w is not None and (w.shape != labels.shape[:1] or not (np.isfinite(w) & (w > 0.0)).all()):
            raise InputError("{weights} must be positive, one for each label.", parameter="weights")
        given: Any = {"ties": ties, "balance": balance, "regression_weight": regression_weight}
        return cls.build(labels, query_layout(qid, len(labels)), weights=w, **given)

    @property
    def n_items(self) -> int:
        return self.layout.n_rows

    @property
    def n_rows(self) -> int:
        return self.layout.n_rows

    @property
    def n_blocks(self) -> int:
        return self.layout.n_queries

    @property
    def shares(self) -> NDArray[np.float64]:
        return np.asarray(self.weights / self.query_weight[self.layout.codes])

    def rows_of(self, block: int) -> NDArray[np.intp] | slice:
        return self.layout.rows(block)

    @property
    def L(self) -> GraphOperator:
        return GraphOperator((self.n_items, self.n_items), self._laplacian, self._laplacian)

    @property
    def F(self) -> GraphOperator:
        return GraphOperator((self.n_items, self.n_items), self._factor, self._factor_transposed)

    def block(self, query: int) -> ScoredGraph:
        """The graph of one query alone, over its rows in row order."""
        return self.select(np.array([query], dtype=np.intp))

    def select(self, queries: NDArray[np.intp]) -> ScoredGraph:
        """The graph of some queries, over their rows in row order: the same weights and eigenvalues, fewer rows."""
        keep_query = np.zeros(self.layout.n_queries, dtype=bool)
        keep_query[queries] = True
        rows = np.flatnonzero(keep_query[self.layout.codes])
        new_query = np.cumsum(keep_query) - 1
        keep_group = keep_query[self.group_query]
        new_row = np.full(self.n_items, -1, dtype=np.intp)
        new_row[rows] = np.arange(len(rows))
        order = new_row[self.order[np.repeat(keep_group, np.diff(self.group_starts))]]
        starts = np.concatenate(([0], np.cumsum(np.diff(self.group_starts)[keep_group]))).astype(np.intp)
        counts = self.layout.counts[keep_query]
        layout = QueryLayout(
            self.layout.ids[keep_query],
            new_query[self.layout.codes[rows]].astype(np.intp),
            np.concatenate(([0], np.cumsum(counts))).astype(np.intp),
            self.layout.contiguous,
        )
        e1, e2, e3 = self.eigenvalues
        return replace(
            self,
            layout=layout,
            weights=self.weights[rows],
            order=order,
            group_starts=starts,
            group_query=new_query[self.group_query[keep_group]].astype(np.intp),
            group_weight=self.group_weight[keep_group],
            query_weight=self.query_weight[keep_query],
            eigenvalues=(e1[keep_group], e2[keep_query], e3[keep_query]),
        )

    @cached_property
    def query_groups(self) -> NDArray[np.intp]:
        """Boundaries of each query's groups, shape (q + 1,)."""
        return np.searchsorted(self.group_query, np.arange(self.n_blocks + 1)).astype(np.intp)

    @cached_property
    def row_group(self) -> NDArray[np.intp]:
        """Group of each row, shape (m,)."""
        groups = np.repeat(np.arange(len(self.group_query), dtype=np.intp), np.diff(self.group_starts))
        out = np.empty_like(groups)
        out[self.order] = groups
        return out

    @cached_property
    def averaging(self) -> sparse.csr_array:
        """Sparse (g, m) matrix whose product with z is the group means."""
        values = self.weights[self.order] / np.repeat(self.group_weight, np.diff(self.group_starts))
        return sparse.csr_array((values, self.order, self.group_starts), shape=(len(self.group_query), self.n_items))

    def group_means(self, V: Matrix, *, threads: int = 1) -> NDArray[np.float64]:
        """Weighted mean of each group, (g, ...), of values V of the items: a vector, or a matrix, dense or sparse."""
        if sparse.issparse(V):
            return np.asarray((self.averaging @ V).toarray())
        columns = V if V.ndim == 2 else V[:, None]
        sums = weighted_sums(columns, self.order, self.group_starts, self.weights, threads=threads)
        return np.asarray((sums / self.group_weight[:, None]).reshape((len(sums), *V.shape[1:])))

    def query_means(self, group_means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weighted mean of each query, from the means of its groups, (q, ...)."""
        if self.ties == "include":
            return group_means
        weight = self.group_weight.reshape((-1, *[1] * (group_means.ndim - 1)))
        total = self.query_weight.reshape((-1, *[1] * (group_means.ndim - 1)))
        return np.asarray(group_sums(weight * group_means, self.query_groups) / total)

    def rest(
        self, levels: Levels, query: NDArray[np.intp], means: NDArray[np.float64], over: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """``k2 (zc - zq) + k3 zq`` of some groups, given their queries, their means and those of their queries."""
        rest = levels[2][query, None] * over
        if self.ties == "exclude":
            rest += levels[1][query, None] * (means - over)
        return rest

    @property
    def regresses(self) -> bool:
        return bool(self.eigenvalues[2].any())

    @property
    def n_observations(self) -> int:
        e1, e2, e3 = self.eigenvalues
        inside = np.diff(self.group_starts) - 1
        between = np.diff(self.query_groups) - 1
        return int(inside[e1 > 0.0].sum() + between[e2 > 0.0].sum() + np.count_nonzero(e3 > 0.0))

    @cached_property
    def degrees(self) -> NDArray[np.float64]:
        e1, e2, e3 = self.eigenvalues
        return np.asarray(self.weights * np.maximum(e1[self.row_group], np.maximum(e2, e3)[self.layout.codes]))

    @cached_property
    def faint_rows(self) -> NDArray[np.intp]:
        """Items that this graph never compares, and items of next to no weight."""
        return faint_rows(self.weights * self.eigenvalues[0][self.row_group])

    def differences(self, V: NDArray[Any], rows: Rows = slice(None)) -> NDArray[Any]:
        """The values of some items: held-out rows are judged by their scores."""
        return np.asarray(V[rows])

    def factor_rows(self, X: Any) -> ColumnRows | ScoredRows:
        return ColumnRows(X, self) if isinstance(X, BasisColumns) else ScoredRows(X, self)

    def _product(self, source: FeatureRows, rows: NDArray[np.intp]) -> ScoredProduct:
        return ScoredProduct(source, self, rows)

    def unseen(self, V: Matrix) -> NDArray[np.float64]:
        """The mean of each query, then the deviation from it of each item of :attr:`faint_rows`."""
        means = self.query_means(self.group_means(V))
        faint = V[self.faint_rows]
        faint = faint.toarray() if sparse.issparse(faint) else faint
        return np.vstack((means, faint - means[self.layout.codes[self.faint_rows]]))

    def unseen_features(self, rows: FactorRows) -> list[NDArray[np.float64]]:
        return [rows.centres, *super().unseen_features(rows)]

    def blocks_to_hold_out(self) -> tuple[list[NDArray[np.intp]], NDArray[np.float64]]:
        """Queries; of one ranking its items, whose mean moves with each of them."""
        blocks, slack = super().blocks_to_hold_out()
        if self.n_blocks > 1:
            return blocks, slack
        if self.regresses or self.ties == "exclude":
            problem = "Items of one ranking are held out only if every pair of them is compared."
            remedy = "Give {qid}, or {ties='include'} and {regression_weight=0}."
            wrong = "ties" if self.ties == "exclude" else "regression_weight"
            raise InputError(problem, remedy=remedy, parameter=wrong)
        return blocks, slack - self.weights / self.query_weight[0]

    def block_scores(self, block: Rows, *values: NDArray[np.float64]) -> NDArray[np.float64]:
        return query_scores(self, row_numbers(block), *values)

    def _laplacian(self, V: Matrix) -> Matrix:
        return self.apply_levels(V, self.eigenvalues, self.weights)

    def _factor(self, V: Matrix) -> Matrix:
        return self.apply_levels(V, self.roots, np.sqrt(self.weights))

    def _factor_transposed(self, U: Matrix) -> Matrix:
        # F = T W^(1/2) with T symmetric, so F'u = W^(1/2) T u = w * levels(u / sqrt(w)).
        return self.apply_levels(_scale_rows(U, 1.0 / np.sqrt(self.weights)), self.roots, self.weights)

    @cached_property
    def roots(self) -> Levels:
        """``sqrt(e)`` of each level."""
        e1, e2, e3 = (np.sqrt(e) for e in self.eigenvalues)
        return e1, e2, e3

    def apply_levels(self, V: Matrix, levels: Levels, scale: NDArray[np.float64]) -> Matrix:
        """``scale_i [ k1 (z_i - zc) + k2 (zc - zq) + k3 zq ]`` for every column z of V."""
        if sparse.issparse(V):
            return self._apply_sparse(V, levels, scale)
        Z = np.ascontiguousarray(V if V.ndim == 2 else V[:, None], dtype=np.float64)
        means = self.group_means(Z)
        query = self.group_query
        rest = self.rest(levels, query, means, self.query_means(means)[query])
        out = np.empty_like(Z)
        level_rows(Z, np.arange(len(Z), dtype=np.intp), self.row_group, levels[0], scale, means, rest, out)
        return out.reshape(V.shape)

    def _apply_sparse(self, V: Any, levels: Levels, scale: NDArray[np.float64]) -> sparse.csr_array:
        Z = sparse.csr_array(V)
        k1, k2, k3 = levels
        means = self.averaging @ Z
        q = self.group_query
        share = sparse.csr_array(
            (self.group_weight / self.query_weight[q], (q, np.arange(len(q)))), shape=(self.n_blocks, len(q))
        )
        over = (share @ means)[q]
        rest = _scale_rows(means, k2[q] - k1) + _scale_rows(over, (k3 - k2)[q])
        out = _scale_rows(Z, k1[self.row_group]) + sparse.csr_array(rest)[self.row_group]
        return sparse.csr_array(_scale_rows(out, scale))


def _scale_rows(V: Matrix, scale: NDArray[np.float64]) -> Matrix:
    if sparse.issparse(V):
        return sparse.csr_array(sparse.diags_array(scale) @ V)
    return V * (scale if V.ndim == 1 else scale[:, None])
