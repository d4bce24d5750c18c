"""RankRLS: pairwise regularized least squares, primal, dual and by conjugate gradients."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankrls.equations.krylov import Status
from rankrls.equations.normal_equations import NormalEquations
from rankrls.graph import PairGraph
from rankrls.models._base import SOLVERS
from rankrls.models._pairs import pair_graph
from rankrls.models._problems import Candidate, FittedProblem, Problem, make_problem
from rankrls.models._signs import check_positive, constrained_signs
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
from rankrls.problems.krylov_problem import KrylovProblem
from rankrls.problems.primal import solve_equations
from rankrls.problems.signed import solve_signed

__all__ = ["RankRLS"]


class RankRLS(UpdatingRanker):
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
    kernel : {"linear", "rbf", "laplacian", "polynomial", "sigmoid", "precomputed"} or callable, default="linear"
        A callable takes two rows of X, or two objects of any kind where X is a sequence of them, and returns a number.
    gamma : float, optional
        Of rbf, laplacian, polynomial and sigmoid. 1 / number of features by default.
    degree : int, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        Of the polynomial and sigmoid kernels.
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

    positive: Any = False  # model files of older versions lack it

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
        solver: str = "auto",
        positive: Any = False,
    ) -> None:
        self.alpha = alpha
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

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Learn from items with labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n); or a sequence of objects for a callable kernel
            float32 is not upcast whole. With ``kernel="precomputed"``: the kernel matrix, (m, m).
        y : array-like of shape (m,) or (m, targets)
            Labels, higher is better. Several targets share one factorisation where ties are included.
        qid : array-like of shape (m,), optional
            One query id per row, in any order, of any hashable type. None makes everything one global ranking.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative; a pair weighs ``w_i w_j``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For bad input, naming the row and column; and where no query holds two different labels.
        """
        alpha = self._check_parameters()
        data = training_data(self, X, y, qid, sample_weight, kernel=self.kernel)
        check_comparable(data, float(self.regression_weight))
        candidate = self._holdout_candidate(data)
        problems = candidate.problems(data)
        self._forget_fit()
        self._adopt(data, candidate.kernel, problems, [p.problem.solve(alpha) for p in problems])
        self.alpha_ = alpha
        _warn_unless_converged(problems)
        self._warn_of_lost_features(problems[0].problem, data.X, np.array([alpha]))
        self._remember(data, problems)
        return self

    def fit_pairs(self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None) -> Self:
        r"""Learn from preferences: minimise :math:`\sum_e c_e (s_e - (f_{i_e} - f_{j_e}))^2 + \alpha \|f\|^2`.

        Parameters
        ----------
        X : as for :meth:`fit`
            The items; those in no preference are allowed.
        winners, losers : array-like of int, shape (p,)
            Row numbers of X; row ``winners[e]`` was preferred to row ``losers[e]``. Repeated and contradictory
            preferences are allowed, an item against itself is not.
        strength : array-like of shape (p,), optional
            By how much each winner should lead; 1 by default, 0 for a tie.
        weight : array-like of shape (p,), optional
            How much each preference counts; 1 by default.

        Returns
        -------
        self

        Notes
        -----
        Primal O(p n^2 + n^3), or O(m n^2) where pairs outnumber items; dual O(min(p, m)^3). ``ties``, ``balance`` and
        ``regression_weight`` are about labels and play no part.
        """
        alpha = self._check_parameters()
        X, graph = pair_graph(self, X, winners, losers, strength, weight, kernel=self.kernel)
        problem = self._preference_problem(X, graph)
        self._forget_fit()
        self._adopt_pairs(X, self._resolved_kernel(X), problem, graph, problem.solve(alpha))
        self.alpha_ = alpha
        _warn_unless_converged([FittedProblem(problem, slice(0, 1))])
        self._warn_of_lost_features(problem, X, np.array([alpha]))
        return self

    def _check_updatable(self) -> None:
        if self.kernel != "linear" or self.solver in ("dual", "cg"):
            raise AttributeError(
                "Exact updates work on the normal equations of features: they need kernel='linear', not solver='dual' "
                "or 'cg'."
            )

    def _holdout_candidate(self, data: TrainingData) -> Candidate:
        """What ``fit`` solves and held-out scores come from; see :mod:`rankrls.model_selection`."""
        kernel = self._resolved_kernel(data.X)
        signs = self._signs(data.X)
        return Candidate(kernel, self.ties, self.balance, float(self.regression_weight), self.solver, signs=signs)

    def _preference_problem(self, X: Any, graph: PairGraph) -> Problem:
        """What ``fit_pairs`` solves and held-out preferences come from."""
        kernel = self._resolved_kernel(X)
        return make_problem(X, graph, graph.target[:, None], kernel, self.solver, signs=self._signs(X))

    def _constrained(self) -> bool:
        return check_positive(self.positive, (self.kernel,), self.solver)

    def _signs(self, X: Any) -> NDArray[np.int8] | None:
        if not self._constrained():
            return None
        return constrained_signs(self.positive, X.shape[1], getattr(self, "feature_names_in_", None))

    def _solve_batch(self, equations: NormalEquations, alpha: float, size: int, X: Any) -> NDArray[np.float64]:
        signs = self._signs(X)
        if signs is None:
            return solve_equations(equations, alpha, size, own_units=True)
        return solve_signed(equations, np.array([alpha]), signs)[0][0]

    def _check_parameters(self) -> float:
        check_choice("solver", self.solver, (*SOLVERS, "cg"))
        check_choice("ties", self.ties, ("include", "exclude"))
        check_choice("balance", self.balance, ("pairs", "examples", "queries"))
        check_fraction("regression_weight", self.regression_weight)
        check_kernel(self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)
        self._constrained()
        return check_alpha(self.alpha)


def _warn_unless_converged(problems: list[FittedProblem]) -> None:
    """Conjugate gradients say where they did not reach the solution."""
    iterated = [p.problem for p in problems if isinstance(p.problem, KrylovProblem)]
    failed = [str(status) for p in iterated for status in p.status if status is not Status.CONVERGED]
    if failed:
        residual = max(p.residual for p in iterated)
        warnings.warn(
            f"RankRLS: solver='cg' ended with {failed[0]!r}, at a relative residual of {residual:.1e}. Use a larger "
            "alpha, scale the features, or take solver='auto'; CGRankRLS has max_iter and tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
