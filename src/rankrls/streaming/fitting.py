"""Fits to data larger than memory: equations in one pass, exact held-out values of every alpha in a second one.

Both process a part as a fit in memory processes all rows; the sum is from left to right in the order of the parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_magnitude
from rankrls._comparisons import ComparedItems, Data, Features, Judge, LabelledItems, Setting
from rankrls._curves import Curve, QueryEvaluator
from rankrls._errors import InputError
from rankrls._queries import label_varies, query_layout
from rankrls._rows import check_finite_features
from rankrls._typing import AnyArray, Array, Index, Mask
from rankrls.io.dataset import check_whole_queries
from rankrls.metrics import Measure
from rankrls.metrics._values import mean_and_error
from rankrls.numerics.basis import Basis
from rankrls.numerics.chunks import left_fold
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import Equations, Smoother
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler
from rankrls.selection.folds import check_two_vary
from rankrls.selection.least_squares import LeastSquaresProblem
from rankrls.selection.plans import AnyCandidate, AnyProblem, Plan, UnitsPlan
from rankrls.streaming.executors import Executor, map_parts

R = TypeVar("R")
QUERY_SCALERS = (QueryMinMaxScaler, QueryStandardScaler)


class StreamedPart(Protocol):
    """Rows of whole queries that are read on demand; ``first_row`` is the row number in the dataset."""

    @property
    def first_row(self) -> int: ...

    @property
    def n_rows(self) -> int: ...

    def read(self) -> Any: ...


class Streamable(Protocol):
    """Rows in parts of whole queries: a Dataset, or its equivalent for a Dask collection."""

    @property
    def parts(self) -> Sequence[StreamedPart]: ...

    @property
    def feature_names(self) -> Sequence[str] | None: ...

    @property
    def n_features(self) -> int: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def n_queries(self) -> int: ...


def labelled_part(part: StreamedPart) -> LabelledItems:
    """Rows of a part, checked for finite values, without those of weight zero.

    Raises
    ------
    InputError
        If labels, weights or features are not finite; ``row`` is the row number in the dataset.
    """
    table = part.read()
    y = np.asarray(table.y, dtype=np.float64)
    _check(part, np.isfinite(y), y, "y", "every row needs a finite label")
    check_magnitude("y", y)
    check_finite_features(table.X, None, products=True, first_row=part.first_row)
    weights = table.sample_weight
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
        good = np.isfinite(weights) & (weights >= 0.0)
        _check(part, good, weights, "sample_weight", "weights must be finite and not negative")
        check_magnitude("sample_weight", weights)
    layout = query_layout(query_numbers(table.qid), len(y))
    items = LabelledItems(table.X, None, True, True, y[:, None], layout, weights)
    return items.of_positive_weight(square=False)


def query_numbers(qid: AnyArray) -> Index:
    """Number of each row's query, for rows that are grouped by query."""
    new = np.concatenate((np.zeros(min(1, len(qid)), dtype=bool), qid[1:] != qid[:-1]))
    return np.cumsum(new, dtype=np.intp)


def _check(part: StreamedPart, good: Mask, values: Array, name: str, rule: str) -> None:
    if not good.all():
        at = int(np.argmin(good))
        row = part.first_row + at
        raise InputError(f"{name} is {values[at]} in row {row}: {rule}.", parameter=name, row=row)


@dataclass(frozen=True, eq=False)
class ScaledPart:
    """A part whose features are scaled when it is read."""

    part: StreamedPart
    scaler: Any

    @property
    def first_row(self) -> int:
        return self.part.first_row

    @property
    def n_rows(self) -> int:
        return self.part.n_rows

    def read(self) -> Any:
        """Read the rows, scaled."""
        table = self.part.read()
        by_query = isinstance(self.scaler, QUERY_SCALERS) and self.scaler.fitted_with_qid_
        queries = {"qid": table.qid} if by_query else {}
        return replace(table, X=self.scaler.transform(table.X, **queries))


def scaled(data: Any, scaler: Any) -> Any:
    """A dataset whose features are scaled by a fitted scaler of rows or of whole queries."""
    return replace(data, parts=tuple(ScaledPart(part, scaler) for part in data.parts))


def fit_scaler(scaler: Any, data: Any) -> None:
    """Fit a scaler to all rows of a dataset, read part by part.

    Parameters
    ----------
    scaler : StandardScaler, MinMaxScaler or MaxAbsScaler of scikit-learn, LogScaler, or a scaler of queries
        Scaler. Scalers of queries store nothing of the rows, and are fitted to the first part.
    data : Dataset
    """
    if isinstance(scaler, QUERY_SCALERS):
        table = data.parts[0].read()
        scaler.fit(table.X, qid=table.qid)
        return
    for part in data.parts:
        scaler.partial_fit(part.read().X)


