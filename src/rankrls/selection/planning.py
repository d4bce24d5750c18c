"""Conversion of ``cv`` to a plan of held-out labelled items or preferences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Generic, TypeVar

import numpy as np

from rankrls._arrays import host_only
from rankrls._comparisons import Data, LabelledItems, PreferredItems, Setting
from rankrls._curves import judged_queries
from rankrls._errors import InputError
from rankrls._queries import label_varies
from rankrls._typing import ExactFoldsLike, Index
from rankrls.metrics import Measure
from rankrls.numerics.concordance import ordered_pairs
from rankrls.selection.folds import (
    FEW_FOLDS,
    REPETITIONS,
    check_folds_leave_something,
    check_two_vary,
    fifth_of_one_ranking,
    given_folds,
    item_folds,
    named,
    number_of_folds,
    numbered_folds,
    preference_units,
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
    GroupsPlan,
    ItemFoldsPlan,
    Plan,
    PreferencePairsPlan,
    QueryPairsPlan,
    RowFoldsPlan,
    UnitsPlan,
)

MAX_PAIR_HOLDOUT = 5000
"""Largest number of items of one ranking for which ``cv=None`` holds out all pairs."""
ENOUGH_UNITS = 500
"""Number of queries, rows, items or groups of which a fifth is evaluated alone.

