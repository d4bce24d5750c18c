"""The methods of the collaborative filtering tables. Each learns from one user's kernel matrix, for many settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankrls import CoRankingPursuit, RankSVM
from rankrls._queries import query_layout
from rankrls.graph import ScoredGraph
from rankrls.greedy.dictionaries import held_dictionary
from rankrls.greedy.pursuit import pursue
from rankrls.kernels import Kernel
from rankrls.problems.dual import DualProblem
from rankrls.problems.subset import Basis, SubsetProblem

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
    """A row of the tables.

    ``after`` names a method that must choose first; ``holdout`` is how many of the hold-out users choose, where not all
    of them do.
    """

    name: str
    what: str
    after: ClassVar[str | None] = None
    holdout: ClassVar[int | None] = None

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
    """Ranking pursuit, kernel matching pursuit or their mixture: one path for all numbers of basis functions."""

    regression_weight: float = 0.0
    most: int = 50

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [{"n_basis": p, "backfit": backfit} for backfit in (True, False) for p in range(1, self.most + 1)]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n = problem.n_scored
        graph = problem.graph(self.regression_weight)
        dictionary = held_dictionary(problem.K[:n, :n].copy(), graph)
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
class CoPursuit(Method):
    """Semi-supervised ranking pursuit of two views with a part of the rows each; one path for all numbers of stages."""

    agreement: str = "functions"
    backfits: tuple[bool, ...] = (True, False)
    nus: tuple[float, ...] = (2.0**-8, 2.0**-4, 1.0, 2.0**4, 2.0**8)
    most: int = 20

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [
            {"n_stages": p, "nu": nu, "backfit": backfit}
            for backfit in self.backfits
            for nu in self.nus
            for p in range(1, self.most + 1)
        ]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n, learn = problem.n_scored, problem.n_learn
        y = np.where(np.arange(learn) < n, problem.y[:learn], np.nan)
        views = tuple({"kernel": "precomputed", "rows": rows} for rows in split_views(n, learn))
        out = np.empty((len(problem.y) - learn, len(settings)))
        used = np.empty(len(settings))
        for nu, backfit in dict.fromkeys((setting["nu"], setting["backfit"]) for setting in settings):
            columns = [k for k, s in enumerate(settings) if (s["nu"], s["backfit"]) == (nu, backfit)]
            stages = np.array([settings[k]["n_stages"] for k in columns])
            model = CoRankingPursuit(
                int(stages.max()),
                views=views,
                nu=nu,
                shared_basis=False,
                agreement=self.agreement,
                balance="pairs",
                backfit=backfit,
            ).fit(problem.K[:learn, :learn], y)
            scores = np.column_stack(list(model.staged_predict(problem.K[learn:, :learn])))
            taken = model.path_.indices
            last = np.minimum(stages, len(taken)) - 1
            out[:, columns] = scores[:, last]
            used[columns] = [len(np.unique(taken[: stage + 1])) for stage in last]
        return out, used


@dataclass(frozen=True)
class SupportVectors(Method):
    """RankSVM. A fit costs ten times that of the others, and C has no path: fewer users choose."""

    holdout = 60
    C: tuple[float, ...] = (2.0**-12, 2.0**-9, 2.0**-6, 2.0**-3, 1.0, 2.0**3)

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
        CoPursuit("SS Ranking Pursuit", "semi-supervised, the views' functions agree"),
        CoPursuit("SS, increments", "the paper's form: the steps agree; no backfitting", "increments", (False,)),
    ),
}
"""The rows of the tables with all training ratings, and of that where half of them are unscored."""
