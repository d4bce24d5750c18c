"""Plans: how ``cv`` or validation data evaluate every value of a problem's parameter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from rankrls._arrays import host_only
from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems, Setting
from rankrls._errors import InputError
from rankrls._queries import label_varies, query_layout
from rankrls._rows import take_items
from rankrls.metrics import Measure
from rankrls.metrics._values import mean_and_error
from rankrls.numerics.concordance import (
    CONFIDENCE,
    concordance_interval,
    disjoint_pairs,
    greedy_matching,
    judged_pairs,
    ordered_pairs,
)
from rankrls.numerics.graph import Array, Index
from rankrls.numerics.pairs import held_out_margins, leave_pair_out, unsupported_reason
from rankrls.numerics.preferred_pairs import hold_out_preferred_pairs
from rankrls.numerics.runs import dense_rows
from rankrls.selection.curves import Curve, evaluated, judged_queries, of_item_folds
from rankrls.selection.folds import (
    FEW_FOLDS,
    INSTEAD,
    REPETITIONS,
    ItemFold,
    check_folds_leave_something,
    check_two_vary,
    fifth_of_one_ranking,
    given_folds,
    item_folds,
    named,
    numbered_folds,
    preference_blocks,
    query_blocks,
    what_is_new,
    whole_queries,
)
from rankrls.selection.least_squares import check_positive

MAX_PAIR_HOLDOUT = 5000
"""With ``cv=None`` all pairs of one ranking are held out, up to this number of items."""


@dataclass(frozen=True, eq=False)
class Part:
    """What a model is fitted on and evaluated with.

    Attributes
    ----------
    train : ndarray of int, or None
        Units to fit; None for all.
    watched : ndarray of int, or matrix
        Whose scores are evaluated: numbers of items, or other items.
    data : Comparisons
        What is known of these.
    """

    train: Any
    watched: Any
    data: Comparisons


@dataclass(frozen=True, eq=False)
class Plan:
    """A way to evaluate every value of a problem's parameter.

    Attributes
    ----------
    measure : Measure
    description : str
        The way in words.
    curve : callable
        Gives the curve of ``(data, candidate, problem, values)``, if the problem has no ``held_out_curve`` for whole
        queries; None if nothing is evaluated.
    parts : callable
        Gives the parts that are fitted and evaluated, for solvers that evaluate while they iterate.
    extends : bool
        Whether more values of a path cost next to nothing: an automatic grid then goes on at its ends.
    exact : {"queries", "pairs"}, optional
        What is held out without refitting, if the problem can do it: whole queries (groups of preferences) or pairs.
    folds : list of ndarray of int, optional
        Numbers of the queries that are held out together; each alone by default.
    mutual : bool
        Whether what is held out also teaches the models by which the rest is evaluated.
    """

    measure: Measure
    description: str
    curve: Any = None
    parts: Callable[[], list[Part]] = list
    extends: bool = True
    exact: str = ""
    folds: list[Index] | None = None
    mutual: bool = True

    @property
    def greater_is_better(self) -> bool:
        return self.measure.greater_is_better


def exact_plan(
    cv: Any, measure: Measure, data: Comparisons, settings: Sequence[Setting], *, constrained: bool = False
) -> Plan:
    """The plan for ``cv``, for problems that can hold out without refitting.

    None is leave-query-out; of a single ranking leave-pair-out, or folds of rows if that has no shortcut; of
    preferences each one or group.
    """
    if isinstance(cv, str) and cv == "leave_pair_out":
        host_only(data.X, "Leave-pair-out")
        if not is_concordance(measure):
            raise InputError(
                "cv=leave_pair_out needs a measure of pairs: scoring=disagreement or scoring=pair_accuracy.",
                parameter="scoring",
            )
        check_pairs_can_be_held_out(data, settings, constrained=constrained, parameter="cv")
        if isinstance(data, PreferredItems) and len(np.unique(data.identity)) < data.n_rows:
            problem = "cv=leave_pair_out holds out two rows, but other rows are the same items (item_id)."
            raise InputError(f"{problem} Use folds of items.", parameter="item_id")
        return pair_plan(measure, f"leave-pair-out over {_pairs_in_words(data)}")
    if isinstance(data, PreferredItems):
        return preference_plan(measure, data, cv)
    q = data.n_queries
    m = data.n_rows
    beta = settings[0].regression_weight
    if cv is not None:
        return folds_plan(cv, measure, data, beta)
    if q > 1:
        comparable = int(label_varies(data.Y, data.layout).sum())
        check_two_vary(comparable, q, "Give validation data (X_val) or folds of your own (cv).")
        return block_plan(measure, data, query_blocks(data.layout), f"leave-query-out over {q} queries", each=True)
    refused = m > MAX_PAIR_HOLDOUT or why_pairs_cannot_be_held_out(data, settings, constrained=constrained)
    if is_concordance(measure) and not refused:
        host_only(data.X, "Leave-pair-out, the default for one ranking (cv=5 avoids it),")
        return pair_plan(measure, f"leave-pair-out over {m} items")
    return folds_plan(min(FEW_FOLDS, m), measure, data, beta)


def few_folds(cv: Any, measure: Measure, data: Comparisons, regression_weight: float = 0.0) -> Plan:
    """The plan for ``cv``; None is a few folds of queries, of the rows of one ranking, or of preferences."""
    if isinstance(data, PreferredItems):
        if cv is None and data.new != "items":
            cv = min(FEW_FOLDS, data.preferences.n_groups)
        return preference_plan(measure, data, cv, repetitions=1)
    units = data.n_queries if data.n_queries > 1 else data.n_rows
    return folds_plan(min(FEW_FOLDS, units) if cv is None else cv, measure, data, regression_weight)


def one_fold_plan(cv: Any, measure: Measure, data: Comparisons, rng: Any, regression_weight: float = 0.0) -> Plan:
    """The plan for ``cv``; None holds out a fifth of the queries, of the rows of one ranking, or of the preferences."""
    if cv is not None:
        return few_folds(cv, measure, data, regression_weight)
    if isinstance(data, PreferredItems):
        check_measure_of_preferences(measure)
        if data.new == "items":
            return a_fold_of_items(measure, data, rng)
        total = len(preference_blocks(data)[0])
        what = named(data)
        codes = np.arange(total) if data.preferences.groups is None else data.preferences.groups
        usable = np.flatnonzero(np.bincount(codes, data.preferences.strength != 0.0))
    elif data.n_queries == 1:
        test = fifth_of_one_ranking(data, rng)
        train = np.setdiff1d(np.arange(data.n_rows), test)
        check_folds_leave_something(data, [test], regression_weight, remedy=INSTEAD, parameter="cv")
        return refit_plan(measure, data, [(train, test)], f"{len(test)} of {data.n_rows} rows held out")
    else:
        total = data.n_queries
        what = "queries"
        codes = data.layout.codes
        by_id = data.layout.by_id
        judged = judged_queries(measure, data.Y[:, 0], data.layout) & label_varies(data.Y, data.layout)
        usable = by_id[judged[by_id]]
        check_two_vary(len(usable), total, INSTEAD)
    held = rng.permutation(usable)[: max(1, len(usable) // FEW_FOLDS)]
    block = np.flatnonzero(np.isin(codes, held))
    new = f": {what_is_new(data)}" if isinstance(data, PreferredItems) else ""
    return block_plan(measure, data, [block], f"{len(held)} of {total} {what} held out{new}")


def a_fold_of_items(measure: Measure, data: PreferredItems, rng: Any) -> Plan:
    """Hold out one of five folds of items."""
    folds, description = item_folds(data, None, [rng.randint(2**31)])
    return item_plan(measure, data, folds[:1], f"1 of {description}")


def folds_plan(cv: Any, measure: Measure, data: LabelledItems, regression_weight: float = 0.0) -> Plan:
    """A number of folds, a splitter of scikit-learn, or (train, test) lists of rows."""
    everything = np.arange(data.n_rows)
    several = data.n_queries > 1
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        codes, by_id = (data.layout.codes, data.layout.by_id) if several else (everything, everything)
        what = "queries" if several else "rows"
        tests = [np.flatnonzero(np.isin(codes, by_id[test])) for test in numbered_folds(cv, len(by_id), what)]
        splits = [(np.delete(everything, test), test) for test in tests]
        whole = several
        description = f"{cv} folds of {len(by_id)} {what}"
    else:
        splits, name = given_folds(cv, data)
        whole = several and whole_queries(splits, data.layout)
        description = f"{len(splits)} folds of {'whole queries' if whole else 'rows'} ({name})"
    held = [test if whole else np.delete(everything, train) for train, test in splits]
    remedy = "Give other folds (cv), or validation data (X_val)."
    check_folds_leave_something(data, held, regression_weight, remedy=remedy, parameter="cv")
    return block_plan(measure, data, held, description) if whole else refit_plan(measure, data, splits, description)


def preference_plan(measure: Measure, data: PreferredItems, cv: Any, repetitions: int = REPETITIONS) -> Plan:
    """Leave out each preference, group or component in turn, or folds of them; or folds of items."""
    check_measure_of_preferences(measure)
    if data.new == "items":
        return item_plan(measure, data, *item_folds(data, cv, range(repetitions)))
    return block_plan(measure, data, *preference_blocks(data, cv), each=cv is None)


def check_measure_of_preferences(measure: Measure) -> None:
    if str(measure) not in ("disagreement", "pair_accuracy"):
        raise InputError(
            f"Preferences are evaluated by 'disagreement' or 'pair_accuracy'; got scoring={str(measure)!r}, "
            "which needs labels.",
            parameter="scoring",
        )


def validation_plan(measure: Measure, items: Comparisons, description: str) -> Plan:
    """Evaluate with validation data."""

    def curve(data: Comparisons, candidate: Any, problem: Any, values: Array) -> Curve:
        return evaluated(measure, items, problem.path(values).scores(items.X))

    return Plan(measure, description, curve, lambda: [Part(None, items.X, items)], mutual=False)


def refit_plan(measure: Measure, data: Comparisons, folds: list[tuple[Index, Index]], description: str) -> Plan:
    """Fit the training units of each fold, and evaluate with the others."""

    def parts() -> list[Part]:
        return [Part(train, *data.watch(test)) for train, test in folds]

    def curve(data: Comparisons, candidate: Any, problem: Any, values: Array) -> Curve:
        return refit_curve(measure, data, candidate, parts(), values)

    return Plan(measure, description, curve, parts, extends=False, mutual=len(folds) > 1)


def refit_curve(measure: Measure, data: Comparisons, candidate: Any, parts: list[Part], values: Array) -> Curve:
    """Evaluate a model of each part."""
    scores = (refitted(data, candidate, part, values) for part in parts)
    found = [evaluated(measure, part.data, each).values for part, each in zip(parts, scores, strict=True)]
    each_query = np.vstack([values for values in found if values is not None])
    return Curve(*mean_and_error(each_query), each_query)


def refitted(data: Comparisons, candidate: Any, part: Part, values: Array) -> Array:
    """Scores of the watched items by the models of a part, (items, values, targets)."""
    X = take_items(data.X, part.watched)
    inner = data.take(part.train, square=candidate.square)
    if candidate.square and isinstance(data, LabelledItems):
        X = X[:, part.train]
    return np.asarray(candidate.problem(inner).path(values).scores(X))


def block_plan(measure: Measure, data: Comparisons, blocks: list[Any], description: str, *, each: bool = False) -> Plan:
    """Hold out units in blocks, each at most once: whole queries, or preferences.

    ``each`` says that the blocks are the single queries (groups of preferences), in their order.
    """
    everything = np.arange(data.n_units)
    folds = None if each else block_queries(data, blocks)

    def parts() -> list[Part]:
        return [Part(np.delete(everything, block), *data.watch(everything[block])) for block in blocks]

    def curve(data: Any, candidate: Any, problem: Any, values: Array) -> Curve:
        curve: Curve | None = problem.held_out_curve(measure, folds, values)
        if curve is not None:
            return curve
        if isinstance(data, PreferredItems):
            return refit_curve(measure, data, candidate, parts(), values)
        scores = problem.scores_without(blocks, values)
        if scores is None:
            scores = np.full((data.n_rows, len(values), data.Y.shape[1]), np.nan)
            for part in parts():
                scores[part.watched] = refitted(data, candidate, part, values)
        rows = np.sort(np.concatenate([everything[block] for block in blocks]))
        held = scores[rows]
        found = evaluated(measure, data.take(rows, items=False), held)
        scores[rows] = held
        found.mean[problem.unresolved(values)] = np.nan
        each_query = np.full((data.n_queries, len(values)), np.nan)
        each_query[query_layout(data.layout.codes[rows], len(rows)).ids] = found.values
        return Curve(found.mean, found.error, each_query, scores=lambda k: scores[:, k])

    return Plan(measure, description, curve, parts, exact="queries", folds=folds, mutual=len(blocks) > 1)


def item_plan(measure: Measure, data: PreferredItems, folds: list[ItemFold], description: str) -> Plan:
    """Hold out folds of items: every preference of these items is left out, those between them are evaluated."""

    def curve(data: Any, candidate: Any, problem: Any, values: Array) -> Curve:
        margins = problem.hold_out_items([(fold.train, fold.test) for fold in folds], values)
        if margins is None:
            scores = (refitted(data, candidate, part, values)[:, :, 0] for part in parts())
            margins = [part.data.preferences.differences(each) for part, each in zip(parts(), scores, strict=True)]
        return of_item_folds(measure, data, folds, margins)

    def parts() -> list[Any]:
        return [_part_of(data, fold) for fold in folds]

    return Plan(measure, description, curve, parts, extends=False, mutual=len(folds) > 1)


def _part_of(data: PreferredItems, fold: ItemFold) -> Part:
    """A fold as a part, whose preferences weigh what they count."""
    items, inside = data.watch(fold.test)
    return Part(fold.train, items, replace(inside, preferences=replace(inside.preferences, weight=fold.weight)))


def block_queries(data: Comparisons, blocks: list[Any]) -> list[Index]:
    """The queries (groups of preferences) of each block."""
    codes = data.preferences.groups if isinstance(data, PreferredItems) else data.layout.codes
    return [np.asarray(block) if codes is None else np.unique(codes[block]) for block in blocks]


def pair_plan(measure: Measure, description: str) -> Plan:
    """Hold out every pair of items of a query; or the two items of every preference, with all that is known of them.

    After the checks that this is exact.
    """

    def curve(data: Comparisons, candidate: Any, problem: Any, values: Array) -> Curve:
        found = concordance(data, candidate, problem, values)
        if measure.greater_is_better:
            return Curve(found.score, found.error, interval=found.interval)
        return Curve(1.0 - found.score, found.error, interval=1.0 - found.interval[::-1])

    return Plan(measure, description, curve, exact="pairs")


def _pairs_in_words(data: Comparisons) -> str:
    if isinstance(data, PreferredItems):
        return f"{np.count_nonzero(data.preferences.strength)} comparable pairs: new items"
    if data.n_queries == 1:
        return f"{data.n_rows} items"
    return f"{ordered_pairs(data.Y[:, 0], data.layout.codes)} pairs"


class Concordance(NamedTuple):
    """The share of held-out pairs in the right order, (values,), with its error and interval, and how many they are.

    ``margins`` are the held-out score differences (pairs, values) of pairs that were given.
    """

    score: Array
    error: Array
    interval: Array
    n_pairs: int
    margins: Array | None


def concordance(
    data: Comparisons,
    candidate: Any,
    problem: Any,
    values: Array,
    pairs: tuple[Index, Index] | None = None,
    confidence: float = CONFIDENCE,
) -> Concordance:
    """Hold out every pair of items with different labels, or with a preference; or given ones of these."""
    check_positive(values)
    if isinstance(data, LabelledItems):
        (solver,) = problem.solvers
        solved = (solver.smoother, solver.graph, solver.features, values)
        balance = candidate.setting.balance
        y = data.Y[:, 0]
        codes = data.layout.codes
        weight = data.weights
        if pairs is None:
            score, error = leave_pair_out(*solved, balance)
            ends = concordance_interval(score, error, disjoint_pairs(y, codes), confidence)
            return Concordance(score, error, np.stack(ends), ordered_pairs(y, codes), None)
        i, j = pairs
        margins = held_out_margins(*solved, i, j, balance)
        order = np.sign(y[i] - y[j])
        weight = None if weight is None else weight[i] * weight[j]
    else:
        table, (graph,) = data.preferences, data.numeric_graphs(candidate.setting)
        rows = np.flatnonzero(table.strength)
        i = table.winners[rows]
        j = table.losers[rows]
        order = np.sign(table.strength[rows])
        weight = table.weight[rows]
        if pairs is not None:
            known, (i, j), weight = table.winners * table.n_items + table.losers, pairs, None
            order = np.where(np.isin(i * table.n_items + j, known), 1.0, -1.0)
        Z = dense_rows(problem.solvers[0].item_features, slice(None))
        margins = hold_out_preferred_pairs(Z, graph, values, i, j)
    score, error = judged_pairs(margins, order, i, j, data.n_rows, weight)
    ends = concordance_interval(score, error, greedy_matching(i, j), confidence)
    return Concordance(score, error, np.stack(ends), len(i), None if pairs is None else margins)


def is_concordance(measure: Measure) -> bool:
    """Whether the measure is what leave-pair-out counts: pairs with different labels, predicted ties half."""
    return measure.name in ("disagreement", "pair_accuracy") and measure.tied_labels in (None, "ignore")


def why_pairs_cannot_be_held_out(data: Comparisons, settings: Sequence[Setting], *, constrained: bool) -> str | None:
    """Why the shortcut would be wrong, as a part of a sentence; None if it is exact."""
    if constrained:
        return "the signs of weights are constrained"
    if isinstance(data, PreferredItems):
        return None
    if data.Y.shape[1] > 1:
        return "there are several targets"
    weighted = data.weights is not None
    graphs = ((graph, setting) for setting in settings for graph in data.numeric_graphs(setting))
    reasons = (unsupported_reason(graph, balance=setting.balance, weighted=weighted) for graph, setting in graphs)
    return next((reason for reason in reasons if reason is not None), None)


def check_pairs_can_be_held_out(
    data: Comparisons, settings: Sequence[Setting], *, constrained: bool, parameter: str
) -> None:
    """Refuse graphs for which the shortcut would be wrong, and labels that are all equal without one pair."""
    reason = why_pairs_cannot_be_held_out(data, settings, constrained=constrained)
    if reason is not None:
        problem = f"Leave-pair-out cannot hold out pairs without refitting: {reason}."
        remedy = " Leave-query-out is exact under constraints." if constrained else ""
        raise InputError(problem + remedy, parameter=parameter)
    if isinstance(data, PreferredItems) or settings[0].regression_weight > 0.0:
        return
    comparable = np.flatnonzero(label_varies(data.Y, data.layout))
    if len(comparable) > 1:
        return
    values, counts = np.unique(data.Y[data.layout.codes == comparable[0], 0], return_counts=True)
    others = np.delete(counts, np.argmax(counts))
    if len(others) < 3 and (others == 1).all():
        raise InputError(
            f"All labels but {len(others)} are {values[np.argmax(counts)]:g}: holding out a pair leaves only equal "
            "labels. Use other data or folds (cv).",
            parameter="y",
        )
