"""Types that the whole library shares, by the names that its signatures use."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, SupportsFloat, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
"""An array of any dtype, such as ids."""
Matrix: TypeAlias = Any
"""Items after their checks, or a matrix made of them: an ndarray, csr_array, array on a device or LinearOperator; or a
list of objects for a callable kernel. Neither scipy nor the array API has types that a checker could use.
"""
Values: TypeAlias = dict[str, Any]
"""Values by name, each of a type of its own: parameters, attributes, or a JSON object."""
Params: TypeAlias = Mapping[str, Any]
"""The same, read only; also the keyword arguments of a callable kernel."""
Names: TypeAlias = str | Sequence[str]
"""One name, or several."""
PathLike: TypeAlias = str | os.PathLike[str]
"""Path of a file or folder."""


class HasShape(Protocol):
    """An array, sparse matrix or data frame of any library."""

    @property
    def shape(self) -> tuple[object, ...]: ...


ItemsLike: TypeAlias = HasShape | Sequence[object] | Mapping[str, object]
"""X as users give it: a matrix or data frame, rows of numbers or dicts, one dict, or objects for a callable kernel."""
VectorLike: TypeAlias = HasShape | Sequence[SupportsFloat]
"""A number for each row or preference."""
LabelsLike: TypeAlias = VectorLike | Sequence[Sequence[SupportsFloat]]
"""Labels of one target or several."""
IdsLike: TypeAlias = HasShape | Sequence[Hashable]
"""An id for each row, of any hashable type."""


@runtime_checkable
class Splitter(Protocol):
    """A cross-validation splitter of scikit-learn."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[Any]: ...


FoldsLike: TypeAlias = int | Splitter | Iterable[Sequence[VectorLike]] | None
"""cv as users give it: a number of folds, a splitter, or pairs of row numbers (train, test)."""
ExactFoldsLike: TypeAlias = FoldsLike | Literal["leave_pair_out"]
"""cv of estimators whose held-out scores take no refits."""
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
