"""RankRLS by conjugate gradients: very large sparse data, and kernels known by their products."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import partial
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Comparisons
from rankrls._compiled import one_blas_thread
from rankrls._errors import InputError, InputWarning
from rankrls._rows import column_scales
from rankrls.kernels import Kernel
from rankrls.metrics import Measure
from rankrls.models import fitting
from rankrls.models.parameters import GraphParameters, check_grid, check_parameters, check_seed, estimator, parameter
from rankrls.models.ranker import Chooses
from rankrls.numerics.krylov import KernelSystem, KrylovRun, MultiShiftCG, Status, largest_eigenvalue
from rankrls.numerics.scorer import Scorer
from rankrls.selection.basis import permuting
from rankrls.selection.curves import evaluated
from rankrls.selection.krylov import KrylovSystems, Surface, Watched
from rankrls.selection.plans import Plan, a_fifth
from rankrls.selection.search import at_open_end

_REASONS = {
    Status.BREAKDOWN: "rounding, or a kernel that is not positive semidefinite",
    Status.STAGNATED: "rounding",
    Status.MAX_ITER: "too few iterations",
}
_RATIO = 1e4
"""Weights of columns whose spreads differ by more are not reached in some hundred iterations."""


@estimator
class CGRankRLS(Chooses, GraphParameters):
    r"""RankRLS by conjugate gradients: every regularization value and every number of iterations from one run.

    Minimises, for every alpha of a grid,

    .. math::

        \lVert F (y - X w) \rVert^2 + \alpha \lVert w \rVert^2 ,

    by conjugate gradients on :math:`(X'LX + \alpha I) w = X'Ly` (Airola, Pahikkala, Salakoski 2010). The systems of all
    alphas share one Krylov space, so one product with the data per iteration updates the iterates of all alphas and
    their validation scores. ``validation_surface_`` (alphas x iterations) holds the measure of all candidates.

    Parameters
    ----------
    alphas : "auto" or tuple of float, default="auto"
        Regularization values, 0 allowed. "auto" is a geometric grid of 21 from ten times the largest eigenvalue of
        X'LX down by ten decades, as in :class:`RankRLSCV`, and 0 for early stopping.
    selection : {"hybrid", "tikhonov", "early_stopping"}, default="hybrid"
        What is chosen on the surface. "tikhonov": alpha; each one runs until it has converged. "early_stopping": the
        number of iterations of one alpha. "hybrid": both. The last two stop once each alpha has converged or has not
        improved for ``patience`` iterations; the best iterate is kept.
    max_iter : int, default=500
    tol : float, default=1e-5
        An alpha has converged if the norm of its residual is at most ``tol`` times that of the right side.
    patience : int, default=10
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        What is held out if there are no validation data. None holds out a fifth: of the queries, or for one global
        ranking of the rows, drawn evenly along the labels; for preferences of what will be new (:ref:`new`). An int is
        that many folds of these. The data are not copied.
    scoring : str, Measure or callable, default="disagreement"
        What to choose by; see :func:`rankrls.metrics.resolve_measure`.
    rule : {"best", "one_se"}, default="best"
        "one_se" takes the largest alpha that is within one standard error of the best measure, with the fewest
        iterations; if this model is not the best one, the run is repeated for it.
    kernel : {"linear", "precomputed"}, default="linear"
        With "precomputed", X is a kernel matrix or a :class:`scipy.sparse.linalg.LinearOperator` that multiplies by it,
        and the same iteration runs on ``F K F'``.
    ties, balance, regression_weight : as in :class:`RankRLS`
    verbose : int, default=0
        1 shows a progress bar over the iterations; 0 only on a terminal.
    random_state : int, Generator, RandomState or None, default=0
        Seed of the held-out queries, or rows of one ranking, with ``cv=None``. Queries are drawn in the order of their
        ids, rows in the order in which they come.

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
        The measure of each alpha after 1, 2, ... iterations; an alpha that has converged keeps its value. It has no
        columns if nothing was held out.
    status_ : list of str
        Of each alpha: "converged", "stopped" (patience ended first), "max_iter", "breakdown" (a search direction with
        no positive curvature, because of rounding or an indefinite kernel), "stagnated" (converged up to rounding).
    iterations_ : ndarray of shape (alphas,)
        Iterations of each alpha until then.
    optimism_ : float
        As in :class:`RankRLSCV`, of the choice of alpha and iteration. NaN for fewer than three held-out queries.
    best_score_, best_score_error_ : float
        The measure of the choice and its standard error; NaN if nothing was held out.
    best_params_ : dict
        alpha, n_iter.
    cv_results_ : dict of ndarray
        For each alpha, with its best number of iterations: alpha, mean_score, standard_error, n_iter.
    alpha_at_edge_ : bool
        Whether the chosen alpha is the smallest or largest of a grid of three or more, and its neighbour is not equally
        good.
    selection_ : str
        What was held out, in words.
    held_out_scores_ : None
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Raises
    ------
    ValueError
        By ``fit``, for bad input, naming the row and column; if no query has two different labels; and if the measure
        is not defined for the held-out or validation data.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the model has not converged, or with early stopping was still improving after ``max_iter`` iterations.

    Notes
    -----
    ``fit`` reads CSR in place: any index type, any order of the indices, duplicates added up. With a kernel, ``X_val``
    multiplies from the training to the validation items.

    An iteration is one pass over the stored entries of X, O(alphas x (features + validation rows)) and one evaluation
    of the measure; O(pairs) for preferences. An automatic grid needs ten more passes, for the largest eigenvalue that
    matters for the labels. ``alpha = 0`` converges to the solution of minimum norm. One alpha with
    ``selection="tikhonov"`` holds nothing out. The measure of one ranking has a standard error over its items if it is
    one of pairs.

    With X_val the model is fitted on all of X. Without it, a run on all rows accompanies the runs on the training rows,
    and the model is its iterate at the chosen alpha and number of iterations. If measures are equal, the largest alpha
    is chosen, then the fewest iterations.

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

    alphas: Any = parameter(default="auto", kw_only=False)
    selection: str = parameter(default="hybrid", check=("hybrid", "tikhonov", "early_stopping"))
    max_iter: int = parameter(default=500, least=1, whole=True)
    tol: float = parameter(default=1e-5, least=0.0, below=1.0)
    patience: int = parameter(default=10, least=1, whole=True)
    kernel: str = parameter(default="linear", check=("linear", "precomputed"))
    random_state: Any = parameter(default=0, check=check_seed)

    def _check(self) -> None:
        check_parameters(self)
        self._alphas()

    def _folds(self, measure: Measure, data: Comparisons) -> Plan:
        alphas = self._alphas()
        if self.cv is None and self.selection == "tikhonov" and alphas is not None and len(alphas) == 1:
            return Plan(measure, "nothing held out")
        return a_fifth(self.cv, measure, data, permuting(self.random_state), float(self.regression_weight))

    def _alphas(self) -> NDArray[np.float64] | None:
        """The given alphas, or 0 for early stopping; None for an automatic grid."""
        automatic = isinstance(self.alphas, str) and self.alphas == "auto"
        alphas = None if automatic else check_grid("alphas", self.alphas)
        if self.selection != "early_stopping":
            return alphas
        if alphas is not None and len(alphas) > 1:
            problem = f"selection='early_stopping' takes one alpha; got {len(alphas)}. selection='hybrid' chooses."
            raise InputError(problem, parameter="alphas")
        return np.zeros(1) if alphas is None else alphas

    def _search(self, data: Comparisons, plan: Any) -> Self:
        fitting.check_square(data.X, self.kernel)
        kernel = Kernel(self.kernel)
        setting, _ = fitting.settings_of(self, data)[0]
        systems, cg = KrylovSystems(data, kernel, setting), MultiShiftCG(float(self.tol), int(self.max_iter))
        fitting.begin(self, data)
        # threads that BLAS wakes for a vector would spin in the way of the next product's
        with one_blas_thread() if kernel.is_linear else nullcontext():
            alphas = self._alphas()
            grid = _grid(systems) if alphas is None else alphas

            def start(train: Any = None, watched: Any = None) -> list[KrylovRun]:
                return [cg.init(system, right, grid) for system, right in systems.build(train, watched)]

            parts = plan.parts()
            judge = partial(evaluated, plan.measure)
            watched = [Watched(start(part.train, part.watched), partial(judge, part.data)) for part in parts]
            final = watched[0].runs if len(parts) == 1 and parts[0].train is None else start()
            every, better = self.selection != "tikhonov", plan.greater_is_better
            surface = Surface(cg, grid, final, watched, every, int(self.patience), better, int(self.verbose))
            surface.run()
            surface.choose_by(self.rule, start)
            self._keep(surface, data, plan, kernel)
            self._warn(surface, data)
        return self

    def _keep(self, surface: Surface, data: Comparisons, plan: Plan, kernel: Kernel) -> None:
        k, n_iter = surface.best
        solutions = surface.solutions()
        if kernel.is_linear:
            fitting.keep(self, Scorer(np.column_stack(solutions)), kernel)
        else:
            a = np.column_stack(
                [cast(KernelSystem, run.system).items(c) for run, c in zip(surface.final, solutions, strict=True)]
            )
            whole = data.kept is None or len(a) == len(data.kept)
            fitting.keep(self, Scorer(None, a, kernel), kernel, None if whole else data)
        self.alphas_ = surface.alphas
        self.alpha_, self.n_iter_ = float(surface.alphas[k]), n_iter
        self.validation_surface_ = surface.table()
        self.status_, self.iterations_ = surface.status(), surface.iterations()
        self.best_score_, self.best_score_error_ = surface.at_best()
        self.optimism_ = surface.optimism(self.rule)
        self.best_params_ = {"alpha": self.alpha_, "n_iter": self.n_iter_}
        self.cv_results_ = surface.readings()
        order = np.argsort(surface.alphas)
        goodness = surface.sign * self.cv_results_["mean_score"][order]
        at_end = at_open_end(int(np.flatnonzero(order == k)[0]), goodness, 1.0)
        self.alpha_at_edge_ = bool(at_end and np.isfinite(self.best_score_))
        self.selection_ = fitting.described(plan.description, data)
        self.held_out_scores_ = None

    def _warn(self, surface: Surface, data: Comparisons) -> None:
        """One warning if the model is not what was asked for."""
        badly_scaled = "" if self.kernel != "linear" else self._badly_scaled(column_scales(data.X))
        if badly_scaled:
            warnings.warn(InputWarning(f"CGRankRLS: {badly_scaled}", parameter="X"), stacklevel=5)
            return
        k, problem = surface.best[0], ""
        if surface.every_iteration:
            if surface.still_improving:
                problem = f"the measure still improved after max_iter={self.max_iter} iterations. Increase max_iter."
            elif "breakdown" in self.status_:
                problem = "the iteration broke down early, because of rounding or an indefinite kernel."
        else:
            verified = [surface.cg.verify(run, k) for run in surface.final]
            self.status_ = surface.status()
            ended = next((s for s in (Status.BREAKDOWN, Status.STAGNATED, Status.MAX_ITER) if s in verified), None)
            if ended is not None:
                residual = max(float(run.residuals[k]) for run in surface.final)
                problem = (
                    f"alpha={self.alpha_:g} has not converged to tol={self.tol:g} ({ended}: {_REASONS[ended]}; the "
                    f"residual is {residual:.1e}). Raise max_iter, tol or alpha."
                )
        if problem:
            warnings.warn(fitting.NotConverged(f"CGRankRLS: {problem}", parameter="max_iter"), stacklevel=5)
        elif self.alpha_at_edge_:
            edge = f"alpha={self.alpha_:.3g} is at an end of the grid, beyond which the measure may be better."
            warnings.warn(InputWarning(f"CGRankRLS: {edge} Give other alphas.", parameter="alphas"), stacklevel=5)

    def _badly_scaled(self, scales: NDArray[np.float64]) -> str:
        """What is wrong if columns vary so differently that the iteration does not reach the weights of some."""
        live = np.flatnonzero(scales > 0.0)
        if not len(live) or scales[live].max() <= _RATIO * scales[live].min():
            return ""
        names = getattr(self, "feature_names_in_", np.arange(len(scales)))
        small, large = live[scales[live].argmin()], live[scales[live].argmax()]
        return (
            f"column {names[large]!s} varies {scales[large] / scales[small]:.1g} times as much as column "
            f"{names[small]!s}, whose weight conjugate gradients hardly reach. Scale the columns, as with "
            "StandardScaler (MaxAbsScaler if X is sparse), or use RankRLSCV."
        )


def _grid(systems: KrylovSystems) -> NDArray[np.float64]:
    """An automatic grid, ascending, relative to the largest eigenvalue of any target's system."""
    largest = [largest_eigenvalue(system, right) for system, right in systems.build(None, None)]
    top = max(largest)
    return np.geomspace(1e-9 * top, 10.0 * top, 21) if top > 0.0 else np.ones(1)
