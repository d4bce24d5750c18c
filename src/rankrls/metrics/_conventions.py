"""What each evaluation tool means by NDCG, average precision, precision and reciprocal rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError

__all__ = [
    "CONVENTIONS",
    "Choices",
    "choices_of",
    "discounts_of",
    "gains_of",
]

Gain = str | tuple[float, ...] | Callable[[NDArray[np.float64]], Any]
Discount = str | Callable[[NDArray[np.float64]], Any]


@dataclass(frozen=True)
class Choices:
    """The single choices that make up a convention.

    Attributes
    ----------
    gain : {"exp2", "linear", "positive"}, tuple or callable
        What a label is worth in NDCG: ``2^rel - 1``, ``rel`` (labels must not be negative), ``max(rel, 0)``, the entry
        of a tuple that the integer label names, or ``gain(labels)``.
    discount : {"log2", "letor"} or callable
        What position ``i = 1, 2, ...`` is worth in NDCG: ``1 / log2(i + 1)``; ``1, 1, 1 / log2(i)`` from the third on;
        or ``discount(positions)``.
    empty : float or "skip"
        What a query without anything relevant counts (in NDCG: without any gain); "skip" leaves it out of the mean.
        Precision counts it like any other query, as 0, unless told to skip it.
    ties : {"row", "docno", "average", "threshold"}
        Equal scores are ranked in row order; by document id, the greater first (in row order where no ids are
        given); averaged over every order; or (average precision only) retrieved together.
    relevant : float
        Labels from here up are relevant, for everything but NDCG.
    denominator : {"nominal", "reachable"}
        Precision at k is divided by k, or by min(k, items); average precision at k by the query's relevant items, or
        by min(k, relevant items).
    single_scores : bool
        Scores are rounded to single precision first, so that scores which differ by less are tied.
    """

    gain: Gain
    discount: Discount
    empty: float | str
    ties: str
    relevant: float = 1.0
    denominator: str = "nominal"
    single_scores: bool = False


CONVENTIONS = {
    "letor": Choices("exp2", "letor", 0.0, "row"),
    "trec": Choices("positive", "log2", 0.0, "docno", single_scores=True),
    "sklearn": Choices("linear", "log2", 0.0, "average"),
    "lightgbm": Choices("exp2", "log2", 1.0, "row", denominator="reachable"),
    "xgboost": Choices("exp2", "log2", 1.0, "row", denominator="reachable", single_scores=True),
    "ranklib": Choices("exp2", "log2", 0.0, "row", denominator="reachable"),
}

_OPTIONS = {
    "gain": ("exp2", "linear", "positive"),
    "discount": ("log2", "letor"),
    "ties": ("row", "docno", "average", "threshold"),
    "denominator": ("nominal", "reachable"),
}
_USED = {
    "ndcg": ("gain", "discount", "empty", "ties", "single_scores"),
    "average_precision": ("relevant", "empty", "ties", "denominator", "single_scores"),
    "precision": ("relevant", "empty", "ties", "denominator", "single_scores"),
    "reciprocal_rank": ("relevant", "empty", "ties", "single_scores"),
}


def choices_of(measure: str, convention: str, overrides: dict[str, Any]) -> Choices:
    """The choices of a convention for one measure, with single ones overridden.

    Raises
    ------
    ValueError
        For an unknown convention, an unknown option, and a choice that the measure does not have.
    """
    if convention not in CONVENTIONS:
        raise InputError(
            "{convention} must be one of {0}; got {1!r}.", ", ".join(CONVENTIONS), convention, parameter="convention"
        )
    base = CONVENTIONS[convention]
    if measure == "average_precision":
        if convention == "sklearn":
            base = replace(base, ties="threshold")
        if convention == "ranklib":
            base = replace(base, denominator="nominal")
    if measure == "precision":  # no tool treats a query without relevant items specially here
        base = replace(base, empty=0.0)
    for name, value in overrides.items():
        if name not in _USED[measure]:
            raise ValueError(f"{measure} does not depend on {name!r}; its choices are {', '.join(_USED[measure])}.")
        _check(measure, name, value)
    return replace(base, **overrides)


def _check(measure: str, name: str, value: Any) -> None:
    if name in _OPTIONS:
        options = _OPTIONS[name]
        if name == "ties" and measure != "average_precision":
            options = options[:-1]
        free = (name == "gain" and (callable(value) or isinstance(value, tuple))) or (
            name == "discount" and callable(value)
        )
        if not free and not (isinstance(value, str) and value in options):
            also = {"gain": ", a tuple of gains or a callable", "discount": " or a callable"}.get(name, "")
            raise ValueError(f"{name} of {measure} must be {' | '.join(options)}{also}; got {value!r}.")
    elif name == "empty":
        if value != "skip" and not (isinstance(value, (int, float)) and 0.0 <= value <= 1.0):
            raise ValueError(f"empty must be a number in [0, 1] or 'skip'; got {value!r}.")
    elif name == "relevant" and not (isinstance(value, (int, float)) and np.isfinite(value)):
        raise ValueError(f"relevant must be a finite label; got {value!r}.")
    elif name == "single_scores" and not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"single_scores must be True or False; got {value!r}.")


def gains_of(gain: Gain, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each label is worth.

    Raises
    ------
    ValueError
        For a label that has no gain: negative, too large, or not an entry of the tuple.
    """
    if gain == "positive":
        return np.maximum(y, 0.0)
    if isinstance(gain, tuple):
        known = (y >= 0) & (y < len(gain)) & (y == np.floor(y))
        if not known.all():
            row = int(np.argmin(known))
            raise ValueError(
                f"label {y[row]:g} in row {row} has no entry among the {len(gain)} gains: "
                f"labels must be integers from 0 to {len(gain) - 1}."
            )
        gains = np.asarray(gain, dtype=np.float64)[y.astype(np.intp)]
    elif callable(gain):
        gains = np.asarray(gain(y), dtype=np.float64)
        if gains.shape != y.shape:
            raise ValueError(f"gain(labels) must return shape {y.shape}; got {gains.shape}.")
    else:
        if y.size and y.min() < 0:
            row = int(np.argmin(y))
            raise InputError(
                "NDCG has no gain for the negative label {0:g} in row {1}.",
                *(y[row], row),
                remedy="Shift the labels, or choose {gain='positive'} (negative counts as 0) or a gain of your own.",
                parameter="gain",
                row=row,
            )
        if gain == "linear":
            return y
        with np.errstate(over="ignore"):
            gains = np.expm1(y * np.log(2.0)) if (y != np.floor(y)).any() else np.exp2(y) - 1.0
    good = np.isfinite(gains) & (gains >= 0)
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(
            "label {0:g} in row {1} has the gain {2:g}, which must be finite and not negative.",
            *(y[row], row, gains[row]),
            remedy="Choose another gain, such as {gain='linear'}, where a label is its own gain.",
            parameter="gain",
            row=row,
        )
    return gains


def discounts_of(discount: Discount, depth: int) -> NDArray[np.float64]:
    """What positions 1 to ``depth`` are worth."""
    positions = np.arange(1, depth + 1, dtype=np.float64)
    if discount == "letor":
        return 1.0 / np.log2(np.maximum(positions, 2.0))
    if discount == "log2":
        return 1.0 / np.log2(positions + 1.0)
    values = np.asarray(cast(Callable[..., Any], discount)(positions), dtype=np.float64)
    if values.shape != positions.shape or not (np.isfinite(values) & (values >= 0)).all():
        raise ValueError("discount(positions) must return one finite number, not negative, for each position.")
    return values
