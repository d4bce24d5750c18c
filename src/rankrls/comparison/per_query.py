"""Many rankings compared pair by pair, over queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankrls._errors import InputError
from rankrls._shown import Shown, p_text, table_text
from rankrls.comparison.significance import (
    bootstrap_interval,
    holm,
    paired_randomization,
    paired_wilcoxon,
    per_query_vector,
)


@dataclass(frozen=True)
class PairComparison:
    """One line of a :class:`Comparison`.

    ``difference`` is the mean of first minus second, with its bootstrap interval from ``low`` to ``high``. The p values
    are those of Fisher's randomization test and of Wilcoxon's signed-rank test, as they are and adjusted by Holm for
    the number of pairs. If ``at_floor``, those of randomization are the smallest that so many draws can show.
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

    @property
    def p_texts(self) -> tuple[str, str]:
        """The adjusted p values as people read them; one that may be smaller still with "<"."""
        p = self.p_randomization_holm
        return f"< {p:.2g}" if self.at_floor else p_text(p), p_text(self.p_wilcoxon_holm)


COLUMNS = ("", "difference", "interval", "won/tied/lost", "p randomization", "p Wilcoxon")


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Every pair of rankings compared. Iterates over its lines; prints as a table.

    Attributes
    ----------
    pairs : tuple of PairComparison
        One line a pair.
    confidence : float
        Level of the intervals, each for its own pair.
    """

    pairs: tuple[PairComparison, ...]
    confidence: float

    def __iter__(self) -> Iterator[PairComparison]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    def rows(self) -> list[list[str]]:
        """Cells of text, in the order of ``COLUMNS``; the p values are adjusted."""
        return [
            [
                f"{p.first} - {p.second}",
                f"{p.difference:+.4f}",
                f"{p.low:+.4f} to {p.high:+.4f}",
                f"{p.wins}/{p.ties}/{p.losses}",
                *p.p_texts,
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
        One value per query for each ranking, in the same order of queries; NaN is a query that is not judged.
    baseline : str, optional
        Compare every other ranking with this one only (fewer pairs, gentler adjustment); all pairs by default.
    greater_is_better : bool
        Which side of a difference is a win; set it False for errors.
    confidence, n_resamples, random_state
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
    >>> round(pair.difference, 3), pair.p_randomization, (pair.wins, pair.ties, pair.losses)
    (0.2, 0.5, (2, 1, 0))
    """
    rng = np.random.default_rng(random_state)
    if len(values) < 2:
        raise InputError(f"at least two rankings are needed for a comparison; got {len(values)}.")
    if baseline is not None and baseline not in values:
        known = ", ".join(map(repr, values))
        raise InputError(f"baseline {baseline!r} is not among {known}.", parameter="baseline")
    names = combinations(values, 2) if baseline is None else ((name, baseline) for name in values if name != baseline)
    found = []
    for first, second in names:
        a, b = values[first], values[second]
        try:
            test = paired_randomization(a, b, n_resamples=n_resamples, random_state=rng)
            ranks = paired_wilcoxon(a, b)
            gap = per_query_vector(a, "a") - per_query_vector(b, "b")
            interval = bootstrap_interval(gap, confidence=confidence, n_resamples=n_resamples, random_state=rng)
        except InputError as error:
            raise error.replace(message=f"comparing {first!r} (a) with {second!r} (b): {error.message}") from None
        found.append((first, second, test, ranks, interval))
    by_chance, by_rank = holm([f[2].p_value for f in found]), holm([f[3].p_value for f in found])
    lines = []
    for (first, second, test, ranks, interval), p, p_ranks in zip(found, by_chance, by_rank, strict=True):
        won, lost = (test.wins, test.losses) if greater_is_better else (test.losses, test.wins)
        p_values = test.p_value, float(p), ranks.p_value, float(p_ranks), test.at_floor
        counts = won, test.ties, lost, test.n_queries, test.n_dropped
        lines.append(PairComparison(first, second, test.difference, interval.low, interval.high, *p_values, *counts))
    return Comparison(tuple(lines), confidence)
