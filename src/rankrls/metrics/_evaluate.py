"""One ranking judged by several measures, or by one, and the body that measures have in common as functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from rankrls._errors import InputError
from rankrls._queries import QueryLayout
from rankrls.metrics._checks import check_ranking
from rankrls.metrics._measure import Measure, RankingMeasure, resolve_measure

_DATA = ("qid", "sample_weight", "docno", "per_query")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def evaluate(
    y_true: Any,
    y_score: Any,
    *,
    qid: Any = None,
    measures: Sequence[Any] = ("map", "mrr", "p@5", "p@10", "ndcg@1", "ndcg@5", "ndcg@10", "disagreement"),
    convention: str | None = None,
    sample_weight: Any = None,
    docno: Any = None,
    per_query: bool = False,
) -> dict[str, Any]:
    """Several measures of one ranking.

    Parameters
    ----------
    y_true, y_score, qid, per_query
        As for :func:`ndcg`.
    measures : sequence of str, Measure or callable
        Names with a depth, measures or functions, as :func:`resolve_measure` takes them.
    convention : str, optional
        The convention of the measures given by name; "letor" by default.
    sample_weight : array-like of shape (m,), optional
        Row weights, for the measures over pairs; the others look at positions and ignore them.
    docno : array-like of shape (m,), optional
        Document ids, for the measures that break ties by them.

    Returns
    -------
    dict
        From the measure, as it was named, to its value, in the order of ``measures``.

    Raises
    ------
    ValueError
        As the single measures do.

    Examples
    --------
    >>> from rankrls.metrics import evaluate
    >>> evaluate([1, 0, 2, 0], [0.9, 0.7, 0.5, 0.3], measures=["mrr", "p@2", "disagreement"])
    {'mrr': 1.0, 'p@2': 0.5, 'disagreement': 0.4}
    """
    if isinstance(measures, str) or not isinstance(measures, Sequence):
        measures = [measures]
    resolved = [resolve_measure(measure, convention) for measure in measures]
    ranking = check_ranking(y_true, y_score, qid, sample_weight)
    return {
        name if isinstance(name, str) else str(measure): value_of(
            measure, ranking, docno if measure.uses_docno else None, per_query
        )
        for name, measure in zip(measures, resolved, strict=True)
    }


def value_of(measure: RankingMeasure, ranking: tuple[Any, Any, QueryLayout, Any], docno: Any, per_query: bool) -> Any:
    """Each query's value, or their average.

    Raises
    ------
    ValueError
        If an average is asked for and no query is judged.
    """
    if per_query:
        return measure.per_query(*ranking, docno)
    value = measure.mean(*ranking, docno)
    if np.isnan(value).all():
        raise InputError("{0} judges nothing here: {1}.", measure, measure.not_judged)
    return value


def measure_function(name: str) -> Callable[[_Function], _Function]:
    """Give a function its body: its parameters other than the data are the depth and the choices of a measure."""

    def decorate(function: _Function) -> _Function:
        defaults = cast(FunctionType, function).__kwdefaults__ or {}

        @wraps(function)
        def judge(y_true: Any, y_score: Any, **options: Any) -> Any:
            function(y_true, y_score, **options)  # refuses what the signature does not have
            choices = {**defaults, **options}
            qid, sample_weight, docno, per_query = (choices.pop(key, None) for key in _DATA)
            measure = Measure(name, **choices)
            return value_of(measure, check_ranking(y_true, y_score, qid, sample_weight), docno, per_query)

        return cast(_Function, judge)

    return decorate
