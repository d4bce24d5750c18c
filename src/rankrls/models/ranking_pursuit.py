"""Ranking pursuit: a ranking function of few terms, chosen greedily."""

from __future__ import annotations

from typing import Any, Self

from rankrls.models._pairs import pair_graph
from rankrls.models._problems import scored_graphs
from rankrls.models._pursuits import PathRanker, check_one_target
from rankrls.models._validation import (
    check_choice,
    check_comparable,
    check_count,
    check_fraction,
    check_kernel,
    training_data,
)

__all__ = ["RankingPursuit"]


class RankingPursuit(PathRanker):
    r"""Ranking by a weighted sum of few functions, taken greedily from a dictionary.

    Minimises, over functions ``f = sum_p a_p k_p`` of at most P terms from the dictionary,

    .. math::

        \tfrac12 \sum_{ij} W_{ij} ( (y_i - y_j) - (f(x_i) - f(x_j)) )^2 = (y - f)' L (y - f) .

    Each stage takes the column k that lowers it most, by ``(k'Lr)^2 / k'Lk`` for the residual ``r = y - f``, and then
    fits all coefficients anew. The number of terms is the only regularization; :class:`RankingPursuitCV` chooses it.

    Parameters
    ----------
    n_basis : int, default=10
        P, the number of stages; fewer are taken where nothing improves any more.
    dictionary : {"kernel", "features"}, default="kernel"
        The functions ``k(x, centre)``, or the features themselves, which makes a sparse linear model.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`, default="rbf"
        Of the kernel dictionary. With "precomputed" the columns of the square matrix are the dictionary.
    centers : array-like of shape (N, n), optional
        The centres of the kernel dictionary; the training rows by default.
    ties, balance : as in :class:`RankRLS`
    regression_weight : float in [0, 1], default=0.0
        ``beta`` in ``L~ = beta I + (1 - beta) L``: 0 is ranking pursuit, 1 is kernel matching pursuit (Vincent and
        Bengio 2002), between them lies combined ranking and regression (CRRP). There is no intercept.
    backfit : bool, default=True
        Whether all coefficients are fitted again at each stage. False is plain matching pursuit, in which a stage may
        take the same column once more.
    cache_size : float, default=4096
        MiB that the dictionary's columns may take; beyond, they are computed anew at each stage.

    Attributes
    ----------
    path_ : PursuitPath
        ``indices``, ``coefficients`` and ``losses`` of every stage; see :meth:`staged_predict`. Indices are numbered as
        in ``basis_indices_``.
    n_basis_ : int
        Distinct columns taken, r below.
    basis_indices_ : ndarray of shape (r,), intp
        Their numbers in the order of choice: rows of X, of ``centers``, or features.
    dual_coef_ : ndarray of shape (r,)
        Coefficients of the kernel functions; (m,), mostly zeros, where the kernel is precomputed.
    X_fit_ : ndarray, sparse array or list
        The centres that were taken; kernels other than precomputed.
    coef_ : ndarray of shape (n,)
        Weights of the features, mostly zeros; dictionary="features", and the linear kernel.
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had column names.

    Notes
    -----
    O(m N) a stage for N columns, O(P m N) in all, with 8 m N bytes for the dictionary. Columns that L does not see (a
    constant inside every query) are never taken. Equal columns: the lowest number is taken, so that results are
    deterministic. Columns are not scaled: the criterion does not depend on their lengths. Queries of one item, rows of
    weight zero and repetition are treated as in :class:`RankRLS`; only rows of positive weight are centres.

    References
    ----------
    Tsivtsivadze, Heskes: Semi-supervised ranking pursuit. Section 3 and, for ``regression_weight``, equation (5).

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankingPursuit
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 30)), np.repeat(np.arange(12), 5)
    >>> y = 3 * X[:, 7] - 2 * X[:, 19] + 0.1 * rng.normal(size=60) + 10 * qid
    >>> model = RankingPursuit(n_basis=2, dictionary="features").fit(X, y, qid=qid)
    >>> model.basis_indices_
    array([ 7, 19])
    >>> model.coef_[model.basis_indices_].round(1)
    array([ 3., -2.])
    """

    def __init__(
        self,
        n_basis: int = 10,
        *,
        dictionary: str = "kernel",
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        kernel_params: dict[str, Any] | None = None,
        centers: Any = None,
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
        backfit: bool = True,
        cache_size: float = 4096,
    ) -> None:
        self.n_basis = n_basis
        self.dictionary = dictionary
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.centers = centers
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.backfit = backfit
        self.cache_size = cache_size

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Learn from items with labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n); or a sequence of objects for a callable kernel
        y : array-like of shape (m,)
            Labels, higher is better.
        qid : array-like of shape (m,), optional
            One query id per row, in any order, of any hashable type. None makes everything one global ranking.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative; a pair weighs ``w_i w_j``.

        Returns
        -------
        self
        """
        n_basis = self._check_parameters()
        data = training_data(self, X, y, qid, sample_weight, kernel=self._data_kernel())
        check_one_target(self, data)
        check_comparable(data, float(self.regression_weight))
        pursuit = self._pursuit(data.X)
        [(graph, _)] = scored_graphs(data, self.ties, self.balance, float(self.regression_weight))
        path = pursuit.path(data.X, graph, graph.F @ data.Y[:, 0], n_basis)
        self._take_path(data.X, pursuit, path, data.kept)
        self._fitted_with_qid = data.has_qid
        self.n_queries_ = data.layout.n_queries
        return self

    def fit_pairs(self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None) -> Self:
        r"""Learn from preferences: lower :math:`\sum_e c_e (s_e - (f_{i_e} - f_{j_e}))^2` greedily.

        Parameters
        ----------
        X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`

        Returns
        -------
        self
        """
        n_basis = self._check_parameters()
        X, graph = pair_graph(self, X, winners, losers, strength, weight, kernel=self._data_kernel())
        pursuit = self._pursuit(X)
        path = pursuit.path(X, graph, graph.target, n_basis)
        self._take_path(X, pursuit, path, None)
        self._fitted_with_qid = False
        self.n_queries_ = 1
        return self

    def _check_parameters(self) -> int:
        self._check_pursuit()
        check_choice("ties", self.ties, ("include", "exclude"))
        check_choice("balance", self.balance, ("pairs", "examples", "queries"))
        check_fraction("regression_weight", self.regression_weight)
        check_kernel(self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)
        return check_count("n_basis", self.n_basis)
