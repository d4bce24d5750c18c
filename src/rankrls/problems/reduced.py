"""The dual of many preferences: more pairs than items.

``F K F'`` would be pairs x pairs. With ``K = U S U'`` the features ``Phi = U sqrt(S)`` have the same inner products, so
the primal problem on Phi is the same problem, its Gram matrix no larger than items x items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.equations.spectrum import Spectrum, spectrum
from rankrls.graph import Graph
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.problem import PathSolutions, Problem, matrix_columns, spectral_resolution
from rankrls.problems.scorer import Scorer

__all__ = ["ReducedProblem"]


class ReducedProblem(Problem):
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
        self.graph = graph
        self.read = read
        s = spectrum(K, K.shape[0], overwrite=True)
        if s.values.min(initial=0.0) < -1e-8 * s.values.max(initial=0.0):
            raise ValueError(
                f"The kernel is not positive semidefinite (smallest eigenvalue {s.values.min():.3g}): with more "
                "preferences than items it cannot be used."
            )
        alive = s.values > 0.0
        self._root = np.sqrt(s.values[alive])
        self._vectors = s.vectors[:, alive]
        self._primal = PrimalProblem(self._vectors * self._root, graph, target)

    @property
    def spectrum(self) -> Spectrum:
        return self._primal.spectrum

    @property
    def values(self) -> NDArray[np.float64]:
        return self._primal.values

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        weights = self._primal.path(values).coefficients
        return PathSolutions(np.stack([self._vectors @ (w / self._root[:, None]) for w in weights]), self.read)

    def resolution(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return spectral_resolution(float(self.values.max(initial=0.0)), values)

    def holdout(self, blocks: list[Any], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """See :func:`rankrls.equations.holdout.holdout_scores`."""
        return self._primal.holdout(blocks, alphas)
