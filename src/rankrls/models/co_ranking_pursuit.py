"""Ranking pursuit of several views that agree on unlabelled rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls._rows import take_items
from rankrls.kernels import Kernel
from rankrls.learners.copursuit import CoPursuit, CoPursuitProblem
from rankrls.learners.paths import CoPursuitPath
from rankrls.metrics import resolve_measure
from rankrls.models import fitting
from rankrls.models.parameters import (
    KernelParameters,
    SelectionParameters,
    combinations,
    estimator,
    flag,
    options,
    parameter,
)
from rankrls.models.partly_labelled import PartlyLabelled, PartlyLabelledRanker, view_plans
from rankrls.models.ranker import Candidate
from rankrls.models.ranking_pursuit import DICTIONARIES
from rankrls.selection.plans import few_folds
from rankrls.selection.search import search

_KERNEL = ("kernel", "gamma", "degree", "coef0")
_LAST = slice(-1, None)
"""The last stage, if there is one: the sum over it is 0 without a stage."""


@estimator
class ViewPursuer(PartlyLabelledRanker, KernelParameters):
    """A ranker whose function is a weighted mean of those of several views, each a sum of columns taken one by one."""

    _single_target = True

    views: Any = parameter(default=None)
    dictionary: str = parameter(default="kernel", check=DICTIONARIES)
    disjoint: bool = parameter(default=False, check=flag)
    aggregation: str = parameter(default="mean", check=("mean", "weighted", "best"))
    shared_basis: bool = parameter(default=True, check=flag)
    kernel: Any = parameter(default="rbf", several=True)
    backfit: bool = parameter(default=True, check=flag)

    @property
    def views_(self) -> tuple[ViewFunction, ...]:
        """The function of each view."""
        check_is_fitted(self, "path_")
        return tuple(ViewFunction(self, v) for v in range(len(self._terms_)))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score items by the weighted mean of the views' functions; as :meth:`RankRLS.predict`."""
        check_is_fitted(self)
        return self._staged(X, _LAST).sum(axis=1)

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Score items after each stage of the path, (m,) at a time, the last of which is :meth:`predict`."""
        check_is_fitted(self)
        yield from self._staged(X, slice(None)).T

    def _staged(self, X: Any, stages: Any) -> NDArray[np.float64]:
        """Scores after some stages, (rows, stages)."""
        X = fitting.check_matrix(self, X, reset=False)
        parts = [terms.scores(X, stages) for terms in self._terms_]
        return np.asarray(np.tensordot(self.view_weights_, parts, axes=1))

    def _expansions(self) -> Iterator[tuple[Kernel | None, NDArray[np.intp] | None, Any, NDArray[np.float64]]]:
        """What the views add to a score, a sum over a kernel each: kernel, features (None for all), items and
        coefficients. Nothing without a stage.
        """
        for terms, weight in zip(self._terms_, self.view_weights_, strict=True) if self.path_.n_stages else ():
            yield terms.kernel, terms.features, terms.items, weight * terms.coefficients[-1]

    def _pursuit(self, rows: PartlyLabelled, kernel: Mapping[str, Any], nu: float, n_basis: int) -> CoPursuit:
        """The pursuit of all views, with these values of the kernel's parameters."""
        of_features, n = self.dictionary == "features", rows.everything.X.shape[1]
        plans = view_plans(self.views, self, kernel)
        if self.disjoint and not (of_features and n >= len(plans)):
            why = f"{len(plans)} views need as many, and X has {n}" if of_features else "it needs dictionary='features'"
            raise InputError(f"disjoint=True keeps the features of views apart: {why}.", parameter="disjoint")
        flags: Any = {name: bool(getattr(self, name)) for name in ("shared_basis", "backfit", "disjoint")}
        return CoPursuit(rows.everything, ~rows.labelled, plans, n_basis, nu, of_features=of_features, **flags)

    def _store(self, rows: PartlyLabelled, problem: Any, path: CoPursuitPath) -> None:
        """Keep the views' functions."""
        pursuit: CoPursuit = problem.keywords["pursuit"]
        self.view_weights_ = self._weights(rows.known, problem, path.n_stages)
        data, of_features = pursuit.data, pursuit.of_features
        taken, first = np.unique(path.indices, return_index=True)
        taken = taken[np.argsort(first)]
        numbers = np.asarray if of_features else data.given_numbers
        self.path_, self.basis_indices_ = replace(path, indices=numbers(path.indices)), numbers(taken)
        self._terms_ = [pursuit.terms(path, v) for v in range(len(pursuit.views))]
        if of_features:
            self.coef_ = np.asarray(self.view_weights_ @ [view.coef_ for view in self.views_])
        else:
            self.X_fit_ = take_items(data.X, taken)

    def _weights(self, known: LabelledItems, problem: Any, stages: int) -> NDArray[np.float64]:
        """Weights of the views, by the error of each on held-out queries if they are not to be equal."""
        pursuit, M = problem.keywords["pursuit"], len(problem.keywords["pursuit"].views)
        if self.aggregation == "mean":
            return np.full(M, 1.0 / M)
        measure, values = resolve_measure("disagreement"), np.array([float(stages)])
        plan = few_folds(getattr(self, "cv", None), measure, known, float(self.regression_weight))
        self.view_errors_ = np.empty(M)
        for v, alone in enumerate(np.eye(M)):
            candidate = Candidate({}, partial(problem, pursuit=replace(pursuit, weights=alone)))
            self.view_errors_[v] = plan.curve(known, candidate, candidate.problem(known), values).mean[0]
        worth = np.maximum(1.0 - 2.0 * self.view_errors_, 0.0)  # Kendall's tau
        if self.aggregation == "best":
            worth = (np.arange(M) == np.argmin(self.view_errors_)).astype(np.float64)
        return worth / worth.sum() if worth.any() else np.full(M, 1.0 / M)


