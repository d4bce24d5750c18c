"""Checks of data where users pass them to estimators: X, labels, queries, weights, preferences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _num_samples, column_or_1d, validate_data

from rankrls._arrays import host_only, in_place, namespace, on_device, to_host
from rankrls._cells import unmasked
from rankrls._checks import LARGEST, LEAST, check_magnitude, numbers_of, refusing
from rankrls._comparisons import Data, Features, LabelledItems, PreferredItems
from rankrls._curves import judged_queries
from rankrls._errors import InputError, InputWarning, warn_user
from rankrls._preferences import check_preferences
from rankrls._queries import in_words, label_varies, query_layout
from rankrls._records import unrecorded
from rankrls._rows import check_finite_features
from rankrls._typing import AnyArray, Array, IdsLike, ItemsLike, LabelsLike, Matrix, VectorLike
from rankrls.clicks import Propensities, PropensitiesLike, corrected_clicks
from rankrls.metrics._measure import check_weights as check_row_weights
from rankrls.models.spec import Accepts, Spec, XKind
from rankrls.selection.plans import Plan, ValidationPlan


class Clicks(NamedTuple):
    """Positions and numbers of impressions of rows, which correct clicks as labels."""

    position: VectorLike | None = None
    impressions: VectorLike | None = None
    propensities: PropensitiesLike | None = None


NO_CLICKS = Clicks()


def labelled_items(
    spec: Spec,
    X: ItemsLike,
    y: LabelsLike,
    qid: IdsLike | None,
    sample_weight: VectorLike | None,
    *,
    clicks: Clicks = NO_CLICKS,
    comparable: bool = True,
    seen: Features | None = None,
) -> LabelledItems:
    """Checked items with labels, without rows of weight zero.

    Parameters
    ----------
    spec : Spec
        Specification of the estimator.
    X, y, qid, sample_weight
        Data as passed by users.
    clicks : Clicks
        Positions and impressions, if labels are clicks; any of them says that they are.
    comparable : bool
        Whether some query must have different labels.
    seen : Features, optional
        Features that X must have; any by default.
    """
    Y, one_target = check_labels(spec.name, spec.accepts, y)
    given, features = check_features(spec, X, seen)
    X = in_place(given)
    m = _num_samples(given)
    if m != len(Y):
        raise InputError(
            f"X has {m} rows, but y has {len(Y)}. Pass one label, or one row of labels, for each.", parameter="y"
        )
    layout = query_layout(qid, m)
    weights = check_weights(sample_weight, m)
    propensities = None
    if any(each is not None for each in clicks):
        host_only(X, "The correction of clicks")
        Y, factors, propensities = _corrected(spec, X, Y, qid, clicks)
        weights = factors if weights is None else weights * factors
    data = LabelledItems(
        X=X,
        kept=None,
        has_qid=qid is not None,
        one_target=one_target,
        Y=Y,
        layout=layout,
        weights=weights,
        features=features,
        propensities=propensities,
        like=None if X is given else given[:0, :],
    )
    data = data.of_positive_weight(square=spec.kind == "kernel")
    if comparable:
        check_comparable(data, spec.regression_weight)
    return data


def _corrected(
    spec: Spec, X: ItemsLike, Y: Array, qid: IdsLike | None, clicks: Clicks
) -> tuple[Array, Array, Propensities]:
    """Labels and weights from clicks, without the bias of position."""
    if not spec.accepts.clicks:
        raise InputError(
            f"{spec.name} cannot be fitted to clicks. Use a squared loss, as in RankRLSCV.", parameter="position"
        )
    if clicks.position is None:
        raise InputError("impressions and propensities need position, the position of each row.", parameter="position")
    if Y.shape[1] > 1:
        raise InputError(f"Clicks must be one target; y has {Y.shape[1]}.", parameter="y")
    labels, weights, found = corrected_clicks(
        X, Y[:, 0], clicks.position, qid=qid, impressions=clicks.impressions, propensities=clicks.propensities
    )
    return labels[:, None], weights, found


def preferred_items(
    spec: Spec,
    X: ItemsLike,
    winners: VectorLike,
    losers: VectorLike,
    strength: VectorLike | None,
    weight: VectorLike | None,
    *,
    groups: IdsLike | None = None,
    item_id: IdsLike | None = None,
) -> PreferredItems:
    """Checked items with preferences between them; preferences of weight zero are dropped."""
    X, features = check_features(spec, X)
    host_only(X, "A fit of preferences")
    given = check_preferences(winners, losers, _num_samples(X), strength, weight)
    if groups is not None:
        given = replace(given, groups=query_layout(groups, given.n_rows, name="groups").codes_by_id)
    kept = given.weight > 0.0
    if not kept.any():
        name = "weight" if len(kept) else "winners"
        raise InputError("There are no preferences, or all of them have weight zero.", parameter=name)
    check_magnitude("strength", given.strength)
    check_magnitude("weight", given.weight)
    given = given.take(kept)
    if not given.strength.any():
        raise InputError("Every strength is 0: at least one preference must not be a tie.", parameter="strength")
    identity = query_layout(np.arange(given.n_items) if item_id is None else item_id, given.n_items, name="item_id")
    return PreferredItems(
        X=X,
        kept=None,
        has_qid=False,
        one_target=True,
        preferences=given,
        identity=identity.codes,
        features=features,
    )


def warn_of_one_ranking(spec: Spec, data: LabelledItems) -> None:
    """Warn if a measure of positions selects on one ranking of all evaluated rows."""
    measure = spec.measure
    if measure is None or data.has_qid or callable(measure.name) or measure.definition.over_pairs:
        return
    problem = f"Without qid, {measure} uses only the first positions of one ranking of all {data.n_rows} rows."
    remedy = "Pass qid, or use a measure of pairs (scoring)."
    warn_user(InputWarning(f"{problem} {remedy}", parameter="qid"))


def validation_plan(
    spec: Spec, data: Data, X: ItemsLike | None, y: LabelsLike | None, qid: IdsLike | None = None
) -> Plan | None:
    """Plan of the validation data; None if there are none."""
    if X is None and y is None and qid is None:
        return None
    measure = spec.required_measure
    if spec.cv is not None:
        raise InputError("Pass either cv or validation data (X_val), not both.", parameter="cv")
    if X is None or y is None:
        raise InputError("Validation data need X_val and y_val, and qid_val if fit has qid.", parameter="X_val")
    if data.has_qid and qid is None:
        problem = "The training data have query ids (qid), so the validation data need them too. Pass qid_val, one id"
        raise InputError(f"{problem} per row of X_val.", parameter="qid_val")
    try:
        items = labelled_items(spec, X, y, qid, None, comparable=False, seen=data.features)
    except InputError as error:
        name = None if error.parameter is None else f"{error.parameter}_val"
        raise error.replace(message=f"Validation data: {error.message}", parameter=name) from None
    if items.n_targets != data.n_targets:
        raise InputError(f"y_val has {items.n_targets} targets, and y {data.n_targets}.", parameter="y_val")
    if spec.kind == "kernel" and data.kept is not None and not isinstance(data.X, LinearOperator):
        items = replace(items, X=items.X[:, data.kept])  # the columns for the kept rows
    if not judged_queries(measure, items.Y[:, 0], items.layout).any():
        raise InputError("The validation data have no query with two different labels.", parameter="y_val")
    description = f"validation data with {in_words(items.n_queries)}"
    return ValidationPlan(measure=measure, description=description, items=items)


def check_features(spec: Spec, X: ItemsLike, seen: Features | None = None) -> tuple[Matrix, Features]:
    """Checked items to fit and their features, which must equal ``seen`` if given."""
    # Records the features, so that a failed fit changes nothing. Messages of scikit-learn contain the class name.
    holder = type(spec.name, (BaseEstimator,), {})()
    known = vars(holder)
    if seen is not None:
        names = {"n_features_in_": seen.count, "feature_names_in_": seen.names}
        known.update({name: value for name, value in names.items() if value is not None})
    checked = check_items(holder, X, spec.kind, spec.accepts, reset=seen is None, fits=True)
    if seen is None and spec.kind == "kernel" and checked.shape[0] != checked.shape[1]:
        raise InputError(
            f"A precomputed kernel matrix must be square to fit; got shape {checked.shape}.", parameter="X"
        )
    return checked, Features(known.get("n_features_in_"), known.get("feature_names_in_"))


def check_items(
    holder: BaseEstimator,
    X: ItemsLike,
    kind: XKind,
    accepts: Accepts,
    *,
    reset: bool = False,
    fits: bool = False,
) -> Matrix:
    """Check items against the features recorded in ``holder``, or record them (``reset``).

    With ``fits``, features whose products overflow are refused too.
    """
    if kind == "objects" and not _is_matrix(X):
        if not isinstance(X, Iterable):
            raise InputError(f"X must be a sequence of objects for a callable kernel; got {X!r}.", parameter="X")
        return list(X)
    if isinstance(X, LinearOperator) and kind == "kernel" and accepts.operators:
        with refusing("X"):
            validate_data(holder, X, reset=reset, skip_check_array=True)
        return X
    if hasattr(X, "__dask_graph__"):
        problem = "X is a Dask collection, which would be loaded into memory. Use the estimators of rankrls.dask."
        raise InputError(problem, parameter="X")
    name = type(holder).__name__
    device = on_device(X) and get_config()["array_api_dispatch"]
    if device and not accepts.devices:
        host_only(X, name)
    if device and kind != "features":
        host_only(X, "A kernel that is not a formula of features")
    if not device:
        X = _unpacked(X, None if reset else vars(holder).get("feature_names_in_"))
    xp = namespace(X) if device else np
    with refusing("X"):
        try:  # finiteness is checked below, with the row and the column in the message
            checked = validate_data(
                holder,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=[xp.float64, xp.float32],
                order="C",
                ensure_all_finite=False,
                estimator=name,
            )
        except ValueError as error:
            _refuse_text(X, error)
            raise
    checked = sparse.csr_array(checked) if sparse.issparse(checked) else checked
    if not accepts.missing_features and not (device and _has_finite_products(checked)):
        products = fits and not accepts.overflowing_products
        check_finite_features(
            to_host(checked) if device else checked, vars(holder).get("feature_names_in_"), products=products
        )
    return checked


def check_matrix(holder: BaseEstimator, X: ItemsLike, accepts: Accepts) -> Matrix:
    """Features to predict for: a dense C-ordered or CSR matrix of finite features; float32 is kept."""
    return check_items(holder, X, "features", accepts)


def _is_matrix(X: ItemsLike) -> bool:
    """Whether X contains features rather than objects for a callable kernel."""
    numbers = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"
    return numbers or on_device(X) or sparse.issparse(X) or hasattr(X, "iloc")


def _unpacked(X: ItemsLike, names: AnyArray | None) -> ItemsLike:
    """Records as a table, of the columns ``names`` if it has them all, and NaN for masked entries; refuses dates."""
    records = unrecorded(X, "X")
    if isinstance(records, Mapping) and not sparse.issparse(records):
        raise InputError("X is a dict of columns. Pass a data frame of them, or one dict for each row.", parameter="X")
    if records is not X and names is not None and {*names} <= {*records.column_names}:
        records = records.select([*names])  # by name; further records are ignored
    frame = hasattr(records, "columns") and hasattr(records, "dtypes")
    kinds = zip(records.columns, records.dtypes, strict=True) if frame else [("X", getattr(records, "dtype", ""))]
    for name, kind in kinds:
        if str(kind).lower().startswith(("date", "time", "duration")):
            where = f"Column {str(name)!r} of X" if frame else "X"
            problem = (
                f"{where} contains {kind}, not numbers. Encode it (rankrls.preprocessing.TableEncoder), or drop it."
            )
            raise InputError(problem, parameter="X", column=str(name) if frame else None)
    unpacked: ItemsLike = unmasked(records)
    return unpacked


def _has_finite_products(X: Matrix) -> bool:
    """Whether an array on a device has a norm that is neither too large nor too small; it squares the values."""
    with np.errstate(over="ignore"):
        return LEAST <= float(namespace(X).linalg.vector_norm(X)) <= LARGEST


def _refuse_text(X: ItemsLike, error: ValueError) -> None:
    """Refuse the first text cell with its row and column, which scikit-learn's error lacks."""
    cells = np.asarray(X)
    for place, value in np.ndenumerate(cells) if cells.ndim == 2 and cells.dtype.kind in "OU" else ():
        try:
            float(value) if isinstance(value, str) else 0.0
        except ValueError:
            row, number = place
            names = getattr(X, "column_names", None) or getattr(X, "columns", None)
            column = number if names is None else str(names[number])
            remedy = "Encode the column with TableEncoder, or drop it."
            problem = f"Input X contains the text {str(value)!r}: row {row}, column {column}. {remedy}"
            raise InputError(problem, parameter="X", row=row, column=column) from error


