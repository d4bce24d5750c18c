"""The primal problem: ``w = (X'LX + alpha I)^-1 X'L y`` (Pahikkala et al. 2007, equation 11)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls.graph import PairGraph, ScoredGraph
from rankrls.solvers.graded import graded_spectrum, is_graded, resolve_tiny_alphas
from rankrls.solvers.holdout import holdout_scores
from rankrls.solvers.normal_equations import NormalEquations, normal_equations
from rankrls.solvers.rows import rows_for
from rankrls.solvers.spectrum import Spectrum, is_clear, solve_one, spectrum

__all__ = ["PrimalProblem", "solve_equations"]


def solve_equations(
    equations: NormalEquations, alpha: float, size: int, *, own_units: bool = False
) -> NDArray[np.float64]:
    """Coefficients (n, targets) of one alpha. O(n^3). ``own_units`` as in :class:`PrimalProblem`."""
    if own_units and not is_clear(equations.gram, alpha) and is_graded(equations.gram, size):
        return graded_spectrum(equations.gram, size).apply_inverse(np.array([alpha]), equations.rhs)[0]
    return solve_one(equations.gram, equations.rhs, alpha, size)


class PrimalProblem:
    """Minimise ``||F X w - target||^2 + alpha ||w||^2``.

    Parameters
    ----------
    X : dense (float32 or float64) or CSR, shape (m, n)
    graph : ScoredGraph or PairGraph
    target : ndarray of shape (rows of F, targets)
        ``F Y``, or the weighted strengths of the preferences.
    whitening : ndarray of shape (n, rank), optional
        ``T`` with ``T'PT = I``: the penalty is then ``alpha w'Pw`` and ``w = T v`` is sought. The normal equations are
        whitened, ``T'X'LXT``, not the rows: cheaper by ``m n^2``, and as exact as P is well conditioned.
    own_units : bool
        Whether each column of X may be in units of its own, as features are: a column is then not lost beside
        another one whose spread is millions of times as large (:func:`rankrls.solvers.graded.graded_spectrum`).

    Notes
    -----
    O(m n^2) once; then O(n^3) for one alpha, or O(n^3) for the spectrum and O(n^2) for each alpha after it.
    """

    def __init__(
        self,
        X: Any,
        graph: ScoredGraph | PairGraph,
        target: NDArray[np.float64],
        *,
        whitening: NDArray[np.float64] | None = None,
        own_units: bool = False,
    ) -> None:
        self.rows = rows_for(X, graph)
        self.graph = graph
        self.target = target
        self.whitening = whitening
        self.equations = normal_equations(self.rows, target).whitened(whitening)
        self.size = max(self.rows.n_rows, self.rows.n_features)
        self.graded = own_units and whitening is None and is_graded(self.equations.gram, self.size)

    @cached_property
    def spectrum(self) -> Spectrum:
        return (graded_spectrum if self.graded else spectrum)(self.equations.gram, self.size)

    @property
    def least_scale(self) -> float:
        """The smallest feature's own eigenvalue, where features differ so much that a grid of alphas should mind it."""
        diagonal = self.equations.gram.diagonal()
        return float(diagonal[diagonal > 0.0].min()) if self.graded else float(np.inf)

    def spectrum_bound(self) -> float:
        """The largest eigenvalue."""
        return float(self.values.max(initial=0.0))

    @property
    def values(self) -> NDArray[np.float64]:
        return self.spectrum.values

    def solve(self, alpha: float) -> NDArray[np.float64]:
        """Coefficients of one alpha, (n, targets)."""
        if "spectrum" in self.__dict__:
            return self.path(np.array([alpha]))[0]
        return self.unwhitened(solve_equations(self.equations, alpha, self.size, own_units=self.graded))

    def path(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of every alpha, (alphas, n, targets)."""
        return self.unwhitened(self.spectrum.apply_inverse(alphas, self.equations.rhs))

    def holdout(self, blocks: list[Any], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Held-out scores of the rows of each block, trained on all the others; see :func:`holdout_scores`."""
        s = self.spectrum
        right = s.vectors.T @ self.equations.rhs
        out = holdout_scores(self.rows, s, self.directions, right, self.target, blocks, alphas)
        if self.graded:
            resolve_tiny_alphas(self.rows, s, right, self.target, blocks, alphas, out)
        return out

    @property
    def directions(self) -> NDArray[np.float64]:
        """Coefficients of the features along which the problem falls apart, one column for each eigenvalue."""
        return self.spectrum.vectors if self.whitening is None else self.whitening @ self.spectrum.vectors

    def unwhitened(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients as :meth:`solve` gives them, from those of whitened features."""
        return coefficients if self.whitening is None else np.asarray(self.whitening @ coefficients)
