"""Tests of whether a difference of rankings is due to chance: paired tests over queries, intervals, all pairs.

Inputs are one number per query. NaN marks a query without a value, which is dropped, in pairs, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankrls._checks import check_count, check_word, refuse_where, vector_of
from rankrls._errors import InputError, warn_of_cost
from rankrls._shown import Shown, p_text, table_text
from rankrls._typing import AnyArray, Array
from rankrls.models.parameters import number
from rankrls.selection.search import progress

_BLOCK = 1 << 20  # number of resampled values in memory at once
_RESAMPLED = 1e-8  # seconds per query and resample, for signs and bootstrap
_DIGITS = 1e-12  # relative difference below which values differ only by rounding


@dataclass(frozen=True)
class PairedTest:
    """Result of a paired, two-sided test.

    Attributes
    ----------
    statistic : float
        Smaller one of the sums of the ranks of the positive and of the negative differences, or the mean difference.
    p_value : float
        Two-sided p value; 1 if all differences are zero.
    at_floor : bool
        Whether p is the smallest value that the number of draws allows; the true p is then smaller.
    difference : float
        Mean of ``a - b``.
    wins, ties, losses : int
        Numbers of queries with ``a`` greater than, equal to, and smaller than ``b``.
    n_queries : int
        Number of queries with a value in both.
    n_dropped : int
        Number of queries without a value in one of them.
    """

    statistic: float
    p_value: float
    at_floor: bool
    difference: float
    wins: int
    ties: int
    losses: int
    n_queries: int
    n_dropped: int


@dataclass(frozen=True)
class Interval:
    """A bootstrap confidence interval of a mean over queries.

    Attributes
    ----------
    value, low, high : float
        Mean and bounds of its interval.
    n_queries : int
        Number of queries with a value.
    """

    value: float
    low: float
    high: float
    n_queries: int


def paired_wilcoxon(a: ArrayLike, b: ArrayLike) -> PairedTest:
    """Wilcoxon's signed-rank test, two-sided, for symmetry of ``a - b`` about zero.

    Queries without a difference are left out, and equal absolute differences share their mean rank.

    Parameters
    ----------
    a, b : array-like of shape (q,)
        One value per query, in the same query order; NaN for a query without a value.

    Returns
    -------
    PairedTest

    Raises
    ------
    ValueError
        If shapes differ, values are infinite, or fewer than two queries have a value in both.

    Notes
    -----
    The p value is that of :func:`scipy.stats.wilcoxon`: exact for up to 50 differences of different size, or 13 if some
    are equal. Beyond that, the normal approximation is used, with its correction for ties and without a continuity
    correction. Differences that agree to 12 digits of the largest value are equal, so that rounding does not decide
    ranks.

    Examples
    --------
    >>> from rankrls.comparison.significance import paired_wilcoxon
    >>> test = paired_wilcoxon([0.9, 0.8, 0.7, 0.6, 0.9], [0.5, 0.5, 0.5, 0.5, 0.8])
    >>> test.p_value, test.wins
    (0.0625, 5)
    """
    from scipy import stats  # imported here because the import takes a fraction of a second

    d, counted = _differences(a, b)
    if not d.any():
        return PairedTest(0.0, 1.0, False, **counted)
    found = stats.wilcoxon(d[d != 0])
    return PairedTest(float(found.statistic), float(found.pvalue), False, **counted)


def paired_randomization(
    a: ArrayLike, b: ArrayLike, *, n_resamples: int = 10_000, random_state: Any = None
) -> PairedTest:
    """Fisher's randomization test of the mean difference, two-sided: the signs of the differences are random.

    p is the share of sign assignments whose mean difference is at least as far from zero as the observed one.

    Parameters
    ----------
    a, b : array-like of shape (q,)
        One value per query, in the same query order; NaN for a query without a value.
    n_resamples : int
        Number of random sign assignments. If there are no more assignments, each is used once and p is exact; otherwise
        the observed one is counted with them: p = (1 + as extreme) / (1 + n_resamples).
    random_state : int, numpy.random.Generator or None
        Seed of the assignments.

    Returns
    -------
    PairedTest

    Raises
    ------
    ValueError
        If shapes differ, values are infinite, fewer than two queries have a value in both, or ``n_resamples`` < 1.

    Notes
    -----
    O(n_resamples q) time, in blocks with bounded memory.

    Examples
    --------
    >>> from rankrls.comparison.significance import paired_randomization
    >>> test = paired_randomization([0.9, 0.8, 0.7, 0.6, 0.9], [0.5, 0.5, 0.5, 0.5, 0.8])
    >>> test.p_value
    0.0625
    """
    n_resamples = check_count("n_resamples", n_resamples)
    d, counted = _differences(a, b)
    moved = d[d != 0]  # a zero difference has no sign
    n = len(moved)
    observed = abs(moved.sum()) - 4 * _DIGITS * np.abs(moved).sum()

    def count_extreme(signs: AnyArray) -> int:
        return int((np.abs((2.0 * signs - 1.0) @ moved) >= observed).sum())

    if n < 63 and 2**n <= n_resamples:
        every = np.arange(2**n)[:, None] >> np.arange(n) & 1
        return PairedTest(counted["difference"], count_extreme(every) / 2**n, False, **counted)
    rng = np.random.default_rng(random_state)
    block = max(1, _BLOCK // n)
    extreme = 0
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        extreme += count_extreme(rng.integers(0, 2, (size, n), dtype=np.int8))
    return PairedTest(counted["difference"], (1 + extreme) / (1 + n_resamples), extreme == 0, **counted)


def bootstrap_interval(
    values: ArrayLike,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: Any = None,
) -> Interval:
    """Confidence interval of the mean over queries: quantiles of the means of queries drawn with replacement.

    Parameters
    ----------
    values : array-like of shape (q,)
        One value per query; NaN for a query without a value. Differences of two rankings give the interval of their
        mean difference.
    confidence : float
        Confidence level, between 0 and 1.
    n_resamples : int
        Number of draws.
    random_state : int, numpy.random.Generator or None
        Seed of the draws.

    Returns
    -------
    Interval

    Raises
    ------
    ValueError
        If values are infinite, fewer than two values exist, or a parameter is out of range.

    Notes
    -----
    O(n_resamples q) time, in blocks with bounded memory.

    Examples
    --------
    >>> from rankrls.comparison.significance import bootstrap_interval
    >>> interval = bootstrap_interval([0.2, 0.4, 0.5, 0.9], random_state=0)
    >>> interval.low < interval.value == 0.5 < interval.high
    True
    """
    from scipy import stats

    number(above=0.0, below=1.0)("confidence", confidence)
    n_resamples = check_count("n_resamples", n_resamples)
    x = _per_query(values, "values")
    judged = _enough(x[~np.isnan(x)])
    found = stats.bootstrap(
        (judged,),
        np.mean,
        method="percentile",
        confidence_level=confidence,
        n_resamples=n_resamples,
        batch=max(1, _BLOCK // len(judged)),
        rng=np.random.default_rng(random_state),
    )
    low, high = map(float, found.confidence_interval)
    return Interval(float(judged.mean()), low, high, len(judged))


def holm(p_values: ArrayLike) -> Array:
    """Holm's step-down adjustment of p values for multiple tests: ``max_{j <= i} min(1, (n - j + 1) p_(j))``.

    Parameters
    ----------
    p_values : array-like of shape (n,)
        Unadjusted p values, in any order.

    Returns
    -------
    ndarray of shape (n,)
        Adjusted p values, in the given order. Rejecting those up to a level bounds the probability of any false
        rejection by that level, for any dependence between the tests.

    Examples
    --------
    >>> from rankrls.comparison.significance import holm
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = vector_of("p_values", p_values, "one for each test")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    return adjusted


