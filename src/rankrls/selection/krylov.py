"""The systems that conjugate gradients solve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._comparisons import Comparisons, LabelledItems, Setting
from rankrls.kernels import Kernel
from rankrls.numerics.graph import Array, LabelledGraph
from rankrls.numerics.krylov import FeatureSystem, KernelSystem, System
from rankrls.numerics.products import FeatureProducts, LaplacianProduct

Watched = Any  # row numbers of the training items, or a matrix of other items; None watches nothing


@dataclass(frozen=True, eq=False)
class KrylovSystems:
    """Comparisons of items that are a feature matrix, or a kernel matrix or operator; X is never copied."""

    comparisons: Comparisons
    kernel: Kernel
    setting: Setting

    @cached_property
    def _features(self) -> FeatureProducts:
        return FeatureProducts(self.comparisons.X)

    @property
    def _rows(self) -> NDArray[np.intp]:
        """The rows of X of all items: a LinearOperator has those of weight zero too."""
        data = self.comparisons
        if data.kept is not None and not hasattr(data.X, "__getitem__"):
            return np.flatnonzero(data.kept)
        return np.arange(data.n_rows, dtype=np.intp)

    def build(self, train: NDArray[np.intp] | None, watched: Watched) -> list[tuple[System, Array]]:
        """A system with its right side for each target; ``train`` are the units to fit, None for all."""
        comparisons = self.comparisons
        part = comparisons if train is None else comparisons.take(train, items=False)
        every = self._rows
        rows = every if train is None or not isinstance(comparisons, LabelledItems) else every[train]
        out: list[tuple[System, Array]] = []
        for graph in part.numeric_graphs(self.setting):
            here = replace(graph, rows=rows[graph.rows]) if isinstance(graph, LabelledGraph) else graph
            columns = [np.ascontiguousarray(t) for t in here.target.T]
            if self.kernel.is_linear:
                product = LaplacianProduct(self._features, here)
                of_features = FeatureSystem(product, *self._scorer(watched))
                out += [(of_features, product.right_side(t)) for t in columns]
                continue
            by_number = isinstance(watched, np.ndarray) and watched.ndim == 1
            count = 0 if watched is None else watched.shape[0]
            others = every[watched] if by_number else watched
            of_kernel = KernelSystem(comparisons.X, here, others, count)
            out += [(of_kernel, t) for t in columns]
        return out

    def _scorer(self, watched: Watched) -> tuple[Callable[[Array], Array] | None, int]:
        if watched is None:
            return None, 0
        if isinstance(watched, np.ndarray) and watched.ndim == 1:
            return lambda p: self._features.scores(watched, p), len(watched)
        other, every = FeatureProducts(watched), np.arange(watched.shape[0], dtype=np.intp)
        return lambda p: other.scores(every, p), len(every)
