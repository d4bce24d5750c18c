"""The methods of the collaborative filtering tables. Each learns from one user's kernel matrix, for many settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from _collaborative_problem import ALPHAS, Method, Problem, Setting
from _collaborative_views import Consenting, CoPursuit, CoPursuitOfFeatures
from numpy.typing import NDArray

from rankrls import RankSVM
from rankrls.greedy.dictionaries import held_dictionary
from rankrls.greedy.pursuit import pursue
from rankrls.kernels import Kernel
from rankrls.problems.dual import DualProblem
from rankrls.problems.subset import Basis, SubsetProblem

__all__ = ["METHODS", "LeastSquares", "Pursuit", "SameSize", "Subset", "SupportVectors"]


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
        path = (
            DualProblem.from_kernel(problem.K[:n, :n].copy(), graph, target)
            .path(np.array([setting["alpha"] for setting in settings]))
            .coefficients
        )
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
        target = (graph.F @ problem.y[:n])[:, None]
        K = problem.K[:n, :n]
        out = np.empty((len(problem.y) - problem.n_learn, len(settings)))
        used = np.empty(len(settings))
        wanted = np.array([setting["n_basis"] for setting in settings])
        for size in np.unique(wanted):
            columns = np.flatnonzero(wanted == size)
            r = min(int(size), n)
            basis = Basis.build(Kernel("precomputed"), np.arange(r), K[:r, :r].copy())
            path = (
                SubsetProblem(K, basis, graph, target)
                .path(np.array([settings[k]["alpha"] for k in columns]))
                .coefficients
            )
            out[:, columns] = problem.K[problem.n_learn :, :r] @ path[:, :, 0].T
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
    """Ranking pursuit, kernel matching pursuit or their mixture: one path for all numbers of basis functions.

    With ``all_rows`` unscored items may be taken for the basis too.
    """

    regression_weight: float = 0.0
    most: int = 50
    all_rows: bool = False

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [{"n_basis": p, "backfit": backfit} for backfit in (True, False) for p in range(1, self.most + 1)]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n = problem.n_scored
        graph = problem.graph(self.regression_weight)
        dictionary = held_dictionary(problem.K[: problem.n_learn if self.all_rows else n, :n].copy(), graph)
        target = graph.F @ problem.y[:n]
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
_INCREMENTS: dict[str, Any] = {"agreement": "increments", "backfits": (False,)}
METHODS: dict[str, tuple[Method, ...]] = {
    "full": (_RLS, _MATCHING, *_RANKING, Pursuit("CRRP", "combined ranking and regression pursuit, beta = 0.5", 0.5)),
    "half": (
        _RLS,
        _MATCHING,
        *_RANKING,
        CoPursuit("SS Ranking Pursuit", "semi-supervised; all scored rows in each view's loss, half of the basis each"),
        CoPursuit("SS, nu = 0", "the same, whose views need not agree", nus=(0.0,)),
        Pursuit("RP, all rows", "ranking pursuit that may take unscored items for its basis", all_rows=True),
        CoPursuit(
            "SS, nu = 0, scored", "SS, nu = 0 with half of the scored rows as basis", nus=(0.0,), scored_basis=True
        ),
        CoPursuit("SS, increments", "the same, where the steps agree (the paper's J); no backfitting", **_INCREMENTS),
        CoPursuit("SS, own rows", "each view learns from its half of the scored rows only", own_loss=True),
        CoPursuit("SS, own rows, nu = 0", "the same, whose views need not agree", own_loss=True, nus=(0.0,)),
        CoPursuitOfFeatures(
            "SS, features", "the views are two halves of the reference users, with the basis in common"
        ),
        CoPursuitOfFeatures("SS, features, nu = 0", "the same, whose views need not agree", nus=(0.0,)),
        Consenting("CoRankRLS", "co-regularised RankRLS: 16 random halves of the reference users"),
    ),
}
"""The rows of the tables with all training ratings, and of that where half of them are unscored."""
