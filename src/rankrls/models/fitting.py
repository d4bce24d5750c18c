"""What the estimators do around a solver, as plain functions: read parameters, check data, store results."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems, Setting
from rankrls._errors import InputError, InputWarning
from rankrls.kernels import Kernel, kernel_parameters, resolve_kernel
from rankrls.metrics import RankingMeasure
from rankrls.models.inputs.parameters import check_alphas, combinations, options
from rankrls.models.inputs.validation import (
    check_comparable,
    labelled_items,
    preferred_items,
    validation_data,
)
from rankrls.numerics.scorer import Scorer
from rankrls.selection.optimism import search_bias
from rankrls.selection.plans import Validation
from rankrls.selection.search import Results


def data_kernel(model: Any) -> Any:
    """What X means: objects for a function, a kernel matrix, or features."""
    if getattr(model, "dictionary", "kernel") == "features":
        return "linear"
    if hasattr(model, "_is_precomputed"):  # by one of its views
        return "precomputed" if model._is_precomputed() else "linear"
    kernels = options(getattr(model, "kernel", "linear"), "kernel")
    special = [k for k in kernels if callable(k) or k == "precomputed"]
    if special and len(kernels) > 1:
        raise InputError(
            "A callable or precomputed kernel cannot be one of several: X means different things to them.",
            parameter="kernel",
        )
    return kernels[0]


def labelled(model: Any, X: Any, y: Any, qid: Any, sample_weight: Any, *, partly: bool = False) -> LabelledItems:
    """Checked items with labels that order something; ``partly`` says that some of the labels are none."""
    single = model._single_target
    if single and y is not None and (given := np.asarray(y)).ndim == 2 and given.shape[1] == 1:
        y = column_or_1d(given, warn=True)
    data = labelled_items(model, X, y, qid, sample_weight, kernel=data_kernel(model))
    if single and data.Y.shape[1] > 1:
        raise InputError(
            f"{type(model).__name__} takes one target: y should be a 1d array, got an array of shape "
            f"{data.Y.shape} instead. Fit one model a target.",
            parameter="y",
        )
    if not partly:
        check_comparable(data, float(getattr(model, "regression_weight", 0.0)))
    return data


def preferred(
    model: Any, X: Any, winners: Any, losers: Any, strength: Any, weight: Any, groups: Any = None
) -> PreferredItems:
    """Checked items with preferences between them."""
    return preferred_items(model, X, winners, losers, strength, weight, kernel=data_kernel(model), groups=groups)


def validation(
    model: Any, measure: RankingMeasure, data: Comparisons, X_val: Any, y_val: Any, qid_val: Any
) -> Validation | None:
    """Validation data as a plan; None if none are given."""
    if X_val is None and y_val is None and qid_val is None:
        return None
    if getattr(model, "cv", None) is not None:
        raise InputError("Give either cv or validation data (X_val), not both.", parameter="cv")
    return validation_data(model, measure, data, X_val, y_val, qid_val, kernel=data_kernel(model))


def setting_of(model: Any) -> Setting:
    """How labels become a graph, if each parameter is one value."""
    return Setting(model.ties, model.balance, float(model.regression_weight))


def settings_of(model: Any, data: Comparisons) -> list[tuple[Setting, dict[str, Any]]]:
    """The graphs to try, and what each chooses."""
    ties, balances = options(model.ties, "ties"), options(model.balance, "balance")
    return list(data.settings(ties, balances, float(model.regression_weight)))


def kernel_of(model: Any, X: Any) -> Kernel:
    """The kernel, if each parameter is one value."""
    check_square(X, model.kernel)
    return resolve_kernel(X, model.kernel, model.gamma, model.degree, model.coef0, model.kernel_params)


def kernels_of(model: Any, X: Any) -> list[tuple[Kernel, dict[str, Any]]]:
    """Every kernel to try, and what each chooses."""
    found: dict[Any, tuple[Kernel, dict[str, Any]]] = {}
    for values in combinations(model, ("kernel", "gamma", "degree", "coef0")):
        check_square(X, values["kernel"])
        name, gamma, degree, coef0 = values.values()
        kernel = resolve_kernel(X, name, gamma, degree, coef0, model.kernel_params)
        known = {**values, "gamma": kernel.gamma}
        choices = {name: known[name] for name in ("kernel", *kernel_parameters(values["kernel"]))}
        found.setdefault(tuple(choices.items()), (kernel, choices))
    return list(found.values())


def check_square(X: Any, kernel: Any) -> None:
    """A kernel matrix to fit has a row and a column for each item."""
    if isinstance(kernel, str) and kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise InputError(f"A precomputed kernel matrix must be square to fit; got shape {X.shape}.", parameter="X")


def alphas_of(model: Any, *, positive: bool = False) -> NDArray[np.float64] | None:
    """The values to judge, the largest first; None for an automatic grid."""
    if isinstance(model.alphas, str) and model.alphas == "auto":
        return None
    return np.sort(check_alphas(model.alphas, positive=positive))[::-1]


def begin(model: Any, data: Comparisons) -> None:
    """Forget an earlier fit, and keep what is known of the data."""
    parameters = {f.name for f in fields(model)}
    for name in set(vars(model)) - parameters:
        if name == "_update_state" or (name.endswith("_") and not name.endswith("_in_")):
            delattr(model, name)
    model._fitted_with_qid = data.has_qid
    model._one_target = data.one_target
    model.n_queries_ = data.n_queries


def keep(model: Any, scorer: Scorer, kernel: Kernel) -> None:
    """Keep a function as the model's public coefficients."""
    model._kernel_ = kernel
    if scorer.weights is not None:
        model.coef_ = np.ascontiguousarray(scorer.weights[:, 0] if model._one_target else scorer.weights.T)
    if scorer.coefficients is not None:
        a = scorer.coefficients
        model.dual_coef_ = np.ascontiguousarray(a[:, 0] if model._one_target else a)
    if scorer.items is not None:
        model.X_fit_ = scorer.items


def publish(model: Any, results: Results, description: str, data: Comparisons) -> None:
    """Keep what was chosen, and how, as attributes."""
    name = results.parameter
    setattr(model, f"{name}_", results.best_value)
    for chosen, at_edge in results.edges.items():
        setattr(model, f"{chosen}_at_edge_", at_edge)
    model.best_params_ = {**results.best_choices, name: results.best_value}
    model.best_index_ = results.best_index
    model.best_score_, model.best_score_error_ = results.best_score, results.best_error
    model.optimism_ = search_bias(results)
    model.cv_results_ = results.table()
    model.selection_ = description
    model.query_scores_ = results.best_values
    model.held_out_scores_ = None
    if results.best_scores is not None:
        scores = data.given_rows(results.best_scores)
        model.held_out_scores_ = scores[:, 0] if data.one_target else scores


def warn_of_lost_feature(model: Any, feature: int | None) -> None:
    """One warning if rounding of a large feature hides a small one."""
    if feature is None:
        return
    names = getattr(model, "feature_names_in_", None)
    called = f"{feature}" if names is None else f"{feature} ({names[feature]!r})"
    warnings.warn(
        InputWarning(
            f"Feature {called} varies so much less than others that rounding hides it. Scale the "
            "features, as StandardScaler does.",
            parameter="X",
            column=feature if names is None else str(names[feature]),
        ),
        stacklevel=4,
    )
