"""The methods of the collaborative filtering tables. Each learns from one user's kernel matrix, for many settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankrls import RankSVM
from rankrls._cached import cached_property
from rankrls.kernels import Kernel
from rankrls.learners.consensus import ConsensusProblem, Views
from rankrls.learners.paths import Dictionary
from rankrls.learners.pursuit import View, co_pursue, pursue
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.scorer import Basis
from rankrls.numerics.smoother import DualEquations, normal_equations

Array = NDArray[np.float64]
Setting = dict[str, Any]
ALPHAS = tuple(2.0**k for k in range(-30, 17, 2))
"""The paper does not give its grid. From where the widest kernels are fitted exactly to where all scores are 0."""
N_VIEWS = 2


def graph_of(y: Array, regression_weight: float = 0.0) -> LabelledGraph:
    """All pairs of the items, each weighing the same."""
    return LabelledGraph.build(y, balance="pairs", regression_weight=regression_weight)


@dataclass(frozen=True, eq=False)
class Problem:
    """One user's kernel matrix and ratings; rows are labelled, then unlabelled, then judged.

    Methods may look at ``y`` of the labelled rows only. ``make_halves`` gives the kernel matrices of random halves of
    the features.
    """

    K: Array
    y: Array
    n_labelled: int
    n_learn: int
    make_halves: Callable[[], list[Array]] = list

    @cached_property
    def halves(self) -> list[Array]:
        return self.make_halves()

    @property
    def n_judged(self) -> int:
        return len(self.y) - self.n_learn

    def graph(self, regression_weight: float = 0.0) -> LabelledGraph:
        """All pairs of labelled items."""
        return graph_of(self.y[: self.n_labelled], regression_weight)


@dataclass(frozen=True)
class Method:
    """A row of the tables.

    ``after`` names a method that must choose first; ``holdout`` is how many of the hold-out users choose, where not all
    of them do; ``by_halves`` says that it learns from the halves of the features.
    """

    name: str
    after: ClassVar[str | None] = None
    holdout: ClassVar[int | None] = None
    by_halves: ClassVar[bool] = False

    def settings(self, chosen: Mapping[str, Setting]) -> list[Setting]:
        """What to choose from, given what earlier methods chose."""
        raise NotImplementedError

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[Array, Array]:
        """Scores of the judged items, (items, settings), and the number of basis functions of each setting."""
        raise NotImplementedError


@dataclass(frozen=True)
class LeastSquares(Method):
    """RankRLS and RLS in the dual: one eigendecomposition for all alphas."""

    regression_weight: float = 0.0

    def settings(self, chosen: Mapping[str, Setting]) -> list[Setting]:
        return [{"alpha": alpha} for alpha in ALPHAS]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[Array, Array]:
        n = problem.n_labelled
        graph = problem.graph(self.regression_weight)
        smoother = DualEquations.of_kernel(problem.K[:n, :n].copy(), graph).smoother()
        path = smoother.path(np.array([setting["alpha"] for setting in settings]))
        return problem.K[problem.n_learn :, :n] @ path[:, :, 0].T, np.full(len(settings), float(n))


@dataclass(frozen=True)
class Subset(Method):
    """Sparse RankRLS: expansions over the first labelled items, which are in random order."""

    sizes: tuple[int, ...] = (2, 5, 10, 15, 20, 30)

    def settings(self, chosen: Mapping[str, Setting]) -> list[Setting]:
        return [{"n_basis": size, "alpha": alpha} for size in self.sizes for alpha in ALPHAS]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[Array, Array]:
        n = problem.n_labelled
        graph = problem.graph()
        K = problem.K[:n, :n]
        out = np.empty((problem.n_judged, len(settings)))
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

    def settings(self, chosen: Mapping[str, Setting]) -> list[Setting]:
        return [{"n_basis": chosen[self.after]["n_basis"], "alpha": alpha} for alpha in ALPHAS]


@dataclass(frozen=True)
class Pursuit(Method):
    """Ranking pursuit, kernel matching pursuit or their mixture: one path for all numbers of basis functions."""

    regression_weight: float = 0.0
    most: int = 50

    def settings(self, chosen: Mapping[str, Setting]) -> list[Setting]:
        return [{"n_basis": p, "backfit": backfit} for backfit in (True, False) for p in range(1, self.most + 1)]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[Array, Array]:
        n = problem.n_labelled
        graph = problem.graph(self.regression_weight)
        dictionary, target = Dictionary(problem.K[:n, :n], graph), graph.target[:, 0]
        out = np.empty((problem.n_judged, len(settings)))
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
                used[columns] = [len(np.unique(path.indices[: stage + 1])) for stage in last]
        return out, used


@dataclass(frozen=True)
class SupportVectors(Method):
    """RankSVM. C has no path, a fit for each: fewer users choose."""

    holdout = 60
    C: tuple[float, ...] = tuple(2.0**k for k in range(-18, 1, 3))

    def settings(self, chosen: Mapping[str, Setting]) -> list[Setting]:
        return [{"C": C} for C in self.C]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[Array, Array]:
        n = problem.n_labelled
        scores, used = [], []
        for setting in settings:
            model = RankSVM(setting["C"], kernel="precomputed", balance="pairs")
            model.fit(problem.K[:n, :n], problem.y[:n])
            scores.append(model.predict(problem.K[problem.n_learn :, :n]))
            used.append(float(model.n_support_))
        return np.column_stack(scores), np.array(used)


def split_views(n_labelled: int, n_learn: int) -> list[NDArray[np.intp]]:
    """Rows of each of two views: every other labelled and every other unlabelled item, which are in random order."""
    labelled, unlabelled = np.arange(n_labelled), np.arange(n_labelled, n_learn)
    return [np.concatenate((labelled[v::N_VIEWS], unlabelled[v::N_VIEWS])) for v in range(N_VIEWS)]


@dataclass(frozen=True)
class CoPursuit(Method):
    """Semi-supervised ranking pursuit of two views, which differ by their rows; one path for all numbers of stages.

    A view takes its basis from its half of the rows; all labelled rows are in each view's loss.
    """

    nus: tuple[float, ...] = (2.0**-8, 2.0**-4, 1.0, 2.0**4, 2.0**8)
    most: int = 20
    holdout = 100  # there are hundreds of settings, and ten paths for each width

    def settings(self, chosen: Mapping[str, Setting]) -> list[Setting]:
        return [
            {"n_stages": p, "nu": nu, "backfit": backfit}
            for backfit in (True, False)
            for nu in self.nus
            for p in range(1, self.most + 1)
        ]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[Array, Array]:
        n, learn = problem.n_labelled, problem.n_learn
        bases = split_views(n, learn)
        graph, agreement = problem.graph(), graph_of(np.zeros(learn - n))
        labelled, unlabelled = (
            [Dictionary(problem.K[np.ix_(rows, basis)], over) for basis in bases]
            for rows, over in ((np.arange(n), graph), (np.arange(n, learn), agreement))
        )
        views = [View(*both) for both in zip(labelled, [graph.target[:, 0]] * N_VIEWS, unlabelled, strict=True)]
        out = np.empty((problem.n_judged, len(settings)))
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


@dataclass(frozen=True)
class Consenting(Method):
    """Co-regularized RankRLS: random halves of the reference users as views; all alphas from one decomposition a mu."""

    mus: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    holdout = 100
    by_halves = True

    def settings(self, chosen: Mapping[str, Setting]) -> list[Setting]:
        return [{"mu": mu, "alpha": alpha} for mu in self.mus for alpha in ALPHAS]

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[Array, Array]:
        n, learn = problem.n_labelled, problem.n_learn
        halves = problem.halves
        kernels = [np.ascontiguousarray(K[:learn, :learn]) for K in halves]
        everything = LabelledGraph.build(np.zeros(learn))
        views = Views([lambda K=K: K for K in kernels], everything)
        graph = problem.graph()
        out = np.empty((problem.n_judged, len(settings)))
        for mu in dict.fromkeys(setting["mu"] for setting in settings):
            columns = [k for k, setting in enumerate(settings) if setting["mu"] == mu]
            # mu counts in units of the mean square of the centred views, as that of CoRankRLS.
            consensus = views.agree(mu / views.scale)
            path = ConsensusProblem(consensus, np.arange(n), graph).path(
                np.array([settings[k]["alpha"] for k in columns])
            )
            h = consensus.kernel[:, :n] @ path.coefficients[:, :, 0].T
            parts = zip(halves, consensus.view_coefficients(h), strict=True)
            out[:, columns] = sum(K[learn:, :learn] @ a for K, a in parts)
        return out, np.full(len(settings), float(learn))


_SHARED = (
    LeastSquares("RLS", 1.0),
    Pursuit("Matching Pursuit", 1.0),
    SupportVectors("RankSVM"),
    LeastSquares("RankRLS"),
    Subset("Sparse RankRLS"),
    SameSize("Random Subset"),
    Pursuit("Ranking Pursuit"),
)
METHODS: dict[str, tuple[Method, ...]] = {
    "full": (*_SHARED, Pursuit("CRRP", 0.5)),
    "half": (
        *_SHARED,
        CoPursuit("SS Ranking Pursuit"),
        CoPursuit("SS, nu = 0", nus=(0.0,)),
        Consenting("CoRankRLS"),
    ),
}
"""The rows of the tables with all training ratings, and of that where half of them are unlabelled. "SS, nu = 0" has
views that need not agree."""
