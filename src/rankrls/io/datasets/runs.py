"""Query ids that come block by block: where a query begins, and whether one comes back."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from rankrls.io._rows import IdBlock, coded, is_whole


class Runs:
    """Equal ids that follow each other.

    Attributes
    ----------
    n : int
        How many runs have begun.
    names : list of str
        Their ids, of the blocks for which they were asked for.
    """

    def __init__(self) -> None:
        self.n = 0
        self.names: list[str] = []
        self._last: str | None = None

    def begins(self, block: IdBlock, *, names: bool = False) -> NDArray[np.bool_]:
        """For each row of the next block, whether it has another id than the row before."""
        texts, codes = block
        if texts is not None and len(set(texts)) < len(texts):  # a dictionary may hold a text twice
            texts, number = coded(texts)
            codes = number[codes]
        out = np.empty(len(codes), dtype=bool)
        if len(codes):
            np.not_equal(codes[1:], codes[:-1], out=out[1:])
            out[0] = _name(texts, codes[0]) != self._last
            self._last = _name(texts, codes[-1])
        self.n += int(np.count_nonzero(out))
        if names:
            self.names += [_name(texts, code) for code in codes[out].tolist()]
        return out


def run_sizes(begins: NDArray[np.bool_]) -> tuple[int, list[int]]:
    """How many of some rows belong to the run before, and to each run that begins in them."""
    ends = np.r_[np.flatnonzero(begins), len(begins)]
    return int(ends[0]), np.diff(ends).tolist()


class Seen:
    """Ids of the queries so far, as one 64-bit number each.

    Whole numbers stand for themselves, texts for a hash of theirs. Two different ids may share a number, so that what
    is found twice has to be looked at again.
    """

    def __init__(self) -> None:
        self._known = np.empty(0, dtype=np.int64)
        self._new: list[NDArray[np.int64]] = []
        self._waiting = 0

    def add(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """More queries. Now and then all are compared: the numbers that were there more than once."""
        self._new.append(keys)
        self._waiting += len(keys)
        return self.repeated() if self._waiting > len(self._known) else np.empty(0, dtype=np.int64)

    def repeated(self) -> NDArray[np.int64]:
        """The numbers that were there more than once; they are told once."""
        every = np.concatenate([self._known, *self._new])
        every.sort(kind="stable")
        again = every[1:] == every[:-1]
        found = np.unique(every[1:][again])
        self._known, self._new, self._waiting = every[np.r_[True, ~again]] if len(every) else every, [], 0
        return found


def keys_of(block: IdBlock, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """The numbers that stand for the ids of some rows."""
    texts, codes = block
    chosen = codes[rows]
    if texts is None:
        return chosen.astype(np.int64)
    hashed = {code: _key(texts[code]) for code in dict.fromkeys(chosen.tolist())}
    return np.array([hashed[code] for code in chosen.tolist()], dtype=np.int64)


def names_of(block: IdBlock, rows: NDArray[np.intp]) -> list[str]:
    """The ids of some rows, as text."""
    return [_name(block[0], code) for code in block[1][rows].tolist()]


def are_whole(block: IdBlock, rows: NDArray[np.intp]) -> bool:
    """Whether the ids of some rows are whole numbers, as numbers or as ``str(int)`` writes them."""
    texts, codes = block
    return texts is None or all(is_whole(texts[code]) for code in dict.fromkeys(codes[rows].tolist()))


def _key(text: str) -> int:
    if is_whole(text):  # the same id may be a number in one block and a text in another
        return int(text)
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True)


def _name(texts: list[str] | None, code: int) -> str:
    return str(int(code)) if texts is None else texts[code]
