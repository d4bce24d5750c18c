"""What comes in through an estimator's methods, checked once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.validation import validate_data

from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls.graph.scored import label_varies
from rankrls.kernels import KERNELS

__all__ = [
    "TrainingData",
    "check_alpha",
    "check_alphas",
    "check_choice",
    "check_comparable",
    "check_count",
    "check_features",
    "check_finite_features",
    "check_fraction",
    "check_kernel",
    "check_labels",
    "check_matrix",
    "check_no_extra_qid",
    "check_operator",
    "check_weights",
    "holds_objects",
    "split_labels",
    "take_rows",
    "training_data",
]

Choices = Iterable[str]
_MATRIX: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": False,  # checked here, with the row and the column in the message
}


@dataclass(frozen=True)
class TrainingData:
    """Checked data: rows of weight zero are gone.

    Attributes
    ----------
    X : ndarray, csr_array or list
    Y : ndarray of shape (m, targets)
    layout : QueryLayout
    weights : ndarray of shape (m,) or None
    one_target : bool
        Whether y was one-dimensional.
    has_qid : bool
    kept : ndarray of shape (rows given,), bool, or None
        Which rows are left, where some had weight zero.
    """

    X: Any
    Y: NDArray[np.float64]
    layout: QueryLayout
    weights: NDArray[np.float64] | None
    one_target: bool
    has_qid: bool
    kept: NDArray[np.bool_] | None

    def rows(self, rows: NDArray[np.intp]) -> TrainingData:
        """Some rows, as training data of their own."""
        return replace(
            self,
            X=take_rows(self.X, rows),
            Y=self.Y[rows],
            layout=query_layout(self.layout.codes[rows], len(rows)),
            weights=None if self.weights is None else self.weights[rows],
            kept=None,
        )


def training_data(
    estimator: Any, X: Any, y: Any, qid: Any, sample_weight: Any, *, kernel: Any, reset: bool = True
) -> TrainingData:
    """Check what ``fit`` was given. Errors name the row, and the column or feature."""
    if holds_objects(X, kernel):
        if y is None:
            raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
        X = list(X)
        y = np.asarray(y)
        if not X:
            raise ValueError("X is empty: there is nothing to learn from.")
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} items but y has {len(y)} labels; it needs one label per item.")
    elif isinstance(X, LinearOperator):
        X = check_operator(estimator, X, reset=reset)
        if y is None:
            raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
        if len(np.atleast_1d(np.asarray(y))) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} items but y has {len(y)} labels; it needs one label per item.")
    else:
        if y is not None and not sparse.issparse(y):
            check_labels(y)  # before scikit-learn, whose message names no row
        X, y = _validated(
            estimator,
            X,
            y,
            reset=reset,
            multi_output=True,
            **_MATRIX,
        )
        X = _as_csr_array(X)
        products = getattr(estimator, "_multiplies_features", True)
        check_finite_features(X, getattr(estimator, "feature_names_in_", None), products=products)
    Y, one_target = check_labels(y)
    layout = query_layout(qid, len(Y))
    weights = check_weights(sample_weight, len(Y))
    data = TrainingData(X, Y, layout, weights, one_target, qid is not None, None)
    if weights is None or (weights > 0.0).all():
        return data
    kept = weights > 0.0
    rows = np.flatnonzero(kept)
    if isinstance(X, LinearOperator):  # it cannot be cut: who multiplies by it has to mind ``kept``
        left = replace(replace(data, X=np.empty((len(Y), 0))).rows(rows), X=X)
    else:
        left = data.rows(rows)
        if kernel == "precomputed":
            left = replace(left, X=left.X[:, rows])
    return replace(left, layout=query_layout(np.asarray(_row_ids(layout))[rows], len(rows)), kept=kept)


def _row_ids(layout: QueryLayout) -> NDArray[Any]:
    return layout.ids[layout.codes]


def check_features(estimator: Any, X: Any, *, kernel: Any) -> Any:
    """Check what ``predict`` was given against what ``fit`` saw."""
    if holds_objects(X, kernel):
        return list(X)
    return (
        check_operator(estimator, X, reset=False)
        if isinstance(X, LinearOperator)
        else check_matrix(estimator, X, reset=False)
    )


def check_operator(estimator: Any, X: LinearOperator, *, reset: bool) -> LinearOperator:
    """A kernel that is known by its products, for estimators that take one."""
    name = type(estimator).__name__
    if not getattr(estimator, "_accepts_operators", False):
        raise ValueError(f"{name} needs a matrix; CGRankRLS takes a LinearOperator.")
    if estimator.kernel != "precomputed":
        raise ValueError(f"A LinearOperator is a kernel: {name} takes it with kernel='precomputed'.")
    if reset:
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"A precomputed kernel must be square to fit; got shape {X.shape}.")
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(f"X has {X.shape[1]} features, but {name} is expecting {estimator.n_features_in_} features.")
    return X


def check_matrix(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A dense C-ordered or CSR matrix of finite features; float32 stays float32."""
    X = _validated(estimator, X, reset=reset, **_MATRIX)
    X = _as_csr_array(X)
    products = reset and getattr(estimator, "_multiplies_features", True)
    check_finite_features(X, getattr(estimator, "feature_names_in_", None), products=products)
    return X


