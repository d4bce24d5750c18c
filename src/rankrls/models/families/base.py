"""What the estimators share: prediction, ranking, scoring."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, column_or_1d

from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems
from rankrls._errors import InputError, InputWarning
from rankrls._queries import FROM_SIZES
from rankrls.kernels import Kernel, resolve_kernel
from rankrls.metrics import RankingMeasure, disagreement_error
from rankrls.metrics._checks import scored_rows
from rankrls.models.inputs.parameters import check_parameters
from rankrls.models.inputs.seen_labels import warn_in_pipeline
from rankrls.models.inputs.validation import (
    check_comparable,
    check_features,
    check_no_extra_qid,
    labelled_items,
    preferred_items,
    validation_data,
)
from rankrls.problems.primal import EquationsProblem
from rankrls.problems.problem import Problem, Solutions
from rankrls.problems.scorer import Scorer
from rankrls.ranking import rank_positions
from rankrls.selection.candidates import Candidate
from rankrls.selection.costs import cheaper, check_affordable
from rankrls.selection.plans import Validation

SOLVERS = ("auto", "primal", "dual")


class NotConverged(InputWarning, ConvergenceWarning):
    """An iteration ended before its tolerance was reached."""


class ArgumentError(InputError, TypeError):
    """A method was called with arguments that it does not take, or without those that it needs."""


def _naming_its_class(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose errors about its arguments name its object's class, and not the base that defines it.

    Afterwards it warns if a pipeline called it, and a step before has seen the labels that were held out.
    """
    signature = inspect.signature(method)

    @wraps(method)
    def checked(self: Any, *args: Any, **given: Any) -> Any:
        try:
            signature.bind(self, *args, **given)
        except TypeError as error:
            raise _about_arguments(self, method.__name__, str(error), given, signature) from None
        out = method(self, *args, **given)
        warn_in_pipeline(self)
        return out

    return checked


def _about_arguments(
    estimator: Any, method: str, problem: str, given: dict[str, Any], signature: inspect.Signature
) -> ArgumentError:
    unknown = next((name for name in given if name not in signature.parameters), None)
    return ArgumentError(
        "{0}.{1}() {2}; its arguments are {3}.",
        *(type(estimator).__name__, method, problem, ", ".join([*signature.parameters][1:])),
        remedy=f"Queries are given by {{qid}}, one id per row: {FROM_SIZES}" if unknown in ("group", "groups") else "",
        parameter=unknown,
    )


