"""RankRLS: pairwise regularized least squares, primal, dual and by conjugate gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Comparisons, PreferredItems
from rankrls._public import publish
from rankrls.equations.krylov import Status
from rankrls.metrics import RankingMeasure
from rankrls.models.families.base import SOLVERS, KernelRanker, NotConverged
from rankrls.models.families.streamed import StreamedRanker, StreamedSelection
from rankrls.models.families.updating import UpdatingRanker
from rankrls.models.inputs.parameters import (
    GraphParameters,
    KernelParameters,
    SelectionParameters,
    check_alpha,
    choice,
    estimator,
    options,
    parameter,
)
from rankrls.models.inputs.signs import check_positive, constrained_signs
from rankrls.models.inputs.spreads import warn_of_lost_features
from rankrls.problems.primal import EquationsProblem
from rankrls.problems.problem import Solutions
from rankrls.problems.signed import solve_signed
from rankrls.selection.candidates import LeastSquares, SharedMatrix
from rankrls.selection.plans import LeavePreferredPairOut, Plan

__all__ = ["RankRLS", "RankRLSCV"]

_SHARED = 2000
"""Items up to which several graphs share one kernel matrix; beyond, evaluating it anew is little beside solving."""


class SignedRanker(KernelRanker):
    """A ranker of linear functions whose weights may be constrained in their signs."""

    def _check(self) -> None:
        super()._check()
        self._constrained()

    def _constrained(self) -> bool:
        return check_positive(self.positive, options(self.kernel, "kernel"), self.solver)

    def _signs(self) -> NDArray[np.int8] | None:
        if not self._constrained():
            return None
        return constrained_signs(self.positive, self.n_features_in_, getattr(self, "feature_names_in_", None))


@estimator
class RankRLS(StreamedRanker, UpdatingRanker, SignedRanker, GraphParameters, KernelParameters):
    r"""Learning to rank by pairwise regularized least squares.

    Minimises, over all functions f of the kernel's space,

    .. math::

        \tfrac12 \sum_{ij} W_{ij} ( (y_i - y_j) - (f(x_i) - f(x_j)) )^2 + \alpha \lVert f \rVert^2
        = \lVert F (y - f(X)) \rVert^2 + \alpha \lVert f \rVert^2 ,

    where ``W`` compares the items of a query and ``F'F = D - W`` is the graph's Laplacian. Neither matrix is formed.

    Parameters
    ----------
    alpha : float, default=1.0
        The papers' lambda, without a factor 1/m. 0 is the limit from above: the solution of minimum norm.
    kernel : str or callable, default="linear"
        "linear", "rbf", "laplacian", "polynomial", "sigmoid" and whatever else :doc:`/guide/kernels` lists, or
        "precomputed". A callable takes two rows of X, or two objects of any kind where X is a sequence of them, and
        returns a number.
    gamma : float, optional
        Factor in every named kernel but the linear one. 1 / number of features by default.
    degree : int, default=3
        Of the polynomial kernel, and of others that have one.
    coef0 : float, default=1.0
        Constant in the polynomial and sigmoid kernels, and in others that have one.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    ties : {"include", "exclude"}, default="include"
        Whether pairs of items with equal labels (``==`` in float64) count: their scores are then drawn together.
    balance : {"pairs", "examples", "queries"}, default="examples"
        What counts the same: each pair (Pahikkala et al. 2007), each example (Airola et al. 2010), or each query.
    regression_weight : float in [0, 1], default=0.0
        ``beta`` in ``beta ||y - f||^2 + (1 - beta) (pairwise loss)``: 0 ranks, 1 is plain regularized least squares
        without an intercept.
    solver : {"auto", "primal", "dual", "cg"}, default="auto"
        Primal solves for one weight a feature, O(m n^2 + n^3); dual for one coefficient an item, O(m^3 + m^2 n).
        "auto" takes the primal for a linear kernel with no more features than items. "cg" is conjugate gradients, to a
        relative residual of 1e-9: O(stored entries of X) an iteration for a linear kernel, O(m^2) for others.
    positive : bool, sequence or dict, default=False
        Signs of the features' weights, for a linear kernel in the primal. True: no weight is negative. A sequence of
        feature numbers, or of names where X has them: these are not negative. A sequence with one of 1 (not negative),
        -1 (not positive) and 0 (free) for each feature, or a mask; or a dict from numbers or names to such signs. A
        list such as [0, 1] for two features, which could be either, is refused. The minimum under the constraints is
        exact; a weight that a constraint holds is exactly 0.

    Attributes
    ----------
    coef_ : ndarray of shape (n,) or (targets, n)
        Weights of the features; linear kernel only.
    dual_coef_ : ndarray of shape (m,) or (m, targets)
        Coefficients of the training items; dual only.
    X_fit_ : ndarray, sparse array or list
        The training items that ``dual_coef_`` weighs; kernels other than linear and precomputed.
    alpha_ : float
    n_queries_ : int
        Queries seen; 1 where no qid was given.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had column names.

    Notes
    -----
    Preferences: primal O(p n^2 + n^3) for p of them, or O(m n^2) where pairs outnumber items; dual O(min(p, m)^3).

    There is no intercept: a constant cancels in every difference. A query of a single item, or with ``ties="exclude"``
    of a single label, contributes nothing. Rows of weight zero are dropped first. Integer weights equal repetition of
    rows, except with ``balance="queries"`` and ties included, where repetition adds compared pairs.

    References
    ----------
    Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski: Learning to rank with pairwise regularized least-squares.
    SIGIR 2007 workshop on learning to rank for information retrieval. Equations (8) and (11).

    Kim, Park: Fast nonnegative matrix factorization: an active-set-like method and comparisons. SIAM Journal on
    Scientific Computing 33, 2011. Algorithm 2, for ``positive``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, 1.0], [2.0, 5.0]])
    >>> y = [1, 0, 1, 2, 0]
    >>> qid = ["a", "a", "a", "b", "b"]
    >>> model = RankRLS(alpha=0.1).fit(X, y, qid=qid)
    >>> model.rank(X, qid=qid)
    array([1, 3, 2, 1, 2])
    >>> model.score(X, y, qid=qid)
    1.0
    """

    alpha: float = parameter(default=1.0, check=lambda name, value: check_alpha(value), kw_only=False)
    solver: str = parameter(default="auto", check=choice(*SOLVERS, "cg"))
    positive: Any = parameter(default=False)

    _own_units = True

    def _learn(self, comparisons: Comparisons) -> Self:
        problem, solutions = self._solve(comparisons, float(self.alpha))
        self.alpha_ = float(self.alpha)
        _warn_unless_converged(solutions)
        warn_of_lost_features(self, problem.spreads, np.array([self.alpha_]))
        self._remember(comparisons, problem)
        return self

    def _candidate(self, comparisons: Comparisons) -> LeastSquares:
        return LeastSquares(
            kernel=self._resolved_kernel(comparisons.X),
            setting=self._setting(),
            solver=self.solver,
            signs=self._signs(),
        )

    def _check_updatable(self) -> None:
        if self.kernel != "linear" or self.solver in ("dual", "cg"):
            raise AttributeError(
                "Exact updates work on the normal equations of features: they need kernel='linear', not solver='dual' "
                "or 'cg'."
            )

    def _solution(self, problem: EquationsProblem, alpha: float) -> NDArray[np.float64]:
        signs = self._signs()
        if signs is None:
            return super()._solution(problem, alpha)
        return solve_signed(problem.equations, np.array([alpha]), signs)[0][0]


@estimator
class RankRLSCV(StreamedSelection, SignedRanker, GraphParameters, KernelParameters, SelectionParameters):
    r"""RankRLS whose regularization is chosen by exact cross-validation at about the price of one fit.

    Minimises what :class:`RankRLS` minimises. One factorisation gives the coefficients of every ``alpha`` (Pahikkala
    et al. 2007, section 2.4) and, without refitting, the scores of every query by the model that never saw it
    (Pahikkala, Suominen, Boberg, Salakoski 2007).

    Parameters
    ----------
    alphas : "auto" or tuple of float, default="auto"
        Regularization values to choose from. "auto" is a geometric grid of 21 relative to the problem's spectrum.
    cv : None, int, "leave_pair_out", splitter or iterable of (train rows, test rows), default=None
        None is exact leave-query-out; for one global ranking exact leave-pair-out up to 5000 items (where the
        measure is over pairs and the graph allows it), else 5 folds of rows. An int is that many folds of whole
        queries, exact too, drawn in the order of their ids whatever the order of the rows (of rows for one global
        ranking, by refits). Folds that do not hold out whole queries are refitted, one factorisation each.
        "leave_pair_out" holds out each pair of rows of one query (or of the one ranking), exactly, whatever their
        number, and adds confidence intervals to ``cv_results_``; ``scoring`` must count pairs ("disagreement",
        "pair_accuracy"). Of preferences it holds out the two items of each, with all that is known of either: O(m n)
        for each preference, alpha and step of conjugate gradients, and m x m memory.
    scoring : str, Measure or callable, default="disagreement"
        What to choose by; see :func:`rankrls.metrics.resolve_measure`.
    rule : {"best", "one_se"}, default="best"
        "one_se" takes the largest alpha whose measure is within one standard error of the best.
    kernel, gamma, degree, coef0, ties, balance : as in :class:`RankRLS`, or a tuple of values to choose from
    verbose : int or callable, default=0
        1 writes a line on standard error now and then: how many candidates are done, and how long the rest will take. A
        function is given an object with ``done``, ``total``, ``score`` and ``left`` (seconds) after each candidate.
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
        One entry for every combination and alpha: the parameters, ``mean_score``, ``standard_error``; where pairs of
        one target were held out also the ends of a 95 % interval, ``low`` and ``high``.
    alpha_at_edge_ : bool
        Whether the chosen alpha is the smallest or largest of a grid of three or more: widen the grid then.
    gamma_at_edge_, degree_at_edge_, coef0_at_edge_ : bool
        Likewise, of each of the chosen kernel's parameters that has several values to choose from.
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

    alphas: Any = parameter(default="auto", kw_only=False)
    solver: str = parameter(default="auto", check=choice(*SOLVERS))
    positive: Any = parameter(default=False)

    def _preference_plan(self, measure: RankingMeasure, data: PreferredItems) -> Plan:
        if isinstance(self.cv, str) and self.cv == "leave_pair_out":
            return LeavePreferredPairOut.of_preferences(measure, data, constrained=self._constrained())
        return super()._preference_plan(measure, data)

    def _candidates(self, comparisons: Comparisons) -> Iterator[LeastSquares]:
        signs, several = self._signs(), len(self._settings(comparisons)) > 1 or not comparisons.one_target
        for kernel, choices in self._kernels(comparisons.X):
            # The matrix is held if several graphs share it, and memory or a function's time is no matter.
            share = several and (callable(kernel.name) or comparisons.n_rows <= _SHARED)
            shared = SharedMatrix(kernel, comparisons.X) if share else None
            for setting, chosen in self._settings(comparisons):
                yield LeastSquares(
                    kernel=kernel,
                    setting=setting,
                    choices={**choices, **chosen},
                    solver=self.solver,
                    signs=signs,
                    shared=shared,
                )


def _warn_unless_converged(solutions: Solutions) -> None:
    """Conjugate gradients say if they did not reach the solution."""
    failed = [detail for detail in solutions.details if detail.status is not Status.CONVERGED]
    if failed:
        warnings.warn(
            NotConverged(
                "RankRLS: {solver='cg'} ended with {0!r}, at a relative residual of {1:.1e}.",
                str(failed[0].status),
                max(detail.residual for detail in failed),
                remedy="Use a larger {alpha}, scale the features, or take {solver='auto'}; {CGRankRLS} has {max_iter} "
                "and {tol}.",
            ),
            stacklevel=4,
        )


publish("rankrls", {**globals(), "__name__": "rankrls"})
