"""Conditional ranking: the same items ranked for each query, using features of queries and of items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_array, check_is_fitted

from rankrls._cells import unmasked
from rankrls._comparisons import Data, Items
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._typing import Array, Index, ItemsLike, LabelsLike, Matrix, Values, VectorLike
from rankrls.kernels import Kernel
from rankrls.learners.conditional import ConditionalCandidate, RankedItems, each_query
from rankrls.learners.paths import PathSolutions
from rankrls.metrics import Measure
from rankrls.models.fitted import ChosenAttributes, Fitted
from rankrls.models.intake import check_labels, check_weights, labelled_items
from rankrls.models.parameters import (
    KERNEL,
    SELECTION,
    Check,
    Grid,
    KernelLike,
    Scoring,
    descending_grid,
    flag,
    number,
    single,
)
from rankrls.models.ranker import Estimator, KernelEstimator
from rankrls.models.spec import Accepts, KernelSettings, SearchSpec, Solved, kernel_settings, kernels_for, kind_of
from rankrls.ranking import rank_positions
from rankrls.selection.plans import Plan, Planner, UnitsPlan

_CHECKS: dict[str, Check] = KERNEL | {
    **dict.fromkeys(("item_kernel", "item_gamma", "item_degree", "item_coef0"), single),
    "fit_intercept": flag,
}


@dataclass(frozen=True, eq=False, kw_only=True)
class ConditionalSpec(SearchSpec[PathSolutions[Array]]):
    """A kernel for queries with one for items.

    Attributes
    ----------
    kernels : KernelSettings
        Kernel of the queries.
    item_kernel : tuple
        Name, gamma, degree and coef0 of the kernel of the items.
    fit_intercept : bool
    """

    kernels: KernelSettings
    item_kernel: tuple[KernelLike, float | None, int, float]
    fit_intercept: bool

    def plan(self, planner: Planner[Data]) -> Plan:
        ranked = planner.data.of_kind(RankedItems)
        q = ranked.n_queries
        varies = int((ranked.Y[:, :1] != ranked.Y).any(axis=1).sum())
        if varies < 2:
            problem = f"Leave-query-out needs two queries with items of different utilities; {varies} of {q} samples"
            raise InputError(f"{problem} have some.", parameter="y")
        description = f"leave-query-out over {q} queries"
        return UnitsPlan(measure=planner.measure, description=description)

    def candidates(self, data: Data) -> Iterator[ConditionalCandidate]:
        ((kernel, _),) = kernels_for(self.kernels, data.X)
        items = data.of_kind(RankedItems).item_features
        item_kernel = None if items is None else self._item_kernel(items.features)
        yield ConditionalCandidate(kernel=kernel, item_kernel=item_kernel, fit_intercept=self.fit_intercept)

    def _item_kernel(self, Z: Matrix) -> Kernel:
        """The kernel of items with features Z."""
        try:
            ((kernel, _),) = kernels_for(kernel_settings(*self.item_kernel), Z)
        except InputError as error:
            name = f"item_{error.parameter}"
            raise error.replace(message=f"{name}: {error.message}", parameter=name) from None
        if kernel.name == "precomputed" and Z.shape[0] != Z.shape[1]:
            raise InputError(f"items: the kernel matrix must be square to fit; got shape {Z.shape}.", parameter="items")
        return kernel

    def fitted(self, data: Data, solved: Solved[PathSolutions[Array]]) -> Fitted:
        items = data.of_kind(RankedItems).item_features
        assert isinstance(solved.candidate, ConditionalCandidate)
        item_kernel = solved.candidate.item_kernel
        known: Values = {} if item_kernel is None else {"_item_kernel_": item_kernel}
        return Fitted.of(
            data,
            solved.solutions[0],
            solved.candidate.kernel,
            alpha_=solved.value,
            intercept_=solved.solutions.details[0],
            items_=items,
            n_items_=data.n_targets,
            **known,
        )


class ConditionalRanker(KernelEstimator, Estimator):
    """Estimator that ranks the same items for every query."""

    # Items reach fit through pipelines and searches, which evaluate with the items of the training data.
    __metadata_request__fit = {"items": True}  # noqa: RUF012
    __metadata_request__predict = {"items": False}  # noqa: RUF012
    __metadata_request__score = {"items": False}  # noqa: RUF012

    _accepts = Accepts()

    item_kernel: KernelLike
    item_gamma: float | None
    item_degree: int
    item_coef0: float
    fit_intercept: bool
    alpha_: float
    n_items_: int
    items_: Items | None
    intercept_: Array
    _item_kernel_: Kernel

    def fit(self, X: ItemsLike, y: LabelsLike, *, items: Items | None = None) -> Self:
        """Fit queries and their utilities for the items; parameters are selected by held-out queries, if any.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, n)
            Queries; with ``kernel="precomputed"``, the kernel between them, (q, q).
        y : array-like of shape (q, d)
            Utilities; higher is better.
        items : Items, optional
            Features of the d items; None for label ranking.

        Returns
        -------
        self
        """
        spec = self._spec()
        ranked = ranked_items(spec, X, y, items)
        return self._set_fitted(spec.fit(ranked, spec.query_plan(ranked)))

    def _spec(self) -> ConditionalSpec:
        """Specification from the checked parameters."""
        kernels = self._kernels()
        return ConditionalSpec(
            name=type(self).__name__,
            accepts=self._accepts,
            kind=kind_of(kernels[0]["kernel"]),
            kernels=kernels,
            item_kernel=(self.item_kernel, self.item_gamma, self.item_degree, self.item_coef0),
            fit_intercept=bool(self.fit_intercept),
        )

    def predict(self, X: ItemsLike, *, items: Items | None = None) -> Array:
        """Score items for queries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (q, n)
            Queries; with ``kernel="precomputed"``, the kernel between them and the training queries.
        items : Items, optional
            Items other than those of the training data, if the model was fitted with items.

        Returns
        -------
        ndarray of shape (q, items)
            Scores; higher is better, and only differences within a row are meaningful.
        """
        check_is_fitted(self)
        scores = self.scorer_(self._checked(X))
        if self.items_ is None:
            if items is not None:
                problem = "This model was fitted without items and scores only the columns of Y. Leave out items."
                raise InputError(problem, parameter="items")
            return scores + self.intercept_
        own = self.items_.features
        ranked = own if items is None else check_items(items).features
        if ranked.shape[1] != own.shape[1]:
            problem = f"items have {ranked.shape[1]} features, but those of the training data have {own.shape[1]}."
            raise InputError(problem, parameter="items")
        return scores @ self._item_kernel_(ranked, own).T

    def rank(self, X: ItemsLike, *, items: Items | None = None) -> Index:
        """Return the position of each item for each query, from 1 for the highest score; ties keep column order.

        Parameters
        ----------
        X, items : as for :meth:`predict`

        Returns
        -------
        ndarray of shape (q, items)
        """
        scores = self.predict(X, items=items)
        return rank_positions(scores.T).T

    def score(
        self, X: ItemsLike, y: LabelsLike, *, items: Items | None = None, sample_weight: VectorLike | None = None
    ) -> float:
        """Return 1 - disagreement error: the share of a query's item pairs that are ordered correctly, averaged.

        Parameters
        ----------
        X, items : as for :meth:`predict`
        y : array-like of shape (q, items)
            Utilities of the items.
        sample_weight : array-like of shape (q,), optional
            Weight of each query; equal by default.
        """
        scores = self.predict(X, items=items)
        Y, _ = check_labels(type(self).__name__, self._accepts, y)
        if Y.shape != scores.shape:
            raise InputError(f"y has shape {Y.shape}, but the scores have shape {scores.shape}.", parameter="y")
        errors = each_query(Measure("disagreement"), Y, scores)
        given = check_weights(sample_weight, len(Y))
        weights = np.ones(len(Y)) if given is None else given
        known = ~np.isnan(errors) & (weights > 0.0)
        if not known.any():
            raise InputError("Nothing to compare: no query has two items with different utilities.", parameter="y")
        return 1.0 - float(np.average(errors[known], weights=weights[known]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.regressor_tags.poor_score = True
        return tags


def ranked_items(spec: ConditionalSpec, X: ItemsLike, y: LabelsLike, items: Items | None) -> RankedItems:
    """Checked queries with their utilities for the items."""
    data = labelled_items(spec, X, y, None, None, comparable=False)
    q, d = data.Y.shape
    if (data.Y[:, :1] == data.Y).all():
        problem = (
            f"Nothing to compare: no query has two items with different utilities ({q} sample{'s' * (q > 1)}). Check y."
        )
        raise InputError(problem, parameter="y")
    items = None if items is None else check_items(items)
    if items is not None and items.n_items != d:
        problem = f"There are {items.n_items} items, but y has {d} columns. Pass one row of features for each column."
        remedy = "scikit-learn splits items that are not a rankrls.Items."
        raise InputError(f"{problem} {remedy}", parameter="items")
    if items is not None and spec.fit_intercept:
        problem = "fit_intercept=True cannot be used with items."
        remedy = "Add a constant feature to X and an indicator of each item to items instead."
        raise InputError(f"{problem} {remedy}", parameter="fit_intercept")
    queries = query_layout(np.arange(q), q)
    return RankedItems(
        data.X,
        kept=None,
        has_qid=False,
        one_target=False,
        Y=data.Y,
        layout=queries,
        weights=None,
        item_features=items,
        features=data.features,
    )


def check_items(items: Items | ItemsLike) -> Items:
    """Items with finite features; a plain matrix is accepted."""
    items = items if isinstance(items, Items) else Items(items)
    try:
        features = check_array(unmasked(items.features), accept_sparse="csr", dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(f"items: {error}", parameter="items") from None
    return Items(features)


class ConditionalRankRLS(ConditionalRanker):
    r"""Conditional ranking of the same d items for each query, with a kernel for queries and one for items.

    Minimizes, over functions of a query x and an item z with the kernel :math:`k(x, x') g(z, z')`,

    .. math:: \sum_u \sum_{ij} \tfrac{1}{2 d} ( (y_{ui} - y_{uj}) - (f(x_u, z_i) - f(x_u, z_j)) )^2
              + \alpha \lVert f \rVert^2 ,

    where the sum is over the pairs of the d items. Without ``items``, the columns of Y are independent labels, which is
    label ranking.

    Parameters
    ----------
    alpha : float, default=1.0
        Positive regularization parameter.
    kernel, gamma, degree, coef0 : as in :class:`RankRLS`
        Kernel of the queries; positive semidefinite.
    item_kernel, item_gamma, item_degree, item_coef0 : the same, default="linear"
        Kernel of the items.
    fit_intercept : bool, default=False
        Whether each column of Y has an unpenalized intercept, for what all queries have in common. It is incompatible
        with ``items``, and usually needed for label ranking with a linear kernel.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (q, d)
        ``a`` in ``f(x, z) = sum_ui a_ui k(x, x_u) g(z, z_i)``; kernels other than linear.
    coef_ : ndarray of shape (d, n)
        ``a'X``; linear kernel of the queries only.
    intercept_ : ndarray of shape (d,)
        Intercepts of the columns of Y; 0 without ``fit_intercept``.
    X_fit_ : ndarray or sparse array
        Training queries; kernels other than linear and precomputed.
    items_ : Items or None
    n_queries_, n_items_, n_features_in_ : int
    alpha_ : float

    See Also
    --------
    ConditionalRankRLSCV : Choose alpha by held-out queries.
    RankRLS : Queries with different items.

    Notes
    -----
    O(q^3 + d^3) for the two kernels (O(q n^2) for linear ones with few features) and O(q d (q + d)) for the solution.
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

    _checks = _CHECKS | {"alpha": number(above=0.0)}

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        kernel: KernelLike = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        item_kernel: KernelLike = "linear",
        item_gamma: float | None = None,
        item_degree: int = 3,
        item_coef0: float = 1.0,
        fit_intercept: bool = False,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.item_kernel = item_kernel
        self.item_gamma = item_gamma
        self.item_degree = item_degree
        self.item_coef0 = item_coef0
        self.fit_intercept = fit_intercept

    def _spec(self) -> ConditionalSpec:
        return super()._spec().at(self.alpha)


