r"""Normal equations of a query that is cut into pieces, one after the other.

With the classes c of a query, the row weights of a piece p summed over a class ``S_cp``, its mean ``mu_cp`` and its
scatter ``M_cp`` about that mean,

.. math::

    G_q = \sum_p \sum_c e_{1c} [ M_{cp} + S_{cp} (\mu_{cp} - \mu_c) (\mu_{cp} - \mu_c)' ]
        + \sum_c e_2 S_c (\mu_c - \mu_q) (\mu_c - \mu_q)' + e_3 S_q \mu_q \mu_q' ,

and likewise with the labels in the place of one factor. Means are taken before anything is squared, so that an offset
that the rows share leaves no rounding of its own size. The eigenvalues of :mod:`rankrls.graph.scored` are those of the
whole query, whose classes a piece knows. A class whose rows have all been seen is folded into the scatter of the
classes' means, so that of many classes only those that run over a cut are kept.
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

__all__ = ["CutQuery", "Levels", "Scatter", "piece_of_query"]

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Scatter:
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
    """The eigenvalues of a whole query's classes, of which some have weight 0.

    Attributes
    ----------
    classes : ndarray or None
        ``e_1`` of each class where tied pairs are excluded.
    setting : Setting
    weight : float
        ``S_q``.
    own : float
        The sum of ``S_c^2``.
    """

    classes: _Array | None
    setting: Setting
    weight: float
    own: float

    @staticmethod
    def of(piece: Any, setting: Setting) -> Levels:
        """Of the query that a piece belongs to."""
        S = np.asarray(piece.weights, dtype=np.float64)
        weight, own = float(S.sum()), float(S @ S)
        levels = Levels(None, setting, weight, own)
        if setting.ties == "include":
            return levels
        beta = float(setting.regression_weight)
        return replace(levels, classes=beta + (1.0 - beta) * levels.rho(own) * (weight - S))

    def rho(self, own: float) -> float:
        """What a pair counts; ``own`` as in :func:`rankrls.graph.labels.balance_factors`."""
        if not self.weight:
            return 0.0
        return float(balance_factors(self.setting.balance, np.array([self.weight]), np.array([own]))[0])


@dataclass(frozen=True)
class CutQuery:
    """Neighbouring pieces of one query, under one setting.

    Attributes
    ----------
    query, pieces, n_pieces, rows : int
        The query's number, how many pieces these are, of how many, and their rows.
    name : str
        What tells its fold; empty if nothing has to.
    levels : Levels
    squares : float
        The sum of the squared row weights.
    counts : ndarray of int
        Rows of each class of the whole query.
    within : NormalEquations
        The classes' scatter about their own means, times ``e_1``. None if tied pairs are included.
    open : ndarray of int
        The classes of which some rows have been seen, and others have not.
    seen : ndarray of int
        How many rows of these have been.
    weights, means : ndarray of shapes (open,) and (open, n + 1)
        Their weight so far, and the means of their points (x, y) relative to the origin.
    origin : ndarray of shape (n + 1,)
        A point near the rows.
    varies : bool
        Whether two classes of the whole query have a weight.
    closed : Scatter
        The means of the other classes; the rows themselves if tied pairs are included.
    """

    query: int
    pieces: int
    n_pieces: int
    rows: int
    name: str
    levels: Levels
    squares: float
    counts: NDArray[np.int64]
    origin: _Array
    within: NormalEquations | None
    open: NDArray[np.intp]
    seen: NDArray[np.int64]
    weights: _Array
    means: _Array
    varies: bool
    closed: Scatter

    @property
    def complete(self) -> bool:
        """Whether all pieces are here."""
        return self.pieces == self.n_pieces

    def __add__(self, other: CutQuery) -> CutQuery:
        """These pieces and the next ones."""
        origin = self.origin if self._seen_any else other.origin
        first, second = self._from(origin), other._from(origin)
        out = replace(
            first,
            pieces=self.pieces + other.pieces,
            rows=self.rows + other.rows,
            squares=self.squares + other.squares,
            closed=first.closed + second.closed,
        )
        if self.within is None or other.within is None:
            return out
        classes = np.union1d(self.open, other.open).astype(np.intp)
        (w, mean, seen), (more, others, too) = first._spread(classes), second._spread(classes)
        weights = w + more
        share = np.divide(more, weights, out=np.zeros_like(weights), where=weights > 0.0)
        step = np.where(((w > 0.0) & (more > 0.0))[:, None], others - mean, 0.0)
        within = self.within + other.within + _weighted(self._levels_of(classes) * w * share, step)
        return replace(out, within=within)._closing(
            classes, seen + too, weights, np.where((w > 0.0)[:, None], mean + share[:, None] * step, others)
        )

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
        """The mean row of the query, when it is complete."""
        return (self.origin + self.closed.mean)[:-1]

    def _levels_of(self, classes: NDArray[np.intp]) -> _Array:
        assert self.levels.classes is not None
        return self.levels.classes[classes]

    def _spread(self, classes: NDArray[np.intp]) -> tuple[_Array, _Array, NDArray[np.int64]]:
        place = np.searchsorted(classes, self.open)
        weights, seen = np.zeros(len(classes)), np.zeros(len(classes), dtype=np.int64)
        means = np.zeros((len(classes), len(self.origin)))
        weights[place], means[place], seen[place] = self.weights, self.means, self.seen
        return weights, means, seen

    def _closing(self, classes: NDArray[np.intp], seen: NDArray[np.int64], weights: _Array, means: _Array) -> CutQuery:
        """With these open classes, of which those whose rows have all been seen are closed."""
        done = seen == self.counts[classes]
        closed = self.closed + Scatter.of(weights[done], means[done])
        rest = ~done
        return replace(
            self, closed=closed, open=classes[rest], seen=seen[rest], weights=weights[rest], means=means[rest]
        )

    def equations(self) -> NormalEquations:
        """``X'L_q X`` and ``X'L_q y`` of the whole query."""
        levels, middle = self.levels, self.closed
        own = self.squares if self.within is None else levels.own
        beta = float(levels.setting.regression_weight)
        e2 = beta + (1.0 - beta) * levels.rho(own) * levels.weight
        total = _times(middle.equations, e2)
        largest = e2
        if self.within is not None:
            total = self.within + total
            assert levels.classes is not None
            largest = max(e2, float(levels.classes.max(initial=0.0)))
        if beta:
            return total + _weighted(np.array([beta * middle.weight]), (self.origin + middle.mean)[None, :])
        noise = 8.0 * float(np.finfo(np.float64).eps) * np.abs(self.mean)
        gram, rhs = cleared(total.gram, total.rhs, noise**2 * largest * middle.weight)
        return NormalEquations(gram, rhs, total.energy)


def piece_of_query(part: Any, X: Any, setting: Setting, name: str = "") -> CutQuery:
    """One piece of a query; ``X`` are its rows as features, all of them, also those of weight zero."""
    piece, y = part.piece, np.asarray(part.y, dtype=np.float64)
    w = np.ones(len(y)) if part.weight is None else np.asarray(part.weight, dtype=np.float64)
    labels, n, none = np.asarray(piece.labels, dtype=np.float64), X.shape[1], np.zeros(0, dtype=np.intp)
    kept, excluded = np.flatnonzero(w > 0.0), setting.ties == "exclude"
    out = CutQuery(
        query=int(piece.query),
        pieces=1,
        n_pieces=int(piece.n_pieces),
        rows=len(kept),
        name=name,
        levels=Levels.of(piece, setting),
        squares=float(w @ w),
        counts=np.asarray(piece.counts),
        origin=np.zeros(n + 1),
        within=Scatter.none(n).equations if excluded else None,
        open=none,
        seen=none,
        weights=np.zeros(0),
        means=np.zeros((0, n + 1)),
        varies=int((np.asarray(piece.weights) > 0.0).sum()) > 1,
        closed=Scatter.none(n),
    )
    codes = np.searchsorted(labels, y) if excluded else np.zeros(len(y), dtype=np.intp)
    classes, codes, seen = np.unique(codes, return_inverse=True, return_counts=True)
    weights, means = np.zeros(len(classes)), np.zeros((len(classes), n + 1))
    if len(kept):
        present, own = np.unique(codes[kept], return_inverse=True)
        levels = np.ones(1) if out.levels.classes is None else out.levels.classes[classes[present]]
        origin, means[present], weights[present], scatter = _groups(X[kept], y[kept], w[kept], own, levels)
        if not excluded:
            return replace(out, origin=origin, closed=Scatter(float(weights[0]), means[0], scatter))
        out = replace(out, origin=origin, within=scatter)
    return out._closing(classes.astype(np.intp), seen, weights, means) if excluded else out


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


def densified(X: Any) -> Any:
    """Rows of evaluated columns as a dense matrix; held features as they are."""
    return X if isinstance(X, np.ndarray) or sparse.issparse(X) else X.block(slice(0, X.shape[0]))
