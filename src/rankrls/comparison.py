"""Comparison of rankings, with tests of whether a difference could be due to chance.

Tests and intervals are over queries. NaN marks a query without a value, which is dropped, in pairs, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from html import escape
from importlib.resources import files
from itertools import combinations
from string import Template
from typing import Any, NamedTuple

import numpy as np

from rankrls._checks import check_count, check_word, refuse_where, vector_of
from rankrls._curves import curve_of_queries
from rankrls._errors import InputError, warn_of_cost, warn_user
from rankrls._queries import QueryLayout, query_layout
from rankrls._shown import Shown, p_text, table_text
from rankrls._typing import AnyArray, Array, IdsLike, Index, PathLike, RandomState, Values, VectorLike
from rankrls.io import PairTable, Rows, atomic_write
from rankrls.metrics._measure import (
    RUN_MEASURES,
    ByDocument,
    Measure,
    MeasureLike,
    evaluate,
    join_run,
    mean_and_error,
    named_measures,
    preference_accuracy,
    row_order_warning,
)
from rankrls.models.parameters import number
from rankrls.selection.search import progress

__all__ = [
    "ChangedQuery",
    "Comparison",
    "Interval",
    "PairComparison",
    "PairedTest",
    "RankingReport",
    "bootstrap_interval",
    "compare_per_query",
    "compare_rankings",
    "compare_runs",
    "holm",
    "paired_randomization",
    "paired_wilcoxon",
]

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


def paired_wilcoxon(a: VectorLike, b: VectorLike) -> PairedTest:
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
    >>> from rankrls.comparison import paired_wilcoxon
    >>> test = paired_wilcoxon([0.9, 0.8, 0.7, 0.6, 0.9], [0.5, 0.5, 0.5, 0.5, 0.8])
    >>> test.p_value, test.wins
    (0.0625, 5)
    """
    from scipy import stats  # imported here because the import takes a fraction of a second

    d, test = _differences(a, b)
    if not d.any():
        return test
    found = stats.wilcoxon(d[d != 0])
    return replace(test, statistic=float(found.statistic), p_value=float(found.pvalue))


