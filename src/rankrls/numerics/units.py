r"""The scores of held-out units by the models without them: one small system for each unit and alpha.

Let U be the rows of F of a held-out unit (a query, a fold of queries, a group of preferences), Z and t its rows and
target, b = Z't of all data, ``D = diag(1 / (lambda + alpha))`` and ``S = Z D Z'``. The model without U predicts P,

.. math:: (I - S) P = Z D b - S t ,

for its normal equations are those of all data less Z'Z and Z't (Pahikkala, Suominen, Boberg, Salakoski 2007, section 3,
in the dual). With ``P0 = Z D b`` and ``R = S (P0 - t)`` it is ``P = P0 + R + x``, ``(I - S) x = S R``: x is of second
order in the influence of the unit, whose bound is the trace of S. x is found by conjugate gradients for all units and
alphas of a batch at once; in single precision if the influence is small. What does not settle is solved directly by the
smaller of ``I - B B'`` and ``I - B'B``, ``B = Z sqrt(D)``.

In a direction that only U determines nothing but alpha is left without it, and what rounding leaves is divided by alpha
(:func:`without_own`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from scipy.linalg.lapack import dposv

from rankrls.numerics.graph import Array, Index

_GOAL = 1e-12
"""Residuals of conjugate gradients, relative to the scores."""
_ROUNDS = 14
_SINGLE = 1e-3
"""Where x is smaller than this share of the scores, single precision gives it exactly enough."""
_BATCH = 1 << 21
"""Values of the units that are solved together."""
LARGE = 0.9
"""Units of a smaller influence leave enough of every direction."""
_REST = 1e-8
_EPS = float(np.finfo(np.float64).eps)


def predictions(
    Z: Array, t: Array, bounds: Index, D: Array, right: Array, inverse: Array, means: tuple[Array, Index] | None
) -> tuple[Array, Array]:
    """``F f`` of every unit by the model without it, (alphas, rows). The last row of Z is zero, ``inverse`` 1 / lambda.

    And the scores of the queries' ``means``, of these and the number of each row's query, if they are given.

    Units of about the same length are solved together, the shorter ones filled up with rows of zeros, which change
    nothing: lengths are rounded up to multiples of 8, or of an eighth of the power of two below.
    """
    m, n = len(Z) - 1, Z.shape[1]
    out, padded, full = np.empty((D.shape[1], m)), np.append(t, 0.0), D * right[:, None]
    levels, most = np.empty_like(out), D.max(axis=1)
    sizes = np.diff(bounds)
    step = np.maximum(8, 2.0 ** np.floor(np.log2(np.maximum(sizes, 1)) - 3)).astype(np.intp)
    lengths = np.where(sizes <= 4, sizes, -(-sizes // step) * step)
    for u in np.unique(lengths):
        same = np.flatnonzero(lengths == u)
        if u > max(8 * n, 512):
            for k in same:
                r = slice(bounds[k], bounds[k + 1])
                out[:, r] = _large(Z[r], t[r], D, right)
                out[:, r] = without_own(out[None, :, r], Z[None, r], t[None, r], D, right, inverse)[0]
                if means is not None:
                    w = D.T * (right - (t[r] - out[:, r]) @ Z[r])
                    levels[:, r] = w @ means[0][means[1][r]].T
            continue
        count = max(1, _BATCH // (u * n + n * D.shape[1] + 1))
        for some in (same[k : k + count] for k in range(0, len(same), count)):
            at = bounds[some, None] + np.arange(u)
            at[np.arange(u) >= sizes[some, None]] = m
            own, labels, real = Z[at], padded[at], at < m
            P = _few_rows(own, labels, D, full) if u <= 4 else _iterate(own, labels, D, full, right)
            large = np.flatnonzero(np.einsum("kun,kun->kn", own, own) @ most > LARGE)
            P[large] = without_own(P[large], own[large], labels[large], D, right, inverse)
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


def without_own(P: Array, Z: Array, t: Array, D: Array, right: Array, inverse: Array) -> Array:
    """Predictions, (units, alphas, rows), of models that have no weight in directions that no other unit determines.

    With ``W = Z / sqrt(lambda)`` the other units' share of a direction is 1 less an eigenvalue of W'W. A direction of
    which they have no more than rounding of the largest eigenvalue is taken out of ``w = D (b - Z'(t - P))``.
    """
    root = np.sqrt(inverse)
    W = Z * root
    Wt, few = W.transpose(0, 2, 1), Z.shape[1] <= Z.shape[2]
    shares, vectors = np.linalg.eigh(W @ Wt if few else Wt @ W)
    V = root[:, None] * (Wt @ vectors if few else vectors)
    lost = 64.0 * _EPS * np.einsum("knv,knv->kv", V, V) / inverse[inverse > 0.0].min(initial=np.inf)
    own = 1.0 - shares <= np.minimum(lost, _REST)
    some = np.flatnonzero(own.any(axis=1))
    V, own, Z = V[some] * own[some, None], own[some], Z[some]
    V /= np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-300)
    Vt = V.transpose(0, 2, 1)
    w = D.T * (right - (t[some, None] - P[some]) @ Z)
    gram = Vt @ V + np.eye(own.shape[1]) * ~own[:, None]
    w -= np.linalg.solve(gram, Vt @ w.transpose(0, 2, 1)).transpose(0, 2, 1) @ Vt
    P[some] = w @ Z.transpose(0, 2, 1)
    return P


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
    return np.asarray(B @ (x + B.T @ solve(rest, B @ x) if few else solve(rest, x)))


def _large(Z: Array, t: Array, D: Array, right: Array) -> Array:
    """A unit of more rows than features: the normal equations less its own, for each alpha, (alphas, rows)."""
    own, left, w = Z.T @ Z, right - t @ Z, np.empty((D.shape[1], Z.shape[1]))
    for k, root in enumerate(np.sqrt(D.T)):
        rest = own * -root * root[:, None]
        rest.flat[:: len(rest) + 1] += 1.0
        w[k] = root * solve(rest, root * left)
    return w @ Z.T


def solve(A: Array, b: Array) -> Array:
    """Solve with a symmetric matrix that is positive definite but for rounding."""
    # LAPACK itself: what scipy's wrappers check takes longer than a solve in fifty unknowns
    _, x, failed = dposv(A.T, b, lower=1)
    return np.asarray(linalg.lstsq(A, b, check_finite=False)[0] if failed else x)
