"""Results on standard output; progress, notes and errors on standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from time import perf_counter
from typing import Any

from rankrls._shown import blocks

_WIDTH = 110  # of tables that go into a file or a pipe
_UNUSUAL = re.compile(r"[^ -~]")


@dataclass(frozen=True)
class Table:
    """A table: the first ``left`` columns are text, the others are set to the right; one row is marked."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    left: int = 1
    marked: int | None = None


@dataclass(frozen=True)
class Result:
    """What a command found: ``found`` for --json; tables, and lines behind them, for people.

    ``optional`` results are not printed with --quiet.
    """

    found: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    text: Iterable[str | bytes] = ()
    optional: bool = False


@dataclass
class Report:
    """Progress, notes and the result of one command."""

    as_json: bool = False
    quiet: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def working(self, part: str, what: str) -> Iterator[None]:
        """Say on standard error what is being done if it takes long; add its seconds to ``part``."""
        start = perf_counter()
        with nothing() if self.quiet else _progress(what, bar=part != "fitting"):
            yield
        self.seconds[part] = self.seconds.get(part, 0.0) + perf_counter() - start

    def note(self, text: str) -> None:
        """Tell something that is not an error, once."""
        if text not in self.notes:
            self.notes.append(text)
            if not self.quiet:
                say(f"note: {text}")

    def show(self, result: Result) -> None:
        """Print a result."""
        if result.optional and self.quiet and not self.as_json:
            return
        if self.as_json:
            print(json.dumps(plain_json(result.found), indent=2, allow_nan=False))
            return
        for table in result.tables:
            _print_table(table)
        for text in result.text:
            if isinstance(text, str):
                sys.stdout.write(printable(text, "\n\t"))
            else:
                sys.stdout.flush()
                sys.stdout.buffer.write(text)


def say(text: str) -> None:
    """Print a line on standard error, if somebody can read it."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(f"rankrls: {printable(' '.join(text.split()))}", file=sys.stderr, flush=True)


def printable(text: str, kept: str = "") -> str:
    """Text with names for the signs that a terminal may obey, other than those of ``kept``."""
    return _UNUSUAL.sub(lambda m: m[0] if m[0].isprintable() or m[0] in kept else ascii(m[0])[1:-1], text)


def plain_json(value: Any) -> Any:
    """Numbers, text, lists and dictionaries only; NaN and infinities become None."""

    def plain(other: Any) -> Any:
        return other.tolist() if hasattr(other, "tolist") else str(other)

    return json.loads(json.dumps(value, default=plain), parse_constant=lambda name: None)


def _print_table(table: Table) -> None:
    """Print a table, or one block per row if the terminal is too narrow."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table as RichTable

    asked = os.environ.get("COLUMNS", "")
    width = None if sys.stdout.isatty() else int(asked) if asked.isdigit() and int(asked) else _WIDTH
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
    console.print(printable(table.title), style="bold", soft_wrap=True)
    texts = [[printable(str(cell)) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    needed = sum(min(w, 16) if k < table.left else w for k, w in enumerate(widths)) + 3 * (len(widths) - 1)
    if needed > console.width and table.left < len(widths):
        for line in blocks(texts[0], texts[1:], table.left):
            console.print(line, soft_wrap=True)
    else:
        rich = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_header=any(table.columns), show_edge=False)
        for k, name in enumerate(texts[0]):
            number = k >= table.left
            rich.add_column(name, justify="right" if number else "left", no_wrap=number, overflow="fold")
        for k, row in enumerate(texts[1:]):
            rich.add_row(*row, style="bold green" if k == table.marked else None)
        console.print(rich)
    console.print()


@contextmanager
def nothing() -> Iterator[None]:
    """No progress."""
    yield


@contextmanager
def _progress(what: str, *, bar: bool) -> Iterator[None]:
    """A spinner on a terminal, unless estimators show a bar; elsewhere a line after three seconds and every five."""
    if sys.stderr is not None and sys.stderr.isatty():
        if not bar:
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(printable(what)):
            yield
        return
    ended, start = Event(), perf_counter()

    def tell() -> None:
        pause = 3.0
        while not ended.wait(pause):
            say(f"{what}: {perf_counter() - start:.0f} s")
            pause = 5.0

    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
