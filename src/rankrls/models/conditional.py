"""Conditional ranking: the same items ranked for each query, known by features of queries and of items."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from rankrls._checks import unchanged_on_error
from rankrls._comparisons import Items
from rankrls._errors import InputError
from rankrls._missing import unmasked
from rankrls._queries import QueryLayout, query_layout
from rankrls.kernels import check_kernel, resolve_kernel
from rankrls.learners.conditional import ConditionalRanking, KernelSide
from rankrls.metrics import Measure, resolve_measure
from rankrls.metrics._values import mean_and_error
from rankrls.models import fitting
from rankrls.models.parameters import ChoiceParameters, KernelParameters, check_parameters, estimator, flag, parameter
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.ties import tied
from rankrls.ranking import rank_positions
from rankrls.selection.curves import Curve
from rankrls.selection.search import Results

Array = NDArray[np.float64]


@estimator
class ConditionalRanker(RegressorMixin, BaseEstimator, KernelParameters):
    """Ranks the same items for every query."""

    # Items reach fit through pipelines and searches, which are evaluated with the items of the training data.
    __metadata_request__fit = {"items": True}  # noqa: RUF012
    __metadata_request__predict = {"items": False}  # noqa: RUF012
    __metadata_request__score = {"items": False}  # noqa: RUF012
    _one_target = False

    item_kernel: str = parameter(default="linear")
    item_gamma: Any = parameter(default=None)
    item_degree: Any = parameter(default=3)
    item_coef0: Any = parameter(default=1.0)
    fit_intercept: bool = parameter(default=False, check=flag)

    def predict(self, X: Any, *, items: Items | None = None) -> Array:
        """Score items for queries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, n)
            Queries. With ``kernel="precomputed"`` the kernel between them and the training queries.
        items : Items, optional
            Items other than those of the training data, if the model was fitted with items.

        Returns
        -------
        ndarray of shape (q, items)
            Higher is better; only differences within a row are meaningful.
        """
        check_is_fitted(self)
        X = fitting.check_features(self, X, kernel=self._kernel_.name)
        scores = self._scorer(X)
        if self.items_ is None:
            if items is not None:
                problem = "This model was fitted without items and scores only the columns of Y. Leave out items."
                raise InputError(problem, parameter="items")
            return scores + self.intercept_
        if items is not None and (items := check_items(items)).features.shape[1] != self.items_.features.shape[1]:
            n, own = items.features.shape[1], self.items_.features.shape[1]
            problem = f"items have {n} features, but those of the training data have {own}."
            raise InputError(problem, parameter="items")
        across = self._item_kernel_((self.items_ if items is None else items).features, self.items_.features)
        return np.asarray(scores @ across.T)

    def rank(self, X: Any, *, items: Items | None = None) -> NDArray[np.intp]:
        """Position of each item for each query, from 1 for the highest score; ties keep column order.

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
        """1 - disagreement error: the share of the pairs of a query's items that are ordered correctly, averaged.

        Parameters
        ----------
        X, items : as for :meth:`predict`
        y : array-like of shape (q, items)
            Utilities.
        sample_weight : array-like of shape (q,), optional
            What each query counts; the same by default.
        """
        scores = self.predict(X, items=items)
        Y, _ = fitting.check_labels(self, y)
        if Y.shape != scores.shape:
            raise InputError(f"y has shape {Y.shape}, but the scores have shape {scores.shape}.", parameter="y")
        error = _each_query(Measure("disagreement"), Y, scores)
        given = fitting.check_weights(sample_weight, len(Y))
        weights = np.ones(len(Y)) if given is None else given
        known = ~np.isnan(error) & (weights > 0.0)
        if not known.any():
            raise InputError("Nothing to compare: no query has two items with different utilities.", parameter="y")
        return 1.0 - float(np.average(error[known], weights=weights[known]))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_items_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.target_tags.multi_output, tags.target_tags.single_output = True, False
        tags.regressor_tags.poor_score = True
        return tags

    @property
    def _scorer(self) -> Scorer:
        """Of queries, a column for each item of the training data."""
        known = vars(self)
        return Scorer(
            self.coef_.T if "coef_" in known else None, known.get("dual_coef_"), self._kernel_, known.get("X_fit_")
        )

    def _problem(self, X: Any, y: Any, items: Any) -> tuple[ConditionalRanking, Any]:
        """Check what ``fit`` was given; the problem, and the queries."""
        check_parameters(self)
        Y, _ = fitting.check_labels(self, y)
        X = fitting.check_matrix(self, X, reset=True, products=True)
        if len(Y) != X.shape[0]:
            raise InputError(f"X has {X.shape[0]} rows but y has {len(Y)}.", parameter="y")
        if (Y[:, :1] == Y).all():
            problem = "Nothing to compare: no query has two items with different utilities"
            raise InputError(f"{problem} ({len(Y)} sample{'' if len(Y) == 1 else 's'}). Check y.", parameter="y")
        ((self._kernel_, _),) = fitting.kernels_of(self, X)
        self.items_ = None if items is None else check_items(items)
        side = None if self.items_ is None else self._item_side(self.items_, Y)
        (self.n_queries_, self.n_items_) = Y.shape
        linear = self._kernel_.is_linear
        queries = KernelSide.of_features(X) if linear else KernelSide.of_matrix(self._kernel_(X), "kernel")
        return ConditionalRanking(queries, side, Y, bool(self.fit_intercept)), X

    def _item_side(self, items: Items, Y: Array) -> KernelSide:
        """``C G C`` of the items, which are checked."""
        if items.n_items != Y.shape[1]:
            problem = f"There are {items.n_items} items, but y has {Y.shape[1]} columns. Pass them as rankrls.Items."
            raise InputError(problem, parameter="items")
        if self.fit_intercept:
            problem = "fit_intercept=True cannot be used with items. Add a constant feature to X instead."
            raise InputError(problem, parameter="fit_intercept")
        given = self.item_kernel, self.item_gamma, self.item_degree, self.item_coef0
        try:
            fitting.check_square(items.features, self.item_kernel)
            check_kernel(*given, None)
            kernel = self._item_kernel_ = resolve_kernel(items.features, *given, None)
        except InputError as error:
            name = "items" if error.parameter == "X" else f"item_{error.parameter}"
            raise error.replace(message=f"{name}: {error.message}", parameter=name) from None
        if kernel.is_linear and not sparse.issparse(items.features):
            return KernelSide.of_features(items.features - items.features.mean(axis=0))
        G = kernel(items.features)
        G -= G.mean(axis=0)
        return KernelSide.of_matrix(G - G.mean(axis=1)[:, None], "item_kernel")

    def _keep(self, problem: ConditionalRanking, X: Any, alpha: float) -> None:
        """Solve for one alpha, and keep the function."""
        a, self.intercept_ = problem.solution(alpha)
        self.alpha_ = alpha
        for name in {"coef_", "dual_coef_", "X_fit_"} & vars(self).keys():
            delattr(self, name)
        kernel, items = self._kernel_, None if self._kernel_.name == "precomputed" else X
        fitting.keep(self, Scorer(X.T @ a) if kernel.is_linear else Scorer(None, a, kernel, items), kernel)


