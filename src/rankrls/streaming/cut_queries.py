r"""Normal equations of a query that is cut into pieces, one after the other.

With the classes c of a query, the row weights of a piece p summed over a class ``S_cp``, its mean ``mu_cp`` and its
scatter ``M_cp`` about that mean,

.. math::

    G_q = \sum_p \sum_c e_{1c} [ M_{cp} + S_{cp} (\mu_{cp} - \mu_c) (\mu_{cp} - \mu_c)' ]
        + \sum_c e_2 S_c (\mu_c - \mu_q) (\mu_c - \mu_q)' + e_3 S_q \mu_q \mu_q' ,

and likewise with the labels in the place of one factor. Means are taken before anything is squared, so that an offset
that the rows share leaves no rounding of its own size. The eigenvalues of :mod:`rankrls.graph.scored` are those of the
whole query, whose classes a piece knows. A class whose rows have all been seen is folded into the scatter of the
classes' means, so that of many classes only those that run over a cut are kept. If tied pairs are included, a query is
one class, whose scatter is all there is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import Setting
from rankrls._queries import query_layout
from rankrls.equations.normal_equations import NormalEquations, normal_equations
from rankrls.features.blocks import row_slices
from rankrls.features.rows import cleared
from rankrls.graph import ScoredGraph
from rankrls.graph.labels import balance_factors
from rankrls.streaming.sums import Answer

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scatter(Answer):
    """Weighted points (x, y), whose last coordinate is the label: weight, mean, and scatter about the mean.

    The mean is relative to an origin near the points, which who holds this knows: of the mean itself an offset of the
    columns would leave too few digits.
    """

    weight: float
    mean: _Array
    equations: NormalEquations

    @staticmethod
    def none(n: int) -> Scatter:
        """Of no point, with n features."""
        return Scatter(0.0, np.zeros(n + 1), NormalEquations(np.zeros((n, n)), np.zeros((n, 1)), np.zeros(1)))

    @staticmethod
    def of(weights: _Array, points: _Array) -> Scatter:
        """Of some points."""
        total = float(weights.sum())
        if not total > 0.0:
            return Scatter.none(points.shape[1] - 1)
        mean = weights @ points / total
        return Scatter(total, mean, _weighted(weights, points - mean))

    def __add__(self, other: Scatter) -> Scatter:
        if not other.weight:
            return self
        if not self.weight:
            return other
        weight = self.weight + other.weight
        step, share = other.mean - self.mean, other.weight / weight
        between = _weighted(np.array([self.weight * share]), step[None, :])
        return Scatter(weight, self.mean + share * step, self.equations + other.equations + between)

    def moved(self, shift: _Array) -> Scatter:
        """The same relative to another origin."""
        return replace(self, mean=self.mean + shift)


def _weighted(weights: _Array, D: _Array) -> NormalEquations:
    """The scatter of deviations (x, y)."""
    weighted = weights[:, None] * D
    S = D.T @ weighted
    gram = 0.5 * (S[:-1, :-1] + S[:-1, :-1].T)
    return NormalEquations(gram, S[:-1, -1:].copy(), S[-1:, -1].copy())


def _times(equations: NormalEquations, factor: float) -> NormalEquations:
    return NormalEquations(factor * equations.gram, factor * equations.rhs, factor * equations.energy)


@dataclass(frozen=True)
class Levels:
    """The eigenvalues of a whole query, of whose classes some have weight 0.

    Attributes
    ----------
    setting : Setting
    classes : ndarray
        The weight ``S_c`` of each class; of one class if tied pairs are included.
    """

    setting: Setting
    classes: _Array

    @property
    def weight(self) -> float:
        """``S_q``."""
        return float(self.classes.sum())

    def between(self, squares: float) -> float:
        """``e_2``; ``squares`` is the sum of the squared row weights, which matters if tied pairs are included."""
        beta = float(self.setting.regression_weight)
        return beta + (1.0 - beta) * self._rho(squares) * self.weight

    def within(self, squares: float) -> _Array:
        """``e_1`` of each class."""
        if self.setting.ties == "include":
            return np.full(1, self.between(squares))
        beta = float(self.setting.regression_weight)
        return beta + (1.0 - beta) * self._rho(squares) * (self.weight - self.classes)

    def _rho(self, squares: float) -> float:
        """What a pair counts."""
        if not self.weight:
            return 0.0
        own = squares if self.setting.ties == "include" else float(self.classes @ self.classes)
        return float(balance_factors(self.setting.balance, np.array([self.weight]), np.array([own]))[0])


def classes_of(piece: Any, y: _Array, setting: Setting) -> tuple[NDArray[np.intp], _Array, NDArray[np.int64], _Array]:
    """The class of each row of a piece; of the classes of its whole query the labels, the rows and the weights.

    All rows are one class, with their mean label, if tied pairs are included.
    """
    labels, S = (np.asarray(values, dtype=np.float64) for values in (piece.labels, piece.weights))
    counts = np.asarray(piece.counts)
    if setting.ties == "exclude":
        return np.searchsorted(labels, y), labels, counts, S
    total = S.sum(keepdims=True)
    mean = S @ labels / np.maximum(total, np.finfo(np.float64).tiny)
    return np.zeros(len(y), dtype=np.intp), mean, counts.sum(keepdims=True), total


@dataclass(frozen=True)
class CutQuery(Answer):
    """Neighbouring pieces of one query, under one setting. Its classes are one if tied pairs are included.

    Attributes
    ----------
    rows : int
        Of positive weight.
    name : str
        What tells its fold; empty if nothing has to.
    setting : Setting
    classes, counts : ndarray
        Weight and rows of each class of the whole query.
    squares : float
        The sum of the squared row weights.
    origin : ndarray of shape (n + 1,)
        A point near the rows.
    within : NormalEquations
        The classes' scatter about their own means, times ``e_1`` unless it is one class.
    open : ndarray of int
        The classes of which some rows have been seen, and others have not.
    seen : ndarray of int
        How many rows of these have been.
    weights, means : ndarray of shapes (open,) and (open, n + 1)
        Their weight so far, and the means of their points (x, y) relative to the origin.
    closed : Scatter
        The means of the other classes.
    """

    rows: int
    name: str
    setting: Setting
    classes: _Array
    counts: NDArray[np.int64]
    squares: float
    origin: _Array
    within: NormalEquations
    open: NDArray[np.intp]
    seen: NDArray[np.int64]
    weights: _Array
    means: _Array
    closed: Scatter

    def __add__(self, other: CutQuery) -> CutQuery:
        """These pieces and the next ones."""
        origin = self.origin if self._seen_any else other.origin
        first, second = self._from(origin), other._from(origin)
        classes = np.union1d(self.open, other.open).astype(np.intp)
        (w, mean, seen), (more, others, too) = first._spread(classes), second._spread(classes)
        weights = w + more
        share = np.divide(more, weights, out=np.zeros_like(weights), where=weights > 0.0)
        step = np.where(((w > 0.0) & (more > 0.0))[:, None], others - mean, 0.0)
        return replace(
            self,
            rows=self.rows + other.rows,
            squares=self.squares + other.squares,
            origin=origin,
            within=self.within + other.within + _weighted(self._own_levels[classes] * w * share, step),
            open=classes,
            seen=seen + too,
            weights=weights,
            means=np.where((w > 0.0)[:, None], mean + share[:, None] * step, others),
            closed=first.closed + second.closed,
        ).closing()

    @property
    def levels(self) -> Levels:
        """The eigenvalues of the whole query."""
        return Levels(self.setting, self.classes)

    @property
    def _own_levels(self) -> _Array:
        """What ``within`` is multiplied by: of one class the eigenvalue is known when all rows have been seen."""
        return np.ones(1) if self.setting.ties == "include" else self.levels.within(0.0)

    @property
    def _seen_any(self) -> bool:
        return self.closed.weight > 0.0 or bool(self.weights.any())

    def _from(self, origin: _Array) -> CutQuery:
        """The same relative to another origin."""
        if not self._seen_any:
            return replace(self, origin=origin)
        shift = self.origin - origin
        return replace(self, origin=origin, means=self.means + shift, closed=self.closed.moved(shift))

    @property
    def mean(self) -> _Array:
        """The mean row of the query, when all pieces are here."""
        return (self.origin + self.closed.mean)[:-1]

    def _spread(self, classes: NDArray[np.intp]) -> tuple[_Array, _Array, NDArray[np.int64]]:
        place = np.searchsorted(classes, self.open)
        weights, seen = np.zeros(len(classes)), np.zeros(len(classes), dtype=np.int64)
        means = np.zeros((len(classes), len(self.origin)))
        weights[place], means[place], seen[place] = self.weights, self.means, self.seen
        return weights, means, seen

    def closing(self) -> CutQuery:
        """The same with those open classes closed whose rows have all been seen."""
        done = self.seen == self.counts[self.open]
        rest, closed = ~done, self.closed + Scatter.of(self.weights[done], self.means[done])
        left = {name: getattr(self, name)[rest] for name in ("open", "seen", "weights", "means")}
        return replace(self, closed=closed, **left)

    def equations(self) -> NormalEquations:
        """``X'L_q X`` and ``X'L_q y`` of the whole query."""
        middle, e2, beta = self.closed, self.levels.between(self.squares), float(self.setting.regression_weight)
        within = _times(self.within, e2) if self.setting.ties == "include" else self.within
        total = within + _times(middle.equations, e2)
        if beta:
            return total + _weighted(np.array([beta * middle.weight]), (self.origin + middle.mean)[None, :])
        noise = 8.0 * float(np.finfo(np.float64).eps) * np.abs(self.mean)
        largest = max(e2, float(self.levels.within(self.squares).max(initial=0.0)))
        gram, rhs = cleared(total.gram, total.rhs, noise**2 * largest * middle.weight)
        return NormalEquations(gram, rhs, total.energy)


def piece_of_query(part: Any, X: Any, setting: Setting, name: str = "") -> CutQuery:
    """One piece of a query; ``X`` are its rows as features, all of them, also those of weight zero."""
    y, n = np.asarray(part.y, dtype=np.float64), X.shape[1]
    w = np.ones(len(y)) if part.weight is None else np.asarray(part.weight, dtype=np.float64)
    kept, none = np.flatnonzero(w > 0.0), Scatter.none(n)
    codes, _, counts, S = classes_of(part.piece, y, setting)
    classes, codes, seen = np.unique(codes, return_inverse=True, return_counts=True)
    out = CutQuery(
        rows=len(kept),
        name=name,
        setting=setting,
        classes=S,
        counts=counts,
        squares=float(w @ w),
        origin=np.zeros(n + 1),
        within=none.equations,
        open=classes.astype(np.intp),
        seen=seen,
        weights=np.zeros(len(classes)),
        means=np.zeros((len(classes), n + 1)),
        closed=none,
    )
    if len(kept):
        present, own = np.unique(codes[kept], return_inverse=True)
        found = _groups(X[kept], y[kept], w[kept], own, out._own_levels[classes[present]])
        origin, out.means[present], out.weights[present], within = found
        out = replace(out, origin=origin, within=within)
    return out.closing()


def _groups(
    X: Any, y: _Array, w: _Array, codes: NDArray[np.intp], levels: _Array
) -> tuple[_Array, _Array, _Array, NormalEquations]:
    """An origin, the means of groups of rows relative to it, their weights, and their scatter times their levels."""
    layout = query_layout(codes, len(y))
    graph = ScoredGraph.build(y, layout, weights=w, ties="include", balance="pairs")
    own = levels[layout.ids]
    graph = replace(graph, eigenvalues=(own, own, np.zeros(len(own))))
    rows, target = graph.factor_rows(X), y[:, None]
    equations = normal_equations(rows, graph.F @ target)
    labels = graph.group_means(target)
    # What rounding has left of the means is a mean, too: an offset that dwarfs the spread leaves some of it.
    centres, rest = np.hstack((rows.centres, labels)), np.zeros((len(labels), X.shape[1] + 1))
    for piece in row_slices(0, len(y)):
        number = layout.codes[piece]
        left = np.hstack((rows.differences(piece), target[piece] - labels[number]))
        share = sparse.csr_array((w[piece], (number, np.arange(len(left)))), shape=(len(labels), len(left)))
        rest += share @ left
    means = (centres - centres[0]) + rest / graph.query_weight[:, None]
    place = np.empty(len(own), dtype=np.intp)
    place[layout.ids] = np.arange(len(own))
    return centres[0], means[place], graph.query_weight[place], equations


def columns_of(X: Any, basis: Any) -> Any:
    """The columns that a basis makes of features; without one the features themselves."""
    return X if basis is None else basis.columns(X)


def dense_columns(X: Any, basis: Any) -> Any:
    """The same as a matrix; held features as they are."""
    columns = columns_of(X, basis)
    return columns if basis is None else columns.block(slice(0, columns.shape[0]))
