"""Preferences through a pipeline: transformers see items, the last step sees pairs of them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples

from rankrls._preferences import Preferences, check_preferences
from rankrls._queries import query_layout

__all__ = ["fit_pairs"]


def fit_pairs(
    model: Any,
    X: Any,
    winners: Any,
    losers: Any,
    *,
    strength: Any = None,
    weight: Any = None,
    qid: Any = None,
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
    qid : array-like of shape (m,), optional
        A query id for each item, for scalers that look at one query at a time (:mod:`rankrls.preprocessing`). A
        preference must then be between items of one query. Without, such a scaler takes all items as one query. To
        ``predict`` afterwards, call ``sklearn.set_config(enable_metadata_routing=True)`` and give qid there too.
    **options
        Further arguments of the last step's ``fit_pairs``: ``groups``, or validation data, of which ``X_val`` is
        transformed (by ``qid_val``, where ``qid`` is given).

    Returns
    -------
    model
        The same, fitted.

    Raises
    ------
    ValueError
        Where the last step learns no preferences or not with these options; for bad preferences, before anything is
        fitted; where no step takes the ``qid`` that is given, or a preference is between items of two queries.

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
    head = _head(model)
    _check_learner(final, model, options)
    m = _num_samples(X)
    preferences = check_preferences(winners, losers, m, strength, weight)
    if qid is not None:
        _check_queries(head, preferences, qid, m)
    validation = options.get("X_val")
    if head is not None:
        if qid is None:
            X = head.fit_transform(X)
            if validation is not None:
                options["X_val"] = head.transform(validation)
        else:
            with sklearn.config_context(enable_metadata_routing=True):
                X = head.fit_transform(X, qid=qid)
                if validation is not None:
                    options["X_val"] = head.transform(validation, qid=options.get("qid_val"))
            if options.get("y_val") is None:
                options.pop("qid_val", None)  # validation preferences need it for their items' scale only
        model.steps[:-1] = head.steps  # a pipeline with a cache fits clones of its steps
    final.fit_pairs(X, *preferences[:2], strength=preferences.strength, weight=preferences.weight, **options)
    return model


def _head(model: Any) -> Pipeline | None:
    """The pipeline without its last step; None where there is nothing before it."""
    return model[:-1] if isinstance(model, Pipeline) and len(model.steps) > 1 else None


def _check_learner(final: Any, model: Any, options: dict[str, Any]) -> None:
    if isinstance(model, type):
        raise ValueError(f"model must be an estimator, not its class: {model.__name__}().")
    name = type(final).__name__
    if not hasattr(final, "fit_pairs"):
        where = "the pipeline's last step" if isinstance(model, Pipeline) else "the model"
        raise ValueError(
            f"{where} must learn from preferences, as RankRLS, CGRankRLS or RankSVM do; {name} has no fit_pairs."
        )
    takes = inspect.signature(final.fit_pairs).parameters
    unknown = [option for option in options if option not in takes]
    if unknown:
        raise ValueError(f"{name}.fit_pairs takes no {unknown[0]!r}.")


def _check_queries(head: Pipeline | None, preferences: Preferences, qid: Any, m: int) -> None:
    steps = [] if head is None else [step for _, step in head.steps if hasattr(step, "fit")]
    if not any("qid" in inspect.signature(step.fit).parameters for step in steps):
        raise ValueError("qid was given, but no transformer of the pipeline takes it: leave it out.")
    layout = query_layout(qid, m)
    apart = layout.codes[preferences.winners] != layout.codes[preferences.losers]
    if apart.any():
        e = int(np.argmax(apart))
        i, j = preferences.winners[e], preferences.losers[e]
        raise ValueError(
            f"Preference {e} compares rows {i} and {j} of different queries, whose features are scaled apart. Leave it "
            "out, or use a scaler that looks at all rows."
        )
