"""What a command says, and where: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

__all__ = ["Report", "plain_json"]

_WIDTH = 110  # of tables that go into a file or a pipe
_PAUSE = 0.5  # seconds between lines of progress


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

    def __post_init__(self) -> None:
        if self.verbose and self.quiet:
            raise ValueError("--verbose and --quiet exclude each other.")

    @contextmanager
    def working(self, part: str, what: str) -> Iterator[Callable[[str], None]]:
        """Show ``what`` while it is being done, on a terminal; add its seconds to ``part``.

        What it yields may be told how far the work has come.
        """
        start = perf_counter()
        with _spinner(what) if self._shows_progress() else _lines(what if self.verbose else None) as say:
            yield say
        took = perf_counter() - start
        self.seconds[part] = self.seconds.get(part, 0.0) + took
        if self.verbose:
            print(f"rankrls: {what}: {took:.2f} s", file=sys.stderr)

    def note(self, text: str) -> None:
        """Something that the user should know, and that is no error."""
        self.notes.append(text)
        if not self.quiet:
            print(f"rankrls: note: {text}", file=sys.stderr)

    def print_json(self, value: Any) -> None:
        """The result for machines; what is no finite number is null."""
        print(json.dumps(plain_json(value), indent=2, allow_nan=False))

    def print_table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Any]],
        *,
        left: int = 1,
        marked: int | None = None,
    ) -> None:
        """A table; the first ``left`` columns are text, the others are set to the right. One row may be marked."""
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table

        table = Table(box=SIMPLE_HEAD, pad_edge=False, show_header=any(columns), show_edge=False)
        for k, name in enumerate(columns):
            table.add_column(name, justify="left" if k < left else "right", no_wrap=k >= left, overflow="fold")
        for k, row in enumerate(rows):
            table.add_row(*(str(cell) for cell in row), style="bold green" if k == marked else None)
        width = None if sys.stdout.isatty() else _WIDTH
        console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
        console.print(title, style="bold", soft_wrap=True)
        console.print(table)
        console.print()

    def _shows_progress(self) -> bool:
        return not self.quiet and not self.verbose and sys.stderr.isatty()


@contextmanager
def _lines(what: str | None) -> Iterator[Callable[[str], None]]:
    """A line now and then; none at all where ``what`` is None."""
    last = -math.inf

    def say(text: str) -> None:
        nonlocal last
        if what is not None and perf_counter() - last > _PAUSE:
            last = perf_counter()
            print(f"rankrls: {what}: {text}", file=sys.stderr, flush=True)

    yield say


@contextmanager
def _spinner(what: str) -> Iterator[Callable[[str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(20), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda text: progress.update(task, description=f"{what}: {text}")


def plain_json(value: Any) -> Any:
    """Numbers, text, lists and dictionaries only; NaN and infinities become None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): plain_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
