"""SparseRankRLS: RankRLS on a basis of few items, for data whose kernel matrix does not fit into memory."""

from __future__ import annotations

from collections.abc import Sequence

from rankrls._typing import ExactFoldsLike, Params, RandomState
from rankrls.models.parameters import (
    BASIS,
    GRAPH,
    GRAPHS,
    KERNEL,
    SELECTION,
    Grid,
    KernelLike,
    Scoring,
    Several,
    descending_grid,
)
from rankrls.models.rankrls import ALPHA, ExactChooser, ExactRanker
from rankrls.models.spec import LeastSquaresSpec
from rankrls.selection.basis import BasisSpec


class SparseRankRLS(ExactRanker):
    r"""RankRLS whose function is an expansion over a basis of r items, fitted to all m items.

    Minimizes, over the functions :math:`f(x) = \sum_{j \in R} a_j k(x, z_j)`,

    .. math::

        \lVert F (y - K_{MR} a) \rVert^2 + \alpha \, a' K_{RR} a , \qquad
        a = ( K_{RM} L K_{MR} + \alpha K_{RR} )^{-1} K_{RM} L y ,

    where ``F'F = L`` is the Laplacian of the preference graph (Tsivtsivadze et al. 2008, equation 8). O(m r^2) time;
    the m x r kernel values are evaluated in blocks and never stored.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularization parameter, the papers' lambda. 0 is the limit from above.
    n_basis : int, default=500
        Number of items in the basis, drawn at random; all rows if there are fewer.
    basis_indices : sequence of int, optional
        Row numbers in X of the basis, instead of ``n_basis`` random ones. Duplicates are allowed.
    kernel : str or callable, default="rbf"
        Kernel as in :class:`RankRLS`; it must be positive semidefinite on the basis.
    gamma, degree, coef0, kernel_params, ties, balance, regression_weight : as in :class:`RankRLS`
        ``regression_weight=1.0`` is sparse regularized least squares.
    random_state : int, Generator or RandomState, default=0
        Seed of the basis. Items are drawn by row number, so the basis depends on row order.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (r,) or (r, targets)
        Coefficients of the basis items.
    X_fit_ : ndarray, sparse array or list of r items
        Items of the basis; not for a precomputed kernel.
    basis_indices_ : ndarray of shape (r,)
        Row numbers in X of the basis.
    coef_ : ndarray of shape (n,) or (targets, n)
        Weights of the features; linear kernel only.
    alpha_ : float
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    SparseRankRLSCV : Choose alpha, kernels and graphs.
    RankRLS : The exact model, for up to a few thousand items.
    RankingPursuit : Select the basis using the labels.

    Notes
    -----
    Equal to :class:`RankRLS` if every row is in the basis, and always to RankRLS with the kernel :math:`k_R(x)'
    K_{RR}^{-1} k_R(x')`. Memory in addition to the data is O(r^2) and a block of a few thousand rows per thread. A
    singular ``K_RR`` (duplicate basis items, a wide Gaussian) is reduced to the functions that are resolved in floating
    point.

    O(m r n) for the kernel, O(m r^2) for its product, O(r^3) for the rest. With preferences, the basis is drawn from
    all items of X: O(p r^2) for p preferences, O(m r^2) if they are many more than items.

    A query with one item has no effect, but its row may be in the basis.

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

    _checks = ALPHA | KERNEL | BASIS | GRAPH

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        n_basis: int = 500,
        basis_indices: Sequence[int] | None = None,
        kernel: KernelLike = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: Params | None = None,
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
        random_state: RandomState = 0,
    ) -> None:
        self.alpha = alpha
        self.n_basis = n_basis
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

    def _spec(self) -> LeastSquaresSpec:
        basis = BasisSpec(self.n_basis, self.basis_indices, self.random_state)
        return self._least_squares(basis=basis).at(self.alpha)

    def _can_update(self) -> bool:
        return self.kernel != "precomputed"


class SparseRankRLSCV(ExactChooser):
    r"""SparseRankRLS with regularization and kernel selected by exact cross-validation.

    Has the same objective as :class:`SparseRankRLS`. For each kernel, one pass over the data and one decomposition give
    the coefficients for every ``alpha`` (Tsivtsivadze et al. 2008, section 4.1) and, without refitting, the held-out
    scores of every query.

    Parameters
    ----------
    alphas, cv, scoring, rule, verbose : as in :class:`RankRLSCV`
    n_basis, basis_indices, random_state : as in :class:`SparseRankRLS`
    kernel, gamma, degree, coef0, ties, balance : as in :class:`SparseRankRLS`, or a tuple of values to choose from
    kernel_params, regression_weight : as in :class:`SparseRankRLS`

    Attributes
    ----------
    alpha_, best_params_, best_score_, best_score_error_, optimism_, best_index_, cv_results_, alpha_at_edge_,
    gamma_at_edge_, degree_at_edge_, coef0_at_edge_, selection_, held_out_scores_, query_scores_ : as in
        :class:`RankRLSCV`
    dual_coef_, X_fit_, basis_indices_, coef_, n_queries_, n_features_in_, feature_names_in_ : as in
        :class:`SparseRankRLS`

    See Also
    --------
    SparseRankRLS : Fit one value of alpha.
    RankRLSCV : The exact model, for up to a few thousand items.

    Notes
    -----
    O(m r^2 + r^3) per kernel and graph, and about as much again for leave-query-out of all alphas together. The basis
    is selected once, from all rows. Held-out queries may contribute items to it, but not labels.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import SparseRankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(2000, 2)), np.repeat(np.arange(200), 10)
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=2000)
    >>> model = SparseRankRLSCV(n_basis=60, gamma=(0.1, 1.0, 10.0)).fit(X, y, qid=qid)
    >>> model.selection_, model.best_params_["gamma"], round(model.best_score_, 2)
    ('leave-query-out over 200 queries', 1.0, 0.06)
    """

    _checks = BASIS | GRAPHS | SELECTION

    def __init__(
        self,
        alphas: Grid = "auto",
        *,
        n_basis: int = 500,
        basis_indices: Sequence[int] | None = None,
        kernel: Several[KernelLike] = "rbf",
        gamma: Several[float | None] = None,
        degree: Several[int] = 3,
        coef0: Several[float] = 1.0,
        kernel_params: Params | None = None,
        ties: Several[str] = "include",
        balance: Several[str] = "examples",
        regression_weight: float = 0.0,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        cv: ExactFoldsLike = None,
        verbose: int = 0,
        random_state: RandomState = 0,
    ) -> None:
        self.alphas = alphas
        self.n_basis = n_basis
        self.basis_indices = basis_indices
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.scoring = scoring
        self.rule = rule
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    def _spec(self) -> LeastSquaresSpec:
        basis = BasisSpec(self.n_basis, self.basis_indices, self.random_state)
        grid = descending_grid(self.alphas)
        return self._least_squares(basis=basis).choosing(grid, self.scoring, self.rule, self.cv, self.verbose)
