"""Data sets in several files, read a part at a time, against the readers that hold a file whole."""

from __future__ import annotations

import io
import re
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from scipy import sparse

from attack.campaign import Refused, Target, Wrong
from attack.cases import chance, choice, damaged, packed, unpacked
from attack.letor import decimal
from rankrls._errors import InputError
from rankrls.io import LetorError, TableError, load_letor, load_table, open_dataset

__all__ = ["TARGET"]

_WIDE = 10_000
_Rows = tuple[Any, Any, list[str]]


def judge(case: bytes) -> None:
    """Read the files whole, then part by part."""
    options, data = unpacked(case)
    contents = [data[a:b] for a, b in zip([0, *options["cuts"]], [*options["cuts"], len(data)], strict=True)]
    try:
        right = _letor(contents) if options["ending"] == "txt" else _table(contents)
    except (LetorError, TableError):
        right = None
    names = [] if right is None else [name for name, _ in groupby(right[2])]
    if len(set(names)) < len(names):
        right = None  # a query comes back after another one
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{k}.{options['ending']}") for k in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        try:
            found = _by_parts(paths, options["rows_per_part"])
        except (InputError, LetorError, TableError) as error:
            if right is not None:
                raise Wrong(f"refused: {str(error)[:200]}") from None
            if not str(error) or "\n" in str(error):
                raise Wrong(f"the error is {str(error)[:100]!r}") from None
            raise Refused from None
    if right is None:
        raise Wrong("read, though the files are wrong")
    X, y, queries = right
    for what, one, other in (("y", found[1], y), ("X", found[0], X)):
        if one.shape != other.shape or _bytes_of(one) != _bytes_of(other):
            raise Wrong(f"{what} differs")
    if found[2] != queries:
        raise Wrong(f"the queries are {found[2]!r:.100}, not {queries!r:.100}")


def _letor(contents: list[bytes]) -> _Rows:
    data = contents[0] + b"".join(content.removeprefix(b"\xef\xbb\xbf") for content in contents[1:])
    table = load_letor(io.BytesIO(data), dense=not re.search(rb"[0-9]{5}:", data))
    if table.qid is None:
        raise LetorError("no query ids", file="data", line=1)
    return _dense(table.X), table.y, [str(name) for name in table.qid.tolist()]


def _dense(X: Any) -> Any:
    """An array, unless it would be too wide; -0.0 stays what it is, which ``toarray`` does not promise."""
    if isinstance(X, np.ndarray) or X.shape[1] > _WIDE:
        return X
    out = np.zeros(X.shape, dtype=X.dtype)
    out[np.repeat(np.arange(len(out)), np.diff(X.indptr)), X.indices] = X.data
    return out


def _bytes_of(array: Any) -> list[bytes]:
    parts = (
        [array] if isinstance(array, np.ndarray) else [array.data, array.indices.astype(int), array.indptr.astype(int)]
    )
    return [part.tobytes() for part in parts]


def _table(contents: list[bytes]) -> _Rows:
    tables = [load_table(io.BytesIO(content), delimiter=",") for content in contents]
    if any(table.qid is None or table.y is None for table in tables):
        raise TableError("no query ids or labels", file="data")
    if any(table.feature_names != tables[0].feature_names for table in tables):
        raise TableError("other names", file="data")
    queries = [str(name) for table in tables for name in (table.qid if table.qid is not None else ()).tolist()]
    return np.concatenate([table.X for table in tables]), np.concatenate([table.y for table in tables]), queries


def _by_parts(paths: list[Path], rows: int) -> _Rows:
    """All rows, as the parts have them; the parts' own numbers are checked on the way."""
    data = open_dataset([str(path) for path in paths], rows_per_part=rows)
    X, y, queries, row, query = [], [], [], 0, -1
    for number, address in enumerate(data.parts):
        part = data.read(address, names=True)
        own, at = np.unique(part.query, return_inverse=True)
        first = query if part.piece is not None and part.piece.index > 0 else query + 1
        right = part.number == number and part.first_row == row and len(part.y) <= rows
        right = right and own.tolist() == list(range(first, first + len(own))) and (np.diff(part.query) >= 0).all()
        if not right:
            raise Wrong(f"part {number} is not where it should be")
        if part.piece is not None and (len(own) != 1 or part.piece.query != own[0]):
            raise Wrong("a piece of several queries")
        row, query = row + len(part.y), int(own[-1])
        X.append(_dense(part.X))
        y.append(part.y)
        queries += [part.query_names[k] for k in at]
    if row != data.n_rows or query + 1 != data.n_queries:
        raise Wrong("the parts are not the whole")
    whole = np.concatenate(X) if isinstance(X[0], np.ndarray) else sparse.csr_array(sparse.vstack(X))
    return whole, np.concatenate(y), queries


def make(rng: Generator) -> bytes:
    """Some queries of some rows in one to three files, cut between any two lines; every seventh file is damaged."""
    ending = choice(rng, ["txt", "csv"])
    n = int(rng.integers(1, 4))
    lines = []
    for q in range(int(rng.integers(1, 6))):
        name = choice(rng, [str(q), f"q{q}", f"0{q}", str(q - 2), "1"] if chance(rng, 0.1) else [f"{q}"])
        for _ in range(int(rng.integers(1, 6))):
            values = [decimal(rng) for _ in range(n)]
            if ending == "txt":
                cells = " ".join(f"{j + 1}:{v}" for j, v in enumerate(values) if chance(rng, 0.8))
                lines.append(f"{int(rng.integers(3))} qid:{name} {cells}{choice(rng, ['', ' # d', ' '])}")
            else:
                lines.append(",".join([str(int(rng.integers(3))), name, *values]))
    header = "" if ending == "txt" else ",".join(["label", "qid", *(f"f{j}" for j in range(n))]) + "\n"
    places = sorted(int(at) for at in rng.integers(1, len(lines) + 1, int(rng.integers(0, 3))))
    contents = []
    for a, b in zip([0, *places], [*places, len(lines)], strict=True):
        content = (header + "".join(line + choice(rng, ["\n", "\n", "\r\n"]) for line in lines[a:b])).encode()
        contents.append(damaged(rng, content, 1) + b"\n" if chance(rng, 0.15) else content)
    if chance(rng, 0.2):
        contents[-1] = contents[-1].rstrip(b"\r\n")
    cuts = np.cumsum([len(content) for content in contents])[:-1].tolist()
    options = {"ending": ending, "cuts": cuts, "rows_per_part": int(rng.integers(1, 9))}
    return packed(options, b"".join(contents))


def warm_up() -> None:
    """Compile the loops, and import what reading imports."""
    judge(packed({"ending": "txt", "cuts": [], "rows_per_part": 1}, b"1 qid:a 2:1 1:0.1\n"))
    judge(packed({"ending": "csv", "cuts": [], "rows_per_part": 1}, b"label,qid,f\n1,a,2\n"))


TARGET = Target("datasets", make, judge, warm_up)
