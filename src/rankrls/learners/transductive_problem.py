"""Transductive RankRLS as a problem of the search; its parameter is alpha."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._rows import take_items
from rankrls.learners.transductive import transduce
from rankrls.numerics.graph import Array, Index, LabelledGraph
from rankrls.numerics.holdout import in_order_of
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import Smoother

_STEP = 3
"""Of an automatic grid every third value is tried: each is a solution of its own in each fold."""


@dataclass(frozen=True, eq=False)
class Transduced:
    """The labels of all rows, (rows, targets), given or found, and the function of them."""

    labels: Array
    function: Scorer


@dataclass(frozen=True, eq=False)
class TransductiveSolutions:
    """Functions of several values of alpha, for items that are numbers of rows of X.

    Attributes
    ----------
    details : sequence of Transduced
    X : items
    columns : ndarray of intp or None
        The columns of a kernel matrix X that functions weigh.
    """

    details: Sequence[Transduced]
    X: Any
    columns: Index | None

    def scores(self, numbers: Any) -> Array:
        """Scores of rows, (rows, values, targets)."""
        items = take_items(self.X, np.asarray(numbers)[:, 0].astype(np.intp))
        items = items if self.columns is None else items[:, self.columns]
        return np.stack([one.function(items) for one in self.details], axis=1)

    def __getitem__(self, k: int) -> Scorer:
        return self.details[k].function


@dataclass(frozen=True, eq=False)
class TransductiveProblem:
    """RankRLS on all rows, with those labels for the unlabelled ones under which cross-validation goes best.

    Items are numbers of rows, as a matrix of one column.

    Attributes
    ----------
    form : Form
        Of all rows; any labels in the hidden ones.
    X : items
        What numbers of rows stand for.
    labels : ndarray of shape (rows, targets)
    hidden : ndarray of bool
        Rows without labels: whole queries.
    folds : sequence of row numbers
        What is held out together in the error that is minimised.
    penalty : float
    columns : ndarray of intp or None
    """

    form: Any
    X: Any
    labels: Array
    hidden: NDArray[np.bool_]
    folds: Sequence[Any]
    penalty: float
    columns: Index | None = None

    parameter = "alpha"
    lost_feature = None

    def axis(self) -> Array:
        """An automatic grid, the largest alpha first."""
        return np.asarray(self.form.smoother.grid()[::_STEP])

    def path(self, values: NDArray[np.float64]) -> TransductiveSolutions:
        """The functions of several alphas."""
        form = self.form
        if not self.hidden.any():
            found = [Transduced(self.labels, form.read(c)) for c in form.path(values)]
            return TransductiveSolutions(found, self.X, self.columns)
        smoother, graph, count = self._hidden_first
        place = np.empty(len(self.labels), dtype=np.intp)
        place[graph.rows] = np.arange(graph.n_rows)
        folds = [place[np.arange(len(place))[fold]] for fold in self.folds]
        found = []
        for alpha in values.tolist():
            one = transduce(smoother, graph, form.features, alpha, self.penalty, count, folds)
            labels = self.labels.copy()
            labels[one.rows] = one.labels
            found.append(Transduced(labels, form.read(one.coefficients)))
        return TransductiveSolutions(found, self.X, self.columns)

    @cached_property
    def _hidden_first(self) -> tuple[Smoother, LabelledGraph, int]:
        """The smoother and the graph with the hidden queries first, and how many they are."""
        graph = self.form.graph
        of_query = self.hidden[graph.rows[graph.starts[:-1]]]
        order = np.argsort(~of_query, kind="stable")
        taken = graph.take(order)
        return in_order_of(self.form.smoother, taken, order), taken, int(of_query.sum())


def transductive_problem(
    model: Any, data: Any, known: Any, folds: Sequence[Any], penalty: float
) -> TransductiveProblem:
    """The problem of a candidate ``model`` on all rows ``data``, of which ``known`` have labels.

    The items of ``known`` are their numbers among all rows, as a matrix of one column. Rows without labels of queries
    that have some are left out: they cannot be labelled by themselves.
    """
    rows, codes = known.X[:, 0].astype(np.intp), data.layout.codes
    labels = np.zeros((data.n_rows, known.Y.shape[1]))
    labels[rows] = known.Y
    hidden = ~np.isin(codes, codes[rows])
    whole, columns = replace(data, Y=labels), None
    if hidden.sum() + len(rows) < len(hidden):
        kept = hidden.copy()
        kept[rows] = True
        part, number = np.flatnonzero(kept), np.cumsum(kept) - 1
        whole = whole.take(part, square=model.square)
        folds = [left for fold in folds if len(left := number[fold][kept[fold]])]
        hidden, columns = hidden[kept], part if model.square else None
    (form,) = model.problem(whole).forms
    return TransductiveProblem(form, data.X, whole.Y, hidden, folds, penalty, columns)