@dataclass
class Summed:
    """Results of the first pass for some parts.

    Attributes
    ----------
    equations : list of Equations
        Equations for each setting; empty as long as no row has a positive weight.
    counts : ndarray of int
        Numbers of rows of positive weight, of their queries, and of those queries with two different labels.
    """

    equations: list[Equations]
    counts: NDArray[np.int64]

    def __iadd__(self, other: Summed) -> Self:
        both = zip(self.equations, other.equations, strict=False)
        self.equations = [mine.__iadd__(theirs) for mine, theirs in both] or self.equations or other.equations
        self.counts = self.counts + other.counts
        return self


def _equations(settings: Sequence[Setting], basis: Basis | None, part: StreamedPart) -> Summed:
    """Equations of a part."""
    data = labelled_part(part)
    if not data.n_rows:
        return Summed([], np.zeros(3, dtype=np.int64))
    counts = np.array([data.n_rows, data.n_queries, label_varies(data.Y, data.layout).sum()])
    compared = [data.compared(setting)[0] for setting in settings]
    return Summed([items.equations(basis) for items in compared], counts)


def _held_out(
    setting: Setting, basis: Basis | None, smoother: Smoother, alphas: Array, judge: Judge[R], part: StreamedPart
) -> list[R]:
    """Results of ``judge`` for the chunks of a part, by the models of all other queries."""
    data = labelled_part(part)
    if not data.n_rows:
        return []
    return data.compared(setting)[0].hold_out(smoother, basis, alphas, judge, None, means=False)


def _validated(scorer: Scorer, measure: Measure, part: StreamedPart) -> Array:
    """Measure of each query of a part under models fitted without it."""
    data = labelled_part(part)
    scores = scorer(data.X)
    if not data.n_rows:
        return scores
    per_query = data.evaluate(measure, scores[:, :, None]).per_block
    assert per_query is not None
    return per_query


def _has_weights(part: StreamedPart) -> bool:
    return part.read().sample_weight is not None


def _count_weighted(part: StreamedPart) -> int:
    """Number of rows of positive weight."""
    return int(np.count_nonzero(part.read().sample_weight))


def _rows_of(wanted: dict[int, Index], part: StreamedPart) -> tuple[Index, Any]:
    """Numbers in the dataset and features of some rows of a part, which are numbered among those of positive weight."""
    table = part.read()
    rows = wanted[part.first_row]
    if table.sample_weight is not None:
        rows = np.flatnonzero(table.sample_weight)[rows]
    return rows + part.first_row, table.X[rows]


@dataclass
class _Latest:
    """Results of the latest passes: the sums of all graphs of a kernel, the items of a basis with their numbers in the
    dataset, and the number of rows of positive weight of each part.
    """

    settings: tuple[Setting, ...] = ()
    basis: Basis | None = None
    summed: Summed | None = None
    numbers: Index | None = None
    given: Index | None = None
    items: Any = None
    counts: list[int] | None = None


