"""Pursuit as a problem whose parameter is the number of stages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls.features.columns import take_items
from rankrls.graph import Graph
from rankrls.greedy.dictionaries import (
    Dictionary,
    feature_dictionary,
    kernel_dictionary,
    pays_to_reduce,
    reduced_features,
)
from rankrls.greedy.pursuit import pursue
from rankrls.greedy.walk import PursuitPath
from rankrls.kernels import Kernel
from rankrls.problems.problem import Problem
from rankrls.problems.scorer import Scorer, expansion_scores, linear_scores
from rankrls.problems.views import select_features


@dataclass(frozen=True, eq=False)
class Pursuit:
    """A dictionary and how it is walked, for any data.

    Attributes
    ----------
    kernel : Kernel or None
        Kernel functions are the columns; None for the features themselves.
    centres : array-like or None
        The items whose kernel functions are taken; None for the training items.
    backfit : bool
    cache_bytes : float
    """

    kernel: Kernel | None
    centres: Any
    backfit: bool
    cache_bytes: float

    def path(self, X: Any, graph: Graph, target: NDArray[np.float64], n_basis: int) -> PursuitPath:
        """The pursuit of ``target`` on the items X."""
        dictionary: Dictionary
        if self.kernel is not None:
            dictionary = kernel_dictionary(self.kernel, X, self.centres, graph, cache_bytes=self.cache_bytes)
        elif pays_to_reduce(X, graph, n_basis):
            dictionary, reduced, rest = reduced_features(X, graph, target)
            path = pursue(dictionary, reduced, n_basis, backfit=self.backfit)
            return replace(path, losses=path.losses + rest)
        else:
            dictionary = feature_dictionary(X, graph, cache_bytes=self.cache_bytes)
        return pursue(dictionary, target, n_basis, backfit=self.backfit)

    def items(self, X: Any, taken: NDArray[np.intp]) -> Any:
        """The items whose kernel functions were taken; None if features were."""
        return None if self.kernel is None else take_items(X if self.centres is None else self.centres, taken)


@dataclass(frozen=True, eq=False)
class Terms:
    """A sum of columns that were taken, after each stage.

    Attributes
    ----------
    kernel : Kernel or None
        None if features were taken.
    items : array-like or None
        The items whose kernel functions were taken; None for features and for a kernel matrix.
    taken : ndarray of intp
        Their numbers, or those of the features.
    coefficients : ndarray of shape (stages, taken)
    features : ndarray of intp, or None for all
        That the kernel looks at, and that the items have.
    """

    kernel: Kernel | None
    items: Any
    taken: NDArray[np.intp]
    coefficients: NDArray[np.float64]
    features: NDArray[np.intp] | None = None

    def scores(self, X: Any, coefficients: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Scores of items after each stage, (rows, stages), or by other coefficients (taken, columns)."""
        X, a = select_features(X, self.features), self.coefficients.T if coefficients is None else coefficients
        a, kernel = np.ascontiguousarray(a), self.kernel
        if kernel is None:
            columns = X[:, self.taken]
            return linear_scores(columns if sparse.issparse(columns) else np.ascontiguousarray(columns), a)
        if not len(self.taken):
            return np.zeros((len(X) if isinstance(X, list) else X.shape[0], *a.shape[1:]))
        return expansion_scores(X, kernel.columns(self.taken if kernel.name == "precomputed" else self.items), a)


@dataclass(frozen=True, eq=False)
class PursuitSolutions:
    """A path after some stages; one that ended early stays where it ended. The details are the paths up to there."""

    pursuit: Pursuit
    X: Any
    path: PursuitPath
    stages: NDArray[np.intp]

    @property
    def details(self) -> list[PursuitPath]:
        return [self.path.at(int(stage)) for stage in self.stages]

    def scores(self, X: Any) -> NDArray[np.float64]:
        taken, coefficients = self.path.merged()
        found = Terms(self.pursuit.kernel, self.pursuit.items(self.X, taken), taken, coefficients).scores(X)
        every = np.column_stack((np.zeros(len(found)), found))
        return every[:, np.minimum(self.stages, self.path.n_stages)][:, :, None]

    @property
    def weights(self) -> NDArray[np.float64]:
        weights = [w for k in range(len(self.stages)) if (w := self[k].weights) is not None]
        return np.stack(weights)

    def __getitem__(self, k: int) -> Scorer:
        taken, coefficients = self.details[k].merged()
        last = coefficients[-1] if len(coefficients) else np.zeros(0)
        kernel = self.pursuit.kernel
        if kernel is None or kernel.name == "precomputed":
            full = np.zeros((self.X.shape[1], 1))
            full[taken, 0] = last
            return Scorer(full) if kernel is None else Scorer(None, full, kernel)
        items = self.pursuit.items(self.X, taken)
        weights = np.asarray(items.T @ last[:, None], dtype=np.float64) if kernel.is_linear else None
        return Scorer(weights, last[:, None], kernel, items)


class PursuitProblem(Problem):
    """Lower ``||F (y - f)||^2`` by one column of a dictionary after the other. Its parameter is the number of stages.

    Parameters
    ----------
    pursuit : Pursuit
    X : items
    graph : Graph
    target : ndarray of shape (rows of F,)
    n_basis : int
        The most stages that are asked for: the path is walked once.
    """

    parameter = "n_basis"

    def __init__(self, pursuit: Pursuit, X: Any, graph: Graph, target: NDArray[np.float64], n_basis: int) -> None:
        self.pursuit, self.X, self.graph, self.target, self.n_basis = pursuit, X, graph, target, n_basis

    @cached_property
    def walked(self) -> PursuitPath:
        """The whole path."""
        return self.pursuit.path(self.X, self.graph, self.target, self.n_basis)

    def path(self, values: NDArray[np.float64]) -> PursuitSolutions:
        return PursuitSolutions(self.pursuit, self.X, self.walked, values.astype(np.intp))

    def axis(self, values: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        return np.arange(1.0, self.n_basis + 1.0)
