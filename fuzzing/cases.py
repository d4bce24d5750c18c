"""Cases as bytes: options, as one line of JSON, and data; and ways to damage data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from numpy.random import Generator

_WORDS = "nan inf -inf 1e999 1e-999 0x1p3 qid: qid:1 9 true 1_0 PK\x03\x04 é \ufeff \u2028 \u0661 \xa0 \x85"
_SIGNS = '\0 \r \n \r\n \t \v \f " "" \' , ; : # - + . e E _ \x1c \x1f \x7f'
_HOSTILE = (
    *(word.encode() for word in (*_WORDS.split(" "), *_SIGNS.split(" "), "0" * 30, "9" * 25, "9" * 400)),
    *(b" ", b" 3:3", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x1f\x8b"),
)


def packed(options: dict[str, Any], data: bytes) -> bytes:
    """A case."""
    return json.dumps(options, sort_keys=True).encode() + b"\n" + data


def unpacked(case: bytes) -> tuple[dict[str, Any], bytes]:
    """The options and the data of a case."""
    line, _, data = case.partition(b"\n")
    return json.loads(line), data


def choice(rng: Generator, values: Sequence[Any]) -> Any:
    """One of some values, as it is."""
    return values[int(rng.integers(len(values)))]


def chance(rng: Generator, share: float) -> bool:
    """True in a share of the cases."""
    return bool(rng.random() < share)


def damaged(rng: Generator, data: bytes, times: int | None = None) -> bytes:
    """Data with bits flipped, pieces cut out, moved and doubled, words put in, and the end cut off."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4)) if times is None else times):
        at = int(rng.integers(len(out) + 1))
        size = int(rng.integers(1, 9))
        kind = int(rng.integers(7))
        if kind == 0 and at < len(out):
            out[at] ^= 1 << int(rng.integers(8))
        elif kind == 1 and at < len(out):
            out[at] = int(rng.integers(256))
        elif kind == 2:
            del out[at : at + size]
        elif kind == 3:
            other = int(rng.integers(len(out) + 1))
            out[at:at] = out[other : other + size * 4]
        elif kind == 4 and chance(rng, 0.3):
            del out[at:]
        elif kind == 5:
            other = int(rng.integers(len(out) + 1))
            out[at : at + size] = out[other : other + size]
        else:
            out[at:at] = choice(rng, _HOSTILE)
    return bytes(out)


def text(rng: Generator, longest: int = 12) -> str:
    """Any text that UTF-8 can hold, with a liking for what means something to a reader; never empty, and no NUL."""
    out = []
    for _ in range(int(rng.integers(1, longest + 1))):
        kind = int(rng.integers(5))
        if kind == 0:
            out.append(choice(rng, "\t\n\v\f\r \x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\ufeff\u200b\u0661\x7f\x01\x1b"))
        elif kind == 1:
            out.append(choice(rng, "\"',;|:#=+-@.0123456789eE_\\/*?[]"))
        elif kind == 2:
            code = int(rng.integers(1, 0x110000 - 0x800))
            out.append(chr(code if code < 0xD800 else code + 0x800))
        else:
            out.append(choice(rng, "abcxyzAB019"))
    return "".join(out)
