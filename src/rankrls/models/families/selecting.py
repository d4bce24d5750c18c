"""What estimators that choose among models share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems, Setting
from rankrls._compiled.threads import blas_threads_for
from rankrls._errors import InputError
from rankrls.kernels import Kernel, kernel_parameters, resolve_kernel
from rankrls.metrics import RankingMeasure, resolve_measure
from rankrls.models.families.base import KernelRanker, check_square
from rankrls.models.inputs.parameters import check_alphas, check_parameters, combinations, options
from rankrls.models.inputs.spreads import warn_of_lost_features
from rankrls.selection.candidates import Candidate
from rankrls.selection.costs import Cost, check_affordable
from rankrls.selection.folds import exact_plan, folds_plan, preference_plan
from rankrls.selection.plans import LeavePairOut, Plan
from rankrls.selection.progress import Meter, reporter
from rankrls.selection.search import Results, search

_FOLDS = 5

AUTO_VALUES = 21
"""Values of an automatic grid, mostly."""


class SelectingRanker(KernelRanker):
    """Chooses a regularization value, and whatever else is given as a tuple, by held-out rows; then learns from all."""

    _positive_alphas = False  # whether 0 is no value to judge

    def _candidates(self, comparisons: Comparisons) -> Iterator[Candidate]:
        """Every candidate, one after the other."""
        raise NotImplementedError

    def _check(self) -> None:
        """Check the parameters, as far as that is possible without data."""
        check_parameters(self, several=True)

    def _grid(self) -> NDArray[np.float64] | None:
        """The values to judge, the simplest model first; None for an automatic grid."""
        if isinstance(self.alphas, str) and self.alphas == "auto":
            return None
        return np.sort(check_alphas(self.alphas, positive=self._positive_alphas))[::-1]

    def _measure(self, *, of_preferences: bool = False) -> RankingMeasure:
        """What to choose by."""
        return resolve_measure(self.scoring)

    def _plan(self, measure: RankingMeasure, data: LabelledItems) -> Plan:
        """How to hold out labelled items."""
        settings = [setting for setting, _ in self._settings(data)]
        if isinstance(self.cv, str) and self.cv == "leave_pair_out":
            return LeavePairOut.of(measure, data, settings, constrained=self._constrained())
        if self.cv is not None:
            return folds_plan(self.cv, measure, data, float(self.regression_weight))
        return exact_plan(measure, data, settings, constrained=self._constrained())

    def _preference_plan(self, measure: RankingMeasure, data: PreferredItems) -> Plan:
        """How to hold out preferences."""
        return preference_plan(measure, data, self.cv)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
    ) -> Self:
        """Choose, then learn from all rows of X.

        Parameters
        ----------
        X, y, qid, sample_weight : as in :meth:`RankRLS.fit`
        X_val, y_val, qid_val : optional
            Validation data to choose by, instead of ``cv``. With ``kernel="precomputed"``, ``X_val`` is the kernel
            between the validation and the training items.

        Returns
        -------
        self
        """
        self._check()
        grid, measure = self._grid(), self._measure()
        data = self._labelled(X, y, qid, sample_weight)
        plan = self._validation(measure, data, X_val, y_val, qid_val)
        self._choose(data, self._plan(measure, data) if plan is None else plan, grid)
        return self

    def fit_pairs(
        self,
        X: Any,
        winners: Any,
        losers: Any,
        *,
        strength: Any = None,
        weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Choose by leaving out preferences, or groups of them, without refitting; then learn from all.

        Parameters
        ----------
        X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`
        groups : array-like of shape (p,), optional
            A group for each preference (the annotator, the prompt), held out together. Each preference is its own
            group by default. ``cv`` as an int makes that many folds of groups.

        Returns
        -------
        self

        Notes
        -----
        Chosen by the weighted share of held-out preferences that are ordered rightly (``scoring`` must be
        "disagreement" or "pair_accuracy"); preferences of strength 0 are not judged. Groups count the same.
        """
        self._check()
        grid, measure = self._grid(), self._measure(of_preferences=True)
        data = self._preferred(X, winners, losers, strength, weight, groups)
        self._choose(data, self._preference_plan(measure, data), grid)
        return self

    def _costs(self, data: Comparisons, plan: Plan, values: int) -> list[Cost]:
        """What judging so many values of each candidate takes; empty if nothing is known of them."""
        return [plan.cost(partial(candidate.cost, data), values) for candidate in self._candidates(data)]

    def _choose(self, data: Comparisons, plan: Plan, grid: NDArray[np.float64] | None) -> None:
        """Learn what the plan chooses."""
        self._search(data, plan, grid)

    def _search(
        self, data: Comparisons, plan: Plan, grid: NDArray[np.float64] | None, meter: Meter | None = None
    ) -> Results:
        """Judge every candidate, and take the best."""
        costs = self._costs(data, plan, AUTO_VALUES if grid is None else len(grid))
        check_affordable(sum(costs, Cost()), remedy=self._cheaper(self._data_kernel() == "linear"))
        if meter is None:
            meter = Meter(reporter(self.verbose, type(self).__name__), costs)
        with blas_threads_for(_multiplications(data, self._data_kernel())):
            results = search(self._candidates(data), data, plan, self.rule, grid, meter)
        chosen = results.best_state
        self._begin(data)
        self._adopt(data, chosen.candidate, chosen.solutions)
        warn_of_lost_features(self, chosen.spreads, grid, pairs_held_out=isinstance(plan, LeavePairOut))
        self._publish(results, plan.description, data)
        return results

    def _data_kernel(self) -> Any:
        """What X means: objects for a function, a kernel matrix, or features."""
        kernels = options(self.kernel, "kernel")
        special = [k for k in kernels if callable(k) or k == "precomputed"]
        if special and len(kernels) > 1:
            raise InputError(
                "A callable or precomputed {kernel} cannot be one of several: X means different things to them."
            )
        return kernels[0]

    def _kernels(self, X: Any) -> Iterator[tuple[Kernel, dict[str, Any]]]:
        seen = set()
        for values in combinations(self, ("kernel", "gamma", "degree", "coef0")):
            check_square(X, values["kernel"])
            name, gamma, degree, coef0 = values.values()
            kernel = resolve_kernel(X, name, gamma, degree, coef0, self.kernel_params)
            known = {**values, "gamma": kernel.gamma}
            choices = {name: known[name] for name in ("kernel", *kernel_parameters(values["kernel"]))}
            key = tuple(choices.items())
            if key not in seen:
                seen.add(key)
                yield kernel, choices

    def _settings(self, data: Comparisons) -> list[tuple[Setting, dict[str, Any]]]:
        """The graphs to try."""
        ties, balances = options(self.ties, "ties"), options(self.balance, "balance")
        return list(data.settings(ties, balances, float(self.regression_weight)))

    def _publish(self, results: Results, description: str, data: Any) -> None:
        publish_choice(self, results, description)
        if results.best_scores is not None:
            scores = data.given_rows(results.best_scores)
            self.held_out_scores_ = scores[:, 0] if data.one_target else scores


