"""LETOR text once more, in plain Python and byte by byte: what is right, written without the library."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
BLANKS = b" \t\r\v\f"
FOREIGN = (b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\xff\xfe", b"\xfe\xff", b"PAR1", b"ARROW1")
LARGEST_SINGLE = float(2**128 - 2**103)


class BadLine(Exception):  # noqa: N818
    """The first line that is wrong; None if it is the file."""

    def __init__(self, line: int | None) -> None:
        super().__init__(line)
        self.line = line


class Row(NamedTuple):
    """A line of LETOR text."""

    label: float
    qid: str | None
    features: dict[int, float]
    comment: str


def is_foreign(data: bytes) -> bool:
    """Whether data begin as another format does."""
    return data.startswith(FOREIGN)


def letor(data: bytes, *, least: int = 0, largest: int = 10**18 - 1, single: bool = False) -> list[Row]:
    """Rows of LETOR text whose feature ids lie between two numbers.

    Raises
    ------
    BadLine
    """
    rows: list[Row] = []
    for line, whole in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        body, _, comment = whole.partition(b"#")
        label, *tokens = re.split(rb"[ \t\r\v\f]+", body.strip(BLANKS))
        if not label and not tokens:
            continue
        try:
            qid = None
            features: dict[int, float] = {}
            y = _decimal(label)
            for token in tokens:
                name, colon, value = token.partition(b":")
                if name == b"qid" and colon:
                    if qid is not None or not value or b"\0" in value or (rows and rows[0].qid is None):
                        raise ValueError
                    qid = value.decode()
                else:
                    if not re.fullmatch(rb"[0-9]{1,18}", name) or not colon or int(name) in features:
                        raise ValueError
                    if not least <= int(name) <= largest:
                        raise ValueError
                    features[int(name)] = _decimal(value)
                    if single and abs(features[int(name)]) >= LARGEST_SINGLE:
                        raise ValueError
            if rows and (qid is None) != (rows[0].qid is None):
                raise ValueError
        except ValueError:
            raise BadLine(line) from None
        rows.append(Row(y, qid, features, comment.strip(BLANKS).decode("utf-8", "surrogateescape")))
    return rows


def _decimal(token: bytes) -> float:
    if not NUMBER.fullmatch(token) or not math.isfinite(float(token)):
        raise ValueError
    return float(token)
