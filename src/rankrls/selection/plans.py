"""Ways to hold out: blocks, folds, pairs of items, or validation data."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Comparison, Comparisons, LabelledItems, PreferredItems, Setting
from rankrls._compiled.near_ties import NEAR
from rankrls._errors import InputError
from rankrls.graph import ScoredGraph
from rankrls.graph.labels import label_varies
from rankrls.holdout.concordance import (
    CONFIDENCE,
    concordance_interval,
    disjoint_pairs,
    greedy_matching,
    judged_pairs,
    ordered_pairs,
)
from rankrls.holdout.pair_holdout import leave_pair_out_concordance, pair_setting, refuses_pair_holdout
from rankrls.holdout.preferred_pairs import held_out_preferences
from rankrls.metrics import Measure, RankingMeasure
from rankrls.metrics._averages import mean_and_error
from rankrls.problems.problem import Problem
from rankrls.selection.candidates import Candidate
from rankrls.selection.costs import Cost
from rankrls.selection.judging import Curve, Judge, LabelJudge, PreferenceJudge

CostOf = Callable[[NDArray[np.intp] | None, int], Cost]
_NO_BLOCKS = np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Part:
    """What a model is learnt from and judged by.

    Attributes
    ----------
    train : ndarray of int or None
        Units to learn from; None for all.
    watched : ndarray of int, or matrix
        Whose scores are judged: numbers of items, or other items.
    judge : Judge
    """

    train: NDArray[np.intp] | None
    watched: Any
    judge: Judge


class Plan(ABC):
    """A way to judge; ``description`` puts it in words."""

    description: str
    greater_is_better: bool

    def curve(
        self, comparisons: Comparisons, candidate: Candidate, problem: Problem, values: NDArray[np.float64]
    ) -> Curve:
        """Judge every value of the problem's parameter."""
        raise NotImplementedError

    def axis(self, problem: Problem) -> NDArray[np.float64]:
        """The values that a problem is judged at if nobody gives them."""
        return problem.axis()

    def cost(self, once: CostOf, values: int) -> Cost:
        """What judging so many values of a candidate takes.

        ``once`` is told the lengths of blocks that are held out without refitting, or None for one solution.
        """
        return once(_NO_BLOCKS, values)

    def parts(self, comparisons: Comparisons) -> list[Part]:
        """The same for solvers that watch scores while they iterate."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Nothing(Plan):
    """Nothing is held out, since there is one model only."""

    greater_is_better: bool = True
    description: str = "nothing held out"

    def parts(self, comparisons: Comparisons) -> list[Part]:
        return []


@dataclass(frozen=True, eq=False)
class JudgedPlan(Plan):
    """A plan whose scores a judge compares, which also knows what is better."""

    judge: Judge

    @property
    def greater_is_better(self) -> bool:  # type: ignore[override]
        return self.judge.greater_is_better


@dataclass(frozen=True, eq=False)
class Blocks(JudgedPlan):
    """Units held out in blocks, each at most once: whole queries, or preferences.

    Without refitting if the problem has a shortcut, and then judged together.
    """

    judge: LabelJudge | PreferenceJudge
    blocks: list[Any]
    description: str

    def cost(self, once: CostOf, values: int) -> Cost:
        lengths = [b.stop - b.start if isinstance(b, slice) else len(b) for b in self.blocks]
        return once(np.array(lengths, dtype=np.intp), values)

    def curve(
        self, comparisons: Comparisons, candidate: Candidate, problem: Problem, values: NDArray[np.float64]
    ) -> Curve:
        scores = held_out_scores(comparisons, candidate, problem, self.blocks, values)
        return self.judge.of_blocks(scores, self.blocks)

    def parts(self, comparisons: Comparisons) -> list[Part]:
        everything = np.arange(comparisons.n_units)
        out = []
        for block in self.blocks:
            held = everything[block]
            out.append(Part(np.delete(everything, held), self.judge.watched(held), self.judge.part(held)))
        return out


@dataclass(frozen=True, eq=False)
class Folds(JudgedPlan):
    """Any folds of rows: a fit on the training rows of each."""

    judge: LabelJudge
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
    description: str

    def cost(self, once: CostOf, values: int) -> Cost:
        return once(_NO_BLOCKS, values).times(len(self.folds) + 1)

    def curve(
        self, comparisons: Comparisons, candidate: Candidate, problem: Problem, values: NDArray[np.float64]
    ) -> Curve:
        judged = []
        for train, test in self.folds:
            scores = refitted_scores(comparisons, candidate, train, test, values)
            judged.append(self.judge.part(test).curve(scores, error=False).values)
        stacked = np.vstack([part for part in judged if part is not None])
        return Curve(*mean_and_error(stacked), stacked)

    def parts(self, comparisons: Comparisons) -> list[Part]:
        return [Part(train, test, self.judge.part(test)) for train, test in self.folds]


@dataclass(frozen=True, eq=False)
class Validation(JudgedPlan):
    """Items of their own to judge on: X, or row numbers of the training items."""

    X: Any
    description: str

    def curve(
        self, comparisons: Comparisons, candidate: Candidate, problem: Problem, values: NDArray[np.float64]
    ) -> Curve:
        curve = self.judge.curve(problem.path(values).scores(self.X))
        return Curve(curve.mean, curve.error, curve.values)

    def parts(self, comparisons: Comparisons) -> list[Part]:
        return [Part(None, self.X, self.judge)]


@dataclass(frozen=True, eq=False)
class LeavePairOut(Plan):
    """Every pair of items of a ranking held out in its turn."""

    greater_is_better: bool
    description: str

    @staticmethod
    def of(
        measure: RankingMeasure, data: LabelledItems, settings: Sequence[Setting], *, constrained: bool
    ) -> LeavePairOut:
        """The plan, because it was asked for.

        Raises
        ------
        InputError
            If it is not exact for one of the graphs, or if a pair may leave nothing to learn from.
        """
        _check_counts_pairs(measure)
        reason = why_pairs_cannot_be_held_out(data, settings, constrained=constrained)
        if reason is not None:
            raise InputError(f"{{cv=leave_pair_out}} cannot hold out pairs without refitting: {reason}.")
        if settings[0].regression_weight == 0.0:
            check_something_is_left(data)
        count = sum(ordered_pairs(y, data.layout.codes) for y in data.Y.T)
        return LeavePairOut(measure.greater_is_better, f"leave-pair-out over {count} pairs")

    def axis(self, problem: Problem) -> NDArray[np.float64]:
        """Without a spectrum if an inverse for each alpha is all that this plan needs."""
        return problem.axis(problem.extreme_values())

    def cost(self, once: CostOf, values: int) -> Cost:
        return once(None, 1).times(values + 1)

    def curve(
        self, comparisons: Comparisons, candidate: Candidate, problem: Problem, values: NDArray[np.float64]
    ) -> Curve:
        assert isinstance(comparisons, LabelledItems)
        results = []
        for part, factor, targets in pair_problems(candidate, comparisons, problem):
            for y in comparisons.Y[:, targets].T:
                if (y != y[0]).any():  # else there is no pair to judge by
                    results.append(leave_pair_out_concordance(part, y, values * factor))
        mean = np.mean([r.score for r in results], axis=0)
        error = np.sqrt(np.mean([r.standard_error**2 for r in results], axis=0))
        ends = None
        if comparisons.Y.shape[1] == 1:
            disjoint = disjoint_pairs(comparisons.Y[:, 0], comparisons.layout.codes)
            ends = concordance_interval(mean, error, disjoint, CONFIDENCE)
        return self._curve(mean, error, ends)

    def _curve(self, mean: NDArray[np.float64], error: NDArray[np.float64], ends: Any) -> Curve:
        if self.greater_is_better:
            return Curve(mean, error, interval=ends)
        return Curve(1.0 - mean, error, interval=None if ends is None else (1.0 - ends[1], 1.0 - ends[0]))


class LeavePreferredPairOut(LeavePairOut):
    """The two items of every preference held out in their turn, with all that is known of either."""

    @staticmethod
    def of_preferences(measure: RankingMeasure, data: PreferredItems, *, constrained: bool) -> LeavePreferredPairOut:
        """The plan; preferences of strength 0 are not judged.

        Raises
        ------
        InputError
            If the signs of weights are constrained, and by a measure of something else than pairs.
        """
        _check_counts_pairs(measure)
        if constrained:
            problem = (
                "{cv=leave_pair_out} cannot hold out pairs without refitting: the signs of weights are constrained."
            )
            raise InputError(problem, parameter="cv")
        count = np.count_nonzero(data.graph.strength)
        return LeavePreferredPairOut(measure.greater_is_better, f"leave-pair-out over {count} comparable pairs")

    def curve(
        self, comparisons: Comparisons, candidate: Candidate, problem: Problem, values: NDArray[np.float64]
    ) -> Curve:
        assert isinstance(comparisons, PreferredItems)
        graph = comparisons.graph
        rows = np.flatnonzero(graph.strength)
        i, j = graph.winners[rows], graph.losers[rows]
        leads = held_out_preferences(candidate.kernel, comparisons.X, graph, values, i, j)
        mean, error = judged_pairs(leads, np.sign(graph.strength[rows]), i, j, graph.n_items, graph.weight[rows])
        return self._curve(mean, error, concordance_interval(mean, error, greedy_matching(i, j), CONFIDENCE))


def _check_counts_pairs(measure: RankingMeasure) -> None:
    if not is_concordance(measure):
        problem = "{cv=leave_pair_out} counts pairs: choose by {scoring=disagreement} or {scoring=pair_accuracy}."
        raise InputError(problem, parameter="scoring")


def is_concordance(measure: RankingMeasure) -> bool:
    """Whether the measure is what leave-pair-out counts: pairs with different labels, predicted ties half."""
    return (
        isinstance(measure, Measure)
        and measure.name in ("disagreement", "pair_accuracy")
        and measure.tied_labels in (None, "ignore")
    )


def why_pairs_cannot_be_held_out(data: LabelledItems, settings: Sequence[Setting], *, constrained: bool) -> str | None:
    """Why the shortcut would be wrong, as a part of the template of an error; None if it is exact."""
    if constrained:
        return "the signs of weights are constrained"
    weighted = data.weights is not None
    for setting in settings:
        known: dict[str, Any] = {"balance": setting.balance, "regression_weight": setting.regression_weight}
        for comparison in data.graphs(setting):
            reason = refuses_pair_holdout(ScoredGraph.of(comparison.graph), weighted=weighted, **known)
            if reason is not None:
                return reason
    return None


def check_something_is_left(data: LabelledItems) -> None:
    """Refuse labels of which a single pair can take all that differs."""
    comparable = np.flatnonzero(label_varies(data.Y, data.layout))
    if len(comparable) > 1:
        return
    rows = np.flatnonzero(data.layout.codes == comparable[0])
    y = data.Y[rows, 0]
    values, counts = np.unique(y, return_counts=True)
    common = values[np.argmax(counts)]
    others = y[y != common]
    if len(others) == 1 or (len(others) == 2 and others[0] != others[1]):
        raise InputError(
            "All labels but {0} are {1:g}: holding out a pair leaves labels that are all equal, and nothing to learn "
            "from.",
            len(others),
            common,
            parameter="y",
        )


def held_out_scores(
    comparisons: Comparisons, candidate: Candidate, problem: Problem, blocks: list[Any], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scores of each block's rows (leads of its preferences) by models of all others, (units, values, targets).

    By the problem's own shortcut, or by a fit without each block. Scores of a query that differ by rounding only are
    equal. A direction that only the held-out rows have gets a weight of 0 by cancellation; what rounding leaves of it
    is divided by alpha, so that a smaller alpha leaves fewer digits.
    """
    found = [part.holdout(blocks, values) for part in problem.parts]
    known = [
        comparisons.with_ties(scores, part.resolution(values))
        for scores, part in zip(found, problem.parts, strict=True)
        if scores is not None
    ]
    if len(known) == len(found):
        return known[0] if len(known) == 1 else np.concatenate(known, axis=2)
    everything = np.arange(comparisons.n_units)
    parts = []
    for block in blocks:
        held = everything[block]
        parts.append((held, refitted_scores(comparisons, candidate, np.delete(everything, held), held, values)))
    out = np.full((len(everything), *parts[0][1].shape[1:]), np.nan)
    for held, scores in parts:
        out[held] = scores
    return comparisons.with_ties(out, NEAR)


