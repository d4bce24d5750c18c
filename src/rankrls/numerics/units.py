r"""Scores of held-out units by the models without them: one small system for each unit and alpha.

Let U be the rows of F of a held-out unit (a query, a fold of queries, a group of preferences), Z and t its rows and
target, b = Z't of all data, ``D = diag(1 / (lambda + alpha))`` and ``S = Z D Z'``. The model without U predicts P,

.. math:: (I - S) P = Z D b - S t ,

because its normal equations are those of all data minus Z'Z and Z't (Pahikkala, Suominen, Boberg, Salakoski 2007,
section 3, in the dual). With ``P0 = Z D b`` and ``R = S (P0 - t)``, ``P = P0 + R + x`` and ``(I - S) x = S R``, so x is
of second order in the influence of the unit, which is at most the trace of S. x is computed by conjugate gradients for
all alphas at once. Systems that do not converge are solved directly, using the smaller of ``I - B B'`` and ``I - B'B``,
``B = Z sqrt(D)``.

In a direction that only U determines, nothing but alpha is left without U, and rounding errors are divided by alpha
(:func:`without_own`).

In the dual, units of about the same length are solved directly and at once, in batches the size of a chunk, on the
device and in the precision of its arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import linalg

from rankrls._arrays import chunk_values, joined, namespace, on_device, taken, to_device_of, to_host
from rankrls._compiled import compiled
from rankrls._typing import Array, Index, Matrix
from rankrls.numerics.eigen import EPS, machine_epsilon, symmetric_eigen
from rankrls.numerics.ties import ROUNDED

GOAL = 1e-12
"""Residual at which conjugate gradients stop, relative to the scores."""
OFF = 4.0 * GOAL
"""Error bound of predictions, relative to the terms that they are the sum of."""
ROUNDS = 14
CANCELLED = ROUNDED * EPS
"""Error bound of products of labels with features to which they may be orthogonal, relative to both."""
LARGE = 0.9
"""Influence of a unit up to which the others determine every direction well enough."""
_REST = 1e-8


def predictions(
    Z: Array, t: Array, bounds: Index, D: Array, right: Array, inverse: Array, means: tuple[Array, Index] | None
) -> tuple[Array, Array, Array | None]:
    """``F f`` of every unit by the model without it, (alphas, rows), its error bound, and the scores of the means.

    ``means`` contains the means of the queries and the number of each row's query, or is None. ``inverse`` is
    1 / lambda.
    """
    n = Z.shape[1]
    Dt = np.ascontiguousarray(D.T)
    full = D * right[:, None]
    out, off = np.empty((2, D.shape[1], len(Z)))
    sizes = np.diff(bounds)
    long = sizes > max(8 * n, 512)
    traces = np.zeros(len(sizes))
    still = np.zeros((len(sizes), D.shape[1]), dtype=bool)
    rows = bounds[:-1][sizes == 1]
    out[:, rows], off[:, rows], traces[sizes == 1] = _of_single_rows(Z, t, rows, D, full)
    short = np.flatnonzero((sizes > 1) & ~long)
    _iterate(Z, t, bounds, short, Dt, np.ascontiguousarray(full.T), out, off, traces, still)
    for k in np.flatnonzero(long | (traces > LARGE) | still.any(axis=1)):
        r = slice(bounds[k], bounds[k + 1])
        if len(late := np.flatnonzero(still[k] | long[k])):
            out[late, r] = direct(Z[r], t[r], D[:, late], right)
        if long[k] or traces[k] > LARGE:
            out[:, r] = without_own(out[None, :, r], Z[None, r], t[None, r], D, right, inverse)[0]
        if long[k]:
            lost = CANCELLED * ((Z[r] ** 2).sum(axis=0) @ D) * np.linalg.norm(out[:, r] - t[r], axis=1)
            off[:, r] = OFF * np.linalg.norm(out[:, r], axis=1, keepdims=True) + lost[:, None]
    if means is None:
        return out, off, None
    levels = np.empty_like(out)
    _score_means(Z, t, bounds, Dt, right, *means, out, levels)
    return out, off, levels


def _of_single_rows(Z: Array, t: Array, rows: Index, D: Array, full: Array) -> tuple[Array, Array, Array]:
    """Predictions for units of one row and their error bounds, (alphas, rows), and traces: the systems are numbers.

    In place where possible, because there may be very many preferences.
    """
    leverage = (Z[rows] ** 2 @ D).T
    traces = leverage.max(axis=0)
    fit = (Z[rows] @ full).T
    rest = fit - leverage * t[rows]
    others = np.subtract(1.0, leverage, out=leverage)
    P = np.divide(rest, others, out=np.zeros_like(rest), where=others != 0.0)
    terms = np.abs(fit, out=fit)
    terms += np.abs(rest, out=rest)
    terms += np.abs(P, out=others)
    terms *= OFF
    return P, terms, traces


def without_own(P: Array, Z: Array, t: Array, D: Array, right: Array, inverse: Array) -> Array:
    """Predictions, (units, alphas, rows), of models that have no weight in directions that no other unit determines.

    With ``W = Z / sqrt(lambda)``, the other units' share of a direction is 1 minus an eigenvalue of W'W. A direction in
    which their share is within rounding of the largest eigenvalue is removed from ``w = D (b - Z'(t - P))``.
    """
    root = np.sqrt(inverse)
    least = inverse[inverse > 0.0].min(initial=np.inf)
    for predicted, own, labels in zip(P, Z, t, strict=True):
        W = own * root
        few = len(W) <= len(root)
        # not for an interval of values alone: LAPACK's algorithm for intervals fails on some clustered values
        shares, vectors = symmetric_eigen(W @ W.T if few else W.T @ W, max(W.shape))
        rest = 1.0 - shares
        own_only = rest <= _REST
        vectors = vectors[:, own_only]
        V = root[:, None] * (W.T @ vectors if few else vectors)
        # the squares are lengths relative to the others' share of the same direction, also for sums of directions
        basis, ratios, _ = np.linalg.svd(V / np.sqrt(np.maximum(rest[own_only], EPS)), full_matrices=False)
        basis = basis[:, CANCELLED * ratios**2 >= least]
        if basis.shape[1]:
            w = D.T * (right - (labels - predicted) @ own)
            predicted[:] = (w - (w @ basis) @ basis.T) @ own.T
    return P


@compiled
def _iterate(Z, t, bounds, numbers, Dt, full, out, off, traces, still):  # type: ignore[no-untyped-def]
    """Predictions ``out``, error bounds ``off``, traces and unconverged alphas of the units with these numbers.

    Compiled because queries are small: numpy needs as much time between the products as for the products.
    """
    size = np.empty(len(Dt))
    goal = np.empty(len(Dt))
    cancelled = np.empty(len(Dt))
    squares = np.empty(Z.shape[1])
    for k in numbers:
        own = Z[bounds[k] : bounds[k + 1]]
        columns = own.T.copy()  # BLAS multiplies small matrices faster by a stored transpose
        labels = t[bounds[k] : bounds[k + 1]]
        squares[:] = 0.0
        for r in range(len(own)):
            for c in range(len(squares)):
                squares[c] += own[r, c] ** 2
        influence = np.dot(Dt, squares)
        P = np.dot(full, columns)
        R = P.copy()
        for a in range(len(P)):
            total = 0.0
            for r in range(len(own)):
                R[a, r] -= labels[r]
                total += R[a, r] ** 2
            # labels that the features cannot explain leave rounding of this size
            cancelled[a] = CANCELLED * influence[a] * np.sqrt(total)
        R = _smoothed(R, own, columns, Dt)
        traces[k] = influence.max()
        for a in range(len(P)):
            size[a] = 0.0
            for r in range(len(own)):
                P[a, r] += R[a, r]
                size[a] += P[a, r] ** 2 + R[a, r] ** 2
            # for an influence close to 1 the error exceeds the residual
            goal[a] = ((1.0 if influence[a] < 0.5 else 0.01) * GOAL) ** 2 * size[a]
        _conjugate_gradients(_smoothed(R, own, columns, Dt), own, columns, Dt, goal, P, still[k])
        for a in range(len(P)):
            total = 0.0
            for r in range(len(own)):
                out[a, bounds[k] + r] = P[a, r]
                total += P[a, r] ** 2
            off[a, bounds[k] : bounds[k + 1]] = OFF * (np.sqrt(size[a]) + np.sqrt(total)) + cancelled[a]


@compiled
def _smoothed(V, Z, columns, Dt):  # type: ignore[no-untyped-def]
    """``S v`` of a unit for each alpha, (alphas, rows); ``columns`` is Z'."""
    W = np.dot(V, Z)
    for a in range(len(W)):
        for c in range(W.shape[1]):
            W[a, c] *= Dt[a, c]
    return np.dot(W, columns)


@compiled
def _conjugate_gradients(R, Z, columns, Dt, goal, x, still):  # type: ignore[no-untyped-def]
    """Solve ``(I - S) v = R`` for each alpha, and add v to x. Converged alphas at both ends are left out."""
    p = R.copy()
    rr = np.zeros(len(R))
    for a in range(len(R)):
        for r in range(R.shape[1]):
            rr[a] += R[a, r] ** 2
    first = 0
    last = len(R)
    for _ in range(ROUNDS):
        while first < last and rr[first] <= goal[first]:
            first += 1
        while first < last and rr[last - 1] <= goal[last - 1]:
            last -= 1
        if first == last:
            break
        S = _smoothed(p[first:last], Z, columns, Dt[first:last])
        for a in range(first, last):
            pa = p[a]
            sa = S[a - first]
            ra = R[a]
            xa = x[a]
            pq = 0.0
            new = 0.0
            for r in range(len(pa)):
                pq += pa[r] * (pa[r] - sa[r])
            step = rr[a] / pq if pq > 0.0 and rr[a] > goal[a] else 0.0
            for r in range(len(pa)):
                xa[r] += step * pa[r]
                ra[r] -= step * (pa[r] - sa[r])
                new += ra[r] ** 2
            share = new / rr[a] if rr[a] > 0.0 else 0.0
            for r in range(len(pa)):
                pa[r] = ra[r] + share * pa[r]
            rr[a] = new
    for a in range(first, last):
        still[a] = rr[a] > goal[a]


@compiled
def _score_means(Z, t, bounds, Dt, right, centres, query, P, levels):  # type: ignore[no-untyped-def]
    """Scores of the mean of each row's query by the model without its unit."""
    for k in range(len(bounds) - 1):
        a = bounds[k]
        b = bounds[k + 1]
        E = P[:, a:b].copy()
        first = query[a]
        for alpha in range(len(E)):
            for r in range(b - a):
                E[alpha, r] -= t[a + r]
        W = np.dot(E, Z[a:b])
        for alpha in range(len(W)):
            for c in range(len(right)):
                W[alpha, c] = Dt[alpha, c] * (W[alpha, c] + right[c])
        found = np.dot(W, centres[first : query[b - 1] + 1].T)
        for r in range(a, b):
            for alpha in range(len(W)):
                levels[alpha, r] = found[alpha, query[r] - first]


def direct(Z: Array, t: Array, D: Array, right: Array) -> Array:
    """Predictions of a unit for the given alphas, (alphas, rows), from the smaller of its two Gram matrices."""
    left = right - t @ Z
    gram = Z.T @ Z if len(Z) > Z.shape[1] else None
    eye = np.eye(min(Z.shape))
    weights = []
    for root in np.sqrt(D.T):
        x = root * left
        if gram is None:
            B = Z * root
            A = eye - B @ B.T
            x = x + solved(A[None], (B @ x)[None, :, None])[0, :, 0] @ B
        else:
            A = eye - gram * root * root[:, None]
            x = solved(A[None], x[None, :, None])[0, :, 0]
        weights.append(root * x)
    return np.asarray(weights @ Z.T)


def solved(A: Matrix, b: Matrix) -> Array:
    """Solutions of symmetric systems, (systems, unknowns, columns), on the host; singular ones by least squares."""
    try:
        found = np.array(to_host(namespace(A).linalg.solve(A, b)))
    except Exception as error:
        if "LinAlgError" not in type(error).__name__:
            raise
        found = np.full(b.shape, np.nan)
    for k in np.flatnonzero(~np.isfinite(found).all(axis=(1, 2))):
        found[k] = linalg.lstsq(to_host(A[k, ...]), to_host(b[k, ...]), check_finite=False)[0]
    return found


def dual_predictions(
    V: Matrix,
    t: Array,
    bounds: Index,
    values: Array,
    rest: Array,
    D: Array,
    right: Array,
    large: Matrix,
    means: tuple[Matrix, Index] | None,
) -> tuple[Array, Array, Array | None]:
    """``F f`` of every unit, (targets, alphas, rows), its error bound, and the scores of the means.

    ``I - H`` is ``V diag(rest) V'``. Predictions are computed from H for ``large`` alphas, and from ``I - H`` for the
    others. The small matrix inherits the rounding errors of V, and its inverse amplifies them.
    """
    mT = namespace(V).matrix_transpose
    out = np.empty((t.shape[1], D.shape[1], len(t)))
    off = np.zeros_like(out)
    rounding = ROUNDED * machine_epsilon(V)
    levels = None if means is None else np.zeros_like(out)
    more = 0 if means is None else D.size
    for at, real in _batches(bounds, V.shape[1], more, 8 * chunk_values(V), exact=not on_device(V)):
        own = _rows(V, at, real)
        labels = np.where(real[..., None], t[at], 0.0)
        others = to_device_of(right, V) - mT(own) @ to_device_of(labels, V)
        identity = to_device_of(np.eye(at.shape[1]) * real[:, None, :], V)
        filled = to_device_of(np.eye(at.shape[1]) * ~real[:, None, :], V)  # padding rows: identity
        for k in range(D.shape[1]):
            half = own * to_device_of(np.sqrt(np.abs(rest[:, k])), V)
            A = half @ mT(half if rest[:, k].min() >= 0.0 else half * to_device_of(np.sign(rest[:, k]), V)) + filled
            if large[k]:
                asked = to_device_of((values * D[:, k])[:, None], V) * others
            else:
                asked = to_device_of(rest[:, k, None] * right, V)
            both = solved(A, joined([own @ asked, identity], axis=2))
            found = both[..., : t.shape[1]]
            inverse = both[..., t.shape[1] :]
            amplified = np.linalg.norm(inverse, axis=2, keepdims=True) * np.linalg.norm(found, axis=1, keepdims=True)
            off[:, k, at[real]] = rounding * amplified[real].T
            out[:, k, at[real]] = (found if large[k] else labels - found)[real].T
        if means is not None and levels is not None:
            centres = _rows(means[0], means[1][at], real)
            for k in range(t.shape[1]):
                error = labels[:, None, :, k] - out[k][:, at].transpose(1, 0, 2)
                levels[k][:, at[real]] = _scores_without(own, error, D, right[:, k], centres)[:, real]
    return out, off, levels


def _scores_without(Z: Matrix, error: Array, D: Array, right: Array, rows: Matrix) -> Array:
    """Scores of rows, (alphas, units, rows), by models without units that have these errors, (units, alphas, rows)."""
    w = (to_device_of(right, Z) - to_device_of(error, Z) @ Z) * to_device_of(D.T, Z)
    return to_host(w @ namespace(Z).matrix_transpose(rows)).transpose(1, 0, 2)


def _batches(bounds: Index, width: int, more: int, most: int, *, exact: bool = False) -> Iterator[tuple[Index, Matrix]]:
    """Row numbers of units of about the same length, (units, length), and a mask of the real ones; others are padding.

    Unless ``exact``, lengths above 4 are rounded up to multiples of 8, or of an eighth of the power of two below.
    """
    sizes = np.diff(bounds)
    step = np.maximum(8, 2.0 ** np.floor(np.log2(np.maximum(sizes, 1)) - 3)).astype(np.intp)
    lengths = np.where(exact | (sizes <= 4), sizes, -(-sizes // step) * step)
    for u in np.unique(lengths[lengths > 0]):
        same = np.flatnonzero(lengths == u)
        count = max(1, most // int(u * width + more + 1))
        for batch in (same[k : k + count] for k in range(0, len(same), count)):
            real = np.arange(u) < sizes[batch, None]
            yield np.where(real, bounds[batch, None] + np.arange(u), bounds[batch, None]), real


def _rows(Z: Matrix, at: Index, real: Matrix) -> Matrix:
    """Rows of a batch of units, (units, length, n); padding rows are zero."""
    own = namespace(Z).reshape(taken(Z, at.ravel()), (*at.shape, Z.shape[1]))
    return own if real.all() else own * to_device_of(real.astype(np.float64)[..., None], Z)
