"""Checks of arguments: arrays of numbers, words from a list, whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import Any, ParamSpec, TypeVar

import numpy as np
from scipy import sparse

from rankrls._arrays import to_host
from rankrls._errors import InputError, did_you_mean
from rankrls._typing import AnyArray, Array, Mask

P = ParamSpec("P")
T = TypeVar("T")

_GIB = 2.0**30
LARGEST = 1e40
LEAST = 1e-40
"""Range of largest absolute values for which the products of a fit are finite and nonzero."""


_GROUPS = "Pass qid, one query id per row; rankrls.group_to_qid makes them from group sizes."
_VALIDATION = "Pass validation data as X_val, y_val and qid_val to an estimator that chooses, such as RankRLSCV."
_TIMES = "Pass the pairs of rankrls.survival_pairs(time, event) to fit_pairs."
FOREIGN = {
    "group": _GROUPS,
    "groups": _GROUPS,
    "eval_set": _VALIDATION,
    "eval_group": _VALIDATION,
    "eval_qid": _VALIDATION,
    "event": _TIMES,
    "time": _TIMES,
}
"""Arguments of ``fit`` in other libraries, and their replacements here."""


def refuse_foreign_arguments(fit: Callable[P, T]) -> Callable[P, T]:
    """Wrap a fitting method so that arguments of other libraries are refused with their replacement."""
    foreign = FOREIGN.keys() - signature(fit).parameters.keys()

    @wraps(fit)
    def fit_or_refuse(*args: P.args, **kwargs: P.kwargs) -> T:
        for name in foreign & kwargs.keys():
            raise InputError(f"{fit.__name__} has no parameter {name}. {FOREIGN[name]}", parameter=name)
        return fit(*args, **kwargs)

    return fit_or_refuse


@contextmanager
def refusing(parameter: str) -> Iterator[None]:
    """Replace a ValueError of another library's check by an InputError about a parameter."""
    try:
        yield
    except InputError:
        raise
    except ValueError as error:
        raise InputError(str(error), parameter=parameter) from error


def array_of(name: str, values: Any) -> AnyArray:
    """Array in host memory; InputError about the parameter ``name`` if it is sparse or ragged."""
    if sparse.issparse(values):
        raise InputError(f"{name} must be dense, but is sparse. Pass {name}.toarray().", parameter=name)
    with refusing(name):
        return to_host(values)


def numbers_of(name: str, values: Any) -> Array:
    """Array of float64; InputError about the parameter ``name`` if values are not numbers."""
    given = array_of(name, values)
    if given.dtype.kind in "cmM":
        what = "Complex" if given.dtype.kind == "c" else str(given.dtype)
        raise InputError(f"{what} data not supported: {name} must contain real numbers.", parameter=name)
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        problem = str(error).rstrip(".")
        raise InputError(f"{name} must contain numbers: {problem}.", parameter=name) from None


def vector_of(name: str, values: Any, each: str) -> Array:
    """One-dimensional array of float64; ``each`` describes its entries, such as "one label per row"."""
    out = numbers_of(name, values)
    if out.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, {each}; got shape {out.shape}.", parameter=name)
    return out


def check_finite(name: str, values: Array, what: str) -> None:
    """Refuse NaN and infinity in a vector or a matrix, with row and column; ``what`` names an entry."""
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return
    row, *column = bad[0].tolist()
    number = column[0] if column else None
    where = f"row {row}" if number is None else f"row {row}, column {number}"
    problem = f"{name} contains {values[row, *column]} in {where}: every {what} must be a finite number."
    raise InputError(problem, parameter=name, row=row, column=number)


def check_magnitude(name: str, values: Array) -> None:
    """Refuse numbers whose products with those of other parameters overflow or vanish; NaN is ignored."""
    sizes = np.abs(values)
    largest = float(np.nanmax(sizes, initial=0.0))
    if largest != 0.0 and not LEAST <= largest <= LARGEST:
        row = int(np.argwhere(sizes == largest)[0, 0])
        problem = (
            f"The largest absolute value of {name} is {largest:.3g}, in row {row}: its products overflow or vanish."
        )
        remedy = f"Multiply {name} by a constant; it must be from {LEAST:g} to {LARGEST:g}."
        raise InputError(f"{problem} {remedy}", parameter=name, row=row)


def refuse_where(bad: Mask, name: str, message: Callable[[int], str]) -> None:
    """Raise an error for the first bad row, if any."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(message(row), parameter=name, row=row)


def check_word(name: str, value: Any, words: Iterable[str], *, otherwise: str = "") -> None:
    """Refuse values other than the given words; ``otherwise`` names what else the caller accepts."""
    known = tuple(words)
    if not isinstance(value, str) or value not in known:
        listed = ", ".join([*map(repr, known), otherwise] if otherwise else map(repr, known))
        raise InputError(f"{name} must be one of {listed}; got {value!r}.{did_you_mean(value, known)}", parameter=name)


_LIMITS = {"least": (ge, "of at least"), "above": (gt, "above"), "most": (le, "up to"), "below": (lt, "below")}
_ANY: Mapping[str, float] = {}


def check_number(
    name: str, value: Any, bounds: Mapping[str, float] = _ANY, *, whole: bool = False, none: str = ""
) -> None:
    """Refuse values other than a finite number inside bounds (``least``, ``above``, ``most``, ``below``).

    ``whole`` requires a whole number; ``none`` is the meaning of None, if the caller accepts None.
    """
    kind: Any = Integral if whole else Real
    known = isinstance(value, kind) and not isinstance(value, bool) and np.isfinite(value)
    if not known or not all(_LIMITS[limit][0](value, bound) for limit, bound in bounds.items()):
        words = " and".join(f" {_LIMITS[limit][1]} {bound:g}" for limit, bound in bounds.items())
        also = f", or None for {none}" if none else ""
        what = "a whole number" if whole else "a number"
        raise InputError(f"{name} must be {what}{words}{also}; got {value!r}.", parameter=name)


def check_count(name: str, value: Any, *, least: int = 1, none: str = "") -> int:
    """A whole number of at least ``least``; ``none`` is the meaning of None, if the caller accepts None."""
    check_number(name, value, {"least": least}, whole=True, none=none)
    return int(value)


def check_memory(need: float, what: str, remedy: str, *, parameter: str) -> None:
    """Refuse a job that needs more bytes than are available; not checked for less than one GiB."""
    available = available_memory() if need > _GIB else None
    if available is not None and need > available:
        problem = f"{what} {need / _GIB:.3g} GiB of memory; {available / _GIB:.3g} GiB are available."
        raise InputError(f"{problem} {remedy}", parameter=parameter)


def available_memory() -> float | None:
    """Bytes that this process can still allocate; None if unknown."""
    found = []
    with suppress(OSError, ValueError), open("/proc/meminfo", encoding="ascii") as lines:
        found += [1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max", encoding="ascii") as limit:
        found.append(float(limit.read()))  # limit of a container
    return min(found, default=None)
