"""What defines a measure: its names, the choices that it leaves open, and how it judges a ranking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls._queries import QueryLayout

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
        Labels from here up are relevant, for everything but NDCG.
    denominator : {"nominal", "reachable"}
        Precision at k is divided by k, or by min(k, items); average precision at k by the query's relevant items, or
        by min(k, relevant items).
    single_scores : bool
        Scores are rounded to single precision first, so that scores which differ by less are tied.
    tied_labels : {"ignore", "half"}
        Pairs with equal labels do not exist, or are half an error if their scores differ.
    average : {"query", "pair"}
        The mean over queries, or all errors over all pairs.
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


CONVENTIONS = {
    "letor": Choices("exp2", "letor", 0.0, "row"),
    "trec": Choices("positive", "log2", 0.0, "docno", single_scores=True),
    "sklearn": Choices("linear", "log2", 0.0, "average"),
    "lightgbm": Choices("exp2", "log2", 1.0, "row", denominator="reachable"),
    "xgboost": Choices("exp2", "log2", 1.0, "row", denominator="reachable", single_scores=True),
    "ranklib": Choices("exp2", "log2", 0.0, "row", denominator="reachable"),
}
"""What each evaluation tool means by its measures."""


@dataclass(frozen=True)
class Choice:
    """The values that a measure allows for one of its choices.

    Attributes
    ----------
    words : tuple of str
        Words that are allowed.
    also : str
        Other values that are allowed, as they are said to a user.
    allows : callable
        Whether a value that is none of the words is allowed.
    """

    words: tuple[str, ...] = ()
    also: str = ""
    allows: Callable[[Any], bool] = lambda value: False

    def check(self, measure: str, name: str, value: Any) -> None:
        """Refuse a value that is not allowed."""
        if not (isinstance(value, str) and value in self.words) and not self.allows(value):
            problem = f"{{{name}}} of {{0}} must be {{1}}{{2}}; got {{3!r}}."
            raise InputError(problem, measure, " | ".join(self.words), self.also, value)


@dataclass(frozen=True)
class Task:
    """One ranking to judge, and the choices to judge it by.

    Attributes
    ----------
    y : ndarray of shape (m,)
    scores : ndarray of shape (m, columns)
    layout : QueryLayout
    sample_weight : ndarray of shape (m,) or None
    docno : array-like of shape (m,) or None
    k : int or None
    choices : Choices
    near : float or array-like of shape (columns,)
        The share of the range of a query's scores that counts as rounding, for measures that merge such scores.
    """

    y: Array
    scores: Array
    layout: QueryLayout
    sample_weight: Array | None
    docno: Any
    k: int | None
    choices: Choices
    near: Any = 0.0


@dataclass(frozen=True)
class Definition(ABC):
    """One measure.

    Attributes
    ----------
    name : str
    compute : callable
        The formula; what it is given depends on the kind of measure.
    choices : mapping of str to Choice
        What a caller may choose.
    short : str
        How the measure is printed; empty for its name. It can be used as a name.
    aliases : tuple of str
        Further names.
    own : mapping of str to mapping
        Choices in which this measure differs from what a convention says of all, by the convention's name; "" is
        every convention.
    greater_is_better : bool
        False for errors.
    needs_depth : bool
        Whether k has to be given.
    not_judged : str
        Why there may be no query that can be judged.
    """

    name: str
    compute: Callable[..., Any]
    choices: Mapping[str, Choice]
    short: str = ""
    aliases: tuple[str, ...] = ()
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    greater_is_better: bool = True
    needs_depth: bool = False
    not_judged: str = "every query is skipped"

    over_pairs: ClassVar[bool] = False
    quadratic: ClassVar[bool] = False
    merges: ClassVar[bool] = False
    """Whether it makes scores equal itself that differ by rounding, as its task says."""

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it goes by."""
        return tuple(name for name in (self.name, self.short, *self.aliases) if name)

    def chosen(self, convention: str, given: Mapping[str, Any]) -> Choices:
        """The choices of a convention, with single ones overridden.

        Raises
        ------
        ValueError
            For an unknown convention, a value that is not allowed, and a choice that this measure does not have.
        """
        check_word("convention", convention, CONVENTIONS)
        for name, value in given.items():
            if name not in self.choices:
                problem = f"{{0}} does not depend on {{{name}}}; its choices are {{1}}."
                raise InputError(problem, self.name, ", ".join(self.choices))
            self.choices[name].check(self.name, name, value)
        changes = {**self.own.get("", {}), **self.own.get(convention, {}), **given}
        base = CONVENTIONS[convention]
        return replace(base, **changes) if changes else base

    @abstractmethod
    def judge(self, task: Task) -> tuple[Array, Array]:
        """Each query's values, (q, columns), and their average, (columns,); NaN is a query that is not judged."""

    def error_of_one(self, task: Task) -> Array:
        """Standard errors (columns,) of the measure of one ranking, over its items; NaN if there is no way to it."""
        return np.full(task.scores.shape[1], np.nan)
