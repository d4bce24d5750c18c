"""The first pass: normal equations of all queries, which add up."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import LabelledItems, Setting
from rankrls.equations.normal_equations import NormalEquations, normal_equations
from rankrls.graph.scored import label_varies
from rankrls.streaming.cut_queries import CutQuery, densified, piece_of_query
from rankrls.streaming.parts import labelled

if TYPE_CHECKING:
    from rankrls.io.datasets import Part

__all__ = ["EquationSums", "EquationsJob", "fold_of", "none_of"]


def none_of(n: int) -> NormalEquations:
    """The normal equations of no query."""
    return NormalEquations(np.zeros((n, n)), np.zeros((n, 1)), np.zeros(1))


def fold_of(name: Any, folds: int, seed: int = 0) -> int:
    """The fold of a query, by a hash of its name: the same whatever the files, the parts and their order."""
    digest = blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % folds


@dataclass(frozen=True)
class EquationSums:
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
    cut : tuple of tuples of CutQuery
        The queries that are cut, in their order: under each setting.
    """

    rows: int
    queries: int
    varied: int
    largest: int
    paired: tuple[int, ...]
    whole: tuple[tuple[NormalEquations, ...], ...]
    cut: tuple[tuple[CutQuery, ...], ...] = ()

    def __add__(self, other: EquationSums) -> EquationSums:
        """The sums of these parts and the next ones."""
        cut, rest = list(self.cut), list(other.cut)
        if cut and rest and cut[-1][0].query == rest[0][0].query:
            cut[-1] = tuple(a + b for a, b in zip(cut[-1], rest.pop(0), strict=True))
        return EquationSums(
            self.rows + other.rows,
            self.queries + other.queries,
            self.varied + other.varied,
            max(self.largest, other.largest),
            tuple(a + b for a, b in zip(self.paired, other.paired, strict=True)),
            tuple(
                tuple(a + b for a, b in zip(mine, theirs, strict=True))
                for mine, theirs in zip(self.whole, other.whole, strict=True)
            ),
            (*cut, *rest),
        )

    def total(self, setting: int, *, without: int | None = None, only: int | None = None) -> NormalEquations:
        """All queries under a setting, all but those of one fold, or those of one."""
        kept = [k for k in range(len(self.whole)) if k != without] if only is None else [only]
        parts = [self.whole[k][setting] for k in kept]
        parts += [query[setting].equations() for query in self.cut if self.fold(query) in kept]
        total = none_of(len(self.whole[0][setting].gram))
        for part in parts:
            total = total + part
        return total

    def with_pairs(self, fold: int) -> int:
        """Queries of two rows or more in one fold."""
        return self.paired[fold] + sum(self.fold(query) == fold and query[0].rows > 1 for query in self.cut)

    def fold(self, query: tuple[CutQuery, ...]) -> int:
        """The fold of a query that is cut."""
        return fold_of(query[0].name, len(self.whole)) if len(self.whole) > 1 else 0


@dataclass(frozen=True)
class EquationsJob:
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
        data = labelled(part)
        n = int(part.X.shape[1]) if self.columns is None else int(self.columns.columns(part.X[:0]).shape[1])
        none, alone = tuple(none_of(n) for _ in self.settings), (0,) * self.folds
        if part.piece is not None:
            X, name = densified(self._features(part.X)), query_names(part)[0] if self.folds > 1 else ""
            cut = tuple(piece_of_query(part, X, setting, name) for setting in self.settings)
            first = part.piece.index == 0
            known = int(first and np.asarray(part.piece.weights).any()), int(first and cut[0].varies)
            return EquationSums(data.n_rows, *known, len(part.y), alone, (none,) * self.folds, (cut,))
        if not data.n_rows:
            return EquationSums(0, 0, 0, len(part.y), alone, (none,) * self.folds)
        varied = int(label_varies(data.Y, data.layout).sum())
        whole, paired = [], []
        for rows in fold_rows(part, data, self.folds):
            some = data if rows is None else data.take(rows)
            whole.append(tuple(self._equations(some, setting) for setting in self.settings) if some.n_rows else none)
            paired.append(int((some.layout.counts > 1).sum()) if some.n_rows else 0)
        return EquationSums(data.n_rows, data.n_queries, varied, len(part.y), tuple(paired), tuple(whole))

    def merge(self, a: EquationSums, b: EquationSums) -> EquationSums:
        """The sums of two neighbouring nodes of the tree."""
        return a + b

    def _features(self, X: Any) -> Any:
        return X if self.columns is None else self.columns.columns(X)

    def _equations(self, data: LabelledItems, setting: Setting) -> NormalEquations:
        (comparison,) = data.graphs(setting)
        return normal_equations(comparison.graph.factor_rows(self._features(data.X)), comparison.target)


def query_names(part: Part) -> list[str]:
    """The names of a part's queries, in their order."""
    return [str(name) for name in part.query_names or ()]


def fold_rows(part: Part, data: LabelledItems, folds: int) -> list[NDArray[np.intp] | None]:
    """The rows of a part's whole queries in each fold, among those of positive weight; None for all of them."""
    if folds == 1:
        return [None]
    if not data.n_rows:
        return [np.zeros(0, dtype=np.intp)] * folds
    numbers = np.array([fold_of(name, folds) for name in query_names(part)])
    _, place = np.unique(np.asarray(part.query), return_inverse=True)
    rows = numbers[place]
    if data.kept is not None:
        rows = rows[data.kept]
    return [np.flatnonzero(rows == k) for k in range(folds)]
