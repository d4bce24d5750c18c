"""Finished nodes of the tree of sums, in a folder: a fit that was killed goes on from them.

A node is a ``.npz`` file of plain arrays and one JSON text; nothing in it is code. ``manifest.json`` says of which data
the sums are. The sums of a pass lie in a folder named after what the pass asked for, so that another measure or other
alphas find the normal equations ready.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from rankrls._comparisons import Setting
from rankrls._errors import InputError
from rankrls.equations.normal_equations import NormalEquations
from rankrls.io import atomic_write
from rankrls.problems.primal import EquationsProblem
from rankrls.streaming.engine import version_here
from rankrls.streaming.sums import Answer
from rankrls.streaming.tree import Job, TreeSum

_NODE = re.compile(r"([0-9]+)-([0-9]+)\.npz")


@dataclass(frozen=True)
class Checkpoint:
    """A folder for the sums of one data set."""

    folder: Path

    @classmethod
    def of(cls, path: Any, data: Any) -> Checkpoint:
        """Open a folder, or begin one.

        Raises
        ------
        InputError
            If it holds the sums of other data, or of another version.
        """
        folder = Path(path)
        manifest, now = folder / "manifest.json", _described(data)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if manifest.exists():
                _check_same(json.loads(manifest.read_text("utf-8")), now, folder)
            else:
                with atomic_write(manifest) as file:
                    file.write(json.dumps(now, indent=1).encode())
        except (OSError, ValueError) as error:
            raise _unusable(folder, error) from error
        return cls(folder)

    def nodes(self, name: str, job: Job[Any]) -> Nodes:
        """Where the nodes of one pass are kept."""
        folder = self.folder / f"{name}-{fingerprint(job)[:16]}"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _unusable(self.folder, error) from error
        return Nodes(folder)


@dataclass(frozen=True)
class Nodes:
    """The finished nodes of one pass, ``LEVEL-NUMBER.npz`` each."""

    folder: Path

    def restore(self, tree: TreeSum, numbers: Iterable[int]) -> list[int]:
        """Give the tree the nodes that are there. Returns the parts that are left."""
        left = set(numbers)
        names = (_NODE.fullmatch(path.name) for path in self.folder.iterdir())
        found = sorted(((int(name[1]), int(name[2])) for name in names if name), reverse=True)
        for level, number in found:  # from the top: what lies below a node that is there has been merged
            below = range(number << level, min((number + 1) << level, tree.leaves))
            if left.issuperset(below):
                tree.add(number, self._load((level, number)), level)
                left.difference_update(below)
            else:
                self._path((level, number)).unlink(missing_ok=True)
        return sorted(left)

    def keep(self, tree: TreeSum, done: list[tuple[int, int]]) -> None:
        """Write the highest node that has become complete, then remove those that are in it."""
        level, number = done[-1]
        arrays: dict[str, Any] = {}
        text = json.dumps(_taken_apart(tree.node((level, number)), arrays))
        try:
            with atomic_write(self._path((level, number))) as file:
                np.savez(file, text=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)
            for lower, k in done[:-1]:
                for sibling in (k & ~1, k | 1):
                    self._path((lower, sibling)).unlink(missing_ok=True)
        except OSError as error:
            raise _unusable(self.folder.parent, error) from error

    def _path(self, node: tuple[int, int]) -> Path:
        return self.folder / f"{node[0]}-{node[1]}.npz"

    def _load(self, node: tuple[int, int]) -> Any:
        try:
            with open(self._path(node), "rb") as file, np.load(file, allow_pickle=False) as arrays:
                return _put_together(json.loads(arrays["text"].tobytes()), arrays)
        except (OSError, ValueError, KeyError, TypeError, BadZipFile) as error:
            raise _unusable(self.folder.parent, error) from error


def fingerprint(value: Any) -> str:
    """A hash of everything that a job asks for."""
    out = sha256()

    def add(part: Any) -> None:
        if isinstance(part, np.ndarray):
            out.update(f"{part.dtype}{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        elif is_dataclass(part) and not isinstance(part, type):
            out.update(type(part).__name__.encode())
            for f in fields(part):
                add(getattr(part, f.name))
        elif isinstance(part, EquationsProblem):
            add((part.equations, part.size, part.whitening))
        elif isinstance(part, Mapping):
            add(tuple(part.items()))
        elif isinstance(part, tuple | list):
            out.update(f"{len(part)}(".encode())
            for one in part:
                add(one)
        elif hasattr(part, "tocsr"):
            add((part.indptr, part.indices, part.data))
        else:
            out.update(getattr(part, "__qualname__", repr(part)).encode() + b";")

    add(value)
    return out.hexdigest()


def _described(data: Any) -> dict[str, Any]:
    found = data.describe() if hasattr(data, "describe") else {}
    own = {"rows": data.n_rows, "parts": [int(getattr(address, "rows", 0)) for address in data.parts]}
    return {"rankrls": version_here(), "data": json.loads(json.dumps({**found, **own}))}


def _check_same(then: Any, now: dict[str, Any], folder: Path) -> None:
    if then == now:
        return
    old, new = (value.get("data", {}) for value in (then, now))
    problem, values = "{checkpoint}: the folder holds sums of other data{0}{1}.", ("", "")
    if then.get("rankrls") != now["rankrls"]:
        problem = "{checkpoint}: the folder was written by version {0} of rankrls, this is {1}."
        values = then.get("rankrls"), now["rankrls"]
    elif old.get("files") != new.get("files"):
        before, after = old.get("files") or [], new.get("files") or []
        changed = [file for file in after if file not in before] or [file for file in before if file not in after]
        values = ", or its files have changed: ", changed[0].get("path", changed[0]) if changed else "their order"
    else:
        values = (", or of the same data in other parts", "")
    raise InputError(
        problem, *values, remedy="Take an empty folder, or open the data as then.", parameter="checkpoint",
        file=str(folder),
    )  # fmt: skip


def _unusable(folder: Path, error: Exception) -> InputError:
    if isinstance(error, InputError):
        return error
    return InputError(
        "{checkpoint} cannot be used: {0}.",
        error,
        remedy="Take another folder, with space for the sums; what has been finished there is kept.",
        parameter="checkpoint",
        file=str(folder),
    )


def _taken_apart(value: Any, arrays: dict[str, Any]) -> Any:
    """A value as JSON, with its arrays beside it."""
    if value is None or isinstance(value, str | int | float):  # JSON has their last digit
        return value
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, tuple):
        return [_taken_apart(part, arrays) for part in value]
    if sparse.issparse(value):
        return {"csr": _taken_apart((value.data, value.indices, value.indptr), arrays), "shape": list(value.shape)}
    return {
        "value": type(value).__name__,
        **{f.name: _taken_apart(getattr(value, f.name), arrays) for f in fields(value)},
    }


def _put_together(value: Any, arrays: Any) -> Any:
    if isinstance(value, list):
        return tuple(_put_together(part, arrays) for part in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "csr" in value:
        return sparse.csr_array(_put_together(value["csr"], arrays), shape=tuple(value["shape"]))
    parts = dict(value)
    cls = _values()[parts.pop("value")]
    return cls(**{name: _put_together(part, arrays) for name, part in parts.items()})


def _values(below: type[Any] = Answer) -> dict[str, type[Any]]:
    """What answers are made of, by name: every kind of :class:`Answer`, and two values of other packages."""
    out: dict[str, type[Any]] = {cls.__name__: cls for cls in (below, NormalEquations, Setting)}
    for cls in below.__subclasses__():
        out |= _values(cls)
    return out
