"""A table's columns as inputs of an ONNX graph, encoded there as a TableEncoder does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.preprocessing import EncodedFeature

_CATEGORIES = ("category", "none", "other")


def encoded_inputs(graph: Any, encoder: Any) -> tuple[str, list[Any], list[str]]:
    """Nodes that encode columns; the name of their result of shape (rows, n), the graph's inputs, and notes.

    Raises
    ------
    InputError
        For columns of texts, which the graph's operators cannot take to words.
    """
    texts = [use.name for use in encoder.columns_ if use.kind in ("text", "query text")]
    if texts:
        raise InputError(
            "ONNX has no operator for the words of {0}.",
            " and ".join(map(repr, texts)),
            remedy="Leave the columns out ({ignore}).",
            parameter="model",
            column=texts[0],
        )
    kinds = graph.onnx.TensorProto
    inputs, blocks = [], []
    value_info = graph.onnx.helper.make_tensor_value_info
    for use in encoder.columns_:
        if use.kind == "unused":
            continue
        kind = kinds.STRING if use.kind == "category" else kinds.DOUBLE
        size = encoder.lists_[use.name].n_features_in_ if use.kind == "list" else 1
        inputs.append(value_info(use.name, kind, ["rows", size]))
    by_column = lambda feature: (feature.column, feature.kind in _CATEGORIES)
    for (name, categories), features in groupby(encoder.features_, key=by_column):
        make = _one_hot if categories else _numbers if name not in encoder.lists_ else _list
        blocks.append(make(graph, name, [*features]))
    notes = ["Each column that is used is an input of shape (rows, 1): numbers float64, NaN where they are missing;"]
    if encoder.lists_:
        notes.append("lists of numbers likewise, of shape (rows, numbers);")
    notes.append("categories strings without blanks around them, empty where they are missing; dates days since 1970.")
    return graph.add("Concat", *blocks, axis=1), inputs, [" ".join(notes)]


def _one_hot(graph: Any, column: str, features: Sequence[EncodedFeature]) -> str:
    known = [feature.value for feature in features if feature.kind != "other"]
    shape = graph.integers(-1, max(len(known), 1))
    # The operator needs a word: one that no cell has, if all categories are rare.
    hot = graph.add("OneHotEncoder", column, domain="ai.onnx.ml", cats_strings=known or ["\0"], zeros=1)
    out = graph.add("Reshape", graph.add("Cast", hot, to=graph.onnx.TensorProto.DOUBLE), shape)
    if len(known) == len(features):
        return out
    total = graph.add("ReduceSum", out, graph.integers(1), keepdims=1)
    other = graph.add("Sub", graph.number(1.0), total)
    return graph.add("Concat", out, other, axis=1) if known else other


def _list(graph: Any, column: str, features: Sequence[EncodedFeature]) -> str:
    fills = graph.constant(np.array([[feature.fill for feature in features if feature.kind == "element"]]))
    missing = graph.add("IsNaN", column)
    out: str = graph.add("Where", missing, fills, column)
    if features[-1].kind != "missing":
        return out
    first = graph.add("Gather", missing, graph.integers(0), axis=1)
    return graph.add("Concat", out, graph.add("Cast", first, to=graph.onnx.TensorProto.DOUBLE), axis=1)


def _numbers(graph: Any, column: str, features: Sequence[EncodedFeature]) -> str:
    missing = graph.add("IsNaN", column)
    parts = []
    for feature in features:
        if feature.kind == "missing":
            parts.append(graph.add("Cast", missing, to=graph.onnx.TensorProto.DOUBLE))
            continue
        value, fill = column, feature.fill
        if feature.kind != "number":
            value = graph.add("Sub", graph.number(feature.origin), column)
        if feature.kind in ("sine", "cosine"):
            angle = graph.add("Mul", value, graph.number(2.0 * np.pi / feature.days))
            value, fill = graph.add("Sin" if feature.kind == "sine" else "Cos", angle), 0.0
        parts.append(graph.add("Where", missing, graph.number(fill), value))
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