class ConditionalRankRLSCV(ChosenAttributes, ConditionalRanker):
    r"""Conditional ranking with alpha selected by exact leave-query-out.

    Has the same objective as :class:`ConditionalRankRLS`. One factorization gives the held-out scores of every query
    and the solutions of all alphas.

    Parameters
    ----------
    alphas : "auto" or array-like, default="auto"
        Positive regularization values to choose from. "auto" is a grid of 21 relative to the spectrum.
    scoring : as in :class:`RankRLSCV`
        Measure over the items of one query. Equal scores are ranked in the order of y, without a warning.
    rule : {"best", "one_se"}, default="best"
    kernel, gamma, degree, coef0, item_kernel, item_gamma, item_degree, item_coef0, fit_intercept
        Parameters of :class:`ConditionalRankRLS`.

    Attributes
    ----------
    alpha_ : float
    alpha_at_edge_ : bool
    best_params_, best_score_, best_score_error_, best_index_, cv_results_, selection_ : as in :class:`RankRLSCV`
    query_scores_ : ndarray
        Measure of each held-out query with the selected alpha.
    optimism_ : float
        Selection bias, as in :class:`RankRLSCV`.
    held_out_scores_ : ndarray of shape (q, d)
        Held-out scores of each query, up to a constant per query.
    dual_coef_, coef_, intercept_, X_fit_, items_, n_items_, n_features_in_ : as in :class:`ConditionalRankRLS`

    See Also
    --------
    ConditionalRankRLS : Fit one value of alpha.
    RankRLSCV : Queries with different items.

    Notes
    -----
    O(q^3 + d^3) once, and two products of q x q with q x d matrices per alpha.

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

    _checks = _CHECKS | SELECTION

    def __init__(
        self,
        alphas: Grid = "auto",
        *,
        kernel: KernelLike = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        item_kernel: KernelLike = "linear",
        item_gamma: float | None = None,
        item_degree: int = 3,
        item_coef0: float = 1.0,
        fit_intercept: bool = False,
        scoring: Scoring = "disagreement",
        rule: str = "best",
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.item_kernel = item_kernel
        self.item_gamma = item_gamma
        self.item_degree = item_degree
        self.item_coef0 = item_coef0
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.rule = rule

    def _spec(self) -> ConditionalSpec:
        return super()._spec().choosing(descending_grid(self.alphas, positive=True), self.scoring, self.rule)
