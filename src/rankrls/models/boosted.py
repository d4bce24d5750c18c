"""Boosted trees, and blends of them with linear and kernel models: what AutoRankRLS tries beside those."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls.learners.trees import LOSSES, N_FOLDS, SETTINGS, Labelled, cross_fitted, drawn_folds, why_not
from rankrls.models import fitting
from rankrls.models.parameters import estimator
from rankrls.models.ranker import Ranker
from rankrls.numerics.runs import lengths_to_starts, runs_of
from rankrls.selection.basis import generator
from rankrls.selection.curves import evaluated
from rankrls.selection.plans import Plan
from rankrls.selection.search import Results

Array = NDArray[np.float64]


_WEIGHTS = (0.2, 0.4, 0.6, 0.8)
"""Of the trees in a blend."""


@estimator
class TreeRanker(Ranker):
    """The mean of cross-fitted boosted trees, ``trees_``."""

    _takes_missing = True

    def predict(self, X: Any) -> Array:
        """Score items."""
        check_is_fitted(self)
        return self.trees_(fitting.check_matrix(self, X, reset=False))


@estimator
class BlendRanker(Ranker):
    """The sum of the scores of two models, ``models_``, with ``weights_``."""

    def predict(self, X: Any) -> Array:
        """Score items."""
        check_is_fitted(self)
        return np.column_stack([model.predict(X) for model in self.models_]) @ self.weights_


class Found(NamedTuple):
    """A model, what was found with it, and how its rows were held out."""

    estimator: Any
    results: Results
    how: str


def fitted_trees(data: LabelledItems, plan: Plan, random_state: Any) -> Found:
    """The best cross-fitted trees of every loss and setting, judged by the scores of trees grown without the query."""
    if plan.exact != "queries" or data.Y.shape[1] > 1:
        raise InputError("Trees need one target, and folds of whole queries.", parameter="families")
    layout, rng, y = data.layout, generator(random_state), data.Y[:, 0]
    rows = layout.order[runs_of(layout.starts, layout.by_id)]
    weights = np.ones(len(y)) if data.weights is None else data.weights
    items = Labelled(data.X[rows], y[rows], weights[rows], lengths_to_starts(layout.counts[layout.by_id]))
    folds, seed = drawn_folds(data.Y, layout, rng), int(rng.integers(2**30))
    results, ranker, scores = Results(plan.greater_is_better, "best"), TreeRanker(), np.empty((len(y), 1, 1))
    fitting.begin(ranker, data)
    ranker.n_features_in_ = data.X.shape[1]
    reasons = {loss: why_not(loss, data.Y, layout) for loss in LOSSES}
    for loss in (loss for loss in LOSSES if reasons[loss] is None):
        for setting in SETTINGS:
            trees, scores[rows, 0, 0] = cross_fitted(loss, setting, items, folds, plan.measure, seed)
            curve = replace(evaluated(plan.measure, data, scores), scores=lambda _: scores[:, 0].copy())
            if results.add({"loss": loss, "leaves": setting[0]}, np.array([np.nan]), curve):
                ranker.trees_ = trees
    if not results.rows:
        raise InputError(f"{reasons[LOSSES[0]]}.", parameter="families")
    return Found(ranker, results, f"{N_FOLDS} folds of {layout.n_queries} queries")


def fitted_blend(data: LabelledItems, plan: Plan, other: Any, trees: Any) -> Found:
    """A weighted mean of the scores of two models that were tried, each of spread 1 inside queries.

    The weight is chosen by the measure of the held-out scores. Least squares on them would favour the other model,
    whose scores are fitted to the labels; those of lambdarank are not.
    """
    layout, columns = data.layout, np.hstack([one.results.best_scores for one in (other, trees)])
    means = np.column_stack([np.bincount(layout.codes, column) for column in columns.T]) / layout.counts[:, None]
    columns = columns - means[layout.codes]
    spreads = columns.std(axis=0)
    spreads[spreads == 0.0] = 1.0
    results, ranker = Results(plan.greater_is_better, "best"), BlendRanker()
    fitting.begin(ranker, data)
    for weight in _WEIGHTS:
        weights = np.array([1.0 - weight, weight]) / spreads
        curve = evaluated(plan.measure, data, (columns @ weights)[:, None, None])
        choices = {"blended": other.family, "weight": weight, **trees.results.best_choices}
        if results.add(choices, np.array([np.nan]), curve):
            ranker.weights_ = weights
    ranker.n_features_in_ = trees.estimator.n_features_in_
    ranker.models_ = [other.estimator, trees.estimator]
    return Found(ranker, results, trees.how)
