r"""Leave-pair-out on one global ranking, without refitting.

On a single query with tied pairs included every graph is a multiple of centring, so the model is ridge regression with
an unpenalised intercept and the smoother, in the coordinates ``sqrt(w) y``, is

.. math::

    H = B \, \mathrm{diag}(s) \, B' + u u' , \qquad u = \sqrt{w / S} .

Leaving out the items U = {i, j} the errors solve the 2 x 2 system ``(I - H_UU) e = (y - H y)_U`` (Pahikkala, Airola,
Boberg, Salakoski 2008, "Exact and efficient leave-pair-out cross-validation for ranking RLS"), and the held-out
difference of scores is ``(y_i - e_i) - (y_j - e_j)``. What alpha means without the pair depends on the graph's balance:
see :func:`pair_alphas`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import map_threads, one_blas_thread
from rankrls.graph import ScoredGraph
from rankrls.solvers.dual import DualProblem
from rankrls.solvers.holdout import check_holdout_alphas
from rankrls.solvers.primal import PrimalProblem
from rankrls.solvers.rows import row_slices

__all__ = ["PairConcordance", "leave_pair_out_concordance", "pair_alphas", "refuses_pair_holdout"]

_ROWS = 256


@dataclass(frozen=True)
class PairConcordance:
    """How often held-out pairs are ordered as their labels are.

    Attributes
    ----------
    score : ndarray of shape (alphas,)
        Concordance index: pairs ordered rightly plus half of those scored equal, over pairs with different labels,
        each weighing the product of its items' weights.
    standard_error : ndarray of shape (alphas,)
        From the items' mean concordances (the projection of the U-statistic on its items, Hoeffding 1948).
    """

    score: NDArray[np.float64]
    standard_error: NDArray[np.float64]


def refuses_pair_holdout(graph: ScoredGraph, *, balance: str, regression_weight: float, weighted: bool) -> str | None:
    """Why the shortcut would be wrong for a graph, or None where it is exact."""
    if graph.n_blocks != 1:
        return "the data are not one global ranking"
    if graph.ties == "exclude":
        return "ties='exclude' makes the graph depend on which labels are left"
    if regression_weight > 0.0:
        return "regression_weight > 0 leaves no unpenalised intercept"
    if weighted and balance != "examples":
        return f"with sample_weight and balance={balance!r} every pair changes the graph's scale by another factor"
    if graph.n_items < 4:
        return "fewer than four items leave nothing comparable"
    return None


def pair_alphas(alphas: NDArray[np.float64], balance: str, m: int) -> NDArray[np.float64]:
    """Ridge parameter, with intercept, that equals ``alpha`` on the graph of the ``m - 2`` items that are left."""
    if balance == "pairs":
        return alphas / (m - 2)
    if balance == "queries":
        return alphas * (m - 3) / 2.0
    return alphas


@compiled
def _count(H, first, y, residual, root, tie, good, seen):  # type: ignore[no-untyped-def]
    """Add the weight of each item's concordant and comparable pairs; H holds the rows from ``first`` on."""
    m = np.uint64(len(y))
    for r in range(np.uint64(H.shape[0])):
        i = np.uint64(first) + r
        own = 1.0 - H[r, i]
        for j in range(m):
            if y[i] == y[j]:
                continue
            other = 1.0 - residual[1, j]
            cross = H[r, j]
            det = own * other - cross * cross
            ei = (other * residual[0, i] + cross * residual[0, j]) / det
            ej = (cross * residual[0, i] + own * residual[0, j]) / det
            difference = (y[i] - ei / root[i]) - (y[j] - ej / root[j])
            weight = root[i] * root[i] * root[j] * root[j]
            seen[i] += weight
            if abs(difference) <= tie:
                good[i] += 0.5 * weight
            elif (difference > 0.0) == (y[i] > y[j]):
                good[i] += weight


def leave_pair_out_concordance(
    problem: PrimalProblem | DualProblem, y: NDArray[np.float64], alphas: NDArray[np.float64], balance: str
) -> PairConcordance:
    """Concordance index over every pair of items with different labels, each pair left out in its turn.

    Parameters
    ----------
    problem : PrimalProblem or DualProblem
        On a graph that :func:`refuses_pair_holdout` does not refuse.
    y : ndarray of shape (m,)
    alphas : ndarray
        Positive, of the model with every item.
    balance : {"pairs", "examples", "queries"}

    Notes
    -----
    O(m^2 r) for each alpha, r the rank of the problem; streamed by blocks of rows, O(m) of them held at a time.
    """
    check_holdout_alphas(alphas)
    graph = problem.graph
    assert isinstance(graph, ScoredGraph)
    m = graph.n_items
    # F = sqrt(e1) * centring: the spectrum of plain centring is this one's, divided by e1.
    scale = float(graph.eigenvalues[0][0])
    root = np.sqrt(graph.weights)
    u = root / np.sqrt(graph.query_weight[0])
    s = problem.spectrum
    alive = s.values > 0.0
    values = s.values[alive] / scale
    ridge = pair_alphas(alphas, balance, m)
    if isinstance(problem, PrimalProblem):
        V = s.vectors[:, alive]
        B = np.vstack([problem.rows.differences(piece) @ V for piece in row_slices(0, m)]) * root[:, None]
        shrink = 1.0 / (values[:, None] + ridge)
    else:
        B = np.ascontiguousarray(s.vectors[:, alive])
        shrink = values[:, None] / (values[:, None] + ridge)
    y = y - np.average(y, weights=graph.weights)
    z = root * y
    curve = [_concordance(B, shrink[:, k], z, y, root, u) for k in range(len(alphas))]
    return PairConcordance(np.array([c[0] for c in curve]), np.array([c[1] for c in curve]))


def _concordance(
    B: NDArray[np.float64],
    shrink: NDArray[np.float64],
    z: NDArray[np.float64],
    y: NDArray[np.float64],
    root: NDArray[np.float64],
    u: NDArray[np.float64],
) -> tuple[float, float]:
    """Concordance of one alpha and its standard error, for the smoother ``B diag(shrink) B' + u u'``."""
    m = len(y)
    shrunk = B * shrink
    fitted = shrunk @ (B.T @ z)
    diagonal = np.einsum("ij,ij->i", shrunk, B) + u * u
    residual = np.vstack((z - fitted - u * (u @ z), diagonal))
    # Items with equal features score the same but for rounding, which must not order them.
    tie = 1e-10 * np.ptp(fitted / root) + 1e-14 * np.abs(y).max()
    good, seen = np.zeros(m), np.zeros(m)

    def count(rows: slice) -> None:
        H = shrunk[rows] @ B.T
        H += u[rows, None] * u
        _count(H, rows.start, y, residual, root, tie, good, seen)

    with one_blas_thread():
        map_threads(count, row_slices(0, m, _ROWS))
    total = seen.sum()
    if total == 0.0:
        raise ValueError("All labels are equal: no pair of items can be judged.")
    score = float(good.sum() / total)
    return score, float(2.0 * np.linalg.norm(good - score * seen) / total)
