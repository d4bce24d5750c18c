"""What several fitted models are worth on each query of a data set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import LabelledItems
from rankrls.metrics import RankingMeasure
from rankrls.streaming.equation_sums import query_names
from rankrls.streaming.holdout_sums import HeldOut, Judging, ScoredPieces, predicted
from rankrls.streaming.parts import labelled

if TYPE_CHECKING:
    from rankrls.io.datasets import Part

__all__ = ["CompareJob", "QueryValues"]

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class QueryValues:
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
    names : tuple of str
    """

    numbers: NDArray[np.int64]
    items: NDArray[np.int64]
    values: _Array
    named: NDArray[np.int64]
    names: tuple[str, ...]

    def __add__(self, other: QueryValues) -> QueryValues:
        return QueryValues(
            np.concatenate((self.numbers, other.numbers)),
            np.concatenate((self.items, other.items)),
            np.concatenate((self.values, other.values)),
            np.concatenate((self.named, other.named)),
            (*self.names, *other.names),
        )

    def in_order(self) -> QueryValues:
        """The same in the order of the data."""
        order, places = np.argsort(self.numbers), np.argsort(self.named).tolist()
        names = tuple(self.names[k] for k in places)
        return QueryValues(self.numbers[order], self.items[order], self.values[order], self.named[places], names)


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
        """The values of the part's queries. Rows of weight zero have a place in the ranking."""
        data = labelled(part, every=True)
        scores = [predicted(model, part)[:, None] for model in self.models]
        if part.piece is None:
            (found,) = self.judged(data, scores)
            queries = np.unique(np.asarray(part.query, dtype=np.int64))
            return HeldOut((replace(found, numbers=queries, named=queries, names=tuple(query_names(part))),))
        held = self.piece(part, data, scores)
        if part.piece.index:
            return held
        known: Any = held.judged[0]
        number = np.array([part.piece.query], dtype=np.int64)
        return replace(held, judged=(replace(known, named=number, names=tuple(query_names(part))),))

    def judged(self, data: LabelledItems, columns: list[_Array]) -> list[Any]:
        none, scores = np.zeros(0, dtype=np.int64), np.hstack(columns)
        shape = (data.layout.n_queries, len(self.models), len(self.measures))
        values = np.full(shape, np.nan)
        for k, measure in enumerate(self.measures if data.n_rows else ()):
            used = data.weights if measure.uses_sample_weight else None
            values[:, :, k] = measure.judge(data.Y[:, 0], scores, data.layout, used)[0]
        items = np.asarray(data.layout.counts, dtype=np.int64)
        return [QueryValues(np.arange(shape[0], dtype=np.int64), items, values, none, ())]

    def _judge_pieces(self, query: ScoredPieces) -> list[Any]:
        found: Any = super()._judge_pieces(query)[0]
        return [replace(found, numbers=np.array([query.query], dtype=np.int64))]
