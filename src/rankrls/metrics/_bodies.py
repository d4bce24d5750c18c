"""The body that measures have in common as functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar, cast

from rankrls.metrics._checks import check_ranking
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
            return value_of(measure, check_ranking(y_true, y_score, qid, sample_weight), docno, per_query)

        return cast(_Function, judge)

    return decorate
