"""AutoRankRLS: selection among models of growing complexity, with an estimate of the selection bias."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from rankrls._checks import check_word
from rankrls._comparisons import Data, DataInMemory, Features, GraphSetting, LabelledItems
from rankrls._errors import InputError, InputWarning
from rankrls._problems import Solutions
from rankrls._rows import check_finite_features
from rankrls._typing import (
    AnyArray,
    Array,
    FoldsLike,
    IdsLike,
    ItemsLike,
    LabelsLike,
    Matrix,
    RandomState,
    Values,
)
from rankrls.learners.trees import (
    LEAST_QUERIES,
    LOSSES,
    SETTINGS,
    Boosting,
    QueryRows,
    Trees,
    lightgbm,
    unsupported_reason,
)
from rankrls.metrics._scorer import final_step_inputs, predict_by_query
from rankrls.models.fitted import Fitted, described
from rankrls.models.intake import check_matrix
from rankrls.models.parameters import SELECTION, Scoring, Several, check_seed, count, options, word
from rankrls.models.ranker import Chooses, Ranker
from rankrls.models.rankrls import RankRLSCV, SparseRankRLSCV
from rankrls.models.spec import Accepts, Spec
from rankrls.numerics.runs import lengths_to_starts, runs_of
from rankrls.preprocessing import LogScaler, QueryStandardScaler
from rankrls.selection.basis import generator
from rankrls.selection.folds import FEW_FOLDS
from rankrls.selection.optimism import ALLOWED, Dropped, Entries
from rankrls.selection.plans import Plan, Planner, UnitsPlan, ValidationPlan
from rankrls.selection.search import SearchState, progress

_KERNELS: dict[str, Values] = {
    "linear": {},
    "degree 2": {"kernel": "polynomial", "degree": 2},
    "gaussian": {"kernel": "rbf"},
    "laplacian": {"kernel": "laplacian"},
}
"""Parameters of the rankers of each family but the boosted ones, in order of complexity."""
_BOOSTED = ("trees", "blend")
_FAMILIES = (*_KERNELS, *_BOOSTED)
"""Families of functions in order of complexity."""
_WIDTHS = {"degree 2": (1.0,), "gaussian": (0.03125, 0.125, 0.5, 2.0, 8.0), "laplacian": (0.1, 0.4, 1.6)}
"""Values of gamma to try, times the mean squared norm of a row, the mean squared distance of two rows, or the sum of
the columns' standard deviations. For a Gaussian of n standardized features, gamma is from 0.016 / n to 4 / n."""
_TIMES_SMALLER = 3
"""Factor by which the basis for screening kernels is smaller than the one that they are fitted with."""
_FINALISTS = 2
"""Number of scales, and then of kernels, of each family that remain after screening."""
_DIGITS = 9
"""Number of digits to which values of kernels are compared, so that rounding does not decide."""
_QUANTILES = 200
"""Number of quantiles; computing more takes 20 times as long."""
_OF_ROWS = ("raw", "standard", "log", "ranks")
"""Scales for which an item has the same score in every query."""
_SCALES = (*_OF_ROWS, "query")
_N_MODELS = 3
"""Number of models of trees that are averaged."""
_WEIGHTS = (0.2, 0.4, 0.6, 0.8)
"""Weights of the trees in a blend."""


def _scalers(scale: str, data: DataInMemory) -> list[BaseEstimator] | None:
    """Scalers of a scale, applied in order; None if it does not suit the data.

    Sparse features have no ranks, and z-scores in queries of two rows are +-1.
    """
    is_sparse = sparse.issparse(data.X)
    if scale == "raw":
        return []
    if scale == "standard":
        return [StandardScaler(with_mean=not is_sparse)]
    if scale == "log":
        return [LogScaler()]
    if scale == "ranks" and not is_sparse:
        return [QuantileTransformer(n_quantiles=min(_QUANTILES, data.n_rows), subsample=None)]
    if scale == "query" and not is_sparse and data.has_qid and np.median(data.query_sizes) > 2:
        return [QueryStandardScaler(passthrough=True), StandardScaler()]
    return None


