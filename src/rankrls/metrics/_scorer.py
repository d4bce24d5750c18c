"""Models that scikit-learn combines, pipelines and searches: their steps and their scores."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline


def predict_by_query(model: Any, X: Any, qid: Any) -> Any:
    """``predict`` with qid passed to each step of a pipeline that scales by query, also inside a search or a blend.

    ``Pipeline.predict`` passes qid to its steps only if metadata routing is enabled.
    """
    final, X = final_step_inputs(model, X, qid)
    return final.predict(X, qid=qid) if getattr(final, "passes_qid_on", False) else final.predict(X)


def scales_by_query(model: Any) -> bool:
    """Whether a fitted model's scores of a row depend on the other rows of its query: a step scales within queries."""
    return any(holds(step, "fitted_with_qid_") for step in unwrapped(model)[0])


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
        X = step.transform(X, qid=qid) if holds(step, "fitted_with_qid_") else step.transform(X)
    return final_step_inputs(model.steps[-1][1], X, qid)


def _transformers(model: Pipeline) -> list[Any]:
    """Steps of a pipeline before the last, without those that change nothing."""
    return [step for _, step in model.steps[:-1] if step is not None and step != "passthrough"]


def holds(estimator: Any, name: str) -> bool:
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
