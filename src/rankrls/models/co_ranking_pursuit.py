"""Ranking pursuit of several views that agree where there are no scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankrls.metrics import resolve_measure
from rankrls.models import fitting
from rankrls.models.inputs.parameters import (
    check_parameters,
    choice,
    combinations,
    estimator,
    number,
    options,
    parameter,
)
from rankrls.models.partly_scored import PartlyScored
from rankrls.models.views import CoPursuitCandidate, ViewPursuer
from rankrls.selection.folds import few_folds
from rankrls.selection.rules import RULES
from rankrls.selection.search import search

__all__ = ["CoRankingPursuit", "CoRankingPursuitCV"]

_KERNEL = ("kernel", "gamma", "degree", "coef0")


@estimator
class CoRankingPursuit(ViewPursuer):
    r"""Semi-supervised ranking pursuit: views that fit the scored rows and agree on the unscored ones.

    M functions, one a view, each a sum of at most P kernel columns or features, minimise

    .. math::

        \sum_v (y - f_v)' L (y - f_v) + \nu \sum_{v,u} (\bar f_v - \bar f_u)' \bar L (\bar f_v - \bar f_u) ,

    where the bar means the unscored rows and ``Lbar`` compares those of the same query. Each stage takes one column a
    view, those that lower it most together, and then fits all coefficients of all views anew. The prediction is the
    mean of the views' functions.

    Parameters
    ----------
    n_basis : int, default=10
        P, the number of stages.
    views : sequence of views, optional
        A view is a list, slice or mask of features (or their names); or a kernel's name or function; or a dict with any
        of ``features``, ``kernel``, ``gamma``, ``degree``, ``coef0``, ``kernel_params``, ``loss_rows``, ``basis_rows``
        and ``rows``. By default two views, the first and the second half of the features.

        ``loss_rows`` (numbers or a mask over the rows of X and then of X_unscored) are the rows whose labels the view
        is fitted to; unscored rows among them do not count. ``basis_rows`` are the rows whose columns it may take,
        scored or not. Each is all scored rows by default; ``rows`` stands for whichever of the two is not given. The
        views agree on all unscored rows in any case.
    nu : float, default=1.0
        Weight of the agreement; 0 leaves the views alone.
    dictionary : {"kernel", "features"}, default="kernel"
        "features": the columns are the features that a view has, and each view is a linear function of few of them. A
        stage takes a feature for the first view, given that one for the second, and so on, O(M N (n + l)) for N of
        them; kernels and ``shared_basis`` do not matter. Several views of all features, ``({}, {})``, are several
        solutions, which ``disjoint`` keeps apart.
    disjoint : bool, default=False
        Whether a feature that one view has taken is closed to the others: solutions that share nothing, each nearly as
        good, where one alone would hide that there are others (section 1 of the paper).
    aggregation : {"mean", "weighted", "best"}, default="mean"
        How the views' functions make the prediction: their mean; a mean weighted by what each is worth on held-out
        queries, which is 1 - 2 e for its disagreement error e, at least 0; or the one of the least error. The last two
        fit 5 folds of the scored queries. For positions instead of scores see
        :func:`rankrls.inspection.borda_scores`.
    shared_basis : bool, default=True
        Whether a stage takes the same row in every view, O(P M^3 n l). Otherwise all combinations of rows are tried,
        O(n^M) of them, up to 4 million; views of different rows need this, or have rows in common.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`, default="rbf"
        Of the views that name none. With "precomputed", X is the kernel matrix between all rows, scored or not, and
        views differ by their rows; ``predict`` takes the kernel with all of them.
    ties, balance, regression_weight : as in :class:`RankRLS`
        All pairs of unscored rows of a query are compared.
    backfit : bool, default=True
        Whether all coefficients are fitted again at each stage.

    Attributes
    ----------
    views_ : tuple of ViewFunction
        The views' own functions, each with ``predict`` and ``staged_predict``.
    path_ : CoPursuitPath
        ``indices`` (stages, M), ``coefficients``, ``losses`` (the objective) and ``view_losses`` of every stage.
        Indices count the rows of X and then those of X_unscored.
    basis_indices_ : ndarray of shape (r,), intp
        The rows, or features, taken by any view, in the order of choice.
    X_fit_ : ndarray or sparse array of shape (r, n)
        Those rows, unless the kernel is precomputed.
    coef_ : ndarray of shape (n,)
        Weights of the features, with dictionary="features". Each of ``views_`` has its own ``coef_`` and ``support_``.
    view_weights_ : ndarray of shape (M,)
        What the views count in the prediction; they sum to 1.
    view_errors_ : ndarray of shape (M,)
        Disagreement error of each view on held-out scored queries, unless ``aggregation`` is "mean".
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Notes
    -----
    Memory 8 N (n + l) bytes a view for N columns, n scored and l unscored rows; time linear in the unscored rows.
    Without unscored rows the views agree on the scored ones. One view, or ``nu=0`` without a shared basis, is
    :class:`RankingPursuit`.

    References
    ----------
    Tsivtsivadze, Heskes: Semi-supervised ranking pursuit. Section 3.1, equation (3).

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import CoRankingPursuit
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(200, 6)), np.repeat(np.arange(40), 5)
    >>> y = np.where(qid < 8, X.sum(axis=1) + rng.normal(size=200), np.nan)
    >>> model = CoRankingPursuit(4, views=([0, 1, 2], [3, 4, 5]), nu=0.1).fit(X, y, qid=qid)
    >>> model.path_.indices.shape, len(model.views_)
    ((4, 2), 2)
    >>> np.allclose(model.predict(X), np.mean([view.predict(X) for view in model.views_], axis=0))
    True
    """

    n_basis: int = parameter(default=10, check=number(least=1, whole=True), kw_only=False)
    nu: float = parameter(default=1.0, check=number(least=0.0))

    def _learn(self, rows: PartlyScored) -> None:
        kernel = {name: getattr(self, name) for name in _KERNEL}
        pursuit = self._pursuit(rows, kernel, float(self.nu), int(self.n_basis))
        candidate = CoPursuitCandidate(setting=fitting.setting_of(self), pursuit=pursuit)
        self._store(rows.known, candidate, candidate.problem(rows.known).path(np.array([float(self.n_basis)])))


@estimator
class CoRankingPursuitCV(ViewPursuer):
    r"""Ranking pursuit of several views whose number of terms and agreement are chosen by folds of the scored queries.

    Minimises what :class:`CoRankingPursuit` minimises. Each fold is one run, whose path is judged after every stage
    ("P is estimated using a cross-validation procedure", section 3.1). A query that is held out loses its labels and
    stays among the unscored rows.

    Parameters
    ----------
    max_basis : int, default=50
        The largest number of stages to choose from.
    nu : float or tuple, default=(0.0, 0.01, 0.1, 1.0)
        Weights of the agreement to choose from; 0 leaves the views alone.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of the scored queries, each query alone if there are no more, and of rows for one ranking; an
        int is that many. Folds of your own name rows of X, of which those without a label are passed over. Every fold
        is refitted.
    scoring, verbose : as in :class:`RankRLSCV`
    rule : {"best", "one_se"}, default="best"
        "one_se" takes the fewest stages whose measure is within one standard error of the best.
    kernel, gamma, degree, coef0, ties, balance : as in :class:`CoRankingPursuit`, or a tuple of values to choose from
        Those of the kernel are for views that name none.
    views, dictionary, disjoint, shared_basis, backfit, kernel_params, regression_weight : as in
        :class:`CoRankingPursuit`
    aggregation : as in :class:`CoRankingPursuit`
        Chosen is by the mean; the views are then weighed on the same folds.

    Attributes
    ----------
    best_params_ : dict
        ``n_basis`` (stages), ``nu``, ties, balance and those of the kernel's parameters that are chosen.
    n_basis_at_edge_ : bool
        Whether the choice is ``max_basis``: raise it then.
    n_basis_ : int
        Distinct columns taken by any view.
    held_out_scores_ : ndarray of shape (m,) or None
        Scores of the scored rows of X by models without their query's labels; NaN for unscored rows.
    cv_results_, best_score_, best_score_error_, best_index_, selection_, query_scores_, nu_at_edge_ : as in
        :class:`RankingPursuitCV`
    views_, path_, basis_indices_, X_fit_, coef_, view_weights_, view_errors_, n_queries_, n_features_in_,
    feature_names_in_ : as in :class:`CoRankingPursuit`

    Notes
    -----
    One pursuit a fold and one on all rows, for each combination. Equal measures: the fewest stages, then the least
    agreement.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import CoRankingPursuitCV
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(200, 6)), np.repeat(np.arange(40), 5)
    >>> y = np.where(qid < 8, X.sum(axis=1) + rng.normal(size=200), np.nan)
    >>> model = CoRankingPursuitCV(10, gamma=0.1, nu=(0.0, 0.1)).fit(X, y, qid=qid)
    >>> model.selection_, sorted(model.best_params_)
    ('5 folds of 8 queries', ['balance', 'n_basis', 'nu', 'ties'])
    """

    max_basis: int = parameter(default=50, check=number(least=1, whole=True), kw_only=False)
    nu: Any = parameter(default=(0.0, 0.01, 0.1, 1.0), check=number(least=0.0), several=True)
    cv: Any = parameter(default=None)
    scoring: Any = parameter(default="disagreement")
    rule: str = parameter(default="best", check=choice(*RULES))
    verbose: Any = parameter(default=0)

    def _check(self) -> None:
        check_parameters(self, several=True)

    def _learn(self, rows: PartlyScored) -> None:
        data, most = rows.known, int(self.max_basis)
        plan = few_folds(self.cv, resolve_measure(self.scoring), data, float(self.regression_weight))
        results = search(self._candidates(rows, most), data, plan, self.rule, None, int(self.verbose))
        self._store(data, results.best_state.candidate, results.best_state.solutions)
        fitting.publish(self, results, plan.description, data)
        stages = int(results.best_value)
        self.best_params_["n_basis"] = stages
        self.n_basis_ = len(self.basis_indices_)
        self.n_basis_at_edge_ = stages == most and self.path_.n_stages == stages

    def _candidates(self, rows: PartlyScored, most: int) -> Iterator[CoPursuitCandidate]:
        several = [name for name in _KERNEL if len(options(getattr(self, name), name)) > 1]
        for kernel in combinations(self, _KERNEL):
            for nu in sorted(float(value) for value in options(self.nu, "nu")):
                pursuit = self._pursuit(rows, kernel, nu, most)
                for setting, chosen in fitting.settings_of(self, rows.known):
                    choices = {**{name: kernel[name] for name in several}, **chosen, "nu": nu}
                    yield CoPursuitCandidate(setting=setting, choices=choices, pursuit=pursuit)
