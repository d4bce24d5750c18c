"""Choosing among models of growing complexity, and how much the choice flatters the one that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankrls.selection.choice import is_better
from rankrls.selection.search import Results

_SPLITS = 200
_AT_A_TIME = 20


@dataclass(frozen=True, eq=False)
class Entries:
    """What several searches on the same data found, the simplest model first.

    Attributes
    ----------
    means, errors : ndarray of shape (models,)
        The best value of each model, greater is better, and its standard error.
    scales : ndarray of shape (models,)
        What the rounding of the means is relative to.
    best : ndarray of shape (blocks, models), or None
        What each query or block says of that value; None if only averages are known.
    all : ndarray of shape (blocks, entries), or None
        The same of every entry of every model.
    owners : ndarray of shape (entries,)
        The model of each entry.
    rule : {"one_se", "best"}
    """

    means: NDArray[np.float64]
    errors: NDArray[np.float64]
    scales: NDArray[np.float64]
    best: NDArray[np.float64] | None
    all: NDArray[np.float64] | None
    owners: NDArray[np.intp]
    rule: str

    @classmethod
    def of(cls, found: Sequence[Results], greater_is_better: bool, rule: str) -> Entries:
        """From the results of searches with the same plan."""
        sign = 1.0 if greater_is_better else -1.0
        means = sign * np.array([results.best_score for results in found])
        errors = np.array([results.best_error for results in found])
        owners = np.repeat(np.arange(len(found)), [len(results.rows) for results in found])
        curves = [values for results in found for values in results.values if values is not None]
        bests = [results.best_values for results in found if results.best_values is not None]
        if sum(curve.shape[1] for curve in curves) < len(owners) or len(bests) < len(found):
            return cls(means, errors, np.ones(len(found)), None, None, owners, rule)
        everything, best = sign * np.hstack(curves), sign * np.column_stack(bests)
        known = ~(np.isnan(everything).any(axis=1) | np.isnan(best).any(axis=1))
        scales = np.abs(best[known]).mean(axis=0) if known.any() else np.ones(len(found))
        return cls(means, errors, scales, best[known], everything[known], owners, rule)

    def chosen(self) -> int:
        """The number of the model that the rule takes."""
        top = 0
        for k in range(1, len(self.means)):
            if is_better(self.means[k], self.means[top], self.scales[k]):
                top = k
        if self.rule == "best":
            return top
        behind, error = self.behind()
        return int(np.argmax(behind <= np.nan_to_num(error) + 1e-10 * self.scales[top]))

    def behind(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What each model lacks to the best one, and the standard error of that: of the differences, block by block.

        If only averages are known, the standard error of the best one's stands for it.
        """
        top = int(np.argmax(self.means))
        behind = self.means[top] - self.means
        if self.best is None or len(self.best) < 2:
            return behind, np.full(len(behind), self.errors[top])
        apart = self.best[:, [top]] - self.best
        return behind, apart.std(axis=0, ddof=1) / np.sqrt(len(apart))

    def optimism(self) -> float:
        """By how much the value of the chosen model is too good, at least 0; NaN if only averages are known.

        The choice, of a model and of its entry, is made on blocks drawn with replacement and judged on the blocks that
        were not drawn, 200 times; the mean of these values is what a choice like this one reaches (Tsamardinos et al.
        2018, algorithm 2). O(200 x blocks x entries).
        """
        if self.all is None or self.best is None or len(self.all) < 3:
            return float("nan")
        n, rng = len(self.all), np.random.default_rng(0)
        reached: list[float] = []
        for _ in range(_SPLITS // _AT_A_TIME):
            drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=_AT_A_TIME).astype(np.float64)
            means = drawn @ self.all / n
            for counts, mean in zip(drawn, means, strict=True):
                left = counts == 0.0
                if left.any():
                    entry = self._chosen_on(counts, mean)
                    reached.append(float(self.all[left, entry].mean()))
        own = float(self.best[:, self.chosen()].mean())
        return max(own - float(np.mean(reached)), 0.0) if reached else float("nan")

    def _chosen_on(self, counts: NDArray[np.float64], mean: NDArray[np.float64]) -> int:
        """The entry that is chosen on blocks that count so often."""
        assert self.all is not None
        starts = np.flatnonzero(np.r_[True, self.owners[1:] != self.owners[:-1]])
        ends = np.r_[starts[1:], len(self.owners)]
        tops = np.array([a + int(np.argmax(mean[a:b])) for a, b in zip(starts, ends, strict=True)])
        top = int(np.argmax(mean[tops]))
        if self.rule == "best":
            return int(tops[top])
        apart = self.all[:, [tops[top]]] - self.all[:, tops]
        n = counts.sum()
        behind = counts @ apart / n
        error = np.sqrt(np.maximum(counts @ (apart - behind) ** 2, 0.0) / (n - 1.0) / n)
        return int(tops[int(np.argmax(behind <= error))])
