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

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import map_threads, one_blas_thread
from rankrls.graph import ScoredGraph
from rankrls.solvers.dual import DualProblem
from rankrls.solvers.holdout import holdout_alphas
from rankrls.solvers.primal import PrimalProblem
from rankrls.solvers.rows import row_slices

__all__ = ["PairConcordance", "leave_pair_out_concordance", "pair_alphas", "refuses_pair_holdout"]

_ROWS = 256
_ALONE = 1500


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
def _count(H, first, y, weights, diagonal, residual, scale, same, tie, hit, good):  # type: ignore[no-untyped-def]
    """Add to each item the weight of its concordant pairs with earlier items; H holds the rows from ``first`` on.

    ``residual`` and ``scale`` = 1 / sqrt(w) are those of the scaled coordinates. A lead of less than ``tie``, and any
    between items of the same number in ``same``, is a tie. No division: everything is compared
    after multiplication with the determinant of the 2 x 2 system.
    """
    for r in range(np.uint64(H.shape[0])):
        i = np.uint64(first) + r
        own, ri, yi, si = 1.0 - diagonal[i], residual[i], y[i], scale[i]
        for j in range(i):
            other = 1.0 - diagonal[j]
            cross = H[r, j]
            det = own * other - cross * cross
            gap = yi - y[j]
            ahead = gap * det - (other * ri + cross * residual[j]) * si + (cross * ri + own * residual[j]) * scale[j]
            # Of the sign of the labels' gap: positive is concordant. A determinant below 0 is rounding at leverage 1.
            ahead *= np.sign(gap) * np.sign(det)
            edge = tie * abs(det)
            if same[i] == same[j]:
                edge = np.inf
            share = 0.5 * (ahead >= -edge) + 0.5 * (ahead > edge)
            hit[j] = share * (gap != 0.0)
        total = 0.0
        for j in range(i):
            good[j] += weights[i] * weights[j] * hit[j]
            total += weights[j] * hit[j]
        good[i] += weights[i] * total


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
    Primal: O(m^2 n) for each alpha, streamed by blocks of rows. Dual: O(m^3) for each alpha, an inverse, which is less
    than the product of eigenvectors that a spectrum would need; one m x m matrix besides the kernel's.
    """
    graph = problem.graph
    assert isinstance(graph, ScoredGraph)
    m = graph.n_items
    weights = graph.weights
    seen = _comparable_weight(y, weights)
    if not seen.any():
        raise ValueError("All labels are equal: no pair of items can be judged.")
    root = np.sqrt(weights)
    # F = sqrt(e1) * centring: the problem of plain centring is this one's, divided by e1.
    top = problem.spectrum_bound()
    ridge = holdout_alphas(pair_alphas(alphas, balance, m) * float(graph.eigenvalues[0][0]), top)
    intercept = root / np.sqrt(graph.query_weight[0])
    smoothers = (
        _spectral_smoothers(problem, ridge, root)
        if isinstance(problem, PrimalProblem)
        else _inverse_smoothers(problem, ridge, intercept)
    )
    y = y - np.average(y, weights=weights)
    same = _equal_items(problem)
    curve = []
    for smoother in smoothers:
        with one_blas_thread():  # not around the smoothers: an inverse has the threads to itself
            curve.append(_concordance(smoother, intercept, y, weights, seen, same))
    return PairConcordance(np.array([c[0] for c in curve]), np.array([c[1] for c in curve]))


@dataclass(frozen=True)
class _Smoother:
    """``H`` without its intercept: the product with a vector, the diagonal, and blocks of its lower triangle."""

    fit: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    diagonal: NDArray[np.float64]
    lower: Callable[[slice], NDArray[np.float64]]


def _spectral_smoothers(
    problem: PrimalProblem, ridge: NDArray[np.float64], root: NDArray[np.float64]
) -> Iterator[_Smoother]:
    """``B diag(shrink) B'`` for each alpha, of low rank."""
    s, m = problem.spectrum, len(root)
    alive = s.values > 0.0
    V = problem.directions[:, alive]
    B = np.empty((m, V.shape[1]))
    for piece in problem.rows.pieces(slice(0, m)):
        B[piece] = problem.rows.factor(piece) @ V
    for alpha in ridge:
        shrunk = B / (s.values[alive] + alpha)

        def fit(z: NDArray[np.float64], shrunk: NDArray[np.float64] = shrunk) -> NDArray[np.float64]:
            return np.asarray(shrunk @ (B.T @ z))

        def lower(rows: slice, shrunk: NDArray[np.float64] = shrunk) -> NDArray[np.float64]:
            return np.asarray(shrunk[rows] @ B[: rows.stop].T)

        yield _Smoother(fit, np.einsum("ij,ij->i", shrunk, B), lower)


