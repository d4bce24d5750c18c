"""What learners find for several values of a parameter: functions, or what was taken stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._arrays import to_host

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Path:
    """What a pursuit took, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages, ...), intp
        Columns that each stage took.
    coefficients : ndarray of shape (stages, stages, ...)
        Row p - 1 holds the coefficients of ``indices[:p]`` after stage p, and zeros behind them.
    losses : ndarray of shape (stages + 1,)
        The objective before the first stage and after each; fields of subclasses have an entry for each of these too.
    """

    indices: NDArray[np.intp]
    coefficients: Array
    losses: Array

    @property
    def n_stages(self) -> int:
        return len(self.indices)

    def at(self, stage: int) -> Self:
        """The path up to a stage."""
        rest = {f.name: getattr(self, f.name)[: stage + 1] for f in fields(self)[2:]}
        return replace(self, indices=self.indices[:stage], coefficients=self.coefficients[:stage, :stage], **rest)


@dataclass(frozen=True, eq=False)
class PursuitPath(Path):
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

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Distinct columns after each stage, (stages,)."""
        first = np.zeros(self.n_stages, dtype=np.intp)
        first[np.unique(self.indices, return_index=True)[1]] = 1
        return np.cumsum(first)

    def merged(self) -> tuple[NDArray[np.intp], Array]:
        """Distinct columns in the order of choice, and their coefficients after each stage, (stages, columns)."""
        _, first, place = np.unique(self.indices, return_index=True, return_inverse=True)
        order = np.argsort(first)
        if len(order) == self.n_stages:
            return self.indices, self.coefficients
        number = np.argsort(order)[place]  # of each stage's column among the distinct ones
        coefficients = np.zeros((self.n_stages, len(order)))
        np.add.at(coefficients.T, number, self.coefficients.T)
        return self.indices[first[order]], coefficients


@dataclass(frozen=True, eq=False)
class CoPursuitPath(Path):
    """What a pursuit of M views took, stage by stage.

    Attributes
    ----------
    indices : ndarray of shape (stages, M), intp
        Column of each view that each stage took. A column that came before adds nothing of its own.
    coefficients : ndarray of shape (stages, stages, M)
        ``coefficients[p - 1, :p, v]`` belong to ``indices[:p, v]`` after stage p.
    losses : ndarray of shape (stages + 1,)
        Equation (3) before the first stage and after each.
    view_losses : ndarray of shape (stages + 1, M)
        Its first part, view by view; the rest of ``losses`` is the disagreement of the views.
    """

    view_losses: Array

    def view(self, number: int) -> PursuitPath:
        """The path of one view."""
        return PursuitPath(
            np.ascontiguousarray(self.indices[:, number]),
            np.ascontiguousarray(self.coefficients[:, :, number]),
            np.ascontiguousarray(self.view_losses[:, number]),
        )


@dataclass(frozen=True, eq=False)
class PathSolutions:
    """Functions of one form.

    Attributes
    ----------
    coefficients : ndarray of shape (values, size, targets)
    read : callable
        Makes a function of items, such as a Scorer, of coefficients (size, columns).
    details : sequence, optional
        What the solver says of each solution.
    """

    coefficients: Array
    read: Callable[[Array], Any]
    details: Sequence[Any] = ()

    def scores(self, X: Any) -> Array:
        """Scores of rows X by every solution, (rows, values, targets), on the host."""
        values, size, targets = self.coefficients.shape
        scores = to_host(self.read(self.coefficients.transpose(1, 0, 2).reshape(size, values * targets))(X))
        return scores.reshape(len(scores), values, targets)

    def __getitem__(self, k: int) -> Any:
        """The solution of value number k, with a column for each target."""
        return self.read(self.coefficients[k])
