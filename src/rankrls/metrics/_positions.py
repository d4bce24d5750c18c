"""Measures over positions: NDCG, average precision, precision and reciprocal rank."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.metrics._averages import mean_of_judged, ratio
from rankrls.metrics._definition import Array, Choice, Definition, Discount, Gain, Task
from rankrls.ranking import docno_order

Judged = tuple[Array, NDArray[np.bool_]]  # the values, and which queries have nothing to find


class PositionMeasure(Definition):
    """A formula of the labels from the first position down."""

    def judge(self, task: Task) -> tuple[Array, Array]:
        choices = task.choices
        if choices.single_scores:
            with np.errstate(over="ignore"):
                task = replace(task, scores=task.scores.astype(np.float32).astype(np.float64))
        values, empty = self.compute(_Walk(task))
        values[empty] = np.nan if choices.empty == "skip" else choices.empty
        return values, mean_of_judged(values)


class _Walk:
    """A ranking to walk down from the first position to the last one that is looked at."""

    def __init__(self, task: Task) -> None:
        longest = int(task.layout.counts.max(initial=0))
        self.task = task
        self.order = task.layout.order if task.docno is None else docno_order(task.docno, task.layout)
        self.depth = longest if task.k is None else min(task.k, longest)

    def sums(self, kind: str, values: Array, *, discounts: Array | None = None, best: bool = False) -> Array:
        """What :func:`rank_sums` gives for these values of the rows; ``best`` ranks the rows by them."""
        from rankrls.metrics._ranked import rank_sums

        return rank_sums(
            kind,
            values,
            values[:, None] if best else self.task.scores,
            self.order,
            self.task.layout.starts,
            discounts=np.ones(self.depth) if discounts is None else discounts,
            ties="row" if best else self.task.choices.ties,
        )

    def relevant(self) -> tuple[Array, NDArray[Any]]:
        """1 for each relevant row, else 0; and how many each query has."""
        layout = self.task.layout
        rows = (self.task.y >= self.task.choices.relevant).astype(np.float64)
        return rows, np.bincount(layout.codes, weights=rows, minlength=layout.n_queries)


def _ndcg(walk: _Walk) -> Judged:
    choices = walk.task.choices
    gains = _gains_of(choices.gain, walk.task.y)
    discounts = _discounts_of(choices.discount, walk.depth)
    values = walk.sums("discounted", gains, discounts=discounts)
    best = walk.sums("discounted", gains, discounts=discounts, best=True)
    return ratio(values, best), best[:, 0] == 0


def _average_precision(walk: _Walk) -> Judged:
    choices = walk.task.choices
    if walk.task.k is not None and choices.ties == "threshold":
        raise InputError(
            "average precision that retrieves tied items together has no depth {k}.",
            remedy="Choose {ties='average'} or {ties='row'}.",
        )
    relevant, found = walk.relevant()
    reachable = np.minimum(found, walk.depth) if choices.denominator == "reachable" else found
    return ratio(walk.sums("precisions", relevant), reachable[:, None]), found == 0


def _precision(walk: _Walk) -> Judged:
    relevant, found = walk.relevant()
    places = np.full(len(found), float(walk.task.k or walk.depth))
    if walk.task.choices.denominator == "reachable":
        places = np.minimum(places, walk.task.layout.counts)
    return walk.sums("discounted", relevant) / places[:, None], found == 0


def _reciprocal_rank(walk: _Walk) -> Judged:
    relevant, found = walk.relevant()
    return walk.sums("first", relevant, discounts=1.0 / np.arange(1.0, walk.depth + 1.0)), found == 0


def _gains_of(gain: Gain, y: Array) -> Array:
    """What each label is worth; a label that has no gain is refused with its row."""
    if gain == "positive":
        return np.maximum(y, 0.0)
    if isinstance(gain, tuple):
        known = (y >= 0) & (y < len(gain)) & (y == np.floor(y))
        if not known.all():
            problem = "label {0:g} in row {1} has no entry among the {2} gains: labels must be integers from 0 to {3}."
            raise _label_error(problem, y, np.argmin(known), len(gain), len(gain) - 1)
        gains = np.asarray(gain, dtype=np.float64)[y.astype(np.intp)]
    elif callable(gain):
        gains = np.asarray(gain(y), dtype=np.float64)
        if gains.shape != y.shape:
            raise InputError("{gain}(labels) must return shape {0}; got {1}.", y.shape, gains.shape)
    else:
        if y.size and y.min() < 0:
            remedy = "Shift the labels, or choose {gain='positive'} (negative counts as 0) or a gain of your own."
            problem = "NDCG has no gain for the negative label {0:g} in row {1}."
            raise _label_error(problem, y, np.argmin(y), remedy=remedy)
        if gain == "linear":
            return y
        with np.errstate(over="ignore"):
            gains = np.expm1(y * np.log(2.0)) if (y != np.floor(y)).any() else np.exp2(y) - 1.0
    good = np.isfinite(gains) & (gains >= 0)
    if not good.all():
        row = np.argmin(good)
        problem = "label {0:g} in row {1} has the gain {2:g}, which must be finite and not negative."
        raise _label_error(
            problem,
            y,
            row,
            gains[row],
            remedy="Choose another gain, such as {gain='linear'}, where a label is its own gain.",
        )
    return gains


def _label_error(problem: str, y: Array, row: np.intp, *values: Any, remedy: str = "") -> InputError:
    return InputError(problem, y[row], int(row), *values, remedy=remedy, parameter="gain", row=int(row))


def _discounts_of(discount: Discount, depth: int) -> Array:
    """What positions 1 to ``depth`` are worth."""
    positions = np.arange(1, depth + 1, dtype=np.float64)
    if isinstance(discount, str):
        return 1.0 / np.log2(np.maximum(positions, 2.0) if discount == "letor" else positions + 1.0)
    values = np.asarray(discount(positions), dtype=np.float64)
    if values.shape != positions.shape or not (np.isfinite(values) & (values >= 0)).all():
        raise InputError("{discount}(positions) must return one finite number, not negative, for each position.")
    return values


_TIES = ("row", "docno", "average")
_SHARED = {
    "empty": Choice(("skip",), " or a number in [0, 1]", lambda v: isinstance(v, int | float) and 0.0 <= v <= 1.0),
    "ties": Choice(_TIES),
    "single_scores": Choice((), "True or False", lambda v: isinstance(v, bool | np.bool_)),
}
_GAIN = Choice(
    ("exp2", "linear", "positive"),
    ", a tuple of gains or a callable",
    lambda v: callable(v) or isinstance(v, tuple),
)
_DISCOUNT = Choice(("log2", "letor"), " or a callable", callable)
_RELEVANT = Choice((), "a finite label", lambda v: isinstance(v, int | float) and bool(np.isfinite(v)))
_DENOMINATOR = Choice(("nominal", "reachable"))
_RELEVANCE = {**_SHARED, "relevant": _RELEVANT}

OVER_POSITIONS = (
    PositionMeasure("ndcg", _ndcg, {**_SHARED, "gain": _GAIN, "discount": _DISCOUNT}),
    PositionMeasure(
        "average_precision",
        _average_precision,
        {**_RELEVANCE, "ties": Choice((*_TIES, "threshold")), "denominator": _DENOMINATOR},
        short="map",
        aliases=("ap",),
        own={"sklearn": {"ties": "threshold"}, "ranklib": {"denominator": "nominal"}},
    ),
    PositionMeasure(
        "precision",
        _precision,
        {**_RELEVANCE, "denominator": _DENOMINATOR},
        short="p",
        own={"": {"empty": 0.0}},  # no tool treats a query without relevant items specially here
        needs_depth=True,
    ),
    PositionMeasure("reciprocal_rank", _reciprocal_rank, _RELEVANCE, short="mrr", aliases=("rr",)),
)
