"""A model as plain JSON, and back: what cannot be expressed here cannot be in a file.

Null, booleans, whole numbers, finite floats, texts and lists stand for themselves. Every other value is a JSON object:

=====================================================  ================================================
``{"float": "nan"}``                                   NaN and the infinities
``{"tuple": [...]}``                                   a tuple
``{"dict": {...}}``, ``{"pairs": [[key, value], ..]}``  a dictionary, whose keys are texts, or are not
``{"array": "3.npy"}``                                 an array of numbers
``{"objects": [...], "shape": [...]}``                 an array of texts or other objects, such as names
``{"csr": [...], "shape": [...]}``                     a sparse array: data, indices and indptr
``{"object": "RankRLS", "state": {...}}``              an object of a listed class
=====================================================  ================================================

No array is named twice and nothing refers to anything else, so a file cannot stand for more than it holds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls.persistence._archive import ModelArchive, is_storable
from rankrls.persistence._registry import is_listed, restored, state_of

_MAX_DEPTH = 60


class Unstorable(Exception):  # noqa: N818
    """A value that no model file can hold: where it is in the model, and what it is."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what)
        self.where, self.what = where, what


class Encoder:
    """Turns values into JSON, and collects their arrays. Attributes in ``leave_out`` are not stored."""

    def __init__(self, leave_out: tuple[str, ...] = ()) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._leave_out = leave_out

    def node(self, value: Any, where: str = "", depth: int = 0) -> Any:
        """The JSON of a value; :class:`Unstorable` if there is none."""
        if depth > _MAX_DEPTH:
            raise Unstorable(where, "nested too deeply")
        if isinstance(value, np.generic):
            value = value.item()
        kind = type(value)
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return value
        if kind is float:
            return {"float": repr(value)}
        if kind is list:
            return self._nodes(value, where, depth)
        if kind is tuple:
            return {"tuple": self._nodes(value, where, depth)}
        if kind is slice:
            return {"slice": self._nodes((value.start, value.stop, value.step), where, depth)}
        if kind is dict:
            if all(type(key) is str for key in value):
                return {"dict": {key: self.node(part, f"{where}.{key}", depth + 1) for key, part in value.items()}}
            return {"pairs": [self._nodes(pair, where, depth + 1) for pair in value.items()]}
        if kind in (np.ndarray, np.memmap):
            if value.dtype.kind in "OU":
                return {"objects": self._nodes(value.ravel().tolist(), where, depth), "shape": list(value.shape)}
            return self._array(value, where)
        if sparse.issparse(value):
            matrix = sparse.csr_array(value)
            parts = (matrix.data, matrix.indices, matrix.indptr)
            return {"csr": [self._array(part, where) for part in parts], "shape": [int(n) for n in matrix.shape]}
        if not is_listed(value):
            name = getattr(value, "__qualname__", getattr(value, "__name__", None))
            raise Unstorable(where, f"a {kind.__name__}" if name is None else f"the {kind.__name__} {name!r}")
        state = {name: part for name, part in state_of(value).items() if name not in self._leave_out}
        prefix = f"{where}." if where else ""
        nodes = {name: self.node(part, prefix + name, depth + 1) for name, part in state.items()}
        return {"object": kind.__name__, "state": nodes}

    def _nodes(self, values: Any, where: str, depth: int) -> list[Any]:
        return [self.node(part, f"{where}[{k}]", depth + 1) for k, part in enumerate(values)]

    def _array(self, value: NDArray[Any], where: str) -> dict[str, str]:
        if not is_storable(value.dtype):
            raise Unstorable(where, f"an array of {value.dtype}")
        self.arrays.append(value)
        return {"array": f"{len(self.arrays) - 1}.npy"}


def decoded(node: Any, archive: ModelArchive, depth: int = 0) -> Any:
    """The value of a node; any exception if it has none."""
    if depth > _MAX_DEPTH:
        raise ValueError("its values are nested too deeply")

    def inside(part: Any) -> Any:
        return decoded(part, archive, depth + 1)

    if isinstance(node, list):
        return [inside(part) for part in node]
    if isinstance(node, float) and not math.isfinite(node):
        raise ValueError("it has a number that is too large")
    if not isinstance(node, dict):
        return node
    match node:
        case {"float": "nan" | "inf" | "-inf" as name}:
            return float(name)
        case {"tuple": list(parts)}:
            return tuple(map(inside, parts))
        case {"slice": [int() | None as start, int() | None as stop, int() | None as step]}:
            return slice(start, stop, step)
        case {"dict": dict(parts)}:
            return {key: inside(part) for key, part in parts.items()}
        case {"pairs": list(pairs)}:
            return dict(map(inside, pairs))
        case {"array": name}:
            return archive.array(name)
        case {"objects": list(parts), "shape": list(shape)}:
            if max(shape, default=0) > len(parts):
                raise ValueError("an array of objects claims to be larger than it is")
            values = np.empty(len(parts), dtype=object)
            for k, part in enumerate(parts):
                values[k] = inside(part)
            return values.reshape(shape)
        case {"csr": list(parts), "shape": [int(rows), int(columns)]}:
            matrix = sparse.csr_array(tuple(map(inside, parts)), shape=(rows, columns))
            matrix.check_format(full_check=True)  # products walk the indices without looking
            return matrix
        case {"object": name, "state": dict(state)}:
            return restored(name, {key: inside(part) for key, part in state.items()})
    raise ValueError(f"it has a value of the unknown form {sorted(node)!r}"[:120])
