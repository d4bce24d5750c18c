"""The second pass: held-out scores of every query under every regularization value, judged where they arise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import LabelledItems, Setting
from rankrls._compiled.near_ties import NEAR
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.equations.graded import resolve_tiny_alphas
from rankrls.equations.holdout import holdout_scores
from rankrls.equations.normal_equations import NormalEquations
from rankrls.equations.spectrum import Spectrum
from rankrls.features.blocks import row_slices
from rankrls.features.rows import row_products
from rankrls.metrics import RankingMeasure
from rankrls.metrics._scorer import predict_by_query, scales_by_query
from rankrls.problems.scorer import Scorer
from rankrls.selection.folds import query_blocks
from rankrls.streaming.cut_queries import densified
from rankrls.streaming.equation_sums import fold_of, fold_rows, query_names
from rankrls.streaming.exact_sums import JudgedSums
from rankrls.streaming.parts import labelled

if TYPE_CHECKING:
    from rankrls.io.datasets import Part

__all__ = ["EvaluateJob", "HeldOut", "HoldoutJob", "Model", "PredictJob", "ScoreJob", "ScoredPieces"]

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """All that a part needs to hold its queries out: the spectrum of all rows, under one setting.

    Attributes
    ----------
    setting : Setting
    spectrum : Spectrum
    directions, right : ndarray
        As for :func:`rankrls.equations.holdout.holdout_scores`.
    alphas, resolution : ndarray of shape (alphas,)
    graded : tuple of NormalEquations and int, or None
        The normal equations of all rows and their size, if features differ much in their spread.
    cut : dict
        Of each query that is cut: weights of the columns without it, (n, alphas), and its mean, (n,).
    """

    setting: Setting
    spectrum: Spectrum
    directions: _Array
    right: _Array
    alphas: _Array
    resolution: _Array
    graded: tuple[NormalEquations, int] | None = None
    cut: dict[int, tuple[_Array, _Array]] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoredPieces:
    """The labels, weights and scores of neighbouring pieces of one query."""

    query: int
    n_pieces: int
    y: tuple[_Array, ...]
    weight: tuple[_Array, ...]
    scores: tuple[tuple[_Array, ...], ...]


@dataclass(frozen=True)
class HeldOut:
    """What the second pass knows of some neighbouring parts.

    Attributes
    ----------
    judged : tuple of JudgedSums
        For each setting.
    pieces : tuple
        Scores of queries of which some pieces are still missing.
    """

    judged: tuple[JudgedSums, ...]
    pieces: tuple[ScoredPieces, ...] = ()


class Judging:
    """What the jobs that judge have in common: queries that are cut are judged when their last piece has come."""

    def merge(self, a: HeldOut, b: HeldOut) -> HeldOut:
        """The sums of two neighbouring nodes."""
        judged = tuple(x + y for x, y in zip(a.judged, b.judged, strict=True))
        pieces, rest = list(a.pieces), list(b.pieces)
        if pieces and rest and pieces[-1].query == rest[0].query:
            last, more = pieces.pop(), rest.pop(0)
            both = ScoredPieces(
                last.query, last.n_pieces, last.y + more.y, last.weight + more.weight, last.scores + more.scores
            )
            if len(both.y) < both.n_pieces:
                rest.insert(0, both)
            else:
                judged = tuple(x + y for x, y in zip(judged, self._judge_pieces(both), strict=True))
        return HeldOut(judged, (*pieces, *rest))

    def judged(self, data: LabelledItems, columns: list[_Array]) -> list[JudgedSums]:
        """Sums of measures of whole queries with some scores, (rows, values) each."""
        raise NotImplementedError

    def piece(self, part: Part, data: LabelledItems, columns: list[_Array]) -> HeldOut:
        """The answer of a piece of a query."""
        piece = part.piece
        assert piece is not None
        scored = ScoredPieces(
            int(piece.query), int(piece.n_pieces), (data.Y[:, 0],), (data.row_weights,), (tuple(columns),)
        )
        if piece.n_pieces == 1:
            return HeldOut(tuple(self._judge_pieces(scored)))
        none = data.take(np.zeros(0, dtype=np.intp), items=False)
        return HeldOut(tuple(self.judged(none, [column[:0] for column in columns])), (scored,))

    def _judge_pieces(self, query: ScoredPieces) -> list[JudgedSums]:
        y, weight = np.concatenate(query.y), np.concatenate(query.weight)
        weights = None if (weight == 1.0).all() else weight
        data = LabelledItems(None, None, True, True, y[:, None], query_layout(None, len(y)), weights)
        return self.judged(data, [np.concatenate(parts) for parts in zip(*query.scores, strict=True)])


def _sums(data: LabelledItems, scores: _Array, measure: RankingMeasure) -> JudgedSums:
    """Sums of a measure of whole queries with scores (rows, values)."""
    if not data.n_rows:
        return JudgedSums.of(np.zeros((0, scores.shape[1])))
    used = data.weights if measure.uses_sample_weight else None
    return JudgedSums.of(measure.judge(data.Y[:, 0], scores, data.layout, used)[0])


def _merged_sums(data: LabelledItems, scores: _Array, measure: RankingMeasure, near: Any) -> JudgedSums:
    """The same for scores that rounding may have made different."""
    if not data.n_rows:
        return _sums(data, scores, measure)
    used = data.weights if measure.uses_sample_weight else None
    return JudgedSums.of(measure.judge_computed(data.Y[:, 0], scores, data.layout, used, near=near)[0])


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

    def leaf(self, part: Part) -> HeldOut:
        """Held-out scores of the part's queries, judged."""
        data = labelled(part)
        if part.piece is not None:
            X = densified(self._features(data.X))
            return self.piece(
                part, data, [_piece_scores(X, *model.cut[int(part.piece.query)]) for model in self.models]
            )
        scores = [np.zeros((0, len(model.alphas))) for model in self.models]
        if data.n_rows:
            scores = [_held_out(data, self._features(data.X), model) for model in self.models]
        return HeldOut(tuple(self.judged(data, scores)))

    def judged(self, data: LabelledItems, columns: list[_Array]) -> list[JudgedSums]:
        return [_merged_sums(data, s, self.measure, m.resolution) for s, m in zip(columns, self.models, strict=True)]

    def _features(self, X: Any) -> Any:
        return X if self.columns is None else self.columns.columns(X)


