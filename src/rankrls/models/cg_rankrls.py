"""RankRLS by conjugate gradients: very large sparse data, and kernels known by their products."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rankrls._errors import InputError
from rankrls.metrics import resolve_measure
from rankrls.models._base import KernelRanker, resolve_kernel
from rankrls.models._convergence import NotConverged
from rankrls.models._krylov_parts import KrylovData, KrylovPlan, label_plan, pair_plan
from rankrls.models._krylov_selection import Reading, Surface, progress_lines
from rankrls.models._pairs import pair_graph
from rankrls.models._validation import (
    check_alphas,
    check_choice,
    check_comparable,
    check_count,
    check_fraction,
    check_operator,
    training_data,
)
from rankrls.solvers.krylov import MultiShiftCG, Status

__all__ = ["CGRankRLS"]

_GRID = tuple(2.0**k for k in range(-10, 11))


class CGRankRLS(KernelRanker):
    r"""RankRLS by conjugate gradients: every regularization value and every number of iterations from one run.

    Minimises, for every alpha of a grid,

    .. math::

        \lVert F (y - X w) \rVert^2 + \alpha \lVert w \rVert^2 ,

    by conjugate gradients on :math:`(X'LX + \alpha I) w = X'Ly` (Airola, Pahikkala, Salakoski 2010). The systems of all
    alphas live in one Krylov space: one product with the data an iteration carries the iterates of all of them, and
    their validation scores. ``validation_surface_`` (alphas x iterations) then has everything that can be chosen.

    Parameters
    ----------
    alphas : "auto" or tuple of float, default="auto"
        Regularization values, 0 allowed. "auto" is 2^-10, 2^-9, ..., 2^10 as in the paper, and 0 for early stopping.
    selection : {"hybrid", "tikhonov", "early_stopping"}, default="hybrid"
        How the surface is read. "tikhonov": each alpha runs until it has converged, alpha is chosen. "early_stopping":
        one alpha, the number of iterations is chosen. "hybrid": both. The last two stop once each alpha has converged
        or has not got better for ``patience`` iterations; the best iterate was kept.
    max_iter : int, default=500
    tol : float, default=1e-5
        An alpha has converged where the norm of its residual is at most ``tol`` times that of the right side.
    patience : int, default=10
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        What is judged where no validation data are given. None holds out a fifth: of the queries, or for one global
        ranking of the rows, drawn evenly along the labels. An int is that many folds of queries (of rows for one global
        ranking). The data are not copied.
    scoring : str, Measure or callable, default="disagreement"
        What to choose by; see :func:`rankrls.metrics.resolve_measure`.
    kernel : {"linear", "precomputed"}, default="linear"
        With "precomputed", X is a kernel matrix or a :class:`scipy.sparse.linalg.LinearOperator` that multiplies by it,
        and the same iteration runs on ``F K F'``.
    ties, balance, regression_weight : as in :class:`RankRLS`
    verbose : int or callable, default=0
        1 writes a line of progress on standard error now and then. A callable is given a named tuple (iteration,
        max_iter, running, alpha, n_iter, score, residual) after each iteration.
    random_state : int, RandomState or None, default=0
        Draws what is held out with ``cv=None``.

    Attributes
    ----------
    alpha_ : float
    n_iter_ : int
        Iterations of the model.
    coef_ : ndarray of shape (n,) or (targets, n)
        Linear kernel.
    dual_coef_ : ndarray of shape (m,) or (m, targets)
        Precomputed kernel.
    alphas_ : ndarray of shape (alphas,)
    validation_surface_ : ndarray of shape (alphas, iterations)
        The measure of each alpha after 1, 2, ... iterations; an alpha that has converged keeps its value. No columns
        where nothing was judged.
    status_ : list of str
        Of each alpha: "converged", "stopped" (patience ended first), "max_iter", "breakdown" (a direction without
        positive energy: rounding, or an indefinite kernel), "stagnated" (converged but for rounding).
    iterations_ : ndarray of shape (alphas,)
        Iterations of each alpha until that.
    best_score_, best_score_error_ : float
        The measure of the choice and its standard error; NaN where nothing was judged.
    best_params_ : dict
        alpha, n_iter.
    cv_results_ : dict of ndarray
        For each alpha as it is read: alpha, mean_score, standard_error, n_iter.
    alpha_at_edge_ : bool
        Whether the chosen alpha is the smallest or largest of a grid of three or more.
    selection_ : str
        What was judged, in words.
    held_out_scores_ : None
    interrupted_ : bool
        Whether a KeyboardInterrupt ended the fit; the model is then the best one until then.
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        Where the model has not converged, or with early stopping was still getting better after ``max_iter``
        iterations.

    Notes
    -----
    An iteration is one pass over the stored entries of X, O(alphas x (features + validation rows)) and one evaluation
    of the measure; O(pairs) for preferences. ``alpha = 0`` goes to the solution of minimum norm. One alpha with
    ``selection="tikhonov"`` holds nothing out.

    With X_val the model is trained on all of X. Without it, a run on all rows moves beside those of the training parts,
    and the model is its iterate at the chosen alpha and number of iterations. Equal measures: the largest alpha, then
    the fewest iterations.

    References
    ----------
    Airola, Pahikkala, Salakoski: Large scale training methods for linear RankRLS. 2010.

    Frommer, Maass: Fast CG-based methods for Tikhonov-Phillips regularization. SIAM J. Sci. Comput. 20, 1999.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from rankrls import CGRankRLS
    >>> rng = np.random.default_rng(0)
    >>> X = sparse.random_array((300, 50), density=0.2, rng=rng, format="csr")
    >>> y = X @ rng.normal(size=50) + 0.5 * rng.normal(size=300)
    >>> model = CGRankRLS(random_state=0).fit(X, y)
    >>> model.selection_
    '60 of 300 rows held out'
    >>> model.validation_surface_.shape[0], bool(model.validation_surface_.min() == model.best_score_)
    (21, True)
    """

    _accepts_operators = True

    def __init__(
        self,
        alphas: Any = "auto",
        *,
        selection: str = "hybrid",
        max_iter: int = 500,
        tol: float = 1e-5,
        patience: int = 10,
        cv: Any = None,
        scoring: Any = "disagreement",
        kernel: str = "linear",
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
        verbose: Any = 0,
        random_state: Any = 0,
    ) -> None:
        self.alphas = alphas
        self.selection = selection
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.cv = cv
        self.scoring = scoring
        self.kernel = kernel
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.verbose = verbose
        self.random_state = random_state

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
        """Learn from items with labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n); or a kernel matrix or LinearOperator, (m, m)
            CSR is read in place: any index type, any order of the indices, duplicates added up.
        y, qid, sample_weight : as in :meth:`RankRLS.fit`
        X_val, y_val, qid_val : optional
            Validation data to choose by. With a kernel, ``X_val`` multiplies from the training to the validation items.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For bad input, naming the row and column; where no query holds two different labels; and where what is held
            out, or the validation data, cannot be judged.
        KeyboardInterrupt
            After an interrupt, with ``interrupted_`` set and the best model so far fitted.
        """
        alphas = self._check_parameters()
        measure = resolve_measure(self.scoring)
        data = training_data(self, X, y, qid, sample_weight, kernel=self.kernel)
        check_comparable(data, float(self.regression_weight))
        given = KrylovData(data, self._resolve(data.X), self.ties, self.balance, float(self.regression_weight))
        plan = label_plan(
            self,
            given,
            measure,
            (X_val, y_val, qid_val),
            select=self._selects(alphas),
            rng=check_random_state(self.random_state),
        )
        self._begin(data.layout.n_queries, data.has_qid, data.one_target)
        self._run(plan, alphas, measure.greater_is_better)
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
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
        winners_val: Any = None,
        losers_val: Any = None,
        strength_val: Any = None,
        weight_val: Any = None,
    ) -> Self:
        """Learn from preferences.

        Parameters
        ----------
        X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`
        groups : array-like of shape (p,), optional
            A group for each preference (the annotator, the prompt); held out together.
        X_val, y_val, qid_val : optional
            Validation items with labels.
        winners_val, losers_val, strength_val, weight_val : optional
            Validation preferences between rows of ``X_val``, or of X where there is none.

        Returns
        -------
        self

        Notes
        -----
        O(stored entries + pairs) an iteration. Held-out preferences are judged by the weighted share that is ordered
        rightly or wrongly ("pair_accuracy" or "disagreement"); strength 0 is not judged. Without validation data a
        fifth of the preferences (of the groups) is held out, or ``cv`` folds of them.
        """
        alphas = self._check_parameters()
        measure = resolve_measure(self.scoring)
        X, graph = pair_graph(self, X, winners, losers, strength, weight, kernel=self.kernel, groups=groups)
        plan = pair_plan(
            self,
            X,
            graph,
            self._resolve(X),
            measure,
            (X_val, y_val, qid_val),
            (winners_val, losers_val, strength_val, weight_val),
            select=self._selects(alphas),
            rng=check_random_state(self.random_state),
        )
        self._begin(1, False, True)
        self._run(plan, alphas, measure.greater_is_better)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score items.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)
            With ``kernel="precomputed"`` the kernel between these items and the training items, or a LinearOperator.

        Returns
        -------
        ndarray of shape (m,) or (m, targets)
        """
        if isinstance(X, LinearOperator):
            check_is_fitted(self)
            return np.asarray(check_operator(self, X, reset=False) @ self.dual_coef_)
        return super().predict(X)

    def _check_parameters(self) -> NDArray[np.float64]:
        check_choice("selection", self.selection, ("hybrid", "tikhonov", "early_stopping"))
        check_choice("kernel", self.kernel, ("linear", "precomputed"))
        check_choice("ties", self.ties, ("include", "exclude"))
        check_choice("balance", self.balance, ("pairs", "examples", "queries"))
        check_fraction("regression_weight", self.regression_weight)
        check_count("max_iter", self.max_iter)
        check_count("patience", self.patience)
        if isinstance(self.tol, bool) or not isinstance(self.tol, Real) or not 0.0 <= float(self.tol) < 1.0:
            raise InputError("{tol} must be a number of at least 0 and below 1; got {0!r}.", self.tol, parameter="tol")
        early = self.selection == "early_stopping"
        if isinstance(self.alphas, str) and self.alphas == "auto":
            return np.array([0.0] if early else _GRID)
        alphas = check_alphas(self.alphas)
        if early and len(alphas) > 1:
            raise InputError(
                "{selection='early_stopping'} takes one alpha (0 by default); got {0}.",
                len(alphas),
                remedy="{selection='hybrid'} chooses among several.",
                parameter="alphas",
            )
        return alphas

    def _selects(self, alphas: NDArray[np.float64]) -> bool:
        return self.selection != "tikhonov" or len(alphas) > 1

    def _resolve(self, X: Any) -> Any:
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"A precomputed kernel matrix must be square to fit; got shape {X.shape}.")
        return resolve_kernel(X, self.kernel, None, 3, 1.0, None)

    def _begin(self, n_queries: int, with_qid: bool, one_target: bool) -> None:
        self._forget_fit()
        for name in [name for name in vars(self) if name == "alpha_" or name == "interrupted_"]:
            delattr(self, name)
        self.n_queries_ = n_queries
        self._fitted_with_qid, self._one_target = with_qid, one_target

    def _run(self, plan: KrylovPlan, alphas: NDArray[np.float64], greater_is_better: bool) -> None:
        cg = MultiShiftCG(float(self.tol), int(self.max_iter))
        report = (
            self.verbose if callable(self.verbose) else progress_lines(type(self).__name__) if self.verbose else None
        )
        final, parts = plan.runs(cg, alphas)
        reading = Reading(self.selection != "tikhonov", int(self.patience))
        surface = Surface(cg, alphas, final, parts, reading, greater_is_better, report)
        try:
            surface.run()
        except KeyboardInterrupt:
            if surface.best[0] >= 0:
                self._publish(surface, plan, interrupted=True)
            raise
        self._publish(surface, plan, interrupted=False)
        self._warn(surface, cg)

    def _publish(self, surface: Surface, plan: KrylovPlan, *, interrupted: bool) -> None:
        k, n_iter = surface.best
        solutions = surface.solutions()
        self._kernel_ = plan.kernel
        if plan.kernel.is_linear:
            self._set_coefficients([x[:, None] for x in solutions], self._one_target)
        else:
            a = plan.item_coefficients(surface.final, solutions)
            self.dual_coef_ = a[:, 0] if self._one_target else a
        scores, errors, read_at = surface.readings()
        self.alphas_ = surface.alphas
        self.alpha_, self.n_iter_ = float(surface.alphas[k]), n_iter
        self.validation_surface_ = surface.table()
        self.status_, self.iterations_ = surface.status(), surface.iterations()
        self.best_score_, self.best_score_error_ = float(scores[k]), float(errors[k])
        self.best_params_ = {"alpha": self.alpha_, "n_iter": self.n_iter_}
        self.cv_results_ = {
            "alpha": surface.alphas,
            "mean_score": scores,
            "standard_error": errors,
            "n_iter": read_at,
        }
        ends = (surface.alphas.min(), surface.alphas.max())
        self.alpha_at_edge_ = bool(len(surface.alphas) > 2 and self.alpha_ in ends)
        self.selection_ = plan.description
        self.held_out_scores_ = None
        self.interrupted_ = interrupted

    def _warn(self, surface: Surface, cg: MultiShiftCG) -> None:
        """Say where the model is not what was asked for."""
        k = surface.best[0]
        if surface.reading.every_iteration:
            if surface.still_improving:
                self._say(
                    f"the measure was still getting better after {{max_iter={self.max_iter}}} iterations; raise it."
                )
            elif "breakdown" in self.status_:
                self._say("the iteration broke down before the search ended: rounding, or an indefinite kernel.")
            return
        verified = [cg.verify(run, k) for run in surface.final]
        self.status_ = surface.status()
        if Status.BREAKDOWN in verified:
            self._say(f"{{alpha={self.alpha_:g}}} broke down: rounding, or a kernel that is not positive semidefinite.")
        elif Status.STAGNATED in verified:
            self._say(f"{{alpha={self.alpha_:g}}} cannot reach {{tol={self.tol:g}}}: rounding; raise {{tol}} or alpha.")
        elif Status.MAX_ITER in verified:
            residual = max(float(run.residuals[k]) for run in surface.final)
            self._say(
                f"{{alpha={self.alpha_:g}}} has not converged after {{max_iter={self.max_iter}}} iterations (residual "
                f"{residual:.1e}, {{tol={self.tol:g}}}); raise {{max_iter}} or {{tol}}."
            )

    def _say(self, what: str) -> None:
        warnings.warn(NotConverged(f"{{{type(self).__name__}}}: {what}"), stacklevel=4)
