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
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from rankrls._arrays import device_of, namespace, to_device_of, to_host
from rankrls._compiled import compiled
from rankrls._typing import Array, Index, Matrix

GOAL = 1e-12
"""Residual at which conjugate gradients stop, relative to the scores."""
OFF = 4.0 * GOAL
"""Error bound of predictions, relative to the terms that they are the sum of."""
ROUNDS = 14
LARGE = 0.9
"""Influence of a unit up to which the others determine every direction well enough."""
_REST = 1e-8
_EPS = float(np.finfo(np.float64).eps)


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
    some = np.flatnonzero((sizes > 1) & ~long)
    _iterate(Z, t, bounds, some, Dt, np.ascontiguousarray(full.T), out, off, traces, still)
    for k in np.flatnonzero(long | (traces > LARGE) | still.any(axis=1)):
        r = slice(bounds[k], bounds[k + 1])
        if len(late := np.flatnonzero(still[k] | long[k])):
            out[late, r] = direct(Z[None, r], t[None, r], D[:, late], right)[0]
        if long[k] or traces[k] > LARGE:
            out[:, r] = without_own(out[None, :, r], Z[None, r], t[None, r], D, right, inverse)[0]
        if long[k]:
            off[:, r] = OFF * np.linalg.norm(out[:, r], axis=1, keepdims=True)
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
        shares, vectors = linalg.eigh(W @ W.T if few else W.T @ W, subset_by_value=(1.0 - _REST, np.inf))
        V = root[:, None] * (W.T @ vectors if few else vectors)
        V = V[:, 1.0 - shares <= 64.0 * _EPS * np.einsum("nv,nv->v", V, V) / least]
        if V.shape[1]:
            basis = linalg.qr(V, mode="economic")[0]
            w = D.T * (right - (labels - predicted) @ own)
            predicted[:] = (w - (w @ basis) @ basis.T) @ own.T
    return P


@compiled
def _iterate(Z, t, bounds, some, Dt, full, out, off, traces, still):  # type: ignore[no-untyped-def]
    """Predictions ``out`` for some units and all alphas, error bounds ``off``, traces, and alphas not converged.

    Compiled because queries are small: numpy needs as much time between the products as for the products.
    """
    size = np.empty(len(Dt))
    goal = np.empty(len(Dt))
    squares = np.empty(Z.shape[1])
    for k in some:
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
            for r in range(len(own)):
                R[a, r] -= labels[r]
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
            off[a, bounds[k] : bounds[k + 1]] = OFF * (np.sqrt(size[a]) + np.sqrt(total))


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


def direct(Z: Matrix, t: Array, D: Array, right: Array) -> Array:
    """Predictions of units for the given alphas, (units, alphas, rows), from the smaller of their two Gram matrices.

    Z, (units, rows, n), may be on a device.
    """
    xp = namespace(Z)
    mT = xp.matrix_transpose
    left = to_device_of(right, Z) - to_device_of(t, Z)[:, None, :] @ Z
    own = mT(Z) @ Z if Z.shape[1] > Z.shape[2] else None
    eye = xp.eye(min(Z.shape[1:]), dtype=Z.dtype, device=device_of(Z))
    weights = []
    for root in (to_device_of(root, Z) for root in np.sqrt(D.T)):
        x = mT(root * left)
        if own is None:
            B = Z * root
            x = x + mT(B) @ to_device_of(solved(eye - B @ mT(B), B @ x), Z)
        else:
            x = to_device_of(solved(eye - own * root * root[:, None], x), Z)
        weights.append(root[:, None] * x)
    return np.array(to_host(mT(Z @ xp.concat(weights, axis=2))))


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
