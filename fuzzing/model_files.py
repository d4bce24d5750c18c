"""Model files taken apart, changed and put together again."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

DOCUMENT = "model.json"


def members(content: bytes) -> dict[str, bytes]:
    """The members of an archive by name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {m.filename: archive.read(m) for m in archive.infolist()}


def archived(parts: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
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


def header(descr: str = "'<f8'", order: str = "False", shape: str = "(2,)", data: bytes = b"") -> bytes:
    """A member of numpy's format that claims what one likes."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


class Changed:
    """A model file whose document and arrays can be changed."""

    def __init__(self, content: bytes) -> None:
        self.parts = members(content)
        self.document = json.loads(self.parts.pop(DOCUMENT))

    @property
    def state(self) -> Any:
        """The attributes of the model."""
        return self.document["model"]["state"]

    def array(self, name: str) -> NDArray[Any]:
        """The array of a member."""
        found: NDArray[Any] = np.load(io.BytesIO(self.parts[name]))
        return found

    def content(self) -> bytes:
        """The file."""
        return archived({**self.parts, DOCUMENT: json.dumps(self.document).encode()})


def paths_of(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Ways to all nodes of a tree."""
    yield path
    inside = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in inside:
        yield from paths_of(child, (*path, key))


def hostile_nodes() -> Iterator[dict[str, Any]]:
    """Ways to have something called or imported by those who would look names up."""
    for name in ("os.system", "builtins.eval", "subprocess.Popen", "functools.partial", "antigravity", "save", "Ridge"):
        yield {"object": name, "state": {"args": {"tuple": ["echo pwned > pwned"]}}}
    yield {"object": "rankrls.models.rankrls.RankRLS", "state": {}}
