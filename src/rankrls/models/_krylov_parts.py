"""What conjugate gradients run on: the systems of all rows and of training parts, and what they are judged by.

Parts are row numbers of the same matrix, which is never copied; held-out rows of a dense one are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from rankrls._errors import InputError
from rankrls._preferences import Preferences, check_preferences
from rankrls._queries import query_layout
from rankrls.graph import PairGraph, ScoredGraph
from rankrls.graph.scored import label_varies
from rankrls.kernels import Kernel
from rankrls.metrics import RankingMeasure
from rankrls.models._base import linear_scores
from rankrls.models._krylov_selection import Judge, LabelJudge, PairJudge, Part
from rankrls.models._pair_selection import pair_blocks
from rankrls.models._problems import scored_graphs
from rankrls.models._selection import ExactHoldout, Refits, judged_queries, plan_selection, validation_set
from rankrls.models._validation import TrainingData, check_features
from rankrls.solvers.feature_rows import FeatureRows, feature_rows
from rankrls.solvers.krylov import FeatureSystem, KernelSystem, KrylovRun, MultiShiftCG, System
from rankrls.solvers.laplacian_product import laplacian_product

__all__ = ["KrylovData", "KrylovPlan", "label_plan", "pair_plan"]

_INSTEAD = (
    "Give validation data ({X_val, y_val, qid_val}), folds of your own ({cv}), or one alpha with "
    "{selection='tikhonov'}."
)
_HELD_OUT = 5
"""One in so many is held out where nothing else is said."""
Rows = NDArray[np.intp] | None
Watch = Any  # row numbers of the training items, or a matrix of other items; None watches nothing


@dataclass(frozen=True)
class Items:
    """The training items: a feature matrix, or a kernel matrix or operator.

    Attributes
    ----------
    X : ndarray, csr_array or LinearOperator
    kernel : Kernel
    centred : bool
        Whether only differences matter, so that columns may be shifted.
    rows : ndarray of intp
        Row of X of each item: all of them, but for an operator whose items of weight zero are still in it.
    """

    X: Any
    kernel: Kernel
    centred: bool
    rows: NDArray[np.intp]

    @cached_property
    def source(self) -> FeatureRows:
        return feature_rows(self.X, centred=self.centred)

    def systems(
        self, graph: ScoredGraph | PairGraph, targets: NDArray[np.float64], rows: Rows, watch: Watch
    ) -> list[tuple[System, NDArray[np.float64]]]:
        """The system of a graph over some items, with its right side, for each column of targets."""
        own = self.rows if rows is None else self.rows[rows]
        columns = [np.ascontiguousarray(t) for t in targets.T]
        system: System
        if self.kernel.is_linear:
            product = laplacian_product(self.source, graph, own)
            scores, count = self._scorer(watch)
            system = FeatureSystem(product, scores, count)
            return [(system, product.right_side(t)) for t in columns]
        by_number = isinstance(watch, np.ndarray) and watch.ndim == 1
        count = 0 if watch is None else watch.shape[0]
        system = KernelSystem(self.X, graph, own, self.rows[watch] if by_number else watch, count)
        return [(system, t) for t in columns]

    def _scorer(self, watch: Watch) -> tuple[Callable[[NDArray[np.float64]], NDArray[np.float64]] | None, int]:
        if watch is None:
            return None, 0
        if isinstance(watch, np.ndarray) and watch.ndim == 1:
            if sparse.issparse(self.X):
                return lambda p: self.source.dot(watch, p), len(watch)
            watch = self.X[watch]
        if not sparse.issparse(watch):
            # Equal rows have equal scores to the last bit here: rounding must not rank them.
            return lambda p: linear_scores(watch, p), watch.shape[0]
        other, every = feature_rows(watch, centred=False), np.arange(watch.shape[0], dtype=np.intp)
        return lambda p: other.dot(every, p), len(every)


@dataclass(frozen=True)
class KrylovData:
    """Labelled items and their graph's parameters."""

    data: TrainingData
    kernel: Kernel
    ties: Any
    balance: Any
    regression_weight: float

    @cached_property
    def items(self) -> Items:
        X, kept = self.data.X, self.data.kept
        if isinstance(X, LinearOperator) and kept is not None:
            rows = np.flatnonzero(kept)
        else:
            rows = np.arange(X.shape[0], dtype=np.intp)
        return Items(X, self.kernel, self.regression_weight == 0.0, rows)

    def part(self, rows: NDArray[np.intp]) -> TrainingData:
        """Labels, queries and weights of some rows; no features."""
        return replace(self.data, X=np.empty((self.data.layout.n_rows, 0))).rows(rows)

    def systems(self, rows: Rows, watch: Watch) -> list[tuple[System, NDArray[np.float64]]]:
        """The systems of some rows, one a target."""
        data = self.data if rows is None else self.part(rows)
        out = []
        for graph, part in scored_graphs(data, self.ties, self.balance, self.regression_weight):
            out += self.items.systems(graph, graph.F @ data.Y[:, part], rows, watch)
        return out


