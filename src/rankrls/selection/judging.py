"""What held-out scores are worth: a measure of every value of a parameter, with its standard error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import map_threads
from rankrls._preferences import PreferenceTable
from rankrls._queries import QueryLayout, query_layout
from rankrls._rows import row_slices
from rankrls.metrics import RankingMeasure
from rankrls.metrics._averages import mean_and_error, mean_of_judged, ratio
from rankrls.metrics._preferences import right_order
from rankrls.selection.choice import scale_of

_PAIR_ROWS = 4096


@dataclass(frozen=True)
class Curve:
    """A measure of every value of a parameter.

    Attributes
    ----------
    mean, error : ndarray of shape (values,)
        The measure, and its standard error over the judged blocks; of one ranking over its items for a measure of
        pairs, else NaN.
    values : ndarray of shape (blocks, values), optional
        The measure of each query or block.
    scores : ndarray of shape (items, values, targets), optional
        Held-out scores.
    interval : tuple of two ndarrays of shape (values,), optional
        The ends of a confidence interval of the measure.
    scale : ndarray of shape (values,), optional
        The mean absolute value of what was averaged, where ``values`` are not kept.
    """

    mean: NDArray[np.float64]
    error: NDArray[np.float64]
    values: NDArray[np.float64] | None = None
    scores: NDArray[np.float64] | None = None
    interval: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    scale: NDArray[np.float64] | None = None

    @property
    def size(self) -> NDArray[np.float64]:
        """Mean absolute value of what was averaged, 1 for shares of pairs: rounding is relative to it."""
        if self.scale is not None:
            return self.scale
        return np.ones(len(self.mean)) if self.values is None else scale_of(self.values)

    @staticmethod
    def joined(curves: Sequence[Curve]) -> Curve:
        """One curve of the values of several, of the same blocks."""
        first = curves[0]

        def join(name: str) -> Any:
            parts = [getattr(curve, name) for curve in curves]
            return None if parts[0] is None else np.concatenate(parts, axis=min(parts[0].ndim - 1, 1))

        ends = None
        if first.interval is not None:
            pairs = [curve.interval for curve in curves if curve.interval is not None]
            ends = np.concatenate([low for low, _ in pairs]), np.concatenate([high for _, high in pairs])
        return Curve(join("mean"), join("error"), join("values"), join("scores"), ends, join("scale"))


@dataclass(frozen=True, eq=False)
class LabelJudge:
    """Labelled items, by a measure of rankings. Several targets are averaged query by query."""

    measure: RankingMeasure
    Y: NDArray[np.float64]
    layout: QueryLayout
    weights: NDArray[np.float64] | None = None

    @property
    def greater_is_better(self) -> bool:
        return self.measure.greater_is_better

    def curve(self, scores: NDArray[np.float64], *, error: bool = True) -> Curve:
        """Judge scores (rows, values, targets). Those of a query that differ by rounding only are ties."""
        used = self.weights if self.measure.uses_sample_weight else None
        columns = [(self.Y[:, t], scores[:, :, t]) for t in range(self.Y.shape[1])]
        judged = [self.measure.judge(y, given, self.layout, used, rounded=True) for y, given in columns]
        values, mean = judged[0]
        if len(judged) > 1:
            values, mean = (mean_of_targets(part) for part in zip(*judged, strict=True))
        if self.layout.n_queries > 1:
            return Curve(mean, mean_and_error(values)[1], values, scores if error else None)
        if not error:
            return Curve(mean, np.full(len(mean), np.nan), values)
        errors = [self.measure.jackknife(np.ascontiguousarray(given.T), y, used) for y, given in columns]
        return Curve(mean, np.sqrt(mean_of_targets([error**2 for error in errors])), values, scores)

    def of_blocks(self, scores: NDArray[np.float64], blocks: Sequence[Any]) -> Curve:
        """All rows together. What was never held out is not judged: its queries have NaN."""
        everything = np.arange(self.layout.n_rows)
        rows = np.sort(np.concatenate([everything[block] for block in blocks]))
        if len(rows) == len(everything):
            return self.curve(scores)
        curve = self.part(rows).curve(scores[rows])
        assert curve.values is not None
        values = np.full((self.layout.n_queries, scores.shape[1]), np.nan)
        values[query_layout(self.layout.codes[rows], len(rows)).ids] = curve.values
        return Curve(curve.mean, curve.error, values, scores)

    def watched(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The items whose scores :meth:`part` judges."""
        return rows

    def part(self, rows: NDArray[np.intp]) -> LabelJudge:
        """The judge of some rows."""
        weights = None if self.weights is None else self.weights[rows]
        return LabelJudge(self.measure, self.Y[rows], query_layout(self.layout.codes[rows], len(rows)), weights)


