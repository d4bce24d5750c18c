"""What the interpreter does while it should do nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attack.campaign import Wrong

__all__ = ["watched"]

_HARMLESS = ("object.", "builtins.id", "sys._getframe", "os.fspath", "marshal.", "code.__new__", "array.__new__")
_seen: list[tuple[str, Any]] | None = None
_hooked = False


def _hook(event: str, arguments: Any) -> None:
    if _seen is not None and not event.startswith(_HARMLESS):
        _seen.append((event, arguments))


@contextmanager
def watched(allowed: Callable[[str, Any], bool]) -> Iterator[None]:
    """Raise :class:`Wrong` if the interpreter tells an audit hook of anything that is not allowed."""
    global _seen, _hooked
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked = True
    _seen = []
    try:
        yield
    finally:
        found, _seen = _seen, None
        for event, arguments in found:
            if not allowed(event, arguments):
                raise Wrong(f"does {event} {arguments!r:.120}")
