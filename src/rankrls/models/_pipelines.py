"""A model that may stand behind transformers: its ranker, and its scores of items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankrls._errors import InputError
from rankrls.metrics._scorer import predict_by_query
from rankrls.models._base import Ranker
from rankrls.models._validation import check_no_extra_qid

__all__ = [
    "check_target",
    "fitted_ranker",
    "item_scores",
    "linear_weights",
    "names_of_features",
    "pipeline_steps",
]


def fitted_ranker(model: Any) -> Ranker:
    """The fitted ranker of a model, a pipeline or a search; anything else is refused."""
    final = model
    while hasattr(final, "best_estimator_") or isinstance(final, Pipeline):
        final = final.best_estimator_ if hasattr(final, "best_estimator_") else final.steps[-1][1]
    if not isinstance(final, Ranker):
        raise ValueError(
            f"model must be an estimator of rankrls, or a Pipeline that ends in one; got {type(final).__name__}."
        )
    check_is_fitted(final)
    return final


def item_scores(model: Any, X: Any, qid: Any, what: str, target: int | None = None) -> NDArray[np.float64]:
    """One score a row, (m,), by a model that is refused to compare items of different queries."""
    final = fitted_ranker(model)
    check_no_extra_qid(final._fitted_with_qid, qid, what)
    scores = np.asarray(predict_by_query(model, X, qid), dtype=np.float64)
    if scores.ndim == 1:
        return scores
    return scores[:, check_target(target, scores.shape[1])]


def check_target(target: int | None, targets: int) -> int:
    """Which of a model's targets; it has to be said where there are several."""
    if target is None and targets > 1:
        raise InputError(
            f"The model has {targets} targets; say which: {{target=0}} to {targets - 1}.", parameter="target"
        )
    chosen = 0 if target is None else target
    if isinstance(chosen, bool) or not isinstance(chosen, int | np.integer) or not 0 <= chosen < targets:
        raise InputError("{target} must be from 0 to {0}; got {1!r}.", targets - 1, target, parameter="target")
    return int(chosen)


def linear_weights(final: Ranker, target: int | None, what: str) -> NDArray[np.float64]:
    """Weights of the features, (n,); a model that has none is refused with the reason, and ``what`` needs them."""
    if not hasattr(final, "coef_"):
        kernel = getattr(getattr(final, "_kernel_", None), "name", None)
        why = f"its kernel is {kernel!r}" if kernel is not None else "it is no sum of weighted features"
        raise InputError(f"This model is not linear ({{{type(final).__name__}}}, {{0}}), and {what}", why)
    coef = np.atleast_2d(np.asarray(final.coef_, dtype=np.float64))
    return np.asarray(coef[check_target(target, len(coef))])


def pipeline_steps(model: Any) -> list[Any]:
    """What stands before the ranker, outermost first."""
    if hasattr(model, "best_estimator_"):
        return pipeline_steps(model.best_estimator_)
    if not isinstance(model, Pipeline):
        return []
    before = [step for _, step in model.steps[:-1] if step is not None and step != "passthrough"]
    return before + pipeline_steps(model.steps[-1][1])


def names_of_features(model: Any, given: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """A name for each feature that the last step sees."""
    steps = pipeline_steps(model)
    first = steps[0] if steps else fitted_ranker(model)
    names: Any = getattr(first, "feature_names_in_", None) if given is None else [str(name) for name in given]
    columns = getattr(first, "n_features_in_", n)
    if names is not None and len(names) != columns:
        raise InputError(
            "{feature_names} has {0} names; the model takes {1} features.",
            len(names),
            columns,
            parameter="feature_names",
        )
    known = [f"x{j}" for j in range(columns)] if names is None else [str(name) for name in names]
    for step in steps:
        known = _names_after(step, known)
    return tuple(known) if len(known) == n else tuple(f"x{j}" for j in range(n))


def _names_after(step: Any, names: list[str]) -> list[str]:
    """The names of a transformer's columns; none where it does not say."""
    own = getattr(step, "feature_names_in_", None)
    try:
        # A transformer that was fitted on names insists on those; ours replace them where it passes them on.
        out = [str(name) for name in step.get_feature_names_out(None if own is not None else names)]
    except (AttributeError, ValueError, TypeError):
        return []
    if own is not None and out == [str(name) for name in own]:
        return names
    return out
