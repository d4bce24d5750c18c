"""Streamed fits: normal equations in one pass, and every regularization value judged in a second one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Setting
from rankrls._compiled.threads import one_thread
from rankrls._errors import InputError
from rankrls.equations.graded import solve_without
from rankrls.equations.holdout import holdout_alphas, weights_without
from rankrls.equations.normal_equations import NormalEquations
from rankrls.metrics import RankingMeasure
from rankrls.problems.primal import EquationsProblem
from rankrls.problems.scorer import Scorer
from rankrls.problems.subset import Basis, OverBasis
from rankrls.selection.folds import check_two_vary
from rankrls.selection.judging import Curve
from rankrls.streaming.cut_queries import CutQuery
from rankrls.streaming.equation_sums import EquationsJob, EquationSums
from rankrls.streaming.holdout_sums import HoldoutJob, Model, ScoreJob
from rankrls.streaming.parts import check_varied
from rankrls.streaming.stream import Stream
from rankrls.streaming.tree import tree_depth

_JUDGING = Setting("include", "queries", 0.0)
"""The graph whose Laplacian is the mean squared error of score differences, summed over queries."""
_NOTHING = 1e-14
_EQUATIONS, _HOLDOUT, _FOLDS, _VALIDATION = "equations", "held-out", "folds", "validation"


@dataclass(frozen=True, eq=False)
class Summed:
    """What the first pass found.

    Attributes
    ----------
    sums : EquationSums
    settings : tuple of Setting
    depth : int
        Levels of the tree of sums.
    columns : Basis or None
    """

    sums: EquationSums
    settings: tuple[Setting, ...]
    depth: int
    columns: Any = None

    def problem(self, k: int, *, without: int | None = None) -> EquationsProblem:
        """The problem of setting number k; without the queries of one fold, if that is given.

        Rounding grows with the rows of a leaf and the levels above it, not with all rows.
        """
        equations = self.sums.total(k, without=without)
        size = max(self.sums.largest + self.depth, len(equations.gram))
        basis = self.columns
        if basis is None:
            return EquationsProblem(equations, size, own_units=True)
        return _OverBasis(equations, size, basis)

    def without_folds(self, settings: int) -> list[list[EquationsProblem]]:
        """The problems of the first settings, each without the queries of every fold in its turn."""
        with one_thread():
            return [[self.problem(k, without=fold) for fold in range(len(self.sums.whole))] for k in range(settings)]


class _OverBasis(OverBasis, EquationsProblem):
    """The problem of a basis of items, whose columns were added up."""

    def __init__(self, equations: Any, size: int, basis: Basis) -> None:
        self.basis = basis
        super().__init__(equations, size, whitening=basis.whitening)


def leaf_bytes(n: int, settings: int, *, values: int = 0, folds: int = 1, columns: int = 0) -> Any:
    """The memory that a leaf takes, and its answer twice, as a function of its rows.

    n features in float64, which are held twice while they are read, ``columns`` columns that are made of them, and so
    many values judged.
    """
    k = columns or n
    fixed = 8.0 * k**2 * (3.0 * settings * folds + 4.0)
    return lambda rows: fixed + rows * (16.0 * n + 100.0 + 32.0 * values)


def read_equations(stream: Stream, settings: Sequence[Setting], *, folds: int = 1, columns: Any = None) -> Summed:
    """The first pass.

    Raises
    ------
    InputError
        If no query holds two different labels.
    """
    job = EquationsJob(tuple(settings), folds, columns)
    sums = stream.run(job, _EQUATIONS)
    out = Summed(sums, job.settings, tree_depth(len(stream.data.parts)), columns)
    check_varied(sums, settings)
    if folds > 1 and not any(setting.regression_weight for setting in settings):
        _check_folds_leave_something(sums, folds)
    return out


def _check_folds_leave_something(sums: EquationSums, folds: int) -> None:
    """Refuse folds of which one holds every query with two different labels: nothing is left to learn from then."""
    energies = [float(sums.total(0, only=fold).energy[0]) for fold in range(folds)]
    if sum(energy > _NOTHING * sum(energies) for energy in energies) < 2:
        raise InputError(
            "All queries with two different labels are in one of the {0} folds ({1} queries in all), and without it "
            "nothing is left to learn from.",
            *(folds, sums.queries),
            remedy="Take {cv=None}, or validation data ({validation}).",
            parameter="cv",
        )


def curves_by_queries(
    stream: Stream,
    summed: Summed,
    problems: Sequence[EquationsProblem],
    grids: Sequence[NDArray[np.float64]],
    measure: RankingMeasure,
) -> list[Curve]:
    """Exact leave-query-out of every value of each problem, in a second pass."""
    check_two_vary(summed.sums.varied, summed.sums.queries, "Give validation data ({validation}).")
    models = []
    with one_thread():
        for setting, problem, alphas, cut in zip(summed.settings, problems, grids, summed.sums.cut, strict=True):
            _ = problem.directions  # computed once, here and not in every leaf
            models.append(Model(setting, problem, alphas, {q: (_without(x, problem, alphas), x.mean) for q, x in cut}))
    return _curves(stream, HoldoutJob(measure, tuple(models), summed.columns), _HOLDOUT)


def _curves(stream: Stream, job: Any, name: str) -> list[Curve]:
    return [sums.curve() for sums in stream.run(job, name).judged]


def _without(query: CutQuery, problem: EquationsProblem, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of the columns for every alpha from all queries but one, (n, alphas)."""
    own, s = query.equations(), problem.spectrum
    W = weights_without(own.gram, own.rhs, s, problem.directions, s.vectors.T @ problem.equations.rhs, alphas)
    tiny = np.flatnonzero(holdout_alphas(alphas, float(s.values.max(initial=0.0))) > alphas)
    if problem.graded and len(tiny):
        W[:, tiny] = solve_without((problem.equations, problem.size), own, alphas[tiny])[:, :, 0].T
    return W


