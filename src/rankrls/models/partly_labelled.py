"""Estimators that are fitted on rows with labels and rows without: their rows, and the views that they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.kernels import check_kernel, resolve_kernel
from rankrls.learners.copursuit import ViewPlan
from rankrls.models import fitting
from rankrls.models.inputs.parameters import GraphParameters, check_parameters, estimator
from rankrls.models.ranker import Ranker

_ROWS = ("rows", "loss_rows", "basis_rows")
_KEYS = ("features", "kernel", "gamma", "degree", "coef0", "kernel_params", *_ROWS)


@dataclass(frozen=True, eq=False)
class PartlyLabelled:
    """Rows of which some have a label; rows of weight zero are gone.

    Attributes
    ----------
    everything : LabelledItems
        All rows, with labels of 0 where there are none.
    labelled : ndarray of bool
    known : LabelledItems
        The labelled rows, whose items are their numbers among all, as a matrix of one column.
    """

    everything: LabelledItems
    labelled: NDArray[np.bool_]
    known: LabelledItems


@estimator
class PartlyLabelledRanker(Ranker, GraphParameters):
    """Fitted on rows of which some have a label."""

    _takes_unlabelled = True

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Fit rows with labels and rows without; what there is to choose is chosen by held-out labelled queries.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)
        y : array-like of shape (m,)
            Labels, higher is better; NaN marks an unlabelled row.
        qid : array-like of shape (m,), optional
            One query id per row. None makes everything one global ranking.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative.

        Returns
        -------
        self
        """
        self._check()
        self._solve(partly_labelled(self, X, y, qid, sample_weight))
        return self

    def _check(self) -> None:
        """Check the parameters, as far as that is possible without data."""
        check_parameters(self)

    def _solve(self, rows: PartlyLabelled) -> None:
        raise NotImplementedError


def partly_labelled(model: Any, X: Any, y: Any, qid: Any, sample_weight: Any) -> PartlyLabelled:
    """Check what ``fit`` was given: NaN in y marks an unlabelled row."""
    data = fitting.labelled(model, X, y, qid, sample_weight, partly=True, comparable=False)
    fitting.check_square(data.X, fitting.data_kernel(model))
    missing = np.isnan(data.Y)
    labelled = np.logical_not(missing.all(axis=1))
    partly = missing.any(axis=1) & labelled
    if partly.any():
        row = int(data.given_numbers(np.flatnonzero(partly))[0])
        raise InputError(
            f"Input y contains NaN for some targets of row {row} and labels for others: a row has all its labels or "
            "none. Fit targets with different unlabelled queries separately.",
            parameter="y",
            row=row,
        )
    if not labelled.any():
        raise InputError("Every row is unlabelled (NaN in y): at least one query needs labels.", parameter="y")
    rows, data = np.flatnonzero(labelled), replace(data, Y=np.where(missing, 0.0, data.Y))
    layout = query_layout(data.layout.ids[data.layout.codes[rows]], len(rows))  # folds follow the ids
    kept = np.isin(np.arange(data.n_given), data.given_numbers(rows))
    items = rows[:, None].astype(np.float64)
    known = replace(data.take(rows, items=False), X=items, layout=layout, kept=None if kept.all() else kept)
    fitting.check_comparable(known, float(model.regression_weight))
    return PartlyLabelled(data, labelled, known)


def view_plans(
    views: Any, defaults: Mapping[str, Any], n_features: int, names: NDArray[Any] | None, n_rows: int
) -> list[ViewPlan]:
    """Resolve the views of an estimator; None makes one of either half of the features."""
    precomputed = isinstance(defaults["kernel"], str) and defaults["kernel"] == "precomputed"
    if views is None and (precomputed or n_features < 2):
        views = ({},)
    elif views is None:
        half = (n_features + 1) // 2
        views = (slice(0, half), slice(half, None))
    if isinstance(views, (str, Mapping)) or not hasattr(views, "__iter__"):
        raise InputError(f"views must be a sequence of views; got {views!r}.", parameter="views")
    plans = [_plan(v, view, defaults, n_features, names, n_rows) for v, view in enumerate(views)]
    if not plans:
        raise InputError("views is empty: at least one view is needed.", parameter="views")
    given = [plan.kernel.name == "precomputed" for plan in plans]
    if any(given) and not all(given):
        raise InputError(
            "Either all views have the precomputed kernel or none: X means different things to them.", parameter="views"
        )
    if any(given) and any(plan.features is not None for plan in plans):
        raise InputError(
            "A precomputed kernel has no features to choose from; views of it differ by their rows.", parameter="views"
        )
    return plans


def _plan(
    number: int, view: Any, defaults: Mapping[str, Any], n_features: int, names: NDArray[Any] | None, n_rows: int
) -> ViewPlan:
    where = f"views[{number}]"
    if isinstance(view, str) or callable(view):
        view = {"kernel": view}
    elif not isinstance(view, Mapping):
        view = {"features": view}
    unknown = [key for key in view if key not in _KEYS]
    if unknown:
        raise InputError(f"{where} has {unknown[0]!r}; a view may have {', '.join(_KEYS)}.", parameter="views")
    if "kernel" in view and "kernel_params" not in view:
        defaults = {**defaults, "kernel_params": None}
    settings = {**defaults, **{key: value for key, value in view.items() if key not in ("features", *_ROWS)}}
    try:
        check_kernel(**settings)
    except InputError as error:
        raise InputError(f"{where}: {error}", parameter="views") from None
    features = _numbers(f"{where}['features']", view.get("features"), n_features, names)
    rows = {key: _mask(f"{where}[{key!r}]", view.get(key), n_rows) for key in _ROWS}
    shape = np.empty((0, n_features if features is None else len(features)))
    kernel = resolve_kernel(
        shape, settings["kernel"], settings["gamma"], settings["degree"], settings["coef0"], settings["kernel_params"]
    )
    loss_rows, basis_rows = (rows["rows"] if rows[key] is None else rows[key] for key in _ROWS[1:])
    return ViewPlan(features, kernel, loss_rows, basis_rows)


def _mask(where: str, given: Any, n_rows: int) -> NDArray[np.bool_] | None:
    """Some rows as a mask over all."""
    numbers = _numbers(where, given, n_rows, None)
    if numbers is None:
        return None
    mask = np.zeros(n_rows, dtype=bool)
    mask[numbers] = True
    return mask


def _numbers(where: str, given: Any, n: int, names: NDArray[Any] | None) -> NDArray[np.intp] | None:
    """Numbers from whatever indexes an array of numpy, or from names."""
    if given is None:
        return None
    index = given if isinstance(given, slice) else np.asarray(given)
    if isinstance(index, np.ndarray) and index.dtype.kind in "UO" and names is not None:
        known = {name: k for k, name in enumerate(names)}
        index = np.array([known.get(name, n) for name in index.tolist()])
    try:
        numbers = np.arange(n, dtype=np.intp)[index]
    except IndexError:
        numbers = np.empty(0, dtype=np.intp)
    if numbers.ndim != 1 or not len(numbers):
        raise InputError(
            f"{where} must be a slice, a mask of length {n}, or a list of numbers below {n} or of names that X has; "
            f"got {given!r}.",
            parameter="views",
        )
    return numbers
