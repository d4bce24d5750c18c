"""What the texts of options mean. A reader takes the option's field and what was given, and refuses what cannot be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rankrls._errors import InputError
from rankrls._nearest import did_you_mean

Reader = Callable[[str, Any], Any]


def _refused(name: str, problem: str, *values: Any, remedy: str = "") -> InputError:
    """An error about an option, with which the message begins."""
    return InputError(f"{{{name}}} {problem}", *values, remedy=remedy, parameter=name)


def word(*choices: str) -> Reader:
    """One of some words."""

    def read(name: str, text: str) -> str:
        if text not in choices:
            hint = did_you_mean(text, choices)
            raise _refused(name, "must be one of {0}; got {1!r}.", ", ".join(choices), text, remedy=hint)
        return text

    return read


def words(*choices: str, everything: str = "all") -> Reader:
    """One of some words, or a tuple of several; one more word means all of them."""
    one = word(*choices)
    return lambda name, text: choices if text.strip() == everything else _several(one, name, text)


def separated(name: str, text: str) -> tuple[str, ...]:
    """Words between commas; one that holds a comma stands in quotes, as in CSV."""
    from rankrls.io.tables.cells import split_words

    found = tuple(cell.strip() for cell in split_words(text, name))
    if not found or not all(found):
        raise _refused(name, "needs a word between commas; got {0!r}.", text)
    return tuple(dict.fromkeys(found))


def one_or_more(name: str, text: str) -> str | tuple[str, ...]:
    """A word, or a tuple of several between commas."""
    return _several(lambda _, each: each, name, text)


def fills(name: str, text: str) -> Any:
    """What missing numbers count as: a word or a number, or one for each of some columns, ``price=0,age=median``."""
    pairs = [each.rpartition("=") for each in separated(name, text)]
    if not all(sign for _, sign, _ in pairs):
        return _fill(name, text.strip())
    return {column: _fill(name, how) for column, _, how in pairs}


def _fill(name: str, text: str) -> Any:
    try:
        value = float(text)
    except ValueError:
        return word("median", "mean", "most_frequent", "or a number")(name, text)
    if not _finite(value):
        raise _refused(name, "needs a finite number; got {0!r}.", text)
    return value


def signs(name: str, text: str) -> bool | tuple[str, ...]:
    """``all``, which is True, or words."""
    return True if text.strip() == "all" else separated(name, text)


def number(least: float | None = None, most: float | None = None, why: str = "") -> Reader:
    """A finite number, from ``least`` to ``most``."""

    def read(name: str, value: Any) -> Any:
        if least is not None and most is not None and not least <= value <= most:
            raise _refused(name, "must be a number from {0:g} to {1:.12g}; got {2!r}.", least, most, value)
        if not _finite(value):
            raise _refused(name, "needs a finite number; got {0!r}.", value)
        if least is not None and value < least:
            raise _refused(name, "must be at least {0:g}{1}; got {2!r}.", least, why and f" ({why})", value)
        return value

    return read


def numbers(kind: type[float] | type[int], *, auto: bool = False) -> Reader:
    """A number, or a tuple of several; ``auto``, if it is allowed, is None."""
    one = lambda name, text: None if auto and text == "auto" else _number(name, text, kind)
    return lambda name, text: _several(one, name, text)


def grid(name: str, text: str) -> Any:
    """``auto``, ``a,b,c`` or ``lo:hi:n``."""
    text = text.strip()
    if text == "auto":
        return "auto"
    if ":" in text:
        return _geometric(name, text)
    values = tuple(_number(name, each, float) for each in separated(name, text))
    if min(values) < 0:
        raise _refused(name, "must not be negative; got {0:g}.", min(values))
    return values


def shares(name: str, text: str) -> list[float]:
    """Two or three positive numbers."""
    try:
        found = [float(each) for each in text.split(",")]
    except ValueError:
        found = []
    if len(found) not in (2, 3) or not all(0 < share < math.inf for share in found):
        raise _refused(name, "must be two or three positive numbers, as in 80,20 or 60,20,20; got {0!r}.", text)
    return found


def _geometric(name: str, text: str) -> tuple[float, ...]:
    parts = text.split(":")
    if len(parts) != 3:
        raise _refused(name, "must be auto, a list a,b,c or lo:hi:n; got {0!r}.", text)
    low, high = (_number(name, part, float) for part in parts[:2])
    steps = _number(name, parts[2], int)
    if not 0 < low < high or steps < 2:
        raise _refused(name, "lo:hi:n needs 0 < lo < hi and at least 2 steps; got {0!r}.", text)
    ratio = math.log(high / low)
    return (low, *(low * math.exp(ratio * k / (steps - 1)) for k in range(1, steps - 1)), high)


def _number(name: str, text: str, kind: type[float] | type[int]) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not _finite(value):
        raise _refused(name, "needs a {0} number; got {1!r}.", "whole" if kind is int else "finite", text)
    return value


def _finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)  # a whole number may be too large for a float


def _several(one: Reader, name: str, text: str) -> Any:
    """A value, or a tuple of several between commas."""
    values = tuple(one(name, each) for each in separated(name, text))
    return values[0] if len(values) == 1 else values
