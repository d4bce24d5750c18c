r"""Greedy RankRLS: features selected one by one, each by the exact held-out error of the model with it.

Pahikkala, Airola, Naula and Salakoski 2010, "Greedy RankRLS: a linear time algorithm for learning sparse ranking
models", for the blocks of a preference graph. With ``Z = F X``, ``t`` the target, S the selected features and
``A = Z_S'Z_S + alpha I``, keep the residuals of each feature and of the target,

.. math:: q_j = z_j - Z_S A^{-1} Z_S' z_j , \qquad r = t - Z_S A^{-1} Z_S' t ,

and the same without each block U, ``h_U = M_U^{-1} q_U`` and ``g_U = M_U^{-1} r_U`` with
:math:`M_U = I - Z_{US} A^{-1} Z_{US}'`. With :math:`s = \alpha + z_j'q_j` and :math:`c = z_j'r`, the held-out residual
of U with feature j added is

.. math:: e_U = g_U + \tau h_U , \qquad \tau = -\frac{c}{s} + \frac{q_U'g_U - q_U'h_U\, c / s}{s - q_U'h_U} .

A block enters the criterion of a feature only through four sums, ``q_U'g_U``, ``q_U'h_U``, ``h_U'g_U`` and
``h_U'h_U``, which are updated recursively: with the selected feature marked by a star, ``d = s_* - q_*'h_*`` of the
block and ``k = Z'q_* / s_*``,

.. math:: q \leftarrow q - k\, q_* , \qquad h \leftarrow h + a\, h_* , \qquad a = h_*'( q - k\, q_* ) / d - k .

So a stage multiplies Z by three vectors, ``q_*``, ``h_*`` and ``M_U^{-1} h_*``, the last two block by block.

A single ranking has no second block. Its items are then held out one by one, each with an intercept of its own. This is
the smoother with one more column u, :math:`u_i = \sqrt{w_i / \sum w}`, which is orthogonal to all of Z and has no
penalty, so that only the first ``M_i`` differs, ``1 - u_i^2``. The graph without an item has another scale unless every
item weighs the same; the item is then held out with another alpha.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import linalg, sparse

from rankrls._cached import cached_property
from rankrls._comparisons import Data, GraphSetting
from rankrls._compiled import compiled
from rankrls._errors import InputError
from rankrls._problems import Candidate, Problem
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.learners.paths import PathSolutions, PursuitPath, orthogonal_part
from rankrls.numerics.graph import Graph, LabelledGraph
from rankrls.numerics.scorer import Scorer

_EQUAL = 1e-10
"""Relative difference of criteria up to which features count as equal, and the lowest number is selected."""
_SPANNED = 1e-10
"""Share of a feature's energy up to which its remainder counts as 0: it is in the span of the selected features."""
_ROUNDED = 1e-10
"""Relative rounding allowance of a lower bound of a criterion, whose terms cancel."""
_TOGETHER = 8
"""Number of features that are evaluated together, in the order of their bounds."""


@dataclass(frozen=True, eq=False)
class ForwardPath(PursuitPath):
    """The features selected by forward selection, stage by stage.

    Attributes
    ----------
    held_out : ndarray of shape (stages + 1,)
        Squared error of all held-out rows before the first stage and after each; optimistic, because every choice used
        it.
    """

    held_out: Array


@dataclass(frozen=True, eq=False)
class BlockRows:
    """``Z = F X``, represented by its products; the rows of block k are ``starts[k]`` to ``starts[k + 1] - 1``.

    F is None if X contains Z itself. With more preferences than items, the cost of products depends on the items.
    """

    X: Array
    starts: Index
    F: sparse.csr_array | None = None

    def columns(self, j: int | Index) -> Array:
        """Columns j of Z as rows, (columns, rows); a single column as a vector."""
        columns = self.X.T[j]
        return columns.copy() if self.F is None else np.asarray(columns @ self.F.T)

    def total(self, v: Array) -> Array:
        """``Z'v``, (n,)."""
        return np.asarray((v if self.F is None else self.F.T @ v) @ self.X)

    def products(self, v: Array) -> Array:
        """``Z_U'v_U`` for every block U, (blocks, n)."""
        each = sparse.csr_array((v, np.arange(len(v)), self.starts))
        return np.asarray(each @ self.X if self.F is None else (each @ self.F).toarray() @ self.X)

    @cached_property
    def squares(self) -> Array:
        """Squared length of each column in each block, (blocks, n)."""
        blocks = (self.X[a:b] if self.F is None else self.F[a:b] @ self.X for a, b in pairwise(self.starts))
        return np.stack([(block**2).sum(axis=0) for block in blocks])

    @cached_property
    def energies(self) -> Array:
        """Squared length of each column, (n,)."""
        whole = self.X if self.F is None else (self.F.T @ self.F) @ self.X
        return np.asarray(np.maximum(np.einsum("ij,ij->j", self.X, whole), 0.0))


