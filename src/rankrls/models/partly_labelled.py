"""Estimators that are fitted on rows with labels and rows without: their rows, and the views that they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import unchanged_on_error
from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls.kernels import check_kernel, resolve_kernel
from rankrls.learners.copursuit import ViewPlan
from rankrls.models import fitting
from rankrls.models.parameters import GraphParameters, SelectionParameters, check_parameters, estimator
from rankrls.models.ranker import Ranker

_KEYS = ("features", "kernel", "gamma", "degree", "coef0", "kernel_params")


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

    @unchanged_on_error
    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Fit rows with labels and rows without; what there is to choose is chosen by held-out labelled queries.

        Parameters
        ----------
        X : as for :meth:`RankRLS.fit`
        y : array-like of shape (m,); or (m, targets), of estimators that take several targets
            Labels, higher is better; NaN marks an unlabelled row.
        qid : array-like of shape (m,), optional
            One query id per row. None makes everything one global ranking.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative.

        Returns
        -------
        self
        """
        check_parameters(self, several=isinstance(self, SelectionParameters))
        self._solve(partly_labelled(self, X, y, qid, sample_weight))
        return self

    def _solve(self, rows: PartlyLabelled) -> None:
        raise NotImplementedError


def partly_labelled(model: Any, X: Any, y: Any, qid: Any, sample_weight: Any) -> PartlyLabelled:
    """Check what ``fit`` was given: NaN in y marks an unlabelled row."""
    data = fitting.labelled(model, X, y, qid, sample_weight, comparable=False)
    fitting.check_square(data.X, fitting.data_kernel(model))
    missing = np.isnan(data.Y)
    labelled = np.logical_not(missing.all(axis=1))
    partly = missing.any(axis=1) & labelled
    if partly.any():
        row = int(data.given_numbers(np.flatnonzero(partly))[0])
        problem = f"Input y contains NaN for some targets of row {row}: each row needs all its labels or none."
        raise InputError(problem, parameter="y", row=row)
    if not labelled.any():
        raise InputError("Every row is unlabelled (NaN in y): at least one query needs labels.", parameter="y")
    rows, data = np.flatnonzero(labelled), replace(data, Y=np.where(missing, 0.0, data.Y))
    layout = query_layout(data.layout.ids[data.layout.codes[rows]], len(rows))  # folds follow the ids
    kept = np.isin(np.arange(data.n_given), data.given_numbers(rows))
    items = rows[:, None].astype(np.float64)
    known = replace(data.take(rows, items=False), X=items, layout=layout, kept=None if kept.all() else kept)
    fitting.check_comparable(known, float(model.regression_weight))
    return PartlyLabelled(data, labelled, known)


def view_plans(views: Any, model: Any, kernel: Mapping[str, Any]) -> list[ViewPlan]:
    """Resolve the views of an estimator; None makes one of either half of the features.

    ``kernel`` has the kernel of the views that name none, and its parameters.
    """
    n = model.n_features_in_
    if views is None:
        half = (n + 1) // 2
        views = (slice(0, half), slice(half, None)) if n > 1 else ({},)
    if isinstance(views, (str, Mapping)) or not np.iterable(views):
        raise InputError(f"views must be a sequence of views; got {views!r}.", parameter="views")
    plans = [_plan(f"views[{v}]", view, model, kernel) for v, view in enumerate(views)]
    if not plans:
        raise InputError("views is empty: at least one view is needed.", parameter="views")
    return plans


def _plan(where: str, view: Any, model: Any, kernel: Mapping[str, Any]) -> ViewPlan:
    if isinstance(view, str) or callable(view):
        view = {"kernel": view}
    elif not isinstance(view, Mapping):
        view = {"features": view}
    unknown = [key for key in view if key not in _KEYS]
    if unknown:
        raise InputError(f"{where} has {unknown[0]!r}; a view may have {', '.join(_KEYS)}.", parameter="views")
    given = {**kernel, "kernel_params": None if "kernel" in view else model.kernel_params, **view}
    features = _numbers(where, given.pop("features", None), model)
    try:
        check_kernel(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}", parameter="views") from None
    if fitting.is_precomputed(given["kernel"]):
        raise InputError(f"{where}: views are made of features, and a precomputed kernel has none.", parameter="kernel")
    shape = np.empty((0, model.n_features_in_ if features is None else len(features)))
    name, *numbers = (given[key] for key in _KEYS[1:])
    return ViewPlan(features, resolve_kernel(shape, name, *numbers))


def _numbers(where: str, given: Any, model: Any) -> NDArray[np.intp] | None:
    """Numbers of features, from what indexes an array of numpy, or from names."""
    if given is None:
        return None
    n = model.n_features_in_
    index = given if isinstance(given, slice) else np.asarray(given)
    if isinstance(index, np.ndarray) and index.dtype.kind in "UO":
        known = {name: k for k, name in enumerate(getattr(model, "feature_names_in_", ()))}
        index = np.array([known.get(name, n) for name in index.tolist()])
    try:
        numbers = np.arange(n, dtype=np.intp)[index]
    except IndexError:
        numbers = np.empty(0, dtype=np.intp)
    if numbers.ndim != 1 or not len(numbers):
        problem = f"{where} must have a slice, a mask, or a list of numbers below {n} or of known names; got {given!r}."
        raise InputError(problem, parameter="views")
    return numbers