@dataclass(frozen=True, eq=False)
class StreamedItems(Data):
    """A dataset larger than memory, query by query and with one target. Created by :meth:`of`.

    X has no rows.
    """

    dataset: Streamable
    executor: Executor | None
    _latest: _Latest = field(default_factory=_Latest)

    @classmethod
    def of(cls, dataset: Streamable, executor: Executor | None) -> StreamedItems:
        """Data of a fit.

        Raises
        ------
        InputError
            If there are no rows, or if parts do not contain whole queries.
        """
        if not dataset.n_rows:
            raise InputError("The dataset has no rows.", parameter="data")
        check_whole_queries(dataset)
        names = None if dataset.feature_names is None else np.array(dataset.feature_names, dtype=object)
        features = Features(int(dataset.n_features), names)
        X = np.empty((0, int(dataset.n_features)))
        return cls(X, None, True, True, dataset, executor, features=features)

    @property
    def counts(self) -> list[int]:
        """Number of rows of positive weight of each part; rows are read for this only if they have weights."""
        if self._latest.counts is None:
            parts = self.dataset.parts
            counts = [int(part.n_rows) for part in parts]
            if any(map_parts(_has_weights, parts[:1], self.executor)):
                counts = list(map_parts(_count_weighted, parts, self.executor))
            self._latest.counts = counts
        return self._latest.counts

    @property
    def n_rows(self) -> int:
        return sum(self.counts)

    @property
    def n_queries(self) -> int:
        """Number of queries with rows of positive weight, from the first pass."""
        return 0 if self._latest.summed is None else int(self._latest.summed.counts[1])

    def held_out_attributes(self, scores: Any) -> dict[str, Any]:
        raise InputError("Held-out scores of streamed data are not stored.", parameter="data")

    def compared(self, setting: Setting, together: Sequence[Setting] = ()) -> Sequence[ComparedItems]:
        return [ComparedInParts(self, setting, tuple(together) or (setting,))]

    def items(self, numbers: Index) -> Any:
        """Features of some rows, ascending; the latest ones are stored, because all kernels need them."""
        if self._latest.numbers is not numbers:
            ends = np.cumsum(self.counts)
            wanted: dict[int, Index] = {}
            holding = []
            for k in np.unique(np.searchsorted(ends, numbers, side="right")):
                part = self.dataset.parts[k]
                first = ends[k] - self.counts[k]
                wanted[part.first_row] = numbers[(numbers >= first) & (numbers < ends[k])] - first
                holding.append(part)
            given, found = zip(*map_parts(partial(_rows_of, wanted), holding, self.executor), strict=True)
            self._latest.given = np.concatenate(given)
            self._latest.items = np.vstack(found).astype(np.float64, copy=False)
            self._latest.numbers = numbers
        return self._latest.items

    def given_numbers(self, rows: Index) -> Index:
        """Numbers in the dataset of the latest requested rows."""
        assert self._latest.numbers is rows
        assert self._latest.given is not None
        return self._latest.given

    def summed(self, settings: tuple[Setting, ...], basis: Basis | None) -> Summed:
        """Equations of some graphs, from one pass.

        Raises
        ------
        InputError
            If no query has two different labels.
        """
        if self._latest.settings == settings and self._latest.basis is basis and self._latest.summed is not None:
            return self._latest.summed
        task = partial(_equations, settings, basis)
        found: Summed = left_fold(map_parts(task, self.dataset.parts, self.executor))
        rows, queries, varied = found.counts.tolist()
        if not varied and any(setting.regression_weight == 0.0 for setting in settings):
            raise InputError(
                f"Nothing to compare: none of the {queries} queries contains two items with different labels ({rows} "
                "rows). Check the labels and the query ids.",
                parameter="y",
            )
        self._latest.settings = settings
        self._latest.basis = basis
        self._latest.summed = found
        return found


@dataclass(frozen=True, eq=False)
class ComparedInParts(ComparedItems):
    """Parts of a dataset with one graph; ``together`` are all graphs whose equations come from the same pass."""

    data: StreamedItems
    setting: Setting
    together: tuple[Setting, ...]

    in_memory = None

    def evaluator(self, measure: Measure) -> QueryEvaluator:
        return QueryEvaluator(measure)

    @property
    def primal(self) -> bool:
        return True

    def equations(self, basis: Basis | None) -> Equations:
        return self.data.summed(self.together, basis).equations[self.together.index(self.setting)]

    def hold_out(
        self,
        smoother: Smoother,
        basis: Basis | None,
        alphas: Array,
        judge: Judge[R],
        folds: Sequence[Index] | None,
        *,
        means: bool,
    ) -> list[R]:
        _, queries, varied = self.data.summed(self.together, basis).counts.tolist()
        check_two_vary(varied, queries, "Pass validation data (validation).")
        task = partial(_held_out, self.setting, basis, smoother, alphas, judge)
        found = map_parts(task, self.data.dataset.parts, self.data.executor)
        return list(chain.from_iterable(found))


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamedValidationPlan(Plan):
    """Models of all data, evaluated on another dataset, in one pass per candidate."""

    dataset: Streamable
    executor: Executor | None
    mutual: bool = False

    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        assert isinstance(problem, LeastSquaresProblem)
        (path,) = problem.path(values).paths
        task = partial(_validated, path.all_functions(), self.measure)
        found = np.concatenate(list(map_parts(task, self.dataset.parts, self.executor)))
        return Curve(*mean_and_error(found), found)


def streamed_plan(measure: Measure, validation: Streamable | None, executor: Executor | None) -> Plan:
    """Plan for leave-query-out of all rows, or for validation data."""
    if validation is None:
        return UnitsPlan(measure=measure, description="")
    return StreamedValidationPlan(measure=measure, description="", dataset=validation, executor=executor)
