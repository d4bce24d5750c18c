"""RankBoost as a problem of the search: its parameter is the number of rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems, Setting
from rankrls.learners.graphs import graph_of, pair_factors
from rankrls.learners.rankboost import (
    Boosting,
    CodedColumns,
    LabelPairs,
    Pairs,
    PreferencePairs,
    StepFunctions,
    Stump,
    column_values,
    columns_of,
)
from rankrls.numerics.graph import LabelledGraph


@dataclass(frozen=True, eq=False)
class StumpSolutions:
    """The first rounds of a list of stumps, for some numbers of rounds."""

    features: NDArray[np.intp]
    thresholds: NDArray[np.float64]
    stump_weights: NDArray[np.float64]
    rounds: NDArray[np.float64]
    details: Sequence[Any] = ()

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Scores of rows X after each number of rounds, (rows, numbers, 1)."""
        X = columns_of(X)
        scores = np.zeros((len(self.features) + 1, X.shape[0]))
        for t, (feature, threshold) in enumerate(zip(self.features, self.thresholds, strict=True)):
            scores[t + 1] = scores[t] + self.stump_weights[t] * (column_values(X, feature) > threshold)
        return scores[self.rounds.astype(np.intp)].T[:, :, None]

    def __getitem__(self, k: int) -> Any:
        first = slice(int(self.rounds[k]))
        return StepFunctions.of(self.features[first], self.thresholds[first], self.stump_weights[first])


class RankBoostProblem:
    """Stumps on labelled items, or on preferences.

    Parameters
    ----------
    data : LabelledItems or PreferredItems
    balance : str
        Of the pairs of labelled items.
    n_estimators : int
        Rounds at most.
    """

    parameter = "n_estimators"

    def __init__(self, data: Comparisons, balance: str, n_estimators: int) -> None:
        self.data, self.balance, self.n_estimators = data, balance, n_estimators

    @cached_property
    def _run(self) -> tuple[list[Stump], str]:
        data, pairs = self.data, self._pairs
        boosting = Boosting(pairs, CodedColumns(data.X))
        stumps = list(islice(boosting, self.n_estimators))
        return stumps, "n_estimators" if boosting.status == "running" else boosting.status

    @property
    def _pairs(self) -> Pairs:
        if isinstance(self.data, PreferredItems):
            g = self.data.graph
            return PreferencePairs(g.winners, g.losers, g.n_items, g.strength, g.weight)
        graph = graph_of(self.data, Setting("exclude", self.balance))
        assert isinstance(self.data, LabelledItems)
        assert isinstance(graph, LabelledGraph)
        return LabelPairs(*pair_factors(self.data, graph))

    @property
    def stumps(self) -> list[Stump]:
        """All rounds that were run."""
        return self._run[0]

    @property
    def stopped(self) -> str:
        """Why no further round was run."""
        return self._run[1]

    def axis(self) -> NDArray[np.float64]:
        """All numbers of rounds."""
        return np.arange(1.0, len(self.stumps) + 1.0)

    def path(self, values: NDArray[np.float64]) -> StumpSolutions:
        """The models of some numbers of rounds."""
        return StumpSolutions(
            np.array([s.feature for s in self.stumps], dtype=np.intp),
            np.array([s.threshold for s in self.stumps]),
            np.array([s.weight for s in self.stumps]),
            values,
        )
