"""Regularization values by conjugate gradients, in the form of the problems that are factorised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.equations.krylov import FeatureSystem, KernelSystem, MultiShiftCG, Status, System
from rankrls.graph import Graph
from rankrls.problems.problem import PathSolutions, Problem
from rankrls.problems.scorer import Scorer

_METHOD = MultiShiftCG(tol=1e-9, max_iter=2000)


@dataclass(frozen=True)
class Convergence:
    """How a solution was reached: the status, the relative residual and the iterations of the targets that fared worst.

    Of conjugate gradients with a preconditioner the residual is that of the preconditioned system.
    """

    status: Status
    residual: float
    iterations: int

    @classmethod
    def worst(cls, each: list[tuple[Status, float, int]]) -> Convergence:
        """Of several targets: the first status that is no convergence, and the largest numbers."""
        status, residuals, iterations = zip(*each, strict=True)
        failed = (s for s in status if s is not Status.CONVERGED)
        return cls(next(failed, Status.CONVERGED), float(max(residuals)), int(max(iterations)))


class KrylovProblem(Problem):
    """Minimise ``||F X w - target||^2 + alpha ||w||^2``, or ``||F K a - target||^2 + alpha a'Ka``.

    Parameters
    ----------
    X : dense or CSR features of shape (m, n), or the kernel matrix (m, m)
    graph : Graph
    target : ndarray of shape (rows of F, targets)
    read : callable, optional
        Makes functions of coefficients of the items. By default X holds features, and one weight for each is sought.

    Notes
    -----
    An iteration is O(stored entries of X), or O(m^2); up to 2000 of them, to a relative residual of 1e-9. One run
    solves for all values. The details of a solution are its :class:`Convergence`.
    """

    def __init__(
        self,
        X: Any,
        graph: Graph,
        target: NDArray[np.float64],
        read: Callable[[NDArray[np.float64]], Scorer] | None = None,
        *,
        method: MultiShiftCG = _METHOD,
    ) -> None:
        self.graph, self.method = graph, method
        columns = [np.ascontiguousarray(column) for column in target.T]
        self._system: System
        if read is None:
            product = graph.laplacian_product(X)
            self._system = FeatureSystem(product)
            self._right = [product.right_side(column) for column in columns]
            self.read: Callable[[NDArray[np.float64]], Scorer] = Scorer
            self._coefficients: Callable[[NDArray[np.float64]], NDArray[np.float64]] = np.asarray
        else:
            system = KernelSystem(X, graph, np.arange(graph.n_items, dtype=np.intp))
            self._system, self._coefficients, self._right, self.read = system, system.items, columns, read

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        runs = [self.method.solve(self._system, right, values) for right in self._right]
        found, details = [], []
        for k, value in enumerate(values.tolist()):
            solutions = [run.solution(k) for run in runs]
            found.append(self._coefficients(np.column_stack(solutions)))
            each = [
                (self.method.verify(run, k), run.true_residual(value, x), run.iterations[k])
                for run, x in zip(runs, solutions, strict=True)
            ]
            details.append(Convergence.worst(each))
        return PathSolutions(np.stack(found), self.read, details)
