"""SparseRankRLS that chooses its own regularization and kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.graph import PairGraph
from rankrls.kernels import Kernel
from rankrls.models._basis import BasisRanker, learn_pairs
from rankrls.models._problems import BasisCandidate
from rankrls.models._selecting import SelectingRanker, options
from rankrls.models._validation import TrainingData
from rankrls.problems.subset import Basis, SubsetProblem

__all__ = ["SparseRankRLSCV"]


class SparseRankRLSCV(BasisRanker, SelectingRanker):
    r"""SparseRankRLS whose regularization and kernel are chosen by exact cross-validation.

    Minimises what :class:`SparseRankRLS` minimises. For each kernel one pass over the data and one decomposition give
    the coefficients of every ``alpha`` (Tsivtsivadze et al. 2008, section 4.1) and, without refitting, the scores of
    every query by the model that never saw it.

    Parameters
    ----------
    alphas, cv, scoring, rule : as in :class:`RankRLSCV`
    n_basis, basis, basis_indices, random_state : as in :class:`SparseRankRLS`
    kernel, gamma, degree, coef0, ties, balance : as in :class:`SparseRankRLS`, or a tuple of values to choose from
    kernel_params, regression_weight : as in :class:`SparseRankRLS`

    Attributes
    ----------
    alpha_, best_params_, best_score_, best_score_error_, best_index_, cv_results_, alpha_at_edge_, selection_,
    held_out_scores_, query_scores_ : as in :class:`RankRLSCV`
    dual_coef_, X_fit_, basis_indices_, coef_, n_queries_, n_features_in_, feature_names_in_ : as in
        :class:`SparseRankRLS`

    Notes
    -----
    O(m r^2 + r^3) for each kernel and graph, and about as much again for leave-query-out of all alphas together. The
    basis is chosen once, from all rows: held-out queries lend it items, but not their labels. ``basis="pursuit"``
    looks at the labels of all queries, and the measure of a choice is then a little too good; it is chosen for each
    kernel, on the first of ``ties`` and of ``balance``.

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

    def __init__(
        self,
        alphas: Any = "auto",
        *,
        cv: Any = None,
        scoring: Any = "disagreement",
        rule: str = "best",
        n_basis: int = 500,
        basis: str = "random",
        basis_indices: Any = None,
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1.0,
        kernel_params: dict[str, Any] | None = None,
        ties: Any = "include",
        balance: Any = "examples",
        regression_weight: float = 0.0,
        random_state: Any = 0,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
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

    def _check_form(self) -> None:
        self._check_basis()

    def _begin_search(self, X: Any, kept: NDArray[np.bool_] | None) -> Any:
        """The basis items, the same for every kernel, unless a pursuit chooses them by the kernel."""
        if self.basis == "pursuit" and self.basis_indices is None:
            return None
        return self._choose_items(X, Kernel(self._some_kernel()), kept, None)

    def _share(self, search: Any, kernel: Kernel, data: TrainingData) -> Basis:
        if search is None:
            learn = self._learn(data, options(self.ties)[0], options(self.balance)[0])
            search = self._choose_items(data.X, kernel, data.kept, learn)
        return self._basis_of(data.X, kernel, *search)

    def _candidate(self, shared: Basis, kernel: Kernel, ties: Any, balance: Any, data: TrainingData) -> BasisCandidate:
        return BasisCandidate(kernel, ties, balance, float(self.regression_weight), "direct", shared)

    def _pair_problem(self, search: Any, kernel: Kernel, X: Any, graph: PairGraph) -> SubsetProblem:
        basis = (
            self._build_basis(X, kernel, None, learn_pairs(graph))
            if search is None
            else self._basis_of(X, kernel, *search)
        )
        return SubsetProblem(X, basis, graph, graph.target[:, None])
