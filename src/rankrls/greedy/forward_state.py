r"""What forward selection keeps between two stages, so that a stage reads the features once.

In the notation of :mod:`rankrls.greedy.forward` a block U enters the criterion of candidate j by four sums alone,
``q_U'g_U``, ``q_U'h_U``, ``h_U'g_U`` and ``h_U'h_U``. H is never made: with the feature that is taken marked by a star,
``d = s_* - q_*'h_*`` and ``k = Z'q_* / s_*``,

.. math:: q \leftarrow q - k\, q_* , \qquad h \leftarrow h + a\, h_* , \qquad a = h_*'( q - k\, q_* ) / d - k ,

so that the sums follow from themselves and from ``h_*'q`` and ``h_*'h``. The latter is ``(M_U^{-1} h_*)'q``, since
:math:`h = M_U^{-1} q`, and :math:`M_U^{-1}` grows by ``h_* h_*' / d``. So Q is multiplied by three columns,
``h_*``, ``M_U^{-1} h_*`` and ``q_*``, while it is read once. It is not written either: what the last features took away
from it is subtracted from these products, until they are as many as the rows of a block.

A block of one row needs no sums: there q is one number, and ``h = q / M``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import balanced_blocks, map_threads

Array = NDArray[np.float64]

_PARTS = 64
"""Sums over blocks are taken in so many parts, whatever the number of threads."""
_WORTH = 1 << 17
"""Entries of Q from which threads are worth their start."""
_SPANNED = 1e-10
"""A feature of whose energy the features that are taken leave no larger share lies in their span."""
_QG, _QH, _HG, _HH, _HQ, _H2 = range(6)
"""Sums of a block for each feature: q'g, q'h, h'g and h'h, and h_*'q and h_*'h."""
_ENERGY, _LOST, _STEP, _OWN_QG, _OWN_HG, _OWN_HH = range(6)
"""Numbers of a block: g'g, q_*'h_*, what g gains along h_*, and q_*'g, h_*'g and h_*'h_*."""


@compiled
def _begin(Q, slack, r, g, starts, first, last, own, sums, total):  # type: ignore[no-untyped-def]
    """Sums of some blocks before any feature is taken, and what they add to ``Z'r`` and to the features' energies."""
    n = np.uint64(Q.shape[1])
    for block in range(np.uint64(first), np.uint64(last)):
        lo, hi = np.uint64(starts[block]), np.uint64(starts[block + np.uint64(1)])
        several = hi - lo > np.uint64(1)
        if several:
            sums[block] = 0.0
        for i in range(lo, hi):
            t, e, w = r[i], g[i], 1.0 / slack[i]
            own[block, _ENERGY] += e * e
            for j in range(n):
                total[0, j] += t * Q[i, j]
                total[1, j] += Q[i, j] * Q[i, j]
            if several:
                for j in range(n):
                    v = Q[i, j]
                    sums[block, _QG, j] += v * e
                    sums[block, _QH, j] += v * (v * w)
                    sums[block, _HG, j] += (v * w) * e
                    sums[block, _HH, j] += (v * w) * (v * w)


@compiled
def _solve(v, slack, h, gaps, block, lo, hi, k, out):  # type: ignore[no-untyped-def]
    """``out = M^-1 v`` in the rows of a block, k features being taken."""
    for i in range(lo, hi):
        out[i] = v[i] / slack[i]
    for s in range(k):
        dot = 0.0
        for i in range(lo, hi):
            dot += h[s, i] * v[i]
        dot /= gaps[s, block]
        for i in range(lo, hi):
            out[i] += h[s, i] * dot


