"""Fits whose normal equations are added up: over the chunks of a data set, and over batches of whole queries.

What exact updates need is plain values in one attribute of the model, ``_update_state``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from operator import iadd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._arrays import host_only
from rankrls._cached import cached_property
from rankrls._comparisons import LabelledItems, Setting
from rankrls._errors import InputError
from rankrls._queries import in_words
from rankrls.kernels import Kernel
from rankrls.metrics import Measure, resolve_measure
from rankrls.metrics._values import mean_and_error
from rankrls.models import fitting
from rankrls.models.parameters import options, signs_of
from rankrls.numerics.basis import Basis
from rankrls.numerics.graph import Array
from rankrls.numerics.nonnegative import signed_path
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import Equations, Smoother, normal_equations
from rankrls.selection.basis import drawn_numbers, make_basis
from rankrls.selection.curves import Curve
from rankrls.selection.folds import check_two_vary
from rankrls.selection.plans import Plan
from rankrls.selection.search import search
from rankrls.streaming.executors import map_parts
from rankrls.streaming.fitting import Model, held_out_values, sum_equations, validated_values


def update(model: Any, X: Any, y: Any, qid: Any, sample_weight: Any) -> Any:
    """Add whole queries to a model."""
    state = vars(model).get("_update_state")
    if state is None and hasattr(model, "alpha_"):
        raise InputError(
            "partial_fit adds to what partial_fit began, and fit keeps no equations that could be added to. "
            "Call partial_fit for the first queries too: it gives the model that fit does."
        )
    data = fitting.labelled(model, X, y, qid, sample_weight, comparable=False, reset=state is None)
    host_only(data.X, "partial_fit")
    basis, over_basis = None, hasattr(model, "n_basis")
    queries: dict[Any, None] = {} if state is None else state["queries"]
    if state is None:
        (kernel, _), *_ = fitting.kernels_of(model, data.X)
        model._one_target, model._fitted_with_qid = data.one_target, data.has_qid
        if over_basis:
            basis = make_basis(model, data, kernel)
    else:
        _check_continued(state["setting"], _settings(model, data))
        kernel = model._kernel_
        if over_basis:
            to_items, of_features = state["to_items"], state.get("of_features")
            basis = Basis(kernel, model.X_fit_, to_items, state["rows_first"], of_features=of_features)
    new_queries = _new_queries(queries, data)
    features = data.X if basis is None else basis.features(data.X)
    whitening = None if basis is None else basis.whitening
    graphs = data.numeric_graphs(fitting.setting_of(model))
    equations = [normal_equations(graph, features).whitened(whitening) for graph in graphs]
    if state is not None:
        equations = [iadd(new, old) for new, old in zip(equations, state["equations"], strict=True)]
    coefficients = [_solve(one, float(model.alpha), model) for one in equations]
    fitting.keep(model, _scorer(basis, np.hstack(coefficients)), kernel, data, basis if state is None else None)
    model._update_state = _state(model, data, equations, queries, basis)
    queries.update(dict.fromkeys(new_queries))
    model.alpha_ = float(model.alpha)
    model.n_queries_ = len(queries)
    return model


def _solve(equations: Equations, alpha: float, model: Any) -> Array:
    """Coefficients of one alpha, under the model's constraints on signs."""
    signs = signs_of(model)
    return equations.solve(alpha) if signs is None else signed_path(equations, np.array([alpha]), signs)[0]


def _scorer(basis: Basis | None, coefficients: Array) -> Scorer:
    """Coefficients (coefficients, targets) as functions of items."""
    return Scorer(coefficients) if basis is None else basis.scorer(coefficients)


def _state(
    model: Any, data: LabelledItems, equations: list[Equations], queries: dict[Any, None], basis: Basis | None
) -> dict[str, Any]:
    of_basis = {} if basis is None else {"to_items": basis.to_items, "rows_first": basis.rows_first}
    if basis is not None and basis.of_features is not None:
        of_basis["of_features"] = basis.of_features
    plain = [replace(one, whitening=None) for one in equations]
    return {"equations": plain, "queries": queries, "setting": _settings(model, data), **of_basis}


def _settings(model: Any, data: LabelledItems) -> dict[str, Any]:
    """What must stay as it is, by parameter."""
    kernel = model.kernel if isinstance(model.kernel, str) else "a function"
    numbers = {name: getattr(model, name) for name in ("gamma", "degree", "coef0")} if kernel != "linear" else {}
    of_data = {"qid": "given" if data.has_qid else "not given", "y": f"of {data.Y.shape[1]} targets"}
    return {**asdict(fitting.setting_of(model)), "kernel": kernel, **numbers, **of_data}


