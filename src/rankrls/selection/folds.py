"""From ``cv`` to numbers: which rows or preferences are held out together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import LabelledItems, PreferredItems
from rankrls._errors import InputError
from rankrls._queries import QueryLayout, label_varies, query_layout
from rankrls.numerics.graph import Array, Index

FEW_FOLDS = 5
"""The default number of folds that need refits; iterative solvers hold out one fold of so many."""
INSTEAD = "Give validation data (X_val), folds of your own (cv), or one alpha with selection='tikhonov'."


def fifth_of_one_ranking(data: LabelledItems, rng: Any) -> Index:
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
    return held


def query_blocks(layout: QueryLayout) -> list[Any]:
    """Index of each query."""
    return [layout.rows(q) for q in range(layout.n_queries)]


def check_two_vary(varied: int, queries: int, remedy: str) -> None:
    """Refuse to hold out queries of which fewer than two have different labels."""
    if varied < 2:
        problem = f"Holding out queries needs two queries that hold different labels; only {varied} of {queries} does."
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
    varies = np.stack([label_varies(labels, data.layout) for labels in data.Y.T])
    total = varies.sum(axis=1)
    for block in held_out:
        rows = everything[block]
        held = np.unique(codes[rows])
        for t in np.flatnonzero((total > 0) & (varies[:, held].sum(axis=1) == total)):
            rest = np.delete(everything, rows)
            if label_varies(data.Y[rest, t], query_layout(codes[rest], len(rest))).any():
                continue  # of a query that is held out in part
            names = ", ".join(map(repr, data.layout.ids[held][:3].tolist()))
            without = names if data.n_queries > 1 else f"{len(rows)} held-out rows"
            target = f" in target {t}" if len(varies) > 1 else ""
            raise InputError(
                f"Without {without} no items of a query with two different labels{target} are left. {remedy}",
                parameter=parameter,
                column=int(t) if len(varies) > 1 else None,
            )


def numbered_folds(k: Any, n: int, what: str) -> Iterator[Index]:
    """Folds of ``range(n)``, drawn the same way each time."""
    from sklearn.model_selection import KFold

    if not 2 <= k <= n:
        raise InputError(f"cv must be from 2 to {n}, the number of {what}; got {k}.", parameter="cv")
    return (test for _, test in KFold(int(k), shuffle=True, random_state=0).split(np.empty(n)))


def given_folds(cv: Any, data: LabelledItems) -> tuple[list[tuple[Index, Index]], str]:
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
        raise InputError("cv has no fold with training and test rows of positive weight.", parameter="cv")
    return folds, name


def _checked_fold(number: int, split: Any, m: int) -> tuple[Index, Index]:
    """Training and test rows of one fold."""
    try:
        train, test = (np.asarray(rows) for rows in split)
        both = np.concatenate((train, test))
        numbers = {train.dtype.kind, test.dtype.kind} <= {"i", "u"} and both.ndim == 1
        good = numbers and both.min() >= 0 and both.max() < m and not np.isin(test, train).any()
    except (TypeError, ValueError):
        good = False
    if not (good and len(train) and len(test)):
        raise InputError(
            f"Fold {number} of cv must be two lists of row numbers from 0 to {m - 1}, (train, test), that have no row "
            "in common. Masks are not row numbers.",
            parameter="cv",
        )
    return train.astype(np.intp), test.astype(np.intp)


def _labels_and_groups(cv: Any, data: LabelledItems, m: int) -> tuple[Array, NDArray[Any] | None]:
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


def whole_queries(folds: list[tuple[Index, Index]], layout: QueryLayout) -> bool:
    """Whether the folds hold out whole queries, each at most once, and train on everything else."""
    everything, codes = np.arange(layout.n_rows), layout.codes
    held = np.concatenate([test for _, test in folds])
    return len(np.unique(held)) == len(held) and all(
        np.array_equal(np.sort(np.concatenate((train, test))), everything)
        and not np.isin(codes[test], codes[train]).any()
        for train, test in folds
    )


def preference_blocks(data: PreferredItems, cv: Any = None) -> tuple[list[Index], str]:
    """Preferences that are held out together, and a description; two blocks need strengths other than 0."""
    what, blocks = named(data), data.graph.blocks()
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


def named(data: PreferredItems) -> str:
    """What is held out, in words."""
    return "preferences" if data.graph.groups is None else "groups of preferences"
