r"""Features taken one by one, each by the exact held-out error of the model that has it.

Pahikkala, Airola, Naula, Salakoski 2010, "Feature selection for regularized least-squares: new computational
short-cuts and fast algorithmic implementations", for the blocks of a preference graph. With ``Z = F X``, ``t`` the
target, S the features that are taken and ``A = Z_S'Z_S + alpha I``, keep what the smoother leaves of every feature and
of the target,

.. math:: Q = Z - Z_S A^{-1} Z_S' Z , \qquad r = t - Z_S A^{-1} Z_S' t ,

and the same without each block U, ``H_U = M_U^{-1} Q_U`` and ``g_U = M_U^{-1} r_U`` with
:math:`M_U = I - Z_{US} A^{-1} Z_{US}'`. With :math:`s = \alpha + z_j'q_j` and :math:`c = z_j'r` the held-out residual
of U, if feature j is taken too, is

.. math:: e_U = g_U + \tau h_U , \qquad \tau = -\frac{c}{s} + \frac{q_U'g_U - q_U'h_U\, c / s}{s - q_U'h_U} ,

with q and h the columns j of Q and H: O(\|U\|) a candidate, and O(m n) a stage for all of them.

One ranking has no second block. Its items are then held out one by one, each with an intercept of its own: that is the
smoother with one more column u, :math:`u_i = \sqrt{w_i / \sum w}`, which is orthogonal to all of Z and has no penalty,
so that only the first ``M_i`` differs, ``1 - u_i^2``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import balanced_blocks, map_threads
from rankrls.features.blocks import row_slices
from rankrls.greedy.pursuit import PursuitPath

__all__ = ["Criterion", "ForwardPath", "HeldOutBlocks", "take_forward"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Criterion:
    """What candidates are judged by instead of the squared error of the held-out rows.

    Attributes
    ----------
    judge : callable
        Takes held-out residuals (rows of F, candidates); gives each candidate's measure, and what its rounding is
        relative to.
    greater_is_better : bool
    """

    judge: Callable[[Array], tuple[Array, Array]]
    greater_is_better: bool


_EQUAL = 1e-10
"""Candidates whose criteria differ by no larger share are equal, and the lowest number is taken."""
_PARTS = 64
"""Sums over blocks are taken in so many parts, whatever the number of threads."""
_COLUMNS = 64
_WORTH = 1 << 17
"""Entries of Q from which threads are worth their start."""
_SPANNED = 1e-10
"""A feature of whose energy the features that are taken leave no larger share lies in their span."""


@dataclass(frozen=True, eq=False)
class ForwardPath(PursuitPath):
    """What forward selection took, stage by stage.

    Attributes
    ----------
    held_out : ndarray of shape (stages + 1,)
        The criterion before the first stage and after each. It has seen every choice.
    """

    held_out: Array

    def at(self, stage: int) -> ForwardPath:
        """The path up to a stage."""
        return replace(
            self,
            indices=self.indices[:stage],
            coefficients=self.coefficients[:stage, :stage],
            losses=self.losses[: stage + 1],
            held_out=self.held_out[: stage + 1],
        )


@dataclass(frozen=True, eq=False)
class HeldOutBlocks:
    """Which rows of F are held out together.

    Attributes
    ----------
    order, starts : ndarray of intp
        ``order[starts[k]:starts[k + 1]]`` are the rows of block k.
    slack : ndarray of shape (rows of F,)
        ``M`` of each row before any feature is taken; 1 but for the items of one ranking.
    """

    order: NDArray[np.intp]
    starts: NDArray[np.intp]
    slack: Array


@compiled
def _advance(Q, H, r, g, starts, first, last, column, ratio, share, size, s, c, total, steps):  # type: ignore[no-untyped-def]
    """Take a feature into the rows of some blocks, and judge every other one by them.

    ``column`` holds the feature's q and h, ``ratio`` is k, ``share`` is c / s of the feature and ``size`` its s.
    """
    n = np.uint64(Q.shape[1])
    along = np.empty(n)
    qg = np.empty(n)
    qh = np.empty(n)
    hg = np.empty(n)
    hh = np.empty(n)
    for block in range(np.uint64(first), np.uint64(last)):
        lo, hi = np.uint64(starts[block]), np.uint64(starts[block + np.uint64(1)])
        left = size
        rest = 0.0
        along[:] = 0.0
        for i in range(lo, hi):
            q, h = column[i, 0], column[i, 1]
            left -= q * h
            r[i] -= q * share
            rest += h * r[i]
            if q != 0.0 or h != 0.0:
                for j in range(n):
                    Q[i, j] -= q * ratio[j]
                    along[j] += h * Q[i, j]
        for j in range(n):
            along[j] = along[j] / left - ratio[j]
        rest = rest / left - share
        qg[:] = 0.0
        qh[:] = 0.0
        hg[:] = 0.0
        hh[:] = 0.0
        energy = 0.0
        for i in range(lo, hi):
            h = column[i, 1]
            g[i] += h * rest
            e = g[i]
            energy += e * e
            for j in range(n):
                v = H[i, j] + h * along[j]
                H[i, j] = v
                qg[j] += Q[i, j] * e
                qh[j] += Q[i, j] * v
                hg[j] += v * e
                hh[j] += v * v
        for j in range(n):
            quotient = c[j] / s[j]
            gap = s[j] - qh[j]  # alpha at least, but for rounding
            step = (qg[j] - qh[j] * quotient) / gap - quotient if gap > 0.0 else -quotient
            steps[block, j] = step
            total[j] += energy + step * (2.0 * hg[j] + step * hh[j])


def take_forward(
    Z: Array, target: Array, blocks: HeldOutBlocks, alpha: float, most: int, criterion: Criterion | None = None
) -> ForwardPath:
    """Take features one after the other, each time the one without which the held-out error would be largest.

    Parameters
    ----------
    Z : ndarray of shape (rows of F, n)
        ``F X``.
    target : ndarray of shape (rows of F,)
        ``F y``, or the weighted strengths.
    blocks : HeldOutBlocks
    alpha : float
        Positive.
    most : int
        Features to take; fewer are taken if the others lie in their span, as constants and duplicates do.
    criterion : callable, optional
        What to choose by instead of the squared error of the held-out rows.

    Notes
    -----
    O(m n) a stage for m rows, and 16 m n bytes beside Z. Equal candidates: the lowest number is taken.
    """
    state = _State(Z, target, blocks, alpha)
    c = state.c
    losses, held_out = [float(state.r @ state.r)], [float(_judged(criterion, state.g[:, None], blocks.order)[0][0])]
    greater = criterion is not None and criterion.greater_is_better
    while len(state.taken) < most and state.open.any():
        values, scale = state.judged(criterion)
        goodness = np.where(state.open, values if greater else -values, np.nan)
        best = int(np.nanargmax(goodness))
        j = int(np.argmax(goodness >= goodness[best] - _EQUAL * scale[best]))
        held_out.append(float(values[j]))
        state.take(j)
    indices = np.array(state.taken, dtype=np.intp)
    coefficients = np.zeros((len(indices), len(indices)))
    for k in range(1, len(indices) + 1):
        gram, b = state.crossed[indices[:k], :k], c[indices[:k]]
        w = coefficients[k - 1, :k] = _solved(gram, b, alpha)
        losses.append(float(losses[0] - 2.0 * w @ b + w @ gram @ w))
    return ForwardPath(indices, coefficients, np.array(losses), np.array(held_out))


class _State:
    """What is kept between two stages; rows are in the order of the blocks."""

    def __init__(self, Z: Array, target: Array, blocks: HeldOutBlocks, alpha: float) -> None:
        m, n = Z.shape
        self.Z, self.alpha, self.order, self.starts = Z, alpha, blocks.order, blocks.starts
        slack = blocks.slack[self.order]
        self.Q, self.r = np.ascontiguousarray(Z[self.order]), target[self.order].astype(np.float64)
        self.H, self.g = self.Q / slack[:, None], self.r / slack
        self.energies = np.einsum("ij,ij->j", self.Q, self.Q)
        self.s, self.c = alpha + self.energies, self.Q.T @ self.r
        self.left, self.open = self.energies.copy(), self.energies > 0.0
        self.taken: list[int] = []
        self.crossed = np.empty((n, 0))  # Z'Z_S
        self.directions = np.empty((n, 0))  # Z' of an orthonormal basis of Z_S
        # Of the feature that is taken next: q and h, k, c / s and s.
        self.column, self.ratio, self.share, self.size = np.zeros((m, 2)), np.zeros(n), 0.0, 1.0
        self.steps = np.empty((len(self.starts) - 1, n))

    def judged(self, criterion: Criterion | None) -> tuple[Array, Array]:
        """The criterion of every candidate, and what its rounding is relative to."""
        worth = self.Q.size >= _WORTH
        runs = balanced_blocks(self.starts, _PARTS if worth else 1)
        totals = np.zeros((len(runs), len(self.s)))

        def run(k: int) -> None:
            taken = self.column, self.ratio, self.share, self.size
            _advance(
                self.Q, self.H, self.r, self.g, self.starts, *runs[k], *taken, self.s, self.c, totals[k], self.steps
            )

        map_threads(run, range(len(runs)), threads=None if worth else 1)
        if criterion is None:
            return totals.sum(axis=0), np.full(len(self.s), float(self.g @ self.g))
        return _judged(criterion, self.H, self.order, self.g, np.repeat(self.steps, np.diff(self.starts), axis=0))

    def take(self, j: int) -> None:
        """Take a feature; Q, H, r and g follow when candidates are judged next."""
        self.column = np.column_stack((self.Q[:, j], self.H[:, j]))
        self.size, self.share = float(self.s[j]), float(self.c[j] / self.s[j])
        products = self.Q.T @ self.Z[self.order, j]  # z_i'q_j of every feature i
        self.ratio = products / self.size
        if self.taken:
            products = products + self.crossed @ _solved(self.crossed[self.taken], self.crossed[j], self.alpha)
        direction = (products - self.directions @ self.directions[j]) / np.sqrt(self.left[j])
        self.crossed = np.column_stack((self.crossed, products))
        self.directions = np.column_stack((self.directions, direction))
        self.left -= direction**2
        self.s, self.c = self.s - self.ratio**2 * self.size, self.c - self.ratio * (self.share * self.size)
        self.taken.append(j)
        self.open &= self.left > _SPANNED * self.energies
        self.open[j] = False


def _solved(gram: Array, b: Array, alpha: float) -> Array:
    return np.asarray(linalg.solve(gram + alpha * np.eye(len(gram)), b, assume_a="pos"))


def _judged(
    criterion: Criterion | None, H: Array, order: NDArray[np.intp], g: Array | None = None, steps: Any = 0.0
) -> tuple[Array, Array]:
    """The criterion of held-out residuals ``g + steps H``, some columns at a time."""
    if criterion is None:
        return np.einsum("ij,ij->j", H, H), np.ones(H.shape[1])
    found = []
    for columns in row_slices(0, H.shape[1], _COLUMNS):
        residuals = np.empty((len(H), columns.stop - columns.start))
        residuals[order] = H[:, columns] if g is None else g[:, None] + H[:, columns] * steps[:, columns]
        found.append(criterion.judge(residuals))
    values, scale = (np.concatenate(part) for part in zip(*found, strict=True))
    return values, scale
