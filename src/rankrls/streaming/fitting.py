"""Fits of data larger than memory: equations in one pass, exact held-out values of every alpha in a second one.

Both do to a part what a fit in memory does to all rows; the sum goes from left to right in the order of the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_magnitude
from rankrls._comparisons import Setting
from rankrls._errors import InputError
from rankrls._rows import check_finite_features
from rankrls.metrics import Measure
from rankrls.numerics.basis import Basis
from rankrls.numerics.chunks import left_fold
from rankrls.numerics.graph import Array, Index, LabelledGraph
from rankrls.numerics.holdout import hold_out_chunks
from rankrls.numerics.smoother import Equations, Smoother, normal_equations
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler
from rankrls.selection.curves import judge_queries
from rankrls.streaming.executors import map_parts


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows of whole queries with finite values; those of weight zero are left out.

    Attributes
    ----------
    X : ndarray or csr_array of shape (m, n)
    y : ndarray of shape (m,)
    queries : ndarray of shape (m,)
        The number of each row's query, ascending from 0.
    weights : ndarray of shape (m,), or None
    """

    X: Any
    y: Array
    queries: Index
    weights: Array | None

    @classmethod
    def read(cls, part: Any) -> LabelledRows:
        """The rows of a part.

        Raises
        ------
        InputError
            For labels, weights and features that are not finite; ``row`` is the running number in the data set.
        """
        table = part.read()
        y, weights = np.asarray(table.y, dtype=np.float64), table.sample_weight
        _check(part, np.isfinite(y), y, "y", "every row needs a finite label")
        check_magnitude("y", y)
        check_finite_features(table.X, None, products=True, first_row=part.first_row)
        queries = query_numbers(table.qid)
        if weights is None:
            return cls(table.X, y, queries, None)
        weights = np.asarray(weights, dtype=np.float64)
        good = np.isfinite(weights) & (weights >= 0.0)
        _check(part, good, weights, "sample_weight", "weights must be finite and not negative")
        check_magnitude("sample_weight", weights)
        kept = np.flatnonzero(weights)
        X = table.X if len(kept) == len(y) else table.X[kept]
        return cls(X, y[kept], query_numbers(queries[kept]), weights[kept])

    @property
    def starts(self) -> Index:
        """Where each query begins, and the number of rows."""
        return np.searchsorted(self.queries, np.arange(self.queries[-1] + 2)) if len(self.y) else np.zeros(1, np.intp)

    def graph(self, setting: Setting) -> LabelledGraph:
        """The comparisons of the rows."""
        return LabelledGraph.build(self.y, self.queries, weights=self.weights, **asdict(setting))


def query_numbers(qid: NDArray[Any]) -> Index:
    """The number of each row's query, of rows that are grouped by query."""
    new = np.concatenate((np.zeros(min(1, len(qid)), dtype=bool), qid[1:] != qid[:-1]))
    return np.cumsum(new, dtype=np.intp)


def _check(part: Any, good: NDArray[np.bool_], values: Array, name: str, rule: str) -> None:
    if not good.all():
        at = int(np.argmin(good))
        row = part.first_row + at
        raise InputError(f"{name} is {values[at]} in row {row}: {rule}.", parameter=name, row=row)


@dataclass(frozen=True, eq=False)
class ScaledPart:
    """A part whose features are scaled when it is read."""

    part: Any
    scaler: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "part":
            raise AttributeError(name)
        return getattr(self.part, name)

    def read(self) -> Any:
        """The rows, scaled."""
        table = self.part.read()
        queries = {"qid": table.qid} if getattr(self.scaler, "fitted_with_qid_", False) else {}
        return replace(table, X=self.scaler.transform(table.X, **queries))


def scaled(data: Any, scaler: Any) -> Any:
    """A data set whose features are scaled by a fitted scaler of rows, or of whole queries."""
    out = copy(data)
    object.__setattr__(out, "parts", tuple(ScaledPart(part, scaler) for part in data.parts))
    return out


def fit_scaler(scaler: Any, data: Any) -> None:
    """Fit a scaler to all rows of a data set, read one part after another.

    Parameters
    ----------
    scaler : StandardScaler, MinMaxScaler or MaxAbsScaler of scikit-learn, LogScaler, or a scaler of queries
        Scalers of queries keep nothing of the rows: they are fitted to the first part.
    data : Dataset
    """
    if isinstance(scaler, QueryMinMaxScaler | QueryStandardScaler):
        table = data.parts[0].read()
        scaler.fit(table.X, qid=table.qid)
        return
    for part in data.parts:
        scaler.partial_fit(part.read().X)


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

    def judge(chunk: Any, scores: Array) -> Array:
        return judge_queries(measure, chunk, scores)[0]

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


def _features(X: Any, basis: Basis | None) -> Any:
    return X if basis is None else basis.features(X)
