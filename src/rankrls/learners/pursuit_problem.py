"""Pursuit as a problem whose parameter is the number of stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._rows import take_items
from rankrls.kernels import Kernel
from rankrls.learners.dictionaries import Dictionary, FeatureDictionary, HeldDictionary, kernel_columns
from rankrls.learners.paths import PursuitPath
from rankrls.learners.pursuit import pursue
from rankrls.learners.views import select_features
from rankrls.numerics.graph import Graph
from rankrls.numerics.scorer import Scorer, expansion_scores, linear_scores


@dataclass(frozen=True, eq=False)
class Pursuit:
    """A dictionary and how it is walked, for any data.

    Attributes
    ----------
    kernel : Kernel or None
        Kernel functions of the training items are the columns; None for the features themselves.
    backfit : bool
    """

    kernel: Kernel | None
    backfit: bool

    def path(self, X: Any, graph: Graph, n_basis: int) -> PursuitPath:
        """The pursuit of the graph's target on the items X."""
        dictionary: Dictionary
        if self.kernel is None:
            dictionary = FeatureDictionary(X, graph)
        else:
            dictionary = HeldDictionary.of(kernel_columns(self.kernel, X, None), graph)
        return pursue(dictionary, graph.target[:, 0], n_basis, backfit=self.backfit)


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

    def _items(self, taken: NDArray[np.intp]) -> Any:
        """The items whose kernel functions were taken; None if features were."""
        return None if self.pursuit.kernel is None else take_items(self.X, taken)

    @property
    def details(self) -> list[PursuitPath]:
        return [self.path.at(int(stage)) for stage in self.stages]

    def scores(self, X: Any) -> NDArray[np.float64]:
        taken, coefficients = self.path.merged()
        found = Terms(self.pursuit.kernel, self._items(taken), taken, coefficients).scores(X)
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
        if kernel is None:
            full = np.zeros((self.X.shape[1], 1))
            full[taken, 0] = last
            return Scorer(full)
        if kernel.name == "precomputed":
            return Scorer(None, last[:, None], kernel, None, taken)
        items = self._items(taken)
        weights = np.asarray(items.T @ last[:, None], dtype=np.float64) if kernel.is_linear else None
        return Scorer(weights, last[:, None], kernel, items)


class PursuitProblem:
    """Lower ``||F (y - f)||^2`` by one column of a dictionary after the other. Its parameter is the number of stages.

    Parameters
    ----------
    pursuit : Pursuit
    X : items
    graph : Graph
    n_basis : int
        The most stages that are asked for: the path is walked once.
    """

    parameter = "n_basis"

    def __init__(self, pursuit: Pursuit, X: Any, graph: Graph, n_basis: int) -> None:
        self.pursuit, self.X, self.graph, self.n_basis = pursuit, X, graph, n_basis

    @cached_property
    def walked(self) -> PursuitPath:
        """The whole path."""
        return self.pursuit.path(self.X, self.graph, self.n_basis)

    def path(self, values: NDArray[np.float64]) -> PursuitSolutions:
        return PursuitSolutions(self.pursuit, self.X, self.walked, values.astype(np.intp))

    def axis(self) -> NDArray[np.float64]:
        """All numbers of stages."""
        return np.arange(1.0, self.n_basis + 1.0)
