"""Greedy RankRLS: a linear ranking function of a small set of features, selected by their held-out error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Data, GraphSetting
from rankrls._errors import InputError
from rankrls._typing import Array, FoldsLike, Index, ItemsLike, Mask, Matrix, Values
from rankrls.learners.greedy import ForwardPath, GreedyCandidate, block_rows
from rankrls.learners.paths import PathSolutions
from rankrls.metrics import Measure
from rankrls.models.fitted import Fitted
from rankrls.models.parameters import (
    GRAPHS,
    SELECTION,
    Grid,
    Scoring,
    Several,
    auto_or,
    count,
    descending_grid,
)
from rankrls.models.ranker import Chooses
from rankrls.models.spec import Accepts, SearchSpec, Solved, graph_settings
from rankrls.selection.plans import Plan, Planner

_DECADES = 6


@dataclass(frozen=True, eq=False, kw_only=True)
class GreedySpec(SearchSpec[PathSolutions[ForwardPath]]):
    """All graphs and values of alpha; the parameter of their paths is the number of features.

    Attributes
    ----------
    alphas : ndarray or None
        Values of alpha; None for an automatic grid.
    max_features : int
    """

    alphas: Array | None
    max_features: int

    def for_preferences(self) -> Self:
        if self.measure is None or self.measure.name != "pair_squared_error":
            return self
        return replace(self, measure=Measure("disagreement"))

    def plan(self, planner: Planner[Data]) -> Plan | None:
        alphas = 2 if self.alphas is None else len(self.alphas)
        chooses = self.grid is None or alphas > 1 or len(self.graphs) > 1
        return super().plan(planner) if chooses or self.cv is not None else None

    def candidates(self, data: Data) -> Iterator[GreedyCandidate]:
        n = data.X.shape[1]
        most = min(n, self.max_features) if self.grid is None else int(self.grid[0])
        if most > n:
            raise InputError(
                f"n_features_to_select is {most}, but X has {n} features.", parameter="n_features_to_select"
            )
        for setting, chosen in data.settings(self.graphs):
            alphas = _automatic_alphas(data, setting) if self.alphas is None else self.alphas
            for alpha in alphas.tolist():
                yield GreedyCandidate(choices={**chosen, "alpha": alpha}, setting=setting, alpha=alpha, most=most)

    def fitted(self, data: Data, solved: Solved[PathSolutions[ForwardPath]]) -> Fitted:
        (path,) = solved.solutions.details
        choices = solved.candidate.choices
        known: Values = {}
        if solved.found is None:
            known["best_params_"] = {**choices, "n_features": path.n_stages}
        else:
            known["alpha_at_edge_"] = solved.found.edges.get("alpha", False)
        return Fitted.of(
            data,
            solved.solutions[0],
            solved.candidate.kernel,
            path_=path,
            selected_=path.indices,
            n_features_=path.n_stages,  # fewer if the rest lie in their span
            alpha_=float(choices["alpha"]),
            **known,
        )


def _automatic_alphas(data: Data, setting: GraphSetting) -> Array:
    """Grid of decades, descending from the largest squared length of a feature."""
    rows = block_rows(data.X, data.numeric_graphs(setting)[0])
    top = float(rows.energies.max(initial=0.0))
    return np.geomspace(top, top * 10.0 ** (1 - _DECADES), _DECADES) if top > 0.0 else np.ones(1)


class GreedyRankRLS(SelectorMixin, Chooses):
    r"""Linear RankRLS on few features, which are selected one by one using exact leave-query-out.

    Minimizes, over weights of the features S,

    .. math::

        \tfrac12 \sum_{ij} W_{ij} ( (y_i - y_j) - w_S'(x_{iS} - x_{jS}) )^2 + \alpha \lVert w_S \rVert^2 ,

    where each step adds to S the feature with the smallest held-out error. Every query is held out, exactly and without
    refitting. The number of features and alpha are selected using folds of queries, with the whole selection repeated
    in each fold, because the held-out error of the selection itself is optimistic.

    Parameters
    ----------
    n_features_to_select : "auto" or int, default="auto"
        Number of features to select. "auto" chooses from 1 to ``max_features``.
    alphas : "auto" or array-like, default="auto"
        Positive regularization values to choose from. "auto" is one per decade from the largest ``x'Lx`` of a feature
        down, six in total.
    max_features : int, default=30
        Largest number of features to choose from; n if that is smaller.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        Held-out units. None is 5 folds of whole queries, or of rows for one global ranking; an int is a number of
        folds. If there is nothing to choose, None holds nothing out.
    scoring : str, Measure or callable, default="pair_squared_error"
        Measure used to select the number of features and alpha, as in :class:`RankRLSCV`; for preferences, the default
        is their disagreement. Features are always selected by the held-out squared error.
    rule : {"best", "one_se"}, default="best"
        Selection rule; "one_se" selects the fewest features whose measure is within one standard error of the best.
    ties, balance, regression_weight : as in :class:`RankRLS`; ties and balance may be tuples to choose from

    Attributes
    ----------
    selected_ : ndarray of shape (k,), intp
        Selected features, in the order of selection.
    coef_ : ndarray of shape (n,)
        Weights; 0 for all other features.
    path_ : ForwardPath
        ``indices``, ``coefficients``, ``losses`` (training) and ``held_out`` (squared error of all held-out rows,
        before the first stage and after each).
    n_features_ : int
        Number of selected features.
    alpha_ : float
    n_features_at_edge_, alpha_at_edge_ : bool
        Whether the selected value is at an end of its grid; only if something was held out.
    best_params_, best_score_, best_score_error_, cv_results_, selection_, query_scores_ : as in
        :class:`RankingPursuitCV`; all except the first only if something was held out
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Column names of X, if it has any.

    See Also
    --------
    RankingPursuitCV : Select features or kernel functions by the training loss.
    rankrls.inspection.selected_features : The path of the selection as a table.

    Notes
    -----
    O(k m n) for k of n features and m rows, and ``8 m n`` bytes plus ``48 n`` per query, for every alpha and fold.
    Sparse features are made dense. Features are not scaled, and one with larger spread is penalized less: standardize
    them. Constant features, and combinations of selected features, are never selected. Among equal features, the first
    is selected. Queries with one item and rows of weight zero are treated as in :class:`RankRLS`. The items of one
    global ranking are held out one by one, exactly as by refits; all pairs must then be compared (``ties="include"``),
    and sample weights need ``balance="examples"``. ``fit_pairs`` uses ``cv`` folds (5 by default) of what will be new
    (:ref:`new`), with one selection per fold and alpha.

    References
    ----------
    Pahikkala, Airola, Naula, Salakoski 2010: Greedy RankRLS: a linear time algorithm for learning sparse ranking
    models.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import GreedyRankRLS
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(300, 40)), np.repeat(np.arange(30), 10)
    >>> y = X[:, 3] - 2 * X[:, 11] + 0.5 * X[:, 30] + rng.normal(size=300)
    >>> model = GreedyRankRLS(rule="one_se").fit(X, y, qid=qid)
    >>> model.selected_, model.transform(X).shape
    (array([11,  3, 30]), (300, 3))
    """

    _accepts = Accepts(several_targets=False)
    _checks = GRAPHS | SELECTION | {"n_features_to_select": auto_or(count), "max_features": count}

    selected_: Index
    path_: ForwardPath
    alpha_: float
    n_features_: int

    def __init__(
        self,
        n_features_to_select: int | str = "auto",
        *,
        alphas: Grid = "auto",
        max_features: int = 30,
        ties: Several[str] = "include",
        balance: Several[str] = "examples",
        regression_weight: float = 0.0,
        scoring: Scoring = "pair_squared_error",
        rule: str = "best",
        cv: FoldsLike = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.alphas = alphas
        self.max_features = max_features
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.scoring = scoring
        self.rule = rule
        self.cv = cv

    def _spec(self) -> GreedySpec:
        self._check_parameters()
        given = self.n_features_to_select
        grid = None if isinstance(given, str) else np.array([given], dtype=np.float64)
        return GreedySpec(
            name=type(self).__name__,
            accepts=self._accepts,
            graphs=graph_settings(self.ties, self.balance, self.regression_weight),
            alphas=descending_grid(self.alphas, positive=True),
            max_features=int(self.max_features),
        ).choosing(grid, self.scoring, self.rule, self.cv)

    @property
    def _feature_path(self) -> ForwardPath | None:
        return self.path_ if self.__sklearn_is_fitted__() else None

    def transform(self, X: ItemsLike) -> Matrix:
        """Return the selected features of items, in the order of the columns of X.

        Parameters
        ----------
        X : as for :meth:`predict`

        Returns
        -------
        ndarray or sparse array of shape (m, selected features)
        """
        check_is_fitted(self)
        return self._checked(X)[:, self.get_support()]

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.selected_] = True
        return mask
