"""Model files taken apart, changed and put together again with checksums that are right."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Changed", "archived", "described", "header", "hostile_nodes", "members", "npy", "paths_of"]


def members(content: bytes) -> dict[str, bytes]:
    """The members of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {m.filename: archive.read(m) for m in archive.infolist()}


def archived(parts: dict[str, bytes | str], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of members; the same members give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in parts.items():
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return out.getvalue()


def npy(array: NDArray[Any]) -> bytes:
    """An array in numpy's format."""
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def header(text: bytes, data: bytes = b"") -> bytes:
    """A member of numpy's format with a header of one's own."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def described(descr: str = "'<f8'", order: str = "False", shape: str = "(2,)") -> bytes:
    """The text of such a header."""
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117).encode() + b"\n"


class Changed:
    """A model file whose tree and arrays can be changed."""

    def __init__(self, content: bytes) -> None:
        self.parts: dict[str, Any] = {**members(content)}
        self.document = json.loads(self.parts["model.json"])
        self.root = self.document["model"]

    @property
    def state(self) -> Any:
        """The attributes of the model, or of a pipeline's last step."""
        state = self.root["state"]
        return state["steps"][-1]["tuple"][1]["state"] if "steps" in state else state

    def array(self, node: dict[str, str]) -> NDArray[Any]:
        """The array that a node names."""
        found: NDArray[Any] = np.load(io.BytesIO(self.parts[node["array"]]))
        return found

    def put(self, node: dict[str, str], array: NDArray[Any]) -> None:
        """Another array in the place of the one that a node names."""
        self.parts[node["array"]] = npy(array)

    def add(self, array: NDArray[Any]) -> dict[str, str]:
        """The node of one more array."""
        name = f"{len(self.parts)}.npy"
        self.parts[name] = npy(array)
        return {"array": name}

    def content(self) -> bytes:
        """The file."""
        return archived({**self.parts, "model.json": json.dumps(self.document)})


def paths_of(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Ways to all nodes of a tree."""
    yield path
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in inside:
        yield from paths_of(child, (*path, key))


def hostile_nodes() -> Iterator[tuple[str, dict[str, Any]]]:
    """Ways to have something called or imported by those who would look names up."""
    for name in ("os.system", "builtins.eval", "subprocess.Popen", "numpy.absolute", "functools.partial"):
        yield name, {"object": name, "state": {"args": {"tuple": ["echo pwned > pwned"]}}}
    yield "sklearn.linear_model.Ridge", {"object": "sklearn.linear_model.Ridge", "state": {}}
    yield "rankrls.models.families.base.Ranker", {"object": "rankrls.models.families.base.Ranker", "state": {}}
    yield "rankrls.models.rankrls.RankRLS", {"object": "rankrls.models.rankrls.RankRLS", "state": {}}
    yield "this", {"object": "this.s", "state": {}}
    yield "antigravity", {"object": "antigravity", "state": {}}
