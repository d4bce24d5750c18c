"""Fitted models compared on data that no memory holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankrls._errors import InputError
from rankrls.comparison.report import DEFAULT_MEASURES, RankingReport, check_queries, named_measures, report_of

_DRAWS = 1_000_000_000
_MOST, _LEAST = 10_000, 1_000


def compare_dataset(
    models: Mapping[str, Any],
    data: Any,
    *,
    measures: Sequence[Any] = DEFAULT_MEASURES,
    convention: str | None = None,
    baseline: str | None = None,
    confidence: float = 0.95,
    n_resamples: int | None = None,
    random_state: Any = 0,
    executor: Any = None,
    memory: Any = None,
) -> RankingReport:
    """Judge several fitted models on a data set and compare them query by query, in one pass over it.

    Parameters
    ----------
    models : mapping from a name to a fitted estimator or pipeline
        Two or more, each of one target.
    data : Dataset
        As :func:`rankrls.io.open_dataset` returns it, with labels.
    measures : sequence of str, Measure or callable
        Averages over queries. Weights of rows count where a measure uses them.
    convention, baseline, confidence, random_state : as in :func:`compare_rankings`
    n_resamples : int, optional
        Of the bootstrap and the randomisation test. 10000 by default; of more than 100000 queries fewer, so that a
        billion values are drawn, but 1000 at least.
    executor, memory : as in :meth:`rankrls.RankRLS.fit_dataset`

    Returns
    -------
    RankingReport
        That of :func:`compare_rankings` for the scores of all rows; ``qid`` are the queries' names as text.

    Raises
    ------
    InputError
        As :func:`rankrls.streaming.predict` and :func:`compare_rankings`.

    Notes
    -----
    What is kept grows with the queries, not with the rows: 8 bytes for each query, model and measure, and its name.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, pyarrow.parquet as pq, tempfile, os
    >>> from rankrls import RankRLS
    >>> from rankrls.comparison import compare_dataset
    >>> from rankrls.io import open_dataset
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(300, 2)), np.repeat(np.arange(30), 10)
    >>> y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=300), [-0.5, 0.5]).astype(float)
    >>> models = {"good": RankRLS().fit(X, y, qid=qid), "poor": RankRLS().fit(X, rng.permutation(y), qid=qid)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.parquet")
    ...     pq.write_table(pa.table({"qid": qid, "label": y, "a": X[:, 0], "b": X[:, 1]}), path)
    ...     report = compare_dataset(models, open_dataset(path, rows_per_part=100), measures=["ndcg@5"])
    >>> line = report.measures[0].randomization.pairs[0]
    >>> line.first, line.second, line.difference > 0, line.n_queries
    ('good', 'poor', True, 30)
    """
    from rankrls.streaming.scoring import values_of_queries

    if not isinstance(models, Mapping):
        problem = "{models} must be a mapping from names to models, {{'new': ..., 'old': ...}}; got {0}."
        raise InputError(problem, type(models).__name__)
    named = named_measures(measures, convention)
    check_queries(data.n_queries)
    names = tuple(map(str, models))
    found = values_of_queries([*models.values()], data, [*named.values()], executor=executor, memory=memory)
    if n_resamples is None:
        n_resamples = min(_MOST, max(_LEAST, _DRAWS // len(found.numbers)))
    values = {measure: {name: found.values[:, i, k] for i, name in enumerate(names)} for k, measure in enumerate(named)}
    return report_of(
        named,
        values,
        tuple(found.names),
        found.items,
        convention=convention,
        baseline=baseline,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=random_state,
    )
