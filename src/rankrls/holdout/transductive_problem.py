"""Transduction as a problem on the scored ones of some rows; its parameter is alpha."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.features.columns import take_items
from rankrls.graph import ScoredGraph
from rankrls.holdout.transductive import HiddenRows, transduce
from rankrls.problems.problem import PathSolutions, Problem
from rankrls.problems.scorer import Scorer

_STEP = 3
"""Of an automatic grid every third value is tried: each is a factorisation of its own in each fold."""


@dataclass(frozen=True, eq=False)
class Transduced:
    """The labels of all rows, (rows, targets), given or found, and the function of them."""

    labels: NDArray[np.float64]
    function: Scorer


class TransductiveProblem(Problem):
    """RankRLS on all rows, with those labels for the unscored ones under which cross-validation goes best.

    Items are numbers of rows, as a matrix of one column.

    Parameters
    ----------
    whole : PrimalProblem or DualProblem
        On all rows; labels of the hidden ones are 0.
    X : items
        What numbers of rows stand for.
    labels : ndarray of shape (rows of ``whole``, targets)
    hidden : ndarray of intp
        Rows without labels, ascending: whole queries.
    folds : list of slices or row numbers
        What is held out together in the error that is minimised.
    penalty : float
    columns : ndarray of intp, optional
        The columns of a kernel matrix X that functions weigh; all by default.
    """

    def __init__(
        self,
        whole: Any,
        X: Any,
        labels: NDArray[np.float64],
        hidden: NDArray[np.intp],
        folds: list[Any],
        penalty: float,
        columns: NDArray[np.intp] | None = None,
    ) -> None:
        self.whole, self.X, self.labels, self.hidden = whole, X, labels, hidden
        self.folds, self.penalty, self.columns = folds, penalty, columns

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        if not len(self.hidden):
            plain = self.whole.path(values)
            coefficients, labels = plain.coefficients, [self.labels] * len(values)
        else:
            hidden = HiddenRows(ScoredGraph.of(self.whole.graph), self.hidden, self.folds)
            found = [transduce(self.whole, hidden, float(a), self.penalty) for a in values]
            coefficients = np.stack([one.coefficients for one in found])
            labels = [self.labels.copy() for _ in found]
            for filled, one in zip(labels, found, strict=True):
                filled[self.hidden] = one.labels
        details = [Transduced(y, self.whole.read(a)) for y, a in zip(labels, coefficients, strict=True)]
        return PathSolutions(coefficients, partial(_read, self.whole.read, self.X, self.columns), details)

    @property
    def values(self) -> NDArray[np.float64]:
        return np.asarray(self.whole.values)

    def axis(self, values: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        return np.asarray(self.whole.axis(values))[::_STEP]


def _read(read: Any, X: Any, columns: Any, a: NDArray[np.float64]) -> Scorer:
    return _OfRows(coefficients=a, items=X, columns=columns, function=read(a))


@dataclass(frozen=True, eq=False)
class _OfRows(Scorer):
    """A function of items, for rows by their numbers."""

    function: Scorer | None = None

    def __call__(self, X: Any) -> NDArray[np.float64]:
        assert self.function is not None
        items = take_items(self.items, np.asarray(X)[:, 0].astype(np.intp))
        return self.function(items if self.columns is None else items[:, self.columns])
