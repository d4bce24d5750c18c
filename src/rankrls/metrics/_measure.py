"""A measure is a value: a name, a depth, and declared choices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls._queries import QueryLayout
from rankrls.metrics._conventions import Choices, Discount, Gain, choices_of, discounts_of, gains_of
from rankrls.ranking import docno_order

__all__ = ["Measure", "RankingMeasure", "mean_of_judged"]

PAIRWISE = ("disagreement", "pair_accuracy", "kendall_tau")
RANKED = ("ndcg", "average_precision", "precision", "reciprocal_rank")
ALIASES = {
    "disagreement_error": "disagreement",
    "accuracy": "pair_accuracy",
    "tau": "kendall_tau",
    "kendall": "kendall_tau",
    "map": "average_precision",
    "ap": "average_precision",
    "p": "precision",
    "mrr": "reciprocal_rank",
    "rr": "reciprocal_rank",
}
_SHORT = {"average_precision": "map", "precision": "p", "reciprocal_rank": "mrr", "kendall_tau": "tau"}
_PAIR_CHOICES = {
    "disagreement": ("tied_labels", "average"),
    "pair_accuracy": ("tied_labels", "average"),
    "kendall_tau": ("empty",),
}


class RankingMeasure(ABC):
    """Judges rankings query by query. What :func:`resolve_measure` returns.

    Attributes
    ----------
    greater_is_better : bool
        False only for errors.
    uses_sample_weight : bool
        Whether the weights of rows matter; the other measures look at positions and ignore them.
    """

    greater_is_better: bool
    uses_sample_weight: bool = False

    @abstractmethod
    def judge(
        self,
        y_true: NDArray[np.float64],
        y_score: NDArray[np.float64],
        layout: QueryLayout,
        sample_weight: NDArray[np.float64] | None = None,
        docno: Any = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Each query's values, (q, columns), and their average, (columns,), for scores (m, columns).

        NaN is a query that is not judged, and the average of none.
        """

    def per_query(
        self,
        y_true: NDArray[np.float64],
        y_score: NDArray[np.float64],
        layout: QueryLayout,
        sample_weight: NDArray[np.float64] | None = None,
        docno: Any = None,
    ) -> NDArray[np.float64]:
        """One value per query, NaN where the query is not judged.

        Parameters
        ----------
        y_true : ndarray of shape (m,)
            Labels, finite float64. Nothing is validated here.
        y_score : ndarray of shape (m,) or (m, columns)
            Scores, finite float64.
        layout : QueryLayout
            The rows of each query.
        sample_weight : ndarray of shape (m,), optional
            Row weights, for measures over pairs.
        docno : array-like of shape (m,), optional
            Document ids, for ties that are broken by them.

        Returns
        -------
        ndarray of shape (q,) or (q, columns)
        """
        values, _ = self.judge(y_true, _as_columns(y_score), layout, sample_weight, docno)
        return values[:, 0] if y_score.ndim == 1 else values

    def mean(
        self,
        y_true: NDArray[np.float64],
        y_score: NDArray[np.float64],
        layout: QueryLayout,
        sample_weight: NDArray[np.float64] | None = None,
        docno: Any = None,
    ) -> Any:
        """The average over judged queries: a float, or one number per column; NaN where no query is judged."""
        _, average = self.judge(y_true, _as_columns(y_score), layout, sample_weight, docno)
        return float(average[0]) if y_score.ndim == 1 else average


