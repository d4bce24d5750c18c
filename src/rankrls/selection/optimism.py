"""Selection among models of growing complexity, and the selection bias of the selected one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankrls._compiled import one_blas_thread
from rankrls._problems import Solutions
from rankrls._typing import Array, Index
from rankrls.selection.search import EQUAL, RULES, SearchState, best_within_rounding

_DRAWS = 200
_AT_A_TIME = 20
ALLOWED = {"best": 0.0, "half_se": 0.5, "one_se": 1.0}
"""Number of standard errors of their difference, over many blocks, by which a simpler model may be worse, by rule."""
_FEW = 30.0
"""Number of blocks at which this allowance doubles, because the best of several models is then mostly due to luck."""
_BLOCKS = 5000
"""Number of blocks; runs of blocks are drawn if there are more than twice as many."""


_DIGITS = 9
"""Number of digits by which blocks are ordered, so that rounding does not decide."""
_TAUGHT = 1.15
"""Factor of the bias if held-out blocks also train the models that evaluate others.

The value on blocks that were not drawn is then not independent of the selection. If there is nothing to learn (labels
in queries, preferences and censored times, linear and Gaussian), the bias was 0.95 to 1.3 times the estimate.
"""


def bias_of_choice(
    values: Array, own: int, choose: Callable[[Array, Array, Array, Array], int], *, mutual: bool
) -> float:
    """Optimism of the value of the selected entry, at least 0; NaN for fewer than three blocks.

    The selection is made on blocks drawn with replacement, 200 times. On the blocks that were not drawn, what is
    selected is on average so much worse than ``own`` (Tsamardinos et al. 2018, algorithm 2). Both are evaluated on the
    same blocks, so that the draws themselves add little noise.

    Parameters
    ----------
    values : ndarray of shape (blocks, entries)
        Goodness of each entry on each held-out query, item or fold, greater is better.
    own : int
        Selected entry.
    choose : callable
        Function that selects an entry, from the values, the count of each block, and the means and standard errors of
        the entries.
    mutual : bool
        Whether the blocks also train the models that evaluate others.

    Notes
    -----
    O(200 x blocks x entries).
    """
    if len(values) < 3:
        return float("nan")
    values = runs_of_blocks(values, _BLOCKS)
    values = values[np.lexsort(np.round(values.T, _DIGITS))]  # what is drawn does not depend on the order of rows
    n = len(values)
    rng = np.random.default_rng(0)
    behind = []
    for _ in range(_DRAWS // _AT_A_TIME):
        drawn = rng.multinomial(n, np.full(n, 1.0 / n), size=_AT_A_TIME).astype(np.float64)
        left = (drawn == 0.0).astype(np.float64)
        with one_blas_thread():
            means = drawn @ values / n
            squares = drawn @ values**2 / n
            sums = left @ values
        errors = np.sqrt(np.maximum(squares - means**2, 0.0) / (n - 1.0))
        for counts, mean, error, outside, size in zip(drawn, means, errors, sums, left.sum(axis=1), strict=True):
            if size:
                selected = choose(values, counts, mean, error)
                behind.append((outside[own] - outside[selected]) / size)
    bias = max(float(np.mean(behind)), 0.0)
    return _TAUGHT * bias if mutual else bias


def runs_of_blocks(values: Array, most: int) -> Array:
    """Values of blocks, or means of runs of blocks if there are more than twice ``most``: these vary as much."""
    size = len(values) // most
    if size < 2:
        return values
    return np.asarray(values[: len(values) // size * size].reshape(-1, size, values.shape[1]).mean(axis=1))


def search_bias(results: SearchState[Solutions]) -> float:
    """Bias of the value that a search selected: by its rule inside each curve, and by the best value between curves."""
    rule = RULES[results.rule]
    ends = np.cumsum([0, *(curve.shape[1] for curve in results.per_block)])

    def choose(values: Array, counts: Array, mean: Array, error: Array) -> int:
        k = int(np.searchsorted(ends, _top(mean), side="right"))
        part = slice(ends[k - 1], ends[k])
        return int(part.start) + rule(mean[part], error[part], np.abs(mean[part]))

    return bias_of_choice(_values_of_blocks([results]), results.best_index, choose, mutual=results.mutual)


def _top(mean: Array) -> int:
    """Best entry; ties up to rounding go to the first."""
    return int(best_within_rounding(mean, np.abs(mean)).argmax())


def _values_of_blocks(found: Sequence[SearchState[Solutions]]) -> Array:
    """Goodness of every entry on the blocks where all have a value; greater is better."""
    values = np.hstack([of_curve for results in found for of_curve in results.per_block])
    values = values[~np.isnan(values).any(axis=1)]  # no further copy, since there may be many preferences
    values *= 1.0 if found[0].greater_is_better else -1.0
    return values


class Dropped(NamedTuple):
    """A model that was evaluated in a cheaper form and not fitted.

    Attributes
    ----------
    place : int
        Number of fitted models that are simpler or of its family.
    results : SearchState
    gain : float
        Improvement of the fitted models of its family over their cheaper forms.
    """

    place: int
    results: SearchState[Solutions]
    gain: float


@dataclass(frozen=True, eq=False)
class Entries:
    """Results of several searches on the same data, with the simplest model first.

    Attributes
    ----------
    means : ndarray of shape (fitted models,)
        Value of the selected entry of each model, greater is better.
    values : ndarray of shape (blocks, entries)
        Value of every entry of every model on each query or block. Values of dropped models are increased by their
        gain.
    ends : ndarray of shape (models + 1,)
        Entries ``ends[k]`` to ``ends[k + 1]`` belong to model k; dropped models are included.
    own : ndarray of shape (fitted models,)
        Selected entry of each model.
    rule : str
        A key of :data:`ALLOWED`.
    mutual : bool
        Whether held-out blocks also train the models that evaluate others.
    """

    means: Array
    values: Array
    ends: Index
    own: Index
    rule: str
    mutual: bool

    @classmethod
    def of(cls, fitted: Sequence[SearchState[Solutions]], rule: str, dropped: Sequence[Dropped] = ()) -> Entries:
        """From the results of searches with the same plan."""
        pieces = [*(Dropped(k, results, 0.0) for k, results in enumerate(fitted, 1)), *dropped]
        order = np.argsort([piece.place for piece in pieces], kind="stable")
        sizes = np.array([len(piece.results.rows) for piece in pieces])[order]
        ends = np.cumsum([0, *sizes])
        values = _values_of_blocks([pieces[k].results for k in order])
        values += np.repeat([pieces[k].gain for k in order], sizes)
        means = np.array([results.best_score for results in fitted])
        return cls(
            means if fitted[0].greater_is_better else -means,
            values,
            ends,
            ends[np.argsort(order)[: len(fitted)]] + [results.best_index for results in fitted],
            rule,
            fitted[0].mutual,
        )

    def chosen(self) -> int:
        """Number of the model that the rule selects."""
        scale = 1.0
        if len(self.values):
            scale = float(np.abs(self.values[:, self.own[int(np.argmax(self.means))]]).mean())
        behind, error = self.behind()
        return int(np.argmax(behind <= self._allowed * np.nan_to_num(error) + EQUAL * scale))

    @property
    def _allowed(self) -> float:
        """Number of standard errors of their difference by which a simpler model may be behind the best one."""
        return ALLOWED[self.rule] * (1.0 + (_FEW / max(len(self.values), 1)) ** 2)

    def behind(self) -> tuple[Array, Array]:
        """Difference of each model to the best one, and the standard error of this difference over blocks."""
        top = int(np.argmax(self.means))
        behind = self.means[top] - self.means
        if len(self.values) < 2:
            return behind, np.full(len(behind), np.nan)
        apart = self.values[:, self.own[[top]]] - self.values[:, self.own]
        return behind, apart.std(axis=0, ddof=1) / np.sqrt(len(apart))

    def optimism(self) -> float:
        """Bias of the value of the selected model."""

        def choose(values: Array, counts: Array, mean: Array, error: Array) -> int:
            tops = np.array([a + _top(mean[a:b]) for a, b in zip(self.ends[:-1], self.ends[1:], strict=True)])
            top = tops[_top(mean[tops])]
            apart = values[:, [top]] - values[:, tops]
            n = counts.sum()
            behind = counts @ apart / n
            off = self._allowed * np.sqrt(np.maximum(counts @ (apart - behind) ** 2, 0.0) / (n - 1.0) / n)
            return int(tops[int(np.argmax(behind <= off + EQUAL * np.abs(mean[top])))])

        return bias_of_choice(self.values, int(self.own[self.chosen()]), choose, mutual=self.mutual)
