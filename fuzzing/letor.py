"""LETOR text: the compiled reader, with buffers of a few bytes, against the plain one; values bit for bit."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from numpy.random import Generator

from fuzzing import plain
from fuzzing.campaign import Refused, Target, Unclear, Wrong
from fuzzing.cases import chance, choice, damaged, packed, text, unpacked
from rankrls import InputError
from rankrls.io import Rows, _text as source, load_letor

_WHOLE = re.compile("0|-?[1-9][0-9]*")
_TOKENS = ("0", "-0.0", "1.", ".5", "+1", "1e5", "-2.4780157e-012", "1e-400", "5e-324", "2.2250738585072011e-308")


@contextlib.contextmanager
def blocks_of(size: int) -> Iterator[None]:
    """Files and streams in pieces of about this size."""
    with mock.patch.object(source, "_BLOCK", size):
        yield


def read_file(data: bytes, **options: Any) -> Rows:
    """Data from a file on disk, whose blocks are read while others are counted."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        return load_letor(file.name, **options)


def same_as_plain(table: Rows, rows: list[plain.Row], zero_based: bool, columns: int, dtype: Any) -> None:
    """Raise :class:`Wrong` if a table is not what the rows are, bit for bit."""

    def check(what: str, right: Any) -> None:
        if not right:
            raise Wrong(f"{what} differs")

    check("zero_based", table.zero_based is zero_based)
    check("the shape", table.X.shape == (len(rows), columns))
    check("the type", table.X.dtype == dtype)
    check("y", table.y.tobytes() == np.array([row.label for row in rows], dtype=np.float64).tobytes())
    check("a comment", (table.comments or [""] * len(rows)) == [row.comment for row in rows])
    shift = 0 if zero_based else 1
    if isinstance(table.X, np.ndarray):
        X = np.zeros((len(rows), columns), dtype=dtype)
        for i, row in enumerate(rows):
            for name, value in row.features.items():
                X[i, name - shift] = value
        check("X", table.X.tobytes() == X.tobytes())
    else:
        entries = [sorted(row.features.items()) for row in rows]
        check("indptr", table.X.indptr.tolist() == np.cumsum([0, *map(len, entries)]).tolist())
        check("indices", table.X.indices.tolist() == [name - shift for row in entries for name, _ in row])
        data = np.array([value for row in entries for _, value in row], dtype=dtype)
        check("data", table.X.data.tobytes() == data.tobytes())
        table.X.check_format(full_check=True)
    qids = [row.qid for row in rows]
    if qids[0] is None:
        check("qid", table.qid is None)
    elif all(_WHOLE.fullmatch(q or "") and -(2**63) <= int(q or "") < 2**63 for q in qids):
        check("qid", table.qid is not None and table.qid.dtype == np.int64 and list(map(str, table.qid)) == qids)
    else:
        check("qid", table.qid is not None and table.qid.tolist() == qids)


