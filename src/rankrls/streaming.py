"""Data larger than memory: parts of whole queries are read and processed, with one result each.

A part is processed by the same functions as all rows in memory: equations in one pass, exact held-out values of every
alpha in a second one. Every task, including BLAS, runs on one thread. Results are added in the order of the parts, from
left to right, so they have the same bits on any executor on identical hardware, even if a worker dies and its part is
read again.
"""

from __future__ import annotations

import pydoc
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import chain
from operator import call
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from rankrls._cached import cached_property
from rankrls._checks import check_magnitude
from rankrls._comparisons import ComparedItems, Data, Features, GraphSetting, LabelledItems, PerChunk
from rankrls._compiled import limited_threads, n_threads, results_in_order, stream_threads
from rankrls._curves import Curve, joined_curves
from rankrls._errors import InputError
from rankrls._queries import label_varies, query_layout
from rankrls._rows import check_finite_features
from rankrls._typing import AnyArray, Array, Index, Mask
from rankrls.io.dataset import Dataset, Part, check_whole_queries
from rankrls.io.rows import Rows
from rankrls.metrics._measure import Measure, MeasureLike, named_measures
from rankrls.metrics._scorer import predict_by_query, scales_by_query
from rankrls.numerics.scorer import Basis, Scorer
from rankrls.numerics.smoother import Equations, Smoother
from rankrls.preprocessing import QueryMinMaxScaler, QueryStandardScaler
from rankrls.selection.folds import check_two_vary
from rankrls.selection.least_squares import LeastSquaresProblem
from rankrls.selection.plans import AnyCandidate, AnyProblem, Plan, UnitsPlan

__all__ = ["QueryValues", "evaluate", "predict", "query_values"]

_USUAL = ("map", "mrr", "p@5", "p@10", "ndcg@1", "ndcg@5", "ndcg@10", "disagreement")
_QUERY_SCALERS = (QueryMinMaxScaler, QueryStandardScaler)


T = TypeVar("T")
R = TypeVar("R")


def map_parts(function: Callable[[T], R], parts: Iterable[T], executor: Executor | None = None) -> Iterator[R]:
    """``map(function, parts)`` in order, with two parts in advance per worker.

    Parameters
    ----------
    function : callable
        Function, which must be picklable unless threads run it.
    parts : iterable
    executor : concurrent.futures.Executor or dask.distributed.Client, optional
        Executor; threads of this machine by default.

    Raises
    ------
    InputError
        If the executor cannot run tasks, or if the workers of a cluster lack rankrls or have another version.
    """
    task = partial(_alone, function)
    if executor is None:
        return stream_threads(task, parts)
    submit, workers = _submit(executor, task)
    return results_in_order(map(submit, parts), 2 * workers)


def _submit(executor: Any, task: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], int]:
    """Function that submits a part, and the number of workers."""
    if hasattr(executor, "get_executor"):  # a client
        from dask.delayed import delayed

        check_workers(executor)
        # the shared task is sent once, and created again if its worker dies
        shared = executor.submit(partial, task, pure=False)

        def submit(part: Any) -> Any:
            return executor.compute(delayed(call)(shared, part))

        return submit, sum(executor.nthreads().values())
    if not isinstance(executor, Executor):
        problem = f"executor must be a concurrent.futures.Executor or a Dask client; got {type(executor).__name__}."
        raise InputError(problem, parameter="executor")
    submit_task: Callable[..., Any] = executor.submit
    return partial(submit_task, task), int(getattr(executor, "_max_workers", None) or n_threads())


def _alone(function: Callable[[T], R], part: T) -> R:
    with limited_threads(1):
        return function(part)


def check_workers(client: Any) -> None:
    """Refuse a Dask cluster whose workers lack rankrls, where tasks would wait forever, or have another version."""
    own = import_module("rankrls").__version__
    # only Python's own modules are sent: a worker that cannot load a task would neither answer nor fail
    workers = client.run(pydoc.locate, "rankrls.__version__")
    if not workers:
        raise InputError("The cluster has no workers. Start at least one worker.", parameter="executor")
    for name, version in workers.items():
        if version != own:
            has = f"rankrls {version}" if version else "no rankrls"
            problem = f"Worker {name} has {has}; this process has rankrls {own}. Install the same version everywhere."
            raise InputError(problem, parameter="executor")


