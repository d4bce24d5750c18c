"""Conversion of ``cv`` to numbers of the rows or preferences that are held out together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from rankrls._checks import check_word
from rankrls._comparisons import LabelledItems, PreferredItems
from rankrls._curves import ItemFold
from rankrls._errors import InputError
from rankrls._preferences import PreferenceTable
from rankrls._queries import QueryLayout, label_varies, query_layout
from rankrls._typing import AnyArray, Array, ExactFoldsLike, Index, Matrix, Splitter

FEW_FOLDS = 5
"""Default number of folds that need refits; of many units, iterative solvers hold out one of as many folds."""
REPETITIONS = 5
"""Number of times that folds of items are drawn, with seeds 0, 1, ..."""
_ENOUGH = 250_000
"""Number of evaluated preferences after which folds of items are not drawn again."""
_STRATA = 5
_LARGEST = 0.2
"""Largest share of the preferences in a component that is held out as a whole."""


def check_two_vary(varied: int, queries: int, remedy: str) -> None:
    """Refuse to hold out queries of which fewer than two have different labels."""
    if varied < 2:
        problem = f"Holding out queries needs two queries with different labels; only {varied} of {queries} has some."
        raise InputError(f"{problem} {remedy}", parameter="cv")


def check_folds_leave_something(
    data: LabelledItems, held_out: Iterable[Index | slice], regression_weight: float, *, remedy: str, parameter: str
) -> None:
    """Refuse folds whose training rows have no query with two different labels, in any target.

    Their models would fit noise, and nothing would be left to evaluate in other folds.
    """
    if regression_weight > 0.0:
        return
    codes = data.layout.codes
    all_rows = np.arange(data.n_rows)
    varies = np.stack([label_varies(labels, data.layout) for labels in data.Y.T])
    total = varies.sum(axis=1)
    for block in held_out:
        rows = all_rows[block]
        held = np.unique(codes[rows])
        for t in np.flatnonzero((total > 0) & (varies[:, held].sum(axis=1) == total)):
            rest = np.delete(all_rows, rows)
            if label_varies(data.Y[rest, t], query_layout(codes[rest], len(rest))).any():
                continue  # a query that is held out in part
            names = ", ".join(map(repr, data.layout.ids[held][:3].tolist()))
            without = names if data.n_queries > 1 else f"{len(rows)} held-out rows"
            target = f" in target {t}" if len(varies) > 1 else ""
            raise InputError(
                f"Without {without} no items of a query with two different labels{target} are left. {remedy}",
                parameter=parameter,
                column=int(t) if len(varies) > 1 else None,
            )


def numbered_folds(k: int, n: int, what: str) -> Iterator[Index]:
    """Folds of ``range(n)``, drawn with a fixed seed."""
    from sklearn.model_selection import KFold

    if not 2 <= k <= n:
        raise InputError(f"cv must be from 2 to {n}, the number of {what}; got {k}.", parameter="cv")
    return (test for _, test in KFold(k, shuffle=True, random_state=0).split(np.empty(n)))


def given_folds(cv: ExactFoldsLike, data: LabelledItems) -> tuple[list[tuple[Index, Index]], str]:
    """Training and test rows of each fold, and the name of the splitter."""
    m = data.n_given
    if isinstance(cv, str) or not isinstance(cv, Splitter | Iterable):
        raise InputError(
            f"cv must be None, a number of folds, a splitter or (train, test) row lists; got {cv!r}.", parameter="cv"
        )
    if isinstance(cv, Splitter):
        splits = cv.split(np.empty((m, 1)), *_labels_and_groups(cv, data, m))
        name = type(cv).__name__
    else:
        splits = cv
        name = "given folds"
    folds = [_checked_fold(number, split, m) for number, split in enumerate(splits)]
    if data.kept is not None:  # rows of weight zero were dropped
        number_left = np.cumsum(data.kept) - 1
        kept = data.kept
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


def _labels_and_groups(cv: Splitter, data: LabelledItems, m: int) -> tuple[Array, AnyArray | None]:
    """Labels and groups for a splitter; rows of weight zero get the label and query of other rows."""
    layout = data.layout
    rows = slice(None) if data.kept is None else data.kept
    y = np.zeros(m)
    y[rows] = data.Y[:, 0]
    routing = getattr(cv, "get_metadata_routing", None)
    if not data.has_qid or (routing is not None and not routing().consumes("split", ["groups"])):
        return y, None
    # Ids that can be sorted are passed unchanged: the folds then equal those of the splitter for qid elsewhere.
    ids = np.arange(layout.n_queries) if layout.ids.dtype.kind == "O" else layout.ids
    groups = np.full(m, ids[0])
    groups[rows] = ids[layout.codes]
    return y, groups


def whole_queries(folds: list[tuple[Index, Index]], layout: QueryLayout) -> bool:
    """Whether the folds hold out whole queries, each at most once, and train on all other rows."""
    all_rows = np.arange(layout.n_rows)
    codes = layout.codes
    held = np.concatenate([test for _, test in folds])
    return len(np.unique(held)) == len(held) and all(
        np.array_equal(np.sort(np.concatenate((train, test))), all_rows)
        and not np.isin(codes[test], codes[train]).any()
        for train, test in folds
    )


def with_new(data: PreferredItems, new: str | None) -> PreferredItems:
    """The data with the units that are held out; None determines these from the data.

    Groups are held out if given; single votes if X contains only identities; otherwise items, by connected components
    if none of these contains more than a fifth of the preferences with an order.
    """
    if new is not None:
        check_word("new", new, ("items", "votes", "groups"))
    table = data.preferences
    if new == "groups" and table.groups is None:
        raise InputError("new='groups' needs groups, with one for each preference.", parameter="groups")
    if new is None:
        new = "groups" if table.groups is not None else "votes" if are_identities(data.X) else "items"
    if new == "groups":
        return replace(data, new=new)
    components = _components(data) if new == "items" else None
    new = new if components is None else "components"
    return replace(data, preferences=replace(table, groups=components), new=new)


def are_identities(X: Matrix) -> bool:
    """Whether each row has one entry, each in another column, so that X contains only identities of items."""
    if not isinstance(X, np.ndarray) and not sparse.issparse(X):
        return False
    m = X.shape[0]
    if X.shape[1] < m:
        return False
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # counting sorts it in place
    if (X.count_nonzero() if sparse.issparse(X) else np.count_nonzero(X)) != m:
        return False
    rows, columns = X.nonzero()
    return bool(len(np.unique(rows)) == m and len(np.unique(columns)) == m)


def _components(data: PreferredItems) -> Index | None:
    """Connected component of each preference; None if one contains too many of those with an order."""
    known, first, second = _compared_items(data)
    edges = sparse.coo_array((np.ones(len(first)), (first, second)), shape=(known, known))
    component = csgraph.connected_components(edges, directed=False)[1][first]
    ordering = np.bincount(component, data.preferences.strength != 0.0)
    if ordering.max() > _LARGEST * ordering.sum():
        return None
    return np.unique(component, return_inverse=True)[1].astype(np.intp)


def _compared_items(data: PreferredItems) -> tuple[int, Index, Index]:
    """Number of items with preferences, and the numbers of both items of each preference among these."""
    table = data.preferences
    ends = data.identity[np.stack((table.winners, table.losers))]
    compared = np.bincount(ends.ravel()) > 0
    first, second = (np.cumsum(compared) - 1)[ends]
    return int(compared.sum()), first, second


def number_of_folds(cv: ExactFoldsLike) -> int | None:
    """Number of folds from ``cv`` for preferences, which allow no other folds."""
    if cv is None or (isinstance(cv, Integral) and not isinstance(cv, bool)):
        return None if cv is None else int(cv)
    problem = f"For preferences, cv must be None or a number of folds; got {cv!r}."
    raise InputError(f"{problem} Use groups for other folds.", parameter="cv")


def item_folds(data: PreferredItems, k: int | None, seeds: Iterable[int]) -> tuple[list[ItemFold], str]:
    """Folds of items for each seed, until enough preferences are evaluated, and a description.

    Items are distributed within strata of their share of wins, which mixes times and events.
    """
    n, first, second = _compared_items(data)
    if n < 4:
        problem = f"Holding out items needs preferences between at least four items; there are {n}."
        raise InputError(f"{problem} To hold out votes between known items, set new='votes'.", parameter="new")
    k = min(FEW_FOLDS, n // 2) if k is None else k
    if not 2 <= k <= n // 2:
        raise InputError(f"For new items, cv must be from 2 to {n // 2}; got {k}.", parameter="cv")
    table = data.preferences
    count = max(1, min(_STRATA, n // (2 * k)))
    strata = np.empty(n, dtype=np.intp)
    strata[np.argsort(_shares_of_wins(table, first, second, n), kind="stable")] = np.arange(n) * count // n
    ordering = table.strength != 0.0
    folds = list[ItemFold]()
    evaluated = 0
    repetitions = 0
    for seed in seeds:
        fold = np.empty(n, dtype=np.intp)
        fold[np.lexsort((np.random.default_rng(seed).random(n), strata))] = np.arange(n) % k
        chance = _chances(strata, fold, count, k)[strata[first], strata[second]]
        chance[first == second] = 1.0
        for f in range(k):
            inside = (fold[first] == f).astype(np.intp) + (fold[second] == f)
            train = np.flatnonzero(inside == 0)
            test = np.flatnonzero((inside == 2) & ordering)
            if len(test) and ordering[train].any():
                folds.append(ItemFold(train, test, table.weight[test] / chance[test]))
                evaluated += len(test)
        repetitions += 1
        if evaluated >= _ENOUGH:
            break
    if not folds:
        raise InputError(
            f"None of {k} folds of {n} items contains a preference between its items and leaves others to fit. To hold "
            "out votes between known items, set new='votes'; or pass groups.",
            parameter="new",
        )
    times = f"{repetitions} x " if repetitions > 1 else ""
    return folds, f"{times}{k} folds of {n} items: new items"


def _shares_of_wins(table: PreferenceTable, first: Index, second: Index, n: int) -> Array:
    """Net weight of each item's wins and losses, as a share of all its preferences."""
    won = table.weight * np.sign(table.strength)
    net = np.bincount(first, won, n) - np.bincount(second, won, n)
    return net / (np.bincount(first, table.weight, n) + np.bincount(second, table.weight, n))


