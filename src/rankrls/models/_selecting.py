"""What selecting estimators share: the search over kernels, graphs and regularization values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.threads import blas_threads_for
from rankrls._errors import InputError
from rankrls.graph import PairGraph
from rankrls.kernels import Kernel
from rankrls.metrics import resolve_measure
from rankrls.models._base import KernelRanker, resolve_kernel
from rankrls.models._pair_selection import pair_blocks, pair_curve
from rankrls.models._pairs import pair_graph
from rankrls.models._problems import Candidate, FittedProblem, scored_graphs
from rankrls.models._results import Results
from rankrls.models._selection import LeavePairOut, Plan, plan_selection, validation_set
from rankrls.models._validation import (
    TrainingData,
    check_alphas,
    check_choice,
    check_comparable,
    check_fraction,
    check_kernel,
    training_data,
)
from rankrls.solvers.spectrum import auto_alphas

__all__ = ["SelectingRanker", "options"]

_CHOOSABLE = ("kernel", "gamma", "degree", "coef0", "ties", "balance")


class SelectingRanker(KernelRanker):
    """Chooses alpha, and whatever else is given as a tuple, by held-out rows; then learns from all of them."""

    alphas: Any
    cv: Any
    scoring: Any
    rule: Any
    ties: Any
    balance: Any
    regression_weight: Any
    _parameter = "alpha"

    def _training_data(self, X: Any, y: Any, qid: Any, sample_weight: Any, kernel: Any) -> TrainingData:
        data = training_data(self, X, y, qid, sample_weight, kernel=kernel)
        check_comparable(data, float(self.regression_weight))
        return data

    def _check_form(self) -> None:
        """Check the parameters that say how each candidate is solved."""

    def _begin_search(self, X: Any, kept: NDArray[np.bool_] | None) -> Any:
        """What all candidates share."""

    def _share(self, search: Any, kernel: Kernel, data: TrainingData) -> Any:
        """What the candidates of one kernel share."""

    def _candidate(self, shared: Any, kernel: Kernel, ties: Any, balance: Any, data: TrainingData) -> Candidate:
        raise NotImplementedError

    def _problems(self, shared: Any, candidate: Candidate, data: TrainingData) -> list[FittedProblem]:
        return candidate.problems(data)

    def _pair_problem(self, search: Any, kernel: Kernel, X: Any, graph: PairGraph) -> Any:
        raise NotImplementedError

    def _pair_folds(self, graph: PairGraph) -> Any:
        """Folds of preferences; None leaves out each in its turn."""
        return self.cv

    def _automatic_grid(self, values: NDArray[np.float64], problems: list[Any]) -> NDArray[np.float64]:
        """Alphas, descending, for problems with these eigenvalues."""
        return auto_alphas(values, least=min(getattr(p, "least_scale", np.inf) for p in problems))

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
        grid = self._check_grid()
        measure = resolve_measure(self.scoring)
        data = self._training_data(X, y, qid, sample_weight, self._some_kernel())
        if X_val is not None or y_val is not None or qid_val is not None:
            if self.cv is not None:
                raise ValueError("Give either cv or validation data (X_val, y_val, qid_val), not both.")
            plan: Plan = validation_set(self, measure, data, X_val, y_val, qid_val, kernel=self._some_kernel())
        else:
            plan = self._cv_plan(measure, data)
        with blas_threads_for(_multiplications(data, self._some_kernel())):
            self._choose(data, plan, grid, Results(measure.greater_is_better, self.rule, self._parameter))
        return self

    def _choose(self, data: TrainingData, plan: Plan, grid: NDArray[np.float64] | None, results: Results) -> None:
        """Judge every candidate, and take the best."""
        search = self._begin_search(data.X, data.kept)
        for kernel, choices in self._kernels(data.X):
            shared = self._share(search, kernel, data)
            for ties, balance in product(options(self.ties), options(self.balance)):
                candidate = self._candidate(shared, kernel, ties, balance, data)
                problems = self._problems(shared, candidate, data)
                alphas = (
                    grid
                    if grid is not None
                    else self._automatic_grid(plan.spectrum_ends(problems), [p.problem for p in problems])
                )
                curve = plan.curve(data, candidate, problems, alphas)
                results.add({**choices, "ties": ties, "balance": balance}, alphas, curve, (kernel, problems))
        self._forget_fit()
        kernel, problems = results.best_state
        self._adopt(data, kernel, problems, [p.problem.solve(results.best_alpha) for p in problems])
        by_pairs = isinstance(plan, LeavePairOut)
        self._warn_of_lost_features(problems[0].problem, data.X, grid, pairs_held_out=by_pairs)
        self._publish(results, plan.description, data)

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
        grid = self._check_grid()
        measure = resolve_measure(self.scoring)
        if str(measure) not in ("disagreement", "pair_accuracy"):
            raise InputError(
                f"Preferences are judged by 'disagreement' or 'pair_accuracy'; got {{scoring={str(measure)!r}}}, which "
                "needs labels.",
                parameter="scoring",
            )
        X, graph = pair_graph(self, X, winners, losers, strength, weight, kernel=self._some_kernel(), groups=groups)
        blocks, description = pair_blocks(graph, self._pair_folds(graph), groups is not None)
        results = Results(measure.greater_is_better, self.rule, self._parameter)
        search = self._begin_search(X, None)
        for kernel, choices in self._kernels(X):
            problem = self._pair_problem(search, kernel, X, graph)
            alphas = grid if grid is not None else self._automatic_grid(problem.values, [problem])
            differences = problem.holdout(blocks, alphas)[:, :, 0]
            curve = pair_curve(graph, blocks, differences, measure.greater_is_better)
            results.add(choices, alphas, curve, (kernel, problem))
        self._forget_fit()
        kernel, problem = results.best_state
        self._adopt_pairs(X, kernel, problem, graph, problem.solve(results.best_alpha))
        self._warn_of_lost_features(problem, X, grid)
        self._publish(results, description, None)
        return self

    def _check_grid(self) -> NDArray[np.float64] | None:
        self._check_choices()
        if isinstance(self.alphas, str) and self.alphas == "auto":
            return None
        return np.sort(check_alphas(self.alphas))[::-1]

    def _check_choices(self) -> None:
        self._check_form()
        check_choice("rule", self.rule, ("best", "one_se"))
        check_fraction("regression_weight", self.regression_weight)
        for ties in options(self.ties):
            check_choice("ties", ties, ("include", "exclude"))
        for balance in options(self.balance):
            check_choice("balance", balance, ("pairs", "examples", "queries"))
        self._check_kernels()

    def _check_kernels(self) -> None:
        for kernel, gamma, degree, coef0 in product(*(options(getattr(self, name)) for name in _CHOOSABLE[:4])):
            check_kernel(kernel, gamma, degree, coef0, self.kernel_params)

    def _some_kernel(self) -> Any:
        kernels = options(self.kernel)
        special = [k for k in kernels if callable(k) or k == "precomputed"]
        if special and len(kernels) > 1:
            raise ValueError(
                "A callable or precomputed kernel cannot be one of several: X means different things to them."
            )
        return kernels[0]

    def _kernels(self, X: Any) -> Iterator[tuple[Kernel, dict[str, Any]]]:
        """Every kernel to try, with the parameters that make a difference to it."""
        seen = set()
        for name, gamma, degree, coef0 in product(*(options(getattr(self, n)) for n in _CHOOSABLE[:4])):
            kernel = resolve_kernel(X, name, gamma, degree, coef0, self.kernel_params)
            if name == "precomputed" and X.shape[0] != X.shape[1]:
                raise ValueError(f"A precomputed kernel matrix must be square to fit; got shape {X.shape}.")
            choices: dict[str, Any] = {"kernel": name}
            if name in ("rbf", "laplacian", "polynomial", "poly", "sigmoid"):
                choices["gamma"] = kernel.gamma
            if name in ("polynomial", "poly"):
                choices["degree"] = degree
            if name in ("polynomial", "poly", "sigmoid"):
                choices["coef0"] = coef0
            key = tuple(choices.items())
            if key not in seen:
                seen.add(key)
                yield kernel, choices

    def _cv_plan(self, measure: Any, data: TrainingData) -> Plan:
        ties = "exclude" if "exclude" in options(self.ties) else "include"
        graphs = [graph for graph, _ in scored_graphs(data, ties, "examples", 0.0)]
        return plan_selection(
            self.cv,
            measure,
            data,
            graphs,
            balances=options(self.balance),
            regression_weight=float(self.regression_weight),
            constrained=self._constrained(),
        )

    def _publish(self, results: Results, description: str, data: TrainingData | None) -> None:
        self._publish_choice(results)
        self.best_index_ = results.best_index
        self.best_score_ = results.best_score
        self.best_score_error_ = results.best_error
        self.cv_results_ = results.table()
        self.selection_ = description
        self.query_scores_ = results.best_values
        scores = results.best_scores
        self.held_out_scores_ = None
        if scores is not None and data is not None:
            if data.kept is not None:
                full = np.full((len(data.kept), scores.shape[1]), np.nan)
                full[data.kept] = scores
                scores = full
            self.held_out_scores_ = scores[:, 0] if data.one_target else scores

    def _publish_choice(self, results: Results) -> None:
        self.alpha_ = results.best_alpha
        self.best_params_ = {**results.best_params, "alpha": results.best_alpha}
        self.alpha_at_edge_ = results.at_edge


def options(value: Any) -> tuple[Any, ...]:
    """A tuple (or list) of values to choose from, or the one value."""
    if isinstance(value, (tuple, list)):
        if not value:
            raise ValueError("A tuple of values to choose from must not be empty.")
        return tuple(value)
    return (value,)


def _multiplications(data: TrainingData, kernel: Any) -> float:
    """Of the largest product that a solver of such data forms, about."""
    m = float(data.layout.n_rows)
    n = float(data.X.shape[1]) if isinstance(kernel, str) and kernel == "linear" else m
    return m * n * min(m, n)
