"""One regularization value by conjugate gradients, in the form of the problems that are factorised."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.equations.krylov import FeatureSystem, KernelSystem, MultiShiftCG, Status, System
from rankrls.features.feature_products import laplacian_product
from rankrls.graph import PairGraph, ScoredGraph

__all__ = ["KrylovProblem"]

_METHOD = MultiShiftCG(tol=1e-9, max_iter=2000)


class KrylovProblem:
    """Minimise ``||F X w - target||^2 + alpha ||w||^2``, or ``||F K a - target||^2 + alpha a'Ka``.

    Parameters
    ----------
    X : dense or CSR features of shape (m, n), or where ``in_features`` is False the kernel matrix (m, m)
    graph : ScoredGraph or PairGraph
    target : ndarray of shape (rows of F, targets)
    in_features : bool
        Whether to solve for one weight a feature, or one coefficient an item.

    Attributes
    ----------
    status : list of Status
        Of each target, after :meth:`solve`.
    residual : float
        The largest of them, relative to the right side.

    Notes
    -----
    An iteration is O(stored entries of X), or O(m^2); up to 2000 of them, to a relative residual of 1e-9.
    """

    def __init__(
        self, X: Any, graph: ScoredGraph | PairGraph, target: NDArray[np.float64], *, in_features: bool
    ) -> None:
        self.graph, self.in_features = graph, in_features
        self.method = _METHOD
        self.status: list[Status] = []
        self.residual = 0.0
        columns = [np.ascontiguousarray(column) for column in target.T]
        self._system: System
        if in_features:
            product = laplacian_product(X, graph)
            self._system = FeatureSystem(product)
            self._right = [product.right_side(column) for column in columns]
        else:
            self._system = KernelSystem(X, graph, np.arange(graph.n_items, dtype=np.intp))
            self._right = columns

    def solve(self, alpha: float) -> NDArray[np.float64]:
        """Weights (n, targets), or coefficients of the items (m, targets)."""
        solutions, self.status, self.residual = [], [], 0.0
        for right in self._right:
            run = self.method.solve(self._system, right, np.array([alpha]))
            solutions.append(run.solution(0))
            self.status.append(self.method.verify(run, 0))
            self.residual = max(self.residual, run.true_residual(alpha, solutions[-1]))
        found = np.column_stack(solutions)
        return self._system.items(found) if isinstance(self._system, KernelSystem) else found