def _chances(strata: Index, fold: Index, count: int, k: int) -> Array:
    """Probability that a fold contains both of two items, by their strata, (strata, strata)."""
    inside = np.zeros((count, k))
    np.add.at(inside, (strata, fold), 1.0)
    sizes = inside.sum(axis=1)
    both = inside @ inside.T / np.outer(sizes, sizes)
    np.fill_diagonal(both, (inside * (inside - 1.0)).sum(axis=1) / np.maximum(sizes * (sizes - 1.0), 1.0))
    return both


def preference_units(data: PreferredItems, k: int | None = None) -> tuple[list[Index] | None, str]:
    """Numbers of the preferences (groups) of each of k folds, and a description; None for each alone.

    At least two held-out units need nonzero strengths.
    """
    what = named(data)
    n = data.preferences.n_groups
    units = None if k is None else list(numbered_folds(k, n, what))
    held_out = f"leave-one-out over {n} {what}" if k is None else f"{k} folds of {n} {what}"
    ordering = (block for block in data.blocks(units) if data.preferences.strength[block].any())
    if len(list(islice(ordering, 2))) < 2:
        unit, parameter = ("group", "strength") if k is None else ("fold", "cv")
        raise InputError(
            f"Only one {unit} of preferences has a strength other than 0: holding it out leaves no preference to fit.",
            parameter=parameter,
        )
    return units, f"{held_out}: {what_is_new(data)}"


def named(data: PreferredItems) -> str:
    """Name of the held-out units."""
    if data.new == "components":
        return "separate comparisons"
    return "preferences" if data.preferences.groups is None else "groups of preferences"


def what_is_new(data: PreferredItems) -> str:
    """Description of what is new about a held-out preference."""
    groups = data.preferences.groups
    if data.new in ("items", "components"):
        return "new items"
    if data.new == "votes" or groups is None:
        return "new votes, known items"
    n, first, second = _compared_items(data)
    items_of_groups = np.unique([np.concatenate((first, second)), np.tile(groups, 2)], axis=1)
    return "new groups and items" if items_of_groups.shape[1] == n else "new groups, known items"
