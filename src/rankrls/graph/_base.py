"""What every preference graph can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._errors import InputError
from rankrls.features.blocks import Rows, row_slices
from rankrls.features.feature_rows import FeatureRows, feature_rows
from rankrls.features.rows import FactorRows

Matrix = Any  # a numpy array of one or two dimensions, or a scipy sparse array or matrix


@dataclass(frozen=True)
class GraphOperator:
    """A matrix known by its products: ``operator @ V`` and ``operator.T @ V``, V dense or sparse.

    A one-dimensional V gives a one-dimensional product. A sparse V gives a sparse product.
    """

    shape: tuple[int, int]
    _product: Callable[[Matrix], Matrix]
    _transposed_product: Callable[[Matrix], Matrix]

    @property
    def T(self) -> GraphOperator:
        return GraphOperator(self.shape[::-1], self._transposed_product, self._product)

    def __matmul__(self, V: Matrix) -> Matrix:
        if V.shape[0] != self.shape[1]:
            raise InputError(
                "A graph operator of shape {0} cannot be applied to {1} rows; it needs {2}.",
                self.shape,
                V.shape[0],
                self.shape[1],
            )
        return self._product(V)


_FAINT = 1e-3
_PIECE = 64


def faint_rows(energy: NDArray[np.float64]) -> NDArray[np.intp]:
    """Which rows of F are no larger than a thousandth of the largest, by their squares: others lose three digits."""
    return np.flatnonzero(energy <= _FAINT**2 * energy.max(initial=0.0))


class Graph(ABC):
    """A weighted preference graph over ``n_items`` items.

    With scores ``f`` the pairwise loss is ``||F f - target||^2``, where ``F'F = L`` is the graph's Laplacian. ``F`` has
    ``n_rows`` rows: one for each item of a :class:`ScoredGraph`, one for each preference of a :class:`PairGraph`.

    A subclass says what ``F``, ``n_rows``, ``n_blocks`` and ``rows_of`` are, and has ``n_items``: every solver of least
    squares then works on it. The other methods are derived from these; a subclass that knows a faster or more
    exact way, or that judges held-out rows by something else than ``F f``, has its own.
    """

    if TYPE_CHECKING:  # a field of a subclass would take it for its default

        @property
        def n_items(self) -> int:
            """Items that may be compared."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Rows of ``F``."""

    @property
    def L(self) -> GraphOperator:
        """The Laplacian, (n_items, n_items)."""
        F, product = self.F, lambda V: self.F.T @ (self.F @ V)
        return GraphOperator((F.shape[1],) * 2, product, product)

    @property
    @abstractmethod
    def F(self) -> GraphOperator:
        """A factor of the Laplacian, (n_rows, n_items)."""

    @abstractmethod
    def rows_of(self, block: int) -> NDArray[np.intp] | slice:
        """Rows of ``F`` that block number ``block`` owns: a query, or a group of preferences."""

    @property
    @abstractmethod
    def n_blocks(self) -> int:
        """Independent blocks: queries, or groups of preferences."""

    def quadratic(self, V: Matrix) -> NDArray[np.float64] | np.float64:
        """``v' L v`` of each column: the weighted sum of squared differences over the compared pairs. O(items)."""
        FV = self.F @ V
        if sparse.issparse(FV):
            return np.asarray(FV.multiply(FV).sum(axis=0)).ravel()
        return np.einsum("i...,i...->...", FV, FV)

    @property
    def regresses(self) -> bool:
        """Whether L sees a constant, as that of a mixture with regression does."""
        return False

    @property
    def n_observations(self) -> int:
        """Independent observations: the rank of L, or the number of preferences."""
        return self.n_rows

    @cached_property
    def degrees(self) -> NDArray[np.float64]:
        """What each item's square can weigh in ``z'Lz`` at most, up to a small factor, (n_items,)."""
        factor = self.F @ sparse.eye_array(self.n_items, format="csr")
        return np.asarray(factor.multiply(factor).sum(axis=0)).ravel()

    def differences(self, V: NDArray[Any], rows: Rows = slice(None)) -> NDArray[Any]:
        """What held-out rows of F are judged by, of each column of values V of the items."""
        return np.asarray(self.F @ V)[rows]

    def factor_rows(self, X: Any) -> FactorRows:
        """Rows of ``F X``: X dense (float32 or float64), CSR, or :class:`rankrls.features.columns.BasisColumns`."""
        return OperatorRows(X, self)

    def laplacian_product(self, X: Any, rows: NDArray[np.intp] | None = None) -> LaplacianProduct:
        """``X'LX`` over the rows of X, or over some of them.

        Parameters
        ----------
        X : dense (float32 or float64), CSR, or what :func:`rankrls.features.feature_rows.feature_rows` made of one
        rows : ndarray of intp, optional
            Row of X of each of the graph's items; all rows in their order by default.
        """
        source = feature_rows(X, centred=not self.regresses)
        numbers = np.arange(source.n_items, dtype=np.intp) if rows is None else np.asarray(rows, dtype=np.intp)
        return self._product(source, numbers)

    def _product(self, source: FeatureRows, rows: NDArray[np.intp]) -> LaplacianProduct:
        return LaplacianProduct(source, self, rows)

    @property
    def shares(self) -> NDArray[np.float64] | None:
        """Each item's share of the level that the items of its block are compared with; None if there is no level."""
        return None

    @cached_property
    def faint_rows(self) -> NDArray[np.intp]:
        """Rows of F that are zero, or too small beside the largest for scores to be read from them. Ascending."""
        return np.zeros(0, dtype=np.intp)

    def unseen(self, V: Matrix) -> NDArray[np.float64]:
        """What held-out scores are made of beside ``F V``, of each column of values V of the items: (any, columns)."""
        return np.zeros((0, V.shape[1]))

    def unseen_features(self, rows: FactorRows) -> list[NDArray[np.float64]]:
        """:meth:`unseen` of the features that ``rows`` are made of, in pieces."""
        faint = self.faint_rows
        return [rows.differences(faint[piece]) for piece in row_slices(0, len(faint), _PIECE)]

    def blocks_to_hold_out(self) -> tuple[list[NDArray[np.intp]], NDArray[np.float64]]:
        """Rows of F that are held out together, and the slack of each row, (n_rows,).

        The blocks of the graph; of a single block its rows one by one. The slack is 1 unless holding a row out moves
        the level that the others are compared with: it is then 1 less the row's share of that level.
        """
        everything = np.arange(self.n_rows, dtype=np.intp)
        blocks = [everything[self.rows_of(block)] for block in range(self.n_blocks)]
        return blocks if len(blocks) > 1 else list(everything[:, None]), np.ones(self.n_rows)

    def block_scores(
        self,
        block: Rows,
        factored: NDArray[np.float64],
        target: NDArray[np.float64],
        unseen: NDArray[np.float64],
        x: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """What held-out rows are judged by, from ``F_U f_U``; of a graph in general that itself.

        Parameters
        ----------
        block : slice or row numbers
            Whole blocks of the graph, rows in any order.
        factored, target : ndarray of shape (rows of the block, columns)
            ``F_U f_U``, and what its rounding is relative to.
        unseen : ndarray of shape (any, coefficients)
            :meth:`unseen` of the functions that the model's coefficients weigh.
        x : ndarray of shape (coefficients, columns)
            The model's coefficients.
        """
        return factored


class OperatorRows(FactorRows):
    """``F X`` of any graph, held whole: as a sparse matrix if X is one, else dense."""

    def __init__(self, X: Any, graph: Graph) -> None:
        source = feature_rows(X, centred=sparse.issparse(X) and not graph.regresses)
        self.X: Any = source.X if source.held else source.block(slice(0, source.n_items))
        self.graph = graph
        self.n_rows, self.n_features = graph.n_rows, source.n_features
        self._product = graph.F @ (self.X if source.sparse else self.X.astype(np.float64, copy=False))

    def factor(self, rows: Rows) -> NDArray[np.float64]:
        held = self._product[rows]
        return np.asarray(held.toarray() if sparse.issparse(held) else held.copy(), dtype=np.float64)

    differences = factor

    @property
    def _held(self) -> Any:
        return self._product

    def equations(self, target: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        FX = self._product
        if self.is_thin:
            return (FX.T @ FX).toarray(), np.asarray(FX.T @ target)
        return super().equations(target)


class LaplacianProduct:
    """The n x n matrix ``X'LX`` of a graph, known by its products; see :meth:`Graph.laplacian_product`."""

    def __init__(self, source: FeatureRows, graph: Graph, rows: NDArray[np.intp]) -> None:
        self.source, self.graph = source, graph
        self.n_features = source.n_features
        self._item_rows = rows

    def __matmul__(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X'L(Xp)`` for p of shape (n,): two passes over the rows, and one over the graph."""
        return self.source.combine(self._item_rows, self.graph.L @ self.source.dot(self._item_rows, p))

    def right_side(self, target: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X'F't`` for the target t of ``||F f - t||^2``, shape (rows of F,); for ``t = F y`` that is ``X'L y``."""
        return self.source.combine(self._item_rows, np.ascontiguousarray(self.graph.F.T @ target))