def refitted_scores(
    comparisons: Comparisons,
    candidate: Candidate,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    values: NDArray[np.float64],
) -> NDArray[np.float64]:
    """What the model of some units says of others, (units, values, targets)."""
    inner = comparisons.take(train, square=candidate.square)
    solutions = candidate.problem(inner).path(values)
    own = comparisons.columns_of(train) if candidate.square else None
    return comparisons.scores_of(test, lambda X: solutions.scores(X if own is None else X[:, own]))


def pair_problems(
    candidate: Candidate, comparisons: Comparisons, problem: Problem | None = None
) -> list[tuple[Any, float, slice]]:
    """What leave-pair-out works on: problems, what alpha is multiplied by there, and their targets.

    The parts of ``problem``, the candidate's own, are used again if there is no mixture with regression.
    """
    setting, out = candidate.setting, []
    for k, comparison in enumerate(comparisons.graphs(setting)):
        graph = ScoredGraph.of(comparison.graph)
        on, factor = pair_setting(graph, balance=setting.balance, regression_weight=setting.regression_weight)
        if problem is not None and on is comparison.graph:
            part = problem.parts[k]
        else:
            assert isinstance(comparisons, LabelledItems)
            target = on.F @ comparisons.Y[:, comparison.targets]
            part = candidate.part(comparisons.X, Comparison(on, target, comparison.targets))
        out.append((part, factor, comparison.targets))
    return out
