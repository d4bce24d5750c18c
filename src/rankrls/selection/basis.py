"""Selection of the items that a sparse model expands over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from rankrls._comparisons import Data
from rankrls._errors import InputError
from rankrls._typing import Index, RandomState
from rankrls.kernels import Kernel
from rankrls.numerics.scorer import Basis


@dataclass(frozen=True, eq=False)
class BasisSpec:
    """The items that functions expand over: given rows of X, or a number of random ones.

    Attributes
    ----------
    n_basis : int or None
        Number of items to draw; None for all.
    indices : sequence of int, or None
    random_state : int, Generator or RandomState
    """

    n_basis: int | None
    indices: Sequence[int] | Index | None
    random_state: RandomState


def basis_numbers(spec: BasisSpec, data: Data) -> Index:
    """Numbers of the basis items among the items of the data."""
    if spec.indices is not None:
        return _given_numbers(spec.indices, data)
    m = data.n_rows
    if spec.n_basis is None or m <= spec.n_basis:
        return np.arange(m, dtype=np.intp)
    drawn = generator(spec.random_state).choice(m, int(spec.n_basis), replace=False)
    return np.sort(drawn).astype(np.intp)


def make_basis(data: Data, kernel: Kernel, numbers: Index) -> Basis:
    """The basis of the given items."""
    if kernel.name != "precomputed":
        return Basis.build(kernel, data.items(numbers), numbers)
    K = data.X[numbers][:, numbers]
    K = np.array(K.toarray() if sparse.issparse(K) else K, dtype=np.float64)
    return Basis.build(kernel, numbers, numbers, 0.5 * (K + K.T))


def _given_numbers(indices: Sequence[int] | Index, data: Data) -> Index:
    """``basis_indices``, checked against the rows of X and renumbered among those of positive weight."""
    kept = data.kept
    rows = data.n_given
    numbers = np.asarray(indices)
    whole = numbers.ndim == 1 and numbers.dtype.kind in "iu" and len(numbers)
    if not whole or numbers.min() < 0 or numbers.max() >= rows:
        raise InputError(
            f"basis_indices must be a sequence of at least one row number of X, 0 to {rows - 1}; got {indices!r}.",
            parameter="basis_indices",
        )
    if kept is None:
        return numbers.astype(np.intp)
    dropped = numbers[~kept[numbers]]
    if len(dropped):
        raise InputError(f"basis_indices contains row {dropped[0]}, whose weight is zero.", parameter="basis_indices")
    return np.asarray((np.cumsum(kept) - 1)[numbers].astype(np.intp))


def random_numbers(random_state: RandomState) -> np.random.RandomState:
    """Source of random numbers as in scikit-learn; a Generator, which scikit-learn refuses, provides its bits."""
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    numbers: np.random.RandomState = check_random_state(random_state)
    return numbers


def generator(random_state: RandomState) -> np.random.Generator:
    """Generator from a random state as in scikit-learn."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
