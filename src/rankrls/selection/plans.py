"""Plans: held-out units, and the evaluation of every value of a problem's parameter on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from rankrls._comparisons import Data, DataInMemory, LabelledItems, PreferredItems
from rankrls._curves import Curve, ItemFold, of_item_folds
from rankrls._problems import Candidate, Problem, Solutions
from rankrls._queries import query_layout
from rankrls._rows import take_items
from rankrls._typing import Array, Index, Matrix
from rankrls.metrics import Measure
from rankrls.metrics._values import mean_and_error
from rankrls.selection.least_squares import LeastSquaresProblem
from rankrls.selection.leave_pair_out import Concordance, preference_concordance, query_concordance

AnyCandidate: TypeAlias = Candidate[Solutions]
AnyProblem: TypeAlias = Problem[Solutions]


@dataclass(frozen=True, eq=False)
class Split:
    """Training and evaluated data of a model.

    Attributes
    ----------
    train : ndarray of int, or None
        Units to fit; None for all.
    watched : ndarray of int, or matrix
        Items whose scores are evaluated: numbers of items, or other items.
    data : DataInMemory
        Labels or preferences of these items.
    """

    train: Index | None
    watched: Matrix
    data: DataInMemory


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan(ABC):
    """Evaluation of every value of a problem's parameter.

    Attributes
    ----------
    measure : Measure
    description : str
        Description of what is held out, and what is new about it.
    mutual : bool
        Whether held-out data also train the models that evaluate other held-out data.
    extends : bool
        Whether more values of a path are almost free: an automatic grid is then extended at its ends.
    """

    measure: Measure
    description: str
    mutual: bool = True
    extends: bool = True

    @property
    def greater_is_better(self) -> bool:
        return self.measure.greater_is_better

    @abstractmethod
    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        """Measure at every value; ``problem`` is the candidate's for ``data``."""

    def splits(self, data: DataInMemory) -> list[Split]:
        """Training and evaluated data, for solvers that evaluate while they iterate."""
        return []


@dataclass(frozen=True, eq=False, kw_only=True)
class ValidationPlan(Plan):
    """Models of all data, evaluated on other items."""

    items: LabelledItems
    mutual: bool = False

    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        return self.items.evaluate(self.measure, problem.path(values).scores(self.items.X))

    def splits(self, data: DataInMemory) -> list[Split]:
        return [Split(None, self.items.X, self.items)]


@dataclass(frozen=True, eq=False, kw_only=True)
class RowFoldsPlan(Plan):
    """Models of the training rows of each fold, evaluated on its test rows.

    Attributes
    ----------
    folds : sequence of (ndarray of int, ndarray of int)
        Training and test rows.
    """

    folds: Sequence[tuple[Index, Index]]
    extends: bool = False

    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        return curve_of_refits(self, data.whole(), candidate, values)

    def splits(self, data: DataInMemory) -> list[Split]:
        return [Split(train, *data.watch(test)) for train, test in self.folds]


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitsPlan(Plan):
    """Whole queries held out, each at most once: without refits if a problem supports it.

    Attributes
    ----------
    units : sequence of ndarray of int, or None
        Numbers of the queries (groups) that are held out together; None for each alone.
    """

    units: Sequence[Index] | None = None

    def splits(self, data: DataInMemory) -> list[Split]:
        every = np.arange(data.n_observations)
        return [Split(np.delete(every, block), *data.watch(block)) for block in data.blocks(self.units)]

    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        curve = problem.held_out_curve(self.measure, self.units, values)
        return self._curve_of_scores(data, candidate, problem, values) if curve is None else curve

    def _curve_of_scores(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        """Curve of held-out scores (rows, values, targets), in which scores that differ only by rounding are tied."""
        known = data.of_kind(LabelledItems)
        blocks = known.blocks(self.units)
        scores = problem.scores_without(blocks, values)
        if scores is None:
            scores = np.full((known.n_rows, len(values), known.n_targets), np.nan)
            for split in self.splits(known):
                scores[split.watched] = scores_of_refit(known, candidate, split, values)
        rows = np.sort(np.concatenate(blocks))
        held = scores[rows]
        found = known.take(rows, items=False).evaluate(self.measure, held)
        scores[rows] = held
        found.mean[problem.unresolved(values)] = np.nan
        each_query = np.full((known.n_queries, len(values)), np.nan)
        each_query[query_layout(known.layout.codes[rows], len(rows)).ids] = found.per_block
        return Curve(found.mean, found.error, each_query, scores=lambda k: scores[:, k])


class GroupsPlan(UnitsPlan):
    """Groups of preferences instead of queries; margins by refits are evaluated unit by unit."""

    def _curve_of_scores(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        return curve_of_refits(self, data.whole(), candidate, values)


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemFoldsPlan(Plan):
    """Folds of items: every preference of a fold's items is left out, and those between its items are evaluated."""

    folds: Sequence[ItemFold]
    extends: bool = False

    def splits(self, data: DataInMemory) -> list[Split]:
        found = []
        for fold in self.folds:
            items, inside = data.of_kind(PreferredItems).watch(fold.test)
            weighted = replace(inside, preferences=replace(inside.preferences, weight=fold.weight))
            found.append(Split(fold.train, items, weighted))
        return found

    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        known = data.of_kind(PreferredItems)
        margins = problem.hold_out_items(known.graph, [(fold.train, fold.test) for fold in self.folds], values)
        if margins is None:
            margins = []
            for split in self.splits(known):
                scores = scores_of_refit(known, candidate, split, values)[:, :, 0]
                margins.append(split.data.of_kind(PreferredItems).preferences.differences(scores))
        return of_item_folds(self.measure, known.preferences, known.identity, self.folds, margins)


class PairsPlan(Plan):
    """Pairs of items held out with all of their comparisons, without refits."""

    @abstractmethod
    def concordance(self, data: Data, problem: LeastSquaresProblem, values: Array) -> Concordance:
        """Share of the pairs in the correct order."""

    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        assert isinstance(problem, LeastSquaresProblem)
        found = self.concordance(data, problem, values)
        if self.measure.greater_is_better:
            return Curve(found.score, found.error, interval=found.interval)
        return Curve(1.0 - found.score, found.error, interval=1.0 - found.interval[::-1])


class QueryPairsPlan(PairsPlan):
    """All pairs of a query with different labels held out in turn."""

    def concordance(self, data: Data, problem: LeastSquaresProblem, values: Array) -> Concordance:
        return query_concordance(data.of_kind(LabelledItems), problem, values)


class PreferencePairsPlan(PairsPlan):
    """The two items of each preference held out in turn."""

    def concordance(self, data: Data, problem: LeastSquaresProblem, values: Array) -> Concordance:
        return preference_concordance(data.of_kind(PreferredItems), problem, values)


def curve_of_refits(plan: Plan, data: DataInMemory, candidate: AnyCandidate, values: Array) -> Curve:
    """Curve from a model of each split."""
    found = []
    for split in plan.splits(data):
        curve = split.data.evaluate(plan.measure, scores_of_refit(data, candidate, split, values))
        assert curve.per_block is not None
        found.append(curve.per_block)
    every = np.vstack(found)
    return Curve(*mean_and_error(every), every)


def scores_of_refit(data: DataInMemory, candidate: AnyCandidate, split: Split, values: Array) -> Array:
    """Scores of the watched items by the models of a split, (items, values, targets)."""
    assert split.train is not None
    X = take_items(data.X, split.watched)
    if candidate.square:
        X = X[:, data.items_of(split.train)]
    inner = data.take(split.train, square=candidate.square)
    return candidate.problem(inner).path(values).scores(X)
