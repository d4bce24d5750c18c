"""Conditional ranking: the same items ranked for each query, known by features of queries and of items."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls._items import Items
from rankrls._public import publish
from rankrls.equations.holdout import holdout_alphas
from rankrls.equations.spectrum import auto_alphas
from rankrls.metrics import RankingMeasure, resolve_measure
from rankrls.metrics._averages import mean_and_error
from rankrls.models.families.conditional import (
    ConditionalRanker,
    UtilityData,
    check_something_known,
    check_two_queries,
    solutions,
)
from rankrls.models.families.selecting import publish_choice
from rankrls.models.inputs.parameters import (
    check_alphas,
    choice,
    estimator,
    number,
    parameter,
)
from rankrls.problems.conditional import CompleteUtilities, KnownUtilities
from rankrls.selection.folds import shuffled_folds
from rankrls.selection.judging import Curve
from rankrls.selection.rules import RULES
from rankrls.selection.search import Results

__all__ = ["ConditionalRankRLS", "ConditionalRankRLSCV"]

Array = NDArray[np.float64]
_FOLDS = 5
_ITERATED = 1e-7
"""Conjugate gradients resolve no smaller share of the largest alpha of an automatic grid."""


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
        check_something_known(data.Y)
        (solution,) = solutions(data.problem(), np.array([float(self.alpha)]))
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
    O(q^3 + d^3) once and two products of q x q with q x d for each alpha. Alphas below 1e-10 of the largest
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
        check_something_known(data.Y)
        if self.hold_out != "queries" and data.items is None:
            raise InputError(
                "{hold_out} = {0!r} holds out items, which a model without {items} knows nothing of.", self.hold_out
            )
        problem = data.problem()
        alphas = self._grid(problem)
        held_out_scores: Any = lambda k: None
        if isinstance(problem, CompleteUtilities) and self.cv is None and self.hold_out == "queries":
            check_two_queries(data.Y)
            held = holdout_alphas(alphas, float(problem.spectrum.max(initial=0.0)))
            held_out_scores = lambda k: problem.without_each_query(float(held[k]))
            values = data.judge_held_out(measure, problem, held)
            description = f"leave-query-out over {len(data.Y)} queries"
        else:
            values, description = self._by_folds(data, measure, alphas)
        results = Results(measure.greater_is_better, self.rule)
        results.add({}, alphas, Curve(*mean_and_error(values), values))
        k = results.best_index
        (solution,) = solutions(problem, alphas[k : k + 1])
        self._keep(data, float(alphas[k]), *solution)
        publish_choice(self, results, description)
        self.held_out_scores_ = held_out_scores(k)
        return self

    def _grid(self, problem: CompleteUtilities | KnownUtilities) -> Array:
        """The alphas to judge, the largest first."""
        if not (isinstance(self.alphas, str) and self.alphas == "auto"):
            return np.sort(check_alphas(self.alphas, positive=True))[::-1]
        alphas = auto_alphas(problem.spectrum)
        return alphas if isinstance(problem, CompleteUtilities) else alphas[alphas >= _ITERATED * alphas[0]]

    def _by_folds(self, data: UtilityData, measure: RankingMeasure, alphas: Array) -> tuple[Array, str]:
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
                check_something_known(part.Y)
                test = rows if len(rows) else np.arange(q), columns if len(columns) else np.arange(d)
                scores = np.stack([data.scores(part, train, test, *s) for s in solutions(part.problem(), alphas)])
                values.append(data.judge(measure, data.Y[np.ix_(*test)], scores))
        words = {"queries": f"{k} folds of {q} queries", "items": f"{k} folds of {d} items"}
        both = f"{k} x {k} folds of {q} queries and {d} items"
        return np.vstack(values), words.get(self.hold_out, both)


def _folds(n: int, k: int, what: str) -> list[NDArray[np.intp]]:
    if k > n:
        raise InputError("{cv} = {0} folds need {0} {1}; there are {2}.", k, what, n)
    return [test for _, test in shuffled_folds(n, k)]


publish("rankrls", {**globals(), "__name__": "rankrls"})
