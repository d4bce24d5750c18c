"""The parameters of estimators: each is declared once, with its default and its check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import product
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls.kernels import check_kernel
from rankrls.metrics._measure import resolve_measure
from rankrls.selection.rules import RULES

T = TypeVar("T")
Check = Callable[[str, Any], Any]

TIES = ("include", "exclude")
BALANCES = ("pairs", "examples", "queries")


def parameter(*, default: Any, check: Any = None, several: bool = False, kw_only: bool = True, **bounds: Any) -> Any:
    """A parameter of an estimator.

    Parameters
    ----------
    default : object
    check : callable or sequence of str, optional
        Called with the parameter's name and value when the estimator is fitted; raises an :class:`InputError`. Or the
        words of which the value must be one.
    several : bool
        Whether an estimator that chooses may be given a tuple of values.
    kw_only : bool
        Whether it can only be given by name.
    **bounds
        It must be a number: the arguments of :func:`number`.
    """
    if isinstance(check, Iterable):
        check = partial(check_word, words=check)
    elif bounds:
        check = number(**bounds)
    return field(default=default, kw_only=kw_only, metadata={"check": check, "several": several})


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(parameter,))
def estimator(cls: type[T]) -> type[T]:
    """Give a class a constructor that takes its parameters, and does nothing but keep them."""
    return dataclass(eq=False, repr=False)(cls)


def check_parameters(model: Any, *, several: bool = False) -> None:
    """Check every parameter that has a check. ``several`` allows tuples of values to choose from."""
    for f in fields(model):
        check, value = f.metadata.get("check"), getattr(model, f.name)
        choose = f.metadata.get("several", False)
        if isinstance(value, (tuple, list)) and (choose or check is not None) and not (several and choose):
            raise InputError(f"{f.name} must be a single value; got {value!r}.", parameter=f.name)
        if check is not None:
            for one in options(value, f.name) if several and choose else (value,):
                check(f.name, one)
    if isinstance(model, KernelParameters):
        for values in combinations(model, ("kernel", "gamma", "degree", "coef0")):
            check_kernel(**values, kernel_params=model.kernel_params)


def options(value: Any, name: str = "value") -> tuple[Any, ...]:
    """A tuple (or list) of values to choose from, or the one value."""
    if not isinstance(value, (tuple, list)):
        return (value,)
    if not value:
        raise InputError("A tuple of values to choose from must not be empty.", parameter=name)
    return tuple(value)


def number(*, whole: bool = False, none: bool = False, **bounds: float) -> Check:
    """A finite number inside bounds (``least``, ``above``, ``most``, ``below``); ``whole`` asks for whole numbers,
    ``none`` allows None.
    """
    holds = {"least": ge, "above": gt, "most": le, "below": lt}
    phrases = {"least": "of at least", "above": "above", "most": "up to", "below": "below"}
    words = ", ".join(f"{phrases[name]} {bound:g}" for name, bound in bounds.items())
    what = f"a {'whole ' if whole else ''}number{' ' + words if words else ''}"
    kind: Any = Integral if whole else Real

    def check(name: str, value: Any) -> None:
        if none and value is None:
            return
        known = isinstance(value, kind) and not isinstance(value, bool) and bool(np.isfinite(value))
        if not known or not all(holds[of](value, bound) for of, bound in bounds.items()):
            raise InputError(f"{name} must be {what}; got {value!r}.", parameter=name)

    return check


def flag(name: str, value: Any) -> None:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False; got {value!r}.", parameter=name)


def check_measure(name: str, value: Any) -> None:
    """What :func:`resolve_measure` takes."""
    try:
        resolve_measure(value)
    except InputError as error:
        raise error.replace(parameter=name) from None


def check_seed(name: str, value: Any) -> None:
    """What scikit-learn takes as random_state, or a numpy Generator."""
    try:
        check_random_state(None if isinstance(value, np.random.Generator) else value)
    except (ValueError, TypeError):
        problem = f"{name} must be a whole number of at least 0, a Generator, a RandomState or None; got {value!r}."
        raise InputError(problem, parameter=name) from None


def check_level(name: str, value: Any) -> None:
    """True, False or a whole number."""
    if not isinstance(value, (Integral, np.bool_)) or value < 0:
        raise InputError(f"{name} must be True, False or a whole number of at least 0; got {value!r}.", parameter=name)


def check_grid(name: str, values: Any, *, positive: bool = False) -> NDArray[np.float64]:
    """A grid of regularization values, in the caller's order; ``positive`` for hold-out without refitting."""
    if isinstance(values, str) or np.ndim(values) != 1:
        raise InputError(f"{name} must be 'auto' or a sequence of numbers; got {values!r}.", parameter=name)
    if len(values) == 0:
        raise InputError(f"{name} is empty: at least one value is needed.", parameter=name)
    check = number(above=0.0) if positive else number(least=0.0)
    for value in values:
        check(name.removesuffix("s"), value)
    return np.array(values, dtype=np.float64)


