"""How a selecting estimator judges every regularization value of a problem."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import product
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator
from sklearn.model_selection import KFold

from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls.graph import ScoredGraph
from rankrls.kernels import Kernel
from rankrls.metrics import Measure, RankingMeasure
from rankrls.models._base import expansion_scores, linear_scores
from rankrls.models._problems import BasisCandidate, Candidate, FittedProblem, SelfScoring, feature_weights
from rankrls.models._validation import (
    TrainingData,
    check_features,
    check_labels,
    check_no_extra_qid,
    holds_objects,
)
from rankrls.solvers.dual import DualProblem
from rankrls.solvers.pair_holdout import leave_pair_out_concordance, refuses_pair_holdout
from rankrls.solvers.ranksvm import HingeProblem
from rankrls.solvers.subset import SubsetProblem

__all__ = [
    "Curve",
    "ExactHoldout",
    "LeavePairOut",
    "Plan",
    "Refits",
    "ValidationSet",
    "held_out_scores",
    "judged_queries",
    "mean_and_error",
    "path_scores",
    "plan_selection",
    "query_blocks",
    "refitted",
    "validation_set",
]

MAX_PAIR_HOLDOUT = 5000
GLOBAL_FOLDS = 5


@dataclass(frozen=True)
class Curve:
    """A measure of every regularization value.

    Attributes
    ----------
    mean, error : ndarray of shape (alphas,)
        Average over what was judged, and its standard error (NaN where fewer than two were judged).
    values : ndarray of shape (judged parts, alphas) or None
        One row a query, NaN where it is not judged.
    scores : ndarray of shape (m, alphas, targets) or None
        Held-out scores of the training rows.
    """

    mean: NDArray[np.float64]
    error: NDArray[np.float64]
    values: NDArray[np.float64] | None = None
    scores: NDArray[np.float64] | None = None


class Plan(ABC):
    """A way to judge; ``description`` says it in words."""

    description: str

    @abstractmethod
    def curve(
        self, data: TrainingData, candidate: Candidate, problems: list[FittedProblem], alphas: NDArray[np.float64]
    ) -> Curve:
        """Judge every alpha."""

    def spectrum_ends(self, problems: list[FittedProblem]) -> NDArray[np.float64]:
        """Eigenvalues that the automatic grid looks at, the extreme ones among them."""
        return np.concatenate([p.problem.values for p in problems])


@dataclass(frozen=True)
class ExactHoldout(Plan):
    """Whole queries held out, one block at a time, from one factorisation."""

    measure: RankingMeasure
    blocks: list[Any]
    description: str

    def curve(
        self, data: TrainingData, candidate: Candidate, problems: list[FittedProblem], alphas: NDArray[np.float64]
    ) -> Curve:
        scores = held_out_scores(problems, self.blocks, alphas)
        everything = np.arange(data.layout.n_rows)
        if sum(len(everything[block]) for block in self.blocks) == len(everything):
            return judged(self.measure, data.Y, scores, data.layout, data.weights)
        # Folds that leave some queries in every training part: what was never held out is not judged.
        rows = np.sort(np.concatenate([everything[block] for block in self.blocks]))
        held = query_layout(data.layout.codes[rows], len(rows))
        weights = None if data.weights is None else data.weights[rows]
        curve = judged(self.measure, data.Y[rows], scores[rows], held, weights)
        assert curve.values is not None
        values = np.full((data.layout.n_queries, len(alphas)), np.nan)
        values[held.ids] = curve.values
        return Curve(curve.mean, curve.error, values, scores)


@dataclass(frozen=True)
class LeavePairOut(Plan):
    """Every pair of items of one global ranking held out in its turn."""

    greater_is_better: bool
    description: str

    def spectrum_ends(self, problems: list[FittedProblem]) -> NDArray[np.float64]:
        """Without a spectrum where an inverse for each alpha is all that this plan needs."""
        ends = [
            p.problem.extreme_values() if isinstance(p.problem, DualProblem) else p.problem.values for p in problems
        ]
        return np.concatenate(ends)

    def curve(
        self, data: TrainingData, candidate: Candidate, problems: list[FittedProblem], alphas: NDArray[np.float64]
    ) -> Curve:
        results = []
        for problem, factor, targets in candidate.pair_problems(data, problems):
            for t in range(data.Y.shape[1])[targets]:
                if (data.Y[:, t] == data.Y[0, t]).all():
                    continue  # no pair to judge by
                results.append(leave_pair_out_concordance(problem, data.Y[:, t], alphas * factor))
        mean = np.mean([r.score for r in results], axis=0)
        error = np.sqrt(np.mean([r.standard_error**2 for r in results], axis=0))
        return Curve(mean if self.greater_is_better else 1.0 - mean, error)


@dataclass(frozen=True)
class Refits(Plan):
    """Any folds: a factorisation on the training rows of each."""

    measure: RankingMeasure
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
    description: str

    def curve(
        self, data: TrainingData, candidate: Candidate, problems: list[FittedProblem], alphas: NDArray[np.float64]
    ) -> Curve:
        parts = []
        for train, test in self.folds:
            inner = data.rows(train)
            held = data.rows(test)
            inner_X, held_X = inner.X, held.X
            if candidate.kernel.name == "precomputed" and not isinstance(candidate, BasisCandidate):
                inner_X, held_X = data.X[np.ix_(train, train)], data.X[np.ix_(test, train)]
                inner = replace(inner, X=inner_X)
            scores = path_scores(held_X, inner_X, candidate.problems(inner), candidate.kernel, alphas)
            values = judged(self.measure, held.Y, scores, held.layout, held.weights).values
            assert values is not None
            parts.append(values)
        values = np.vstack(parts)
        mean, error = mean_and_error(values)
        return Curve(mean, error, values)


@dataclass(frozen=True)
class ValidationSet(Plan):
    """Rows of their own to judge on."""

    measure: RankingMeasure
    X: Any
    Y: NDArray[np.float64]
    layout: QueryLayout
    description: str

    def curve(
        self, data: TrainingData, candidate: Candidate, problems: list[FittedProblem], alphas: NDArray[np.float64]
    ) -> Curve:
        scores = path_scores(self.X, data.X, problems, candidate.kernel, alphas)
        curve = judged(self.measure, self.Y, scores, self.layout, None)
        return Curve(curve.mean, curve.error, curve.values)


def held_out_scores(
    problems: list[FittedProblem], blocks: list[Any], alphas: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Held-out scores of all targets, (m, alphas, targets)."""
    parts = [p.problem.holdout(blocks, alphas) for p in problems]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)


