"""What ``cv`` stands for: which plan, and which rows or preferences are held out together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import LabelledItems, PreferredItems, Setting
from rankrls._errors import InputError
from rankrls._preferences import PreferenceTable
from rankrls._queries import QueryLayout, label_varies, query_layout
from rankrls.metrics import RankingMeasure
from rankrls.selection.judging import LabelJudge, PreferenceJudge, judged_queries
from rankrls.selection.plans import (
    Blocks,
    Folds,
    LeavePairOut,
    Plan,
    is_concordance,
    why_pairs_cannot_be_held_out,
)

_INSTEAD = "Give validation data (X_val), folds of your own (cv), or one alpha with selection='tikhonov'."

MAX_PAIR_HOLDOUT = 5000
"""Items of one ranking up to which all pairs are held out."""
GLOBAL_FOLDS = 5
"""Folds of rows of one ranking that has no exact shortcut."""
_HELD_OUT = 5
"""One in five is held out for solvers that iterate, if nothing else is said."""


FEW_FOLDS = 5
"""Folds of estimators that fit each of them anew, if nobody says how many."""


def label_judge(measure: RankingMeasure, data: LabelledItems) -> LabelJudge:
    """The judge of labelled items by a measure."""
    return LabelJudge(measure, data.Y, data.layout, data.weights)


def preference_judge(measure: RankingMeasure, data: PreferredItems) -> PreferenceJudge:
    """The judge of preferences; measures that need labels are refused."""
    if str(measure) not in ("disagreement", "pair_accuracy"):
        raise InputError(
            f"Preferences are judged by 'disagreement' or 'pair_accuracy'; got scoring={str(measure)!r}, "
            "which needs labels.",
            parameter="scoring",
        )
    return PreferenceJudge(data.graph, measure.greater_is_better)


def query_blocks(layout: QueryLayout, groups: NDArray[np.intp] | None = None) -> list[Any]:
    """Rows of each query, or of each group of queries (a group number for every query)."""
    if groups is None:
        return [layout.rows(q) for q in range(layout.n_queries)]
    row_groups = groups[layout.codes]
    order = np.argsort(row_groups, kind="stable")
    cuts = np.searchsorted(row_groups[order], np.arange(groups.max() + 2))
    return [order[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True) if b > a]


def group_blocks(data: LabelledItems, groups: Any) -> list[Any]:
    """Rows of each query, or of each group of whole queries: at least two."""
    layout = data.layout
    codes = None
    if groups is not None:
        rows = group_codes(data, groups)
        codes = rows[layout.order[layout.starts[:-1]]]
        split = codes[layout.codes] != rows
        if split.any():
            row = int(np.argmax(split))
            raise InputError(
                f"Query {layout.ids[layout.codes[[row]]].tolist()[0]!r} lies in two groups; only whole "
                "queries can be held out: its items are compared with each other.",
                parameter="groups",
                row=int(data.given_numbers(np.array([row]))[0]),
            )
        codes = np.unique(codes, return_inverse=True)[1].astype(np.intp)
    blocks = query_blocks(layout, codes)
    if len(blocks) < 2:
        what = "query" if groups is None else "group of queries"
        raise InputError(f"There is a single {what}: holding it out leaves nothing to learn from.")
    return blocks


def group_codes(data: LabelledItems, groups: Any) -> NDArray[np.intp]:
    """Group number of each row that is left."""
    rows = query_layout(groups, data.n_rows if data.kept is None else len(data.kept), name="groups").codes
    return rows if data.kept is None else rows[data.kept]


def check_two_vary(varied: int, queries: int, remedy: str) -> None:
    """Refuse leave-query-out where no query with different labels is left without another one."""
    if varied < 2:
        problem = f"Leave-query-out needs two queries that hold different labels; only {varied} of {queries} does."
        raise InputError(f"{problem} {remedy}", parameter="cv")


def exact_plan(measure: RankingMeasure, data: LabelledItems, settings: Sequence[Setting], *, constrained: bool) -> Plan:
    """Leave-query-out; of a single ranking leave-pair-out, or folds of rows if that has no shortcut."""
    q, m = data.n_queries, data.n_rows
    if q > 1:
        comparable = int(label_varies(data.Y, data.layout).sum())
        check_two_vary(comparable, q, "Give validation data (X_val) or folds of your own (cv).")
        return Blocks(label_judge(measure, data), query_blocks(data.layout), f"leave-query-out over {q} queries", True)
    refused = m > MAX_PAIR_HOLDOUT or why_pairs_cannot_be_held_out(data, settings, constrained=constrained)
    if is_concordance(measure) and not refused:
        return LeavePairOut(measure.greater_is_better, f"leave-pair-out over {m} items")
    return folds_plan(min(GLOBAL_FOLDS, m), measure, data, settings[0].regression_weight)


def check_folds_leave_something(
    data: LabelledItems, held_out: Iterable[Any], regression_weight: float, *, remedy: str, parameter: str
) -> None:
    """Refuse held-out rows without which no two rows of a query have different labels, in any of the targets.

    Of what would be learned from the rest only rounding noise is left, and nothing is left to judge in other folds.
    """
    if regression_weight > 0.0:
        return
    layout, targets = data.layout, data.Y.shape[1]
    everything = np.arange(layout.n_rows)
    varies = np.stack([label_varies(labels, layout) for labels in data.Y.T])
    first = np.argmax(varies, axis=1)[varies.any(axis=1)]
    for block in held_out:
        rows = everything[block]
        if not np.isin(first, layout.codes[rows]).any():
            continue  # of each target, its first query with two labels is left
        rest = np.delete(everything, rows)
        left = query_layout(layout.codes[rest], len(rest))
        for t in np.flatnonzero(varies.any(axis=1)):
            if label_varies(data.Y[rest, t], left).any():
                continue
            held = layout.ids[np.unique(layout.codes[rows])][:3].tolist()
            one = layout.n_queries == 1
            without = f"{len(rows)} held-out rows" if one else ", ".join(repr(i) for i in held)
            target = "" if targets == 1 else f" in target {t}"
            raise InputError(
                f"Without {without} no {'pair of rows' if one else 'query'} with two different labels{target} is left "
                f"to learn from. {remedy}",
                parameter=parameter,
                column=None if targets == 1 else int(t),
            )


def folds_plan(cv: Any, measure: RankingMeasure, data: LabelledItems, regression_weight: float = 0.0) -> Plan:
    """A number of folds, a splitter of scikit-learn, or (train, test) lists of rows."""
    by_number = isinstance(cv, Integral) and not isinstance(cv, bool)
    plan = _numbered_folds(int(cv), measure, data) if by_number else _given_folds(cv, measure, data)
    rows = np.arange(data.n_rows)
    check_folds_leave_something(
        data,
        plan.blocks if isinstance(plan, Blocks) else (np.delete(rows, train) for train, _ in plan.folds),
        regression_weight,
        remedy="Give other folds (cv), or validation data (X_val).",
        parameter="cv",
    )
    return plan


def few_folds(cv: Any, measure: RankingMeasure, data: LabelledItems, regression_weight: float) -> Plan:
    """What ``cv`` says; with None a few folds of queries, or of the rows of one ranking."""
    parts = data.n_queries if data.n_queries > 1 else data.n_rows
    return folds_plan(min(FEW_FOLDS, parts) if cv is None else cv, measure, data, regression_weight)


def shuffled_folds(n: int, k: int) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Splits of ``range(n)`` into k folds: what trains and what tests, always the same."""
    from sklearn.model_selection import KFold

    return KFold(k, shuffle=True, random_state=0).split(np.empty(n))


