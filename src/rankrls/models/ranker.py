"""Base classes of the estimators: prediction, ranking and scoring, and the fitting methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rankrls._arrays import check_together, in_place, to_device_of, to_host
from rankrls._checks import array_of, refuse_foreign_arguments
from rankrls._comparisons import GraphSettings
from rankrls._errors import InputError, warn_user
from rankrls._queries import query_layout
from rankrls._typing import Array, ExactFoldsLike, IdsLike, Index, ItemsLike, LabelsLike, Matrix, Values, VectorLike
from rankrls.clicks import Propensities, PropensitiesLike
from rankrls.io import Dataset
from rankrls.kernels import Kernel
from rankrls.learners.paths import StagePath
from rankrls.metrics._measure import Measure, labelled_rows, needs_gains
from rankrls.metrics._scorer import predict_by_query
from rankrls.models.fitted import FORMAT_VERSION, ChosenAttributes, Fitted, check_format
from rankrls.models.intake import (
    Clicks,
    check_items,
    check_qid_given,
    labelled_items,
    preferred_items,
    validation_plan,
    warn_of_one_ranking,
)
from rankrls.models.parameters import Check, KernelLike, Positive, Several
from rankrls.models.spec import (
    Accepts,
    KernelSettings,
    LeastSquaresSpec,
    Spec,
    graph_settings,
    has_signs,
    kernel_settings,
    kind_of,
)
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.ties import tied
from rankrls.ranking import rank_positions
from rankrls.selection.basis import BasisSpec
from rankrls.selection.folds import with_new
from rankrls.selection.plans import ValidationPlan


class Estimator(RegressorMixin, BaseEstimator):
    """Estimator whose function is a Scorer, unless it says otherwise. A subclass defines ``_spec``."""

    _accepts: ClassVar[Accepts] = Accepts()
    _checks: ClassVar[Mapping[str, Check]] = {}

    n_queries_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    propensities_: Propensities
    fitted_with_qid_: bool
    coef_: Array
    dual_coef_: Array
    X_fit_: Matrix
    _kernel_: Kernel
    _one_target_: bool

    def _spec(self) -> Spec:
        """Specification from the checked parameters."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        values = self.get_params(deep=False)
        for name, check in self._checks.items():
            check(name, values[name])

    def __getstate__(self) -> Values:
        return {**super().__getstate__(), "_format_version": FORMAT_VERSION}

    def __setstate__(self, state: Values) -> None:
        attributes = dict(state)
        version = attributes.pop("_format_version", 1)
        if "n_queries_" in attributes:
            check_format(version, f"The pickled {type(self).__name__}")
        super().__setstate__(attributes)

    def _set_fitted(self, fitted: Fitted) -> Self:
        """Replace the attributes of an earlier fit by those of one that has succeeded, and issue its warnings."""
        known: Values = self.__dict__
        for name in [name for name in known if name.endswith("_") and not name.startswith("__")]:
            del known[name]
        known.update(fitted.attributes)
        for warning in fitted.warnings:
            warn_user(warning)
        return self

    @property
    def scorer_(self) -> Scorer:
        """The fitted function as a Scorer with one column per target, used by exports and explanations."""
        known = vars(self)
        weights = _columns(known.get("coef_"))
        if weights is not None and not self._one_target_:
            weights = weights.T
        columns = known.get("basis_indices_") if self._kernel_.name == "precomputed" else None
        return Scorer(weights, _columns(known.get("dual_coef_")), self._kernel_, known.get("X_fit_"), columns)

    def _checked(self, X: ItemsLike) -> Matrix:
        """Checked items to predict for."""
        return check_items(self, X, kind_of(self._kernel_.name), self._accepts)

    def __sklearn_is_fitted__(self) -> bool:
        """False after a failed fit."""
        return "n_queries_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        known = vars(self)
        kernel = known.get("kernel")
        tags.input_tags.pairwise = isinstance(kernel, str) and kernel == "precomputed"
        tags.target_tags.multi_output = self._accepts.several_targets
        scoring = known.get("scoring")
        tags.target_tags.positive_only = scoring is not None and needs_gains(scoring)
        special = tags.input_tags.pairwise or callable(kernel)
        tags.array_api_support = self._accepts.devices and not special and known.get("positive", False) is False
        return tags


