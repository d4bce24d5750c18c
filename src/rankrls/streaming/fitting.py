"""Fits of data larger than memory: equations in one pass, exact held-out values of every alpha in a second one.

Both do to a part what a fit in memory does to all rows; the sum goes from left to right in the order of the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Setting
from rankrls._errors import InputError
from rankrls.metrics import Measure
from rankrls.numerics.basis import Basis
from rankrls.numerics.chunks import left_fold
from rankrls.numerics.graph import Array
from rankrls.numerics.holdout import HeldOut, hold_out_chunks
from rankrls.numerics.smoother import Equations, Smoother, normal_equations
from rankrls.selection.curves import judge_queries
from rankrls.streaming.executors import map_parts
from rankrls.streaming.rows import LabelledRows


@dataclass
class Summed:
    """What the first pass finds in some parts.

    Attributes
    ----------
    equations : list of Equations
        For each setting; empty as long as no row has a positive weight.
    counts : ndarray of int
        Rows of positive weight, their queries, and how many of these hold two different labels.
    """

    equations: list[Equations]
    counts: NDArray[np.int64]

    def __iadd__(self, other: Summed) -> Self:
        both = zip(self.equations, other.equations, strict=False)
        self.equations = [mine.__iadd__(theirs) for mine, theirs in both] or self.equations or other.equations
        self.counts = self.counts + other.counts
        return self


def _equations(settings: Sequence[Setting], basis: Basis | None, part: Any) -> Summed:
    """The equations of a part."""
    rows = LabelledRows.read(part)
    if not len(rows.y):
        return Summed([], np.zeros(3, dtype=np.int64))
    X = _features(rows.X, basis)
    graphs = [rows.graph(setting) for setting in settings]
    first, last = graphs[0].starts[:-1], graphs[0].starts[1:] - 1
    labels = graphs[0].y[:, 0]  # sorted inside queries
    counts = np.array([len(rows.y), len(first), np.count_nonzero(labels[first] != labels[last])])
    return Summed([normal_equations(graph, X) for graph in graphs], counts)


def _held_out(model: Model, measure: Measure, basis: Basis | None, part: Any) -> Array:
    """The measure of each query of a part under each alpha, by the models of all other queries."""
    rows = LabelledRows.read(part)
    if not len(rows.y):
        return np.empty((0, len(model.alphas)))

    def judge(chunk: Any, held: HeldOut) -> Array:
        return judge_queries(measure, chunk, held)[0]

    graph, X = rows.graph(model.setting), _features(rows.X, basis)
    return np.concatenate(list(hold_out_chunks(model.smoother, graph, X, model.alphas, judge)))


def _validated(weights: Array, measure: Measure, basis: Basis | None, part: Any) -> Array:
    """The measure of each query of a part under models that have not seen it."""
    rows = LabelledRows.read(part)
    X = rows.X if basis is None else basis.features(rows.X)[:]
    return measure.values(np.ascontiguousarray((X @ weights).T), rows.y, rows.starts, weights=rows.weights)


@dataclass(frozen=True, eq=False)
class Model:
    """What every alpha of one setting is judged by: the decomposed problem of all rows."""

    setting: Setting
    smoother: Smoother
    alphas: Array


def sum_equations(data: Any, settings: Sequence[Setting], basis: Basis | None = None, executor: Any = None) -> Summed:
    """The first pass.

    Raises
    ------
    InputError
        If no query holds two different labels.
    """
    summed: Summed = left_fold(map_parts(partial(_equations, settings, basis), data.parts, executor))
    rows, queries, varied = summed.counts.tolist()
    if not varied and any(setting.regression_weight == 0.0 for setting in settings):
        raise InputError(
            f"Nothing to compare: none of the {queries} queries holds two items with different labels ({rows} rows). "
            "Check the labels and the query ids.",
            parameter="y",
        )
    if basis is not None:
        summed.equations = [equations.whitened(basis.whitening) for equations in summed.equations]
    return summed


def held_out_values(
    data: Any, model: Model, measure: Measure, basis: Basis | None = None, executor: Any = None
) -> Array:
    """The second pass: the held-out values (queries, alphas)."""
    return np.concatenate(list(map_parts(partial(_held_out, model, measure, basis), data.parts, executor)))


def validated_values(
    data: Any, model: Model, measure: Measure, basis: Basis | None = None, executor: Any = None
) -> Array:
    """The values (queries, alphas) on other data."""
    weights = model.smoother.path(model.alphas)[:, :, 0].T
    return np.concatenate(list(map_parts(partial(_validated, weights, measure, basis), data.parts, executor)))


def check_streams(measure: Measure) -> None:
    """Refuse a measure that is no mean over queries."""
    if measure.choices.average == "pair":
        raise InputError(
            f"scoring={str(measure)!r} averages over the pairs of all queries; of streamed data the mean over queries "
            "is known. Take average='query'.",
            parameter="scoring",
        )


def _features(X: Any, basis: Basis | None) -> Any:
    return X if basis is None else basis.features(X)
