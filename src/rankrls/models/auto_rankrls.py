"""AutoRankRLS: selection among models of growing complexity, with an estimate of the selection bias."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from time import perf_counter
from typing import NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from rankrls._checks import check_word, refuse_foreign_arguments
from rankrls._comparisons import Data, DataInMemory, Features, LabelledItems, Setting
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
    Params,
    RandomState,
    Values,
    VectorLike,
)
from rankrls.clicks import PropensitiesLike
from rankrls.learners.trees import LEAST_QUERIES, lightgbm
from rankrls.metrics import resolve_measure
from rankrls.metrics._scorer import predict_by_query
from rankrls.models.boosted import fitted_blend, fitted_trees
from rankrls.models.fitted import ChosenAttributes, Fitted, described
from rankrls.models.intake import Clicks, check_matrix, labelled_items, preferred_items
from rankrls.models.parameters import (
    SELECTION,
    Scoring,
    Several,
    check_parameters,
    check_seed,
    count,
    options,
    word,
)
from rankrls.models.ranker import Ranker
from rankrls.models.rankrls import RankRLSCV
from rankrls.models.sparse_rankrls import SparseRankRLSCV
from rankrls.models.spec import Accepts, Spec
from rankrls.preprocessing import LogScaler, QueryStandardScaler
from rankrls.selection.folds import FEW_FOLDS, with_new
from rankrls.selection.optimism import ALLOWED, Dropped, Entries
from rankrls.selection.plans import Plan, Planner
from rankrls.selection.search import SearchState, progress

_WIDTHS = (0.03125, 0.125, 0.5, 2.0, 8.0)
"""Gaussian widths to try: gamma times the mean squared distance of two items. For n standardized features, where that
distance is 2 n, gamma is from 0.016 / n to 4 / n."""
_ABSOLUTE_WIDTHS = (0.1, 0.4, 1.6)
"""Laplacian widths to try: gamma times the sum of the columns' standard deviations."""
_TIMES_SMALLER = 3
"""Factor by which the basis for screening kernels is smaller than the one that they are fitted with."""
_FINALISTS = 2
"""Number of scales, and then of kernels, of each family that remain after screening."""
_DIGITS = 9
"""Number of digits to which values of kernels are compared, so that rounding does not decide."""
_QUANTILES = 200
"""Number of quantiles; computing more takes 20 times as long."""


def _no_gamma(X: Matrix, weights: Array | None) -> tuple[None]:
    """The only value for a model without a kernel."""
    return (None,)


def _gamma_of_products(X: Matrix, weights: Array | None) -> tuple[float, ...]:
    """One over the mean squared norm of a row."""
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X, dtype=np.float64)
    return (1.0 / (float(np.average(squares, weights=weights)) or 1.0),)


def _gammas_of_distances(X: Matrix, weights: Array | None) -> tuple[float, ...]:
    """Widths over the mean squared distance of two rows, which is twice the sum of the columns' variances."""
    return tuple(width / (2.0 * float(_variances(X, weights).sum()) or 1.0) for width in _WIDTHS)


def _gammas_of_deviations(X: Matrix, weights: Array | None) -> tuple[float, ...]:
    """Widths over the sum of the columns' standard deviations."""
    return tuple(width / (float(np.sqrt(_variances(X, weights)).sum()) or 1.0) for width in _ABSOLUTE_WIDTHS)


def _variances(X: Matrix, weights: Array | None) -> Array:
    return np.asarray(StandardScaler(with_mean=False).fit(X, sample_weight=weights).var_)


class _Family(NamedTuple):
    """A family of functions.

    Attributes
    ----------
    kernel : dict
        Parameters of the ranker.
    gammas : callable
        Function that returns the values of gamma to try, for given features and row weights.
    exports : str
        Targets of the export of its models.
    """

    kernel: Values
    gammas: Callable[[Matrix, Array | None], tuple[float | None, ...]]
    exports: str


