"""Boosted trees, and blends of them with linear and kernel models, for AutoRankRLS."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Features, LabelledItems
from rankrls._errors import InputError
from rankrls._problems import Solutions
from rankrls._typing import Array, IdsLike, ItemsLike, LabelsLike, RandomState
from rankrls.learners.trees import LOSSES, SETTINGS, Boosting, QueryRows, Trees, unsupported_reason
from rankrls.metrics._scorer import predict_by_query
from rankrls.models.fitted import Fitted
from rankrls.models.intake import check_matrix
from rankrls.models.ranker import Ranker
from rankrls.models.spec import Accepts
from rankrls.numerics.runs import lengths_to_starts, runs_of
from rankrls.selection.basis import generator
from rankrls.selection.plans import Plan, UnitsPlan
from rankrls.selection.search import SearchState

_N_MODELS = 3
"""Number of models of trees that are averaged."""
_WEIGHTS = (0.2, 0.4, 0.6, 0.8)
"""Weights of the trees in a blend."""


class _Assembled(Ranker):
    """A ranker that combines fitted ones."""

    def fit(self, X: ItemsLike, y: LabelsLike) -> Self:
        """Raise an error: scikit-learn requires this method."""
        raise TypeError(f"{type(self).__name__} does not fit.")


class TreeRanker(_Assembled):
    """The mean of boosted trees, ``trees_``."""

    _accepts = Accepts(missing_features=True)

    trees_: Trees

    def predict(self, X: ItemsLike) -> Array:
        """Return scores of items."""
        check_is_fitted(self)
        return self.trees_(check_matrix(self, X, self._accepts))


class BlendRanker(_Assembled):
    """The sum of the scores of two models, ``models_``, with ``weights_``."""

    passes_qid_on = True
    models_: list[BaseEstimator]
    weights_: Array

    def predict(self, X: ItemsLike, *, qid: IdsLike | None = None) -> Array:
        """Return scores of items, of whole queries if one of the models scales by query."""
        check_is_fitted(self)
        scores: Array = np.column_stack([predict_by_query(model, X, qid) for model in self.models_]) @ self.weights_
        return scores


class FittedTrees(NamedTuple):
    """Model of the best setting, its search, and the searches of the single models that compared all settings."""

    ranker: TreeRanker
    results: SearchState[Solutions]
    screened: list[SearchState[Solutions]]


def fitted_trees(data: LabelledItems, plan: Plan, random_state: RandomState) -> FittedTrees:
    """Trees of the best loss and setting, evaluated on the folds that they were grown without.

    Losses are compared with the first setting, and settings with the best loss, each by one model without a fifth of
    the other queries. The fitted model is the mean of several models of all queries, and is evaluated with as many.
    """
    layout = data.layout
    y = data.Y[:, 0]
    losses = [loss for loss in LOSSES if unsupported_reason(loss, data.Y, layout) is None]
    if not losses:
        raise InputError(f"{unsupported_reason(LOSSES[0], data.Y, layout)}.", parameter="families")
    held_out = plan.folds if isinstance(plan, UnitsPlan) else None
    if data.n_targets > 1 or held_out is None or sum(map(len, held_out)) < data.n_queries:
        raise InputError("Trees need one target, and folds that hold out each query.", parameter="families")
    rows = layout.order[runs_of(layout.starts, layout.by_id)]
    weights = np.ones(len(y)) if data.weights is None else data.weights
    items = QueryRows(data.X[rows], y[rows], weights[rows], lengths_to_starts(layout.counts[layout.by_id]))
    number = np.argsort(layout.by_id)
    folds = [np.sort(number[fold]) for fold in held_out]  # so that the watched fifth depends on the ids
    seed = int(generator(random_state).integers(2**30))
    tried: list[tuple[Boosting, SearchState[Solutions]]] = []

    def evaluated(each: Boosting, scores: list[Array]) -> SearchState[Solutions]:
        mean = np.empty((len(y), 1, 1))
        mean[rows, 0, 0] = np.mean(scores, axis=0)
        curve = replace(data.evaluate(plan.measure, mean), scores=lambda _: mean[:, 0])
        results: SearchState[Solutions] = SearchState(plan.greater_is_better, "best", mutual=plan.mutual)
        results.add({"loss": each.loss, "leaves": each.leaves}, np.array([np.nan]), curve)
        return results

    def screen(loss: str, leaves: int, rate: float) -> None:
        each = Boosting(loss, leaves, rate, items, folds, plan.measure, seed)
        tried.append((each, evaluated(each, [each.screened_scores()])))

    def best() -> Boosting:
        sign = 1.0 if plan.greater_is_better else -1.0
        return max(tried, key=lambda one: sign * one[1].best_score)[0]

    for loss in losses:
        screen(loss, *SETTINGS[0])
    better_loss = best().loss
    for setting in SETTINGS[1:]:
        screen(better_loss, *setting)
    results = evaluated(best(), [best().held_out(k) for k in range(_N_MODELS)])
    trees = best().fitted(_N_MODELS)
    ranker = TreeRanker()._set_fitted(Fitted.of(_numbered(data), trees_=trees))
    return FittedTrees(ranker, results, [found for _, found in tried])


def fitted_blend(data: LabelledItems, plan: Plan, other: Any, trees: Any) -> tuple[BlendRanker, SearchState[Solutions]]:
    """Weighted mean of the scores of two fitted models, each with spread 1 inside queries.

    The weight is selected by the measure of the held-out scores. Least squares would favour the other model, whose
    scores are fitted to the labels, unlike those of lambdarank.
    """
    layout = data.layout
    columns = np.hstack([one.results.best_scores for one in (other, trees)])
    means = np.column_stack([np.bincount(layout.codes, column) for column in columns.T]) / layout.counts[:, None]
    columns = columns - means[layout.codes]
    spreads = columns.std(axis=0)
    spreads[spreads == 0.0] = 1.0
    results: SearchState[Solutions] = SearchState(plan.greater_is_better, "best", mutual=plan.mutual)
    best_weights = np.zeros(2)
    for weight in _WEIGHTS:
        weights = np.array([1.0 - weight, weight]) / spreads
        curve = data.evaluate(plan.measure, (columns @ weights)[:, None, None])
        choices = {"blended": other.family, "weight": weight, **trees.results.best_choices}
        if results.add(choices, np.array([np.nan]), curve):
            best_weights = weights
    models = [other.estimator, trees.estimator]
    return BlendRanker()._set_fitted(Fitted.of(_numbered(data), models_=models, weights_=best_weights)), results


def _numbered(data: LabelledItems) -> LabelledItems:
    """Data of a model that gets a matrix: its features have no names."""
    return replace(data, features=Features(data.X.shape[1]))
