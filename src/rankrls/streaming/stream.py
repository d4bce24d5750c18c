"""One fit's way through a data set: how many parts are worked on at once, and what is told of it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, NamedTuple

from rankrls._errors import InputError
from rankrls.metrics import Measure, RankingMeasure
from rankrls.selection.costs import free_memory
from rankrls.streaming.checkpoint import Checkpoint
from rankrls.streaming.engine import check_workers, client_of, run, workers_of
from rankrls.streaming.parts import decoding_bytes, rows_in
from rankrls.streaming.tree import Job

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def bytes_of(memory: Any) -> float | None:
    """How much memory a text such as ``"4G"`` or a number of bytes stands for; None for None.

    Examples
    --------
    >>> from rankrls.streaming.stream import bytes_of
    >>> bytes_of("1.5G"), bytes_of(1000)
    (1610612736.0, 1000.0)
    """
    if memory is None:
        return None
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)(?:i?B)?\s*", str(memory), re.IGNORECASE)
    if found is None or isinstance(memory, bool) or not float(found[1]) > 0.0:
        raise InputError(
            "{memory} must be a number of bytes, or a text such as '4G'; got {0!r}.", memory, parameter="memory"
        )
    return float(found[1]) * _UNITS[found[2].upper()]


class Passed(NamedTuple):
    """Where a streamed fit is.

    Attributes
    ----------
    done, total : int
        Rows, each counted as often as it is read; a total of 0 if nobody knows it.
    rate : float
        Rows a second.
    left : float
        Seconds that the rest will take at this rate; NaN before the first part is done, and without a total.
    memory : float
        Bytes that the parts which are worked on at once take at most, beside the process itself.
    """

    done: int
    total: int
    rate: float
    left: float
    memory: float = float("nan")

    def words(self, measure: str = "best") -> str:
        """The same in words; before the first part is done, with the memory that will be needed."""
        share = f"{self.done} of {self.total} rows read" if self.total else f"{self.done} rows read"
        if self.rate:
            return f"{share}, {self.rate:.3g} rows a second"
        return f"{share}, parts take up to {self.memory / 2**30:.2g} GiB of memory at once"


class Stream:
    """A data set, what runs through it, and how.

    Parameters
    ----------
    data : Dataset
        One that has a method ``run`` runs jobs itself.
    executor : concurrent.futures.Executor, optional
    memory : str or float, optional
        Of the leaves that run at once on threads of this machine.
    passes : int
        How often the data will be read; 0 if nobody knows.
    report : callable, optional
        Is given a :class:`Passed` after each part.
    leaf_bytes : callable
        The memory that a leaf of so many rows takes, and its answer.
    checkpoint : path, optional
        A folder for finished sums.

    Attributes
    ----------
    workers : int
        How many leaves run at once.
    leaf : float
        Bytes that a leaf takes at most.
    """

    def __init__(
        self,
        data: Any,
        *,
        executor: Executor | None = None,
        memory: Any = None,
        passes: int = 1,
        report: Callable[[Passed], None] | None = None,
        leaf_bytes: Callable[[int], float] = lambda rows: 0.0,
        checkpoint: Any = None,
    ) -> None:
        if not len(data.parts) or not data.n_rows:
            raise InputError("The data set has no rows: there is nothing to learn from.", parameter="data")
        if (client := client_of(executor)) is not None:
            check_workers(client)
        self.data, self.executor = data, executor
        self.checkpoint = None if checkpoint is None else Checkpoint.of(checkpoint, data)
        part = leaf_bytes(max(rows_in(data, address) for address in data.parts))
        self.leaf = part + decoding_bytes(data)
        self.workers = self._affordable(bytes_of(memory), part)
        self._report, self._done, self._total = report, 0, passes * data.n_rows
        self._start = time.perf_counter()
        self._tell(0)

    def _affordable(self, memory: float | None, part: float) -> int:
        most = workers_of(self.executor)
        if self.executor is not None:
            return most
        if memory is None:
            free = free_memory()
            return most if free is None else max(1, min(most, int(0.8 * free / max(self.leaf, 1.0))))
        if part > memory:
            raise InputError(
                "One part of the data takes about {0:.2g} GiB to work on, more than {memory} allows.",
                part / 2**30,
                remedy="Open the data set with fewer rows a part, or allow more {memory}.",
                parameter="memory",
            )
        return max(1, min(most, int(memory / max(self.leaf, 1.0))))

    def run(self, job: Job[Any], name: str) -> Any:
        """The answer of a job; ``name`` says which pass it is."""
        saved = None if self.checkpoint is None else self.checkpoint.nodes(name, job)
        if hasattr(self.data, "run"):
            out = self.data.run(job, saved)
            self._tell(self.data.n_rows)
            return out
        check = getattr(self.data, "check_unchanged", None)
        if check is not None:
            check()
        told = self._tell if self._report is not None else None
        out = run(job, self.data, executor=self.executor, workers=self.workers, saved=saved, told=told)
        if check is not None:
            check()
        return out

    def _tell(self, rows: int) -> None:
        if self._report is None:
            return
        self._done += rows
        took = time.perf_counter() - self._start
        rate = self._done / took if self._done else 0.0
        left = (self._total - self._done) / rate if rate and self._total else float("nan")
        self._report(Passed(self._done, self._total, rate, left, self.workers * self.leaf))


def check_streams(measure: RankingMeasure) -> None:
    """Refuse a measure that is no mean over queries."""
    if isinstance(measure, Measure) and measure.choices.average == "pair":
        raise InputError(
            "{scoring} {0} averages over the pairs of all queries; a streamed fit averages over queries.",
            str(measure),
            remedy="Take {average='query'}.",
            parameter="scoring",
        )
