"""Table of measures: a formula for whole queries, and the choices that a user or a tool's convention makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from rankrls._checks import check_number, check_word
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Array, Index, Values
from rankrls.metrics._loops import (
    AVERAGE,
    CASCADE,
    PRECISIONS,
    ROW,
    SUM,
    THRESHOLD,
    compare_pairs,
    count_by_rows,
    walk_down,
    weigh_pairs,
)

LONGEST = 1500
LONGEST_WEIGHTED = 400
"""Largest number of rows of a query for which all pairs are compared, in a loop without branches; above it, scores are
sorted. Pairs of weight 1 are counted in integers, several at once."""

Gain = str | tuple[float, ...]


def _check_gain(name: str, value: Any) -> None:
    if not isinstance(value, tuple):
        check_word(name, value, ("exp2", "linear", "positive"), otherwise="a tuple of the gains of labels 0, 1, 2, ...")


def _check_empty(name: str, value: Any) -> None:
    if isinstance(value, str):
        check_word(name, value, ("skip",), otherwise="a number")
    else:
        check_number(name, value)


DEFAULTS: Values = {
    "gain": "exp2",
    "discount": "log2",
    "empty": 0.0,
    "ties": "row",
    "relevant": 1.0,
    "denominator": "nominal",
    "tied_labels": "ignore",
    "highest": 4.0,
    "persistence": 0.8,
}
"""Choices explained by :class:`rankrls.metrics.Measure`, with their defaults."""

CHECKS: dict[str, Callable[[str, Any], None]] = {
    "gain": _check_gain,
    "discount": partial(check_word, words=("log2", "letor")),
    "empty": _check_empty,
    "relevant": check_number,
    "denominator": partial(check_word, words=("nominal", "reachable")),
    "tied_labels": partial(check_word, words=("ignore", "half")),
    "highest": check_number,
    "persistence": partial(check_number, bounds={"above": 0.0, "below": 1.0}),
}

CONVENTIONS: dict[str, Values] = {
    "letor": {"discount": "letor"},
    "trec": {"gain": "positive", "ties": "docno", "single_scores": True},
    "sklearn": {"gain": "linear", "ties": "average"},
    "lightgbm": {"empty": 1.0, "denominator": "reachable"},
    "xgboost": {"empty": 1.0, "denominator": "reachable", "single_scores": True},
    "ranklib": {"denominator": "reachable"},
    "catboost": {"gain": "linear", "ties": "worst", "denominator": "reachable"},
}
"""Choices of each evaluation tool that differ from the defaults."""


def ratio(numerator: Array, denominator: AnyArray) -> Array:
    """Numerator over denominator, NaN if the denominator is not positive."""
    with np.errstate(all="ignore"):
        return np.where(denominator > 0, numerator / denominator, np.nan)


def gains_of(gain: Gain, y: Array) -> Array:
    """Gain of each label; a label without a gain is an error."""
    if isinstance(gain, tuple):
        known = (y >= 0) & (y < len(gain)) & (y == np.floor(y))
        gains = np.append(gain, np.nan)[np.where(known, y, len(gain)).astype(np.intp)]
    else:
        with np.errstate(over="ignore"):
            gains = {"exp2": np.exp2(y) - 1.0, "linear": y, "positive": np.maximum(y, 0.0)}[gain]
    good = np.isfinite(gains) & (gains >= 0)
    if not good.all():
        raise InputError(
            f"The label {y[np.argmin(good)]:g} has no gain that is finite and not negative. Shift the labels, or "
            "choose gain='linear', gain='positive' (negative labels count as 0) or the gains of labels 0, 1, 2, ...",
            parameter="gain",
        )
    return gains


@dataclass(frozen=True, eq=False)
class Chunk:
    """Whole queries with columns of scores, and the choices for their evaluation.

    Attributes
    ----------
    scores : ndarray of shape (columns, rows)
        Scores; -inf marks a row that was not retrieved, which has no position and is below all others.
    y, weights : ndarray of shape (rows,)
    starts : ndarray of shape (queries + 1,)
        First row of each query, and the number of rows.
    k : int or None
    choices : namespace
        Values of all :data:`~rankrls.metrics._table.DEFAULTS`.
    """

    scores: Array
    y: Array
    weights: Array | None
    starts: Index
    k: int | None
    choices: Any

    @property
    def n_queries(self) -> int:
        return len(self.starts) - 1

    def in_order(self, key: AnyArray | None) -> Chunk:
        """The same chunk with the rows of each query in ascending order of a key; equal keys keep their order."""
        if key is None:
            return self
        down = np.flatnonzero(key[1:] < key[:-1]) + 1
        if not np.setdiff1d(down, self.starts).size:
            return self
        order = np.lexsort((key, np.repeat(np.arange(self.n_queries), np.diff(self.starts))))
        return replace(
            self,
            scores=np.ascontiguousarray(self.scores[:, order]),
            y=self.y[order],
            weights=None if self.weights is None else self.weights[order],
        )

    def sums(self, values: AnyArray) -> AnyArray:
        """Sums of an array (..., rows) over the rows of each query."""
        return np.asarray(np.add.reduceat(values, self.starts[:-1], axis=-1))

    def relevant(self) -> tuple[Array, Array]:
        """1 for each relevant row, otherwise 0; and the number of relevant rows of each query."""
        rows = (self.y >= self.choices.relevant).astype(np.float64)
        return rows, self.sums(rows)

    def walk(self, kind: int, values: Array, discounts: Array | None = None, depths: Any = None) -> Array:
        """Result of :func:`~rankrls.metrics._loops.walk_down` to depth k, or to each query's own depth."""
        retrieved = self.sums((self.scores > -np.inf).astype(np.intp))
        depths = np.minimum(self.depth if depths is None else depths.astype(np.intp), retrieved).T
        discounts = np.ones(self.depth) if discounts is None else discounts
        negated = -self.scores
        order = np.empty(self.scores.shape, dtype=np.uint64)
        for a, b in pairwise(self.starts.tolist()):
            order[:, a:b] = negated[:, a:b].argsort(axis=1, kind="stable")
        ties = {"average": AVERAGE, "threshold": THRESHOLD}.get(self.choices.ties, ROW)
        out = np.zeros((self.n_queries, len(self.scores)))
        starts = self.starts.astype(np.intp)
        walk_down(kind, ties, self.scores, order, values, discounts, np.ascontiguousarray(depths), starts, out)
        return out

    def ideal(self, values: Array, discounts: Array) -> Array:
        """Largest possible sum of discounted values of each query, (queries,)."""
        best = replace(self, scores=values[None], choices=SimpleNamespace(ties="row"))
        return best.walk(SUM, values, discounts)[:, 0]

    @property
    def depth(self) -> int:
        """Last position that is evaluated."""
        longest = int(np.diff(self.starts).max(initial=0))
        return longest if self.k is None else min(self.k, longest)