@dataclass(frozen=True, eq=False)
class _Tried:
    """A model: an estimator or a pipeline, which is not fitted if it was only screened, and the results of its search.

    Attributes
    ----------
    family, scale : str
    estimator : BaseEstimator
    results : SearchState
    """

    family: str
    scale: str
    estimator: BaseEstimator
    results: SearchState[Solutions]

    @property
    def goodness(self) -> float:
        """Value of its selected model; greater is better."""
        return self.results.best_score if self.results.greater_is_better else -self.results.best_score

    @property
    def gamma(self) -> float:
        """Gamma of its kernel; NaN without a kernel."""
        return float(self.results.best_choices.get("gamma", np.nan))

    @property
    def export(self) -> str:
        """Export targets: search engines have no kernels or logarithms, and none supports ranks, queries or trees."""
        if self.family in _BOOSTED or self.scale in ("ranks", "query"):
            return "no"
        return "onnx" if self.scale == "log" or self.family != "linear" else "all"

    def described(self, choices: Values, alpha: float) -> Values:
        """Description of one of its models."""
        gamma = float(choices.get("gamma", np.nan))
        more = ("loss", "leaves", "blended", "weight")
        known = {"model": self.family, "scale": self.scale, "gamma": gamma, "alpha": alpha}
        return known | {name: choices[name] for name in more if name in choices}


def _best(models: Sequence[_Tried]) -> list[_Tried]:
    """Finalists of a family, the simplest first."""
    best = sorted(models, key=lambda one: -round(one.goodness, _DIGITS))[:_FINALISTS]
    return sorted(best, key=lambda one: (_SCALES.index(one.scale), one.gamma))


class _Assembled(Ranker):
    """A ranker that combines fitted ones."""

    def fit(self, X: ItemsLike, y: LabelsLike) -> Self:
        """Raise an error: scikit-learn requires this method."""
        raise TypeError(f"{type(self).__name__} does not fit.")


class TreeRanker(_Assembled):
    """The mean of boosted trees, ``trees_``."""

    _accepts = Accepts(missing_features=True)

    trees_: Trees

    def predict(self, X: ItemsLike) -> Array:
        """Return scores of items."""
        check_is_fitted(self)
        return self.trees_(check_matrix(self, X, self._accepts))


class BlendRanker(_Assembled):
    """The sum of the scores of two models, ``models_``, with ``weights_``."""

    passes_qid_on = True
    models_: list[BaseEstimator]
    weights_: Array

    def predict(self, X: ItemsLike, *, qid: IdsLike | None = None) -> Array:
        """Return scores of items, of whole queries if one of the models scales by query."""
        check_is_fitted(self)
        scores: Array = np.column_stack([predict_by_query(model, X, qid) for model in self.models_]) @ self.weights_
        return scores


