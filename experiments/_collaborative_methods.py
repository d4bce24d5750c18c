"""The methods of the collaborative filtering tables. Each learns from one user's kernel matrix, for many settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankrls._queries import query_layout
from rankrls.graph import ScoredGraph
from rankrls.solvers.dual import DualProblem

__all__ = ["ALPHAS", "METHODS", "N_VIEWS", "LeastSquares", "Method", "Problem", "Setting"]

Setting = dict[str, Any]
ALPHAS = tuple(2.0**k for k in range(-30, 17, 2))
"""The paper does not give its grid. From where the widest kernels are fitted exactly to where all scores are 0."""
N_VIEWS = 2


@dataclass(frozen=True)
class Problem:
    """One user's kernel matrix and ratings; rows are scored, then unscored, then judged.

    Methods may look at ``y`` of the scored rows only.
    """

    K: NDArray[np.float64]
    y: NDArray[np.float64]
    n_scored: int
    n_learn: int

    def graph(self, regression_weight: float) -> ScoredGraph:
        """All pairs of scored items, each weighing the same."""
        n = self.n_scored
        return ScoredGraph.build(
            self.y[:n], query_layout(None, n), balance="pairs", regression_weight=regression_weight
        )


def split_views(n_scored: int, n_learn: int) -> list[NDArray[np.intp]]:
    """Rows of each of two views: every other scored and every other unscored item, which are in random order."""
    scored, unscored = np.arange(n_scored), np.arange(n_scored, n_learn)
    return [np.concatenate((scored[v::N_VIEWS], unscored[v::N_VIEWS])) for v in range(N_VIEWS)]


@dataclass(frozen=True)
class Method:
    """A row of the tables. ``after`` names a method that must choose first."""

    name: str
    what: str
    after: ClassVar[str | None] = None

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        """What to choose from, given what earlier methods chose."""
        raise NotImplementedError

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Scores of the judged items, (items, settings), and the number of basis functions of each setting."""
        raise NotImplementedError


@dataclass(frozen=True)
class LeastSquares(Method):
    """RankRLS and RLS in the dual: one eigendecomposition for all alphas."""

    regression_weight: float = 0.0

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [{"alpha": alpha} for alpha in ALPHAS]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n = problem.n_scored
        graph = problem.graph(self.regression_weight)
        target = (graph.F @ problem.y[:n])[:, None]
        path = DualProblem.from_kernel(problem.K[:n, :n].copy(), graph, target).path(
            np.array([setting["alpha"] for setting in settings])
        )
        return problem.K[problem.n_learn :, :n] @ path[:, :, 0].T, np.full(len(settings), float(n))


METHODS: dict[str, tuple[Method, ...]] = {
    "full": (
        LeastSquares("RLS", "regularized least squares on the ratings, no intercept", 1.0),
        LeastSquares("RankRLS", "every pair weighs the same"),
    ),
    "half": (),
}
"""The rows for all training ratings, and those added where half of them are unscored."""
