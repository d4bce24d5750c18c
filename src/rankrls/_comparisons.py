"""Items, and the known comparisons between them, from labels or from preferences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from rankrls._arrays import to_device_of
from rankrls._cached import cached_property
from rankrls._curves import (
    AnyEvaluator,
    Curve,
    PreferenceEvaluator,
    QueryEvaluator,
    curve_of_preferences,
    curve_of_queries,
    logistic_slope,
)
from rankrls._errors import InputError
from rankrls._preferences import PreferenceTable
from rankrls._queries import QueryLayout, query_layout
from rankrls._rows import take_items
from rankrls._typing import Array, Index, Mask, Values
from rankrls.clicks import Propensities
from rankrls.metrics import Measure
from rankrls.numerics.graph import Graph, LabelledGraph, PreferenceGraph
from rankrls.numerics.holdout import hold_out_chunks
from rankrls.numerics.scorer import Basis
from rankrls.numerics.smoother import Equations, Smoother, normal_equations

R = TypeVar("R")
PerChunk: TypeAlias = Callable[[Graph, Array], R]
"""Function that is called with each part of a graph and its held-out scores, (targets, alphas, rows)."""
K = TypeVar("K", bound="Data")


@dataclass(frozen=True)
class GraphSetting:
    """Settings by which labels become a graph.

    Attributes
    ----------
    ties, balance, regression_weight
        Parameters of :class:`rankrls.RankRLS`.
    """

    ties: str = "include"
    balance: str = "examples"
    regression_weight: float = 0.0


GraphSettings: TypeAlias = Sequence[tuple[GraphSetting, Values]]
"""Graphs to try, each with the parameters that it chooses."""


class ComparedItems(ABC):
    """Items with one graph, in memory or read in parts of whole queries.

    Attributes
    ----------
    evaluation : type
        Evaluator of held-out scores of these items.
    """

    evaluation: type[AnyEvaluator] = QueryEvaluator

    @property
    def in_memory(self) -> ComparedInMemory | None:
        """All items with their graph; None if they are not in memory."""
        return None

    @property
    def primal(self) -> bool:
        """Whether a linear function needs fewer weights of features than coefficients of items."""
        return True

    @abstractmethod
    def equations(self, basis: Basis | None) -> Equations:
        """Normal equations of all parts, for the features or for those of a basis."""

    def hold_out(
        self,
        smoother: Smoother,
        basis: Basis | None,
        alphas: Array,
        per_chunk: PerChunk[R],
        folds: Sequence[Index] | None,
    ) -> list[R]:
        """Results of ``per_chunk`` for held-out scores, in order; see :func:`rankrls.numerics.holdout.hold_out_chunks`.

        ``folds`` are numbers of the queries (groups of preferences) that are held out together; None holds out each
        alone.
        """
        return self.whole().hold_out(smoother, basis, alphas, per_chunk, folds)

    def whole(self) -> ComparedInMemory:
        """All items with their graph.

        Raises
        ------
        InputError
            If they are not in memory.
        """
        if self.in_memory is None:
            raise InputError("This needs all rows in memory.", parameter="data")
        return self.in_memory


@dataclass(frozen=True, eq=False)
class ComparedInMemory(ComparedItems):
    """Items in memory with their graph."""

    X: Any
    graph: Graph
    evaluation: type[AnyEvaluator] = QueryEvaluator

    @property
    def in_memory(self) -> ComparedInMemory:
        return self

    @property
    def primal(self) -> bool:
        return bool(self.X.shape[1] <= min(self.graph.n_rows, self.X.shape[0]))

    def equations(self, basis: Basis | None) -> Equations:
        return normal_equations(self.graph, self.features(basis))

    def features(self, basis: Basis | None) -> Any:
        """Features of X or of a basis; those of a basis are evaluated when their rows are needed."""
        return self.X if basis is None else basis.features(self.X)

    def hold_out(
        self,
        smoother: Smoother,
        basis: Basis | None,
        alphas: Array,
        per_chunk: PerChunk[R],
        folds: Sequence[Index] | None,
    ) -> list[R]:
        graph, bounds = self.in_order(folds)
        return list(hold_out_chunks(smoother, graph, self.features(basis), alphas, per_chunk, units=bounds))

    def in_order(self, folds: Sequence[Index] | None) -> tuple[Graph, Index | None]:
        """Graph with the queries (groups) of each fold together, and the starts of folds; None without folds."""
        if folds is None:
            return self.graph, None
        bounds = np.concatenate(([0], np.cumsum([len(fold) for fold in folds]))).astype(np.intp)
        return self.graph.take(np.concatenate(folds)), bounds


@dataclass(frozen=True, eq=False)
class Features:
    """Features that a model was fitted to.

    Attributes
    ----------
    count : int or None
        Number of features; None for objects of a callable kernel.
    names : ndarray of str, or None
        Column names, if X has any.
    """

    count: int | None = None
    names: NDArray[np.object_] | None = None

    def called(self, number: int) -> str:
        """Description of a feature."""
        return f"{number}" if self.names is None else f"{number} ({self.names[number]!r})"


@dataclass(frozen=True, eq=False)
class Data(ABC):
    """Checked items, and the known comparisons between them.

    Attributes
    ----------
    X : ndarray, csr_array, LinearOperator or list
        Items of positive weight; a LinearOperator contains all items, since it cannot be cut.
    kept : ndarray of shape (rows given,), bool, or None
        Mask of these rows among those given, if not all.
    has_qid : bool
        Whether query ids were given.
    one_target : bool
        Whether the only target was given as a vector.
    features : Features
    propensities : Propensities or None
        Propensities used to convert clicks to labels and weights.
    like : array or None
        Array of the library that results are moved to, if that is not X's.
    """

    X: Any
    kept: Mask | None
    has_qid: bool
    one_target: bool
    features: Features = field(default=Features(), kw_only=True)
    propensities: Propensities | None = field(default=None, kw_only=True)
    like: Any = field(default=None, kw_only=True)

    def of_kind(self, kind: type[K]) -> K:
        """These data, for computations that need one kind of data."""
        assert isinstance(self, kind)
        return self

    def whole(self) -> DataInMemory:
        """These data, for computations that need all rows in memory.

        Raises
        ------
        InputError
            If they are not in memory.
        """
        raise InputError("This needs all rows in memory.", parameter="data")

    @property
    @abstractmethod
    def n_queries(self) -> int:
        """Number of queries."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of items with positive weight."""

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return 1

    def settings(self, given: GraphSettings) -> GraphSettings:
        """Graphs to try, among those that an estimator asks for."""
        return given

    def numeric_graphs(self, setting: GraphSetting) -> Sequence[Graph]:
        """One graph for all targets, or one per target."""
        return self.whole().numeric_graphs(setting)

    @abstractmethod
    def compared(self, setting: GraphSetting, together: Sequence[GraphSetting] = ()) -> Sequence[ComparedItems]:
        """Items with each graph; ``together`` are all settings that are tried with the same features."""

    def items(self, numbers: Index) -> Any:
        """A subset of the items."""
        return take_items(self.X, numbers)

    @property
    def n_given(self) -> int:
        """Number of given rows, including those of weight zero."""
        return self.n_rows if self.kept is None else len(self.kept)

    @property
    def size(self) -> tuple[int, int]:
        """Number of rows and columns of X; for objects, both are the number of objects."""
        return (len(self.X), len(self.X)) if isinstance(self.X, list) else self.X.shape

    def held_out_attributes(self, scores: Any) -> Values:
        """Attributes of an estimator that are computed from held-out scores (observations, targets)."""
        return {}

    def given_rows(self, values: Array) -> Array:
        """Values of the items in the given rows; NaN for rows of weight zero."""
        if self.kept is None:
            return values
        full = np.full((len(self.kept), *values.shape[1:]), np.nan)
        full[self.kept] = values
        return full

    def given_numbers(self, rows: Index) -> Index:
        """Numbers of items among the given rows."""
        return rows if self.kept is None else np.flatnonzero(self.kept)[rows]


