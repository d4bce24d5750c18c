"""Boosted trees, grown by LightGBM with and without the queries of a fold, and as arrays that score items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._cached import cached_property
from rankrls._compiled import compiled, map_threads
from rankrls._errors import InputError, require_extra
from rankrls._queries import QueryLayout, label_varies
from rankrls._rows import row_slices
from rankrls._typing import AnyArray, Array, Index, Matrix, Values
from rankrls.metrics._measure import Measure, mean_of_judged
from rankrls.numerics.runs import lengths_to_starts, runs_of

Numbers = NDArray[np.int32]

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
_ROWS = 256
_TINY = float(np.float32(1e-35))
"""Largest absolute value that LightGBM reads as 0."""
_INFINITE = 1e300
"""Threshold that LightGBM writes for infinity."""
_AS_ZERO = 0
_LEFT = 1
_RIGHT = 2


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
    def screened(self) -> list[Any]:
        """Model without each fold, whose number of trees is the best on a fifth of the other queries."""

        def without(k: int) -> Any:
            rest = self._without(k)
            fifth = np.arange(len(rest.starts) - 1) % _WATCHED == 0
            grown, watched = (rest.take(np.flatnonzero(queries)) for queries in (~fifth, fifth))

            def evaluate(f: Array, _: Any) -> tuple[str, float, bool]:
                found = self.measure.values(f[None], watched.y, watched.starts, weights=watched.weights)
                value = np.nan_to_num(mean_of_judged(found[:, 0]))
                return "measure", float(value), self.measure.greater_is_better

            stop = lightgbm().early_stopping(_PATIENCE, verbose=False)
            valid = [watched.dataset()]
            return self._grown(grown, _MOST_TREES, k, valid_sets=valid, feval=evaluate, callbacks=[stop])

        # LightGBM's threads wait busily for each other at every tree: folds side by side take a tenth of the time.
        return map_threads(without, range(len(self.folds)))

    @property
    def numbers(self) -> list[int]:
        """Number of trees to grow without each fold: 5/4 of the best number, because there are 5/4 as many queries."""
        return [round(booster.best_iteration * _WATCHED / (_WATCHED - 1)) for booster in self.screened]

    def screened_scores(self) -> Array:
        """Scores of each query by the trees that :attr:`screened` has grown without its fold, (m,)."""
        return self._scores(self.screened)

    def held_out(self, repetition: int) -> Array:
        """Scores of each query by trees grown without its fold, (m,)."""

        def without(k: int) -> Any:
            return self._grown(self._without(k), self.numbers[k], len(self.folds) * repetition + k)

        return self._scores(map_threads(without, range(len(self.folds))))

    def _scores(self, boosters: list[Any]) -> Array:
        """Scores of the rows of each fold by its own model, (m,)."""
        scores = np.empty(len(self.data.y))
        for fold, booster in zip(self.folds, boosters, strict=True):
            rows = self.data.rows(fold)
            scores[rows] = booster.predict(for_lightgbm(self.data.X[rows]))
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


@dataclass(frozen=True, eq=False)
class Trees:
    """Mean of models of boosted trees.

    A tree sends an item from node k to ``left[k]`` if the item's feature ``feature[k]`` is at most ``threshold[k]``,
    and else to ``right[k]``. A number j >= 0 is that of a node, which is greater than k, and ~j that of a leaf. The
    score of a model is the sum of the values of the leaves that the item reaches.

    Attributes
    ----------
    feature : ndarray of int32 of shape (nodes,)
    threshold : ndarray of shape (nodes,)
        Thresholds, which may be infinite, as may the features.
    missing : ndarray of int8 of shape (nodes,)
        Whether a missing value counts as zero (0), or goes to the left (1) or to the right (2).
    left, right : ndarray of int32 of shape (nodes,)
    value : ndarray of shape (leaves,)
    roots : ndarray of int32 of shape (trees,)
        Root of each tree, a node or a leaf. Each node or leaf is referenced once.
    sizes : ndarray of intp of shape (models,)
        Number of trees of each model.
    n_features : int

    Raises
    ------
    ValueError
        If the arrays are not such trees, or their scores could be NaN or infinite.
    """

    feature: Numbers
    threshold: Array
    missing: NDArray[np.int8]
    left: Numbers
    right: Numbers
    value: Array
    roots: Numbers
    sizes: Index
    n_features: int

    def __post_init__(self) -> None:
        typed: dict[type, list[AnyArray]] = {
            np.int8: [self.missing],
            np.int32: [self.feature, self.left, self.right, self.roots],
            np.intp: [self.sizes],
            np.float64: [self.threshold, self.value],
        }
        every = [(array, dtype) for dtype, arrays in typed.items() for array in arrays]
        nodes = np.arange(len(self.feature))
        of_nodes = (self.threshold, self.missing, self.left, self.right)
        if not (
            all(array.dtype == dtype and array.ndim == 1 for array, dtype in every)
            and all(len(array) == len(nodes) for array in of_nodes)
            and self._are_trees(nodes)
        ):
            raise ValueError("it contains arrays that are not boosted trees")

    def _are_trees(self, nodes: Index) -> bool:
        """Whether each node is referenced once, by a node before it or as a root, and all scores are finite."""
        referenced = np.sort(np.concatenate([self.roots, self.left, self.right]))
        with np.errstate(over="ignore"):
            total = np.abs(self.value).sum()
        return bool(
            all(((child < 0) | (child > nodes)).all() for child in (self.left, self.right))
            and np.array_equal(referenced, np.arange(-len(self.value), len(nodes)))
            and len(self.sizes)
            and (self.sizes >= 0).all()
            and self.sizes.sum() == len(self.roots)
            and ((self.feature >= 0) & (self.feature < self.n_features)).all()
            and np.isin(self.missing, (_AS_ZERO, _LEFT, _RIGHT)).all()
            and not np.isnan(self.threshold).any()
            and np.isfinite(total)
        )

    def __call__(self, X: Matrix) -> Array:
        """Scores of items, (m,); O(m trees depth)."""
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but the trees have {self.n_features}")
        scores = np.zeros((len(self.sizes), X.shape[0]))
        starts = lengths_to_starts(self.sizes)
        nodes = (self.feature, self.threshold, self.missing, self.left, self.right, self.value)

        def add(rows: slice) -> None:
            block = X[rows].toarray() if sparse.issparse(X) else X[rows]
            block = np.array(block, dtype=np.float64, order="C")
            for k in range(len(self.sizes)):
                _add_values(block, *nodes, self.roots[starts[k] : starts[k + 1]], scores[k, rows])

        map_threads(add, row_slices(X.shape[0], _ROWS))
        return np.asarray(scores.mean(axis=0))


@compiled
def _add_values(X, feature, threshold, missing, left, right, value, roots, scores):  # type: ignore[no-untyped-def]
    """Add the value of every tree to the scores, in the order and with the comparisons of LightGBM."""
    for root in roots:
        for i in range(len(scores)):
            node = root
            while node >= 0:
                x = X[i, feature[node]]
                if np.isnan(x) and missing[node] != _AS_ZERO:
                    goes_left = missing[node] == _LEFT
                else:
                    if np.isnan(x) or abs(x) <= _TINY:
                        x = 0.0
                    goes_left = x <= threshold[node]
                node = left[node] if goes_left else right[node]
            scores[i] += value[~node]


def grown_trees(boosters: Sequence[Any], n_features: int) -> Trees:
    """Trees of LightGBM's models, whose scores are averaged."""
    nodes = list[tuple[int, float, int]]()
    children = list[tuple[int, int]]()
    values = list[float]()

    def add(tree: Values) -> int:
        """Number of the root of a tree, whose nodes and leaves are added."""
        if "leaf_value" in tree:
            values.append(tree["leaf_value"])
            return -len(values)
        number = len(nodes)
        direction = _LEFT if tree["default_left"] else _RIGHT
        missing = direction if tree["missing_type"] == "NaN" else _AS_ZERO
        nodes.append((tree["split_feature"], tree["threshold"], missing))
        children.append((0, 0))
        children[number] = (add(tree["left_child"]), add(tree["right_child"]))
        return number

    models = [[add(tree["tree_structure"]) for tree in each.dump_model()["tree_info"]] for each in boosters]
    feature, threshold, missing = np.array(nodes, dtype=np.float64).reshape(-1, 3).T
    left, right = np.array(children, dtype=np.int32).reshape(-1, 2).T
    return Trees(
        feature=feature.astype(np.int32),
        threshold=np.where(threshold >= _INFINITE, np.inf, threshold),
        missing=missing.astype(np.int8),
        left=left,
        right=right,
        value=np.array(values, dtype=np.float64),
        roots=np.concatenate(models).astype(np.int32),
        sizes=np.array([len(roots) for roots in models], dtype=np.intp),
        n_features=n_features,
    )
