"""Parquet and Arrow files: values against those that were written, damaged files against pyarrow alone."""

from __future__ import annotations

import io
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from numpy.random import Generator

from attack.campaign import Refused, Target, Wrong
from attack.cases import chance, choice, packed, text, unpacked
from attack.tables import same
from rankrls.io import TableError, load_table

__all__ = ["TARGET"]

_COMPRESSION = {"parquet": ("none", "snappy", "gzip", "zstd"), "arrow": ("uncompressed", "lz4", "zstd")}


def judge(case: bytes) -> None:
    """A file, as it was written or damaged."""
    options, data = unpacked(case)
    try:
        table = load_table(io.BytesIO(data), format=options["format"], labels="optional")
    except TableError as error:
        if options["right"]:
            raise Wrong(f"refused: {error.problem[:200]}") from None
        if not error.file:
            raise Wrong("the error names no file") from None
        raise Refused from None
    if options["right"] is False:
        raise Wrong("read, though a value cannot be taken")
    columns = _by_pyarrow(data, options["format"])
    for k, name in enumerate(table.feature_names):
        same(name, table.X[:, k].tobytes(), np.array([_number(v) for v in columns[name]]).tobytes())
    if table.y is not None:
        right = np.array([math.nan if v is None else _number(v) for v in columns["label"]])
        same("label", table.y.tobytes(), right.tobytes())
    for name, found in (("qid", table.qid), ("docid", table.ids)):
        if found is not None:
            same(name, [str(v) for v in found.tolist()], [_word(v) for v in columns[name]])


def _by_pyarrow(data: bytes, format: str) -> dict[str, list[Any]]:
    try:
        file = io.BytesIO(data)
        read = pa.parquet.read_table(file) if format == "parquet" else pa.feather.read_table(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Wrong(f"read, though pyarrow says {str(error)[:100]}") from None
    out = {}
    for name, column in zip(read.schema.names, read.columns, strict=True):
        if pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type):
            for k in range(len(column[0].as_py())):
                out[f"{name}[{k}]"] = [row[k] for row in column.to_pylist()]
        elif pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            out[name] = column.cast(pa.binary()).to_pylist()
        else:
            out[name] = column.to_pylist()
    return out


def _number(value: Any) -> float:
    return float(Decimal(str(value)) if isinstance(value, Decimal) else value)


def _word(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return str(int(value)) if isinstance(value, float) else str(value)


def make(rng: Generator) -> bytes:
    """A file of columns of any type; flipped and cut in half of the cases."""
    rows = int(rng.integers(1, 30))
    right: bool | None = True
    columns: dict[str, Any] = {}
    for k in range(int(rng.integers(1, 5))):
        columns[f"f{k}"], fine = _column(rng, rows)
        right = right and fine
    if chance(rng, 0.8):
        columns["label"] = pa.array(rng.integers(0, 4, rows), choice(rng, [pa.int64(), pa.float64(), pa.int8()]))
    for name in ("qid", "docid"):
        if chance(rng, 0.7):
            columns[name], fine = _ids(rng, rows)
            right = right and fine
    names = [[*columns][k] for k in rng.permutation(len(columns))]
    table = pa.table({name: columns[name] for name in names})
    format = choice(rng, ["parquet", "arrow"])
    file = io.BytesIO()
    packing = choice(rng, _COMPRESSION[format])
    if format == "parquet":
        options = {"row_group_size": int(rng.integers(1, 40)), "use_dictionary": chance(rng, 0.5)}
        pa.parquet.write_table(table, file, compression=packing, write_page_checksum=chance(rng, 0.5), **options)
    else:
        pa.feather.write_feather(table, file, compression=packing, chunksize=int(rng.integers(1, 40)))
    data = bytearray(file.getvalue())
    if chance(rng, 0.5):
        right = None
        for _ in range(int(rng.integers(1, 4))):
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        if chance(rng, 0.2):
            del data[int(rng.integers(len(data))) :]
    return packed({"format": format, "right": right}, bytes(data))


def _column(rng: Generator, rows: int) -> tuple[Any, bool]:
    """A column of numbers, and whether it can be taken."""
    kind = int(rng.integers(8))
    if kind == 0:
        whole = rng.integers(-(2**53), 2**53, rows)
        fine = chance(rng, 0.7)
        if not fine:
            whole[int(rng.integers(rows))] = 2**53 + 1 + 2 * int(rng.integers(0, 1000))
        return pa.array(whole, pa.int64()), fine
    if kind == 1:
        values = [Decimal(int(v)).scaleb(-4) for v in rng.integers(-(10**15), 10**15, rows)]
        return pa.array(values, pa.decimal128(20, 4)), True
    if kind == 2:
        return pa.array(rng.random(rows) < 0.5), True
    if kind == 3:
        return pa.array(rng.normal(size=rows).astype(np.float32)), True
    if kind == 4:
        values = [float(v) for v in rng.normal(size=rows)]
        values[int(rng.integers(rows))] = choice(rng, [math.nan, math.inf, None])
        return pa.array(values, pa.float64(), from_pandas=False), False
    if kind == 5:
        return pa.array([row.tolist() for row in rng.normal(size=(rows, 2))]), True
    if kind == 6:
        return pa.array(rng.normal(size=rows).astype(np.float16)), True
    values = rng.integers(0, 2**64, rows, dtype=np.uint64).view(np.float64)
    return pa.array(np.where(np.isfinite(values), values, 0.5)), True


def _ids(rng: Generator, rows: int) -> tuple[Any, bool]:
    """A column of ids, and whether it can be taken."""
    kind = int(rng.integers(6))
    if kind == 0:
        return pa.array(rng.integers(-(2**63), 2**63 - 1, rows)), True
    if kind == 1:
        return pa.array(rng.integers(0, 2**64, rows, dtype=np.uint64)), True
    if kind == 2:
        return pa.array(rng.integers(-5, 5, rows).astype(float)), True
    words: list[Any] = [text(rng) for _ in range(rows)]
    fine = chance(rng, 0.8)
    if not fine:
        words[int(rng.integers(rows))] = choice(rng, ["", "a\0b", None])
    if kind == 3:
        return pa.array([None if w is None else w.encode() for w in words], pa.binary()), fine
    column = pa.array(words, choice(rng, [pa.string(), pa.large_string()]))
    return (column.dictionary_encode() if kind == 4 else column), fine


def warm_up() -> None:
    """Import what reading imports, and start pyarrow's threads."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        try:
            judge(make(rng))
        except (Refused, Wrong):
            continue


TARGET = Target("typed", make, judge, warm_up)
