"""The text formats once more, in plain Python and byte by byte: what is right, written without the library."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

__all__ = [
    *("BadLine", "Row", "is_foreign", "letor", "likely_delimiter"),
    *("names_feature_0", "preferences", "records", "scores", "table"),
]

NUMBER = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
BLANKS = b" \t\r\v\f"
FOREIGN = (b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04", b"\xff\xfe", b"\xfe\xff", b"PAR1", b"ARROW1")
MISSING = (b"", b"na", b"n/a", b"nan", b"null", b"none", b"-", b"?")
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


def names_feature_0(data: bytes) -> bool:
    """Whether any line of LETOR text names feature 0, be the line right or wrong."""
    bodies = (line.partition(b"#")[0].strip(BLANKS) for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"))
    return any(re.match(rb"0{1,18}:", token) for body in bodies for token in re.split(rb"[ \t\r\v\f]+", body)[1:])


def _decimal(token: bytes) -> float:
    if not NUMBER.fullmatch(token) or not math.isfinite(float(token)):
        raise ValueError
    return float(token)


def records(data: bytes, delimiter: bytes) -> list[tuple[int, list[bytes]]]:
    """Rows of delimited text that are not blank, and the line in which each begins.

    Raises
    ------
    BadLine
        In which the first row begins that is none; the rows before it are ``rows`` of the error.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    data += b"" if data.endswith(b"\n") else b"\n"
    rows: list[tuple[int, list[bytes]]] = []
    at = len(data) - len(data.lstrip(b" \r\n"))
    line = 1 + data[:at].count(b"\n")
    while at < len(data):
        begin, first = at, line
        cells: list[bytes] = []
        ended = False
        while not ended:
            if at == len(data):
                raise _broken(first, rows)
            while data[at : at + 1] == b" ":
                at += 1
            if data[at : at + 1] == b'"':
                cell = b""
                at += 1
                while True:
                    close = data.find(b'"', at)
                    if close < 0:
                        raise _broken(first, rows)
                    cell += data[at:close]
                    at = close + 1
                    if data[at : at + 1] != b'"':
                        break
                    cell += b'"'
                    at += 1
                while data[at : at + 1] == b" ":
                    at += 1
            else:
                start = at
                while data[at : at + 1] not in (delimiter, b"\n", b"\r"):
                    at += 1
                cell = data[start:at].strip()
            cells.append(cell)
            if data[at : at + 1] == delimiter:
                at += 1
                continue
            while data[at : at + 1] == b"\r":
                at += 1
            if data[at : at + 1] != b"\n":
                raise _broken(first, rows)
            at += 1
            ended = True
        line += data[begin:at].count(b"\n")
        if data[begin:at].strip(b" \r\n"):
            rows.append((first, cells))
    return rows


def _broken(line: int, rows: list[tuple[int, list[bytes]]]) -> BadLine:
    error = BadLine(line)
    error.rows = rows  # type: ignore[attr-defined]
    return error


def cell_number(raw: bytes) -> float | None:
    """A number of a table: as Python reads it, without underscores; true and false."""
    raw = raw.strip()
    if raw.lower() in (b"true", b"false"):
        return float(raw.lower() == b"true")
    try:
        value = math.nan if b"_" in raw else float(raw)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _id(raw: bytes, line: int) -> str:
    if not raw or b"\0" in raw:
        raise BadLine(line)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise BadLine(line) from None


def _rows(data: bytes, delimiter: bytes) -> tuple[list[tuple[int, list[bytes]]], BadLine | None]:
    """The rows up to the first that is none, and what is wrong with that."""
    if is_foreign(data):
        raise BadLine(None)
    try:
        return records(data, delimiter), None
    except BadLine as error:
        return error.rows, error  # type: ignore[attr-defined]


