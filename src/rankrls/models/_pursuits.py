"""What the pursuit estimators share: the dictionary of an estimator, and models made of a path."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_array, check_is_fitted

from rankrls.graph import PairGraph, ScoredGraph
from rankrls.greedy.dictionaries import (
    Dictionary,
    feature_dictionary,
    kernel_dictionary,
    pays_to_reduce,
    reduced_features,
)
from rankrls.greedy.pursuit import PursuitPath, pursue
from rankrls.kernels import Kernel
from rankrls.models._base import KernelRanker, expansion_scores, linear_scores
from rankrls.models._validation import (
    TrainingData,
    check_choice,
    check_features,
    check_finite_features,
    take_rows,
)

__all__ = ["DICTIONARIES", "PathRanker", "Pursuit", "check_one_target"]

DICTIONARIES = ("kernel", "features")
_MIB = float(1 << 20)


@dataclass(frozen=True)
class Pursuit:
    """A dictionary and how it is walked, for any data.

    Attributes
    ----------
    kernel : Kernel or None
        None takes the features themselves.
    centres : rows, or None for the training items
    """

    kernel: Kernel | None
    centres: Any
    backfit: bool
    cache_bytes: float

    def path(self, X: Any, graph: ScoredGraph | PairGraph, target: NDArray[np.float64], n_basis: int) -> PursuitPath:
        """The pursuit of ``target`` on the items X."""
        dictionary: Dictionary
        if self.kernel is not None:
            dictionary = kernel_dictionary(self.kernel, X, self.centres, graph, cache_bytes=self.cache_bytes)
        elif pays_to_reduce(X, graph, n_basis):
            dictionary, reduced, rest = reduced_features(X, graph, target)
            path = pursue(dictionary, reduced, n_basis, backfit=self.backfit)
            return replace(path, losses=path.losses + rest)
        else:
            dictionary = feature_dictionary(X, graph, cache_bytes=self.cache_bytes)
        return pursue(dictionary, target, n_basis, backfit=self.backfit)

    def stage_scores(self, X: Any, X_train: Any, path: PursuitPath) -> NDArray[np.float64]:
        """Scores of rows X after every stage, (rows, stages)."""
        taken, coefficients = path.merged()
        basis = None if self.kernel is None else take_rows(X_train if self.centres is None else self.centres, taken)
        return expanded(self.kernel, X, basis, taken, np.ascontiguousarray(coefficients.T))


def expanded(
    kernel: Kernel | None, X: Any, basis: Any, taken: NDArray[np.intp], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``Phi(X) weights`` for the columns that were taken; weights (taken,) or (taken, columns)."""
    if kernel is None:
        columns = X[:, taken]
        return linear_scores(columns if sparse.issparse(columns) else np.ascontiguousarray(columns), weights)
    if not len(taken):
        return np.zeros((len(X) if isinstance(X, list) else X.shape[0], *weights.shape[1:]))
    return expansion_scores(X, kernel.columns(taken if kernel.name == "precomputed" else basis), weights)


def check_one_target(estimator: Any, data: TrainingData) -> None:
    """Several targets would each need a basis of their own."""
    if data.Y.shape[1] > 1:
        raise ValueError(
            f"{type(estimator).__name__} learns one target; y has shape {data.Y.shape}. Fit one model a target: each "
            "takes columns of its own."
        )
    if not data.one_target:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: y is taken as one column of labels.",
            DataConversionWarning,
            stacklevel=3,
        )