@dataclass(frozen=True)
class Definition:
    """One measure.

    Attributes
    ----------
    name : str
    compute : callable
        Function of a :class:`Chunk` that returns the value of each query, (queries, columns); NaN if it has none.
    choices : tuple of str
        Choices that a caller may make.
    short : str
        Short name, which is printed and accepted; empty if there is none.
    own : mapping of str to mapping
        Choices of this measure that differ from those of a convention, under the convention's name; "" stands for every
        convention.
    ties : tuple of str
        Allowed values of ``ties``.
    over_pairs : bool
        Whether it is a measure over weighted pairs of rows, not over positions.
    judged_only : bool
        Whether documents of a run without a judgement are left out; otherwise they are not relevant.
    greater_is_better : bool
    depth : {"any", "needed", "none"}
        Whether k is optional, required or refused.
    """

    name: str
    compute: Callable[[Chunk], Array]
    choices: tuple[str, ...] = ()
    short: str = ""
    own: Mapping[str, Values] = field(default_factory=dict)
    ties: tuple[str, ...] = ("row", "docno", "worst", "average")
    over_pairs: bool = False
    judged_only: bool = False
    greater_is_better: bool = True
    depth: str = "any"

    def check(self, name: str, value: Any) -> None:
        """Refuse a choice that the measure does not have, or a value that the choice does not allow."""
        if name not in self.choices:
            has = ", ".join(self.choices) or "none"
            raise InputError(f"{self.name} does not depend on {name}; its choices are {has}.", parameter=name)
        if name == "ties":
            check_word(name, value, self.ties)
        else:
            CHECKS[name](name, value)

    def chosen(self, convention: str, given: Values) -> SimpleNamespace:
        """Choices of a convention, overridden by those given."""
        own = self.own.get("", {}) | self.own.get(convention, {})
        return SimpleNamespace(**{"single_scores": False} | DEFAULTS | CONVENTIONS[convention] | own | given)


def _filled(values: Array, found: Array, chunk: Chunk) -> Array:
    """Values, with the convention's value for queries that have nothing to find."""
    values[found == 0] = np.nan if chunk.choices.empty == "skip" else chunk.choices.empty
    return values


def _ndcg(chunk: Chunk) -> Array:
    gains = gains_of(chunk.choices.gain, chunk.y)
    positions = np.arange(1.0, chunk.depth + 1.0)
    discounts = 1.0 / np.log2(np.maximum(positions, 2.0) if chunk.choices.discount == "letor" else positions + 1.0)
    best = chunk.ideal(gains, discounts)
    return _filled(ratio(chunk.walk(SUM, gains, discounts), best[:, None]), best, chunk)