def table(data: bytes, delimiter: bytes, *, optional: bool = False, single: bool = False) -> dict[str, Any]:
    """Label, query id, item's id and features of a table with the usual names of these columns.

    Raises
    ------
    BadLine
    """
    rows, broken = _rows(data, delimiter)
    if not rows:
        raise broken or BadLine(None)
    line, header = rows[0]
    try:
        names = [cell.decode() for cell in header]
    except UnicodeDecodeError:
        raise BadLine(line) from None
    features = [k for k, name in enumerate(names) if name not in ("label", "qid", "docid")]
    features = [k for k in features if not re.fullmatch(r"__index_level_\d+__", names[k])]
    numbers_only = all(cell_number(cell) is not None for cell in header)
    unnamed = any(names[k] == "" for k in features)
    if numbers_only or len(set(names)) < len(names) or unnamed or not features:
        raise BadLine(line)
    if "label" not in names and not optional:
        raise BadLine(line)
    out: dict[str, Any] = {"names": [names[k] for k in features], "X": [], "label": [], "qid": [], "docid": []}
    for line, cells in rows[1:]:
        if len(cells) != len(names):
            raise BadLine(line)
        values = [cell_number(cells[k]) for k in features]
        if any(v is None or (single and abs(v) >= LARGEST_SINGLE) for v in values):
            raise BadLine(line)
        out["X"].append(values)
        if "label" in names:
            raw = cells[names.index("label")]
            label = cell_number(raw)
            if label is None and optional and raw.strip().lower() in MISSING:
                label = math.nan
            if label is None:
                raise BadLine(line)
            out["label"].append(label)
        for role in ("qid", "docid"):
            if role in names:
                out[role].append(_id(cells[names.index(role)], line))
    if broken is not None:
        raise broken
    if len(rows) == 1:
        raise BadLine(None)
    return {key: value if key in ("names", "X") or key in names else None for key, value in out.items()}


def likely_delimiter(data: bytes) -> bytes:
    """What the first line has most often outside of quotes; of equally many the first of comma, semicolon, tab, bar."""
    line = data.removeprefix(b"\xef\xbb\xbf").lstrip(b" \r\n").partition(b"\n")[0]
    bare = b"".join(re.split(rb'"[^"]*(?:"|$)', line))
    return max((b",", b";", b"\t", b"|"), key=bare.count)


def preferences(data: bytes, delimiter: bytes, ids: list[str] | int) -> dict[str, list[Any] | None]:
    """Preferences between rows that have ids, or between so many rows.

    Raises
    ------
    BadLine
        Without a line, if it may be any: numbers are read before items are looked up.
    """
    rows, broken = _rows(data, delimiter)
    if not rows:
        raise broken or BadLine(None)
    try:
        words = [cell.decode().strip().lower() for cell in rows[0][1]]
    except UnicodeDecodeError:
        raise BadLine(rows[0][0]) from None
    if "winner" in words or "loser" in words:
        rows = rows[1:]
        known = [w for w in words if w in ("winner", "loser", "strength", "weight", "group")]
        if len(set(known)) < len(known) or not {"winner", "loser"} <= set(known):
            raise BadLine(None)
    else:
        if len(words) > 4:
            raise BadLine(None)
        words = ["winner", "loser", "strength", "weight"][: max(len(words), 2)]
    if not rows:
        raise broken or BadLine(None)
    out: dict[str, list[Any] | None] = {
        w: [] if w in words else None for w in ("winner", "loser", "strength", "weight", "group")
    }
    for line, cells in rows:
        if len(cells) != len(words):
            raise BadLine(line)
        for word, cell in zip(words, cells, strict=True):
            column = out.get(word)
            if column is None:
                continue
            if word in ("strength", "weight"):
                value = cell_number(cell)
                if value is None:
                    raise BadLine(line)
                column.append(value)
            elif word == "group" and not cell:
                column.append("")
            else:
                column.append(_id(cell, line))
    if broken is not None:
        raise broken
    for word in ("winner", "loser"):
        out[word] = [_row(text, ids) for text in out[word] or ()]
    if any(i == j for i, j in zip(out["winner"] or (), out["loser"] or (), strict=True)):
        raise BadLine(None)
    weight = out["weight"]
    if weight is not None and (min(weight) < 0 or max(weight) == 0):
        raise BadLine(None)
    return out


def _row(text: str, ids: list[str] | int) -> int:
    if isinstance(ids, list):
        if ids.count(text) != 1:
            raise BadLine(None)
        return ids.index(text)
    if not re.fullmatch(r"[ \t\n\r\v\f]*[+-]?[0-9]+[ \t\n\r\v\f]*", text) or not 0 <= int(text) < ids:
        raise BadLine(None)
    return int(text)


def scores(data: bytes) -> list[float]:
    """Scores, one a line; blank lines at the end do not count.

    Raises
    ------
    BadLine
    """
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise BadLine(None)
    out = []
    for number, line in enumerate(lines, start=1):
        try:
            out.append(_decimal(line.strip()))
        except ValueError:
            raise BadLine(number) from None
    return out
