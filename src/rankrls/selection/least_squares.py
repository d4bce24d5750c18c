"""RankRLS as a candidate of a search: its problem, with the solver that suits the shape of the data.

=============  ====================================================================================================
primal         a linear kernel with no more features than items, or a basis of items: one weight per feature
dual           other kernels, and more features than items: one coefficient per item
items          a kernel and more preferences than items: primal in features with the items' inner products
=============  ====================================================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankrls._arrays import to_device_of
from rankrls._cached import cached_property
from rankrls._comparisons import ComparedItems, Data, GraphSetting, PerChunk
from rankrls._curves import Curve, Evaluator
from rankrls._errors import InputError, InputWarning, warn_of_cost, warn_user
from rankrls._problems import Candidate, Problem
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.kernels import Kernel
from rankrls.learners.paths import PathSolutions, without_offset
from rankrls.metrics import Measure
from rankrls.numerics.graph import Graph, PreferenceGraph
from rankrls.numerics.nonnegative import hold_out_signed, signed_path
from rankrls.numerics.pairs import feature_rounding, hold_out_items, kernel_features, kernel_rounding
from rankrls.numerics.runs import dense_rows
from rankrls.numerics.scorer import Basis, Scorer
from rankrls.numerics.smoother import (
    DualEquations,
    DualSmoother,
    Equations,
    ItemSmoother,
    Smoother,
    feature_weights,
)

_UNRESOLVED = 1e-11
"""Share of the largest eigenvalue below which an alpha is lost in the rounding of a hold-out."""
_DECOMPOSED = 4e-10
"""Approximate seconds of a decomposition and hold-out of n rows, per n^3."""
R = TypeVar("R")


@dataclass(frozen=True, eq=False, kw_only=True)
class LeastSquares(Candidate["LeastSquaresSolutions"]):
    """``||F (y - f)||^2 + alpha ||f||^2`` for one kernel and one kind of graph.

    Attributes
    ----------
    kernel : Kernel
    choices : dict
        Parameters that were chosen, for tables of results.
    setting : GraphSetting
        Settings by which labels become a graph.
    solver : {"auto", "primal", "dual"}
    signs : ndarray of shape (n,), optional
        Constraints on the signs of a linear function's weights.
    make_basis : callable, optional
        Function that creates the basis of items that functions expand over.
    together : sequence of GraphSetting
        All settings that are tried with the same kernel, for which streamed data are read once.
    """

    setting: GraphSetting = field(default_factory=GraphSetting)
    solver: str = "auto"
    signs: NDArray[np.int8] | None = None
    make_basis: Callable[[], Basis] | None = None
    together: Sequence[GraphSetting] = ()

    @property
    def square(self) -> bool:
        return self.make_basis is None and super().square

    @property
    def basis(self) -> Basis | None:
        """The basis, created on first use."""
        return None if self.make_basis is None else self.make_basis()

    def problem(self, data: Data) -> LeastSquaresProblem:
        return self.problem_of(data.compared(self.setting, self.together))

    def problem_of(self, compared: Sequence[ComparedItems]) -> LeastSquaresProblem:
        """Problem for items with one graph for all targets, or one per target if ties are excluded."""
        return LeastSquaresProblem([self._solver(items) for items in compared], self.setting)

    def _solver(self, items: ComparedItems) -> Solver:
        if self.basis is not None:
            return BasisSolver(items, self.basis)
        if self.signs is not None:
            return SignedSolver(items, self.signs)
        if self.solver == "primal" and not self.kernel.is_linear:
            problem = "solver='primal' solves for feature weights and needs kernel='linear'"
            raise InputError(f"{problem}; got {self.kernel.name!r}.", parameter="solver")
        if self.solver == "primal" or (self.solver == "auto" and self.kernel.is_linear and items.primal):
            return PrimalSolver(items)
        preferences = items.whole().graph.over_items
        if preferences is None:
            return DualSolver(items, self.kernel)
        return ItemSolver(items, self.kernel, preferences)


@dataclass(frozen=True, eq=False)
class Solver(ABC):
    """Solver for one graph over items.

    Attributes
    ----------
    items : ComparedItems
    own_rounding : bool
        Whether each of :attr:`item_features` has rounding errors relative to itself; see :meth:`Equations.smoother`.
    """

    items: ComparedItems

    own_rounding: ClassVar[bool] = False

    @property
    def basis(self) -> Basis | None:
        """Items that functions expand over; None for all."""
        return None

    @property
    @abstractmethod
    def smoother(self) -> Smoother:
        """The decomposed problem, for every alpha."""

    def solve(self, alpha: float) -> Array:
        """Coefficients for one alpha, (coefficients, targets), without a decomposition if possible."""
        return np.asarray(self.path(np.array([alpha]))[0])

    @abstractmethod
    def read(self, coefficients: Array) -> Scorer:
        """Functions of items from coefficients (coefficients, columns)."""

    @property
    def graph(self) -> Graph:
        """Graph of data in memory."""
        return self.items.whole().graph

    @property
    def X(self) -> Matrix:
        """Items of data in memory."""
        return self.items.whole().X

    @property
    def features(self) -> Matrix:
        """Features whose rows a hold-out reads."""
        return self.items.whole().features(self.basis)

    @property
    @abstractmethod
    def item_features(self) -> Matrix:
        """Features (items, d) in which functions are linear with penalty ``alpha ||v||^2``, without a common offset."""

    @property
    def rounding(self) -> tuple[Array, Array]:
        """Sizes and units of the rounding of margins of :attr:`item_features`; see :func:`hold_out_items`."""
        return feature_rounding(self.item_features)

    def path(self, alphas: Array) -> Array:
        """Coefficients for several alphas, (alphas, coefficients, targets)."""
        return self.smoother.path(alphas)

    def weights(self, equations: Equations, alphas: Array) -> Array:
        """Weights of :attr:`item_features` for several alphas, (alphas, d, 1)."""
        return equations.smoother(own=self.own_rounding).path(alphas)

    def hold_out_items(
        self, graph: PreferenceGraph, folds: Sequence[tuple[Index, Index]], alphas: Array
    ) -> list[Array]:
        """Margins (preferences, alphas) of the second preferences of each fold, fitted to the first."""

        def weights(equations: Equations) -> Array:
            return self.weights(equations, alphas)[:, :, 0].T

        return hold_out_items(self.item_features, graph, folds, weights, self.rounding)

    def hold_out(self, alphas: Array, per_chunk: PerChunk[R], folds: Sequence[Index] | None) -> list[R]:
        """See :meth:`LeastSquaresProblem.hold_out`."""
        return self.items.hold_out(self.smoother, self.basis, alphas, per_chunk, folds)


@dataclass(frozen=True, eq=False)
class PrimalSolver(Solver):
    """Solver with one weight per feature."""

    own_rounding = True

    @cached_property
    def equations(self) -> Equations:
        """Normal equations of all data."""
        return self.items.equations(None)

    @cached_property
    def smoother(self) -> Smoother:
        return self.equations.smoother()

    @cached_property
    def item_features(self) -> Matrix:
        return without_offset(self.X)

    def solve(self, alpha: float) -> Array:
        return self.equations.solve(alpha)

    def read(self, coefficients: Array) -> Scorer:
        part = self.items.in_memory
        return Scorer(coefficients if part is None else to_device_of(coefficients, part.X))


@dataclass(frozen=True, eq=False)
class SignedSolver(PrimalSolver):
    """Solver with one weight per feature, under constraints on signs."""

    signs: NDArray[np.int8]

    def solve(self, alpha: float) -> Array:
        return Solver.solve(self, alpha)  # equations alone know no signs

    def path(self, alphas: Array) -> Array:
        return self.weights(self.equations, alphas)

    def weights(self, equations: Equations, alphas: Array) -> Array:
        return signed_path(equations, alphas, self.signs)

    def hold_out(self, alphas: Array, per_chunk: PerChunk[R], folds: Sequence[Index] | None) -> list[R]:
        part = self.items.whole()
        graph, units = part.in_order(folds)
        bounds = np.arange(len(graph.starts)) if units is None else units
        start = perf_counter()
        self.path(alphas)
        seconds = (perf_counter() - start) * (len(bounds) - 1)
        job = f"Holding out {len(bounds) - 1} parts, with constrained weights of {len(alphas)} alphas for each,"
        warn_of_cost(seconds, job, "Use a few folds (cv), or fewer alphas.", "positive")
        held = hold_out_signed(self.equations, graph, part.X, alphas, self.signs, bounds)
        return [per_chunk(graph, held)]


@dataclass(frozen=True, eq=False)
class BasisSolver(PrimalSolver):
    """Solver with one coefficient per basis item: primal in orthonormal features."""

    expansion: Basis

    own_rounding = False

    @property
    def basis(self) -> Basis:
        return self.expansion

    @cached_property
    def equations(self) -> Equations:
        return self.items.equations(self.basis).whitened(self.basis.whitening)

    @cached_property
    def item_features(self) -> Matrix:
        Z = dense_rows(self.features, slice(None))
        return Z if self.basis.whitening is None else Z @ self.basis.whitening

    def read(self, coefficients: Array) -> Scorer:
        return self.basis.scorer(coefficients)


@dataclass(frozen=True, eq=False)
class KernelSolver(Solver):
    """Solver with one coefficient per item."""

    kernel: Kernel

    @property
    @abstractmethod
    def smoother(self) -> DualSmoother | ItemSmoother: ...

    @cached_property
    def shifted_items(self) -> Matrix:
        """Items without a common offset, which cancels in differences but would be squared."""
        return without_offset(self.X) if self.kernel.is_linear else self.X

    @property
    def rounding(self) -> tuple[Array, Array]:
        return kernel_rounding(self.item_features)

    def read(self, coefficients: Array) -> Scorer:
        a = to_device_of(coefficients, self.X)
        if self.kernel.is_linear:
            return Scorer(to_device_of(self.feature_weights(coefficients), self.X), a)
        items = None if self.kernel.name == "precomputed" else self.X
        return Scorer(None, a, self.kernel, items)

    @abstractmethod
    def feature_weights(self, coefficients: Array) -> Array:
        """Weights of the features, for a linear kernel."""


class DualSolver(KernelSolver):
    """Solver for labels, or for no more preferences than items."""

    def equations(self) -> DualEquations:
        """Equations of all data. Solving destroys them, so they are computed each time."""
        if self.kernel.is_linear:
            return DualEquations.of_features(self.X, self.graph)
        return DualEquations.of_kernel(self.kernel(self.X), self.graph)

    @cached_property
    def smoother(self) -> DualSmoother:
        equations = self.equations()
        _warn_of_decomposition(self.graph.n_rows)
        return equations.smoother()

    @cached_property
    def item_features(self) -> Matrix:
        return kernel_features(self.kernel(self.shifted_items))

    def solve(self, alpha: float) -> Array:
        return self.equations().solve(alpha)

    def feature_weights(self, coefficients: Array) -> Array:
        return feature_weights(self.graph, self.X, coefficients)


@dataclass(frozen=True, eq=False)
class ItemSolver(KernelSolver):
    """Solver for more preferences than items."""

    preferences: PreferenceGraph

    @cached_property
    def smoother(self) -> ItemSmoother:
        K = self.kernel(self.shifted_items)
        _warn_of_decomposition(len(K))
        return ItemSmoother.of_kernel(K, self.preferences)

    @property
    def item_features(self) -> Matrix:
        return self.smoother.features

    def feature_weights(self, coefficients: Array) -> Array:
        return np.asarray(self.shifted_items.T @ coefficients, dtype=np.float64)

    @property
    def features(self) -> Matrix:
        return self.smoother.features


def _warn_of_decomposition(n: int) -> None:
    job = f"The decomposition of a kernel matrix of {n} rows"
    warn_of_cost(_DECOMPOSED * float(n) ** 3, job, "Use SparseRankRLSCV, which needs a few hundred items.", "kernel")


@dataclass(frozen=True, eq=False)
class LeastSquaresSolutions:
    """Functions for several values of alpha, those of all solvers side by side."""

    paths: Sequence[PathSolutions[None]]

    def scores(self, X: Matrix) -> Array:
        """Scores of items, (rows, alphas, targets)."""
        return _side_by_side([path.scores(X) for path in self.paths])

    def __getitem__(self, k: int) -> Scorer:
        return Scorer.side_by_side([path[k] for path in self.paths])


@dataclass(frozen=True, eq=False)
class LeastSquaresProblem(Problem[LeastSquaresSolutions]):
    """Problem of one candidate on given data: its path over alpha, and its exact hold-out.

    Attributes
    ----------
    solvers : sequence of Solver
        One solver for all targets, or one per target.
    setting : GraphSetting
        Settings by which labels became the graphs.
    """

    solvers: Sequence[Solver]
    setting: GraphSetting

    parameter = "alpha"

    def axis(self) -> Array:
        """An automatic grid that spans the spectra of all targets, with the largest alpha first."""
        smoothers = [solver.smoother for solver in self.solvers]
        return max(smoothers, key=lambda smoother: smoother.top).grid()

    def solve(self, alpha: float) -> LeastSquaresSolutions:
        """Function for one alpha, without a decomposition."""
        return LeastSquaresSolutions([PathSolutions(solver.solve(alpha)[None], solver.read) for solver in self.solvers])

    def path(self, alphas: Array) -> LeastSquaresSolutions:
        """Functions for several alphas, from one decomposition."""
        return LeastSquaresSolutions([PathSolutions(solver.path(alphas), solver.read) for solver in self.solvers])

    def unresolved(self, alphas: Array, largest: int | None = None) -> Mask:
        """Mask of alphas that are lost in rounding if the model fits every label: held-out scores are meaningless.

        ``largest`` is the largest number of rows that are held out together; by default, that of a query.
        """
        out = np.zeros(len(alphas), dtype=bool)
        for solver in self.solvers:
            part = solver.items.in_memory
            if part is None:
                continue
            smoother = solver.smoother
            longest = int(np.diff(part.graph.starts).max(initial=0))
            free = part.graph.n_observations - (longest if largest is None else largest)
            if np.count_nonzero(smoother.values) >= free:
                out |= alphas < _UNRESOLVED * smoother.top
        if out.any():
            warn_user(
                InputWarning(
                    f"alpha = {alphas[out].max():.3g} and smaller are not evaluated: they are below "
                    f"{_UNRESOLVED:g} of the largest eigenvalue, where rounding errors dominate. Scale the features, "
                    "or use larger values.",
                    parameter="alphas",
                ),
            )
        return out

    @property
    def lost_feature(self) -> int | None:
        """Number of a feature that is lost in rounding next to others."""
        return self.solvers[0].smoother.lost_feature

    def hold_out(self, alphas: Array, per_chunk: PerChunk[R], folds: Sequence[Index] | None = None) -> list[list[R]]:
        """Results of ``per_chunk`` for each chunk of held-out scores, for each solver.

        Parameters
        ----------
        alphas : ndarray
        per_chunk : callable
            Function of a part of the graph and its held-out scores.
        folds : sequence of ndarray of int, optional
            Numbers of the queries (groups of preferences) that are held out together, each at most once. By default,
            each query alone.
        """
        check_positive(alphas)
        return [solver.hold_out(alphas, per_chunk, folds) for solver in self.solvers]

    def held_out_scores(self, alphas: Array, folds: Sequence[Index] | None = None) -> Array:
        """Held-out scores of items (margins of preferences), (rows, alphas, targets); NaN for rows not held out."""

        def kept(part: Graph, scores: Array) -> tuple[Index, Array]:
            return part.rows, scores

        out = self._in_rows(self.hold_out(alphas, kept, folds))
        out[:, self.unresolved(alphas)] = np.nan
        return out

    def _in_rows(self, found: list[list[tuple[Index, Array]]]) -> Array:
        """Scores (targets, alphas, rows) of chunks of rows as one array, (rows, alphas, targets)."""
        columns = []
        for chunks in found:
            columns.append(np.full((self.solvers[0].graph.n_rows, *chunks[0][1].shape[1::-1]), np.nan))
            for rows, scores in chunks:
                columns[-1][rows] = scores.transpose(2, 1, 0)
        return _side_by_side(columns)

    def hold_out_items(
        self, graph: PreferenceGraph, folds: Sequence[tuple[Index, Index]], alphas: Array
    ) -> list[Array]:
        """Margins of held-out preferences; see :meth:`Solver.hold_out_items`."""
        return self.solvers[0].hold_out_items(graph, folds, alphas)

    def held_out_curve(self, measure: Measure, folds: Sequence[Index] | None, alphas: Array) -> Curve:
        """Evaluation of every alpha with held-out queries (groups of preferences); see :meth:`hold_out`.

        The scores of items in memory are stored for every alpha.
        """
        items = self.solvers[0].items
        evaluator = items.evaluation(measure)
        part = items.in_memory
        keeps = part is not None
        per_chunk = partial(_evaluated, evaluator, keeps)
        chunks = self.hold_out(alphas, per_chunk, folds)
        found = [[values for values, _ in of_solver] for of_solver in chunks]
        kept = [[scores for _, scores in of_solver if scores is not None] for of_solver in chunks]
        sizes = np.zeros(0, dtype=np.intp) if part is None else np.diff(part.graph.starts)
        curve = evaluator.curve(found, sizes, folds)
        curve.mean[self.unresolved(alphas)] = np.nan

        def scores(k: int) -> Array:
            chosen = [[(rows, of_all[:, k : k + 1]) for rows, of_all in of_solver] for of_solver in kept]
            return self._in_rows(chosen)[:, 0]

        return replace(curve, scores=scores if keeps else None)


def _evaluated(
    evaluator: Evaluator[R], keeps: bool, here: Graph, scores: Array
) -> tuple[R, tuple[Index, Array] | None]:
    """Values of held-out scores, and the scores with their rows if they are stored. Other processes can import it."""
    stored = (here.rows, scores) if keeps else None
    return evaluator(here, scores), stored


def _side_by_side(scores: list[Array]) -> Array:
    """Scores for all targets, (rows, alphas, targets)."""
    return scores[0] if len(scores) == 1 else np.concatenate(scores, axis=2)


def check_positive(alphas: Array) -> None:
    """Refuse alphas for which hold-out without refitting is undefined."""
    if not (alphas > 0.0).all():
        raise InputError(f"Hold-out without refitting needs alphas > 0; got {alphas.min():g}.", parameter="alphas")
