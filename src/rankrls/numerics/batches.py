r"""Scores of held-out units, computed for units of about the same length at once, in batches the size of a chunk.

Used in the dual, and in the primal on a device, in the precision of its arrays. The small systems are those of
:mod:`rankrls.numerics.units` and :mod:`rankrls.numerics.holdout`, solved directly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rankrls._arrays import chunk_values, joined, namespace, on_device, taken, to_device_of, to_host
from rankrls._typing import Array, Index, Matrix
from rankrls.numerics.eigen import unit_of_rounding
from rankrls.numerics.ties import ROUNDED
from rankrls.numerics.units import LARGE, OFF, direct, solved, without_own


def predictions(
    Z: Matrix, t: Array, bounds: Index, D: Array, right: Array, inverse: Array, means: tuple[Matrix, Index] | None
) -> tuple[Array, Array, Array | None]:
    """``F f`` of every unit by the model without it, (alphas, rows), its error bound, and the scores of the means.

    Equivalent to :func:`rankrls.numerics.units.predictions`, with Z and the means on a device, the rest on the host.
    """
    n = Z.shape[1]
    out = np.empty((D.shape[1], len(t)))
    off = np.empty((D.shape[1], len(t)))
    levels = None if means is None else np.empty_like(out)
    unit = max(OFF, 16.0 * unit_of_rounding(Z))
    for at, real in _batches(bounds, n, D.shape[1] * n, 8 * chunk_values(Z)):
        own = _rows(Z, at, real)
        labels = np.where(real, t[at], 0.0)
        P = direct(own, labels, D, right)
        bound = to_host(namespace(Z).sum(own * own, axis=1)) @ D.max(axis=1)
        large = np.flatnonzero(bound > LARGE)
        P[large] = without_own(P[large], to_host(taken(own, large)), labels[large], D, right, inverse)
        out[:, at[real]] = P.transpose(1, 0, 2)[:, real]
        uncertain = unit * np.linalg.norm(P, axis=2)
        off[:, at[real]] = np.broadcast_to(uncertain.T[:, :, None], P.transpose(1, 0, 2).shape)[:, real]
        if means is not None and levels is not None:
            centres = _rows(means[0], means[1][at], real)
            levels[:, at[real]] = _scores_without(own, labels[:, None, :] - P, D, right, centres)[:, real]
    return out, off, levels


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
    unit = ROUNDED * unit_of_rounding(V)
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
            off[:, k, at[real]] = unit * amplified[real].T
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
        for some in (same[k : k + count] for k in range(0, len(same), count)):
            real = np.arange(u) < sizes[some, None]
            yield np.where(real, bounds[some, None] + np.arange(u), bounds[some, None]), real


def _rows(Z: Matrix, at: Index, real: Matrix) -> Matrix:
    """Rows of a batch of units, (units, length, n); padding rows are zero."""
    own = namespace(Z).reshape(taken(Z, at.ravel()), (*at.shape, Z.shape[1]))
    return own if real.all() else own * to_device_of(real.astype(np.float64)[..., None], Z)