def labelled_part(part: Part) -> LabelledItems:
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
    items = LabelledItems(
        table.X,
        kept=None,
        has_qid=True,
        one_target=True,
        Y=y[:, None],
        layout=query_layout(table.qid, len(y)),
        weights=weights,
    )
    return items.of_positive_weight(square=False)


def _check(part: Part, good: Mask, values: Array, name: str, rule: str) -> None:
    if not good.all():
        at = int(np.argmin(good))
        row = part.first_row + at
        raise InputError(f"{name} is {values[at]} in row {row}: {rule}.", parameter=name, row=row)


@dataclass(frozen=True, eq=False)
class ScaledPart(Part):
    """A part whose features are scaled when it is read."""

    part: Part
    scaler: Any

    def read(self) -> Rows:
        """Read the rows, scaled."""
        table = self.part.read()
        queries = {"qid": table.qid} if isinstance(self.scaler, _QUERY_SCALERS) else {}
        return replace(table, X=self.scaler.transform(table.X, **queries))


def scaled(data: Dataset, scaler: Any) -> Dataset:
    """A dataset whose features are scaled by a scaler that :func:`fit_scaler` has fitted."""
    return replace(data, parts=tuple(ScaledPart(part.first_row, part.n_rows, part, scaler) for part in data.parts))


def fit_scaler(scaler: Any, data: Dataset) -> None:
    """Fit a scaler to all rows of a dataset, read part by part.

    Parameters
    ----------
    scaler : StandardScaler, MinMaxScaler or MaxAbsScaler of scikit-learn, LogScaler, or a scaler of queries
        Scaler. Scalers of queries store nothing of the rows, and are fitted to the first part.
    data : Dataset
    """
    if isinstance(scaler, _QUERY_SCALERS):
        table = data.parts[0].read()
        scaler.fit(table.X, qid=table.qid)
        return
    for part in data.parts:
        scaler.partial_fit(part.read().X)


def _equations(settings: Sequence[GraphSetting], basis: Basis | None, part: Part) -> tuple[list[Equations], Index]:
    """Equations of a part for each setting, none without rows of positive weight; and counts as in :class:`_Latest`."""
    data = labelled_part(part)
    if not data.n_rows:
        return [], np.zeros(3, dtype=np.intp)
    compared = [data.compared(setting)[0] for setting in settings]
    counts = np.array([data.n_rows, data.n_queries, label_varies(data.Y, data.layout).sum()])
    return [items.equations(basis) for items in compared], counts


def _held_out(
    setting: GraphSetting, basis: Basis | None, smoother: Smoother, alphas: Array, per_chunk: PerChunk[R], part: Part
) -> list[R]:
    """Results of ``per_chunk`` for the chunks of a part, by the models of all other queries."""
    data = labelled_part(part)
    if not data.n_rows:
        return []
    return data.compared(setting)[0].hold_out(smoother, basis, alphas, per_chunk, None)


def _validated(scorer: Scorer, measure: Measure, part: Part) -> list[Curve]:
    """Evaluation of models fitted without a part; none without rows of positive weight."""
    data = labelled_part(part)
    return [data.evaluate(measure, scorer(data.X)[:, :, None])] if data.n_rows else []


def _count_weighted(part: Part) -> int | None:
    """Number of rows of positive weight; None if rows have no weights."""
    weights = part.read().sample_weight
    return None if weights is None else int(np.count_nonzero(weights))


def _rows_of(chosen: tuple[Part, Index]) -> tuple[Index, Any]:
    """Numbers in the dataset and features of some rows of a part, which are numbered among those of positive weight."""
    part, rows = chosen
    table = part.read()
    if table.sample_weight is not None:
        rows = np.flatnonzero(table.sample_weight)[rows]
    return rows + part.first_row, table.X[rows]