@estimator
class KernelParameters:
    """The kernel and its parameters."""

    kernel: Any = parameter(default="linear", several=True)
    gamma: Any = parameter(default=None, several=True)
    degree: Any = parameter(default=3, several=True)
    coef0: Any = parameter(default=1.0, several=True)
    kernel_params: Any = parameter(default=None)


@estimator
class BasisParameters(KernelParameters):
    """The items that a function expands over."""

    n_basis: Any = parameter(default=None, least=1, whole=True, none=True)
    basis_indices: Any = parameter(default=None)
    random_state: Any = parameter(default=0, check=check_seed)


@estimator
class GraphParameters:
    """How labels become a graph."""

    ties: Any = parameter(default="include", check=TIES, several=True)
    balance: Any = parameter(default="examples", check=BALANCES, several=True)
    regression_weight: float = parameter(default=0.0, least=0.0, most=1.0)


@estimator
class ChoiceParameters:
    """By what an estimator chooses."""

    scoring: Any = parameter(default="disagreement", check=check_measure)
    rule: str = parameter(default="best", check=RULES)


@estimator
class SelectionParameters(ChoiceParameters):
    """How an estimator chooses."""

    cv: Any = parameter(default=None)
    verbose: Any = parameter(default=0, check=check_level)


def combinations(model: Any, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Every combination of the values that some parameters are given."""
    names = tuple(names)
    for values in product(*(options(getattr(model, name), name) for name in names)):
        yield dict(zip(names, values, strict=True))


def _features_of_mask(positive: Any, n_features: int | None) -> Any:
    """Numbers of the features that a mask names; anything else as it is."""
    mask = np.asarray(positive)
    if mask.dtype != np.bool_:
        return positive
    if mask.shape != (n_features,):
        problem = f"positive is a mask of shape {mask.shape}; X has {n_features} features."
        raise InputError(problem, parameter="positive")
    return np.flatnonzero(mask)


def signs_of(model: Any) -> NDArray[np.int8] | None:
    """The sign that ``positive`` gives the weight of each feature, 0 if it is free; None if all are."""
    positive = getattr(model, "positive", False)
    if isinstance(positive, (bool, np.bool_)):
        positive = range(getattr(model, "n_features_in_", 1)) if positive else ()
    if isinstance(positive, str) or not np.iterable(positive):
        problem = f"positive must be True, False, a list of features, or a dict of their signs; got {positive!r}."
        raise InputError(problem, parameter="positive")
    if not isinstance(positive, Mapping):
        positive = _features_of_mask(positive, getattr(model, "n_features_in_", None))
    given = positive if isinstance(positive, Mapping) else dict.fromkeys(positive, 1)
    if not given:
        return None
    other = [kernel for kernel in options(model.kernel) if not (isinstance(kernel, str) and kernel == "linear")]
    if other or model.solver == "dual":
        given_as = f"kernel={other[0]!r}" if other else f"solver={model.solver!r}"
        problem = f"positive needs kernel='linear', and solver='auto' or 'primal'; got {given_as}."
        raise InputError(problem, parameter="positive")
    numbers = range(model.n_features_in_)
    known = {**{j: j for j in numbers}, **dict(zip(getattr(model, "feature_names_in_", ()), numbers, strict=False))}
    signs = np.zeros(len(numbers), dtype=np.int8)
    for feature, sign in given.items():
        if (
            isinstance(feature, bool | np.bool_)
            or feature not in known
            or isinstance(sign, str)
            or sign not in (-1, 0, 1)
        ):
            problem = f"positive names feature {feature!r} with sign {sign!r}: no feature of X, or not -1, 0 or 1."
            raise InputError(problem, parameter="positive")
        signs[known[feature]] = sign
    return signs if signs.any() else None
