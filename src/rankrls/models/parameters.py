"""Checks of the parameters of estimators, in one table per family of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from rankrls._checks import check_number, check_word
from rankrls._errors import InputError
from rankrls._typing import Array, HasShape, Params, Values, VectorLike
from rankrls.metrics._measure import MeasureLike, resolve_measure
from rankrls.selection.search import RULES

T = TypeVar("T")

Several: TypeAlias = T | Sequence[T]
"""A value, or several to choose from."""
KernelLike: TypeAlias = str | Callable[..., float]
Grid: TypeAlias = Literal["auto"] | VectorLike
Feature: TypeAlias = int | str
"""Number or name of a feature."""
Positive: TypeAlias = bool | HasShape | Sequence[Feature] | Mapping[Feature, int]
Columns: TypeAlias = slice | HasShape | Sequence[Feature]
View: TypeAlias = str | Callable[..., float] | Params | Columns
"""One view of a multi-view method: its kernel, its features, or both by name."""
Scoring: TypeAlias = MeasureLike

Check: TypeAlias = Callable[[str, Any], object]
"""Function of a parameter's name and value that raises an InputError for an invalid value."""

BALANCES = ("pairs", "examples", "queries")
SOLVERS = ("auto", "primal", "dual")


def options(value: object, name: str = "value") -> tuple[Any, ...]:
    """A tuple (or list) of values to choose from, or a tuple of the single value."""
    if not isinstance(value, (tuple, list)):
        return (value,)
    if not value:
        raise InputError("A tuple of values to choose from must not be empty.", parameter=name)
    return tuple(value)


def combinations(values: Params) -> Iterator[Values]:
    """Every combination of the given values of parameters."""
    several = (options(value, name) for name, value in values.items())
    for chosen in product(*several):
        yield dict(zip(values, chosen, strict=True))


def each_of(check: Check) -> Check:
    """Check for a value that another check allows, or a tuple of them to choose from."""

    def check_each(name: str, value: object) -> None:
        for one in options(value, name):
            check(name, one)

    return check_each


def single(name: str, value: object) -> None:
    """Check for anything but a tuple of values to choose from."""
    if isinstance(value, (tuple, list)):
        raise InputError(f"{name} must be a single value; got {value!r}.", parameter=name)


def word(words: Iterable[str]) -> Check:
    """Check for one of the given words."""
    return lambda name, value: check_word(name, value, words)


def number(*, whole: bool = False, none: bool = False, **bounds: float) -> Check:
    """Check for a finite number inside bounds (``least``, ``above``, ``most``, ``below``); ``whole`` requires whole
    numbers, and ``none`` allows None.
    """

    def check(name: str, value: Any) -> None:
        if not (none and value is None):
            check_number(name, value, bounds, whole=whole)

    return check


def auto_or(check: Check) -> Check:
    """Check for the word "auto" or a value that another check allows."""

    def check_auto(name: str, value: object) -> None:
        if not (isinstance(value, str) and value == "auto"):
            check(name, value)

    return check_auto


def flag(name: str, value: object) -> None:
    """Check for True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False; got {value!r}.", parameter=name)


def check_measure(name: str, value: Any) -> None:
    """Check for a measure or the name of one."""
    try:
        resolve_measure(value)
    except InputError as error:
        raise error.replace(parameter=name) from None


def check_seed(name: str, value: object) -> None:
    """Check for a random_state as in scikit-learn, or a numpy Generator."""
    try:
        check_random_state(None if isinstance(value, np.random.Generator) else value)
    except (ValueError, TypeError):
        problem = f"{name} must be a whole number of at least 0, a Generator, a RandomState or None; got {value!r}."
        raise InputError(problem, parameter=name) from None


def check_grid(name: str, values: Any, *, positive: bool = False) -> Array:
    """A grid of regularization values, in the caller's order; ``positive`` excludes 0."""
    if isinstance(values, str) or np.ndim(values) != 1:
        raise InputError(f"{name} must be 'auto' or a sequence of numbers; got {values!r}.", parameter=name)
    if len(values) == 0:
        raise InputError(f"{name} is empty: at least one value is needed.", parameter=name)
    check = number(above=0.0) if positive else number(least=0.0)
    for value in values:
        check(name.removesuffix("s"), value)
    return np.array(values, dtype=np.float64)


def descending_grid(values: Grid, name: str = "alphas", *, positive: bool = False) -> Array | None:
    """A grid in descending order; None for "auto"."""
    if isinstance(values, str) and values == "auto":
        return None
    return np.sort(check_grid(name, values, positive=positive))[::-1]


count = number(least=1, whole=True)

KERNEL: dict[str, Check] = dict.fromkeys(("kernel", "gamma", "degree", "coef0"), single)
"""A single kernel. Parameters of kernels are checked together, by :func:`rankrls.models.spec.kernel_settings`."""
GRAPH: dict[str, Check] = {
    "ties": word(("include", "exclude")),
    "balance": word(BALANCES),
    "regression_weight": number(least=0.0, most=1.0),
}
GRAPHS: dict[str, Check] = {
    "ties": each_of(GRAPH["ties"]),
    "balance": each_of(GRAPH["balance"]),
    "regression_weight": GRAPH["regression_weight"],
}
BASIS: dict[str, Check] = {"n_basis": count, "random_state": check_seed}
SELECTION: dict[str, Check] = {"scoring": check_measure, "rule": word(RULES)}
