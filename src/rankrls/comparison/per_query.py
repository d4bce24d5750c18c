"""Many rankings compared pair by pair, over queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankrls.comparison.significance import (
    bootstrap_interval,
    holm,
    paired_randomization,
    paired_wilcoxon,
)
from rankrls.metrics._paired import per_query_vector

__all__ = ["Comparison", "PairComparison", "compare_per_query"]


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


@dataclass(frozen=True)
class Comparison:
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
        head = ("pair", "difference", f"{self.confidence:.0%} interval", "p", "p (Holm)", "won/tied/lost", "queries")
        lines = [
            (
                f"{p.first} - {p.second}",
                f"{p.difference:+.4f}",
                f"[{p.low:+.4f}, {p.high:+.4f}]",
                f"{p.p_value:.4f}",
                f"{p.p_holm:.4f}",
                f"{p.wins}/{p.ties}/{p.losses}",
                str(p.n_queries),
            )
            for p in self.pairs
        ]
        widths = [max(len(row[i]) for row in (head, *lines)) for i in range(len(head))]
        return "\n".join(
            "  ".join(
                cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in (head, *lines)
        )


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
    if test not in ("randomization", "wilcoxon"):
        raise ValueError(f"test must be 'randomization' or 'wilcoxon'; got {test!r}.")
    if len(values) < 2:
        raise ValueError(f"at least two rankings are needed for a comparison; got {len(values)}.")
    if baseline is not None and baseline not in values:
        raise ValueError(f"baseline {baseline!r} is not among {', '.join(map(repr, values))}.")
    rng = np.random.default_rng(random_state)
    names: Sequence[tuple[str, str]] = (
        list(combinations(values, 2)) if baseline is None else [(name, baseline) for name in values if name != baseline]
    )
    found = []
    for first, second in names:
        try:
            if test == "wilcoxon":
                outcome = paired_wilcoxon(values[first], values[second])
            else:
                outcome = paired_randomization(values[first], values[second], n_resamples=n_resamples, random_state=rng)
            gap = per_query_vector(values[first], "a") - per_query_vector(values[second], "b")
            interval = bootstrap_interval(
                gap, confidence=confidence, n_resamples=n_resamples, random_state=rng, method=method
            )
        except ValueError as error:
            raise ValueError(f"comparing {first!r} (a) with {second!r} (b): {error}") from None
        found.append((first, second, outcome, interval))
    adjusted = holm([outcome.p_value for _, _, outcome, _ in found])
    return Comparison(
        tuple(
            PairComparison(
                first,
                second,
                outcome.difference,
                interval.low,
                interval.high,
                outcome.p_value,
                float(p_holm),
                outcome.wins if greater_is_better else outcome.losses,
                outcome.ties,
                outcome.losses if greater_is_better else outcome.wins,
                outcome.n_queries,
                outcome.n_dropped,
            )
            for (first, second, outcome, interval), p_holm in zip(found, adjusted, strict=True)
        ),
        test,
        confidence,
    )