class ChosenByFolds(SelectingRanker):
    """Chooses by folds of queries, rows or preferences, each of which is fitted anew."""

    def _plan(self, measure: RankingMeasure, data: LabelledItems) -> Plan:
        return few_folds(self.cv, measure, data, self.regression_weight)

    def _preference_plan(self, measure: RankingMeasure, data: PreferredItems) -> Plan:
        return preference_plan(measure, data, min(_FOLDS, data.graph.n_blocks) if self.cv is None else self.cv)


def publish_choice(model: Any, results: Results, description: str) -> None:
    """Keep what was chosen, and how, as an estimator's attributes."""
    name = results.parameter
    setattr(model, f"{name}_", results.best_value)
    for chosen, at_edge in results.edges.items():
        setattr(model, f"{chosen}_at_edge_", at_edge)
    model.best_params_ = {**results.best_choices, name: results.best_value}
    model.best_index_ = results.best_index
    model.best_score_ = results.best_score
    model.best_score_error_ = results.best_error
    model.cv_results_ = results.table()
    model.selection_ = description
    model.query_scores_ = results.best_values
    model.held_out_scores_ = None


def few_folds(cv: Any, measure: RankingMeasure, data: LabelledItems, regression_weight: float) -> Plan:
    """What ``cv`` says; with None a few folds of queries, or of the rows of one ranking."""
    parts = data.n_queries if data.n_queries > 1 else data.n_rows
    return folds_plan(min(_FOLDS, parts) if cv is None else cv, measure, data, regression_weight)


def _multiplications(data: Comparisons, kernel: Any) -> float:
    """Of the largest product that a solver of such data forms, about."""
    m = float(data.n_rows)
    n = float(data.X.shape[1]) if isinstance(kernel, str) and kernel == "linear" else m
    return m * n * min(m, n)
