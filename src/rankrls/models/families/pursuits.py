"""What the pursuit estimators share: the dictionary of an estimator, and models made of a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_array, check_is_fitted

from rankrls._comparisons import Comparisons
from rankrls._errors import InputError
from rankrls.features.finite import check_finite_features
from rankrls.greedy.pursuit_problem import Pursuit, Terms
from rankrls.kernels import Kernel
from rankrls.models.families.base import KernelRanker
from rankrls.models.inputs.parameters import (
    GraphParameters,
    KernelParameters,
    choice,
    estimator,
    flag,
    number,
    parameter,
)
from rankrls.models.inputs.validation import check_features
from rankrls.problems.problem import Solutions

DICTIONARIES = ("kernel", "features")
_MIB = float(1 << 20)


@estimator
class PathRanker(KernelRanker, GraphParameters, KernelParameters):
    """A ranker whose function is a sum of columns taken one by one."""

    _single_target = True

    dictionary: str = parameter(default="kernel", check=choice(*DICTIONARIES))
    kernel: Any = parameter(default="rbf", several=True)
    centers: Any = parameter(default=None)
    backfit: bool = parameter(default=True, check=flag)
    cache_size: float = parameter(default=4096, check=number(least=0))

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Score items after each stage of the path, the last of which is :meth:`predict`.

        Parameters
        ----------
        X : as for :meth:`predict`

        Yields
        ------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        X = check_features(self, X, kernel=self._kernel_.name)
        taken, coefficients = self.path_.merged()
        of_items = hasattr(self, "X_fit_") or self._kernel_.name == "precomputed"
        kernel = self._kernel_ if of_items else None  # what was fitted, whatever the parameters are now
        yield from Terms(kernel, getattr(self, "X_fit_", None), taken, coefficients).scores(X).T

    def _data_kernel(self) -> Any:
        """What X means: objects for a function, a kernel matrix, or features."""
        return "linear" if self.dictionary == "features" else super()._data_kernel()

    def _cheaper(self, linear: bool) -> str:
        return "{cache_size} limits how much of it is held, and {centers} how many columns it has."

    def _pursuit_of(self, kernel: Kernel, centres: Any) -> Pursuit:
        of_items = None if self.dictionary == "features" else kernel
        return Pursuit(of_items, centres, bool(self.backfit), _MIB * float(self.cache_size))

    def _checked_centers(self, X: Any, kernel: Any) -> Any:
        """Rows whose kernel functions are the dictionary, checked against X; None for the training rows."""
        if self.centers is None or self.dictionary == "features":
            if self.centers is not None:
                raise InputError(
                    "{centers} are rows for kernel functions; with {dictionary='features'} there are none."
                )
            return None
        if isinstance(kernel, str) and kernel == "precomputed":
            raise InputError(
                "A precomputed kernel has the training items as its columns.",
                remedy="For columns of your own give the matrix of their values as {X}, with {dictionary='features'}.",
                parameter="centers",
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
            raise InputError("The columns of {centers} are not those of {X}, in their order; they need the same names.")
        if centres.shape[1] != X.shape[1]:
            raise InputError("{centers} have {0} features but {X} has {1}.", centres.shape[1], X.shape[1])
        return centres

    def _adopt(self, comparisons: Comparisons, candidate: Any, solutions: Solutions) -> None:
        self._take(solutions[0].over(comparisons.kept), candidate.kernel)
        (path,) = solutions.details
        rows = candidate.pursuit.kernel is not None and candidate.pursuit.centres is None
        numbers = comparisons.given_numbers if rows else np.asarray
        self.path_ = replace(path, indices=numbers(path.indices))
        self.basis_indices_ = numbers(path.merged()[0])
        self.n_basis_ = len(self.basis_indices_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.pairwise and self.dictionary == "kernel"
        return tags