def _inverse_smoothers(
    problem: DualProblem, ridge: NDArray[np.float64], intercept: NDArray[np.float64]
) -> Iterator[_Smoother]:
    """``I - u u' - alpha C^+`` for each alpha: an inverse costs m^3, less than a product of eigenvectors."""
    lift = problem.spectrum_bound() / problem.size
    for alpha in ridge:
        H = problem.inverse(float(alpha), intercept, lift)
        H *= -alpha
        H += (alpha / (lift + alpha) - 1.0) * intercept[:, None] * intercept
        H[np.diag_indices_from(H)] += 1.0

        def lower(rows: slice, H: NDArray[np.float64] = H) -> NDArray[np.float64]:
            return H[rows, : rows.stop]

        yield _Smoother(H.__matmul__, H.diagonal(), lower)


def _equal_items(problem: PrimalProblem | DualProblem) -> NDArray[np.intp]:
    """A number for each item, the same for items of equal features: their scores are equal whatever rounding says."""
    if isinstance(problem, PrimalProblem):
        first: dict[bytes, int] = {}
        numbers = [
            first.setdefault(row.tobytes(), len(first))
            for piece in row_slices(0, problem.rows.n_rows)
            for row in problem.rows.differences(piece) + 0.0
        ]
        return np.array(numbers, dtype=np.intp)
    s = problem.spectrum if problem.C is None else None
    C = problem.C if s is None else (s.vectors * s.values) @ s.vectors.T
    assert C is not None
    norms = C.diagonal()
    same = np.arange(len(C), dtype=np.intp)
    for piece in row_slices(0, len(C), _ROWS):
        total = norms[piece, None] + norms
        distance = total - 2.0 * C[piece]  # squared, between the items' features
        same[piece] = (distance <= 1e-13 * total).argmax(axis=1)  # the first item at no distance, at the latest itself
    return same


def _comparable_weight(y: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight of each item's pairs with items of other labels. O(m log m)."""
    labels, number = np.unique(y, return_inverse=True)
    same = np.bincount(number, weights=weights, minlength=len(labels))
    return np.asarray(weights * (weights.sum() - same[number]) * (len(labels) > 1))


def _concordance(
    smoother: _Smoother,
    intercept: NDArray[np.float64],
    y: NDArray[np.float64],
    weights: NDArray[np.float64],
    seen: NDArray[np.float64],
    same: NDArray[np.intp],
) -> tuple[float, float]:
    """Concordance of one alpha and its standard error; ``y`` is centred."""
    m = len(y)
    root = np.sqrt(weights)
    z = root * y
    fitted = smoother.fit(z)
    residual = z - fitted  # the intercept fits nothing of a centred y
    diagonal = smoother.diagonal + intercept * intercept
    # Items with equal features score the same but for rounding, which must not order them.
    reach = float(np.abs(y).max())
    tie = 1e-10 * float(np.ptp(fitted / root)) + 1e-14 * reach

    def count(rows: slice) -> NDArray[np.float64]:
        H = smoother.lower(rows) + intercept[rows, None] * intercept[: rows.stop]
        good = np.zeros(m)
        _count(H, rows.start, y, weights, diagonal, residual, 1.0 / root, same, tie, np.empty(m), good)
        return good

    threads = 1 if m < _ALONE else None  # starting threads would take longer than the work
    good = np.sum(map_threads(count, row_slices(0, m, _ROWS), threads=threads), axis=0)
    total = seen.sum()
    score = float(good.sum() / total)
    return score, float(2.0 * np.linalg.norm(good - score * seen) / total)
