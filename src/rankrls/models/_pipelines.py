"""A model that may stand behind transformers: its ranker, its scores of items, and how it learns preferences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples, check_is_fitted

from rankrls._errors import InputError, spelled
from rankrls._preferences import check_preferences
from rankrls.metrics._scorer import predict_by_query, unwrapped
from rankrls.models.fitting import check_no_extra_qid
from rankrls.models.ranker import Ranker
from rankrls.preprocessing import TableEncoder


def fitted_ranker(model: Any) -> Ranker:
    """The fitted ranker of a model, a pipeline or a search; anything else is refused."""
    _, final = unwrapped(model)
    if hasattr(final, "n_items_"):
        raise InputError(
            f"{type(final).__name__} predicts scores of all items for each row of X. Use a model that predicts "
            "one score per row.",
            parameter="model",
        )
    if not isinstance(final, Ranker):
        raise InputError(
            f"model must be an estimator of rankrls, or a Pipeline that ends in one; got {type(final).__name__}.",
            parameter="model",
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
        problem = f"The model has {targets} targets. Choose one, from 0 to {targets - 1} (target)."
        raise InputError(problem, parameter="target")
    chosen = 0 if target is None else target
    if isinstance(chosen, bool) or not isinstance(chosen, int | np.integer) or not 0 <= chosen < targets:
        raise InputError(f"target must be from 0 to {targets - 1}; got {target!r}.", parameter="target")
    return int(chosen)


def linear_weights(final: Ranker, target: int | None, what: str, remedy: str = "") -> NDArray[np.float64]:
    """Weights of the features, (n,); a model that has none is refused with the reason, and ``what`` needs them."""
    if not hasattr(final, "coef_"):
        kernel = getattr(getattr(final, "_kernel_", None), "name", None)
        why = f"its kernel is {kernel!r}" if kernel is not None else "its score is not a sum of weighted features"
        settings = {"kernel": "linear"} if "kernel" in final.get_params(deep=False) else {}
        remedy = remedy or "".join(f" Fit with {spelled(*each)}." for each in settings.items())
        problem = f"This model is not linear ({type(final).__name__}, {why}), and {what}"
        raise InputError(f"{problem}{remedy}", settings=settings)
    coef = np.atleast_2d(np.asarray(final.coef_, dtype=np.float64))
    return np.asarray(coef[check_target(target, len(coef))])


def table_encoder(model: Any) -> Any:
    """The TableEncoder that a model's pipeline begins with; None if there is none."""
    steps = unwrapped(model)[0]
    return steps[0] if steps and isinstance(steps[0], TableEncoder) else None


def fitted_names(model: Any) -> Any:
    """The names of the features that a model was fitted on, an array; None if it does not know them."""
    first = [*unwrapped(model)[0], fitted_ranker(model)][0]
    return getattr(first, "feature_names_in_", getattr(model, "feature_names_in_", None))


def names_of_features(model: Any, given: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """A name for each feature that the last step sees."""
    steps = unwrapped(model)[0]
    first = steps[0] if steps else fitted_ranker(model)
    names: Any = fitted_names(model) if given is None else [str(name) for name in given]
    columns = getattr(first, "n_features_in_", n)
    if names is not None and len(names) != columns:
        raise InputError(
            f"feature_names has {len(names)} names; the model takes {columns} features.", parameter="feature_names"
        )
    known = [f"x{j}" for j in range(columns)] if names is None else [str(name) for name in names]
    for step in steps:
        own = [str(name) for name in getattr(step, "feature_names_in_", known)]  # it insists on those of its fit
        try:
            out = [str(name) for name in step.get_feature_names_out(own)]
        except (AttributeError, ValueError, TypeError):
            out = []
        known = known if out == own else out
    return tuple(known) if len(known) == n else tuple(f"x{j}" for j in range(n))


def fit_pairs(
    model: Any,
    X: Any,
    winners: Any,
    losers: Any,
    *,
    strength: Any = None,
    weight: Any = None,
    **options: Any,
) -> Any:
    """Fit a pipeline to preferences: its transformers to the items, then its last step to the pairs.

    scikit-learn's ``Pipeline.fit`` cannot do this: its metadata are one entry a row, and it slices whatever is as long
    as the rows.

    Parameters
    ----------
    model : Pipeline, or estimator with ``fit_pairs``
        Fitted in place, as by ``Pipeline.fit``. The last step needs a ``fit_pairs``.
    X : array-like, sparse matrix or data frame of shape (m, n)
        The items, those in no preference too: transformers learn from all of them.
    winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`
    **options
        Further arguments of the last step's ``fit_pairs``: ``groups``.

    Returns
    -------
    model
        The same, fitted.

    Raises
    ------
    ValueError
        Where the last step learns no preferences or not with these options; and for bad preferences, before anything is
        fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rankrls import RankRLS, fit_pairs
    >>> X = np.array([[100.0, 3.0], [200.0, 1.0], [300.0, 5.0], [400.0, 2.0]])
    >>> model = make_pipeline(StandardScaler(), RankRLS())
    >>> fit_pairs(model, X, winners=[0, 2, 2], losers=[1, 1, 3]).predict(X).argmax()
    np.int64(2)
    """
    final = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not hasattr(final, "fit_pairs") or isinstance(final, type):
        raise InputError(
            "fit_pairs needs an estimator for preferences, such as RankRLS, CGRankRLS or RankSVM, or a "
            f"pipeline that ends in one; got {final!r}.",
            parameter="model",
        )
    preferences = check_preferences(winners, losers, _num_samples(X), strength, weight)
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        head = model[:-1]
        X = head.fit_transform(X)
        model.steps[:-1] = head.steps  # a pipeline with a cache fits clones of its steps
    given = {"strength": preferences.strength, "weight": preferences.weight}
    final.fit_pairs(X, preferences.winners, preferences.losers, **given, **options)
    return model