class DataInMemory(Data):
    """Data in memory, of which subsets of observations can be taken: rows of Y, or preferences."""

    evaluation: ClassVar[type[AnyEvaluator]] = QueryEvaluator

    @property
    def item_weights(self) -> Array | None:
        """Weights of the items, if they have any."""
        return None

    @property
    def query_sizes(self) -> Index:
        """Number of items of each query; without queries, that of all items."""
        return np.array([self.n_rows])

    def whole(self) -> Self:
        return self

    @property
    def n_observations(self) -> int:
        """Number of rows of Y, or of preferences."""
        return self.n_rows

    @abstractmethod
    def numeric_graphs(self, setting: GraphSetting) -> Sequence[Graph]: ...

    def compared(self, setting: GraphSetting, together: Sequence[GraphSetting] = ()) -> Sequence[ComparedItems]:
        return [ComparedInMemory(self.X, graph, self.evaluation) for graph in self.numeric_graphs(setting)]

    @abstractmethod
    def take(self, observations: Index, *, items: bool = True, square: bool = False) -> Self:
        """A subset of the observations as data.

        Without ``items``, features are not copied. With ``square``, X is a kernel matrix, whose columns are items.
        """

    @abstractmethod
    def watch(self, observations: Index) -> tuple[Index, Self]:
        """Items of some observations, and these observations without features."""

    @abstractmethod
    def items_of(self, observations: Index) -> Index | slice:
        """Items over which a model of some observations expands."""

    @abstractmethod
    def blocks(self, folds: Sequence[Index] | None) -> Sequence[Index]:
        """Observations that are held out together: of some queries (groups) each, or of every one for None."""

    @abstractmethod
    def evaluate(self, measure: Measure, scores: Array) -> Curve:
        """Curve of scores (items, values, targets). Scores that differ only by rounding are made equal in place."""


