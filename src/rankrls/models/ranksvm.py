"""RankSVM: pairwise hinge losses."""

from __future__ import annotations

from typing import Any, Self

from rankrls.graph import OrderedPairs
from rankrls.models._hinge import HingeRanker, check_C
from rankrls.models._pairs import pair_graph
from rankrls.models._problems import FittedProblem
from rankrls.models._validation import check_kernel

__all__ = ["RankSVM"]


class RankSVM(HingeRanker):
    r"""Learning to rank by pairwise hinge losses.

    Minimises, over all functions f of the kernel's space,

    .. math::

        \tfrac12 \lVert f \rVert^2 + C \sum_q \rho_q \sum_{y_i > y_j} w_i w_j \,
        \ell( 1 - (f(x_i) - f(x_j)) ) , \qquad
        \ell(x) = \max(0, x)^2 \text{ or } \max(0, x) ,

    the inner sum over the pairs of query q with different labels. Nothing is divided by the number of pairs; C stands
    where :math:`1 / (2 \alpha)` does in :class:`RankRLS`. Pairs are counted, never listed.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        "hinge" is Joachims' RankSVM; the squared hinge is smooth and faster.
    kernel : {"linear", "rbf", "laplacian", "polynomial", "sigmoid", "precomputed"} or callable, default="linear"
        As in :class:`RankRLS`; it must be positive semidefinite.
    gamma, degree, coef0, kernel_params : as in :class:`RankRLS`
    balance : {"pairs", "examples", "queries"}, default="examples"
        What counts the same: each pair (:math:`\rho_q = 1`), each example (1 / the weight of the query's items), or
        each query (1 / the weight of its pairs).
    n_basis : int, optional
        Items that a kernel machine expands over (Kuo, Lee, Lin 2014): O(m r) memory for r of them. None takes all, up
        to 5000 items.
    basis : {"random", "kmeans"}, default="random"
        How they are chosen.
    basis_indices : sequence of int, optional
        Row numbers of X to be the basis instead.
    tol : float, optional
        The objective ends within this share of its minimum, by the duality gap. 1e-6 for the squared hinge, 1e-3 for
        the hinge.
    max_iter : int, default=100
        Newton steps.
    random_state : int, Generator or RandomState, default=0
        For choosing the basis.

    Attributes
    ----------
    coef_ : ndarray of shape (n,)
        Weights of the features; linear kernel only.
    dual_coef_ : ndarray of shape (r,)
        Coefficients of the basis items; other kernels.
    X_fit_ : ndarray, sparse array or list of r items
        The basis; not for linear or precomputed kernels.
    basis_indices_ : ndarray of shape (r,) or None
        Its row numbers in X.
    support_ : ndarray of int
        Rows in a pair with loss: the others could be left out without changing the solution.
    n_support_ : int
    objective_, dual_gap_ : float
        The objective's value, and by how much it may exceed the minimum.
    n_iter_ : int
        Newton steps.
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Truncated Newton with an exact line search; a value, a gradient or a product with the Hessian costs two products
    with X and O(m log m), whatever the number of pairs and of distinct labels. See
    :mod:`rankrls.hinge.newton` for the stopping rule and for how the hinge, which has no Hessian, is minimised.

    Items with equal labels (``==`` in float64) are no pair. A query of one item or one label contributes nothing. Rows
    of weight zero are dropped first; integer weights equal repetition of rows.

    References
    ----------
    Joachims: Optimizing search engines using clickthrough data. KDD 2002.

    Airola, Pahikkala, Salakoski: Training linear ranking SVMs in linearithmic time using red-black trees. Pattern
    Recognition Letters 32, 2011.

    Chapelle, Keerthi: Efficient algorithms for ranking with SVMs. Information Retrieval 13, 2010.

    Lee, Lin: Large-scale linear RankSVM. Neural Computation 26, 2014.

    Kuo, Lee, Lin: Large-scale kernel RankSVM. SDM 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankSVM
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, 1.0], [2.0, 5.0]])
    >>> y = [1, 0, 1, 2, 0]
    >>> qid = ["a", "a", "a", "b", "b"]
    >>> model = RankSVM(C=10.0).fit(X, y, qid=qid)
    >>> model.rank(X, qid=qid)
    array([1, 3, 2, 1, 2])
    >>> model.score(X, y, qid=qid)
    1.0
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        kernel: Any = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        balance: str = "examples",
        n_basis: int | None = None,
        basis: str = "random",
        basis_indices: Any = None,
        tol: float | None = None,
        max_iter: int = 100,
        random_state: Any = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.balance = balance
        self.n_basis = n_basis
        self.basis = basis
        self.basis_indices = basis_indices
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Learn from items with labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n); or a sequence of objects for a callable kernel
            float32 is not upcast whole. With ``kernel="precomputed"``: the kernel matrix, (m, m).
        y : array-like of shape (m,)
            Labels, higher is better; any number of levels.
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

        Notes
        -----
        O((non-zeros + m log m) x products); up to 1024 features O(m n^2 + n^3) once, which saves most products.
        """
        C = self._check_parameters()
        data = self._training_data(X, y, qid, sample_weight, self.kernel)
        kernel = self._resolved_kernel(data.X)
        pairs = OrderedPairs.build(data.Y[:, 0], data.layout, weights=data.weights, balance=self.balance)
        problem = self._problem(data.X, pairs, self._expansion_basis(data.X, kernel, data.kept))
        self._forget_fit()
        fitted = FittedProblem(problem, slice(0, 1))  # type: ignore[arg-type]
        self._adopt(data, kernel, [fitted], [problem.solve(0.5 / C)])
        return self

    def fit_pairs(self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None) -> Self:
        r"""Learn from preferences: minimise :math:`\tfrac12 \|f\|^2 + C \sum_e c_e \ell(s_e - (f_{i_e} - f_{j_e}))`.

        Parameters
        ----------
        X, winners, losers, weight : as in :meth:`RankRLS.fit_pairs`
        strength : array-like of shape (p,), optional
            By how much each winner should lead at least; 1 by default. 0 asks only that it is not behind: a tie is two
            such preferences, one each way.

        Returns
        -------
        self

        Notes
        -----
        O((non-zeros + p) x products). ``balance`` is about labels and plays no part.
        """
        C = self._check_parameters()
        X, graph = pair_graph(self, X, winners, losers, strength, weight, kernel=self.kernel)
        kernel = self._resolved_kernel(X)
        problem = self._problem(X, graph, self._expansion_basis(X, kernel, None))
        self._forget_fit()
        self._adopt_pairs(X, kernel, problem, graph, problem.solve(0.5 / C))
        return self

    def _check_parameters(self) -> float:
        self._check_shared(self.balance)
        check_kernel(self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)
        return check_C(self.C)