def holds_objects(X: Any, kernel: Any) -> bool:
    """Whether X is a sequence of objects for a callable kernel, not a matrix of features."""
    if not callable(kernel):
        return False
    if sparse.issparse(X) or hasattr(X, "columns") or hasattr(X, "iloc"):
        return False
    return not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub")


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Rows of a matrix, or items of a list."""
    return [X[i] for i in rows] if isinstance(X, list) else X[rows]


def _validated(estimator: Any, X: Any, *y: Any, **options: Any) -> Any:
    """scikit-learn's check, whose message about text names no place."""
    try:
        return validate_data(estimator, X, *y, **options)
    except ValueError as error:
        where = _not_a_number(X) if str(error).startswith("could not convert string to float") else None
        if where is None:
            raise
        row, column, value = where
        names = getattr(X, "columns", None)
        name = "" if names is None else f" ({names[column]!r})"
        raise ValueError(
            f"Input X holds the text {value!r}: row {row}, column {column}{name}. Features are numbers: encode such "
            "columns, or leave them out."
        ) from error


def _not_a_number(values: Any) -> tuple[int, int, Any] | None:
    """Row, column and content of the first text that is no number."""
    cells = np.asarray(values, dtype=object)
    if cells.ndim not in (1, 2):
        return None
    for (row, *column), value in np.ndenumerate(cells):
        try:
            float(value)
        except (TypeError, ValueError):
            return row, *(column or [0]), value
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
        raise ValueError(f"y must be numeric: graded relevance, utilities, or a binary outcome.{got}") from None
    if is_complex:
        raise ValueError("Complex data not supported: y must hold real numbers.")
    if Y.ndim not in (1, 2) or (Y.ndim == 2 and Y.shape[1] == 0):
        raise ValueError(f"y must have shape (m,) or (m, targets); got {Y.shape}.")
    finite = np.isfinite(Y)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        value = "NaN" if np.isnan(Y[tuple(where)]) else "infinity or a value too large for float64"
        column = f", target {where[1]}" if Y.ndim == 2 else ""
        raise ValueError(f"Input y contains {value}: row {where[0]}{column}. Every row needs a finite label.")
    return (Y[:, None], True) if Y.ndim == 1 else (Y, False)


def split_labels(y: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """Labels with 0 in the place of NaN, and which rows have none; what cannot be read is left to others to refuse."""
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
    if given.ndim == 2:
        partly = missing.any(axis=1) & ~missing.all(axis=1)
        if partly.any():
            raise ValueError(
                f"Input y contains NaN for some targets of row {int(np.argmax(partly))} and labels for others: a row "
                "has all its labels, or its query has none. Fit targets with different unscored queries separately."
            )
    return np.where(missing, 0.0, given), missing if given.ndim == 1 else missing[:, 0]


def check_weights(sample_weight: Any, m: int) -> NDArray[np.float64] | None:
    """Row weights, or None where none were given."""
    if sample_weight is None:
        return None
    try:
        w = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numeric, one weight per row.") from None
    if w.ndim == 0:
        w = np.full(m, float(w))
    if w.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar; got shape {w.shape}.")
    if len(w) != m:
        raise ValueError(f"sample_weight.shape == {w.shape}, expected {(m,)}: it needs one weight per row.")
    bad = ~(np.isfinite(w) & (w >= 0.0))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"sample_weight must be finite and not negative; row {row} has {w[row]}.")
    if not (w > 0.0).any():
        raise ValueError("All values of sample_weight are zero: there is nothing to learn from.")
    return w


def check_alpha(alpha: Any) -> float:
    """One regularization value."""
    if isinstance(alpha, (bool, np.bool_)) or not isinstance(alpha, Real):
        hint = " RankRLSCV chooses it." if isinstance(alpha, str) else ""
        raise ValueError(f"alpha must be a number; got {alpha!r}.{hint}")
    value = float(alpha)
    if not (np.isfinite(value) and value >= 0.0):
        raise InputError("{alpha} must be finite and not negative; got {0!r}.", alpha, parameter="alpha")
    return value


def check_alphas(alphas: Any) -> NDArray[np.float64]:
    """A grid of regularization values, in the caller's order."""
    if not isinstance(alphas, str) and np.ndim(alphas) == 1 and len(alphas) == 0:
        raise ValueError("alphas is empty: there is nothing to choose from.")
    if isinstance(alphas, str) or np.ndim(alphas) != 1:
        raise InputError("{alphas} must be 'auto' or a sequence of numbers; got {0!r}.", alphas, parameter="alphas")
    return np.array([check_alpha(a) for a in alphas])


