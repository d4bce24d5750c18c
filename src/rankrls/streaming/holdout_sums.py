"""The second pass: held-out scores of every query under every regularization value, judged where they arise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import LabelledItems, Setting
from rankrls._compiled.near_ties import NEAR
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.features.blocks import row_slices
from rankrls.features.rows import row_products
from rankrls.metrics import RankingMeasure
from rankrls.metrics._scorer import predict_by_query, scales_by_query
from rankrls.problems.primal import EquationsProblem
from rankrls.problems.scorer import Scorer
from rankrls.selection.folds import query_blocks
from rankrls.streaming.cut_queries import columns_of, dense_columns
from rankrls.streaming.exact_sums import JudgedSums
from rankrls.streaming.parts import in_folds, labelled, row_folds
from rankrls.streaming.sums import Answer, CutQueries, added

if TYPE_CHECKING:
    from rankrls.io.datasets import Part

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """All that a part needs to hold its queries out.

    Attributes
    ----------
    setting : Setting
    problem : EquationsProblem
        Of all rows.
    alphas : ndarray of shape (alphas,)
    cut : dict
        Of each query that is cut: weights of the columns without it, (n, alphas), and its mean, (n,).
    """

    setting: Setting
    problem: EquationsProblem
    alphas: _Array
    cut: dict[int, tuple[_Array, _Array]]


@dataclass(frozen=True)
class ScoredPieces(Answer):
    """Neighbouring pieces of a query of so many: the labels, weights and scores of each."""

    n_pieces: int
    pieces: tuple[tuple[_Array, ...], ...]

    def __add__(self, other: ScoredPieces) -> ScoredPieces:
        return replace(self, pieces=self.pieces + other.pieces)


@dataclass(frozen=True)
class HeldOut(Answer):
    """What the second pass knows of some neighbouring parts.

    Attributes
    ----------
    judged : tuple of JudgedSums
        For each setting.
    pieces : CutQueries
        Scores of queries of which some pieces are still missing.
    """

    judged: tuple[Any, ...]
    pieces: CutQueries = field(default_factory=CutQueries)


class Judging(ABC):
    """What the jobs that judge have in common: queries that are cut are judged when their last piece has come."""

    def leaf(self, part: Part) -> HeldOut:
        """The scores of the part's queries, judged."""
        data, piece = self.rows(part), part.piece
        columns = self.scores(part, data)
        if piece is None:
            return HeldOut(tuple(self.judged(data, columns)))
        none = data.take(np.zeros(0, dtype=np.intp), items=False)
        scored = ScoredPieces(int(piece.n_pieces), ((data.Y[:, 0], data.row_weights, *columns),))
        nothing = tuple(self.judged(none, [column[:0] for column in columns]))
        return self._complete(HeldOut(nothing, CutQueries((int(piece.query),), (scored,))))

    def merge(self, a: HeldOut, b: HeldOut) -> HeldOut:
        """The sums of two neighbouring nodes."""
        return self._complete(a + b)

    def rows(self, part: Part) -> LabelledItems:
        """The rows that are judged."""
        return labelled(part)

    @abstractmethod
    def scores(self, part: Part, data: LabelledItems) -> list[_Array]:
        """Scores of these rows, (rows, values) for each setting."""

    @abstractmethod
    def judged(self, data: LabelledItems, columns: list[_Array]) -> list[Any]:
        """Sums of measures of whole queries with some scores, (rows, values) each."""

    def judged_alone(self, number: int, data: LabelledItems, columns: list[_Array]) -> list[Any]:
        """The same of a query that was cut."""
        return self.judged(data, columns)

    def _complete(self, held: HeldOut) -> HeldOut:
        """With the queries judged of which no piece is missing."""
        judged, left = held.judged, CutQueries()
        for number, query in held.pieces:
            if len(query.pieces) < query.n_pieces:
                left += CutQueries((number,), (query,))
                continue
            y, weight, *columns = (np.concatenate(parts) for parts in zip(*query.pieces, strict=True))
            weights = None if (weight == 1.0).all() else weight
            data = LabelledItems(None, None, True, True, y[:, None], query_layout(None, len(y)), weights)
            judged = added(judged, tuple(self.judged_alone(number, data, columns)))
        return HeldOut(judged, left)


def _sums(data: LabelledItems, scores: _Array, measure: RankingMeasure, near: Any = None) -> JudgedSums:
    """Sums of a measure of whole queries with scores (rows, values), of which ``near`` ones count as equal."""
    used = data.weights if measure.uses_sample_weight else None
    given = data.Y[:, 0], scores, data.layout, used
    return JudgedSums.of((measure.judge(*given) if near is None else measure.judge_computed(*given, near=near))[0])


