"""Kernels by name, by function, or given as a matrix.

================  ==========================================================
``linear``        ``x'z``
``rbf``           ``exp(-gamma ||x - z||^2)`` (Gaussian)
``laplacian``     ``exp(-gamma ||x - z||_1)``
``polynomial``    ``(gamma x'z + coef0)^degree``; ``poly`` is the same
``sigmoid``       ``tanh(gamma x'z + coef0)``; not positive semidefinite
``precomputed``   X is the kernel matrix itself
a callable        ``function(x, z, **kernel_params) -> float`` for two rows of X, or two objects of any kind
================  ==========================================================

``gamma`` is 1 / number of features by default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls import _kernel_table
from rankrls._compiled.threads import map_blocks
from rankrls._errors import InputError
from rankrls._kernel_table import FORMULAS, Formula
from rankrls._sparse import offset_columns, shift_columns

__all__ = ["KERNELS", "Kernel", "KernelColumns", "check_kernel", "kernel_parameters", "mirror", "resolve_kernel"]

KERNELS = (*_kernel_table.KERNELS, "precomputed")
_TILE = 1024
_PANEL = 128
_CACHED = 1 << 17
"""Entries of a tile that stays in the second-level cache while it is worked on."""


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters: ``kernel(X, Z)`` is the matrix of all pairs of rows.

    Parameters
    ----------
    name : str or callable
        See the module's table.
    gamma, degree, coef0 : float
        As in the table; those that the kernel does not have are ignored.
    params : mapping, optional
        Keyword arguments of a callable.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls.kernels import Kernel
    >>> Kernel("rbf", gamma=0.5)(np.array([[0.0], [2.0]]))
    array([[1.        , 0.13533528],
           [0.13533528, 1.        ]])
    """

    name: str | Callable[..., float]
    gamma: float = 1.0
    degree: float = 3.0
    coef0: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_linear(self) -> bool:
        return self.name == "linear"

    @property
    def formula(self) -> Formula | None:
        """The kernel's row of the table; None for a function, and for a kernel that is known by its matrix."""
        return FORMULAS.get(self.name) if isinstance(self.name, str) else None

    def __call__(self, X: Any, Z: Any | None = None) -> NDArray[np.float64]:
        """Kernel matrix, (rows of X, rows of Z); with Z None, of X with itself, exactly symmetric.

        X and Z are dense (float32 or float64), CSR, or for a callable any sequences. Computed tile by tile, so that
        neither is copied or upcast whole. O(rows x rows x features), threaded.
        """
        formula = self.formula
        if callable(self.name):
            return self._called(X, Z)
        if formula is None:
            return X.toarray().astype(np.float64) if sparse.issparse(X) else np.array(X, dtype=np.float64)
        symmetric = Z is None
        right = X if Z is None else Z
        out = np.empty((X.shape[0], right.shape[0]))
        squares = formula.measure == "square"
        if squares and sparse.issparse(right):
            shift = offset_columns(right)
            right = shift_columns(right, *shift)
            X = right if symmetric else shift_columns(X if sparse.issparse(X) else sparse.csr_array(X), *shift)
        centre = _centre(right) if squares else None
        norms = _squared_norms(right, centre) if squares else np.zeros(0)
        own_norms = norms if symmetric or not squares else _squared_norms(X, centre)
        tiles = [
            (slice(i, min(i + _TILE, X.shape[0])), slice(j, min(j + _TILE, right.shape[0])))
            for i in range(0, X.shape[0], _TILE)
            for j in range(0, right.shape[0], _TILE)
            if not symmetric or j <= i
        ]

        def evaluate(tile: tuple[slice, slice]) -> None:
            rows, columns = tile
            if centre is None:
                _measure(formula, X, right, rows, columns, None, out)
            else:
                wide = _widened(_tile(right, columns, centre), 1.0, 1.0, norms[columns]).T
            width = columns.stop - columns.start
            for part in _strips(rows, width):
                block = out[part, columns]
                if squares:
                    if centre is None:
                        _to_squares(block, own_norms[part], norms[columns])
                    else:  # [-2 x, |x|^2, 1] [z, 1, |z|^2]' = |x - z|^2
                        np.matmul(_widened(_tile(X, part, centre), -2.0, own_norms[part], 1.0), wide, out=block)
                    np.maximum(block, 0.0, out=block)
                    if symmetric and rows == columns:
                        np.fill_diagonal(block[:, part.start - rows.start :], 0.0)
                formula.finish(block, self)
            if symmetric:
                if rows == columns:
                    mirror(out[rows, rows])
                else:
                    out[columns, rows] = out[rows, columns].T

        map_blocks(evaluate, tiles)
        return out

    def columns(self, Z: Any) -> KernelColumns:
        """The kernel's columns for fixed items Z, to be evaluated for many blocks of rows."""
        return KernelColumns(self, Z)

    def _called(self, X: Sequence[Any], Z: Sequence[Any] | None) -> NDArray[np.float64]:
        assert callable(self.name)
        left = list(X)
        if Z is None:
            out = np.empty((len(left), len(left)))
            for i, x in enumerate(left):
                for j in range(i + 1):
                    out[i, j] = out[j, i] = self._value(x, left[j], i, j)
        else:
            right = list(Z)
            out = np.empty((len(left), len(right)))
            for i, x in enumerate(left):
                for j, z in enumerate(right):
                    out[i, j] = self._value(x, z, i, j)
        return out

    def _value(self, x: Any, z: Any, i: int, j: int) -> float:
        assert callable(self.name)
        value = self.name(x, z, **self.params)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InputError(
                "The {kernel} function must return one number for two items; for items {0} and {1} it returned {2}.",
                i,
                j,
                type(value).__name__,
                parameter="kernel",
            ) from None
        if not np.isfinite(number):
            raise InputError(
                "The {kernel} function returned {0} for items {1} and {2}; it must be finite.",
                number,
                i,
                j,
                parameter="kernel",
            )
        return number


