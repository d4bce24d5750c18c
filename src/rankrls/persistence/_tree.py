"""A model as a tree of JSON, and back: what cannot be expressed here cannot be in a file.

Null, booleans, integers, finite floats, strings and lists stand for themselves. Every other value is a JSON object:

=====================================================  ================================================
``{"float": "nan"}``                                   NaN and the infinities
``{"tuple": [...]}``, ``{"dict": [[key, value], ..]}``  containers
``{"scalar": "float64", "value": ...}``                a numpy scalar
``{"array": "3.npy"}``                                 an array of numbers or text
``{"objects": [...], "shape": [...]}``                 an array of objects, such as names
``{"csr": [...], "shape": [...]}``                     a sparse array: data, indices and indptr
``{"type": "numpy.float64"}``, ``{"dtype": "<f8"}``     a type of numbers, out of a fixed list
``{"slice": [start, stop, step]}``                     a slice
``{"function": "sklearn.feature_selection.chi2"}``     a function, out of a fixed list
``{"object": "rankrls.RankRLS", "state": {...}}``      an object of a registered class
=====================================================  ================================================

No node refers to another, and no array is named twice, so that a file cannot stand for more than it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls.persistence._archive import ModelArchive, ModelFileError, is_storable
from rankrls.persistence._checks import distinct
from rankrls.persistence._kinds import public_object
from rankrls.persistence._registry import FUNCTIONS, registered, restored

_MAX_DEPTH = 60
_MAX_NODES = 50_000_000
_SIZES = (8, 16, 32, 64)
_NUMBERS = ("bool", *(f"{kind}{size}" for kind in ("int", "uint") for size in _SIZES), "float16", "float32", "float64")
_SCALARS = {name: getattr(np, name) for name in (*_NUMBERS, "str_")}
_TYPES = {
    **{kind.__name__: kind for kind in (bool, int, float, str, object)},
    **{f"numpy.{name}": kind for name, kind in _SCALARS.items()},
}
_NOT_FINITE = {name: float(name) for name in ("nan", "inf", "-inf")}


class Unstorable(Exception):  # noqa: N818
    """A value that no model file can hold: where it is in the model, and what it is."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what)
        self.where, self.what = where, what


class Encoder:
    """Turns values into nodes, and collects their arrays.

    Parameters
    ----------
    leave_out : collection of str
        Attributes of objects that are not stored.
    """

    def __init__(self, leave_out: tuple[str, ...] = ()) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._leave_out = leave_out

    def node(self, value: Any, where: str = "", depth: int = 0) -> Any:
        """The node of a value.

        Raises
        ------
        Unstorable
        ModelFileError
            If an object holds a value that :func:`decoded` would refuse.
        """
        if depth > _MAX_DEPTH:
            raise Unstorable(where, "nested too deeply")
        inside = lambda value, place: self.node(value, where + place, depth + 1)
        items = lambda values: [inside(v, f"[{k}]") for k, v in enumerate(values)]
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is list:
            return items(value)
        if kind is tuple:
            return {"tuple": items(value)}
        if kind is dict:
            return {"dict": [[inside(k, f".{k}"), inside(v, f".{k}")] for k, v in value.items()]}
        if kind is slice:
            return {"slice": items((value.start, value.stop, value.step))}
        if kind is _SCALARS.get(kind.__name__):
            return {"scalar": kind.__name__, "value": inside(value.item(), "")}
        if kind in (np.ndarray, np.memmap):
            if value.dtype == object:
                return {"objects": items(value.ravel()), "shape": list(value.shape)}
            return self._array(value, where)
        if sparse.issparse(value):
            matrix = sparse.csr_array(value)
            parts = (matrix.data, matrix.indices, matrix.indptr)
            return {"csr": [self._array(part, where) for part in parts], "shape": [int(n) for n in matrix.shape]}
        if isinstance(value, np.dtype) and (is_storable(value) or value.str == "|O"):
            return {"dtype": value.str}
        if kind is type:
            for name, known in _TYPES.items():
                if value is known:
                    return {"type": name}
        if (function := _function_name(value)) is not None:
            return {"function": function}
        return self._object(value, where, depth)

    def _array(self, value: NDArray[Any], where: str) -> dict[str, str]:
        if not is_storable(value.dtype):
            raise Unstorable(where, f"an array of {value.dtype}")
        self.arrays.append(value)
        return {"array": f"{len(self.arrays) - 1}.npy"}

    def _object(self, value: Any, where: str, depth: int) -> dict[str, Any]:
        found = registered(value)
        if found is None:
            raise Unstorable(where, _described(value))
        state = {name: part for name, part in found.take(value).items() if name not in self._leave_out}
        prefix = f"{where}." if where else ""
        nodes = {name: self.node(part, prefix + name, depth + 1) for name, part in state.items()}
        found.verify(state)  # what is written can be read
        return {"object": found.name, "state": nodes}