@dataclass
class _Latest:
    """Results of the latest passes: the equations of all graphs of a kernel, and the items of a basis with their
    numbers in the dataset; numbers of rows of positive weight, of their queries, and of those with different labels.
    """

    settings: tuple[GraphSetting, ...] = ()
    basis: Basis | None = None
    equations: list[Equations] = field(default_factory=list)
    counts: Sequence[int] = (0, 0, 0)
    numbers: Index | None = None
    given: Index | None = None
    items: Any = None


@dataclass(frozen=True, eq=False)
class StreamedItems(Data):
    """A dataset larger than memory, query by query and with one target. Created by :meth:`of`.

    X has no rows.
    """

    dataset: Dataset
    executor: Executor | None
    _latest: _Latest = field(default_factory=_Latest)

    @classmethod
    def of(cls, dataset: Dataset, executor: Executor | None) -> StreamedItems:
        """Data of a fit.

        Raises
        ------
        InputError
            If parts do not contain whole queries.
        """
        check_whole_queries(dataset)
        names = None if dataset.feature_names is None else np.array(dataset.feature_names, dtype=object)
        X = np.empty((0, dataset.n_features))
        return cls(
            X,
            kept=None,
            has_qid=True,
            one_target=True,
            dataset=dataset,
            executor=executor,
            features=Features(dataset.n_features, names),
        )

    @cached_property
    def part_rows(self) -> list[int]:
        """Number of rows of positive weight of each part; only the first part is read if rows have no weights."""
        counts = [*map_parts(_count_weighted, self.dataset.parts[:1], self.executor)]
        if None in counts:
            return [part.n_rows for part in self.dataset.parts]
        counts = [*map_parts(_count_weighted, self.dataset.parts, self.executor)]
        return [count for count in counts if count is not None]

    @property
    def n_rows(self) -> int:
        return sum(self.part_rows)

    @property
    def n_queries(self) -> int:
        """Number of queries with rows of positive weight, from the first pass."""
        return self._latest.counts[1]

    def compared(self, setting: GraphSetting, together: Sequence[GraphSetting] = ()) -> Sequence[ComparedItems]:
        return [ComparedInParts(self, setting, tuple(together) or (setting,))]

    def items(self, numbers: Index) -> Any:
        """Features of some rows, ascending; the latest ones are stored, because all kernels need them."""
        if self._latest.numbers is not numbers:
            starts = np.cumsum([0, *self.part_rows])
            rows = np.split(numbers, np.searchsorted(numbers, starts[1:-1]))
            chosen = [(part, rows[k] - starts[k]) for k, part in enumerate(self.dataset.parts) if len(rows[k])]
            given, found = zip(*map_parts(_rows_of, chosen, self.executor), strict=True)
            self._latest.given = np.concatenate(given)
            self._latest.items = np.vstack(found).astype(np.float64, copy=False)
            self._latest.numbers = numbers
        return self._latest.items

    def given_numbers(self, rows: Index) -> Index:
        """Numbers in the dataset of the latest requested rows."""
        assert self._latest.numbers is rows
        assert self._latest.given is not None
        return self._latest.given

    def equations(self, settings: tuple[GraphSetting, ...], basis: Basis | None) -> list[Equations]:
        """Equations of some graphs, from one pass.

        Raises
        ------
        InputError
            If no query has two different labels.
        """
        if self._latest.settings == settings and self._latest.basis is basis:
            return self._latest.equations
        total = list[Equations]()
        counts = np.zeros(3, dtype=np.intp)
        task = partial(_equations, settings, basis)
        for equations, found in map_parts(task, self.dataset.parts, self.executor):
            if not total:
                total = equations
            else:
                for k, more in enumerate(equations):  # none without rows of positive weight
                    total[k] += more
            counts = counts + found
        rows, queries, varied = counts.tolist()
        if not varied and any(setting.regression_weight == 0.0 for setting in settings):
            raise InputError(
                f"Nothing to compare: none of the {queries} queries contains two items with different labels ({rows} "
                "rows). Check the labels and the query ids.",
                parameter="y",
            )
        self._latest.settings = settings
        self._latest.basis = basis
        self._latest.equations = total
        self._latest.counts = (rows, queries, varied)
        return total


