"""What a fitted model says of itself, as plain values that JSON can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankrls.kernels import kernel_parameters
from rankrls.metrics import Measure
from rankrls.selection.search import choices_at_edges

_LONGEST = 200  # a grid is worth reading, the row numbers of a split are not


def describe(model: Any, final: Any) -> dict[str, Any]:
    """What a model, whose last step is ``final``, says of itself; see :func:`rankrls.persistence.read_info`."""
    first = final if model is final else model.steps[0][1]
    names = getattr(final, "feature_names_in_", getattr(first, "feature_names_in_", None))
    primal, dual = getattr(final, "coef_", None), getattr(final, "dual_coef_", None)
    coefficients = dual if primal is None else primal.T  # one column a target
    return {
        "estimator": type(final).__name__,
        "steps": [type(step).__name__ for _, step in model.steps[:-1]] if model is not final else [],
        "parameters": {name: plain(value) for name, value in final.get_params(deep=False).items()},
        "alpha": plain(getattr(final, "alpha_", None)),
        "kernel": _kernel(getattr(final, "_kernel_", None)),
        "n_queries": int(final.n_queries_),
        "n_features": plain(getattr(final, "n_features_in_", None)),
        "feature_names": None if names is None else [str(name) for name in names],
        "n_targets": 1 if coefficients is None or coefficients.ndim == 1 else int(coefficients.shape[1]),
        "n_training_items": None if primal is not None or dual is None else int(dual.shape[0]),
        "selection": _selection(final),
    }


def plain(value: Any) -> Any:
    """A value that JSON can hold: numbers, words and lists of them as they are, anything else as its repr."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, Measure):
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(v) for v in value] if len(value) <= _LONGEST else f"{len(value)} values"
    return repr(value)


def _kernel(kernel: Any) -> dict[str, Any] | None:
    if kernel is None:
        return None
    return {"name": kernel.name, **{name: plain(getattr(kernel, name)) for name in kernel_parameters(kernel.name)}}


def _selection(final: Any) -> dict[str, Any] | None:
    """How the parameters were chosen, and what the choice was worth; None if they were given."""
    if not hasattr(final, "selection_"):
        return None
    return {
        "how": plain(final.selection_),
        "measure": str(final.scoring),
        "value": plain(final.best_score_),
        "standard_error": plain(final.best_score_error_),
        "rule": plain(getattr(final, "rule", None)),
        "chosen": plain(final.best_params_),
        **{f"{name}_at_edge": plain(at_edge) for name, at_edge in choices_at_edges(final).items()},
    }