def path_scores(
    X: Any, X_train: Any, problems: list[FittedProblem], kernel: Kernel, alphas: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Scores of rows X under every alpha, (rows, alphas, targets)."""
    parts = []
    K = None
    for fitted in problems:
        if isinstance(fitted.problem, SelfScoring):
            parts.append(fitted.problem.scores(X, alphas)[:, :, None])
            continue
        path = fitted.problem.path(alphas)  # (alphas, coefficients, targets)
        flat = path.transpose(1, 0, 2).reshape(path.shape[1], -1)
        if isinstance(fitted.problem, (SubsetProblem, HingeProblem)) and fitted.problem.basis is not None:
            scores = expansion_scores(X, kernel.columns(fitted.problem.basis.items), flat)
        elif kernel.is_linear:
            scores = linear_scores(X, feature_weights(X_train, fitted.problem, flat))
        else:
            if K is None:
                K = X if kernel.name == "precomputed" else kernel(X, X_train)
            scores = K @ flat
        parts.append(scores.reshape(len(scores), len(alphas), -1))
    return np.concatenate(parts, axis=2)


def judged(
    measure: RankingMeasure,
    Y: NDArray[np.float64],
    scores: NDArray[np.float64],
    layout: QueryLayout,
    weights: NDArray[np.float64] | None,
) -> Curve:
    """Judge scores (m, alphas, targets): several targets are averaged query by query."""
    used = weights if measure.uses_sample_weight else None
    per_target, averages = [], []
    for t in range(Y.shape[1]):
        values, mean = measure.judge(Y[:, t], np.ascontiguousarray(scores[:, :, t]), layout, used)
        per_target.append(values)
        averages.append(mean)
    values = per_target[0] if len(per_target) == 1 else _mean_ignoring_nan(np.stack(per_target))
    _, error = mean_and_error(values)
    mean = averages[0] if len(averages) == 1 else _mean_ignoring_nan(np.stack(averages))
    return Curve(mean, error, values, scores)


def _mean_ignoring_nan(stack: NDArray[np.float64]) -> NDArray[np.float64]:
    known = ~np.isnan(stack)
    total = np.where(known, stack, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def mean_and_error(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over the judged rows of each column, and its standard error."""
    known = ~np.isnan(values)
    count = known.sum(axis=0)
    filled = np.where(known, values, 0.0)
    mean = np.divide(filled.sum(axis=0), count, out=np.full(len(count), np.nan), where=count > 0)
    squares = (np.where(known, values - mean, 0.0) ** 2).sum(axis=0)
    variance = np.divide(squares, count * (count - 1.0), out=np.full(len(count), np.nan), where=count > 1)
    return mean, np.sqrt(variance)


def query_blocks(layout: QueryLayout, groups: NDArray[np.intp] | None = None) -> list[Any]:
    """Rows of each query, or of each group of queries (a group number for every query)."""
    if groups is None:
        return [layout.rows(q) for q in range(layout.n_queries)]
    row_groups = groups[layout.codes]
    order = np.argsort(row_groups, kind="stable")
    cuts = np.searchsorted(row_groups[order], np.arange(groups.max() + 2))
    return [order[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True) if b > a]


def plan_selection(
    cv: Any,
    measure: RankingMeasure,
    data: TrainingData,
    graphs: list[ScoredGraph],
    *,
    balances: tuple[Any, ...],
    regression_weight: float,
    constrained: bool = False,
) -> Plan:
    """The plan that ``cv`` stands for; see :class:`RankRLSCV`.

    ``graphs``, one for all targets or one each, have their ties excluded where any combination excludes them: they
    decide whether leave-pair-out is exact for all of them.
    """
    q = data.layout.n_queries
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        return _folds(int(cv), measure, data)
    if cv is not None:
        return _given_folds(cv, measure, data)
    if q > 1:
        comparable = int(np.any([graph.has_ordered_pair for graph in graphs], axis=0).sum())
        if comparable < 2:
            raise InputError(
                "Leave-query-out needs two queries that hold different labels; only {0} of {1} does.",
                *(comparable, q),
                remedy="Give validation data ({X_val, y_val, qid_val}) or folds of your own ({cv}).",
            )
        return ExactHoldout(measure, query_blocks(data.layout), f"leave-query-out over {q} queries")
    reason = None
    if not _is_concordance(measure):
        reason = f"{measure} is no average over ordered pairs"
    elif constrained:
        reason = "the signs of weights are constrained"
    elif data.layout.n_rows > MAX_PAIR_HOLDOUT:
        reason = f"more than {MAX_PAIR_HOLDOUT} items"
    else:
        reason = next(
            (
                why
                for graph, balance in product(graphs, balances)
                if (
                    why := refuses_pair_holdout(
                        graph,
                        balance=balance,
                        regression_weight=regression_weight,
                        weighted=data.weights is not None,
                    )
                )
            ),
            None,
        )
    if reason is None:
        return LeavePairOut(measure.greater_is_better, f"leave-pair-out over {data.layout.n_rows} items")
    return _folds(min(GLOBAL_FOLDS, data.layout.n_rows), measure, data)


def refitted(plan: Plan, data: TrainingData) -> Plan:
    """The same folds by refits, for problems that have no exact hold-out."""
    if not isinstance(plan, ExactHoldout):
        return plan
    rows = np.arange(data.layout.n_rows)
    return Refits(plan.measure, [(np.delete(rows, block), rows[block]) for block in plan.blocks], plan.description)


def _is_concordance(measure: RankingMeasure) -> bool:
    """Whether the measure is what leave-pair-out counts: pairs with different labels, predicted ties half."""
    return (
        isinstance(measure, Measure)
        and measure.name in ("disagreement", "pair_accuracy")
        and measure.tied_labels in (None, "ignore")
    )


def _folds(k: int, measure: RankingMeasure, data: TrainingData) -> Plan:
    if k < 2:
        raise InputError("{cv} must be at least 2 folds; got {0}.", k, parameter="cv")
    q, m = data.layout.n_queries, data.layout.n_rows
    if q == 1:
        if k > m:
            raise InputError(f"{{cv={k}}} folds need {k} rows; there are {m}.", parameter="cv")
        splits = KFold(k, shuffle=True, random_state=0).split(np.empty(m))
        return Refits(measure, [_pair_of_rows(s) for s in splits], f"{k} folds of {m} rows")
    if k > q:
        remedy = "Leave-query-out needs no number."
        raise InputError(f"{{cv={k}}} folds need {k} queries; there are {q}.", remedy=remedy, parameter="cv")
    groups = np.empty(q, dtype=np.intp)
    for fold, (_, test) in enumerate(KFold(k, shuffle=True, random_state=0).split(np.empty(q))):
        groups[data.layout.by_id[test]] = fold
    return ExactHoldout(measure, query_blocks(data.layout, groups), f"{k} folds of {q} queries")


def _given_folds(cv: Any, measure: RankingMeasure, data: TrainingData) -> Plan:
    m = data.layout.n_rows if data.kept is None else len(data.kept)
    if hasattr(cv, "split") and not isinstance(cv, str):
        splits = cv.split(np.empty((m, 1)), *_labels_and_groups(cv, data, m))
        name = type(cv).__name__
    elif hasattr(cv, "__iter__") and not isinstance(cv, str):
        splits, name = cv, "given folds"
    else:
        raise ValueError(f"cv must be None, a number of folds, a splitter or (train, test) row lists; got {cv!r}.")
    folds = [_pair_of_rows(s) for s in splits]
    if not folds:
        raise ValueError("cv gave no folds.")
    for number, (train, test) in enumerate(folds):
        for part, rows_of_part in (("training", train), ("test", test)):
            if not len(rows_of_part):
                raise ValueError(f"Fold {number} of cv has no {part} rows.")
            outside = rows_of_part[(rows_of_part < 0) | (rows_of_part >= m)]
            if len(outside):
                raise ValueError(f"Fold {number} of cv names row {outside[0]}, but the rows are 0 to {m - 1}.")
        if len(np.intersect1d(train, test)):
            raise ValueError(f"Fold {number} of cv has rows that are both for training and for testing.")
    if data.kept is not None:  # rows of weight zero are gone
        number_left = np.cumsum(data.kept) - 1
        folds = [tuple(number_left[part[data.kept[part]]] for part in fold) for fold in folds]  # type: ignore[misc]
        folds = [fold for fold in folds if len(fold[0]) and len(fold[1])]
        if not folds:
            raise ValueError("No fold of cv has both training and test rows of positive weight.")
    if _whole_queries(folds, data.layout):
        blocks: list[Any] = [test for _, test in folds]
        return ExactHoldout(measure, blocks, f"{len(folds)} folds of whole queries ({name})")
    return Refits(measure, folds, f"{len(folds)} folds of rows ({name})")


def _labels_and_groups(cv: Any, data: TrainingData, m: int) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    """What a splitter is given besides the number of rows; rows of weight zero get a label and a query of others."""
    layout = data.layout
    rows = slice(None) if data.kept is None else data.kept
    y = np.zeros(m)
    y[rows] = data.Y[:, 0]
    routing = getattr(cv, "get_metadata_routing", None)
    if not data.has_qid or (routing is not None and not routing().consumes("split", ["groups"])):
        return y, None
    # The ids themselves where they can be sorted: the folds are then those that the splitter makes of qid elsewhere.
    ids = np.arange(layout.n_queries) if layout.ids.dtype.kind == "O" else layout.ids
    groups = np.full(m, ids[0])
    groups[rows] = ids[layout.codes]
    return y, groups


def _whole_queries(folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]], layout: QueryLayout) -> bool:
    """Whether the folds hold out whole queries, each at most once, and train on everything else."""
    if layout.n_queries < 2:
        return False
    held = np.zeros(layout.n_rows, dtype=np.intp)
    for train, test in folds:
        np.add.at(held, test, 1)
        if len(np.unique(train)) + len(test) != layout.n_rows or len(train) + len(test) != layout.n_rows:
            return False
        inside = np.bincount(layout.codes[test], minlength=layout.n_queries)
        if not np.isin(inside - layout.counts * (inside > 0), 0).all():
            return False
    return bool(held.max() <= 1)


