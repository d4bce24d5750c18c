"""What every problem can do: solutions for each value of a parameter, which know how to score items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.near_ties import NEAR
from rankrls.equations.normal_equations import NormalEquations
from rankrls.equations.spectrum import auto_alphas
from rankrls.graph import Graph
from rankrls.kernels import Kernel
from rankrls.problems.scorer import Scorer
from rankrls.problems.spreads import Spreads

_LEFT_OVER = 1e-15
"""What rounding leaves of a weight that is 0 on paper, relative to the largest eigenvalue over alpha."""
_MOST = 1e-5
"""No larger share of the range of a query's scores is ever taken for rounding."""


class Solutions(Protocol):
    """The solutions of a problem for some values of its parameter."""

    @property
    def details(self) -> Sequence[Any]:
        """What a solver tells about the solution of each value; empty if it tells nothing."""
        ...

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Scores of rows X by every solution, (rows, values, targets)."""
        ...

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the features, (values, n, targets), of linear functions."""
        ...

    def __getitem__(self, k: int) -> Scorer:
        """The solution of value number k, with a column for each target."""
        ...


@dataclass(frozen=True, eq=False)
class PathSolutions:
    """Solutions of one form.

    Attributes
    ----------
    coefficients : ndarray of shape (values, size, targets)
    read : callable
        Makes a :class:`Scorer` of coefficients (size, columns).
    details : sequence, optional
        What the solver tells about each solution.
    """

    coefficients: NDArray[np.float64]
    read: Callable[[NDArray[np.float64]], Scorer]
    details: Sequence[Any] = ()

    def scores(self, X: Any) -> NDArray[np.float64]:
        scores = self._all()(X)
        return scores.reshape(len(scores), len(self.coefficients), -1)

    @property
    def weights(self) -> NDArray[np.float64]:
        weights = self._all().weights
        assert weights is not None
        return weights.reshape(len(weights), len(self.coefficients), -1).transpose(1, 0, 2)

    def _all(self) -> Scorer:
        values, size, targets = self.coefficients.shape
        return self.read(self.coefficients.transpose(1, 0, 2).reshape(size, values * targets))

    def __getitem__(self, k: int) -> Scorer:
        return self.read(self.coefficients[k])


class Problem(ABC):
    """A regularized problem on one set of comparisons."""

    graph: Any
    """The graph of the comparisons."""

    parameter: str = "alpha"
    """What its values are called."""

    equations: NormalEquations | None = None
    """The normal equations, which add up over queries, if the problem has any."""

    read: Callable[[NDArray[np.float64]], Scorer]
    """Makes functions of coefficients (size, columns)."""

    @abstractmethod
    def path(self, values: NDArray[np.float64]) -> Solutions:
        """The solutions of some values."""

    def holdout(self, blocks: list[Any], values: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Scores of the rows of each block by the model of all others, (rows of F, values, targets).

        None if there is no way but to solve the problem of the other rows, which who holds out does then.
        """
        return None

    def resolution(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Which share of a query's range of held-out scores is rounding, for each value."""
        return np.full(len(values), NEAR)

    @property
    def values(self) -> NDArray[np.float64]:
        """Eigenvalues that an automatic grid is laid around, the extreme ones among them."""
        raise NotImplementedError

    @property
    def least_scale(self) -> float:
        """The smallest feature's own eigenvalue, if features differ so much that a grid should reach it."""
        return float(np.inf)

    def extreme_values(self) -> NDArray[np.float64]:
        """The largest eigenvalue and the smallest one or 0, at the least price."""
        return self.values

    def axis(self, values: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """An automatic grid, the most regularized value first. ``values`` are eigenvalues that are known already."""
        return auto_alphas(self.values if values is None else values, least=self.least_scale)

    @property
    def parts(self) -> list[Problem]:
        """The problems that this one consists of, in the order of their targets."""
        return [self]

    @property
    def spreads(self) -> Spreads | None:
        """How much each feature varies, if the problem is linear and knows."""
        return None

    def solve(self, value: float) -> NDArray[np.float64]:
        """Coefficients of one value, (size, targets)."""
        solutions = self.path(np.array([float(value)]))
        assert isinstance(solutions, PathSolutions)
        return solutions.coefficients[0]


@dataclass(frozen=True, eq=False)
class _JointSolutions:
    parts: list[Solutions]

    @property
    def details(self) -> Sequence[Any]:
        return [detail for part in self.parts for detail in part.details]

    def scores(self, X: Any) -> NDArray[np.float64]:
        return np.concatenate([part.scores(X) for part in self.parts], axis=2)

    @property
    def weights(self) -> NDArray[np.float64]:
        return np.concatenate([part.weights for part in self.parts], axis=2)

    def __getitem__(self, k: int) -> Scorer:
        return Scorer.side_by_side([part[k] for part in self.parts])


@dataclass(frozen=True, eq=False)
class JointProblem(Problem):
    """Problems of different targets over the same items, which share the values of their parameter."""

    members: list[Problem] = field(default_factory=list)

    @staticmethod
    def of(problems: list[Problem]) -> Problem:
        """One problem is itself."""
        return problems[0] if len(problems) == 1 else JointProblem(problems)

    @property
    def parts(self) -> list[Problem]:
        return self.members

    @property
    def spreads(self) -> Spreads | None:
        return self.members[0].spreads

    def path(self, values: NDArray[np.float64]) -> Solutions:
        return _JointSolutions([part.path(values) for part in self.members])

    def holdout(self, blocks: list[Any], values: NDArray[np.float64]) -> NDArray[np.float64] | None:
        found = [part.holdout(blocks, values) for part in self.members]
        scores = [part for part in found if part is not None]
        return np.concatenate(scores, axis=2) if len(scores) == len(found) else None

    @property
    def values(self) -> NDArray[np.float64]:
        return np.concatenate([part.values for part in self.members])

    @property
    def least_scale(self) -> float:
        return min(part.least_scale for part in self.members)

    def extreme_values(self) -> NDArray[np.float64]:
        return np.concatenate([part.extreme_values() for part in self.members])


def spectral_resolution(top: float, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """:meth:`Problem.resolution` of a problem that is held out by a spectrum with the largest eigenvalue ``top``."""
    return np.clip(_LEFT_OVER * top / alphas, NEAR, _MOST)


def matrix_columns(a: NDArray[np.float64]) -> Scorer:
    """Coefficients of the columns of a kernel matrix that predictions are given, too."""
    return Scorer(None, a, Kernel("precomputed"))


@dataclass(frozen=True, eq=False)
class Expansion:
    """How coefficients of the items X are read: as weights of features too if the kernel is linear."""

    kernel: Kernel
    X: Any
    graph: Graph

    def __call__(self, a: NDArray[np.float64]) -> Scorer:
        """Coefficients (items, columns) as functions."""
        if self.kernel.is_linear:
            return Scorer(self.graph.factor_rows(self.X).combine(a), a)
        return Scorer(None, a, self.kernel, None if self.kernel.name == "precomputed" else self.X)
