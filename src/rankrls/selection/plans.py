"""Ways to hold out: blocks, folds, pairs of items, or validation data."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems, Setting
from rankrls._errors import InputError
from rankrls._queries import label_varies
from rankrls.kernels import Kernel
from rankrls.metrics import Measure, RankingMeasure
from rankrls.metrics._averages import mean_and_error
from rankrls.metrics._preferences import right_order
from rankrls.numerics.concordance import (
    CONFIDENCE,
    concordance_interval,
    disjoint_pairs,
    greedy_matching,
    judged_pairs,
    ordered_pairs,
)
from rankrls.numerics.graph import PreferenceGraph
from rankrls.numerics.holdout import HeldOut
from rankrls.numerics.pairs import leave_pair_out, why_not_pairs
from rankrls.numerics.preferred_pairs import hold_out_preferred_pairs, kernel_features
from rankrls.selection.judging import (
    Curve,
    Judge,
    LabelJudge,
    PreferenceJudge,
    mean_of_targets,
    preference_curve,
)
from rankrls.selection.least_squares import LeastSquaresProblem

TIED = 64.0 * float(np.finfo(np.float64).eps)
"""Two scores are equal if they differ by this share of both sizes."""


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
    extends = True
    """Whether more values of a path cost next to nothing: an automatic grid then goes on at its ends."""

    def curve(self, comparisons: Comparisons, candidate: Any, problem: Any, values: NDArray[np.float64]) -> Curve:
        """Judge every value of the problem's parameter."""
        raise NotImplementedError

    def axis(self, problem: Any) -> NDArray[np.float64]:
        """The values that a problem is judged at if nobody gives them."""
        return problem.axis()

    def held_out_scores(
        self, comparisons: Comparisons, problem: Any, value: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Held-out scores (rows, targets) of one value; None if each row has none, or they come with the curve."""
        return None

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
    each: bool = False
    """Whether the blocks are the single queries (groups of preferences), in their order."""

    def curve(self, comparisons: Comparisons, candidate: Any, problem: Any, values: NDArray[np.float64]) -> Curve:
        if isinstance(problem, LeastSquaresProblem):
            return self._exact_curve(comparisons, problem, values)
        scores = held_out_scores(comparisons, candidate, problem, self.blocks, values)
        return self.judge.of_blocks(scores, self.blocks)

    def held_out_scores(
        self, comparisons: Comparisons, problem: Any, value: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        if not isinstance(problem, LeastSquaresProblem) or isinstance(comparisons, PreferredItems):
            return None
        return problem.held_out_scores(
            value, comparisons.n_rows, None if self.each else block_queries(comparisons, self.blocks)
        )[:, 0]

    def _exact_curve(
        self, comparisons: Comparisons, problem: LeastSquaresProblem, values: NDArray[np.float64]
    ) -> Curve:
        folds = None if self.each else block_queries(comparisons, self.blocks)
        if isinstance(self.judge, PreferenceJudge):
            (found,) = problem.hold_out(values, judged_preferences, folds)
            right, weight = (np.concatenate(part) for part in zip(*found, strict=True))
            if not self.judge.greater_is_better:
                right = 1.0 - right
            starts = problem.forms[0].graph.starts
            sizes = np.diff(starts) if folds is None else [int(np.diff(starts)[fold].sum()) for fold in folds]
            curve = preference_curve(right, weight, np.concatenate(([0], np.cumsum(sizes))))
            curve.mean[problem.unresolved(values)] = np.nan
            return curve
        measure = self.judge.measure
        used = measure.uses_sample_weight and self.judge.weights is not None

        def judged(part: Any, held: HeldOut) -> Any:
            given = {"weights": part.weights if used else None, "places": part.rows, "sizes": held.sizes}
            targets = zip(held.scores, part.y.T, held.norms, strict=True)
            return np.stack([measure.values(f, y, part.starts, norms=norm, **given) for f, y, norm in targets])

        each, means = [], []
        order = None if folds is None else np.concatenate(folds)
        for form, found in zip(problem.forms, problem.hold_out(values, judged, folds), strict=True):
            graph: Any = form.graph if order is None else form.graph.take(order)
            weights = graph.weights if used else None
            for found_of_target, y in zip(np.concatenate(found, axis=1), graph.y.T, strict=True):
                each.append(found_of_target)
                means.append(measure.mean_of(found_of_target, y, graph.starts, weights))
        found_values, mean = mean_of_targets(each), mean_of_targets(means)
        mean[problem.unresolved(values)] = np.nan
        if order is not None and comparisons.n_queries:
            full = np.full((comparisons.n_queries, len(values)), np.nan)
            full[order] = found_values
            found_values = full
        return Curve(mean, measure.standard_error(found_values), found_values)

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

    extends = False

    judge: LabelJudge
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
    description: str

    def curve(self, comparisons: Comparisons, candidate: Any, problem: Any, values: NDArray[np.float64]) -> Curve:
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

    def curve(self, comparisons: Comparisons, candidate: Any, problem: Any, values: NDArray[np.float64]) -> Curve:
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
            If it is not exact for one of the graphs, or if a pair may leave nothing to fit.
        """
        _check_counts_pairs(measure)
        reason = why_pairs_cannot_be_held_out(data, settings, constrained=constrained)
        if reason is not None:
            raise InputError(f"cv='leave_pair_out' cannot hold out pairs without refitting: {reason}.", parameter="cv")
        if settings[0].regression_weight == 0.0:
            check_something_is_left(data)
        count = ordered_pairs(data.Y[:, 0], data.layout.codes)
        return LeavePairOut(measure.greater_is_better, f"leave-pair-out over {count} pairs")

    def curve(self, comparisons: Comparisons, candidate: Any, problem: Any, values: NDArray[np.float64]) -> Curve:
        assert isinstance(comparisons, LabelledItems)
        (form,) = problem.forms
        mean, error = leave_pair_out(form.smoother, form.graph, form.features, values, candidate.setting.balance)
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
            raise InputError(
                "cv='leave_pair_out' cannot hold out pairs without refitting: the signs of weights are constrained.",
                parameter="cv",
            )
        count = np.count_nonzero(data.graph.strength)
        return LeavePreferredPairOut(measure.greater_is_better, f"leave-pair-out over {count} comparable pairs")

    def curve(self, comparisons: Comparisons, candidate: Any, problem: Any, values: NDArray[np.float64]) -> Curve:
        (graph,) = comparisons.numeric_graphs(candidate.setting)
        assert isinstance(graph, PreferenceGraph)
        rows = np.flatnonzero(graph.strength)
        i, j = graph.winners[rows], graph.losers[rows]
        Z = preference_features(candidate.kernel, comparisons.X)
        margins = hold_out_preferred_pairs(Z, graph, values, i, j)
        mean, error = judged_pairs(margins, np.sign(graph.strength[rows]), i, j, graph.n_items, graph.weights[rows])
        return self._curve(mean, error, concordance_interval(mean, error, greedy_matching(i, j), CONFIDENCE))


def preference_features(kernel: Kernel, X: Any) -> NDArray[np.float64]:
    """Features in which the functions of a kernel are linear, (items, d); offsets are taken off."""
    if not kernel.is_linear or X.shape[1] > X.shape[0]:
        return kernel_features(kernel(X))
    Z = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    return Z - Z.mean(axis=0)


def _check_counts_pairs(measure: RankingMeasure) -> None:
    if not is_concordance(measure):
        raise InputError(
            "cv=leave_pair_out counts pairs: choose by scoring=disagreement or scoring=pair_accuracy.",
            parameter="scoring",
        )


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
    if data.Y.shape[1] > 1:
        return "there are several targets"
    weighted = data.weights is not None
    for setting in settings:
        for graph in data.numeric_graphs(setting):
            reason = why_not_pairs(graph, balance=setting.balance, weighted=weighted)
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
            f"All labels but {len(others)} are {common:g}: holding out a pair leaves labels that are all "
            "equal, and nothing to learn from.",
            parameter="y",
        )


