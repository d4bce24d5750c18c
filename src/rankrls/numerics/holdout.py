r"""Scores of held-out queries for every regularization value, without refitting.

Let U be the rows of F of a held-out unit: a query, a fold of queries, or a group of preferences. In the primal the
scores of U solve a small system for each unit and alpha (:mod:`rankrls.numerics.units`).

In the dual, ``I - H`` on the unit is ``V diag(alpha / (lambda + alpha)) V'``, so nothing cancels for small alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from rankrls._arrays import (
    chunk_values,
    on_device,
    repeated,
    squared_lengths,
    squared_lengths_in,
    taken,
    to_device_of,
    to_host,
)
from rankrls._compiled import stream_threads
from rankrls._typing import Array, Index, Matrix
from rankrls.numerics.eigen import machine_epsilon
from rankrls.numerics.graph import Graph
from rankrls.numerics.runs import chunks, map_chunks
from rankrls.numerics.smoother import DualSmoother, ItemSmoother, Smoother
from rankrls.numerics.ties import ROUNDED
from rankrls.numerics.units import OFF, dual_predictions, predictions

R = TypeVar("R")

_CHUNK = 1 << 19
"""Number of values in a chunk of units, large enough for several units of each length."""
_DUAL_ROWS = 256
_LARGE_ALPHA = 1e-2
"""Alpha, relative to the largest eigenvalue, above which scores are computed from H instead of I - H."""
_ROUNDED = 0.05
"""Smallest size of an item for rounding in the dual, relative to the root of the largest eigenvalue."""


class Rounding(NamedTuple):
    """Scale of the rounding of held-out scores: ``sizes`` of the rows, ``norms`` (targets, alphas) of the functions.

    Sizes are ``||x_i||``, measured from the origin of the scores, and norms are ``||w||``. The rounding error of a
    score is a small number of units of rounding of their product.
    """

    sizes: Array
    norms: Array

    def off(self, eps: float) -> Array:
        """Error bound of each score, (targets, alphas, rows)."""
        return ROUNDED * eps * self.norms[..., None] * self.sizes


def hold_out(
    smoother: Smoother,
    graph: Graph,
    X: Matrix,
    alphas: Array,
    *,
    units: Index | None = None,
    rounding: Rounding | None = None,
) -> Array:
    """Scores of each unit's rows by the model of all other units; tied scores are equal (:mod:`rankrls.numerics.ties`).

    Parameters
    ----------
    smoother : Smoother
        Smoother of all data.
    graph : Graph
        Part of the data's graph; for a :class:`DualSmoother`, part of the graph that it was built from.
    X : dense, CSR, or another object whose rows can be indexed
        Features, not read for a :class:`DualSmoother`.
    alphas : ndarray
        Positive regularization values.
    units : ndarray of shape (units + 1,), optional
        Unit k consists of the queries ``units[k]`` to ``units[k + 1] - 1`` of the part. By default, of query k.
    rounding : Rounding, optional
        Scale of the rounding of the scores, if X is already multiplied by the smoother's directions.

    Returns
    -------
    ndarray of shape (targets, alphas, rows)
        Scores of items, or margins of preferences, in the order of the part's rows.

    Notes
    -----
    O(m n (n + alphas)) in the primal, plus a fraction of it for the solutions; O(m u (u + m) alphas) in the dual for
    units of u rows.
    """
    bounds = graph.starts if units is None else graph.starts[units]
    if isinstance(smoother, DualSmoother):
        held = _dual(smoother, graph, alphas, bounds)
    else:
        held = _primal(smoother, graph, X, alphas, bounds, rounding)
    scores = graph.unfactor(held.predicted)
    D = smoother.inverse(alphas)
    for k, found in enumerate(scores):
        error = graph.target[:, k] - held.predicted[k]
        _add_unseen(found, graph, bounds, held.unseen, held.Z, error, D, smoother.right[:, k])
    off = held.off
    off *= _unscaled(graph)
    off += held.rounding.off(held.eps)
    graph.tie(scores, off, held.levels)
    return scores


class _Held(NamedTuple):
    """Predictions of held-out units in the coordinates of a smoother.

    Z are its rows of F, ``unseen`` the deviations of unseen items, ``predicted`` and ``off`` the values of ``F f`` and
    their error bounds (targets, alphas, rows), ``levels`` the scores of the means of queries, and ``eps`` the machine
    epsilon of the arrays.
    """

    Z: Matrix
    unseen: Array
    predicted: Array
    off: Array
    levels: Array | None
    rounding: Rounding
    eps: float


def _primal(
    smoother: Smoother,
    graph: Graph,
    X: Matrix,
    alphas: Array,
    bounds: Index,
    rounding: Rounding | None,
) -> _Held:
    """Predictions from features; see :mod:`rankrls.numerics.units`."""
    deviations, centres = graph.read(X)
    Z = deviations
    turned = centres
    if rounding is None:
        Z = deviations @ smoother.directions
        if centres is not None:
            turned = centres @ smoother.directions
        rounding = _rounding(smoother, graph, alphas, (deviations, centres), (Z, turned))
    unseen = np.array(to_host(taken(Z, np.flatnonzero(graph.unseen))))
    graph.factor(Z, turned)
    eps = machine_epsilon(Z)
    rows = to_host(Z).astype(np.float64, copy=False)
    asked = None if turned is None else (to_host(turned).astype(np.float64, copy=False), _query_of_rows(graph))
    systems = (bounds, smoother.inverse(alphas))
    inverse = smoother.inverse(np.zeros(1))[:, 0]
    targets = zip(graph.target.T, smoother.right.T, strict=True)
    found = [predictions(rows, target, *systems, right, inverse, asked) for target, right in targets]
    predicted, off, levels = zip(*found, strict=True)
    bound = np.stack(off)
    bound *= max(1.0, 16.0 * eps / OFF)  # a device may have single precision only
    return _Held(rows, unseen, np.stack(predicted), bound, np.stack(levels) if asked else None, rounding, eps)


def _query_of_rows(graph: Graph) -> Index:
    return np.repeat(np.arange(len(graph.starts) - 1), np.diff(graph.starts))


def _unscaled(graph: Graph) -> Array:
    """Error bounds of scores, (rows,), for an error bound of 1 on ``F f``."""
    scale = np.where(graph.unseen, np.inf, graph.scale)
    heaviest = graph.scale.max(initial=0.0)
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0.0)
    inverse[graph.unseen] = 1.0 / heaviest if heaviest > 0.0 else 0.0
    return graph.with_levels(inverse)


def _rounding(
    smoother: Smoother, graph: Graph, alphas: Array, rows: tuple[Matrix, Matrix], turned: tuple[Matrix, Matrix]
) -> Rounding:
    """Rounding scale from deviations and means of queries, in the features and in the coordinates of the smoother."""
    spreads = smoother.spreads
    whole, level = turned if spreads is None else rows
    if level is not None and graph.sees_constants:
        whole = whole + repeated(level, np.diff(graph.starts))
    if spreads is None:
        squares = squared_lengths(whole, axis=1)
        norms = np.sqrt((smoother.right**2).T @ smoother.inverse(alphas) ** 2)
    else:
        squares = squared_lengths_in(spreads, whole)
        norms = _norms(smoother, spreads, alphas)
    return Rounding(graph.with_levels(np.sqrt(squares)), norms)


def _norms(smoother: Smoother, spreads: Array, alphas: Array) -> Array:
    """``||w||`` for features divided by their spreads, (targets, alphas)."""
    return np.asarray(np.linalg.norm(smoother.path(alphas) * spreads[:, None], axis=1).T)


def hold_out_chunks(
    smoother: Smoother,
    graph: Graph,
    X: Matrix,
    alphas: Array,
    per_chunk: Callable[[Graph, Array], R],
    *,
    units: Index | None = None,
) -> Iterator[R]:
    """``per_chunk(part, scores)`` for each chunk of units, in order, on all threads; see :func:`hold_out`.

    The scores of all data are never in memory at once.
    """
    bounds = np.arange(len(graph.starts)) if units is None else np.asarray(units)
    size = max(1, len(smoother.values))
    rows = max(64, _CHUNK // size)
    several: Callable[..., Iterator[R]] = map_chunks
    if isinstance(smoother, DualSmoother):
        rows = _DUAL_ROWS
        if on_device(smoother.directions):  # a chunk is evaluated while the next one is computed
            rows = max(rows, 2 * chunk_values(X) // size)
            several = partial(stream_threads, threads=2)
    elif isinstance(smoother, ItemSmoother):
        X = smoother.features
    sizes = norms = None
    of_preferences = graph.over_items
    if of_preferences is not None:
        centred = of_preferences.centred_items(X)
        X = centred @ smoother.directions
        if isinstance(smoother, ItemSmoother):
            of_items, norms = smoother.rounding(alphas)
        else:
            of_items, norms = _rounding(smoother, of_preferences, alphas, (centred, None), (X, None))
        sizes = graph.restore(of_items[of_preferences.winners] + of_items[of_preferences.losers])

    def run(chunk: tuple[int, int]) -> R:
        own = bounds[chunk[0] : chunk[1] + 1]
        part = graph.part(int(own[0]), int(own[-1]))
        rounding = None if sizes is None or norms is None else Rounding(sizes[part.rows], norms)
        scores = hold_out(smoother, part, X, alphas, units=own - own[0], rounding=rounding)
        return per_chunk(part, scores)

    return several(run, chunks(graph.starts[bounds], rows))


def _add_unseen(
    scores: Array, graph: Graph, bounds: Index, deviations: Array, Z: Matrix, error: Array, D: Array, right: Array
) -> None:
    """Fill in the scores of unseen items, from their deviations and the model without their unit.

    Without a unit that has these errors, the model is ``D (right - Z'error)`` in the coordinates of Z.
    """
    places = np.flatnonzero(graph.unseen)
    unit = np.searchsorted(bounds, places, side="right") - 1
    for k in np.unique(unit):
        own = slice(bounds[k], bounds[k + 1])
        inside = unit == k
        w = D.T * (right - error[:, own] @ to_host(Z[own, ...]))
        scores[:, places[inside]] = w @ deviations[inside].T


def _dual(s: DualSmoother, graph: Graph, alphas: Array, bounds: Index) -> _Held:
    """Predictions in the dual: the error ``e = t_U - P`` solves ``(I - H)_UU e = (t - H t)_U``.

    For large alpha, scores are far smaller than the labels; P itself then solves the same equations with right-hand
    side ``(H t)_U - H_UU t_U``.
    """
    rows = s.graph.place[graph.rows]
    V = taken(s.directions, rows)
    D = s.inverse(alphas)
    total = s.values[:, None] + alphas
    rest = np.divide(alphas, total, out=np.ones_like(total), where=total > 0.0)  # I - H is V diag(rest) V'
    large = alphas > _LARGE_ALPHA * s.top
    centres = None
    if s.means is not None:
        queries = np.searchsorted(s.graph.starts, rows[graph.starts[:-1]], side="right") - 1
        centres = (taken(s.means, queries), _query_of_rows(graph))
    found = dual_predictions(V, graph.target, bounds, s.values, rest, D, s.right, large, centres)
    unseen = graph.unseen
    number = np.cumsum(s.graph.unseen) - 1
    deviations = to_host(taken(s.unseen, number[rows[unseen]]))
    values = np.abs(s.values)
    sizes = np.maximum(np.sqrt(to_host(V * V @ to_device_of(values, V))), _ROUNDED * np.sqrt(s.top))
    sizes /= np.where(unseen | (graph.scale == 0.0), np.inf, graph.scale)
    sizes[unseen] = sizes.max(initial=0.0)
    sizes = graph.with_levels(sizes)
    norms = np.sqrt((s.right**2).T @ (D**2 * values[:, None]))
    # the kernel matrix is rounded too, and the coefficients that multiply it grow as alpha decreases
    norms = np.maximum(norms, 0.25 * np.sqrt(s.top * ((s.right**2).T @ D**2)))
    return _Held(V, deviations, *found, Rounding(sizes, norms), machine_epsilon(V))
