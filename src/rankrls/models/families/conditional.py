"""What conditional rankers share: prediction, and what they are given, checked and made into problems."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from rankrls._compiled.near_ties import NEAR
from rankrls._errors import InputError, InputWarning
from rankrls._items import Items
from rankrls._queries import query_layout
from rankrls.equations.krylov import Status
from rankrls.features.finite import check_finite_features
from rankrls.kernels import Kernel, check_kernel, resolve_kernel
from rankrls.metrics import RankingMeasure, disagreement_error
from rankrls.models.families.base import NotConverged, check_square
from rankrls.models.inputs.parameters import (
    KernelParameters,
    check_parameters,
    estimator,
    flag,
    parameter,
)
from rankrls.models.inputs.validation import (
    check_features,
    check_labels,
    check_matrix,
    check_weights,
    without_nan,
)
from rankrls.problems.conditional import CompleteUtilities, KernelSide, KnownUtilities, kernel_root
from rankrls.ranking import rank_positions

Array = NDArray[np.float64]


@estimator
class PairedKernelParameters(KernelParameters):
    """The kernels of queries and of items."""

    item_kernel: str = parameter(default="linear")
    item_gamma: Any = parameter(default=None)
    item_degree: Any = parameter(default=3)
    item_coef0: Any = parameter(default=1.0)
    fit_intercept: bool = parameter(default=False, check=flag)


class ConditionalRanker(RegressorMixin, BaseEstimator, PairedKernelParameters):
    """Ranks the same items for every query."""

    # Items reach fit through pipelines and searches; what is judged there are the items of the training data.
    __metadata_request__fit = {"items": True}  # noqa: RUF012
    __metadata_request__predict = {"items": False}  # noqa: RUF012
    __metadata_request__score = {"items": False}  # noqa: RUF012

    n_queries_: int
    n_items_: int
    n_features_in_: int
    dual_coef_: Array
    coef_: Array
    intercept_: Array
    X_fit_: Any
    items_: Items | None
    alpha_: float
    _kernel_: Kernel
    _item_kernel_: Kernel | None

    def predict(self, X: Any, *, items: Items | None = None) -> Array:
        """Score items for queries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, n)
            Queries. With ``kernel="precomputed"`` the kernel between them and the training queries.
        items : Items, optional
            Other items than those of the training data, if that had any; their features.

        Returns
        -------
        ndarray of shape (q, items)
            Higher is better; only differences inside a row mean anything.
        """
        check_is_fitted(self)
        X = check_features(self, X, kernel=self._kernel_.name)
        scores = np.asarray(X @ self.coef_.T if hasattr(self, "coef_") else self._across(X) @ self.dual_coef_)
        if self.items_ is None:
            if items is not None:
                raise InputError("This model was fitted without {items}: it knows the columns of Y only.")
            return scores + self.intercept_
        kernel = self._item_kernel_
        assert kernel is not None
        across = kernel((self.items_ if items is None else self._given(items)).features, self.items_.features)
        return np.asarray(scores @ across.T)

    def rank(self, X: Any, *, items: Items | None = None) -> NDArray[np.intp]:
        """Position of each item for each query, from 1 for the highest score; equal scores stand in column order.

        Parameters
        ----------
        X, items : as for :meth:`predict`

        Returns
        -------
        ndarray of shape (q, items)
        """
        scores = self.predict(X, items=items)
        return rank_positions(scores.T).T

    def score(self, X: Any, y: Any, *, items: Items | None = None, sample_weight: Any = None) -> float:
        """1 - disagreement error: the share of the pairs of a query's items that are ordered rightly, averaged.

        Parameters
        ----------
        X, items : as for :meth:`predict`
        y : array-like of shape (q, items)
            Utilities, NaN where they are not known.
        sample_weight : array-like of shape (q,), optional
            What each query counts; the same by default.
        """
        scores = self.predict(X, items=items)
        Y = check_utilities(y)
        if Y.shape != scores.shape:
            raise InputError("{y} has shape {0}, but the scores have shape {1}.", Y.shape, scores.shape)
        known = ~np.isnan(Y)
        row = np.nonzero(known)[0]
        error = disagreement_error(Y[known], scores[known], qid=row, per_query=True)
        w = check_weights(sample_weight, len(Y))
        w = np.ones(len(error)) if w is None else w[np.unique(row)]
        judged = ~np.isnan(error)
        return 1.0 - float(np.average(error[judged], weights=w[judged]))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_items_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        tags.regressor_tags.poor_score = True
        return tags

    def _across(self, X: Any) -> Array:
        """The kernel between queries and the training queries."""
        if self._kernel_.name == "precomputed":
            return np.asarray(X.toarray() if sparse.issparse(X) else X)
        return self._kernel_(X, self.X_fit_)

    def _given(self, items: Any) -> Items:
        """Items to predict for, checked against those of the training data."""
        items = check_items(items)
        assert self.items_ is not None
        if items.features.shape[1] != self.items_.features.shape[1]:
            raise InputError(
                "{items} have {0} features, but those of the training data have {1}.",
                items.features.shape[1],
                self.items_.features.shape[1],
            )
        return items

    def _data(self, X: Any, y: Any, items: Any) -> UtilityData:
        """Check what ``fit`` was given."""
        check_parameters(self)
        for name in ("kernel", "item_kernel"):
            if callable(getattr(self, name)):
                raise InputError(
                    f"{{{name}}} is a function, which conditional ranking does not take.",
                    remedy="Give its matrix, with 'precomputed'.",
                )
        if y is None:
            raise InputError("{0} requires {y} to be passed, but the target y is None.", type(self).__name__)
        X = check_matrix(self, X, reset=True, products=True)
        check_square(X, self.kernel)
        Y = check_utilities(y)
        if len(Y) != X.shape[0]:
            raise InputError("{X} has {0} rows but {y} has {1}.", X.shape[0], len(Y), parameter="y")
        if Y.shape[1] == 1:
            warnings.warn(
                InputWarning("{y} has one column: there is nothing to rank, and every score is 0."),
                stacklevel=4,
            )
        kernel = resolve_kernel(X, self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)
        item_kernel = None
        if items is not None:
            items = check_items(items)
            if items.n_items != Y.shape[1]:
                raise InputError(
                    "There are {0} {items}, but {y} has {1} columns.",
                    items.n_items,
                    Y.shape[1],
                    remedy="Wrap the features in rankrls.Items, which scikit-learn does not cut into folds of rows."
                    if items.n_items == len(Y)
                    else "",
                )
            if self.fit_intercept:
                raise InputError(
                    "{fit_intercept=True} gives each column of Y a level of its own, which no new item would have.",
                    remedy="With {items}, add a constant feature to X.",
                )
            item_kernel = self._item_kernel(items)
        return UtilityData(X, Y, items, kernel, item_kernel, bool(self.fit_intercept))

    def _item_kernel(self, items: Items) -> Kernel:
        try:
            check_square(items.features, self.item_kernel)
            given = self.item_kernel, self.item_gamma, self.item_degree, self.item_coef0
            check_kernel(*given, None)
            return resolve_kernel(items.features, *given, None)
        except InputError as error:
            names = {name: f"item_{name}" for name in ("kernel", "gamma", "degree", "coef0")}
            raise error.renamed({**names, "X": "items"}) from None

    def _keep(self, data: UtilityData, alpha: float, a: Array, level: Array) -> None:
        (self.n_queries_, self.n_items_), self.items_ = data.Y.shape, data.items
        self._kernel_, self._item_kernel_ = data.kernel, data.item_kernel
        self.alpha_, self.intercept_ = alpha, level
        if data.kernel.is_linear:
            self.coef_ = np.ascontiguousarray((data.X.T @ a).T)
            self.__dict__.pop("dual_coef_", None)
            self.__dict__.pop("X_fit_", None)
            return
        self.__dict__.pop("coef_", None)
        self.dual_coef_ = np.ascontiguousarray(a)
        if data.kernel.name != "precomputed":
            self.X_fit_ = data.X


@dataclass(frozen=True, eq=False)
class UtilityData:
    """Checked queries, items and utilities, and the problems that they make."""

    X: Any
    Y: Array
    items: Items | None
    kernel: Kernel
    item_kernel: Kernel | None
    fit_intercept: bool

    @property
    def complete(self) -> bool:
        """Whether every utility is known."""
        return not np.isnan(self.Y).any()

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> UtilityData:
        """Some queries and items as data of their own."""
        X = self.X[rows]
        Y, items = self.Y[rows], self.items
        if columns is not None and items is not None and self.item_kernel is not None:
            features = items.features[columns]
            square = self.item_kernel.name == "precomputed"
            Y, items = Y[:, columns], Items(features[:, columns] if square else features)
        X = X[:, rows] if self.kernel.name == "precomputed" else X
        return replace(self, X=X, Y=Y, items=items)

    def scores(
        self,
        part: UtilityData,
        train: tuple[NDArray[np.intp], NDArray[np.intp]],
        test: tuple[NDArray[np.intp], NDArray[np.intp]],
        a: Array,
        level: Array,
    ) -> Array:
        """Scores of some queries and items by coefficients of a part of these data."""
        given, kernel = self.kernel.name == "precomputed", self.item_kernel
        across = self.X[test[0]][:, train[0]] if given else self.kernel(self.X[test[0]], part.X)
        scores = np.asarray(across @ a)
        if self.items is None or kernel is None or part.items is None:
            return scores + level
        features = self.items.features[test[1]]
        between = features[:, train[1]] if kernel.name == "precomputed" else kernel(features, part.items.features)
        return np.asarray(scores @ between.T)

    def problem(self) -> CompleteUtilities | KnownUtilities:
        """The problem of these data."""
        queries, items, kernel = _side(self.kernel, self.X, "kernel"), None, self.item_kernel
        if self.complete:
            if self.items is not None and kernel is not None:
                Z = self.items.features
                if not kernel.is_linear:
                    Z = kernel_root(kernel(Z), "item_kernel")
                root = KernelSide.of_features(Z).root if sparse.issparse(Z) else Z
                items = KernelSide.of_features(root - root.mean(axis=0))
            return CompleteUtilities(queries, items, self.Y, self.fit_intercept)
        if self.items is not None and kernel is not None:
            items = _side(kernel, self.items.features, "item_kernel")
        return KnownUtilities(queries, items, self.Y, self.fit_intercept)

    def judge(self, measure: RankingMeasure, Y: Array, scores: Array) -> Array:
        """The measure of each row of Y for scores (values, rows, columns), NaN if it cannot be judged.

        The scores are overwritten.
        """
        known = ~np.isnan(Y)
        row = np.nonzero(known)[0]
        layout = query_layout(row, len(row))
        values = np.full((len(Y), len(scores)), np.nan)
        flat = scores.reshape(len(scores), -1)
        flat = (flat if known.all() else flat[:, known.ravel()]).T
        if len(row):
            judged, _ = measure.judge_computed(Y[known], flat, layout, near=NEAR, overwrite=True)
            values[layout.ids] = judged
        return values

    def judge_held_out(self, measure: RankingMeasure, problem: CompleteUtilities, alphas: Array) -> Array:
        """The measure of each query by the model of all others, for every alpha, (queries, alphas)."""
        if not measure.quadratic:
            judged = np.empty((len(self.Y), len(alphas)))
            for rows, values, scores in problem.without_queries(alphas):
                judged[rows, values] = self.judge(measure, self.Y[rows], scores)
            return judged
        d = self.Y.shape[1]  # the mean of squared differences of errors over pairs
        return problem.squared_errors_without(alphas) * (2.0 / (d - 1.0) if d > 1 else np.nan)


def _side(kernel: Kernel, Z: Any, name: str) -> KernelSide:
    return KernelSide.of_features(Z) if kernel.is_linear else KernelSide.of_matrix(kernel(Z), name)


def check_items(items: Any) -> Items:
    """Items with finite features; a plain matrix will do."""
    items = items if isinstance(items, Items) else Items(items)
    features = sparse.csr_array(items.features) if sparse.issparse(items.features) else items.features
    try:
        features = features if sparse.issparse(features) else np.ascontiguousarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("{items} must hold numbers: {0}.", error) from None
    check_finite_features(features, None, "items", products=True)
    return Items(features, items.ids)


def check_utilities(y: Any) -> Array:
    """Utilities (q, d), NaN where they are not known; a vector is one column."""
    labels, unknown = without_nan(y)
    Y, _ = check_labels(labels)
    return Y if unknown is None else np.where(unknown.reshape(Y.shape), np.nan, Y)


def check_something_known(Y: Array) -> None:
    """Refuse utilities of which no query has two that differ."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows of NaN alone
        spread = np.nanmax(Y, axis=1, initial=-np.inf) - np.nanmin(Y, axis=1, initial=np.inf)
    if Y.shape[1] > 1 and not (spread > 0.0).any():
        raise InputError(
            "Nothing to compare: no query has two items with different known utilities ({0} sample{1}).",
            len(Y),
            "" if len(Y) == 1 else "s",
            remedy="Check {y}: its rows are queries and its columns items.",
            parameter="y",
        )


def solutions(problem: CompleteUtilities | KnownUtilities, alphas: Array) -> Iterator[tuple[Array, Array]]:
    """Coefficients and intercepts of every alpha."""
    if isinstance(problem, CompleteUtilities):
        yield from (problem.solution(float(alpha)) for alpha in alphas)
        return
    found, status = problem.solutions(alphas)
    for alpha, one in zip(alphas, status, strict=True):
        if one is not Status.CONVERGED:
            warnings.warn(
                NotConverged("Conjugate gradients ended before {alpha} = {0:.3g} converged: {1}.", alpha, one.value),
                stacklevel=5,
            )
    yield from found


def check_two_queries(Y: Array) -> None:
    varies = int((Y[:, :1] != Y).any(axis=1).sum())
    if varies < 2 and Y.shape[1] > 1:
        raise InputError(
            "Leave-query-out needs two queries with items of different utilities; {0} of {1} sample{2} has some.",
            varies,
            len(Y),
            "" if len(Y) == 1 else "s",
            parameter="y",
        )