_FAMILIES = {
    "linear": _Family({}, _no_gamma, "all"),
    "degree 2": _Family({"kernel": "polynomial", "degree": 2}, _gamma_of_products, "onnx"),
    "gaussian": _Family({"kernel": "rbf"}, _gammas_of_distances, "onnx"),
    "laplacian": _Family({"kernel": "laplacian"}, _gammas_of_deviations, "onnx"),
    "trees": _Family({}, _no_gamma, "no"),
    "blend": _Family({}, _no_gamma, "no"),
}
"""Families in order of complexity."""
_BOOSTED = ("trees", "blend")


_SCALES: dict[str, Callable[[Matrix], list[BaseEstimator]]] = {
    "raw": lambda X: [],
    "standard": lambda X: [StandardScaler(with_mean=not sparse.issparse(X))],
    "log": lambda X: [LogScaler()],
    "ranks": lambda X: [QuantileTransformer(n_quantiles=min(_QUANTILES, X.shape[0]), subsample=None)],
    "query": lambda X: [QueryStandardScaler(beside=True), StandardScaler()],
}
"""Scalers for given features, applied in order."""
_OF_ROWS = ("raw", "standard", "log", "ranks")
"""Scales for which an item has the same score in every query."""


def _suits(scale: str, data: DataInMemory) -> bool:
    """Whether a scale suits the data: sparse features have no ranks, and z-scores in queries of two rows are +-1."""
    if scale == "query" and not (data.has_qid and np.median(data.query_sizes) > 2):
        return False
    return scale in ("raw", "standard", "log") or not sparse.issparse(data.X)


def _exports(tried: _Tried) -> str:
    """Export targets of a candidate: search engines have no logarithms, and none supports ranks or queries."""
    found = _FAMILIES[tried.family].exports
    if tried.scale in ("ranks", "query"):
        return "no"
    return "onnx" if tried.scale == "log" and found == "all" else found


@dataclass(frozen=True, eq=False)
class _Scaled:
    """Items with features of one scale, and the fitted steps that computed them."""

    scale: str
    steps: list[tuple[str, BaseEstimator]]
    data: DataInMemory

    @classmethod
    def of(cls, scale: str, data: DataInMemory) -> _Scaled:
        check_finite_features(data.X, data.features.names, products=True)
        X = data.X
        steps: list[tuple[str, BaseEstimator]] = []
        for scaler in _SCALES[scale](X):
            if isinstance(scaler, QueryStandardScaler):
                X = scaler.fit_transform(X, qid=data.of_kind(LabelledItems).layout.codes)
            else:
                weights = {} if scale == "ranks" else {"sample_weight": data.item_weights}
                X = scaler.fit(X, **weights).transform(X)
            steps.append((f"scale{len(steps)}", scaler))
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        return cls(scale, steps, replace(data, X=X, features=Features(X.shape[1])))


@dataclass(frozen=True, eq=False)
class _Tried:
    """One model: an estimator or a pipeline, which is not fitted if it was dropped, and the results of its search.

    Attributes
    ----------
    family, scale : str
    estimator : BaseEstimator
    results : SearchState
    seconds : float
    """

    family: str
    scale: str
    estimator: BaseEstimator
    results: SearchState[Solutions]
    seconds: float

    @property
    def goodness(self) -> float:
        """Value of its selected model; greater is better."""
        return self.results.best_score if self.results.greater_is_better else -self.results.best_score

    @property
    def gamma(self) -> float:
        """Gamma of its kernel; NaN without a kernel."""
        return float(self.results.best_choices.get("gamma", np.nan))

    def described(self, choices: Values, alpha: float) -> Values:
        """Description of one of its models."""
        gamma = float(choices.get("gamma", np.nan))
        more = ("loss", "leaves", "blended", "weight")
        known = {"model": self.family, "scale": self.scale, "gamma": gamma, "alpha": alpha}
        return known | {name: choices[name] for name in more if name in choices}


def _best(models: list[_Tried]) -> list[_Tried]:
    """Finalists of a family, the simplest first."""
    best = sorted(models, key=lambda one: -round(one.goodness, _DIGITS))[:_FINALISTS]
    return sorted(best, key=lambda one: (tuple(_SCALES).index(one.scale), one.gamma))


