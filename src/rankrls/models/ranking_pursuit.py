"""Ranking pursuit: a ranking function of few terms, selected greedily."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Data
from rankrls._problems import LINEAR
from rankrls._rows import take_items
from rankrls._typing import Array, FoldsLike, Index, ItemsLike, Values
from rankrls.kernels import Kernel
from rankrls.learners.paths import PathSolutions, PursuitPath, sum_of_terms
from rankrls.learners.pursuit import PursuitCandidate, PursuitSettings
from rankrls.models.fitted import Fitted
from rankrls.models.parameters import (
    GRAPH,
    GRAPHS,
    KERNEL,
    SELECTION,
    Check,
    KernelLike,
    Scoring,
    Several,
    count,
    flag,
    word,
)
from rankrls.models.ranker import Chooses, Fits, KernelGraphEstimator, Ranker
from rankrls.models.spec import Accepts, KernelSettings, SearchSpec, Solved, kernels_for, kind_of

DICTIONARIES = ("kernel", "features")
_CHECKS: dict[str, Check] = {"dictionary": word(DICTIONARIES), "backfit": flag}


@dataclass(frozen=True, eq=False, kw_only=True)
class PursuitSpec(SearchSpec[PathSolutions[PursuitPath]]):
    """All dictionaries and graphs.

    Attributes
    ----------
    kernels : KernelSettings
    settings : PursuitSettings
    """

    kernels: KernelSettings
    settings: PursuitSettings

    def candidates(self, data: Data) -> Iterator[PursuitCandidate]:
        kernels: list[tuple[Kernel, Values]] = [(LINEAR, {})]
        if not self.settings.of_features:
            kernels = kernels_for(self.kernels, data.X)
        for kernel, choices in kernels:
            for setting, chosen in data.settings(self.graphs):
                every = {**choices, **chosen}
                yield PursuitCandidate(kernel=kernel, choices=every, setting=setting, settings=self.settings)

    def fitted(self, data: Data, solved: Solved[PathSolutions[PursuitPath]]) -> Fitted:
        (path,) = solved.solutions.details
        taken, coefficients = path.merged()
        last = coefficients[-1] if len(coefficients) else np.zeros(0)
        of_features = self.settings.of_features
        kernel = None if of_features else solved.candidate.kernel
        items = None if of_features else take_items(data.X, taken)
        function = sum_of_terms(last[:, None], kernel, items, taken, data.features.count or 0)
        numbers = np.asarray if of_features else data.given_numbers
        known: Values = {}
        if solved.found is not None:
            stages = int(solved.value)
            known["best_params_"] = {**solved.found.best_choices, "n_basis": stages}
            known["n_basis_at_edge_"] = stages == self.settings.n_basis and path.n_stages == stages
        return Fitted.of(
            data,
            function,
            solved.candidate.kernel,
            path_=replace(path, indices=numbers(path.indices)),
            basis_indices_=numbers(taken),
            n_basis_=len(taken),
            **known,
        )


class _PathRanker(KernelGraphEstimator, Ranker):
    """A ranker whose function is a sum of columns selected one by one."""

    _accepts = Accepts(several_targets=False)

    dictionary: str
    path_: PursuitPath
    n_basis_: int
    basis_indices_: Index

    def staged_predict(self, X: ItemsLike) -> Iterator[Array]:
        """Yield scores of items after each stage of the path; the last are those of :meth:`predict`.

        Parameters
        ----------
        X : as for :meth:`predict`

        Yields
        ------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        X = self._checked(X)
        known = vars(self)
        taken, coefficients = self.path_.merged()
        items = known.get("X_fit_")
        of_items = items is not None or self._kernel_.name == "precomputed"  # as fitted; the parameter may have changed
        kernel = self._kernel_ if of_items else None
        yield from sum_of_terms(coefficients.T, kernel, items, taken, known.get("n_features_in_", 0))(X).T

    @property
    def _feature_path(self) -> PursuitPath | None:
        return self.path_ if self.dictionary == "features" and self.__sklearn_is_fitted__() else None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.pairwise and self.dictionary == "kernel"
        return tags