@dataclass(frozen=True)
class PairComparison:
    """One line of a :class:`Comparison`.

    Attributes
    ----------
    first, second : str
        Names of the two rankings.
    difference : float
        Mean over queries of first minus second.
    low, high : float
        Ends of its bootstrap interval.
    p_randomization, p_wilcoxon : float
        p values of Fisher's randomization test and of Wilcoxon's signed-rank test.
    p_randomization_holm, p_wilcoxon_holm : float
        The same, adjusted by Holm for the number of pairs.
    at_floor : bool
        Whether the randomization p value is the smallest that the number of draws allows.
    wins, ties, losses : int
        Queries in which first is better, equal or worse.
    n_queries, n_dropped : int
        Queries that were compared, and those without a value of both.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    p_randomization: float
    p_randomization_holm: float
    p_wilcoxon: float
    p_wilcoxon_holm: float
    at_floor: bool
    wins: int
    ties: int
    losses: int
    n_queries: int
    n_dropped: int


COLUMNS = ("", "difference", "interval", "won/tied/lost", "p randomization", "p Wilcoxon")


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Comparisons of pairs of rankings. Iterates over its lines; prints as a table.

    Attributes
    ----------
    means : dict of str to Interval
        Mean of each ranking, with its bootstrap interval.
    pairs : tuple of PairComparison
        One line per pair.
    """

    means: dict[str, Interval]
    pairs: tuple[PairComparison, ...]

    def __iter__(self) -> Iterator[PairComparison]:
        return iter(self.pairs)

    def rows(self) -> list[list[str]]:
        """Table cells as text, in the order of ``COLUMNS``; p values are adjusted, with "<" for upper bounds."""
        return [
            [
                f"{p.first} vs. {p.second}",
                f"{p.difference:+.4f}",
                f"{p.low:+.4f} to {p.high:+.4f}",
                f"{p.wins}/{p.ties}/{p.losses}",
                f"< {p.p_randomization_holm:.2g}" if p.at_floor else p_text(p.p_randomization_holm),
                p_text(p.p_wilcoxon_holm),
            ]
            for p in self.pairs
        ]

    def __str__(self) -> str:
        return table_text(COLUMNS, self.rows())