@compiled
def _take(  # type: ignore[no-untyped-def]
    Q, slack, r, g, q, h, again, gaps, ratios, starts, first, last, base, k, fold, share, size, alpha, own, sums, total
):
    """Take feature number k into the residuals of some blocks, and multiply their rows of Q by its columns.

    Rows ``base`` to k of ``ratios`` are not yet subtracted from Q; they are now if ``fold``. ``again`` is
    ``M^-1 h_*``, ``total`` gains ``Q'q_*``.
    """
    n = np.uint64(Q.shape[1])
    base, k = np.uint64(base), np.uint64(k)
    own_sums, first_sums, second_sums = np.zeros(n), np.empty(n), np.empty(n)
    for block in range(np.uint64(first), np.uint64(last)):
        lo, hi = np.uint64(starts[block]), np.uint64(starts[block + np.uint64(1)])
        several = hi - lo > np.uint64(1)
        _solve(q[k], slack, h, gaps, block, lo, hi, k, h[k])
        _solve(h[k], slack, h, gaps, block, lo, hi, k, again)
        lost = qg = hg = hh = rest = 0.0
        for i in range(lo, hi):
            lost += q[k, i] * h[k, i]
            qg += q[k, i] * g[i]
            hg += h[k, i] * g[i]
            hh += h[k, i] * h[k, i]
            r[i] -= q[k, i] * share
            rest += h[k, i] * r[i]
        left = size - lost
        left = left if left > alpha else alpha  # less by rounding alone
        step = rest / left - share
        energy = 0.0
        for i in range(lo, hi):
            g[i] += h[k, i] * step
            energy += g[i] * g[i]
        gaps[k, block] = left
        own[block, _ENERGY], own[block, _LOST], own[block, _STEP] = energy, lost, step
        own[block, _OWN_QG], own[block, _OWN_HG], own[block, _OWN_HH] = qg, hg, hh
        first_sums[:] = 0.0
        second_sums[:] = 0.0
        for i in range(lo, hi):
            if fold:
                for s in range(base, k):
                    v = q[s, i]
                    for j in range(n):
                        Q[i, j] -= v * ratios[s, j]
            u, v, w = q[k, i], h[k, i], again[i]
            for j in range(n):
                own_sums[j] += u * Q[i, j]
                first_sums[j] += v * Q[i, j]
                second_sums[j] += w * Q[i, j]
        if several and not fold:
            for s in range(base, k):
                v = w = 0.0
                for i in range(lo, hi):
                    v += h[k, i] * q[s, i]
                    w += again[i] * q[s, i]
                for j in range(n):
                    first_sums[j] -= v * ratios[s, j]
                    second_sums[j] -= w * ratios[s, j]
        if several:
            sums[block, _HQ], sums[block, _H2] = first_sums, second_sums
    total[0] += own_sums


@compiled
def _judge(Q, slack, g, q, h, gaps, ratios, starts, first, last, base, k, s, c, alpha, own, sums, steps, total):  # type: ignore[no-untyped-def]
    """Bring the sums of some blocks up to the k features that are taken, and judge every candidate by them.

    ``steps`` has a row for each block if they are asked for.
    """
    n = np.uint64(Q.shape[1])
    base, k = np.uint64(base), np.uint64(k)
    kept = len(steps) > 0
    last_taken = k - np.uint64(1)
    now = np.empty((4, n))
    for block in range(np.uint64(first), np.uint64(last)):
        lo, hi = np.uint64(starts[block]), np.uint64(starts[block + np.uint64(1)])
        if hi - lo == np.uint64(1):
            inverse = 1.0 / slack[lo]
            for t in range(k):
                inverse += h[t, lo] * h[t, lo] / gaps[t, block]
            for j in range(n):
                now[_HG, j] = Q[lo, j]
            for t in range(base, k):
                v = q[t, lo]
                for j in range(n):
                    now[_HG, j] -= v * ratios[t, j]
            e = g[lo]
            for j in range(n):
                v = now[_HG, j]
                w = inverse * v
                now[_QG, j], now[_QH, j], now[_HG, j], now[_HH, j] = v * e, v * w, w * e, w * w
        else:
            if k > np.uint64(0):
                lost, left, step = own[block, _LOST], gaps[last_taken, block], own[block, _STEP]
                qg, hg, hh = own[block, _OWN_QG], own[block, _OWN_HG], own[block, _OWN_HH]
                for j in range(n):
                    ratio = ratios[last_taken, j]
                    along = sums[block, _HQ, j]
                    rest = along - ratio * lost
                    change = rest / left - ratio
                    sums[block, _QG, j] += step * rest - ratio * qg
                    sums[block, _QH, j] += change * rest - ratio * along
                    sums[block, _HG, j] += change * hg + step * (sums[block, _H2, j] + change * hh)
                    sums[block, _HH, j] += change * (2.0 * sums[block, _H2, j] + change * hh)
            now[:] = sums[block, :4]
        energy = own[block, _ENERGY]
        for j in range(n):
            quotient = c[j] / s[j]
            gap = s[j] - now[_QH, j]
            gap = gap if gap > alpha else alpha
            step = (now[_QG, j] - now[_QH, j] * quotient) / gap - quotient
            total[0, j] += energy + step * (2.0 * now[_HG, j] + step * now[_HH, j])
            if kept:
                steps[block, j] = step


@compiled
def _held_out(Q, slack, g, q, h, gaps, ratios, starts, first, last, base, k, columns, steps, out, total):  # type: ignore[no-untyped-def]
    """Held-out residuals of the rows of some blocks, if one more of some columns is taken."""
    base, k = np.uint64(base), np.uint64(k)
    v, held = np.empty(len(g)), np.empty(len(g))
    for block in range(np.uint64(first), np.uint64(last)):
        lo, hi = np.uint64(starts[block]), np.uint64(starts[block + np.uint64(1)])
        for column in range(np.uint64(len(columns))):
            j = np.uint64(columns[column])
            for i in range(lo, hi):
                v[i] = Q[i, j]
            for t in range(base, k):
                for i in range(lo, hi):
                    v[i] -= q[t, i] * ratios[t, j]
            _solve(v, slack, h, gaps, block, lo, hi, k, held)
            for i in range(lo, hi):
                out[i, column] = g[i] + steps[block, j] * held[i]