class RankingPursuit(Fits, _PathRanker):
    r"""Ranking by a weighted sum of few functions, selected greedily from a dictionary.

    Minimizes, over functions ``f = sum_p a_p k_p`` of at most P terms from the dictionary,

    .. math::

        \tfrac12 \sum_{ij} W_{ij} ( (y_i - y_j) - (f(x_i) - f(x_j)) )^2 = (y - f)' L (y - f) .

    Each stage selects the column k that lowers it most, by ``(k'Lr)^2 / k'Lk`` for the residual ``r = y - f``, and then
    refits all coefficients. The number of terms is the only regularization; :class:`RankingPursuitCV` selects it.

    Parameters
    ----------
    n_basis : int, default=10
        P, the number of stages; fewer if no column improves the fit any more.
    dictionary : {"kernel", "features"}, default="kernel"
        Dictionary: the functions ``k(x, x_i)`` of the training rows, or the features themselves, for a sparse linear
        model.
    kernel, gamma, degree, coef0 : as in :class:`RankRLS`, default="rbf"
        Kernel of the dictionary. With "precomputed", the columns of the square matrix are the dictionary.
    ties, balance : as in :class:`RankRLS`
    regression_weight : float in [0, 1], default=0.0
        ``beta`` in ``L~ = beta I + (1 - beta) L``: 0 is ranking pursuit, 1 is kernel matching pursuit (Vincent and
        Bengio 2002), and values between them are combined ranking and regression (CRRP). There is no intercept.
    backfit : bool, default=True
        Whether all coefficients are refitted at each stage. False is plain matching pursuit, in which a stage can
        select a column again.

    Attributes
    ----------
    path_ : PursuitPath
        ``indices``, ``coefficients`` and ``losses`` of every stage; see :meth:`staged_predict`. Indices are numbered as
        in ``basis_indices_``.
    n_basis_ : int
        Number r of distinct selected columns.
    basis_indices_ : ndarray of shape (r,), intp
        Numbers of the selected columns, in the order of selection: rows of X, or features.
    dual_coef_ : ndarray of shape (r,)
        Coefficients of the kernel functions.
    X_fit_ : ndarray, sparse array or list
        The selected rows; kernels other than precomputed.
    coef_ : ndarray of shape (n,)
        Weights of the features, most of which are zero; dictionary="features", and the linear kernel.
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Column names of X, if it has any.

    See Also
    --------
    RankingPursuitCV : Choose the number of terms.
    CoRankingPursuit : Several models that agree on unlabelled rows, or share no term.
    GreedyRankRLS : Select features by the held-out error.

    Notes
    -----
    O(m N) per stage for N columns, O(P m N) in total, with 8 m N bytes for a dictionary of kernel functions. Columns
    that are constant within every query are never selected. Among equal columns, the first is selected. Columns are not
    scaled, because the criterion does not depend on their lengths. Queries with one item, rows of weight zero and
    repetition are treated as in :class:`RankRLS`; the dictionary contains only rows of positive weight.

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

    _checks = _CHECKS | KERNEL | GRAPH | {"n_basis": count}

    def __init__(
        self,
        n_basis: int = 10,
        *,
        kernel: KernelLike = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        dictionary: str = "kernel",
        backfit: bool = True,
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
    ) -> None:
        self.n_basis = n_basis
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.dictionary = dictionary
        self.backfit = backfit
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight

    def _spec(self) -> PursuitSpec:
        return _spec_of(self, self.n_basis)


class RankingPursuitCV(Chooses, _PathRanker):
    r"""Ranking pursuit with the number of terms selected by cross-validation.

    Has the same objective as :class:`RankingPursuit`. Each fold is one run, whose path is evaluated after every stage.

    Parameters
    ----------
    max_basis : int, default=50
        Maximum number of stages to choose from.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        Held-out units. None is 5 folds of whole queries, of rows for one global ranking, or of what will be new for
        preferences (:ref:`new`); an int is a number of folds. Every fold is refitted, with its own training rows as the
        dictionary.
    scoring : as in :class:`RankRLSCV`
    rule : {"best", "one_se"}, default="best"
        Selection rule; "one_se" selects the fewest stages whose measure is within one standard error of the best.
    dictionary, regression_weight, backfit : as in :class:`RankingPursuit`
    kernel, gamma, degree, coef0, ties, balance : as in :class:`RankingPursuit`, or a tuple of values to choose from

    Attributes
    ----------
    best_params_ : dict
        Selected ``n_basis`` (stages), ties, balance and parameters of the kernel.
    n_basis_at_edge_ : bool
        Whether ``max_basis`` was selected. If so, increase it.
    cv_results_ : dict of ndarray
        One entry per combination and number of stages: the parameters, ``n_basis``, ``mean_score``, ``standard_error``.
    best_score_, best_score_error_, best_index_, selection_ : as in :class:`RankRLSCV`
    query_scores_ : ndarray or None
        Measure of each held-out query for the selected model, fold by fold.
    path_ : PursuitPath
        Path on all rows, up to the selected stage.
    n_basis_, basis_indices_, dual_coef_, X_fit_, coef_, n_queries_, n_features_in_, feature_names_in_ : as in
        :class:`RankingPursuit`

    See Also
    --------
    RankingPursuit : Fit a given number of terms.
    GreedyRankRLS : Select features by the held-out error.

    Notes
    -----
    One pursuit per fold and one on all rows, for each combination. If measures are equal, the fewest stages are
    selected, then the first combination. A path that ends early keeps its last measure.

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

    _checks = _CHECKS | GRAPHS | SELECTION | {"max_basis": count}

    def __init__(
        self,
        max_basis: int = 50,
        *,
        kernel: Several[KernelLike] = "rbf",
        gamma: Several[float | None] = None,
        degree: Several[int] = 3,
        coef0: Several[float] = 1.0,
        dictionary: str = "kernel",
        backfit: bool = True,
        ties: Several[str] = "include",
        balance: Several[str] = "examples",
        regression_weight: float = 0.0,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        cv: FoldsLike = None,
    ) -> None:
        self.max_basis = max_basis
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.dictionary = dictionary
        self.backfit = backfit
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.scoring = scoring
        self.rule = rule
        self.cv = cv

    def _spec(self) -> PursuitSpec:
        return _spec_of(self, self.max_basis).choosing(None, self.scoring, self.rule, self.cv)


def _spec_of(model: RankingPursuit | RankingPursuitCV, n_basis: int) -> PursuitSpec:
    """Specification from the parameters that both classes have, with a maximum number of terms."""
    kernels = model._kernels()
    of_features = model.dictionary == "features"
    return PursuitSpec(
        name=type(model).__name__,
        accepts=model._accepts,
        kind="features" if of_features else kind_of(kernels[0]["kernel"]),
        kernels=kernels,
        graphs=model._graphs(),
        settings=PursuitSettings(int(n_basis), of_features, bool(model.backfit)),
    )