class PathRanker(KernelRanker):
    """A ranker whose function is a sum of columns taken one by one."""

    dictionary: str
    centers: Any
    backfit: bool
    cache_size: float
    path_: PursuitPath
    basis_indices_: NDArray[np.intp]
    n_basis_: int

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Score items after each stage of the path, the last of which is :meth:`predict`.

        Parameters
        ----------
        X : as for :meth:`predict`

        Yields
        ------
        ndarray of shape (m,)
        """
        yield from self._stage_scores(X).T

    def _stage_scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = check_features(self, X, kernel=self._kernel_in_use())
        taken, coefficients = self.path_.merged()
        fitted_kernel = hasattr(self, "X_fit_") or self._kernel_.name == "precomputed"
        kernel = self._kernel_ if fitted_kernel else None  # what was fitted, whatever the parameters are now
        return expanded(kernel, X, getattr(self, "X_fit_", None), taken, np.ascontiguousarray(coefficients.T))

    def _check_pursuit(self) -> None:
        check_choice("dictionary", self.dictionary, DICTIONARIES)
        if not isinstance(self.backfit, (bool, np.bool_)):
            raise ValueError(f"backfit must be True or False; got {self.backfit!r}.")
        if isinstance(self.cache_size, bool) or not isinstance(self.cache_size, Real) or not self.cache_size >= 0:
            raise ValueError(f"cache_size must be a number of MiB, not negative; got {self.cache_size!r}.")

    def _data_kernel(self) -> Any:
        """What X means: objects for a function, a kernel matrix, or features."""
        return "linear" if self.dictionary == "features" else self.kernel

    def _pursuit(self, X: Any) -> Pursuit:
        """The pursuit of an estimator whose parameters are single values."""
        kernel = None if self.dictionary == "features" else self._resolved_kernel(X)
        return self._pursuit_with(kernel, self._checked_centers(X, self.kernel))

    def _pursuit_with(self, kernel: Kernel | None, centres: Any) -> Pursuit:
        return Pursuit(kernel, centres, bool(self.backfit), _MIB * float(self.cache_size))

    def _checked_centers(self, X: Any, kernel: Any) -> Any:
        """Rows whose kernel functions are the dictionary, checked against X; None for the training rows."""
        if self.centers is None or self.dictionary == "features":
            if self.centers is not None:
                raise ValueError("centers are rows for kernel functions; with dictionary='features' there are none.")
            return None
        if isinstance(kernel, str) and kernel == "precomputed":
            raise ValueError(
                "A precomputed kernel has the training items as its columns. For columns of your own give the matrix "
                "of their values as X, with dictionary='features'."
            )
        if isinstance(X, list):
            return list(self.centers)
        centres = check_array(
            self.centers, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False, order="C"
        )
        centres = sparse.csr_array(centres) if sparse.issparse(centres) else centres
        check_finite_features(centres, None, "centers")
        names = getattr(self.centers, "columns", getattr(self.centers, "column_names", None))
        known = getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and [str(name) for name in names] != list(known):
            raise ValueError("The columns of centers are not those of X, in their order; they need the same names.")
        if centres.shape[1] != X.shape[1]:
            raise ValueError(f"centers have {centres.shape[1]} features but X has {X.shape[1]}.")
        return centres

    def _take_path(self, X: Any, pursuit: Pursuit, path: PursuitPath, kept: NDArray[np.bool_] | None) -> None:
        """Make the path's last stage this model's function."""
        self._forget_fit()
        taken, coefficients = path.merged()
        last = coefficients[-1] if len(coefficients) else np.zeros(0)
        kernel = pursuit.kernel
        self._kernel_ = Kernel("linear") if kernel is None else kernel
        numbers = np.arange(max(taken, default=-1) + 1, dtype=np.intp)
        if kept is not None and kernel is not None and pursuit.centres is None:
            numbers = np.flatnonzero(kept)
        self.basis_indices_ = numbers[taken]
        self.path_ = replace(path, indices=numbers[path.indices])
        self.n_basis_ = len(taken)
        if kernel is None:
            self.coef_ = np.zeros(X.shape[1])
            self.coef_[taken] = last
            return
        if kernel.name == "precomputed":  # predict is given the kernel with all training items
            self.dual_coef_ = np.zeros(len(X) if kept is None else len(kept))
            self.dual_coef_[self.basis_indices_] = last
            return
        self.dual_coef_ = last
        self.X_fit_ = take_rows(X if pursuit.centres is None else pursuit.centres, taken)
        if kernel.is_linear:
            self.coef_ = np.asarray(self.X_fit_.T @ last, dtype=np.float64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.pairwise and self.dictionary == "kernel"
        tags.target_tags.multi_output = False
        return tags
