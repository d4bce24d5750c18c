"""What ``cv`` stands for: which plan, and which rows or preferences are held out together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._arrays import host_only
from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems, Setting
from rankrls._errors import InputError
from rankrls._preferences import PreferenceTable
from rankrls._queries import QueryLayout, label_varies, query_layout
from rankrls.metrics import Measure
from rankrls.selection.curves import judged_queries
from rankrls.selection.plans import (
    Plan,
    block_plan,
    exact_pair_plan,
    is_concordance,
    pair_plan,
    refit_plan,
    why_pairs_cannot_be_held_out,
)

Rows = NDArray[np.intp]
MAX_PAIR_HOLDOUT = 5000
"""Items of one ranking up to which all pairs are held out."""
FEW_FOLDS = 5
"""Folds that are fitted anew, if nobody says how many; one in as many is held out for solvers that iterate."""
_INSTEAD = "Give validation data (X_val), folds of your own (cv), or one alpha with selection='tikhonov'."


def exact_plan(
    cv: Any, measure: Measure, data: Comparisons, settings: Sequence[Setting], *, constrained: bool = False
) -> Plan:
    """What ``cv`` says, for problems that can hold out without refitting.

    None is leave-query-out; of a single ranking leave-pair-out, or folds of rows if that has no shortcut; of
    preferences each one or group.
    """
    if isinstance(cv, str) and cv == "leave_pair_out":
        host_only(data.X, "Leave-pair-out")
        return pair_plan(measure, data, settings, constrained=constrained)
    if isinstance(data, PreferredItems):
        return preference_plan(measure, data, cv)
    q, m, beta = data.n_queries, data.n_rows, settings[0].regression_weight
    if cv is not None:
        return folds_plan(cv, measure, data, beta)
    if q > 1:
        comparable = int(label_varies(data.Y, data.layout).sum())
        check_two_vary(comparable, q, "Give validation data (X_val) or folds of your own (cv).")
        return block_plan(measure, data, query_blocks(data.layout), f"leave-query-out over {q} queries", each=True)
    refused = m > MAX_PAIR_HOLDOUT or why_pairs_cannot_be_held_out(data, settings, constrained=constrained)
    if is_concordance(measure) and not refused:
        host_only(data.X, "Leave-pair-out, which one ranking has by default (cv=5 has not),")
        return exact_pair_plan(measure, f"leave-pair-out over {m} items")
    return folds_plan(min(FEW_FOLDS, m), measure, data, beta)


def few_folds(cv: Any, measure: Measure, data: Comparisons, regression_weight: float = 0.0) -> Plan:
    """What ``cv`` says; with None a few folds of queries, of the rows of one ranking, or of (groups of) preferences."""
    if isinstance(data, PreferredItems):
        return preference_plan(measure, data, min(FEW_FOLDS, data.graph.n_groups) if cv is None else cv)
    units = data.n_queries if data.n_queries > 1 else data.n_rows
    return folds_plan(min(FEW_FOLDS, units) if cv is None else cv, measure, data, regression_weight)


def a_fifth(cv: Any, measure: Measure, data: Comparisons, rng: Any, regression_weight: float = 0.0) -> Plan:
    """What ``cv`` says; with None a fifth held out once: of the queries, of the rows of one ranking, of preferences."""
    if cv is not None:
        return few_folds(cv, measure, data, regression_weight)
    if isinstance(data, PreferredItems):
        return _fifth_of_preferences(measure, data, rng)
    if data.n_queries == 1:
        test = _fifth_of_one_ranking(data, rng)
        train = np.setdiff1d(np.arange(data.n_rows), test)
        return refit_plan(measure, data, [(train, test)], f"{len(test)} of {data.n_rows} rows held out")
    q, layout = data.n_queries, data.layout
    judged = judged_queries(measure, data.Y[:, 0], layout) & label_varies(data.Y, layout)
    usable = layout.by_id[judged[layout.by_id]]
    if len(usable) < 2:
        raise InputError(
            f"Holding out queries needs two that hold different labels; only {len(usable)} of {q} does. {_INSTEAD}",
            parameter="cv",
        )
    held = rng.permutation(usable)[: max(1, len(usable) // FEW_FOLDS)]
    block = np.flatnonzero(np.isin(layout.codes, held))
    return block_plan(measure, data, [block], f"{len(held)} of {q} queries held out")


def _fifth_of_one_ranking(data: LabelledItems, rng: Any) -> Rows:
    """One of every five rows in the order of their labels, so that what is held out has labels like the rest."""
    m = data.n_rows
    order = np.lexsort((rng.permutation(m), data.Y[:, 0]))
    runs = [order[lo : lo + FEW_FOLDS] for lo in range(0, m, FEW_FOLDS)]
    if len(runs) > 1 and len(runs[-1]) < FEW_FOLDS:
        runs.pop()
    held = np.array([run[rng.randint(len(run))] for run in runs])
    if (data.Y[held] == data.Y[held[:1]]).all():  # few rows: a lowest and a highest label then
        held[0], held[-1] = order[0], order[-1]
    held.sort()
    rest = np.setdiff1d(np.arange(m), held)
    if not all((data.Y[rows] != data.Y[rows[:1]]).any() for rows in (held, rest)):
        raise InputError(
            f"Too few rows to hold out a fifth of ({m} samples): the training part and the held-out part "
            f"both need two different labels. {_INSTEAD}",
            parameter="cv",
        )
    return held


def _fifth_of_preferences(measure: Measure, data: PreferredItems, rng: Any) -> Plan:
    check_measure_of_preferences(measure)
    table, what = data.graph, _named(data)
    n = table.n_groups
    if n < 2:
        raise InputError(f"Holding out {what} needs at least two; there is {n}.")
    check_preferences_left(table, table.blocks(), "group")
    groups = np.arange(n) if table.groups is None else table.groups
    orders = np.bincount(groups, table.strength != 0.0, n) > 0.0
    held = rng.permutation(np.flatnonzero(orders))[: max(1, int(orders.sum()) // FEW_FOLDS)]
    block = np.flatnonzero(np.isin(groups, held))
    return block_plan(measure, data, [block], f"{len(held)} of {n} {what} held out")


def query_blocks(layout: QueryLayout) -> list[Any]:
    """Rows of each query."""
    return [layout.rows(q) for q in range(layout.n_queries)]


def group_blocks(data: LabelledItems, groups: Any) -> list[Any]:
    """Rows of each query, or of each group of whole queries: at least two."""
    layout = data.layout
    if groups is not None:
        layout = query_layout(group_codes(data, groups), data.n_rows)
        first = data.layout.order[data.layout.starts[:-1]]
        split = layout.codes[first][data.layout.codes] != layout.codes
        if split.any():
            row = int(np.argmax(split))
            raise InputError(
                f"Query {data.layout.ids[data.layout.codes[[row]]].tolist()[0]!r} lies in two groups; only whole "
                "queries can be held out: its items are compared with each other.",
                parameter="groups",
                row=int(data.given_numbers(np.array([row]))[0]),
            )
    if layout.n_queries < 2:
        what = "query" if groups is None else "group of queries"
        raise InputError(f"There is a single {what}: holding it out leaves nothing to learn from.")
    return query_blocks(layout)


def group_codes(data: LabelledItems, groups: Any) -> Rows:
    """Group number of each row that is left."""
    rows = query_layout(groups, data.n_given, name="groups").codes
    return rows if data.kept is None else rows[data.kept]


def check_two_vary(varied: int, queries: int, remedy: str) -> None:
    """Refuse leave-query-out where no query with different labels is left without another one."""
    if varied < 2:
        problem = f"Leave-query-out needs two queries that hold different labels; only {varied} of {queries} does."
        raise InputError(f"{problem} {remedy}", parameter="cv")


def check_folds_leave_something(
    data: LabelledItems, held_out: Iterable[Any], regression_weight: float, *, remedy: str, parameter: str
) -> None:
    """Refuse held-out rows without which no two rows of a query have different labels, in any of the targets.

    Of what would be learned from the rest only rounding noise is left, and nothing is left to evaluate in other folds.
    """
    if regression_weight > 0.0:
        return
    codes, everything = data.layout.codes, np.arange(data.n_rows)
    varies = [label_varies(labels, data.layout) for labels in data.Y.T]
    first = [int(np.argmax(queries)) for queries in varies]
    for block in held_out:
        rows = everything[block]
        held = np.unique(codes[rows])
        for t in range(len(first)):
            if not varies[t][first[t]] or first[t] not in held:
                continue  # nothing to take, or the first query with two labels is left
            rest = np.delete(everything, rows)
            if label_varies(data.Y[rest, t], query_layout(codes[rest], len(rest))).any():
                continue
            one, several = data.n_queries == 1, len(first) > 1
            names = ", ".join(repr(i) for i in data.layout.ids[held][:3].tolist())
            without, what = (f"{len(rows)} held-out rows", "pair of rows") if one else (names, "query")
            target = f" in target {t}" if several else ""
            raise InputError(
                f"Without {without} no {what} with two different labels{target} is left to learn from. {remedy}",
                parameter=parameter,
                column=t if several else None,
            )


def folds_plan(cv: Any, measure: Measure, data: LabelledItems, regression_weight: float = 0.0) -> Plan:
    """A number of folds, a splitter of scikit-learn, or (train, test) lists of rows."""
    q, rows = data.n_queries, np.arange(data.n_rows)
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        splits, description = _numbered_folds(int(cv), q, len(rows))
        whole = q > 1
        codes, by_id = data.layout.codes, data.layout.by_id
        held = [np.flatnonzero(np.isin(codes, by_id[test])) if whole else test for _, test in splits]
    else:
        splits, description = _given_folds(cv, data)
        whole = _whole_queries(splits, data.layout)
        held = [test if whole else np.delete(rows, train) for train, test in splits]
    remedy = "Give other folds (cv), or validation data (X_val)."
    check_folds_leave_something(data, held, regression_weight, remedy=remedy, parameter="cv")
    if not whole:
        return refit_plan(measure, data, splits, description)
    return block_plan(measure, data, held, description.replace("folds of rows", "folds of whole queries"))


def shuffled_folds(n: int, k: int) -> Iterator[tuple[Rows, Rows]]:
    """Splits of ``range(n)`` into k folds: what trains and what tests, always the same."""
    from sklearn.model_selection import KFold

    return KFold(k, shuffle=True, random_state=0).split(np.empty(n))


def _numbered_folds(k: int, q: int, m: int) -> tuple[list[tuple[Rows, Rows]], str]:
    """Folds of queries, or of the rows of one ranking."""
    n, what = (m, "rows") if q == 1 else (q, "queries")
    if k < 2:
        raise InputError(f"cv must be at least 2 folds; got {k}.", parameter="cv")
    if k > n:
        more = "" if q == 1 else " Leave-query-out needs no number."
        raise InputError(f"cv={k} folds need {k} {what}; there are {n}.{more}", parameter="cv")
    return list(shuffled_folds(n, k)), f"{k} folds of {n} {what}"


def _given_folds(cv: Any, data: LabelledItems) -> tuple[list[tuple[Rows, Rows]], str]:
    m = data.n_given
    if hasattr(cv, "split") and not isinstance(cv, str):
        splits = cv.split(np.empty((m, 1)), *_labels_and_groups(cv, data, m))
        name = type(cv).__name__
    elif hasattr(cv, "__iter__") and not isinstance(cv, str) and getattr(cv, "ndim", 1) > 0:
        splits, name = cv, "given folds"
    else:
        raise InputError(
            f"cv must be None, a number of folds, a splitter or (train, test) row lists; got {cv!r}.", parameter="cv"
        )
    folds = [_checked_fold(number, split, m) for number, split in enumerate(splits)]
    if not folds:
        raise InputError("cv gave no folds.", parameter="cv")
    if data.kept is not None:  # rows of weight zero are gone
        number_left, kept = np.cumsum(data.kept) - 1, data.kept
        folds = [(number_left[train[kept[train]]], number_left[test[kept[test]]]) for train, test in folds]
        folds = [fold for fold in folds if len(fold[0]) and len(fold[1])]
        if not folds:
            raise InputError("No fold of cv has both training and test rows of positive weight.", parameter="cv")
    return folds, f"{len(folds)} folds of rows ({name})"


def _checked_fold(number: int, split: Any, m: int) -> tuple[Rows, Rows]:
    """Row numbers to train and to test with."""
    try:
        train, test = (np.asarray(rows) for rows in split)
        readable = all(rows.ndim == 1 and (rows.dtype.kind in "iu" or not len(rows)) for rows in (train, test))
    except (TypeError, ValueError):
        readable = False
    if not readable:
        raise InputError(
            "cv must give pairs of lists of row numbers, (train, test); masks are not row numbers.", parameter="cv"
        )
    for name, rows in (("training", train), ("test", test)):
        if not len(rows):
            raise InputError(f"Fold {number} of cv has no {name} rows.", parameter="cv")
        outside = rows[(rows < 0) | (rows >= m)]
        if len(outside):
            problem = f"Fold {number} of cv names row {outside[0]}, but the rows are 0 to {m - 1}."
            raise InputError(problem, parameter="cv", row=int(outside[0]))
    if len(np.intersect1d(train, test)):
        raise InputError(f"Fold {number} of cv has rows that are both for training and for testing.", parameter="cv")
    return train.astype(np.intp), test.astype(np.intp)


def _labels_and_groups(cv: Any, data: LabelledItems, m: int) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """What a splitter is given besides the number of rows; rows of weight zero get a label and a query of others."""
    layout = data.layout
    rows = slice(None) if data.kept is None else data.kept
    y = np.zeros(m)
    y[rows] = data.Y[:, 0]
    routing = getattr(cv, "get_metadata_routing", None)
    if not data.has_qid or (routing is not None and not routing().consumes("split", ["groups"])):
        return y, None
    # The ids themselves if they can be sorted: the folds are then those that the splitter makes of qid elsewhere.
    ids = np.arange(layout.n_queries) if layout.ids.dtype.kind == "O" else layout.ids
    groups = np.full(m, ids[0])
    groups[rows] = ids[layout.codes]
    return y, groups


def _whole_queries(folds: list[tuple[Rows, Rows]], layout: QueryLayout) -> bool:
    """Whether the folds hold out whole queries, each at most once, and train on everything else."""
    if layout.n_queries < 2:
        return False
    everything, held = np.arange(layout.n_rows), np.zeros(layout.n_rows, dtype=np.intp)
    for train, test in folds:
        np.add.at(held, test, 1)
        inside = np.bincount(layout.codes[test], minlength=layout.n_queries)
        if not ((inside == 0) | (inside == layout.counts)).all():
            return False
        if not np.array_equal(np.sort(np.concatenate((train, test))), everything):
            return False
    return bool(held.max() <= 1)


def preference_plan(measure: Measure, data: PreferredItems, cv: Any) -> Plan:
    """Every preference or group left out in its turn, or folds of them."""
    check_measure_of_preferences(measure)
    return block_plan(measure, data, *preference_blocks(data, cv), each=cv is None)


def preference_blocks(data: PreferredItems, cv: Any = None) -> tuple[list[Rows], str]:
    """Preferences that are held out together, and how to say it."""
    what, blocks = _named(data), data.graph.blocks()
    if len(blocks) < 2:
        raise InputError(f"Leaving out {what} needs at least two; there is {len(blocks)}.")
    if cv is None:
        check_preferences_left(data.graph, blocks, "group")
        return blocks, f"leave-one-out over {len(blocks)} {what}"
    if not isinstance(cv, Integral) or isinstance(cv, bool):
        raise InputError(
            f"For preferences cv is None or a number of folds; got {cv!r}. Use groups for other folds.", parameter="cv"
        )
    k = int(cv)
    if not 2 <= k <= len(blocks):
        raise InputError(f"cv={k} folds need from 2 to {len(blocks)} {what}.", parameter="cv")
    folds = [np.concatenate([blocks[b] for b in test]) for _, test in shuffled_folds(len(blocks), k)]
    check_preferences_left(data.graph, folds, "fold")
    return folds, f"{k} folds of {len(blocks)} {what}"


def check_preferences_left(table: PreferenceTable, blocks: list[Any], what: str) -> None:
    """Refuse blocks of preferences of which one alone holds all that order anything."""
    ordering = (block for block in blocks if table.strength[block].any())
    if len(list(islice(ordering, 2))) < 2:
        raise InputError(
            f"Only one {what} of preferences has a strength other than 0: without it there is nothing to learn from."
            f"{' Give other folds (cv), or other groups.' if what == 'fold' else ''}",
            parameter="cv" if what == "fold" else "strength",
        )


def check_measure_of_preferences(measure: Measure) -> None:
    if str(measure) not in ("disagreement", "pair_accuracy"):
        raise InputError(
            f"Preferences are evaluated by 'disagreement' or 'pair_accuracy'; got scoring={str(measure)!r}, "
            "which needs labels.",
            parameter="scoring",
        )


def _named(data: PreferredItems) -> str:
    return "preferences" if data.graph.groups is None else "groups of preferences"
