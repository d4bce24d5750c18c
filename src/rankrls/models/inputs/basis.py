"""Which items a sparse model expands over."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import Comparisons
from rankrls._errors import InputError
from rankrls._rows import take_items
from rankrls.kernels import Kernel
from rankrls.numerics.basis import Basis

_KMEANS_ROWS = 50
"""Rows a centre that k-means looks at; more move the centres little."""


def make_basis(model: Any, data: Comparisons, kernel: Kernel, random_state: Any = None) -> Basis:
    """The basis that an estimator's ``n_basis``, ``basis``, ``basis_indices`` and ``random_state`` ask for."""
    X, m = data.X, data.n_rows
    numbers = _given_numbers(model, data)
    if numbers is None:
        rng = generator(model.random_state if random_state is None else random_state)
        size = basis_size(model, m)
        if size == m:
            numbers = np.arange(m, dtype=np.intp)
        elif model.basis == "kmeans":
            if isinstance(X, list) or kernel.name == "precomputed":
                raise InputError(
                    "basis='kmeans' needs features to average. Use basis='random' for this kernel.", parameter="basis"
                )
            return Basis.build(kernel, _kmeans(X, size, rng))
        else:
            numbers = np.sort(rng.choice(m, size, replace=False)).astype(np.intp)
    if kernel.name != "precomputed":
        return Basis.build(kernel, take_items(X, numbers), numbers)
    K = X[numbers][:, numbers]
    K = np.array(K.toarray() if sparse.issparse(K) else K, dtype=np.float64)
    return Basis.build(kernel, numbers, numbers, 0.5 * (K + K.T))


def basis_size(model: Any, m: int) -> int:
    """How many of m items are in the basis."""
    if model.basis_indices is not None:
        return len(model.basis_indices)
    return m if model.n_basis is None else min(int(model.n_basis), m)


def _given_numbers(model: Any, data: Comparisons) -> NDArray[np.intp] | None:
    """``basis_indices``, checked against the rows of X and counted among those of positive weight."""
    if model.basis_indices is None:
        return None
    kept = data.kept
    rows = data.n_rows if kept is None else len(kept)
    numbers = np.asarray(model.basis_indices)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not len(numbers) or not _inside(numbers, rows):
        raise InputError(
            f"basis_indices must be a sequence of at least one row number of X, 0 to {rows - 1}; got "
            f"{model.basis_indices!r}.",
            parameter="basis_indices",
        )
    if kept is None:
        return numbers.astype(np.intp)
    dropped = numbers[~kept[numbers]]
    if len(dropped):
        raise InputError(f"basis_indices names row {dropped[0]}, whose weight is zero.", parameter="basis_indices")
    return (np.cumsum(kept) - 1)[numbers].astype(np.intp)


def _inside(numbers: NDArray[Any], rows: int) -> bool:
    return bool(numbers.min() >= 0 and numbers.max() < rows)


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
