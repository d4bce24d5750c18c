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

with q and h the columns j of Q and H: O(\|U\|) a candidate, and O(m n) a stage for all of them. How a stage reads Z
once and makes neither Q nor H is told in :mod:`rankrls.greedy.forward_state`.

One ranking has no second block. Its items are then held out one by one, each with an intercept of its own: that is the
smoother with one more column u, :math:`u_i = \sqrt{w_i / \sum w}`, which is orthogonal to all of Z and has no penalty,
so that only the first ``M_i`` differs, ``1 - u_i^2``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankrls.features.blocks import row_slices
from rankrls.greedy.forward_state import ForwardState, solved
from rankrls.greedy.walk import PursuitPath

Array = NDArray[np.float64]


Judge = Callable[[Array], tuple[Array, Array]]

_EQUAL = 1e-10
"""Candidates whose criteria differ by no larger share are equal, and the lowest number is taken."""
_COLUMNS = 64
"""Candidates whose held-out residuals are made together for another criterion."""


@dataclass(frozen=True, eq=False)
class ForwardPath(PursuitPath):
    """What forward selection took, stage by stage.

    Attributes
    ----------
    held_out : ndarray of shape (stages + 1,)
        The criterion before the first stage and after each. It has seen every choice.
    """

    held_out: Array


def take_forward(
    Z: Array,
    target: Array,
    starts: NDArray[np.intp],
    slack: Array,
    alpha: float,
    most: int,
    judge: Judge | None = None,
    *,
    greater_is_better: bool = False,
) -> ForwardPath:
    """Take features one after the other, each time the one without which the held-out error would be largest.

    Parameters
    ----------
    Z : ndarray of shape (rows of F, n)
        ``F X``, the rows of a block together. It is overwritten.
    target : ndarray of shape (rows of F,)
        ``F y``, or the weighted strengths, in the same order.
    starts : ndarray of intp
        The rows ``starts[k]:starts[k + 1]`` are held out together.
    slack : ndarray of shape (rows of F,)
        ``M`` of each row before any feature is taken; 1 but for the items of one ranking.
    alpha : float
        Positive.
    most : int
        Features to take; fewer are taken if the others lie in their span, as constants and duplicates do.
    judge : callable, optional
        What to choose by instead of the squared error of the held-out rows. Takes held-out residuals (rows of F,
        candidates); gives each candidate's measure, and what its rounding is relative to.
    greater_is_better : bool
        Which end of that measure is the better one.

    Notes
    -----
    O(m n) a stage for m rows, which are read once, and for k features ``16 k m`` bytes and ``48 n`` for each block of
    several rows beside Z; O(k m n) a stage by another criterion. Equal candidates: the lowest number is taken.
    """
    state = ForwardState(Z, target, starts, slack, alpha, min(most, Z.shape[1]))
    c = state.c
    losses = [float(state.r @ state.r)]
    held_out = [float(state.g @ state.g if judge is None else judge(state.g[:, None])[0][0])]
    while len(state.taken) < most and state.open.any():
        values, steps = state.judged(judge is not None)
        scale = np.full(len(values), float(state.g @ state.g))
        if judge is not None:
            values, scale = _judged(judge, state, steps)
        goodness = np.where(state.open, values if greater_is_better else -values, np.nan)
        best = int(np.nanargmax(goodness))
        j = int(np.argmax(goodness >= goodness[best] - _EQUAL * scale[best]))
        held_out.append(float(values[j]))
        state.take(j)
    indices = np.array(state.taken, dtype=np.intp)
    coefficients = np.zeros((len(indices), len(indices)))
    for k in range(1, len(indices) + 1):
        gram, b = state.crossed[indices[:k], :k], c[indices[:k]]
        w = coefficients[k - 1, :k] = solved(gram, b, alpha)
        losses.append(float(losses[0] - 2.0 * w @ b + w @ gram @ w))
    return ForwardPath(indices, coefficients, np.array(losses), np.array(held_out))


def _judged(judge: Judge, state: ForwardState, steps: Array) -> tuple[Array, Array]:
    """The criterion of every candidate, and what its rounding is relative to; some columns at a time."""
    everything = np.arange(len(state.s), dtype=np.intp)
    found = [judge(state.residuals(everything[columns], steps)) for columns in row_slices(0, len(everything), _COLUMNS)]
    values, scale = (np.concatenate(part) for part in zip(*found, strict=True))
    return values, scale