@dataclass(frozen=True, eq=False)
class PreferenceJudge:
    """Preferences: the weighted share that is ordered rightly (or wrongly). Equal scores count half.

    ``graph`` names the items by their place among the scores that are judged.
    """

    graph: PreferenceTable
    greater_is_better: bool

    def curve(self, scores: NDArray[np.float64], *, error: bool = True) -> Curve:
        """Judge scores (items, values, 1), all preferences together."""
        graph, scores = self.graph, np.ascontiguousarray(scores[:, :, 0])

        def sums(piece: slice) -> tuple[Any, ...]:
            lead = graph.differences(scores, piece)
            right, weight = self._judged(lead, piece)
            squares = weight**2
            return weight.sum(), weight @ right, squares.sum(), squares @ right, squares @ right**2

        parts = map_threads(sums, row_slices(0, graph.n_rows, _PAIR_ROWS))
        total, right, squares, crossed, both = (sum(column) for column in zip(*parts, strict=True))
        mean = np.asarray(right / total)
        # sum of c^2 (right - mean)^2, multiplied out
        spread = np.maximum(both - 2.0 * mean * crossed + mean**2 * squares, 0.0)
        several = np.count_nonzero(graph.weight * graph.strength) > 1
        errors = np.sqrt(spread) / total if several else np.full(len(mean), np.nan)
        return Curve(mean, errors, mean[None, :])

    def of_blocks(self, scores: NDArray[np.float64], blocks: Sequence[Any]) -> Curve:
        """Judge what was held out in blocks: scores (preferences, values, 1)."""
        right, weight = self._judged(scores[:, :, 0], slice(None))
        rows, sizes = np.concatenate(blocks), [len(block) for block in blocks]
        return preference_curve(right[rows], weight[rows], np.concatenate(([0], np.cumsum(sizes))))

    def watched(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The items whose scores :meth:`part` judges."""
        return self.graph.among_own_items(rows)[0]

    def part(self, rows: NDArray[np.intp]) -> PreferenceJudge:
        """The judge of some preferences, which is given the scores of their items alone, in ascending order."""
        _, part = self.graph.among_own_items(rows)
        return PreferenceJudge(part, self.greater_is_better)

    def _judged(self, lead: NDArray[np.float64], rows: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Whether each preference is ordered rightly (or wrongly), and what it counts."""
        right, weight = right_order(lead, self.graph.strength[rows], self.graph.weight[rows])
        return (right if self.greater_is_better else 1.0 - right), weight  # before it is averaged, and so exact


Judge = LabelJudge | PreferenceJudge


def preference_curve(right: NDArray[np.float64], weight: NDArray[np.float64], starts: NDArray[np.intp]) -> Curve:
    """Blocks of preferences count the same; single preferences count by their weights."""
    if len(right) == len(starts) - 1:
        mean = np.asarray((weight @ right) / weight.sum())
        error = np.sqrt((weight**2) @ (right - mean) ** 2) / weight.sum()
        return Curve(mean, error, np.where((weight > 0.0)[:, None], right, np.nan))
    total = np.add.reduceat(weight, starts[:-1])
    values = ratio(np.add.reduceat(weight[:, None] * right, starts[:-1], axis=0), total[:, None])
    return Curve(*mean_and_error(values), values)


def mean_of_targets(each: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The mean over targets of arrays of one shape, of those that have a value."""
    stack = np.stack(each)
    return mean_of_judged(stack.reshape(len(stack), -1)).reshape(stack.shape[1:])


def judged_queries(measure: RankingMeasure, y: NDArray[np.float64], layout: QueryLayout) -> NDArray[np.bool_]:
    """Which queries the measure has a value for, whatever ranks them: it is asked about the ideal ranking.

    A ranking of nothing but ties has no Kendall's tau, so that equal scores would not do.
    """
    return ~np.isnan(measure.judge(y, y[:, None], layout)[0][:, 0])
