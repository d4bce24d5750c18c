"""The classes whose objects a model file may hold, by the names that stand in files.

A class that is not listed can be neither saved nor loaded. Where a class is defined does not matter to a file.
"""

from __future__ import annotations

import dataclasses
import inspect
from importlib import import_module
from typing import Any

from sklearn.base import BaseEstimator

import rankrls

VALUES = {
    "Kernel": "rankrls.kernels",
    "Measure": "rankrls.metrics",
    "ColumnUse": "rankrls.preprocessing",
    **dict.fromkeys(("Numbers", "Categories", "Texts", "Vocabulary"), "rankrls.preprocessing._encodings"),
    "PursuitPath": "rankrls.learners.paths",
    "CoPursuitPath": "rankrls.learners.paths",
    "ForwardPath": "rankrls.learners.greedy",
}
"""Values that a fitted estimator may hold, frozen dataclasses, and their modules."""

_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "QuantileTransformer")
_HOMES = {
    **dict.fromkeys(rankrls.__all__, "rankrls"),
    **dict.fromkeys(("QueryMinMaxScaler", "QueryStandardScaler", "TableEncoder"), "rankrls.preprocessing"),
    **dict.fromkeys(_SCALERS, "sklearn.preprocessing"),
    "Pipeline": "sklearn.pipeline",
    **VALUES,
}
NAMES = tuple(_HOMES)
"""Every name that a file may give a class."""

_SKIPPED = ("_metadata_request",)  # what set_fit_request asked for; a loaded model routes what it does by default


def class_of(name: Any) -> type:
    """The class of a name; a ValueError if the name is not listed."""
    found = getattr(import_module(_HOMES[name]), name) if isinstance(name, str) and name in _HOMES else None
    if not isinstance(found, type) or not (issubclass(found, BaseEstimator) or dataclasses.is_dataclass(found)):
        raise ValueError(f"it names {str(name)[:80]!r}, which is not among the classes that a model file may hold")
    return found


def is_listed(value: Any) -> bool:
    """Whether a file may hold an object: its class, exactly, is listed."""
    try:
        return class_of(type(value).__name__) is type(value)
    except ValueError:
        return False


def state_of(value: Any) -> dict[str, Any]:
    """What is stored of an object: the fields of a dataclass, and all attributes of an estimator."""
    cls = type(value)
    if not issubclass(cls, BaseEstimator):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    return {name: part for name, part in vars(value).items() if name not in _SKIPPED and _is_free(cls, name)}


def restored(name: Any, state: dict[str, Any]) -> Any:
    """The object of a class: made of its parameters, with its other attributes set as they were."""
    cls = class_of(name)
    if not issubclass(cls, BaseEstimator):
        return cls(**state)
    known = inspect.signature(cls).parameters
    out = cls(**{name: part for name, part in state.items() if name in known})
    for attribute, part in state.items():
        if not _is_free(cls, attribute):
            raise ValueError(f"it sets {cls.__name__}.{attribute[:80]}, which is no attribute of a fitted model")
        vars(out)[attribute] = part
    return out


def _is_free(cls: type, name: str) -> bool:
    """Whether an object may have an attribute of its own: no method, property or other name of Python's."""
    return (
        name.isidentifier()
        and not name.startswith("__")
        and not hasattr(inspect.getattr_static(cls, name, None), "__get__")
    )
