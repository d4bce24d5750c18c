"""Boosted trees of LightGBM: scores of each query by trees that were grown without it, and trees of all queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._compiled import map_threads
from rankrls._errors import InputError, require_extra
from rankrls._queries import QueryLayout, label_varies
from rankrls._typing import Array, Index, Matrix
from rankrls.learners.forest import Trees, grown_trees
from rankrls.metrics import Measure
from rankrls.metrics._values import mean_of_judged
from rankrls.numerics.runs import lengths_to_starts, runs_of

LOSSES = ("rankrls", "lambdarank")
SETTINGS = ((7, 0.1), (15, 0.07), (31, 0.07))
"""Leaves and learning rate."""
LEAST_QUERIES = 10
_WATCHED = 5
"""One of so many queries chooses the number of trees."""
_MOST_TREES = 600
_PATIENCE = 50
_MOST_GRADES = 30
_LONGEST_QUERY = 10_000
"""Labels from 0 to this, and rows of a query, that LightGBM's lambdarank takes."""


def lightgbm() -> Any:
    """The package, or one error that names the extra."""
    return require_extra("Boosted trees", "trees", "lightgbm")


def for_lightgbm(X: Matrix) -> Any:
    """Features as LightGBM takes them."""
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


def rankrls_derivatives(f: Array, y: Array, starts: Index, weights: Array) -> tuple[Array, Array]:
    """The gradient ``L (f - y)`` and the diagonal of ``L`` for queries that follow one another.

    Items count the same and ties are included: ``(L z)_i = w_i (z_i - mean of its query)``.
    """
    counts = np.diff(starts)
    total = np.add.reduceat(weights, starts[:-1])
    apart = f - y
    means = np.add.reduceat(weights * apart, starts[:-1]) / total
    return weights * (apart - np.repeat(means, counts)), weights * (1.0 - weights / np.repeat(total, counts))


@dataclass(frozen=True, eq=False)
class QueryRows:
    """Items in the order of their queries.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (m, n)
    y, weights : ndarray of shape (m,)
    starts : ndarray of shape (q + 1,)
    """

    X: Matrix
    y: Array
    weights: Array
    starts: Index

    def take(self, queries: Index) -> QueryRows:
        """Some of the queries."""
        rows = self.rows(queries)
        starts = lengths_to_starts(np.diff(self.starts)[queries])
        return QueryRows(self.X[rows], self.y[rows], self.weights[rows], starts)

    def rows(self, queries: Index) -> Index:
        """The rows of some queries."""
        return runs_of(self.starts, queries)

    def dataset(self) -> Any:
        """As LightGBM takes them."""
        sizes = np.diff(self.starts)
        return lightgbm().Dataset(for_lightgbm(self.X), self.y, weight=self.weights, group=sizes)


@dataclass(frozen=True, eq=False)
class Boosting:
    """Trees for one loss and setting, to be grown on some items.

    Attributes
    ----------
    loss : str
    leaves : int
    rate : float
    data : Labelled
    folds : list of ndarray
        Of queries.
    measure : Measure
        By which their number is chosen.
    seed : int
    """

    loss: str
    leaves: int
    rate: float
    data: QueryRows
    folds: list[Index]
    measure: Measure
    seed: int

    @cached_property
    def numbers(self) -> list[int]:
        """How many trees to grow without each fold.

        The number is the best for every fifth of the other queries, by trees that were grown without it; and larger
        by a quarter, as the data are with these.
        """

        def without(k: int) -> int:
            rest = self._without(k)
            fifth = np.arange(len(rest.starts) - 1) % _WATCHED == 0
            grown, watched = (rest.take(np.flatnonzero(some)) for some in (~fifth, fifth))

            def judged(f: Array, _: Any) -> tuple[str, float, bool]:
                values = self.measure.values(f[None], watched.y, watched.starts, weights=watched.weights)
                return "measure", float(np.nan_to_num(mean_of_judged(values)[0])), self.measure.greater_is_better

            stop = lightgbm().early_stopping(_PATIENCE, verbose=False)
            how = {"valid_sets": [watched.dataset()], "feval": judged, "callbacks": [stop]}
            number = int(self._grown(grown, _MOST_TREES, k, **how).best_iteration)
            return round(number * _WATCHED / (_WATCHED - 1))

        # LightGBM's own threads wait busily for each other at every tree: folds side by side take a tenth of the time.
        return map_threads(without, range(len(self.folds)))

    def held_out(self, repetition: int) -> Array:
        """Scores of each query by trees that were grown without its fold, (m,)."""

        def without(k: int) -> Any:
            grown = self._grown(self._without(k), self.numbers[k], len(self.folds) * repetition + k)
            return grown.predict(for_lightgbm(self.data.X[self.data.rows(self.folds[k])]), num_threads=1)

        scores = np.empty(len(self.data.y))
        for fold, found in zip(self.folds, map_threads(without, range(len(self.folds))), strict=True):
            scores[self.data.rows(fold)] = found
        return scores

    def fitted(self, models: int) -> Trees:
        """The mean of models of all queries, with more trees than without a fold, as there are more queries."""
        number = round(sum(self.numbers) / (len(self.folds) - 1))
        grown = map_threads(lambda k: self._grown(self.data, number, 1000 + k), range(models))
        return grown_trees(grown, self.data.X.shape[1])

    def _without(self, k: int) -> QueryRows:
        return self.data.take(np.concatenate(self.folds[:k] + self.folds[k + 1 :]))

    def _grown(self, data: QueryRows, n_trees: int, number: int, **how: Any) -> Any:
        def derivatives(f: Array, _: Any) -> tuple[Array, Array]:
            return rankrls_derivatives(f, data.y, data.starts, data.weights)

        parameters = {
            "objective": derivatives if self.loss == "rankrls" else self.loss,
            "metric": "None",
            "num_leaves": self.leaves,
            "learning_rate": self.rate,
            "feature_fraction": 0.5,
            "seed": self.seed + number,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }
        try:
            return lightgbm().train(parameters, data.dataset(), n_trees, **how)
        except lightgbm().basic.LightGBMError as error:
            problem = f"LightGBM cannot grow trees on these data: {error}"
            raise InputError(problem.strip(), parameter="families") from error


def unsupported_reason(loss: str, y: Array, layout: QueryLayout) -> str | None:
    """Why trees cannot be grown by a loss; None if they can."""
    varied = int(label_varies(y, layout).sum())
    if varied < LEAST_QUERIES:
        return f"trees need {LEAST_QUERIES} queries with different labels; there are {varied}"
    grades = ((y >= 0) & (y <= _MOST_GRADES) & (y == np.floor(y))).all()
    if loss == "lambdarank" and not (grades and layout.counts.max() <= _LONGEST_QUERY):
        return "lambdarank needs labels that are whole numbers from 0 to 30"
    return None