def _columns(values: Matrix) -> Matrix:
    return values[:, None] if values is not None and values.ndim == 1 else values


class Ranker(Estimator):
    """Estimator that scores items; only differences within a query are meaningful.

    A subclass defines ``_spec``. If its function is not a Scorer, it also defines ``predict``.
    """

    # With metadata routing enabled, qid reaches fit and score without a request.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True}  # noqa: RUF012

    def fit_dataset(self, data: Dataset, **given: object) -> Self:
        """Fit to data larger than memory, if the estimator does not need all rows at once.

        Raises
        ------
        InputError
            Always, for estimators that need all rows.
        """
        problem = f"{type(self).__name__} needs all rows in memory. Use RankRLSCV or SparseRankRLSCV for streamed data."
        raise InputError(problem, parameter="data")

    @property
    def _takes_unlabelled(self) -> bool:
        """Whether y may contain NaN: scorers then leave such rows out."""
        return self._accepts.missing_labels

    @property
    def intercept_(self) -> float | Array:
        """0 for each target of a linear model, for tools that read ``coef_`` and ``intercept_``, such as shap."""
        if "coef_" not in vars(self):
            raise AttributeError(f"This {type(self).__name__} has no weights of features, so it has no intercept_.")
        return 0.0 if self._one_target_ else np.zeros(len(self.coef_))

    def predict(self, X: ItemsLike) -> Array:
        """Return scores of items.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n); or a sequence of objects for a callable kernel
            Items; with ``kernel="precomputed"``, the kernel between these items and the training items.

        Returns
        -------
        ndarray of shape (m,) or (m, targets)
            Scores; higher is better. Only differences between items of the same query are meaningful.

        Notes
        -----
        O(m n) for a linear model, O(m x training items x n) for a kernel, in blocks.
        """
        check_is_fitted(self)
        X = self._checked(X)
        scorer = self.scorer_
        what = f"{type(self).__name__}.predict()"
        check_together(scorer.coefficients if scorer.weights is None else scorer.weights, X, what)
        here = in_place(X)
        scores = scorer(X) if here is X else to_device_of(scorer.on_host()(here), X)
        return scores[:, 0] if self._one_target_ else scores

    def rank(self, X: ItemsLike, *, qid: IdsLike | None = None) -> Index:
        """Rank items within their queries.

        Parameters
        ----------
        X : as for :meth:`predict`
        qid : array-like of shape (m,), optional
            One query id per row. None ranks all items together, which is an error if the model was fitted with qid.

        Returns
        -------
        ndarray of shape (m,) or (m, targets)
            Position of each row in its query, from 1 for the highest score; ties keep row order.
        """
        check_is_fitted(self)
        check_qid_given(self.fitted_with_qid_, qid, "rank")
        return rank_positions(to_host(predict_by_query(self, X, qid)), qid=qid)

    def score(
        self, X: ItemsLike, y: LabelsLike, *, qid: IdsLike | None = None, sample_weight: VectorLike | None = None
    ) -> float:
        """Return 1 - disagreement error: the share of pairs with different labels that are ordered correctly.

        Predicted ties count half; scores are tied if they differ only by rounding, up to 2e-10 of the largest
        difference of a score from the mean of its query. Queries have equal weight; those without two different labels
        are left out. Several targets are averaged. Estimators fitted to labelled and unlabelled rows are evaluated on
        the labelled ones.

        Parameters
        ----------
        X : as for :meth:`predict`
        y : array-like of shape (m,) or (m, targets)
            Labels.
        qid : array-like of shape (m,), optional
            Query ids; required if the model was fitted with qid.
        sample_weight : array-like of shape (m,), optional
            Row weights; the weight of a pair is the product of the weights of its rows.
        """
        check_is_fitted(self)
        check_qid_given(self.fitted_with_qid_, qid, "score")
        scores = to_host(predict_by_query(self, X, qid))
        if self._accepts.missing_labels:
            y, scores, qid, sample_weight = labelled_rows(y, scores, qid, sample_weight)
        labels = array_of("y", y)
        labels = labels.reshape(len(labels), -1)
        scores = tied(scores.reshape(len(scores), -1), query_layout(qid, len(scores)))
        if labels.shape[1] != scores.shape[1]:
            raise InputError(f"y has {labels.shape[1]} targets, but the model has {scores.shape[1]}.", parameter="y")
        measure = Measure("disagreement")
        targets = zip(labels.T, scores.T, strict=True)
        errors = [measure(own, given, qid=qid, sample_weight=sample_weight) for own, given in targets]
        return 1.0 - float(np.mean(errors))

    @property
    def _feature_path(self) -> StagePath | None:
        """The path of a fitted ranker that selected features one by one."""
        return None


