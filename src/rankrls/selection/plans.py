"""Plans: held-out units, and the evaluation of every value of a problem's parameter on them; and planners of ``cv``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from rankrls._arrays import host_only
from rankrls._comparisons import Data, DataInMemory, GraphSetting, LabelledItems, PreferredItems
from rankrls._curves import Curve, ItemFold, joined_curves, judged_queries, of_item_folds
from rankrls._errors import InputError
from rankrls._problems import Candidate, Problem, Solutions
from rankrls._queries import label_varies, query_layout
from rankrls._rows import take_items
from rankrls._typing import Array, ExactFoldsLike, Index, Matrix
from rankrls.metrics._measure import Measure, mean_of_judged
from rankrls.numerics.concordance import (
    CONFIDENCE,
    concordance_interval,
    disjoint_pairs,
    greedy_matching,
    judged_pairs,
    ordered_pairs,
)
from rankrls.numerics.pairs import held_out_concordance, held_out_margins, hold_out_preferred_pairs, unsupported_reason
from rankrls.numerics.smoother import Equations
from rankrls.selection.folds import (
    FEW_FOLDS,
    REPETITIONS,
    check_folds_leave_something,
    check_two_vary,
    given_folds,
    item_folds,
    number_of_folds,
    numbered_folds,
    preference_units,
    whole_queries,
)
from rankrls.selection.least_squares import LeastSquaresProblem, check_positive

AnyCandidate: TypeAlias = Candidate[Solutions]
AnyProblem: TypeAlias = Problem[Solutions]
D = TypeVar("D", bound=Data, covariant=True)
MAX_PAIR_HOLDOUT = 5000
"""Largest number of items of one ranking for which ``cv=None`` holds out all pairs."""
ENOUGH_UNITS = 500
"""Number of queries, rows, items or groups of which one fold is evaluated alone.

On noise, the disagreement selected on a fifth of 150 to 300 rows was .48, on a fifth of 500 .496, with a standard
error of .004 to .008 over 60 fits.
"""
_SHARED = 1.1
"""Factor of the spread of items if pairs are held out, because they also train the models of other pairs.

Without signal, the bias of a choice was 1.0 (numbers) to 1.2 times (two labels) the estimate without this factor.
"""
_REMEDY = "Use other folds (cv), or pass validation data (X_val)."


class Split(NamedTuple):
    """Training and evaluated data of a model.

    Attributes
    ----------
    train : ndarray of int, or None
        Observations to fit (rows of Y, or preferences); None for all, with validation data.
    watched : ndarray of int, or matrix
        Items whose scores are evaluated: numbers of items, or other items.
    data : DataInMemory
        Labels or preferences of these items.
    """

    train: Index | None
    watched: Matrix
    data: DataInMemory


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """Evaluation of every value of a problem's parameter.

    Attributes
    ----------
    measure : Measure
    description : str
        Description of what is held out, and what is new about it.
    folds : sequence, or None
        Units that are held out together, none with validation data; None if each unit is held out alone.
    """

    measure: Measure
    description: str
    folds: Sequence[Any] | None = None
    blocks_are_queries: ClassVar[bool] = True
    """Whether values of held-out blocks are those of queries or groups of preferences, not of items."""

    @property
    def mutual(self) -> bool:
        """Whether held-out data also train the models that evaluate other held-out data."""
        return self.folds is None or len(self.folds) > 1

    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        """Measure at every value, by default of a model of each split; ``problem`` is the candidate's for ``data``."""
        whole = data.whole()
        curves = []
        for split in self.splits(whole):
            curves.append(split.data.evaluate(self.measure, scores_of_refit(whole, candidate, split, values)))
        return joined_curves(curves)

    def splits(self, data: DataInMemory) -> list[Split]:
        """Training and evaluated data, for solvers that evaluate while they iterate."""
        return []