@dataclass(frozen=True, repr=False)
class Measure(RankingMeasure):
    """A measure of this package with its parameters.

    Parameters
    ----------
    name : str
        ``"disagreement"``, ``"pair_accuracy"``, ``"kendall_tau"``, ``"ndcg"``, ``"average_precision"``,
        ``"precision"`` or ``"reciprocal_rank"``, or a short name (``"map"``, ``"p"``, ``"mrr"``, ``"tau"``).
    k : int, optional
        Depth of the ranking that is looked at; all of it by default. Precision needs one, measures over pairs and
        Kendall's tau have none.
    convention : str
        The evaluation tool whose choices hold; see :func:`rankrls.metrics.ndcg` for the table.
    gain, discount, empty, ties, relevant, denominator, single_scores : optional
        Single choices that override the convention's.
    tied_labels : {"ignore", "half"}, optional
        See :func:`rankrls.metrics.disagreement_error`.
    average : {"query", "pair"}, optional
        See :func:`rankrls.metrics.disagreement_error`.

    Raises
    ------
    ValueError
        For an unknown name, depth or option, and for a choice that the measure does not have.

    Examples
    --------
    >>> from rankrls.metrics import Measure
    >>> print(Measure("ndcg", k=10))
    ndcg@10
    >>> print(Measure("map", convention="trec"))
    map(convention='trec')
    >>> Measure("disagreement").greater_is_better
    False
    """

    name: str
    k: int | None = None
    convention: str = "letor"
    gain: Gain | None = None
    discount: Discount | None = None
    empty: float | str | None = None
    ties: str | None = None
    relevant: float | None = None
    denominator: str | None = None
    single_scores: bool | None = None
    tied_labels: str | None = None
    average: str | None = None

    def __post_init__(self) -> None:
        name = ALIASES.get(self.name, self.name)
        if name not in PAIRWISE + RANKED:
            known = ", ".join(sorted((*PAIRWISE, *RANKED, *ALIASES)))
            raise InputError("unknown measure {0!r}; known are {1}.", self.name, known)
        object.__setattr__(self, "name", name)
        if isinstance(self.gain, (list, np.ndarray)):
            object.__setattr__(self, "gain", tuple(float(g) for g in self.gain))
        self._check_depth()
        given = self._given()
        if name in RANKED:
            choices_of(name, self.convention, given)
            return
        choices_of("ndcg", self.convention, {})  # an unknown convention is an error everywhere
        for choice in given:
            if choice not in _PAIR_CHOICES[name]:
                raise ValueError(
                    f"{name} does not depend on {choice!r}; its choices are {', '.join(_PAIR_CHOICES[name])}."
                )
        if self.tied_labels not in (None, "ignore", "half"):
            raise ValueError(f"tied_labels must be 'ignore' or 'half'; got {self.tied_labels!r}.")
        if self.average not in (None, "query", "pair"):
            raise ValueError(f"average must be 'query' or 'pair'; got {self.average!r}.")
        number = isinstance(self.empty, (int, float)) and -1.0 <= self.empty <= 1.0
        if self.empty is not None and self.empty != "skip" and not number:
            raise ValueError(f"empty of kendall_tau must be a number in [-1, 1] or 'skip'; got {self.empty!r}.")

    def _check_depth(self) -> None:
        if self.k is None:
            if self.name == "precision":
                raise InputError("precision needs a depth (k), as in the name 'precision@10'.")
            return
        if self.name in PAIRWISE:
            raise InputError(
                "{0} looks at all pairs and has no depth; got {1!r} for it.", self.name, self.k, parameter="k"
            )
        if isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or self.k < 1:
            raise ValueError(f"k must be a positive integer or None; got {self.k!r}.")
        object.__setattr__(self, "k", int(self.k))

    def _given(self) -> dict[str, Any]:
        """The single choices that were made."""
        outside = ("name", "k", "convention")
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in outside}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def greater_is_better(self) -> bool:  # type: ignore[override]
        """False for the disagreement error only."""
        return self.name != "disagreement"

    @property
    def uses_sample_weight(self) -> bool:  # type: ignore[override]
        """True for measures over pairs."""
        return self.name in PAIRWISE

    @property
    def choices(self) -> Choices:
        """The convention's choices with the single ones applied (measures of positions only)."""
        return choices_of(self.name, self.convention, self._given())

    def __repr__(self) -> str:
        """As it was written, without what was left at its default; an estimator's repr holds one."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.convention == "letor":
            del given["convention"]
        return f"Measure({', '.join(f'{name}={value!r}' for name, value in given.items() if value is not None)})"

    def __str__(self) -> str:
        given = {} if self.convention == "letor" or self.name in PAIRWISE else {"convention": self.convention}
        given.update(self._given())
        inside = ", ".join(f"{k}={getattr(v, '__name__', repr(v))}" for k, v in given.items())
        depth = "" if self.k is None else f"@{self.k}"
        return _SHORT.get(self.name, self.name) + (f"({inside})" if inside else "") + depth

    def judge(
        self,
        y_true: NDArray[np.float64],
        y_score: NDArray[np.float64],
        layout: QueryLayout,
        sample_weight: NDArray[np.float64] | None = None,
        docno: Any = None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.name in RANKED:
            values = self._by_position(y_true, y_score, layout, docno)
            return values, mean_of_judged(values)
        if docno is not None:
            raise ValueError(f"docno breaks ties in a ranking; {self.name} counts pairs and needs none.")
        return self._by_pairs(y_true, y_score, layout, sample_weight)

    def _by_pairs(
        self,
        y: NDArray[np.float64],
        scores: NDArray[np.float64],
        layout: QueryLayout,
        sample_weight: NDArray[np.float64] | None,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        from rankrls._compiled.pair_counts import count_pairs

        counts = count_pairs(y, scores, layout.order, layout.starts, sample_weight)
        if self.name == "kendall_tau":
            # Concordant minus discordant, over the geometric mean of the pairs not tied in y and not tied in scores.
            pairs = np.sqrt(counts.ordered[:, None] * counts.apart)
            values = _ratio(counts.ordered[:, None] - counts.level - 2.0 * counts.wrong, pairs)
            if self.empty not in (None, "skip"):
                values[pairs == 0] = self.empty
            return values, mean_of_judged(values)
        errors = counts.wrong + 0.5 * counts.level
        pairs = np.broadcast_to(counts.ordered[:, None], errors.shape)
        if self.tied_labels == "half":
            errors = errors + 0.5 * counts.tied_apart
            pairs = pairs + counts.tied[:, None]
        values = _ratio(errors, pairs)
        if self.average == "pair":
            average = _ratio(errors.sum(axis=0), pairs.sum(axis=0))
        else:
            average = mean_of_judged(values)
        return (1.0 - values, 1.0 - average) if self.name == "pair_accuracy" else (values, average)

    def _by_position(
        self, y: NDArray[np.float64], scores: NDArray[np.float64], layout: QueryLayout, docno: Any
    ) -> NDArray[np.float64]:
        from rankrls.metrics import _ranked

        choices = self.choices
        if docno is not None and choices.ties != "docno":
            raise ValueError(f"docno is used where ties='docno' (convention='trec'); here ties={choices.ties!r}.")
        if choices.single_scores:
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)
        order = layout.order if docno is None else docno_order(docno, layout)
        starts = layout.starts
        longest = int(layout.counts.max(initial=0))
        depth = longest if self.k is None else min(self.k, longest)
        if self.name == "ndcg":
            gains = gains_of(choices.gain, y)
            discounts = discounts_of(choices.discount, depth)
            values = _ranked.discounted_sums(gains, scores, order, starts, discounts=discounts, ties=choices.ties)
            best = _ranked.discounted_sums(gains, gains[:, None], order, starts, discounts=discounts, ties="row")
            return _with_empty(_ratio(values, best), best[:, 0] == 0, choices.empty)

        relevant = (y >= choices.relevant).astype(np.float64)
        found = np.bincount(layout.codes, weights=relevant, minlength=layout.n_queries)
        if self.name == "reciprocal_rank":
            values = _ranked.first_reciprocal_ranks(relevant, scores, order, starts, depth=depth, ties=choices.ties)
        elif self.name == "average_precision":
            if self.k is not None and choices.ties == "threshold":
                raise ValueError(
                    "average precision that retrieves tied items together has no depth k; choose "
                    "ties='average' or ties='row'."
                )
            sums = _ranked.average_precision_sums(relevant, scores, order, starts, depth=depth, ties=choices.ties)
            reachable = np.minimum(found, depth) if choices.denominator == "reachable" else found
            values = _ratio(sums, np.asarray(reachable, dtype=np.float64)[:, None])
        else:
            hits = _ranked.discounted_sums(relevant, scores, order, starts, discounts=np.ones(depth), ties=choices.ties)
            places = np.full(layout.n_queries, float(self.k or depth))
            if choices.denominator == "reachable":
                places = np.minimum(places, layout.counts)
            values = hits / places[:, None]
        return _with_empty(values, found == 0, choices.empty)


def mean_of_judged(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of each column over the entries that are not NaN; NaN where there are none."""
    judged = ~np.isnan(values)
    return _ratio(np.sum(values, axis=0, where=judged), judged.sum(axis=0).astype(np.float64))


def _as_columns(y_score: NDArray[np.float64]) -> NDArray[np.float64]:
    return y_score[:, None] if y_score.ndim == 1 else y_score


def _ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numerator over denominator, NaN where the denominator is zero."""
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out


def _with_empty(values: NDArray[np.float64], nothing: NDArray[np.bool_], empty: float | str) -> NDArray[np.float64]:
    values[nothing] = np.nan if empty == "skip" else empty
    return values
