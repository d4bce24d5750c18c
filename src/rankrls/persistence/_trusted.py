"""Which types a model file may hold, and the audit of a skops schema against them.

skops itself trusts every estimator of scikit-learn, and more with each release. A model of this package needs few of
them, so the schema is audited here first, against a list that changes with this file only. ``save`` audits what it is
about to write in the same way: a file that was written can be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

__all__ = ["ESTIMATORS", "TRUSTED", "Finding", "audit"]

ESTIMATORS = (
    "rankrls.models.cg_rankrls.CGRankRLS",
    "rankrls.models.rankboost.RankBoost",
    "rankrls.models.rankrls.RankRLS",
    "rankrls.models.rankrls_cv.RankRLSCV",
    "rankrls.models.transductive.TransductiveRankRLS",
    "rankrls.models.ranking_pursuit.RankingPursuit",
    "rankrls.models.ranksvm.RankSVM",
    "rankrls.models.ranksvm_cv.RankSVMCV",
    "rankrls.models.ranking_pursuit_cv.RankingPursuitCV",
    "rankrls.models.sparse_rankrls.SparseRankRLS",
    "rankrls.models.co_ranking_pursuit.CoRankingPursuit",
    "rankrls.models.sparse_rankrls_cv.SparseRankRLSCV",
    "sklearn.pipeline.Pipeline",
)
"""What a file may hold as its model."""

TRUSTED = (
    *ESTIMATORS,
    "rankrls.kernels.Kernel",
    "rankrls.metrics._measure.Measure",
    "rankrls.preprocessing._scalers.QueryMinMaxScaler",
    "rankrls.preprocessing._scalers.QueryStandardScaler",
    "rankrls.equations.normal_equations.NormalEquations",
    "rankrls.greedy.copursuit.CoPursuitPath",
    "rankrls.greedy.pursuit.PursuitPath",
    "sklearn.preprocessing._data.MaxAbsScaler",
    "sklearn.preprocessing._data.MinMaxScaler",
    "sklearn.preprocessing._data.RobustScaler",
    "sklearn.preprocessing._data.StandardScaler",
    # RankRLSCV(cv=...); a split is an array or one of these.
    "sklearn.model_selection._split.GroupKFold",
    "sklearn.model_selection._split.GroupShuffleSplit",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.LeaveOneGroupOut",
    "sklearn.model_selection._split.PredefinedSplit",
    "sklearn.model_selection._split.ShuffleSplit",
)
"""Types whose instances a file may hold, as skops names them."""

_SCALARS = ("bool", "float32", "float64", "int32", "int64", "str_")
_BY_LOADER = {
    "DictNode": frozenset({"builtins.dict"}),
    "JsonNode": frozenset({"builtins.str"}),
    "ListNode": frozenset({"builtins.list"}),
    "NdArrayNode": frozenset({"numpy.ndarray", *(f"numpy.{name}" for name in _SCALARS)}),
    "ObjectNode": frozenset(TRUSTED),
    "TupleNode": frozenset({"builtins.tuple"}),
}
_KEY_TYPES = frozenset({"builtins.str", "builtins.int", "builtins.float"})
_MAX_DEPTH = 40
_SINGLE = (str, int, float, type(None))


@dataclass(frozen=True)
class Finding:
    """Something that a model file may not hold: where it is, and its type's name."""

    where: str
    name: str


class SchemaError(ValueError):
    """A schema that skops did not write."""


def audit(schema: Any) -> list[Finding]:
    """Everything in a schema that is not among the trusted types. O(nodes), without recursion.

    Raises
    ------
    SchemaError
        Where the schema has not the form that skops gives it.
    """
    findings: list[Finding] = []
    nodes: list[tuple[Any, str, int]] = [(schema, "", 0)]
    while nodes:
        node, where, depth = nodes.pop()
        if depth > _MAX_DEPTH:
            raise SchemaError("the schema is nested too deeply")
        loader, name = _loader_and_name(node)
        if name not in _BY_LOADER.get(loader, ()):
            findings.append(Finding(where, name))
            continue
        nodes.extend((child, _join(where, key), depth + 1) for key, child in _children(node, loader))
        if loader == "DictNode":
            findings.extend(_check_key_types(node, where))
        elif loader == "JsonNode" and not isinstance(json.loads(node["content"]), _SINGLE):
            raise SchemaError("the schema has a structure where a single value should be")
    return findings[::-1]


def root_name(schema: Any) -> str:
    """Name of the type of the object that a schema describes."""
    return _loader_and_name(schema)[1]


def _loader_and_name(node: Any) -> tuple[str, str]:
    try:
        loader, module, name = node["__loader__"], node["__module__"], node["__class__"]
    except (TypeError, KeyError):
        raise SchemaError("the schema is not a description of objects") from None
    if not (isinstance(loader, str) and isinstance(module, str) and isinstance(name, str)):
        raise SchemaError("the schema names a type by something that is no name")
    return loader, f"{module}.{name}"


def _children(node: dict[str, Any], loader: str) -> list[tuple[str, Any]]:
    """The nodes inside a node, each with the name of its place."""
    content = node.get("content")
    if loader == "DictNode":
        if not isinstance(content, dict):
            raise SchemaError("the schema has a dictionary without entries")
        return [(f".{key}", child) for key, child in content.items()]
    if loader in ("ListNode", "TupleNode") or (loader == "NdArrayNode" and node.get("type") == "json"):
        if not isinstance(content, list):
            raise SchemaError("the schema has a list without entries")
        inside = [(f"[{k}]", child) for k, child in enumerate(content)]
        return inside if loader != "NdArrayNode" else [*inside, ("", node.get("shape"))]
    if loader == "ObjectNode" and content is not None:
        return [("", content)]
    return []


def _check_key_types(node: dict[str, Any], where: str) -> list[Finding]:
    """Keys are turned into their type by calling it: it must be one of three."""
    types: Any = node.get("key_types")
    if _loader_and_name(types) != ("ListNode", "builtins.list"):
        raise SchemaError("the schema has a dictionary without key types")
    entries = types["content"]
    if not isinstance(entries, list) or len(entries) != len(node["content"]):
        raise SchemaError("the schema has a dictionary whose keys and key types differ in number")
    out = []
    for entry in entries:
        loader, name = _loader_and_name(entry)
        if loader != "TypeNode" or name not in _KEY_TYPES:
            out.append(Finding(_join(where, ".keys"), name))
    return out


def _join(where: str, key: str) -> str:
    return (where + key).lstrip(".")