def decoded(node: Any, archive: ModelArchive) -> Any:
    """The value of a node. Every array of the archive must be named in it, once.

    Raises
    ------
    ModelFileError
        Where a node has no form that :class:`Encoder` gives one, or a value is not what its class asks for.
    """
    value = _Decoder(archive).value(node, 0)
    archive.check_all_read()
    return value


class _Decoder:
    def __init__(self, archive: ModelArchive) -> None:
        self._archive = archive
        self._nodes = 0
        self._forms: dict[frozenset[str], Callable[[dict[str, Any], int], Any]] = {
            frozenset({"float"}): lambda node, depth: _NOT_FINITE[node["float"]],
            frozenset({"tuple"}): lambda node, depth: tuple(self.values(node["tuple"], depth)),
            frozenset({"dict"}): lambda node, depth: self.mapping(node["dict"], depth),
            frozenset({"slice"}): lambda node, depth: slice(*self.values(node["slice"], depth)),
            frozenset({"scalar", "value"}): self.scalar,
            frozenset({"array"}): lambda node, depth: self._archive.array(node["array"]),
            frozenset({"objects", "shape"}): self.objects,
            frozenset({"csr", "shape"}): self.csr,
            frozenset({"type"}): lambda node, depth: _TYPES[node["type"]],
            frozenset({"dtype"}): lambda node, depth: _dtype(node["dtype"]),
            frozenset({"function"}): lambda node, depth: _function(node["function"]),
            frozenset({"object", "state"}): self.object,
        }

    def value(self, node: Any, depth: int) -> Any:
        self._nodes += 1
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            raise ModelFileError("nests its values too deeply, or has too many.")
        if isinstance(node, list):
            return self.values(node, depth)
        if isinstance(node, dict):
            form = self._forms.get(frozenset(node))
            if form is None:
                raise ModelFileError("has a value of the unknown form {0}.", repr(sorted(node))[:80])
            return form(node, depth)
        if isinstance(node, float) and not math.isfinite(node):
            raise ModelFileError("has a number that is too large.")
        return node

    def values(self, nodes: Any, depth: int) -> list[Any]:
        return [self.value(node, depth + 1) for node in _list(nodes)]

    def mapping(self, pairs: Any, depth: int) -> dict[Any, Any]:
        entries = [self.values(pair, depth) for pair in _list(pairs)]
        return distinct([key for key, _ in entries], [value for _, value in entries])

    def scalar(self, node: dict[str, Any], depth: int) -> Any:
        value = self.value(node["value"], depth + 1)
        out = _SCALARS[node["scalar"]](value)
        if out.item() != value and value == value:
            raise ModelFileError("has the number {0}, which is no {1}.", repr(value)[:40], node["scalar"])
        return out

    def objects(self, node: dict[str, Any], depth: int) -> NDArray[Any]:
        values, shape = self.values(node["objects"], depth), _list(node["shape"])
        out = np.empty(len(values), dtype=object)
        for k, value in enumerate(values):
            out[k] = value
        return out.reshape([_size(n) for n in shape])

    def csr(self, node: dict[str, Any], depth: int) -> Any:
        data, indices, indptr = self.values(node["csr"], depth)
        rows, columns = (_size(n) for n in _list(node["shape"]))
        matrix = sparse.csr_array((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)  # products walk the indices without looking
        return matrix

    def object(self, node: dict[str, Any], depth: int) -> Any:
        name, state = node["object"], node["state"]
        if not isinstance(state, dict):
            raise ModelFileError("has an object without attributes.")
        return restored(name, {key: self.value(part, depth + 1) for key, part in state.items()})


def _list(nodes: Any) -> list[Any]:
    if not isinstance(nodes, list):
        raise ModelFileError("has {0} where a list should be.", repr(nodes)[:80])
    return nodes


def _size(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ModelFileError("has {0} where the size of an array should be.", repr(value)[:80])
    return value


def _dtype(name: Any) -> np.dtype[Any]:
    dtype = np.dtype(name) if isinstance(name, str) else None
    if dtype is None or not (is_storable(dtype) or dtype.str == "|O"):
        raise ModelFileError("has the type {0}, which no rankrls model has.", repr(name)[:80])
    return dtype


def _function_name(value: Any) -> str | None:
    """The public name of a function of the fixed list."""
    candidates = [name for name in FUNCTIONS if name.rpartition(".")[2] == getattr(value, "__name__", "")]
    return next((name for name in candidates if public_object(name) is value), None)


def _function(name: Any) -> Any:
    if name not in FUNCTIONS:
        raise ModelFileError("has the function {0}, which no rankrls model has.", repr(name)[:80])
    return public_object(name)


def _described(value: Any) -> str:
    """What a value is, for a message."""
    name = getattr(value, "__qualname__", getattr(value, "__name__", None))
    if name is not None and callable(value):
        return f"the function {name!r}" if not isinstance(value, type) else f"the class {name!r}"
    return f"a {type(value).__name__}"
