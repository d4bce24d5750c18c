"""Estimators for labelled and unlabelled rows: checks of their rows and of their views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

import numpy as np

from rankrls._checks import refuse_foreign_arguments
from rankrls._comparisons import Features, KnownItems
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._typing import IdsLike, Index, ItemsLike, LabelsLike, VectorLike
from rankrls.kernels import check_kernel, resolve_kernel
from rankrls.learners.pursuit import ViewPlan
from rankrls.models.intake import check_comparable, labelled_items
from rankrls.models.parameters import Columns, View
from rankrls.models.ranker import Ranker
from rankrls.models.spec import Accepts, KernelGrid, Spec

_KEYS = ("features", "kernel", "gamma", "degree", "coef0", "kernel_params")


class PartlyLabelledRanker(Ranker):
    """Estimator fitted to rows of which some have a label."""

    _accepts = Accepts(missing_labels=True)

    @refuse_foreign_arguments
    def fit(
        self, X: ItemsLike, y: LabelsLike, *, qid: IdsLike | None = None, sample_weight: VectorLike | None = None
    ) -> Self:
        """Fit rows with and without labels; parameters are selected by held-out labelled queries, if any.

        Parameters
        ----------
        X : as for :meth:`RankRLS.fit`
        y : array-like of shape (m,), or (m, targets) for estimators with several targets
            Labels; higher is better, and NaN marks an unlabelled row.
        qid : array-like of shape (m,), optional
            One query id per row. With None, all rows form one global ranking.
        sample_weight : array-like of shape (m,), optional
            Nonnegative row weights.

        Returns
        -------
        self
        """
        spec = self._spec()
        known = partly_labelled(spec, X, y, qid, sample_weight)
        return self._set_fitted(spec.fit(known, spec.query_plan(known)))


def partly_labelled(
    spec: Spec, X: ItemsLike, y: LabelsLike, qid: IdsLike | None, sample_weight: VectorLike | None
) -> KnownItems:
    """Checked rows of which some have a label; NaN in y marks an unlabelled row."""
    data = labelled_items(spec, X, y, qid, sample_weight, comparable=False)
    missing = np.isnan(data.Y)
    labelled = np.logical_not(missing.all(axis=1))
    partly = missing.any(axis=1) & labelled
    if partly.any():
        row = int(data.given_numbers(np.flatnonzero(partly))[0])
        problem = f"Input y contains NaN for some targets of row {row}: each row needs all its labels or none."
        raise InputError(problem, parameter="y", row=row)
    if not labelled.any():
        raise InputError("Every row is unlabelled (NaN in y): at least one query needs labels.", parameter="y")
    rows = np.flatnonzero(labelled)
    data = replace(data, Y=np.where(missing, 0.0, data.Y))
    kept = np.isin(np.arange(data.n_given), data.given_numbers(rows))
    part = data.take(rows, items=False)
    known = KnownItems(
        rows[:, None].astype(np.float64),
        None if kept.all() else kept,
        data.has_qid,
        data.one_target,
        part.Y,
        query_layout(data.layout.ids[data.layout.codes[rows]], len(rows)),  # folds depend on the ids
        part.weights,
        data,
        labelled,
        features=data.features,
    )
    check_comparable(known, spec.regression_weight)
    return known


def view_plans(views: Sequence[View] | None, features: Features, kernel: KernelGrid) -> list[ViewPlan]:
    """Resolve the views of an estimator; None means the two halves of the features.

    ``kernel`` is that of views without their own.
    """
    n = features.count or 0
    if views is None:
        half = (n + 1) // 2
        views = (slice(0, half), slice(half, None)) if n > 1 else ({},)
    if isinstance(views, (str, Mapping)) or not np.iterable(views):
        raise InputError(f"views must be a sequence of views; got {views!r}.", parameter="views")
    plans = [_plan(f"views[{v}]", view, features, kernel) for v, view in enumerate(views)]
    if not plans:
        raise InputError("views is empty: at least one view is needed.", parameter="views")
    return plans


def _plan(where: str, view: View, known: Features, kernel: KernelGrid) -> ViewPlan:
    if isinstance(view, str) or callable(view):
        view = {"kernel": view}
    elif not isinstance(view, Mapping):
        view = {"features": view}
    unknown = [key for key in view if key not in _KEYS]
    if unknown:
        raise InputError(f"{where} has {unknown[0]!r}; the keys of a view are {', '.join(_KEYS)}.", parameter="views")
    given = {**kernel.values, **view}
    if "kernel" in view:
        given["kernel_params"] = view.get("kernel_params")
    features = _numbers(where, given.pop("features", None), known)
    try:
        check_kernel(**given)
    except InputError as error:
        raise InputError(f"{where}: {error}", parameter="views") from None
    if isinstance(given["kernel"], str) and given["kernel"] == "precomputed":
        raise InputError(f"{where}: views need features, and a precomputed kernel has none.", parameter="kernel")
    shape = np.empty((0, known.count or 0 if features is None else len(features)))
    return ViewPlan(features, resolve_kernel(shape, **given))


def _numbers(where: str, given: Columns | None, features: Features) -> Index | None:
    """Numbers of features, from an index of a numpy array or from names."""
    if given is None:
        return None
    n = features.count or 0
    index = given if isinstance(given, slice) else np.asarray(given)
    if isinstance(index, np.ndarray) and index.dtype.kind in "UO":
        known = {name: k for k, name in enumerate(() if features.names is None else features.names)}
        index = np.array([known.get(name, n) for name in index.tolist()])
    try:
        numbers = np.arange(n, dtype=np.intp)[index]
    except IndexError:
        numbers = np.empty(0, dtype=np.intp)
    if numbers.ndim != 1 or not len(numbers):
        problem = f"Features of {where} must be a slice, a mask, or numbers below {n} or known names; got {given!r}."
        raise InputError(problem, parameter="views")
    return numbers
