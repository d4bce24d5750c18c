"""Nested cross-validation: the selection of a model is repeated without the rows of each fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import indexable

from rankrls._checks import check_finite, refusing, vector_of
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._shown import Shown
from rankrls._typing import AnyArray, Array, IdsLike, Index, ItemsLike, Matrix, VectorLike
from rankrls.metrics import Measure, preference_accuracy
from rankrls.metrics._scorer import predict_by_query
from rankrls.metrics._values import mean_and_error
from rankrls.models.fitted import ChosenAttributes
from rankrls.models.parameters import number
from rankrls.models.ranker import Chooses, Ranker
from rankrls.survival import survival_pairs


@dataclass(frozen=True, eq=False, repr=False)
class NestedEstimate(Shown):
    """Result of :func:`nested_estimate`.

    Attributes
    ----------
    score : float
        Mean of the measure over the held-out queries, or over the folds of one ranking.
    standard_error : float
        Standard error of this mean; somewhat too small, because folds share training rows.
    values : ndarray of shape (queries,) or (folds,)
        Values that are averaged; NaN if there is nothing to compare.
    choices : list of dict
        ``best_params_`` for each fold.
    fold : ndarray of shape (m,), intp
        Fold of each row, from 0.
    held_out_scores : ndarray of shape (m,)
        Score of each row by the model that was selected and fitted without the row's fold.
    measure, protocol : str
    """

    score: float
    standard_error: float
    values: Array
    choices: list[dict[str, Any]]
    fold: Index
    held_out_scores: Array
    measure: str
    protocol: str

    def __str__(self) -> str:
        score = f"{self.score:.4f} ± {self.standard_error:.4f} (standard error)"
        lines = [f"Nested {self.measure} {score}, by {self.protocol}, with the choice repeated in each"]
        for name in self.choices[0]:
            values = [each[name] for each in self.choices]
            shown = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
            if len({*shown}) > 1:
                lines.append(f"{name} of each: {', '.join(shown)}")
        return "\n".join(lines)


def nested_estimate(
    estimator: Ranker,
    X: ItemsLike,
    y: VectorLike,
    *,
    event: VectorLike | None = None,
    qid: IdsLike | None = None,
    item_id: IdsLike | None = None,
    cv: int = 5,
    random_state: int = 0,
) -> NestedEstimate:
    """Estimate the quality of a model including its selection, which is repeated without each fold.

    The held-out score of a selected model is optimistic, because the selection used it. Here each fold is scored by a
    model whose alpha, kernel, ... were selected using the other folds.

    Parameters
    ----------
    estimator : RankRLSCV, or another estimator with ``scoring``
        Estimator to evaluate; it need not be fitted and is not changed.
    X, y, qid : as in :meth:`RankRLSCV.fit`
        With ``qid``, folds contain whole queries. Otherwise they are stratified folds of rows, and rows are compared
        only within their fold, because scores of different models are not comparable.
    event : array-like of shape (m,), optional
        1 if the event was observed; y then contains right-censored times. The estimator is fitted to the pairs of
        :func:`~rankrls.survival_pairs`, with items held out, and the measure is the C-index. Folds are of items, and
        only rows with the same ``qid`` are compared.
    item_id : array-like of shape (m,), optional
        Item ids, for use with ``event``: rows with equal ids are the same item (patient) and are in the same fold. By
        default, each row is an item.
    cv : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the folds; the mean over several seeds is a better estimate.

    Returns
    -------
    NestedEstimate

    See Also
    --------
    permutation_test : Test whether the value is better than chance.
    leave_pair_out : Hold out pairs, with a fixed alpha.

    Notes
    -----
    ``cv`` fits of the estimator.

    References
    ----------
    Varma, Simon: Bias in error estimation when using cross-validation for model selection. BMC Bioinformatics 7, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLSCV
    >>> from rankrls.model_selection import nested_estimate
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=60)  # sixty patients
    >>> X = rng.normal(size=(60, 200))  # two hundred genes
    >>> X[:, :20] += 0.5 * y[:, None]
    >>> nested_estimate(RankRLSCV(scoring="pair_accuracy", alphas=(1.0, 100.0)), X, y)
    Nested pair_accuracy 0.7838 ± 0.0269 (standard error), by 5 folds of 60 rows, with the choice repeated in each
    alpha of each: 100, 100, 100, 1, 100
    """
    measure = measure_of_choice(estimator, event, "nested_estimate")
    number(least=2, whole=True)("cv", cv)
    number(least=0, whole=True)("random_state", random_state)
    y = vector_of("y", y, "one label per row")
    check_finite("y", y, "label")
    with refusing("X"):
        rows: Matrix = indexable(X, y, event)[0]
    event = None if event is None else np.asarray(event)
    layout = query_layout(qid, len(y))
    ids = None if qid is None else layout.ids[layout.codes]
    items = query_layout(np.arange(len(y)) if item_id is None else item_id, len(y), name="item_id").codes
    if item_id is not None and event is None:
        raise InputError("item_id needs censored times (event). For labels, queries are held out.", parameter="item_id")
    fold, protocol = _folds(y, event, ids, items, cv, random_state)
    scores = np.empty(len(y))
    values = np.full(cv, np.nan)
    choices = []
    for each in range(cv):
        train = np.flatnonzero(fold != each)
        test = np.flatnonzero(fold == each)
        own = None if ids is None else ids[train]
        model = clone(estimator)
        X_train, y_train = _safe_split(model, rows, y, train)
        if event is None:
            model.fit(X_train, y_train, qid=own)
        else:
            winners, losers = survival_pairs(y_train, event[train], qid=own)
            model.fit_pairs(X_train, winners, losers, item_id=items[train])
        held_out = _safe_split(model, rows, y, test, train)[0]
        scores[test] = predict_by_query(model, held_out, None if ids is None else ids[test])
        choices.append(dict(model.best_params_))
        if event is not None:
            values[each] = _concordance(scores[test], y[test], event[test], None if ids is None else ids[test])
    if event is None:
        values = measure(y, scores, qid=fold if ids is None else ids, per_query=True)
    mean, error = (float(each[0]) for each in mean_and_error(values[:, None]))
    name = "C-index" if event is not None else str(measure)
    return NestedEstimate(mean, error, values, choices, fold, scores, name, protocol)


def measure_of_choice(estimator: object, event: object, what: str) -> Measure:
    """Measure by which an estimator selects a model; other estimators are refused."""
    if not isinstance(estimator, ChosenAttributes) or not isinstance(estimator, Ranker):
        raise InputError(
            f"{what} repeats the selection of a model, so it needs an estimator with cross-validation (cv), such as "
            f"RankRLSCV; got {type(estimator).__name__}.",
            parameter="estimator",
        )
    if event is not None and not isinstance(estimator, Chooses):
        raise InputError(f"{type(estimator).__name__} cannot be fitted to censored times.", parameter="event")
    spec = estimator._spec()
    spec = spec if event is None else spec.for_preferences()
    return spec.required_measure


def _folds(
    y: Array, event: AnyArray | None, qid: AnyArray | None, items: Index, k: int, seed: int
) -> tuple[Index, str]:
    """Fold of each row, and a description of the folds."""
    rng = np.random.default_rng(seed)
    by_query = qid is not None and event is None
    layout = query_layout(qid if by_query else items, len(y))
    n = layout.n_queries
    what = "queries" if by_query else "rows" if n == len(y) else "items"
    if k > n:
        raise InputError(f"cv must be at most {n}, the number of {what}; got {k}.", parameter="cv")
    first = layout.order[layout.starts[:-1]]
    draws = np.empty(n)
    draws[layout.by_id] = rng.random(n)
    # every k successive units in the order of their labels go to different folds
    labels = [] if by_query else [y[first]] if event is None else [y[first], event[first]]
    fold = np.empty(n, dtype=np.intp)
    fold[np.lexsort([draws, *labels])] = np.concatenate([rng.permutation(k) for _ in range(0, n, k)])[:n]
    return fold[layout.codes], f"{k} folds of {n} {what}"


def _concordance(scores: Array, time: Array, event: AnyArray, qid: AnyArray | None) -> float:
    """C-index of one fold; NaN if it has no comparable pair."""
    try:
        winners, losers = survival_pairs(time, event, qid=qid)
    except InputError:
        return np.nan
    return float(preference_accuracy(scores, winners, losers))
