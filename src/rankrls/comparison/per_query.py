"""Many rankings compared pair by pair, over queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls._shown import Shown, p_text, table_text
from rankrls.comparison.significance import PairedTest, bootstrap_interval, holm, paired_randomization, paired_wilcoxon
from rankrls.metrics._paired import paired_differences, per_query_vector


@dataclass(frozen=True)
class PairComparison:
    """One line of a :class:`Comparison`; ``difference`` is first minus second, with its bootstrap interval."""

    first: str
    second: str
    difference: float
    low: float
    high: float
    p_value: float
    p_holm: float
    wins: int
    ties: int
    losses: int
    n_queries: int
    n_dropped: int


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Every pair of rankings compared. Iterates over its lines; prints as a table.

    Attributes
    ----------
    pairs : tuple of PairComparison
        One line a pair.
    test : str
        The test behind the p values.
    confidence : float
        Level of the intervals, each for its own pair.
    """

    pairs: tuple[PairComparison, ...]
    test: str
    confidence: float

    def __iter__(self) -> Iterator[PairComparison]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def __str__(self) -> str:
        level = f"{self.confidence:.0%} interval"
        head = ("pair", "difference", level, "p", "p (Holm)", "won/tied/lost", "queries")
        lines = [
            (
                f"{p.first} - {p.second}",
                f"{p.difference:+.4f}",
                f"[{p.low:+.4f}, {p.high:+.4f}]",
                p_text(p.p_value),
                p_text(p.p_holm),
                f"{p.wins}/{p.ties}/{p.losses}",
                str(p.n_queries),
            )
            for p in self.pairs
        ]
        return table_text(head, lines)


def compare_per_query(
    values: Mapping[str, ArrayLike],
    *,
    test: str = "randomization",
    baseline: str | None = None,
    greater_is_better: bool = True,
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    random_state: Any = None,
    method: str = "percentile",
) -> Comparison:
    """Compare rankings pair by pair: mean difference with its interval, p value, p value adjusted by Holm.

    Parameters
    ----------
    values : mapping from a name to an array-like of shape (q,)
        One value per query for each ranking, in the same order of queries; NaN is a query that is not judged.
    test : {"randomization", "wilcoxon"}
        See :func:`paired_randomization` and :func:`paired_wilcoxon`.
    baseline : str, optional
        Compare every other ranking with this one only (fewer pairs, gentler adjustment); all pairs by default.
    greater_is_better : bool
        Which side of a difference is a win; set it False for errors.
    confidence, n_resamples, random_state, method
        See :func:`bootstrap_interval` and :func:`paired_randomization`.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        For fewer than two rankings, unknown options, and what the tests refuse; the message names the pair.

    Examples
    --------
    >>> from rankrls.comparison import compare_per_query
    >>> table = compare_per_query({"ours": [0.9, 0.8, 0.7], "theirs": [0.5, 0.6, 0.7]}, random_state=0)
    >>> pair = table.pairs[0]
    >>> round(pair.difference, 3), pair.p_value, (pair.wins, pair.ties, pair.losses)
    (0.2, 0.5, (2, 1, 0))
    """
    rng = np.random.default_rng(random_state)
    by_chance = partial(paired_randomization, n_resamples=n_resamples, random_state=rng)
    tests: dict[str, Callable[[Any, Any], PairedTest]] = {"randomization": by_chance, "wilcoxon": paired_wilcoxon}
    check_word("test", test, tests)
    if len(values) < 2:
        raise InputError("at least two rankings are needed for a comparison; got {0}.", len(values))
    if baseline is not None and baseline not in values:
        known = ", ".join(map(repr, values))
        raise InputError("{baseline} {0!r} is not among {1}.", baseline, known)
    names = combinations(values, 2) if baseline is None else ((name, baseline) for name in values if name != baseline)
    lines = []
    for first, second in names:
        a, b = values[first], values[second]
        try:
            outcome = tests[test](a, b)
            gap = per_query_vector(a, "a") - per_query_vector(b, "b")
            interval = bootstrap_interval(
                gap, confidence=confidence, n_resamples=n_resamples, random_state=rng, method=method
            )
        except InputError as error:
            raise error.prefixed("comparing {0!r} (a) with {1!r} (b): ", first, second) from None
        counts = paired_differences(a, b).counts(greater_is_better)
        ends = interval.low, interval.high
        lines.append(PairComparison(first, second, outcome.difference, *ends, outcome.p_value, np.nan, **counts))
    return _adjusted(lines, [line.p_value for line in lines], test, confidence)


def by_wilcoxon(found: Comparison, values: Mapping[str, ArrayLike]) -> Comparison:
    """The same pairs, with their intervals, by Wilcoxon's test."""
    p_values = [paired_wilcoxon(values[line.first], values[line.second]).p_value for line in found]
    return _adjusted(found.pairs, p_values, "wilcoxon", found.confidence)


def _adjusted(lines: Sequence[PairComparison], p_values: Sequence[float], test: str, confidence: float) -> Comparison:
    both = zip(lines, p_values, holm(p_values).tolist(), strict=True)
    return Comparison(tuple(replace(line, p_value=p, p_holm=h) for line, p, h in both), test, confidence)