def _check_continued(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse a batch that does not go with what was seen."""
    for name, value in before.items():
        if now.get(name) != value:
            problem = (
                f"partial_fit cannot mix graphs: {name} was {value!r}, now {now.get(name)!r}. Only alpha may change."
            )
            raise InputError(problem, parameter=name)


def _new_queries(seen: dict[Any, None], data: LabelledItems) -> list[Any]:
    """The ids of a batch, none of which was seen; a batch without qid is a ranking by itself."""
    if not data.has_qid:
        return [len(seen)]
    new = [value.item() if isinstance(value, np.generic) else value for value in data.layout.ids]
    again = [value for value in new if value in seen]
    if again:
        problem = f"Query {again[0]!r} has been seen before: all rows of a query must be added at once."
        raise InputError(problem, parameter="qid")
    return new


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
        return [_scorer(self.basis, found) for found in self.smoother.path(values)]


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

    return Plan(measure, "", curve, mutual=validation is None)


def fit_streamed(model: Any, dataset: Any, executor: Any) -> Any:
    """One pass: the equations of all rows, solved for the model's alpha."""
    _check(model, dataset)
    data, alpha = StreamedData(dataset, executor), float(model.alpha)
    problem = next(_problems(model, data, [(fitting.setting_of(model), {})]))
    data = replace(data, n_queries=int(problem.counts[1]))
    fitting.begin(model, data)  # type: ignore[arg-type]
    scorer = _scorer(problem.basis, _solve(problem.equations, alpha, model))
    fitting.keep(model, scorer, problem.kernel, data, problem.basis)
    model.alpha_ = alpha
    return model


def choose_streamed(model: Any, dataset: Any, validation: Any, executor: Any) -> Any:
    """The search over kernels, graphs and alphas: one pass for each kernel, and one for each kernel and graph."""
    _check(model, dataset)
    measure, alphas = resolve_measure(model.scoring), fitting.alphas_of(model)
    data: Any = StreamedData(dataset, executor)
    problems, plan = _problems(model, data, fitting.settings_of(model, data)), streamed_plan(measure, validation)
    results = search(problems, data, plan, model.rule, alphas, int(model.verbose))
    n_queries = int(results.candidate.counts[1])
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
        "basis_indices": over_basis and model.basis_indices is not None,
        "solver": getattr(model, "solver", "auto") == "dual",
        "positive": choosing and not over_basis and model.positive is not False,
        "cv": choosing and model.cv is not None,
    }
    parameter = next((name for name, needs in needs_all.items() if needs), None)
    if parameter is not None:
        value = "" if parameter == "basis_indices" else f"={getattr(model, parameter)!r}"
        problem = f"{type(model).__name__}.fit_dataset cannot use {parameter}{value}: it needs all rows in memory."
        raise InputError(problem, parameter=parameter)
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
    """The rows that ``fit`` would draw of the same rows in memory, and their features.

    If the rows have weights, these are read first: rows of weight zero are not drawn.
    """
    parts = data.dataset.parts
    counts = [part.n_rows for part in parts]
    if any(map_parts(_has_weights, parts[:1], data.executor)):
        counts = list(map_parts(_count_weighted, parts, data.executor))
    ends = np.cumsum(counts)
    numbers = drawn_numbers(model, int(ends[-1]))
    holds, drawn = [], {}
    for k in np.unique(np.searchsorted(ends, numbers, side="right")):
        first = ends[k] - counts[k]
        holds.append(parts[k])
        drawn[parts[k].first_row] = numbers[(numbers >= first) & (numbers < ends[k])] - first
    rows, features = zip(*map_parts(partial(_rows_of, drawn), holds, data.executor), strict=True)
    return np.concatenate(rows), np.vstack(features).astype(np.float64, copy=False)


def _has_weights(part: Any) -> bool:
    return part.read().sample_weight is not None


def _count_weighted(part: Any) -> int:
    """Rows of positive weight."""
    return int(np.count_nonzero(part.read().sample_weight))


def _rows_of(drawn: dict[int, NDArray[np.intp]], part: Any) -> tuple[NDArray[np.intp], Any]:
    """Numbers in the data set and features of the rows that were drawn of a part, among those of positive weight."""
    table, rows = part.read(), drawn[part.first_row]
    if table.sample_weight is not None:
        rows = np.flatnonzero(table.sample_weight)[rows]
    return rows + part.first_row, table.X[rows]
