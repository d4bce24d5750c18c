"""ONNX: any model whose kernel has a formula, and boosted stumps, with the scalers before them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from rankrls._checks import check_word
from rankrls._errors import InputError, require_extra
from rankrls._typing import Array
from rankrls.export._model import Expansion, Exported, Function, Steps, Weights, fitted_function, scaling_steps
from rankrls.kernels import OPERATIONS
from rankrls.models._pipelines import fitted_ranker, table_encoder

OPSET = 18
IR_VERSION = 8
_NOTES = (
    "Triton needs batches: describe the output of one target as dims: [1] with reshape: { shape: [ ] }.",
    "TensorRT has no float64: use the provider for CPUs or for CUDA.",
)


def to_onnx(
    model: Any,
    name: str = "rankrls",
    *,
    offset: float | None = None,
    input_dtype: Literal["float64", "float32"] = "float64",
) -> Exported:
    """Export a model as an ONNX graph from features to scores.

    Parameters
    ----------
    model : fitted estimator of rankrls, or a Pipeline that ends in one
        Models with a named kernel, CoRankingPursuit and CoRankRLS with such views, and RankBoost. Scalers can be
        LogScaler and scikit-learn's StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler. If the pipeline starts
        with a TableEncoder, export the rest, ``model[1:]``; its inputs are the encoded features.
    name : str, default="rankrls"
        Name of the graph.
    offset : float, optional
        Constant to add to every score.
    input_dtype : {"float64", "float32"}, default="float64"
        The type of the input, for callers that have float32 only.

    Returns
    -------
    Exported
        The bytes of the model. Its input ``X`` has the shape (rows, n), its output ``scores`` is float64 of shape
        (rows,) or (rows, targets). A row with a NaN has the score NaN.

    Raises
    ------
    ValueError
        For kernel functions and precomputed kernels, scaling within queries, and a TableEncoder.
    ImportError
        Without the package onnx: ``pip install 'rankrls[onnx]'``.

    Notes
    -----
    The graph computes in float64, because in float32 scores with a large constant would have few different values. A
    kernel model holds its training items; kernels of inner products and squared distances cost O(rows x items x n) by
    one matrix product, laplacian holds rows x items x n numbers.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_onnx
    >>> model = RankRLS(kernel="rbf").fit([[0.0], [2.0]], [0, 4])
    >>> len(to_onnx(model, "toy").content) > 0
    True
    """
    onnx = require_extra("Export to ONNX", "onnx", "onnx", "onnx.checker", "onnx.helper", "onnx.numpy_helper")
    final = fitted_ranker(model)
    check_word("input_dtype", input_dtype, ("float64", "float32"))
    n = int(final.n_features_in_)
    graph = _Graph(onnx)
    value_info = onnx.helper.make_tensor_value_info
    if table_encoder(model) is not None:
        problem = "ONNX cannot encode a table. Export the steps behind the TableEncoder: to_onnx(model[1:])."
        raise InputError(problem, parameter="model")
    x = graph.add("Cast", "X", to=onnx.TensorProto.DOUBLE)
    for step in scaling_steps(model, n):
        x = _asinh(graph, x) if step.logarithm else x
        x = graph.add("Div", graph.add("Sub", x, graph.constant(step.centre)), graph.constant(step.spread))
    scores = graph.add(
        "Add", _scores(graph, fitted_function(final, "ONNX"), x, n), graph.constant(float(offset or 0.0))
    )
    shape = ["rows"] if final._one_target_ else ["rows", "targets"]
    last = ("Squeeze", [scores, graph.constant([1])]) if final._one_target_ else ("Identity", [scores])
    graph.nodes.append(onnx.helper.make_node(*last, ["scores"]))
    proto = onnx.helper.make_graph(
        graph.nodes,
        name,
        [value_info("X", onnx.TensorProto.DOUBLE if input_dtype == "float64" else onnx.TensorProto.FLOAT, ["rows", n])],
        [value_info("scores", onnx.TensorProto.DOUBLE, shape)],
        graph.constants,
    )
    opsets = [onnx.helper.make_opsetid("", OPSET)]
    out = onnx.helper.make_model(proto, opset_imports=opsets, ir_version=IR_VERSION, producer_name="rankrls")
    onnx.checker.check_model(out, full_check=True)
    return Exported(out.SerializeToString(), (f"The input is {input_dtype}, the output float64.", *_NOTES))


@dataclass
class _Graph:
    """Nodes and constants, named as they are added."""

    onnx: Any
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        output = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, value: Any) -> str:
        """Add a number or an array, of float64 or of whole numbers such as those of axes; returns its name."""
        name = f"constant_{len(self.constants)}"
        dtype = np.int64 if np.asarray(value).dtype.kind in "iu" else np.float64
        self.constants.append(self.onnx.numpy_helper.from_array(np.array(value, dtype, order="C"), name))
        return name


def _scores(graph: _Graph, function: Function, x: str, n: int) -> str:
    """The name of the scores, (rows, targets)."""
    match function:
        case Weights(weights):
            return graph.add("MatMul", x, graph.constant(weights))
        case Steps(features, thresholds, weights):
            values = graph.add("Gather", x, graph.constant(features), axis=1)
            above = graph.add("Greater", values, graph.constant(thresholds))
            steps = graph.add("Cast", above, to=graph.onnx.TensorProto.DOUBLE)
            parts = [graph.add("MatMul", steps, graph.constant(weights.reshape(-1, 1)))]
        case _:
            parts = [_expansion(graph, part, x) for part in function if len(part.items)]
    # 0, or NaN for a row with a NaN, which the stumps would count as small
    known = graph.add("MatMul", x, graph.constant(np.zeros((n, 1))))
    return graph.add("Sum", known, *parts)


def _expansion(graph: _Graph, part: Expansion, x: str) -> str:
    """``K coefficients`` with the kernel K between the rows of x and the items."""
    own = x if part.features is None else graph.add("Gather", x, graph.constant(part.features), axis=1)
    values = _MEASURES[part.formula.measure](graph, own, part.items)
    for operation, *numbers in part.formula.steps(part.kernel):
        values = graph.add(OPERATIONS[operation], values, *map(graph.constant, map(float, numbers)))
    return graph.add("MatMul", values, graph.constant(part.coefficients))


def _asinh(graph: _Graph, x: str) -> str:
    """``sign(x) log(|x| + sqrt(x^2 + 1))``: the operator Asinh has no float64 in older runtimes."""
    squares = graph.add("Add", graph.add("Mul", x, x), graph.constant(1.0))
    sums = graph.add("Add", graph.add("Abs", x), graph.add("Sqrt", squares))
    return graph.add("Mul", graph.add("Sign", x), graph.add("Log", sums))


def _products(graph: _Graph, x: str, items: Array) -> str:
    return graph.add("MatMul", x, graph.constant(items.T))


def _squared_distances(graph: _Graph, x: str, items: Array) -> str:
    """``|x - z|^2`` around the items' mean, so that an offset that all share is not squared."""
    centre = items.mean(axis=0)
    items = items - centre
    x = graph.add("Sub", x, graph.constant(centre))
    squares = graph.add("ReduceSum", graph.add("Mul", x, x), graph.constant([1]), keepdims=1)
    both = graph.add("Add", squares, graph.constant(np.einsum("ij,ij->i", items, items)))
    distances = graph.add("Sub", both, graph.add("Mul", _products(graph, x, items), graph.constant(2.0)))
    return graph.add("Max", distances, graph.constant(0.0))


def _sums_of_differences(graph: _Graph, x: str, items: Array) -> str:
    rows = graph.add("Unsqueeze", x, graph.constant([1]))  # (rows, 1, n)
    differences = graph.add("Abs", graph.add("Sub", rows, graph.constant(items)))
    return graph.add("ReduceSum", differences, graph.constant([2]), keepdims=0)


_MEASURES = {"product": _products, "square": _squared_distances, "manhattan": _sums_of_differences}
