"""RankRLS by conjugate gradients, for very large sparse data and kernels given by their products."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from rankrls._comparisons import Data
from rankrls._compiled import one_blas_thread
from rankrls._errors import InputError, InputWarning
from rankrls._rows import column_scales
from rankrls._typing import Array, FoldsLike, Index, Matrix, RandomState
from rankrls.kernels import Kernel
from rankrls.metrics._measure import row_order_warning
from rankrls.models.fitted import Fitted, NotConverged, described
from rankrls.models.parameters import (
    GRAPH,
    SELECTION,
    Grid,
    Scoring,
    check_grid,
    check_seed,
    count,
    number,
    word,
)
from rankrls.models.ranker import Chooses
from rankrls.models.spec import Accepts, Spec, graph_settings, kind_of
from rankrls.numerics.krylov import KernelSystem, KrylovRun, Status, System, largest_eigenvalue
from rankrls.numerics.scorer import Scorer
from rankrls.selection.basis import random_numbers
from rankrls.selection.krylov import Surface, Watched, krylov_systems
from rankrls.selection.plans import Plan, Planner
from rankrls.selection.search import at_open_end

_REASONS = {
    Status.BREAKDOWN: "rounding, or a kernel that is not positive semidefinite",
    Status.STAGNATED: "rounding",
    Status.MAX_ITER: "too few iterations",
}
_RATIO = 1e4
"""Ratio of column spreads beyond which some weights are not reached in a few hundred iterations."""


class CGRankRLS(Chooses):
    r"""RankRLS by conjugate gradients: all regularization values and numbers of iterations from one run.

    Minimizes, for every alpha of a grid,

    .. math::

        \lVert F (y - X w) \rVert^2 + \alpha \lVert w \rVert^2 ,

    by conjugate gradients on :math:`(X'LX + \alpha I) w = X'Ly` (Airola, Pahikkala, Salakoski 2010). The systems of all
    alphas share one Krylov space, so one product with the data per iteration updates the iterates of all alphas and
    their validation scores. ``validation_surface_`` (alphas x iterations) contains the measure of all candidates.

    Parameters
    ----------
    alphas : "auto" or tuple of float, default="auto"
        Regularization values, 0 allowed. "auto" is a geometric grid of 21 from ten times the largest eigenvalue of
        X'LX down by ten decades, as in :class:`RankRLSCV`, and 0 for early stopping.
    selection : {"hybrid", "tikhonov", "early_stopping"}, default="hybrid"
        Parameters selected on the surface. "tikhonov": alpha; each one is iterated to convergence. "early_stopping":
        the number of iterations for one alpha. "hybrid": both. The last two stop when each alpha has converged or has
        not improved for ``patience`` iterations; the best iterate is returned.
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-5
        Relative tolerance: an alpha has converged if the norm of its residual is at most ``tol`` times that of the
        right side.
    patience : int, default=10
        Number of iterations without improvement after which an alpha stops.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        Held-out units if there are no validation data. The data are not copied.

        - None: 5 folds of the queries, or for one global ranking, of the rows, or for preferences, of what will be new
          (:ref:`new`). Of 500 or more that can be evaluated only one fold is held out.
        - An int: a number of folds of these.
        - A splitter, or an iterable of row numbers: these folds.
    scoring : str, Measure or callable, default="disagreement"
        Measure used for selection; see :func:`rankrls.metrics.resolve_measure`.
    rule : {"best", "one_se"}, default="best"
        Selection rule; "one_se" selects the largest alpha within one standard error of the best measure, with the
        fewest iterations; if this model is not the best one, the run is repeated for it.
    kernel : {"linear", "precomputed"}, default="linear"
        Kernel. With "precomputed", X is a kernel matrix or a :class:`scipy.sparse.linalg.LinearOperator` that
        multiplies by it, and the same iteration is applied to ``F K F'``.
    ties, balance, regression_weight : as in :class:`RankRLS`
    random_state : int, Generator, RandomState or None, default=0
        Seed by which ``cv=None`` selects one of the folds of many queries, rows, items or groups.

    Attributes
    ----------
    alpha_ : float
    n_iter_ : int
        Number of iterations of the model.
    coef_ : ndarray of shape (n,) or (targets, n)
        Weights of the features; linear kernel only.
    dual_coef_ : ndarray of shape (m,) or (m, targets)
        Coefficients of the training items; precomputed kernel only.
    alphas_ : ndarray of shape (alphas,)
    validation_surface_ : ndarray of shape (alphas, iterations)
        Measure of each alpha after 1, 2, ... iterations; an alpha that has converged keeps its value. It has no columns
        if nothing was held out.
    status_ : list of str
        Status of each alpha: "converged", "stopped" (patience ended first), "max_iter", "breakdown" (a search direction
        without positive curvature, because of rounding or an indefinite kernel), "stagnated" (converged up to
        rounding).
    iterations_ : ndarray of shape (alphas,)
        Number of iterations of each alpha until then.
    optimism_ : float
        Selection bias of alpha and iteration, as in :class:`RankRLSCV`. NaN for fewer than three held-out queries.
    best_score_, best_score_error_ : float
        Measure of the selected model and its standard error; NaN if nothing was held out.
    best_params_ : dict
        Selected alpha and n_iter.
    cv_results_ : dict of ndarray
        One entry per alpha, with its best number of iterations: alpha, mean_score, standard_error, n_iter.
    alpha_at_edge_ : bool
        Whether the selected alpha is the smallest or largest of a grid of three or more, and its neighbour is not
        equally good.
    selection_ : str
        Description of the held-out data.
    held_out_scores_ : None
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Raises
    ------
    ValueError
        Raised by ``fit`` if input is invalid, with the row and column; if no query has two different labels; or if the
        measure is undefined for the held-out or validation data.

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If the model has not converged, or with early stopping still improved at ``max_iter`` iterations.

    See Also
    --------
    RankRLSCV : Exact hold-out, for up to a few thousand features.
    rankrls.io.load_letor : Read sparse features from text.

    Notes
    -----
    ``fit`` reads CSR in place: any index type, any order of indices, with duplicates summed. With a kernel, ``X_val``
    multiplies from the training items to the validation items.

    An iteration costs one pass over the stored entries of X, O(alphas x (features + validation rows)) and one
    evaluation of the measure; O(pairs) for preferences. An automatic grid costs ten more passes, for the largest
    eigenvalue that matters for the labels. ``alpha = 0`` converges to the solution of minimum norm. With one alpha and
    ``selection="tikhonov"``, nothing is held out. The measure of one ranking has a standard error over its items if it
    is a measure of pairs.

    With X_val, the model is fitted to all of X. Without it, a run on all rows accompanies the runs on the training
    rows, and the model is its iterate at the selected alpha and number of iterations. If measures are equal, the
    largest alpha is selected, then the fewest iterations.

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
    '5 folds of 300 rows'
    >>> model.validation_surface_.shape[0], bool(model.validation_surface_.min() == model.best_score_)
    (21, True)
    """

    _accepts = Accepts(operators=True)
    _checks = (
        GRAPH
        | SELECTION
        | {
            "selection": word(("hybrid", "tikhonov", "early_stopping")),
            "max_iter": count,
            "tol": number(least=0.0, below=1.0),
            "patience": count,
            "kernel": word(("linear", "precomputed")),
            "random_state": check_seed,
        }
    )

    alpha_: float
    n_iter_: int

    def __init__(
        self,
        alphas: Grid = "auto",
        *,
        selection: str = "hybrid",
        max_iter: int = 500,
        tol: float = 1e-5,
        patience: int = 10,
        cv: FoldsLike = None,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        kernel: str = "linear",
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
        random_state: RandomState = 0,
    ) -> None:
        self.alphas = alphas
        self.selection = selection
        self.max_iter = max_iter
        self.tol = tol
        self.patience = patience
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.kernel = kernel
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.random_state = random_state

    def _spec(self) -> CGSpec:
        self._check_parameters()
        return CGSpec(
            name=type(self).__name__,
            accepts=self._accepts,
            kind=kind_of(self.kernel),
            kernel=Kernel(self.kernel),
            graphs=graph_settings(self.ties, self.balance, self.regression_weight),
            selection=self.selection,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            patience=int(self.patience),
            random_state=self.random_state,
        ).choosing(self._grid(), self.scoring, self.rule, self.cv)

    def _grid(self) -> Array | None:
        """The given alphas, or 0 for early stopping; None for an automatic grid."""
        automatic = isinstance(self.alphas, str) and self.alphas == "auto"
        alphas = None if automatic else check_grid("alphas", self.alphas)
        if self.selection != "early_stopping":
            return alphas
        if alphas is not None and len(alphas) > 1:
            problem = f"selection='early_stopping' needs one alpha; got {len(alphas)}. selection='hybrid' selects one."
            raise InputError(problem, parameter="alphas")
        return np.zeros(1) if alphas is None else alphas


@dataclass(frozen=True, eq=False, kw_only=True)
class CGSpec(Spec):
    """Conjugate gradients with an evaluation after every iteration.

    Attributes
    ----------
    kernel : Kernel
    selection : {"hybrid", "tikhonov", "early_stopping"}
    tol : float
    max_iter : int
    patience : int
    random_state : int, Generator, RandomState or None
    """

    kernel: Kernel
    selection: str
    tol: float
    max_iter: int
    patience: int
    random_state: RandomState

    def plan(self, planner: Planner[Data]) -> Plan | None:
        chooses = self.selection != "tikhonov" or self.grid is None or len(self.grid) > 1
        if self.cv is None and not chooses:
            return None
        return planner.one(self.cv, random_numbers(self.random_state))

    def fit(self, data: Data, plan: Plan | None = None) -> Fitted:
        measure = self.required_measure
        setting, _ = data.settings(self.graphs)[0]
        systems = partial(krylov_systems, data.whole(), self.kernel, setting)
        # threads that BLAS wakes for a vector would spin and delay the next product
        with one_blas_thread() if self.kernel.is_linear else nullcontext():
            grid = _grid(systems()) if self.grid is None else self.grid

            def start(train: Index | None = None, watched: Matrix = None) -> list[KrylovRun]:
                parts = systems(train, watched)
                return [KrylovRun(system, right, grid, self.tol, self.max_iter) for system, right in parts]

            splits = [] if plan is None else plan.splits(data.whole())
            watched = [
                Watched(start(each.train, each.watched), partial(each.data.evaluate, measure)) for each in splits
            ]
            final = watched[0].runs if len(splits) == 1 and splits[0].train is None else start()
            every = self.selection != "tikhonov"
            surface = Surface(grid, final, watched, every, self.patience, 1.0 if measure.greater_is_better else -1.0)
            surface.run()
            surface.choose_by(self.rule, start)
            return self._found(surface, data, "nothing held out" if plan is None else plan.description)

    def _found(self, surface: Surface, data: Data, held_out: str) -> Fitted:
        """Attributes of the model at the best point of a surface, with a warning if it is not as requested."""
        k, n_iter = surface.best
        alpha = float(surface.alphas[k])
        order = np.argsort(surface.alphas)
        goodness = surface.sign * surface.readings()["mean_score"][order]
        score, error, shift = surface.at_best()
        at_edge = bool(at_open_end(int(np.flatnonzero(order == k)[0]), goodness, 1.0) and np.isfinite(score))
        # verifies convergence, which changes the status
        warning = next(self._warnings(surface, data, at_edge=at_edge), None)
        fitted = Fitted.of(
            data,
            self._scorer(surface, data),
            self.kernel,
            alpha_=alpha,
            alphas_=surface.alphas,
            n_iter_=n_iter,
            validation_surface_=surface.table(),
            status_=surface.status(),
            iterations_=surface.iterations(),
            best_score_=score,
            best_score_error_=error,
            optimism_=surface.optimism(self.rule),
            best_params_={"alpha": alpha, "n_iter": n_iter},
            cv_results_=surface.readings(),
            alpha_at_edge_=at_edge,
            selection_=described(held_out, data),
            held_out_scores_=None,
        )
        return fitted.with_warnings(warning, row_order_warning(self.required_measure, score, error, shift))

    def _warnings(self, surface: Surface, data: Data, *, at_edge: bool) -> Iterator[InputWarning]:
        """Differences between the model and what was requested, causes before their effects."""
        if self.kernel.is_linear:
            yield from _badly_scaled(self.name, data)
        k = surface.best[0]
        alpha = surface.alphas[k]
        verified = [] if surface.every_iteration else [run.verify(k) for run in surface.final]
        ended = next((s for s in _REASONS if s in verified), None)
        problem = ""
        if surface.still_improving:
            problem = f"the measure still improved after max_iter={self.max_iter} iterations. Increase max_iter."
        elif surface.every_iteration and "breakdown" in surface.status():
            problem = "the iteration broke down early, because of rounding or an indefinite kernel."
        elif ended is not None:
            residual = max(float(run.residuals[k]) for run in surface.final)
            problem = (
                f"alpha={alpha:g} has not converged to tol={self.tol:g} ({ended}: {_REASONS[ended]}; the residual "
                f"is {residual:.1e}). Increase max_iter, tol or alpha."
            )
        if problem:
            yield NotConverged(f"{self.name}: {problem}", parameter="max_iter")
        if at_edge:
            problem = f"alpha={alpha:.3g} is at an end of the grid, beyond which the measure may be better."
            yield InputWarning(f"{self.name}: {problem} Use other alphas.", parameter="alphas")

    def _scorer(self, surface: Surface, data: Data) -> Scorer:
        solutions = surface.solutions
        if self.kernel.is_linear:
            return Scorer(np.column_stack(solutions))
        columns = [cast(KernelSystem, run.system).items(c) for run, c in zip(surface.final, solutions, strict=True)]
        a = np.column_stack(columns)
        if data.kept is not None and len(a) == len(data.kept):
            a = a[data.kept]  # a LinearOperator also has columns for rows of weight zero
        return Scorer(None, a, self.kernel)


def _badly_scaled(name: str, data: Data) -> Iterator[InputWarning]:
    """Warning about columns that vary far less than others, whose weights the iteration does not reach."""
    scales = column_scales(data.X)
    live = np.flatnonzero(scales > 0.0)
    if not len(live) or scales[live].max() <= _RATIO * scales[live].min():
        return
    small = live[scales[live].argmin()]
    large = live[scales[live].argmax()]
    problem = (
        f"column {data.features.called(large)} varies {scales[large] / scales[small]:.1g} times as much as column "
        f"{data.features.called(small)}, whose weight conjugate gradients hardly reach. Scale the columns, for example "
        "with StandardScaler (MaxAbsScaler if X is sparse), or use RankRLSCV."
    )
    yield InputWarning(f"{name}: {problem}", parameter="X")


def _grid(systems: list[tuple[System, Array]]) -> Array:
    """An automatic grid, ascending, relative to the largest eigenvalue over the systems of all targets."""
    top = max(largest_eigenvalue(system, right) for system, right in systems)
    return np.geomspace(1e-9 * top, 10.0 * top, 21) if top > 0.0 else np.ones(1)
