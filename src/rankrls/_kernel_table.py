"""The kernels that have a formula, a row of :data:`TABLE` each.

Everything else reads this table: the kernels' values, their checks, what is searched, what a model file records, and
the command line's list of names, which is why numpy is imported only where values are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from rankrls._errors import InputError

_MOST = 1e150
"""Values from here on have squares that overflow."""


OPERATIONS = {"multiply": "Mul", "add": "Add", "power": "Pow", "exp": "Exp", "tanh": "Tanh"}
"""What a kernel's numbers may be put through: functions of numpy, and the operators of ONNX that are the same."""

Step = tuple[str] | tuple[str, float]
"""An operation, and the number that it takes if it takes one."""


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
    steps : callable
        ``steps(kernel)`` are the operations that turn these numbers into the kernel's values, one after another.
    """

    names: tuple[str, ...]
    measure: Literal["product", "square", "manhattan"]
    parameters: tuple[str, ...]
    steps: Callable[[Any], tuple[Step, ...]]

    def finish(self, block: Any, kernel: Any, done: int = 0) -> None:
        """Turn the numbers of some pairs into the kernel's values, in place; so many steps are done already."""
        import numpy as np

        steps = self.steps(kernel)[done:]
        with np.errstate(over="ignore", invalid="ignore"):
            for operation, *numbers in steps:
                getattr(np, operation)(block, *numbers, out=block)
            if ("power" not in {step[0] for step in steps}) or float(np.abs(block).max(initial=0.0)) < _MOST:
                return
        given = [name for name in ("degree", "gamma") if name in self.parameters]
        at = " at " + ", ".join(f"{name}={getattr(kernel, name):g}" for name in given) if given else ""
        lower = f", or lower {' or '.join(given)}" if given else ""
        raise InputError(
            f"Values of the {self.names[0]} kernel are too large to be multiplied: "
            f"{float(np.abs(block).max()):.1g}{at}. Scale the features{lower}.",
            parameter=[*given, "kernel"][0],
        )


TABLE = (
    Formula(("linear",), "product", (), lambda k: ()),
    Formula(("rbf",), "square", ("gamma",), lambda k: (("multiply", -k.gamma), ("exp",))),
    Formula(("laplacian",), "manhattan", ("gamma",), lambda k: (("multiply", -k.gamma), ("exp",))),
    Formula(
        ("polynomial", "poly"),
        "product",
        ("gamma", "degree", "coef0"),
        lambda k: (("multiply", k.gamma), ("add", k.coef0), ("power", k.degree)),
    ),
    Formula(
        ("sigmoid",),
        "product",
        ("gamma", "coef0"),
        lambda k: (("multiply", k.gamma), ("add", k.coef0), ("tanh",)),
    ),
)
FORMULAS = {name: formula for formula in TABLE for name in formula.names}
KERNELS = tuple(FORMULAS)
"""Names of the kernels that have a formula."""
