"""The first pass: normal equations of all queries, which add up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from rankrls._comparisons import LabelledItems, Setting
from rankrls.equations.normal_equations import NormalEquations, normal_equations
from rankrls.streaming.cut_queries import CutQuery, Scatter, columns_of, dense_columns, piece_of_query
from rankrls.streaming.parts import counts, fold_of, in_folds, labelled, query_names
from rankrls.streaming.sums import Adding, Counted, CutQueries

if TYPE_CHECKING:
    from rankrls.io.datasets import Part


@dataclass(frozen=True)
class EquationSums(Counted):
    """What the first pass knows of some neighbouring parts.

    Attributes
    ----------
    rows, queries, varied : int
        Rows and queries of positive weight, and queries with two different labels.
    largest : int
        Rows of the largest part.
    paired : tuple of int
        Queries of two rows or more that are in one part each, in each fold.
    whole : tuple of tuples of NormalEquations
        Of the queries that are in one part each: one for each fold, and of that for each setting.
    cut : tuple of CutQueries
        The queries that are cut, a :class:`CutQuery` each: under each setting.
    """

    largest: int
    paired: tuple[int, ...]
    whole: tuple[tuple[NormalEquations, ...], ...]
    cut: tuple[CutQueries, ...]

    def __add__(self, other: EquationSums) -> EquationSums:
        """The sums of these parts and the next ones."""
        return replace(super().__add__(other), largest=max(self.largest, other.largest))

    def total(self, setting: int, *, without: int | None = None, only: int | None = None) -> NormalEquations:
        """All queries under a setting, all but those of one fold, or those of one."""
        kept = [k for k in range(len(self.whole)) if k != without] if only is None else [only]
        parts = [self.whole[k][setting] for k in kept]
        parts += [query.equations() for query in self.cut[setting].known if self._fold(query) in kept]
        return reduce(add, parts, Scatter.none(len(self.whole[0][setting].gram)).equations)

    def with_pairs(self, fold: int) -> int:
        """Queries of two rows or more in one fold."""
        return self.paired[fold] + sum(self._fold(query) == fold and query.rows > 1 for query in self.cut[0].known)

    def _fold(self, query: CutQuery) -> int:
        """The fold of a query that is cut."""
        return fold_of(query.name, len(self.whole)) if len(self.whole) > 1 else 0


@dataclass(frozen=True)
class EquationsJob(Adding):
    """Normal equations under some settings, of all queries or of folds of them.

    Attributes
    ----------
    settings : tuple of Setting
    folds : int
        1 for all queries together.
    columns : Basis, optional
        What makes columns of the features; the features themselves by default.
    """

    settings: tuple[Setting, ...]
    folds: int = 1
    columns: Any = None

    @property
    def names(self) -> bool:
        """Folds are told by the names of queries."""
        return self.folds > 1

    def leaf(self, part: Part) -> EquationSums:
        """What the in-memory fit makes of the part's rows."""
        data, piece = labelled(part), part.piece
        known = *counts(part, data), len(part.y)
        if piece is not None:
            X, name = dense_columns(part.X, self.columns), query_names(part)[0] if self.folds > 1 else ""
            cut = (CutQueries((int(piece.query),), (piece_of_query(part, X, s, name),)) for s in self.settings)
            none = Scatter.none(X.shape[1]).equations
            return EquationSums(*known, (0,) * self.folds, ((none,) * len(self.settings),) * self.folds, tuple(cut))
        parts = in_folds(part, data, self.folds)
        whole = tuple(tuple(self._equations(some, setting) for setting in self.settings) for some in parts)
        paired = tuple(int((some.layout.counts > 1).sum()) for some in parts)
        return EquationSums(*known, paired, whole, (CutQueries(),) * len(self.settings))

    def _equations(self, data: LabelledItems, setting: Setting) -> NormalEquations:
        (comparison,) = data.graphs(setting)
        return normal_equations(comparison.graph.factor_rows(columns_of(data.X, self.columns)), comparison.target)