def paired_randomization(
    a: VectorLike, b: VectorLike, *, n_resamples: int = 10_000, random_state: RandomState = None
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
    >>> from rankrls.comparison import paired_randomization
    >>> test = paired_randomization([0.9, 0.8, 0.7, 0.6, 0.9], [0.5, 0.5, 0.5, 0.5, 0.8])
    >>> test.p_value
    0.0625
    """
    n_resamples = check_count("n_resamples", n_resamples)
    d, test = _differences(a, b)
    nonzero = d[d != 0]  # a zero difference has no sign
    n = len(nonzero)
    observed = abs(nonzero.sum()) - 4 * _DIGITS * np.abs(nonzero).sum()

    def count_extreme(signs: AnyArray) -> int:
        return int((np.abs((2.0 * signs - 1.0) @ nonzero) >= observed).sum())

    if n < 63 and 2**n <= n_resamples:
        every = np.arange(2**n)[:, None] >> np.arange(n) & 1
        return replace(test, statistic=test.difference, p_value=count_extreme(every) / 2**n)
    rng = np.random.default_rng(random_state)
    block = max(1, _BLOCK // n)
    extreme = 0
    for start in range(0, n_resamples, block):
        size = min(block, n_resamples - start)
        extreme += count_extreme(rng.integers(0, 2, (size, n), dtype=np.int8))
    p = (1 + extreme) / (1 + n_resamples)
    return replace(test, statistic=test.difference, p_value=p, at_floor=extreme == 0)


def bootstrap_interval(
    values: VectorLike,
    *,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: RandomState = None,
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
    >>> from rankrls.comparison import bootstrap_interval
    >>> interval = bootstrap_interval([0.2, 0.4, 0.5, 0.9], random_state=0)
    >>> interval.low < interval.value == 0.5 < interval.high
    True
    """
    from scipy import stats

    number(above=0.0, below=1.0)("confidence", confidence)
    n_resamples = check_count("n_resamples", n_resamples)
    x = _per_query(values, "values")
    evaluated = _enough(x[~np.isnan(x)])
    found = stats.bootstrap(
        (evaluated,),
        np.mean,
        method="percentile",
        confidence_level=confidence,
        n_resamples=n_resamples,
        batch=max(1, _BLOCK // len(evaluated)),
        rng=np.random.default_rng(random_state),
    )
    low, high = map(float, found.confidence_interval)
    return Interval(float(evaluated.mean()), low, high, len(evaluated))


def holm(p_values: VectorLike) -> Array:
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
    >>> from rankrls.comparison import holm
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
    """Comparisons of pairs of rankings; prints as a table.

    Attributes
    ----------
    per_query : dict of str to ndarray of shape (q,)
        Values of each ranking; NaN for a query without a value.
    greater_is_better : bool
    means : dict of str to Interval
        Mean of each ranking, with its bootstrap interval.
    pairs : tuple of PairComparison
        One line per pair.
    """

    per_query: dict[str, Array]
    greater_is_better: bool
    means: dict[str, Interval]
    pairs: tuple[PairComparison, ...]

    @property
    def best(self) -> str:
        """Name of the ranking with the best mean; the first of several."""
        sign = 1.0 if self.greater_is_better else -1.0
        means = {name: sign * interval.value for name, interval in self.means.items()}
        return max(means, key=means.__getitem__)

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
    values: Mapping[str, VectorLike],
    *,
    baseline: str | None = None,
    greater_is_better: bool = True,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: RandomState = None,
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
    pairs = [*combinations(values, 2)]
    if baseline is not None:
        check_word("baseline", baseline, values)
        pairs = [(name, baseline) for name in values if name != baseline]
    by_query = {name: _per_query(of_one, "values") for name, of_one in values.items()}
    work = len(pairs) * n_resamples * max(len(of_one) for of_one in by_query.values())
    job = f"The comparison of {len(pairs)} pairs of rankings with {n_resamples} resamples"
    remedy = "Compare all with one (baseline), or use fewer (n_resamples)."
    warn_of_cost(_RESAMPLED * work, job, remedy, "n_resamples")
    interval = partial(bootstrap_interval, confidence=confidence, n_resamples=n_resamples, random_state=rng)
    means = {name: interval(of_one) for name, of_one in by_query.items()}
    lines = []
    for first, second in progress(pairs, "pairs of rankings"):
        a = by_query[first]
        b = by_query[second]
        test = paired_randomization(a, b, n_resamples=n_resamples, random_state=rng)
        ranks = paired_wilcoxon(a, b)
        gap = interval(a - b)
        won, lost = (test.wins, test.losses) if greater_is_better else (test.losses, test.wins)
        line = PairComparison(
            first=first,
            second=second,
            difference=test.difference,
            low=gap.low,
            high=gap.high,
            p_randomization=test.p_value,
            p_randomization_holm=np.nan,
            p_wilcoxon=ranks.p_value,
            p_wilcoxon_holm=np.nan,
            at_floor=test.at_floor,
            wins=won,
            ties=test.ties,
            losses=lost,
            n_queries=test.n_queries,
            n_dropped=test.n_dropped,
        )
        lines.append(line)
    by_chance = holm([line.p_randomization for line in lines])
    by_rank = holm([line.p_wilcoxon for line in lines])
    adjusted = zip(lines, by_chance.tolist(), by_rank.tolist(), strict=True)
    pairs_compared = [replace(line, p_randomization_holm=p, p_wilcoxon_holm=w) for line, p, w in adjusted]
    return Comparison(by_query, greater_is_better, means, tuple(pairs_compared))


def _differences(a: VectorLike, b: VectorLike) -> tuple[Array, PairedTest]:
    """Differences of the queries with a value in both, rounded so that ties are 0, and a test of no difference."""
    x = _per_query(a, "a")
    z = _per_query(b, "b")
    if x.shape != z.shape:
        raise InputError(
            f"a and b must contain one value for each of the same queries; got {len(x)} and {len(z)}.", parameter="a"
        )
    both = ~(np.isnan(x) | np.isnan(z))
    x = _enough(x[both])
    z = z[both]
    unit = _DIGITS * float(np.abs([x, z]).max())
    d = np.round((x - z) / unit) * unit if unit > 0 else np.zeros(len(x))
    return d, PairedTest(
        statistic=0.0,
        p_value=1.0,
        at_floor=False,
        difference=float(np.mean(x - z)),
        wins=int((d > 0).sum()),
        ties=int((d == 0).sum()),
        losses=int((d < 0).sum()),
        n_queries=len(d),
        n_dropped=len(both) - len(d),
    )


def _per_query(values: VectorLike, name: str) -> Array:
    """One finite number or NaN per query, as float64; otherwise an error about the parameter ``name``."""
    x = vector_of(name, values, "one value per query")
    refuse_where(np.isinf(x), name, lambda k: f"{name} contains {x[k]} at position {k}.")
    return x


def _enough(values: Array) -> Array:
    if len(values) < 2:
        raise InputError(f"At least two queries with a value are needed; there are {len(values)}.")
    return values


_DRAWS = 2000
_GRADED = ("map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "p@1", "p@5", "p@10", "mrr", "disagreement")
_ANY = ("disagreement", "tau")
_BINARY_TOP = 31  # largest label for which 2^label - 1 is a sensible gain


@dataclass(frozen=True)
class Evaluation:
    """Value of one measure for one ranking.

    Attributes
    ----------
    value, standard_error : float
        Average over queries and its standard error; NaN if too few queries have a value.
    n_evaluated : int
        Number of queries (or preferences) with a value.
    per_query : ndarray of shape (q,)
        Value of each query; NaN if undefined.
    unit : {"queries", "preferences"}
    """

    value: float
    standard_error: float
    n_evaluated: int
    per_query: Array
    unit: str = "queries"

    def interval(self) -> tuple[float, float] | None:
        """95 % interval: bootstrap over queries, or 1.96 standard errors of a share of preferences; None if unknown."""
        if np.isnan(self.standard_error):
            return None
        if self.unit == "queries":
            found = bootstrap_interval(self.per_query, n_resamples=_DRAWS, random_state=0)
            return found.low, found.high
        return max(self.value - 1.96 * self.standard_error, 0.0), min(self.value + 1.96 * self.standard_error, 1.0)

    def as_dict(self) -> Values:
        """Plain values for JSON."""
        return {"value": self.value, "standard_error": self.standard_error, self.unit: self.n_evaluated}


def suitable_measures(y: Array, first: Iterable[str] = ()) -> tuple[str, ...]:
    """Names of measures that suit the labels, starting with ``first``. Missing labels are NaN."""
    known = y[~np.isnan(y)]
    graded = bool(((known >= 0) & (known <= _BINARY_TOP) & (known == np.floor(known))).all())
    return tuple(dict.fromkeys((*first, *(_GRADED if graded else _ANY))))


def evaluate_rows(
    names: Sequence[str | Measure],
    convention: str,
    table: Rows,
    scores: Array,
    *,
    weights: Array | None = None,
) -> dict[str, Evaluation]:
    """Evaluate scores of the rows of a table using its labels; rows with a missing label (NaN) are left out."""
    assert table.y is not None
    rows = np.flatnonzero(~np.isnan(table.y))

    def known(column: AnyArray | None) -> AnyArray | None:
        return None if column is None else column[rows]

    values = evaluate(
        table.y[rows],
        scores[rows],
        qid=known(table.qid),
        measures=names,
        convention=convention,
        sample_weight=known(weights),
        docno=known(table.docids),
        per_query=True,
    )
    named = named_measures(names, convention).values()
    layout = query_layout(known(table.qid), len(rows))
    _warn_of_row_order(named, table.y[rows], scores[rows], layout, known(table.docids))
    return {name: evaluation_of_queries(of_queries) for name, of_queries in values.items()}


def _warn_of_row_order(
    measures: Iterable[Measure], y: Array, scores: Array, layout: QueryLayout, docno: IdsLike | None, who: str = ""
) -> None:
    """Warn if a random order of rows with equal scores would change the first measure over positions much."""
    for measure in measures:
        ordered = docno is not None and measure.choices.ties == "docno"
        if ordered or measure.definition.over_pairs:
            continue
        curve = curve_of_queries(measure, y[:, None], layout, None, np.array(scores, np.float64)[:, None, None])
        warning = row_order_warning(measure, float(curve.mean[0]), float(curve.error[0]), curve.shift_of(0), "scores")
        if warning is not None:
            warn_user(warning.replace(message=f"{who}{warning.message}"))
        return


def evaluation_of_queries(per_query: Array) -> Evaluation:
    """Average of the values of queries; NaN marks a query without a value."""
    mean, error = mean_and_error(per_query[:, None])
    evaluated = int((~np.isnan(per_query)).sum())
    return Evaluation(float(mean[0]), float(error[0]), evaluated, per_query)


def evaluate_preferences(pairs: PairTable, scores: Array, qid: AnyArray | None = None) -> Evaluation:
    """Weighted share of preferences that the scores order correctly.

    The standard error is over groups of preferences if the file has them, otherwise over preferences. ``qid`` is passed
    for a model that compares items only within queries.

    Raises
    ------
    InputError
        If no preference counts, or if one is between items of two queries.
    """
    problem = "Preference {} is between items of different queries, whose scores cannot be compared."
    try:
        if qid is not None:
            refuse_where(qid[pairs.winners] != qid[pairs.losers], "qid", problem.format)
        values = preference_accuracy(
            scores, pairs.winners, pairs.losers, strength=pairs.strength, weight=pairs.weight, per_pair=True
        )
    except InputError as error:
        raise error.replace(file=pairs.path) from None
    evaluated = ~np.isnan(values)
    weight = np.ones(len(values))[evaluated] if pairs.weight is None else pairs.weight[evaluated]
    mean = float(np.average(values[evaluated], weights=weight))
    parts = weight * (values[evaluated] - mean)
    if pairs.groups is not None:
        parts = np.bincount(np.unique(pairs.groups[evaluated], return_inverse=True)[1], parts)
    spread = float(np.linalg.norm(parts) / weight.sum()) if len(parts) > 1 else np.nan
    return Evaluation(mean, spread, int(evaluated.sum()), values, unit="preferences")


DEFAULT_MEASURES = ("map", "ndcg@1", "ndcg@5", "ndcg@10", "p@5", "mrr", "disagreement")


class ChangedQuery(NamedTuple):
    """A query that two rankings order differently.

    Attributes
    ----------
    qid : object
    items : int
        Number of its items.
    first, second : float
        The measure of each ranking.
    difference : float
        First minus second.
    """

    qid: Hashable
    items: int
    first: float
    second: float
    difference: float


@dataclass(frozen=True, repr=False)
class RankingReport(Shown):
    """Result of :func:`compare_rankings`; prints as tables.

    Attributes
    ----------
    measures : dict of str to Comparison
        Comparison by each measure in the requested order; the first is the main one.
    qid : tuple
        Ids of the queries, in the order of each comparison's ``per_query``.
    items : ndarray of shape (q,)
        Number of items per query.
    convention : str
        Convention of the measures given by name.
    confidence : float
        Confidence level of the intervals.
    """

    measures: dict[str, Comparison]
    qid: tuple[Any, ...]
    items: Index
    convention: str
    confidence: float

    def changed(self, measure: str, first: str, second: str, *, top: int = 10) -> list[ChangedQuery]:
        """Queries whose value differs most between two rankings, sorted by decreasing difference.

        Parameters
        ----------
        measure, first, second : str
            Names from the report.
        top : int, default=10
            Maximum number of queries; those without a difference are left out.
        """
        a = self.measures[measure].per_query[first]
        b = self.measures[measure].per_query[second]
        gap = np.nan_to_num(a - b)
        order = [k for k in np.argsort(-np.abs(gap), kind="stable").tolist() if gap[k] != 0.0][:top]
        return [ChangedQuery(self.qid[k], int(self.items[k]), float(a[k]), float(b[k]), float(gap[k])) for k in order]

    def __str__(self) -> str:
        tables = self.tables(top=0)
        return "\n\n".join(f"{title}\n{table_text(columns, rows)}" for title, columns, rows in tables)

    def as_dict(self, *, top: int = 10) -> Values:
        """The report as plain values for JSON, with the ``top`` most changed queries of each pair."""
        measures = {}
        for name, comparison in self.measures.items():
            pairs = []
            for line in comparison.pairs:
                changed = self.changed(name, line.first, line.second, top=top)
                pairs.append({**asdict(line), "changed_most": [query._asdict() for query in changed]})
            values = {who: asdict(interval) for who, interval in comparison.means.items()}
            about = {"greater_is_better": comparison.greater_is_better, "values": values}
            measures[name] = {**about, "pairs": pairs}
        about = {"n_queries": len(self.qid), "convention": self.convention, "confidence": self.confidence}
        return {"rankings": [*next(iter(self.measures.values())).means], **about, "measures": measures}

    def tables(self, of: str = "", *, top: int = 10) -> list[tuple[str, list[str], list[list[str]]]]:
        """Titles, columns and rows of text: the means, the differences, and the most changed queries.

        Parameters
        ----------
        of : str, optional
            Name of the ranked data.
        top : int, default=10
            Maximum number of most changed queries of each pair with the best ranking by the main measure.
        """
        means = []
        for name, comparison in self.measures.items():
            intervals = [f"{i.value:.4f} [{i.low:.4f}, {i.high:.4f}]" for i in comparison.means.values()]
            means.append([name, *intervals])
        main, comparison = next(iter(self.measures.items()))
        names = [*comparison.means]
        what = f"Rankings of {of}" if of else f"{len(names)} rankings"
        title = f"{what}, {len(self.qid)} queries, {100 * self.confidence:g} % intervals"
        out = [(title, ["", *names], means)]
        out += [(f"{name}, p values by Holm", list(COLUMNS), each.rows()) for name, each in self.measures.items()]
        for line in comparison.pairs:
            changed = self.changed(main, line.first, line.second, top=top)
            if changed and comparison.best in (line.first, line.second):
                rows = [[f"{q}", f"{n}", f"{a:.4f}", f"{b:.4f}", f"{gap:+.4f}"] for q, n, a, b, gap in changed]
                columns = ["qid", "items", line.first, line.second, "difference"]
                out.append((f"Queries whose {main} changed most", columns, rows))
        return out

    def to_html(
        self, *, title: str = "Comparison of rankings", top: int = 10, about: Mapping[str, str] | None = None
    ) -> str:
        """Return a self-contained page without scripts, for screens of any width and for print.

        Parameters
        ----------
        title : str
        top : int, default=10
            Maximum number of most changed queries, as for :meth:`tables`.
        about : mapping of str to str, optional
            Origin of the data and rankings, such as paths and hashes.
        """
        tables = [_table(*table) for table in self.tables(top=top)]
        return Template(files("rankrls").joinpath("comparison.html").read_text("utf-8")).substitute(
            title=escape(title),
            items=int(self.items.sum()),
            convention=escape(self.convention),
            tables="".join(tables),
            confidence=f"{self.confidence:.0%}",
            origin=_table("Where it comes from", ["", "from"], about.items()) if about else "",
        )

    def save_html(self, path: PathLike, **options: Any) -> None:
        """Write :meth:`to_html` to a file atomically."""
        with atomic_write(path, "w") as file:
            file.write(self.to_html(**options))


def compare_rankings(
    y_true: VectorLike,
    scores: Mapping[str, VectorLike],
    *,
    qid: IdsLike | None = None,
    measures: MeasureLike | Sequence[MeasureLike] = DEFAULT_MEASURES,
    convention: str | None = None,
    baseline: str | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: RandomState = 0,
    docno: IdsLike | None = None,
) -> RankingReport:
    """Evaluate several rankings of the same items and compare them query by query.

    Parameters
    ----------
    y_true : array-like of shape (m,)
        Labels.
    scores : mapping from a name to an array-like of shape (m,)
        Scores of two or more rankings.
    qid : array-like of shape (m,)
        One query id per row. Tests compare queries, so there must be at least two.
    measures : sequence of str, Measure or callable
        Measures; see :func:`rankrls.metrics.resolve_measure`. Each must have values for at least two queries.
    convention : str, optional
        Convention of the measures given by name; "letor" by default.
    baseline : str, optional
        Ranking with which every other is compared; by default, all pairs are compared. Holm's adjustment is over the
        pairs of one measure.
    confidence : float, default=0.95
        Confidence level of the bootstrap intervals over queries.
    n_resamples : int, default=10000
        Number of resamples of the bootstrap and of the randomization test.
    random_state : int, Generator or None, default=0
        Seed of the resamples; the same number gives the same report.
    docno : array-like of shape (m,), optional
        Document ids, as for :func:`rankrls.metrics.evaluate`.

    Returns
    -------
    RankingReport

    Raises
    ------
    ValueError
        If there is a single query, scores have another length, names or measures are unknown, or a measure has no
        values.

    See Also
    --------
    compare_runs : Compare TREC runs.
    compare_per_query : Compare values of each query from any source.
    rankrls.metrics.evaluate : Measures of one ranking.

    Notes
    -----
    O(m log m) per measure and ranking, O(q n_resamples) per pair.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls.comparison import compare_rankings
    >>> rng = np.random.default_rng(0)
    >>> y, qid = rng.integers(0, 3, size=200), np.repeat(np.arange(20), 10)
    >>> scores = {"good": y + rng.normal(size=200), "poor": y + 4 * rng.normal(size=200)}
    >>> report = compare_rankings(y, scores, qid=qid, measures=["map", "ndcg@5"])
    >>> line = report.measures["map"].pairs[0]
    >>> line.first, line.second, line.p_randomization_holm < 0.01
    ('good', 'poor', True)
    >>> [c.qid for c in report.changed("map", "good", "poor", top=1)]
    [3]
    """
    layout = query_layout(qid, len(np.asarray(y_true)))
    if layout.n_queries < 2:
        problem = "Rankings are compared over queries, but there is only one query. Pass qid, one id per row."
        raise InputError(problem, parameter="qid")

    def values_of(who: str, measure: Measure) -> Array:
        found: Array = measure(y_true, scores[who], qid=qid, docno=docno, per_query=True)
        return found

    named = named_measures(measures, convention)
    reports = _compared(
        values_of,
        list(scores),
        named,
        baseline=baseline,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=random_state,
    )
    for who, given in scores.items():
        _warn_of_row_order(named.values(), np.asarray(y_true), np.asarray(given), layout, docno, f"Ranking {who!r}: ")
    return RankingReport(reports, tuple(layout.ids.tolist()), layout.counts, convention or "letor", confidence)


def compare_runs(
    qrels: ByDocument,
    runs: Mapping[str, ByDocument],
    *,
    measures: MeasureLike | Sequence[MeasureLike] = RUN_MEASURES,
    convention: str | None = "trec",
    baseline: str | None = None,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: RandomState = 0,
) -> RankingReport:
    """Evaluate several runs with the same judgements and compare them query by query.

    Parameters
    ----------
    qrels : mapping of str to mapping of str to float
        Labels of the judged documents of each query (:func:`rankrls.io.load_qrels`).
    runs : mapping of str to run
        Two or more runs (:func:`rankrls.io.load_run`), which need not have retrieved the same documents.
    measures : sequence of str or Measure
        Measures; see :func:`rankrls.metrics.evaluate_run`, which also describes what is counted.
    convention : str, default="trec"
        Convention of the measures given by name.
    baseline, confidence, n_resamples, random_state
        See :func:`compare_rankings`.

    Returns
    -------
    RankingReport
        Report in which ``items`` counts the judged documents. Unlike in :func:`compare_rankings`, many equal scores
        cause no warning: document ids order them, unless another convention is given.

    Raises
    ------
    InputError
        If a run has no query with judgements; otherwise as for :func:`compare_rankings`.

    Examples
    --------
    >>> from rankrls.comparison import compare_runs
    >>> qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1, "d": 0}}
    >>> runs = {"new": {"q1": {"a": 2, "b": 1}, "q2": {"c": 1}}, "old": {"q1": {"b": 1}, "q2": {"d": 2, "c": 1}}}
    >>> report = compare_runs(qrels, runs, measures=["map"])
    >>> report.measures["map"].per_query["old"]
    array([0. , 0.5])
    """
    joined = {str(name): join_run(qrels, run) for name, run in runs.items()}

    def values_of(who: str, measure: Measure) -> Array:
        return joined[who].per_query(measure)

    reports = _compared(
        values_of,
        [*joined],
        named_measures(measures, convention),
        baseline=baseline,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=random_state,
    )
    judged = [query for query, labels in qrels.items() if labels]
    items = np.array([len(qrels[query]) for query in judged])
    return RankingReport(reports, tuple(judged), items, convention or "letor", confidence)


def _compared(
    values_of: Callable[[str, Measure], Array],
    names: Sequence[str],
    measures: Mapping[str, Measure],
    **options: Any,
) -> dict[str, Comparison]:
    """Comparison of the rankings by each measure, from its values for each query."""
    reports = {}
    for name, measure in measures.items():
        values = {}
        for who in names:
            try:
                values[str(who)] = values_of(who, measure)
            except InputError as error:
                parameter = "scores" if error.parameter == "y_score" else error.parameter
                raise error.replace(message=f"ranking {who!r}: {error.message}", parameter=parameter) from None
        try:
            reports[name] = compare_per_query(values, greater_is_better=measure.greater_is_better, **options)
        except InputError as error:
            raise error.replace(message=f"{name}: {error.message}") from None
    return reports


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table with a title, in HTML."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<section><h2>{escape(title)}</h2><div class="wide">{table}</div></section>'
