"""Plans: evaluation by held-out blocks, folds, pairs of items, or validation data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems, Setting
from rankrls._errors import InputError
from rankrls._queries import label_varies, query_layout
from rankrls._rows import take_items
from rankrls.kernels import Kernel
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
from rankrls.numerics.pairs import held_out_margins, leave_pair_out, why_not_pairs
from rankrls.numerics.preferred_pairs import hold_out_preferred_pairs, kernel_features
from rankrls.selection.curves import Curve, evaluated
from rankrls.selection.least_squares import check_positive

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Part:
    """What a model is fitted on and evaluated with.

    Attributes
    ----------
    train : ndarray of int or None
        Units to fit; None for all.
    watched : ndarray of int, or matrix
        Whose scores are evaluated: numbers of items, or other items.
    data : Comparisons
        What is known of these.
    """

    train: Rows | None
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
    parts : callable
        Gives the parts that are fitted and evaluated.
    exact : callable, optional
        Gives the curve of ``(data, candidate, problem, values)`` in another way than by a fit of each part.
    extends : bool
        Whether more values of a path cost next to nothing: an automatic grid then goes on at its ends.
    holds_whole : bool
        Whether whole queries, or groups of preferences, are held out: problems may have a shortcut for that,
        ``held_out_curve(measure, folds, values)``.
    folds : list of ndarray of int, optional
        Numbers of those that are held out together; each alone by default.
    """

    measure: Measure
    description: str
    parts: Callable[[], list[Part]] = list
    exact: Callable[..., Curve] | None = None
    extends: bool = True
    holds_whole: bool = False
    folds: list[Rows] | None = None

    @property
    def greater_is_better(self) -> bool:
        return self.measure.greater_is_better

    def curve(self, data: Comparisons, candidate: Any, problem: Any, values: Array) -> Curve:
        """Evaluate every value of the problem's parameter."""
        if self.holds_whole and hasattr(problem, "held_out_curve"):
            found: Curve = problem.held_out_curve(self.measure, self.folds, values)
            return found
        if self.exact is not None:
            return self.exact(data, candidate, problem, values)
        parts = self.parts()
        scores = (scores_of_part(data, candidate, problem, part, values) for part in parts)
        curves = [evaluated(self.measure, part.data, each) for part, each in zip(parts, scores, strict=True)]
        if parts[0].train is None:
            return curves[0]
        each_query = np.vstack([curve.values for curve in curves if curve.values is not None])
        return Curve(*mean_and_error(each_query), each_query)


def scores_of_part(data: Comparisons, candidate: Any, problem: Any, part: Part, values: Array) -> Array:
    """Scores of the watched items by the models of a part, (items, values, targets)."""
    if part.train is None:
        return np.asarray(problem.path(values).scores(part.watched))
    X, inner = take_items(data.X, part.watched), data.take(part.train, square=candidate.square)
    if candidate.square and isinstance(data, LabelledItems):
        X = X[:, part.train]
    return np.asarray(candidate.problem(inner).path(values).scores(X))


def validation_plan(measure: Measure, items: Comparisons, description: str) -> Plan:
    """Evaluate with validation data."""
    return Plan(measure, description, lambda: [Part(None, items.X, items)])


def refit_plan(measure: Measure, data: Comparisons, folds: list[tuple[Rows, Rows]], description: str) -> Plan:
    """Fit the training units of each fold, and evaluate with the others."""
    return Plan(measure, description, lambda: [Part(train, *data.watch(test)) for train, test in folds], extends=False)


def block_plan(measure: Measure, data: Comparisons, blocks: list[Any], description: str, *, each: bool = False) -> Plan:
    """Hold out units in blocks, each at most once: whole queries, or preferences.

    ``each`` says that the blocks are the single queries (groups of preferences), in their order.
    """
    everything = np.arange(data.n_units)

    def parts() -> list[Part]:
        held = [everything[block] for block in blocks]
        return [Part(np.delete(everything, units), *data.watch(units)) for units in held]

    def curve(data: Any, candidate: Any, problem: Any, values: Array) -> Curve:
        if hasattr(problem, "held_out"):  # its own shortcut
            scores = problem.held_out(blocks, values)
        else:
            scores = np.full((data.n_rows, len(values), data.Y.shape[1]), np.nan)
            for part in parts():
                scores[part.watched] = scores_of_part(data, candidate, problem, part, values)
        rows = np.sort(np.concatenate([everything[block] for block in blocks]))
        found = evaluated(measure, data.take(rows, items=False), scores[rows])
        if hasattr(problem, "unresolved"):
            found.mean[problem.unresolved(values)] = np.nan
        each_query = np.full((data.n_queries, len(values)), np.nan)
        each_query[query_layout(data.layout.codes[rows], len(rows)).ids] = found.values
        return Curve(found.mean, found.error, each_query, scores=lambda k: scores[:, k])

    folds, exact = None if each else block_queries(data, blocks), None if isinstance(data, PreferredItems) else curve
    return Plan(measure, description, parts, exact, holds_whole=True, folds=folds)


