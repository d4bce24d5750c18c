"""What answers of parts are made of: values that add up, and that a checkpoint keeps field by field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Self


@dataclass(frozen=True)
class Answer:
    """What is known of some neighbouring parts. The sum of two, the earlier parts' first, is that of their fields."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(added(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)))


def added(a: Any, b: Any) -> Any:
    """The sum of two values; of tuples entry by entry."""
    return tuple(added(x, y) for x, y in zip(a, b, strict=True)) if isinstance(a, tuple) else a + b


@dataclass(frozen=True)
class Counted(Answer):
    """Rows and queries of positive weight, and queries with two different labels (``varied``)."""

    rows: int
    queries: int
    varied: int

    has_qid = True
    one_target = True

    @property
    def n_queries(self) -> int:
        """Queries with a row of positive weight."""
        return self.queries


@dataclass(frozen=True)
class CutQueries(Answer):
    """The queries that are cut, in their order: their numbers, and what is known of each, whose pieces add up."""

    numbers: tuple[int, ...] = ()
    known: tuple[Any, ...] = ()

    def __add__(self, other: CutQueries) -> CutQueries:
        if not (self.numbers and other.numbers and self.numbers[-1] == other.numbers[0]):
            return CutQueries(self.numbers + other.numbers, self.known + other.known)
        both = added(self.known[-1], other.known[0])
        return CutQueries(self.numbers + other.numbers[1:], (*self.known[:-1], both, *other.known[1:]))

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return zip(self.numbers, self.known, strict=True)


class Adding:
    """A job whose answers add up."""

    def merge(self, a: Any, b: Any) -> Any:
        """The sum of two neighbouring nodes of the tree."""
        return a + b
