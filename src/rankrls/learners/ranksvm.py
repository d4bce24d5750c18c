r"""RankSVM: the squared hinge of ordered pairs, minimized by truncated Newton steps.

For scores :math:`f = Xw` and pairs e of a winner i and a loser j, RankSVM minimizes over w

.. math:: P(w) = \tfrac12 \lVert w \rVert^2 + C \sum_e c_e \max(0, s_e - (f_i - f_j))^2 .

A pair is *active* if its margin :math:`f_i - f_j` is below :math:`s_e`. The gradient and the product with the
Hessian :math:`I + 2 C X' L X`, L the Laplacian of the active pairs, need sums over the active partners of each item.
For items with labels (:math:`s_e = 1`, :math:`c_e = \rho_q w_i w_j`) these are counted over sorted scores with a
Fenwick tree over labels (Airola, Pahikkala and Salakoski 2011; Lee and Lin 2014).

A Newton step solves the system by conjugate gradients until the residual is a tenth of the gradient or less (Chapelle
and Keerthi 2010). P is strongly convex, and the derivatives of the loss by the pairs are feasible in its dual, with

.. math:: P(w) - D = \tfrac12 \lVert \nabla P(w) \rVert^2 ,

which bounds the distance of P(w) to the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, cg

from rankrls._cached import cached_property
from rankrls._comparisons import Data, GraphSetting
from rankrls._compiled import balanced_blocks, blas_threads_for, compiled, map_threads, n_threads
from rankrls._problems import Candidate, Problem
from rankrls._typing import AnyArray, Array, Index, Matrix
from rankrls.learners.paths import PathSolutions, without_offset
from rankrls.numerics.graph import Graph, LabelledGraph, PreferenceGraph
from rankrls.numerics.krylov import FeatureSystem, LaplacianProduct, largest_eigenvalue
from rankrls.numerics.scorer import Basis, Scorer
from rankrls.numerics.smoother import normal_equations

_CLOSE = 0.125
"""P is strongly convex: ``|w - w*|^2 / 2 <= gap``, so the distance of w to the solution is at most half its length."""
_FORCING = 0.1
_SHRINKS = 40
_SUFFICIENT = 0.01
"""Share of what the slope predicts by which a step must lower P."""
_ROWS_OF_A_THREAD = 8192
_FEW_FEATURES = 1024
"""Number of features up to which RankRLS's matrix costs less than the conjugate gradient iterations that it saves."""
_GRID = 15
_DECADES = 7.0


@dataclass(frozen=True, eq=False)
class ActivePairs:
    """The active pairs for given scores.

    Attributes
    ----------
    loss : float
        Sum of the squared hinge over the pairs.
    gradient : ndarray of shape (m,)
        Gradient of the loss with respect to the scores.
    degree : ndarray of shape (m,)
        Weight of the active pairs of each item; an item with none does not affect the solution.
    state : object
        Values that ``product`` reuses.
    """

    loss: float
    gradient: Array
    degree: Array
    state: Any


