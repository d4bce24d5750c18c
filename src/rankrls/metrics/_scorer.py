"""Models that scikit-learn combines, pipelines and searches: their steps, their scores, and the value of a measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from rankrls._errors import InputError
from rankrls.metrics._values import labelled_rows

if TYPE_CHECKING:
    from rankrls.metrics._measure import Measure


def score_model(measure: Measure, model: Any, X: Any, y: Any, qid: Any, sample_weight: Any) -> float:
    """Average of a measure of a model's ranking over queries; negated for an error.

    Rows whose label is NaN are left out for estimators that use unlabelled rows.

    Raises
    ------
    InputError
        If the model was fitted with qid but the measure did not receive it: all rows would count as one query.
    """
    if qid is None and _holds(model, "fitted_with_qid_"):
        raise InputError(
            f"The measure {measure} did not get qid, but the model was fitted with it. qid reaches scorers by metadata "
            "routing: call sklearn.set_config(enable_metadata_routing=True) first, and pass "
            "params={'qid': qid} to cross_validate, or qid=qid to the fit of a search.",
            parameter="qid",
        )
    scores = predict_by_query(model, X, qid)
    weights = sample_weight if measure.definition.over_pairs else None
    if _holds(model, "_takes_unlabelled"):
        y, scores, qid, weights = labelled_rows(y, scores, qid, weights)
    value = float(measure(y, np.asarray(scores), qid=qid, sample_weight=weights))
    return value if measure.greater_is_better else -value


def predict_by_query(model: Any, X: Any, qid: Any) -> Any:
    """``predict`` with qid passed to each step of a pipeline that scales by query, also inside a search or a blend.

    ``Pipeline.predict`` passes qid to its steps only if metadata routing is enabled.
    """
    final, X = final_step_inputs(model, X, qid)
    return final.predict(X, qid=qid) if getattr(final, "passes_qid_on", False) else final.predict(X)


def scales_by_query(model: Any) -> bool:
    """Whether a fitted model's scores of a row depend on the other rows of its query: a step scales within queries."""
    return any(_holds(step, "fitted_with_qid_") for step in unwrapped(model)[0])


def unwrapped(model: Any) -> tuple[list[Any], Any]:
    """Steps of a pipeline before the last, outermost first, and the last one; for a search, those of its best model."""
    if hasattr(model, "best_estimator_"):
        return unwrapped(model.best_estimator_)
    if not isinstance(model, Pipeline):
        return [], model
    inner, final = unwrapped(model.steps[-1][1])
    return _transformers(model) + inner, final


@runtime_checkable
class ChecksFeatures(Protocol):
    """A search whose best model takes X without the names of its columns, as checked by the search."""

    best_estimator_: Any

    def _checked_features(self, X: Any) -> Any: ...


def final_step_inputs(model: Any, X: Any, qid: Any) -> tuple[Any, Any]:
    """Last step of a pipeline or a search, and X as transformed for that step."""
    if isinstance(model, ChecksFeatures):
        X = model._checked_features(X)
    if hasattr(model, "best_estimator_"):
        return final_step_inputs(model.best_estimator_, X, qid)
    if not isinstance(model, Pipeline):
        return model, X
    for step in _transformers(model):
        if isinstance(step, Pipeline):
            step, X = final_step_inputs(step, X, qid)
        X = step.transform(X, qid=qid) if _holds(step, "fitted_with_qid_") else step.transform(X)
    return final_step_inputs(model.steps[-1][1], X, qid)


def _transformers(model: Pipeline) -> list[Any]:
    """Steps of a pipeline before the last, without those that change nothing."""
    return [step for _, step in model.steps[:-1] if step is not None and step != "passthrough"]


def _holds(estimator: Any, name: str) -> bool:
    """Whether ``name`` is true for an estimator or any inside it, such as a pipeline's step or a search's best."""
    seen: set[int] = set()
    inside = [estimator]
    while inside:
        part = inside.pop()
        if isinstance(part, (list, tuple)):
            inside.extend(part)
        elif isinstance(part, BaseEstimator) and id(part) not in seen:
            if getattr(part, name, False):
                return True
            seen.add(id(part))
            inside.extend(vars(part).values())
    return False
