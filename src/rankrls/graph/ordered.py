r"""The ordered pairs of labelled items inside queries: what losses of ordered pairs are summed over.

Item i is to come before item j where both are of one query and ``y_i > y_j``; the pair weighs ``rho_q w_i w_j``. For
squared errors these pairs are the graph :class:`~rankrls.graph.ScoredGraph` with ties excluded and need no order; a
hinge does. Pairs are never listed: :mod:`rankrls.hinge.ordered_loss` sums over them in label order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._checks import check_word
from rankrls._queries import QueryLayout, query_layout
from rankrls.graph.scored import Balance, ScoredGraph, balance_factors, group_sums, label_classes


@dataclass(frozen=True, eq=False)
class OrderedPairs:
    """Items in queries, ordered by label.

    Attributes
    ----------
    layout : QueryLayout
        The rows of each query.
    weights : ndarray of shape (m,)
        Row weights, positive.
    order : ndarray of shape (m,), intp
        Rows by query, then by label from the lowest up.
    class_starts : ndarray of shape (c + 1,), intp
        ``order[class_starts[k]:class_starts[k + 1]]`` are the rows of label class ``k``: one query, one label.
    class_query : ndarray of shape (c,), intp
        Query of each class, ascending.
    rho : ndarray of shape (q,)
        Factor of each query's pairs; see :meth:`build`.
    balance : str
        What ``rho`` was made by.
    """

    layout: QueryLayout
    weights: NDArray[np.float64]
    order: NDArray[np.intp]
    class_starts: NDArray[np.intp]
    class_query: NDArray[np.intp]
    rho: NDArray[np.float64]
    balance: Balance

    @classmethod
    def build(
        cls,
        y: NDArray[np.float64],
        layout: QueryLayout,
        *,
        weights: NDArray[np.float64] | None = None,
        balance: Balance = "pairs",
    ) -> OrderedPairs:
        """The ordered pairs of labels ``y``.

        Parameters
        ----------
        y : ndarray of shape (m,)
            Labels. Equality is ``==`` in float64; equal labels are no pair.
        layout : QueryLayout
        weights : ndarray of shape (m,), optional
            Positive row weights; 1 by default.
        balance : {"pairs", "examples", "queries"}
            What counts the same: every pair (``rho = 1``), every example (``1 / S_q``, the query's weight), or every
            query (1 / the weight of its ordered pairs; 0 where it has none).

        Notes
        -----
        O(m log m).
        """
        check_word("balance", balance, get_args(Balance))
        w = np.ones(layout.n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
        order, class_starts, class_query = label_classes(y, layout)
        class_weight = group_sums(w[order], class_starts)
        query_starts = np.searchsorted(class_query, np.arange(layout.n_queries + 1)).astype(np.intp)
        query_weight = group_sums(class_weight, query_starts)
        rho = balance_factors(balance, query_weight, group_sums(class_weight**2, query_starts))
        return cls(layout, w, order, class_starts, class_query, rho, balance)

    @property
    def n_items(self) -> int:
        return self.layout.n_rows

    @property
    def n_units(self) -> int:
        """What can be held out: items."""
        return self.n_items

    def items_of_part(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Which items :meth:`part` is over."""
        return rows

    def leads(self, X: Any, rows: NDArray[np.intp], W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores ``X W`` of some items."""
        return np.asarray(X[rows] @ W)

    @property
    def query_classes(self) -> NDArray[np.intp]:
        """Boundaries of each query's classes, shape (q + 1,)."""
        return np.searchsorted(self.class_query, np.arange(self.layout.n_queries + 1)).astype(np.intp)

    @property
    def total_weight(self) -> float:
        """Sum over the pairs of what they weigh."""
        class_weight = group_sums(self.weights[self.order], self.class_starts)
        below = np.cumsum(class_weight) - class_weight
        first = below[self.query_classes[:-1]]
        return float(self.rho[self.class_query] @ (class_weight * (below - first[self.class_query])))

    @cached_property
    def row_class(self) -> NDArray[np.intp]:
        """Class of each row, shape (m,): inside a query, higher where the label is higher."""
        out = np.empty(self.n_items, dtype=np.intp)
        out[self.order] = np.repeat(np.arange(len(self.class_query), dtype=np.intp), np.diff(self.class_starts))
        return out

    @cached_property
    def row_factor(self) -> NDArray[np.float64]:
        """``rho_q w_i`` of each row."""
        return self.rho[self.layout.codes] * self.weights

    def graph(self) -> ScoredGraph:
        """The same pairs with the same weights as a graph, whose Laplacian is that of all of them."""
        labels = self.row_class.astype(np.float64)
        return ScoredGraph.build(labels, self.layout, weights=self.weights, ties="exclude", balance=self.balance)

    def part(self, rows: NDArray[np.intp]) -> OrderedPairs:
        """The pairs among some rows, renumbered; whole queries keep their pairs' weights."""
        labels = self.row_class[rows].astype(np.float64)
        layout = query_layout(self.layout.codes[rows], len(rows))
        return OrderedPairs.build(labels, layout, weights=self.weights[rows], balance=self.balance)
