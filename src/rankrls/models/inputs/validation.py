"""What comes in through an estimator's methods, checked once and made into comparisons."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.validation import _num_samples, validate_data

from rankrls._checks import numbers_of
from rankrls._comparisons import LabelledItems, PreferredItems
from rankrls._errors import InputError
from rankrls._preferences import PreferenceTable, check_preferences
from rankrls._queries import in_words, label_varies, query_layout
from rankrls._rows import check_finite_features
from rankrls.metrics import RankingMeasure
from rankrls.metrics._checks import check_weights as check_row_weights
from rankrls.selection.judging import LabelJudge, judged_queries
from rankrls.selection.plans import Validation

_MATRIX: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": False,  # checked here, with the row and the column in the message
}


def labelled_items(
    estimator: Any, X: Any, y: Any, qid: Any, sample_weight: Any, *, kernel: Any, reset: bool = True
) -> LabelledItems:
    """Check what ``fit`` was given. Errors name the row, and the column or feature. Rows of weight zero go."""
    _refuse_collections(X=X, y=y, qid=qid, sample_weight=sample_weight)
    if y is None:
        raise InputError(f"{_name(estimator)} requires y to be passed, but the target y is None.", parameter="y")
    Y, one_target = check_labels(y)  # before scikit-learn looks, whose messages name no row
    X = check_features(estimator, X, kernel=kernel, reset=reset, products=True)
    if _num_samples(X) != len(Y):
        raise InputError(
            f"X has {_num_samples(X)} items but y has {len(Y)} labels; it needs one label per item.", parameter="y"
        )
    layout, weights = query_layout(qid, len(Y)), check_weights(sample_weight, len(Y))
    data = LabelledItems(X, None, qid is not None, one_target, Y, layout, weights)
    return data.of_positive_weight(square=isinstance(kernel, str) and kernel == "precomputed")


def _name(estimator: Any) -> str:
    return type(estimator).__name__


def preferred_items(
    estimator: Any, X: Any, winners: Any, losers: Any, strength: Any, weight: Any, *, kernel: Any, groups: Any = None
) -> PreferredItems:
    """Check items and preferences; preferences of weight zero are dropped."""
    _refuse_collections(X=X, winners=winners, losers=losers, strength=strength, weight=weight, groups=groups)
    X = check_features(estimator, X, kernel=kernel, reset=True, products=True)
    m = _num_samples(X)
    given = check_preferences(winners, losers, m, strength, weight)
    if not len(given.winners):
        raise InputError("There are no preferences to learn from.", parameter="winners")
    codes = None
    if groups is not None:
        codes = query_layout(groups, len(given.winners), name="groups").codes
    kept = given.weight > 0.0
    if not kept.any():
        raise InputError("All preferences have weight zero: there is nothing to learn from.", parameter="weight")
    if not kept.all():
        given = given.rows(kept)
        codes = None if codes is None else np.unique(codes[kept], return_inverse=True)[1]
    if not given.strength.any():
        raise InputError("Every strength is 0: ties alone order nothing.", parameter="strength")
    i, j, s, c = given
    return PreferredItems(X, None, False, True, PreferenceTable(i, j, m, s, c, codes))


def validation_data(
    estimator: Any, measure: RankingMeasure, data: Any, X_val: Any, y_val: Any, qid_val: Any, *, kernel: Any
) -> Validation:
    """Check rows of their own to judge on, given beside the training data of a ``fit``.

    ``X`` of the result has the columns that a model of ``data`` takes: with a precomputed kernel those of the rows
    that were kept.
    """
    if X_val is None or y_val is None:
        raise InputError("Validation data need X_val and y_val, and qid_val if fit has qid.", parameter="X_val")
    check_no_extra_qid(data.has_qid, qid_val, "fit's validation data (qid_val)")
    X = check_features(estimator, X_val, kernel=kernel)
    Y, _ = check_labels(y_val)
    rows, targets = _num_samples(X), data.Y.shape[1] if hasattr(data, "Y") else 1
    if len(Y) != rows:
        raise InputError(f"X_val has {rows} rows but y_val has {len(Y)} labels.", parameter="y_val")
    if Y.shape[1] != targets:
        raise InputError(f"y_val has {Y.shape[1]} targets but y has {targets}.", parameter="y_val")
    if isinstance(kernel, str) and kernel == "precomputed" and data.kept is not None:
        operators = [isinstance(part, LinearOperator) for part in (data.X, X)]
        if operators == [False, True]:
            raise InputError(
                "With rows of weight zero, X and X_val must both be matrices, or both LinearOperators.",
                parameter="X_val",
            )
        X = X if operators[0] else X[:, data.kept]
    layout = query_layout(qid_val, rows)
    if not rows or not judged_queries(measure, Y[:, 0], layout).any():
        raise InputError(
            "The validation data hold no query that the measure can judge (two different labels).", parameter="y_val"
        )
    return Validation(LabelJudge(measure, Y, layout), X, f"validation data with {in_words(layout.n_queries)}")


def check_features(estimator: Any, X: Any, *, kernel: Any, reset: bool = False, products: bool = False) -> Any:
    """Check items against what ``fit`` saw, or remember them (``reset``); ``products`` says they are there to learn."""
    if not holds_objects(X, kernel):
        if isinstance(X, LinearOperator):
            return check_operator(estimator, X, reset=reset)
        return check_matrix(estimator, X, reset=reset, products=products)
    X = list(X)
    if products and not X:
        raise InputError("X is empty: there is nothing to learn from.", parameter="X")
    return X


def check_operator(estimator: Any, X: LinearOperator, *, reset: bool) -> LinearOperator:
    """A kernel that is known by its products, for estimators that take one."""
    name = type(estimator).__name__
    if not getattr(estimator, "_accepts_operators", False):
        raise InputError(f"{name} needs a matrix; CGRankRLS takes a LinearOperator.", parameter="X")
    if estimator.kernel != "precomputed":
        raise InputError(
            f"A LinearOperator is a kernel: {name} takes it with kernel='precomputed'.", parameter="kernel"
        )
    if reset:
        if X.shape[0] != X.shape[1]:
            raise InputError(f"A precomputed kernel must be square to fit; got shape {X.shape}.", parameter="X")
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
    elif X.shape[1] != estimator.n_features_in_:
        raise InputError(
            f"X has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features.", parameter="X"
        )
    return X


def check_matrix(estimator: Any, X: Any, *, reset: bool, products: bool = False) -> Any:
    """A dense C-ordered or CSR matrix of finite features, whose ``products`` are finite too; float32 stays float32."""
    X = _as_csr_array(_validated(estimator, X, reset=reset, **_MATRIX))
    products = products and getattr(estimator, "_multiplies_features", True)
    check_finite_features(X, getattr(estimator, "feature_names_in_", None), products=products)
    return X


def holds_objects(X: Any, kernel: Any) -> bool:
    """Whether X is a sequence of objects for a callable kernel, not a matrix of features."""
    if not callable(kernel):
        return False
    if sparse.issparse(X) or hasattr(X, "columns") or hasattr(X, "iloc"):
        return False
    return not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub")


def _refuse_collections(**given: Any) -> None:
    """Refuse what lies on a cluster before anything looks at its values."""
    for parameter, value in given.items():
        if hasattr(value, "__dask_graph__"):
            raise InputError(
                f"{parameter} is a Dask collection, which would be pulled into the memory of this process. "
                "rankrls.dask has estimators for it, with the same names; or call compute() yourself.",
                parameter=parameter,
            )


def _validated(estimator: Any, X: Any, **options: Any) -> Any:
    """scikit-learn's check, whose message about text names no place."""
    _refuse_collections(X=X)
    try:
        return validate_data(estimator, X, **options)
    except ValueError as error:
        where = _not_a_number(X)
        if where is None:
            raise
        row, column, value = where
        names = getattr(X, "columns", None)
        name = "" if names is None else f" ({names[column]!r})"
        raise InputError(
            f"Input X holds the text {value!r}: row {row}, column {column}{name}. Features are numbers. "
            "Encode such columns, or leave them out.",
            parameter="X",
            row=row,
            column=column if names is None else str(names[column]),
        ) from error


