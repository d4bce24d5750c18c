"""A ranking measure as a scikit-learn scorer."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from rankrls._errors import InputError
from rankrls.metrics._measure import Measure, resolve_measure
from rankrls.metrics._values import labelled_rows


class RankingScorer:
    """Scorer of an estimator's ranking, made by :func:`make_ranking_scorer`.

    It has scikit-learn's interface, ``scorer(estimator, X, y, qid=qid)``, where greater is better. If metadata routing
    is enabled, it requests ``qid``, and ``sample_weight`` if the measure uses it. Rows whose label is NaN are left out
    for estimators that use unlabelled rows.
    """

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    def __call__(self, estimator: Any, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> float:
        """Average of the measure over queries; negated for an error.

        Raises
        ------
        ValueError
            If the estimator was fitted with qid but the scorer did not receive it: all rows would count as one query.
        """
        if qid is None and _holds(estimator, "fitted_with_qid_"):
            raise InputError(
                f"{self!r} did not get qid, but the model was fitted with it. qid reaches scorers by metadata "
                "routing: call sklearn.set_config(enable_metadata_routing=True) first, and pass "
                "params={'qid': qid} to cross_validate, or qid=qid to the fit of a search.",
                parameter="qid",
            )
        scores = predict_by_query(estimator, X, qid)
        used = sample_weight if self.measure.uses_sample_weight else None
        if _holds(estimator, "_takes_unlabelled"):
            y, scores, qid, used = labelled_rows(y, scores, qid, used)
        value = float(self.measure(y, np.asarray(scores), qid=qid, sample_weight=used))
        return value if self.measure.greater_is_better else -value

    def get_metadata_routing(self) -> MetadataRequest:
        """Request ``qid``, and ``sample_weight`` if the measure uses weights."""
        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        request.score.add_request(param="sample_weight", alias=self.measure.uses_sample_weight)
        return request

    def __repr__(self) -> str:
        return f"make_ranking_scorer({str(self.measure)!r})"


def make_ranking_scorer(measure: Any, *, convention: str | None = None) -> RankingScorer:
    """Make a scorer from a ranking measure, for ``GridSearchCV``, ``cross_validate`` and similar functions.

    Parameters
    ----------
    measure : str, Measure or callable
        See :func:`resolve_measure`.
    convention : str, optional
        Convention of a measure given by name; "letor" by default.

    Returns
    -------
    RankingScorer
        Scorer for which greater is better: errors are negated.

    Examples
    --------
    >>> import numpy as np, sklearn
    >>> from sklearn.model_selection import GroupKFold, cross_validate
    >>> from rankrls import RankRLS
    >>> from rankrls.metrics import make_ranking_scorer
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 3)), np.repeat(np.arange(6), 10)
    >>> y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     found = cross_validate(
    ...         RankRLS(),
    ...         X,
    ...         y,
    ...         cv=GroupKFold(3),
    ...         params={"qid": qid, "groups": qid},
    ...         scoring={"map": make_ranking_scorer("map"), "ndcg": make_ranking_scorer("ndcg@5")},
    ...     )
    >>> found["test_map"].shape, bool((found["test_map"] > 0.8).all())
    ((3,), True)
    """
    return RankingScorer(resolve_measure(measure, convention))


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
    *before, (_, last) = model.steps
    inner, final = unwrapped(last)
    return [step for _, step in before if step is not None and step != "passthrough"] + inner, final


@runtime_checkable
class ChecksFeatures(Protocol):
    """A search whose best model takes X without the names of its columns, as checked by the search."""

    best_estimator_: Any

    def _checked_features(self, X: Any) -> Any: ...


def final_step_inputs(model: Any, X: Any, qid: Any) -> tuple[Any, Any]:
    """Last step of a pipeline or a search, and X as transformed for that step."""
    if isinstance(model, Pipeline):
        *before, (_, last) = model.steps
        for _, step in before:
            X = _transformed(step, X, qid)
        return final_step_inputs(last, X, qid)
    if isinstance(model, ChecksFeatures):
        X = model._checked_features(X)
    if hasattr(model, "best_estimator_"):
        return final_step_inputs(model.best_estimator_, X, qid)
    return model, X


def _transformed(step: Any, X: Any, qid: Any) -> Any:
    if step is None or isinstance(step, str):  # "passthrough"
        return X
    if isinstance(step, Pipeline):
        last, X = final_step_inputs(step, X, qid)
        return _transformed(last, X, qid)
    return step.transform(X, qid=qid) if _holds(step, "fitted_with_qid_") else step.transform(X)


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