def check_choice(name: str, value: Any, choices: Choices) -> None:
    """One of some words."""
    if value not in tuple(choices):
        words = ", ".join(repr(c) for c in choices)
        hint = " The Gaussian kernel is 'rbf'." if name == "kernel" and value in ("gaussian", "gauss") else ""
        raise InputError(f"{{{name}}} must be one of {{0}}; got {{1!r}}.{hint}", words, value, parameter=name)


def check_fraction(name: str, value: Any) -> float:
    """A number in [0, 1]."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise InputError(f"{{{name}}} must be a number from 0 to 1; got {{0!r}}.", value, parameter=name)
    return float(value)


def check_count(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or int(value) < 1:
        raise InputError(f"{{{name}}} must be a whole number of at least 1; got {{0!r}}.", value, parameter=name)
    return int(value)


def check_kernel(kernel: Any, gamma: Any, degree: Any, coef0: Any, kernel_params: Any) -> None:
    """A kernel's name and its parameters."""
    if not callable(kernel):
        check_choice("kernel", kernel, KERNELS)
    if gamma is not None and not (isinstance(gamma, Real) and np.isfinite(float(gamma)) and float(gamma) > 0.0):
        raise InputError("{gamma} must be None or a positive number; got {0!r}.", gamma, parameter="gamma")
    if kernel in ("polynomial", "poly") and not (isinstance(degree, Integral) and int(degree) >= 1):
        raise InputError("{degree} must be a whole number of at least 1; got {0!r}.", degree, parameter="degree")
    if not (isinstance(coef0, Real) and np.isfinite(float(coef0))):
        raise InputError("{coef0} must be a finite number; got {0!r}.", coef0, parameter="coef0")
    if kernel_params is not None and not callable(kernel):
        raise ValueError("kernel_params are the keyword arguments of a kernel function; kernel is a name here.")


def check_no_extra_qid(fitted_with_qid: bool, qid: Any, what: str) -> None:
    """A model of queries cannot be judged as if everything were one query."""
    if fitted_with_qid and qid is None:
        by_routing = (
            " Where scikit-learn makes the call (pipelines, searches, cross_validate), qid arrives by metadata "
            "routing: call sklearn.set_config(enable_metadata_routing=True) first."
        )
        raise ValueError(
            f"This model was fitted with qid, but {what} was called without: scores of different queries cannot be "
            f"compared. Pass qid to {what}, one id per row.{by_routing if what == 'score' else ''}"
        )


def check_comparable(data: TrainingData, regression_weight: float) -> None:
    """Refuse labels that order nothing."""
    if regression_weight > 0.0:
        return
    if not label_varies(data.Y, data.layout).any():
        m, q = data.layout.n_rows, data.layout.n_queries
        where = f"none of the {q} queries holds" if q > 1 else "the data do not hold"
        raise InputError(
            "Nothing to compare: {0} two items with different labels ({1} sample{2}). Learning to rank needs at least "
            "one query with two different labels.",
            *(where, m, "s" if m != 1 else ""),
            remedy="Check the labels and the query ids.",
        )


def _as_csr_array(X: Any) -> Any:
    """CSR matrices become CSR arrays over the same memory."""
    return sparse.csr_array(X) if sparse.issparse(X) else X


def check_finite_features(X: Any, names: NDArray[Any] | None, what: str = "X", *, products: bool = False) -> None:
    """Refuse NaN and infinity, and values too large to be multiplied where ``products``; name the first one's place."""
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):  # one pass, no copy; a finite sum has finite terms
        if products and values.dtype == np.float64:  # and no inner product of rows or columns is larger than this one
            flat = values.ravel(order="K")
            if np.isfinite(np.vdot(flat, flat)):
                return
        elif np.isfinite(values.sum(dtype=np.float64)):
            return
    good = np.isfinite(values)
    if good.all():
        if not products or values.dtype != np.float64:
            return
        good = np.abs(values) < np.abs(values).max()
    if sparse.issparse(X):
        position = int(np.argmin(good))
        row = int(np.searchsorted(X.indptr, position, side="right")) - 1
        column, value = int(X.indices[position]), values[position]
    else:
        row, column = (int(v) for v in np.argwhere(~good)[0])
        value = values[row, column]
    name = "" if names is None else f" ({names[column]!r})"
    if np.isfinite(value):
        raise InputError(
            "Input {0} holds values whose products overflow, the largest {1:g}: row {2}, column {3}{4}.",
            *(what, value, row, column, name),
            remedy="Scale the features before fitting.",
            parameter=what,
            row=row,
            column=column,
        )
    word = "NaN" if np.isnan(value) else "infinity"
    raise InputError(
        "Input {0} contains {1}: row {2}, column {3}{4}.",
        *(what, word, row, column, name),
        remedy="Remove or impute such values before fitting.",
        parameter=what,
        row=row,
        column=column,
    )
