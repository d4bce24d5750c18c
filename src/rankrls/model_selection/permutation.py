"""Permutation test of the held-out measure, with the selection of the model repeated in every permutation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length

from rankrls._checks import refusing
from rankrls._comparisons import LabelledItems
from rankrls._curves import QueryEvaluator
from rankrls._errors import InputError, warn_of_cost
from rankrls._queries import query_layout
from rankrls._shown import Shown, p_text
from rankrls._typing import AnyArray, Array, IdsLike, Index, ItemsLike, LabelsLike, Splitter, VectorLike
from rankrls.metrics._values import mean_of_judged
from rankrls.model_selection.nested import measure_of_choice
from rankrls.models.intake import labelled_items
from rankrls.models.parameters import number, options
from rankrls.models.ranker import Ranker
from rankrls.models.rankrls import RankRLSCV
from rankrls.models.spec import LeastSquaresSpec
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.pairs import concordance_of_targets
from rankrls.selection.least_squares import LeastSquaresProblem
from rankrls.selection.plans import PairsPlan, Plan, UnitsPlan
from rankrls.selection.rules import best_within_rounding, reaches
from rankrls.selection.search import EXTENSIONS, at_open_end, further, progress
from rankrls.survival import survival_pairs

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
        problem = f"Nothing was held out: this {type(model).__name__} had nothing to select. Set folds (cv)."
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
