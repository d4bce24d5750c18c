"""What a method of the collaborative filtering tables is, and what it is given: one user's kernel matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from rankrls._cached import cached_property
from rankrls.numerics.graph import LabelledGraph

__all__ = ["ALPHAS", "N_HALVES", "Items", "Method", "Problem", "Setting", "graph_of"]

Array = NDArray[np.float64]
Setting = dict[str, Any]
ALPHAS = tuple(2.0**k for k in range(-30, 17, 2))
"""The paper does not give its grid. From where the widest kernels are fitted exactly to where all scores are 0."""
N_HALVES = 16
"""Random halves of the reference users, the same for all test users of a group."""


def graph_of(y: Array, regression_weight: float = 0.0) -> LabelledGraph:
    """All pairs of the items, each weighing the same."""
    return LabelledGraph.build(y, balance="pairs", regression_weight=regression_weight)


@dataclass(frozen=True, eq=False)
class Items:
    """One user's items as the reference users see them, (items, reference users)."""

    features: Array

    @cached_property
    def distances(self) -> Array:
        """Squared. Exactly 0 between items that no reference user has rated, whose features are equal: what is left by
        ``|x|^2 + |z|^2 - 2 x'z``, times the smallest width's 2^29, would make the kernel indefinite.
        """
        return np.asarray(cdist(self.features, self.features, "sqeuclidean"))

    @cached_property
    def distances_of_halves(self) -> list[Array]:
        """Of ``N_HALVES`` random halves of the reference users, and last of those who are not in the first half."""
        n = self.features.shape[1]
        rng = np.random.default_rng(0)
        orders = [rng.permutation(n) for _ in range(N_HALVES)]
        halves = [order[: (n + 1) // 2] for order in orders]
        parts = [self.features[:, half] for half in (*halves, orders[0][(n + 1) // 2 :])]
        return [np.asarray(cdist(part, part, "sqeuclidean")) for part in parts]


@dataclass(frozen=True, eq=False)
class Problem:
    """One user's kernel matrix and ratings; rows are scored, then unscored, then judged.

    Methods may look at ``y`` of the scored rows only. ``make_halves`` gives the kernel matrices of the halves of the
    features.
    """

    K: Array
    y: Array
    n_scored: int
    n_learn: int
    make_halves: Callable[[], list[Array]] = list

    @cached_property
    def halves(self) -> list[Array]:
        return self.make_halves()

    def graph(self, regression_weight: float) -> LabelledGraph:
        """All pairs of scored items."""
        return graph_of(self.y[: self.n_scored], regression_weight)


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

    def scores(self, problem: Problem, settings: list[Setting]) -> tuple[Array, Array]:
        """Scores of the judged items, (items, settings), and the number of basis functions of each setting."""
        raise NotImplementedError

    def sees_the_same(self, one: Problem, other: Problem) -> bool:
        """Whether two widths give the same kernel matrices to the last bit, so that the same is learnt from them."""
        return np.array_equal(one.K, other.K)