def _not_a_number(values: Any) -> tuple[int, int, Any] | None:
    """Row, column and content of the first text that is not a number."""
    cells = np.asarray(values)
    if cells.ndim not in (1, 2) or cells.dtype.kind not in "OUS":
        return None
    for (row, *column), value in np.ndenumerate(cells):
        try:
            float(value)
        except (TypeError, ValueError):
            return row, *(column or [0]), str(value) if isinstance(value, np.str_) else value
    return None


def check_labels(y: Any) -> tuple[NDArray[np.float64], bool]:
    """Labels as (m, targets) float64, and whether they came as (m,)."""
    try:
        given = np.asarray(y)
        is_complex = given.dtype.kind == "c"
        Y = np.asarray(given.real if is_complex else given, dtype=np.float64)
    except (TypeError, ValueError):
        where = _not_a_number(y)
        got = "" if where is None else f" Row {where[0]} holds {where[2]!r}."
        raise InputError(
            f"y must be numeric: graded relevance, utilities, or a binary outcome.{got}",
            parameter="y",
            row=None if where is None else where[0],
        ) from None
    if is_complex:
        raise InputError("Complex data not supported: y must hold real numbers.", parameter="y")
    if Y.ndim not in (1, 2) or (Y.ndim == 2 and Y.shape[1] == 0):
        raise InputError(f"y must have shape (m,) or (m, targets); got {Y.shape}.", parameter="y")
    finite = np.isfinite(Y)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        value = "NaN" if np.isnan(Y[tuple(where)]) else "infinity or a value too large for float64"
        column = f", target {where[1]}" if Y.ndim == 2 else ""
        raise InputError(
            f"Input y contains {value}: row {where[0]}{column}. Every row needs a finite label.",
            parameter="y",
            row=int(where[0]),
        )
    return (Y[:, None], True) if Y.ndim == 1 else (Y, False)