On noise, the disagreement selected on a fifth of 150 to 300 rows was .48, on a fifth of 500 .496, with a standard
error of .004 to .008 over 60 fits.
"""
_REMEDY = "Use other folds (cv), or pass validation data (X_val)."


D = TypeVar("D", bound=Data, covariant=True)


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
    def exact(self, cv: ExactFoldsLike, settings: Sequence[Setting], *, constrained: bool = False) -> Plan:
        """Plan for problems that can hold out without refitting: None holds out each query, pair or new unit."""

    @abstractmethod
    def few(self, cv: ExactFoldsLike) -> Plan:
        """Plan in which None means a few folds."""

    def one(self, cv: ExactFoldsLike, rng: np.random.RandomState) -> Plan:
        """Plan in which None holds out a fifth, or a few folds if a fifth is too little to select on."""
        if cv is not None:
            return self.few(cv)
        units = self._units()
        return self._fifth(units, rng) if len(units) >= ENOUGH_UNITS else self.few(None)

    @abstractmethod
    def _units(self) -> Index:
        """Numbers of the queries, rows, items or groups whose scores can be evaluated."""

    @abstractmethod
    def _fifth(self, units: Index, rng: np.random.RandomState) -> Plan:
        """Plan that holds out a fifth of the units."""


@dataclass(frozen=True, eq=False)
class QueryPlanner(Planner[LabelledItems]):
    """Planner that holds out queries, or rows of one ranking.

    Attributes
    ----------
    regression_weight : float
        If positive, folds may leave labels that are equal in every query.
    """

    regression_weight: float

    def exact(self, cv: ExactFoldsLike, settings: Sequence[Setting], *, constrained: bool = False) -> Plan:
        """None is leave-query-out; for a single ranking leave-pair-out, or folds of rows if that needs refits."""
        data = self.data
        q = data.n_queries
        m = data.n_rows
        if self.holds_out_pairs(cv):
            check_query_pairs(data, settings, constrained=constrained, parameter="cv")
            pairs = f"{m} items" if q == 1 else f"{ordered_pairs(data.Y[:, 0], data.layout.codes)} pairs"
            return QueryPairsPlan(measure=self.measure, description=f"leave-pair-out over {pairs}")
        if cv is not None:
            return self._folds(cv)
        if q > 1:
            comparable = int(label_varies(data.Y, data.layout).sum())
            check_two_vary(comparable, q, "Pass validation data (X_val) or folds of your own (cv).")
            return UnitsPlan(measure=self.measure, description=f"leave-query-out over {q} queries")
        refused = m > MAX_PAIR_HOLDOUT or why_pairs_cannot_be_held_out(data, settings, constrained=constrained)
        if is_concordance(self.measure) and not refused:
            host_only(data.X, "Leave-pair-out, the default for one ranking (cv=5 avoids it),")
            return QueryPairsPlan(measure=self.measure, description=f"leave-pair-out over {m} items")
        return self.few(None)

    def few(self, cv: ExactFoldsLike) -> Plan:
        count = self.data.n_queries if self.data.n_queries > 1 else self.data.n_rows
        return self._folds(min(FEW_FOLDS, count) if cv is None else cv)

    def _units(self) -> Index:
        data = self.data
        if data.n_queries == 1:
            return np.arange(data.n_rows)
        by_id = data.layout.by_id
        judged = judged_queries(self.measure, data.Y[:, 0], data.layout) & label_varies(data.Y, data.layout)
        return by_id[judged[by_id]]

    def _fifth(self, units: Index, rng: np.random.RandomState) -> Plan:
        data = self.data
        if data.n_queries == 1:
            test = fifth_of_one_ranking(data, rng)
            train = np.setdiff1d(units, test)
            check_folds_leave_something(data, [test], self.regression_weight, remedy=_REMEDY, parameter="cv")
            description = f"{len(test)} of {data.n_rows} rows held out"
            return RowFoldsPlan(measure=self.measure, description=description, folds=[(train, test)], mutual=False)
        held = rng.permutation(units)[: len(units) // FEW_FOLDS]
        description = f"{len(held)} of {data.n_queries} queries held out"
        return UnitsPlan(measure=self.measure, description=description, units=[np.sort(held)], mutual=False)

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
        mutual = len(splits) > 1
        if units is not None:
            return UnitsPlan(measure=self.measure, description=description, units=units, mutual=mutual)
        return RowFoldsPlan(measure=self.measure, description=description, folds=splits, mutual=mutual)


class PreferencePlanner(Planner[PreferredItems]):
    """Planner that holds out what will be new: items, connected components of items, votes, or groups of votes."""

    def exact(self, cv: ExactFoldsLike, settings: Sequence[Setting], *, constrained: bool = False) -> Plan:
        if not self.holds_out_pairs(cv):
            return self._folds(number_of_folds(cv), REPETITIONS)
        check_preferred_pairs(self.data, constrained=constrained, parameter="cv")
        pairs = f"{np.count_nonzero(self.data.preferences.strength)} comparable pairs: new items"
        return PreferencePairsPlan(measure=self.measure, description=f"leave-pair-out over {pairs}")

    def few(self, cv: ExactFoldsLike) -> Plan:
        k = number_of_folds(cv)
        if k is None and self.data.new != "items" and self.data.preferences.n_groups > FEW_FOLDS:
            k = FEW_FOLDS
        return self._folds(k, 1)

    def _units(self) -> Index:
        table = self.data.preferences
        if self.data.new == "items":
            return np.flatnonzero(np.bincount(self.data.identity[[table.winners, table.losers]].ravel()))
        codes = np.arange(table.n_groups) if table.groups is None else table.groups
        return np.flatnonzero(np.bincount(codes, table.strength != 0.0))

    def _fifth(self, units: Index, rng: np.random.RandomState) -> Plan:
        self._check_measure()
        data = self.data
        if data.new == "items":
            folds, description = item_folds(data, None, [rng.randint(2**31)])
            description = f"1 of {description}"
            return ItemFoldsPlan(measure=self.measure, description=description, folds=folds[:1], mutual=False)
        held = rng.permutation(units)[: len(units) // FEW_FOLDS]
        total = data.preferences.n_groups
        description = f"{len(held)} of {total} {named(data)} held out: {what_is_new(data)}"
        return GroupsPlan(measure=self.measure, description=description, units=[np.sort(held)], mutual=False)

    def _folds(self, k: int | None, repetitions: int) -> Plan:
        """Plan for folds of items; or for each preference, group or component in turn, or folds of these."""
        self._check_measure()
        if self.data.new == "items":
            folds, description = item_folds(self.data, k, range(repetitions))
            return ItemFoldsPlan(measure=self.measure, description=description, folds=folds, mutual=len(folds) > 1)
        units, description = preference_units(self.data, k)
        return GroupsPlan(measure=self.measure, description=description, units=units)

    def _check_measure(self) -> None:
        if str(self.measure) not in ("disagreement", "pair_accuracy"):
            raise InputError(
                f"Preferences are evaluated by 'disagreement' or 'pair_accuracy'; got scoring={str(self.measure)!r}, "
                "which needs labels.",
                parameter="scoring",
            )
