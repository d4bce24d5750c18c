"""Scalers for one query at a time, and one for numbers of very different sizes.

A value of the column itself, its minimum or its first value, is subtracted first. The difference is exact or nearly so
however far the column is from zero, while subtracting a rounded mean would cost as many digits as the offset has.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from rankrls._cells import unmasked
from rankrls._checks import refusing
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._typing import Array, IdsLike, ItemsLike, Matrix, VectorLike

_FLOATS = (np.float64, np.float32)


class _QueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base class of the query scalers: validation, and iteration over queries."""

    _of_all_rows: ClassVar[type]
    """scikit-learn's scaler, which has the same effect on a single query with all rows."""
    # With metadata routing enabled, qid reaches both without a request.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__transform = {"qid": True}  # noqa: RUF012

    def _scaled(self, query: Array) -> Array:
        """The rows of one query scaled."""
        raise NotImplementedError

    def fit(self, X: ItemsLike, y: Any = None, *, qid: IdsLike | None = None) -> Self:
        """Check the rows; if they are in queries, nothing is learned from them.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Features.
        y : ignored
            Not used; for compatibility with scikit-learn.
        qid : array-like of shape (m,), optional
            Query of each row, in any order. None makes all rows one query, including those of ``transform``: its
            statistics are learned here.

        Returns
        -------
        self
        """
        values = self._checked(X)
        query_layout(qid, values.shape[0])
        self.fitted_with_qid_ = qid is not None
        self.scaler_ = None
        if qid is None:  # with arrays for any set_output; sums depend on the order of numbers in memory
            self.scaler_ = self._of_all_rows().set_output(transform="default")
            self.scaler_.fit(np.ascontiguousarray(values))
        return self

    def transform(self, X: ItemsLike, *, qid: IdsLike | None = None) -> Matrix:
        """Scale each feature inside each query.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Features; they are not changed.
        qid : array-like of shape (m,), optional
            Query of each row, required if ``fit`` had one and refused otherwise. Queries may differ from those of
            ``fit``, and should be whole: the rows of a query are scaled by each other.

        Returns
        -------
        ndarray of shape (m, n)
            Scaled features; float32 if ``X`` is, else float64.
        """
        check_is_fitted(self, "fitted_with_qid_")
        return self._transform(self._checked(X, reset=False), qid)

    def fit_transform(self, X: ItemsLike, y: Any = None, *, qid: IdsLike | None = None) -> Matrix:
        """``fit(X, qid=qid).transform(X, qid=qid)``, with the parameters described there."""
        return self.fit(X, qid=qid).transform(X, qid=qid)

    def _checked(self, X: ItemsLike, *, reset: bool = True) -> Matrix:
        with refusing("X"):
            return validate_data(self, unmasked(X), reset=reset, dtype=_FLOATS)

    def _transform(self, X: Matrix, qid: IdsLike | None) -> Matrix:
        if self.fitted_with_qid_ != (qid is not None):
            so = "with qid, and needs the qid of" if self.fitted_with_qid_ else "without qid, and takes no qid of"
            problem = f"{type(self).__name__} was fitted {so} the rows that it transforms."
            remedy = "In a pipeline, call sklearn.set_config(enable_metadata_routing=True) first, and predict with qid."
            raise InputError(f"{problem} {remedy}", parameter="qid")
        if self.scaler_ is not None:
            return self.scaler_.transform(X)
        out = np.empty(X.shape, dtype=X.dtype)
        for rows in query_layout(qid, X.shape[0]).blocks:
            out[rows] = self._scaled(X[rows].astype(np.float64))
        return out


class QueryMinMaxScaler(_QueryScaler):
    """Scale each feature to 0..1 within each query.

    ``x`` becomes ``(x - min) / (max - min)``, with the minimum and maximum of the feature in the row's query: the
    normalization of the LETOR collections and of the papers on them. A feature that is constant within a query becomes
    0 there, and so do all features of a query with a single row.

    Attributes
    ----------
    fitted_with_qid_ : bool
        Whether ``fit`` had a ``qid``. If so, each query is scaled by its own rows, and ``fit`` computes nothing. If
        not, all rows are one query, and later rows are scaled by the minimum and maximum from ``fit``, so their values
        can be outside 0..1.
    scaler_ : sklearn.preprocessing.MinMaxScaler or None
        Scaler of all rows, if there was no ``qid``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n,)
        Names of the features, if ``X`` had names.

    Notes
    -----
    O(m n), one query at a time; the only large array is the result. float32 input is computed in float64 and rounded
    once. Values are exact up to rounding, also for columns far from zero. Sparse input is an error,
    because the result would be dense.

    With metadata routing enabled, pipelines pass ``qid`` without a request.

    Examples
    --------
    >>> from rankrls.preprocessing import QueryMinMaxScaler
    >>> X = [[1.0, 7.0], [3.0, 7.0], [10.0, 1.0], [20.0, 2.0], [15.0, 5.0]]
    >>> QueryMinMaxScaler().fit_transform(X, qid=[1, 1, 2, 2, 2])
    array([[0.  , 0.  ],
           [1.  , 0.  ],
           [0.  , 0.  ],
           [1.  , 0.25],
           [0.5 , 1.  ]])
    """

    _of_all_rows = MinMaxScaler

    def _scaled(self, query: Array) -> Array:
        above = query - query.min(axis=0)
        spread = above.max(axis=0)
        return np.asarray(above / np.where(spread > 0.0, spread, 1.0))


