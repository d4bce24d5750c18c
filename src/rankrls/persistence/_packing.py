"""Estimators in the form in which they are stored, and back.

Some values are not stored as they are: CSR features (skops would put a compressed archive inside the archive, whose
indices nobody checks), the queries that a model has seen and arrays of words (one line of text instead of an object or
more for each), and metadata requests (they refer back to their estimator, which a tree cannot).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from rankrls.models._updates import SeenQueries

__all__ = ["pack", "unpack"]

_MARK = "rankrls"
_REQUEST = "_metadata_request"
_UPDATES = ("_equations", "_seen", "_basis_parts")
_PLAIN = (str, int, float, bool, type(None))


def pack(estimator: Any, *, updatable: bool) -> Any:
    """A shallow copy of a fitted estimator, or of a pipeline of them, ready to be stored."""
    if not hasattr(estimator, "get_params"):  # a pipeline's step may be the word "passthrough"
        return estimator
    packed = copy.copy(estimator)
    state = vars(packed)
    if isinstance(state.get("steps"), list):
        state["steps"] = [(name, pack(step, updatable=updatable)) for name, step in state["steps"]]
        return packed
    if not updatable:
        for name in _UPDATES:
            state.pop(name, None)
    for name, value in state.items():
        state[name] = _pack_value(value)
    if _REQUEST in state:
        state[_REQUEST] = _pack_requests(state[_REQUEST])
    return packed


def unpack(estimator: Any) -> Any:
    """Undo :func:`pack`, in place."""
    state = getattr(estimator, "__dict__", {})
    if isinstance(state.get("steps"), list):
        state["steps"] = [(name, unpack(step)) for name, step in state["steps"]]
        return estimator
    requests = state.pop(_REQUEST, {})
    for name, value in state.items():
        state[name] = _unpack_value(value)
    if requests:
        restored = estimator._get_metadata_request()
        for method, wanted in requests.items():
            for parameter, alias in wanted.items():
                getattr(restored, method).add_request(param=parameter, alias=alias)
        state[_REQUEST] = restored
    _check_statistics(state)
    return estimator


def _check_statistics(state: dict[str, Any]) -> None:
    """What a query scaler has learned is walked by compiled loops, which do not look where they read."""
    statistics = state.get("_statistics")
    if statistics is None:
        return
    shape = (4, state.get("n_features_in_"))
    if not (isinstance(statistics, np.ndarray) and statistics.dtype == np.float64 and statistics.shape == shape):
        raise ValueError("a scaler's statistics do not fit its features")


def _pack_requests(request: Any) -> dict[str, dict[str, Any]]:
    """What ``set_fit_request`` and its like asked for: a word or a yes or no for each parameter of each method."""
    methods = {name: getattr(part, "requests", None) for name, part in vars(request).items()}
    return {name: dict(requests) for name, requests in methods.items() if requests}


def _pack_value(value: Any) -> Any:
    if sparse.issparse(value):
        return _pack_csr(sparse.csr_array(value))
    if isinstance(value, SeenQueries):
        return _pack_queries(value)
    if isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1:
        plain = all(type(v) in _PLAIN for v in value)
        return {_MARK: "values", "values": json.dumps(value.tolist())} if plain else value
    if type(value) is slice:
        return {_MARK: "slice", "ends": [value.start, value.stop, value.step]}
    if type(value) in (tuple, list) and any(type(inside) in (slice, dict, tuple, list) for inside in value):
        return type(value)(_pack_value(inside) for inside in value)
    if type(value) is dict:
        return {key: _pack_value(inside) for key, inside in value.items()}
    return value


def _unpack_value(value: Any) -> Any:
    if type(value) in (tuple, list) and any(type(inside) in (dict, tuple, list) for inside in value):
        return type(value)(_unpack_value(inside) for inside in value)
    if not isinstance(value, dict):
        return value
    if _MARK in value:
        return _UNPACK[value[_MARK]](value)
    return {key: _unpack_value(inside) for key, inside in value.items()}


def _pack_csr(matrix: sparse.csr_array) -> dict[str, Any]:
    return {
        _MARK: "csr",
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "rows": int(matrix.shape[0]),
        "columns": int(matrix.shape[1]),
    }


def _unpack_csr(value: dict[str, Any]) -> sparse.csr_array:
    matrix = sparse.csr_array(
        (value["data"], value["indices"], value["indptr"]), shape=(value["rows"], value["columns"])
    )
    matrix.check_format(full_check=True)  # products walk the indices without looking
    return matrix


def _pack_queries(seen: SeenQueries) -> dict[str, Any]:
    entries = list(seen.queries.values())
    return {
        _MARK: "queries",
        "ids": json.dumps([_pack_id(i) for i in seen.queries]),
        "rows": np.array([rows for rows, _ in entries], dtype=np.int64),
        "energies": np.array([energy for _, energy in entries], dtype=np.float64),
        "n_rows": int(seen.n_rows),
    }


def _unpack_queries(value: dict[str, Any]) -> SeenQueries:
    ids = [_unpack_id(i) for i in json.loads(value["ids"])]
    entries = zip(value["rows"].tolist(), value["energies"].tolist(), strict=True)
    queries = dict(zip(ids, entries, strict=True))
    if len(queries) != len(ids):
        raise ValueError("a query is listed twice")
    return SeenQueries(queries, int(value["n_rows"]))


def _unpack_values(value: dict[str, Any]) -> np.ndarray[Any, Any]:
    values = json.loads(value["values"])
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


_UNPACK: dict[str, Callable[[dict[str, Any]], Any]] = {
    "csr": _unpack_csr,
    "queries": _unpack_queries,
    "slice": lambda value: slice(*value["ends"]),
    "values": _unpack_values,
}


def _pack_id(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    if type(value) is tuple:
        return [_pack_id(v) for v in value]
    raise ValueError(
        f"The model cannot be saved with its queries: an id is {value!r}, of type {type(value).__name__}, and a model "
        "file holds numbers, strings and tuples of them. save(..., updatable=False) leaves out what partial_fit and "
        "forget need, the ids with it."
    )


def _unpack_id(value: Any) -> Any:
    return tuple(_unpack_id(v) for v in value) if isinstance(value, list) else value