class ForwardState:
    """What is kept between two stages.

    Parameters
    ----------
    Z : ndarray of shape (rows of F, n)
        ``F X``; it is overwritten.
    target : ndarray of shape (rows of F,)
    starts, slack : ndarray
        As for :func:`rankrls.greedy.forward.take_forward`.
    alpha : float
    most : int
        Features that will be taken.
    """

    def __init__(
        self, Z: Array, target: Array, starts: NDArray[np.intp], slack: Array, alpha: float, most: int
    ) -> None:
        m, n = Z.shape
        self.Q, self.alpha, self.starts, self.slack = Z, alpha, starts, slack
        count = len(self.starts) - 1
        self._patience = max(1, m // max(1, count))
        self.r = target.astype(np.float64)
        self.g = self.r / self.slack
        self.taken: list[int] = []
        self._subtracted = 0  # so many of them from Q
        # A row for each feature that is taken: q, h, k = Z'q / s, and d of each block.
        self._q, self._h, self._ratios = np.empty((most, m)), np.empty((most, m)), np.empty((most, n))
        self._gaps, self._again = np.empty((most, count)), np.empty(m)
        self._own, self._sums = np.zeros((count, 6)), np.empty((count, 6, n))
        worth = Z.size >= _WORTH
        self._threads, self._runs = None if worth else 1, balanced_blocks(self.starts, _PARTS if worth else 1)
        self.c, self.energies = self._over_blocks(_begin, (Z, self.slack, self.r, self.g), (self._own, self._sums), 2)
        self.s = alpha + self.energies
        self.left, self.open = self.energies.copy(), self.energies > 0.0
        self.crossed = np.empty((n, 0))  # Z'Z_S
        self._directions = np.empty((n, 0))  # Z' of an orthonormal basis of Z_S

    def _over_blocks(self, loop: Any, before: tuple[Any, ...], after: tuple[Any, ...], sums: int = 1) -> Array:
        """Run a loop over all blocks; the sums over features that it takes, (sums, n)."""
        totals = np.zeros((len(self._runs), sums, self.Q.shape[1]))

        def run(part: int) -> None:
            loop(*before, self.starts, *self._runs[part], *after, totals[part])

        map_threads(run, range(len(self._runs)), threads=self._threads)
        return np.asarray(totals.sum(axis=0))

    def judged(self, keep: bool) -> tuple[Array, Array]:
        """The squared error of all held-out rows if one more feature is taken, and its steps if they are kept."""
        steps = np.empty((len(self.starts) - 1 if keep else 0, len(self.s)))
        before = self.Q, self.slack, self.g, self._q, self._h, self._gaps, self._ratios
        after = self._subtracted, len(self.taken), self.s, self.c, self.alpha, self._own, self._sums, steps
        return self._over_blocks(_judge, before, after)[0], steps

    def residuals(self, columns: NDArray[np.intp], steps: Array) -> Array:
        """Held-out residuals if one of some columns is taken too, (rows, columns)."""
        out = np.empty((len(self.g), len(columns)))
        before = self.Q, self.slack, self.g, self._q, self._h, self._gaps, self._ratios
        after = self._subtracted, len(self.taken), columns, steps
        self._over_blocks(_held_out, before, (*after, out))
        return out

    def take(self, j: int) -> None:
        """Take a feature."""
        k, base = len(self.taken), self._subtracted
        size, share = float(self.s[j]), float(self.c[j] / self.s[j])
        q, ratios = self._q, self._ratios
        q[k] = self.Q[:, j] - ratios[base:k, j] @ q[base:k]
        fold = k - base >= self._patience
        before = self.Q, self.slack, self.r, self.g, q, self._h, self._again, self._gaps, ratios
        after = base, k, fold, share, size, self.alpha, self._own, self._sums
        [products] = self._over_blocks(_take, before, after)
        if fold:
            self._subtracted = base = k
        products += (q[:base] @ q[k]) @ ratios[:base]  # Z'q: Q is Z without the first features
        ratios[k] = products / size
        if self.taken:
            products = products + self.crossed @ solved(self.crossed[self.taken], self.crossed[j], self.alpha)
        direction = (products - self._directions @ self._directions[j]) / np.sqrt(self.left[j])
        self.crossed = np.column_stack((self.crossed, products))
        self._directions = np.column_stack((self._directions, direction))
        self.left -= direction**2
        self.s = np.maximum(self.s - ratios[k] ** 2 * size, self.alpha)
        self.c = self.c - ratios[k] * (share * size)
        self.taken.append(j)
        self.open &= self.left > _SPANNED * self.energies
        self.open[j] = False


def solved(gram: Array, b: Array, alpha: float) -> Array:
    """``(gram + alpha I)^-1 b``."""
    return np.asarray(linalg.solve(gram + alpha * np.eye(len(gram)), b, assume_a="pos"))