@dataclass(frozen=True, eq=False)
class ComparedInParts(ComparedItems):
    """Parts of a dataset with one graph; ``together`` are all graphs whose equations come from the same pass."""

    data: StreamedItems
    setting: GraphSetting
    together: tuple[GraphSetting, ...]

    def equations(self, basis: Basis | None) -> Equations:
        return self.data.equations(self.together, basis)[self.together.index(self.setting)]

    def hold_out(
        self,
        smoother: Smoother,
        basis: Basis | None,
        alphas: Array,
        per_chunk: PerChunk[R],
        folds: Sequence[Index] | None,
    ) -> list[R]:
        _, queries, varied = self.data._latest.counts
        check_two_vary(varied, queries, "Pass validation data (validation).")
        task = partial(_held_out, self.setting, basis, smoother, alphas, per_chunk)
        found = map_parts(task, self.data.dataset.parts, self.data.executor)
        return list(chain.from_iterable(found))


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamedValidationPlan(Plan):
    """Models of all data, evaluated on another dataset, in one pass per candidate."""

    dataset: Dataset
    executor: Executor | None
    folds: tuple[()] = ()

    def curve(self, data: Data, candidate: AnyCandidate, problem: AnyProblem, values: Array) -> Curve:
        assert isinstance(problem, LeastSquaresProblem)
        (path,) = problem.path(values).paths
        task = partial(_validated, path.all_functions(), self.measure)
        return joined_curves([*chain.from_iterable(map_parts(task, self.dataset.parts, self.executor))])


def streamed_plan(measure: Measure, validation: Dataset | None, executor: Executor | None) -> Plan:
    """Plan for leave-query-out of all rows, or for validation data."""
    if validation is None:
        return UnitsPlan(measure=measure, description="")
    return StreamedValidationPlan(measure=measure, description="", dataset=validation, executor=executor)


@dataclass(frozen=True, eq=False)
class QueryValues:
    """Measures of models for each query of a dataset.

    Attributes
    ----------
    values : ndarray of shape (queries, models, measures)
        Values; NaN for a query without a value.
    items : ndarray of shape (queries,)
        Number of rows of each query.
    names : ndarray of shape (queries,)
        Query ids.
    """

    values: Array
    items: NDArray[np.int64]
    names: AnyArray


def predict(model: BaseEstimator, data: Dataset, *, executor: Any = None) -> Iterator[Array]:
    """Predict the scores of all rows of a dataset, one part at a time.

    Parameters
    ----------
    model : fitted estimator or pipeline
        Model with one target.
    data : Dataset
        Data as returned by :func:`rankrls.io.open_dataset`, with the features that the model was fitted to, in their
        order; labels are not used. Models that score rows independently also accept data opened with
        ``whole_queries=False``.
    executor : as in :meth:`rankrls.RankRLS.fit_dataset`

    Yields
    ------
    ndarray of shape (rows of the part,)
        Scores in data order.

    Raises
    ------
    InputError
        If the features, by name, are not those of the model, or the model has several targets.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, pyarrow.parquet as pq, tempfile, os
    >>> from rankrls import RankRLS
    >>> from rankrls.io import open_dataset
    >>> from rankrls.streaming import predict
    >>> X = np.array([[0.0], [1.0], [2.0], [0.0], [3.0]])
    >>> model = RankRLS().fit(X, [0, 1, 2, 0, 1], qid=[1, 1, 1, 2, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.parquet")
    ...     pq.write_table(pa.table({"qid": [1, 1, 1, 2, 2], "label": [0.0, 1, 2, 0, 1], "x": X[:, 0]}), path)
    ...     scores = list(predict(model, open_dataset(path, label="label", qid="qid")))
    >>> np.allclose(np.concatenate(scores), model.predict(X))
    True
    """
    if scales_by_query(model):
        check_whole_queries(data)
    return _mapped(_predicted, [model], data, executor)


