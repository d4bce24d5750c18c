r"""RankSVM: the squared hinge of ordered pairs, minimised by truncated Newton steps.

Minimised over w, with scores :math:`f = Xw` and pairs e of a winner i and a loser j,

.. math:: P(w) = \tfrac12 \lVert w \rVert^2 + C \sum_e c_e \max(0, s_e - (f_i - f_j))^2 .

A pair is *active* where its margin :math:`f_i - f_j` is below :math:`s_e`. The gradient and the product with the
Hessian :math:`I + 2 C X' L X`, L the Laplacian of the active pairs, need sums over the active partners of each item.
For items with labels (:math:`s_e = 1`, :math:`c_e = \rho_q w_i w_j`) these are counted over sorted scores with a
Fenwick tree over labels (Airola, Pahikkala and Salakoski 2011; Lee and Lin 2014).

A Newton step solves the system by conjugate gradients until the residual is a tenth of the gradient or less (Chapelle
and Keerthi 2010). P is strongly convex, and the derivatives of the loss by the pairs are feasible in its dual, with

.. math:: P(w) - D = \tfrac12 \lVert \nabla P(w) \rVert^2 ,

which bounds the distance of P(w) to the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import balanced_blocks, map_threads, n_threads

Vector = NDArray[np.float64]

_CLOSE = 0.125
"""P is strongly convex: ``|w - w*|^2 / 2 <= gap``, so that w is within half of its length of the solution."""
_FORCING = 0.1
_SHRINKS = 40
_ROWS_OF_A_THREAD = 8192


@dataclass(frozen=True, eq=False)
class ActivePairs:
    """The active pairs of some scores.

    Attributes
    ----------
    loss : float
        Sum of the squared hinge over the pairs.
    gradient : ndarray of shape (m,)
        Of the loss by the scores.
    degree : ndarray of shape (m,)
        Weight of each item's active pairs; an item with none does not matter to the solution.
    state : object
        What :meth:`Pairs.product` needs again.
    """

    loss: float
    gradient: Vector
    degree: Vector
    state: Any


class Pairs(Protocol):
    """Pairs of items of which one should be ahead."""

    @property
    def n_items(self) -> int:
        """Items, those in no pair included."""
        ...

    def active(self, f: Vector) -> ActivePairs:
        """The pairs that are active at scores f."""
        ...

    def product(self, active: ActivePairs, v: Vector) -> Vector:
        """``L v``, L the Laplacian of the active pairs."""
        ...


class LabelPairs:
    """Every pair of items of a query with different labels, with strength 1 and weight ``rho_q w_i w_j``.

    Parameters
    ----------
    y : ndarray of shape (m,)
    queries : ndarray of shape (m,), intp
        Number of each item's query, from 0.
    weights : ndarray of shape (m,)
    rho : ndarray of shape (queries,)
        Factor of each query's pairs.

    Notes
    -----
    O(m log m) for each call, threaded over blocks of whole queries.
    """

    def __init__(self, y: Vector, queries: NDArray[np.intp], weights: Vector, rho: Vector) -> None:
        self.n_items = len(y)
        self._order = np.lexsort((y, queries))
        labels, codes = y[self._order], queries[self._order]
        self._starts = np.searchsorted(codes, np.arange(len(rho) + 1))
        step = (labels[1:] != labels[:-1]) & (codes[1:] == codes[:-1])
        number = np.concatenate(([0], np.cumsum(step)))
        self._levels = number - number[np.minimum(self._starts[:-1], len(y) - 1)][codes]  # label's rank in its query
        self._weights = weights[self._order]
        self._factor = rho[codes] * self._weights
        threads = min(n_threads(), 1 + len(y) // _ROWS_OF_A_THREAD)
        self._blocks = balanced_blocks(self._starts, threads)

    def active(self, f: Vector) -> ActivePairs:
        """The pairs that are active at scores f."""
        w, factor, own = self._weights, self._factor, f[self._order]
        heads = self._starts[:-1][np.diff(self._starts) > 0]
        own -= np.repeat(own[heads], np.diff(np.append(heads, len(own))))  # offsets of queries cost digits otherwise
        ranking = np.empty(len(own), dtype=np.intp)
        below, above = self._partner_sums(own, ranking, w * (1.0 + 1j * own), rank=True)
        degree = factor * (below.real + above.real)
        won = (1.0 - own) * below.real + below.imag
        lost = (1.0 + own) * above.real - above.imag
        pull = factor * (lost - won)
        loss = float(factor @ won + pull @ own)  # sum c x^2 = sum c x - sum c x (f_i - f_j)
        return ActivePairs(max(loss, 0.0), self._given(2.0 * pull), self._given(degree), (own, ranking, degree))

    def product(self, active: ActivePairs, v: Vector) -> Vector:
        """``L v``, L the Laplacian of the active pairs."""
        own, ranking, degree = active.state
        v = v[self._order]
        below, above = self._partner_sums(own, ranking, self._weights * v, rank=False)
        return self._given(degree * v - self._factor * (below + above))

    def _partner_sums(self, f: Vector, ranking: NDArray[np.intp], values: NDArray[Any], *, rank: bool) -> Any:
        below, above = np.empty_like(values), np.empty_like(values)

        def run(block: tuple[int, int]) -> None:
            starts = self._starts[block[0] : block[1] + 1]
            _sum_partners(f, self._levels, values, ranking, rank, starts, below, above)

        map_threads(run, self._blocks)
        return below, above

    def _given(self, values: Vector) -> Vector:
        out = np.empty(len(values))
        out[self._order] = values
        return out


@compiled
def _sum_partners(f, levels, values, ranking, rank, starts, below, above):  # type: ignore[no-untyped-def]
    """Sums of ``values`` over each item's active losers (``below``) and winners (``above``), query by query.

    Down the sorted scores, the losers within a margin of 1 enter a Fenwick tree over label ranks; then up, the winners.
    A complex value is two sums at once.
    """
    for q in range(len(starts) - 1):
        first, n = starts[q], starts[q + 1] - starts[q]
        if n == 0:
            continue
        order = ranking[first : first + n]
        if rank:
            order[:] = np.argsort(f[first : first + n]) + first
        score, level, value = f[order], levels[order], values[order]
        n_levels = levels[first + n - 1] + 1
        tree = np.zeros(n_levels + 1, values.dtype)
        nothing = tree[0]
        p = n - 1
        for k in range(n - 1, -1, -1):
            while p >= 0 and score[k] - score[p] < 1.0:
                node = level[p] + 1
                while node <= n_levels:
                    tree[node] += value[p]
                    node += node & -node
                p -= 1
            total = nothing
            node = level[k]
            while node > 0:
                total += tree[node]
                node -= node & -node
            below[order[k]] = total
        tree[:] = nothing
        p = 0
        for k in range(n):
            while p < n and score[p] - score[k] < 1.0:
                node = n_levels - level[p]
                while node <= n_levels:
                    tree[node] += value[p]
                    node += node & -node
                p += 1
            total = nothing
            node = n_levels - level[k] - 1
            while node > 0:
                total += tree[node]
                node -= node & -node
            above[order[k]] = total


@dataclass(frozen=True, eq=False)
class PreferencePairs:
    """Listed preferences: item ``winners[e]`` should be ahead of ``losers[e]`` by ``strength[e]``.

    O(preferences) for each call.
    """

    winners: NDArray[np.intp]
    losers: NDArray[np.intp]
    n_items: int
    strength: Vector
    weight: Vector

    def active(self, f: Vector) -> ActivePairs:
        """The pairs that are active at scores f."""
        x = np.maximum(self.strength - (f[self.winners] - f[self.losers]), 0.0)
        cx, c = self.weight * x, np.where(x > 0.0, self.weight, 0.0)
        return ActivePairs(float(cx @ x), self._scattered(-2.0 * cx, 2.0 * cx), self._scattered(c, c), c)

    def product(self, active: ActivePairs, v: Vector) -> Vector:
        """``L v``, L the Laplacian of the active pairs."""
        d = active.state * (v[self.winners] - v[self.losers])
        return self._scattered(d, -d)

    def _scattered(self, to_winners: Vector, to_losers: Vector) -> Vector:
        at = np.concatenate((self.winners, self.losers))
        return np.asarray(np.bincount(at, np.concatenate((to_winners, to_losers)), self.n_items), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """Newton systems as they would be if every pair had the same share of the curvature.

    ``vectors diag(values) vectors'`` is ``X'LX`` over all pairs, divided by their total weight. What is left to
    conjugate gradients is how the active pairs differ from all, and not how features are scaled and correlated.
    """

    values: Vector
    vectors: Vector

    @classmethod
    def of(cls, gram: Vector, weight: float) -> Preconditioner:
        """From ``X'LX`` of all pairs and the sum of their weights; O(n^3)."""
        values, vectors = linalg.eigh(gram / weight, driver="evd", check_finite=False)
        return cls(np.maximum(values, 0.0), vectors)

    def solve(self, r: Vector, curvature: float) -> Vector:
        """``(I + curvature X'LX / weight)^-1 r``; O(n^2)."""
        return np.asarray(self.vectors @ ((self.vectors.T @ r) / (1.0 + curvature * self.values)))


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where a minimisation ended.

    Attributes
    ----------
    w : ndarray of shape (n,)
    value : float
        P(w).
    gap : float
        Upper bound on P(w) minus the minimum.
    n_iter : int
        Newton steps.
    status : {"converged", "max_iter", "rounding"}
        "rounding": no step lowers P any more in double precision, though the gap is above the tolerance.
    degree : ndarray of shape (m,)
        Weight of each item's active pairs.
    """

    w: Vector
    value: float
    gap: float
    n_iter: int
    status: str
    degree: Vector


def minimise(
    X: Any,
    pairs: Pairs,
    C: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Vector | None = None,
    preconditioner: Preconditioner | None = None,
) -> Minimum:
    """Minimise ``P(w)``; see the module.

    Parameters
    ----------
    X : ndarray (float64) or sparse array of shape (m, n)
    pairs : LabelPairs or PreferencePairs
    C : float
        Positive.
    tol : float
        Ends at ``gap <= tol * P(w)``, once w is within half of its length of the solution: where C is small, P is
        nearly all loss, and w = 0 is close to optimal in value but ranks nothing.
    max_iter : int
        Newton steps.
    start : ndarray of shape (n,), optional
        Where to start; zero by default.
    preconditioner : Preconditioner, optional

    Notes
    -----
    A step takes two products with X and O(m log m) for each iteration of conjugate gradients. Its length is halved
    until P is lower by a share of what the gradient promises, which costs no product with X.
    """
    w = np.zeros(X.shape[1]) if start is None else start
    first, status = 0.0, ""
    for iteration in range(max_iter + 1):
        f = np.asarray(X @ w)
        active = pairs.active(f)
        value = 0.5 * float(w @ w) + C * active.loss
        g = w + C * (X.T @ active.gradient)
        norm = float(np.linalg.norm(g))
        gap = 0.5 * norm**2
        if gap <= tol * value and ((gap <= _CLOSE * float(w @ w) and w.any()) or norm == 0.0):
            status = "converged"
        elif iteration == max_iter:
            status = "max_iter"
        if status:
            break
        first = first or norm
        forcing = min(_FORCING, float(np.sqrt(norm / first)))
        d, Xd = _newton_direction(X, pairs, active, C, g, forcing, preconditioner)
        step = _step_length(pairs, active, C, (w, d, f, Xd), float(g @ d))
        if (w + step * d == w).all():
            status = "rounding"
            break
        w = w + step * d
    return Minimum(w, value, gap, iteration, status, active.degree)


def _newton_direction(
    X: Any,
    pairs: Pairs,
    active: ActivePairs,
    C: float,
    g: Vector,
    forcing: float,
    preconditioner: Preconditioner | None,
) -> tuple[Vector, Vector]:
    """Conjugate gradients on ``(I + 2 C X'LX) d = -g``; d and ``X d``."""
    d, Xd = np.zeros(len(g)), np.zeros(pairs.n_items)
    curvature = C * float(active.degree.sum())  # 2 C times the weight of the active pairs, which the degrees have twice

    def precondition(r: Vector) -> Vector:
        return r if preconditioner is None else preconditioner.solve(r, curvature)

    r, target = -g, forcing * float(np.linalg.norm(g))
    z = precondition(r)
    p, rz = z, float(r @ z)
    for _ in range(2 * len(g) + 10):
        Xp = np.asarray(X @ p)
        Hp = p + 2.0 * C * (X.T @ pairs.product(active, Xp))
        pHp = float(p @ Hp)
        if not pHp > 0.0:
            break
        a = rz / pHp
        d, Xd, r = d + a * p, Xd + a * Xp, r - a * Hp
        if float(np.linalg.norm(r)) <= target:
            break
        z = precondition(r)
        rz, before = float(r @ z), rz
        p = z + (rz / before) * p
    return d, Xd


def _step_length(
    pairs: Pairs, active: ActivePairs, C: float, line: tuple[Vector, Vector, Vector, Vector], slope: float
) -> float:
    """The longest of 1, 1/2, 1/4, ... at which P is lower by a hundredth of what the slope promises; 0 if none."""
    w, d, f, Xd = line
    wd, dd = float(w @ d), float(d @ d)
    step = 1.0
    for _ in range(_SHRINKS):
        change = step * wd + 0.5 * step**2 * dd + C * (pairs.active(f + step * Xd).loss - active.loss)
        if change <= 0.01 * step * slope:
            return step
        step *= 0.5
    return 0.0


def centred(X: Any) -> Any:
    """X in float64; columns whose offset dwarfs their spread are moved to around zero, if X is dense.

    Only differences of scores matter, and offsets cost digits. X itself where nothing is to be done.
    """
    if sparse.issparse(X):
        return X
    means = X.mean(axis=0, dtype=np.float64)
    far = np.abs(means) > 100.0 * X.std(axis=0, dtype=np.float64)
    if X.dtype == np.float64 and not far.any():
        return X
    return X.astype(np.float64) - np.where(far, means, 0.0)