@dataclass(eq=False)
class _Trials:
    """Models that are tried on the same data, grouped by family, the simplest first.

    Attributes
    ----------
    spec : AutoSpec
    data : DataInMemory
    plan : Plan
    fitted : list of _Tried
        Fitted models, one of which is selected.
    dropped : list of (_Tried, Dropped)
        Models that were only screened, because others of their family were better.
    skipped : dict of str to str
        Reason why a model could not be fitted, by its name.
    """

    spec: AutoSpec
    data: DataInMemory
    plan: Plan
    fitted: list[_Tried] = field(default_factory=list)
    dropped: list[tuple[_Tried, Dropped]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    failure: ValueError | None = None

    def __post_init__(self) -> None:
        self.scaled = lru_cache(maxsize=_FINALISTS)(self._scaled)

    @contextmanager
    def skipping(self, *name: str) -> Iterator[None]:
        """Record a model that cannot be fitted, and continue."""
        try:
            yield
        except ValueError as error:
            self.skipped[", ".join(name)] = str(error).rstrip(".")
            self.failure = self.failure or error

    def try_all(self) -> None:
        """Try every family on every scale."""
        spec = self.spec
        if not set(spec.families).isdisjoint(_BOOSTED):
            lightgbm()  # raises an error that names the extra if it is missing
        kernels = [family for family in spec.families if family not in _BOOSTED]
        scales = [scale for scale in spec.scales if _scalers(scale, self.data) is not None]
        screened: dict[str, list[_Tried]] = {family: [] for family in kernels}
        for scale, family in progress(list(product(scales, kernels)), "models"):
            with self.skipping(family, scale):
                gammas = self._gammas(family, scale)
                screened[family].append(self._try(family, scale, gammas[len(gammas) // 2], screen=True))
        for family in progress(spec.families, "families"):
            with self.skipping(family, "raw"):
                if family == "trees":
                    self._try_trees(self.data.of_kind(LabelledItems))
                elif family == "blend":
                    self._try_blend(self.data.of_kind(LabelledItems))
                else:
                    self._finish(screened[family])
        if not self.fitted:
            problem = f"None of the scales {', '.join(spec.scales)} suits the data. Add others, such as 'raw'."
            raise self.failure or InputError(problem, parameter="scales")

    def _scaled(self, scale: str) -> tuple[list[tuple[str, BaseEstimator]], DataInMemory]:
        """Fitted steps that scale the features, and the items with these features."""
        data = self.data
        check_finite_features(data.X, data.features.names, products=True)
        X = data.X
        steps: list[tuple[str, BaseEstimator]] = []
        for scaler in _scalers(scale, data) or ():
            if isinstance(scaler, QueryStandardScaler):
                X = scaler.fit_transform(X, qid=data.of_kind(LabelledItems).layout.codes)
            else:
                weights = {} if scale == "ranks" else {"sample_weight": data.item_weights}
                X = scaler.fit(X, **weights).transform(X)
            steps.append((f"scale{len(steps)}", scaler))
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        return steps, replace(data, X=X, features=Features(X.shape[1]))

    def _gammas(self, family: str, scale: str) -> Sequence[float | None]:
        """Values of gamma to try, relative to the spread of the features; None for a model without a kernel."""
        if family not in _WIDTHS:
            return [None]
        data = self.scaled(scale)[1]
        columns = StandardScaler(with_mean=False).fit(data.X, sample_weight=data.item_weights)
        spread = np.sqrt(columns.var_).sum()
        if family == "degree 2":
            spread = (columns.var_ + columns.mean_**2).sum()
        elif family == "gaussian":
            spread = 2.0 * columns.var_.sum()
        return [width / (float(spread) or 1.0) for width in _WIDTHS[family]]

    def _try(self, family: str, scale: str, gamma: float | None, *, screen: bool = False) -> _Tried:
        """Fit a ranker, or only evaluate it over a small basis if it has a kernel."""
        steps, data = self.scaled(scale)
        kernel = _KERNELS[family]
        n_basis = max(self.spec.n_basis // _TIMES_SMALLER, 1) if screen else self.spec.n_basis
        given: Values = {"scoring": self.spec.scoring, "gamma": gamma, **kernel}
        ranker: RankRLSCV | SparseRankRLSCV = RankRLSCV(**given)
        if kernel and data.n_rows > 2 * n_basis:
            ranker = SparseRankRLSCV(**given, n_basis=n_basis, random_state=self.spec.random_state)
        estimator = Pipeline([*steps, ("rank", ranker)]) if steps else ranker
        plan = self.plan
        if isinstance(plan, ValidationPlan):
            _, X = final_step_inputs(estimator, plan.items.X, plan.items.layout.codes)
            plan = replace(plan, items=replace(plan.items, X=X))
        spec = ranker._spec()
        results = spec.search(data, plan)
        if not (screen and kernel):
            ranker._set_fitted(spec.chosen(data, plan, results))
        return _Tried(family, scale, estimator, results)

    def _finish(self, screened: list[_Tried]) -> None:
        """Add the models of a family: more kernels on the best scales, and the best of these over the whole basis."""
        if not screened or screened[0].family == "linear":
            self.fitted += screened
            return
        for one in _best(screened):
            more = [gamma for gamma in self._gammas(one.family, one.scale) if gamma != one.gamma]
            screened += [self._try(one.family, one.scale, gamma, screen=True) for gamma in more]
        best = _best(screened)
        self._add([self._try(one.family, one.scale, one.gamma) for one in best], screened, best)

    def _add(self, finalists: list[_Tried], screened: list[_Tried], best: list[_Tried]) -> None:
        """Add the models of a family, with those of the screened ones that are not the finalists' own ``best``."""
        self.fitted += finalists
        gain = max(one.goodness for one in finalists) - max(one.goodness for one in best)
        place = len(self.fitted)
        self.dropped += [(one, Dropped(place, one.results, gain)) for one in screened if one not in best]

    def _results(self) -> SearchState[Solutions]:
        return SearchState(self.plan.measure.greater_is_better, "best", mutual=self.plan.mutual)

    def _try_trees(self, data: LabelledItems) -> None:
        """Add the trees of the best loss and setting, evaluated on the folds that they were grown without.

        Losses are compared with the first setting, and settings with the best loss, each by one model without a fifth
        of the other queries. The fitted model is the mean of several models of all queries, and is evaluated with as
        many.
        """
        layout = data.layout
        y = data.Y[:, 0]
        reasons = {loss: unsupported_reason(loss, data.Y, layout) for loss in LOSSES}
        losses = [loss for loss, reason in reasons.items() if reason is None]
        if not losses:
            raise InputError(f"{reasons[LOSSES[0]]}.", parameter="families")
        held_out = self.plan.folds if isinstance(self.plan, UnitsPlan) else None
        if data.n_targets > 1 or held_out is None or sum(map(len, held_out)) < data.n_queries:
            raise InputError("Trees need one target, and folds that hold out each query.", parameter="families")
        rows = layout.order[runs_of(layout.starts, layout.by_id)]
        weights = np.ones(len(y)) if data.weights is None else data.weights
        items = QueryRows(data.X[rows], y[rows], weights[rows], lengths_to_starts(layout.counts[layout.by_id]))
        number = np.argsort(layout.by_id)
        folds = [np.sort(number[fold]) for fold in held_out]  # so that the watched fifth depends on the ids
        seed = int(generator(self.spec.random_state).integers(2**30))
        tried: dict[Boosting, _Tried] = {}

        def evaluated(boosting: Boosting, scores: list[Array]) -> _Tried:
            mean = np.empty((len(y), 1, 1))
            mean[rows, 0, 0] = np.mean(scores, axis=0)
            curve = replace(data.evaluate(self.plan.measure, mean), scores=lambda _: mean[:, 0])
            results = self._results()
            results.add({"loss": boosting.loss, "leaves": boosting.leaves}, np.array([np.nan]), curve)
            return _Tried("trees", "raw", TreeRanker(), results)

        def screen(loss: str, leaves: int, rate: float) -> None:
            boosting = Boosting(loss, leaves, rate, items, folds, self.plan.measure, seed)
            tried[boosting] = evaluated(boosting, [boosting.screened_scores()])

        def best() -> Boosting:
            return max(tried, key=lambda boosting: tried[boosting].goodness)

        for loss in losses:
            screen(loss, *SETTINGS[0])
        better_loss = best().loss
        for setting in SETTINGS[1:]:
            screen(better_loss, *setting)
        chosen = best()
        finalist = evaluated(chosen, [chosen.held_out(k) for k in range(_N_MODELS)])
        finalist.estimator._set_fitted(Fitted.of(self._numbered, trees_=chosen.fitted(_N_MODELS)))
        self._add([finalist], list(tried.values()), [tried[chosen]])

    def _try_blend(self, data: LabelledItems) -> None:
        """Add a weighted mean of the scores of the trees and the best other model, each with spread 1 inside queries.

        The weight is selected by the measure of the held-out scores. Least squares would favour the other model, whose
        scores are fitted to the labels, unlike those of lambdarank.
        """
        if len(self.fitted) < 2 or self.fitted[-1].family != "trees":
            raise InputError("A blend needs trees and another model.", parameter="families")
        *others, trees = self.fitted
        other = max(others, key=lambda one: one.goodness)
        layout = data.layout
        columns = np.hstack([np.asarray(one.results.best_scores) for one in (other, trees)])
        means = np.column_stack([np.bincount(layout.codes, column) for column in columns.T]) / layout.counts[:, None]
        columns = columns - means[layout.codes]
        spreads = columns.std(axis=0)
        spreads[spreads == 0.0] = 1.0
        results = self._results()
        best_weights = np.zeros(2)
        for weight in _WEIGHTS:
            weights = np.array([1.0 - weight, weight]) / spreads
            curve = data.evaluate(self.plan.measure, (columns @ weights)[:, None, None])
            choices = {"blended": other.family, "weight": weight, **trees.results.best_choices}
            if results.add(choices, np.array([np.nan]), curve):
                best_weights = weights
        ranker = BlendRanker()
        models = [other.estimator, trees.estimator]
        ranker._set_fitted(Fitted.of(self._numbered, models_=models, weights_=best_weights))
        self.fitted.append(_Tried("blend", other.scale, ranker, results))

    @property
    def _numbered(self) -> DataInMemory:
        """Data of a model that gets a matrix: its features have no names."""
        return replace(self.data, features=Features(self.data.X.shape[1]))

    def attributes(self) -> Values:
        """Attributes of the selected model and of all that were tried."""
        tried = self.fitted
        entries = Entries.of([one.results for one in tried], self.spec.rule, [each for _, each in self.dropped])
        k = entries.chosen()
        results = tried[k].results
        chosen = tried[k].described(results.best_choices, results.best_value)
        optimism = entries.optimism()
        bias = np.nan_to_num(optimism)
        rows = [
            one.described(one.results.best_choices, one.results.best_value)
            | {"mean_score": one.results.best_score, "standard_error": one.results.best_error}
            | {"behind": behind, "behind_error": error, "export": one.export}
            for one, behind, error in zip(tried, *entries.behind(), strict=True)
        ]
        every = [
            one.described(choices, value) | {"mean_score": mean, "standard_error": error}
            for one in [*tried, *(one for one, _ in self.dropped)]
            for choices, (value, mean, error, *_) in one.results.rows
        ]
        n_fitted = sum(len(one.results.rows) for one in tried)
        return {
            "best_estimator_": tried[k].estimator,
            "best_params_": {name: value for name, value in chosen.items() if value == value},  # no gamma, no NaN
            "best_index_": sum(len(one.results.rows) for one in tried[:k]) + results.best_index,
            "optimism_": optimism,
            "best_score_": float(results.best_score - (bias if results.greater_is_better else -bias)),
            "best_score_error_": results.best_error,
            "results_": _columns(rows) | {"chosen": np.arange(len(tried)) == k},
            "cv_results_": _columns(every) | {"screened": np.arange(len(every)) >= n_fitted},
        }


def _columns(rows: list[Values]) -> dict[str, AnyArray]:
    """Table of words and numbers by column; "" and NaN for missing entries."""
    kinds = {name: str if isinstance(value, str) else float for row in rows for name, value in row.items()}
    missing = {str: "", float: np.nan}
    dtypes = {str: np.dtype(object), float: np.dtype(np.float64)}
    return {
        name: np.array([row.get(name, missing[kind]) for row in rows], dtype=dtypes[kind])
        for name, kind in kinds.items()
    }


@dataclass(frozen=True, eq=False, kw_only=True)
class AutoSpec(Spec):
    """Families of functions on scales of the features, the simplest first."""

    scoring: Scoring
    families: tuple[str, ...]
    scales: tuple[str, ...]
    n_basis: int
    random_state: RandomState

    def for_preferences(self) -> Self:
        families = tuple(family for family in self.families if family not in _BOOSTED)
        if not families:
            raise InputError("Trees and blends need labels. Use other families.", parameter="families")
        return replace(self, families=families, accepts=Accepts())

    def plan(self, planner: Planner[Data]) -> Plan:
        by_folds = self.cv is None and "trees" in self.families and planner.data.n_queries >= LEAST_QUERIES
        return planner.exact(FEW_FOLDS if by_folds else self.cv, [GraphSetting()])

    def fit(self, data: Data, plan: Plan | None = None) -> Fitted:
        assert plan is not None
        trials = _Trials(self, data.whole(), plan)
        trials.try_all()
        n_tried = len(trials.fitted) + len(trials.dropped)
        fitted = Fitted.of(
            data,
            selection_=described(f"{plan.description}, the choice of {n_tried} models", data),
            skipped_=trials.skipped,
            _by_query_=data.has_qid and "query" in self.scales,
            **trials.attributes(),
        )
        if not trials.skipped:
            return fitted
        reasons = "; ".join(f"{name} ({reason})" for name, reason in trials.skipped.items())
        return fitted.with_warnings(InputWarning(f"{len(trials.skipped)} models were skipped: {reasons}."))


def _to_try(parameter: str, given: Several[str], known: tuple[str, ...]) -> tuple[str, ...]:
    """Names in a parameter, in the order of the known ones."""
    names = options(given, parameter)
    for name in names:
        check_word(parameter, name, (*known, "all"))
    return tuple(name for name in known if name in names or "all" in names)


class AutoRankRLS(Chooses):
    r"""Selects among linear, degree-2 and Gaussian RankRLS; optionally Laplacian RankRLS, boosted trees and a blend.

    Functions are fitted by :class:`RankRLSCV` (linear) or :class:`SparseRankRLSCV` (polynomial kernel of degree 2,
    Gaussians of five widths and Laplacian kernels of three, over one basis of items), whose regularization is selected
    by exact leave-query-out, on raw and on scaled features. Kernels are first evaluated over a basis of a third of
    ``n_basis``: the middle width on all scales, then all widths on the best two scales. The best two of each family are
    fitted over the whole basis. The models are ordered by complexity: linear before degree 2 before Gaussian before
    Laplacian before trees before the blend, and within each, raw before scaled. The first model is selected that is not
    worse than the best by more than about half a standard error of their difference over queries (``rule``).

    Trees are LightGBM's (``pip install 'rankrls[trees]'``), with the loss of RankRLS or lambdarank, which are compared
    with 15 leaves; then with 7 or 31 leaves. They are refitted without each fold of queries, so with trees, all models
    are evaluated on the same 5 folds. The number of trees is selected on a fifth of the other queries, by trees fitted
    without these; losses and leaves are compared by the same trees. The model is the mean of three models fitted to all
    queries, and is evaluated with the mean of three too. The blend is a weighted mean of the scores of trees and of the
    best other model, each centred in queries and divided by its spread; its weight has the best measure on held-out
    scores.

    Parameters
    ----------
    scoring : str, Measure or callable, default="ndcg@10"
        Measure used for selection; see :func:`rankrls.metrics.resolve_measure`.
    families : str or sequence of str, default=("linear", "degree 2", "gaussian")
        Models to try; "all" adds "laplacian", "trees", and "blend", which needs the trees.
    scales : str or sequence of str, default=("raw", "standard", "log", "ranks")
        Scales to try; "all" adds "query": the features together with their z-scores inside each query, for queries that
        mostly have more than two rows. With "query", and if ``fit`` has qid, ``predict`` needs qid and whole queries,
        whatever is selected. Trees use the unscaled features. For sparse features, "ranks" and "query" are not tried.
    rule : {"half_se", "one_se", "best"}, default="half_se"
        Selection rule. "half_se" allows half a standard error, "one_se" a whole one, for many queries; for q queries,
        1 + (30 / q)^2 times as much, because with few queries, the best of several models is mostly due to luck. "best"
        selects the best model of any complexity.
    n_basis : int, default=500
        Number of items in the basis of a kernel. If there are at most twice as many items, these models are those of
        :class:`RankRLSCV` with the kernel itself, which takes no longer.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        Held-out units, as in :class:`RankRLSCV`: None is exact leave-query-out; for one global ranking, leave-pair-out
        up to 5000 items if ``scoring`` is "disagreement" or "pair_accuracy", else 5 folds of rows. With trees, None is
        5 folds of queries; with validation data, trees are skipped. For preferences, it is that of
        :meth:`RankRLSCV.fit_pairs`, and trees, blends and the scale "query", which need labels, are not tried.
    random_state : int, Generator or RandomState, default=0
        Seed of the basis and of the features of trees. Items are drawn by row number, so the basis depends on row
        order.

    Attributes
    ----------
    best_estimator_ : estimator or Pipeline
        Selected model, after its scaler. Exports, explanations and displays use it.
    best_params_ : dict
        ``model``, ``scale``, and if applicable ``alpha``, ``gamma``, ``loss`` and ``leaves`` (of trees), ``blended``
        (the other model in a blend, whose scale it is) and ``weight`` (of the trees in it).
    best_score_, best_score_error_ : float
        Estimate of the selected model's measure on new queries, its held-out value minus ``optimism_``; and its
        standard error over queries, which does not include that of ``optimism_``.
    optimism_ : float
        Estimate of the selection bias of the selected model's held-out value, from 200 repetitions: the whole selection
        is made on queries drawn with replacement, and evaluated on the queries that were not drawn (Tsamardinos et al.
        2018). Models that were evaluated only in a cheaper form are included, improved by the gain of the best of their
        family. NaN if only an average is known (leave-pair-out), which is then not corrected.
    results_ : dict of ndarray
        One row per fitted model, the simplest first: ``model``, ``scale``, ``gamma``, ``alpha``, ``mean_score`` and
        ``standard_error`` (its own held-out value, which is optimistic), ``behind`` and ``behind_error`` (the mean
        difference to the best one over queries), ``export`` ("all" engines, "onnx" or "no"), ``chosen``.
        With trees also ``loss``, ``leaves``, ``blended`` and ``weight``.
    skipped_ : dict
        Reason why a model was not tried, by its name.
    cv_results_ : dict of ndarray
        Every model, gamma and alpha: ``model``, ``scale``, ``gamma``, ``alpha``, ``mean_score``, ``standard_error``;
        ``screened`` if it was evaluated only in its cheaper form.
    best_index_ : int
        Row of ``cv_results_``.
    selection_ : str
        Description of the selection, with the number of models.
    n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    Raises
    ------
    ValueError
        If input is invalid, or no model could be fitted, with the reason of the first one.
    ImportError
        If LightGBM is missing for fitting trees or a blend. Prediction does not need it.

    Warns
    -----
    InputWarning
        If models were skipped.

    See Also
    --------
    RankRLSCV : Selection among the parameters of one model.
    SparseRankRLSCV : Gaussian kernels over a basis of items.

    Notes
    -----
    Scales and the basis are computed once from the features of all rows, without labels, also with folds of rows. O(m
    n^2 + n^3) for the linear models, O(m r (n + r) + r^3) per kernel over r items. Sparse features are only divided by
    their standard deviation. A query with one item has no effect, but its row may be in the basis.

    Missing values (NaN) are passed to the trees; all other models are then skipped. Trees need one target, ten queries
    with different labels and folds that hold out each query; lambdarank needs whole labels from 0 to 30. Trees cannot
    be exported or explained, and models on the scale "query" cannot be exported. Results do not depend on the number of
    threads.

    References
    ----------
    Tsamardinos, Greasidou, Borboudakis: Bootstrapping the out-of-sample predictions for efficient and accurate
    cross-validation. Machine Learning 107, 2018. Algorithm 2, on queries.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import AutoRankRLS
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(600, 3)), np.repeat(np.arange(60), 10)
    >>> y = np.digitize(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=600), [0.3, 1.0])
    >>> model = AutoRankRLS(n_basis=100).fit(X, y, qid=qid)
    >>> model.best_params_["model"], len(model.results_["model"]), model.skipped_
    ('degree 2', 8, {})
    >>> bool(model.best_score_ < model.results_["mean_score"].max())
    True
    """

    _checks = SELECTION | {"rule": word(ALLOWED), "n_basis": count, "random_state": check_seed}

    __metadata_request__predict = {"qid": True}  # noqa: RUF012

    best_estimator_: BaseEstimator
    results_: dict[str, AnyArray]
    skipped_: dict[str, str]
    _by_query_: bool = False

    def __init__(
        self,
        *,
        scoring: Scoring = "ndcg@10",
        families: Several[str] = ("linear", "degree 2", "gaussian"),
        scales: Several[str] = _OF_ROWS,
        rule: str = "half_se",
        n_basis: int = 500,
        cv: FoldsLike = None,
        random_state: RandomState = 0,
    ) -> None:
        self.scoring = scoring
        self.families = families
        self.scales = scales
        self.rule = rule
        self.n_basis = n_basis
        self.cv = cv
        self.random_state = random_state

    def _spec(self) -> AutoSpec:
        self._check_parameters()
        families = _to_try("families", self.families, _FAMILIES)
        return AutoSpec(
            name=type(self).__name__,
            accepts=Accepts(missing_features="trees" in families),
            scoring=self.scoring,
            families=families,
            scales=_to_try("scales", self.scales, _SCALES),
            n_basis=int(self.n_basis),
            random_state=self.random_state,
        ).choosing(None, self.scoring, self.rule, self.cv)

    def predict(self, X: ItemsLike, *, qid: IdsLike | None = None) -> Array:
        """Score items by the selected model.

        Parameters
        ----------
        X : as in :meth:`RankRLS.predict`
        qid : array-like of shape (m,), optional
            Query of each row; required, with all rows of each query, if ``scales`` include "query" and the model was
            fitted with qid, and otherwise not used.

        Returns
        -------
        ndarray of shape (m,) or (m, targets)
        """
        X = self._checked_features(X)
        if self._by_query_ and qid is None:
            problem = "This AutoRankRLS was fitted with the scale 'query', so scores depend on the other rows of a"
            raise InputError(f"{problem} query. Predict with qid.", parameter="qid")
        return np.asarray(predict_by_query(self.best_estimator_, X, qid))

    def _checked_features(self, X: ItemsLike) -> Matrix:
        """Features by number, as fitted models take them."""
        check_is_fitted(self)
        return check_matrix(self, X, Accepts(missing_features=self.best_params_["model"] == "trees"))
