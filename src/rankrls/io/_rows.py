"""Rows that come in one block after another, into arrays that grow in place."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NOT_UTF8", "Growing", "Names", "is_utf8", "quoted"]

NOT_UTF8 = "not UTF-8 text: save the file as UTF-8 (of Latin-1: iconv -f latin1 -t utf-8 FILE)."
"""What a name or an id is that cannot be decoded, and what to do."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64 = np.iinfo(np.int64)
_SHOWN = 40


def is_utf8(raw: bytes) -> bool:
    """Whether it can be decoded."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def quoted(raw: bytes) -> str:
    """What cannot be decoded, as an error shows it."""
    text = raw.decode("utf-8", "backslashreplace")
    return "'" + (text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...") + "'"


class Growing:
    """An array whose rows are appended.

    ``ndarray.resize`` asks the system to move pages instead of copying them, so that the peak of memory is the final
    array, an eighth more at worst, and not twice as much.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._array = np.empty((0, *shape), dtype=dtype)
        self._rows = 0

    def reserve(self, rows: int) -> None:
        """Make room for so many rows altogether."""
        if rows > len(self._array):
            self._array.resize((rows, *self._array.shape[1:]), refcheck=False)

    def append(self, block: NDArray[Any]) -> None:
        """Rows to the end, cast to the array's dtype."""
        need = self._rows + len(block)
        if need > len(self._array):
            self.reserve(max(need, len(self._array) + len(self._array) // 8))
        with np.errstate(over="ignore"):  # who appends has checked, or checks the sum
            self._array[self._rows : need] = block
        self._rows = need

    def finish(self) -> NDArray[Any]:
        """The array, of the right length."""
        self._array.resize((self._rows, *self._array.shape[1:]), refcheck=False)
        return self._array


class Names:
    """A column of ids, UTF-8: each different text once, and its number for every row."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        self._codes = Growing((), np.int64)

    def append(self, cells: list[bytes]) -> None:
        """More rows."""
        known = self._known
        codes = np.fromiter((known.setdefault(c, len(known)) for c in cells), dtype=np.int64, count=len(cells))
        self._codes.append(codes)

    def finish(self) -> NDArray[Any]:
        """int64 where every id is a whole number as ``str(int)`` writes it and fits, otherwise strings."""
        texts = [raw.decode() for raw in self._known]
        codes = self._codes.finish()
        if all(_WHOLE.fullmatch(t) and _INT64.min <= int(t) <= _INT64.max for t in texts):
            return np.array([int(t) for t in texts], dtype=np.int64)[codes]
        return np.array(texts)[codes]
