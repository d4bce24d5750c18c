"""Measures over pairs: the disagreement error, pair accuracy, Kendall's tau and the squared error of differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.group_pass import weighted_sums
from rankrls.metrics._averages import mean_of_judged, ratio, sum_in_any_order
from rankrls.metrics._definition import Array, Choice, Choices, Definition, Task

if TYPE_CHECKING:
    from rankrls._compiled.pair_counts import PairCounts


class PairMeasure(Definition):
    """A formula of how many pairs of a query are ordered right, ordered wrong, and tied."""

    over_pairs: ClassVar[bool] = True
    merges: ClassVar[bool] = True

    def judge(self, task: Task) -> tuple[Array, Array]:
        from rankrls._compiled.pair_counts import count_pairs

        layout = task.layout
        counts = count_pairs(task.y, task.scores, layout.order, layout.starts, task.sample_weight, task.near)
        values, average = self.compute(counts, task.choices)
        return values, average

    def error_of_one(self, task: Task) -> Array:
        from rankrls._compiled.pair_counts import counts_without

        counts = counts_without(task.y, task.scores, task.sample_weight)
        values: Array = self.compute(counts, task.choices)[0]
        n, middle = len(values), mean_of_judged(values)
        return np.asarray(np.sqrt((n - 1.0) * mean_of_judged((values - middle) ** 2)))


def _disagreement(counts: PairCounts, choices: Choices) -> tuple[Array, Array]:
    errors = counts.wrong + 0.5 * counts.level
    pairs: NDArray[Any] = np.broadcast_to(counts.ordered[:, None], errors.shape)
    if choices.tied_labels == "half":
        errors = errors + 0.5 * counts.tied_apart
        pairs = pairs + counts.tied[:, None]
    values = ratio(errors, pairs)
    by_pair = choices.average == "pair"
    return values, ratio(sum_in_any_order(errors), sum_in_any_order(pairs)) if by_pair else mean_of_judged(values)


def _accuracy(counts: PairCounts, choices: Choices) -> tuple[Array, Array]:
    values, average = _disagreement(counts, choices)
    return 1.0 - values, 1.0 - average


def _tau(counts: PairCounts, choices: Choices) -> tuple[Array, Array]:
    # Concordant minus discordant, over the geometric mean of the pairs not tied in y and not tied in scores.
    pairs = np.sqrt(counts.ordered[:, None] * counts.apart)
    values = ratio(counts.ordered[:, None] - counts.level - 2.0 * counts.wrong, pairs)
    if choices.empty != "skip":
        values[pairs == 0] = choices.empty
    return values, mean_of_judged(values)


class SquaredDifferences(Definition):
    """The mean over a query's pairs of the squared error of their score differences."""

    over_pairs: ClassVar[bool] = True
    quadratic: ClassVar[bool] = True
    merges: ClassVar[bool] = True  # for which there is no need: no tie is looked at

    def judge(self, task: Task) -> tuple[Array, Array]:
        from rankrls._compiled.pair_counts import spreads

        w = np.ones(len(task.y)) if task.sample_weight is None else task.sample_weight
        order, starts = task.layout.order, task.layout.starts
        total, squares = (weighted_sums(a[:, None], order, starts, w)[:, 0] for a in (np.ones(len(w)), w))
        spread = spreads(task.y, task.scores, order, starts, w)
        values = self.compute(total, squares, spread)
        values[task.layout.counts < 2] = np.nan
        return values, mean_of_judged(values)


def _squared_difference(total: Array, squares: Array, spread: Array) -> Array:
    # sum_{i<j} w_i w_j (e_i - e_j)^2 = S sum_i w_i (e_i - mean)^2, over the weight of the pairs.
    return ratio(2.0 * total[:, None] * spread, (total**2 - squares)[:, None])


_ERROR_CHOICES = {"tied_labels": Choice(("ignore", "half")), "average": Choice(("query", "pair"))}
_CORRELATION = Choice(("skip",), " or a number in [-1, 1]", lambda v: isinstance(v, int | float) and -1.0 <= v <= 1.0)
_NO_PAIR = "no query has an ordered pair, that is two items with different labels"

OVER_PAIRS = (
    PairMeasure(
        "disagreement",
        _disagreement,
        _ERROR_CHOICES,
        aliases=("disagreement_error",),
        greater_is_better=False,
        not_judged=_NO_PAIR,
    ),
    PairMeasure("pair_accuracy", _accuracy, _ERROR_CHOICES, aliases=("accuracy",), not_judged=_NO_PAIR),
    PairMeasure(
        "kendall_tau",
        _tau,
        {"empty": _CORRELATION},
        short="tau",
        aliases=("kendall",),
        own={"": {"empty": "skip"}},
        not_judged="no query has both two different labels and two different scores",
    ),
    SquaredDifferences(
        "pair_squared_error",
        _squared_difference,
        {},
        greater_is_better=False,
        not_judged="no query has two items",
    ),
)