def _average_precision(chunk: Chunk) -> Array:
    if chunk.k is not None and chunk.choices.ties == "threshold":
        problem = "average precision with tied items as one group has no depth k."
        raise InputError(f"{problem} Choose ties='row'.", parameter="k")
    relevant, found = chunk.relevant()
    reachable = np.minimum(found, chunk.depth) if chunk.choices.denominator == "reachable" else found
    return _filled(ratio(chunk.walk(PRECISIONS, relevant), reachable[:, None]), found, chunk)


def _precision(chunk: Chunk) -> Array:
    relevant, found = chunk.relevant()
    places = np.full(chunk.n_queries, float(chunk.k or 1))
    if chunk.choices.denominator == "reachable":
        places = np.minimum(places, np.diff(chunk.starts))
    return _filled(ratio(chunk.walk(SUM, relevant), places[:, None]), found, chunk)


def _reciprocal_rank(chunk: Chunk) -> Array:
    relevant, found = chunk.relevant()
    return _filled(chunk.walk(CASCADE, relevant, 1.0 / np.arange(1.0, chunk.depth + 1.0)), found, chunk)


def _recall(chunk: Chunk) -> Array:
    relevant, found = chunk.relevant()
    return _filled(ratio(chunk.walk(SUM, relevant), found[:, None]), found, chunk)


def _success(chunk: Chunk) -> Array:
    relevant, found = chunk.relevant()
    return _filled(chunk.walk(CASCADE, relevant), found, chunk)


def _r_precision(chunk: Chunk) -> Array:
    relevant, found = chunk.relevant()
    return _filled(ratio(chunk.walk(SUM, relevant, depths=found), found[:, None]), found, chunk)


def _expected_reciprocal_rank(chunk: Chunk) -> Array:
    high = chunk.choices.highest
    if (chunk.y > high).any():
        problem = f"the label {chunk.y.max():g} is above the highest label of err, {high:g}."
        raise InputError(f"{problem} Use Measure('err', highest=...).", parameter="highest")
    satisfied = (np.exp2(np.maximum(chunk.y, 0.0)) - 1.0) / np.exp2(high)
    found = chunk.sums(satisfied)
    return _filled(chunk.walk(CASCADE, satisfied, 1.0 / np.arange(1.0, chunk.depth + 1.0)), found, chunk)


def _rank_biased_precision(chunk: Chunk) -> Array:
    relevant, found = chunk.relevant()
    persistence = chunk.choices.persistence
    discounts = (1.0 - persistence) * persistence ** np.arange(chunk.depth)
    return _filled(chunk.walk(SUM, relevant, discounts), found, chunk)


def _bpref(chunk: Chunk) -> Array:
    relevant, found = chunk.relevant()
    values = np.zeros((chunk.n_queries, len(chunk.scores)))
    for q, (a, b) in enumerate(pairwise(chunk.starts)):
        fewer = max(min(found[q], b - a - found[q]), 1.0)
        for k, scores in enumerate(chunk.scores[:, a:b]):
            order = np.argsort(-scores, kind="stable")
            hits = relevant[a:b][order]
            above = np.minimum(np.cumsum(1.0 - hits), found[q])
            values[q, k] = (1.0 - above / fewer) @ (hits * (scores[order] > -np.inf))
    return _filled(ratio(values, found[:, None]), found, chunk)


class PairCounts(NamedTuple):
    """Weights of the unordered pairs of each query; a pair of rows has weight ``w_i w_j``.

    ``ordered`` and ``tied``, (queries,), cover pairs with different and with equal labels. The others have shape
    (queries, columns): ``above`` and ``not_below`` cover pairs whose lower label is scored above, or not below, the
    other; ``apart`` covers pairs with equal labels and different scores (0 if not requested).
    """

    ordered: Array
    tied: Array
    above: Array
    not_below: Array
    apart: Array


def count_pairs(chunk: Chunk, *, same: bool) -> PairCounts:
    """Count the pairs of each query of a chunk; with ``same``, also pairs with equal labels.

    O(u^2) per column for a query of u rows where that is fastest, otherwise O(u log u).
    """
    chunk = chunk.in_order(chunk.y)
    y, starts, (columns, m) = chunk.y, chunk.starts.astype(np.intp), chunk.scores.shape
    w = np.ones(m) if chunk.weights is None else chunk.weights
    scores = np.ascontiguousarray(chunk.scores)
    counts = np.zeros((chunk.n_queries, columns, 3))
    unit = bool((w == 1.0).all())
    longest = LONGEST if unit else LONGEST_WEIGHTED
    pairs = np.zeros((2, chunk.n_queries))
    weigh_pairs(y, w, starts, pairs)
    compare_pairs(scores, y, w, unit, same, starts, longest, counts)
    for q in np.flatnonzero(np.diff(starts) > longest):
        rows = slice(starts[q], starts[q + 1])
        label = np.cumsum(np.diff(y[rows], prepend=y[rows.start]) != 0)
        for k in range(columns):
            counts[q, k] = [w[rows] @ c for c in count_by_rows(scores[k, rows], label, w[rows])]
    counts[..., 2] *= same
    return PairCounts(*pairs, *np.moveaxis(counts, -1, 0))