class KernelEstimator(Estimator):
    """Estimator with the parameters of one kernel or several."""

    kernel: Several[KernelLike]
    gamma: Several[float | None]
    degree: Several[int]
    coef0: Several[float]

    def _kernels(self) -> KernelSettings:
        """Kernels to try, after a check of all parameters."""
        self._check_parameters()
        return kernel_settings(self.kernel, self.gamma, self.degree, self.coef0)


class KernelGraphEstimator(KernelEstimator):
    """Estimator with the parameters of kernels and of graphs."""

    ties: Several[str]
    balance: Several[str]
    regression_weight: float

    def _graphs(self) -> GraphSettings:
        """Graphs to try."""
        return graph_settings(self.ties, self.balance, self.regression_weight)

    def _least_squares(
        self, *, solver: str = "auto", positive: Positive = False, basis: BasisSpec | None = None
    ) -> LeastSquaresSpec:
        """Specification of RankRLS with these parameters."""
        kernels = self._kernels()
        return LeastSquaresSpec(
            name=type(self).__name__,
            accepts=self._accepts,
            kind=kind_of(kernels[0]["kernel"]),
            signed=has_signs(positive, kernels, solver),
            kernels=kernels,
            graphs=self._graphs(),
            solver=solver,
            positive=positive,
            basis=basis,
        )


class FitsPreferences(Ranker):
    """Estimator that fits one model to preferences."""

    @refuse_foreign_arguments
    def fit_pairs(
        self,
        X: ItemsLike,
        winners: VectorLike,
        losers: VectorLike,
        *,
        strength: VectorLike | None = None,
        weight: VectorLike | None = None,
    ) -> Self:
        r"""Fit preferences: the loss is :math:`\sum_e c_e (s_e - (f_{i_e} - f_{j_e}))^2`, or that of the class.

        Parameters
        ----------
        X : as for :meth:`fit`
            Items; items without preferences are allowed.
        winners, losers : array-like of int, shape (p,)
            Row numbers of X; row ``winners[e]`` was preferred to row ``losers[e]``. Preferences may be repeated and
            contradictory.
        strength : array-like of shape (p,), optional
            Margin of each winner; 1 by default, 0 for a tie.
        weight : array-like of shape (p,), optional
            Weight of each preference; 1 by default.

        Returns
        -------
        self

        Notes
        -----
        ``ties``, ``balance`` and ``regression_weight`` apply to labels and have no effect.
        """
        spec = self._spec()
        return self._set_fitted(spec.fit(preferred_items(spec, X, winners, losers, strength, weight)))


class Fits(FitsPreferences):
    """Estimator that fits one model to labelled items or to preferences."""

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
        r"""Fit items with labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n); or a sequence of objects for a callable kernel
            Features. float32 is not converted as a whole. Arrays of torch or cupy stay on their device
            (:ref:`devices`). With ``kernel="precomputed"``, the kernel matrix, (m, m).
        y : array-like of shape (m,) or (m, targets)
            Labels; higher is better. Several targets share one factorization if ties are included; not all estimators
            accept them.
        qid : array-like of shape (m,), optional
            One query id per row, in any order, of any hashable type. With None, all rows form one global ranking.
        sample_weight : array-like of shape (m,), optional
            Nonnegative row weights; the weight of a pair is ``w_i w_j``.
        position : array-like of shape (m,), optional
            Position at which each row was shown (whole numbers), if y contains clicks. The model is then fitted to
            :math:`c / \theta` with weights :math:`n \theta`, where c is clicks per impression and theta the examination
            of the position, estimated by :func:`rankrls.clicks.estimate_propensities`.
        impressions : array-like of shape (m,), optional
            Number of times that each row was shown, for use with ``position``; 1 by default.
        propensities : Propensities or dict of position to number, optional
            Known examination of each position, such as that of an intervention, for use with ``position``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If input is invalid, with the row and column, or if no query has two different labels.
        """
        spec = self._spec()
        clicks = Clicks(position, impressions, propensities)
        return self._set_fitted(spec.fit(labelled_items(spec, X, y, qid, sample_weight, clicks=clicks)))


