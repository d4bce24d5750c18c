"""Conditional ranking: the same items ranked for each query, known by features of queries and of items."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted

from rankrls._errors import InputError, InputWarning
from rankrls._items import Items
from rankrls._queries import query_layout
from rankrls.equations.holdout import holdout_alphas
from rankrls.equations.krylov import Status
from rankrls.equations.spectrum import auto_alphas
from rankrls.kernels import Kernel, check_kernel, resolve_kernel
from rankrls.metrics import RankingMeasure, disagreement_error, resolve_measure
from rankrls.metrics._averages import mean_and_error
from rankrls.models._base import NotConverged, check_square
from rankrls.models._parameters import (
    KernelParameters,
    check_alphas,
    check_parameters,
    choice,
    estimator,
    flag,
    number,
    parameter,
)
from rankrls.models._validation import (
    check_features,
    check_finite_features,
    check_labels,
    check_matrix,
    check_weights,
)
from rankrls.problems.conditional import CompleteUtilities, KernelSide, KnownUtilities, centred_items
from rankrls.ranking import rank_positions
from rankrls.selection.judging import Curve, LabelJudge
from rankrls.selection.rules import RULES
from rankrls.selection.search import Results

__all__ = ["ConditionalRankRLS", "ConditionalRankRLSCV"]

Array = NDArray[np.float64]
_FOLDS = 5
_ITERATED = 1e-7
"""Conjugate gradients resolve no smaller share of the largest alpha of an automatic grid."""


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
                raise InputError(
                    "This model was fitted without {items}: it knows the columns of Y only.", parameter="items"
                )
            return scores + self.intercept_
        kernel = self._item_kernel_
        assert kernel is not None
        across = kernel(self._given(items).features if items is not None else self.items_.features, self._columns())
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
        Y = _utilities(y)
        if Y.shape != scores.shape:
            raise InputError("{y} has shape {0}, but the scores have shape {1}.", Y.shape, scores.shape, parameter="y")
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

    def _columns(self) -> Any:
        """What the item kernel takes beside other items."""
        assert self.items_ is not None
        return self.items_.features

    def _given(self, items: Any) -> Items:
        """Items to predict for, checked against those of the training data."""
        items = _checked(items)
        assert self.items_ is not None
        if items.features.shape[1] != self.items_.features.shape[1]:
            raise InputError(
                "{items} have {0} features, but those of the training data have {1}.",
                items.features.shape[1],
                self.items_.features.shape[1],
                parameter="items",
            )
        return items

    def _data(self, X: Any, y: Any, items: Any) -> _Data:
        """Check what ``fit`` was given."""
        check_parameters(self)
        for name in ("kernel", "item_kernel"):
            if callable(getattr(self, name)):
                raise InputError(
                    f"{{{name}}} is a function, which conditional ranking does not take.",
                    remedy="Give its matrix, with 'precomputed'.",
                    parameter=name,
                )
        if y is None:
            raise InputError("{0} requires {y} to be passed, but the target y is None.", type(self).__name__)
        X = check_matrix(self, X, reset=True)
        check_square(X, self.kernel)
        Y = _utilities(y)
        if len(Y) != X.shape[0]:
            raise InputError("{X} has {0} rows but {y} has {1}.", X.shape[0], len(Y), parameter="y")
        if Y.shape[1] == 1:
            warnings.warn(
                InputWarning("{y} has one column: there is nothing to rank, and every score is 0.", parameter="y"),
                stacklevel=4,
            )
        kernel = resolve_kernel(X, self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)
        item_kernel = None
        if items is not None:
            items = _checked(items)
            if items.n_items != Y.shape[1]:
                raise InputError(
                    "There are {0} {items}, but {y} has {1} columns.",
                    items.n_items,
                    Y.shape[1],
                    remedy="Wrap the features in rankrls.Items, which scikit-learn does not cut into folds of rows."
                    if items.n_items == len(Y)
                    else "",
                    parameter="items",
                )
            if self.fit_intercept:
                raise InputError(
                    "{fit_intercept=True} gives each column of Y a level of its own, which no new item would have.",
                    remedy="With {items}, add a constant feature to X.",
                    parameter="fit_intercept",
                )
            item_kernel = self._item_kernel(items)
        return _Data(X, Y, items, kernel, item_kernel, bool(self.fit_intercept))

    def _item_kernel(self, items: Items) -> Kernel:
        try:
            check_square(items.features, self.item_kernel)
            given = self.item_kernel, self.item_gamma, self.item_degree, self.item_coef0
            check_kernel(*given, None)
            return resolve_kernel(items.features, *given, None)
        except InputError as error:
            names = {name: f"item_{name}" for name in ("kernel", "gamma", "degree", "coef0")}
            raise error.renamed({**names, "X": "items"}) from None

    def _keep(self, data: _Data, alpha: float, a: Array, level: Array) -> None:
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


class _Data:
    """Checked queries, items and utilities, and the problems that they make."""

    def __init__(
        self,
        X: Any,
        Y: Array,
        items: Items | None,
        kernel: Kernel,
        item_kernel: Kernel | None,
        fit_intercept: bool,
    ) -> None:
        self.X, self.Y, self.items = X, Y, items
        self.kernel, self.item_kernel, self.fit_intercept = kernel, item_kernel, fit_intercept

    @property
    def complete(self) -> bool:
        """Whether every utility is known."""
        return not np.isnan(self.Y).any()

    def part(self, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None) -> _Data:
        """Some queries and items as data of their own."""
        X = self.X[rows]
        Y, items = self.Y[rows], self.items
        if columns is not None and items is not None and self.item_kernel is not None:
            features = items.features[columns]
            square = self.item_kernel.name == "precomputed"
            Y, items = Y[:, columns], Items(features[:, columns] if square else features)
        X = X[:, rows] if self.kernel.name == "precomputed" else X
        return _Data(X, Y, items, self.kernel, self.item_kernel, self.fit_intercept)

    def scores(
        self,
        part: _Data,
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
        queries = _side(self.kernel, self.X, "kernel")
        items = None
        if self.items is not None and self.item_kernel is not None:
            items = _side(self.item_kernel, self.items.features, "item_kernel")
        if self.complete:
            return CompleteUtilities(
                queries, None if items is None else centred_items(items), self.Y, self.fit_intercept
            )
        return KnownUtilities(queries, items, self.Y, self.fit_intercept)

    def judge(self, measure: RankingMeasure, Y: Array, scores: Array) -> Array:
        """The measure of each row of Y for scores (rows, columns, values), NaN if it cannot be judged."""
        known = ~np.isnan(Y)
        row = np.nonzero(known)[0]
        layout = query_layout(row, len(row))
        values = np.full((len(Y), scores.shape[2]), np.nan)
        found = LabelJudge(measure, Y[known][:, None], layout).curve(scores[known][:, :, None]).values
        if found is not None and len(row):
            values[layout.ids] = found
        return values


def _side(kernel: Kernel, Z: Any, name: str) -> KernelSide:
    return KernelSide.of_features(Z) if kernel.is_linear else KernelSide.of_matrix(kernel(Z), name)


def _checked(items: Any) -> Items:
    """Items with finite features; a plain matrix will do."""
    items = items if isinstance(items, Items) else Items(items)
    features = sparse.csr_array(items.features) if sparse.issparse(items.features) else items.features
    try:
        features = features if sparse.issparse(features) else np.ascontiguousarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("{items} must hold numbers: {0}.", error, parameter="items") from None
    check_finite_features(features, None, "items", products=True)
    return Items(features, items.ids)


def _utilities(y: Any) -> Array:
    """Utilities (q, d), NaN where they are not known; a vector is one column."""
    given = np.asarray(y)
    unknown = None
    if given.dtype.kind in "fO" and given.ndim in (1, 2):
        try:
            given = given.astype(np.float64)
            unknown = np.isnan(given)
            given = np.where(unknown, 0.0, given)
        except (TypeError, ValueError):
            unknown = None
    Y, _ = check_labels(given if unknown is not None else y)
    if unknown is not None:
        Y = np.where(unknown.reshape(Y.shape), np.nan, Y)
    return Y


def _check_something_known(Y: Array) -> None:
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


def _solutions(problem: CompleteUtilities | KnownUtilities, alphas: Array) -> Iterator[tuple[Array, Array]]:
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


@estimator
class ConditionalRankRLS(ConditionalRanker):
    r"""Ranks the same d items for each query, with a kernel for queries and one for items.

    Minimises, over functions of a query x and an item z with the kernel :math:`k(x, x') g(z, z')`,

    .. math:: \sum_u \sum_{ij} \tfrac{1}{2 d_u} ( (y_{ui} - y_{uj}) - (f(x_u, z_i) - f(x_u, z_j)) )^2
              + \alpha \lVert f \rVert^2 ,

    the sum over the pairs of the :math:`d_u` items whose utilities query u knows. Without ``items`` the columns of Y
    share nothing, which is label ranking.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularization, positive.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`
        Of the queries; positive semidefinite, and no function.
    item_kernel, item_gamma, item_degree, item_coef0 : likewise, default="linear"
        Of the items.
    fit_intercept : bool, default=False
        Whether each column of Y has a level that is not penalised, so that what is common to all queries is free.
        Without ``items`` only. Most label rankings with a linear kernel want it.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (q, d)
        ``a`` in ``f(x, z) = sum_ui a_ui k(x, x_u) g(z, z_i)``; kernels other than linear.
    coef_ : ndarray of shape (d, n)
        ``a'X``, with a linear kernel of the queries.
    intercept_ : ndarray of shape (d,)
    X_fit_ : ndarray or sparse array
        The training queries; kernels other than linear and precomputed.
    items_ : Items or None
    n_queries_, n_items_, n_features_in_ : int
    alpha_ : float

    Notes
    -----
    All utilities known: O(q^3 + d^3) for the two kernels (O(q n^2) for linear ones of few features) and
    O(q d (q + d)) for the solution. With NaN in Y: conjugate gradients, O(q^2 d + q d^2) an iteration. A query with one
    known item compares nothing; equal utilities are tied pairs, which are included.

    References
    ----------
    Pahikkala, Waegeman, Airola, Salakoski, De Baets 2010: Conditional ranking on relational data. Pahikkala, Airola,
    Stock, De Baets, Waegeman 2013: Efficient regularized least-squares algorithms for conditional ranking on relational
    data.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import ConditionalRankRLS, Items
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(50, 3)), rng.normal(size=(8, 2))
    >>> Y = X @ [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]] @ Z.T
    >>> model = ConditionalRankRLS(0.1).fit(X, Y, items=Items(Z))
    >>> model.predict(X[:2]).shape
    (2, 8)
    >>> new = Items(rng.normal(size=(4, 2)))
    >>> round(model.score(X, X @ [[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]] @ new.features.T, items=new), 2)
    1.0
    """

    alpha: float = parameter(default=1.0, check=number(above=0.0), kw_only=False)

    def fit(self, X: Any, y: Any, *, items: Items | None = None) -> Self:
        """Learn from queries and their utilities of the items.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, n)
            Queries; with ``kernel="precomputed"`` the kernel between them, (q, q).
        y : array-like of shape (q, d)
            Utilities, higher is better; NaN where they are not known.
        items : Items, optional
            Features of the d items. None is label ranking.

        Returns
        -------
        self
        """
        data = self._data(X, y, items)
        _check_something_known(data.Y)
        (solution,) = _solutions(data.problem(), np.array([float(self.alpha)]))
        self._keep(data, float(self.alpha), *solution)
        return self


@estimator
class ConditionalRankRLSCV(ConditionalRanker):
    r"""Conditional ranking with alpha chosen by exact leave-query-out.

    Minimises what :class:`ConditionalRankRLS` minimises. Every query's scores by the model of all others come from the
    factorisation that also solves for all alphas.

    Parameters
    ----------
    alphas : "auto" or array-like, default="auto"
        Regularization values to choose from, positive. "auto" is a grid of 21 relative to the spectrum;
        its larger ones if some utilities are not known.
    hold_out : {"queries", "items", "both"}, default="queries"
        What predictions will be made for: new queries, new items for known queries, or new items for new queries (cold
        start). Items are held out in folds, which takes ``items``.
    cv : None or int, default=None
        Folds, each fitted anew. None leaves out every query without refitting if all utilities are known, and is 5
        folds otherwise.
    scoring : as in :class:`RankRLSCV`
        Judges the items of one query.
    rule : {"best", "one_se"}, default="best"
    kernel, gamma, degree, coef0, kernel_params, item_kernel, item_gamma, item_degree, item_coef0, fit_intercept
        As in :class:`ConditionalRankRLS`.

    Attributes
    ----------
    alpha_ : float
    alpha_at_edge_ : bool
    best_params_, best_score_, best_score_error_, best_index_, cv_results_, selection_ : as in :class:`RankRLSCV`
    query_scores_ : ndarray
        The measure of each held-out query (for items: of each query and fold) under the chosen alpha.
    held_out_scores_ : ndarray of shape (q, d) or None
        Scores of each query by the model of all others, up to a constant for each; None if items were held out.
    dual_coef_, coef_, intercept_, X_fit_, items_, n_items_, n_features_in_ : as in :class:`ConditionalRankRLS`

    Notes
    -----
    O(q^3 + d^3) once and three products of q x q with q x d for each alpha. Alphas below 1e-10 of the largest
    eigenvalue are held out at that value.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import ConditionalRankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(80, 4)), rng.normal(size=(4, 6))
    >>> Y = np.argsort(np.argsort(X @ W + rng.normal(size=(80, 6)), axis=1), axis=1)  # rankings of 6 labels
    >>> model = ConditionalRankRLSCV(fit_intercept=True, scoring="tau").fit(X, Y)
    >>> model.selection_, round(model.best_score_, 2)
    ('leave-query-out over 80 queries', 0.59)
    """

    alphas: Any = parameter(default="auto", kw_only=False)
    hold_out: str = parameter(default="queries", check=choice("queries", "items", "both"))
    cv: Any = parameter(default=None, check=number(least=2, whole=True, none=True))
    scoring: Any = parameter(default="disagreement")
    rule: str = parameter(default="best", check=choice(*RULES))

    def fit(self, X: Any, y: Any, *, items: Items | None = None) -> Self:
        """Choose alpha, then learn from all queries.

        Parameters
        ----------
        X, y, items : as in :meth:`ConditionalRankRLS.fit`

        Returns
        -------
        self
        """
        data, measure = self._data(X, y, items), resolve_measure(self.scoring)
        _check_something_known(data.Y)
        if self.hold_out != "queries" and data.items is None:
            raise InputError(
                "{hold_out} = {0!r} holds out items, which a model without {items} knows nothing of.",
                self.hold_out,
                parameter="hold_out",
            )
        problem = data.problem()
        alphas = self._grid(problem)
        held_out_scores = None
        if isinstance(problem, CompleteUtilities) and self.cv is None and self.hold_out == "queries":
            _check_two_queries(data.Y)
            held = holdout_alphas(alphas, float(problem.spectrum.max(initial=0.0)))
            held_out_scores = lambda k: problem.without_each_query(float(held[k]))
            each = [data.judge(measure, data.Y, held_out_scores(k)[:, :, None])[:, 0] for k in range(len(held))]
            values, self.selection_ = np.column_stack(each), f"leave-query-out over {len(data.Y)} queries"
        else:
            values, self.selection_ = self._by_folds(data, measure, alphas)
        results = Results(measure.greater_is_better, self.rule)
        results.add({}, alphas, Curve(*mean_and_error(values), values))
        k = results.best_index
        (solution,) = _solutions(problem, alphas[k : k + 1])
        self._keep(data, float(alphas[k]), *solution)
        self.alpha_at_edge_ = results.at_edge
        self.best_params_, self.best_index_ = {"alpha": float(alphas[k])}, k
        self.best_score_, self.best_score_error_ = results.best_score, results.best_error
        self.cv_results_, self.query_scores_ = results.table(), results.best_values
        self.held_out_scores_ = None if held_out_scores is None else held_out_scores(k)
        return self

    def _grid(self, problem: CompleteUtilities | KnownUtilities) -> Array:
        """The alphas to judge, the largest first."""
        if not (isinstance(self.alphas, str) and self.alphas == "auto"):
            return np.sort(check_alphas(self.alphas, positive=True))[::-1]
        alphas = auto_alphas(problem.spectrum)
        return alphas if isinstance(problem, CompleteUtilities) else alphas[alphas >= _ITERATED * alphas[0]]

    def _by_folds(self, data: _Data, measure: RankingMeasure, alphas: Array) -> tuple[Array, str]:
        """The measure of each held-out query of each fold, (queries, alphas), and how to say it."""
        q, d = data.Y.shape
        k = _FOLDS if self.cv is None else int(self.cv)
        by_query = _folds(q, k, "queries") if self.hold_out != "items" else [np.zeros(0, dtype=np.intp)]
        by_item = _folds(d, k, "items") if self.hold_out != "queries" else [np.zeros(0, dtype=np.intp)]
        values = []
        for rows in by_query:
            for columns in by_item:
                train = np.setdiff1d(np.arange(q), rows), np.setdiff1d(np.arange(d), columns)
                part = data.part(train[0], train[1] if len(columns) else None)
                _check_something_known(part.Y)
                test = rows if len(rows) else np.arange(q), columns if len(columns) else np.arange(d)
                scores = np.stack(
                    [data.scores(part, train, test, *s) for s in _solutions(part.problem(), alphas)], axis=2
                )
                values.append(data.judge(measure, data.Y[np.ix_(*test)], scores))
        words = {"queries": f"{k} folds of {q} queries", "items": f"{k} folds of {d} items"}
        both = f"{k} x {k} folds of {q} queries and {d} items"
        return np.vstack(values), words.get(self.hold_out, both)


def _check_two_queries(Y: Array) -> None:
    varies = int((Y[:, :1] != Y).any(axis=1).sum())
    if varies < 2 and Y.shape[1] > 1:
        raise InputError(
            "Leave-query-out needs two queries with items of different utilities; {0} of {1} sample{2} has some.",
            varies,
            len(Y),
            "" if len(Y) == 1 else "s",
            parameter="y",
        )


def _folds(n: int, k: int, what: str) -> list[NDArray[np.intp]]:
    if k > n:
        raise InputError("{cv} = {0} folds need {0} {1}; there are {2}.", k, what, n, parameter="cv")
    return [test for _, test in KFold(k, shuffle=True, random_state=0).split(np.empty(n))]