def _text_of(data: bytes) -> bytes:
    """The text that data stand for; BadLine if they are damaged gzip data."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise plain.BadLine(None) from None
    except Exception as error:  # gzip.decompress is not careful with headers
        raise Unclear(f"gzip: {type(error).__name__}") from None


def judge(case: bytes) -> None:
    """Read the case by both."""
    options, data = unpacked(case)
    if options["gzip"]:
        parts = [data[: len(data) // 2], b"", data[len(data) // 2 :]] if options["gzip"] == "members" else [data]
        data = b"".join(gzip.compress(part, 1, mtime=0) for part in parts) + b"\0" * (7 * len(parts))
    dtype = np.float32 if options["single"] else np.float64
    given, zero_based = options["n_features"], options["zero_based"]
    rows: list[plain.Row] = []
    bad, columns, based = None, 0, False
    try:
        text = _text_of(data)
        if plain.is_foreign(data) or not data:
            raise plain.BadLine(None)
        least, largest = int(zero_based is False), 10**18 if given is None else given - int(zero_based is True)
        rows = plain.letor(text, least=least, largest=largest, single=options["single"])
        names = [name for row in rows for name in row.features]
        based = min(names, default=1) == 0 if zero_based == "auto" else zero_based
        first = 0 if based else 1
        if given is not None and max(names, default=0) - first >= given:  # the line that names feature 0 may be any
            raise plain.BadLine(None)
        columns = max(names, default=first - 1) + 1 - first if given is None else given
        if not rows or columns == 0 or (given is None and columns > 2**27):
            raise plain.BadLine(None)
    except plain.BadLine as error:
        bad = error
    wide = bool(re.search(rb"[0-9]{5}:", data)) or options["gzip"] or data[:2] == b"\x1f\x8b"
    keywords = {
        "dense": False if wide and options["dense"] is True else options["dense"],
        "dtype": dtype,
        "n_features": given,
        "zero_based": zero_based,
    }
    read = read_file if options["file"] else lambda data, **kw: load_letor(io.BytesIO(data), **kw)
    threads = mock.patch.dict(os.environ, RANKRLS_NUM_THREADS=str(options["threads"]))
    with blocks_of(options["block"]), threads:
        try:
            table = read(data, **keywords)
        except InputError as error:
            if bad is None:
                raise Wrong(f"refused: {error.message[:200]}") from None
            if bad.line is not None and error.line != bad.line:
                raise Wrong(f"line {error.line} is named, not {bad.line}") from None
            if not error.file or not str(error):
                raise Wrong("the error names no file") from None
            raise Refused from None
    if bad is not None:
        raise Wrong(f"read, though line {bad.line} is wrong")
    same_as_plain(table, rows, based, columns, dtype)
    if table.sha256 != hashlib.sha256(data).hexdigest():
        raise Wrong("sha256 differs")


def make(rng: Generator) -> bytes:
    """A file with any of what is allowed, damaged in two of three cases."""
    with_qid = chance(rng, 0.7)
    lines = [_line(rng, with_qid) for _ in range(int(rng.integers(0, 12)))]
    body = choice(rng, ["\n", "\n", "\n", "\r\n"]).join(lines) + choice(rng, ["", "\n", "\n", "\n\n", "\r\n"])
    data = choice(rng, [b"", b"", b"", b"\xef\xbb\xbf"]) + body.encode()
    kind = choice(rng, ["", "", "", "", "", "one", "members", "damaged"])
    if chance(rng, 0.5):
        data = damaged(rng, data)
    if kind == "damaged":
        data, kind = damaged(rng, gzip.compress(data, 1, mtime=0), 1), ""
    options = {
        "gzip": kind,
        "file": chance(rng, 0.5),
        "block": choice(rng, [1, 2, 3, 7, 13, 64, 4096]),
        "threads": int(rng.integers(1, 4)),
        "dense": choice(rng, [True, False, "auto"]),
        "single": chance(rng, 0.2),
        "n_features": choice(rng, [None] * 9 + [5, 13, 200]),
        "zero_based": choice(rng, ["auto"] * 6 + [True, False]),
    }
    return packed(options, data)


def _line(rng: Generator, with_qid: bool) -> str:
    kind = int(rng.integers(20))
    if kind == 0:
        return choice(rng, ["", "  ", "# only a comment", " \t# 1 qid:3 1:2", "\r"])
    ids = rng.choice(14, size=int(rng.integers(0, 6)), replace=False).tolist()
    if kind == 1:
        ids += [choice(rng, [2**33, 10**18 - 1, 10**18, 999_999_999, 2**27, 2**27 + 1, 2**31])]
    tokens = [f"{'0' * int(kind == 2)}{i}:{decimal(rng)}" for i in ids]
    if with_qid:
        odd = [
            "q:1",
            "007",
            "-0",
            "+5",
            "9223372036854775808",
            text(rng).translate(dict.fromkeys(map(ord, " \t\r\n\v\f#"))),
        ]
        qid = choice(rng, ["1", "2", "-5", "9223372036854775807", "-9223372036854775808", "0", *(odd * (kind == 3))])
        tokens.insert(int(rng.integers(len(tokens) + 1)), f"qid:{qid or 'q'}")
    line = decimal(rng) + "".join(choice(rng, [" ", " ", "  ", "\t", " \t ", "\f", "\v"]) + t for t in tokens)
    return line + choice(rng, ["", "", " ", " # docid = 7", "#", "#a b # c \t", "\r", " #ü\r", "# \0 "])


def decimal(rng: Generator) -> str:
    """A decimal of any form that is read."""
    kind = int(rng.integers(8))
    if kind == 0:
        return choice(rng, _TOKENS)
    if kind == 1:
        bits = rng.integers(2**64, dtype=np.uint64)
        value = float(bits.view(np.float64))
        return choice(rng, ["{!r}", "{:.17g}", "{:.25e}", "{:.400f}"]).format(value) if np.isfinite(value) else "7"
    if kind == 2:
        return str(int(rng.integers(-(2**62), 2**62)) * 10 ** int(rng.integers(0, 9)))
    if kind == 3:  # near the middle between two float64
        whole = int(rng.integers(2**53, 2**54)) * 2 + 1
        return f"{whole}{choice(rng, ['', '.', '.0', '.' + '0' * 30 + '1', 'e-3', 'e5'])}"
    if kind == 4:
        digits = "".join(map(str, rng.integers(0, 10, int(rng.integers(1, 40)))))
        return f"{choice(rng, ['', '-', '+'])}{digits[:3]}.{digits[3:]}e{int(rng.integers(-330, 300))}"
    return f"{rng.normal():.{int(rng.integers(0, 9))}g}"


def warm_up() -> None:
    """Compile the loops."""
    for dense in (True, False):
        for dtype in (np.float64, np.float32):
            load_letor(io.BytesIO(b"1 qid:a 2:1 1:0.1\n"), dense=dense, dtype=dtype)


TARGET = Target("letor", make, judge, warm_up, share=2.0)