def compare_per_query(
    values: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    greater_is_better: bool = True,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: Any = None,
) -> Comparison:
    """Compare rankings pair by pair: mean difference with its interval, and p values of two tests, adjusted by Holm.

    Parameters
    ----------
    values : mapping from a name to an array-like of shape (q,)
        One value per query for each ranking, in the same query order; NaN for a query without a value.
    baseline : str, optional
        Ranking with which every other is compared (fewer pairs, less adjustment); by default, all pairs are compared.
    greater_is_better : bool
        Whether greater values are better; False for errors.
    confidence, n_resamples, random_state
        Parameters of :func:`bootstrap_interval` and :func:`paired_randomization`.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If there are fewer than two rankings, the baseline is unknown, or input is invalid, as for the tests.

    Examples
    --------
    >>> from rankrls.comparison import compare_per_query
    >>> table = compare_per_query({"ours": [0.9, 0.8, 0.7], "theirs": [0.5, 0.6, 0.7]}, random_state=0)
    >>> pair = table.pairs[0]
    >>> round(pair.difference, 3), pair.p_randomization, (pair.wins, pair.ties, pair.losses)
    (0.2, 0.5, (2, 1, 0))
    """
    rng = np.random.default_rng(random_state)
    if len(values) < 2:
        raise InputError(f"A comparison needs at least two rankings; got {len(values)}.")
    if baseline is not None:
        check_word("baseline", baseline, values)
    pairs = (
        [*combinations(values, 2)] if baseline is None else [(name, baseline) for name in values if name != baseline]
    )
    work = len(pairs) * n_resamples * max(np.size(of_one) for of_one in values.values())
    job = f"The comparison of {len(pairs)} pairs of rankings with {n_resamples} resamples"
    remedy = "Compare all with one (baseline), or use fewer (n_resamples)."
    warn_of_cost(_RESAMPLED * work, job, remedy, "n_resamples")
    by_query = {name: _per_query(of_one, "values") for name, of_one in values.items()}
    interval = partial(bootstrap_interval, confidence=confidence, n_resamples=n_resamples, random_state=rng)
    means = {name: interval(of_one) for name, of_one in by_query.items()}
    lines = []
    for first, second in progress(pairs, 0, "pairs of rankings"):
        a = by_query[first]
        b = by_query[second]
        test = paired_randomization(a, b, n_resamples=n_resamples, random_state=rng)
        ranks = paired_wilcoxon(a, b)
        gap = interval(a - b)
        won, lost = (test.wins, test.losses) if greater_is_better else (test.losses, test.wins)
        p_values = test.p_value, np.nan, ranks.p_value, np.nan, test.at_floor
        counts = won, test.ties, lost, test.n_queries, test.n_dropped
        lines.append(PairComparison(first, second, test.difference, gap.low, gap.high, *p_values, *counts))
    by_chance = holm([line.p_randomization for line in lines])
    by_rank = holm([line.p_wilcoxon for line in lines])
    adjusted = zip(lines, by_chance.tolist(), by_rank.tolist(), strict=True)
    pairs_compared = [replace(line, p_randomization_holm=p, p_wilcoxon_holm=w) for line, p, w in adjusted]
    return Comparison(means, tuple(pairs_compared))


def _differences(a: ArrayLike, b: ArrayLike) -> tuple[Array, dict[str, Any]]:
    """Differences of the queries with a value in both, rounded so that ties are 0, and the statistics to report."""
    x = _per_query(a, "a")
    z = _per_query(b, "b")
    if x.shape != z.shape:
        problem = f"a and b must contain one value for each of the same queries; got {len(x)} and {len(z)}."
        raise InputError(problem, parameter="a")
    both = ~(np.isnan(x) | np.isnan(z))
    x = _enough(x[both])
    z = z[both]
    unit = _DIGITS * float(np.abs([x, z]).max())
    d = np.round((x - z) / unit) * unit if unit > 0 else np.zeros(len(x))
    counts = {"wins": int((d > 0).sum()), "ties": int((d == 0).sum()), "losses": int((d < 0).sum())}
    counts |= {"n_queries": len(d), "n_dropped": len(both) - len(d)}
    return d, {"difference": float(np.mean(x - z)), **counts}


def _per_query(values: ArrayLike, name: str) -> Array:
    """One finite number or NaN per query, as float64; otherwise an error about the parameter ``name``."""
    x = vector_of(name, values, "one value per query")
    refuse_where(np.isinf(x), name, lambda k: f"{name} contains {x[k]} at position {k}.")
    return x


def _enough(values: Array) -> Array:
    if len(values) < 2:
        raise InputError(f"At least two queries with a value are needed; there are {len(values)}.")
    return values
