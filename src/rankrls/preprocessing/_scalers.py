"""Scalers that work on one query at a time."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from rankrls._compiled.threads import balanced_blocks, map_threads, n_threads
from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls.features.finite import check_finite_features
from rankrls.preprocessing._loops import FACTOR, REST, SCALE, SHIFT, apply, scale_queries, sparse_scales, statistics

_BLOCK = 1 << 17
"""Values that are scaled at a time: 1 MiB, so that they stay in cache from the first pass over them to the last."""
_LEAST_COLUMNS = 8


class _QueryScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What the scalers share: validation, walking the queries, and learning from one query that holds all rows."""

    # With metadata routing enabled, qid reaches both without being asked for.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__transform = {"qid": True}  # noqa: RUF012

    # (standard, with_mean, with_std, low, high), as the compiled loops take them
    def _options(self) -> tuple[bool, bool, bool, float, float]:
        raise NotImplementedError

    def _check_sparse(self, X: Any) -> None:
        raise NotImplementedError

    def fit(self, X: ArrayLike, y: Any = None, *, qid: ArrayLike | None = None) -> _QueryScaler:
        """Check the rows; learn nothing from them if they come in queries.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Features.
        y : ignored
            For scikit-learn.
        qid : array-like of shape (m,), optional
            Query of each row, in any order. None is one query that holds every row, those of ``transform`` too: its
            statistics are learned here.

        Returns
        -------
        self
        """
        self._fit(X, qid)
        return self

    def transform(self, X: ArrayLike, *, qid: ArrayLike | None = None) -> Any:
        """Scale each feature inside each query.

        Parameters
        ----------
        X : array-like of shape (m, n)
            Features; not changed.
        qid : array-like of shape (m,), optional
            Query of each row, needed if ``fit`` had one and refused if it had none. The queries may be others
            than those of ``fit``, and should come whole: a query's rows are scaled by each other.

        Returns
        -------
        ndarray or csr_array of shape (m, n)
            float32 if ``X`` is, else float64.
        """
        check_is_fitted(self, "fitted_with_qid_")
        return self._transform(self._validated(X, reset=False), qid)

    def fit_transform(self, X: ArrayLike, y: Any = None, *, qid: ArrayLike | None = None) -> Any:
        """``fit(X, qid=qid).transform(X, qid=qid)``, with the parameters described there."""
        return self._transform(self._fit(X, qid), qid)

    def _fit(self, X: ArrayLike, qid: ArrayLike | None) -> Any:
        self._options()
        values = self._validated(X, reset=True)
        query_layout(qid, values.shape[0])
        self.fitted_with_qid_ = qid is not None
        self._statistics = None if qid is not None else self._learn(values)
        return values

    def _validated(self, X: Any, *, reset: bool) -> Any:
        if issparse(X) or hasattr(X, "tocsr"):
            self._check_sparse(X)
        values = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_all_finite=False
        )
        check_finite_features(values, getattr(self, "feature_names_in_", None))
        if issparse(values) and not values.has_canonical_format:
            values = values.copy()
            values.sum_duplicates()
        return values

    def _transform(self, X: Any, qid: ArrayLike | None) -> Any:
        if qid is None and self.fitted_with_qid_:
            raise InputError(
                "{0} was fitted with {qid} and has to be given {qid} for the rows that it transforms: without, they "
                "would be scaled as one big query.",
                type(self).__name__,
                remedy="A pipeline hands it on with metadata routing: call "
                "sklearn.set_config(enable_metadata_routing=True) first, and give qid to the pipeline's predict.",
            )
        if qid is not None and not self.fitted_with_qid_:
            problem = (
                "{0} was fitted without {qid}, on one query that holds every row, and cannot transform rows of several "
                "queries:"
            )
            raise InputError(problem, type(self).__name__, remedy="fit it with {qid}.")
        layout = query_layout(qid, X.shape[0])
        if issparse(X):
            return self._transform_sparse(X, layout)
        out = np.empty(X.shape, dtype=X.dtype)
        if self._statistics is not None:
            self._apply_learned(X, out)
        else:
            self._scale(X, layout, out)
        return out

    def _scale(self, X: NDArray[Any], layout: QueryLayout, out: NDArray[Any]) -> None:
        """Copy some queries into a block, scale them there, copy them out: the rows may lie anywhere in memory."""
        options = self._options()
        m, n = X.shape
        order = layout.order
        jobs: list[tuple[int, int, slice]] = []
        for first, last in balanced_blocks(layout.starts, max(m * n // _BLOCK, n_threads())):
            width = max(_BLOCK // max(1, int(layout.starts[last] - layout.starts[first])), _LEAST_COLUMNS)
            # queries that are too big for a block are scaled a few columns at a time
            jobs += [(first, last, slice(c, min(c + width, n))) for c in range(0, n, width)]

        def scale(job: tuple[int, int, slice]) -> None:
            first, last, columns = job
            low, high = layout.starts[first], layout.starts[last]
            rows = slice(low, high) if layout.contiguous else order[low:high]
            block = np.array(X[rows, columns], dtype=np.float64, order="C")
            scale_queries(block, layout.starts[first : last + 1] - low, *options)
            out[rows, columns] = block

        map_threads(scale, jobs)

    def _learn(self, X: Any) -> NDArray[np.float64]:
        """Statistics of each column, all rows being one query."""
        standard, with_mean, with_std, _, _ = self._options()
        m, n = X.shape
        learned = np.zeros((4, n))
        if issparse(X):
            learned[FACTOR] = learned[SCALE] = 1.0
            if with_std:
                factors, scales = self._sparse_scales(X, query_layout(None, m))
                learned[FACTOR, X.indices], learned[SCALE, X.indices] = factors, scales
            return learned
        width = max(_BLOCK // m, _LEAST_COLUMNS)

        def learn(column: int) -> None:
            block = np.array(X[:, column : column + width], dtype=np.float64, order="C")
            found = np.empty((4, block.shape[1]))
            statistics(block, 0, m, standard, with_mean, with_std, found)
            learned[:, column : column + width] = found

        map_threads(learn, range(0, n, width))
        return learned

    def affine(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The map that a scaler fitted without qid applies to each feature: ``(x - centre) / spread``.

        Returns
        -------
        centre, spread : ndarray of shape (n,)

        Raises
        ------
        ValueError
            If it was fitted with qid: each query has its own.
        """
        check_is_fitted(self, "fitted_with_qid_")
        if self._statistics is None:
            raise InputError("{0} was fitted with {qid}: every query is scaled by its own rows.", type(self).__name__)
        low, high = self._options()[3:]
        factor, shift, rest, scale = self._statistics[[FACTOR, SHIFT, REST, SCALE]]
        spread = scale / factor / (high - low)
        return (shift + rest) / factor - low * spread, spread

    def _apply_learned(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        low, high = self._options()[3:]
        height = max(1, _BLOCK // X.shape[1])

        def scale(row: int) -> None:
            block = np.array(X[row : row + height], dtype=np.float64, order="C")
            apply(block, 0, len(block), self._statistics, low, high)
            out[row : row + height] = block

        map_threads(scale, range(0, X.shape[0], height))

    def _transform_sparse(self, X: Any, layout: QueryLayout) -> Any:
        _, _, with_std, _, _ = self._options()
        out = X.copy()
        if with_std:
            if self._statistics is not None:
                factors, scales = self._statistics[[FACTOR, SCALE]][:, X.indices]
            else:
                factors, scales = self._sparse_scales(X, layout)
            out.data = (X.data * factors / scales).astype(X.dtype, copy=False)
        return out

    def _sparse_scales(self, X: Any, layout: QueryLayout) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Factor and scale of each stored entry (see ``_loops``)."""
        peak = float(np.abs(X.data).max(initial=0.0))
        # squares of absurd values must not overflow, nor vanish
        factor = 2.0**-600 if peak > 2.0**400 else 2.0**600 if 0 < peak < 2.0**-400 else 1.0
        values = X.data.astype(np.float64, copy=False)
        values = values if factor == 1 else values * factor
        arrays = X.indptr.astype(np.int64), X.indices.astype(np.int64), values
        scales = np.empty(X.nnz)
        order, starts = layout.order, layout.starts

        def find(queries: tuple[int, int]) -> None:
            sparse_scales(*arrays, order, starts, *queries, scales)

        map_threads(find, balanced_blocks(starts, n_threads()))
        varies = scales > 0
        return np.where(varies, factor, 1.0), np.where(varies, scales, 1.0)


class QueryMinMaxScaler(_QueryScaler):
    """Scale each feature to 0..1 inside each query.

    ``x`` becomes ``(x - min) / (max - min)``, with the least and the largest value of the feature in the row's query:
    the normalisation of the LETOR collections and of the papers on them. A feature that is constant inside a query
    becomes 0 there (the lower end of ``feature_range``), as does every feature of a query with a single row.

    Parameters
    ----------
    feature_range : tuple of two floats, default=(0, 1)
        Where the least and the largest value go.

    Attributes
    ----------
    fitted_with_qid_ : bool
        Whether ``fit`` had a ``qid``. If so, nothing was learned: queries are scaled by their own rows. If not, all
        rows, also later ones, are one query, and the least and largest values are those of ``fit``: a later row alone
        could not be scaled by itself. Such later values may lie outside ``feature_range``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n,)
        Their names, if ``X`` had them.

    Notes
    -----
    O(m n), compiled, a block of queries at a time on all threads; the only large array that is made is the result.
    float32 input is computed in float64 and rounded once. Results are right to rounding also for columns that lie far
    from zero. Sparse input is refused, because the result would be dense.

    With metadata routing enabled, ``qid`` reaches it inside pipelines without being asked for.

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

    def __init__(self, feature_range: tuple[float, float] = (0, 1)) -> None:
        self.feature_range = feature_range

    def _options(self) -> tuple[bool, bool, bool, float, float]:
        ends = self.feature_range
        if (
            not isinstance(ends, tuple | list)
            or len(ends) != 2
            or not all(isinstance(v, numbers.Real) and math.isfinite(v) for v in ends)
            or not ends[0] < ends[1]
        ):
            raise InputError("{feature_range} must be two finite numbers, the smaller one first; got {0!r}.", ends)
        return False, True, True, float(ends[0]), float(ends[1])

    def _check_sparse(self, X: Any) -> None:
        raise InputError(
            "QueryMinMaxScaler would make sparse {X} dense, because it does not scale 0 to 0.",
            remedy="Pass X.toarray(), or use QueryStandardScaler(with_mean=False).",
        )


class QueryStandardScaler(_QueryScaler):
    """Scale each feature to mean 0 and standard deviation 1 inside each query.

    ``x`` becomes ``(x - mean) / std``, with the mean and the population standard deviation (divided by the number of
    rows) of the feature over the row's query. A feature that is constant inside a query becomes 0 there, as does every
    feature of a query with a single row; with ``with_mean=False`` such a feature is left as it is.

    Parameters
    ----------
    with_mean : bool, default=True
        Subtract the mean.
    with_std : bool, default=True
        Divide by the standard deviation.

    Attributes
    ----------
    fitted_with_qid_ : bool
        Whether ``fit`` had a ``qid``. If so, nothing was learned: queries are scaled by their own rows. If not, all
        rows, also later ones, are one query, and its mean and deviation are those of ``fit``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n,)
        Their names, if ``X`` had them.

    Notes
    -----
    O(m n), compiled, a block of queries at a time on all threads; the only large array that is made is the result.
    float32 input is computed in float64 and rounded once. Differences to the mean are right to rounding also for
    columns that lie far from zero. Sparse input stays sparse with ``with_mean=False`` and is refused otherwise.

    With metadata routing enabled, ``qid`` reaches it inside pipelines without being asked for.

    Examples
    --------
    >>> from rankrls.preprocessing import QueryStandardScaler
    >>> X = [[1.0, 7.0], [3.0, 7.0], [10.0, 1.0], [20.0, 5.0]]
    >>> QueryStandardScaler().fit_transform(X, qid=["a", "a", "b", "b"])
    array([[-1.,  0.],
           [ 1.,  0.],
           [-1., -1.],
           [ 1.,  1.]])
    """

    def __init__(self, with_mean: bool = True, with_std: bool = True) -> None:
        self.with_mean = with_mean
        self.with_std = with_std

    def _options(self) -> tuple[bool, bool, bool, float, float]:
        return True, bool(self.with_mean), bool(self.with_std), 0.0, 1.0

    def _check_sparse(self, X: Any) -> None:
        if self.with_mean:
            raise InputError(
                "QueryStandardScaler would make sparse {X} dense by taking off means.",
                remedy="Pass {with_mean=False}, which only divides by the standard deviations, or X.toarray().",
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        return tags