class Chooses(ChosenAttributes, Ranker):
    """Estimator that selects a model by held-out queries or preferences."""

    cv: ExactFoldsLike
    win_slope_: float

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
        X_val: ItemsLike | None = None,
        y_val: LabelsLike | None = None,
        qid_val: IdsLike | None = None,
    ) -> Self:
        """Select a model, then fit it to all rows of X.

        Parameters
        ----------
        X, y, qid, sample_weight, position, impressions, propensities : as in :meth:`RankRLS.fit`
        X_val, y_val, qid_val : optional
            Validation data used for selection instead of ``cv``; with a precomputed kernel, ``X_val`` is the kernel
            between these items and the training items.

        Returns
        -------
        self
        """
        spec = self._spec()
        clicks = Clicks(position, impressions, propensities)
        data = labelled_items(spec, X, y, qid, sample_weight, clicks=clicks)
        plan = validation_plan(spec, data, X_val, y_val, qid_val) or spec.query_plan(data)
        warn_of_one_ranking(spec, plan.items if isinstance(plan, ValidationPlan) else data)
        return self._set_fitted(spec.fit(data, plan))

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
        X_val: ItemsLike | None = None,
        y_val: LabelsLike | None = None,
    ) -> Self:
        """Select by held-out items, votes or groups of votes, or by validation data; then fit to all preferences.

        Parameters
        ----------
        X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`
        groups : array-like of shape (p,), optional
            Group of each preference (such as its annotator or prompt); groups are held out together.
        item_id : array-like of shape (m,), optional
            Ids of the rows of X: rows with equal ids are the same item. By default, each row is an item.
        new : {"items", "votes", "groups"}, optional
            Units that will be new to the model, and are therefore held out. By default groups if they are given, votes
            if X contains only the identity of each item, and items otherwise (:ref:`new`).
        X_val, y_val : optional
            Labelled items of one ranking, used for selection instead.

        Returns
        -------
        self

        Notes
        -----
        Held-out preferences are evaluated by the weighted share that is ordered correctly (``scoring`` must be
        "disagreement" or "pair_accuracy"); those of strength 0 are not evaluated. Groups have equal weight.

        New items: if no connected component of compared items contains more than a fifth of the preferences, the
        components are held out in turn. Otherwise there are 5 folds of items (or ``cv``): a model is fitted to the
        preferences between items outside a fold, and evaluated on those between items of the fold. If this needs no
        refits, folds are drawn 5 times, by item number, with fixed seeds.
        """
        spec = self._spec().for_preferences()
        data = preferred_items(spec, X, winners, losers, strength, weight, groups=groups, item_id=item_id)
        data = with_new(data, new)
        plan = validation_plan(spec, data, X_val, y_val) or spec.preference_plan(data)
        return self._set_fitted(spec.fit(data, plan))

    def predict_win_probability(self, X_a: ItemsLike, X_b: ItemsLike) -> Array:
        """Return the probability that a vote prefers the first of two items; a tie counts as half a vote for each.

        The probability is a logistic curve of the score difference without an intercept. ``fit_pairs`` fits its slope,
        ``win_slope_``, to the votes and their exact held-out differences under the selected model (Platt 1999).

        Parameters
        ----------
        X_a, X_b : as for :meth:`predict`, with equally many rows

        Returns
        -------
        ndarray of shape (rows,)

        Raises
        ------
        InputError
            If the model was not fitted by ``fit_pairs``, or not selected using held-out preferences or their groups.
        """
        check_is_fitted(self)
        if "win_slope_" not in vars(self):
            problem = (
                "Win probabilities need held-out scores of preferences, which this model does not have. Fit RankRLSCV "
                "or SparseRankRLSCV by fit_pairs, without cv='leave_pair_out'."
            )
            raise InputError(problem, parameter="cv")
        a = self.predict(X_a)
        b = self.predict(X_b)
        if a.shape != b.shape:
            raise InputError(
                f"X_a has {len(a)} rows and X_b {len(b)}: they need the same number of rows.", parameter="X_b"
            )
        return np.asarray(expit(self.win_slope_ * (a - b)))
