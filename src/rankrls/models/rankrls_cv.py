"""RankRLS that chooses its own regularization."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls.kernels import Kernel
from rankrls.metrics import resolve_measure
from rankrls.models._base import SOLVERS, KernelRanker, resolve_kernel
from rankrls.models._pair_selection import pair_blocks, pair_curve
from rankrls.models._pairs import pair_graph
from rankrls.models._problems import Candidate, is_primal, make_problem, scored_graphs
from rankrls.models._results import Results
from rankrls.models._selection import Plan, plan_selection, validation_set
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

__all__ = ["RankRLSCV"]

_CHOOSABLE = ("kernel", "gamma", "degree", "coef0", "ties", "balance")


class RankRLSCV(KernelRanker):
    r"""RankRLS whose regularization is chosen by exact cross-validation at about the price of one fit.

    Minimises what :class:`RankRLS` minimises. One factorisation gives the coefficients of every ``alpha`` (Pahikkala
    et al. 2007, section 2.4) and, without refitting, the scores of every query by the model that never saw it
    (Pahikkala, Suominen, Boberg, Salakoski 2007).

    Parameters
    ----------
    alphas : "auto" or tuple of float, default="auto"
        Regularization values to choose from. "auto" is a geometric grid of 21 relative to the problem's spectrum.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is exact leave-query-out; for one global ranking exact leave-pair-out up to 5000 items (where the
        measure is over pairs and the graph allows it), else 5 folds of rows. An int is that many folds of whole
        queries, exact too (of rows for one global ranking, by refits). Folds that do not hold out whole queries are
        refitted, one factorisation each.
    scoring : str, Measure or callable, default="disagreement"
        What to choose by; see :func:`rankrls.metrics.resolve_measure`.
    rule : {"best", "one_se"}, default="best"
        "one_se" takes the largest alpha whose measure is within one standard error of the best.
    kernel, gamma, degree, coef0, ties, balance : as in :class:`RankRLS`, or a tuple of values to choose from
    kernel_params, regression_weight, solver : as in :class:`RankRLS`

    Attributes
    ----------
    alpha_ : float
    best_params_ : dict
        alpha, ties, balance and the kernel's parameters.
    best_score_, best_score_error_ : float
        The measure of the choice in its own units, and its standard error.
    best_index_ : int
        Row of ``cv_results_``.
    cv_results_ : dict of ndarray
        One entry for every combination and alpha: the parameters, ``mean_score``, ``standard_error``.
    alpha_at_edge_ : bool
        Whether the chosen alpha is the smallest or largest of a grid of three or more: widen the grid then.
    selection_ : str
        How it was chosen, in words.
    held_out_scores_ : ndarray of shape (m,) or (m, targets), or None
        Each training row's score by the chosen model without the row's own query; NaN for rows of weight zero.
    query_scores_ : ndarray of shape (q,) or None
        The measure of each query under the choice.
    coef_, dual_coef_, X_fit_, n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Notes
    -----
    Primal: O(m n^2 + n^3) for the spectrum, then for all alphas together O(m n^2) for leave-query-out; with a kernel
    O(m^3). Equal measures: the largest alpha, then the earliest combination.

    An alpha below 1e-10 of the largest eigenvalue is held out at that value: rounding would decide anything smaller.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> qid = np.repeat(np.arange(12), 5)
    >>> y = X @ [2.0, 1.0, 0.0, 0.0] + rng.normal(size=60) + 100 * qid
    >>> model = RankRLSCV().fit(X, y, qid=qid)
    >>> model.selection_
    'leave-query-out over 12 queries'
    >>> round(model.best_score_, 2), model.held_out_scores_.shape
    (0.13, (60,))
    """

    def __init__(
        self,
        alphas: Any = "auto",
        *,
        cv: Any = None,
        scoring: Any = "disagreement",
        rule: str = "best",
        kernel: Any = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1.0,
        kernel_params: dict[str, Any] | None = None,
        ties: Any = "include",
        balance: Any = "examples",
        regression_weight: float = 0.0,
        solver: str = "auto",
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.solver = solver

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
        data = training_data(self, X, y, qid, sample_weight, kernel=self._some_kernel())
        check_comparable(data, float(self.regression_weight))
        if X_val is not None or y_val is not None or qid_val is not None:
            if self.cv is not None:
                raise ValueError("Give either cv or validation data (X_val, y_val, qid_val), not both.")
            plan: Plan = validation_set(self, measure, data, X_val, y_val, qid_val, kernel=self._some_kernel())
        else:
            plan = self._cv_plan(measure, data)
        results = Results(measure.greater_is_better, self.rule)
        for kernel, choices in self._kernels(data.X):
            K = self._kernel_matrix(kernel, data)
            for ties, balance in product(_options(self.ties), _options(self.balance)):
                candidate = Candidate(kernel, ties, balance, float(self.regression_weight), self.solver)
                problems = candidate.problems(data, K)
                alphas = grid if grid is not None else auto_alphas(plan.spectrum_ends(problems))
                curve = plan.curve(data, candidate, problems, alphas)
                results.add({**choices, "ties": ties, "balance": balance}, alphas, curve, (kernel, problems))
        self._forget_fit()
        kernel, problems = results.best_state
        self._adopt(data, kernel, problems, [p.problem.solve(results.best_alpha) for p in problems])
        self._publish(results, plan.description, data)
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
        grid = self._check_grid()
        measure = resolve_measure(self.scoring)
        if str(measure) not in ("disagreement", "pair_accuracy"):
            raise ValueError(
                f"Preferences are judged by 'disagreement' or 'pair_accuracy'; got scoring={str(measure)!r}, which "
                "needs labels."
            )
        X, graph = pair_graph(self, X, winners, losers, strength, weight, kernel=self._some_kernel(), groups=groups)
        blocks, description = pair_blocks(graph, self.cv, groups is not None)
        results = Results(measure.greater_is_better, self.rule)
        for kernel, choices in self._kernels(X):
            problem = make_problem(X, graph, graph.target[:, None], kernel, self.solver)
            alphas = grid if grid is not None else auto_alphas(problem.values)
            differences = problem.holdout(blocks, alphas)[:, :, 0]
            curve = pair_curve(graph, blocks, differences, measure.greater_is_better)
            results.add(choices, alphas, curve, (kernel, problem))
        self._forget_fit()
        kernel, problem = results.best_state
        self._adopt_pairs(X, kernel, problem, graph, problem.solve(results.best_alpha))
        self._publish(results, description, None)
        return self

    def _check_grid(self) -> NDArray[np.float64] | None:
        check_choice("solver", self.solver, SOLVERS)
        check_choice("rule", self.rule, ("best", "one_se"))
        check_fraction("regression_weight", self.regression_weight)
        for ties in _options(self.ties):
            check_choice("ties", ties, ("include", "exclude"))
        for balance in _options(self.balance):
            check_choice("balance", balance, ("pairs", "examples", "queries"))
        for kernel, gamma, degree, coef0 in product(*(_options(getattr(self, name)) for name in _CHOOSABLE[:4])):
            check_kernel(kernel, gamma, degree, coef0, self.kernel_params)
        if isinstance(self.alphas, str) and self.alphas == "auto":
            return None
        return np.sort(check_alphas(self.alphas))[::-1]

    def _some_kernel(self) -> Any:
        kernels = _options(self.kernel)
        special = [k for k in kernels if callable(k) or k == "precomputed"]
        if special and len(kernels) > 1:
            raise ValueError(
                "A callable or precomputed kernel cannot be one of several: X means different things to them."
            )
        return kernels[0]

    def _kernels(self, X: Any) -> Iterator[tuple[Kernel, dict[str, Any]]]:
        """Every kernel to try, with the parameters that make a difference to it."""
        seen = set()
        for name, gamma, degree, coef0 in product(*(_options(getattr(self, n)) for n in _CHOOSABLE[:4])):
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

    def _kernel_matrix(self, kernel: Kernel, data: TrainingData) -> NDArray[np.float64] | None:
        """The kernel matrix, where several graphs share it."""
        several = len(_options(self.ties)) * len(_options(self.balance)) * data.Y.shape[1] > 1
        if not several or kernel.is_linear or is_primal(kernel, data.X, data.layout.n_rows, self.solver):
            return None
        return kernel(data.X)

    def _cv_plan(self, measure: Any, data: TrainingData) -> Plan:
        ties = "exclude" if "exclude" in _options(self.ties) else "include"
        graphs = [graph for graph, _ in scored_graphs(data, ties, "examples", 0.0)]
        return plan_selection(
            self.cv,
            measure,
            data,
            graphs,
            balances=_options(self.balance),
            regression_weight=float(self.regression_weight),
        )

    def _publish(self, results: Results, description: str, data: TrainingData | None) -> None:
        self.alpha_ = results.best_alpha
        self.best_index_ = results.best_index
        self.best_params_ = {**results.best_params, "alpha": results.best_alpha}
        self.best_score_ = results.best_score
        self.best_score_error_ = results.best_error
        self.cv_results_ = results.table()
        self.alpha_at_edge_ = results.at_edge
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


def _options(value: Any) -> tuple[Any, ...]:
    """A tuple (or list) of values to choose from, or the one value."""
    if isinstance(value, (tuple, list)):
        if not value:
            raise ValueError("A tuple of values to choose from must not be empty.")
        return tuple(value)
    return (value,)
