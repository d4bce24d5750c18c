"""Kernels given by name, as a function, or as a matrix.

================  ==========================================================
``linear``        ``x'z``
``rbf``           ``exp(-gamma ||x - z||^2)`` (Gaussian)
``laplacian``     ``exp(-gamma ||x - z||_1)``
``polynomial``    ``(gamma x'z + coef0)^degree``; also ``poly``
``sigmoid``       ``tanh(gamma x'z + coef0)``; not positive semidefinite
``precomputed``   X is the kernel matrix itself
a callable        ``function(x, z) -> float`` for two rows of X, or two objects of any kind
================  ==========================================================

``gamma`` is 1 / number of features by default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from rankrls._arrays import as_floats, chunk_values, device_of, namespace, on_device
from rankrls._checks import check_count, check_memory, check_number, check_word
from rankrls._compiled import map_threads, one_blas_thread
from rankrls._errors import InputError
from rankrls._rows import mirror, offset_columns, row_slices, shift_columns, take_items
from rankrls._typing import Array, Matrix

__all__ = ["KERNELS", "Kernel", "KernelColumns", "check_kernel", "kernel_parameters", "resolve_kernel"]

_TILE = 256
_MOST = 1e150
"""Value from which sums of squares may overflow."""

OPERATIONS = {"multiply": "Mul", "add": "Add", "pow": "Pow", "exp": "Exp", "tanh": "Tanh"}
"""Operations of a kernel's formula: functions of the array API, and the equivalent operators of ONNX."""

Step = tuple[str] | tuple[str, float]
"""An operation, and its number if it has one."""


@dataclass(frozen=True)
class Formula:
    """A kernel as a function of one number for each pair of rows.

    Attributes
    ----------
    names : tuple of str
        Name and aliases.
    measure : {"product", "square", "manhattan"}
        Number per pair: the inner product, the squared distance, or the sum of absolute differences.
    parameters : tuple of str
        Parameters among ``gamma``, ``degree`` and ``coef0`` on which the kernel depends.
    steps : callable
        Function of a kernel that returns the operations that turn these numbers into kernel values, in order.
    """

    names: tuple[str, ...]
    measure: Literal["product", "square", "manhattan"]
    parameters: tuple[str, ...]
    steps: Callable[[Kernel], tuple[Step, ...]]

    def finish(self, block: Matrix, kernel: Kernel) -> None:
        """Turn the numbers of a block of pairs into kernel values, in place."""
        xp = namespace(block)
        with np.errstate(over="ignore", invalid="ignore"):
            for operation, *numbers in self.steps(kernel):
                block[...] = getattr(xp, operation)(block, *numbers)
        if "degree" in self.parameters and not xp.all(xp.abs(block) < _MOST):
            problem = f"Values of the {self.names[0]} kernel are too large to be multiplied."
            raise InputError(f"{problem} Scale the features, or lower degree or gamma.", parameter="degree")


