"""The smoother H of a problem, by blocks of its entries: what leave-pair-out asks of a form of the problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls.features.blocks import row_slices
from rankrls.graph import ScoredGraph
from rankrls.problems.dual import DualProblem
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.spreads import LEVERAGE

if TYPE_CHECKING:
    from rankrls.holdout.pair_holdout import PairPlan

_ROWS = 128


@dataclass(frozen=True)
class Smoother:
    """``H``, items sorted: without its intercept a product and the diagonal; with it what is off the diagonal."""

    fit: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    diagonal: NDArray[np.float64]
    block: Callable[[slice, slice, NDArray[np.float64]], NDArray[np.float64]]  # in the memory given
    entries: Callable[[NDArray[np.intp], NDArray[np.intp]], NDArray[np.float64]]


Make = Callable[[float, float], Smoother]


@singledispatch
def smoothers(problem: Any, plan: PairPlan) -> tuple[Make, bool]:
    """What makes the smoother of an alpha and of its value where rounding could decide; whether it uses threads."""
    raise NotImplementedError(f"Pairs cannot be held out of a {type(problem).__name__}.")


@smoothers.register(PrimalProblem)
def _(problem: PrimalProblem, plan: PairPlan) -> tuple[Make, bool]:
    """``B diag(shrink) B'``, of low rank."""
    s, graph = problem.spectrum, plan.graph
    alive = s.values > 0.0
    V = problem.directions[:, alive]
    B = np.empty((plan.m, V.shape[1]))
    for piece in problem.rows.pieces(slice(0, plan.m)):
        B[piece] = problem.rows.factor(piece) @ V
    if graph.regresses:
        B = graph.F.T @ B  # centring is its own square; a mixture is not
    # The intercept as one more column: the other queries' never meet.
    B = np.column_stack((B[plan.order], plan.intercept))
    across = np.ascontiguousarray(B.T)  # which BLAS takes a fifth faster than the transposed view
    squares = B[:, :-1] ** 2

    def make(alpha: float) -> Smoother:
        weight = np.append(1.0 / (s.values[alive] + alpha), 1.0)
        shrunk = B * weight
        return Smoother(
            lambda z: np.asarray(shrunk[:, :-1] @ (B[:, :-1].T @ z)),
            squares @ weight[:-1],
            lambda rows, columns, out: np.matmul(shrunk[rows], across[:, columns], out=out),
            lambda i, j: np.einsum("ij,ij->i", shrunk[i], B[j]),
        )

    def resolved(given: float, raised: float) -> Smoother:
        smoother = make(given if problem.graded else raised)
        undetermined = given < raised and np.sort(smoother.diagonal + plan.intercept**2)[-2:].sum() > LEVERAGE
        return make(raised) if undetermined else smoother

    return resolved, False


@smoothers.register(DualProblem)
def _(problem: DualProblem, plan: PairPlan) -> tuple[Make, bool]:
    """``I - u u' - alpha F' C^-1 F``: an inverse costs m^3, less than a product of eigenvectors."""
    graph, u, mixed = plan.graph, plan.intercept, plan.graph.regresses
    # The direction that centring does not see, lifted, does not make the condition 1 / alpha.
    lift = 0.0 if mixed or graph.n_blocks > 1 else problem.spectrum_bound() / problem.size

    def make(given: float, alpha: float) -> Smoother:
        inverse = problem.inverse(alpha, plan.unsorted(u) if lift else None, lift)
        if mixed:
            inverse = graph.F.T @ np.ascontiguousarray((graph.F.T @ inverse).T)
        return _inverse_smoother(inverse, plan, alpha, lift / (lift + alpha) if lift else float(mixed))

    return make, True


def _inverse_smoother(inverse: NDArray[np.float64], plan: PairPlan, alpha: float, seen: float) -> Smoother:
    """``I - seen u u' - alpha inverse`` by blocks: a pass over the whole matrix costs as much as judging it."""
    order, u = plan.order, plan.intercept

    def fit(z: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(z - alpha * (inverse @ plan.unsorted(z))[order] - seen * u * (u @ z))

    def block(rows: slice, columns: slice, out: NDArray[np.float64]) -> NDArray[np.float64]:
        np.take(inverse[order[rows]], order[columns], axis=1, out=out, mode="clip")
        out *= -alpha
        out += (1.0 - seen) * u[rows, None] * u[columns]
        return out

    def entries(i: NDArray[np.intp], j: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.asarray((1.0 - seen) * u[i] * u[j] - alpha * inverse[order[i], order[j]])

    return Smoother(fit, 1.0 - alpha * inverse.diagonal()[order] - seen * u * u, block, entries)


@singledispatch
def equal_items(problem: Any, graph: ScoredGraph) -> NDArray[np.intp]:
    """A number for each item, the same for items of equal features: their scores are equal whatever rounding says."""
    raise NotImplementedError(f"Pairs cannot be held out of a {type(problem).__name__}.")


@equal_items.register(PrimalProblem)
def _(problem: PrimalProblem, graph: ScoredGraph) -> NDArray[np.intp]:
    rows, first = problem.rows, dict[Any, int]()
    keys = (key for piece in row_slices(0, rows.n_rows) for key in rows.keys(piece))
    return np.fromiter((first.setdefault(key, len(first)) for key in keys), dtype=np.intp, count=rows.n_rows)


@equal_items.register(DualProblem)
def _(problem: DualProblem, graph: ScoredGraph) -> NDArray[np.intp]:
    s = problem.spectrum if problem.C is None else None
    C = problem.C if s is None else (s.vectors * s.values) @ s.vectors.T
    assert C is not None
    root = np.sqrt(graph.weights)  # rows of F X are scaled by it, features are not
    norms = C.diagonal() / root**2
    same = np.arange(len(C), dtype=np.intp)
    for piece in row_slices(0, len(C), _ROWS):
        total = norms[piece, None] + norms
        distance = total - 2.0 * C[piece] / (root[piece, None] * root)  # squared, between the items' features
        same[piece] = (distance <= 1e-13 * total).argmax(axis=1)  # the first item at no distance, at the latest itself
    return same
