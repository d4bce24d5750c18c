"""SparseRankRLS: RankRLS on a basis of few items, for data whose kernel matrix would not fit."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls.graph import PairGraph, ScoredGraph
from rankrls.models._basis import BasisRanker, learn_pairs
from rankrls.models._pairs import pair_graph
from rankrls.models._problems import BasisCandidate, FittedProblem
from rankrls.models._updating import UpdatingRanker
from rankrls.models._validation import (
    TrainingData,
    check_alpha,
    check_choice,
    check_comparable,
    check_fraction,
    check_kernel,
    training_data,
)
from rankrls.solvers.normal_equations import NormalEquations, normal_equations
from rankrls.solvers.rows import rows_for
from rankrls.solvers.subset import Basis, SubsetProblem

__all__ = ["SparseRankRLS"]


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
    >>> model.dual_coef_.shape, round(model.score(X, y, qid=qid), 2)
    ((100,), 0.95)
    """

    _not_updatable = "it was fitted from pairs. Start from a clone."

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
        problems = self._holdout_candidate(data).problems(data)
        self._forget_fit()
        self._adopt(data, self._resolved_kernel(data.X), problems, [p.problem.solve(alpha) for p in problems])
        self.alpha_ = alpha
        self._remember(data, problems)
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
        problem = self._preference_problem(X, graph)
        self._forget_fit()
        self._adopt_pairs(X, self._resolved_kernel(X), problem, graph, problem.solve(alpha))
        self.alpha_ = alpha
        return self

    def _holdout_candidate(self, data: TrainingData) -> BasisCandidate:
        """What ``fit`` solves and held-out scores come from; see :mod:`rankrls.model_selection`."""
        basis = self._chosen_basis(data)
        beta = float(self.regression_weight)
        return BasisCandidate(basis.kernel, self.ties, self.balance, beta, "direct", basis)

    def _preference_problem(self, X: Any, graph: PairGraph) -> SubsetProblem:
        """What ``fit_pairs`` solves and held-out preferences come from."""
        basis = self._build_basis(X, self._resolved_kernel(X), None, learn_pairs(graph))
        return SubsetProblem(X, basis, graph, graph.target[:, None])

    def _chosen_basis(self, data: TrainingData) -> Basis:
        learn = self._learn(data, self.ties, self.balance)
        return self._build_basis(data.X, self._resolved_kernel(data.X), data.kept, learn)

    def _check_parameters(self) -> float:
        self._check_basis()
        check_choice("ties", self.ties, ("include", "exclude"))
        check_choice("balance", self.balance, ("pairs", "examples", "queries"))
        check_fraction("regression_weight", self.regression_weight)
        check_kernel(self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)
        return check_alpha(self.alpha)

    def _check_updatable(self) -> None:
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