@dataclass(frozen=True, eq=False, kw_only=True)
class ValidationPlan(Plan):
    """Models of all data, evaluated on other items."""

    items: LabelledItems
    folds: tuple[()] = ()

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

    def splits(self, data: DataInMemory) -> list[Split]:
        return [Split(train, *data.watch(test)) for train, test in self.folds]


@dataclass(frozen=True, eq=False, kw_only=True)
class UnitsPlan(Plan):
    """Whole queries held out, each at most once: without refits if a problem supports it.

    Folds are arrays of the numbers of queries (groups).
    """

    def splits(self, data: DataInMemory) -> list[Split]:
        observations = np.arange(data.n_observations)
        return [Split(np.delete(observations, block), *data.watch(block)) for block in data.blocks(self.folds)]

    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        curve = problem.held_out_curve(self.measure, self.folds, values)
        return self._curve_of_scores(data, candidate, problem, values) if curve is None else curve

    def _curve_of_scores(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        """Curve of held-out scores (rows, values, targets), in which scores that differ only by rounding are tied."""
        known = data.of_kind(LabelledItems)
        blocks = known.blocks(self.folds)
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
        return replace(found, per_block=each_query, scores=lambda k: scores[:, k])


class GroupsPlan(UnitsPlan):
    """Groups of preferences instead of queries; margins by refits are evaluated fold by fold."""

    def _curve_of_scores(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        return Plan.curve(self, data, candidate, problem, values)


@dataclass(frozen=True, eq=False, kw_only=True)
class ItemFoldsPlan(Plan):
    """Folds of items: every preference of a fold's items is left out, and those between its items are evaluated."""

    folds: Sequence[ItemFold]
    blocks_are_queries = False

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


class Concordance(NamedTuple):
    """Share of held-out pairs in the correct order, (values,), with its error and interval, and the number of pairs.

    ``of_items`` are values of each item (items, values), with the share as their mean and the spread that they have
    without signal. ``margins`` are the held-out score differences (pairs, values) of given pairs.
    """

    score: Array
    error: Array
    interval: Array
    n_pairs: int
    of_items: Array
    margins: Array | None = None

    @classmethod
    def of(cls, score: Array, influence: Array, disjoint: int, n_pairs: int, confidence: float) -> Concordance:
        """From the influence of each item on the share, and the number of pairs without common items."""
        error = np.linalg.norm(influence, axis=0)
        interval = np.stack(concordance_interval(score, error, disjoint, confidence))
        return cls(score, error, interval, n_pairs, score + _SHARED * len(influence) * influence)


def query_concordance(
    items: Data,
    problem: LeastSquaresProblem,
    alphas: Array,
    pairs: tuple[Index, Index] | None = None,
    confidence: float = CONFIDENCE,
) -> Concordance:
    """Hold out pairs of items in turn: all pairs of a query with different labels, or given pairs among these."""
    check_positive(alphas)
    data = items.of_kind(LabelledItems)
    (solver,) = problem.solvers
    (graph,) = data.numeric_graphs(problem.setting)
    held_out = (solver.smoother, graph, solver.features, alphas)
    balance = problem.setting.balance
    y = data.Y[:, 0]
    codes = data.layout.codes
    if pairs is None:
        shares, influence = held_out_concordance(*held_out, balance)
        disjoint = min(disjoint_pairs(labels, codes) for labels in data.Y.T)
        n_pairs = sum(ordered_pairs(labels, codes) for labels in data.Y.T)
        return Concordance.of(mean_of_judged(shares), influence, disjoint, n_pairs, confidence)
    i, j = pairs
    margins = held_out_margins(*held_out, i, j, balance)
    weight = None if data.weights is None else data.weights[i] * data.weights[j]
    order = np.sign(y[i] - y[j])
    return _of_margins(margins, order, i, j, data.n_rows, weight, confidence)._replace(margins=margins)


def preference_concordance(
    items: Data, problem: LeastSquaresProblem, alphas: Array, confidence: float = CONFIDENCE
) -> Concordance:
    """Hold out pairs of items in turn: those of all preferences."""
    check_positive(alphas)
    data = items.of_kind(PreferredItems)
    (solver,) = problem.solvers
    table = data.preferences
    rows = np.flatnonzero(table.strength)
    i = table.winners[rows]
    j = table.losers[rows]
    Z = solver.item_features
    smoother = Equations.of(data.graph, Z).smoother(own=solver.own_rounding)
    margins = hold_out_preferred_pairs(smoother, data.graph, Z, alphas, i, j, solver.rounding)
    return _of_margins(margins, np.sign(table.strength[rows]), i, j, data.n_rows, table.weight[rows], confidence)


def _of_margins(
    margins: Array, order: Array, i: Index, j: Index, n_items: int, weight: Array | None, confidence: float
) -> Concordance:
    score, influence = judged_pairs(margins, order, i, j, n_items, weight)
    return Concordance.of(score, influence, greedy_matching(i, j), len(i), confidence)


def is_concordance(measure: Measure) -> bool:
    """Whether the measure is that of leave-pair-out: pairs with different labels, with predicted ties counting half."""
    return measure.name in ("disagreement", "pair_accuracy") and measure.tied_labels in (None, "ignore")


def why_pairs_cannot_be_held_out(
    data: LabelledItems, settings: Sequence[GraphSetting], *, constrained: bool
) -> str | None:
    """Reason why the shortcut would be wrong, as a part of a sentence; None if it is exact."""
    if constrained:
        return "the signs of weights are constrained"
    weighted = data.weights is not None
    for setting in settings:
        graphs = data.numeric_graphs(setting)
        if len(graphs) > 1:
            return "ties='exclude' makes one graph for each of several targets"
        for graph in graphs:
            reason = unsupported_reason(graph, balance=setting.balance, weighted=weighted)
            if reason is not None:
                return reason
    return None


def check_query_pairs(
    data: LabelledItems, settings: Sequence[GraphSetting], *, constrained: bool, parameter: str
) -> None:
    """Refuse graphs for which the shortcut would be wrong, and labels that are all equal without some pair."""
    reason = why_pairs_cannot_be_held_out(data, settings, constrained=constrained)
    if reason is not None:
        problem = f"Leave-pair-out cannot hold out pairs without refitting: {reason}."
        remedy = " Leave-query-out is exact under constraints." if constrained else ""
        raise InputError(problem + remedy, parameter=parameter)
    if settings[0].regression_weight > 0.0:
        return
    comparable = np.flatnonzero(label_varies(data.Y, data.layout))
    if len(comparable) > 1:
        return
    for labels in data.Y[data.layout.codes == comparable[0]].T:
        values, counts = np.unique(labels, return_counts=True)
        others = np.delete(counts, np.argmax(counts))
        if not 0 < len(others) < 3 or (others > 1).any():
            continue
        raise InputError(
            f"All labels but {len(others)} are {values[np.argmax(counts)]:g}: holding out a pair leaves only equal "
            "labels. Use other data or folds (cv).",
            parameter="y",
        )


def check_preferred_pairs(data: PreferredItems, *, constrained: bool) -> None:
    """Refuse constraints on signs, and several rows of the same item."""
    if constrained:
        problem = "Leave-pair-out cannot hold out pairs without refitting: the signs of weights are constrained."
        raise InputError(f"{problem} Use folds of items.", parameter="cv")
    if len(np.unique(data.identity)) < data.n_rows:
        problem = "cv=leave_pair_out holds out two rows, but other rows are the same items (item_id)."
        raise InputError(f"{problem} Use folds of items.", parameter="item_id")


@dataclass(frozen=True, eq=False, kw_only=True)
class PairsPlan(Plan):
    """Pairs of items held out in turn with all of their comparisons, without refits.

    Attributes
    ----------
    concordance : callable
        Function that returns the share of the pairs in the correct order.
    """

    concordance: Callable[[Data, LeastSquaresProblem, Array], Concordance]
    blocks_are_queries = False

    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        assert isinstance(problem, LeastSquaresProblem)
        found = self.concordance(data, problem, values)
        if self.measure.greater_is_better:
            return Curve(found.score, found.error, found.of_items, found.interval)
        return Curve(1.0 - found.score, found.error, 1.0 - found.of_items, 1.0 - found.interval[::-1])


def scores_of_refit(data: DataInMemory, candidate: AnyCandidate, split: Split, values: Array) -> Array:
    """Scores of the watched items by the models of a split, (items, values, targets)."""
    assert split.train is not None
    X = take_items(data.X, split.watched)
    if candidate.square:
        X = X[:, data.items_of(split.train)]
    inner = data.take(split.train, square=candidate.square)
    return candidate.problem(inner).path(values).scores(X)


@dataclass(frozen=True, eq=False)
class Planner(ABC, Generic[D]):
    """Creates the plan for ``cv``. The meaning of None depends on the solver."""

    measure: Measure
    data: D

    def holds_out_pairs(self, cv: ExactFoldsLike) -> bool:
        """Whether ``cv`` is leave-pair-out; refuses it on devices and for measures that are not of pairs."""
        if not (isinstance(cv, str) and cv == "leave_pair_out"):
            return False
        host_only(self.data.X, "Leave-pair-out")
        if not is_concordance(self.measure):
            raise InputError(
                "cv=leave_pair_out needs a measure of pairs: scoring=disagreement or scoring=pair_accuracy.",
                parameter="scoring",
            )
        return True

    @abstractmethod
    def exact(self, cv: ExactFoldsLike, settings: Sequence[GraphSetting], *, constrained: bool = False) -> Plan:
        """Plan for problems that can hold out without refitting: None holds out each query, pair or new unit."""

    @abstractmethod
    def few(self, cv: ExactFoldsLike) -> Plan:
        """Plan in which None means a few folds."""

    def one(self, cv: ExactFoldsLike, rng: np.random.RandomState) -> Plan:
        """Plan in which None means one of a few folds, or all of these if one is too little to select on."""
        plan = self.few(cv)
        if cv is not None or plan.folds is None or self._n_judged() < ENOUGH_UNITS:
            return plan
        fold = plan.folds[rng.randint(len(plan.folds))]
        return replace(plan, folds=[fold], description=f"1 of {plan.description}")

    @abstractmethod
    def _n_judged(self) -> int:
        """Number of the queries, rows, items or groups whose scores can be evaluated."""


@dataclass(frozen=True, eq=False)
class QueryPlanner(Planner[LabelledItems]):
    """Planner that holds out queries, or rows of one ranking.

    Attributes
    ----------
    regression_weight : float
        If positive, folds may leave labels that are equal in every query.
    """

    regression_weight: float

    def exact(self, cv: ExactFoldsLike, settings: Sequence[GraphSetting], *, constrained: bool = False) -> Plan:
        """None is leave-query-out; for a single ranking leave-pair-out, or folds of rows if that needs refits."""
        data = self.data
        q = data.n_queries
        m = data.n_rows
        if self.holds_out_pairs(cv):
            check_query_pairs(data, settings, constrained=constrained, parameter="cv")
            pairs = f"{m} items" if q == 1 else f"{ordered_pairs(data.Y[:, 0], data.layout.codes)} pairs"
            return self._pairs(pairs)
        if cv is not None:
            return self._folds(cv)
        if q > 1:
            comparable = int(label_varies(data.Y, data.layout).sum())
            check_two_vary(comparable, q, "Pass validation data (X_val) or folds of your own (cv).")
            return UnitsPlan(measure=self.measure, description=f"leave-query-out over {q} queries")
        refused = m > MAX_PAIR_HOLDOUT or why_pairs_cannot_be_held_out(data, settings, constrained=constrained)
        if is_concordance(self.measure) and not refused:
            host_only(data.X, "Leave-pair-out, the default for one ranking (cv=5 avoids it),")
            return self._pairs(f"{m} items")
        return self.few(None)

    def _pairs(self, pairs: str) -> Plan:
        description = f"leave-pair-out over {pairs}"
        return PairsPlan(measure=self.measure, description=description, concordance=query_concordance)

    def few(self, cv: ExactFoldsLike) -> Plan:
        count = self.data.n_queries if self.data.n_queries > 1 else self.data.n_rows
        return self._folds(min(FEW_FOLDS, count) if cv is None else cv)

    def _n_judged(self) -> int:
        data = self.data
        if data.n_queries == 1:
            return data.n_rows - int(np.unique(data.Y[:, 0], return_counts=True)[1].max()) + 1
        judged = judged_queries(self.measure, data.Y[:, 0], data.layout) & label_varies(data.Y, data.layout)
        return int(judged.sum())

    def _folds(self, cv: ExactFoldsLike) -> Plan:
        """Plan for a number of folds, a splitter of scikit-learn, or (train, test) lists of rows."""
        data = self.data
        all_rows = np.arange(data.n_rows)
        several = data.n_queries > 1
        units: list[Index] | None = None
        if isinstance(cv, Integral) and not isinstance(cv, bool):
            by_id = data.layout.by_id if several else all_rows
            what = "queries" if several else "rows"
            drawn = [np.sort(by_id[test]) for test in numbered_folds(int(cv), len(by_id), what)]
            units = drawn if several else None
            tests = data.blocks(drawn) if several else drawn
            splits = [(np.delete(all_rows, test), test) for test in tests]
            description = f"{cv} folds of {len(by_id)} {what}"
        else:
            splits, name = given_folds(cv, data)
            if several and whole_queries(splits, data.layout):
                units = [np.unique(data.layout.codes[test]) for _, test in splits]
            description = f"{len(splits)} folds of {'rows' if units is None else 'whole queries'} ({name})"
        held = [np.delete(all_rows, train) if units is None else test for train, test in splits]
        check_folds_leave_something(data, held, self.regression_weight, remedy=_REMEDY, parameter="cv")
        if units is not None:
            return UnitsPlan(measure=self.measure, description=description, folds=units)
        return RowFoldsPlan(measure=self.measure, description=description, folds=splits)


class PreferencePlanner(Planner[PreferredItems]):
    """Planner that holds out what will be new: items, connected components of items, votes, or groups of votes."""

    def exact(self, cv: ExactFoldsLike, settings: Sequence[GraphSetting], *, constrained: bool = False) -> Plan:
        if not self.holds_out_pairs(cv):
            return self._folds(number_of_folds(cv), REPETITIONS)
        check_preferred_pairs(self.data, constrained=constrained)
        pairs = f"{np.count_nonzero(self.data.preferences.strength)} comparable pairs: new items"
        return PairsPlan(
            measure=self.measure, concordance=preference_concordance, description=f"leave-pair-out over {pairs}"
        )

    def few(self, cv: ExactFoldsLike) -> Plan:
        k = number_of_folds(cv)
        if k is None and self.data.new != "items" and self.data.preferences.n_groups > FEW_FOLDS:
            k = FEW_FOLDS
        return self._folds(k, 1)

    def _n_judged(self) -> int:
        table = self.data.preferences
        if self.data.new == "items":
            return len(np.unique(self.data.identity[[table.winners, table.losers]]))
        return sum(bool(table.strength[block].any()) for block in table.blocks())

    def _folds(self, k: int | None, repetitions: int) -> Plan:
        """Plan for folds of items; or for each preference, group or component in turn, or folds of these."""
        if str(self.measure) not in ("disagreement", "pair_accuracy"):
            raise InputError(
                f"Preferences are evaluated by 'disagreement' or 'pair_accuracy'; got scoring={str(self.measure)!r}, "
                "which needs labels.",
                parameter="scoring",
            )
        if self.data.new == "items":
            folds, description = item_folds(self.data, k, range(repetitions))
            return ItemFoldsPlan(measure=self.measure, description=description, folds=folds)
        units, description = preference_units(self.data, k)
        return GroupsPlan(measure=self.measure, description=description, folds=units)