def _pair_of_rows(split: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    try:
        train, test = (np.asarray(part) for part in split)
        if all(part.ndim == 1 and (part.dtype.kind in "iu" or not len(part)) for part in (train, test)):
            return train.astype(np.intp), test.astype(np.intp)
    except (TypeError, ValueError):
        pass
    raise ValueError("cv must give pairs of lists of row numbers, (train, test); masks are not row numbers.")


def validation_set(
    estimator: Any, measure: RankingMeasure, data: TrainingData, X_val: Any, y_val: Any, qid_val: Any, *, kernel: Any
) -> ValidationSet:
    """Check rows of their own to judge on, given beside the training data of a ``fit``.

    ``X`` of the result has the columns that a model of ``data`` takes: with a precomputed kernel those of the rows
    that were kept.
    """
    if X_val is None or y_val is None:
        raise ValueError("Validation data need both X_val and y_val (and qid_val where fit has qid).")
    check_no_extra_qid(data.has_qid, qid_val, "fit's validation data (qid_val)")
    X = check_features(estimator, X_val, kernel=kernel)
    Y, _ = check_labels(y_val)
    rows = len(X) if holds_objects(X_val, kernel) else X.shape[0]
    if len(Y) != rows:
        raise ValueError(f"X_val has {rows} rows but y_val has {len(Y)} labels.")
    if Y.shape[1] != data.Y.shape[1]:
        raise ValueError(f"y_val has {Y.shape[1]} targets but y has {data.Y.shape[1]}.")
    if kernel == "precomputed" and data.kept is not None and not isinstance(data.X, LinearOperator):
        if isinstance(X, LinearOperator):
            raise ValueError("With rows of weight zero, X and X_val must both be matrices, or both LinearOperators.")
        X = X[:, data.kept]
    layout = query_layout(qid_val, rows)
    if not rows or not judged_queries(measure, Y[:, 0], layout).any():
        raise InputError("The validation data hold no query that the measure can judge (two different labels).")
    q = layout.n_queries
    return ValidationSet(measure, X, Y, layout, f"validation data with {q} {'query' if q == 1 else 'queries'}")


def judged_queries(measure: RankingMeasure, y: NDArray[np.float64], layout: QueryLayout) -> NDArray[np.bool_]:
    """Which queries the measure has a value for, whatever ranks them: it is asked about the ideal ranking.

    A ranking of nothing but ties has no Kendall's tau, so that equal scores would not do.
    """
    return ~np.isnan(measure.per_query(y, y, layout))