def disagreement(chunk: Chunk) -> Array:
    half = chunk.choices.tied_labels == "half"
    counts = count_pairs(chunk, same=half)
    pairs = counts.ordered + half * counts.tied
    return ratio(0.5 * (counts.above + counts.not_below + counts.apart), pairs[:, None])


def pair_accuracy(chunk: Chunk) -> Array:
    return 1.0 - disagreement(chunk)


def _auc(chunk: Chunk) -> Array:
    return 1.0 - disagreement(replace(chunk, y=chunk.relevant()[0]))


def _kendall_tau(chunk: Chunk) -> Array:
    # Concordant minus discordant, over the geometric mean of the pairs not tied in y and not tied in scores.
    counts = count_pairs(chunk, same=True)
    ordered = counts.ordered[:, None]
    differ = ordered - (counts.not_below - counts.above) + counts.apart
    differ[differ <= 1e-13 * ordered] = 0.0  # rounding errors of weights that are not integers
    pairs = np.sqrt(ordered * differ)
    return _filled(ratio(ordered - counts.above - counts.not_below, pairs), pairs, chunk)


def _pair_squared_error(chunk: Chunk) -> Array:
    # sum_{i<j} w_i w_j (e_i - e_j)^2 = S sum_i w_i (e_i - mean)^2, over the weight of the pairs.
    w = np.ones(len(chunk.y)) if chunk.weights is None else chunk.weights
    total = chunk.sums(w)
    squares = chunk.sums(w**2)
    lengths = np.diff(chunk.starts)
    errors = chunk.y - chunk.scores
    errors -= np.repeat(ratio(chunk.sums(w * errors), total), lengths, axis=-1)
    values = ratio(2.0 * total * chunk.sums(w * errors**2), np.where(lengths > 1, total**2 - squares, 0.0))
    return values.T


_OF_POSITIONS = ("empty", "ties")
_OF_RELEVANCE = (*_OF_POSITIONS, "relevant")
_NOTHING: Mapping[str, Values] = {"": {"empty": 0.0}}  # in every convention
_BY_ROW: Values = {"ties": ("row", "docno", "worst"), "own": {"sklearn": {"ties": "row"}}}
_PAIRS: Values = {"over_pairs": True, "judged_only": True, "depth": "none"}

MEASURES = (
    Definition("disagreement", disagreement, ("tied_labels",), greater_is_better=False, **_PAIRS),
    Definition("pair_accuracy", pair_accuracy, ("tied_labels",), **_PAIRS),
    Definition("auc", _auc, ("relevant",), **_PAIRS),
    Definition("kendall_tau", _kendall_tau, ("empty",), "tau", own={"": {"empty": "skip"}}, **_PAIRS),
    Definition("pair_squared_error", _pair_squared_error, greater_is_better=False, **_PAIRS),
    Definition("ndcg", _ndcg, (*_OF_POSITIONS, "gain", "discount"), own={"catboost": {"empty": 1.0}}),
    Definition(
        "average_precision",
        _average_precision,
        (*_OF_RELEVANCE, "denominator"),
        "map",
        own={"sklearn": {"ties": "threshold"}, "ranklib": {"denominator": "nominal"}},
        ties=("row", "docno", "worst", "threshold"),
    ),
    Definition("precision", _precision, (*_OF_RELEVANCE, "denominator"), "p", own=_NOTHING, depth="needed"),
    Definition("reciprocal_rank", _reciprocal_rank, _OF_RELEVANCE, "mrr", **_BY_ROW),
    Definition("recall", _recall, _OF_RELEVANCE, own={"catboost": {"empty": 1.0}}, depth="needed"),
    Definition("success", _success, _OF_RELEVANCE, depth="needed", **_BY_ROW | {"own": _NOTHING | _BY_ROW["own"]}),
    Definition("r_precision", _r_precision, _OF_RELEVANCE, "rprec", depth="none"),
    Definition("err", _expected_reciprocal_rank, (*_OF_POSITIONS, "highest"), **_BY_ROW),
    Definition("bpref", _bpref, _OF_RELEVANCE, judged_only=True, depth="none", **_BY_ROW),
    Definition("rbp", _rank_biased_precision, (*_OF_RELEVANCE, "persistence"), own=_NOTHING),
)

BY_NAME = {name: definition for definition in MEASURES for name in (definition.name, definition.short) if name}
