r"""Leave-pair-out without refitting: each pair of items of a ranking held out in its turn.

On one ranking with tied pairs included every graph is a multiple of centring, so the model is ridge regression with an
unpenalised intercept and the smoother, in the coordinates ``sqrt(w) y``, is

.. math::

    H = B \, \mathrm{diag}(s) \, B' + u u' , \qquad u = \sqrt{w / S} .

Leaving out the items U = {i, j} the errors solve the 2 x 2 system ``(I - H_UU) e = (y - H y)_U`` (Pahikkala, Airola,
Boberg, Salakoski 2008, "Exact and efficient leave-pair-out cross-validation for ranking RLS"), and the held-out
difference of scores is ``(y_i - e_i) - (y_j - e_j)``. What the graph of the other m - 2 items is, and with it what
stands for alpha here, depends on the balance: see :func:`pair_setting`, which also derives the two cases beyond the
paper.

* *Mixture with regression*, unweighted: completing the square in the intercept b, the loss of the items that are left
  is ``(beta + k) [ sum (r - b)^2 + p b^2 ]``, ``p = (m - 2) beta / k`` with ``k = (1 - beta) rho S`` of their graph.
  That is ridge regression with a penalised intercept, ``u = 1 / sqrt(m + p)``.
* *Several queries* with balance "examples": an intercept for each query, pairs inside queries only. From a query of two
  items nothing is left that its intercept could explain, so it has none in H.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import map_threads, n_threads, one_blas_thread
from rankrls._errors import InputError
from rankrls.equations.holdout import holdout_alphas
from rankrls.features.blocks import row_slices
from rankrls.graph import ScoredGraph
from rankrls.holdout.smoothers import Smoother, equal_items, smoothers
from rankrls.problems.dual import DualProblem
from rankrls.problems.primal import PrimalProblem

_ROWS = 128
_ALONE = 1500
Problem = PrimalProblem | DualProblem


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
    """Why the shortcut would be wrong for a graph, as a part of the template of an error; None if it is exact."""
    several = graph.n_blocks > 1
    if graph.ties == "exclude":
        return "{ties='exclude'} makes the graph depend on which labels are left"
    if several and balance != "examples":
        return f"with several queries and {{balance={balance!r}}} a pair changes its query's weight among the others"
    if several and regression_weight > 0.0:
        return "{regression_weight} > 0 with several queries ties a query's mean to how many items are left of it"
    if weighted and balance != "examples":
        return f"with sample_weight and {{balance={balance!r}}} every pair changes the graph's scale by another factor"
    if weighted and regression_weight > 0.0:
        return "with sample_weight and {regression_weight} > 0 every pair changes the mixture"
    left = graph.layout.counts - 1
    if left.sum() - left.max(initial=0) < 1 and left.max(initial=0) < 3:
        return "fewer than four items leave nothing comparable"
    return None


def pair_setting(graph: ScoredGraph, *, balance: str, regression_weight: float) -> tuple[ScoredGraph, float]:
    """The graph to solve on for pairs held out of models of ``graph``, and what alpha is multiplied by there.

    The graph is ``graph`` itself without a mixture. Where :func:`refuses_pair_holdout` finds no fault.
    """
    m, beta = graph.n_items, regression_weight
    # rho S of the graph of m - 2 items, where every item weighs 1
    scale = {"examples": 1.0, "pairs": m - 2.0, "queries": 2.0 / (m - 3.0) if m > 3 else 1.0}[balance]
    mixed = beta + (1.0 - beta) * scale
    if beta == 0.0:
        return graph, float(graph.eigenvalues[0][0]) / mixed
    # p / (m + p): what of the mean the intercept leaves
    rest = 1.0 if beta == 1.0 else (m - 2.0) * beta / (m * (1.0 - beta) * scale + (m - 2.0) * beta)
    return replace(graph, eigenvalues=(np.ones(1), np.ones(1), np.full(1, rest))), 1.0 / mixed


@compiled
def _lead(gap, own, other, cross, ri, rj, si, sj):  # type: ignore[no-untyped-def]
    """The held-out lead of item i over item j times the determinant of their 2 x 2 system, and that determinant.

    ``own``, ``other`` and ``-cross`` are the entries of ``I - H_UU``, r the residuals in the scaled coordinates and
    ``s = 1 / sqrt(w)``. A determinant below 0 is rounding at leverage 1.
    """
    det = own * other - cross * cross
    lead = gap * det - (other * ri + cross * rj) * si + (cross * ri + own * rj) * sj
    return (-lead, -det) if det < 0.0 else (lead, det)


@compiled
def _shares(H, first, begin, limit, y, slack, residual, scale, same, tie, weights, lost):  # type: ignore[no-untyped-def]
    """Overwrite a block of H by the share of each pair that its row wins: 1, 0, or 0.5 for a tie.

    Row r is item ``first + r``, column c is item ``begin + c``; columns from ``limit[r]`` on become 0. A lead of less
    than ``tie``, and any between items of the same number in ``same``, is a tie. No division: everything is compared
    after multiplication with the determinant. What a row wins, times its weight, is added to what the column has
    ``lost``.
    """
    for r in range(np.uint64(H.shape[0])):
        i = np.uint64(first) + r
        own, ri, yi, si, number, weight = slack[i], residual[i], y[i], scale[i], same[i], weights[i]
        end = np.uint64(limit[r])
        for c in range(end):
            j = np.uint64(begin) + c
            lead, det = _lead(yi - y[j], own, slack[j], H[r, c], ri, residual[j], si, scale[j])
            edge = tie * det
            share = 0.5 * (lead >= -edge) + 0.5 * (lead > edge)
            share = 0.5 if same[j] == number else share
            H[r, c] = share
            lost[c] += weight * share
        for c in range(end, np.uint64(H.shape[1])):
            H[r, c] = 0.0


@compiled
def _differences(i, j, cross, y, slack, residual, scale, same, tie, out):  # type: ignore[no-untyped-def]
    """Held-out differences of scores of some pairs; exactly 0 for a tie."""
    for e in range(np.uint64(len(i))):
        a, b = np.uint64(i[e]), np.uint64(j[e])
        lead, det = _lead(y[a] - y[b], slack[a], slack[b], cross[e], residual[a], residual[b], scale[a], scale[b])
        tied = same[a] == same[b] or abs(lead) <= tie * det
        out[e] = 0.0 if tied else lead / det


def leave_pair_out_concordance(problem: Problem, y: NDArray[np.float64], ridge: NDArray[np.float64]) -> PairConcordance:
    """Concordance index over every pair of items with different labels, each pair left out in its turn.

    Parameters
    ----------
    problem : PrimalProblem or DualProblem
        On the graph of :func:`pair_setting`. Several queries: pairs inside queries, all counting the same.
    y : ndarray of shape (m,)
    ridge : ndarray
        Alphas times the factor of :func:`pair_setting`; positive.

    Notes
    -----
    Primal: O(m^2 n) for each alpha, streamed by blocks of rows. Dual: O(m^3) for each alpha, an inverse, which is less
    than the product of eigenvectors that a spectrum would need; one m x m matrix besides the kernel's.
    """
    plan = PairPlan.of(problem, y)
    seen = plan.comparable_weight()
    total = seen.sum()
    if not total > 0.0:
        raise InputError("All labels are equal: no pair of items can be judged.", parameter="y")
    w = plan.weights

    def judge(left: _Left) -> tuple[float, float]:
        good = w * left.won(plan.first_equal).sum(axis=0)
        score = float(good.sum() / total)
        return score, float(2.0 * np.linalg.norm(good - score * seen) / total)

    curve = plan.over_alphas(judge, ridge)
    return PairConcordance(np.array([c[0] for c in curve]), np.array([c[1] for c in curve]))


def tournament_wins(problem: Problem, y: NDArray[np.float64], ridge: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight of the items that each item beats where the two are held out together, (m, alphas); ties count half.

    Every pair inside a query plays, those of equal labels too (Montoya Perez et al. 2019, section 3). Parameters and
    costs as for :func:`leave_pair_out_concordance`.
    """
    plan = PairPlan.of(problem, y)
    lengths = np.diff(plan.starts)
    up_to = np.cumsum(plan.weights)
    later = np.repeat(up_to[plan.starts[1:] - 1], lengths) - up_to
    place = np.arange(plan.m, dtype=np.intp) - np.repeat(plan.starts[:-1], lengths)

    def judge(left: _Left) -> NDArray[np.float64]:
        won, lost = left.won(place)
        return plan.unsorted(won + later - lost)

    return np.stack(plan.over_alphas(judge, ridge), axis=1)