@dataclass(eq=False)
class _Trials:
    """Models that were tried, grouped by family, the simplest first.

    Attributes
    ----------
    fitted : list of _Tried
        Fitted models, one of which is selected.
    dropped : list of _Tried
        Models evaluated in a cheaper form, in which others of their family were better.
    gains : dict of str to float
        Improvement of the best model of a family over its cheaper form.
    skipped : dict of str to str
        Reason why a model could not be fitted, by its name.
    """

    fitted: list[_Tried] = field(default_factory=list)
    dropped: list[_Tried] = field(default_factory=list)
    gains: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failure: ValueError | None = None

    @contextmanager
    def skipping(self, *name: str) -> Iterator[None]:
        """Record a model that cannot be fitted, and continue."""
        try:
            yield
        except ValueError as error:
            self.skipped[", ".join(name)] = str(error).rstrip(".")
            self.failure = self.failure or error

    def add(self, finalists: list[_Tried], dropped: list[_Tried], best_cheap: float) -> None:
        """Add the models of a family; ``best_cheap`` is the value of the best of them in its cheaper form."""
        self.fitted += finalists
        self.dropped += dropped
        if finalists:
            self.gains[finalists[0].family] = max(one.goodness for one in finalists) - best_cheap

    def entries(self, rule: str) -> Entries:
        """Values of the models, for the selection."""
        place = {one.family: k for k, one in enumerate(self.fitted, 1)}
        dropped = [
            Dropped(place[one.family], one.results, self.gains[one.family])
            for one in self.dropped
            if one.family in place
        ]
        return Entries.of([one.results for one in self.fitted], rule, dropped)


class AutoRankRLS(ChosenAttributes, Ranker):
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
        5 folds of queries. For preferences, it is that of :meth:`RankRLSCV.fit_pairs`.
    random_state : int, Generator or RandomState, default=0
        Seed of the basis and of the features of trees. Items are drawn by row number, so the basis depends on row
        order.
    verbose : int, default=0
        1 shows progress bars; 0 shows them only on a terminal.

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
        difference to the best one over queries), ``seconds``, ``export`` ("all" engines, "onnx" or "no"), ``chosen``.
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
    _by_query_: bool

    def __init__(
        self,
        *,
        scoring: Scoring = "ndcg@10",
        families: Several[str] = ("linear", "degree 2", "gaussian"),
        scales: Several[str] = _OF_ROWS,
        rule: str = "half_se",
        n_basis: int = 500,
        cv: FoldsLike = None,
        verbose: int = 0,
        random_state: RandomState = 0,
    ) -> None:
        self.scoring = scoring
        self.families = families
        self.scales = scales
        self.rule = rule
        self.n_basis = n_basis
        self.cv = cv
        self.verbose = verbose
        self.random_state = random_state

    def _spec(self) -> AutoSpec:
        check_parameters(self)
        families = _to_try("families", self.families, _FAMILIES)
        return AutoSpec(
            name=type(self).__name__,
            accepts=Accepts(missing_features="trees" in families),
            measure=resolve_measure(self.scoring),
            rule=self.rule,
            cv=self.cv,
            verbose=int(self.verbose),
            scoring=self.scoring,
            families=families,
            scales=_to_try("scales", self.scales, _SCALES),
            n_basis=int(self.n_basis),
            random_state=self.random_state,
        )

    @refuse_foreign_arguments
    def fit(
        self,
        X: ItemsLike,
        y: LabelsLike,
        *,
        qid: IdsLike | None = None,
        sample_weight: VectorLike | None = None,
        position: VectorLike | None = None,
        impressions: VectorLike | None = None,
        propensities: PropensitiesLike | None = None,
    ) -> Self:
        """Try every model, and select one.

        Parameters
        ----------
        X, y, qid, sample_weight, position, impressions, propensities : as in :meth:`RankRLS.fit`

        Returns
        -------
        self
        """
        spec = self._spec()
        if not set(spec.families).isdisjoint(_BOOSTED):
            lightgbm()  # raises an error that names the extra if it is missing
        clicks = Clicks(position, impressions, propensities)
        data = labelled_items(spec, X, y, qid, sample_weight, clicks=clicks)
        return self._set_fitted(spec.fit(data, spec.query_plan(data)))

    @refuse_foreign_arguments
    def fit_pairs(
        self,
        X: ItemsLike,
        winners: VectorLike,
        losers: VectorLike,
        *,
        strength: VectorLike | None = None,
        weight: VectorLike | None = None,
        groups: IdsLike | None = None,
        item_id: IdsLike | None = None,
        new: str | None = None,
    ) -> Self:
        """Try every model that supports preferences, and select by held-out items, votes or groups of votes.

        Trees, blends and the scale "query" need labels and are left out. ``scoring`` must be "disagreement" or
        "pair_accuracy".

        Parameters
        ----------
        X, winners, losers, strength, weight, groups, item_id, new : as in :meth:`RankRLSCV.fit_pairs`

        Returns
        -------
        self
        """
        spec = self._spec().for_preferences()
        data = preferred_items(spec, X, winners, losers, strength, weight, groups=groups, item_id=item_id)
        data = with_new(data, new)
        return self._set_fitted(spec.fit(data, spec.preference_plan(data)))

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
        return check_matrix(self, X, self._fitted_accepts)

    @property
    def _fitted_accepts(self) -> Accepts:
        return Accepts(missing_features=self.best_params_["model"] == "trees")


