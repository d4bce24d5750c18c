"""The dual of many preferences: more pairs than items.

``F K F'`` would be pairs x pairs. With ``K = U S U'`` the features ``Phi = U sqrt(S)`` have the same inner products, so
the primal problem on Phi is the same problem, its Gram matrix no larger than items x items.

Phi has no columns for eigenvalues lost in rounding. The training items' scores do not notice, but those of a new item
have up to ``sqrt(eigenvalue)`` times the coefficients there, which are large where alpha is small. They are
``a = F'(target - F f) / alpha``, as every stationary point's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rankrls.equations.spectrum import LOST, check_semidefinite, spectrum
from rankrls.graph import Graph
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.problem import PathSolutions, matrix_columns
from rankrls.problems.scorer import Scorer


class ReducedProblem(PrimalProblem):
    """Minimise ``||F K a - target||^2 + alpha a'Ka`` through the eigenvectors of K. O(m^3 + pairs m^2).

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Positive semidefinite; destroyed.
    graph : Graph
    target : ndarray of shape (rows of F, targets)
    read : callable, optional
        Makes functions of the items' coefficients.
    """

    def __init__(
        self,
        K: NDArray[np.float64],
        graph: Graph,
        target: NDArray[np.float64],
        read: Callable[[NDArray[np.float64]], Scorer] = matrix_columns,
    ) -> None:
        s = spectrum(K, K.shape[0], overwrite=True)
        check_semidefinite(s.values, "with more preferences than items it has to be, and")
        alive = s.values > 0.0
        self._root = np.sqrt(s.values[alive])
        self._vectors = s.vectors[:, alive]
        self._read = read
        super().__init__(self._vectors * self._root, graph, target)

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        weights = super().path(values).coefficients
        found = [self.item_coefficients(w, float(alpha)) for w, alpha in zip(weights, values, strict=True)]
        return PathSolutions(np.stack(found), self._read)

    def read(self, coefficients: NDArray[np.float64]) -> Scorer:
        """Coefficients of the items as functions."""
        return self._read(coefficients)

    def item_coefficients(self, weights: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
        """Coefficients of the items, (m, targets), of weights of Phi: in the null space of K too. O(m^2 + pairs)."""
        U = self._vectors
        inside = U @ (weights / self._root[:, None])
        gram = self.equations.gram
        if alpha <= LOST * len(U) * np.finfo(np.float64).eps * float(np.trace(gram)):
            return np.asarray(inside)  # next to nothing divided by next to nothing
        scores = U @ (self._root[:, None] * weights)
        outside = self.graph.F.T @ (self.target - self.graph.F @ scores) / alpha
        return np.asarray(inside + outside - U @ (U.T @ outside))
