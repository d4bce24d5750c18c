"""The primal problem: ``w = (X'LX + alpha I)^-1 X'L y`` (Pahikkala et al. 2007, equation 11)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls.equations.graded import graded_spectrum, is_graded, resolve_tiny_alphas
from rankrls.equations.holdout import holdout_scores
from rankrls.equations.normal_equations import NormalEquations, normal_equations
from rankrls.equations.spectrum import Spectrum, is_clear, solve_one, spectrum
from rankrls.features.rows import FactorRows
from rankrls.graph import Graph
from rankrls.problems.problem import PathSolutions, Problem, spectral_resolution
from rankrls.problems.scorer import Scorer
from rankrls.problems.spreads import LEVERAGE, Spreads


class EquationsProblem(Problem):
    """Minimise ``w'Gw - 2 b'w + alpha ||w||^2``, given the normal equations: G = ``X'LX`` and b = ``X'Ly``.

    Parameters
    ----------
    equations : NormalEquations
    size : int
        Rows that were added up one after the other, or columns if they are more: what rounding of G grows with. For
        sums that are taken in a tree, the rows of the largest leaf and the depth of the tree.
    whitening, own_units : as for :class:`PrimalProblem`
    graph : Graph, optional

    Notes
    -----
    O(n^3) for one alpha, or O(n^3) for the spectrum and O(n^2) for each alpha after it.
    """

    def __init__(
        self,
        equations: NormalEquations,
        size: int,
        *,
        whitening: NDArray[np.float64] | None = None,
        own_units: bool = False,
        graph: Graph | None = None,
    ) -> None:
        self.graph, self.size = graph, size
        self.whitening = whitening
        self.equations: NormalEquations = equations.whitened(whitening)
        self._own_units = own_units
        self.graded = own_units and whitening is None and is_graded(self.equations.gram, self.size)

    @property
    def spreads(self) -> Spreads | None:
        if self.whitening is not None or not self._own_units:
            return None
        return Spreads(self.equations.gram.diagonal(), self.size, in_features=True)

    @cached_property
    def spectrum(self) -> Spectrum:
        if self.graded:
            return graded_spectrum(self.equations.gram, self.size)
        return spectrum(self.equations.gram, self.size, semidefinite=True)

    @property
    def least_scale(self) -> float:
        diagonal = self.equations.gram.diagonal()
        return float(diagonal[diagonal > 0.0].min()) if self.graded else float(np.inf)

    def spectrum_bound(self) -> float:
        """The largest eigenvalue."""
        return float(self.values.max(initial=0.0))

    @property
    def values(self) -> NDArray[np.float64]:
        return self.spectrum.values

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        """The solutions of some alphas: by the spectrum, or of a single one by Cholesky if there is no spectrum yet."""
        if len(values) == 1 and "spectrum" not in self.__dict__:
            gram, alpha = self.equations.gram, float(values[0])
            if not self.graded or is_clear(gram, alpha):
                one = solve_one(gram, self.equations.rhs, alpha, self.size, semidefinite=True)
                return PathSolutions(self.unwhitened(one)[None], self.read)
        return PathSolutions(self.unwhitened(self.spectrum.apply_inverse(values, self.equations.rhs)), self.read)

    def read(self, coefficients: NDArray[np.float64]) -> Scorer:
        """Coefficients (n, columns) as functions of items."""
        return Scorer(coefficients)

    def resolution(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return spectral_resolution(0.0 if self.graded else self.spectrum_bound(), values)

    @cached_property
    def directions(self) -> NDArray[np.float64]:
        """Coefficients of the features along which the problem falls apart, one column for each eigenvalue."""
        return self.spectrum.vectors if self.whitening is None else self.whitening @ self.spectrum.vectors

    def unwhitened(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients as :meth:`solve` gives them, from those of whitened features."""
        return coefficients if self.whitening is None else np.asarray(self.whitening @ coefficients)

    def held_out(
        self,
        rows: FactorRows,
        target: NDArray[np.float64],
        blocks: list[Any],
        alphas: NDArray[np.float64],
        *,
        all_rows: bool = False,
    ) -> NDArray[np.float64]:
        """Scores of each block of some rows by the model without it; see :func:`holdout_scores`.

        ``all_rows`` says whether the equations are those of these rows alone.
        """
        s = self.spectrum
        right = s.vectors.T @ self.equations.rhs
        out, bounded = holdout_scores(rows, s, self.directions, right, target, blocks, alphas, exact=self.graded)
        if self.graded:
            everything = None if all_rows else (self.equations, self.size)
            resolve_tiny_alphas(rows, s, right, target, bounded, alphas, out, everything=everything)
        return out


class PrimalProblem(EquationsProblem):
    """Minimise ``||F X w - target||^2 + alpha ||w||^2``.

    Parameters
    ----------
    X : dense (float32 or float64) or CSR, shape (m, n)
    graph : Graph
    target : ndarray of shape (rows of F, targets)
        ``F Y``, or the weighted strengths of the preferences.
    whitening : ndarray of shape (n, rank), optional
        ``T`` with ``T'PT = I``: the penalty is then ``alpha w'Pw`` and ``w = T v`` is sought. The normal equations are
        whitened, ``T'X'LXT``, not the rows: cheaper by ``m n^2``, and as exact as P is well conditioned.
    own_units : bool
        Whether each column of X may be in units of its own, as features are: a column is then not lost beside
        another one whose spread is millions of times as large (:func:`rankrls.equations.graded.graded_spectrum`).

    Notes
    -----
    O(m n^2) once; then O(n^3) for one alpha, or O(n^3) for the spectrum and O(n^2) for each alpha after it.
    """

    def __init__(
        self,
        X: Any,
        graph: Graph,
        target: NDArray[np.float64],
        *,
        whitening: NDArray[np.float64] | None = None,
        own_units: bool = False,
    ) -> None:
        self.rows = graph.factor_rows(X)
        self.target = target
        size = max(self.rows.n_rows, self.rows.n_features)
        equations = normal_equations(self.rows, target)
        super().__init__(equations, size, whitening=whitening, own_units=own_units, graph=graph)

    @property
    def spreads(self) -> Spreads | None:
        """None of sparse features, which are centred elsewhere."""
        found = super().spreads
        if found is None or sparse.issparse(self.rows.X):
            return None
        return replace(found, alone=partial(_stands_alone, self.rows))

    def holdout(self, blocks: list[Any], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Held-out scores of the rows of each block, trained on all the others."""
        return self.held_out(self.rows, self.target, blocks, alphas, all_rows=True)


def _stands_alone(rows: FactorRows, feature: int) -> bool:
    """Whether two items alone determine a feature's weight; among preferences one by one always. O(m)."""
    graph = rows.graph
    if graph.shares is None:
        return True
    column = graph.factor_rows(np.ascontiguousarray(rows.X[:, [feature]]))
    squares = np.concatenate([column.factor(piece)[:, 0] ** 2 for piece in column.pieces(slice(0, column.n_rows))])
    return bool(np.sort(squares / squares.sum() + graph.shares)[-2:].sum() > LEVERAGE)