def _to_try(parameter: str, given: Several[str], known: Params) -> tuple[str, ...]:
    """Names in a parameter, in the order of the known ones."""
    names = options(given, parameter)
    for name in names:
        check_word(parameter, name, (*known, "all"))
    return tuple(name for name in known if name in names or "all" in names)


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
        return planner.exact(FEW_FOLDS if by_folds else self.cv, [Setting()])

    def fit(self, data: Data, plan: Plan | None = None) -> Fitted:
        assert plan is not None
        trials = self._try_all(data.whole(), plan)
        n_tried = len(trials.fitted) + len(trials.dropped)
        selection = described(f"{plan.description}, the choice of {n_tried} models", data)
        skipped = trials.skipped
        by_query = data.has_qid and "query" in self.scales
        fitted = Fitted.of(data, selection_=selection, skipped_=skipped, _by_query_=by_query, **self._chosen(trials))
        if not skipped:
            return fitted
        reasons = "; ".join(f"{name} ({reason})" for name, reason in skipped.items())
        return fitted.with_warnings(InputWarning(f"{len(skipped)} models were skipped: {reasons}."))

    def _try_all(self, data: DataInMemory, plan: Plan) -> _Trials:
        """Try every family on every scale."""
        trials = _Trials()
        functions = [family for family in self.families if family not in _BOOSTED]
        screened: dict[str, list[_Tried]] = {family: [] for family in functions}
        scales = [scale for scale in self.scales if _suits(scale, data)]
        scaled = lru_cache(maxsize=_FINALISTS)(partial(_Scaled.of, data=data))
        for scale, family in progress(list(product(scales, functions)), self.verbose, "models"):
            with trials.skipping(family, scale):
                gammas = _FAMILIES[family].gammas(scaled(scale).data.X, data.item_weights)
                middle = gammas[len(gammas) // 2]
                screened[family].append(self._try(family, middle, scaled(scale), plan, cheap=True))
        for family in progress(self.families, self.verbose, "families"):
            with trials.skipping(family, "raw"):
                if family in functions:
                    self._finish(trials, screened[family], scaled, plan)
                    continue
                labelled = data.of_kind(LabelledItems)
                if family == "trees":
                    self._try_trees(trials, labelled, plan)
                else:
                    self._try_blend(trials, labelled, plan)
        if not trials.fitted:
            problem = f"None of the scales {', '.join(self.scales)} suits the data. Add others, such as 'raw'."
            raise trials.failure or InputError(problem, parameter="scales")
        return trials

    def _finish(self, trials: _Trials, screened: list[_Tried], scaled: Callable[[str], _Scaled], plan: Plan) -> None:
        """Add the models of a family: more kernels on the best scales, and the best of these over the whole basis."""
        if not screened or screened[0].family == "linear":
            trials.add(screened, [], 0.0)
            return
        for one in _best(screened):
            items = scaled(one.scale)
            gammas = _FAMILIES[one.family].gammas(items.data.X, items.data.item_weights)
            more = [gamma for gamma in gammas if gamma != one.gamma]
            screened += [self._try(one.family, gamma, items, plan, cheap=True) for gamma in more]
        best = _best(screened)
        dropped = [one for one in screened if one not in best]
        finalists = [self._try(one.family, one.gamma, scaled(one.scale), plan) for one in best]
        trials.add(finalists, dropped, max(one.goodness for one in best))

    def _try_trees(self, trials: _Trials, data: LabelledItems, plan: Plan) -> None:
        """Add the trees of the best setting; those of the others are dropped."""
        start = perf_counter()
        ranker, results, screened = fitted_trees(data, plan, self.random_state)
        finalist = _Tried("trees", "raw", ranker, results, perf_counter() - start)
        cheap = [replace(finalist, results=found) for found in screened]
        best = max(cheap, key=lambda one: one.goodness)
        trials.add([finalist], [one for one in cheap if one is not best], best.goodness)

    def _try_blend(self, trials: _Trials, data: LabelledItems, plan: Plan) -> None:
        """Add the blend of the best linear or kernel model with the trees."""
        start = perf_counter()
        if len(trials.fitted) < 2 or trials.fitted[-1].family != "trees":
            raise InputError("A blend needs trees and another model.", parameter="families")
        *others, trees = trials.fitted
        other = max(others, key=lambda one: one.goodness)
        found = fitted_blend(data, plan, other, trees)
        trials.add([_Tried("blend", other.scale, *found, perf_counter() - start)], [], 0.0)

    def _try(self, family: str, gamma: float | None, scaled: _Scaled, plan: Plan, *, cheap: bool = False) -> _Tried:
        """Fit a ranker, or only evaluate it over a small basis if it has a kernel."""
        start = perf_counter()
        n_basis = max(self.n_basis // _TIMES_SMALLER, 1) if cheap else self.n_basis
        kernel = _FAMILIES[family].kernel
        given: Values = {"scoring": self.scoring, "gamma": gamma, **kernel}
        ranker: RankRLSCV | SparseRankRLSCV = RankRLSCV(**given)
        if kernel and scaled.data.n_rows > 2 * n_basis:
            ranker = SparseRankRLSCV(**given, n_basis=n_basis, random_state=self.random_state)
        results = ranker._spec().search(scaled.data, plan) if cheap and kernel else ranker._search(scaled.data, plan)
        estimator = Pipeline([*scaled.steps, ("rank", ranker)]) if scaled.steps else ranker
        return _Tried(family, scaled.scale, estimator, results, perf_counter() - start)

    def _chosen(self, trials: _Trials) -> Values:
        """Attributes of the selected model and of all that were tried."""
        tried = trials.fitted
        entries = trials.entries(self.rule)
        k = entries.chosen()
        results = tried[k].results
        chosen = tried[k].described(results.best_choices, results.best_value)
        optimism = entries.optimism()
        bias = np.nan_to_num(optimism)
        rows = [
            one.described(one.results.best_choices, one.results.best_value)
            | {"mean_score": one.results.best_score, "standard_error": one.results.best_error}
            | {"behind": behind, "behind_error": error, "seconds": one.seconds}
            | {"export": _exports(one)}
            for one, behind, error in zip(tried, *entries.behind(), strict=True)
        ]
        every = [
            one.described(choices, value) | {"mean_score": mean, "standard_error": error}
            for one in [*tried, *trials.dropped]
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
    return {
        name: np.array([row.get(name, missing[kind]) for row in rows], dtype=object if kind is str else np.float64)
        for name, kind in kinds.items()
    }
