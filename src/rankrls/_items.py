"""Items that every query ranks, as a value that travels beside the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankrls._errors import InputError

__all__ = ["Items"]


@dataclass(frozen=True, eq=False)
class Items:
    """The items of conditional ranking: what is known of each, in the order of the columns of Y.

    It has neither a length nor a shape: scikit-learn cuts everything that is as long as X into the rows of its folds,
    and items are no rows of X.

    Parameters
    ----------
    features : array-like or sparse matrix of shape (d, p)
        One row an item; with ``item_kernel="precomputed"`` the kernel between these items and the training items.
    ids : sequence of length d, optional
        The items' names.

    Examples
    --------
    >>> from rankrls import Items
    >>> Items([[1.0, 0.0], [0.5, 2.0]], ids=["a", "b"])
    Items(2 items with 2 features)
    """

    features: Any
    ids: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.features, "shape"):
            object.__setattr__(self, "features", np.asarray(self.features, dtype=np.float64))
        if len(self.features.shape) != 2:
            raise InputError(f"items need one row an item; got shape {self.features.shape}.", parameter="items")
        if self.ids is not None and len(self.ids) != self.features.shape[0]:
            raise InputError(f"There are {len(self.ids)} ids for {self.features.shape[0]} items.", parameter="items")

    @property
    def n_items(self) -> int:
        """How many there are."""
        return int(self.features.shape[0])

    def __repr__(self) -> str:
        return f"Items({self.n_items} items with {self.features.shape[1]} features)"
