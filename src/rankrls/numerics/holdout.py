r"""Scores of held-out queries for every regularization value, without refitting.

Let U be the rows of F of a held-out unit: a query, a fold of queries, or a group of preferences. In the primal the
scores of U solve a small system for each unit and alpha (:mod:`rankrls.numerics.units`).

In the dual, ``I - H`` on the unit is ``V diag(alpha / (lambda + alpha)) V'``: nothing cancels for a small alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from rankrls._arrays import (
    chunk_values,
    moved,
    on_device,
    repeated,
    squared_lengths,
    taken,
    to_host,
)
from rankrls._compiled import stream_threads
from rankrls.numerics import batches
from rankrls.numerics.chunks import chunks, map_chunks
from rankrls.numerics.graph import Array, Graph, Index, LabelledGraph, PreferenceGraph
from rankrls.numerics.runs import group_means
from rankrls.numerics.smoother import DualSmoother, ItemSmoother, Smoother, centred_items, regresses
from rankrls.numerics.units import predictions

R = TypeVar("R")

_CHUNK = 1 << 19
"""Values of a chunk of units, which has several of each length."""
_DUAL_ROWS = 256
_LARGE_ALPHA = 1e-2
"""Of the largest eigenvalue: scores of a larger alpha are found from H, of a smaller one from I - H."""
_ROUNDED = 0.05
"""Of the root of the largest eigenvalue: in the dual, smaller scores are rounded as scores of items of this size."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out scores, and how exact they are.

    Attributes
    ----------
    scores : ndarray of shape (targets, alphas, rows)
        Of items, measured from the mean of their query; or margins of preferences.
    sizes : ndarray of shape (rows,)
    norms : ndarray of shape (targets, alphas)
        ``||x_i||`` from where scores are measured and ``||w||``: a score is exact up to some units of rounding of the
        product of both, so that scores which differ by less are tied.
    levels : ndarray of shape (targets, alphas, rows), or 0
        Scores of the queries' means, if they were asked for: the model's scores are the sum of both.
    """

    scores: Array
    sizes: Array
    norms: Array
    levels: Any = 0.0


def hold_out(
    smoother: Smoother,
    graph: Graph,
    X: Any,
    alphas: Array,
    *,
    units: Index | None = None,
    means: bool = False,
    rotated: bool = False,
) -> HeldOut:
    """Scores of each unit's rows by the model of all other units.

    Parameters
    ----------
    smoother : Smoother
        Of all data.
    graph : Graph
        A part of the data's graph. For a :class:`DualSmoother` a part of the graph that it was made with.
    X : dense, CSR, or what gives rows when it is indexed
        Not read by a :class:`DualSmoother`.
    alphas : ndarray
        Positive.
    units : ndarray of shape (units + 1,), optional
        Unit k consists of the queries ``units[k]`` to ``units[k + 1] - 1`` of the part. By default each query.
    means : bool
        Whether the scores of the queries' means are found too.
    rotated : bool
        Whether X is already multiplied by the smoother's directions.

    Returns
    -------
    HeldOut
        In the order of the part's rows.

    Notes
    -----
    O(m n (n + alphas)) in the primal, and a share of it for the solutions; O(m u (u + m) alphas) in the dual for units
    of u rows.
    """
    bounds = graph.starts if units is None else graph.starts[units]
    if isinstance(smoother, DualSmoother):
        return _hold_out_dual(smoother, graph, alphas, bounds, means)
    deviations, centres = graph.read(X)
    predict = batches.predictions if on_device(deviations) else predictions
    D, inverse, out, levels = smoother.inverse(alphas), smoother.inverse(np.zeros(1))[:, 0], [], []
    Z = whole = deviations if rotated else deviations @ smoother.directions
    norms, means_of_features = np.sqrt((smoother.right**2).T @ D**2), centres
    if centres is not None:
        centres = centres @ smoother.directions
    spreads = None if rotated else smoother.spreads
    if spreads is not None:
        whole, norms = deviations / moved(spreads, deviations), _norms(smoother, spreads, alphas)
    if centres is not None and regresses(graph):
        level = centres if spreads is None else means_of_features / moved(spreads, deviations)
        whole = whole + repeated(level, np.diff(graph.starts))
    sizes = _with_levels(np.sqrt(squared_lengths(whole, axis=1)), graph)
    deviations = np.array(to_host(taken(Z, np.flatnonzero(graph.unseen))))
    graph.factor(Z, centres)
    places = np.repeat(np.arange(len(graph.starts) - 1), np.diff(graph.starts))
    asked = (centres, places) if means and centres is not None else None
    for target, right in zip(graph.target.T, smoother.right.T, strict=True):
        P, level = predict(Z, target, bounds, D, right, inverse, asked)
        scores = graph.unfactor(P)
        _add_unseen(scores, graph, bounds, deviations, Z, target - P, D, right)
        out.append(scores)
        levels.append(level)
    return HeldOut(np.stack(out), sizes, norms, np.stack(levels) if asked else 0.0)


def _norms(smoother: Smoother, spreads: Array, alphas: Array) -> Array:
    """``||w||`` of features that are divided by their spreads, (targets, alphas)."""
    return np.asarray(np.linalg.norm(smoother.path(alphas) * spreads[:, None], axis=1).T)


def in_order_of(smoother: Smoother, graph: Graph, queries: Index) -> Smoother:
    """The smoother for a graph that took its queries in another order; only a dual one has rows of its own."""
    if not isinstance(smoother, DualSmoother):
        return smoother
    place = np.empty(int(smoother.graph.rows.max()) + 1, dtype=np.intp)
    place[smoother.graph.rows] = np.arange(smoother.graph.n_rows)
    rows, unseen = place[graph.rows], smoother.graph.unseen
    number = np.cumsum(unseen) - 1
    return replace(
        smoother,
        directions=taken(smoother.directions, rows),
        graph=graph,
        unseen=taken(smoother.unseen, number[rows[unseen[rows]]]),
        means=None if smoother.means is None else taken(smoother.means, queries),
    )


def hold_out_chunks(
    smoother: Smoother,
    graph: Graph,
    X: Any,
    alphas: Array,
    judge: Callable[[Graph, HeldOut], R],
    *,
    units: Index | None = None,
    means: bool = False,
) -> Iterator[R]:
    """``judge(part, held_out)`` of each chunk of units, in their order, on all threads; see :func:`hold_out`.

    Scores of all data never exist together.
    """
    bounds = np.arange(len(graph.starts)) if units is None else np.asarray(units)
    device, rotated, norms = on_device(smoother.directions), False, None
    rows = max(64, (2 * chunk_values(X) if device else _CHUNK) // max(1, len(smoother.values)))
    if isinstance(smoother, DualSmoother):
        rows = max(_DUAL_ROWS, rows) if device else _DUAL_ROWS
    elif isinstance(smoother, ItemSmoother):
        X = smoother.features
    if isinstance(graph, PreferenceGraph) and graph.n_rows > graph.n_items:
        centred, spreads = centred_items(graph, X), smoother.spreads
        items, rotated = centred @ smoother.directions, True
        size = np.linalg.norm(items, axis=1)
        if spreads is not None:
            size, norms = np.linalg.norm(centred / spreads, axis=1), _norms(smoother, spreads, alphas)[0]
        if isinstance(smoother, ItemSmoother):
            size, norms = smoother.rounding(alphas)
        size, X = size[graph.winners] + size[graph.losers], items

    def run(chunk: tuple[int, int]) -> R:
        own = bounds[chunk[0] : chunk[1] + 1]
        part = graph.part(int(own[0]), int(own[-1]))
        held = hold_out(smoother, part, X, alphas, units=own - own[0], means=means, rotated=rotated)
        if rotated:
            held = replace(held, sizes=size[part.first_row : part.first_row + part.n_rows])
        if norms is not None:
            held = replace(held, norms=norms[None])
        return judge(part, held)

    if device:  # a chunk is judged while the next one is computed
        return stream_threads(run, chunks(graph.starts[bounds], rows), threads=2)
    return map_chunks(run, chunks(graph.starts[bounds], rows))


def _with_levels(sizes: Array, graph: Graph) -> Array:
    """Sizes of scores that are put together of those of classes and queries."""
    if not isinstance(graph, LabelledGraph) or not (graph.excludes_ties or graph.e3):
        return sizes
    return sizes + np.repeat(group_means(sizes, graph.weights, graph.starts), np.diff(graph.starts))


def _add_unseen(
    scores: Array, graph: Graph, bounds: Index, deviations: Array, Z: Any, error: Array, D: Array, right: Array
) -> None:
    """Put in what F does not see: scores of the unseen items, from their deviations and their unit's model.

    The model without a unit with these errors is ``D (right - Z'error)`` in the coordinates of Z.
    """
    places = np.flatnonzero(graph.unseen)
    unit = np.searchsorted(bounds, places, side="right") - 1
    for k in np.unique(unit):
        own, inside = slice(bounds[k], bounds[k + 1]), unit == k
        w = D.T * (right - error[:, own] @ to_host(Z[own, ...]))
        scores[:, places[inside]] = w @ deviations[inside].T


def _hold_out_dual(s: DualSmoother, graph: Graph, alphas: Array, bounds: Index, means: bool) -> HeldOut:
    """:func:`hold_out` in the dual: the error ``e = t_U - P`` solves ``(I - H)_UU e = (t - H t)_U``.

    For a large alpha scores are far smaller than the labels: then P itself solves the same equations with
    ``(H t)_U - H_UU t_U`` at their right.
    """
    t, V, D = graph.target, s.directions[graph.first_row : graph.first_row + graph.n_rows, ...], s.inverse(alphas)
    total = s.values[:, None] + alphas
    rest = np.divide(alphas, total, out=np.ones_like(total), where=total > 0.0)  # I - H is V diag(rest) V'
    large = alphas > _LARGE_ALPHA * s.top
    query = np.repeat(np.arange(len(graph.starts) - 1), np.diff(graph.starts))
    centres = None if s.means is None or not means else (s.means[graph.first_query :, ...], query)
    P, levels = batches.dual_predictions(V, t, bounds, s.values, rest, D, s.right, large, centres)
    unseen = graph.unseen
    first = int(np.count_nonzero(s.graph.unseen[: graph.first_row]))
    deviations = to_host(s.unseen[first : first + int(unseen.sum()), ...])
    out = graph.unfactor(P)
    for k, scores in enumerate(out):
        _add_unseen(scores, graph, bounds, deviations, V, t[:, k] - P[k], D, s.right[:, k])
    values = np.abs(s.values)
    sizes = np.maximum(np.sqrt(to_host(V * V @ moved(values, V))), _ROUNDED * np.sqrt(s.top))
    sizes /= np.where(unseen | (graph.scale == 0.0), np.inf, graph.scale)
    sizes[unseen] = sizes.max(initial=0.0)
    sizes = _with_levels(sizes, graph)
    norms = np.sqrt((s.right**2).T @ (D**2 * values[:, None]))
    # the kernel matrix is rounded too, and multiplied by coefficients that grow as alpha falls
    norms = np.maximum(norms, 0.25 * np.sqrt(s.top * ((s.right**2).T @ D**2)))
    return HeldOut(out, sizes, norms, levels)