def _numbered_folds(k: int, measure: RankingMeasure, data: LabelledItems) -> Blocks | Folds:
    if k < 2:
        raise InputError(f"cv must be at least 2 folds; got {k}.", parameter="cv")
    judge, q, m = label_judge(measure, data), data.n_queries, data.n_rows
    if q == 1:
        if k > m:
            raise InputError(f"cv={k} folds need {k} rows; there are {m}.", parameter="cv")
        splits = shuffled_folds(m, k)
        return Folds(judge, [_pair_of_rows(s) for s in splits], f"{k} folds of {m} rows")
    if k > q:
        raise InputError(
            f"cv={k} folds need {k} queries; there are {q}. Leave-query-out needs no number.", parameter="cv"
        )
    groups = np.empty(q, dtype=np.intp)
    for fold, (_, test) in enumerate(shuffled_folds(q, k)):
        groups[data.layout.by_id[test]] = fold
    return Blocks(judge, query_blocks(data.layout, groups), f"{k} folds of {q} queries")


def _given_folds(cv: Any, measure: RankingMeasure, data: LabelledItems) -> Blocks | Folds:
    m = data.n_rows if data.kept is None else len(data.kept)
    if hasattr(cv, "split") and not isinstance(cv, str):
        splits = cv.split(np.empty((m, 1)), *_labels_and_groups(cv, data, m))
        name = type(cv).__name__
    elif hasattr(cv, "__iter__") and not isinstance(cv, str) and getattr(cv, "ndim", 1) > 0:
        splits, name = cv, "given folds"
    else:
        raise InputError(
            f"cv must be None, a number of folds, a splitter or (train, test) row lists; got {cv!r}.", parameter="cv"
        )
    folds = [_pair_of_rows(s) for s in splits]
    if not folds:
        raise InputError("cv gave no folds.", parameter="cv")
    for number, (train, test) in enumerate(folds):
        _check_fold(number, train, test, m)
    if data.kept is not None:  # rows of weight zero are gone
        number_left, kept = np.cumsum(data.kept) - 1, data.kept
        folds = [(number_left[train[kept[train]]], number_left[test[kept[test]]]) for train, test in folds]
        folds = [fold for fold in folds if len(fold[0]) and len(fold[1])]
        if not folds:
            raise InputError("No fold of cv has both training and test rows of positive weight.", parameter="cv")
    judge = label_judge(measure, data)
    if _whole_queries(folds, data.layout):
        return Blocks(judge, [test for _, test in folds], f"{len(folds)} folds of whole queries ({name})")
    return Folds(judge, folds, f"{len(folds)} folds of rows ({name})")


