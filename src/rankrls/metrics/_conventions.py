"""What evaluation tools mean by their measures: the choices that a measure leaves open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError

Array = NDArray[np.float64]
Gain = str | tuple[float, ...] | Callable[[Array], Any]
Discount = str | Callable[[Array], Any]


DEFAULTS: dict[str, Any] = {
    "gain": "exp2",
    "discount": "log2",
    "empty": 0.0,
    "ties": "row",
    "relevant": 1.0,
    "denominator": "nominal",
    "single_scores": False,
    "tied_labels": "ignore",
    "average": "query",
    "highest": 4.0,
}
"""The choices that a measure leaves open, which :class:`rankrls.metrics.Measure` explains."""

CONVENTIONS: dict[str, dict[str, Any]] = {
    "letor": {"discount": "letor"},
    "trec": {"gain": "positive", "ties": "docno", "single_scores": True},
    "sklearn": {"gain": "linear", "ties": "average"},
    "lightgbm": {"empty": 1.0, "denominator": "reachable"},
    "xgboost": {"empty": 1.0, "denominator": "reachable", "single_scores": True},
    "ranklib": {"denominator": "reachable"},
}
"""What each evaluation tool means by its measures, where that is not the default."""

_WORDS = {
    "gain": ("exp2", "linear", "positive"),
    "discount": ("log2", "letor"),
    "empty": ("skip",),
    "denominator": ("nominal", "reachable"),
    "tied_labels": ("ignore", "half"),
    "average": ("query", "pair"),
}


def check_choice(measure: str, name: str, value: Any, ties: tuple[str, ...], bounds: tuple[float, float]) -> None:
    """Refuse a value that a choice cannot have; ``ties`` and ``bounds`` are those of the measure."""
    number = isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))
    words = ties if name == "ties" else _WORDS.get(name, ())
    others = {
        "gain": ("a tuple of gains or a function", callable(value) or isinstance(value, tuple)),
        "discount": ("a function", callable(value)),
        "empty": (f"a number from {bounds[0]:g} to {bounds[1]:g}", number and bounds[0] <= value <= bounds[1]),
        "relevant": ("a finite label", number),
        "highest": ("a finite label", number),
        "single_scores": ("True or False", isinstance(value, bool | np.bool_)),
    }
    other, allowed = others.get(name, ("", False))
    if not allowed and not (isinstance(value, str) and value in words):
        listed = " or ".join(filter(None, (", ".join(map(repr, words)), other)))
        raise InputError(f"{name} of {measure} must be {listed}; got {value!r}.", parameter=name)


def gains_of(gain: Gain, y: Array) -> Array:
    """What each label is worth; a label that has no gain is an error."""
    if gain == "positive":
        return np.maximum(y, 0.0)
    if isinstance(gain, tuple):
        known = (y >= 0) & (y < len(gain)) & (y == np.floor(y))
        _check_labels(known, y, f"has none of the {len(gain)} gains: labels must be integers from 0 to {len(gain) - 1}")
        gains = np.asarray(gain, dtype=np.float64)[y.astype(np.intp)]
    elif callable(gain):
        gains = np.asarray(gain(y), dtype=np.float64)
        if gains.shape != y.shape:
            raise InputError(f"gain(labels) must return shape {y.shape}; got {gains.shape}.", parameter="gain")
    else:
        remedy = "has no gain. Shift the labels, or choose gain='positive' (negative counts as 0) or a gain of your own"
        _check_labels(y >= 0, y, remedy)
        with np.errstate(over="ignore"):
            gains = y if gain == "linear" else np.exp2(y) - 1.0
    good = np.isfinite(gains) & (gains >= 0)
    _check_labels(good, y, "has a gain that is not finite or negative. Choose another one, such as gain='linear'")
    return gains


def _check_labels(good: NDArray[np.bool_], y: Array, problem: str) -> None:
    if not good.all():
        raise InputError(f"the label {y[np.argmin(good)]:g} {problem}.", parameter="gain")


def discounts_of(discount: Discount, depth: int) -> Array:
    """What positions 1 to ``depth`` are worth."""
    positions = np.arange(1, depth + 1, dtype=np.float64)
    if isinstance(discount, str):
        return 1.0 / np.log2(np.maximum(positions, 2.0) if discount == "letor" else positions + 1.0)
    values = np.asarray(discount(positions), dtype=np.float64)
    if values.shape != positions.shape or not (np.isfinite(values) & (values >= 0)).all():
        raise InputError(
            "discount(positions) must return one finite number, not negative, for each position.", parameter="discount"
        )
    return values