class HingePairs:
    """Pairs of items of a query with different labels, with strength 1 and the weight assigned by a graph.

    O(m log m) per call, threaded over blocks of whole queries.
    """

    def __init__(self, graph: LabelledGraph) -> None:
        self.n_items = graph.n_rows
        self._order = graph.rows
        self._starts = graph.starts
        self._lengths = graph.lengths
        number = np.concatenate(([0], np.cumsum(np.diff(graph.y[:, 0]) != 0)))
        self._levels = number - np.repeat(number[graph.starts[:-1]], graph.lengths)  # rank of the label in its query
        self._weights = graph.weights
        self._factor = graph.weights * graph.rho
        self._blocks = balanced_blocks(self._starts, min(n_threads(), 1 + self.n_items // _ROWS_OF_A_THREAD))

    def active(self, f: Array) -> ActivePairs:
        """The active pairs at scores f."""
        w = self._weights
        factor = self._factor
        own = f[self._order]
        own -= np.repeat(own[self._starts[:-1]], self._lengths)  # offsets of queries cost digits otherwise
        ranking = np.empty(len(own), dtype=np.intp)
        below, above = self._partner_sums(own, ranking, w * (1.0 + 1j * own), rank=True)
        degree = factor * (below.real + above.real)
        won = (1.0 - own) * below.real + below.imag
        lost = (1.0 + own) * above.real - above.imag
        pull = factor * (lost - won)
        loss = float(factor @ won + pull @ own)  # sum c x^2 = sum c x - sum c x (f_i - f_j)
        return ActivePairs(max(loss, 0.0), self._given(2.0 * pull), self._given(degree), (own, ranking, degree))

    def product(self, active: ActivePairs, v: Array) -> Array:
        """``L v``, with L the Laplacian of the active pairs."""
        own, ranking, degree = active.state
        v = v[self._order]
        below, above = self._partner_sums(own, ranking, self._weights * v, rank=False)
        return self._given(degree * v - self._factor * (below + above))

    def _partner_sums(self, f: Array, ranking: Index, values: AnyArray, *, rank: bool) -> Any:
        below = np.empty_like(values)
        above = np.empty_like(values)

        def run(block: tuple[int, int]) -> None:
            starts = self._starts[block[0] : block[1] + 1]
            _sum_partners(f, self._levels, values, ranking, rank, starts, below, above)

        map_threads(run, self._blocks)
        return below, above

    def _given(self, values: Array) -> Array:
        out = np.empty(len(values))
        out[self._order] = values
        return out


@compiled
def _sum_partners(f, levels, values, ranking, rank, starts, below, above):  # type: ignore[no-untyped-def]
    """Sums of ``values`` over each item's active losers (``below``) and winners (``above``), query by query.

    A complex value represents two sums at once.
    """
    for q in range(len(starts) - 1):
        order = ranking[starts[q] : starts[q + 1]]
        if rank:
            order[:] = np.argsort(f[starts[q] : starts[q + 1]]) + starts[q]
        n_levels = levels[starts[q + 1] - 1] + 1
        score = f[order]
        level = levels[order]
        value = values[order]
        below[order] = _losers(score, level, value, n_levels)
        # with signs reversed, winners are losers
        above[order[::-1]] = _losers(-score[::-1], n_levels - 1 - level[::-1], value[::-1], n_levels)


@compiled
def _losers(score, level, value, n_levels):  # type: ignore[no-untyped-def]
    """Sums over the items of lower levels within a margin of 1, for items sorted on their scores.

    In order of decreasing score, items enter a Fenwick tree over levels when they come within the margin.
    """
    tree = np.zeros(n_levels + 1, value.dtype)
    out = np.empty_like(value)
    p = len(score) - 1
    for k in range(len(score) - 1, -1, -1):
        while p >= 0 and score[k] - score[p] < 1.0:
            node = level[p] + 1
            while node <= n_levels:
                tree[node] += value[p]
                node += node & -node
            p -= 1
        total = tree[0]
        node = level[k]
        while node > 0:
            total += tree[node]
            node -= node & -node
        out[k] = total
    return out


class PreferencePairs:
    """Listed preferences, whose strengths are the required margins; O(preferences) per call."""

    def __init__(self, graph: PreferenceGraph) -> None:
        self._graph = graph
        self.n_items = graph.n_items

    def active(self, f: Array) -> ActivePairs:
        """The active pairs at scores f."""
        B = self._graph.incidence
        c = self._graph.weights
        x = np.maximum(self._graph.strength - B @ f, 0.0)
        active = np.where(x > 0.0, c, 0.0)
        return ActivePairs(float((c * x) @ x), B.T @ (-2.0 * c * x), abs(B).T @ active, active)

    def product(self, active: ActivePairs, v: Array) -> Array:
        """``L v``, with L the Laplacian of the active pairs."""
        B = self._graph.incidence
        return np.asarray(B.T @ (active.state * (B @ v)))


Pairs = HingePairs | PreferencePairs


@dataclass(frozen=True, eq=False)
class Spectrum:
    """``X'LX`` over all pairs, divided by their total weight, as ``vectors diag(values) vectors'``.

    It preconditions Newton systems: it would be exact if every pair had the same share of the curvature. Conjugate
    gradients then only handle how active pairs differ from all pairs, not the scales and correlations of features.
    """

    values: Array
    vectors: Array

    @classmethod
    def of(cls, graph: Graph, X: Matrix) -> Spectrum:
        """From the pairs of a graph and features X, (m, n); O(m n^2 + n^3)."""
        mean = normal_equations(graph, X).gram / graph.pair_weight
        values, vectors = linalg.eigh(mean, driver="evd", check_finite=False)
        return cls(np.maximum(values, 0.0), vectors)

    def solve(self, r: Array, curvature: float) -> Array:
        """``(I + curvature X'LX / weight)^-1 r``; O(n^2)."""
        return np.asarray(self.vectors @ ((self.vectors.T @ r) / (1.0 + curvature * self.values)))


@dataclass(frozen=True, eq=False)
class Minimum:
    """Result of a minimization.

    Attributes
    ----------
    w : ndarray of shape (n,)
    value : float
        P(w).
    gap : float
        Upper bound on P(w) minus the minimum.
    n_iter : int
        Number of Newton steps.
    status : {"converged", "max_iter", "rounding"}
        "rounding": no step lowers P any more in double precision, although the gap exceeds the tolerance.
    degree : ndarray of shape (m,)
        Weight of the active pairs of each item.
    """

    w: Array
    value: float
    gap: float
    n_iter: int
    status: str
    degree: Array


def minimize(
    X: Matrix,
    pairs: Pairs,
    C: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    start: Array | None = None,
    spectrum: Spectrum | None = None,
) -> Minimum:
    """Minimize ``P(w)``, defined in the module's docstring.

    Parameters
    ----------
    X : ndarray (float64) or sparse array of shape (m, n)
    pairs : HingePairs or PreferencePairs
    C : float
        Positive weight of the loss.
    tol : float
        Stops at ``gap <= tol * P(w)``, once the distance of w to the solution is at most half its length: for small C,
        P is nearly all loss, and w = 0 has a nearly optimal value but ranks nothing.
    max_iter : int
        Maximum number of Newton steps.
    start : ndarray of shape (n,), optional
        Starting point; zero by default.
    spectrum : Spectrum, optional
        Preconditioner of the Newton systems.

    Notes
    -----
    A step costs two products with X and O(m log m) per iteration of conjugate gradients. Its length is halved until P
    decreases by a share of what the gradient predicts, which needs no product with X.
    """
    w = np.zeros(X.shape[1]) if start is None else start
    first = 0.0
    status = ""
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
        d = _newton_direction(X, pairs, active, C, g, forcing, spectrum)
        Xd = np.asarray(X @ d)
        for step in 0.5 ** np.arange(_SHRINKS):
            loss = pairs.active(f + step * Xd).loss
            change = step * float(w @ d) + 0.5 * step**2 * float(d @ d) + C * (loss - active.loss)
            if change <= _SUFFICIENT * step * float(g @ d):
                break
        else:
            status = "rounding"
            break
        w = w + step * d
    return Minimum(w, value, gap, iteration, status, active.degree)


def _newton_direction(
    X: Matrix, pairs: Pairs, active: ActivePairs, C: float, g: Array, forcing: float, spectrum: Spectrum | None
) -> Array:
    """Conjugate gradients on ``(I + 2 C X'LX) d = -g``."""
    n = len(g)
    M = None
    hessian = LinearOperator((n, n), lambda v: v + 2.0 * C * (X.T @ pairs.product(active, X @ v)), dtype=np.float64)
    if spectrum is not None:
        curvature = C * float(active.degree.sum())  # 2 C times the weight of the pairs, which degrees count twice
        M = LinearOperator((n, n), lambda r: spectrum.solve(r, curvature), dtype=np.float64)
    return np.asarray(cg(hessian, -g, rtol=forcing, maxiter=2 * n + 10, M=M)[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class RankSVMCandidate(Candidate["PathSolutions[Minimum]"]):
    """``1/2 |w|^2 + C sum_pairs c max(0, s - margin)^2`` for one kernel and one balance.

    Attributes
    ----------
    balance : str
        Balance of the pairs of labelled items.
    tol, max_iter
        Parameters of :func:`minimize`.
    basis : Basis, optional
        Functions over items that replace the features of X; their orthonormal features, (m, rank), are stored.
    """

    balance: str
    tol: float
    max_iter: int
    basis: Basis | None = None

    def problem(self, data: Data) -> RankSVMProblem:
        return RankSVMProblem(self, data)


class RankSVMProblem(Problem["PathSolutions[Minimum]"]):
    """A candidate's problem on some data; the parameter is C."""

    parameter = "C"

    def __init__(self, candidate: RankSVMCandidate, data: Data) -> None:
        self.candidate = candidate
        self.graph = data.numeric_graphs(GraphSetting("exclude", candidate.balance))[0]
        X = data.X
        basis = candidate.basis
        if basis is not None:  # Newton steps read the features dozens of times, so they are stored
            columns = basis.features(X)[:]
            X = columns if basis.whitening is None else columns @ basis.whitening
        self._X = without_offset(X)
        self.pairs: Pairs = self.graph.by_kind(HingePairs, PreferencePairs)

    @cached_property
    def _spectrum(self) -> Spectrum | None:
        return Spectrum.of(self.graph, self._X) if self._X.shape[1] <= _FEW_FEATURES else None

    def path(self, values: Array) -> PathSolutions[Minimum]:
        """Solutions for several values of C, with their minima as details. Values are solved in ascending order, and
        each solution starts at the previous one.
        """
        minima: dict[int, Minimum] = {}
        w: Array | None = None
        m, n = self._X.shape
        with blas_threads_for(float(m) * n**2):
            for k in np.argsort(values, kind="stable").tolist():
                minima[k] = minimize(
                    self._X,
                    self.pairs,
                    float(values[k]),
                    start=w,
                    tol=self.candidate.tol,
                    max_iter=self.candidate.max_iter,
                    spectrum=self._spectrum,
                )
                w = minima[k].w
        found = [minima[k] for k in range(len(values))]
        W = np.stack([minimum.w for minimum in found])
        basis = self.candidate.basis
        # scores are sums of weighted orthonormal functions
        read = Scorer if basis is None else replace(basis, rows_first=True).scorer
        return PathSolutions(W[:, :, None], read, found)

    def axis(self) -> Array:
        """Values of C, ascending, around the one for which loss and penalty have equal weight."""
        product = LaplacianProduct(self._X, self.graph)
        top = largest_eigenvalue(FeatureSystem(product), product.right_side(self.graph.target[:, 0]))
        return np.asarray(0.05 / top * np.geomspace(1.0, 10.0**_DECADES, _GRID)) if top > 0.0 else np.full(1, 0.5)
