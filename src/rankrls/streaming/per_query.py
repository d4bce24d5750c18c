"""What several fitted models are worth on each query of a data set."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import LabelledItems
from rankrls.metrics import RankingMeasure
from rankrls.streaming.holdout_sums import HeldOut, Judging, predicted
from rankrls.streaming.parts import labelled, query_names
from rankrls.streaming.sums import Answer

if TYPE_CHECKING:
    from rankrls.io.datasets import Part

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class QueryValues(Answer):
    """Values of the queries of some parts, in any order.

    Attributes
    ----------
    numbers : ndarray of int64, shape (q,)
        The queries' running numbers.
    items : ndarray of int64, shape (q,)
        How many rows each has.
    values : ndarray of shape (q, models, measures)
        NaN is a query that the measure does not judge.
    named : ndarray of int64
        The queries whose names are known here: a query that is longer than a part has its name in its first piece.
    names : ndarray of str
    """

    numbers: NDArray[np.int64]
    items: NDArray[np.int64]
    values: _Array
    named: NDArray[np.int64]
    names: NDArray[Any]

    def __add__(self, other: QueryValues) -> QueryValues:
        return QueryValues(*(np.concatenate((getattr(self, f.name), getattr(other, f.name))) for f in fields(self)))

    def in_order(self) -> QueryValues:
        """The same in the order of the data."""
        order, places = np.argsort(self.numbers), np.argsort(self.named)
        own = self.numbers[order], self.items[order], self.values[order]
        return QueryValues(*own, self.named[places], self.names[places])


@dataclass(frozen=True)
class CompareJob(Judging):
    """Each query's value of each measure under each model.

    Attributes
    ----------
    measures : tuple of RankingMeasure
    models : tuple of estimators
    """

    measures: tuple[RankingMeasure, ...]
    models: tuple[Any, ...]

    names = True

    def leaf(self, part: Part) -> HeldOut:
        """The values of the part's queries, with their names where they begin."""
        held, piece = super().leaf(part), part.piece
        if piece is not None and piece.index:
            return held
        numbers, (found,) = np.unique(np.asarray(part.query, dtype=np.int64)), held.judged
        if piece is None:
            found = replace(found, numbers=numbers)
        return replace(held, judged=(replace(found, named=numbers, names=np.array(query_names(part), dtype=object)),))

    def rows(self, part: Part) -> LabelledItems:
        """All of them: those of weight zero have a place in the ranking."""
        return labelled(part, every=True)

    def scores(self, part: Part, data: LabelledItems) -> list[_Array]:
        return [predicted(model, part)[:, None] for model in self.models]

    def judged(self, data: LabelledItems, columns: list[_Array]) -> list[QueryValues]:
        none, scores = np.zeros(0, dtype=np.int64), np.hstack(columns)
        shape = (data.layout.n_queries, len(self.models), len(self.measures))
        values = np.full(shape, np.nan)
        for k, measure in enumerate(self.measures if data.n_rows else ()):
            used = data.weights if measure.uses_sample_weight else None
            values[:, :, k] = measure.judge(data.Y[:, 0], scores, data.layout, used)[0]
        items = np.asarray(data.layout.counts, dtype=np.int64)
        return [QueryValues(np.arange(shape[0], dtype=np.int64), items, values, none, none.astype(object))]

    def judged_alone(self, number: int, data: LabelledItems, columns: list[_Array]) -> list[QueryValues]:
        return [replace(found, numbers=np.array([number])) for found in self.judged(data, columns)]
