"""Which items a sparse model expands over, and what such models share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import Comparisons, Setting
from rankrls._errors import InputError
from rankrls.features.columns import take_items
from rankrls.kernels import Kernel
from rankrls.models.families.base import KernelRanker
from rankrls.problems.problem import Solutions
from rankrls.problems.scorer import Scorer
from rankrls.problems.subset import Basis

Items = tuple[Any, NDArray[np.intp] | None]
_CANDIDATES = 4
_LEAST_CANDIDATES = 1000
"""A pursuit chooses among so many rows for each basis item, and at least among so many."""
_PURSUED_BYTES = 512 << 20
_KMEANS_ROWS = 50
"""Rows a centre that k-means looks at; more move the centres little."""


class BasisRanker(KernelRanker):
    """Scores items by ``sum_j a_j k(x, z_j)`` over a basis of items z."""

    basis_indices_: NDArray[np.intp] | None

    @property
    def scorer_(self) -> Scorer:
        scorer = super().scorer_
        if scorer.kernel.name != "precomputed" or not hasattr(self, "basis_indices_"):
            return scorer
        return replace(scorer, columns=self.basis_indices_)

    def _given_numbers(self, n_items: int) -> NDArray[np.intp] | None:
        """``basis_indices``, checked against the rows of X."""
        if self.basis_indices is None:
            return None
        numbers = np.asarray(self.basis_indices)
        if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
            raise InputError(
                "{basis_indices} must be a sequence of at least one whole row number of X; got {0} of shape {1}.",
                numbers.dtype,
                numbers.shape,
            )
        outside = (numbers < 0) | (numbers >= n_items)
        if outside.any():
            raise InputError(
                "{basis_indices} names row {0}, but X has rows 0 to {1}.", numbers[outside][0], n_items - 1
            )
        return numbers.astype(np.intp)

    def _choose_items(self, data: Comparisons, kernel: Kernel, setting: Setting) -> Items:
        """The basis items, and their row numbers in X if they are rows. Nothing but a pursuit looks at labels."""
        X, m, kept = data.X, data.n_rows, data.kept
        numbers = self._given_numbers(m if kept is None else len(kept))
        if numbers is not None and kept is not None:
            dropped = numbers[~kept[numbers]]
            if len(dropped):
                raise InputError("{basis_indices} names row {0}, whose weight is zero.", dropped[0])
            numbers = (np.cumsum(kept) - 1)[numbers].astype(np.intp)
        if numbers is None:
            rng = generator(self.random_state)
            size = self._basis_size(m)
            if size == m:
                numbers = np.arange(m, dtype=np.intp)
            elif self.basis == "kmeans":
                if isinstance(X, list) or kernel.name == "precomputed":
                    raise InputError(
                        "{basis='kmeans'} needs features to average.", remedy="Use {basis='random'} for this kernel."
                    )
                return _kmeans(X, size, rng), None
            elif self.basis == "pursuit":
                numbers = _pursued(data, kernel, size, rng, setting)
            else:
                numbers = np.sort(rng.choice(m, size, replace=False)).astype(np.intp)
        return (numbers if kernel.name == "precomputed" else take_items(X, numbers)), numbers

    def _basis_size(self, m: int) -> int:
        """How many items there are in the basis of m items, but for a pursuit that ends early."""
        if self.basis_indices is not None:
            return len(self.basis_indices)
        return m if self.n_basis is None else min(int(self.n_basis), m)

    def _basis_of(
        self, data: Comparisons, kernel: Kernel, setting: Setting, items: Callable[[], Items] | None = None
    ) -> dict[str, Any]:
        """What a candidate knows of its basis: how it is made, when it is first needed and once, and its size."""
        items = items or partial(self._choose_items, data, kernel, setting)
        return {"make": cache(lambda: basis_of(data.X, kernel, *items())), "size": self._basis_size(data.n_rows)}

    def _adopt(self, comparisons: Comparisons, candidate: Any, solutions: Solutions) -> None:
        super()._adopt(comparisons, candidate, solutions)
        self._keep_basis(comparisons, candidate.basis)

    def _keep_basis(self, comparisons: Comparisons, basis: Basis) -> None:
        """Keep which items the basis consists of."""
        numbers = basis.numbers
        self.basis_indices_ = None if numbers is None else comparisons.given_numbers(numbers)


def basis_of(X: Any, kernel: Kernel, items: Any, numbers: NDArray[np.intp] | None) -> Basis:
    """A basis of some items; with a kernel matrix its numbers stand for them."""
    if kernel.name != "precomputed":
        return replace(Basis.build(kernel, items), numbers=numbers)
    assert numbers is not None
    K = X[numbers][:, numbers]
    K = np.array(K.toarray() if sparse.issparse(K) else K, dtype=np.float64)
    return replace(Basis.build(kernel, items, 0.5 * (K + K.T)), numbers=numbers)


def generator(random_state: Any) -> np.random.Generator:
    """A generator from what scikit-learn calls a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)


def _kmeans(X: Any, n_centres: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Centres of k-means by small batches, on a sample of the rows where there are very many."""
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.exceptions import ConvergenceWarning

    most = _KMEANS_ROWS * n_centres
    if X.shape[0] > most:
        X = X[np.sort(rng.choice(X.shape[0], most, replace=False))]
    seed = int(rng.integers(2**31))
    batch = max(1024, 4 * n_centres)
    means = MiniBatchKMeans(n_centres, n_init=1, batch_size=batch, max_iter=20, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than centres: some centres coincide
        means.fit(X)
    return np.asarray(means.cluster_centers_, dtype=np.float64)


def _pursued(
    data: Comparisons, kernel: Kernel, size: int, rng: np.random.Generator, setting: Setting
) -> NDArray[np.intp]:
    """Rows that a pursuit of the first target takes one after the other, in that order; at least one."""
    from rankrls.greedy.dictionaries import kernel_dictionary
    from rankrls.greedy.pursuit import pursue

    X, m = data.X, data.n_rows
    candidates = np.arange(m, dtype=np.intp)
    most = max(_CANDIDATES * size, _LEAST_CANDIDATES)
    if m > most:
        candidates = np.sort(rng.choice(m, most, replace=False)).astype(np.intp)
    some, rows = data.sample(_PURSUED_BYTES // (8 * len(candidates)), rng)
    comparison = some.graphs(setting)[0]
    if kernel.name == "precomputed":
        dictionary = kernel_dictionary(kernel, X[rows][:, candidates], None, comparison.graph)
    else:
        dictionary = kernel_dictionary(kernel, take_items(X, rows), take_items(X, candidates), comparison.graph)
    taken = pursue(dictionary, comparison.target[:, 0], size).indices
    return candidates[taken] if len(taken) else candidates[:1]
