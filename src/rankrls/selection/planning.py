"""From ``cv`` to a plan: what is held out of labelled items, and of preferences."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from rankrls._arrays import host_only
from rankrls._comparisons import LabelledItems, PreferredItems, Setting
from rankrls._curves import judged_queries
from rankrls._errors import InputError
from rankrls._queries import label_varies
from rankrls.metrics import Measure
from rankrls.numerics.concordance import ordered_pairs
from rankrls.selection.folds import (
    FEW_FOLDS,
    INSTEAD,
    REPETITIONS,
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
from rankrls.selection.leave_pair_out import (
    check_preferred_pairs,
    check_query_pairs,
    is_concordance,
    why_pairs_cannot_be_held_out,
)
from rankrls.selection.plans import (
    ItemFoldsPlan,
    Plan,
    PreferredPairsPlan,
    QueryPairsPlan,
    RowFoldsPlan,
    UnitsPlan,
)

MAX_PAIR_HOLDOUT = 5000
"""With ``cv=None`` all pairs of one ranking are held out, up to this number of items."""


def exact_plan(
    cv: Any, measure: Measure, data: LabelledItems, settings: Sequence[Setting], *, constrained: bool = False
) -> Plan:
    """The plan for ``cv``, for problems that can hold out without refitting.

    None is leave-query-out. For a single ranking it is leave-pair-out, or folds of rows where that needs refits.
    """
    q = data.n_queries
    m = data.n_rows
    if _is_leave_pair_out(cv):
        host_only(data.X, "Leave-pair-out")
        _check_concordance(measure)
        check_query_pairs(data, settings, constrained=constrained, parameter="cv")
        pairs = f"{m} items" if q == 1 else f"{ordered_pairs(data.Y[:, 0], data.layout.codes)} pairs"
        return QueryPairsPlan(measure=measure, description=f"leave-pair-out over {pairs}")
    beta = settings[0].regression_weight
    if cv is not None:
        return folds_plan(cv, measure, data, beta)
    if q > 1:
        comparable = int(label_varies(data.Y, data.layout).sum())
        check_two_vary(comparable, q, "Give validation data (X_val) or folds of your own (cv).")
        return UnitsPlan(
            measure=measure, description=f"leave-query-out over {q} queries", blocks=query_blocks(data.layout)
        )
    refused = m > MAX_PAIR_HOLDOUT or why_pairs_cannot_be_held_out(data, settings, constrained=constrained)
    if is_concordance(measure) and not refused:
        host_only(data.X, "Leave-pair-out, the default for one ranking (cv=5 avoids it),")
        return QueryPairsPlan(measure=measure, description=f"leave-pair-out over {m} items")
    return few_folds(None, measure, data, beta)


def _is_leave_pair_out(cv: Any) -> bool:
    return isinstance(cv, str) and cv == "leave_pair_out"


def _check_concordance(measure: Measure) -> None:
    if not is_concordance(measure):
        raise InputError(
            "cv=leave_pair_out needs a measure of pairs: scoring=disagreement or scoring=pair_accuracy.",
            parameter="scoring",
        )


def few_folds(cv: Any, measure: Measure, data: LabelledItems, regression_weight: float = 0.0) -> Plan:
    """The plan for ``cv``; None is a few folds of queries, or of the rows of one ranking."""
    units = data.n_queries if data.n_queries > 1 else data.n_rows
    return folds_plan(min(FEW_FOLDS, units) if cv is None else cv, measure, data, regression_weight)


def one_fold_plan(cv: Any, measure: Measure, data: LabelledItems, rng: Any, regression_weight: float = 0.0) -> Plan:
    """The plan for ``cv``; None holds out a fifth of the queries, or of the rows of one ranking."""
    if cv is not None:
        return few_folds(cv, measure, data, regression_weight)
    if data.n_queries == 1:
        test = fifth_of_one_ranking(data, rng)
        train = np.setdiff1d(np.arange(data.n_rows), test)
        check_folds_leave_something(data, [test], regression_weight, remedy=INSTEAD, parameter="cv")
        description = f"{len(test)} of {data.n_rows} rows held out"
        return RowFoldsPlan(measure=measure, description=description, folds=[(train, test)], mutual=False)
    by_id = data.layout.by_id
    judged = judged_queries(measure, data.Y[:, 0], data.layout) & label_varies(data.Y, data.layout)
    usable = by_id[judged[by_id]]
    check_two_vary(len(usable), data.n_queries, INSTEAD)
    held = rng.permutation(usable)[: max(1, len(usable) // FEW_FOLDS)]
    block = np.flatnonzero(np.isin(data.layout.codes, held))
    return UnitsPlan.of_blocks(measure, data, [block], f"{len(held)} of {data.n_queries} queries held out")


def folds_plan(cv: Any, measure: Measure, data: LabelledItems, regression_weight: float = 0.0) -> Plan:
    """A number of folds, a splitter of scikit-learn, or (train, test) lists of rows."""
    all_rows = np.arange(data.n_rows)
    several = data.n_queries > 1
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        codes = data.layout.codes if several else all_rows
        by_id = data.layout.by_id if several else all_rows
        what = "queries" if several else "rows"
        tests = [np.flatnonzero(np.isin(codes, by_id[test])) for test in numbered_folds(cv, len(by_id), what)]
        splits = [(np.delete(all_rows, test), test) for test in tests]
        whole = several
        description = f"{cv} folds of {len(by_id)} {what}"
    else:
        splits, name = given_folds(cv, data)
        whole = several and whole_queries(splits, data.layout)
        description = f"{len(splits)} folds of {'whole queries' if whole else 'rows'} ({name})"
    held = [test if whole else np.delete(all_rows, train) for train, test in splits]
    remedy = "Give other folds (cv), or validation data (X_val)."
    check_folds_leave_something(data, held, regression_weight, remedy=remedy, parameter="cv")
    if whole:
        return UnitsPlan.of_blocks(measure, data, held, description)
    return RowFoldsPlan(measure=measure, description=description, folds=splits, mutual=len(splits) > 1)


def exact_preference_plan(cv: Any, measure: Measure, data: PreferredItems, *, constrained: bool = False) -> Plan:
    """The plan for ``cv`` and what will be new, for problems that can hold out without refitting."""
    if not _is_leave_pair_out(cv):
        return preference_plan(cv, measure, data)
    host_only(data.X, "Leave-pair-out")
    _check_concordance(measure)
    check_preferred_pairs(data, constrained=constrained, parameter="cv")
    pairs = f"{np.count_nonzero(data.preferences.strength)} comparable pairs: new items"
    return PreferredPairsPlan(measure=measure, description=f"leave-pair-out over {pairs}")


def few_preference_folds(cv: Any, measure: Measure, data: PreferredItems) -> Plan:
    """The plan for ``cv``; None is a few folds of what will be new."""
    if cv is None and data.new != "items":
        cv = min(FEW_FOLDS, data.preferences.n_groups)
    return preference_plan(cv, measure, data, repetitions=1)


def one_preference_fold(cv: Any, measure: Measure, data: PreferredItems, rng: Any) -> Plan:
    """The plan for ``cv``; None holds out a fifth of what will be new."""
    if cv is not None:
        return few_preference_folds(cv, measure, data)
    _check_measure(measure)
    if data.new == "items":
        folds, description = item_folds(data, None, [rng.randint(2**31)])
        return ItemFoldsPlan(measure=measure, description=f"1 of {description}", folds=folds[:1], mutual=False)
    total = len(preference_blocks(data)[0])
    table = data.preferences
    codes = np.arange(total) if table.groups is None else table.groups
    usable = np.flatnonzero(np.bincount(codes, table.strength != 0.0))
    held = rng.permutation(usable)[: max(1, len(usable) // FEW_FOLDS)]
    block = np.flatnonzero(np.isin(codes, held))
    description = f"{len(held)} of {total} {named(data)} held out: {what_is_new(data)}"
    return UnitsPlan.of_blocks(measure, data, [block], description)


def preference_plan(cv: Any, measure: Measure, data: PreferredItems, repetitions: int = REPETITIONS) -> Plan:
    """Leave out each preference, group or component in turn, or folds of them; or folds of items."""
    _check_measure(measure)
    if data.new == "items":
        folds, description = item_folds(data, cv, range(repetitions))
        return ItemFoldsPlan(measure=measure, description=description, folds=folds, mutual=len(folds) > 1)
    blocks, description = preference_blocks(data, cv)
    if cv is None:
        return UnitsPlan(measure=measure, description=description, blocks=blocks)
    return UnitsPlan.of_blocks(measure, data, blocks, description)


def _check_measure(measure: Measure) -> None:
    if str(measure) not in ("disagreement", "pair_accuracy"):
        raise InputError(
            f"Preferences are evaluated by 'disagreement' or 'pair_accuracy'; got scoring={str(measure)!r}, "
            "which needs labels.",
            parameter="scoring",
        )
