"""Models that may be pipelines: their ranker, scores and features, and fits to preferences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankrls._errors import InputError, format_setting
from rankrls._shown import records
from rankrls._typing import Array, ItemsLike, Values, VectorLike
from rankrls.learners.greedy import ForwardPath
from rankrls.metrics import resolve_measure
from rankrls.metrics._scorer import unwrapped
from rankrls.models.ranker import Chooses, FitsPreferences, Ranker
from rankrls.models.ranking_pursuit import RankingPursuitCV
from rankrls.preprocessing import TableEncoder

M = TypeVar("M")


def fitted_ranker(model: Any) -> Ranker:
    """The fitted ranker of a model, a pipeline or a search; anything else is refused."""
    _, final = unwrapped(model)
    if not isinstance(final, Ranker):
        problem = "model must be an estimator of rankrls with one score per row, or a Pipeline that ends in one"
        raise InputError(f"{problem}; got {type(final).__name__}.", parameter="model")
    check_is_fitted(final)
    return final


def check_target(target: int | None, targets: int) -> int:
    """Number of a target of a model, which is required if there are several."""
    if target is None and targets > 1:
        raise InputError(
            f"The model has {targets} targets. Choose one, from 0 to {targets - 1} (target).", parameter="target"
        )
    chosen = 0 if target is None else target
    if isinstance(chosen, bool) or not isinstance(chosen, int | np.integer) or not 0 <= chosen < targets:
        raise InputError(f"target must be from 0 to {targets - 1}; got {target!r}.", parameter="target")
    return int(chosen)


def linear_weights(final: Ranker, target: int | None, what: str, remedy: str = "") -> Array:
    """Weights of the features, (n,); other models are refused with the reason and the purpose ``what``."""
    if not hasattr(final, "coef_"):
        kernel = getattr(getattr(final, "_kernel_", None), "name", None)
        why = f"its kernel is {kernel!r}" if kernel is not None else "its score is not a sum of weighted features"
        settings = {"kernel": "linear"} if "kernel" in final.get_params(deep=False) else {}
        remedy = remedy or "".join(f" Fit with {format_setting(*each)}." for each in settings.items())
        problem = f"This model is not linear ({type(final).__name__}, {why}), and {what}"
        raise InputError(f"{problem}{remedy}", settings=settings)
    coef = np.atleast_2d(np.asarray(final.coef_, dtype=np.float64))
    return np.asarray(coef[check_target(target, len(coef))])


def table_encoder(model: Any) -> TableEncoder | None:
    """The TableEncoder at the start of a model's pipeline; None if there is none."""
    steps = unwrapped(model)[0]
    return steps[0] if steps and isinstance(steps[0], TableEncoder) else None


def fitted_names(model: Any) -> Any:
    """Names of the features that a model was fitted to, as an array; None if unknown."""
    first = [*unwrapped(model)[0], fitted_ranker(model)][0]
    return getattr(first, "feature_names_in_", getattr(model, "feature_names_in_", None))


