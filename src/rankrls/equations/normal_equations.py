"""The normal equations ``X'LX`` and ``X'Ly``, from blocks of ``F X``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankrls.features.rows import FactorRows, cleared

_SUBTRACTED = 1e-12


@dataclass(frozen=True)
class NormalEquations:
    """``gram = X'LX`` (n, n), ``rhs = X'L Y`` (n, targets), ``energy = y'Ly`` of each target.

    They add up over queries: adding or subtracting a batch of whole queries is exact up to rounding. A feature of which
    subtracting leaves nothing but rounding is set to zero.
    """

    gram: NDArray[np.float64]
    rhs: NDArray[np.float64]
    energy: NDArray[np.float64]

    def __add__(self, other: NormalEquations) -> NormalEquations:
        return NormalEquations(self.gram + other.gram, self.rhs + other.rhs, self.energy + other.energy)

    def __sub__(self, other: NormalEquations) -> NormalEquations:
        noise = _SUBTRACTED * self.gram.diagonal()
        gram, rhs = cleared(self.gram - other.gram, self.rhs - other.rhs, noise)
        return NormalEquations(gram, rhs, self.energy - other.energy)

    def whitened(self, T: NDArray[np.float64] | None) -> NormalEquations:
        """Those of the features ``X T``; these where T is None. O(n^3)."""
        if T is None:
            return self
        gram = T.T @ (self.gram @ T)
        return NormalEquations(0.5 * (gram + gram.T), T.T @ self.rhs, self.energy)


def normal_equations(rows: FactorRows, target: NDArray[np.float64]) -> NormalEquations:
    """Accumulate the normal equations of ``||F X w - target||^2``.

    Parameters
    ----------
    rows : FactorRows
        The rows of ``F X``, as ``graph.factor_rows(X)`` gives them.
    target : ndarray of shape (rows, targets)
        ``F Y``, or the weighted strengths of the preferences.

    Notes
    -----
    O(m n^2), one pass over X after the one that took the means; memory of a block a thread. The textbook's
    ``X'DX`` minus the low-rank query means is not used for dense data: at 723k x 136 it saves a tenth of the time and
    loses half the digits where the columns' means exceed their spread a thousandfold. Sparse data of low density use
    it, because centring would fill them.
    """
    return NormalEquations(*rows.equations(target), np.einsum("ij,ij->j", target, target))
