"""SparseRankRLS: RankRLS on a basis of few items, for data whose kernel matrix would not fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Comparison, Comparisons, LabelledItems
from rankrls._errors import InputError
from rankrls._public import publish
from rankrls.equations.krylov import Status
from rankrls.equations.normal_equations import NormalEquations, normal_equations
from rankrls.models.families.base import NotConverged
from rankrls.models.families.streamed import StreamedBasis, StreamedRanker, StreamedSelection
from rankrls.models.families.updating import UpdatingRanker
from rankrls.models.inputs.parameters import (
    BasisParameters,
    GraphParameters,
    KernelParameters,
    SelectionParameters,
    check_alpha,
    choice,
    estimator,
    number,
    parameter,
)
from rankrls.problems.problem import Solutions
from rankrls.problems.scorer import Scorer
from rankrls.problems.subset import Basis
from rankrls.selection.candidates import OverBasis

__all__ = ["SparseRankRLS", "SparseRankRLSCV"]

_MOST_DIRECT = 16384
"""Basis items from which on an iteration's kernel values cost so little beside the product K_RM L K_MR that CG pays."""


@estimator
class SparseRankRLS(StreamedBasis, StreamedRanker, UpdatingRanker, GraphParameters, KernelParameters, BasisParameters):
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
    kernel : str or callable, default="rbf"
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

    O(m r n) for the kernel, O(m r^2) for its product, O(r^3) for the rest. Preferences choose the basis among all items
    of X: O(p r^2) for p of them, O(m r^2) where they far outnumber the items.

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

    alpha: float = parameter(default=1.0, check=lambda name, value: check_alpha(value), kw_only=False)
    kernel: Any = parameter(default="rbf", several=True)
    solver: str = parameter(default="auto", check=choice("auto", "direct", "cg"))
    tol: float = parameter(default=1e-8, check=number(above=0.0, below=1.0))
    max_iter: int = parameter(default=200, check=number(least=1, whole=True))

    _not_updatable = "it was fitted from pairs, from a data set or by conjugate gradients. Start from a clone."

    def _learn(self, comparisons: Comparisons) -> Self:
        candidate = self._candidate(comparisons)
        if self.solver == "cg" or (self.solver == "auto" and candidate.size > _MOST_DIRECT and self.alpha > 0.0):
            candidate = replace(candidate, tol=float(self.tol), max_iter=int(self.max_iter))
        problem, solutions = self._solve(comparisons, float(self.alpha), candidate)
        self.alpha_ = float(self.alpha)
        self.n_iter_ = int(max((detail.iterations for detail in solutions.details), default=1))
        self._warn_unless_converged(solutions)
        self._remember(comparisons, problem)
        if hasattr(self, "_equations_") and candidate.basis is not None:
            self._keep(candidate.basis)
        return self

    def _candidate(self, comparisons: Comparisons) -> OverBasis:
        setting, kernel = self._setting(), self._resolved_kernel(comparisons.X)
        return OverBasis(kernel=kernel, setting=setting, **self._basis_of(comparisons, kernel, setting))

    def _warn_unless_converged(self, solutions: Solutions) -> None:
        for detail in solutions.details:
            if detail.status is not Status.CONVERGED:
                warnings.warn(
                    NotConverged(
                        f"Conjugate gradients ended before {{tol={self.tol:g}}} after {{0}} iterations ({{1}}); the "
                        "relative residual is {2:.1e}.",
                        detail.iterations,
                        detail.status.value,
                        detail.residual,
                        remedy="Raise {max_iter} or {alpha}.",
                    ),
                    stacklevel=4,
                )

    def _check(self) -> None:
        super()._check()
        if self.solver == "cg" and float(self.alpha) == 0.0:
            raise InputError(
                "{solver='cg'} needs {alpha} > 0.",
                remedy="Use {solver='direct'} for the limit {alpha=0}.",
                parameter="alpha",
            )

    def _keep_streamed(self, summed: Any, scorer: Scorer, kernel: Any) -> None:
        super()._keep_streamed(summed, scorer, kernel)
        self.n_iter_ = 1

    def _check_updatable(self) -> None:
        if self.solver == "cg":
            raise AttributeError("Exact updates add up normal equations, which solver='cg' never forms.")
        if self.kernel == "precomputed":
            raise AttributeError("Exact updates evaluate the kernel between new items and the basis: give it by name.")

    def _start(self, data: LabelledItems) -> None:
        super()._start(data)
        basis: Basis = self._basis_of(data, self._kernel_, self._setting())["make"]()
        self._keep_basis(data, basis)
        self.X_fit_ = basis.items
        self._keep(basis)

    def _batch_equations(self, X: Any, comparison: Comparison) -> NormalEquations:
        basis = self._kept_basis()
        return normal_equations(comparison.graph.factor_rows(basis.columns(X)), comparison.target).whitened(
            basis.whitening
        )

    def _read(self, coefficients: NDArray[np.float64]) -> Scorer:
        basis = self._kept_basis()
        return basis.read(basis.to_items @ coefficients)

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
        """Keep what the equations of later batches must be whitened by: eigenvectors are not the same everywhere."""
        self._basis_parts_ = {
            "to_items": basis.to_items,
            "rows_first": basis.rows_first,
            "features": basis.features,
        }

    def _kept_basis(self) -> Basis:
        parts: dict[str, Any] = self._basis_parts_
        return Basis(self._kernel_, self.X_fit_, **parts)


@estimator
class SparseRankRLSCV(
    StreamedBasis, StreamedSelection, GraphParameters, KernelParameters, BasisParameters, SelectionParameters
):
    r"""SparseRankRLS whose regularization and kernel are chosen by exact cross-validation.

    Minimises what :class:`SparseRankRLS` minimises. For each kernel one pass over the data and one decomposition give
    the coefficients of every ``alpha`` (Tsivtsivadze et al. 2008, section 4.1) and, without refitting, the scores of
    every query by the model that never saw it.

    Parameters
    ----------
    alphas, cv, scoring, rule, verbose : as in :class:`RankRLSCV`
    n_basis, basis, basis_indices, random_state : as in :class:`SparseRankRLS`
    kernel, gamma, degree, coef0, ties, balance : as in :class:`SparseRankRLS`, or a tuple of values to choose from
    kernel_params, regression_weight : as in :class:`SparseRankRLS`

    Attributes
    ----------
    alpha_, best_params_, best_score_, best_score_error_, best_index_, cv_results_, alpha_at_edge_, gamma_at_edge_,
    degree_at_edge_, coef0_at_edge_, selection_, held_out_scores_, query_scores_ : as in :class:`RankRLSCV`
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

    alphas: Any = parameter(default="auto", kw_only=False)
    kernel: Any = parameter(default="rbf", several=True)

    def _candidates(self, comparisons: Comparisons) -> Iterator[OverBasis]:
        settings = self._settings(comparisons)
        first, items = settings[0][0], None  # the same items for every kernel, unless a pursuit chooses by the kernel
        for kernel, choices in self._kernels(comparisons.X):
            if items is None or (self.basis == "pursuit" and self.basis_indices is None):
                items = cache(partial(self._choose_items, comparisons, kernel, first))
            basis = self._basis_of(comparisons, kernel, first, items)
            for setting, chosen in settings:
                yield OverBasis(kernel=kernel, setting=setting, choices={**choices, **chosen}, **basis)


publish("rankrls", {**globals(), "__name__": "rankrls"})