def check_items(items: Any) -> Items:
    """Items with finite features; a plain matrix will do."""
    items = items if isinstance(items, Items) else Items(items)
    try:
        features = check_array(unmasked(items.features), accept_sparse="csr", dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"items: {error}", parameter="items") from None
    return Items(features)


def _each_query(measure: Measure, Y: Array, scores: Array) -> Array:
    """The measure of each row of Y, NaN if it has none."""
    return measure.judge(Y.ravel(), scores.reshape(-1, 1), _rows_as_queries(Y))[:, 0]


def _tied(scores: Array) -> Array:
    """Scores (q, d) in which those of a row that differ by rounding only are equal."""
    return tied(scores.reshape(-1, 1), _rows_as_queries(scores)).reshape(scores.shape)


def _rows_as_queries(Y: Array) -> QueryLayout:
    return query_layout(np.repeat(np.arange(len(Y)), Y.shape[1]), Y.size)


@estimator
class ConditionalRankRLS(ConditionalRanker):
    r"""Ranks the same d items for each query, with a kernel for queries and one for items.

    Minimises, over functions of a query x and an item z with the kernel :math:`k(x, x') g(z, z')`,

    .. math:: \sum_u \sum_{ij} \tfrac{1}{2 d} ( (y_{ui} - y_{uj}) - (f(x_u, z_i) - f(x_u, z_j)) )^2
              + \alpha \lVert f \rVert^2 ,

    the sum over the pairs of the d items. Without ``items`` the columns of Y are independent labels, which is label
    ranking.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularization, positive.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`
        Of the queries; positive semidefinite.
    item_kernel, item_gamma, item_degree, item_coef0 : the same, default="linear"
        Of the items.
    fit_intercept : bool, default=False
        Whether each column of Y has an unpenalised intercept, for what all queries have in common. It cannot be used
        with ``items``, and is usually needed for label ranking with a linear kernel.

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
    O(q^3 + d^3) for the two kernels (O(q n^2) for linear ones of few features) and O(q d (q + d)) for the solution.
    Pairs of equal utilities are included as ties.

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

    alpha: float = parameter(default=1.0, above=0.0, kw_only=False)

    @unchanged_on_error
    def fit(self, X: Any, y: Any, *, items: Items | None = None) -> Self:
        """Fit to queries and their utilities of the items.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, n)
            Queries; with ``kernel="precomputed"`` the kernel between them, (q, q).
        y : array-like of shape (q, d)
            Utilities, higher is better.
        items : Items, optional
            Features of the d items. None is label ranking.

        Returns
        -------
        self
        """
        self._keep(*self._problem(X, y, items), float(self.alpha))
        return self


@estimator
class ConditionalRankRLSCV(ConditionalRanker, ChoiceParameters):
    r"""Conditional ranking with alpha chosen by exact leave-query-out.

    Minimises what :class:`ConditionalRankRLS` minimises. One factorisation gives the held-out scores of every query and
    the solutions of all alphas.

    Parameters
    ----------
    alphas : "auto" or array-like, default="auto"
        Regularization values to choose from, positive. "auto" is a grid of 21 relative to the spectrum.
    scoring : as in :class:`RankRLSCV`
        The measure of the items of one query.
    rule : {"best", "one_se"}, default="best"
    kernel, gamma, degree, coef0, kernel_params, item_kernel, item_gamma, item_degree, item_coef0, fit_intercept
        As in :class:`ConditionalRankRLS`.

    Attributes
    ----------
    alpha_ : float
    alpha_at_edge_ : bool
    best_params_, best_score_, best_score_error_, best_index_, cv_results_, selection_ : as in :class:`RankRLSCV`
    query_scores_ : ndarray
        The measure of each held-out query with the chosen alpha.
    optimism_ : float
        As in :class:`RankRLSCV`.
    held_out_scores_ : ndarray of shape (q, d)
        Held-out scores of each query, up to a constant for each.
    dual_coef_, coef_, intercept_, X_fit_, items_, n_items_, n_features_in_ : as in :class:`ConditionalRankRLS`

    Notes
    -----
    O(q^3 + d^3) once and two products of q x q with q x d for each alpha.

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

    @unchanged_on_error
    def fit(self, X: Any, y: Any, *, items: Items | None = None) -> Self:
        """Choose alpha, then learn from all queries.

        Parameters
        ----------
        X, y, items : as in :meth:`ConditionalRankRLS.fit`

        Returns
        -------
        self
        """
        problem, X = self._problem(X, y, items)
        measure = resolve_measure(self.scoring)
        varies = int((problem.Y[:, :1] != problem.Y).any(axis=1).sum())
        if varies < 2 and self.n_items_ > 1:
            raise InputError(
                f"Leave-query-out needs two queries with items of different utilities; {varies} of "
                f"{self.n_queries_} sample{'' if self.n_queries_ == 1 else 's'} has some.",
                parameter="y",
            )
        alphas = fitting.alphas_of(self, positive=True)
        alphas = problem.grid() if alphas is None else alphas
        held = (_tied(problem.without_each_query(float(alpha))) for alpha in alphas)
        values = np.column_stack([_each_query(measure, problem.Y, scores) for scores in held])
        results = Results(measure.greater_is_better, self.rule, mutual=True)
        results.add({}, alphas, Curve(*mean_and_error(values), values))
        self._keep(problem, X, results.best_value)
        fitting.publish(self, results, f"leave-query-out over {self.n_queries_} queries")
        self.held_out_scores_ = _tied(problem.without_each_query(self.alpha_))
        return self
