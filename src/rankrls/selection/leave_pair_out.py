"""Leave-pair-out: pairs of items held out in turn, with all of their comparisons, without refitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rankrls._comparisons import Data, LabelledItems, PreferredItems, Setting
from rankrls._errors import InputError
from rankrls._queries import label_varies
from rankrls._typing import Array, Index
from rankrls.metrics import Measure
from rankrls.metrics._measure import mean_of_judged
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
from rankrls.selection.least_squares import LeastSquaresProblem, check_positive


class Concordance(NamedTuple):
    """Share of held-out pairs in the correct order, (values,), with its error and interval, and the number of pairs.

    ``margins`` are the held-out score differences (pairs, values) of given pairs.
    """

    score: Array
    error: Array
    interval: Array
    n_pairs: int
    margins: Array | None


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
        shares, error = held_out_concordance(*held_out, balance)
        score = mean_of_judged(shares)
        disjoint = min(disjoint_pairs(labels, codes) for labels in data.Y.T)
        ends = concordance_interval(score, error, disjoint, confidence)
        return Concordance(score, error, np.stack(ends), sum(ordered_pairs(labels, codes) for labels in data.Y.T), None)
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
    score, error = judged_pairs(margins, order, i, j, n_items, weight)
    ends = concordance_interval(score, error, greedy_matching(i, j), confidence)
    return Concordance(score, error, np.stack(ends), len(i), None)


def is_concordance(measure: Measure) -> bool:
    """Whether the measure is that of leave-pair-out: pairs with different labels, with predicted ties counting half."""
    return measure.name in ("disagreement", "pair_accuracy") and measure.tied_labels in (None, "ignore")


def why_pairs_cannot_be_held_out(data: LabelledItems, settings: Sequence[Setting], *, constrained: bool) -> str | None:
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


def check_query_pairs(data: LabelledItems, settings: Sequence[Setting], *, constrained: bool, parameter: str) -> None:
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
