"""Fitted models on data that no memory holds: scores, and what they are worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from rankrls._errors import InputError
from rankrls.metrics import RankingMeasure, resolve_measure
from rankrls.selection.judging import Curve
from rankrls.streaming.engine import answers
from rankrls.streaming.fitting import leaf_bytes
from rankrls.streaming.holdout_sums import EvaluateJob, PredictJob
from rankrls.streaming.per_query import CompareJob, QueryValues
from rankrls.streaming.stream import Stream, check_streams


def predict(model: Any, data: Any, *, executor: Any = None, memory: Any = None) -> Iterator[NDArray[np.float64]]:
    """Scores of all rows of a data set, a part at a time.

    Parameters
    ----------
    model : fitted estimator or pipeline
        Of one target.
    data : Dataset
        Its features are those that the model has learned from, in their order; labels are not looked at.
    executor, memory : as in :meth:`rankrls.RankRLS.fit_dataset`

    Yields
    ------
    ndarray of shape (rows of the part,)
        In the order of the data.

    Raises
    ------
    InputError
        If a step of the model scales features inside queries, and a query is longer than a part.

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
    stream = stream_of([model], data, executor=executor, memory=memory)
    found = answers(PredictJob(unnamed(model)), data, executor=executor, workers=stream.workers)
    return (scores for _, scores in found)


def evaluate(
    model: Any,
    data: Any,
    *,
    measures: Sequence[Any] = ("map", "mrr", "p@5", "p@10", "ndcg@1", "ndcg@5", "ndcg@10", "disagreement"),
    convention: str | None = None,
    executor: Any = None,
    memory: Any = None,
) -> dict[str, float]:
    """Several measures of a model's rankings of a data set, in one pass over it.

    Parameters
    ----------
    model, data, executor, memory : as for :func:`predict`
    measures, convention : as for :func:`rankrls.metrics.evaluate`
        Averages over queries. Weights of rows count where a measure uses them.

    Returns
    -------
    dict
        From the measure, as it was named, to its value.

    Raises
    ------
    InputError
        As :func:`predict`; and where a measure judges no query.
    """
    if isinstance(measures, str) or not isinstance(measures, Sequence):
        measures = [measures]
    resolved = [resolve_measure(measure, convention) for measure in measures]
    curves, _ = judged(model, data, resolved, executor=executor, memory=memory)
    out = {}
    for name, measure, curve in zip(measures, resolved, curves, strict=True):
        value = float(curve.mean[0])
        if np.isnan(value):
            raise InputError("{0} judges nothing here: {1}.", measure, measure.not_judged)
        out[name if isinstance(name, str) else str(measure)] = value
    return out


def judged(
    model: Any, data: Any, measures: Sequence[RankingMeasure], *, executor: Any = None, memory: Any = None
) -> tuple[list[Curve], list[int]]:
    """The mean and the standard error of each measure, and how many queries it judges."""
    stream = stream_of([model], data, measures, executor=executor, memory=memory)
    sums = stream.run(EvaluateJob(tuple(measures), unnamed(model)), "evaluate").judged
    return [part.curve() for part in sums], [part.counts[0] for part in sums]


def values_of_queries(
    models: Sequence[Any], data: Any, measures: Sequence[RankingMeasure], *, executor: Any = None, memory: Any = None
) -> QueryValues:
    """Each query's value of each measure under each model, in the order of the data: one pass over it."""
    stream = stream_of(models, data, measures, executor=executor, memory=memory)
    job = CompareJob(tuple(measures), tuple(map(unnamed, models)))
    found: QueryValues = stream.run(job, "compare").judged[0]
    return found.in_order()


def stream_of(
    models: Sequence[Any], data: Any, measures: Sequence[RankingMeasure] = (), *, executor: Any, memory: Any
) -> Stream:
    """A data set whose rows some models score, once it is clear that they can, and that measures can judge them."""
    for measure in measures:
        check_streams(measure)
    for model in models:
        _check_features(model, data)
    return Stream(data, executor=executor, memory=memory, leaf_bytes=leaf_bytes(data.n_features, 1))


def unnamed(model: Any) -> Any:
    """The same model without names of features, which arrays do not have."""
    out = copy(model)
    if isinstance(model, Pipeline):
        out.steps = [(name, unnamed(step)) for name, step in model.steps]
    getattr(out, "__dict__", {}).pop("feature_names_in_", None)
    return out


def _check_features(model: Any, data: Any) -> None:
    """The model's features by name, if both sides have names."""
    known, given = getattr(model, "feature_names_in_", None), data.feature_names
    if known is None or given is None or list(known) == list(given):
        return
    missing = [str(name) for name in known if name not in set(given)]
    raise InputError(
        "The data set's features are not those of the model{0}.",
        f": {missing[0]!r} is missing" if missing else " in their order",
        remedy="Open it with {features} as the model's feature_names_in_.",
        parameter="features",
        column=missing[0] if missing else None,
    )
