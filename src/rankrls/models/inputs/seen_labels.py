"""Steps of a pipeline that learn from labels, before a last step that holds labels out."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from rankrls._errors import InputWarning
from rankrls.metrics._scorer import unwrapped


def label_users(model: Any) -> list[str]:
    """The steps before the ranker that learn from labels, such as TargetEncoder.

    What the last step holds out has then been seen by the step before it, so that held-out scores are optimistic.
    """
    parts = [part for step in unwrapped(model)[0] for part in (step, *step.get_params().values())]
    return list(dict.fromkeys(type(part).__name__ for part in parts if _uses_labels(part)))


def _uses_labels(part: Any) -> bool:
    if isinstance(part, type) or not hasattr(part, "fit") or not hasattr(part, "__sklearn_tags__"):
        return False
    return hasattr(part, "score_func") or bool(get_tags(part).target_tags.required)


def warn_of_seen_labels(model: Any, final: Any, *, stacklevel: int) -> None:
    """Held-out scores of the last step are not honest if a step before it has seen the labels."""
    how = str(getattr(final, "selection_", ""))
    if not how or how.startswith(("validation", "nothing")) or not (seen_by := label_users(model)):
        return
    warnings.warn(
        InputWarning(
            "The model was chosen by {0} of its last step, but {1} before it had learned from the labels of all rows: "
            "the cross-validated measure is optimistic, and so may the choice be.",
            *(how, " and ".join(seen_by)),
            remedy="Judge the whole pipeline by folds of queries: cross_validate or GridSearchCV with GroupKFold, and "
            "RankRLS as the last step.",
            parameter="model",
        ),
        stacklevel=stacklevel + 1,
    )


def warn_in_pipeline(final: Any) -> None:
    """The same at the end of ``fit``, if a pipeline has called it.

    A Pipeline tells its last step nothing of the others, so this looks for it among the callers: the ``self`` of the
    frame that called ``fit``. An interpreter without frames warns when the model is saved, as all do again.
    """
    frame: Any = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    level, inner = 3, final  # above this function and the wrapper of fit
    while frame is not None and (frame.f_globals.get("__name__") or "").partition(".")[0] in ("sklearn", "joblib"):
        owner = frame.f_locals.get("self")
        if isinstance(owner, Pipeline) and owner.steps[-1][1] is inner:
            inner = owner
        frame, level = frame.f_back, level + 1
    if inner is not final:
        warn_of_seen_labels(inner, final, stacklevel=level)
