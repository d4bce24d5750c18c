r"""Scores of held-out queries for every regularization value, without refitting.

Let U be the rows of F of a held-out unit (a query, a fold of queries, a group of preferences), Z and t its rows and
target, b = Z't of all data, ``D = diag(1 / (lambda + alpha))`` and ``S = Z D Z'``. The model without U predicts P,

.. math:: (I - S) P = Z D b - S t ,

for its normal equations are those of all data less Z'Z and Z't (Pahikkala, Suominen, Boberg, Salakoski 2007, section 3,
in the dual). With ``P0 = Z D b`` and ``R = S (P0 - t)`` it is ``P = P0 + R + x``, ``(I - S) x = S R``: x is of second
order in the influence of the unit, whose bound is the trace of S. x is found by conjugate gradients for all units and
alphas of a batch at once; in single precision if the influence is small. What does not settle is solved directly by the
smaller of ``I - B B'`` and ``I - B'B``, ``B = Z sqrt(D)``.

In the dual, ``I - H`` on the unit is ``V diag(alpha / (lambda + alpha)) V'``: nothing cancels for a small alpha.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dposv

from rankrls.numerics.chunks import chunks, map_chunks
from rankrls.numerics.graph import Array, Graph, Index, LabelledGraph, PreferenceGraph
from rankrls.numerics.runs import group_means
from rankrls.numerics.smoother import DualSmoother, ItemSmoother, Smoother, centred_items, regresses

R = TypeVar("R")

_GOAL = 1e-12
"""Residuals of conjugate gradients, relative to the scores."""
_ROUNDS = 14
_SINGLE = 1e-3
"""Where x is smaller than this share of the scores, single precision gives it exactly enough."""
_CHUNK, _BATCH = 1 << 19, 1 << 21
"""Values of a chunk of units, which has several of each length; and of those that are solved together."""
_DUAL_ROWS = 256
_LARGE_ALPHA = 1e-2
"""Of the largest eigenvalue: scores of a larger alpha are found from H, of a smaller one from I - H."""

_FEW_ITEMS = 8
"""Pairs of items for each preference, up to which products of all items cost less than differences."""
_JUDGED_ROWS = 1 << 16


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
    # one more row, of zeros, to fill up units with
    Z = np.zeros((len(deviations) + 1, len(smoother.values)))
    if rotated:
        Z[:-1] = deviations
    else:
        np.matmul(deviations, smoother.directions, out=Z[:-1])
        centres = None if centres is None else centres @ smoother.directions
    whole = Z[:-1]
    if centres is not None and regresses(graph):
        whole = whole + np.repeat(centres, np.diff(graph.starts), axis=0)
    sizes = np.sqrt(np.einsum("ij,ij->i", whole, whole))
    sizes = _with_levels(sizes, graph)
    deviations = Z[:-1][graph.unseen]
    graph.factor(Z[:-1], centres)
    D, out, levels = smoother.inverse(alphas), [], []
    places = np.repeat(np.arange(len(graph.starts) - 1), np.diff(graph.starts))
    asked = (centres, places) if means and centres is not None else None
    for target, right in zip(graph.target.T, smoother.right.T, strict=True):
        P, level = _predictions(Z, target, bounds, D, right, asked)
        scores = graph.unfactor(P)
        _add_unseen(scores, graph, bounds, deviations, partial(_weights, Z, target - P, D, right))
        out.append(scores)
        levels.append(level)
    return HeldOut(np.stack(out), sizes, np.sqrt((smoother.right**2).T @ D**2), np.stack(levels) if asked else 0.0)


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
        directions=smoother.directions[rows],
        graph=graph,
        unseen=smoother.unseen[number[rows[unseen[rows]]]],
        means=None if smoother.means is None else smoother.means[queries],
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
    rows, rotated = max(64, _CHUNK // max(1, len(smoother.values))), False
    if isinstance(smoother, DualSmoother):
        rows = _DUAL_ROWS
    elif isinstance(smoother, ItemSmoother):
        X = smoother.features
    if isinstance(graph, PreferenceGraph) and graph.n_rows > graph.n_items:
        items, rotated = centred_items(graph, X) @ smoother.directions, True
        # features of a kernel's items are rounded as they are, not as they are where they are measured from
        size = np.linalg.norm(X if isinstance(smoother, ItemSmoother) else items, axis=1)
        size, X = size[graph.winners] + size[graph.losers], items
        if len(bounds) > graph.n_rows and graph.n_items**2 <= _FEW_ITEMS * graph.n_rows:
            held = _among_few_items(smoother, graph, X, size, alphas)
            return (
                judge(graph.part(a, b), replace(held, scores=held.scores[:, :, a:b], sizes=size[a:b]))
                for a, b in chunks(graph.starts, _JUDGED_ROWS)
            )

    def run(chunk: tuple[int, int]) -> R:
        own = bounds[chunk[0] : chunk[1] + 1]
        part = graph.part(int(own[0]), int(own[-1]))
        held = hold_out(smoother, part, X, alphas, units=own - own[0], means=means, rotated=rotated)
        if rotated:
            held = replace(held, sizes=size[part.first_row : part.first_row + part.n_rows])
        return judge(part, held)

    return map_chunks(run, chunks(graph.starts[bounds], rows))


def _among_few_items(smoother: Smoother, graph: PreferenceGraph, items: Array, size: Array, alphas: Array) -> HeldOut:
    """Single preferences between few items, whose rows are given times the smoother's directions.

    Influences are read from the products of all items, so that a preference costs a few numbers.
    O(items^2 k + preferences) for each alpha.
    """
    i, j, c, D = graph.winners, graph.losers, graph.weights, smoother.inverse(alphas)
    out = np.zeros((1, len(alphas), graph.n_rows))

    def margins(k: int) -> None:
        Y = items * np.sqrt(D[:, k])
        M, scores = Y @ Y.T, items @ (D[:, k] * smoother.right[:, 0])
        own = M.diagonal()
        influence = c * (own[i] + own[j] - 2.0 * M[i, j])
        rest, left = scores[i] - scores[j] - influence * graph.strength, 1.0 - influence
        np.divide(rest, left, out=out[0, k], where=left != 0.0)

    for _ in map_chunks(margins, range(len(alphas))):
        pass
    return HeldOut(out, size, np.sqrt((smoother.right**2).T @ D**2))


def _with_levels(sizes: Array, graph: Graph) -> Array:
    """Sizes of scores that are put together of those of classes and queries."""
    if not isinstance(graph, LabelledGraph) or not (graph.excludes_ties or graph.e3):
        return sizes
    return sizes + np.repeat(group_means(sizes, graph.weights, graph.starts), np.diff(graph.starts))


def _slices(bounds: Index) -> list[slice]:
    return [slice(a, b) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)]


def _weights(Z: Array, error: Array, D: Array, right: Array, unit: slice) -> Array:
    """The model without a unit that has these errors, in the coordinates of Z: (alphas, k)."""
    return np.asarray(D.T * (right - error[:, unit] @ Z[unit]))


def _add_unseen(
    scores: Array, graph: Graph, bounds: Index, deviations: Array, weights: Callable[[slice], Array]
) -> None:
    """Put in what F does not see: the scores of the unseen items, from their deviations."""
    unseen = graph.unseen
    number = np.cumsum(unseen) - 1
    for unit in _slices(bounds) if unseen.any() else ():
        here = np.flatnonzero(unseen[unit]) + unit.start
        if len(here):
            scores[:, here] = weights(unit) @ deviations[number[here]].T


def _predictions(
    Z: Array, t: Array, bounds: Index, D: Array, right: Array, means: tuple[Array, Index] | None
) -> tuple[Array, Array]:
    """``F f`` of every unit by the model without it, (alphas, rows). The last row of Z is zero.

    And the scores of the queries' ``means``, of these and the number of each row's query, if they are given.

    Units of about the same length are solved together, the shorter ones filled up with rows of zeros, which change
    nothing: lengths are rounded up to multiples of 8, or of an eighth of the power of two below.
    """
    m, n = len(Z) - 1, Z.shape[1]
    out, padded, full = np.empty((D.shape[1], m)), np.append(t, 0.0), D * right[:, None]
    levels = np.empty_like(out)
    sizes = np.diff(bounds)
    step = np.maximum(8, 2.0 ** np.floor(np.log2(np.maximum(sizes, 1)) - 3)).astype(np.intp)
    lengths = np.where(sizes <= 4, sizes, -(-sizes // step) * step)
    for u in np.unique(lengths):
        same = np.flatnonzero(lengths == u)
        if u > max(8 * n, 512):
            for k in same:
                r = slice(bounds[k], bounds[k + 1])
                out[:, r] = _large(Z[r], t[r], D, right)
                if means is not None:
                    w = D.T * (right - (t[r] - out[:, r]) @ Z[r])
                    levels[:, r] = w @ means[0][means[1][r]].T
            continue
        most = max(1, _BATCH // (u * n + n * D.shape[1] + 1))
        for some in (same[k : k + most] for k in range(0, len(same), most)):
            at = bounds[some, None] + np.arange(u)
            at[np.arange(u) >= sizes[some, None]] = m
            own, labels, real = Z[at], padded[at], at < m
            P = _few_rows(own, labels, D, full) if u <= 4 else _iterate(own, labels, D, full, right)
            out[:, at[real]] = P.transpose(1, 0, 2)[:, real]
            if means is not None:
                w = (P - labels[:, None]) @ own
                w += right
                w *= D.T
                query = np.append(means[1], 0)[at]
                query = query[:, :1] if len(sizes) == len(means[0]) else query  # each unit is one query
                found = w @ means[0][query].transpose(0, 2, 1)
                levels[:, at[real]] = np.broadcast_to(found, P.shape).transpose(1, 0, 2)[:, real]
    return out, levels


def _few_rows(Z: Array, t: Array, D: Array, full: Array) -> Array:
    """Units of at most 4 rows: every product of two rows for all alphas in one multiplication, then small solves."""
    k, u, n = Z.shape
    i, j = np.tril_indices(u)
    P = (Z @ full).transpose(0, 2, 1)
    S = np.empty((k, D.shape[1], u, u))
    products = ((Z[:, i] * Z[:, j]).reshape(-1, n) @ D).reshape(k, len(i), -1).transpose(0, 2, 1)
    S[..., i, j] = products
    S[..., j, i] = products
    rest = P - np.einsum("kauv,kv->kau", S, t)
    A = np.eye(u) - S
    if u == 1:
        return np.divide(rest, A[..., 0], out=np.zeros_like(rest), where=A[..., 0] != 0.0)
    try:
        return np.asarray(np.linalg.solve(A, rest[..., None])[..., 0])
    except np.linalg.LinAlgError:  # an alpha is lost in rounding
        return np.asarray((np.linalg.pinv(A, hermitian=True) @ rest[..., None])[..., 0])


def _iterate(Z: Array, t: Array, D: Array, full: Array, right: Array) -> Array:
    """All units and alphas of a batch by conjugate gradients, (units, alphas, rows)."""
    Zt, Dt = Z.transpose(0, 2, 1), np.ascontiguousarray(D.T)
    P = np.matmul(np.ascontiguousarray(full.T), Zt)
    R = _smoothed(P - t[:, None], Z, Dt)
    P += R
    size = _inner(P, P)
    squared = _inner(R, R)
    trace = np.einsum("kun,kun->kn", Z, Z) @ D
    # near an influence of 1 a residual says less of the error
    goal = np.where(trace < 0.5, _GOAL, 0.01 * _GOAL) ** 2 * (size + squared)
    if (trace < 0.5).all() and (trace**2 * squared <= _SINGLE**2 * size).all():
        # scaled so that neither the rows nor the residuals leave the range of single precision
        most = np.where(D.max(axis=1) > 0.0, D.max(axis=1), 1.0)
        unit = np.sqrt(np.maximum(squared, 1e-300))[..., None]
        narrow = (Z * np.sqrt(most)).astype(np.float32), (Dt / most).astype(np.float32)
        R = (R / unit).astype(np.float32)
        x, still = _conjugate_gradients(_smoothed(R, *narrow), *narrow, np.maximum(goal / unit[..., 0] ** 2, 1e-36))
        P += x * unit
    else:
        x, still = _conjugate_gradients(_smoothed(R, Z, Dt), Z, Dt, goal)
        P += x
    for k, a in zip(*np.nonzero(still), strict=True):
        P[k, a] = _direct(Z[k], t[k], D[:, a], right)
    return np.asarray(P)


def _smoothed(V: Any, Z: Any, Dt: Any) -> Any:
    """``S v`` of each unit and alpha, (units, alphas, rows)."""
    W = np.matmul(V, Z)
    W *= Dt
    return np.matmul(W, Z.transpose(0, 2, 1))


def _inner(a: Any, b: Any) -> Any:
    return np.einsum("kau,kau->ka", a, b)


def _conjugate_gradients(R: Any, Z: Any, Dt: Any, goal: Array) -> tuple[Any, Any]:
    """Solve ``(I - S) x = R`` for all units and alphas; alphas that have settled are dropped. Also what is open."""
    rr, p, x = _inner(R, R), R.copy(), np.zeros_like(R)
    live, xl = np.arange(len(Dt)), x
    open_ = np.zeros(rr.shape, dtype=bool)
    for _ in range(_ROUNDS):
        on = rr > goal[:, live]
        keep = on.any(axis=0)
        if not keep.all():
            x[:, live] = xl
            live = live[keep]
            if not len(live):
                return x, open_
            xl, R, p = (np.ascontiguousarray(v[:, keep]) for v in (xl, R, p))
            rr, on, Dt = rr[:, keep], on[:, keep], Dt[keep]
        q = p - _smoothed(p, Z, Dt)
        pq = _inner(p, q)
        step = np.divide(rr, pq, out=np.zeros_like(rr), where=on & (pq > 0.0))[..., None]
        xl += step * p
        q *= step
        R -= q
        new = _inner(R, R)
        p *= np.divide(new, rr, out=np.zeros_like(rr), where=rr > 0.0)[..., None]
        p += R
        rr = new
    x[:, live] = xl
    open_[:, live] = rr > goal[:, live]
    return x, open_


def _direct(Z: Array, t: Array, d: Array, right: Array) -> Array:
    """One unit and alpha by the smaller of its two Gram matrices."""
    root = np.sqrt(d)
    B = Z * root
    few = Z.shape[0] <= Z.shape[1]
    rest = -(B @ B.T if few else B.T @ B)
    rest.flat[:: len(rest) + 1] += 1.0
    x = root * (right - t @ Z)
    return np.asarray(B @ (x + B.T @ _solve(rest, B @ x) if few else _solve(rest, x)))


def _large(Z: Array, t: Array, D: Array, right: Array) -> Array:
    """A unit of more rows than features: the normal equations less its own, for each alpha, (alphas, rows)."""
    own, left, w = Z.T @ Z, right - t @ Z, np.empty((D.shape[1], Z.shape[1]))
    for k, root in enumerate(np.sqrt(D.T)):
        rest = own * -root * root[:, None]
        rest.flat[:: len(rest) + 1] += 1.0
        w[k] = root * _solve(rest, root * left)
    return w @ Z.T


def _solve(A: Array, b: Array) -> Array:
    """Solve with a symmetric matrix that is positive definite but for rounding."""
    # LAPACK itself: what scipy's wrappers check takes longer than a solve in fifty unknowns
    _, x, failed = dposv(A.T, b, lower=1)
    return np.asarray(linalg.lstsq(A, b, check_finite=False)[0] if failed else x)


def _hold_out_dual(s: DualSmoother, graph: Graph, alphas: Array, bounds: Index, means: bool) -> HeldOut:
    """:func:`hold_out` in the dual: the error ``e = t_U - P`` solves ``(I - H)_UU e = (t - H t)_U``.

    For a large alpha scores are far smaller than the labels: then P itself solves the same equations with
    ``(H t)_U - H_UU t_U`` at their right.
    """
    t, V, D = graph.target, s.directions[graph.first_row : graph.first_row + graph.n_rows], s.inverse(alphas)
    total = s.values[:, None] + alphas
    rest = np.divide(alphas, total, out=np.ones_like(total), where=total > 0.0)  # I - H is V diag(rest) V'
    large, targets = alphas > _LARGE_ALPHA * s.top, t.shape[1]
    P = np.empty((targets, len(alphas), len(t)))
    for r in _slices(bounds):
        own = np.ascontiguousarray(V[r])
        others = s.right - own.T @ t[r]
        for k in range(len(alphas)):
            scaled = own * np.sqrt(rest[:, k]) if rest[:, k].min() >= 0.0 else None
            A = (own * rest[:, k]) @ own.T if scaled is None else scaled @ scaled.T
            right = (s.values * D[:, k])[:, None] * others if large[k] else rest[:, k, None] * s.right
            found = _solve(A, own @ right)
            P[:, k, r] = (found if large[k] else t[r] - found).T
    unseen = graph.unseen
    first = int(np.count_nonzero(s.graph.unseen[: graph.first_row]))
    deviations = s.unseen[first : first + int(unseen.sum())]
    centres = None if s.means is None or not means else s.means[graph.first_query :]
    out, levels = graph.unfactor(P), np.zeros_like(P)
    query = np.repeat(np.arange(len(graph.starts) - 1), np.diff(graph.starts))
    for k, scores in enumerate(out):
        weights = partial(_weights, V, t[:, k] - P[k], D, s.right[:, k])
        _add_unseen(scores, graph, bounds, deviations, weights)
        if centres is not None:
            for r in _slices(bounds):
                levels[k][:, r] = weights(r) @ centres[query[r]].T
    values = np.abs(s.values)
    sizes = np.sqrt(V**2 @ values) / np.where(unseen | (graph.scale == 0.0), np.inf, graph.scale)
    sizes[unseen] = sizes.max(initial=0.0)
    sizes = _with_levels(sizes, graph)
    norms = np.sqrt((s.right**2).T @ (D**2 * values[:, None]))
    # the kernel matrix is rounded too, and multiplied by coefficients that grow as alpha falls
    norms = np.maximum(norms, 0.25 * np.sqrt(s.top * ((s.right**2).T @ D**2)))
    if not unseen.all():
        # scores are labels less errors, and rounded as labels are
        labels = np.abs(t[~unseen]) / np.where(graph.scale > 0.0, graph.scale, np.inf)[~unseen, None]
        norms = np.maximum(norms, labels.max(axis=0)[:, None] / max(float(sizes.mean()), 1e-300))
    return HeldOut(out, sizes, norms, levels)
