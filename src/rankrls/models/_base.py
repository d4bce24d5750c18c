"""What the estimators share: prediction, ranking, scoring."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from rankrls._compiled.threads import map_threads, one_blas_thread
from rankrls.features.rows import row_products, row_slices
from rankrls.graph import PairGraph
from rankrls.kernels import KernelColumns, resolve_kernel
from rankrls.metrics import disagreement_error
from rankrls.models._problems import FittedProblem, feature_weights, is_in_features
from rankrls.models._spreads import warn_of_lost_features
from rankrls.models._validation import TrainingData, check_features, check_no_extra_qid
from rankrls.ranking import rank_positions

__all__ = ["SOLVERS", "KernelRanker", "Ranker", "expansion_scores", "linear_scores", "resolve_kernel"]

SOLVERS = ("auto", "primal", "dual")
_PREDICT_ROWS = 4096
_EXPANSION_ROWS = 512


class Ranker(RegressorMixin, BaseEstimator):
    """Scores items; only differences inside a query mean anything."""

    # With metadata routing enabled, qid reaches fit and score without being asked for.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True}  # noqa: RUF012

    n_queries_: int
    n_features_in_: int
    _fitted_with_qid: bool = False

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Defined by each estimator."""
        raise TypeError(f"{type(self).__name__} does not fit.")

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Defined by each family of estimators."""
        raise TypeError(f"{type(self).__name__} does not predict.")

    def rank(self, X: Any, *, qid: Any = None) -> NDArray[np.intp]:
        """Rank items inside their queries.

        Parameters
        ----------
        X : as for :meth:`predict`
        qid : array-like of shape (m,), optional
            One query id per row. None ranks all items together, which a model fitted with qid refuses.

        Returns
        -------
        ndarray of shape (m,) or (m, targets)
            Position of each row in its query, from 1 for the highest score; equal scores stand in row order.
        """
        check_is_fitted(self)
        check_no_extra_qid(self._fitted_with_qid, qid, "rank")
        return rank_positions(self.predict(X), qid=qid)

    def score(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> float:
        """1 - disagreement error: the share of pairs with different labels that are ordered rightly.

        Predicted ties count half; queries count the same, those without two different labels not at all; several
        targets are averaged.

        Parameters
        ----------
        X : as for :meth:`predict`
        y : array-like of shape (m,) or (m, targets)
        qid : array-like of shape (m,), optional
            Required where the model was fitted with qid.
        sample_weight : array-like of shape (m,), optional
            A pair weighs the product of its rows' weights.
        """
        check_is_fitted(self)
        check_no_extra_qid(self._fitted_with_qid, qid, "score")
        scores = self.predict(X)
        labels = np.asarray(y)
        if scores.ndim == 1:
            if labels.ndim == 2 and labels.shape[1] == 1:
                labels = labels[:, 0]
            return 1.0 - float(disagreement_error(labels, scores, qid=qid, sample_weight=sample_weight))
        if labels.ndim == 1 and scores.shape[1] == 1:
            labels = labels[:, None]
        if labels.shape != scores.shape:
            raise ValueError(f"y has shape {labels.shape}, but the model has targets for shape {scores.shape}.")
        errors = [
            float(disagreement_error(labels[:, t], scores[:, t], qid=qid, sample_weight=sample_weight))
            for t in range(scores.shape[1])
        ]
        return 1.0 - float(np.mean(errors))

    def __sklearn_is_fitted__(self) -> bool:
        """Not so after a fit that failed, although that may have set ``n_features_in_``."""
        return hasattr(self, "n_queries_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class KernelRanker(Ranker):
    """Scores items by ``w'x`` or ``sum_i a_i k(x, x_i)``."""

    kernel: Any
    coef_: NDArray[np.float64]
    dual_coef_: NDArray[np.float64]
    X_fit_: Any
    alpha_: float

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score items.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n); or a sequence of objects for a callable kernel
            With ``kernel="precomputed"``: the kernel between these items and the training items.

        Returns
        -------
        ndarray of shape (m,) or (m, targets)
            Higher is better. Only differences between items of the same query mean anything.

        Notes
        -----
        O(m n) for a linear model, O(m x training items x n) for a kernel, in blocks.
        """
        check_is_fitted(self)
        kernel = self._kernel_in_use()
        X = check_features(self, X, kernel=kernel)
        if hasattr(self, "coef_"):
            return linear_scores(X, self.coef_.T)
        a = self.dual_coef_
        if kernel == "precomputed":
            X = self._expansion_columns(X)
            return np.asarray(X @ a) if sparse.issparse(X) else row_products(X, a)
        return expansion_scores(X, self._kernel_.columns(self.X_fit_), a)

    def _resolved_kernel(self, X: Any) -> Any:
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"A precomputed kernel matrix must be square to fit; got shape {X.shape}.")
        return resolve_kernel(X, self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)

    def _expansion_columns(self, K: Any) -> Any:
        """The columns of a given kernel matrix that the coefficients weigh."""
        return K

    def _constrained(self) -> bool:
        """Whether the signs of weights are constrained, so that pairs cannot be held out without refitting."""
        return False

    def _warn_of_lost_features(self, problem: Any, X: Any, alphas: Any, *, pairs_held_out: bool = False) -> None:
        if self._kernel_in_use() == "linear":
            names = getattr(self, "feature_names_in_", None)
            warn_of_lost_features(problem, X, alphas, names, pairs_held_out=pairs_held_out)

    def _forget_fit(self) -> None:
        for name in ("coef_", "dual_coef_", "X_fit_", "_equations", "_seen", "_graph_parameters"):
            self.__dict__.pop(name, None)

    def _adopt(
        self, data: TrainingData, kernel: Any, problems: list[FittedProblem], solutions: list[NDArray[np.float64]]
    ) -> None:
        """Take the solutions of scored problems as this model's coefficients."""
        self._kernel_ = kernel
        self._fitted_with_qid = data.has_qid
        self._one_target = data.one_target
        self.n_queries_ = data.layout.n_queries
        if kernel.is_linear:
            weights = [feature_weights(data.X, p.problem, s) for p, s in zip(problems, solutions, strict=True)]
            self._set_coefficients(weights, data.one_target)
        if not is_in_features(problems[0].problem):
            a = np.column_stack(solutions)
            if kernel.name == "precomputed" and data.kept is not None:
                # predict is given the kernel with all training items, also those of weight zero
                a_all = np.zeros((len(data.kept), a.shape[1]))
                a_all[data.kept] = a
                a = a_all
            self.dual_coef_ = a[:, 0] if data.one_target else a
            if kernel.name not in ("linear", "precomputed"):
                self.X_fit_ = data.X

    def _adopt_pairs(self, X: Any, kernel: Any, problem: Any, graph: PairGraph, solution: NDArray[np.float64]) -> None:
        """Take the solution of a pair problem as this model's coefficients."""
        self._kernel_ = kernel
        self._fitted_with_qid = False
        self._one_target = True
        self.n_queries_ = 1
        if kernel.is_linear:
            self._set_coefficients([feature_weights(X, problem, solution)], True)
        if not is_in_features(problem):
            self.dual_coef_ = solution[:, 0]
            if kernel.name not in ("linear", "precomputed"):
                self.X_fit_ = X

    def _set_coefficients(self, weights: list[NDArray[np.float64]], one_target: bool) -> None:
        W = np.column_stack(weights)
        self.coef_ = np.ascontiguousarray(W[:, 0] if one_target else W.T)

    def _kernel_in_use(self) -> Any:
        return self.kernel if not hasattr(self, "_kernel_") else self._kernel_.name

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.target_tags.multi_output = True
        return tags


def expansion_scores(X: Any, columns: KernelColumns, a: NDArray[np.float64]) -> NDArray[np.float64]:
    """``K a`` for coefficients (items,) or (items, targets), block by block."""
    m = len(X) if isinstance(X, list) else X.shape[0]
    out = np.empty((m, *a.shape[1:]))

    def score(rows: slice) -> None:
        out[rows] = row_products(columns(X[rows]), a)

    with one_blas_thread():
        map_threads(score, row_slices(0, m, _EXPANSION_ROWS))
    return out


def linear_scores(X: Any, W: NDArray[np.float64]) -> NDArray[np.float64]:
    """``X W`` for weights (n,) or (n, columns), block by block: float32 is not upcast whole, equal rows stay equal."""
    if sparse.issparse(X):
        return np.asarray(X @ W)
    out = np.empty((X.shape[0], *W.shape[1:]))

    def score(rows: slice) -> None:
        out[rows] = row_products(X[rows], W)

    with one_blas_thread():
        map_threads(score, row_slices(0, X.shape[0], _PREDICT_ROWS))
    return out
