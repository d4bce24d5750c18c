"""A measure is a value: a name, a depth, and declared choices."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

import numpy as np

from rankrls._checks import check_count
from rankrls._errors import InputError
from rankrls._queries import QueryLayout
from rankrls.metrics._averages import mean_of_judged
from rankrls.metrics._definition import CONVENTIONS, Array, Choices, Definition, Discount, Gain, Task
from rankrls.metrics._pairs import OVER_PAIRS
from rankrls.metrics._positions import OVER_POSITIONS

_BY_NAME: dict[str, Definition] = {name: d for d in (*OVER_PAIRS, *OVER_POSITIONS) for name in d.names}
_CHOICES = tuple(choice.name for choice in fields(Choices))
_NAME = re.compile(r"\s*([A-Za-z_]+)\s*(?:@\s*([0-9]+))?\s*")


class RankingMeasure(ABC):
    """Judges rankings query by query; :func:`resolve_measure` returns one."""

    k: int | None = None

    @property
    @abstractmethod
    def _definition(self) -> Definition:
        """How it judges."""

    @property
    def choices(self) -> Choices:
        """The choices that it judges by."""
        return CONVENTIONS["letor"]

    @property
    def greater_is_better(self) -> bool:
        """False only for errors."""
        return self._definition.greater_is_better

    @property
    def uses_sample_weight(self) -> bool:
        """Whether the weights of rows matter; measures that look at positions ignore them."""
        return self._definition.over_pairs

    @property
    def quadratic(self) -> bool:
        """Whether it is the mean squared error of score differences over all pairs of a query."""
        return self._definition.quadratic

    @property
    def uses_docno(self) -> bool:
        """Whether document ids decide between equal scores."""
        return not self._definition.over_pairs and self.choices.ties == "docno"

    @property
    def not_judged(self) -> str:
        """Why there may be no query that can be judged."""
        return self._definition.not_judged

    def judge(
        self, y_true: Array, y_score: Array, layout: QueryLayout, sample_weight: Array | None = None, docno: Any = None
    ) -> tuple[Array, Array]:
        """Each query's values, (q, columns), and their average, (columns,), for scores (m, columns).

        NaN is a query that is not judged, and the average of none.
        """
        if docno is not None and not self.uses_docno:
            problem = "{docno} is used only if {ties='docno'} ({convention='trec'}); {0} is over {1}."
            over = "pairs" if self._definition.over_pairs else f"positions with ties={self.choices.ties!r}"
            raise InputError(problem, self, over)
        return self._definition.judge(Task(y_true, y_score, layout, sample_weight, docno, self.k, self.choices))

    def judge_computed(
        self,
        y_true: Array,
        y_score: Array,
        layout: QueryLayout,
        sample_weight: Array | None = None,
        *,
        near: Any,
        overwrite: bool = False,
    ) -> tuple[Array, Array]:
        """As :meth:`judge`, of scores that rounding may have made different: near ones of a query are ties.

        ``near`` and ``overwrite`` are those of :func:`rankrls._compiled.near_ties.merge_near_ties`.
        """
        if not self._definition.merges:
            from rankrls._compiled.near_ties import merge_near_ties

            y_score = merge_near_ties(y_score, layout.order, layout.starts, near, overwrite=overwrite)
        return self._definition.judge(Task(y_true, y_score, layout, sample_weight, None, self.k, self.choices, near))

    def error_of_one(
        self, y_true: Array, y_score: Array, layout: QueryLayout, sample_weight: Array | None = None
    ) -> Array:
        """Standard errors, (columns,), of the value of one ranking with scores (m, columns).

        Over the items, by the jackknife (Efron and Stein 1981): the spread of the values without each item in turn. NaN
        for measures that are not of pairs.
        """
        return self._definition.error_of_one(Task(y_true, y_score, layout, sample_weight, None, self.k, self.choices))

    def per_query(
        self, y_true: Array, y_score: Array, layout: QueryLayout, sample_weight: Array | None = None, docno: Any = None
    ) -> Array:
        """One value per query, NaN for a query that is not judged.

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
        self, y_true: Array, y_score: Array, layout: QueryLayout, sample_weight: Array | None = None, docno: Any = None
    ) -> Any:
        """The average over judged queries: a float, or one number per column; NaN if no query is judged."""
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
        The evaluation tool whose choices are used; see :func:`rankrls.metrics.ndcg` for the table.
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
        object.__setattr__(self, "name", _definition(self.name, self.name).name)
        if isinstance(self.gain, list | np.ndarray):
            object.__setattr__(self, "gain", tuple(float(g) for g in self.gain))
        self._check_depth()
        self._definition.chosen(self.convention, self._given())

    def _check_depth(self) -> None:
        if self.k is not None and self._definition.over_pairs:
            problem = "{0} looks at all pairs and has no depth; got {1}."
            raise InputError(problem, self.name, f"k={self.k!r}", parameter="k")
        if self.k is not None:
            object.__setattr__(self, "k", check_count("k", self.k, none="all positions"))
        elif self._definition.needs_depth:
            remedy = f"Give a depth ({{k}}), as in the name '{self.name}@10'."
            raise InputError("{0} needs a depth.", self.name, remedy=remedy, parameter="k")

    @property
    def _definition(self) -> Definition:
        return _BY_NAME[self.name]

    @property
    def choices(self) -> Choices:
        """The convention's choices with the single ones applied."""
        return self._definition.chosen(self.convention, self._given())

    def _given(self) -> dict[str, Any]:
        """The single choices that were made."""
        values = {name: getattr(self, name) for name in _CHOICES}
        return {name: value for name, value in values.items() if value is not None}

    def __repr__(self) -> str:
        """As it was written, without what was left at its default; an estimator's repr holds one."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.convention == "letor":
            del given["convention"]
        return f"Measure({', '.join(f'{name}={value!r}' for name, value in given.items() if value is not None)})"

    def __str__(self) -> str:
        given = {} if self.convention == "letor" or self._definition.over_pairs else {"convention": self.convention}
        given.update(self._given())
        inside = ", ".join(f"{k}={getattr(v, '__name__', repr(v))}" for k, v in given.items())
        depth = "" if self.k is None else f"@{self.k}"
        return (self._definition.short or self.name) + (f"({inside})" if inside else "") + depth


def _as_columns(y_score: Array) -> Array:
    return y_score[:, None] if y_score.ndim == 1 else y_score


@dataclass(frozen=True)
class FunctionMeasure(RankingMeasure):
    """A user's ``function(y_true, y_score) -> float``, called once a query and column; greater is better.

    A function that returns NaN does not judge the query.
    """

    function: Callable[[Array, Array], float]

    def __str__(self) -> str:
        return str(getattr(self.function, "__name__", repr(self.function)))

    @property
    def _definition(self) -> Definition:
        return _OverFunction(str(self), self.function, {})


class _OverFunction(Definition):
    """A formula of one query's labels and scores."""

    def judge(self, task: Task) -> tuple[Array, Array]:
        values = np.empty((task.layout.n_queries, task.scores.shape[1]))
        for q in range(task.layout.n_queries):
            rows = task.layout.rows(q)
            labels, scores = task.y[rows], task.scores[rows]
            for column in range(task.scores.shape[1]):
                value = self.compute(labels, scores[:, column])
                try:
                    values[q, column] = float(value)
                except (TypeError, ValueError):
                    problem = "the measure {0} must return one number per query; it returned {1!r}."
                    raise InputError(problem, self.name, value, parameter="measure") from None
        return values, mean_of_judged(values)