def names_of_features(model: Any, given: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """Names of the features of the last step."""
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
        own = [str(name) for name in getattr(step, "feature_names_in_", known)]  # a step accepts only those of its fit
        try:
            out = [str(name) for name in step.get_feature_names_out(own)]
        except (AttributeError, ValueError, TypeError):
            out = []
        known = known if out == own else out
    return tuple(known) if len(known) == n else tuple(f"x{j}" for j in range(n))


def selects_features(final: object) -> bool:
    """Whether a fitted ranker selected features one by one."""
    return isinstance(final, Ranker) and final._feature_path is not None


def selected_features(model: Any, *, feature_names: Sequence[str] | None = None) -> list[Values]:
    """Return the features that a model selected, with their weights and effects on the held-out measure.

    Parameters
    ----------
    model : GreedyRankRLS, RankingPursuit or RankingPursuitCV with ``dictionary="features"``
        Fitted model, or a pipeline that ends in one.
    feature_names : sequence of str, optional
        Names of the columns of X; by default the names of the fit.

    Returns
    -------
    list of dict
        Table by rows, in the order of selection, as accepted by ``pandas.DataFrame``: ``feature`` (its number),
        ``name``, ``weight``, ``held_out`` (measure with this feature and those before it) and ``gain`` (improvement of
        the measure by this feature); None where nothing was held out. For GreedyRankRLS, the held-out measure is the
        remaining squared error, as a share of that without features: the error by which it selects. For
        RankingPursuitCV, it is the measure used to select the number of features, where each fold has its own
        selection.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import GreedyRankRLS
    >>> from rankrls.inspection import selected_features
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(300, 40)), np.repeat(np.arange(30), 10)
    >>> y = X[:, 3] - 2 * X[:, 11] + 0.5 * X[:, 30] + rng.normal(size=300)
    >>> model = GreedyRankRLS(rule="one_se").fit(X, y, qid=qid)
    >>> for row in selected_features(model):
    ...     print(row["name"], round(row["weight"], 2), round(row["gain"], 2))
    x11 -1.98 0.63
    x3 0.95 0.16
    x30 0.51 0.05
    """
    final = fitted_ranker(model)
    path = final._feature_path
    if path is None:
        raise InputError(f"This {type(final).__name__} does not select features.", parameter="model")
    feature, stage = np.unique(path.indices, return_index=True)
    order = np.argsort(stage)
    feature = feature[order]
    stage = stage[order]
    held_out = np.full(path.n_stages + 1, np.nan)
    sign = -1.0
    if isinstance(path, ForwardPath):
        held_out = path.held_out / path.held_out[0]
    elif isinstance(final, RankingPursuitCV):
        chosen = {name: value for name, value in final.best_params_.items() if name != "n_basis"}
        same = [all(of[name] == chosen[name] for name in chosen) for of in records(final.cv_results_)]
        held_out[1:] = final.cv_results_["mean_score"][same][: path.n_stages]
        sign = 1.0 if resolve_measure(final.scoring).greater_is_better else -1.0
    names = names_of_features(model, feature_names, final.n_features_in_)
    columns = {
        "feature": feature,
        "name": np.array(names)[feature],
        "weight": final.coef_[feature],
        "held_out": held_out[stage + 1],
        "gain": sign * np.diff(held_out)[stage],
    }
    return [{name: None if value != value else value for name, value in row.items()} for row in records(columns)]


def fit_pairs(model: M, X: ItemsLike, winners: VectorLike, losers: VectorLike, **options: Any) -> M:
    """Fit a pipeline to preferences: its transformers to the items, then its last step to the pairs.

    scikit-learn's ``Pipeline.fit`` cannot do this: its metadata have one entry per row, and it slices every array that
    is as long as the rows.

    Parameters
    ----------
    model : Pipeline, or estimator with ``fit_pairs``
        Model, fitted in place as by ``Pipeline.fit``. The last step needs ``fit_pairs``.
    X : array-like, sparse matrix or data frame of shape (m, n)
        Items, including those in no preference: transformers are fitted to all of them.
    winners, losers, **options : as in the last step's ``fit_pairs``

    Returns
    -------
    model
        The same object, fitted.

    Raises
    ------
    ValueError
        If the last step does not support preferences or these options, or preferences are invalid.

    See Also
    --------
    rankrls.io.load_pairs : Read preferences from a file.
    rankrls.io.load_votes : Read votes from a file.

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
    if not isinstance(final, FitsPreferences | Chooses):
        problem = f"fit_pairs needs an estimator for preferences, or a pipeline that ends in one; got {final!r}."
        raise InputError(problem, parameter="model")
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        head = model[:-1]
        X = head.fit_transform(X)
        model.steps[:-1] = head.steps  # a pipeline with a cache fits clones of its steps
    final.fit_pairs(X, winners, losers, **options)
    return model