def query_values(
    models: Sequence[BaseEstimator], data: Dataset, measures: Sequence[Measure], *, executor: Any = None
) -> QueryValues:
    """Value of each measure for each query under each model, in data order, from one pass.

    Parameters
    ----------
    models : sequence of fitted estimators or pipelines
    data, executor : as for :func:`predict`
    measures : sequence of Measure

    Raises
    ------
    InputError
        For the same reasons as :func:`predict`.
    """
    check_whole_queries(data)
    found = list(_mapped(partial(_judged, tuple(measures)), models, data, executor))
    return QueryValues(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def evaluate(
    model: BaseEstimator,
    data: Dataset,
    *,
    measures: MeasureLike | Sequence[MeasureLike] = _USUAL,
    convention: str | None = None,
    executor: Any = None,
) -> dict[str, float]:
    """Evaluate several measures of a model's rankings of a dataset, in one pass.

    Parameters
    ----------
    model, data, executor : as for :func:`predict`
    measures, convention : as for :func:`rankrls.metrics.evaluate`
        Measures, averaged over queries. Row weights are used by measures that support them.

    Returns
    -------
    dict
        Value of each measure, by its given name.

    Raises
    ------
    InputError
        For the same reasons as :func:`query_values`, and if a measure has no value for any query.
    """
    named = named_measures(measures, convention)
    values = query_values([model], data, list(named.values()), executor=executor).values[:, 0]
    out = {}
    for (name, measure), column in zip(named.items(), values.T, strict=True):
        if np.isnan(column).all():
            raise InputError(f"{measure} is not defined for these data: {measure.not_judged}.", parameter="measures")
        out[name] = float(np.nanmean(column))
    return out


def _mapped(
    function: Callable[[tuple[BaseEstimator, ...], Part], R],
    models: Sequence[BaseEstimator],
    data: Dataset,
    executor: Any,
) -> Iterator[R]:
    for model in models:
        _check_features(model, data)
    return map_parts(partial(function, tuple(map(_unnamed, models))), data.parts, executor)


def _scores(model: BaseEstimator, table: Rows) -> Array:
    if not table.X.shape[0]:
        return np.zeros(0)
    scores = np.asarray(predict_by_query(model, table.X, table.qid), dtype=np.float64)
    if scores.ndim != 1:
        raise InputError("The model has several targets, but streaming needs one target.", parameter="model")
    return scores


def _predicted(models: tuple[BaseEstimator, ...], part: Part) -> Array:
    return _scores(models[0], part.read())


def _judged(
    measures: tuple[Measure, ...], models: tuple[BaseEstimator, ...], part: Part
) -> tuple[Array, NDArray[np.int64], AnyArray]:
    """Values, sizes and names of the queries of a part; rows without a label are left out, as in memory."""
    table = part.read()
    scores = np.stack([_scores(model, table) for model in models], axis=1)
    assert table.y is not None
    rows = np.flatnonzero(~np.isnan(table.y))
    labelled = replace(table, X=scores).take(rows)  # without a copy of the features
    layout = query_layout(labelled.qid, labelled.n_rows)
    given = (table.y[rows], labelled.X, layout, labelled.sample_weight, labelled.ids)
    values = [measure.per_query(*given) for measure in measures]
    return np.stack(values, axis=2), np.asarray(layout.counts, dtype=np.int64), layout.ids


def _unnamed(model: BaseEstimator) -> BaseEstimator:
    """The model without names of features, which arrays lack."""
    out = copy(model)
    if isinstance(model, Pipeline):
        out.steps = [(name, _unnamed(step)) for name, step in model.steps]
    if isinstance(model, BaseEstimator):
        vars(out).pop("feature_names_in_", None)
    return out


def _check_features(model: BaseEstimator, data: Dataset) -> None:
    """Refuse features other than the model's, if both have names."""
    known = getattr(model, "feature_names_in_", None)
    given = data.feature_names
    if known is None or given is None or list(known) == list(given):
        return
    missing = next((str(name) for name in known if name not in set(given)), None)
    problem = "The features of the dataset are not in the model's order."
    if missing is not None:
        problem = f"The dataset has no feature {missing!r}, which the model needs."
    raise InputError(f"{problem} Open it with features=feature_names_in_.", parameter="features", column=missing)