TABLE = (
    Formula(("linear",), "product", (), lambda k: ()),
    Formula(("rbf",), "square", ("gamma",), lambda k: (("multiply", -k.gamma), ("exp",))),
    Formula(("laplacian",), "manhattan", ("gamma",), lambda k: (("multiply", -k.gamma), ("exp",))),
    Formula(
        ("polynomial", "poly"),
        "product",
        ("gamma", "degree", "coef0"),
        lambda k: (("multiply", k.gamma), ("add", k.coef0), ("pow", k.degree)),
    ),
    Formula(
        ("sigmoid",),
        "product",
        ("gamma", "coef0"),
        lambda k: (("multiply", k.gamma), ("add", k.coef0), ("tanh",)),
    ),
)
FORMULAS = {name: formula for formula in TABLE for name in formula.names}
KERNELS = (*FORMULAS, "precomputed")


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters: ``kernel(X, Z)`` is the matrix of all pairs of rows.

    Parameters
    ----------
    name : str or callable
        Name from the module's table, or a function.
    gamma, degree, coef0 : float
        Parameters of the table; a kernel ignores those that it does not have.

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

    @property
    def is_linear(self) -> bool:
        return self.name == "linear"

    @property
    def formula(self) -> Formula | None:
        """Row of the kernel in the table; None for a function and for a precomputed kernel."""
        return FORMULAS.get(self.name) if isinstance(self.name, str) else None

    def __call__(self, X: Matrix, Z: Matrix | None = None) -> Array:
        """Kernel matrix, (rows of X, rows of Z); without Z, of X with itself, exactly symmetric.

        X and Z are dense (float32 or float64), CSR, or any sequences for a function. Computed in blocks of rows on all
        threads. O(rows x rows x features).
        """
        if callable(self.name):
            return self._called(X, Z)
        if self.formula is None:
            return self.columns(np.arange(X.shape[1]))(X)
        columns = self.columns(X if Z is None else Z)
        if on_device(X):
            return columns(X)
        shape = (X.shape[0], columns.Z.shape[0])
        remedy = "Use SparseRankRLSCV, or for a linear kernel CGRankRLS."
        check_memory(8.0 * np.prod(shape), "The kernel matrix needs", remedy, parameter="kernel")
        out = np.empty(shape)

        def evaluate(rows: slice) -> None:
            out[rows] = columns(X[rows])

        with one_blas_thread():
            map_threads(evaluate, row_slices(len(out), _TILE))
        if Z is None:
            mirror(out)
        return out

    def columns(self, Z: Matrix) -> KernelColumns:
        """Columns of the kernel for fixed items Z, which can be evaluated for many blocks of rows."""
        return KernelColumns(self, Z)

    def _called(self, X: Sequence[Any], Z: Sequence[Any] | None) -> Array:
        assert callable(self.name)
        left = list(X)
        right = list(X if Z is None else Z)
        out = np.full((len(left), len(right)), np.nan)
        for i, x in enumerate(left):
            for j, z in enumerate(right[: i + 1] if Z is None else right):
                value = self.name(x, z)
                with suppress(TypeError, ValueError):
                    out[i, j] = float(value)
                if not np.isfinite(out[i, j]):
                    problem = f"The kernel function returned {value!r:.60} for items {i} and {j}"
                    raise InputError(f"{problem}; it must return a finite number.", parameter="kernel")
        if Z is None:
            mirror(out)
        return out


