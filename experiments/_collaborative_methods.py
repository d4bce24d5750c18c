"""The methods of the collaborative filtering tables. Each learns from one user's kernel matrix, for many settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from _collaborative_problem import ALPHAS, Method, Problem, Setting, graph_of
from _collaborative_views import Consenting, CoPursuit
from numpy.typing import NDArray

from rankrls import RankSVM
from rankrls.kernels import Kernel
from rankrls.learners.dictionaries import Dictionary
from rankrls.learners.pursuit import pursue
from rankrls.numerics.basis import Basis
from rankrls.numerics.smoother import DualEquations, normal_equations


@dataclass(frozen=True)
class LeastSquares(Method):
    """RankRLS and RLS in the dual: one eigendecomposition for all alphas."""

    regression_weight: float = 0.0

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [{"alpha": alpha} for alpha in ALPHAS]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n = problem.n_scored
        graph = problem.graph(self.regression_weight)
        smoother = DualEquations.of_kernel(problem.K[:n, :n].copy(), graph).smoother()
        path = smoother.path(np.array([setting["alpha"] for setting in settings]))
        return problem.K[problem.n_learn :, :n] @ path[:, :, 0].T, np.full(len(settings), float(n))


@dataclass(frozen=True)
class Subset(Method):
    """Sparse RankRLS: expansions over the first scored items, which are in random order."""

    sizes: tuple[int, ...] = (2, 5, 10, 15, 20, 30)

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [{"n_basis": size, "alpha": alpha} for size in self.sizes for alpha in ALPHAS]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n = problem.n_scored
        graph = problem.graph(0.0)
        K = problem.K[:n, :n]
        out = np.empty((len(problem.y) - problem.n_learn, len(settings)))
        used = np.empty(len(settings))
        wanted = np.array([setting["n_basis"] for setting in settings])
        for size in np.unique(wanted):
            columns = np.flatnonzero(wanted == size)
            r = min(int(size), n)
            basis = Basis.build(Kernel("precomputed"), np.arange(r), np.arange(r), K[:r, :r].copy())
            smoother = normal_equations(graph, basis.features(K)).whitened(basis.whitening).smoother()
            path = smoother.path(np.array([settings[k]["alpha"] for k in columns]))[:, :, 0].T
            a = basis.to_items @ path if basis.rows_first else path
            out[:, columns] = problem.K[problem.n_learn :, :r] @ a
            used[columns] = r
        return out, used


@dataclass(frozen=True)
class SameSize(Subset):
    """A random basis of the size that another method chose."""

    after = "Ranking Pursuit"

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [{"n_basis": chosen[self.after].setting["n_basis"], "alpha": alpha} for alpha in ALPHAS]


@dataclass(frozen=True)
class Pursuit(Method):
    """Ranking pursuit, kernel matching pursuit or their mixture: one path for all numbers of basis functions."""

    regression_weight: float = 0.0
    most: int = 50

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [{"n_basis": p, "backfit": backfit} for backfit in (True, False) for p in range(1, self.most + 1)]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n = problem.n_scored
        graph = graph_of(problem.y[:n], self.regression_weight)
        dictionary, target = Dictionary(problem.K[:n, :n], graph), graph.target[:, 0]
        out = np.empty((len(problem.y) - problem.n_learn, len(settings)))
        used = np.empty(len(settings))
        for backfit in (True, False):
            columns = [k for k, setting in enumerate(settings) if setting["backfit"] is backfit]
            if columns:
                stages = np.array([settings[k]["n_basis"] for k in columns])
                path = pursue(dictionary, target, int(stages.max()), backfit=backfit)
                taken, coefficients = path.merged()
                # A path that nothing improves any more stays where it is.
                last = np.minimum(stages, path.n_stages) - 1
                out[:, columns] = problem.K[problem.n_learn :, taken] @ coefficients[last].T
                used[columns] = path.sizes[last]
        return out, used


@dataclass(frozen=True)
class SupportVectors(Method):
    """RankSVM. C has no path, a fit for each: fewer users choose."""

    holdout = 60
    C: tuple[float, ...] = tuple(2.0**k for k in range(-18, 1, 3))

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [{"C": C} for C in self.C]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n = problem.n_scored
        scores, used = [], []
        for setting in settings:
            model = RankSVM(setting["C"], kernel="precomputed", balance="pairs")
            model.fit(problem.K[:n, :n], problem.y[:n])
            scores.append(model.predict(problem.K[problem.n_learn :, :n]))
            used.append(float(model.n_support_))
        return np.column_stack(scores), np.array(used)


_RLS = LeastSquares("RLS", "regularized least squares on the ratings, no intercept", 1.0)
_MATCHING = Pursuit("Matching Pursuit", "kernel matching pursuit, which regresses", 1.0)
_RANKING = (
    SupportVectors("RankSVM", "squared hinge; chosen on the first 60 hold-out users; basis: support vectors"),
    LeastSquares("RankRLS", "every pair weighs the same"),
    Subset("Sparse RankRLS", "a random basis, its size chosen like the other parameters"),
    SameSize("Random Subset", "sparse RankRLS with a random basis of the size that ranking pursuit chose"),
    Pursuit("Ranking Pursuit", "basis functions chosen one by one by the pairwise loss"),
)
METHODS: dict[str, tuple[Method, ...]] = {
    "full": (_RLS, _MATCHING, *_RANKING, Pursuit("CRRP", "combined ranking and regression pursuit, beta = 0.5", 0.5)),
    "half": (
        _RLS,
        _MATCHING,
        *_RANKING,
        CoPursuit("SS Ranking Pursuit", "semi-supervised; all scored rows in each view's loss, half of the basis each"),
        CoPursuit("SS, nu = 0", "the same, whose views need not agree", nus=(0.0,)),
        Consenting("CoRankRLS", "co-regularised RankRLS: 16 random halves of the reference users"),
    ),
}
"""The rows of the tables with all training ratings, and of that where half of them are unscored."""