def _check_fold(number: int, train: NDArray[np.intp], test: NDArray[np.intp], m: int) -> None:
    for part, rows in (("training", train), ("test", test)):
        if not len(rows):
            raise InputError(f"Fold {number} of cv has no {part} rows.", parameter="cv")
        outside = rows[(rows < 0) | (rows >= m)]
        if len(outside):
            raise InputError(
                f"Fold {number} of cv names row {outside[0]}, but the rows are 0 to {m - 1}.",
                parameter="cv",
                row=int(outside[0]),
            )
    if len(np.intersect1d(train, test)):
        raise InputError(f"Fold {number} of cv has rows that are both for training and for testing.", parameter="cv")


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


def _whole_queries(folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]], layout: QueryLayout) -> bool:
    """Whether the folds hold out whole queries, each at most once, and train on everything else."""
    if layout.n_queries < 2:
        return False
    held = np.zeros(layout.n_rows, dtype=np.intp)
    for train, test in folds:
        np.add.at(held, test, 1)
        if len(np.unique(train)) + len(test) != layout.n_rows or len(train) + len(test) != layout.n_rows:
            return False
        inside = np.bincount(layout.codes[test], minlength=layout.n_queries)
        if not np.isin(inside - layout.counts * (inside > 0), 0).all():
            return False
    return bool(held.max() <= 1)


