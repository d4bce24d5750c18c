"""Choosing among models of growing complexity, and how much the choice flatters the one that is chosen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankrls._compiled import one_blas_thread
from rankrls.selection.rules import EQUAL, RULES, best_within_rounding
from rankrls.selection.search import Results

Array = NDArray[np.float64]
_DRAWS = 200
_AT_A_TIME = 20
ALLOWED = {"best": 0.0, "half_se": 0.5, "one_se": 1.0}
"""How many standard errors of their difference a simpler model may be behind the best one, by rule."""
_BLOCKS = 5000
"""More blocks than twice as many are drawn in runs of them: means vary as much."""


def bias_of_choice(values: Array, own: float, choose: Callable[[Array, Array, Array], int]) -> float:
    """By how much the value of what was chosen is too good, at least 0; NaN for fewer than three blocks.

    The choice is made on blocks drawn with replacement and evaluated on the blocks that were not drawn, 200 times; the
    mean of these values is what a choice like this one reaches (Tsamardinos et al. 2018, algorithm 2).

    Parameters
    ----------
    values : ndarray of shape (blocks, entries)
        How good each entry is on each held-out query or fold; greater is better.
    own : float
        The mean of the entry that was chosen on all of them.
    choose : callable
        The entry to choose, from how often each block counts and from the means and standard errors of the entries.

    Notes
    -----
    O(200 x blocks x entries).
    """
    n, rng = len(values), np.random.default_rng(0)
    reached: list[float] = []
    for _ in range(_DRAWS // _AT_A_TIME if n > 2 else 0):
        drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=_AT_A_TIME).astype(np.float64)
        with one_blas_thread():
            means, squares = drawn @ values / n, drawn @ values**2 / n
        errors = np.sqrt(np.maximum(squares - means**2, 0.0) / (n - 1.0))
        for counts, mean, error in zip(drawn, means, errors, strict=True):
            left = counts == 0.0
            if left.any():
                reached.append(float(values[left, choose(counts, mean, error)].mean()))
    return max(own - float(np.mean(reached)), 0.0) if reached else float("nan")


def search_bias(results: Results) -> float:
    """The bias of the value that a search chose: by its rule inside each curve, and by the best value between curves.

    NaN if only averages are known.
    """
    found, rule = _known([results]), RULES[results.rule]
    if found is None:
        return float("nan")
    everything, own = (_in_runs(values) for values in found)
    ends = np.cumsum([0, *(curve.shape[1] for curve in results.values if curve is not None)])

    def choose(counts: Array, mean: Array, error: Array) -> int:
        k = int(np.searchsorted(ends, _top(mean), side="right")) - 1
        part = slice(ends[k], ends[k + 1])
        return int(ends[k]) + rule(mean[part], error[part], np.abs(mean[part]))

    return bias_of_choice(everything, float(own.mean()) if len(own) else np.nan, choose)


def _top(mean: Array) -> int:
    """The best entry; of those that equal it up to rounding the first."""
    return int(best_within_rounding(mean, np.abs(mean)).argmax())


def _in_runs(values: Array) -> Array:
    """Means of runs of blocks, where there are many."""
    size = len(values) // _BLOCKS
    if size < 2:
        return values
    return np.asarray(values[: len(values) // size * size].reshape(-1, size, *values.shape[1:]).mean(axis=1))


def _known(found: Sequence[Results]) -> tuple[Array, Array] | None:
    """How good every entry, and each search's choice, is on the blocks that all have a value for: greater is better.

    None if only averages are known.
    """
    curves = [values for results in found for values in results.values if values is not None]
    bests = [results.best_values for results in found if results.best_values is not None]
    if not curves or len(bests) < len(found) or len(curves) < sum(len(results.values) for results in found):
        return None
    sign = 1.0 if found[0].greater_is_better else -1.0
    everything, best = np.hstack(curves), np.column_stack(bests)
    known = ~(np.isnan(everything).any(axis=1) | np.isnan(best).any(axis=1))
    everything = everything[known]  # of very many preferences: no further copy
    everything *= sign
    return everything, sign * best[known]


@dataclass(frozen=True, eq=False)
class Entries:
    """What several searches on the same data found, the simplest model first.

    Attributes
    ----------
    means, errors : ndarray of shape (models,)
        The best value of each model, greater is better, and its standard error.
    best : ndarray of shape (blocks, models), or None
        The value of each query or block; None if only averages are known.
    all : ndarray of shape (blocks, entries), or None
        The same of every entry of every model.
    ends : ndarray of shape (models + 1,)
        The entries of model k are ``ends[k]`` to ``ends[k + 1]``.
    rule : str
        Of :data:`ALLOWED`.
    """

    means: Array
    errors: Array
    best: Array | None
    all: Array | None
    ends: NDArray[np.intp]
    rule: str

    @classmethod
    def of(cls, found: Sequence[Results], greater_is_better: bool, rule: str) -> Entries:
        """From the results of searches with the same plan."""
        sign = 1.0 if greater_is_better else -1.0
        means = sign * np.array([results.best_score for results in found])
        errors = np.array([results.best_error for results in found])
        ends = np.cumsum([0, *(len(results.rows) for results in found)])
        everything, best = _known(found) or (None, None)
        return cls(means, errors, best, everything, ends, rule)

    def chosen(self) -> int:
        """The number of the model that the rule takes."""
        top, scale = int(np.argmax(self.means)), 1.0
        if self.best is not None and len(self.best):
            scale = float(np.abs(self.best[:, top]).mean())
        behind, error = self.behind()
        return int(np.argmax(behind <= ALLOWED[self.rule] * np.nan_to_num(error) + EQUAL * scale))

    def behind(self) -> tuple[Array, Array]:
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
        """The bias of the value of the chosen model; NaN if only averages are known."""
        if self.all is None or self.best is None or not len(self.best):
            return float("nan")
        everything, best = _in_runs(self.all), _in_runs(self.best)

        def choose(counts: Array, mean: Array, error: Array) -> int:
            tops = np.array([a + _top(mean[a:b]) for a, b in zip(self.ends[:-1], self.ends[1:], strict=True)])
            top = _top(mean[tops])
            apart, n = everything[:, [tops[top]]] - everything[:, tops], counts.sum()
            behind = counts @ apart / n
            off = ALLOWED[self.rule] * np.sqrt(np.maximum(counts @ (apart - behind) ** 2, 0.0) / (n - 1.0) / n)
            return int(tops[int(np.argmax(behind <= off + EQUAL * np.abs(mean[tops[top]])))])

        return bias_of_choice(everything, float(best[:, self.chosen()].mean()), choose)