def take_forward(
    rows: BlockRows, target: Array, alpha: float, most: int, slack: Array, held_alpha: float
) -> ForwardPath:
    """Select features one by one, each time the one with the lowest held-out squared error.

    Parameters
    ----------
    rows : BlockRows
        ``F X``.
    target : ndarray of shape (rows of F,)
        ``F y``, or the weighted strengths.
    alpha : float
        Positive regularization parameter.
    most : int
        Maximum number of features; fewer are selected if all others are in their span, as constants and duplicates are.
    slack : ndarray of shape (rows of F,)
        Initial ``M`` of blocks that are single rows; less than 1 for items of one ranking.
    held_alpha : float
        Alpha with which single rows are held out.

    Notes
    -----
    For m rows, n features and b blocks, a stage costs O(m n), and O(k b n) at stage k; memory is 32 n bytes per block
    in addition to Z. If blocks are single rows, stage k costs O((m + k) n), with m the number of items rather than rows
    if Z is represented by items, and O(k rows) for each feature that a lower bound does not exclude: few, unless there
    are hardly more rows than stages. Ties between features go to the lowest number.
    """
    state: _HeldOut
    if len(rows.starts) > len(target):
        state = _HeldOutRows(rows, target, held_alpha, slack)
    else:
        state = _HeldOutBlocks(rows, target, alpha)
    energies = rows.energies
    left = energies.copy()
    is_open = energies > 0.0
    span = np.empty((0, len(target)))
    taken = list[int]()
    held_out = [float(state.g @ state.g)]
    while len(taken) < most and is_open.any():
        errors = state.errors(is_open, left)
        j = int(np.argmax(errors <= errors.min() + _EQUAL * held_out[-1]))
        state.take(j)
        held_out.append(float(errors[j]))
        taken.append(j)
        rest = orthogonal_part(rows.columns(j), span)
        direction = rest / np.linalg.norm(rest)
        span = np.vstack((span, direction))
        left -= rows.total(direction) ** 2
        is_open &= left > _SPANNED * energies
        is_open[j] = False
    indices = np.array(taken, dtype=np.intp)
    Z = rows.columns(indices)
    right = Z @ target
    factor, lower = linalg.cho_factor(Z @ Z.T + alpha * np.eye(len(taken)), check_finite=False)
    coefficients = np.zeros((len(taken), len(taken)))
    losses = [float(target @ target)]
    for k in range(1, len(taken) + 1):
        w = linalg.cho_solve((factor[:k, :k], lower), right[:k], check_finite=False)
        residual = target - w @ Z[:k]
        coefficients[k - 1, :k] = w
        losses.append(float(residual @ residual))
    return ForwardPath(indices, coefficients, np.array(losses), np.array(held_out))


class _HeldOut(ABC):
    """Held-out residuals g of all rows, and the residuals of the model of all rows."""

    g: Array

    def __init__(self, rows: BlockRows, target: Array, alpha: float) -> None:
        self.rows = rows
        self.alpha = alpha
        self.r = target.copy()
        self.c = rows.total(target)
        self.s = alpha + rows.energies
        self.q = np.empty((0, len(target)))
        self.ratios = np.empty((0, len(self.c)))

    def take(self, j: int) -> None:
        """Select a feature and update all quantities."""
        size = float(self.s[j])
        share = float(self.c[j] / size)
        q = self.rows.columns(j) - self.ratios[:, j] @ self.q
        ratio = self.rows.total(q) / size
        self.r -= q * share
        self.s = np.maximum(self.s - ratio**2 * size, self.alpha)
        self.c = self.c - ratio * (share * size)
        self._hold_out(q, ratio, size, share)
        self.q = np.vstack((self.q, q))
        self.ratios = np.vstack((self.ratios, ratio))

    @abstractmethod
    def errors(self, is_open: Mask, left: Array) -> Array:
        """Squared length of g with each feature added; infinite if the feature is closed or cannot be the best.

        ``left`` are the squared lengths of features orthogonal to the selected ones.
        """

    @abstractmethod
    def _hold_out(self, q: Array, ratio: Array, size: float, share: float) -> None:
        """Update g for a selected feature."""


