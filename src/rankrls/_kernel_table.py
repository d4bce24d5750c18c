"""The kernels that have a formula, a row of :data:`TABLE` each.

Everything else reads this table: the kernels' values, their checks, what is searched, what a model file records, and
the command line's list of names, which is why numpy is imported only where values are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from rankrls._errors import InputError

__all__ = ["FORMULAS", "KERNELS", "TABLE", "Formula"]


_MOST = 1e150
"""Values from here on have squares that overflow."""


@dataclass(frozen=True)
class Formula:
    """A kernel as a function of one number for each pair of rows.

    Attributes
    ----------
    names : tuple of str
        The name and its other spellings.
    measure : {"product", "square", "manhattan"}
        The number: the inner product, the squared distance, or the sum of absolute differences.
    parameters : tuple of str
        Which of ``gamma``, ``degree`` and ``coef0`` make a difference.
    finish : callable
        ``finish(block, kernel)`` turns these numbers into the kernel's values, in place.
    """

    names: tuple[str, ...]
    measure: Literal["product", "square", "manhattan"]
    parameters: tuple[str, ...]
    finish: Callable[[Any, Any], None]


def _as_it_is(block: Any, kernel: Any) -> None:
    pass


def _decay(block: Any, kernel: Any) -> None:
    import numpy as np

    block *= -kernel.gamma
    np.exp(block, out=block)


def _power(block: Any, kernel: Any) -> None:
    import numpy as np

    block *= kernel.gamma
    block += kernel.coef0
    with np.errstate(over="ignore", invalid="ignore"):
        np.power(block, kernel.degree, out=block)
        largest = float(np.abs(block).max(initial=0.0))
    if not largest < _MOST:
        raise InputError(
            "Values of the polynomial kernel are too large to be multiplied: {0:.1g} at {degree}={1:g}, {gamma}={2:g}.",
            *(largest, kernel.degree, kernel.gamma),
            remedy="Scale the features, or lower {gamma} or {degree}.",
            parameter="degree",
        )


def _tanh(block: Any, kernel: Any) -> None:
    import numpy as np

    block *= kernel.gamma
    block += kernel.coef0
    np.tanh(block, out=block)


TABLE = (
    Formula(("linear",), "product", (), _as_it_is),
    Formula(("rbf",), "square", ("gamma",), _decay),
    Formula(("laplacian",), "manhattan", ("gamma",), _decay),
    Formula(("polynomial", "poly"), "product", ("gamma", "degree", "coef0"), _power),
    Formula(("sigmoid",), "product", ("gamma", "coef0"), _tanh),
)
FORMULAS = {name: formula for formula in TABLE for name in formula.names}
KERNELS = tuple(FORMULAS)
"""Names of the kernels that have a formula."""
PARAMETERS = frozenset(name for formula in TABLE for name in formula.parameters)
"""The parameters that some kernel has."""
