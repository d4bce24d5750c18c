"""Fits of data larger than memory: what an estimator searches are problems whose equations were added up over parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._comparisons import Setting
from rankrls._errors import InputError
from rankrls._queries import in_words
from rankrls.kernels import Kernel
from rankrls.metrics import Measure, resolve_measure
from rankrls.metrics._values import mean_and_error
from rankrls.models import fitting
from rankrls.models.inputs.basis import basis_size, generator
from rankrls.models.inputs.parameters import options
from rankrls.models.updating import scorer_of, solve
from rankrls.numerics.basis import Basis
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import Equations, Smoother
from rankrls.selection.curves import Curve
from rankrls.selection.folds import check_two_vary
from rankrls.selection.plans import Plan
from rankrls.selection.search import search
from rankrls.streaming.executors import map_parts
from rankrls.streaming.fitting import Model, check_streams, held_out_values, sum_equations, validated_values


@dataclass(frozen=True, eq=False)
class StreamedData:
    """A data set as the data of a search, one query after another and with one target."""

    dataset: Any
    executor: Any
    n_queries: int = 0

    has_qid = one_target = True
    kept = None

    def given_numbers(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Numbers of rows are those of the data set."""
        return rows


@dataclass(frozen=True, eq=False)
class StreamedProblem:
    """A kernel and a graph whose equations were added up over parts: a candidate of the search, and its problem."""

    kernel: Kernel
    setting: Setting
    choices: dict[str, Any]
    equations: Equations
    counts: NDArray[np.int64]
    basis: Basis | None

    parameter = "alpha"

    def problem(self, data: StreamedData) -> StreamedProblem:
        """The path over alpha."""
        return self

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
        return [scorer_of(self.basis, found) for found in self.smoother.path(values)]


def streamed_plan(measure: Measure, validation: Any) -> Plan:
    """Leave-query-out of all rows, or validation data: one pass for each candidate."""

    def curve(data: Any, candidate: Any, problem: Any, values: NDArray[np.float64]) -> Curve:
        model, executor = Model(candidate.setting, problem.smoother, values), data.executor
        if validation is None:
            _, queries, varied = candidate.counts.tolist()
            check_two_vary(varied, queries, "Give validation data (validation).")
            found = held_out_values(data.dataset, model, measure, candidate.basis, executor)
        else:
            found = validated_values(validation, model, measure, candidate.basis, executor)
        return Curve(*mean_and_error(found), found)

    return Plan(measure, "", exact=curve)


def fit_streamed(model: Any, dataset: Any, executor: Any) -> Any:
    """One pass: the equations of all rows, solved for the model's alpha."""
    _check(model, dataset)
    data, alpha = StreamedData(dataset, executor), float(model.alpha)
    problem = next(_problems(model, data, [(fitting.setting_of(model), {})]))
    data = replace(data, n_queries=int(problem.counts[1]))
    fitting.begin(model, data)  # type: ignore[arg-type]
    fitting.keep(model, scorer_of(problem.basis, solve(problem.equations, alpha, model)), problem.kernel)
    fitting.keep_basis(model, problem.basis, data)  # type: ignore[arg-type]
    model.alpha_ = alpha
    return model


def choose_streamed(model: Any, dataset: Any, validation: Any, executor: Any) -> Any:
    """The search over kernels, graphs and alphas: one pass for each kernel, and one for each kernel and graph."""
    _check(model, dataset)
    measure, alphas = resolve_measure(model.scoring), fitting.alphas_of(model)
    check_streams(measure)
    data: Any = StreamedData(dataset, executor)
    problems, plan = _problems(model, data, fitting.settings_of(model, data)), streamed_plan(measure, validation)
    results = search(problems, data, plan, model.rule, alphas, int(model.verbose))
    n_queries = int(results.best_state.candidate.counts[1])
    description = f"leave-query-out over {in_words(n_queries)}"
    if validation is not None:
        description = f"validation data with {in_words(validation.n_queries)}"
    fitting.store(model, results, replace(plan, description=description), replace(data, n_queries=n_queries))
    return model


def _check(model: Any, dataset: Any) -> None:
    """Refuse, before anything is read, what needs all rows at once; remember the features."""
    over_basis, choosing = hasattr(model, "n_basis"), hasattr(model, "alphas")
    kernels = options(model.kernel, "kernel")
    needs_all = {
        "kernel": "precomputed" in kernels if over_basis else kernels != ("linear",),
        "basis": over_basis and model.basis != "random",
        "basis_indices": over_basis and model.basis_indices is not None,
        "solver": getattr(model, "solver", "auto") == "dual",
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
    names = dataset.feature_names
    model.n_features_in_ = int(dataset.n_features)
    model.__dict__.pop("feature_names_in_", None)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)


def _problems(
    model: Any, data: StreamedData, settings: list[tuple[Setting, dict[str, Any]]]
) -> Iterator[StreamedProblem]:
    """Every kernel with every graph; the sums of all graphs of a kernel come from one pass."""
    kernels: list[tuple[Kernel, dict[str, Any]]] = [(Kernel("linear"), {"kernel": "linear"})]
    numbers, items = None, None
    if hasattr(model, "n_basis"):
        kernels = fitting.kernels_of(model, np.empty((0, data.dataset.n_features)))
        numbers, items = _drawn_items(model, data)
    for kernel, choices in kernels:
        basis = None if items is None else Basis.build(kernel, items, numbers)
        summed = sum_equations(data.dataset, [setting for setting, _ in settings], basis, data.executor)
        for equations, (setting, chosen) in zip(summed.equations, settings, strict=True):
            yield StreamedProblem(kernel, setting, {**choices, **chosen}, equations, summed.counts, basis)


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