def with_judging(settings: Sequence[Setting]) -> list[Setting]:
    """Some settings, and that of the squared error behind them if it is not among them."""
    return [*settings, *([_JUDGING] if _JUDGING not in settings else [])]


def curves_by_sums(summed: Summed, grids: Sequence[NDArray[np.float64]], folds: int) -> list[Curve]:
    """The squared error of models that have not seen a query's fold, from the sums of the first pass alone.

    With the coefficients w of all folds but one, the sum of its queries' errors is ``y'Ly - 2 w'X'Ly + w'X'LX w``, L
    having the pairs of each query with the weight of their mean. The standard error is that of a ratio of sums over
    folds: the errors of single queries are not known.
    """
    place = summed.settings.index(_JUDGING)
    judged = [summed.sums.total(place, only=fold) for fold in range(folds)]
    counts = np.array([summed.sums.with_pairs(fold) for fold in range(folds)], dtype=np.float64)[:, None]
    out = []
    with one_thread():
        for k, grid in enumerate(grids):
            errors = np.stack([_errors(judged[fold], summed.problem(k, without=fold), grid) for fold in range(folds)])
            total = float(counts.sum())
            mean = errors.sum(axis=0) / total if total else np.full(len(grid), np.nan)
            spread = np.linalg.norm(errors - counts * mean, axis=0) * np.sqrt(folds / (folds - 1.0))
            out.append(Curve(mean, spread / total if total else mean, scale=np.abs(mean)))
    return out


def _errors(equations: NormalEquations, problem: EquationsProblem, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of the errors of some queries under the solutions of each alpha, (alphas,)."""
    own = equations.whitened(problem.whitening)
    W = problem.spectrum.apply_inverse(alphas, problem.equations.rhs)[:, :, 0].T
    fitted = np.einsum("ia,ia->a", W, own.gram @ W - 2.0 * own.rhs)
    return np.maximum(fitted + float(own.energy[0]), 0.0)


def curves_on(
    stream: Stream,
    problems: Sequence[Sequence[EquationsProblem]],
    grids: Sequence[NDArray[np.float64]],
    measure: RankingMeasure,
) -> list[Curve]:
    """Every value of the problem of each setting, in one pass over data that it has not seen.

    Of several problems of a setting, one for each fold, each is judged by the queries of its fold.
    """
    with one_thread():
        scorers = tuple(
            tuple(_scorer(problem, grid) for problem in some) for some, grid in zip(problems, grids, strict=True)
        )
    folds = len(problems[0])
    return _curves(stream, ScoreJob(measure, scorers, folds), _FOLDS if folds > 1 else _VALIDATION)


def _scorer(problem: EquationsProblem, values: NDArray[np.float64]) -> Scorer:
    """One function a value, side by side."""
    solutions = problem.path(values)
    return Scorer.side_by_side([solutions[k] for k in range(len(values))])