class KernelColumns:
    """``k(x, z)`` for fixed items z and blocks of rows x.

    Terms that depend on the fixed items alone are computed once. A block is evaluated in the calling thread, in tiles
    that stay in cache; several threads may call at once.

    Parameters
    ----------
    kernel : Kernel
    Z : dense (float32 or float64), CSR, or a sequence for a callable
        Fixed items; for ``"precomputed"``, their column numbers in the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls.kernels import Kernel
    >>> Kernel("rbf", gamma=0.5).columns(np.array([[0.0], [2.0]]))(np.array([[1.0], [2.0]]))
    array([[0.60653066, 0.60653066],
           [0.13533528, 1.        ]])
    """

    def __init__(self, kernel: Kernel, Z: Matrix) -> None:
        self.kernel = kernel
        self.Z = Z
        self._shift = self._centre = self._norms = None
        if kernel.formula is None:
            return
        distances = kernel.formula.measure == "square"  # which offsets do not change
        if distances and sparse.issparse(Z):
            self._shift = offset_columns(Z)
        elif distances and Z.shape[0]:
            self._centre = namespace(Z).mean(_floats(Z), axis=0)
        self.Z = self._shifted(Z)
        if distances:
            self._norms = _squared_norms(self.Z)

    def __call__(self, X: Matrix) -> Array:
        """Kernel values, (rows of X, fixed items), for rows X of any form that the kernel accepts."""
        if callable(self.kernel.name):
            return self.kernel._called(X, self.Z)
        formula = self.kernel.formula
        if formula is None:
            block = X[:, self.Z]
            return np.asarray(block.toarray() if sparse.issparse(block) else block, dtype=np.float64)
        xp = namespace(X)
        out: Array = xp.empty((X.shape[0], self.Z.shape[0]), dtype=self.Z.dtype, device=device_of(X))
        if not self.Z.shape[0]:
            return out
        eps = float(xp.finfo(out.dtype).eps)
        for rows in row_slices(X.shape[0], max(16, chunk_values(X) // self.Z.shape[0])):
            block = self._shifted(take_items(X, rows))
            part = take_items(out, rows)
            numbers = _manhattan(block, self.Z) if formula.measure == "manhattan" else block @ self.Z.T
            part[...] = numbers.toarray() if sparse.issparse(numbers) else numbers
            if self._norms is not None:
                both = _squared_norms(block)[:, None] + self._norms
                part *= -2.0
                part += both
                both *= eps * (8 + X.shape[1])
                part[part <= both] = 0.0  # may be rounding alone: equal rows have equal kernels
            formula.finish(part, self.kernel)
        return out

    def _shifted(self, X: Matrix) -> Matrix:
        """Rows in the highest precision, without the offsets of the fixed items if only distances matter."""
        if self._shift is not None:
            return shift_columns(sparse.csr_array(X), *self._shift).astype(np.float64, copy=False)
        if self._centre is None:
            return _floats(X)
        return _floats(X.toarray() if sparse.issparse(X) else X) - self._centre


def kernel_parameters(kernel: str | Callable[..., float]) -> tuple[str, ...]:
    """Parameters among ``gamma``, ``degree`` and ``coef0`` on which a kernel, a name or a function, depends.

    Examples
    --------
    >>> from rankrls.kernels import kernel_parameters
    >>> kernel_parameters("sigmoid"), kernel_parameters("linear")
    (('gamma', 'coef0'), ())
    """
    return FORMULAS[kernel].parameters if isinstance(kernel, str) and kernel in FORMULAS else ()


def check_kernel(kernel: Any, gamma: Any, degree: Any, coef0: Any) -> None:
    """Check the name and the parameters of a kernel.

    Raises
    ------
    InputError
        If the name is unknown, or a parameter is not a number or out of range.
    """
    if not callable(kernel):
        check_word("kernel", kernel, KERNELS, otherwise="a function")
    if gamma is not None:
        check_number("gamma", gamma, {"above": 0.0})
    check_count("degree", degree)
    check_number("coef0", coef0)


def resolve_kernel(
    X: Matrix, kernel: str | Callable[..., float], gamma: float | None, degree: float, coef0: float
) -> Kernel:
    """Kernel with the default of gamma computed from the number of features; X may be a list of objects."""
    if gamma is None:
        gamma = 1.0 / max(X.shape[1], 1) if len(getattr(X, "shape", ())) == 2 else 1.0
    return Kernel(kernel, float(gamma), int(degree), float(coef0))


def _floats(X: Matrix) -> Matrix:
    return as_floats(X) if on_device(X) else X.astype(np.float64, copy=False)


def _manhattan(X: Matrix, Z: Matrix) -> Matrix:
    """Sums of absolute differences; on a device, feature by feature, to avoid a three-dimensional array."""
    if on_device(X):
        return sum(abs(X[:, k][:, None] - Z[:, k][None, :]) for k in range(X.shape[1]))
    from sklearn.metrics.pairwise import manhattan_distances

    return manhattan_distances(_short(X), _short(Z))


def _short(X: Matrix) -> Matrix:
    """Copy of sparse rows with 32-bit indices, the only ones that scikit-learn's distances accept."""
    if sparse.issparse(X):
        X = X.copy()  # duplicates are summed in place
        X.indices = X.indices.astype(np.int32)
        X.indptr = X.indptr.astype(np.int32)
    return X


def _squared_norms(block: Matrix) -> Matrix:
    if sparse.issparse(block):
        return np.asarray(block.multiply(block).sum(axis=1)).ravel()
    return namespace(block).sum(block * block, axis=1)