def _pair_of_rows(split: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    try:
        train, test = (np.asarray(part) for part in split)
        if all(part.ndim == 1 and (part.dtype.kind in "iu" or not len(part)) for part in (train, test)):
            return train.astype(np.intp), test.astype(np.intp)
    except (TypeError, ValueError):
        pass
    raise InputError(
        "cv must give pairs of lists of row numbers, (train, test); masks are not row numbers.", parameter="cv"
    )


def fifth_of_rows(measure: RankingMeasure, data: LabelledItems, rng: Any) -> Plan:
    """A fifth of the queries held out once; of a single ranking a fifth of the rows."""
    if data.n_queries == 1:
        test, description = _fifth_of_one_ranking(data, rng)
        return Folds(label_judge(measure, data), [(np.setdiff1d(np.arange(data.n_rows), test), test)], description)
    q, layout = data.n_queries, data.layout
    judged = judged_queries(measure, data.Y[:, 0], layout) & label_varies(data.Y, layout)
    usable = layout.by_id[judged[layout.by_id]]
    if len(usable) < 2:
        raise InputError(
            f"Holding out queries needs two that hold different labels; only {len(usable)} of {q} does. {_INSTEAD}",
            parameter="cv",
        )
    count = max(1, len(usable) // _HELD_OUT)
    held = np.zeros(q, dtype=bool)
    held[rng.permutation(usable)[:count]] = True
    block = np.flatnonzero(held[layout.codes])
    return Blocks(label_judge(measure, data), [block], f"{count} of {q} queries held out")


def _fifth_of_one_ranking(data: LabelledItems, rng: Any) -> tuple[NDArray[np.intp], str]:
    """One of every five rows in the order of their labels, so that what is held out has labels like the rest."""
    m = data.n_rows
    order = np.lexsort((rng.permutation(m), data.Y[:, 0]))
    runs = [order[lo : lo + _HELD_OUT] for lo in range(0, m, _HELD_OUT)]
    if len(runs) > 1 and len(runs[-1]) < _HELD_OUT:
        runs.pop()
    held = np.array([run[rng.randint(len(run))] for run in runs])
    if (data.Y[held] == data.Y[held[:1]]).all():  # few rows: a lowest and a highest label then
        held[0], held[-1] = order[0], order[-1]
    held.sort()
    rest = np.setdiff1d(np.arange(m), held)
    if not all((data.Y[part] != data.Y[part[:1]]).any() for part in (held, rest)):
        raise InputError(
            f"Too few rows to hold out a fifth of ({m} samples): the training part and the held-out part "
            f"both need two different labels. {_INSTEAD}",
            parameter="cv",
        )
    return held, f"{len(held)} of {m} rows held out"


def preference_blocks(data: PreferredItems, cv: Any = None) -> tuple[list[NDArray[np.intp]], str]:
    """Preferences that are held out together, and how to say it."""
    graph, what = data.graph, _named(data)
    blocks = graph.blocks()
    if len(blocks) < 2:
        raise InputError(f"Leaving out {what} needs at least two; there is {len(blocks)}.")
    if cv is None:
        check_something_is_left(graph, blocks, "group")
        return blocks, f"leave-one-out over {len(blocks)} {what}"
    if not isinstance(cv, Integral) or isinstance(cv, bool):
        raise InputError(
            f"For preferences cv is None or a number of folds; got {cv!r}. Use groups for other folds.", parameter="cv"
        )
    k = int(cv)
    if not 2 <= k <= len(blocks):
        raise InputError(f"cv={k} folds need from 2 to {len(blocks)} {what}.", parameter="cv")
    splits = shuffled_folds(len(blocks), k)
    folds = [np.concatenate([blocks[b] for b in test]) for _, test in splits]
    check_something_is_left(graph, folds, "fold")
    return folds, f"{k} folds of {len(blocks)} {what}"


def check_something_is_left(graph: PreferenceTable, blocks: list[Any], what: str) -> None:
    """Refuse blocks of preferences of which one alone holds all that order anything."""
    ordering = (block for block in blocks if graph.strength[block].any())
    if len(list(islice(ordering, 2))) < 2:
        raise InputError(
            f"Only one {what} of preferences has a strength other than 0: without it there is nothing to learn from."
            f"{' Give other folds (cv), or other groups.' if what == 'fold' else ''}",
            parameter="cv" if what == "fold" else "strength",
        )


def preference_plan(measure: RankingMeasure, data: PreferredItems, cv: Any) -> Plan:
    """Every preference or group left out in its turn, or folds of them."""
    judge = preference_judge(measure, data)
    return Blocks(judge, *preference_blocks(data, cv), each=cv is None)


def few_preference_folds(cv: Any, measure: RankingMeasure, data: PreferredItems) -> Plan:
    """What ``cv`` says; with None a few folds of preferences, or of their groups."""
    return preference_plan(measure, data, min(FEW_FOLDS, data.graph.n_groups) if cv is None else cv)


def fifth_of_preferences(measure: RankingMeasure, data: PreferredItems, rng: Any) -> Plan:
    """A fifth of the preferences, or of their groups, held out once."""
    judge, graph, what = preference_judge(measure, data), data.graph, _named(data)
    n = graph.n_groups
    if n < 2:
        raise InputError(f"Holding out {what} needs at least two; there is {n}. Give validation data (winners_val).")
    check_something_is_left(graph, graph.blocks(), "group")
    orders = np.bincount(np.arange(n) if graph.groups is None else graph.groups, graph.strength != 0.0, n) > 0.0
    count = max(1, int(orders.sum()) // _HELD_OUT)
    held = rng.permutation(np.flatnonzero(orders))[:count]
    rows = held if graph.groups is None else np.flatnonzero(np.isin(graph.groups, held))
    return Blocks(judge, [np.sort(rows)], f"{count} of {n} {what} held out")


def _named(data: PreferredItems) -> str:
    return "preferences" if data.graph.groups is None else "groups of preferences"