def held_out_differences(
    problem: Problem, y: NDArray[np.float64], ridge: NDArray[np.float64], i: NDArray[np.intp], j: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Scores of items ``i`` less those of items ``j`` by the model without the two, (pairs, alphas); 0 for ties.

    O(n) for a pair and alpha in the primal; in the dual O(m^3) for an alpha. The two items lie in one query.
    """
    plan = PairPlan.of(problem, y)
    place = np.empty(plan.m, dtype=np.intp)
    place[plan.order] = np.arange(plan.m)
    i, j = place[i], place[j]
    return np.stack(plan.over_alphas(lambda left: left.differences(i, j), ridge), axis=1)


@dataclass(frozen=True)
class PairPlan:
    """What all alphas share. Items are sorted by query, then label: every pair's first item has the larger label."""

    problem: Problem
    graph: ScoredGraph
    order: NDArray[np.intp]
    starts: NDArray[np.intp]  # of the queries
    weights: NDArray[np.float64]
    y: NDArray[np.float64]  # centred where an intercept is free
    first_equal: NDArray[np.intp]  # items of the query before those of the row's own label
    intercept: NDArray[np.float64]  # u
    same: NDArray[np.intp]

    @classmethod
    def of(cls, problem: Problem, y: NDArray[np.float64]) -> PairPlan:
        graph = ScoredGraph.of(problem.graph)
        layout = graph.layout
        order = np.lexsort((y, layout.codes)).astype(np.intp, copy=False)
        codes, z, w = layout.codes[order], y[order], graph.weights[order]
        position = np.arange(len(y), dtype=np.intp)
        new = np.ones(len(y), dtype=bool)
        new[1:] = (np.diff(codes) != 0) | (np.diff(z) != 0)
        first_equal = np.maximum.accumulate(np.where(new, position, 0)) - layout.starts[codes]
        share = 1.0 - graph.eigenvalues[2] / graph.eigenvalues[0]
        if not graph.regresses:
            z = z - (np.add.reduceat(w * z, layout.starts[:-1]) / graph.query_weight)[codes]
            if graph.n_blocks > 1:
                share = np.where(layout.counts == 2, 0.0, share)
        intercept = np.sqrt(w * (share / graph.query_weight)[codes])
        same = equal_items(problem, graph)[order]
        return cls(problem, graph, order, layout.starts, w, z, first_equal, intercept, same)

    @property
    def m(self) -> int:
        return len(self.order)

    def unsorted(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        out = np.empty_like(values)
        out[self.order] = values
        return out

    def comparable_weight(self) -> NDArray[np.float64]:
        """Weight of each item's pairs with items of its query that have other labels. O(m)."""
        lengths = np.diff(self.starts)
        first = np.repeat(self.starts[:-1], lengths) + self.first_equal
        classes, number, count = np.unique(first, return_inverse=True, return_counts=True)
        others = np.repeat(np.add.reduceat(self.weights, self.starts[:-1]), lengths)
        others -= np.add.reduceat(self.weights, classes)[number]
        # exactly nothing where the label is the only one, whatever rounding says
        return np.where(count[number] == np.repeat(lengths, lengths), 0.0, self.weights * others)

    @cached_property
    def blocks(self) -> tuple[list[tuple[int, slice]], int]:
        """Blocks of rows of each query, each with the query's first row; the rows of the longest query."""
        spans = list(pairwise(self.starts.tolist()))
        blocks = [(begin, rows) for begin, end in spans for rows in row_slices(begin, end, _ROWS)]
        return blocks, max(end - begin for begin, end in spans)

    @cached_property
    def scale(self) -> NDArray[np.float64]:
        return np.asarray(1.0 / np.sqrt(self.weights))

    @cached_property
    def z(self) -> NDArray[np.float64]:
        """The labels in the scaled coordinates, ``sqrt(w) y``."""
        return np.sqrt(self.weights) * self.y

    @cached_property
    def about_mean(self) -> NDArray[np.float64]:
        """``z - u u'z`` of each query."""
        mean = np.add.reduceat(self.intercept * self.z, self.starts[:-1])
        return np.asarray(self.z - self.intercept * np.repeat(mean, np.diff(self.starts)))

    @cached_property
    def largest(self) -> float:
        """The largest label, whatever its sign."""
        return float(np.abs(self.y).max())

    def over_alphas(self, function: Callable[[_Left], Any], ridge: NDArray[np.float64]) -> list[Any]:
        """One result an alpha; small problems spread alphas over the threads, large ones their blocks of rows."""
        resolved = holdout_alphas(ridge, self.problem.spectrum_bound())
        make, has_threads = smoothers(self.problem, self)

        def result(k: int) -> Any:
            smoother = make(float(ridge[k]), float(resolved[k]))
            with one_blas_thread():
                return function(_Left.of(self, smoother))

        if has_threads:
            return [result(k) for k in range(len(ridge))]
        with one_blas_thread():
            return map_threads(result, range(len(ridge)), threads=None if self.m < _ALONE else 1)


@dataclass(frozen=True)
class _Left:
    """One alpha: what the held-out lead of any pair needs."""

    plan: PairPlan
    smoother: Smoother
    residual: NDArray[np.float64]
    slack: NDArray[np.float64]
    tie: float

    @classmethod
    def of(cls, plan: PairPlan, smoother: Smoother) -> _Left:
        fitted = smoother.fit(plan.z)
        scores = fitted * plan.scale
        # Items with equal features score the same but for rounding, which must not order them.
        tie = 1e-10 * float(scores.max() - scores.min()) + 1e-14 * plan.largest
        return cls(plan, smoother, plan.about_mean - fitted, 1.0 - smoother.diagonal - plan.intercept**2, tie)

    def won(self, limits: NDArray[np.intp]) -> NDArray[np.float64]:
        """What each item wins of the weight of earlier items of its query, and what later ones win of it, (2, items).

        Earlier items are those before the place in the query that ``limits`` gives for the later one.
        """
        plan, w = self.plan, self.plan.weights
        tasks, longest = plan.blocks
        threads = 1 if plan.m < _ALONE else n_threads()

        def run(some: list[tuple[int, slice]]) -> NDArray[np.float64]:
            # One block again and again: to get it from the system anew would cost a fifth of the time.
            sums, memory = np.zeros((2, plan.m)), np.empty(min(_ROWS, longest) * longest)
            for begin, rows in some:
                shares = self._shares(begin, rows, limits[rows], memory, sums[1, begin:])
                sums[0, rows] += shares @ w[begin : begin + shares.shape[1]]
            return sums

        # Later blocks of a query have longer rows: each thread takes some of every length.
        parts = map_threads(run, [tasks[k::threads] for k in range(threads)], threads=threads)
        return np.asarray(np.sum(parts, axis=0))

    def _shares(
        self, begin: int, rows: slice, limit: NDArray[np.intp], memory: NDArray[np.float64], lost: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Share of each pair won by the row, (rows, items from ``begin`` to the largest limit); 0 from ``limit`` on.

        The weight of the rows that win is added to ``lost``, which begins at ``begin`` too.
        """
        plan, n_columns = self.plan, int(limit.max())
        n_rows = rows.stop - rows.start
        H = memory[: n_rows * n_columns].reshape(n_rows, n_columns)
        self.smoother.block(rows, slice(begin, begin + n_columns), H)
        known = plan.y, self.slack, self.residual, plan.scale, plan.same, self.tie, plan.weights
        _shares(H, rows.start, begin, limit, *known, lost)
        return H

    def differences(self, i: NDArray[np.intp], j: NDArray[np.intp]) -> NDArray[np.float64]:
        """Held-out differences of scores of pairs of items."""
        plan = self.plan
        out = np.empty(len(i))
        cross = self.smoother.entries(i, j)
        _differences(i, j, cross, plan.y, self.slack, self.residual, plan.scale, plan.same, self.tie, out)
        return out
