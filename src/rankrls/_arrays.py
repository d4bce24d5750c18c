"""Arrays of libraries other than numpy (torch, cupy) on their devices, through the array API standard.

Matrices stay on the device of X. Vectors of a fit, such as eigenvalues, labels and evaluated scores, are numpy arrays:
code that reduces a matrix to a vector copies it to the host, and code that combines a vector with a matrix copies it to
the device. Arrays in host memory are read in place by numpy, which has compiled loops, and only the results are copied.
Every function here accepts numpy arrays too, at no cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from rankrls._cells import unmasked
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Array, Index

_CACHED_VALUES = 1 << 18
"""Approximate number of values in a chunk of rows in host memory: 2 MB stay in the cache of one processor."""
DEVICE_VALUES = 1 << 23
"""Number of values in a chunk of rows on a device: 64 MB, so that starting a product costs little in comparison."""


def on_device(X: Any) -> bool:
    """Whether X is an array of a library other than numpy."""
    if isinstance(X, (np.ndarray, list)) or sparse.issparse(X):
        return False
    import array_api_compat

    return bool(array_api_compat.is_array_api_obj(X))


def namespace(X: Any) -> Any:
    """Array API functions for X: numpy itself for everything that is not on a device."""
    if not on_device(X):
        return np
    import array_api_compat

    return array_api_compat.get_namespace(X)


def device_of(X: Any) -> Any:
    """Device of an array, None for the host; arrays fit together if their namespaces and devices are the same."""
    import array_api_compat

    return array_api_compat.device(X) if on_device(X) else None


def to_host(values: Any) -> AnyArray:
    """The values as a numpy array."""
    if not on_device(values):
        return np.asarray(unmasked(values))
    import array_api_compat

    if array_api_compat.is_torch_array(values):
        return np.asarray(values.detach().cpu())
    if array_api_compat.is_cupy_array(values):
        return np.asarray(values.get())
    host = namespace(values).__array_namespace_info__().default_device()
    return np.asarray(array_api_compat.to_device(values, host))


def to_device_of(values: Any, like: Any) -> Any:
    """Host values in the namespace and on the device of another array, floats in its highest precision.

    Do not modify the result, which may share memory with the values.
    """
    if not on_device(like) or on_device(values):
        return values
    values = np.ascontiguousarray(values)
    if not values.flags.writeable:
        values = values.copy()  # torch warns about read-only memory
    xp = namespace(like)
    if values.dtype.kind != "f":
        return xp.asarray(values, device=device_of(like))
    return xp.asarray(values.astype(_float_name(like), copy=False), device=device_of(like))


def in_place(X: Any) -> Any:
    """Numpy array that reads the memory of an array on the host; arrays on other devices are returned unchanged."""
    if not on_device(X):
        return X
    try:
        return np.asarray(X, order="C")
    except (RuntimeError, TypeError):
        return X


def as_floats(X: Any) -> Any:
    """X in the highest precision of its device, float64 if supported; X on the host is returned unchanged."""
    if not on_device(X):
        return X
    xp = namespace(X)
    return xp.astype(X, getattr(xp, _float_name(X)), copy=False)


def _float_name(X: Any) -> str:
    known = namespace(X).__array_namespace_info__().dtypes(kind="real floating", device=device_of(X))
    return "float64" if "float64" in known else "float32"


def taken(X: Any, numbers: Index, axis: int = 0) -> Any:
    """Rows or columns of X by number."""
    return namespace(X).take(X, to_device_of(np.asarray(numbers, dtype=np.int64), X), axis=axis)


def joined(parts: list[Any], axis: int = 0) -> Any:
    """Concatenation of arrays of one device."""
    return namespace(parts[0]).concat(parts, axis=axis)


def repeated(values: Any, counts: Index) -> Any:
    """Rows, each repeated as often as its count."""
    return taken(values, np.repeat(np.arange(len(counts)), counts))


def column(values: Array, like: Any) -> Any:
    """A host vector as a column on the device of a matrix."""
    return to_device_of(values, like)[:, None]


def squared_lengths(X: Any, axis: int) -> Array:
    """Squared lengths of the rows (axis 1) or columns (axis 0) of a matrix, on the host."""
    if not on_device(X):  # without an array of the size of X
        return np.asarray(np.einsum("ij,ij->i" if axis else "ij,ij->j", X, X))
    return to_host(namespace(X).sum(X * X, axis=axis))


def squared_lengths_in(units: Array, X: Any) -> Array:
    """Squared lengths of the rows of ``X / units``, on the host, without that matrix."""
    weights = units**-2.0
    if not on_device(X):
        return np.asarray(np.einsum("ij,ij,j->i", X, X, weights))
    return to_host((X * X) @ to_device_of(weights, X))


def items_behind(X: Any) -> Any:
    """Items behind features that are evaluated when rows are requested; any other X itself."""
    return getattr(X, "X", X)


def chunk_values(X: Any) -> int:
    """Approximate number of values in a chunk of rows of X."""
    return DEVICE_VALUES if on_device(items_behind(X)) else _CACHED_VALUES


def host_only(X: Any, what: str) -> None:
    """Refuse an array on a device for a feature that has no implementation there."""
    if on_device(X):
        raise InputError(f"{what} needs numpy arrays. Convert X to numpy.", parameter="X")


def check_together(fitted: Any, X: Any, method: str) -> None:
    """Refuse items that are not on the device of the fitted coefficients."""
    if namespace(fitted) is not namespace(X) or device_of(fitted) != device_of(X):
        raise InputError(
            f"The X of {method} must use the same namespace and device as the X of fit. Convert X, or save and load "
            "the model, which converts it to numpy.",
            parameter="X",
        )