def without_nan(y: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """Labels with 0 in the place of NaN, and where it was; what cannot be read is left to others to refuse."""
    _refuse_collections(y=y)
    given = np.asarray(y)
    if given.dtype.kind == "c":
        return y, None
    try:
        given = given.astype(np.float64)
    except (TypeError, ValueError):
        return y, None
    missing = np.isnan(given)
    if given.ndim not in (1, 2) or not missing.any():
        return y, None
    return np.where(missing, 0.0, given), missing


def split_labels(y: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """Labels with 0 in the place of NaN, and which rows have none."""
    labels, missing = without_nan(y)
    if missing is None or missing.ndim == 1:
        return labels, missing
    partly = missing.any(axis=1) & ~missing.all(axis=1)
    if partly.any():
        row = int(np.argmax(partly))
        raise InputError(
            f"Input y contains NaN for some targets of row {row} and labels for others: a row has all its "
            "labels, or its query has none. Fit targets with different unscored queries separately.",
            parameter="y",
            row=row,
        )
    return labels, missing[:, 0]


def check_weights(sample_weight: Any, m: int) -> NDArray[np.float64] | None:
    """Row weights, or None where none were given."""
    if sample_weight is None:
        return None
    w = numbers_of("sample_weight", sample_weight)
    if w.ndim > 1:
        raise InputError(f"Sample weights must be 1D array or scalar; got shape {w.shape}.", parameter="sample_weight")
    if w.ndim == 1 and len(w) != m:
        raise InputError(
            f"sample_weight.shape == {w.shape}, expected {(m,)}: it needs one weight per row.",
            parameter="sample_weight",
        )
    checked = check_row_weights(np.full(m, w), m)
    if checked is None or not checked.any():
        raise InputError(
            "All values of sample_weight are zero: there is nothing to learn from.", parameter="sample_weight"
        )
    return checked


def check_no_extra_qid(fitted_with_qid: bool, qid: Any, what: str) -> None:
    """A model of queries cannot be judged as if everything were one query."""
    if fitted_with_qid and qid is None:
        by_routing = (
            " If scikit-learn makes the call (pipelines, searches, cross_validate), qid arrives by metadata routing: "
            "call sklearn.set_config(enable_metadata_routing=True) first."
        )
        raise InputError(
            f"This model was fitted with qid, but {what} was called without: scores of different queries "
            f"cannot be compared. Pass qid to {what}, one id per "
            f"row.{by_routing if what == 'score' else ''}",
            parameter="qid",
        )


def check_comparable(data: Any, regression_weight: float) -> None:
    """Refuse labels that order nothing; preferences were checked when they became a graph."""
    if regression_weight > 0.0 or isinstance(data, PreferredItems):
        return
    if not label_varies(data.Y, data.layout).any():
        m, q = data.layout.n_rows, data.layout.n_queries
        where = f"none of the {q} queries holds" if q > 1 else "the data do not hold"
        raise InputError(
            f"Nothing to compare: {where} two items with different labels "
            f"({m} sample{'s' if m != 1 else ''}). Learning to rank needs at least one query with two "
            "different labels. Check the labels and the query ids.",
            parameter="y",
        )


def _as_csr_array(X: Any) -> Any:
    """CSR matrices become CSR arrays over the same memory."""
    return sparse.csr_array(X) if sparse.issparse(X) else X
