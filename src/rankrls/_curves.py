"""A measure at every value of a parameter, with its standard error."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from rankrls._preferences import PreferenceTable
from rankrls._queries import QueryLayout
from rankrls._typing import Array, Index, Mask
from rankrls.metrics._measure import Measure, mean_and_error, mean_of_judged, right_order
from rankrls.metrics._table import ratio
from rankrls.numerics.concordance import CONFIDENCE, concordance_interval, greedy_matching, item_values
from rankrls.numerics.ties import tied

J = TypeVar("J")
_RUNS = 200
"""Largest number of blocks of held-out preferences."""


@dataclass(frozen=True, eq=False)
class Curve:
    """A measure at every value of a parameter.

    Attributes
    ----------
    mean, error : ndarray of shape (values,)
        The measure, and its standard error over the evaluated blocks; NaN if there is only one.
    per_block : ndarray of shape (blocks, values)
        Measure of each query, item or block.
    shift : ndarray of shape (values,), optional
        Change of the mean if rows, whose order is that of equal scores, are shuffled.
    pooled : bool
        Whether all blocks count as one beside those of other curves.
    interval : ndarray of shape (2, values), optional
        Ends of a confidence interval of the measure.
    scores : callable, optional
        Function that returns the held-out scores (items, targets) of value number k.
    """

    mean: Array
    error: Array
    per_block: Array
    interval: Array | None = None
    scores: Callable[[int], Array] | None = None
    shift: Array | None = None
    pooled: bool = False

    def shift_of(self, k: int) -> float:
        """Change of the mean of value number k, 0 if the order of rows has no effect."""
        return 0.0 if self.shift is None else float(self.shift[k])

    @property
    def size(self) -> Array:
        """Mean absolute value of the averaged values without NaN; rounding errors are relative to it."""
        return np.nan_to_num(mean_of_judged(np.abs(self.per_block)))


def curve_of_queries(measure: Measure, Y: Array, layout: QueryLayout, weights: Array | None, scores: Array) -> Curve:
    """Evaluate scores (items, values, targets) of items with labels Y, (items, targets).

    Scores of one query that differ only by rounding are made equal in place. Several targets are averaged query by
    query.
    """
    for t in range(scores.shape[2]):
        scores[:, :, t] = tied(scores[:, :, t], layout)
    order = layout.order
    sorted_weights = None if weights is None else weights[order]
    targets = zip(np.ascontiguousarray(scores[order].T), Y[order].T, strict=True)
    each = [measure.in_both_orders(f, y, layout.starts, weights=sorted_weights) for f, y in targets]
    return _of_targets(np.stack(each))


def _of_targets(each: Array) -> Curve:
    """Curve of values (targets, orders of rows, queries, values), averaged query by query."""
    values = mean_of_judged(each)
    mean = mean_of_judged(np.stack([mean_of_judged(one) for one in each[:, 0]]))
    return Curve(mean, mean_and_error(values[0])[1], values[0], shift=mean_of_judged(values[-1] - values[0]))


def joined_curves(curves: Sequence[Curve]) -> Curve:
    """Curve of the blocks of several curves."""
    if len(curves) == 1:
        return curves[0]
    values = np.vstack([curve.mean if curve.pooled else curve.per_block for curve in curves])
    shifts = [curve.shift for curve in curves if curve.shift is not None]
    return Curve(*mean_and_error(values), values, shift=mean_of_judged(np.stack(shifts)) if shifts else None)


def curve_of_preferences(measure: Measure, table: PreferenceTable, scores: Array, *, by_item: bool) -> Curve:
    """Weighted share of preferences in the right (or wrong) order by scores (items, values); equal scores count half.

    Blocks are items if these are new (``by_item``); otherwise runs of whole groups of preferences, or of single ones.
    The mean of their values is the share, and its standard error is that of a ratio of sums.
    """
    right, weight = ordered_rightly(measure, table.differences(scores), table.strength, table.weight)
    if by_item:
        values = item_values(right, weight, table.winners, table.losers, table.n_items)
    else:
        groups = np.arange(table.n_rows) if table.groups is None else table.groups  # those of one group are adjacent
        firsts = np.flatnonzero(np.diff(groups, prepend=-1))
        starts = firsts[:: 1 + len(firsts) // _RUNS]
        totals = np.add.reduceat(weight, starts)[:, None]
        right *= weight[:, None]
        sums = np.add.reduceat(right, starts, axis=0)
        total = weight.sum()
        share = ratio(sums.sum(axis=0), total)
        values = share + len(starts) * ratio(sums - totals * share, total)
    return Curve(*mean_and_error(values), values, pooled=not by_item)


def ordered_rightly(measure: Measure, margins: Array, strength: Array, weight: Array) -> tuple[Array, Array]:
    """Measure of each preference, from margins (preferences, values), and its weight."""
    right, weight = right_order(margins, strength, weight)
    return (right if measure.greater_is_better else 1.0 - right), weight  # exact before averaging


@dataclass(frozen=True)
class Evaluator(ABC, Generic[J]):
    """Evaluates held-out scores chunk by chunk, and combines the results into a curve.

    Attributes
    ----------
    measure : Measure
    """

    measure: Measure

    @abstractmethod
    def __call__(self, part: Any, scores: Array) -> J:
        """Result for held-out scores (targets, values, rows) of a part of a graph."""

    @abstractmethod
    def curve(self, found: Sequence[list[J]], sizes: Index, folds: Sequence[Index] | None) -> Curve:
        """Curve of all parts of each graph.

        ``sizes`` are those of the queries (groups), which were held out one by one or in ``folds``.
        """


AnyEvaluator: TypeAlias = Evaluator[Any]


class QueryEvaluator(Evaluator[Array]):
    """Evaluator of labelled items: the measure of each query of a part, (targets, orders, queries, values)."""

    def __call__(self, part: Any, scores: Array) -> Array:
        given = {"weights": part.weights, "places": part.rows}
        targets = zip(scores, part.y.T, strict=True)
        return np.stack([self.measure.in_both_orders(f, y, part.starts, **given) for f, y in targets])

    def curve(self, found: Sequence[list[Array]], sizes: Index, folds: Sequence[Index] | None) -> Curve:
        of_targets = np.concatenate([np.concatenate(parts, axis=2) for parts in found])
        if folds is not None:
            held = of_targets
            of_targets = np.full((*held.shape[:2], len(sizes), held.shape[3]), np.nan)
            of_targets[:, :, np.concatenate(folds)] = held
        return _of_targets(of_targets)


class PreferenceEvaluator(Evaluator[tuple[Array, Array]]):
    """Evaluator of preferences: the measure of each, (preferences, values), and their weights."""

    def __call__(self, part: Any, scores: Array) -> tuple[Array, Array]:
        return ordered_rightly(self.measure, np.ascontiguousarray(scores[0].T), part.strength, part.weights)

    def curve(self, found: Sequence[list[tuple[Array, Array]]], sizes: Index, folds: Sequence[Index] | None) -> Curve:
        (parts,) = found
        return of_preferences(parts, sizes if folds is None else np.array([sizes[fold].sum() for fold in folds]))


def of_preferences(found: list[tuple[Array, Array]], sizes: Index) -> Curve:
    """Curve of groups with these numbers of preferences: groups count equally, single preferences by weight."""
    right, weight = (np.concatenate(each) for each in zip(*found, strict=True))
    found.clear()
    if (sizes == 1).all():
        total = np.asarray(weight.sum())
        mean = ratio(weight @ right, total)
        squares = right - mean  # no further copy, for very many preferences
        squares *= squares
        error = ratio(np.sqrt((weight**2) @ squares), total)
        right[weight == 0.0] = np.nan
        return Curve(mean, error, right)
    starts = np.cumsum(sizes) - sizes
    total = np.add.reduceat(weight, starts)
    values = ratio(np.add.reduceat(weight[:, None] * right, starts, axis=0), total[:, None])
    return Curve(*mean_and_error(values), values)


class ItemFold(NamedTuple):
    """Fold of items: the preferences without them, those between them, and weights of the latter.

    Attributes
    ----------
    train, test : ndarray of int
    weight : ndarray of shape (len(test),)
    """

    train: Index
    test: Index
    weight: Array


def of_item_folds(
    measure: Measure, table: PreferenceTable, identity: Index, folds: Sequence[ItemFold], margins: Sequence[Array]
) -> Curve:
    """Curve of preferences between held-out items, each counted as often as a fold held out both of its items.

    Its blocks are the items. Held-out items also train the models that evaluate others, which on noise doubles the
    variance of their mean: the standard error accounts for this, and is too large if there is much signal.
    """
    rows = np.concatenate([fold.test for fold in folds])
    weight = np.concatenate([fold.weight for fold in folds])
    every = np.concatenate(margins)
    right, weight = ordered_rightly(measure, every, table.strength[rows], weight)
    items, ends = np.unique(identity[[table.winners[rows], table.losers[rows]]], return_inverse=True)
    first, second = ends.reshape(2, -1).astype(np.intp)
    values = item_values(right, weight, first, second, len(items))
    mean = values.mean(axis=0)
    error = np.sqrt(2.0) * mean_and_error(values)[1]
    interval = np.stack(concordance_interval(mean, error, greedy_matching(first, second), CONFIDENCE))

    def scores(k: int) -> Array:
        total = np.bincount(rows, every[:, k], table.n_rows)
        times = np.bincount(rows, np.ones(len(rows)), table.n_rows)
        return ratio(np.asarray(total, dtype=np.float64), times)[:, None]

    return Curve(mean, error, values, interval, scores)


def logistic_slope(margins: Array, strength: Array, weight: Array) -> float:
    """Slope a of ``P(first preferred) = 1 / (1 + exp(-a margin))`` that fits best; a tie counts half for both outcomes.

    Outcomes are shrunk slightly towards one half (Platt 1999), so that a is finite even if every preference is
    predicted correctly.
    """
    size = float(np.sqrt(np.mean(margins**2)))
    if size == 0.0:
        return 0.0
    shares = 0.5 + 0.5 * np.sign(strength) * len(margins) / (len(margins) + 2.0)
    unit = margins / size

    def derivative(log_slope: float) -> float:
        return float((weight * unit) @ (expit(np.exp(log_slope) * unit) - shares))

    low = -12.0
    high = 12.0  # the loss is convex; its minimum may lie outside
    log_slope = low if derivative(low) >= 0.0 else high if derivative(high) <= 0.0 else brentq(derivative, low, high)
    return float(np.exp(log_slope)) / size


def judged_queries(measure: Measure, y: Array, layout: QueryLayout) -> Mask:
    """Mask of the queries that can have a value, which are those with a value for the ideal ranking.

    Equal scores would not do instead, because a ranking of ties alone has no Kendall's tau.
    """
    return ~np.isnan(measure.per_query(y, y[:, None], layout)[:, 0])
