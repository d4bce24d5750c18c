"""The methods of the collaborative filtering tables that learn from unscored ratings too, by views that agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from _collaborative_problem import ALPHAS, N_HALVES, Array, Method, Problem, Setting, graph_of
from numpy.typing import NDArray

from rankrls.learners.consensus import Centring, ConsensusProblem, Views
from rankrls.learners.copursuit import co_pursue
from rankrls.learners.dictionaries import Dictionary
from rankrls.learners.pursuit import View

N_VIEWS = 2


def split_views(n_scored: int, n_learn: int) -> list[NDArray[np.intp]]:
    """Rows of each of two views: every other scored and every other unscored item, which are in random order."""
    scored, unscored = np.arange(n_scored), np.arange(n_scored, n_learn)
    return [np.concatenate((scored[v::N_VIEWS], unscored[v::N_VIEWS])) for v in range(N_VIEWS)]


@dataclass(frozen=True)
class CoPursuit(Method):
    """Semi-supervised ranking pursuit of two views, which differ by their rows; one path for all numbers of stages.

    A view takes its basis from its half of the rows; all labelled rows are in each view's loss.
    """

    backfits: tuple[bool, ...] = (True, False)
    nus: tuple[float, ...] = (2.0**-8, 2.0**-4, 1.0, 2.0**4, 2.0**8)
    most: int = 20
    holdout: ClassVar[int | None] = 100  # there are hundreds of settings, and ten paths for each width

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [
            {"n_stages": p, "nu": nu, "backfit": backfit}
            for backfit in self.backfits
            for nu in self.nus
            for p in range(1, self.most + 1)
        ]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[Array, Array]:
        n, learn = problem.n_scored, problem.n_learn
        bases = split_views(n, learn)
        agreement = graph_of(np.zeros(learn - n))
        views = [_view(problem.K, problem.y, basis, np.arange(n), np.arange(n, learn), agreement) for basis in bases]
        out = np.empty((len(problem.y) - learn, len(settings)))
        used = np.empty(len(settings))
        for nu, backfit in dict.fromkeys((setting["nu"], setting["backfit"]) for setting in settings):
            columns = [k for k, s in enumerate(settings) if (s["nu"], s["backfit"]) == (nu, backfit)]
            stages = np.array([settings[k]["n_stages"] for k in columns])
            path = co_pursue(views, int(stages.max()), nu, shared=False, backfit=backfit)
            # A path that nothing improves any more stays where it is.
            last = np.minimum(stages, path.n_stages) - 1
            parts = []
            for v, basis in enumerate(bases):
                taken, coefficients = path.view(v).merged()
                parts.append(problem.K[learn:, basis[taken]] @ coefficients[last].T)
            out[:, columns] = np.mean(parts, axis=0)
            items = np.column_stack([basis[path.indices[:, v]] for v, basis in enumerate(bases)])
            used[columns] = [len(np.unique(items[: stage + 1])) for stage in last]
        return out, used


def _view(
    K: Array, y: Array, basis: NDArray[np.intp], rows: NDArray[np.intp], apart: NDArray[np.intp], agreement: Any
) -> View:
    graph = graph_of(y[rows])
    return View(
        Dictionary(K[np.ix_(rows, basis)], graph),
        graph.target[:, 0],
        Dictionary(K[np.ix_(apart, basis)], agreement),
    )


@dataclass(frozen=True)
class Consenting(Method):
    """Co-regularised RankRLS: random halves of the reference users as views; all alphas from one decomposition a mu."""

    mus: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    holdout: ClassVar[int | None] = 100

    def sees_the_same(self, one: Problem, other: Problem) -> bool:
        pairs = zip((one.K, *one.halves), (other.K, *other.halves), strict=True)
        return all(np.array_equal(K, L) for K, L in pairs)

    def settings(self, chosen: Mapping[str, Any]) -> list[Setting]:
        return [{"mu": mu, "alpha": alpha} for mu in self.mus for alpha in ALPHAS]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[Array, Array]:
        n, learn = problem.n_scored, problem.n_learn
        halves = problem.halves[:N_HALVES]
        kernels = [np.ascontiguousarray(K[:learn, :learn]) for K in halves]
        everything = Centring(np.zeros(learn, dtype=np.intp), np.ones(learn))
        views = Views([lambda K=K: K for K in kernels], everything, np.arange(n))
        graph = graph_of(problem.y[:n])
        out = np.empty((len(problem.y) - learn, len(settings)))
        for mu in dict.fromkeys(setting["mu"] for setting in settings):
            columns = [k for k, setting in enumerate(settings) if setting["mu"] == mu]
            # mu counts in units of the mean square of the centred views, as that of CoRankRLS.
            consensus = views.agree(mu / views.scale)
            path = ConsensusProblem(consensus, np.arange(n), graph).path(
                np.array([settings[k]["alpha"] for k in columns])
            )
            h = consensus.columns(np.arange(n)) @ path.coefficients[:, :, 0].T
            parts = zip(halves, consensus.view_coefficients(h), strict=True)
            out[:, columns] = sum(K[learn:, :learn] @ a for K, a in parts)
        return out, np.full(len(settings), float(learn))
