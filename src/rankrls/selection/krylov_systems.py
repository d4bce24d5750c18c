"""The systems that conjugate gradients run on: of all comparisons, or of some, with the items that are watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._comparisons import Comparisons, Setting
from rankrls.equations.krylov import FeatureSystem, KernelSystem, System
from rankrls.features.feature_rows import FeatureRows, feature_rows
from rankrls.kernels import Kernel
from rankrls.problems.scorer import linear_scores

Watched = Any  # row numbers of the training items, or a matrix of other items; None watches nothing


@dataclass(frozen=True, eq=False)
class KrylovSystems:
    """Comparisons of items that are a feature matrix, or a kernel matrix or operator; X is never copied."""

    comparisons: Comparisons
    kernel: Kernel
    setting: Setting

    @cached_property
    def _source(self) -> FeatureRows:
        return feature_rows(self.comparisons.X, centred=self.setting.regression_weight == 0.0)

    def build(self, train: NDArray[np.intp] | None, watched: Watched) -> list[tuple[System, NDArray[np.float64]]]:
        """A system with its right side for each target; ``train`` are the units to learn from, None for all."""
        comparisons = self.comparisons
        part = comparisons if train is None else comparisons.take(train, items=False)
        rows = comparisons.rows_of(train)
        out: list[tuple[System, NDArray[np.float64]]] = []
        for comparison in part.graphs(self.setting):
            graph, columns = comparison.graph, [np.ascontiguousarray(t) for t in comparison.target.T]
            if self.kernel.is_linear:
                product = graph.laplacian_product(self._source, rows)
                of_features = FeatureSystem(product, *self._scorer(watched))
                out += [(of_features, product.right_side(t)) for t in columns]
                continue
            by_number = isinstance(watched, np.ndarray) and watched.ndim == 1
            count = 0 if watched is None else watched.shape[0]
            others = comparisons.rows_of(None)[watched] if by_number else watched
            system = KernelSystem(comparisons.X, graph, rows, others, count)
            out += [(system, t) for t in columns]
        return out

    def _scorer(self, watched: Watched) -> tuple[Callable[[NDArray[np.float64]], NDArray[np.float64]] | None, int]:
        if watched is None:
            return None, 0
        X = self.comparisons.X
        if isinstance(watched, np.ndarray) and watched.ndim == 1:
            if sparse.issparse(X):
                return lambda p: self._source.dot(watched, p), len(watched)
            watched = X[watched]
        if not sparse.issparse(watched):
            # Equal rows have equal scores to the last bit here: rounding must not rank them.
            return lambda p: linear_scores(watched, p), watched.shape[0]
        other, every = feature_rows(watched, centred=False), np.arange(watched.shape[0], dtype=np.intp)
        return lambda p: other.dot(every, p), len(every)
