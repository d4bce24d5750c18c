"""Items, and what is known of which is better: from labels, or from preferences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._preferences import PreferenceTable
from rankrls._queries import QueryLayout, query_layout
from rankrls._rows import take_items
from rankrls.clicks import Propensities
from rankrls.numerics.graph import LabelledGraph, PreferenceGraph


@dataclass(frozen=True)
class Setting:
    """How labels become a graph.

    Attributes
    ----------
    ties, balance, regression_weight
        As in :class:`rankrls.RankRLS`.
    """

    ties: Any = "include"
    balance: Any = "examples"
    regression_weight: float = 0.0


@dataclass(frozen=True, eq=False)
class _Items:
    """Checked items that are compared with each other.

    Attributes
    ----------
    X : ndarray, csr_array, LinearOperator or list
        Items that count: those of weight zero are gone, but for a LinearOperator, which cannot be cut.
    kept : ndarray of shape (rows given,), bool, or None
        Which of the rows that were given these are, if not all.
    has_qid : bool
        Whether the queries were given.
    one_target : bool
        Whether there is one target that came as a vector.
    """

    X: Any
    kept: NDArray[np.bool_] | None
    has_qid: bool
    one_target: bool

    @property
    def n_rows(self) -> int:
        """Items that count."""
        raise NotImplementedError

    @property
    def n_given(self) -> int:
        """Rows as they were given, those of weight zero too."""
        return self.n_rows if self.kept is None else len(self.kept)

    def given_rows(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Values of the items, in the rows as they were given; NaN for rows of weight zero."""
        if self.kept is None:
            return values
        full = np.full((len(self.kept), *values.shape[1:]), np.nan)
        full[self.kept] = values
        return full

    def given_numbers(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Numbers of items among the rows as they were given."""
        return rows if self.kept is None else np.flatnonzero(self.kept)[rows]


@dataclass(frozen=True, eq=False)
class LabelledItems(_Items):
    """Items with labels, compared inside queries.

    Attributes
    ----------
    Y : ndarray of shape (m, targets)
    layout : QueryLayout
    weights : ndarray of shape (m,) or None
    propensities : Propensities or None
        Of the positions of clicks, of which the labels and weights were made.
    like : array or None
        An array of the library that the results are moved to, if that is not X's.
    """

    Y: NDArray[np.float64]
    layout: QueryLayout
    weights: NDArray[np.float64] | None
    propensities: Propensities | None = None
    like: Any = None

    @property
    def n_queries(self) -> int:
        """Queries among the items."""
        return self.layout.n_queries

    @property
    def n_rows(self) -> int:
        """Items that count."""
        return self.layout.n_rows

    @property
    def n_units(self) -> int:
        """What can be held out: items."""
        return self.layout.n_rows

    def numeric_graphs(self, setting: Setting) -> list[LabelledGraph]:
        """One graph for all targets, or one for each."""
        targets = self.Y.shape[1]
        every = [slice(k, k + 1) for k in range(targets)] if setting.ties == "exclude" else [slice(0, targets)]
        given = {"weights": self.weights, **vars(setting)}
        return [LabelledGraph.build(self.Y[:, part], self.layout.codes, **given) for part in every]

    def take(self, units: NDArray[np.intp], *, items: bool = True, square: bool = False) -> LabelledItems:
        """Some units as comparisons of their own.

        Without ``items`` no features are copied. ``square`` says that X is a kernel matrix, whose columns are items.
        """
        X = take_items(self.X, units) if items else None
        return replace(
            self,
            X=X[:, units] if X is not None and square else X,
            Y=self.Y[units],
            layout=query_layout(self.layout.codes[units], len(units)),
            weights=None if self.weights is None else self.weights[units],
            kept=None,
        )

    def watch(self, units: NDArray[np.intp]) -> tuple[NDArray[np.intp], LabelledItems]:
        """The items of some units, and what is known of these, without features."""
        return units, self.take(units, items=False)

    def of_positive_weight(self, *, square: bool) -> LabelledItems:
        """These without rows of weight zero; ``square`` cuts the columns of a kernel matrix too."""
        if self.weights is None or (self.weights > 0.0).all():
            return self
        kept = self.weights > 0.0
        rows = np.flatnonzero(kept)
        cut = hasattr(self.X, "__getitem__")  # a LinearOperator cannot be cut: its users apply ``kept`` themselves
        left = self.take(rows, items=cut, square=square)
        ids = self.layout.ids[self.layout.codes[rows]]
        return replace(left, X=left.X if cut else self.X, layout=query_layout(ids, len(rows)), kept=kept)


@dataclass(frozen=True, eq=False)
class PreferredItems(_Items):
    """Preferences between items, with the operations of :class:`LabelledItems`; preferences are the units.

    Attributes
    ----------
    graph : PreferenceTable
    identity : ndarray of shape (rows of X,), intp
        The number of the item that each row is: rows of one item have the same.
    new : {"votes", "groups", "components", "items"}
        What is held out: votes between known items, groups of them, connected components of compared items, or items.
    """

    graph: PreferenceTable
    identity: NDArray[np.intp]
    new: str = "votes"

    @property
    def n_queries(self) -> int:
        return 1

    @property
    def n_rows(self) -> int:
        return self.graph.n_items

    @property
    def n_units(self) -> int:
        return self.graph.n_rows

    def numeric_graphs(self, setting: Setting) -> list[PreferenceGraph]:
        g = self.graph
        sides = g.winners, g.losers, g.n_items
        return [PreferenceGraph.build(*sides, strength=g.strength, weights=g.weight, groups=g.groups)]

    def take(self, units: NDArray[np.intp], *, items: bool = True, square: bool = False) -> PreferredItems:
        """Some preferences. The items stay: their numbers are those that predictions are made for."""
        return replace(self, graph=self.graph.take(units))

    def watch(self, units: NDArray[np.intp]) -> tuple[NDArray[np.intp], PreferredItems]:
        """The items of some preferences, ascending, and these preferences between them alone, without features."""
        items, table = self.graph.among_own_items(units)
        return items, replace(self, X=None, graph=table, identity=self.identity[items])


Comparisons = LabelledItems | PreferredItems


@dataclass(frozen=True, eq=False)
class Items:
    """The items of conditional ranking, in the order of the columns of Y.

    It has neither a length nor a shape, so that scikit-learn does not split the items into folds with the rows of X.

    Parameters
    ----------
    features : array-like or sparse matrix of shape (d, p)
        One row per item; with ``item_kernel="precomputed"`` the kernel between these items and the training items.

    Examples
    --------
    >>> from rankrls import Items
    >>> Items([[1.0, 0.0], [0.5, 2.0]])
    Items(2 items with 2 features)
    """

    features: Any

    def __post_init__(self) -> None:
        if not hasattr(self.features, "shape"):
            object.__setattr__(self, "features", np.asarray(self.features, dtype=np.float64))

    @property
    def n_items(self) -> int:
        """How many there are."""
        return int(self.features.shape[0])

    def __repr__(self) -> str:
        return f"Items({self.n_items} items with {self.features.shape[-1]} features)"
