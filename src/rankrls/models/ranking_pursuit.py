"""Ranking pursuit: a ranking function of few terms, chosen greedily."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from rankrls._comparisons import Comparisons
from rankrls._rows import take_items
from rankrls.kernels import Kernel
from rankrls.learners.paths import PursuitPath, sum_of_terms
from rankrls.learners.pursuit import PursuitProblem
from rankrls.models import fitting
from rankrls.models.parameters import GraphParameters, KernelParameters, estimator, flag, parameter
from rankrls.models.ranker import Candidate, Chooses, Fits, Ranker
from rankrls.selection.search import search

DICTIONARIES = ("kernel", "features")


@estimator
class _PathRanker(Ranker, GraphParameters, KernelParameters):
    """A ranker whose function is a sum of columns taken one by one."""

    _single_target = True

    dictionary: str = parameter(default="kernel", check=DICTIONARIES)
    kernel: Any = parameter(default="rbf", several=True)
    backfit: bool = parameter(default=True, check=flag)

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Score items after each stage of the path, the last of which is :meth:`predict`.

        Parameters
        ----------
        X : as for :meth:`predict`

        Yields
        ------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        X = fitting.check_features(self, X, kernel=self._kernel_.name)
        taken, coefficients = self.path_.merged()
        items = getattr(self, "X_fit_", None)
        of_items = items is not None or self._kernel_.name == "precomputed"  # as fitted; dictionary may have changed
        kernel = self._kernel_ if of_items else None
        yield from sum_of_terms(coefficients.T, kernel, items, taken, getattr(self, "n_features_in_", 0))(X).T

    @available_if(lambda self: self.dictionary == "features")
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of the features that were taken, in the order of the columns of X.

        :func:`rankrls.inspection.selected_features` has them in the order of choice.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all features; by default those of the fit, or x0, x1, ...
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.asarray(names[np.sort(self.basis_indices_)])

    def _candidates(self, data: Comparisons, n_basis: int) -> Iterator[Candidate]:
        features = self.dictionary == "features"
        for kernel, choices in [(Kernel("linear"), {})] if features else fitting.kernels_of(self, data.X):
            how: dict[str, Any] = {"kernel": None if features else kernel, "backfit": bool(self.backfit)}
            for setting, chosen in fitting.settings_of(self, data):
                problem = partial(PursuitProblem, setting=setting, n_basis=n_basis, **how)
                yield Candidate({**choices, **chosen}, problem, kernel, square=kernel.name == "precomputed")

    def _store(self, data: Comparisons, candidate: Candidate, path: PursuitPath) -> None:
        features = self.dictionary == "features"
        taken, coefficients = path.merged()
        last = coefficients[-1] if len(coefficients) else np.zeros(0)
        kernel, items = (None, None) if features else (candidate.kernel, take_items(data.X, taken))
        function = sum_of_terms(last[:, None], kernel, items, taken, getattr(self, "n_features_in_", 0))
        fitting.keep(self, function, candidate.kernel, data)
        numbers = np.asarray if features else data.given_numbers
        self.path_ = replace(path, indices=numbers(path.indices))
        self.basis_indices_ = numbers(taken)
        self.n_basis_ = len(taken)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.pairwise and self.dictionary == "kernel"
        return tags


@estimator
class RankingPursuit(Fits, _PathRanker):
    r"""Ranking by a weighted sum of few functions, which are selected greedily from a dictionary.

    Minimises, over functions ``f = sum_p a_p k_p`` of at most P terms from the dictionary,

    .. math::

        \tfrac12 \sum_{ij} W_{ij} ( (y_i - y_j) - (f(x_i) - f(x_j)) )^2 = (y - f)' L (y - f) .

    Each stage selects the column k that lowers it most, by ``(k'Lr)^2 / k'Lk`` for the residual ``r = y - f``, and then
    refits all coefficients. The number of terms is the only regularization; :class:`RankingPursuitCV` chooses it.

    Parameters
    ----------
    n_basis : int, default=10
        P, the number of stages; fewer if nothing improves the fit any more.
    dictionary : {"kernel", "features"}, default="kernel"
        The functions ``k(x, x_i)`` of the training rows, or the features themselves, for a sparse linear model.
    kernel, gamma, degree, coef0, kernel_params : as in :class:`RankRLS`, default="rbf"
        Of the kernel dictionary. With "precomputed" the columns of the square matrix are the dictionary.
    ties, balance : as in :class:`RankRLS`
    regression_weight : float in [0, 1], default=0.0
        ``beta`` in ``L~ = beta I + (1 - beta) L``: 0 is ranking pursuit, 1 is kernel matching pursuit (Vincent and
        Bengio 2002), and values between them are combined ranking and regression (CRRP). There is no intercept.
    backfit : bool, default=True
        Whether all coefficients are fitted again at each stage. False is plain matching pursuit, in which a stage may
        select the same column again.

    Attributes
    ----------
    path_ : PursuitPath
        ``indices``, ``coefficients`` and ``losses`` of every stage; see :meth:`staged_predict`. Indices are numbered as
        in ``basis_indices_``.
    n_basis_ : int
        The number r of distinct selected columns.
    basis_indices_ : ndarray of shape (r,), intp
        Their numbers in the order of choice: rows of X, or features.
    dual_coef_ : ndarray of shape (r,)
        Coefficients of the kernel functions.
    X_fit_ : ndarray, sparse array or list
        The selected rows; kernels other than precomputed.
    coef_ : ndarray of shape (n,)
        Weights of the features, mostly zeros; dictionary="features", and the linear kernel.
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has column names.

    Notes
    -----
    O(m N) per stage for N columns, O(P m N) in all, with 8 m N bytes for a dictionary of kernel functions. Columns that
    are constant within every query are never selected. Of equal columns the first one is selected. Columns are not
    scaled, because the criterion does not depend on their lengths. Queries of one item, rows of weight zero and
    repetition are treated as in :class:`RankRLS`; only rows of positive weight are in the dictionary.

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

    n_basis: int = parameter(default=10, least=1, whole=True, kw_only=False)

    def _solve(self, data: Comparisons) -> Self:
        candidate = next(self._candidates(data, int(self.n_basis)))
        fitting.begin(self, data)
        self._store(data, candidate, candidate.problem(data).walked)
        return self


@estimator
class RankingPursuitCV(Chooses, _PathRanker):
    r"""Ranking pursuit whose number of terms is chosen by cross-validation.

    Minimises what :class:`RankingPursuit` minimises. Each fold is one run, whose path is evaluated after every stage.

    Parameters
    ----------
    max_basis : int, default=50
        The largest number of stages to choose from.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of whole queries, of rows for one global ranking, or of what will be new in preferences
        (:ref:`new`); an int is that many. Every fold is refitted, with its own training rows as the dictionary.
    scoring, verbose : as in :class:`RankRLSCV`
    rule : {"best", "one_se"}, default="best"
        "one_se" takes the fewest stages whose measure is within one standard error of the best.
    dictionary, kernel_params, regression_weight, backfit : as in :class:`RankingPursuit`
    kernel, gamma, degree, coef0, ties, balance : as in :class:`RankingPursuit`, or a tuple of values to choose from

    Attributes
    ----------
    best_params_ : dict
        ``n_basis`` (stages), ties, balance and the kernel's parameters.
    n_basis_at_edge_ : bool
        Whether the choice is ``max_basis``. If so, increase it.
    cv_results_ : dict of ndarray
        One entry for every combination and number of stages: the parameters, ``n_basis``, ``mean_score``,
        ``standard_error``.
    best_score_, best_score_error_, best_index_, selection_ : as in :class:`RankRLSCV`
    query_scores_ : ndarray or None
        The measure of each held-out query for the chosen model, fold by fold.
    path_ : PursuitPath
        On all rows, up to the choice.
    n_basis_, basis_indices_, dual_coef_, X_fit_, coef_, n_queries_, n_features_in_, feature_names_in_ : as in
        :class:`RankingPursuit`

    Notes
    -----
    One pursuit a fold and one on all rows, for each combination. If measures are equal, the fewest stages are chosen,
    then the first combination. A path that ends early keeps its last measure.

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

    max_basis: int = parameter(default=50, least=1, whole=True, kw_only=False)

    def _search(self, data: Comparisons, plan: Any) -> Self:
        most = int(self.max_basis)
        results = search(self._candidates(data, most), data, plan, self.rule, None, int(self.verbose))
        fitting.begin(self, data)
        fitting.publish(self, results, plan.description, data)
        self._store(data, results.candidate, results.solutions.details[0])
        stages = self.best_params_["n_basis"] = int(results.best_value)
        self.n_basis_at_edge_ = stages == most and self.path_.n_stages == stages
        return self
