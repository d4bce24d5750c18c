"""Fitted function of a model: weighted features, steps, or sums over kernels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rankrls._errors import InputError
from rankrls._typing import Array, Index
from rankrls.kernels import Kernel
from rankrls.models.rankboost import RankBoost
from rankrls.models.ranker import Ranker


@dataclass(frozen=True, eq=False)
class Weights:
    """``w'x`` for each target; weights of shape (n, targets)."""

    weights: Array


@dataclass(frozen=True, eq=False)
class Steps:
    """``sum_t weight_t [x_feature_t > threshold_t]``, one target."""

    features: Index
    thresholds: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Expansion:
    """``sum_j a_j k(x, z_j)`` over some features (None for all); coefficients of shape (items, targets)."""

    kernel: Kernel
    features: Index | None
    items: Array
    coefficients: Array


Function = Weights | Steps | list[Expansion]


def fitted_function(final: Ranker, system: str) -> Function:
    """Function of a ranker's scores; one without a formula is refused."""
    if hasattr(final, "coef_"):
        return Weights(np.atleast_2d(np.asarray(final.coef_, dtype=np.float64)).T)
    if isinstance(final, RankBoost):
        return Steps(final.features_, final.thresholds_, final.weights_)
    return [_expansion(*part) for part in _parts(final, system)]


def _parts(final: Any, system: str) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Kernel, features, items and coefficients of a function, or of those of its views."""
    if hasattr(final, "_expansions"):
        yield from final._expansions()
    elif hasattr(final, "dual_coef_"):
        yield final._kernel_, None, getattr(final, "X_fit_", None), final.dual_coef_
    else:
        problem = f"A {type(final).__name__} cannot be exported as {system}, because it is not a kernel model."
        raise InputError(problem, parameter="model")


def _expansion(kernel: Any, features: Any, items: Any, coefficients: Any) -> Expansion:
    if kernel.name == "precomputed" or callable(kernel.name):
        what = "known only by its matrix" if kernel.name == "precomputed" else "a Python function"
        problem = f"The model cannot be exported: its kernel is {what}. Kernels with a formula can."
        raise InputError(problem, parameter="model")
    items = np.asarray(items.toarray() if sparse.issparse(items) else items, dtype=np.float64)
    coefficients = np.atleast_2d(np.asarray(coefficients, dtype=np.float64).T).T
    if not len(items):  # the zero function, for engines that multiply no empty matrices
        items = np.zeros((1, items.shape[1]))
        coefficients = np.zeros((1, coefficients.shape[1]))
    return Expansion(kernel, features, items, coefficients)
