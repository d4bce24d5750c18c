"""The word that was perhaps meant. Nothing heavy is imported here, since the command line's help reads it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def did_you_mean(given: Any, words: Iterable[str]) -> str:
    """A question about the word that was perhaps meant, behind a space; empty if none is near."""
    near = get_close_matches(str(given).lower(), [*words], n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""
