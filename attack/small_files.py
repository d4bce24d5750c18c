"""Files of preferences and files of scores against the plain readers."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.random import Generator

from attack import plain
from attack.campaign import Refused, Target, Wrong
from attack.cases import chance, choice, damaged, packed, text, unpacked
from attack.letor import decimal
from attack.tables import expect, same
from rankrls import InputError
from rankrls.io import PairsError, load_pairs
from rankrls.io.data import Reading
from rankrls.io.scores import read_scores
from rankrls.io.tables import delimited

__all__ = ["PREFERENCES", "SCORES"]

_OTHERS = dict.fromkeys(map(ord, "\t;|"))  # load_pairs takes the delimiter that its first line has most often
_COLUMNS = ("winner", "loser", "strength", "weight", "group")


def judge_preferences(case: bytes) -> None:
    """Preferences between items with ids or numbers."""
    options, data = unpacked(case)
    bad, right = None, {}
    ids = options["ids"]
    try:
        right = plain.preferences(data, plain.likely_delimiter(data), ids)
    except plain.BadLine as error:
        bad = error
    keywords = {"ids": ids} if isinstance(ids, list) else {"n_items": ids}
    with mock.patch.object(delimited, "_BLOCK", options["block"]), mock.patch.object(delimited, "_BYTES_PER_COLUMN", 1):
        try:
            table = load_pairs(io.BytesIO(data), **keywords)
        except PairsError as error:
            return expect(error, bad)
    if bad is not None:
        raise Wrong(f"read, though line {bad.line} is wrong")
    same("winners", table.winners.tolist(), right["winner"])
    same("losers", table.losers.tolist(), right["loser"])
    for word, found in (("strength", table.strength), ("weight", table.weight), ("group", table.groups)):
        same(word, None if found is None else found.tolist(), right[word])
    return None


def make_preferences(rng: Generator) -> bytes:
    """A table of preferences, damaged in half of the cases."""
    items = int(rng.integers(2, 7))
    by_id = chance(rng, 0.5)
    ids = [f"{k}{text(rng, 4).translate(_OTHERS)}" for k in range(items)] if by_id else items
    words = [w for w in _COLUMNS if w in ("winner", "loser") or chance(rng, 0.5)]
    words = [words[k] for k in rng.permutation(len(words))]
    named = chance(rng, 0.7)
    words = words if named else [*_COLUMNS[: int(rng.integers(2, 5))]]
    lines = [words] if named else []
    for _ in range(int(rng.integers(1, 9))):
        i, j = rng.choice(items, 2, replace=False).tolist()
        cells = {"winner": i, "loser": j} if isinstance(ids, int) else {"winner": ids[i], "loser": ids[j]}
        numbers = {"strength": decimal(rng), "weight": decimal(rng).lstrip("-"), "group": choice(rng, ["a", "", "b c"])}
        lines.append([str({**cells, **numbers}[w]) for w in words])
    quoted = ['"' + cell.replace('"', '""') + '"' if chance(rng, 0.2) else cell for line in lines for cell in line]
    risky = [c if c.startswith('"') and c.endswith('"') and len(c) > 1 else _quoted(c) for c in quoted]
    rows = [risky[k : k + len(words)] for k in range(0, len(risky), len(words))]
    data = choice(rng, ["\n", "\r\n"]).join(",".join(row) for row in rows).encode()
    if chance(rng, 0.5):
        data = damaged(rng, data)
    return packed({"ids": ids, "block": choice(rng, [4, 5, 30, 200, 1 << 20])}, data)


def _quoted(cell: str) -> str:
    special = any(c in '",\r\n' for c in cell) or cell != cell.strip()
    return '"' + cell.replace('"', '""') + '"' if special else cell


def judge_scores(case: bytes) -> None:
    """Scores, one a line."""
    _, data = unpacked(case)
    bad, right = None, []
    try:
        right = plain.scores(data)
    except plain.BadLine as error:
        bad = error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.txt"
        path.write_bytes(data)
        try:
            found = read_scores(path, Reading()).values
        except InputError as error:
            if bad is None:
                raise Wrong(f"refused: {error.problem[:200]}") from None
            if error.file != str(path) or (bad.line is not None and error.line != bad.line):
                raise Wrong(f"line {error.line} is named, not {bad.line}") from None
            raise Refused from None
    if bad is not None:
        raise Wrong(f"read, though line {bad.line} is wrong")
    same("values", found.tobytes(), np.array(right).tobytes())


def make_scores(rng: Generator) -> bytes:
    """Some decimals, damaged in half of the cases."""
    lines = [choice(rng, ["", "", " ", "\t"]) + decimal(rng) for _ in range(int(rng.integers(1, 9)))]
    data = choice(rng, [b"", b"", b"\xef\xbb\xbf"]) + choice(rng, ["\n", "\r\n"]).join(lines).encode()
    data += choice(rng, [b"", b"\n", b"\n\n", b" \n"])
    return packed({}, damaged(rng, data) if chance(rng, 0.6) else data)


def warm_up() -> None:
    """Import what reading imports."""
    load_pairs(io.BytesIO(b"winner,loser\n0,1\n"))
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"1\n")
        file.flush()
        read_scores(Path(file.name), Reading())


PREFERENCES = Target("preferences", make_preferences, judge_preferences, warm_up)
SCORES = Target("scores", make_scores, judge_scores, warm_up, share=0.5)
