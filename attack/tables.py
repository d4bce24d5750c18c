"""Delimited text against the plain reader and pandas, and round trips of any text through every kind of table."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow.feather
import pyarrow.parquet
from numpy.random import Generator

from attack import plain
from attack.campaign import Refused, Target, Wrong
from attack.cases import chance, choice, damaged, packed, text, unpacked
from attack.letor import decimal
from rankrls.io import TableError, load_table, save_table
from rankrls.io.tables import delimited

__all__ = ["DELIMITED", "ROUND_TRIP", "expect"]

_ODD = ("true", "False", " 7", "7 ", "1.", ".5", "+1", "Infinity", "nan", "NA", "", "1_0", "0x1", "-")
_ENDINGS = ("csv", "tsv", "csv.gz", "tsv.gz", "parquet", "arrow")


def expect(error: TableError, bad: plain.BadLine | None, what: str = "") -> None:
    """Raise :class:`Refused` if an error is right, and :class:`Wrong` if it is not."""
    if bad is None:
        raise Wrong(f"refused{what}: {error.problem[:200]}")
    if bad.line is not None and error.line is not None and error.line != bad.line:
        raise Wrong(f"line {error.line} is named{what}, not {bad.line}")
    if not error.file:
        raise Wrong("the error names no file")
    raise Refused


def same(what: str, found: Any, right: Any) -> None:
    """Raise :class:`Wrong` if two values differ."""
    if found != right:
        raise Wrong(f"{what} differs: {found!r:.100} and {right!r:.100}")


def judge_delimited(case: bytes) -> None:
    """A table of text, in blocks of some bytes."""
    options, data = unpacked(case)
    bad, right = None, {}
    dtype = np.float32 if options["single"] else np.float64
    try:
        right = plain.table(data, options["delimiter"].encode(), optional=options["optional"], single=options["single"])
    except plain.BadLine as error:
        bad = error
    keywords = {"dtype": dtype, "labels": "optional" if options["optional"] else "required"}
    with mock.patch.object(delimited, "_BLOCK", options["block"]), mock.patch.object(delimited, "_BYTES_PER_COLUMN", 1):
        try:
            table = load_table(io.BytesIO(data), delimiter=options["delimiter"], **keywords)
        except TableError as error:
            return expect(error, bad)
    if bad is not None:
        raise Wrong(f"read, though line {bad.line} is wrong")
    same("names", table.feature_names, tuple(right["names"]))
    same("X", table.X.tobytes(), np.array(right["X"], dtype=dtype).tobytes())
    y = None if right.get("label") is None else np.array(right["label"])
    same("y", None if table.y is None else table.y.tobytes(), None if y is None else y.tobytes())
    for role, found in (("qid", table.qid), ("docid", table.ids)):
        same(role, None if found is None else list(map(str, found.tolist())), right.get(role))
    if options["pandas"] and not data.startswith(b"\xef\xbb\xbf"):  # behind that mark it keeps blanks of a name
        frame = pd.read_csv(io.BytesIO(data), sep=options["delimiter"], dtype=str, keep_default_na=False)
        for k, name in enumerate(table.feature_names):
            values = [float(v) for v in frame[name]]
            same("X by pandas", table.X[:, k].tobytes(), np.array(values, dtype=dtype).tobytes())
        if "qid" in frame:
            same("qid by pandas", list(map(str, table.qid.tolist())), frame["qid"].tolist())
    return None


def make_delimited(rng: Generator) -> bytes:
    """A table with any of what is allowed, damaged in half of the cases."""
    delimiter = choice(rng, [",", ",", ";", "\t", "|"])
    names = ["label", "qid", "docid"][: int(rng.integers(1, 4))]
    names += [f"f{k}" if chance(rng, 0.8) else text(rng, 5).strip() + str(k) for k in range(int(rng.integers(1, 5)))]
    names = [names[k] for k in rng.permutation(len(names))]
    file = io.StringIO(newline="")
    quoting = choice(rng, [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
    ends = choice(rng, ["\n", "\n", "\r\n"])
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=ends)
    writer.writerow(names)
    odd = chance(rng, 0.5)
    for _ in range(int(rng.integers(1, 12))):
        writer.writerow([_cell(rng, name, odd) for name in names])
        if odd and chance(rng, 0.1):
            file.write(choice(rng, ["\n", "  \n", "\r\n", "\r\r\n"]))
    data = file.getvalue().encode()
    regular = not odd
    if chance(rng, 0.5):
        data, regular = damaged(rng, data), False
    if chance(rng, 0.2):
        data = choice(rng, [b"\xef\xbb\xbf", b"\n", b" \r\n"]) + data
        regular = False
    if chance(rng, 0.2):
        data = data.rstrip(b"\r\n")
    options = {
        "delimiter": delimiter,
        "block": choice(rng, [4, 5, 7, 30, 64, 200, 1 << 20]),
        "single": chance(rng, 0.2),
        "optional": chance(rng, 0.3),
        "pandas": regular,
    }
    return packed(options, data)


def _cell(rng: Generator, name: str, odd: bool) -> str:
    if name in ("qid", "docid"):
        plain_ids = ["1", "2", "-5", "q7", "007", "red shoes", "9223372036854775807"]
        return text(rng) if odd and chance(rng, 0.3) else choice(rng, plain_ids)
    if odd and chance(rng, 0.1):
        return choice(
            rng, ["true", "False", " 7", "7 ", "1.", ".5", "+1", "Infinity", "nan", "NA", "", "1_0", "0x1", "-"]
        )
    return decimal(rng)


def judge_round_trip(case: bytes) -> None:
    """What save_table writes, load_table, pandas and pyarrow read back."""
    options, data = unpacked(case)
    X = np.frombuffer(data, dtype=np.float64).reshape(-1, len(options["names"]))
    y = None if options["y"] is None else [np.nan if v is None else v for v in options["y"]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{options['ending']}"
        save_table(path, X, y, options["qid"], ids=options["ids"], feature_names=options["names"])
        table = load_table(path, features=options["names"], labels="optional")
        same("X", table.X.tobytes(), X.tobytes())
        same("names", list(table.feature_names), options["names"])
        same(
            "y",
            None if table.y is None else table.y.tolist().__repr__(),
            None if y is None else repr(list(map(float, y))),
        )
        for role, found in (("qid", table.qid), ("ids", table.ids)):
            same(role, None if found is None else list(map(str, found.tolist())), options[role])
        others = _by_others(path)
    for role, name in (("qid", "qid"), ("ids", "docid")):
        if options[role] is not None:
            same(f"{role} by others", others[name], options[role])
    for k, name in enumerate(options["names"]):
        same("X by others", np.array([float(v) for v in others[name]]).tobytes(), X[:, k].tobytes())


def _by_others(path: Path) -> dict[str, list[Any]]:
    """The columns of a table as Python's csv module or pyarrow reads them."""
    if path.suffix == ".parquet":
        found: dict[str, list[Any]] = pyarrow.parquet.read_table(path).to_pydict()
        return found
    if path.suffix == ".arrow":
        found = pyarrow.feather.read_table(path).to_pydict()
        return found
    import gzip

    raw = path.read_bytes()
    raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    delimiter = "\t" if ".tsv" in path.name else ","
    header, *rows = csv.reader(io.StringIO(raw.decode(), newline=""), delimiter=delimiter, strict=True)
    return {name: [row[k] for row in rows] for k, name in enumerate(header)}