class KernelColumns:
    """``k(x, z)`` of fixed items z for rows x that come block by block.

    What depends on the fixed items alone is computed once. A block is evaluated in tiles that stay in cache, in the
    calling thread; several threads may call at once.

    Parameters
    ----------
    kernel : Kernel
    Z : dense (float32 or float64), CSR, or a sequence for a callable
        The fixed items. For ``"precomputed"`` their numbers among the columns of the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls.kernels import Kernel
    >>> Kernel("rbf", gamma=0.5).columns(np.array([[0.0], [2.0]]))(np.array([[1.0], [2.0]]))
    array([[0.60653066, 0.60653066],
           [0.13533528, 1.        ]])
    """

    def __init__(self, kernel: Kernel, Z: Any) -> None:
        self.kernel = kernel
        self.Z = Z
        self.n_columns = Z.shape[0] if hasattr(Z, "shape") else len(Z)
        self._shift = self._right = None
        formula = kernel.formula
        self._squares = formula is not None and formula.measure == "square"
        if self._squares:
            if sparse.issparse(Z):
                self._shift = offset_columns(Z)
                self.Z = shift_columns(Z, *self._shift)
            self._centre = _centre(self.Z)
            self._norms = _squared_norms(self.Z, self._centre)
            if self._centre is not None and kernel.name == "rbf":
                # [2 gamma x, -gamma |x|^2, 1] [z, 1, -gamma |z|^2]' = -gamma |x - z|^2: one product, then exp.
                self._right = np.vstack(
                    ((self.Z - self._centre).T, np.ones(self.n_columns), -kernel.gamma * self._norms)
                )

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """Kernel values, (rows of X, fixed items), for rows X of any form that the kernel takes."""
        kernel, formula = self.kernel, self.kernel.formula
        if callable(kernel.name):
            return kernel._called(X, self.Z)
        if formula is None:
            block = X[:, self.Z]
            return np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)
        if self._shift is not None:
            X = shift_columns(X if sparse.issparse(X) else sparse.csr_array(X), *self._shift)
        out = np.empty((X.shape[0], self.n_columns))
        everything = slice(0, self.n_columns)
        for rows in _strips(slice(0, X.shape[0]), self.n_columns):
            part = out[rows]
            if self._right is not None:
                block = _tile(X, rows, self._centre)
                norms = np.einsum("ij,ij->i", block, block)
                left = _widened(block, 2.0 * kernel.gamma, -kernel.gamma * norms, 1.0)
                np.matmul(left, self._right, out=part)
                np.minimum(part, 0.0, out=part)
                np.exp(part, out=part)
                continue
            centre = self._centre if self._squares else None
            _measure(formula, X, self.Z, rows, everything, centre, out)
            if self._squares:
                _to_squares(part, _squared_norms(X[rows], centre), self._norms)
                np.maximum(part, 0.0, out=part)
            formula.finish(part, kernel)
        return out


def kernel_parameters(kernel: Any) -> tuple[str, ...]:
    """Which of ``gamma``, ``degree`` and ``coef0`` make a difference to a kernel, given by its name or as a function.

    Examples
    --------
    >>> from rankrls.kernels import kernel_parameters
    >>> kernel_parameters("sigmoid"), kernel_parameters("linear")
    (('gamma', 'coef0'), ())
    """
    return FORMULAS[kernel].parameters if isinstance(kernel, str) and kernel in FORMULAS else ()