def check_labels(name: str, accepts: Accepts, y: LabelsLike) -> tuple[Array, bool]:
    """Labels as (m, targets) float64, with NaN if the model accepts unlabelled rows; and whether they were (m,)."""
    if y is None:
        raise InputError(f"{name} requires y to be passed, but the target y is None.", parameter="y")
    Y = numbers_of("y", y)
    if not accepts.several_targets:
        with refusing("y"):
            Y = column_or_1d(Y, warn=True)
    if Y.ndim not in (1, 2) or 0 in Y.shape[1:]:
        raise InputError(f"y must have shape (m,) or (m, targets); got {Y.shape}.", parameter="y")
    good = np.isfinite(Y)
    if accepts.missing_labels:
        good |= np.isnan(Y)
    if not good.all():
        row, *target = np.argwhere(~good)[0].tolist()
        value = "NaN" if np.isnan(Y[row, *target]) else "infinity"
        where = f"row {row}{f', target {target[0]}' if target else ''}"
        raise InputError(f"Input y contains {value} in {where}: every label must be finite.", parameter="y", row=row)
    check_magnitude("y", Y)
    return (Y[:, None], True) if Y.ndim == 1 else (Y, False)


def check_weights(sample_weight: VectorLike | None, m: int) -> Array | None:
    """Row weights, not all zero; None if none were given."""
    weights = check_row_weights(sample_weight, m)
    if weights is None:
        return None
    if not weights.any():
        raise InputError(
            "All values of sample_weight are zero: at least one must be positive.", parameter="sample_weight"
        )
    check_magnitude("sample_weight", weights)
    return weights


def check_qid_given(fitted_with_qid: bool, qid: IdsLike | None, what: str) -> None:
    """Refuse to rank or score without qid if the model was fitted with it."""
    if fitted_with_qid and qid is None:
        raise InputError(
            f"This model was fitted with qid, but {what} was called without: scores of different queries cannot be "
            f"compared. Pass qid to {what}, one id per row. If scikit-learn makes the call (pipelines, searches, "
            "cross_validate), call sklearn.set_config(enable_metadata_routing=True) first.",
            parameter="qid",
        )


def check_comparable(data: LabelledItems, regression_weight: float) -> None:
    """Refuse labels that are equal in every query."""
    if regression_weight == 0.0 and not label_varies(data.Y, data.layout).any():
        m = data.layout.n_rows
        q = data.layout.n_queries
        where = f"none of the {q} queries contains" if q > 1 else "the data do not contain"
        problem = f"Nothing to compare: {where} two items with different labels ({m} sample{'s' if m != 1 else ''})."
        raise InputError(f"{problem} Check the labels and the query ids.", parameter="y")