def resolve_measure(measure: Any, convention: str | None = None) -> RankingMeasure:
    """The measure that a name, a measure or a function stands for.

    Parameters
    ----------
    measure : str, Measure or callable
        A name, with ``@k`` for a depth (``"ndcg@10"``, ``"map"``, ``"p@5"``, ``"mrr"``, ``"tau"``,
        ``"disagreement"``, ``"pair_accuracy"``); a :class:`Measure`, returned as it is; or
        ``function(y_true, y_score) -> float``, called once a query, greater is better.
    convention : str, optional
        The convention of a name; "letor" by default.

    Returns
    -------
    RankingMeasure
        With ``greater_is_better``, ``per_query`` and ``mean``.

    Raises
    ------
    ValueError
        For anything else; the message lists the known names.

    Examples
    --------
    >>> from rankrls.metrics import resolve_measure
    >>> resolve_measure("p@5").k
    5
    >>> print(resolve_measure("ndcg@3", convention="sklearn"))
    ndcg(convention='sklearn')@3
    """
    if isinstance(measure, RankingMeasure):
        return measure
    if isinstance(measure, str):
        found = _NAME.fullmatch(measure)
        name = _definition(found.group(1).lower() if found else "", measure).name
        depth = None if found is None or found.group(2) is None else int(found.group(2))
        return Measure(name, k=depth, convention="letor" if convention is None else convention)
    if callable(measure):
        return FunctionMeasure(measure)
    raise InputError(
        "a measure is a name such as 'ndcg@10', a rankrls.metrics.Measure or a function of (y_true, y_score); "
        "got {0!r}.",
        measure,
        parameter="measure",
    )


def _definition(name: str, given: Any) -> Definition:
    """The definition that a name stands for; ``given`` is what a user wrote."""
    if name not in _BY_NAME:
        raise InputError(
            "unknown measure {0!r}; known are {1}, those over positions with a depth such as 'ndcg@10'.",
            given,
            ", ".join(sorted(_BY_NAME)),
            remedy=_meant(str(given)),
            parameter="measure",
        )
    return _BY_NAME[name]


def _meant(given: str) -> str:
    """The measure that was perhaps meant, with its depth."""
    found = re.match(r"\s*([A-Za-z_]*)\W*([0-9]*)", given)
    assert found is not None
    near = get_close_matches(found[1].lower(), _BY_NAME, n=1)
    depth = f"@{found[2]}" if found[2] and near and not _BY_NAME[near[0]].over_pairs else ""
    return f"Did you mean {near[0] + depth!r}?" if near else ""