def check_kernel(kernel: Any, gamma: Any, degree: Any, coef0: Any, kernel_params: Any) -> None:
    """A kernel's name and its parameters.

    Raises
    ------
    InputError
        For an unknown name, and for parameters that are not numbers or out of range.
    """
    if not callable(kernel) and not (isinstance(kernel, str) and kernel in KERNELS):
        remedy = "A matrix of kernel values is X, with {kernel='precomputed'}." if hasattr(kernel, "shape") else ""
        raise InputError(
            "{kernel} must be one of {0}, or a function; got {1!r}.",
            ", ".join(map(repr, KERNELS)),
            kernel,
            parameter="kernel",
            remedy="The Gaussian kernel is 'rbf'." if str(kernel) in ("gaussian", "gauss") else remedy,
        )
    if gamma is not None and not (isinstance(gamma, Real) and np.isfinite(float(gamma)) and float(gamma) > 0.0):
        raise InputError("{gamma} must be None or a positive number; got {0!r}.", gamma, parameter="gamma")
    if not (isinstance(degree, Integral) and int(degree) >= 1):
        raise InputError("{degree} must be a whole number of at least 1; got {0!r}.", degree, parameter="degree")
    if not (isinstance(coef0, Real) and np.isfinite(float(coef0))):
        raise InputError("{coef0} must be a finite number; got {0!r}.", coef0, parameter="coef0")
    if kernel_params is not None and not callable(kernel):
        raise InputError(
            "{kernel_params} are the keyword arguments of a kernel function; {kernel} is a name here.",
            parameter="kernel_params",
        )


def resolve_kernel(X: Any, name: Any, gamma: Any, degree: Any, coef0: Any, params: Any) -> Kernel:
    """The kernel with gamma's default filled in from the number of features; X may be a list of objects."""
    if gamma is None:
        gamma = 1.0 / max(X.shape[1], 1) if len(getattr(X, "shape", ())) == 2 else 1.0
    return Kernel(name, float(gamma), int(degree), float(coef0), dict(params or {}))


def _centre(Z: Any) -> NDArray[np.float64] | None:
    """What is subtracted from all rows first: distances do not change, and large offsets do not cancel."""
    if sparse.issparse(Z) or not Z.shape[0]:
        return None
    return np.asarray(Z.mean(axis=0, dtype=np.float64))


def _measure(
    formula: Formula,
    X: Any,
    Z: Any,
    rows: slice,
    columns: slice,
    centre: NDArray[np.float64] | None,
    out: NDArray[np.float64],
) -> None:
    """Inner products of some rows of X and Z, or sums of their absolute differences, into their place in ``out``."""
    if formula.measure == "manhattan":
        from sklearn.metrics.pairwise import manhattan_distances

        out[rows, columns] = manhattan_distances(_short(_tile(X, rows, None)), _short(_tile(Z, columns, None)))
        return
    left, right = _tile(X, rows, centre), _tile(Z, columns, centre).T
    if sparse.issparse(left) or sparse.issparse(right):
        product = left @ right
        out[rows, columns] = product.toarray() if sparse.issparse(product) else product
    else:
        np.matmul(left, right, out=out[rows, columns])


def _to_squares(products: NDArray[np.float64], left: NDArray[np.float64], right: NDArray[np.float64]) -> None:
    """Squared distances to rounding, from inner products and squared norms, in place."""
    products *= -2.0
    products += left[:, None]
    products += right


def _widened(block: NDArray[np.float64], factor: float, last_but_one: Any, last: Any) -> NDArray[np.float64]:
    """Multiples of rows with two columns more, so that a product with others also adds what is known of each row."""
    rows, n = block.shape
    out = np.empty((rows, n + 2))
    np.multiply(block, factor, out=out[:, :n])
    out[:, n], out[:, n + 1] = last_but_one, last
    return out


def mirror(block: NDArray[np.float64]) -> None:
    """Copy what is below the diagonal above it, by panels."""
    for start in range(0, len(block), _PANEL):
        panel = slice(start, min(start + _PANEL, len(block)))
        block[:start, panel] = block[panel, :start].T
        corner = np.tril(block[panel, panel])
        block[panel, panel] = corner + np.tril(corner, -1).T


def _strips(rows: slice, width: int) -> Iterator[slice]:
    """Cut the rows of a tile so that a strip stays in cache."""
    step = max(16, _CACHED // max(width, 1))
    for start in range(rows.start, rows.stop, step):
        yield slice(start, min(start + step, rows.stop))


def _tile(X: Any, rows: slice, centre: NDArray[np.float64] | None) -> Any:
    block = X[rows]
    if sparse.issparse(block):
        # Against dense items, which are taken from their centre: so must these be, and they fit as dense as those.
        return block.astype(np.float64) if centre is None else block.toarray() - centre
    return block.astype(np.float64, copy=False) if centre is None else block - centre


def _short(block: Any) -> Any:
    """A sparse tile with 32-bit indices, the only ones that scikit-learn's distances take."""
    if sparse.issparse(block):
        block.indices, block.indptr = block.indices.astype(np.int32), block.indptr.astype(np.int32)
    return block


def _squared_norms(X: Any, centre: NDArray[np.float64] | None) -> NDArray[np.float64]:
    out = np.empty(X.shape[0])
    for start in range(0, X.shape[0], _TILE):
        rows = slice(start, start + _TILE)
        block = _tile(X, rows, centre)
        if sparse.issparse(block):
            out[rows] = np.asarray(block.multiply(block).sum(axis=1)).ravel()
        else:
            out[rows] = np.einsum("ij,ij->i", block, block)
    return out
