"""A progress bar over candidates, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], verbose: int, what: str = "candidates") -> Iterator[T]:
    """The items one by one. A bar shows how many are done: with ``verbose``, or on a terminal.

    Where there is no terminal, the bar is written once, when everything is done.
    """
    if not (verbose or (sys.stderr is not None and sys.stderr.isatty())):
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, what, console=Console(stderr=True), transient=not verbose)
