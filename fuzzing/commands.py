"""Commands in one folder: inputs are kept however they are named, and no order of models or format changes a result."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.random import Generator

from fuzzing.campaign import Refused, Target, Wrong
from fuzzing.cases import chance, choice
from rankrls.cli import main

_INPUTS = {
    "t.csv": ["t.csv"],
    "t.txt": ["t.txt", "t.txt.query"],
    "link": ["shards/part-0.parquet", "shards/part-1.parquet"],
    "shards": ["shards/part-0.parquet", "shards/part-1.parquet"],
    "shards/*.parquet": ["shards/part-0.parquet", "shards/part-1.parquet"],
}
"""Data, and the files that are read with them."""
_COLUMNS = ("--features", "a,b")


@cache
def _files() -> dict[str, bytes]:
    """A table with two labels and two query ids, in every format, and models of both."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, 3, 40) for name in ("one", "two")})
    frame["q"], frame["r"] = np.arange(40) // 8 + 2**60, np.arange(40) // 10 + 2**53
    frame["a"], frame["b"] = rng.normal(size=40) + frame["one"], rng.normal(size=40) + frame["two"]
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        Path("shards").mkdir()
        frame.to_csv("t.csv", index=False)
        for k in (0, 1):
            frame[["one", "q", "a", "b"]][16 * k : 16 + 24 * k].to_parquet(f"shards/part-{k}.parquet", index=False)
        lines = (f"{y} 1:{a} 2:{b}\n" for y, a, b in frame[["one", "a", "b"]].itertuples(index=False))
        Path("t.txt").write_text("".join(lines))
        Path("t.txt.query").write_text("8\n" * 5)
        for label in ("one", "two"):
            for qid in ("q", "r"):
                _run("fit", "t.csv", "--label", label, "--qid", qid, *_COLUMNS, "-m", f"{label}-{qid}.model")
        _run("fit", "t.txt", "-m", "letor.model")
        return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def _run(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([*argv])
    if status not in (0, 2) or "internal error" in err.getvalue():
        raise Wrong(f"{argv}: {status}: {err.getvalue()[-300:]}")
    return status, out.getvalue(), err.getvalue()


def make(rng: Generator) -> bytes:
    """An output that may be an input, or models to compare."""
    data = choice(rng, [*_INPUTS])
    output = choice(rng, [*_files(), "new", "shards/new.parquet", "shards/part-2.parquet"])
    if chance(rng, 0.5):
        output = choice(rng, ["./", "shards/../", "link/../", "/"]) + output
    models = rng.choice([name for name in _files() if name.endswith("-q.model") or name.endswith("-r.model")], 2)
    command = choice(rng, ["predict", "rank", "fit", "convert", "compare"])
    return json.dumps({"command": command, "data": data, "output": output, "models": models.tolist()}).encode()


def judge(case: bytes) -> None:
    """Run the command in a fresh folder."""
    given = json.loads(case)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for path, content in _files().items():
            Path(path).parent.mkdir(exist_ok=True)
            Path(path).write_bytes(content)
        Path("link").symlink_to("shards")
        if given["command"] == "compare":
            _compare(*given["models"])
        else:
            _write(given["command"], given["data"], given["output"].replace("/", f"{name}/", given["output"][0] == "/"))


def _write(command: str, data: str, output: str) -> None:
    model = "letor.model" if data == "t.txt" else "one-q.model"
    roles = () if data == "t.txt" else ("--label", "one", "--qid", "q", *_COLUMNS)
    argv = {
        "fit": ["fit", data, *roles, "-m", output],
        "convert": ["convert", data, output, *roles[:4]],
    }.get(command, [command, model, data, "-o", output])
    read = [*_INPUTS[data], *([model] if command in ("predict", "rank") else [])]
    status, _, printed = _run(*argv)
    lost = [path for path in read if Path(path).read_bytes() != _files()[path]]
    added = [path.name for path in Path("shards").iterdir() if f"shards/{path.name}" not in _files()]
    if lost or (added and data.startswith(("shards", "link")) and any(name.endswith("parquet") for name in added)):
        raise Wrong(f"{argv}: lost {lost}, added {added}")
    if status:
        if "\n" in printed.strip() and "note" not in printed:
            raise Wrong(f"{argv}: {printed}")
        raise Refused


def _compare(one: str, other: str) -> None:
    """Both orders, and both formats, agree."""
    found: list[Any] = []
    for data in ("t.csv", "shards"):
        for pair in ((one, other), (other, one)):
            status, out, printed = _run("compare", data, *pair, "--metrics", "ndcg@5", "--json")
            if status and data == "t.csv" and one != other and not all(name in printed for name in pair):
                raise Wrong(f"the error does not name {pair}: {printed}")
            values = None if status else json.loads(out)["measures"]["ndcg@5"]["values"]
            found.append(values and {name: round(values[name]["value"], 9) for name in sorted(values)})
    if found[0] != found[1] or found[2] != found[3]:
        raise Wrong(f"{one} and {other}: {found}")
    if found[0] is None:
        raise Refused


def warm_up() -> None:
    """Write the files, which compiles the loops."""
    _files()


TARGET = Target("commands", make, judge, warm_up, seconds=60.0)
