"""Boosted trees as arrays, and their scores of items: trees grown by LightGBM are evaluated without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._compiled import compiled, map_threads
from rankrls._rows import row_slices
from rankrls._typing import AnyArray, Array, Index, Matrix
from rankrls.numerics.runs import lengths_to_starts

Numbers = NDArray[np.int32]

_ROWS = 256
_TINY = float(np.float32(1e-35))
"""Largest absolute value that LightGBM reads as 0."""
_AS_ZERO = 0
_LEFT = 1
_RIGHT = 2
_MISSING = {0: _AS_ZERO, 2: _AS_ZERO, 8: _RIGHT, 10: _LEFT}
"""LightGBM's decision types for numbers, and the direction of missing values; here zero is not a missing value."""


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
        typed: list[tuple[AnyArray, type]] = [(self.missing, np.int8), (self.sizes, np.intp)]
        typed += [(array, np.int32) for array in (self.feature, self.left, self.right, self.roots)]
        typed += [(array, np.float64) for array in (self.threshold, self.value)]
        if any(array.dtype != dtype or array.ndim != 1 for array, dtype in typed):
            raise ValueError("it contains boosted trees with arrays of another type")
        nodes = np.arange(len(self.feature))
        if any(len(array) != len(nodes) for array in (self.threshold, self.missing, self.left, self.right)):
            raise ValueError("it contains boosted trees with arrays of other lengths")
        named = np.sort(np.concatenate([self.roots, self.left, self.right]))
        behind = all(((child < 0) | (child > nodes)).all() for child in (self.left, self.right))
        if not behind or not np.array_equal(named, np.arange(-len(self.value), len(nodes))):
            raise ValueError("it contains boosted trees whose nodes are not each named once, by a node before them")
        if not (len(self.sizes) and (self.sizes >= 0).all() and self.sizes.sum() == len(self.roots)):
            raise ValueError("it contains boosted trees that belong to no model")
        if not ((self.feature >= 0) & (self.feature < self.n_features)).all():
            raise ValueError("it contains boosted trees of features that the model lacks")
        if not np.isin(self.missing, (_AS_ZERO, _LEFT, _RIGHT)).all():
            raise ValueError("it contains boosted trees with missing values without a direction")
        with np.errstate(over="ignore"):
            total = np.abs(self.value).sum()
        if np.isnan(self.threshold).any() or not np.isfinite(total):
            raise ValueError("it contains boosted trees with a threshold that is NaN or scores that are not finite")

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
    names = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
    nodes: dict[str, list[float]] = {name: [] for name in names}
    values: list[float] = []
    roots: list[int] = []
    sizes: list[int] = []
    for booster in boosters:
        trees = booster.model_to_string().partition("end of trees\n")[0].split("\nTree=")[1:]
        sizes.append(len(trees))
        for tree in trees:
            fields = dict(line.partition("=")[::2] for line in tree.splitlines())
            first_node = len(nodes["threshold"])
            first_leaf = len(values)
            values += map(float, fields["leaf_value"].split())
            if fields["num_leaves"] == "1":
                roots.append(~first_leaf)
                continue
            roots.append(first_node)
            for name in names:
                numbers = [float(word) for word in fields[name].split()]
                if name.endswith("_child"):
                    numbers = [child + first_node if child >= 0 else child - first_leaf for child in numbers]
                nodes[name] += numbers
    return Trees(
        feature=np.array(nodes["split_feature"], dtype=np.int32),
        threshold=np.array(nodes["threshold"], dtype=np.float64),
        missing=np.array([_MISSING[int(kind)] for kind in nodes["decision_type"]], dtype=np.int8),
        left=np.array(nodes["left_child"], dtype=np.int32),
        right=np.array(nodes["right_child"], dtype=np.int32),
        value=np.array(values, dtype=np.float64),
        roots=np.array(roots, dtype=np.int32),
        sizes=np.array(sizes, dtype=np.intp),
        n_features=n_features,
    )