def held_out_scores(
    comparisons: Comparisons, candidate: Any, problem: Any, blocks: list[Any], values: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scores of each block's rows (leads of its preferences) by models of all others, (units, values, targets).

    By the problem's own shortcut, or by a fit without each block.
    """
    shortcut: Any = getattr(problem, "held_out", None)
    if shortcut is not None:
        return np.asarray(shortcut(blocks, values))
    everything = np.arange(comparisons.n_units)
    refits = []
    for block in blocks:
        held = everything[block]
        refits.append((held, refitted_scores(comparisons, candidate, np.delete(everything, held), held, values)))
    out = np.full((len(everything), *refits[0][1].shape[1:]), np.nan)
    for held, scores in refits:
        out[held] = scores
    return out


def block_queries(comparisons: Comparisons, blocks: list[Any]) -> list[NDArray[np.intp]]:
    """The queries (groups of preferences) of each block."""
    if isinstance(comparisons, LabelledItems):
        return [np.unique(comparisons.layout.codes[block]) for block in blocks]
    assert isinstance(comparisons, PreferredItems)
    groups = comparisons.graph.groups
    return [np.asarray(block) if groups is None else np.unique(groups[block]) for block in blocks]


def judged_preferences(part: Any, held: HeldOut) -> Any:
    """How much of each preference is right, (preferences, values), and what it counts; equal scores are a half."""
    margins = held.scores[0].T.copy()
    margins[np.abs(margins) <= TIED * held.sizes[:, None] * held.norms[0]] = 0.0
    return right_order(margins, part.strength, part.weights)


def refitted_scores(
    comparisons: Comparisons,
    candidate: Any,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    values: NDArray[np.float64],
) -> NDArray[np.float64]:
    """What the model of some units says of others, (units, values, targets)."""
    inner = comparisons.take(train, square=candidate.square)
    solutions = candidate.problem(inner).path(values)
    own = comparisons.columns_of(train) if candidate.square else None
    return comparisons.scores_of(test, lambda X: solutions.scores(X if own is None else X[:, own]))