class QueryStandardScaler(_QueryScaler):
    """Scale each feature to mean 0 and standard deviation 1 within each query.

    ``x`` becomes ``(x - mean) / std``, with the mean and the population standard deviation (divided by the number of
    rows) of the feature in the row's query. A feature that is constant within a query becomes 0 there, and so do all
    features of a query with a single row.

    Parameters
    ----------
    passthrough : bool, default=False
        Whether the result contains the unscaled features followed by the scaled ones: 2 n columns.

    Attributes
    ----------
    fitted_with_qid_ : bool
        Whether ``fit`` had a ``qid``. If so, each query is scaled by its own rows, and ``fit`` computes nothing. If
        not, all rows are one query, and later rows are scaled by the mean and deviation from ``fit``.
    scaler_ : sklearn.preprocessing.StandardScaler or None
        Scaler of all rows, if there was no ``qid``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n,)
        Names of the features, if ``X`` had names.

    Notes
    -----
    O(m n), one query at a time; the only large array is the result. float32 input is computed in float64 and rounded
    once. Differences to the query mean are exact up to rounding, also for columns far from zero.
    Sparse input is an error, because the result would be dense.

    With metadata routing enabled, pipelines pass ``qid`` without a request.

    Examples
    --------
    >>> from rankrls.preprocessing import QueryStandardScaler
    >>> X = [[1.0, 7.0], [3.0, 7.0], [10.0, 1.0], [20.0, 5.0]]
    >>> QueryStandardScaler().fit_transform(X, qid=["a", "a", "b", "b"])
    array([[-1.,  0.],
           [ 1.,  0.],
           [-1., -1.],
           [ 1.,  1.]])
    >>> QueryStandardScaler(passthrough=True).fit_transform([[1.0], [3.0]], qid=["a", "a"])
    array([[ 1., -1.],
           [ 3.,  1.]])
    """

    _of_all_rows = StandardScaler

    def __init__(self, *, passthrough: bool = False) -> None:
        self.passthrough = passthrough

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Column names of the result."""
        names = super().get_feature_names_out(input_features)
        scaled = [f"{name} in its query" for name in names]
        return np.asarray([*names, *scaled] if self.passthrough else names, dtype=object)

    def _transform(self, X: Matrix, qid: IdsLike | None) -> Matrix:
        scaled = super()._transform(X, qid)
        return np.hstack([X, scaled]) if self.passthrough else scaled

    def _scaled(self, query: Array) -> Array:
        centred = query - query[0]  # the mean of what is left loses no digits
        centred -= centred.mean(axis=0)
        deviation = centred.std(axis=0)
        return np.asarray(centred / np.where(deviation > 0.0, deviation, 1.0))


class LogScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each feature by its logarithm, and standardize the logarithms over all rows.

    ``x`` becomes ``asinh(x) = log(x + sqrt(x^2 + 1))``, then ``(asinh(x) - mean) / std``. ``asinh`` is close to
    ``log(2 x)`` for large numbers and to x around 0, and accepts negative numbers and zeros. It suits prices and
    counts.

    Attributes
    ----------
    scaler_ : sklearn.preprocessing.StandardScaler
        Scaler of the logarithms.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n,)
        Names of the features, if ``X`` had names.

    Notes
    -----
    O(m n). Sparse features remain sparse: they are divided by their standard deviation but not centred.

    Examples
    --------
    >>> from rankrls.preprocessing import LogScaler
    >>> LogScaler().fit_transform([[1.0], [1000.0], [1000000.0]]).round(2)
    array([[-1.22],
           [-0.01],
           [ 1.23]])
    """

    def fit(self, X: ItemsLike, y: Any = None, sample_weight: VectorLike | None = None) -> Self:
        """Compute the mean and standard deviation of the logarithms.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n)
            Features.
        y : ignored
            Not used; for compatibility with scikit-learn.
        sample_weight : array-like of shape (m,), optional
            Row weights.

        Returns
        -------
        self
        """
        values = self._logarithms(X, reset=True)
        scaler = StandardScaler(with_mean=not sparse.issparse(values)).set_output(transform="default")
        self.scaler_ = scaler.fit(values, sample_weight=sample_weight)
        return self

    def partial_fit(self, X: ItemsLike, y: Any = None, sample_weight: VectorLike | None = None) -> Self:
        """Add rows to the statistics.

        Parameters
        ----------
        X, y, sample_weight : as in :meth:`fit`

        Returns
        -------
        self
        """
        if "scaler_" not in vars(self):
            return self.fit(X, y, sample_weight)
        self.scaler_.partial_fit(self._logarithms(X, reset=False), sample_weight=sample_weight)
        return self

    def transform(self, X: ItemsLike) -> Matrix:
        """Return the standardized logarithms, of the shape of ``X``."""
        check_is_fitted(self)
        return self.scaler_.transform(self._logarithms(X, reset=False))

    def _logarithms(self, X: ItemsLike, *, reset: bool) -> Matrix:
        with refusing("X"):
            values: Any = validate_data(
                self, unmasked(X), reset=reset, dtype=_FLOATS, accept_sparse="csr", ensure_all_finite="allow-nan"
            )
        if not sparse.issparse(values):
            return np.arcsinh(values)
        if not values.has_canonical_format:
            values = values.copy()  # arcsinh sums duplicates in place
        return values.arcsinh()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags
