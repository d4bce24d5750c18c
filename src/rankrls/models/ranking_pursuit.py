"""Ranking pursuit: a ranking function of few terms, chosen greedily."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Comparisons
from rankrls._public import publish
from rankrls.kernels import Kernel
from rankrls.models.families.base import SingleRanker
from rankrls.models.families.pursuits import PathRanker
from rankrls.models.families.selecting import ChosenByFolds
from rankrls.models.inputs.parameters import SelectionParameters, estimator, number, parameter
from rankrls.selection.candidates import Pursued
from rankrls.selection.search import Results

__all__ = ["RankingPursuit", "RankingPursuitCV"]

_LINEAR = Kernel("linear")


@estimator
class RankingPursuit(PathRanker, SingleRanker):
    r"""Ranking by a weighted sum of few functions, taken greedily from a dictionary.

    Minimises, over functions ``f = sum_p a_p k_p`` of at most P terms from the dictionary,

    .. math::

        \tfrac12 \sum_{ij} W_{ij} ( (y_i - y_j) - (f(x_i) - f(x_j)) )^2 = (y - f)' L (y - f) .

    Each stage takes the column k that lowers it most, by ``(k'Lr)^2 / k'Lk`` for the residual ``r = y - f``, and then
    fits all coefficients anew. The number of terms is the only regularization; :class:`RankingPursuitCV` chooses it.

    Parameters
    ----------
    n_basis : int, default=10
        P, the number of stages; fewer are taken where nothing improves any more.
    dictionary : {"kernel", "features"}, default="kernel"
        The functions ``k(x, centre)``, or the features themselves, which makes a sparse linear model.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`, default="rbf"
        Of the kernel dictionary. With "precomputed" the columns of the square matrix are the dictionary.
    centers : array-like of shape (N, n), optional
        The centres of the kernel dictionary; the training rows by default.
    ties, balance : as in :class:`RankRLS`
    regression_weight : float in [0, 1], default=0.0
        ``beta`` in ``L~ = beta I + (1 - beta) L``: 0 is ranking pursuit, 1 is kernel matching pursuit (Vincent and
        Bengio 2002), between them lies combined ranking and regression (CRRP). There is no intercept.
    backfit : bool, default=True
        Whether all coefficients are fitted again at each stage. False is plain matching pursuit, in which a stage may
        take the same column once more.
    cache_size : float, default=4096
        MiB that the dictionary's columns may take; beyond, they are computed anew at each stage.

    Attributes
    ----------
    path_ : PursuitPath
        ``indices``, ``coefficients`` and ``losses`` of every stage; see :meth:`staged_predict`. Indices are numbered as
        in ``basis_indices_``.
    n_basis_ : int
        Distinct columns taken, r below.
    basis_indices_ : ndarray of shape (r,), intp
        Their numbers in the order of choice: rows of X, of ``centers``, or features.
    dual_coef_ : ndarray of shape (r,)
        Coefficients of the kernel functions; (m,), mostly zeros, where the kernel is precomputed.
    X_fit_ : ndarray, sparse array or list
        The centres that were taken; kernels other than precomputed.
    coef_ : ndarray of shape (n,)
        Weights of the features, mostly zeros; dictionary="features", and the linear kernel.
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where X had column names.

    Notes
    -----
    O(m N) a stage for N columns, O(P m N) in all, with 8 m N bytes for the dictionary. Columns that L does not see (a
    constant inside every query) are never taken. Equal columns: the lowest number is taken, so that results are
    deterministic. Columns are not scaled: the criterion does not depend on their lengths. Queries of one item, rows of
    weight zero and repetition are treated as in :class:`RankRLS`; only rows of positive weight are centres.

    References
    ----------
    Tsivtsivadze, Heskes: Semi-supervised ranking pursuit. Section 3 and, for ``regression_weight``, equation (5).

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankingPursuit
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 30)), np.repeat(np.arange(12), 5)
    >>> y = 3 * X[:, 7] - 2 * X[:, 19] + 0.1 * rng.normal(size=60) + 10 * qid
    >>> model = RankingPursuit(n_basis=2, dictionary="features").fit(X, y, qid=qid)
    >>> model.basis_indices_
    array([ 7, 19])
    >>> model.coef_[model.basis_indices_].round(1)
    array([ 3., -2.])
    """

    n_basis: int = parameter(default=10, check=number(least=1, whole=True), kw_only=False)

    def _learn(self, comparisons: Comparisons) -> Self:
        self._solve(comparisons, float(self.n_basis))
        return self

    def _candidate(self, comparisons: Comparisons) -> Pursued:
        kernel = _LINEAR if self.dictionary == "features" else self._resolved_kernel(comparisons.X)
        return Pursued(
            kernel=kernel,
            setting=self._setting(),
            pursuit=self._pursuit_of(kernel, self._checked_centers(comparisons.X, self.kernel)),
            n_basis=int(self.n_basis),
        )


@estimator
class RankingPursuitCV(PathRanker, ChosenByFolds, SelectionParameters):
    r"""Ranking pursuit whose number of terms is chosen by cross-validation.

    Minimises what :class:`RankingPursuit` minimises. Each fold is one run, whose path is judged after every stage.

    Parameters
    ----------
    max_basis : int, default=50
        The largest number of stages to choose from.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of whole queries, of rows for one global ranking, or of preferences or their groups; an int is
        that many. Every fold is refitted; its dictionary are its own training rows, unless ``centers`` are given.
    scoring, verbose : as in :class:`RankRLSCV`
    rule : {"best", "one_se"}, default="best"
        "one_se" takes the fewest stages whose measure is within one standard error of the best.
    dictionary, kernel_params, centers, regression_weight, backfit, cache_size : as in :class:`RankingPursuit`
    kernel, gamma, degree, coef0, ties, balance : as in :class:`RankingPursuit`, or a tuple of values to choose from

    Attributes
    ----------
    best_params_ : dict
        ``n_basis`` (stages), ties, balance and the kernel's parameters.
    n_basis_at_edge_ : bool
        Whether the choice is ``max_basis``: raise it then.
    cv_results_ : dict of ndarray
        One entry for every combination and number of stages: the parameters, ``n_basis``, ``mean_score``,
        ``standard_error``.
    best_score_, best_score_error_, best_index_, selection_ : as in :class:`RankRLSCV`
    query_scores_ : ndarray or None
        The measure of each held-out query under the choice, fold by fold.
    path_ : PursuitPath
        On all rows, up to the choice.
    n_basis_, basis_indices_, dual_coef_, X_fit_, coef_, n_queries_, n_features_in_, feature_names_in_ : as in
        :class:`RankingPursuit`

    Notes
    -----
    One pursuit a fold and one on all rows, for each combination. Equal measures: the fewest stages, then the earliest
    combination. A path that ends early counts with its last stage from there on.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankingPursuitCV
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(300, 40)), np.repeat(np.arange(30), 10)
    >>> y = X[:, 3] - 2 * X[:, 11] + 0.5 * X[:, 30] + rng.normal(size=300)
    >>> model = RankingPursuitCV(20, dictionary="features", rule="one_se").fit(X, y, qid=qid)
    >>> model.selection_, model.basis_indices_
    ('5 folds of 30 queries', array([11,  3, 30]))
    """

    max_basis: int = parameter(default=50, check=number(least=1, whole=True), kw_only=False)

    def _grid(self) -> NDArray[np.float64]:
        return np.arange(1.0, int(self.max_basis) + 1.0)

    def _kernels(self, X: Any) -> Iterator[tuple[Kernel, dict[str, Any]]]:
        return iter([(_LINEAR, {})]) if self.dictionary == "features" else super()._kernels(X)

    def _candidates(self, comparisons: Comparisons) -> Iterator[Pursued]:
        centres = self._checked_centers(comparisons.X, self._data_kernel())
        for kernel, choices in self._kernels(comparisons.X):
            for setting, chosen in self._settings(comparisons):
                yield Pursued(
                    kernel=kernel,
                    setting=setting,
                    choices={**choices, **chosen},
                    pursuit=self._pursuit_of(kernel, centres),
                    n_basis=int(self.max_basis),
                )

    def _publish(self, results: Results, description: str, data: Any) -> None:
        terms = self.n_basis_
        super()._publish(results, description, data)
        stages = int(results.best_value)
        self.best_params_["n_basis"] = stages
        self.n_basis_ = terms  # distinct ones: a stage may take a column again
        self.n_basis_at_edge_ = stages == int(self.max_basis) and self.path_.n_stages == stages


publish("rankrls", {**globals(), "__name__": "rankrls"})