def block_queries(data: Comparisons, blocks: list[Any]) -> list[Rows]:
    """The queries (groups of preferences) of each block."""
    codes = data.graph.groups if isinstance(data, PreferredItems) else data.layout.codes
    return [np.asarray(block) if codes is None else np.unique(codes[block]) for block in blocks]


def pair_plan(measure: Measure, data: Comparisons, settings: Sequence[Setting], *, constrained: bool) -> Plan:
    """Hold out every pair of items of a ranking; or the two items of every preference, with all that is known of them.

    Raises
    ------
    InputError
        If it is not exact for one of the graphs, or if a pair may leave nothing to fit; and by a measure of something
        else than pairs.
    """
    if not is_concordance(measure):
        raise InputError(
            "cv=leave_pair_out needs a measure of pairs: scoring=disagreement or scoring=pair_accuracy.",
            parameter="scoring",
        )
    check_pairs_can_be_held_out(data, settings, constrained=constrained, parameter="cv")
    if isinstance(data, PreferredItems):
        what = f"{np.count_nonzero(data.graph.strength)} comparable pairs"
    elif data.n_queries == 1:
        what = f"{data.n_rows} items"
    else:
        what = f"{ordered_pairs(data.Y[:, 0], data.layout.codes)} pairs"
    return exact_pair_plan(measure, f"leave-pair-out over {what}")


def exact_pair_plan(measure: Measure, description: str) -> Plan:
    """Hold out pairs, after the checks that this is exact."""

    def curve(data: Comparisons, candidate: Any, problem: Any, values: Array) -> Curve:
        found = concordance(data, candidate, problem, values)
        if measure.greater_is_better:
            return Curve(found.score, found.error, interval=found.interval)
        return Curve(1.0 - found.score, found.error, interval=1.0 - found.interval[::-1])

    return Plan(measure, description, exact=curve)


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
    pairs: tuple[Rows, Rows] | None = None,
    confidence: float = CONFIDENCE,
) -> Concordance:
    """Hold out every pair of items with different labels, or with a preference; or given ones of these."""
    check_positive(values)
    if isinstance(data, LabelledItems):
        (form,) = problem.forms
        solved, balance = (form.smoother, form.graph, form.features, values), candidate.setting.balance
        y, codes, weight = data.Y[:, 0], data.layout.codes, data.weights
        if pairs is None:
            score, error = leave_pair_out(*solved, balance)
            ends = concordance_interval(score, error, disjoint_pairs(y, codes), confidence)
            return Concordance(score, error, np.stack(ends), ordered_pairs(y, codes), None)
        i, j = pairs
        margins, order = held_out_margins(*solved, i, j, balance), np.sign(y[i] - y[j])
        weight = None if weight is None else weight[i] * weight[j]
    else:
        table, (graph,) = data.graph, data.numeric_graphs(candidate.setting)
        rows = np.flatnonzero(table.strength)
        i, j, order, weight = table.winners[rows], table.losers[rows], np.sign(table.strength[rows]), table.weight[rows]
        if pairs is not None:
            known, (i, j), weight = table.winners * table.n_items + table.losers, pairs, None
            order = np.where(np.isin(i * table.n_items + j, known), 1.0, -1.0)
        margins = hold_out_preferred_pairs(preference_features(candidate.kernel, data.X), graph, values, i, j)
    score, error = judged_pairs(margins, order, i, j, data.n_rows, weight)
    ends = concordance_interval(score, error, greedy_matching(i, j), confidence)
    return Concordance(score, error, np.stack(ends), len(i), None if pairs is None else margins)


def preference_features(kernel: Kernel, X: Any) -> Array:
    """Features in which the functions of a kernel are linear, (items, d); offsets are taken off."""
    if not kernel.is_linear or X.shape[1] > X.shape[0]:
        return kernel_features(kernel(X))
    Z = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    return Z - Z.mean(axis=0)


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
    reasons = (why_not_pairs(graph, balance=setting.balance, weighted=weighted) for graph, setting in graphs)
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
    y = data.Y[data.layout.codes == comparable[0], 0]
    values, counts = np.unique(y, return_counts=True)
    common = values[np.argmax(counts)]
    others = y[y != common]
    if len(others) == 1 or (len(others) == 2 and others[0] != others[1]):
        raise InputError(
            f"All labels but {len(others)} are {common:g}: holding out a pair leaves only equal labels. "
            "Use other data or folds (cv).",
            parameter="y",
        )