@dataclass(frozen=True, eq=False)
class LabelledItems(DataInMemory):
    """Items with labels, compared inside queries.

    Attributes
    ----------
    Y : ndarray of shape (m, targets)
    layout : QueryLayout
    weights : ndarray of shape (m,) or None
    """

    Y: Array
    layout: QueryLayout
    weights: Array | None

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.layout.n_queries

    @property
    def n_rows(self) -> int:
        """Number of items with positive weight."""
        return self.layout.n_rows

    @property
    def n_targets(self) -> int:
        return int(self.Y.shape[1])

    @property
    def item_weights(self) -> Array | None:
        return self.weights

    @property
    def query_sizes(self) -> Index:
        return self.layout.counts

    def numeric_graphs(self, setting: GraphSetting) -> list[LabelledGraph]:
        """One graph for all targets, or one per target."""
        targets = self.Y.shape[1]
        every = [slice(k, k + 1) for k in range(targets)] if setting.ties == "exclude" else [slice(0, targets)]
        given = {"weights": self.weights, **vars(setting)}
        return [LabelledGraph.build(self.Y[:, part], self.layout.codes, **given) for part in every]

    def take(self, observations: Index, *, items: bool = True, square: bool = False) -> Self:
        X = take_items(self.X, observations) if items else None
        return replace(
            self,
            X=X[:, observations] if X is not None and square else X,
            Y=self.Y[observations],
            layout=query_layout(self.layout.codes[observations], len(observations)),
            weights=None if self.weights is None else self.weights[observations],
            kept=None,
        )

    def watch(self, observations: Index) -> tuple[Index, Self]:
        return observations, self.take(observations, items=False)

    def items_of(self, observations: Index) -> Index | slice:
        return observations

    def blocks(self, folds: Sequence[Index] | None) -> Sequence[Index]:
        if folds is None:
            return self.layout.blocks
        return [np.flatnonzero(np.isin(self.layout.codes, queries)) for queries in folds]

    def evaluate(self, measure: Measure, scores: Array) -> Curve:
        return curve_of_queries(measure, self.Y, self.layout, self.weights, scores)

    def held_out_attributes(self, scores: Any) -> Values:
        here = to_device_of(self.given_rows(scores), self.X if self.like is None else self.like)
        return {"held_out_scores_": here[:, 0] if self.one_target else here}

    def of_positive_weight(self, *, square: bool) -> LabelledItems:
        """These data without rows of weight zero; with ``square``, columns of a kernel matrix are cut too."""
        if self.weights is None or (self.weights > 0.0).all():
            return self
        kept = self.weights > 0.0
        rows = np.flatnonzero(kept)
        cut = not isinstance(self.X, LinearOperator)  # which its users cut themselves, by ``kept``
        left = self.take(rows, items=cut, square=square)
        ids = self.layout.ids[self.layout.codes[rows]]
        return replace(left, X=left.X if cut else self.X, layout=query_layout(ids, len(rows)), kept=kept)


