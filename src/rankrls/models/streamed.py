"""Fits of data larger than memory: what an estimator searches are problems whose equations were added up over parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._comparisons import Setting
from rankrls._errors import InputError
from rankrls._queries import in_words
from rankrls.kernels import Kernel
from rankrls.metrics import RankingMeasure, resolve_measure
from rankrls.metrics._averages import mean_and_error
from rankrls.models import fitting
from rankrls.models.basis import basis_size, generator
from rankrls.models.inputs.parameters import options
from rankrls.models.inputs.signs import constrained_signs
from rankrls.numerics.basis import Basis
from rankrls.numerics.nonnegative import signed_path
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import Equations, Smoother
from rankrls.selection.folds import check_two_vary
from rankrls.selection.judging import Curve
from rankrls.selection.least_squares import BasisForm
from rankrls.selection.plans import Plan
from rankrls.selection.search import search
from rankrls.streaming.executors import map_parts
from rankrls.streaming.fitting import Model, Summed, check_streams, held_out_values, sum_equations, validated_values


@dataclass(frozen=True, eq=False)
class StreamedData:
    """A data set as the data of a fit."""

    dataset: Any
    executor: Any
    n_queries: int = 0
    has_qid: bool = True
    one_target: bool = True

    def settings(self, ties: Any, balances: Any, regression_weight: float) -> Iterator[tuple[Setting, dict[str, Any]]]:
        """The graphs to try, and what each chooses."""
        for t in ties:
            for b in balances:
                yield Setting(t, b, regression_weight), {"ties": t, "balance": b}


@dataclass(frozen=True, eq=False)
class StreamedProblem:
    """The path over alpha of equations that were added up."""

    equations: Equations
    basis: Basis | None

    parameter = "alpha"

    @cached_property
    def smoother(self) -> Smoother:
        """The decomposed problem."""
        return self.equations.smoother()

    @property
    def lost_feature(self) -> int | None:
        """The number of a feature that is lost in rounding beside others."""
        return self.smoother.lost_feature

    def axis(self) -> NDArray[np.float64]:
        """An automatic grid, the largest alpha first."""
        return self.smoother.grid()

    def path(self, values: NDArray[np.float64]) -> list[Scorer]:
        """The functions of several alphas."""
        return [read(self.basis, found) for found in self.smoother.path(values)]


@dataclass(frozen=True, eq=False)
class StreamedCandidate:
    """A kernel and a graph; the sums of all graphs of a kernel come from one pass."""

    kernel: Kernel
    setting: Setting
    choices: dict[str, Any]
    sums: Callable[[], Summed]
    number: int
    basis: Basis | None

    def problem(self, data: StreamedData) -> StreamedProblem:
        """The problem of all rows."""
        return StreamedProblem(self.sums().equations[self.number], self.basis)


@dataclass(frozen=True, eq=False)
class StreamedPlan(Plan):
    """Leave-query-out of all rows, or validation data: one pass for each candidate."""

    measure: RankingMeasure
    validation: Any
    description: str = ""

    @property
    def greater_is_better(self) -> bool:  # type: ignore[override]
        return self.measure.greater_is_better

    def curve(self, comparisons: Any, candidate: Any, problem: Any, values: NDArray[np.float64]) -> Curve:
        model, executor = Model(candidate.setting, problem.smoother, values), comparisons.executor
        if self.validation is None:
            _, queries, varied = candidate.sums().counts.tolist()
            check_two_vary(varied, queries, "Give validation data (validation).")
            found = held_out_values(comparisons.dataset, model, self.measure, candidate.basis, executor)
        else:
            found = validated_values(self.validation, model, self.measure, candidate.basis, executor)
        return Curve(*mean_and_error(found), found)


def fit_streamed(model: Any, dataset: Any, executor: Any) -> Any:
    """One pass: the equations of all rows, solved for the model's alpha."""
    _check(model, dataset)
    data, alpha = StreamedData(dataset, executor), float(model.alpha)
    candidate = next(_candidates(model, data, [(fitting.setting_of(model), {})]))
    equations, names = candidate.problem(data).equations, dataset.feature_names
    positive = getattr(model, "positive", False)
    signs = constrained_signs(positive, dataset.n_features, None if names is None else np.array(names, dtype=object))
    found = equations.solve(alpha) if signs is None else signed_path(equations, np.array([alpha]), signs)[0]
    _keep(model, data, candidate, read(candidate.basis, found))
    model.alpha_ = alpha
    return model


