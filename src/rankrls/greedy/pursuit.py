r"""Matching pursuit in the inner product of a preference graph.

Tsivtsivadze and Heskes, "Semi-supervised ranking pursuit", section 3. With residual ``r = y - f`` a stage takes the
column k and step a that minimise ``(r - a k)' L (r - a k)``:

.. math::

    a = \frac{k' L r}{k' L k} , \qquad \text{gain} = \frac{(k' L r)^2}{k' L k} ,

and then fits the coefficients of all columns taken so far anew ("backfitting"). In the coordinates ``F k`` and
``F y``, with ``F'F = L``, that is orthogonal matching pursuit: the columns are made orthonormal as they come, so that
the new fit is one more projection, and never a refit. ``L = I`` is kernel matching pursuit (Vincent and Bengio 2002).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls.greedy.dictionaries import Dictionary

__all__ = ["OrthonormalColumns", "PursuitPath", "first_of_best", "pursue"]

_EPS = float(np.finfo(np.float64).eps)
_EQUAL = 1e-10
"""Correlations that differ by less than this share count as equal: rounding alone would decide between them."""
_CANCELLED = 1e-2
"""Share of its energy: a column that keeps no more loses a digit of its orthogonality; another pass restores it."""


@dataclass(frozen=True, eq=False)
class PursuitPath:
    """What a pursuit took, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages,), intp
        Column of the dictionary that each stage took; without backfitting one can come back.
    coefficients : ndarray of shape (stages, stages)
        Row p - 1 holds the coefficients of ``indices[:p]`` after stage p, and zeros behind them.
    losses : ndarray of shape (stages + 1,)
        ``(y - f)' L (y - f)`` before the first stage and after each.
    """

    indices: NDArray[np.intp]
    coefficients: NDArray[np.float64]
    losses: NDArray[np.float64]

    @property
    def n_stages(self) -> int:
        return len(self.indices)

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Distinct columns after each stage, (stages,)."""
        first = np.zeros(self.n_stages, dtype=np.intp)
        first[np.unique(self.indices, return_index=True)[1]] = 1
        return np.cumsum(first)

    def merged(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Distinct columns in the order of choice, and their coefficients after each stage, (stages, columns)."""
        _, first, place = np.unique(self.indices, return_index=True, return_inverse=True)
        order = np.argsort(first)
        if len(order) == self.n_stages:
            return self.indices, self.coefficients
        number = np.argsort(order)[place]  # of each stage's column among the distinct ones
        coefficients = np.zeros((self.n_stages, len(order)))
        np.add.at(coefficients.T, number, self.coefficients.T)
        return self.indices[first[order]], coefficients

    def at(self, stage: int) -> PursuitPath:
        """The path up to a stage."""
        return PursuitPath(self.indices[:stage], self.coefficients[:stage, :stage], self.losses[: stage + 1])


class OrthonormalColumns:
    """An orthonormal basis of columns that come one by one, and the triangle that leads back to them.

    ``column_j = sum_i Q_i R[i, j]``. Gram-Schmidt, a second time where the first cancels more than a digit: orthogonal
    to rounding whatever the columns' condition (Daniel, Gragg, Kaufman and Stewart 1976).

    Parameters
    ----------
    n_rows : int
    most : int
        Columns at most.
    tolerance : float
        A column of whose energy no larger share is left lies in the span of the others.
    """

    def __init__(self, n_rows: int, most: int, tolerance: float) -> None:
        self._Q = np.empty((most, n_rows))
        self._R = np.zeros((most, most))
        self._tolerance = tolerance
        self.rank = 0

    def add(self, column: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The column's new direction, of length 1; None where it has none. O(rows x columns)."""
        k = self.rank
        energy = column @ column
        if k == len(self._Q):
            return None
        Q = self._Q[:k]
        h = Q @ column
        rest = column - h @ Q
        left = rest @ rest
        if left < _CANCELLED * energy:
            again = Q @ rest
            rest -= again @ Q
            h += again
            left = rest @ rest
        if not left > self._tolerance * energy:
            return None
        length = float(np.sqrt(left))
        rest /= length
        self._Q[k] = rest
        self._R[:k, k] = h
        self._R[k, k] = length
        self.rank = k + 1
        return self._Q[k]

    def inverse(self) -> NDArray[np.float64]:
        """``R^-1``, (rank, rank): column i holds the coefficients of direction i. O(rank^3 / 3)."""
        k = self.rank
        return np.asarray(linalg.solve_triangular(self._R[:k, :k], np.eye(k), check_finite=False))


def pursue(dictionary: Dictionary, target: NDArray[np.float64], n_basis: int, *, backfit: bool = True) -> PursuitPath:
    """Approximate ``target`` greedily by columns of a dictionary.

    Parameters
    ----------
    dictionary : Dictionary
        N columns, seen through F.
    target : ndarray of shape (rows of F,)
        ``F y``, or the weighted strengths of the preferences.
    n_basis : int
        Stages at most.
    backfit : bool
        Whether all coefficients are fitted again at each stage; False is plain matching pursuit.

    Returns
    -------
    PursuitPath
        Shorter than ``n_basis`` where nothing improves any more: where no column's correlation with the residual
        exceeds rounding, or all columns lie in the span of those taken.

    Notes
    -----
    One product with the dictionary a stage, O(n N) for n rows, and O(n p) at stage p for the backfitting: O(P n N) for
    P stages. Equal gains (correlations within 1e-10) go to the lowest index.
    """
    size = max(dictionary.n_rows, dictionary.n_columns, 10)
    energies = dictionary.energies
    lengths = np.sqrt(energies)
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
    u = target.copy()
    losses = [float(u @ u)]
    rounding = 10 * size * _EPS
    floor = rounding * np.sqrt(losses[0])
    most = min(n_basis, dictionary.n_columns, dictionary.n_rows) if backfit else 0
    columns = OrthonormalColumns(dictionary.n_rows, most, size * _EPS)
    indices: list[int] = []
    steps: list[float] = []
    while len(indices) < n_basis:
        products = dictionary.correlations(u)
        correlations = np.abs(products * scale)
        slack = rounding * np.sqrt(losses[-1])
        while True:
            j = first_of_best(correlations, slack)
            if not correlations[j] > floor:
                break
            if not backfit:
                steps.append(float(products[j] / energies[j]))
                u -= steps[-1] * dictionary.column(j)
                break
            direction = columns.add(dictionary.column(j))
            scale[j] = correlations[j] = 0.0  # taken, or in the span of those taken: nothing more to gain
            if direction is not None:
                steps.append(float(direction @ u))
                u -= steps[-1] * direction
                break
        if len(steps) == len(indices):
            break
        indices.append(j)
        losses.append(float(u @ u))
    taken = np.array(indices, dtype=np.intp)
    if backfit:
        coefficients = np.cumsum(columns.inverse() * np.array(steps), axis=1).T
    else:
        coefficients = np.tril(np.tile(np.array(steps), (len(steps), 1)))
    return PursuitPath(taken, np.ascontiguousarray(coefficients), np.array(losses))


def first_of_best(values: NDArray[np.float64], slack: float) -> int:
    """The lowest index whose value is the largest, up to rounding."""
    top = values.max(initial=0.0)
    return int(np.argmax(values >= top - (_EQUAL * top + slack))) if values.size else 0
