"""Which items a sparse model expands over."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from rankrls._comparisons import Comparisons
from rankrls._errors import InputError
from rankrls._rows import take_items
from rankrls.kernels import Kernel
from rankrls.numerics.basis import Basis
from rankrls.numerics.graph import Index


def make_basis(model: Any, data: Comparisons, kernel: Kernel, rng: np.random.Generator | None = None) -> Basis:
    """The basis that an estimator's ``n_basis``, ``basis_indices`` and ``random_state`` ask for."""
    X, numbers = data.X, _given_numbers(model, data)
    if numbers is None:
        numbers = drawn_numbers(model, data.n_rows, rng)
    if kernel.name != "precomputed":
        return Basis.build(kernel, take_items(X, numbers), numbers)
    K = X[numbers][:, numbers]
    K = np.array(K.toarray() if sparse.issparse(K) else K, dtype=np.float64)
    return Basis.build(kernel, numbers, numbers, 0.5 * (K + K.T))


def drawn_numbers(model: Any, m: int, rng: np.random.Generator | None = None) -> Index:
    """Numbers of the items that are drawn of m, ascending."""
    if model.n_basis is None or m <= model.n_basis:
        return np.arange(m, dtype=np.intp)
    rng = generator(model.random_state) if rng is None else rng
    return np.sort(rng.choice(m, int(model.n_basis), replace=False)).astype(np.intp)


def _given_numbers(model: Any, data: Comparisons) -> Index | None:
    """``basis_indices``, checked against the rows of X and counted among those of positive weight."""
    if model.basis_indices is None:
        return None
    kept, rows, numbers = data.kept, data.n_given, np.asarray(model.basis_indices)
    whole = numbers.ndim == 1 and numbers.dtype.kind in "iu" and len(numbers)
    if not whole or numbers.min() < 0 or numbers.max() >= rows:
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


def permuting(random_state: Any) -> np.random.Generator | np.random.RandomState:
    """The source of random permutations of a random state; a Generator, which scikit-learn refuses, as it is."""
    return random_state if isinstance(random_state, np.random.Generator) else check_random_state(random_state)


def generator(random_state: Any) -> np.random.Generator:
    """A generator from what scikit-learn calls a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