def choose_streamed(model: Any, dataset: Any, validation: Any, executor: Any) -> Any:
    """The search over kernels, graphs and alphas: one pass for each kernel, and one for each kernel and graph."""
    _check(model, dataset)
    measure, alphas = resolve_measure(model.scoring), fitting.alphas_of(model)
    check_streams(measure)
    data: Any = StreamedData(dataset, executor)
    candidates = _candidates(model, data, fitting.settings_of(model, data))
    results = search(candidates, data, StreamedPlan(measure, validation), model.rule, alphas, int(model.verbose))
    chosen = results.best_state
    n_queries = _keep(model, data, chosen.candidate, chosen.solutions[0])
    fitting.warn_of_lost_feature(model, chosen.lost_feature)
    description = f"leave-query-out over {in_words(n_queries)}"
    if validation is not None:
        description = f"validation data with {in_words(validation.n_queries)}"
    fitting.publish(model, results, description, data)
    return model


def read(basis: Basis | None, coefficients: NDArray[np.float64]) -> Scorer:
    """Coefficients (coefficients, targets) as functions of items."""
    return Scorer(coefficients) if basis is None else BasisForm(None, None, basis).read(coefficients)  # type: ignore[arg-type]


def _check(model: Any, dataset: Any) -> None:
    """Refuse, before anything is read, what needs all rows at once."""
    over_basis, choosing = hasattr(model, "n_basis"), hasattr(model, "alphas")
    kernels = options(model.kernel, "kernel")
    needs_all = {
        "kernel": "precomputed" in kernels if over_basis else kernels != ("linear",),
        "basis": over_basis and model.basis != "random",
        "basis_indices": over_basis and model.basis_indices is not None,
        "solver": getattr(model, "solver", "auto") in ("cg", "dual"),
        "positive": choosing and not over_basis and model.positive is not False,
        "cv": choosing and model.cv is not None,
    }
    parameter = next((name for name, needs in needs_all.items() if needs), None)
    if parameter is not None:
        value = "" if parameter == "basis_indices" else f"={getattr(model, parameter)!r}"
        raise InputError(
            f"{type(model).__name__}.fit_dataset adds up normal equations: {parameter}{value} needs all rows in "
            "memory. It takes a linear kernel (SparseRankRLSCV others, over a random basis), and chooses by holding "
            "out each query or by validation data (validation).",
            parameter=parameter,
        )
    if not dataset.n_rows:
        raise InputError("The data set has no rows.", parameter="data")


def _candidates(
    model: Any, data: StreamedData, settings: list[tuple[Setting, dict[str, Any]]]
) -> Iterator[StreamedCandidate]:
    """Every kernel with every graph."""
    for kernel, choices, basis in _functions(model, data):
        sums = cache(partial(sum_equations, data.dataset, [s for s, _ in settings], basis, data.executor))
        for number, (setting, chosen) in enumerate(settings):
            yield StreamedCandidate(kernel, setting, {**choices, **chosen}, sums, number, basis)


def _functions(model: Any, data: StreamedData) -> Iterator[tuple[Kernel, dict[str, Any], Basis | None]]:
    """Every kernel with what it chooses, and the basis of items that functions expand over."""
    if not hasattr(model, "n_basis"):
        yield Kernel("linear"), {"kernel": "linear"}, None
        return
    numbers, items = _drawn_items(model, data)
    for kernel, choices in fitting.kernels_of(model, np.empty((0, data.dataset.n_features))):
        yield kernel, choices, Basis.build(kernel, items, numbers)


def _drawn_items(model: Any, data: StreamedData) -> tuple[NDArray[np.intp], Any]:
    """The rows that ``fit`` would draw of the same rows in memory, and their features."""
    m, parts = int(data.dataset.n_rows), data.dataset.parts
    size, rng = basis_size(model, m), generator(model.random_state)
    numbers = np.arange(m) if size == m else np.sort(rng.choice(m, size, replace=False))
    holds = np.unique(np.searchsorted([part.first_row + part.n_rows for part in parts], numbers, side="right"))
    found = list(map_parts(partial(_rows_of, numbers), [parts[k] for k in holds], data.executor))
    return numbers.astype(np.intp), np.vstack(found).astype(np.float64, copy=False)


def _rows_of(numbers: NDArray[Any], part: Any) -> Any:
    """The features of those of some rows that lie in a part."""
    own = numbers[(numbers >= part.first_row) & (numbers < part.first_row + part.n_rows)] - part.first_row
    return part.read().X[own]


def _keep(model: Any, data: StreamedData, candidate: StreamedCandidate, scorer: Scorer) -> int:
    """Keep a function, and what is known of the data, as public attributes; the number of queries."""
    names, n_queries = data.dataset.feature_names, int(candidate.sums().counts[1])
    model.n_features_in_ = int(data.dataset.n_features)
    model.__dict__.pop("feature_names_in_", None)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    fitting.begin(model, StreamedData(data.dataset, None, n_queries))  # type: ignore[arg-type]
    fitting.keep(model, scorer, candidate.kernel)
    if candidate.basis is not None:
        model.basis_indices_ = candidate.basis.numbers
    return n_queries
