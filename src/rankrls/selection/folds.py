"""From ``cv`` to a plan: which rows or preferences are held out together."""

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
"""With ``cv=None`` all pairs of one ranking are held out, up to this number of items."""
FEW_FOLDS = 5
"""The default number of folds that need refits; iterative solvers hold out one fold of so many."""
_INSTEAD = "Give validation data (X_val), folds of your own (cv), or one alpha with selection='tikhonov'."


def exact_plan(
    cv: Any, measure: Measure, data: Comparisons, settings: Sequence[Setting], *, constrained: bool = False
) -> Plan:
    """The plan for ``cv``, for problems that can hold out without refitting.

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
        host_only(data.X, "Leave-pair-out, the default for one ranking (cv=5 avoids it),")
        return exact_pair_plan(measure, f"leave-pair-out over {m} items")
    return folds_plan(min(FEW_FOLDS, m), measure, data, beta)


def few_folds(cv: Any, measure: Measure, data: Comparisons, regression_weight: float = 0.0) -> Plan:
    """The plan for ``cv``; None is a few folds of queries, of the rows of one ranking, or of preferences."""
    if isinstance(data, PreferredItems):
        return preference_plan(measure, data, min(FEW_FOLDS, data.graph.n_groups) if cv is None else cv)
    units = data.n_queries if data.n_queries > 1 else data.n_rows
    return folds_plan(min(FEW_FOLDS, units) if cv is None else cv, measure, data, regression_weight)


def a_fifth(cv: Any, measure: Measure, data: Comparisons, rng: Any, regression_weight: float = 0.0) -> Plan:
    """The plan for ``cv``; None holds out a fifth of the queries, of the rows of one ranking, or of the preferences."""
    if cv is not None:
        return few_folds(cv, measure, data, regression_weight)
    if isinstance(data, PreferredItems):
        check_measure_of_preferences(measure)
        total, what = len(preference_blocks(data)[0]), _named(data)
        codes = np.arange(total) if data.graph.groups is None else data.graph.groups
        usable = np.flatnonzero(np.bincount(codes, data.graph.strength != 0.0))
    elif data.n_queries == 1:
        test = _fifth_of_one_ranking(data, rng)
        train = np.setdiff1d(np.arange(data.n_rows), test)
        return refit_plan(measure, data, [(train, test)], f"{len(test)} of {data.n_rows} rows held out")
    else:
        total, what, codes, by_id = data.n_queries, "queries", data.layout.codes, data.layout.by_id
        judged = judged_queries(measure, data.Y[:, 0], data.layout) & label_varies(data.Y, data.layout)
        usable = by_id[judged[by_id]]
        if len(usable) < 2:
            problem = f"Holding out queries needs two that hold different labels; only {len(usable)} of {total} does."
            raise InputError(f"{problem} {_INSTEAD}", parameter="cv")
    held = rng.permutation(usable)[: max(1, len(usable) // FEW_FOLDS)]
    block = np.flatnonzero(np.isin(codes, held))
    return block_plan(measure, data, [block], f"{len(held)} of {total} {what} held out")


def _fifth_of_one_ranking(data: LabelledItems, rng: Any) -> Rows:
    """One of every five rows in the order of their labels, so that held-out rows have labels like the rest."""
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


def query_blocks(layout: QueryLayout) -> list[Any]:
    """Rows of each query."""
    return [layout.rows(q) for q in range(layout.n_queries)]


def group_blocks(data: LabelledItems, groups: Any) -> list[Any]:
    """Rows of each query, or of each group of whole queries; there must be at least two."""
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
        raise InputError(f"There is a single {what}: holding it out leaves no data to fit.")
    return query_blocks(layout)


def group_codes(data: LabelledItems, groups: Any) -> Rows:
    """Group number of each row that is left."""
    rows = query_layout(groups, data.n_given, name="groups").codes
    return rows if data.kept is None else rows[data.kept]


def check_two_vary(varied: int, queries: int, remedy: str) -> None:
    """Refuse leave-query-out with fewer than two queries that have different labels."""
    if varied < 2:
        problem = f"Leave-query-out needs two queries that hold different labels; only {varied} of {queries} does."
        raise InputError(f"{problem} {remedy}", parameter="cv")


def check_folds_leave_something(
    data: LabelledItems, held_out: Iterable[Any], regression_weight: float, *, remedy: str, parameter: str
) -> None:
    """Refuse folds whose training rows have no query with two different labels, in any of the targets.

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
            names = ", ".join(map(repr, data.layout.ids[held][:3].tolist()))
            without = names if data.n_queries > 1 else f"{len(rows)} held-out rows"
            target = f" in target {t}" if len(first) > 1 else ""
            raise InputError(
                f"Without {without} no items of a query with two different labels{target} are left. {remedy}",
                parameter=parameter,
                column=t if len(first) > 1 else None,
            )


def folds_plan(cv: Any, measure: Measure, data: LabelledItems, regression_weight: float = 0.0) -> Plan:
    """A number of folds, a splitter of scikit-learn, or (train, test) lists of rows."""
    everything, several = np.arange(data.n_rows), data.n_queries > 1
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        codes, by_id = (data.layout.codes, data.layout.by_id) if several else (everything, everything)
        what = "queries" if several else "rows"
        tests = [np.flatnonzero(np.isin(codes, by_id[test])) for test in numbered_folds(cv, len(by_id), what)]
        splits = [(np.delete(everything, test), test) for test in tests]
        whole, description = several, f"{cv} folds of {len(by_id)} {what}"
    else:
        splits, name = _given_folds(cv, data)
        whole = several and _whole_queries(splits, data.layout)
        description = f"{len(splits)} folds of {'whole queries' if whole else 'rows'} ({name})"
    held = [test if whole else np.delete(everything, train) for train, test in splits]
    remedy = "Give other folds (cv), or validation data (X_val)."
    check_folds_leave_something(data, held, regression_weight, remedy=remedy, parameter="cv")
    return block_plan(measure, data, held, description) if whole else refit_plan(measure, data, splits, description)


