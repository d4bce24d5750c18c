"""From checked data and parameters to the solver that fits their shape."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._sparse import offset_columns, shift_columns
from rankrls.features.rows import factor_rows
from rankrls.graph import PairGraph, ScoredGraph
from rankrls.hinge.ranksvm import HingeProblem
from rankrls.holdout.pair_holdout import pair_setting
from rankrls.kernels import Kernel
from rankrls.models._validation import TrainingData
from rankrls.problems.dual import DualProblem
from rankrls.problems.krylov_problem import KrylovProblem
from rankrls.problems.primal import PrimalProblem
from rankrls.problems.reduced import ReducedProblem
from rankrls.problems.signed import SignedProblem
from rankrls.problems.subset import Basis, SubsetProblem

__all__ = [
    "BasisCandidate",
    "Candidate",
    "FittedProblem",
    "SelfScoring",
    "feature_weights",
    "is_in_features",
    "is_primal",
    "make_problem",
    "scored_graphs",
]

Problem = PrimalProblem | DualProblem | ReducedProblem


class SelfScoring(ABC):
    """A problem whose solutions score items in their own way, for every value of its parameter."""

    @abstractmethod
    def scores(self, X: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of rows X, (rows, values)."""


@dataclass(frozen=True)
class FittedProblem:
    """A solver and the targets that it solves for."""

    problem: Problem
    targets: slice


def is_primal(kernel: Kernel, X: Any, n_rows: int, solver: str) -> bool:
    """Whether to solve for one coefficient a feature instead of one an item."""
    if not kernel.is_linear:
        if solver == "primal":
            raise ValueError(
                f"solver='primal' solves for feature weights and needs kernel='linear'; got {kernel.name!r}."
            )
        return False
    if solver != "auto":
        return solver == "primal"
    return bool(X.shape[1] <= min(n_rows, X.shape[0]))


def scored_graphs(
    data: TrainingData, ties: Any, balance: Any, regression_weight: float
) -> list[tuple[ScoredGraph, slice]]:
    """One graph for all targets, or one a target where ties are excluded: they differ from target to target."""
    targets = data.Y.shape[1]
    parts = [slice(k, k + 1) for k in range(targets)] if ties == "exclude" else [slice(0, targets)]
    return [
        (
            ScoredGraph.build(
                data.Y[:, part],
                data.layout,
                weights=data.weights,
                ties=ties,
                balance=balance,
                regression_weight=regression_weight,
            ),
            part,
        )
        for part in parts
    ]


@dataclass(frozen=True)
class Candidate:
    """One combination of a kernel and a graph: builds the solvers for any data. ``signs`` constrains weights."""

    kernel: Kernel
    ties: Any
    balance: Any
    regression_weight: float
    solver: str
    signs: NDArray[np.int8] | None = field(default=None, kw_only=True)

    def problems(self, data: TrainingData, K: NDArray[np.float64] | None = None) -> list[FittedProblem]:
        """One problem a graph. ``K`` is the kernel matrix where it is known already; it is copied."""
        return [
            FittedProblem(self.problem(data.X, graph, graph.F @ data.Y[:, part], K), part)
            for graph, part in scored_graphs(data, self.ties, self.balance, self.regression_weight)
        ]

    def problem(
        self,
        X: Any,
        graph: ScoredGraph | PairGraph,
        target: NDArray[np.float64],
        K: NDArray[np.float64] | None = None,
    ) -> Problem:
        """The solver of one graph."""
        return make_problem(X, graph, target, self.kernel, self.solver, K=K, signs=self.signs)

    def pair_problems(
        self, data: TrainingData, fitted: list[FittedProblem] | None = None
    ) -> list[tuple[PrimalProblem | DualProblem, float, slice]]:
        """What leave-pair-out works on: problems, what alpha is multiplied by there, and their targets.

        The ``fitted`` ones are used again where there is no mixture.
        """
        out = []
        for k, (graph, part) in enumerate(scored_graphs(data, self.ties, self.balance, self.regression_weight)):
            on, factor = pair_setting(graph, balance=self.balance, regression_weight=self.regression_weight)
            if fitted is not None and on is graph:
                problem = fitted[k].problem
            else:
                problem = self.problem(data.X, on, on.F @ data.Y[:, part])
            assert not isinstance(problem, ReducedProblem)
            out.append((problem, factor, part))
        return out


@dataclass(frozen=True)
class BasisCandidate(Candidate):
    """One combination of a kernel with its basis, and a graph."""

    basis: Basis

    def problem(
        self,
        X: Any,
        graph: ScoredGraph | PairGraph,
        target: NDArray[np.float64],
        K: NDArray[np.float64] | None = None,
    ) -> Problem:
        """The solver of one graph."""
        return SubsetProblem(X, self.basis, graph, target)


def make_problem(
    X: Any,
    graph: ScoredGraph | PairGraph,
    target: NDArray[np.float64],
    kernel: Kernel,
    solver: str,
    *,
    K: NDArray[np.float64] | None = None,
    signs: NDArray[np.int8] | None = None,
) -> Problem:
    """The solver for the shape of the data."""
    if signs is not None:  # of weights that a linear kernel has, in the primal
        return SignedProblem(X, graph, target, signs)
    if solver == "cg":  # RankRLS alone asks for it, and only to solve: no spectrum, nothing held out
        if kernel.is_linear:
            return KrylovProblem(X, graph, target, in_features=True)  # type: ignore[return-value]
        matrix = kernel(X) if K is None else K
        return KrylovProblem(matrix, graph, target, in_features=False)  # type: ignore[return-value]
    if is_primal(kernel, X, graph.n_rows, solver):
        return PrimalProblem(X, graph, target, own_units=True)
    many = graph.n_rows > graph.n_items
    if kernel.is_linear and not many:
        return DualProblem.from_features(X, graph, target)
    if kernel.is_linear:
        # Differences do not change, no offset is squared, and the item coefficients need not sum to zero.
        X = shift_columns(X, *offset_columns(X)) if sparse.issparse(X) else X - X.mean(axis=0, dtype=np.float64)
    matrix = kernel(X) if K is None else K.copy()
    return ReducedProblem(matrix, graph, target) if many else DualProblem.from_kernel(matrix, graph, target)


def is_in_features(problem: Any) -> bool:
    """Whether a problem's coefficients are weights of features (or of a basis), not of the training items."""
    return isinstance(problem, PrimalProblem) or (isinstance(problem, KrylovProblem) and problem.in_features)


def feature_weights(X: Any, problem: Problem, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of the features, (n, targets), of a linear model's coefficients."""
    if isinstance(problem, HingeProblem) or is_in_features(problem):
        return coefficients
    return factor_rows(X, problem.graph).combine(coefficients)
