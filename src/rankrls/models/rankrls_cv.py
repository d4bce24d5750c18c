"""RankRLS that chooses its own regularization."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.graph import PairGraph
from rankrls.kernels import Kernel
from rankrls.models._base import SOLVERS
from rankrls.models._problems import Candidate, FittedProblem, Problem, is_primal, make_problem
from rankrls.models._selecting import SelectingRanker, options
from rankrls.models._signs import check_positive, constrained_signs
from rankrls.models._validation import TrainingData, check_choice

__all__ = ["RankRLSCV"]


class RankRLSCV(SelectingRanker):
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
        queries, exact too, drawn in the order of their ids whatever the order of the rows (of rows for one global
        ranking, by refits). Folds that do not hold out whole queries are refitted, one factorisation each. Every
        training part needs a query with two different labels.
    scoring : str, Measure or callable, default="disagreement"
        What to choose by; see :func:`rankrls.metrics.resolve_measure`.
    rule : {"best", "one_se"}, default="best"
        "one_se" takes the largest alpha whose measure is within one standard error of the best.
    kernel, gamma, degree, coef0, ties, balance : as in :class:`RankRLS`, or a tuple of values to choose from
    kernel_params, regression_weight, solver, positive : as in :class:`RankRLS`
        Under constraints on signs the held-out scores are exact too: the constrained problem is solved again on the
        normal equations without each query, O(n^3) for each query and alpha. Leave-pair-out has no such shortcut: one
        global ranking takes 5 folds of rows.

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
    O(m^3). Equal measures (within 1e-10 of their size): the largest alpha, then the earliest combination.

    An alpha below 1e-10 of the largest eigenvalue is held out at that value: rounding would decide anything smaller.
    Up to 300 features whose spreads differ by more than a thousandfold are exact at any alpha in the primal.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLSCV
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

    positive: Any = False  # model files of older versions lack it

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
        positive: Any = False,
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
        self.positive = positive

    def _check_form(self) -> None:
        check_choice("solver", self.solver, SOLVERS)
        self._constrained()

    def _constrained(self) -> bool:
        return check_positive(self.positive, options(self.kernel), self.solver)

    def _signs(self, X: Any) -> NDArray[np.int8] | None:
        if not self._constrained():
            return None
        return constrained_signs(self.positive, X.shape[1], getattr(self, "feature_names_in_", None))

    def _share(self, search: Any, kernel: Kernel, data: TrainingData) -> NDArray[np.float64] | None:
        """The kernel matrix, where several graphs share it."""
        several = len(options(self.ties)) * len(options(self.balance)) * data.Y.shape[1] > 1
        if not several or kernel.is_linear or is_primal(kernel, data.X, data.layout.n_rows, self.solver):
            return None
        return kernel(data.X)

    def _candidate(self, shared: Any, kernel: Kernel, ties: Any, balance: Any, data: TrainingData) -> Candidate:
        signs = self._signs(data.X)
        return Candidate(kernel, ties, balance, float(self.regression_weight), self.solver, signs=signs)

    def _problems(self, shared: Any, candidate: Candidate, data: TrainingData) -> list[FittedProblem]:
        return candidate.problems(data, shared)

    def _pair_problem(self, search: Any, kernel: Kernel, X: Any, graph: PairGraph) -> Problem:
        return make_problem(X, graph, graph.target[:, None], kernel, self.solver, signs=self._signs(X))