def numbered_folds(k: Any, n: int, what: str) -> Iterator[Rows]:
    """Folds of ``range(n)``, drawn the same way each time."""
    from sklearn.model_selection import KFold

    if not 2 <= k <= n:
        raise InputError(f"cv={k} folds need from 2 to {n} {what}.", parameter="cv")
    return (test for _, test in KFold(int(k), shuffle=True, random_state=0).split(np.empty(n)))


def _given_folds(cv: Any, data: LabelledItems) -> tuple[list[tuple[Rows, Rows]], str]:
    """Training and test rows of each fold, and the name of the splitter."""
    m = data.n_given
    if hasattr(cv, "split") and not isinstance(cv, str):
        splits, name = cv.split(np.empty((m, 1)), *_labels_and_groups(cv, data, m)), type(cv).__name__
    elif hasattr(cv, "__iter__") and not isinstance(cv, str) and getattr(cv, "ndim", 1) > 0:
        splits, name = cv, "given folds"
    else:
        raise InputError(
            f"cv must be None, a number of folds, a splitter or (train, test) row lists; got {cv!r}.", parameter="cv"
        )
    folds = [_checked_fold(number, split, m) for number, split in enumerate(splits)]
    if data.kept is not None:  # rows of weight zero are gone
        number_left, kept = np.cumsum(data.kept) - 1, data.kept
        folds = [(number_left[train[kept[train]]], number_left[test[kept[test]]]) for train, test in folds]
        folds = [fold for fold in folds if len(fold[0]) and len(fold[1])]
    if not folds:
        raise InputError("cv gave no folds with training and test rows of positive weight.", parameter="cv")
    return folds, name


def _checked_fold(number: int, split: Any, m: int) -> tuple[Rows, Rows]:
    """Training and test rows of one fold."""
    try:
        train, test = (np.asarray(rows) for rows in split)
        readable = all(rows.ndim == 1 and (rows.dtype.kind in "iu" or not len(rows)) for rows in (train, test))
    except (TypeError, ValueError):
        readable = False
    if not readable:
        raise InputError(
            "cv must give pairs of lists of row numbers, (train, test); masks are not row numbers.", parameter="cv"
        )
    both = np.concatenate((train, test))
    outside = both[(both < 0) | (both >= m)]
    if len(outside):
        problem = f"Fold {number} of cv names row {outside[0]:.0f}, but the rows are 0 to {m - 1}."
        raise InputError(problem, parameter="cv", row=int(outside[0]))
    if not len(train) or not len(test) or np.isin(test, train).any():
        problem = f"Fold {number} of cv needs rows for training and other rows for testing."
        raise InputError(problem, parameter="cv")
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
    everything, codes = np.arange(layout.n_rows), layout.codes
    held = np.concatenate([test for _, test in folds])
    return len(np.unique(held)) == len(held) and all(
        np.array_equal(np.sort(np.concatenate((train, test))), everything)
        and not np.isin(codes[test], codes[train]).any()
        for train, test in folds
    )


def preference_plan(measure: Measure, data: PreferredItems, cv: Any) -> Plan:
    """Leave out each preference or group in turn, or folds of them."""
    check_measure_of_preferences(measure)
    return block_plan(measure, data, *preference_blocks(data, cv), each=cv is None)


def preference_blocks(data: PreferredItems, cv: Any = None) -> tuple[list[Rows], str]:
    """Preferences that are held out together, and a description; two blocks need strengths other than 0."""
    what, blocks = _named(data), data.graph.blocks()
    n, description = len(blocks), f"leave-one-out over {len(blocks)} {what}"
    if n < 2:
        raise InputError(f"Leaving out {what} needs at least two; there is {n}.")
    if cv is not None:
        if not isinstance(cv, Integral) or isinstance(cv, bool):
            problem = f"For preferences cv is None or a number of folds; got {cv!r}."
            raise InputError(f"{problem} Use groups for other folds.", parameter="cv")
        blocks = [np.concatenate([blocks[b] for b in test]) for test in numbered_folds(cv, n, what)]
        description = f"{cv} folds of {n} {what}"
    ordering = (block for block in blocks if data.graph.strength[block].any())
    if len(list(islice(ordering, 2))) < 2:
        unit, parameter = ("group", "strength") if cv is None else ("fold", "cv")
        raise InputError(
            f"Only one {unit} of preferences has a strength other than 0: holding it out leaves no preference to fit.",
            parameter=parameter,
        )
    return blocks, description


def check_measure_of_preferences(measure: Measure) -> None:
    if str(measure) not in ("disagreement", "pair_accuracy"):
        raise InputError(
            f"Preferences are evaluated by 'disagreement' or 'pair_accuracy'; got scoring={str(measure)!r}, "
            "which needs labels.",
            parameter="scoring",
        )


def _named(data: PreferredItems) -> str:
    return "preferences" if data.graph.groups is None else "groups of preferences"
