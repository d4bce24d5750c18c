"""Exact updates: the normal equations of everything seen so far, and which queries are in them.

The state is plain numbers and names in one attribute, ``_update_state``.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from rankrls._arrays import host_only, to_host
from rankrls._comparisons import Comparisons, LabelledItems
from rankrls._errors import InputError
from rankrls.models import fitting
from rankrls.models.inputs.basis import make_basis
from rankrls.models.inputs.parameters import signs_of
from rankrls.numerics.basis import Basis
from rankrls.numerics.graph import Array
from rankrls.numerics.nonnegative import signed_path
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import Equations, normal_equations
from rankrls.selection.least_squares import BasisForm, LeastSquaresProblem, PrimalForm


def update(model: Any, X: Any, y: Any, qid: Any, sample_weight: Any) -> Any:
    """Add whole queries to a model."""
    state = vars(model).get("_update_state")
    if state is None and hasattr(model, "alpha_"):
        raise InputError(
            "partial_fit cannot continue this model: it was fitted in the dual, from pairs, by conjugate "
            "gradients or from a data set. Fit it with solver='primal', or start from a clone."
        )
    data = fitting.labelled(model, X, y, qid, sample_weight, comparable=False, reset=state is None)
    host_only(data.X, "partial_fit")
    if state is not None:
        _check_continued(model, state, data, qid)
    queries = _more_queries([] if state is None else state["queries"], data)
    kernel = fitting.kernel_of(model, data.X) if state is None else model._kernel_
    basis = _basis(model, state, data, kernel)
    features = data.X if basis is None else basis.features(data.X)
    whitening = None if basis is None else basis.whitening
    batch = [
        normal_equations(graph, features).whitened(whitening)
        for graph in data.numeric_graphs(fitting.setting_of(model))
    ]
    if state is not None:
        for new, old in zip(batch, equations_of(state, whitening), strict=True):
            new += old
    coefficients = [solve(one, float(model.alpha), model) for one in batch]
    if state is None:
        model._one_target, model._fitted_with_qid = data.one_target, data.has_qid
    fitting.keep(model, scorer_of(basis, np.hstack(coefficients)), kernel)
    if state is None:
        fitting.keep_basis(model, basis, data)
    model._update_state = _state(model, batch, queries, basis)
    model.alpha_ = float(model.alpha)
    model.n_queries_ = len(queries)
    return model


def remember(model: Any, data: Comparisons, problem: Any) -> None:
    """Keep what exact updates need, if a problem was solved by normal equations of labelled items."""
    if not isinstance(data, LabelledItems) or not isinstance(problem, LeastSquaresProblem):
        return
    forms = [form for form in problem.forms if isinstance(form, PrimalForm)]
    if len(forms) == len(problem.forms):
        basis = forms[0].basis if isinstance(forms[0], BasisForm) else None
        model._update_state = _state(model, [form.equations for form in forms], _more_queries([], data), basis)


def solve(equations: Equations, alpha: float, model: Any) -> Array:
    """Coefficients of one alpha, under the model's constraints on signs."""
    signs = signs_of(model)
    if signs is None:
        return equations.solve(alpha)
    return signed_path(equations, np.array([alpha]), signs)[0]


def scorer_of(basis: Basis | None, coefficients: Array) -> Scorer:
    """Coefficients (coefficients, targets) as functions of items."""
    return Scorer(coefficients) if basis is None else basis.scorer(coefficients)


def equations_of(state: dict[str, Any], whitening: Array | None) -> list[Equations]:
    """The normal equations in a state, one for all targets or one for each."""
    kept = zip(state["gram"], state["right"], state["energy"], strict=True)
    return [Equations(*one, state["rows"], whitening) for one in kept]


def _state(model: Any, batch: list[Equations], queries: list[Any], basis: Basis | None) -> dict[str, Any]:
    return {
        "gram": [to_host(one.gram) for one in batch],
        "right": [to_host(one.right) for one in batch],
        "energy": [one.energy for one in batch],
        "rows": int(batch[0].rows),
        "queries": queries,
        "setting": _settings(model),
        "to_items": None if basis is None else to_host(basis.to_items),
        "rows_first": basis is not None and basis.rows_first,
    }


def _settings(model: Any) -> dict[str, Any]:
    """The parameters that must stay as they are."""
    kernel = model.kernel if isinstance(model.kernel, str) else "a function"
    numbers = {name: getattr(model, name) for name in ("gamma", "degree", "coef0")} if kernel != "linear" else {}
    return {**asdict(fitting.setting_of(model)), "kernel": kernel, **numbers}


def _basis(model: Any, state: dict[str, Any] | None, data: LabelledItems, kernel: Any) -> Basis | None:
    """The basis of a sparse model: chosen from the first batch, then the same."""
    if not hasattr(model, "n_basis"):
        return None
    if state is None:
        return make_basis(model, data, kernel)
    return Basis(kernel, model.X_fit_, state["to_items"], state["rows_first"])


def _more_queries(seen: list[Any], data: LabelledItems) -> list[Any]:
    """The ids that were seen and those of a batch; a batch without qid is a ranking by itself."""
    if not data.has_qid:
        return [*seen, len(seen)]
    new = [value.item() if isinstance(value, np.generic) else value for value in data.layout.ids]
    known = set(seen)
    again = [value for value in new if value in known]
    if again:
        raise InputError(
            f"Query {again[0]!r} has been seen before ({len(again)} such queries in this batch): whole "
            "queries are added. Give all rows of a query at once.",
            parameter="qid",
        )
    return [*seen, *new]


def _check_continued(model: Any, state: dict[str, Any], data: LabelledItems, qid: Any) -> None:
    """Refuse a batch that does not go with what was seen."""
    if state["setting"] != _settings(model):
        raise InputError(
            f"partial_fit cannot mix graphs: the model was fitted with {state['setting']}, its parameters are now "
            f"{_settings(model)}. Only alpha may change between updates."
        )
    if (qid is not None) != model._fitted_with_qid:
        raise InputError("partial_fit needs qid if and only if the model was fitted with qid.", parameter="qid")
    targets = sum(right.shape[1] for right in state["right"])
    if data.Y.shape[1] != targets:
        raise InputError(f"y has {data.Y.shape[1]} targets; the model has {targets}.", parameter="y")