@dataclass(frozen=True)
class HoldoutJob(Judging):
    """Exact leave-query-out of every regularization value.

    Attributes
    ----------
    measure : RankingMeasure
    models : tuple of Model
        One for each setting.
    columns : Basis, optional
    """

    measure: RankingMeasure
    models: tuple[Model, ...]
    columns: Any = None

    def scores(self, part: Part, data: LabelledItems) -> list[_Array]:
        if part.piece is not None:
            X = dense_columns(data.X, self.columns)
            return [_piece_scores(X, *model.cut[int(part.piece.query)]) for model in self.models]
        return [_held_out(data, columns_of(data.X, self.columns), model) for model in self.models]

    def judged(self, data: LabelledItems, columns: list[_Array]) -> list[JudgedSums]:
        resolutions = [model.problem.resolution(model.alphas) for model in self.models]
        return [_sums(data, s, self.measure, near) for s, near in zip(columns, resolutions, strict=True)]


@dataclass(frozen=True)
class ScoreJob(Judging):
    """Models of several values of a parameter, judged by rows that they have not seen.

    Attributes
    ----------
    measure : RankingMeasure
    scorers : tuple of tuples of Scorer
        For each setting one with a column for each value; or one for each fold, whose queries it scores.
    folds : int
        A single scorer judges the queries of the first of so many folds, told by their names.
    """

    measure: RankingMeasure
    scorers: tuple[tuple[Scorer, ...], ...]
    folds: int = 1

    @property
    def names(self) -> bool:
        """Folds are told by the names of queries."""
        return self.folds > 1

    def rows(self, part: Part) -> LabelledItems:
        data = labelled(part)
        if len(self.scorers[0]) == self.folds:
            return data
        return in_folds(part, data, self.folds)[0]

    def scores(self, part: Part, data: LabelledItems) -> list[_Array]:
        if len(self.scorers[0]) == 1:
            return [scorer(data.X) for (scorer,) in self.scorers]
        out = [np.empty((data.n_rows, scorers[0].n_functions)) for scorers in self.scorers]
        folds = row_folds(part, data, self.folds)
        for k in range(self.folds):
            rows = np.flatnonzero(folds == k)
            for column, scorers in zip(out, self.scorers, strict=True):
                column[rows] = scorers[k](data.X[rows])
        return out

    def judged(self, data: LabelledItems, columns: list[_Array]) -> list[JudgedSums]:
        return [_sums(data, scores, self.measure, NEAR) for scores in columns]


@dataclass(frozen=True)
class EvaluateJob(Judging):
    """What a fitted model is worth by several measures.

    Attributes
    ----------
    measures : tuple of RankingMeasure
    model : estimator
    """

    measures: tuple[RankingMeasure, ...]
    model: Any

    def rows(self, part: Part) -> LabelledItems:
        """All of them: those of weight zero have a place in the ranking."""
        return labelled(part, every=True)

    def scores(self, part: Part, data: LabelledItems) -> list[_Array]:
        return [predicted(self.model, part)[:, None]]

    def judged(self, data: LabelledItems, columns: list[_Array]) -> list[JudgedSums]:
        return [_sums(data, columns[0], measure) for measure in self.measures]


@dataclass(frozen=True)
class PredictJob:
    """Scores of a fitted model.

    Attributes
    ----------
    model : estimator
    """

    model: Any

    def leaf(self, part: Part) -> _Array:
        """The scores of the part's rows."""
        return predicted(self.model, part)


def predicted(model: Any, part: Part) -> _Array:
    """Scores of a part's rows, (rows,).

    Raises
    ------
    InputError
        For a piece of a query, if a step of the model looks at whole queries, and for a model of several targets.
    """
    piece = part.piece
    if piece is not None and piece.n_pieces > 1 and scales_by_query(model):
        raise InputError(
            "Query {0} is longer than a part, and this model scales features inside whole queries.",
            piece.query,
            remedy="Open the data set with more rows a part.",
            parameter="data",
        )
    if not len(part.y):
        return np.zeros(0)
    scores = np.asarray(predict_by_query(model, part.X, part.query), dtype=np.float64)
    if scores.ndim != 1:
        raise InputError("A model of several targets ranks each of them: give one of one target.", parameter="model")
    return scores


def _piece_scores(X: Any, W: _Array, centre: _Array) -> _Array:
    """Scores of some rows of a query with a mean that they may share as an offset."""
    if sparse.issparse(X):
        return np.asarray(X @ W)
    out = np.empty((len(X), W.shape[1]))
    for rows in row_slices(0, len(X)):
        out[rows] = row_products(X[rows].astype(np.float64) - centre, W)
    return out + centre @ W


def _held_out(data: LabelledItems, X: Any, model: Model) -> _Array:
    if not data.n_rows:
        return np.zeros((0, len(model.alphas)))
    (comparison,) = data.graphs(model.setting)
    given = comparison.graph.factor_rows(X), comparison.target, query_blocks(data.layout), model.alphas
    return model.problem.held_out(*given)[:, :, 0]
