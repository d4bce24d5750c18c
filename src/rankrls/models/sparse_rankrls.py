"""SparseRankRLS: RankRLS on a basis of few items, for data whose kernel matrix would not fit."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankrls.equations.krylov import Status
from rankrls.equations.normal_equations import NormalEquations, normal_equations
from rankrls.features.rows import rows_for
from rankrls.graph import PairGraph, ScoredGraph
from rankrls.models._basis import BasisRanker, learn_pairs
from rankrls.models._pairs import pair_graph
from rankrls.models._problems import BasisCandidate, FittedProblem, scored_graphs
from rankrls.models._updating import UpdatingRanker
from rankrls.models._validation import (
    TrainingData,
    check_alpha,
    check_choice,
    check_comparable,
    check_count,
    check_fraction,
    check_kernel,
    training_data,
)
from rankrls.problems.subset import Basis, SubsetProblem
from rankrls.problems.subset_cg import SubsetCG, solve_subset_by_cg

__all__ = ["SparseRankRLS"]

_MOST_DIRECT = 16384
"""Basis items from which on an iteration's kernel values cost so little beside the product K_RM L K_MR that CG pays."""


class SparseRankRLS(BasisRanker, UpdatingRanker):
    r"""RankRLS whose function is an expansion over a basis of r items, learnt from all m.

    Minimises, over the functions :math:`f(x) = \sum_{j \in R} a_j k(x, z_j)`,

    .. math::

        \lVert F (y - K_{MR} a) \rVert^2 + \alpha \, a' K_{RR} a , \qquad
        a = ( K_{RM} L K_{MR} + \alpha K_{RR} )^{-1} K_{RM} L y ,

    where ``F'F = L`` is the Laplacian of the preference graph (Tsivtsivadze et al. 2008, equation 8). O(m r^2) time;
    the m x r kernel values are evaluated block by block and never held.

    Parameters
    ----------
    alpha : float, default=1.0
        The papers' lambda. 0 is the limit from above.
    n_basis : int, default=500
        Items in the basis; all rows where there are no more.
    basis : {"random", "kmeans", "pursuit"}, default="random"
        Random rows; the centres of k-means; or the rows that ranking pursuit takes one after the other, among a random
        sample of 4 ``n_basis`` rows (1000 at least), by the first target: fewer than ``n_basis`` where nothing
        improves. Only the last looks at labels.
    basis_indices : sequence of int, optional
        Row numbers of X to be the basis, instead of ``n_basis`` chosen ones. Duplicates do no harm.
    kernel : {"rbf", "laplacian", "polynomial", "sigmoid", "linear", "precomputed"} or callable, default="rbf"
        As in :class:`RankRLS`; it must be positive semidefinite on the basis.
    gamma, degree, coef0, kernel_params, ties, balance, regression_weight : as in :class:`RankRLS`
        ``regression_weight=1.0`` is sparse regularized least squares.
    solver : {"auto", "direct", "cg"}, default="auto"
        "direct" is O(m r^2 + r^3). "cg" is preconditioned conjugate gradients, O(m r) an iteration and O(r^3) for the
        preconditioner, to the same solution; only ``fit`` and ``fit_pairs`` use it, and it needs alpha > 0. It
        evaluates the kernel anew in each iteration, so that it pays for very large bases only: "auto" takes it beyond
        16384 items.
    tol : float, default=1e-8
        Of "cg": the relative norm of the preconditioned residual.
    max_iter : int, default=200
        Of "cg"; a warning tells where it was not enough.
    random_state : int, Generator or RandomState, default=0
        For choosing the basis.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (r,) or (r, targets)
        Coefficients of the basis items.
    X_fit_ : ndarray, sparse array or list of r items
        The basis; not for a precomputed kernel.
    basis_indices_ : ndarray of shape (r,) or None
        Its row numbers in X; None where it is made of centres.
    coef_ : ndarray of shape (n,) or (targets, n)
        Weights of the features; linear kernel only.
    alpha_ : float
    n_iter_ : int
        Iterations of "cg", the most of any target; 1 if solved directly.
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Equal to :class:`RankRLS` where every row is in the basis, and always to RankRLS with the kernel
    :math:`k_R(x)' K_{RR}^{-1} k_R(x')`. Beside the data O(r^2) memory and a block of some thousand rows for each
    thread. A singular ``K_RR`` (duplicate basis items, a wide Gaussian) is reduced to the functions that rounding
    leaves.

    A query of one item contributes nothing, but its row may be in the basis.

    References
    ----------
    Tsivtsivadze, Pahikkala, Airola, Boberg, Salakoski: A sparse regularized least-squares preference learning
    algorithm. SCAI 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import SparseRankRLS
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(3000, 2)), np.repeat(np.arange(300), 10)
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=3000)
    >>> model = SparseRankRLS(alpha=0.1, n_basis=100).fit(X, y, qid=qid)
    >>> model.dual_coef_.shape, model.score(X, y, qid=qid) > 0.9
    ((100,), True)
    """

    _not_updatable = "it was fitted from pairs or by conjugate gradients. Start from a clone."

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        n_basis: int = 500,
        basis: str = "random",
        basis_indices: Any = None,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 200,
        random_state: Any = 0,
    ) -> None:
        self.alpha = alpha
        self.n_basis = n_basis
        self.basis = basis
        self.basis_indices = basis_indices
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Choose the basis, and learn from items with labels.

        Parameters
        ----------
        X, y, qid, sample_weight : as in :meth:`RankRLS.fit`

        Returns
        -------
        self

        Notes
        -----
        O(m r n) for the kernel, O(m r^2) for its product, O(r^3) for the rest.
        """
        alpha = self._check_parameters()
        data = training_data(self, X, y, qid, sample_weight, kernel=self.kernel)
        check_comparable(data, float(self.regression_weight))
        basis = self._chosen_basis(data)
        if self._iterates(basis):
            graphs = scored_graphs(data, self.ties, self.balance, float(self.regression_weight))
            runs = [self._iterate(data.X, basis, graph, graph.F @ data.Y[:, part], alpha) for graph, part in graphs]
            self._forget_fit()
            self._fitted_with_qid = data.has_qid
            self.n_queries_ = data.layout.n_queries
            self._adopt_basis(basis, data.kept)
            self._set_expansion(np.column_stack([run.coefficients for run in runs]), data.one_target)
            self.n_iter_ = int(max(run.iterations.max() for run in runs))
        else:
            problems = self._candidate_over(basis).problems(data)
            self._forget_fit()
            self._adopt(data, basis.kernel, problems, [p.problem.solve(alpha) for p in problems])
            self.n_iter_ = 1
            self._remember(data, problems)
        self.alpha_ = alpha
        return self

    def fit_pairs(self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None) -> Self:
        """Choose the basis among all items of X, and learn from preferences.

        Parameters
        ----------
        X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`

        Returns
        -------
        self

        Notes
        -----
        O(p r^2) for p preferences, O(m r^2) where they far outnumber the items.
        """
        alpha = self._check_parameters()
        X, graph = pair_graph(self, X, winners, losers, strength, weight, kernel=self.kernel)
        basis = self._build_basis(X, self._resolved_kernel(X), None, learn_pairs(graph))
        target = graph.target[:, None]
        if self._iterates(basis):
            run = self._iterate(X, basis, graph, target, alpha)
            self._forget_fit()
            self._fitted_with_qid = False
            self.n_queries_ = 1
            self._adopt_basis(basis, None)
            self._set_expansion(run.coefficients, True)
            self.n_iter_ = int(run.iterations[0])
        else:
            problem = SubsetProblem(X, basis, graph, target)
            self._forget_fit()
            self._adopt_pairs(X, basis.kernel, problem, graph, problem.solve(alpha))
            self.n_iter_ = 1
        self.alpha_ = alpha
        return self

    def _holdout_candidate(self, data: TrainingData) -> BasisCandidate:
        """What ``fit`` solves and held-out scores come from; see :mod:`rankrls.model_selection`."""
        return self._candidate_over(self._chosen_basis(data))

    def _candidate_over(self, basis: Basis) -> BasisCandidate:
        beta = float(self.regression_weight)
        return BasisCandidate(basis.kernel, self.ties, self.balance, beta, "direct", basis)

    def _preference_problem(self, X: Any, graph: PairGraph) -> SubsetProblem:
        """What ``fit_pairs`` solves and held-out preferences come from."""
        basis = self._build_basis(X, self._resolved_kernel(X), None, learn_pairs(graph))
        return SubsetProblem(X, basis, graph, graph.target[:, None])

    def _iterates(self, basis: Basis) -> bool:
        return self.solver == "cg" or (self.solver == "auto" and basis.size > _MOST_DIRECT and float(self.alpha) > 0.0)

    def _iterate(
        self, X: Any, basis: Basis, graph: ScoredGraph | PairGraph, target: NDArray[np.float64], alpha: float
    ) -> SubsetCG:
        """Conjugate gradients, with a warning where they have not converged."""
        run = solve_subset_by_cg(X, basis, graph, target, alpha, tol=float(self.tol), max_iter=int(self.max_iter))
        left = [k for k, status in enumerate(run.status) if status is not Status.CONVERGED]
        if left:
            warnings.warn(
                f"Conjugate gradients ended before tol={self.tol:g} after {run.iterations[left[0]]} iterations "
                f"({run.status[left[0]].value}); the relative residual is {run.residuals[left].max():.1e}. Raise "
                "max_iter or alpha.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return run

    def _chosen_basis(self, data: TrainingData) -> Basis:
        learn = self._learn(data, self.ties, self.balance)
        return self._build_basis(data.X, self._resolved_kernel(data.X), data.kept, learn)

    def _check_parameters(self) -> float:
        self._check_basis()
        check_choice("solver", self.solver, ("auto", "direct", "cg"))
        if isinstance(self.tol, bool) or not isinstance(self.tol, Real) or not 0.0 < float(self.tol) < 1.0:
            raise ValueError(f"tol must be a number between 0 and 1; got {self.tol!r}.")
        check_count("max_iter", self.max_iter)
        alpha = check_alpha(self.alpha)
        if self.solver == "cg" and alpha == 0.0:
            raise ValueError("solver='cg' needs alpha > 0; use solver='direct' for the limit alpha = 0.")
        check_choice("ties", self.ties, ("include", "exclude"))
        check_choice("balance", self.balance, ("pairs", "examples", "queries"))
        check_fraction("regression_weight", self.regression_weight)
        check_kernel(self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)
        return alpha

    def _check_updatable(self) -> None:
        if self.solver == "cg":
            raise AttributeError("Exact updates add up normal equations, which solver='cg' never forms.")
        if self.kernel == "precomputed":
            raise AttributeError("Exact updates evaluate the kernel between new items and the basis: give it by name.")

    def _begin(self, data: TrainingData) -> None:
        basis = self._chosen_basis(data)
        self._adopt_basis(basis, data.kept)
        self._keep(basis)

    def _batch_equations(self, data: TrainingData, graph: ScoredGraph, part: slice) -> NormalEquations:
        basis = self._kept_basis()
        equations = normal_equations(rows_for(basis.columns(data.X), graph), graph.F @ data.Y[:, part])
        return equations.whitened(basis.whitening)

    def _take_solution(self, coefficients: list[NDArray[np.float64]]) -> None:
        self._set_expansion(self._kept_basis().to_items @ np.column_stack(coefficients), self._one_target)

    def _remember(self, data: TrainingData, problems: list[FittedProblem]) -> None:
        super()._remember(data, problems)
        problem = problems[0].problem
        assert isinstance(problem, SubsetProblem)
        self._keep(problem.basis)

    def _graph_settings(self) -> dict[str, Any]:
        kernel = self._kernel_
        return {
            **super()._graph_settings(),
            "kernel": self.kernel if isinstance(self.kernel, str) else "a function",
            "gamma": kernel.gamma if self.gamma is None else float(self.gamma),
            "degree": int(self.degree),
            "coef0": float(self.coef0),
        }

    def _keep(self, basis: Basis) -> None:
        """What the equations of later batches must be whitened by: eigenvectors are not the same everywhere."""
        self._basis_parts = {
            "to_items": basis.to_items,
            "rows_first": basis.rows_first,
            "features": basis.features,
        }

    def _kept_basis(self) -> Basis:
        return Basis(self._kernel_, self.X_fit_, **self._basis_parts)
