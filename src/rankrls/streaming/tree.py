"""Sums in one fixed tree: the same parts give the same bits, whoever adds them up, and in whatever order they come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from rankrls._compiled.threads import one_thread

V = TypeVar("V")


class Job(Protocol[V]):
    """What is asked of every part, and how two answers become one.

    A job is a small value that can be pickled. ``merge`` takes answers of neighbouring parts, the earlier ones first;
    it need not be associative to the last bit, since the tree is always the same. A job that has ``names`` and finds it
    true is given the names of queries, too.
    """

    def leaf(self, part: Any) -> V:
        """The answer of one part."""
        ...

    def merge(self, a: V, b: V) -> V:
        """The answer of the parts of a followed by those of b."""
        ...


def run_leaf(job: Job[V], data: Any, address: Any) -> V:
    """Read a part and answer for it, on one thread: what an engine runs, wherever it likes.

    Examples
    --------
    Everything that runs ``run_leaf`` for each address of ``data.parts`` and hands the answers, in the order of the
    parts, to :func:`merged` is an engine:

    >>> from rankrls.streaming import merged, run_leaf
    >>> class Rows:
    ...     def leaf(self, part):
    ...         return len(part)
    ...
    ...     def merge(self, a, b):
    ...         return a + b
    >>> class Words:
    ...     parts = (0, 1, 2)
    ...
    ...     def read(self, address):
    ...         return ["one", "word", "each"][: address + 1]
    >>> merged(Rows(), [run_leaf(Rows(), Words(), address) for address in Words.parts])
    6
    """
    with one_thread():
        return job.leaf(data.read(address, names=True) if getattr(job, "names", False) else data.read(address))


@dataclass(frozen=True)
class Together:
    """Several jobs in one pass: a part is read once, and each answers for it.

    Attributes
    ----------
    jobs : tuple of Job
    """

    jobs: tuple[Any, ...]

    @property
    def names(self) -> bool:
        """Whether any of them needs the names of queries."""
        return any(getattr(job, "names", False) for job in self.jobs)

    def leaf(self, part: Any) -> tuple[Any, ...]:
        """The answers of one part."""
        return tuple(job.leaf(part) for job in self.jobs)

    def merge(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        """Each job's answer of both."""
        return tuple(job.merge(x, y) for job, x, y in zip(self.jobs, a, b, strict=True))


def merge(job: Job[V], a: V, b: V) -> V:
    """The answers of two neighbouring nodes as one, on one thread."""
    with one_thread():
        return job.merge(a, b)


def merged(job: Job[V], answers: Iterable[V]) -> V:
    """The answers of all parts, given in their order, as one."""
    values = list(answers)
    tree = TreeSum(job, len(values))
    for number, value in enumerate(values):
        tree.add(number, value)
    answer: V = tree.total()
    return answer


def tree_depth(leaves: int) -> int:
    """Levels of merges above so many leaves."""
    return max(0, leaves - 1).bit_length()


class TreeSum:
    """Takes answers in any order, and merges two as soon as they are neighbours in the tree.

    Node k of level l stands for the parts from ``k 2^l`` up to ``(k + 1) 2^l``. A node without a right neighbour is
    handed up as it is. At most one answer for each level waits, if they come in order.

    Parameters
    ----------
    job : Job
    leaves : int
    """

    def __init__(self, job: Job[Any], leaves: int) -> None:
        self.job, self.leaves, self.depth = job, leaves, tree_depth(leaves)
        self._waiting: dict[tuple[int, int], Any] = {}

    def add(self, number: int, value: Any, level: int = 0) -> list[tuple[int, int]]:
        """Take the answer of a part, or of a node of a higher level. Returns the nodes that became complete."""
        done = []
        node = level, number
        while True:
            done.append(node)
            level, k = node
            self._waiting[node] = value
            if level == self.depth:
                break
            left, right = (level, k & ~1), (level, k | 1)
            if (right[1] << level) < self.leaves:
                if left not in self._waiting or right not in self._waiting:
                    break
                value = merge(self.job, self._waiting.pop(left), self._waiting.pop(right))
            else:
                value = self._waiting.pop(left)
            node = level + 1, k >> 1
        return done

    def node(self, node: tuple[int, int]) -> Any:
        """The answer of a node that waits for its neighbour; None if it does not."""
        return self._waiting.get(node)

    @property
    def waiting(self) -> list[tuple[int, int]]:
        """The nodes that wait for a neighbour: level and number."""
        return sorted(self._waiting)

    def total(self) -> Any:
        """The answer of all parts."""
        return self._waiting[self.depth, 0]