@dataclass(frozen=True)
class ScoreJob(Judging):
    """Models of several values of a parameter, judged by rows that they have not seen.

    Attributes
    ----------
    measure : RankingMeasure
    scorers : tuple of tuples of Scorer
        One for each setting, with a column for each value: a single one, or one for each fold, whose queries it scores.
        None for a fold that is not judged; the first one is.
    """

    measure: RankingMeasure
    scorers: tuple[tuple[Scorer | None, ...], ...]

    @property
    def names(self) -> bool:
        """Folds are told by the names of queries."""
        return len(self.scorers[0]) > 1

    def leaf(self, part: Part) -> HeldOut:
        """The scores of the part's queries, judged."""
        data, folds = labelled(part), len(self.scorers[0])
        if part.piece is not None:
            fold = fold_of(query_names(part)[0], folds) if folds > 1 else 0
            scorers = [setting[fold] for setting in self.scorers]
            if None in scorers:
                return HeldOut(tuple(self._none()))
            return self.piece(part, data, [scorer(data.X) for scorer in scorers if scorer is not None])
        sums = self._none()
        for k, rows in enumerate(fold_rows(part, data, folds)):
            some = data if rows is None else data.take(rows)
            columns = [scorer(some.X) for setting in self.scorers if (scorer := setting[k]) is not None]
            if columns:
                sums = [a + b for a, b in zip(sums, self.judged(some, columns), strict=True)]
        return HeldOut(tuple(sums))

    def _none(self) -> list[JudgedSums]:
        """Of no query."""
        firsts = [setting[0] for setting in self.scorers if setting[0] is not None]
        return [JudgedSums.of(np.zeros((0, scorer.n_functions))) for scorer in firsts]

    def judged(self, data: LabelledItems, columns: list[_Array]) -> list[JudgedSums]:
        return [_merged_sums(data, scores, self.measure, NEAR) for scores in columns]


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

    def leaf(self, part: Part) -> HeldOut:
        """The measures of the part's queries. Rows of weight zero have a place in the ranking."""
        data = labelled(part, every=True)
        scores = predicted(self.model, part)[:, None]
        if part.piece is not None:
            return self.piece(part, data, [scores])
        return HeldOut(tuple(self.judged(data, [scores])))

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
    (comparison,) = data.graphs(model.setting)
    rows, target = comparison.graph.factor_rows(X), comparison.target
    blocks, s = query_blocks(data.layout), model.spectrum
    given = rows, s, model.directions, model.right, target, blocks, model.alphas
    scores, bounded = holdout_scores(*given, exact=model.graded is not None)
    if model.graded is not None:
        resolve_tiny_alphas(rows, s, model.right, target, bounded, model.alphas, scores, everything=model.graded)
    return scores[:, :, 0]