class Ranker(RegressorMixin, BaseEstimator):
    """Scores items; only differences inside a query mean anything."""

    # With metadata routing enabled, qid reaches fit and score without being asked for.
    __metadata_request__fit = {"qid": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True}  # noqa: RUF012

    n_queries_: int
    n_features_in_: int
    _fitted_with_qid: bool = False
    _learns_unscored = False  # whether NaN in y marks rows without a label
    _single_target = False  # whether y must hold one target

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in {"fit", "fit_pairs"} & vars(cls).keys():
            if vars(cls)[name] is not None:
                setattr(cls, name, _naming_its_class(vars(cls)[name]))

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Defined by each estimator."""
        raise TypeError(f"{type(self).__name__} does not fit.")

    def fit_dataset(self, data: Any, **given: Any) -> Self:
        """Learn from a data set that no memory holds, where an estimator can do without all rows at once.

        Raises
        ------
        InputError
            By this estimator.
        """
        raise InputError(
            "{0} needs all rows in memory: it cannot learn from a data set that is streamed.",
            type(self).__name__,
            remedy="Take {RankRLSCV} or {RankRLS}, or give a sample of the rows to fit.",
            parameter="data",
        )

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Defined by each family of estimators."""
        raise TypeError(f"{type(self).__name__} does not predict.")

    def _check(self) -> None:
        """Check the parameters, as far as that is possible without data."""
        check_parameters(self)

    def _data_kernel(self) -> Any:
        """What X means: objects for a function, a kernel matrix, or features."""
        return getattr(self, "kernel", "linear")

    def _labelled(self, X: Any, y: Any, qid: Any, sample_weight: Any, *, partly: bool = False) -> LabelledItems:
        """Checked items with labels that can be learnt from; ``partly`` says that some of them are none."""
        if self._single_target and y is not None and (given := np.asarray(y)).ndim == 2 and given.shape[1] == 1:
            y = column_or_1d(given, warn=True)
        data = labelled_items(self, X, y, qid, sample_weight, kernel=self._data_kernel())
        if self._single_target:
            check_one_target(self, data)
        if not partly:
            check_comparable(data, float(getattr(self, "regression_weight", 0.0)))
        return data

    def _preferred(
        self, X: Any, winners: Any, losers: Any, strength: Any, weight: Any, groups: Any = None
    ) -> PreferredItems:
        """Checked items with preferences between them."""
        kernel = self._data_kernel()
        return preferred_items(self, X, winners, losers, strength, weight, kernel=kernel, groups=groups)

    def _validation(
        self, measure: RankingMeasure, data: Comparisons, X_val: Any, y_val: Any, qid_val: Any
    ) -> Validation | None:
        """Rows of their own to judge on; None if none were given."""
        if X_val is None and y_val is None and qid_val is None:
            return None
        self._refuse_cv()
        return validation_data(self, measure, data, X_val, y_val, qid_val, kernel=self._data_kernel())

    def _refuse_cv(self) -> None:
        if getattr(self, "cv", None) is not None:
            raise InputError("Give either {cv} or validation data ({X_val}), not both.")

    def _begin(self, comparisons: Comparisons) -> None:
        """Forget an earlier fit, and keep what is known of the data."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.endswith("_in_")]:
            delattr(self, name)
        self._fitted_with_qid = comparisons.has_qid
        self._one_target = comparisons.one_target
        self.n_queries_ = comparisons.n_queries

    def _candidate(self, comparisons: Comparisons) -> Candidate:
        """What ``fit`` solves and held-out scores come from, for an estimator of one model."""
        raise NotImplementedError

    def _solve(
        self, comparisons: Comparisons, value: float, candidate: Candidate | None = None
    ) -> tuple[Problem, Solutions]:
        """Solve the candidate's problem for one value, and keep the function."""
        candidate = self._candidate(comparisons) if candidate is None else candidate
        check_affordable(candidate.cost(comparisons, None, 1), remedy=self._cheaper(candidate.kernel.is_linear))
        problem = candidate.problem(comparisons)
        solutions = problem.path(np.array([value]))
        self._begin(comparisons)
        self._adopt(comparisons, candidate, solutions)
        return problem, solutions

    def _adopt(self, comparisons: Comparisons, candidate: Any, solutions: Solutions) -> None:
        """Keep the one solution as this model's function."""
        raise NotImplementedError

    def _cheaper(self, linear: bool) -> str:
        """What takes less time and memory than the matrix of the kernel, which may be the linear one."""
        return cheaper(linear)

    @contextmanager
    def _holding(self, **state: Any) -> Iterator[None]:
        """Attributes that only a fit needs; they go when it ends, also by an error."""
        self.__dict__.update(state)
        try:
            yield
        finally:
            for name in state:
                self.__dict__.pop(name, None)

    def rank(self, X: Any, *, qid: Any = None) -> NDArray[np.intp]:
        """Rank items inside their queries.

        Parameters
        ----------
        X : as for :meth:`predict`
        qid : array-like of shape (m,), optional
            One query id per row. None ranks all items together, which a model fitted with qid refuses.

        Returns
        -------
        ndarray of shape (m,) or (m, targets)
            Position of each row in its query, from 1 for the highest score; equal scores stand in row order.
        """
        check_is_fitted(self)
        check_no_extra_qid(self._fitted_with_qid, qid, "rank")
        return rank_positions(self._scores(X, qid), qid=qid)

    def _scores(self, X: Any, qid: Any) -> NDArray[np.float64]:
        """``predict``, for estimators that look at whole queries too."""
        return self.predict(X)

    def score(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> float:
        """1 - disagreement error: the share of pairs with different labels that are ordered rightly.

        Predicted ties count half; queries count the same, those without two different labels not at all; several
        targets are averaged. Estimators that learn from unscored rows too are judged on the scored ones.

        Parameters
        ----------
        X : as for :meth:`predict`
        y : array-like of shape (m,) or (m, targets)
        qid : array-like of shape (m,), optional
            Required where the model was fitted with qid.
        sample_weight : array-like of shape (m,), optional
            A pair weighs the product of its rows' weights.
        """
        check_is_fitted(self)
        check_no_extra_qid(self._fitted_with_qid, qid, "score")
        scores = self._scores(X, qid)
        if self._learns_unscored:
            y, scores, qid, sample_weight = scored_rows(y, scores, qid, sample_weight)
        labels, scores = (values[:, None] if values.ndim == 1 else values for values in (np.asarray(y), scores))
        if labels.shape[1:] != scores.shape[1:]:
            raise InputError("{y} has shape {0}, but the model has targets for shape {1}.", labels.shape, scores.shape)
        columns = zip(labels.T, scores.T, strict=True)
        errors = [disagreement_error(column, of, qid=qid, sample_weight=sample_weight) for column, of in columns]
        return 1.0 - float(np.mean(errors))

    def __sklearn_is_fitted__(self) -> bool:
        """Not so after a fit that failed, although that may have set ``n_features_in_``."""
        return hasattr(self, "n_queries_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = not self._single_target
        return tags


class KernelRanker(Ranker):
    """Scores items by ``w'x`` or ``sum_i a_i k(x, x_i)``."""

    coef_: NDArray[np.float64]
    dual_coef_: NDArray[np.float64]
    X_fit_: Any
    alpha_: float
    _kernel_: Kernel

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Score items.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n); or a sequence of objects for a callable kernel
            With ``kernel="precomputed"``: the kernel between these items and the training items.

        Returns
        -------
        ndarray of shape (m,) or (m, targets)
            Higher is better. Only differences between items of the same query mean anything.

        Notes
        -----
        O(m n) for a linear model, O(m x training items x n) for a kernel, in blocks.
        """
        check_is_fitted(self)
        scores = self.scorer_(check_features(self, X, kernel=self._kernel_.name))
        return scores[:, 0] if self._one_target else scores

    @property
    def scorer_(self) -> Scorer:
        """The fitted function, a column for each target: what predictions, exports and explanations are made from."""
        kernel, known = self._kernel_, vars(self)
        weights, a = (_columns(known.get(name)) for name in ("coef_", "dual_coef_"))
        if weights is not None and not self._one_target:
            weights = weights.T
        return Scorer(weights, a, kernel, known.get("X_fit_"))

    def _take(self, scorer: Scorer, kernel: Kernel) -> None:
        """Keep a function as this model's public coefficients."""
        self._kernel_ = kernel
        if scorer.weights is not None:
            self.coef_ = np.ascontiguousarray(scorer.weights[:, 0] if self._one_target else scorer.weights.T)
        if scorer.coefficients is not None:
            a = scorer.coefficients
            self.dual_coef_ = np.ascontiguousarray(a[:, 0] if self._one_target else a)
        if scorer.items is not None:
            self.X_fit_ = scorer.items

    def _adopt(self, comparisons: Comparisons, candidate: Any, solutions: Solutions) -> None:
        self._take(solutions[0].over(comparisons.kept), candidate.kernel)

    def _kernels(self, X: Any) -> Iterator[tuple[Kernel, dict[str, Any]]]:
        """Every kernel to try, with the parameters that make a difference to it."""
        yield self._resolved_kernel(X), {}

    def _resolved_kernel(self, X: Any) -> Kernel:
        check_square(X, self.kernel)
        return resolve_kernel(X, self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)

    def _constrained(self) -> bool:
        """Whether the signs of weights are constrained, so that pairs cannot be held out without refitting."""
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags


class SingleRanker(KernelRanker):
    """Learns the one model of its parameters, from labels or from preferences."""

    def _learn(self, comparisons: Comparisons) -> Self:
        raise NotImplementedError

    def _solution(self, problem: EquationsProblem, alpha: float) -> NDArray[np.float64]:
        """Coefficients (size, targets) of one alpha, by normal equations."""
        return problem.solve(alpha)

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Learn from items with labels.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n); or a sequence of objects for a callable kernel
            float32 is not upcast whole. With ``kernel="precomputed"``: the kernel matrix, (m, m).
        y : array-like of shape (m,) or (m, targets)
            Labels, higher is better. Several targets, of estimators that take them, share one factorisation where ties
            are included.
        qid : array-like of shape (m,), optional
            One query id per row, in any order, of any hashable type. None makes everything one global ranking.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative; a pair weighs ``w_i w_j``.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For bad input, naming the row and column; and where no query holds two different labels.
        """
        self._check()
        return self._learn(self._labelled(X, y, qid, sample_weight))

    def fit_pairs(self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None) -> Self:
        r"""Learn from preferences: the loss is :math:`\sum_e c_e (s_e - (f_{i_e} - f_{j_e}))^2`, or that of the class.

        Parameters
        ----------
        X : as for :meth:`fit`
            The items; those in no preference are allowed.
        winners, losers : array-like of int, shape (p,)
            Row numbers of X; row ``winners[e]`` was preferred to row ``losers[e]``. Repeated and contradictory
            preferences are allowed, an item against itself is not.
        strength : array-like of shape (p,), optional
            By how much each winner should lead; 1 by default, 0 for a tie.
        weight : array-like of shape (p,), optional
            How much each preference counts; 1 by default.

        Returns
        -------
        self

        Notes
        -----
        ``ties``, ``balance`` and ``regression_weight`` are about labels and play no part.
        """
        self._check()
        return self._learn(self._preferred(X, winners, losers, strength, weight))


def check_one_target(estimator: Any, data: LabelledItems) -> None:
    """Several targets would each need a model of their own."""
    if data.Y.shape[1] > 1:
        raise InputError(
            "{0} learns one target: y should be a 1d array, got an array of shape {1} instead.",
            type(estimator).__name__,
            data.Y.shape,
            remedy="Fit one model a target.",
            parameter="y",
        )


def check_square(X: Any, kernel: Any) -> None:
    """A kernel matrix to fit has a row and a column for each item."""
    if isinstance(kernel, str) and kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise InputError("A precomputed kernel matrix must be square to fit; got shape {0}.", X.shape, parameter="X")


def _columns(values: Any) -> Any:
    return values[:, None] if values is not None and values.ndim == 1 else values
