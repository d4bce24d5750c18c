"""Scores and measures of fitted models on data larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._typing import AnyArray, Array
from rankrls.io.dataset import check_whole_queries
from rankrls.metrics import Measure
from rankrls.metrics._measure import named_measures
from rankrls.metrics._scorer import predict_by_query, scales_by_query
from rankrls.streaming.executors import map_parts
from rankrls.streaming.fitting import query_numbers

_USUAL = ("map", "mrr", "p@5", "p@10", "ndcg@1", "ndcg@5", "ndcg@10", "disagreement")


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


def predict(model: Any, data: Any, *, executor: Any = None) -> Iterator[Array]:
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


def query_values(models: Sequence[Any], data: Any, measures: Sequence[Measure], *, executor: Any = None) -> QueryValues:
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
    model: Any,
    data: Any,
    *,
    measures: Sequence[Any] = _USUAL,
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


def _mapped(function: Callable[..., Any], models: Sequence[Any], data: Any, executor: Any) -> Iterator[Any]:
    for model in models:
        _check_features(model, data)
    return map_parts(partial(function, tuple(map(_unnamed, models))), data.parts, executor)


def _scores(model: Any, table: Any) -> Array:
    if not table.X.shape[0]:
        return np.zeros(0)
    scores = np.asarray(predict_by_query(model, table.X, table.qid), dtype=np.float64)
    if scores.ndim != 1:
        raise InputError("The model has several targets, but streaming needs one target.", parameter="model")
    return scores


def _predicted(models: tuple[Any, ...], part: Any) -> Array:
    return _scores(models[0], part.read())


def _judged(measures: tuple[Measure, ...], models: tuple[Any, ...], part: Any) -> tuple[Any, Any, Any]:
    """Values, sizes and names of the queries of a part; rows without a label are left out, as in memory."""
    table = part.read()
    scores = np.stack([_scores(model, table) for model in models], axis=1)
    rows = np.flatnonzero(~np.isnan(table.y))
    y = table.y[rows]
    qid = table.qid[rows]
    ids, weights = (None if column is None else column[rows] for column in (table.ids, table.sample_weight))
    layout = query_layout(query_numbers(qid), len(rows))
    values = [measure.per_query(y, scores[rows], layout, weights, ids) for measure in measures]
    return np.stack(values, axis=2), np.asarray(layout.counts, dtype=np.int64), qid[layout.starts[:-1]]


def _unnamed(model: Any) -> Any:
    """The model without names of features, which arrays lack."""
    out = copy(model)
    if isinstance(model, Pipeline):
        out.steps = [(name, _unnamed(step)) for name, step in model.steps]
    if isinstance(model, BaseEstimator):
        vars(out).pop("feature_names_in_", None)
    return out


def _check_features(model: Any, data: Any) -> None:
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
