"""What RankSVM and its selecting form share."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from rankrls._errors import InputError
from rankrls.graph import OrderedPairs, PairGraph
from rankrls.kernels import Kernel
from rankrls.models._basis import BASES, BasisRanker
from rankrls.models._convergence import NotConverged
from rankrls.models._problems import FittedProblem
from rankrls.models._validation import TrainingData, check_choice, check_comparable, training_data
from rankrls.solvers.newton import Solution
from rankrls.solvers.ranksvm import LOSSES, HingeProblem
from rankrls.solvers.subset import Basis

__all__ = ["HingeRanker", "check_C"]

MOST_EXACT = 5000
"""Items whose kernel matrix is decomposed without being asked for."""


class HingeRanker(BasisRanker):
    """Scores items by ``w'x``, or by an expansion over items."""

    loss: Any
    balance: Any
    tol: Any
    max_iter: Any
    n_basis: Any

    def _check_shared(self, balance: Any) -> None:
        check_choice("loss", self.loss, LOSSES)
        check_choice("balance", balance, ("pairs", "examples", "queries"))
        check_choice("basis", self.basis, BASES)
        if self.n_basis is not None:
            self._check_basis()
        if isinstance(self.max_iter, bool) or not isinstance(self.max_iter, Integral) or int(self.max_iter) < 1:
            raise InputError(
                "{max_iter} must be a whole number of at least 1; got {0!r}.", self.max_iter, parameter="max_iter"
            )
        if self.tol is not None and (
            isinstance(self.tol, bool) or not isinstance(self.tol, Real) or not 0.0 < float(self.tol) < 1.0
        ):
            raise InputError("{tol}, if given, must be between 0 and 1; got {0!r}.", self.tol, parameter="tol")

    def _tolerance(self) -> float:
        if self.tol is not None:
            return float(self.tol)
        return 1e-3 if self.loss == "hinge" else 1e-6

    def _training_data(self, X: Any, y: Any, qid: Any, sample_weight: Any, kernel: Any) -> TrainingData:
        """Checked data with one target."""
        if y is not None and (given := np.asarray(y)).ndim == 2 and given.shape[1] == 1:
            y = column_or_1d(given, warn=True)
        data = training_data(self, X, y, qid, sample_weight, kernel=kernel)
        if data.Y.shape[1] != 1:
            raise ValueError(
                f"{type(self).__name__} takes one target: y should be a 1d array, got an array of shape "
                f"{data.Y.shape} instead."
            )
        check_comparable(data, 0.0)
        return data

    def _problem(self, X: Any, pairs: OrderedPairs | PairGraph, basis: Basis | None) -> HingeProblem:
        return HingeProblem(X, pairs, self.loss, tol=self._tolerance(), max_iter=int(self.max_iter), basis=basis)

    def _expansion_basis(self, X: Any, kernel: Kernel, kept: NDArray[np.bool_] | None) -> Basis | None:
        if kernel.is_linear:
            return None
        m = len(X) if isinstance(X, list) else X.shape[0]
        if self.n_basis is None and self.basis_indices is None and m > MOST_EXACT:
            raise InputError(
                f"An exact kernel machine on {m} items needs a matrix of {m} x {m}; give the number of items to expand "
                f"over ({{n_basis}}), or {{n_basis={m}}} to have it all the same.",
                parameter="n_basis",
            )
        return self._build_basis(X, kernel, kept)

    def _adopt(self, data: TrainingData, kernel: Any, problems: list[FittedProblem], solutions: list[Any]) -> None:
        self._take(problems[0].problem, solutions[0], kernel, data.kept)
        self._fitted_with_qid = data.has_qid
        self.n_queries_ = data.layout.n_queries

    def _adopt_pairs(self, X: Any, kernel: Any, problem: Any, graph: PairGraph, solution: Any) -> None:
        self._take(problem, solution, kernel, None)
        self._fitted_with_qid = False
        self.n_queries_ = 1

    def _take(self, problem: Any, solution: Solution, kernel: Kernel, kept: NDArray[np.bool_] | None) -> None:
        """Adopt a solution, and say so where it has not converged."""
        coefficients = problem.coefficients(solution.w)
        if problem.basis is None:
            self._kernel_ = kernel
            self._one_target = True
            self.coef_ = coefficients
        else:
            self._adopt_basis(problem.basis, kept)
            self._set_expansion(coefficients[:, None], True)
        rows = np.flatnonzero(solution.degree > 0.0)
        self.support_ = rows if kept is None else np.flatnonzero(kept)[rows]
        self.n_support_ = len(rows)
        self.n_iter_ = solution.n_iter
        self.objective_ = solution.value
        self.dual_gap_ = solution.gap
        if solution.status != "converged":
            why = (
                f"{{max_iter={self.max_iter}}} Newton steps were taken"
                if solution.status == "max_iter"
                else "rounding leaves no better step"
            )
            warnings.warn(
                NotConverged(
                    f"{{{type(self).__name__}}} stopped before {{tol={self._tolerance():g}}} was reached: {why}. The "
                    f"objective is within {solution.gap / solution.value:.2g} of the minimum, relatively.",
                    remedy="Scale the features, lower {C}, or raise {max_iter} or {tol}.",
                ),
                stacklevel=4,
            )

    def _forget_fit(self) -> None:
        super()._forget_fit()
        for name in ("support_", "n_support_", "n_iter_", "objective_", "dual_gap_"):
            self.__dict__.pop(name, None)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


def check_C(C: Any) -> float:
    """One value of C."""
    if isinstance(C, (bool, np.bool_)) or not isinstance(C, Real) or not (np.isfinite(float(C)) and float(C) > 0.0):
        raise InputError("{C} must be a positive, finite number; got {0!r}.", C, parameter="C")
    return float(C)