@dataclass(frozen=True, eq=False)
class KnownItems(LabelledItems):
    """Labelled rows of partly labelled data; their items are row numbers among all, as a matrix with one column.

    Attributes
    ----------
    all_items : LabelledItems
        All rows; rows without labels have labels of 0.
    labelled : ndarray of bool
        Mask of the rows with labels.
    """

    all_items: LabelledItems
    labelled: Mask

    @property
    def numbers(self) -> Index:
        """Numbers of these rows among all."""
        return np.asarray(self.X)[:, 0].astype(np.intp)


@dataclass(frozen=True, eq=False)
class PreferredItems(DataInMemory):
    """Preferences between items, with the same operations as :class:`LabelledItems`.

    Attributes
    ----------
    preferences : PreferenceTable
    identity : ndarray of shape (rows of X,), intp
        Number of the item of each row; rows of the same item have the same number.
    new : {"votes", "groups", "components", "items"}
        Held-out units: votes between known items, groups of them, connected components of compared items, or items.
    """

    preferences: PreferenceTable
    identity: Index
    new: str = "votes"

    evaluation: ClassVar[type[AnyEvaluator]] = PreferenceEvaluator

    @property
    def n_queries(self) -> int:
        return 1

    @property
    def n_rows(self) -> int:
        return self.preferences.n_items

    @property
    def n_observations(self) -> int:
        """Number of preferences."""
        return self.preferences.n_rows

    def settings(self, given: GraphSettings) -> GraphSettings:
        """A single graph: preferences have no ties or balance to choose."""
        return ((GraphSetting(), {}),)

    @cached_property
    def graph(self) -> PreferenceGraph:
        """The graph of the preferences."""
        g = self.preferences
        sides = g.winners, g.losers, g.n_items
        return PreferenceGraph.build(*sides, strength=g.strength, weights=g.weight, groups=g.groups)

    def numeric_graphs(self, setting: GraphSetting) -> list[PreferenceGraph]:
        return [self.graph]

    def take(self, observations: Index, *, items: bool = True, square: bool = False) -> Self:
        """A subset of the preferences. All items stay: their numbers are those that predictions are made for."""
        return replace(self, preferences=self.preferences.take(observations))

    def items_of(self, observations: Index) -> Index | slice:
        """All items: their numbers are those that predictions are made for."""
        return slice(None)

    def blocks(self, folds: Sequence[Index] | None) -> Sequence[Index]:
        groups = self.preferences.blocks()
        return groups if folds is None else [np.concatenate([groups[g] for g in fold]) for fold in folds]

    def evaluate(self, measure: Measure, scores: Array) -> Curve:
        of_one_target = np.ascontiguousarray(scores[:, :, 0])
        return curve_of_preferences(measure, self.preferences, of_one_target, by_item=self.new == "items")

    def held_out_attributes(self, scores: Any) -> Values:
        """Slope of win probabilities, from held-out margins."""
        margins = scores[:, 0]
        held = np.isfinite(margins)
        table = self.preferences
        return {"win_slope_": logistic_slope(margins[held], table.strength[held], table.weight[held])}

    def watch(self, observations: Index) -> tuple[Index, Self]:
        """Items of some preferences, ascending, and these preferences between only them, without features."""
        items, table = self.preferences.among_own_items(observations)
        return items, replace(self, X=None, preferences=table, identity=self.identity[items])


@dataclass(frozen=True, eq=False)
class Items:
    """Items of conditional ranking, in the order of the columns of Y.

    It has neither a length nor a shape, so that scikit-learn does not split the items into folds with the rows of X.

    Parameters
    ----------
    features : array-like or sparse matrix of shape (d, p)
        One row per item; with ``item_kernel="precomputed"``, the kernel between these items and the training items.

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
        """Number of items."""
        return int(self.features.shape[0])

    def __repr__(self) -> str:
        return f"Items({self.n_items} items with {self.features.shape[-1]} features)"
