"""Boosted trees of LightGBM: scores of each query by trees grown without it, and trees of all queries."""

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
SETTINGS = ((15, 0.07), (7, 0.1), (31, 0.07))
"""Numbers of leaves and learning rates. Losses are compared with the first."""
LEAST_QUERIES = 10
_WATCHED = 5
"""One query in this many is watched, to select the number of trees."""
_MOST_TREES = 600
_PATIENCE = 50
_MOST_GRADES = 30
_LONGEST_QUERY = 10_000
"""Largest label, and largest number of rows of a query, of LightGBM's lambdarank."""


def lightgbm() -> Any:
    """The package, or an error that names the extra."""
    return require_extra("Boosted trees", "trees", "lightgbm")


def for_lightgbm(X: Matrix) -> Any:
    """Features in a form that LightGBM accepts."""
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


def rankrls_derivatives(f: Array, y: Array, starts: Index, weights: Array) -> tuple[Array, Array]:
    """Gradient ``L (f - y)`` and diagonal of ``L``, for queries in consecutive rows.

    Items weigh the same and ties are included: ``(L z)_i = w_i (z_i - mean of its query)``.
    """
    counts = np.diff(starts)
    total = np.add.reduceat(weights, starts[:-1])
    apart = f - y
    means = np.add.reduceat(weights * apart, starts[:-1]) / total
    return weights * (apart - np.repeat(means, counts)), weights * (1.0 - weights / np.repeat(total, counts))


@dataclass(frozen=True, eq=False)
class QueryRows:
    """Items in query order.

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
        """A subset of the queries."""
        rows = self.rows(queries)
        starts = lengths_to_starts(np.diff(self.starts)[queries])
        return QueryRows(self.X[rows], self.y[rows], self.weights[rows], starts)

    def rows(self, queries: Index) -> Index:
        """Rows of the given queries."""
        return runs_of(self.starts, queries)

    def dataset(self) -> Any:
        """LightGBM's dataset of the items."""
        sizes = np.diff(self.starts)
        return lightgbm().Dataset(for_lightgbm(self.X), self.y, weight=self.weights, group=sizes)


@dataclass(frozen=True, eq=False)
class Boosting:
    """Trees for one loss and setting, to be grown on the given items.

    Attributes
    ----------
    loss : str
    leaves : int
    rate : float
    data : QueryRows
    folds : list of ndarray
        Queries of each fold.
    measure : Measure
        Measure used to select the number of trees.
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
    def screened(self) -> list[tuple[int, Array]]:
        """Number of trees to grow without each fold, and scores of its rows by the trees that selected this number.

        The number is the best on a fifth of the other queries, by trees grown without these, x 5/4, because the data
        with the watched fifth are 5/4 as many.
        """
        best_of = np.argmax if self.measure.greater_is_better else np.argmin

        def without(k: int) -> tuple[int, Array]:
            rest = self._without(k)
            fifth = np.arange(len(rest.starts) - 1) % _WATCHED == 0
            grown, watched = (rest.take(np.flatnonzero(some)) for some in (~fifth, fifth))

            scores: list[Array] = []
            values: list[float] = []

            def record(f: Array, _: Any) -> list[Any]:
                scores.append(f.copy())
                return []

            def evaluate(now: Any) -> None:
                """Evaluate the trees when the patience with the best number ends, and stop if it is still the best."""
                best = int(best_of(values)) if values else 0
                if now.iteration not in (best + _PATIENCE, _MOST_TREES - 1):
                    return
                found = self.measure.values(np.array(scores), watched.y, watched.starts, weights=watched.weights)
                values.extend(np.nan_to_num([mean_of_judged(of_number) for of_number in found.T]))
                scores.clear()
                best = int(best_of(values))
                if now.iteration in (best + _PATIENCE, _MOST_TREES - 1):
                    raise lightgbm().callback.EarlyStopException(best, [])

            valid = [watched.dataset()]
            booster = self._grown(grown, _MOST_TREES, k, valid_sets=valid, feval=record, callbacks=[evaluate])
            return round(booster.best_iteration * _WATCHED / (_WATCHED - 1)), self._scores(booster, k)

        # LightGBM's threads wait busily for each other at every tree: folds side by side take a tenth of the time.
        return map_threads(without, range(len(self.folds)))

    @property
    def numbers(self) -> list[int]:
        """Number of trees to grow without each fold."""
        return [number for number, _ in self.screened]

    def screened_scores(self) -> Array:
        """Scores of each query by the trees that :attr:`screened` has grown without its fold, (m,)."""
        return self._of_folds([scores for _, scores in self.screened])

    def held_out(self, repetition: int) -> Array:
        """Scores of each query by trees grown without its fold, (m,)."""

        def without(k: int) -> Array:
            return self._scores(self._grown(self._without(k), self.numbers[k], len(self.folds) * repetition + k), k)

        return self._of_folds(map_threads(without, range(len(self.folds))))

    def _scores(self, booster: Any, k: int) -> Array:
        """Scores of the rows of a fold."""
        items = for_lightgbm(self.data.X[self.data.rows(self.folds[k])])
        return np.asarray(booster.predict(items, num_threads=1))

    def _of_folds(self, found: list[Array]) -> Array:
        """Scores of all rows, combined from the folds."""
        scores = np.empty(len(self.data.y))
        for fold, own in zip(self.folds, found, strict=True):
            scores[self.data.rows(fold)] = own
        return scores

    def fitted(self, models: int) -> Trees:
        """Mean of models of all queries, with more trees than without a fold because there are more queries."""
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
            "force_col_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }
        try:
            return lightgbm().train(parameters, data.dataset(), n_trees, **how)
        except lightgbm().basic.LightGBMError as error:
            problem = f"LightGBM cannot grow trees on these data: {error}"
            raise InputError(problem.strip(), parameter="families") from error


def unsupported_reason(loss: str, y: Array, layout: QueryLayout) -> str | None:
    """Reason why trees cannot be grown by a loss; None if they can."""
    varied = int(label_varies(y, layout).sum())
    if varied < LEAST_QUERIES:
        return f"trees need {LEAST_QUERIES} queries with different labels; there are {varied}"
    grades = ((y >= 0) & (y <= _MOST_GRADES) & (y == np.floor(y))).all()
    if loss == "lambdarank" and not (grades and layout.counts.max() <= _LONGEST_QUERY):
        return "lambdarank needs labels that are whole numbers from 0 to 30"
    return None
