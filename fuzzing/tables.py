"""Tables: the same cells as CSV, Parquet, Arrow and JSON give the same arrays, or are refused in all of them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet
from numpy.random import Generator

from fuzzing.campaign import Refused, Target, Wrong
from fuzzing.cases import chance, choice, damaged, packed, text, unpacked
from rankrls import InputError
from rankrls.io import load_table
from rankrls.io._text import BLANKS
from rankrls.preprocessing import TableEncoder

_ODD = (2**53, 2**53 + 1, 2**63 - 1, -7, 0.1, 1e308, 5e-324, float("inf"), None, True)


def make(rng: Generator) -> bytes:
    """Columns of numbers and texts, and perhaps damage of the CSV file."""
    rows, columns = int(rng.integers(1, 12)), {}
    for name in ("label", "qid", "a", "b"):
        whole = name == "label" or chance(rng, 0.4)
        values: list[Any] = [int(v) if whole else float(v) for v in rng.normal(size=rows).round(2) * 50]
        if name == "qid" and chance(rng, 0.5):
            # cells of text lose the blanks around them
            values = [choice(rng, ["007", "7", "red shoe", text(rng).strip(BLANKS)]) for _ in range(rows)]
        if chance(rng, 0.1):  # beyond 2^53 floats have no name for some
            values = rng.integers(2**53, 2**63 - 1, rows).tolist()
        if chance(rng, 0.2):
            values[int(rng.integers(rows))] = choice(rng, _ODD)
        columns[name] = values
    return packed({"seed": int(rng.integers(2**31)), "damage": chance(rng, 0.3)}, json.dumps(columns).encode())


def judge(case: bytes) -> None:
    """Write the cells in every format, and read and encode them."""
    options, data = unpacked(case)
    try:
        frame = pd.DataFrame(json.loads(data))
    except (ValueError, TypeError):
        raise Refused from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        frame.to_csv(path / "t.csv", index=False)
        if options["damage"]:
            rng = np.random.default_rng(options["seed"])
            (path / "t.csv").write_bytes(damaged(rng, (path / "t.csv").read_bytes()))
            _read(path / "t.csv")
            return
        try:
            frame.to_parquet(path / "t.parquet")
            frame.to_feather(path / "t.arrow")
            records = pyarrow.parquet.read_table(path / "t.parquet").to_pylist()
        except Exception:  # pyarrow has no column of this mixture
            raise Refused from None
        (path / "t.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
        found = [_read(path / name) for name in ("t.parquet", "t.arrow", "t.csv", "t.jsonl")]
        typed = all(_same(found[0], found[k]) for k in (1, 3))
        if not typed or (None not in found and not _same(found[0], found[2])):
            raise Wrong(f"formats differ: {found}"[:300])
        if found[0] is None and found[2] is None:
            raise Refused
    _encode(frame)


def _read(path: Path) -> list[Any] | None:
    """Labels, query ids and features; None if the file is refused."""
    try:
        table = load_table(path, label="label", qid="qid")
    except InputError as error:
        if error.file != str(path) or len(str(error)) > 1000:
            raise Wrong(f"the error is {str(error)[:200]!r}") from None
        return None
    ids = [str(value) for value in np.asarray(table.qid).tolist()]
    return [np.asarray(table.y).tolist(), [ids.index(value) for value in ids], np.asarray(table.X).tolist()]


def _same(one: list[Any] | None, other: list[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _encode(frame: pd.DataFrame) -> None:
    """Whole numbers as categories are their digits as texts."""
    texts = [str(value) for value in frame["a"].tolist()]
    if frame["a"].dtype.kind != "i" or len(set(texts)) < 2:
        return
    numbers = TableEncoder(categorical="a", min_frequency=1).fit({"a": frame["a"].tolist(), "b": [1.0] * len(texts)})
    for cells in (frame["a"].tolist(), texts):
        found = numbers.transform({"a": cells, "b": [1.0] * len(texts)})
        names = [f"a={cell}" for cell in texts]
        right = [[float(name == cell) for name in numbers.get_feature_names_out()] for cell in names]
        if found.tolist() != right:
            raise Wrong(f"categories differ: {cells}"[:300])


TARGET = Target("tables", make, judge)