def make_round_trip(rng: Generator) -> bytes:
    """Any floats, ids and names of columns."""
    rows, n = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    X = rng.integers(0, 2**64, (rows, n), dtype=np.uint64).view(np.float64)
    X = np.where(np.isfinite(X), X, rng.normal(size=X.shape))
    names: dict[str, None] = {}
    while len(names) < n:
        name = text(rng)
        if plain.cell_number(name.encode()) is None and name not in ("label", "qid", "docid"):
            names[name] = None
    ids = [[text(rng, 20) for _ in range(rows)] if chance(rng, 0.7) else None for _ in range(2)]
    y = [None if chance(rng, 0.1) else float(v) for v in rng.normal(size=rows)] if chance(rng, 0.7) else None
    options = {"names": [*names], "qid": ids[0], "ids": ids[1], "y": y, "ending": choice(rng, _ENDINGS)}
    return packed(json.loads(json.dumps(options)), X.tobytes())


def warm_up() -> None:
    """Import what reading imports."""
    rng = np.random.default_rng(0)
    for ending in _ENDINGS:
        options, data = unpacked(make_round_trip(rng))
        judge_round_trip(packed({**options, "ending": ending}, data))
    load_table(io.BytesIO(b"label,qid,a\n1,q,2\n"))


DELIMITED = Target("delimited", make_delimited, judge_delimited, warm_up, share=2.0)
ROUND_TRIP = Target("round-trip", make_round_trip, judge_round_trip, warm_up)
