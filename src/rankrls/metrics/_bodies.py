"""The body that measures have in common as functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

from rankrls._queries import query_layout
from rankrls.metrics._checks import check_labels, check_scores, check_weights
from rankrls.metrics._evaluate import value_of
from rankrls.metrics._measure import Measure

__all__ = ["measure_function"]

_DATA = ("qid", "sample_weight", "docno", "per_query")
_Function = TypeVar("_Function", bound=Callable[..., Any])


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
            y = check_labels(y_true)
            scores = check_scores(y_score, len(y))
            weights = check_weights(sample_weight, len(y))
            return value_of(measure, y, scores, query_layout(qid, len(y)), weights, docno, per_query)

        return cast(_Function, judge)

    return decorate
