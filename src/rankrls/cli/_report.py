"""What a command found and what it says meanwhile: results on standard output, everything else on standard error.

Everything is printed here, so that nothing that a terminal obeys gets there from a file.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from rankrls._shown import blocks

_WIDTH = 110  # of tables that go into a file or a pipe
_FOLDED = 16  # signs that are left of a column of text before a table is too wide
_GAP = 3
_PAUSE = 0.5  # seconds between lines of progress
_UNUSUAL = re.compile(r"[^ -~]")


@dataclass(frozen=True)
class Table:
    """A table for people: the first ``left`` columns are text, the others are set to the right; one row is marked."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    left: int = 1
    marked: int | None = None


@dataclass(frozen=True)
class Result:
    """What a command found.

    Attributes
    ----------
    found : dict
        For ``--json``.
    tables : sequence of Table
        For people.
    text : iterable of str or bytes
        What is printed behind the tables, as it comes; bytes as they are.
    optional : bool
        Whether ``--quiet`` leaves it out.
    status : int
        The exit status.
    """

    found: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    text: Iterable[str | bytes] = ()
    optional: bool = False
    status: int = 0


Say = Callable[..., None]
"""Tells how far a piece of work has come, in words, and how many seconds are left if that is known."""


@dataclass
class Report:
    """Progress, notes and results of one command.

    Parameters
    ----------
    as_json : bool
        Results as one JSON object.
    verbose, quiet : bool
        Say more, or only results and errors.
    """

    as_json: bool = False
    verbose: bool = False
    quiet: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def working(self, part: str, what: str) -> Iterator[Say]:
        """Show ``what`` while it is being done, on a terminal; add its seconds to ``part``.

        What it yields may be told how far the work has come.
        """
        start = perf_counter()
        with _spinner(what) if self._shows_progress() else _lines(what if self.verbose else None) as say:
            yield say
        took = perf_counter() - start
        self.seconds[part] = self.seconds.get(part, 0.0) + took
        if self.verbose:
            tell(f"{what}: {took:.2f} s")

    def note(self, text: str) -> None:
        """Something that the user should know, and that is no error."""
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.quiet:
            tell(f"note: {text}")

    def show(self, result: Result) -> None:
        """Print what was found."""
        if result.optional and self.quiet and not self.as_json:
            return
        if sys.stdout is None:
            raise OSError(errno.EBADF, "it is closed, so that the result cannot be printed", "standard output")
        try:
            self._print(result)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from error

    def _print(self, result: Result) -> None:
        if self.as_json:
            print(json.dumps(plain_json(result.found), indent=2, allow_nan=False))
            return
        for table in result.tables:
            _print_table(table)
        for text in result.text:
            if isinstance(text, str):
                sys.stdout.write(printable(text, "\n\t"))
            elif hasattr(sys.stdout, "buffer"):
                sys.stdout.flush()
                sys.stdout.buffer.write(text)
            else:  # who runs this in Python may have put something else there
                sys.stdout.write(text.decode())

    def _shows_progress(self) -> bool:
        return not self.quiet and not self.verbose and sys.stderr is not None and sys.stderr.isatty()


def tell(text: str) -> None:
    """A line on standard error, if anyone can read it."""
    if sys.stderr is None:
        return  # print would take standard output
    with suppress(OSError, ValueError):
        print(f"rankrls: {printable(' '.join(text.split()))}", file=sys.stderr, flush=True)


def printable(text: str, kept: str = "") -> str:
    """Text with a name for what a terminal may obey; ``kept`` may be in it."""
    return _UNUSUAL.sub(
        lambda sign: sign[0] if sign[0].isprintable() or sign[0] in kept else ascii(sign[0])[1:-1], text
    )


def plain_json(value: Any) -> Any:
    """Numbers, text, lists and dictionaries only; NaN and infinities become None."""
    plain = lambda other: other.tolist() if hasattr(other, "tolist") else str(other)
    return json.loads(json.dumps(value, default=plain), parse_constant=lambda name: None)


def _print_table(made: Table) -> None:
    """A table as wide as it needs, or one block a row if the terminal is too narrow for that."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    said = os.environ.get("COLUMNS", "")
    width = None if sys.stdout.isatty() else int(said) if said.isdigit() and int(said) else _WIDTH
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
    console.print(printable(made.title), style="bold", soft_wrap=True)
    texts = [[printable(str(cell)) for cell in row] for row in (made.columns, *made.rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    needed = sum(min(w, _FOLDED) if k < made.left else w for k, w in enumerate(widths)) + _GAP * (len(widths) - 1)
    if needed > console.width and made.left < len(widths):
        for line in blocks(texts[0], texts[1:], made.left):
            console.print(line, soft_wrap=True)
        console.print()
        return
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_header=any(made.columns), show_edge=False)
    for k, name in enumerate(texts[0]):
        number = k >= made.left
        table.add_column(name, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for k, row in enumerate(texts[1:]):
        table.add_row(*row, style="bold green" if k == made.marked else None)
    console.print(table)
    console.print()


@contextmanager
def _lines(what: str | None) -> Iterator[Say]:
    """A line now and then; none at all where ``what`` is None."""
    last = -math.inf

    def say(text: str, left: float = math.nan) -> None:
        nonlocal last
        if what is not None and perf_counter() - last > _PAUSE:
            last = perf_counter()
            tell(f"{what}: {text}{_left(left)}")

    yield say


@contextmanager
def _spinner(what: str) -> Iterator[Say]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.table import Column
    from rich.text import Text

    class Left(ProgressColumn):
        """What is left, by the clock, until the work is expected to end, which each step may move; the bar follows."""

        def render(self, task: Task) -> Text:
            end, now = task.fields["end"], perf_counter()
            task.total = None if math.isnan(end) else 1.0
            task.completed = min((now - start) / max(end - start, 1e-9), 0.99) if end == end else 0.0
            return Text(_left(end - now).removeprefix(", "))

    what, start = printable(what), perf_counter()
    words = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns = (SpinnerColumn(), words, BarColumn(20), TimeElapsedColumn(), Left(Column(no_wrap=True)))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None, end=math.nan)

        def say(text: str, left: float = math.nan) -> None:
            progress.update(task, description=f"{what}: {text}", end=perf_counter() + left)

        yield say


def _left(seconds: float) -> str:
    from rankrls.selection.progress import time_left

    return time_left(seconds)