class _HeldOutRows(_HeldOut):
    """Rows as blocks: then q is a number, ``h = q / M``, and with feature j ``e = (g - h c/s) s / (s - q h)``.

    The last factor is at least 1 and needs every row of every feature. Without it, ``e'e`` needs three sums, of which
    ``h'h`` is at least ``q'q`` times the smallest ``1 / M^2``, and ``q'q`` at least what is orthogonal to the selected
    features: a lower bound for every feature at the cost of ``Z'v``.
    """

    def __init__(self, rows: BlockRows, target: Array, alpha: float, slack: Array) -> None:
        super().__init__(rows, target, alpha)
        self._inverse = 1.0 / slack
        self.g = target * self._inverse

    def errors(self, is_open: Mask, left: Array) -> Array:
        quotient = self.c / self.s
        v = self.g * self._inverse
        across = self.rows.total(v) - (self.q @ v) @ self.ratios
        rounding = _ROUNDED * (np.linalg.norm(v) + np.abs(quotient) * np.sqrt(self.rows.energies)) ** 2
        least = self._inverse.min() ** 2 * left
        bounds = self.g @ self.g - quotient * (2.0 * across - quotient * least) - rounding
        order = np.flatnonzero(is_open)
        order = order[np.argsort(bounds[order])]
        out = np.full(len(self.c), np.inf)
        for start in range(0, len(order), _TOGETHER):
            features = order[start : start + _TOGETHER]
            if bounds[features[0]] > out.min():
                break
            out[features] = self._exact(features, quotient)
        return out

    def _exact(self, features: Index, quotient: Array) -> Array:
        q = self.rows.columns(features) - self.ratios[:, features].T @ self.q
        s = self.s[features, None]
        h = q * self._inverse
        gap = np.maximum(s - q * h, self.alpha)  # smaller only by rounding
        e = (self.g - h * quotient[features, None]) * (s / gap)
        return np.asarray(np.einsum("fr,fr->f", e, e))

    def _hold_out(self, q: Array, ratio: Array, size: float, share: float) -> None:
        h = self._inverse * q
        gap = np.maximum(size - q * h, self.alpha)
        self.g += h * (h * self.r / gap - share)
        self._inverse += h**2 / gap


class _HeldOutBlocks(_HeldOut):
    """Blocks of any size, using the four sums."""

    def __init__(self, rows: BlockRows, target: Array, alpha: float) -> None:
        super().__init__(rows, target, alpha)
        self.g = target.copy()
        products = rows.products(target)
        squares = rows.squares
        self._sums = np.stack((products, squares, products, squares))
        self._h = np.empty((0, len(target)))
        self._gaps = np.empty((0, len(squares)))
        nothing = np.zeros(squares.shape)
        self._advance(nothing, nothing, np.zeros(len(self.c)), np.ones(len(squares)), np.zeros((5, len(squares))))

    def _hold_out(self, q: Array, ratio: Array, size: float, share: float) -> None:
        starts = self.rows.starts
        over = self._block_sums
        h = self._solved(q)
        again = self._solved(h)
        lost = over(q * h)
        gap = np.maximum(size - lost, self.alpha)  # smaller only by rounding
        step = over(h * self.r) / gap - share
        numbers = np.array([lost, step, over(q * self.g), over(h * self.g), over(h * h)])
        along, second = (self.rows.products(v) - over(v * self.q).T @ self.ratios for v in (h, again))
        self.g += h * np.repeat(step, np.diff(starts))
        self._h = np.vstack((self._h, h))
        self._gaps = np.vstack((self._gaps, gap))
        self._advance(along, second, ratio, gap, numbers)

    def errors(self, is_open: Mask, left: Array) -> Array:
        return np.where(is_open, self._errors, np.inf)

    def _advance(self, along: Array, second: Array, ratio: Array, gap: Array, numbers: Array) -> None:
        self._errors = np.zeros(len(self.c))
        state = self._block_sums(self.g**2), self.s, self.c / self.s, self.alpha
        _advance_blocks(self._sums, along, second, ratio, gap, numbers, *state, self._errors)

    def _solved(self, v: Array) -> Array:
        """``M_U^{-1} v_U`` for every block."""
        dots = self._block_sums(self._h * v) / self._gaps
        return np.asarray(v + (self._h * np.repeat(dots, np.diff(self.rows.starts), axis=1)).sum(axis=0))

    def _block_sums(self, v: Array) -> Array:
        return np.add.reduceat(v, self.rows.starts[:-1], axis=-1)


