"""Nested cross-validation and a permutation test, which repeat the selection of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import check_consistent_length, indexable

from rankrls._checks import check_finite, refusing, vector_of
from rankrls._comparisons import LabelledItems
from rankrls._curves import QueryEvaluator
from rankrls._errors import InputError, warn_of_cost
from rankrls._queries import query_layout
from rankrls._shown import Shown, p_text
from rankrls._typing import AnyArray, Array, IdsLike, Index, ItemsLike, LabelsLike, Matrix, Splitter, VectorLike
from rankrls.metrics._measure import Measure, mean_and_error, mean_of_judged, preference_accuracy
from rankrls.metrics._scorer import predict_by_query
from rankrls.models.fitted import ChosenAttributes
from rankrls.models.intake import labelled_items
from rankrls.models.parameters import number, options
from rankrls.models.ranker import Chooses, Ranker
from rankrls.models.rankrls import RankRLSCV
from rankrls.models.spec import LeastSquaresSpec
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.pairs import concordance_of_targets
from rankrls.selection.least_squares import LeastSquaresProblem
from rankrls.selection.plans import PairsPlan, Plan, UnitsPlan
from rankrls.selection.rules import best_within_rounding, reaches
from rankrls.selection.search import EXTENSIONS, at_open_end, further, progress
from rankrls.survival import survival_pairs


@dataclass(frozen=True, eq=False, repr=False)
class NestedEstimate(Shown):
    """Result of :func:`nested_estimate`.

    Attributes
    ----------
    score : float
        Mean of the measure over the held-out queries, or over the folds of one ranking.
    standard_error : float
        Standard error of this mean; somewhat too small, because folds share training rows.
    values : ndarray of shape (queries,) or (folds,)
        Values that are averaged; NaN if there is nothing to compare.
    choices : list of dict
        ``best_params_`` for each fold.
    fold : ndarray of shape (m,), intp
        Fold of each row, from 0.
    held_out_scores : ndarray of shape (m,)
        Score of each row by the model that was selected and fitted without the row's fold.
    measure, protocol : str
    """

    score: float
    standard_error: float
    values: Array
    choices: list[dict[str, Any]]
    fold: Index
    held_out_scores: Array
    measure: str
    protocol: str

    def __str__(self) -> str:
        score = f"{self.score:.4f} ± {self.standard_error:.4f} (standard error)"
        lines = [f"Nested {self.measure} {score}, by {self.protocol}, with the choice repeated in each"]
        for name in self.choices[0]:
            values = [each[name] for each in self.choices]
            shown = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
            if len({*shown}) > 1:
                lines.append(f"{name} of each: {', '.join(shown)}")
        return "\n".join(lines)


def nested_estimate(
    estimator: Ranker,
    X: ItemsLike,
    y: VectorLike,
    *,
    event: VectorLike | None = None,
    qid: IdsLike | None = None,
    item_id: IdsLike | None = None,
    cv: int = 5,
    random_state: int = 0,
) -> NestedEstimate:
    """Estimate the quality of a model including its selection, which is repeated without each fold.

    The held-out score of a selected model is optimistic, because the selection used it. Here each fold is scored by a
    model whose alpha, kernel, ... were selected using the other folds.

    Parameters
    ----------
    estimator : RankRLSCV, or another estimator with ``scoring``
        Estimator to evaluate; it need not be fitted and is not changed.
    X, y, qid : as in :meth:`RankRLSCV.fit`
        With ``qid``, folds contain whole queries. Otherwise they are stratified folds of rows, and rows are compared
        only within their fold, because scores of different models are not comparable.
    event : array-like of shape (m,), optional
        1 if the event was observed; y then contains right-censored times. The estimator is fitted to the pairs of
        :func:`~rankrls.survival_pairs`, with items held out, and the measure is the C-index. Folds are of items, and
        only rows with the same ``qid`` are compared.
    item_id : array-like of shape (m,), optional
        Item ids, for use with ``event``: rows with equal ids are the same item (patient) and are in the same fold. By
        default, each row is an item.
    cv : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the folds; the mean over several seeds is a better estimate.

    Returns
    -------
    NestedEstimate

    See Also
    --------
    permutation_test : Test whether the value is better than chance.
    leave_pair_out : Hold out pairs, with a fixed alpha.

    Notes
    -----
    ``cv`` fits of the estimator.

    References
    ----------
    Varma, Simon: Bias in error estimation when using cross-validation for model selection. BMC Bioinformatics 7, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLSCV
    >>> from rankrls.model_selection import nested_estimate
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=60)  # sixty patients
    >>> X = rng.normal(size=(60, 200))  # two hundred genes
    >>> X[:, :20] += 0.5 * y[:, None]
    >>> nested_estimate(RankRLSCV(scoring="pair_accuracy", alphas=(1.0, 100.0)), X, y)
    Nested pair_accuracy 0.7838 ± 0.0269 (standard error), by 5 folds of 60 rows, with the choice repeated in each
    alpha of each: 100, 100, 100, 1, 100
    """
    measure = measure_of_choice(estimator, event, "nested_estimate")
    number(least=2, whole=True)("cv", cv)
    number(least=0, whole=True)("random_state", random_state)
    y = vector_of("y", y, "one label per row")
    check_finite("y", y, "label")
    with refusing("X"):
        rows: Matrix = indexable(X, y, event)[0]
    event = None if event is None else np.asarray(event)
    layout = query_layout(qid, len(y))
    ids = None if qid is None else layout.ids[layout.codes]
    items = query_layout(np.arange(len(y)) if item_id is None else item_id, len(y), name="item_id").codes
    if item_id is not None and event is None:
        raise InputError("item_id needs censored times (event). For labels, queries are held out.", parameter="item_id")
    fold, protocol = _folds(y, event, ids, items, cv, random_state)
    scores = np.empty(len(y))
    values = np.full(cv, np.nan)
    choices = []
    for each in range(cv):
        train = np.flatnonzero(fold != each)
        test = np.flatnonzero(fold == each)
        own = None if ids is None else ids[train]
        model = clone(estimator)
        X_train, y_train = _safe_split(model, rows, y, train)
        if event is None:
            model.fit(X_train, y_train, qid=own)
        else:
            winners, losers = survival_pairs(y_train, event[train], qid=own)
            model.fit_pairs(X_train, winners, losers, item_id=items[train])
        held_out = _safe_split(model, rows, y, test, train)[0]
        scores[test] = predict_by_query(model, held_out, None if ids is None else ids[test])
        choices.append(dict(model.best_params_))
        if event is not None:
            values[each] = _concordance(scores[test], y[test], event[test], None if ids is None else ids[test])
    if event is None:
        values = measure(y, scores, qid=fold if ids is None else ids, per_query=True)
    mean, error = (float(each[0]) for each in mean_and_error(values[:, None]))
    name = "C-index" if event is not None else str(measure)
    return NestedEstimate(mean, error, values, choices, fold, scores, name, protocol)


def measure_of_choice(estimator: object, event: object, what: str) -> Measure:
    """Measure by which an estimator selects a model; other estimators are refused."""
    if not isinstance(estimator, ChosenAttributes) or not isinstance(estimator, Ranker):
        raise InputError(
            f"{what} repeats the selection of a model, so it needs an estimator with cross-validation (cv), such as "
            f"RankRLSCV; got {type(estimator).__name__}.",
            parameter="estimator",
        )
    if event is not None and not isinstance(estimator, Chooses):
        raise InputError(f"{type(estimator).__name__} cannot be fitted to censored times.", parameter="event")
    spec = estimator._spec()
    spec = spec if event is None else spec.for_preferences()
    return spec.required_measure


def _folds(
    y: Array, event: AnyArray | None, qid: AnyArray | None, items: Index, k: int, seed: int
) -> tuple[Index, str]:
    """Fold of each row, and a description of the folds."""
    rng = np.random.default_rng(seed)
    by_query = qid is not None and event is None
    layout = query_layout(qid if by_query else items, len(y))
    n = layout.n_queries
    what = "queries" if by_query else "rows" if n == len(y) else "items"
    if k > n:
        raise InputError(f"cv must be at most {n}, the number of {what}; got {k}.", parameter="cv")
    first = layout.order[layout.starts[:-1]]
    draws = np.empty(n)
    draws[layout.by_id] = rng.random(n)
    # every k successive units in the order of their labels go to different folds
    labels = [] if by_query else [y[first]] if event is None else [y[first], event[first]]
    fold = np.empty(n, dtype=np.intp)
    fold[np.lexsort([draws, *labels])] = np.concatenate([rng.permutation(k) for _ in range(0, n, k)])[:n]
    return fold[layout.codes], f"{k} folds of {n} {what}"


def _concordance(scores: Array, time: Array, event: AnyArray, qid: AnyArray | None) -> float:
    """C-index of one fold; NaN if it has no comparable pair."""
    try:
        winners, losers = survival_pairs(time, event, qid=qid)
    except InputError:
        return np.nan
    return float(preference_accuracy(scores, winners, losers))


_BATCH = 1 << 24
"""Maximum number of held-out scores of the permutations that share a factorization."""


@dataclass(frozen=True, eq=False, repr=False)
class PermutationTest(Shown):
    """Result of :func:`permutation_test`.

    Attributes
    ----------
    score : float
        Held-out measure of the selected model, ``best_score_``.
    p_value : float
        (1 + permutations at least as good) / (1 + permutations).
    permuted_scores : ndarray of shape (permutations,)
        The same measure with permuted labels.
    protocol : str
        Description of the selection and hold-out of models.
    shared : bool
        Whether the permutations shared one factorization rather than being refitted.
    """

    score: float
    p_value: float
    permuted_scores: Array
    protocol: str
    shared: bool

    def __str__(self) -> str:
        low, middle, high = np.quantile(self.permuted_scores, [0.025, 0.5, 0.975]).tolist()
        p = p_text(self.p_value)
        return (
            f"Permutation test of {self.protocol}, with the choice repeated in each permutation\n"
            f"held out {self.score:.4f}, of {len(self.permuted_scores)} permutations {middle:.4f} "
            f"({low:.4f} to {high:.4f}): p {p if p.startswith('<') else f'= {p}'}"
        )


def permutation_test(
    estimator: Ranker,
    X: ItemsLike,
    y: LabelsLike,
    *,
    n_permutations: int = 1000,
    event: VectorLike | None = None,
    qid: IdsLike | None = None,
    item_id: IdsLike | None = None,
    sample_weight: VectorLike | None = None,
    random_state: int = 0,
) -> PermutationTest:
    """Test whether the held-out measure of a selected model is better than chance.

    Labels are permuted within queries. Each permutation repeats the whole selection (of alpha, kernel, ...), and its
    best held-out measure is compared with that of the data, so that the p-value accounts for the selection.

    Parameters
    ----------
    estimator : RankRLSCV, or another estimator with ``best_score_``
        Estimator to test; it need not be fitted and is not changed.
    X, y, qid, sample_weight : as in :meth:`RankRLSCV.fit`
    n_permutations : int, default=1000
    event : array-like of shape (m,), optional
        1 if the event was observed; y then contains right-censored times, which are permuted with their events. The
        estimator is fitted to the pairs of :func:`~rankrls.survival_pairs`, with items held out.
    item_id : array-like of shape (m,), optional
        Item ids, for use with ``event``: rows with equal ids are the same item, as in :func:`nested_estimate`.
    random_state : int, default=0

    Returns
    -------
    PermutationTest

    See Also
    --------
    nested_estimate : Estimate the value on new data.
    leave_pair_out : The value with a confidence interval.

    Notes
    -----
    The graph of RankRLSCV does not depend on the labels if ``ties="include"``. If queries or pairs are held out
    exactly, the permutations are then targets of one factorization: for 150 items with 3,000 features, 1,000 of them
    took the processor time of about 13 refits, 0.15 s. All other cases are refitted: other estimators, folds of rows,
    splitters, ``event`` (comparable pairs depend on the times), ``positive``, and ``rule="one_se"``. A warning is
    issued if refits will take more than a minute, and a progress bar is shown with ``verbose`` or on a terminal.

    References
    ----------
    Phipson, Smyth: Permutation p-values should never be zero. Statistical Applications in Genetics and Molecular
    Biology 9, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLSCV
    >>> from rankrls.model_selection import permutation_test
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=40)  # forty patients
    >>> X = rng.normal(size=(40, 200))  # two hundred genes
    >>> X[:, :20] += 0.5 * y[:, None]
    >>> permutation_test(RankRLSCV(scoring="pair_accuracy"), X, y, n_permutations=99).p_value
    0.03
    """
    number(least=1, whole=True)("n_permutations", n_permutations)
    number(least=0, whole=True)("random_state", random_state)
    with refusing("X"):
        check_consistent_length(X, y, event)
    measure = measure_of_choice(estimator, event, "permutation_test")
    model: Any = clone(estimator)
    permuted = np.empty(n_permutations)
    labels: AnyArray = np.asarray(y)
    layout = query_layout(qid, len(labels))
    rng = np.random.default_rng(random_state)

    def orders(count: int) -> Index:
        """Permutations of the rows inside their queries, (count, rows)."""
        out = np.empty((count, len(labels)), dtype=np.intp)
        out[:, layout.order] = np.argsort(layout.codes + 0.5 * rng.random(out.shape), axis=1)
        return out

    def fitted(order: Index | slice) -> Any:
        if event is None:
            return model.fit(X, labels[order], qid=qid, sample_weight=sample_weight)
        winners, losers = survival_pairs(labels[order], np.asarray(event)[order], qid=qid)
        return model.fit_pairs(X, winners, losers, item_id=item_id)

    start = perf_counter()
    fitted(slice(None))
    seconds = perf_counter() - start
    score = held_out_score(model)
    protocol = model.selection_
    plan: Plan | None = None
    if event is None and isinstance(model, RankRLSCV) and labels.size == len(labels):
        spec = model._spec()
        data = labelled_items(spec, X, y, qid, sample_weight)
        plan = spec.query_plan(data)
    shared = plan is not None and _is_shared(model, plan)
    if plan is None or not shared:
        job = f"A fit for each of {n_permutations} permutations"
        remedy = "Use fewer (n_permutations), or a model with fewer values to choose from."
        warn_of_cost(seconds * n_permutations, job, remedy, "n_permutations")
        for k in progress(range(n_permutations), int(vars(model).get("verbose", 0)), "permutations"):
            permuted[k] = fitted(orders(1)[0]).best_score_
    else:
        labels = labels.ravel()
        kept = slice(None) if data.kept is None else data.kept
        size = max(1, _BATCH // (21 * data.n_rows))
        for some in np.split(permuted, range(size, len(permuted), size)):
            Y = np.asarray(labels[orders(len(some))][:, kept].T, dtype=np.float64)
            some[:] = _best_scores(spec, replace(data, Y=Y), plan)
    sign = 1.0 if measure.greater_is_better else -1.0
    good = int(np.count_nonzero(reaches(sign * permuted, sign * score, 1.0)))
    return PermutationTest(score, (1 + good) / (1 + len(permuted)), permuted, protocol, shared)


def held_out_score(model: Any) -> float:
    """``best_score_`` of a fitted model; a model without held-out data is refused."""
    score = float(vars(model).get("best_score_", np.nan))
    if np.isnan(score):
        remedy = "Set folds (cv) or validation data (X_val)."
        problem = f"Nothing was held out: this {type(model).__name__} had nothing to select. {remedy}"
        raise InputError(problem, parameter="cv")
    return score


def _is_shared(model: RankRLSCV, plan: Plan) -> bool:
    """Whether permuted labels are targets of one graph and are held out without refitting."""
    splits = isinstance(model.cv, Splitter) and not isinstance(model.cv, str)  # may depend on the labels
    plain = model.positive is False and options(model.ties) == ("include",) and model.rule == "best"
    return plain and not splits and isinstance(plan, PairsPlan | UnitsPlan)


def _best_scores(spec: LeastSquaresSpec, data: LabelledItems, plan: Plan) -> Array:
    """Best score that a search would find for each target of the data."""
    every = np.arange(data.n_targets)
    found = []
    for candidate in spec.candidates(data):
        problem = candidate.problem(data)
        (graph,) = data.numeric_graphs(candidate.setting)
        of_values = partial(_goodness, plan, problem, graph)
        grid, rounds = (problem.axis(), EXTENSIONS) if spec.grid is None else (spec.grid, 0)
        found.append(_best_of(of_values, grid, of_values(grid, every), every, rounds))
    best: Array = np.fmax.reduce(np.stack(found))
    return best if plan.greater_is_better else -best


def _best_of(
    of_values: Callable[[Array, Index], Array], grid: Array, goodness: Array, targets: Index, rounds: int
) -> Array:
    """Best of each column of goodness, the curve of a target, after extending its grid as in a search."""
    out: Array = np.fmax.reduce(goodness)
    top = best_within_rounding(goodness, 1.0).argmax(axis=0)
    continued = at_open_end(top, goodness, 1.0) if rounds else np.zeros(len(targets), dtype=bool)
    for first in (True, False):
        more = further(grid, first=first)
        where = np.flatnonzero(continued & ((top == 0) == first))
        if len(more) and len(where):
            new = of_values(more, targets[where])
            old = goodness[:, where]
            longer = (more, grid) if first else (grid, more)
            curves = (new, old) if first else (old, new)
            out[where] = _best_of(of_values, np.concatenate(longer), np.concatenate(curves), targets[where], rounds - 1)
    return out


def _goodness(plan: Plan, problem: LeastSquaresProblem, graph: LabelledGraph, values: Array, targets: Index) -> Array:
    """Goodness of each alpha for some targets, by held-out pairs or queries, (alphas, targets); greater is better."""
    if isinstance(plan, UnitsPlan):
        (chunks,) = problem.hold_out(values, QueryEvaluator(plan.measure), plan.folds)
        means = np.stack([mean_of_judged(each) for each in np.concatenate(chunks, axis=1)[targets]], axis=1)
        means[problem.unresolved(values)] = np.nan
        return means if plan.greater_is_better else -means
    (solver,) = problem.solvers
    graph = replace(graph, y=graph.y[:, targets])
    share = concordance_of_targets(solver.smoother, graph, solver.features, values, problem.setting.balance).T
    return share if plan.greater_is_better else share - 1.0
