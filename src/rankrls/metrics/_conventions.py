"""What evaluation tools mean by their measures: the choices that a measure leaves open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError

Array = NDArray[np.float64]
Gain = str | tuple[float, ...] | Callable[[Array], Any]
Discount = str | Callable[[Array], Any]


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
        The value of a query that has nothing relevant (in NDCG: no gain; in Kendall's tau: all labels or all scores
        tied); "skip" leaves it out of the mean.
    ties : {"row", "docno", "average", "threshold"}
        Equal scores are ranked in row order; by document id, the greater first (in row order if no ids are given);
        averaged over every order; or (average precision only) retrieved together.
    relevant : float
        Labels from here up are relevant, for measures that know relevant and irrelevant items only.
    denominator : {"nominal", "reachable"}
        Precision at k is divided by k, or by min(k, items); average precision at k by the query's relevant items, or
        by min(k, relevant items).
    single_scores : bool
        Scores are rounded to single precision first, so that scores which differ by less are tied.
    tied_labels : {"ignore", "half"}
        Pairs with equal labels do not exist, or are half an error if their scores differ.
    average : {"query", "pair"}
        The mean over queries, or all errors over all pairs.
    highest : float
        The highest label there may be, which satisfies a user with probability ``1 - 2^-highest`` in ERR.
    """

    gain: Gain
    discount: Discount
    empty: float | str
    ties: str
    relevant: float = 1.0
    denominator: str = "nominal"
    single_scores: bool = False
    tied_labels: str = "ignore"
    average: str = "query"
    highest: float = 4.0


CONVENTIONS = {
    "letor": Choices("exp2", "letor", 0.0, "row"),
    "trec": Choices("positive", "log2", 0.0, "docno", single_scores=True),
    "sklearn": Choices("linear", "log2", 0.0, "average"),
    "lightgbm": Choices("exp2", "log2", 1.0, "row", denominator="reachable"),
    "xgboost": Choices("exp2", "log2", 1.0, "row", denominator="reachable", single_scores=True),
    "ranklib": Choices("exp2", "log2", 0.0, "row", denominator="reachable"),
}
"""What each evaluation tool means by its measures."""

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