@dataclass(frozen=True)
class ViewFunction:
    """The function of one view of a fitted :class:`CoRankingPursuit` or :class:`CoRankingPursuitCV`.

    Attributes
    ----------
    model : estimator
    number : int
        Which view.
    """

    model: Any
    number: int

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of the features, (n,), mostly zeros; dictionary="features"."""
        terms = self.model._terms_[self.number]
        if terms.kernel is not None:
            raise AttributeError("A view of kernel functions has no weights of features.")
        out = np.zeros(self.model.n_features_in_)
        out[terms.taken] = terms.coefficients[-1] if len(terms.coefficients) else 0.0
        return out

    @property
    def support_(self) -> NDArray[np.intp]:
        """Numbers of the features with a weight, ascending; dictionary="features"."""
        return np.flatnonzero(self.coef_)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score items, (m,)."""
        return self._staged(X, _LAST).sum(axis=1)

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Score items after each stage."""
        yield from self._staged(X, slice(None)).T

    def _staged(self, X: Any, stages: slice) -> NDArray[np.float64]:
        return self.model._terms_[self.number].scores(fitting.check_matrix(self.model, X, reset=False), stages)


@estimator
class CoRankingPursuit(ViewPursuer):
    r"""Semi-supervised ranking pursuit: views that fit the labelled rows and agree on the unlabelled ones.

    M functions, one per view, each a sum of at most P kernel columns or features, minimise

    .. math::

        \sum_v (y - f_v)' L (y - f_v) + \nu \sum_{v,u} (\bar f_v - \bar f_u)' \bar L (\bar f_v - \bar f_u) ,

    where the bar means the unlabelled rows and ``Lbar`` compares those of the same query. Each stage selects one column
    per view, which together lower it most, and then refits all coefficients of all views. The prediction is a mean of
    the views' functions (``aggregation``).

    Parameters
    ----------
    n_basis : int, default=10
        P, the number of stages.
    views : sequence of views, optional
        A view is a list, slice or mask of features (or their names); or a kernel's name or function; or a dict with any
        of ``features``, ``kernel``, ``gamma``, ``degree``, ``coef0`` and ``kernel_params``. By default two views, the
        first and the second half of the features. Columns are those of labelled rows.
    nu : float, default=1.0
        Weight of the agreement; with 0 the views need not agree.
    dictionary : {"kernel", "features"}, default="kernel"
        "features": the columns are the features of a view, and each view is a linear function of few of them. A stage
        selects a feature for the first view, then one for the second, and so on, O(M N (n + l)) for N features; kernels
        and ``shared_basis`` are ignored. Several views of all features, ``({}, {})``, are several solutions; with
        ``disjoint`` they share no feature.
    disjoint : bool, default=False
        Whether a feature can be selected by one view only. The views are then several solutions without a common
        feature, each nearly as good (section 1 of the paper).
    aggregation : {"mean", "weighted", "best"}, default="mean"
        How the views' functions make the prediction: their mean; a mean weighted by 1 - 2 e, at least 0, for each
        view's disagreement error e on held-out queries; or the view with the least error. The last two fit 5 folds of
        the labelled queries (or ``cv``) for each view.
    shared_basis : bool, default=True
        Whether a stage selects the same row in every view, O(P M^3 n l). Otherwise all combinations of rows are tried,
        O(n^M) of them, up to 4 million.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`, default="rbf"
        For views without their own kernel; not precomputed.
    ties, balance, regression_weight : as in :class:`RankRLS`
        All pairs of unlabelled rows of a query are compared.
    backfit : bool, default=True
        Whether all coefficients are refitted at each stage.

    Attributes
    ----------
    views_ : tuple of ViewFunction
        The views' own functions, each with ``predict`` and ``staged_predict``.
    path_ : CoPursuitPath
        ``indices`` (stages, M), ``coefficients``, ``losses`` (the objective) and ``view_losses`` of every stage.
    basis_indices_ : ndarray of shape (r,), intp
        The rows, or features, selected by any view, in the order of selection.
    X_fit_ : ndarray or sparse array of shape (r, n)
        Those rows; dictionary="kernel".
    coef_ : ndarray of shape (n,)
        Weights of the features, with dictionary="features". Each of ``views_`` has its own ``coef_`` and ``support_``.
    view_weights_ : ndarray of shape (M,)
        Weights of the views in the prediction; they sum to 1.
    view_errors_ : ndarray of shape (M,)
        Disagreement error of each view on held-out labelled queries, unless ``aggregation`` is "mean".
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Notes
    -----
    The memory is 8 N (n + l) bytes per view for N columns, n labelled and l unlabelled rows; time linear in the
    unlabelled rows. Without unlabelled rows the views agree on the labelled ones. One view, or ``nu=0`` without a
    shared basis, is :class:`RankingPursuit`.

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

    n_basis: int = parameter(default=10, least=1, whole=True, kw_only=False)
    nu: float = parameter(default=1.0, least=0.0)

    def _solve(self, rows: PartlyLabelled) -> None:
        kernel = {name: getattr(self, name) for name in _KERNEL}
        pursuit = self._pursuit(rows, kernel, float(self.nu), int(self.n_basis))
        problem = partial(CoPursuitProblem, pursuit=pursuit, setting=fitting.setting_of(self))
        path = problem(rows.known).walked
        fitting.begin(self, rows.known)
        self._store(rows, problem, path)


@estimator
class CoRankingPursuitCV(ViewPursuer, SelectionParameters):
    r"""Ranking pursuit of several views; the number of terms and the agreement are chosen by folds of labelled queries.

    Minimises what :class:`CoRankingPursuit` minimises. Each fold is one run, whose path is evaluated after every stage
    ("P is estimated using a cross-validation procedure", section 3.1). A held-out query loses its labels and stays
    among the unlabelled rows.

    Parameters
    ----------
    max_basis : int, default=50
        The largest number of stages to choose from.
    nu : float or tuple, default=(0.0, 0.01, 0.1, 1.0)
        Weights of the agreement to choose from; with 0 the views need not agree.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of the labelled queries, each query alone if there are no more, and of rows for one ranking; an
        int is that many. Your own folds name rows of X; rows without a label are ignored. Every fold is refitted.
    scoring, verbose : as in :class:`RankRLSCV`
    rule : {"best", "one_se"}, default="best"
        "one_se" takes the fewest stages whose measure is within one standard error of the best.
    kernel, gamma, degree, coef0, ties, balance : as in :class:`CoRankingPursuit`, or a tuple of values to choose from
        Those of the kernel are for views without their own kernel.
    views, dictionary, disjoint, aggregation, shared_basis, backfit, kernel_params, regression_weight : as in
        :class:`CoRankingPursuit`

    Attributes
    ----------
    best_params_ : dict
        ``n_basis`` (stages), ``nu``, ties, balance and those of the kernel's parameters that are chosen.
    n_basis_at_edge_ : bool
        Whether the choice is ``max_basis``. If so, increase it.
    n_basis_ : int
        Distinct columns selected by any view.
    held_out_scores_ : ndarray of shape (m,) or None
        Scores of the labelled rows of X by models without their query's labels; NaN for unlabelled rows.
    cv_results_, best_score_, best_score_error_, best_index_, selection_, query_scores_, nu_at_edge_ : as in
        :class:`RankingPursuitCV`
    views_, path_, basis_indices_, X_fit_, coef_, view_weights_, view_errors_, n_queries_, n_features_in_,
    feature_names_in_ : as in :class:`CoRankingPursuit`

    Notes
    -----
    One pursuit per fold and one on all rows, for each combination. If measures are equal, the fewest stages are chosen,
    then the smallest ``nu``.

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

    max_basis: int = parameter(default=50, least=1, whole=True, kw_only=False)
    nu: Any = parameter(default=(0.0, 0.01, 0.1, 1.0), least=0.0, several=True)

    def _solve(self, rows: PartlyLabelled) -> None:
        data, most = rows.known, int(self.max_basis)
        plan = few_folds(self.cv, resolve_measure(self.scoring), data, float(self.regression_weight))
        results = search(self._candidates(rows, most), data, plan, self.rule, None, int(self.verbose))
        fitting.begin(self, data)
        fitting.publish(self, results, plan.description, data)
        self._store(rows, results.candidate.problem, results.solutions.details[0])
        stages = self.best_params_["n_basis"] = int(results.best_value)
        self.n_basis_ = len(self.basis_indices_)
        self.n_basis_at_edge_ = stages == most and self.path_.n_stages == stages

    def _candidates(self, rows: PartlyLabelled, most: int) -> Iterator[Candidate]:
        several = [name for name in _KERNEL if len(options(getattr(self, name), name)) > 1]
        for kernel in combinations(self, _KERNEL):
            for nu in sorted(float(value) for value in options(self.nu, "nu")):
                pursuit = self._pursuit(rows, kernel, nu, most)
                for setting, chosen in fitting.settings_of(self, rows.known):
                    choices = {**{name: kernel[name] for name in several}, **chosen, "nu": nu}
                    problem = partial(CoPursuitProblem, pursuit=pursuit, setting=setting)
                    yield Candidate(choices, problem, basis=pursuit)