@compiled
def _advance_blocks(  # type: ignore[no-untyped-def]
    sums, along, second, ratio, gap, numbers, energy, s, quotient, alpha, errors
):
    """Update the sums of every block for the selected feature, and the error of every other feature from them."""
    QG = sums[0]
    QH = sums[1]
    HG = sums[2]
    HH = sums[3]
    for block in range(len(gap)):
        lost, step, qg, hg, hh = numbers[:, block]
        for j in range(len(ratio)):
            rest = along[block, j] - ratio[j] * lost
            change = rest / gap[block] - ratio[j]
            QG[block, j] += step * rest - ratio[j] * qg
            QH[block, j] += change * rest - ratio[j] * along[block, j]
            HG[block, j] += change * hg + step * (second[block, j] + change * hh)
            HH[block, j] += change * (2.0 * second[block, j] + change * hh)
            tau = (QG[block, j] - QH[block, j] * quotient[j]) / max(s[j] - QH[block, j], alpha) - quotient[j]
            errors[j] += energy[block] + tau * (2.0 * HG[block, j] + tau * HH[block, j])


def block_rows(X: Matrix, graph: Graph) -> BlockRows:
    """``F X`` in blocks of queries or of groups of preferences; blocks are single rows if there is only one."""
    starts = graph.starts if len(graph.starts) > 2 else np.arange(graph.n_rows + 1)
    preferences = graph.over_items
    if preferences is None:
        return BlockRows(graph.factor_rows(X), starts)
    items = preferences.centred_items(X)  # features that are constant among compared items become 0
    return BlockRows(items, starts, sparse.csr_array(sparse.diags_array(graph.scale) @ preferences.incidence))


def _one_item_out(graph: LabelledGraph, balance: str) -> tuple[Array, float]:
    """Initial M of items held out one by one, and the factor of alpha for their hold-out.

    In a single ranking, holding out an item changes the intercept of the others and the scale of the graph.
    """
    w = graph.weights
    m = graph.n_rows
    wrong = "ties" if graph.excludes_ties else "regression_weight" if graph.e3 else ""
    if balance != "examples" and np.ptp(w) > 0.0:
        wrong = wrong or "balance"
    if wrong:
        right = {"ties": "include", "regression_weight": 0, "balance": "examples"}[wrong]
        raise InputError(
            "Items of one ranking can be held out only if all pairs are compared, with weights that do not depend on "
            f"other items. Pass qid, or set {wrong}={right!r}.",
            parameter=wrong,
        )
    growth = {"examples": 1.0, "pairs": m / (m - 1.0), "queries": max(m - 2.0, 1.0) / (m - 1.0)}
    return 1.0 - w / w.sum(), growth[balance]


@dataclass(frozen=True, eq=False, kw_only=True)
class GreedyCandidate(Candidate["PathSolutions[ForwardPath]"]):
    """Greedy feature selection for one graph and one alpha.

    Attributes
    ----------
    setting : GraphSetting
    alpha : float
        Positive regularization parameter.
    most : int
        Maximum number of features; the path is computed once.
    """

    setting: GraphSetting
    alpha: float
    most: int

    def problem(self, data: Data) -> GreedyProblem:
        return GreedyProblem(self, data)


class GreedyProblem(Problem["PathSolutions[ForwardPath]"]):
    """Lower the held-out error of ``||F (y - X_S w)||^2 + alpha ||w||^2`` by adding features to S one by one."""

    parameter = "n_features"

    def __init__(self, candidate: GreedyCandidate, data: Data) -> None:
        self.candidate = candidate
        self.data = data

    @cached_property
    def walked(self) -> ForwardPath:
        """The whole path."""
        setting = self.candidate.setting
        alpha = self.candidate.alpha
        (graph,) = self.data.numeric_graphs(setting)
        rows = block_rows(self.data.X, graph)
        slack = np.ones(graph.n_rows)
        growth = 1.0
        if isinstance(graph, LabelledGraph) and len(graph.starts) == 2:
            slack, growth = _one_item_out(graph, setting.balance)
        return take_forward(rows, graph.target[:, 0], alpha, self.candidate.most, slack, alpha * growth)

    def path(self, values: Array) -> PathSolutions[ForwardPath]:
        """Models with the given numbers of features; the details are the paths up to there."""
        paths = [self.walked.at(int(min(value, self.walked.n_stages))) for value in values]
        weights = np.zeros((len(values), self.data.X.shape[1], 1))
        for own, path in zip(weights, paths, strict=True):
            if path.n_stages:
                own[path.indices, 0] = path.coefficients[-1]
        return PathSolutions(weights, Scorer, paths)

    def axis(self) -> Array:
        """All numbers of features."""
        return np.arange(1.0, self.candidate.most + 1.0)
