r"""The graph of plain preferences: item i was preferred to item j.

With M the oriented incidence matrix, ``F = diag(sqrt(c)) M'`` and the target is ``t = sqrt(c) s``, so that the loss is

.. math::

    || F f - t ||^2 = \sum_e c_e ( s_e - (f_{i_e} - f_{j_e}) )^2 .

Any weighted graph W of Pahikkala et al. (2007) is such a list of edges, with weights ``W_ij`` and strengths
``y_i - y_j``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls.features.blocks import Rows, row_numbers
from rankrls.features.feature_rows import FeatureRows
from rankrls.graph._base import Graph, GraphOperator, Matrix, faint_rows
from rankrls.graph.pair_rows import PairProduct, PairRows


@dataclass(frozen=True, eq=False)
class PairGraph(Graph):
    """Preferences between items, one row of ``F`` each.

    Attributes
    ----------
    winners, losers : ndarray of shape (p,), intp
        Item numbers; ``winners[e]`` was preferred to ``losers[e]``.
    n_items : int
        Items in all, those in no preference included.
    strength : ndarray of shape (p,)
        By how much; the target difference of scores.
    weight : ndarray of shape (p,)
        Non-negative weight of each preference.
    groups : ndarray of shape (p,), intp, optional
        Number of each preference's group, for hold-out; each preference is its own group by default.
    """

    winners: NDArray[np.intp]
    losers: NDArray[np.intp]
    n_items: int
    strength: NDArray[np.float64]
    weight: NDArray[np.float64]
    groups: NDArray[np.intp] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.winners)

    @property
    def n_blocks(self) -> int:
        return self.n_rows if self.groups is None else int(self.groups.max(initial=-1)) + 1

    def rows_of(self, block: int) -> NDArray[np.intp] | slice:
        if self.groups is None:
            return slice(block, block + 1)
        lo, hi = self._group_order[1][block : block + 2]
        return self._group_order[0][lo:hi]

    @cached_property
    def _group_order(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        assert self.groups is not None
        order = np.argsort(self.groups, kind="stable").astype(np.intp)
        starts = np.searchsorted(self.groups[order], np.arange(self.n_blocks + 1)).astype(np.intp)
        return order, starts

    @property
    def target(self) -> NDArray[np.float64]:
        """``sqrt(c) s``: what ``F f`` is fitted to."""
        return np.sqrt(self.weight) * self.strength

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """``F`` as a sparse matrix with two entries a row."""
        p = self.n_rows
        root = np.sqrt(self.weight)
        return sparse.csr_array(
            (
                np.column_stack((root, -root)).ravel(),
                np.column_stack((self.winners, self.losers)).ravel(),
                2 * np.arange(p + 1),
            ),
            shape=(p, self.n_items),
        )

    @property
    def F(self) -> GraphOperator:
        return GraphOperator((self.n_rows, self.n_items), self._factor, self._factor_transposed)

    @property
    def n_units(self) -> int:
        """What can be held out: preferences."""
        return self.n_rows

    @property
    def total_weight(self) -> float:
        """Sum over the preferences of what they weigh."""
        return float(self.weight.sum())

    def graph(self) -> PairGraph:
        """The graph of these preferences: itself."""
        return self

    def items_of_part(self, rows: NDArray[np.intp]) -> slice:
        """Which items :meth:`part` is over: all of them."""
        return slice(None)

    def leads(self, X: Any, rows: NDArray[np.intp], W: NDArray[np.float64]) -> NDArray[np.float64]:
        """Score of the winner minus that of the loser under ``X W``, for some preferences."""
        items, part = self.among_own_items(rows)
        return part.differences(X[items] @ W)

    def among_own_items(self, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], PairGraph]:
        """The items of some preferences, ascending, and the graph of these preferences over those items alone."""
        items, number = np.unique([self.winners[rows], self.losers[rows]], return_inverse=True)
        winners, losers = number.reshape(2, -1)
        return items, PairGraph(winners, losers, len(items), self.strength[rows], self.weight[rows])

    def differences(self, V: NDArray[Any], rows: Rows = slice(None)) -> NDArray[Any]:
        """Winner minus loser of some preferences, unweighted. Exact where an offset is common to both."""
        return np.asarray(V[self.winners[rows]] - V[self.losers[rows]])

    def scattered(self, on_winners: NDArray[np.float64], on_losers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum for each item of values of the preferences that it won and of those that it lost."""
        won = np.bincount(self.winners, on_winners, self.n_items)
        return np.asarray(won + np.bincount(self.losers, on_losers, self.n_items), dtype=np.float64)

    @cached_property
    def degrees(self) -> NDArray[np.float64]:
        return self.scattered(self.weight, self.weight)

    def factor_rows(self, X: Any) -> PairRows:
        return PairRows(X, self)

    def _product(self, source: FeatureRows, rows: NDArray[np.intp]) -> PairProduct:
        return PairProduct(source, self, rows)

    @cached_property
    def faint_rows(self) -> NDArray[np.intp]:
        """Preferences of next to no weight."""
        return faint_rows(self.weight)

    def unseen(self, V: Matrix) -> NDArray[np.float64]:
        """The leads of :attr:`faint_rows`."""
        return self.differences(V, self.faint_rows)

    def block_scores(
        self,
        block: Rows,
        factored: NDArray[np.float64],
        target: NDArray[np.float64],
        unseen: NDArray[np.float64],
        x: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Leads: the rows of F without their weights."""
        rows = row_numbers(block)
        out = np.asarray(factored / np.sqrt(self.weight[rows])[:, None])
        faint = np.flatnonzero(np.isin(rows, self.faint_rows))
        if len(faint):
            out[faint] = unseen[np.searchsorted(self.faint_rows, rows[faint])] @ x
        return out

    def block(self, group: int) -> PairGraph:
        """The graph of one group's preferences alone, over the same items."""
        return self.part(self.rows_of(group))

    def part(self, rows: slice | NDArray[np.intp]) -> PairGraph:
        """The graph of some preferences, over the same items, as one group."""
        return PairGraph(
            self.winners[rows],
            self.losers[rows],
            self.n_items,
            self.strength[rows],
            self.weight[rows],
            None if self.groups is None else np.zeros(len(self.winners[rows]), dtype=np.intp),
        )

    def _factor(self, V: Matrix) -> Matrix:
        if sparse.issparse(V):
            return self.matrix @ sparse.csr_array(V)
        root = np.sqrt(self.weight)
        return self.differences(V) * (root if V.ndim == 1 else root[:, None])

    def _factor_transposed(self, U: Matrix) -> Matrix:
        return self.matrix.T @ (sparse.csr_array(U) if sparse.issparse(U) else U)
