"""Results on standard output; progress, notes and errors on standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Self

from rankrls._shown import table_text

_UNUSUAL = re.compile(r"[^ -~\n\t]")


@dataclass(frozen=True)
class Table:
    """Table that is shown if it has rows; the first ``left`` columns are text, the others are aligned on the right."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    left: int = 1

    @classmethod
    def of(cls, title: str, records: Iterable[Mapping[str, Any]], names: Sequence[str], *, left: int = 1) -> Self:
        """Table with a row for each record, and the entries of the given names as columns."""
        return cls(title, names, [[cell_text(record[name]) for name in names] for record in records], left)


@dataclass(frozen=True)
class Result:
    """Result of a command: ``found`` for --json; tables, and lines after them, for people.

    ``optional`` results are not printed with --quiet.
    """

    found: Mapping[str, Any] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    text: Iterable[str | bytes] = ()
    optional: bool = False


@dataclass
class Report:
    """Progress, notes and the result of one command."""

    command: str = ""
    as_json: bool = False
    quiet: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def working(self, part: str, what: Any = "", *, bars: bool = False) -> Iterator[None]:
        """Show on a terminal which part is running, unless it shows its own bars, and add up its seconds."""
        start = perf_counter()
        if bars or self.quiet or not sys.stderr.isatty():
            yield
        else:
            from rich.console import Console

            with Console(stderr=True).status(printable(f"{part} {what}")):
                yield
        self.seconds[part] = self.seconds.get(part, 0.0) + perf_counter() - start

    def note(self, text: str) -> None:
        """Print a note once; it is not an error."""
        if text not in self.notes:
            self.notes.append(text)
            if not self.quiet:
                print_line(f"note: {text}")

    def show(self, result: Result) -> None:
        """Print a result."""
        try:
            if self.as_json:
                found = {"command": self.command, **result.found, "seconds": self.seconds, "notes": self.notes}
                print(json.dumps(plain_json(found), indent=2, allow_nan=False))
            elif not (result.optional and self.quiet):
                _print(result)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of the output, such as head, has closed it
            flush_output()


def _print(result: Result) -> None:
    for table in [table for table in result.tables if table.rows]:
        columns, *rows = [[printable(str(cell)) for cell in row] for row in (table.columns, *table.rows)]
        print(printable(table.title), table_text(columns, rows, left=table.left), sep="\n", end="\n\n")
    for text in result.text:
        if isinstance(text, str):
            sys.stdout.write(printable(text))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(text)


def flush_output() -> None:
    """Flush standard output; if that fails, the rest is dropped, because Python would try again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def print_line(text: str) -> None:
    """Print a line on standard error, if its reader has not left."""
    with suppress(OSError):
        print(f"rankrls: {printable(' '.join(text.split()))}", file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """Text with control characters escaped, except ends of lines and tabs."""
    return _UNUSUAL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    """A character as it is printed: itself, or its escape sequence."""
    character = found[0]
    return character if character.isprintable() else ascii(character)[1:-1]


def plain_json(value: Any) -> Any:
    """Numbers, text, lists and dictionaries only; NaN and infinities become None."""

    def plain(other: Any) -> Any:
        return other.tolist() if hasattr(other, "tolist") else str(other)

    return json.loads(json.dumps(value, default=plain), parse_constant=lambda name: None)


def measure_text(value: float | None, error: float | None = None) -> str:
    """A measure and its standard error; a dash if there is none."""
    if value is None or value != value:
        return "-"
    return f"{value:.4f}" + ("" if error is None or error != error else f" ± {error:.4f}")


def cell_text(value: Any) -> str:
    """A value of JSON in one line."""
    if value is None:
        return "-"
    if isinstance(value, dict):
        return "  ".join(f"{name}: {cell_text(part)}" for name, part in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(cell_text, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def values_table(title: str, values: Mapping[str, Any]) -> Table:
    """Table with a row for each value."""
    return Table(title, ["", ""], [[name, cell_text(value)] for name, value in values.items()], left=2)


def features_table(chosen: Sequence[Mapping[str, Any]]) -> Table:
    """Features that a model selected, as returned by ``selected_features``."""
    names = ("feature", "name", "weight", "held_out", "gain")
    return Table.of("Features, in the order of selection", chosen, names, left=2)