@dataclass
class KrylovPlan:
    """What is run and how it is judged.

    Attributes
    ----------
    kernel : Kernel
    description : str
        What is judged, in words.
    systems : callable
        From rows (or preferences) of a training part, None for all, and what is watched to systems and right sides.
    parts : list of (training rows or None, watched, Judge)
        A part of all rows is the model's own run.
    kept : ndarray of bool or None
        Which of the items given are left in the kernel matrix.
    """

    kernel: Kernel
    description: str
    systems: Callable[[Rows, Watch], list[tuple[System, NDArray[np.float64]]]]
    parts: list[tuple[Rows, Watch, Judge]]
    kept: NDArray[np.bool_] | None = None

    def runs(self, cg: MultiShiftCG, alphas: NDArray[np.float64]) -> tuple[list[KrylovRun], list[Part]]:
        """The runs of the model, and the parts that are judged."""

        def start(rows: Rows, watch: Watch) -> list[KrylovRun]:
            return [cg.init(system, right, alphas) for system, right in self.systems(rows, watch)]

        parts = [Part(start(rows, watch), judge) for rows, watch, judge in self.parts]
        if len(parts) == 1 and self.parts[0][0] is None:
            return parts[0].runs, parts
        return start(None, None), parts

    def item_coefficients(self, runs: list[KrylovRun], solutions: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Coefficients of the items that a kernel was given for, (m, targets)."""
        columns = [run.system.items(c) for run, c in zip(runs, solutions, strict=True)]  # type: ignore[attr-defined]
        a = np.column_stack(columns)
        if self.kept is None or len(a) == len(self.kept):
            return a
        out = np.zeros((len(self.kept), a.shape[1]))
        out[self.kept] = a
        return out


def label_plan(
    estimator: Any,
    given: KrylovData,
    measure: RankingMeasure,
    validation: tuple[Any, Any, Any],
    *,
    select: bool,
    rng: Any,
) -> KrylovPlan:
    """The plan of ``fit``."""
    data, cv = given.data, estimator.cv
    plan = KrylovPlan(given.kernel, "nothing held out", given.systems, [], data.kept)
    if any(part is not None for part in validation):
        if cv is not None:
            raise ValueError("Give either cv or validation data (X_val, y_val, qid_val), not both.")
        judged_on = validation_set(estimator, measure, data, *validation, kernel=estimator.kernel)
        plan.parts = [(None, judged_on.X, LabelJudge(measure, judged_on.Y, judged_on.layout))]
        plan.description = judged_on.description
    elif select or cv is not None:
        folds, plan.description = _folds(cv, data, measure, rng)
        for train, test in folds:
            held = given.part(test)
            plan.parts.append((train, test, LabelJudge(measure, held.Y, held.layout, held.weights)))
    return plan


def pair_plan(
    estimator: Any,
    X: Any,
    graph: PairGraph,
    kernel: Kernel,
    measure: RankingMeasure,
    labels: tuple[Any, Any, Any],
    pairs: tuple[Any, Any, Any, Any],
    *,
    select: bool,
    rng: Any,
) -> KrylovPlan:
    """The plan of ``fit_pairs``."""
    m = X.shape[0]
    items = Items(X, kernel, True, np.arange(m, dtype=np.intp))
    X_val, y_val, qid_val = labels
    by_pairs = any(part is not None for part in pairs)
    by_labels = not by_pairs and any(part is not None for part in labels)

    def systems(chosen: Rows, watch: Watch) -> list[tuple[System, NDArray[np.float64]]]:
        own = graph if chosen is None else _preferences_of(graph, chosen)
        return items.systems(own, own.target[:, None], None, watch)

    plan = KrylovPlan(kernel, "nothing held out", systems, [])
    if (by_pairs or by_labels) and estimator.cv is not None:
        raise ValueError("Give either cv or validation data, not both.")
    if by_labels:
        data = TrainingData(X, np.zeros((m, 1)), query_layout(None, m), None, True, False, None)
        judged_on = validation_set(estimator, measure, data, X_val, y_val, qid_val, kernel=estimator.kernel)
        plan.parts = [(None, judged_on.X, LabelJudge(measure, judged_on.Y, judged_on.layout))]
        plan.description = judged_on.description
        return plan
    if not by_pairs and not select and estimator.cv is None:
        return plan
    if str(measure) not in ("disagreement", "pair_accuracy"):
        raise InputError(
            f"Preferences are judged by 'disagreement' or 'pair_accuracy'; got {{scoring={str(measure)!r}}}, which "
            "needs labels.",
            parameter="scoring",
        )
    greater = measure.greater_is_better
    if by_pairs:
        if y_val is not None or qid_val is not None:
            raise ValueError("Give validation labels (y_val) or validation preferences (winners_val), not both.")
        winners, losers, strength, weight = pairs
        if winners is None or losers is None:
            raise ValueError("Validation preferences need both winners_val and losers_val.")
        other = None if X_val is None else check_features(estimator, X_val, kernel=estimator.kernel)
        try:
            given = check_preferences(winners, losers, m if other is None else other.shape[0], strength, weight)
        except ValueError as error:
            raise ValueError(f"Validation preferences: {error}") from None
        watched, judge = _pair_judge(given, greater, "The validation preferences")
        plan.parts = [(None, watched if other is None else other[watched], judge)]
        plan.description = f"validation data with {len(given.winners)} preferences"
        return plan
    blocks, plan.description = _pair_folds(graph, estimator.cv, rng)
    everything = np.arange(graph.n_rows)
    for block in blocks:
        held = _preferences_of(graph, block)
        watched, judge = _pair_judge(
            Preferences(held.winners, held.losers, held.strength, held.weight), greater, "Held-out preferences"
        )
        plan.parts.append((np.setdiff1d(everything, block), watched, judge))
    return plan


def _preferences_of(graph: PairGraph, chosen: NDArray[np.intp]) -> PairGraph:
    return PairGraph(
        graph.winners[chosen], graph.losers[chosen], graph.n_items, graph.strength[chosen], graph.weight[chosen]
    )


def _pair_judge(given: Preferences, greater_is_better: bool, what: str) -> tuple[NDArray[np.intp], PairJudge]:
    """The items that are watched, and the judge of their scores."""
    if not (given.weight * np.abs(given.strength)).any():
        raise ValueError(f"{what} hold none that can be judged: all have strength 0 or weight 0, or there are none.")
    watched, number = np.unique(np.concatenate((given.winners, given.losers)), return_inverse=True)
    winners, losers = np.split(number.reshape(-1), 2)
    return watched, PairJudge(winners, losers, given.strength, given.weight, greater_is_better)


def _pair_folds(graph: PairGraph, cv: Any, rng: Any) -> tuple[list[NDArray[np.intp]], str]:
    grouped = graph.groups is not None
    if cv is not None:
        blocks, description = pair_blocks(graph, cv, grouped)
        return [np.asarray(block) for block in blocks], description
    n = graph.n_blocks
    what = "groups of preferences" if grouped else "preferences"
    if n < 2:
        remedy = "Give validation data ({winners_val, losers_val})."
        raise InputError("Holding out {0} needs at least two; there is {1}.", what, n, remedy=remedy)
    count = max(1, n // _HELD_OUT)
    held = rng.permutation(n)[:count]
    rows = held if graph.groups is None else np.flatnonzero(np.isin(graph.groups, held))
    return [np.sort(rows)], f"{count} of {n} {what} held out"


def _folds(
    cv: Any, data: TrainingData, measure: RankingMeasure, rng: Any
) -> tuple[list[tuple[NDArray[np.intp], NDArray[np.intp]]], str]:
    """(training rows, held-out rows) of each part, and how to say it."""
    everything = np.arange(data.layout.n_rows)
    if cv is not None:
        plan = plan_selection(cv, measure, data, [], balances=(), regression_weight=0.0)
        if isinstance(plan, Refits):
            return plan.folds, plan.description
        assert isinstance(plan, ExactHoldout)
        blocks = [everything[block] for block in plan.blocks]
        return [(np.setdiff1d(everything, block), block) for block in blocks], plan.description
    test, description = (
        _held_out_queries(data, measure, rng) if data.layout.n_queries > 1 else _held_out_rows(data, rng)
    )
    return [(np.setdiff1d(everything, test), test)], description


def _held_out_queries(data: TrainingData, measure: RankingMeasure, rng: Any) -> tuple[NDArray[np.intp], str]:
    q = data.layout.n_queries
    judged = judged_queries(measure, data.Y[:, 0], data.layout) & label_varies(data.Y, data.layout)
    usable = data.layout.by_id[judged[data.layout.by_id]]
    if len(usable) < 2:
        raise InputError(
            "Holding out queries needs two that hold different labels; only {0} of {1} does.",
            *(len(usable), q),
            remedy=_INSTEAD,
        )
    count = max(1, len(usable) // _HELD_OUT)
    held = np.zeros(q, dtype=bool)
    held[rng.permutation(usable)[:count]] = True
    return np.flatnonzero(held[data.layout.codes]), f"{count} of {q} queries held out"


def _held_out_rows(data: TrainingData, rng: Any) -> tuple[NDArray[np.intp], str]:
    """One of every five rows in the order of their labels, so that what is held out has labels like the rest."""
    m = data.layout.n_rows
    order = np.lexsort((rng.permutation(m), data.Y[:, 0]))
    runs = [order[lo : lo + _HELD_OUT] for lo in range(0, m, _HELD_OUT)]
    if len(runs) > 1 and len(runs[-1]) < _HELD_OUT:
        runs.pop()
    held = np.array([run[rng.randint(len(run))] for run in runs])
    if (data.Y[held] == data.Y[held[:1]]).all():  # few rows: a lowest and a highest label then
        held[0], held[-1] = order[0], order[-1]
    held.sort()
    rest = np.setdiff1d(np.arange(m), held)
    if not all((data.Y[part] != data.Y[part[:1]]).any() for part in (held, rest)):
        raise InputError(
            "Too few rows to hold out a fifth of ({0} samples): the training part and the held-out part both need two "
            "different labels.",
            m,
            remedy=_INSTEAD,
        )
    return held, f"{len(held)} of {m} rows held out"
