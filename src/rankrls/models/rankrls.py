"""RankRLS: pairwise regularized least squares, primal, dual, and on a basis of few items."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Self

from sklearn.utils.metaestimators import available_if

from rankrls._comparisons import Features
from rankrls._errors import InputError
from rankrls._queries import in_words
from rankrls._typing import ExactFoldsLike, IdsLike, ItemsLike, LabelsLike, RandomState, VectorLike
from rankrls.io import Dataset
from rankrls.models.incremental import UpdateState, updated
from rankrls.models.intake import labelled_items
from rankrls.models.parameters import (
    BASIS,
    GRAPH,
    GRAPHS,
    KERNEL,
    SELECTION,
    SOLVERS,
    Grid,
    KernelLike,
    Positive,
    Scoring,
    Several,
    descending_grid,
    number,
    word,
)
from rankrls.models.ranker import Chooses, Fits, KernelGraphEstimator
from rankrls.models.spec import Accepts, LeastSquaresSpec
from rankrls.selection.basis import BasisSpec
from rankrls.streaming import StreamedItems, streamed_plan

ALPHA = {"alpha": number(least=0.0)}


def _adds_batches(model: ExactRanker) -> bool:
    return model._can_update()


class ExactRanker(KernelGraphEstimator, Fits):
    """Estimator fitted to labels, clicks or preferences, to streamed data, and to later batches, for one alpha."""

    _accepts = Accepts(devices=True)

    alpha_: float

    # With metadata routing enabled, qid reaches partial_fit without a request.
    __metadata_request__partial_fit = {"qid": True}  # noqa: RUF012

    def _spec(self) -> LeastSquaresSpec:
        raise NotImplementedError

    def _can_update(self) -> bool:
        """Whether the normal equations of batches can be added."""
        raise NotImplementedError

    def fit_dataset(self, data: Dataset, *, executor: Executor | None = None) -> Self:  # type: ignore[override]
        """Fit to data larger than memory in one pass: the same model as :meth:`fit` on all rows, up to rounding.

        Parameters
        ----------
        data : Dataset
            Data as returned by :func:`rankrls.io.open_dataset`: parts of whole queries.
        executor : concurrent.futures.Executor or dask.distributed.Client, optional
            Executor that reads and processes parts; threads of this machine by default. Workers read the files
            themselves.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If input is invalid, with the row number in the dataset, or if parameters need all rows in memory.

        Notes
        -----
        O(m n^2 + n^3); two passes for a basis of n items, which is random. Memory is O(n^2) and a few parts per worker,
        for any number of rows. Results of parts are added in part order, so the same parts give the same bits on any
        executor, on identical hardware. ``partial_fit`` cannot continue the model.
        """
        spec = self._spec()
        check_streams(spec)
        return self._set_fitted(spec.fit(StreamedItems.of(data, executor)))

    @available_if(_adds_batches)
    def partial_fit(
        self, X: ItemsLike, y: LabelsLike, *, qid: IdsLike | None = None, sample_weight: VectorLike | None = None
    ) -> Self:
        """Add whole queries: the model equals that of one fit to all rows so far.

        The first call fits like :meth:`fit`, and also stores the normal equations, n x n numbers, and the query ids, to
        which later calls add; :meth:`fit` stores none. RankRLS has this method for ``kernel="linear"`` unless
        ``solver="dual"``, and SparseRankRLS unless the kernel is precomputed.

        Parameters
        ----------
        X, y, sample_weight : as for :meth:`fit`
        qid : array-like of shape (m,)
            Query ids, all of them new. Without qid, each batch is its own ranking: items of different batches are not
            compared. The basis is selected from the first batch.

        Notes
        -----
        O(m n^2 + n^3) per batch of m rows, with n coefficients.
        """
        spec = self._spec()
        known = vars(self)
        state: UpdateState | None = known.get("_update_state_")
        if state is None and self.__sklearn_is_fitted__():
            raise InputError(
                "partial_fit continues only a model that partial_fit began, because fit stores no equations. "
                "Call partial_fit for the first queries too: it fits the same model as fit."
            )
        seen = None if state is None else Features(known.get("n_features_in_"), known.get("feature_names_in_"))
        data = labelled_items(spec, X, y, qid, sample_weight, comparable=False, seen=seen)
        return self._set_fitted(updated(spec, data, state, known.get("X_fit_")))


class ExactChooser(KernelGraphEstimator, Chooses):
    """Estimator that selects a model by held-out scores that need no refits."""

    _accepts = Accepts(devices=True)

    alpha_: float
    alpha_at_edge_: bool

    def _spec(self) -> LeastSquaresSpec:
        raise NotImplementedError

    def fit_dataset(  # type: ignore[override]
        self, data: Dataset, *, validation: Dataset | None = None, executor: Executor | None = None
    ) -> Self:
        """Select and fit on data larger than memory: the same selection and model as :meth:`fit`, up to rounding.

        Parameters
        ----------
        data, executor : as in :meth:`RankRLS.fit_dataset`
        validation : Dataset, optional
            Other data used for selection. By default, each query is held out (``cv=None``).

        Returns
        -------
        self

        Notes
        -----
        One pass over the data computes the normal equations of every graph, and one pass per graph evaluates the exact
        held-out scores of each query for all alphas. One value is stored per query and alpha; ``held_out_scores_`` is
        None.
        """
        spec = self._spec()
        check_streams(spec)
        items = StreamedItems.of(data, executor)
        fitted = spec.fit(items, streamed_plan(spec.required_measure, validation, executor))
        description = f"leave-query-out over {in_words(items.n_queries)}"
        if validation is not None:
            description = f"validation data with {in_words(validation.n_queries)}"
        return self._set_fitted(replace(fitted, attributes={**fitted.attributes, "selection_": description}))


def check_streams(spec: LeastSquaresSpec) -> None:
    """Refuse parameters that need all rows at once, before anything is read."""
    names = [each["kernel"] for each in spec.kernels]
    needs_all = {
        "kernel": names != ["linear"] if spec.basis is None else "precomputed" in names,
        "basis_indices": spec.basis is not None and spec.basis.indices is not None,
        "solver": spec.solver == "dual",
        "positive": spec.measure is not None and spec.signed,
        "cv": spec.cv is not None,
    }
    for name, refused in needs_all.items():
        if refused:
            raise InputError(
                f"{spec.name}.fit_dataset cannot use this value of {name}: it needs all rows in memory.", parameter=name
            )


class RankRLS(ExactRanker):
    r"""Learning to rank by pairwise regularized least squares.

    Minimizes, over all functions f of the kernel's space,

    .. math::

        \tfrac12 \sum_{ij} W_{ij} ( (y_i - y_j) - (f(x_i) - f(x_j)) )^2 + \alpha \lVert f \rVert^2
        = \lVert F (y - f(X)) \rVert^2 + \alpha \lVert f \rVert^2 ,

    where ``W`` compares the items of a query and ``F'F = D - W`` is the Laplacian of the graph. Neither is formed.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularization parameter, the papers' lambda, without a factor 1/m. 0 is the limit from above: the solution of
        minimum norm.
    kernel : str or callable, default="linear"
        Name of a kernel: "linear", "rbf", "laplacian", "polynomial", "sigmoid" or another of :doc:`/guide/kernels`, or
        "precomputed". A callable accepts two rows of X, or two objects of any kind if X is a sequence of objects, and
        returns a number.
    gamma : float, optional
        Factor in every named kernel except the linear one. 1 / number of features by default.
    degree : int, default=3
        Degree of the polynomial kernel, and of others with a degree.
    coef0 : float, default=1.0
        Constant in the polynomial and sigmoid kernels, and in others with a constant.
    ties : {"include", "exclude"}, default="include"
        Whether pairs of items with equal labels (``==`` in float64) are compared, so that their scores become similar.
    balance : {"pairs", "examples", "queries"}, default="examples"
        Units of equal weight: pairs (Pahikkala et al. 2007), examples (Airola et al. 2010), or queries.
    regression_weight : float in [0, 1], default=0.0
        ``beta`` in ``beta ||y - f||^2 + (1 - beta) (pairwise loss)``: 0 ranks, 1 is plain regularized least squares
        without an intercept.
    solver : {"auto", "primal", "dual"}, default="auto"
        Primal solves for one weight per feature, O(m n^2 + n^3); dual for one coefficient per item, O(m^3 + m^2 n).
        "auto" selects the primal for a linear kernel with no more features than items. :class:`CGRankRLS` uses
        conjugate gradients.
    positive : bool, sequence or dict, default=False
        Signs of the features' weights, for a linear kernel in the primal. True makes all weights nonnegative. A
        sequence of feature numbers, or of names if X has them, or a mask of all features makes these nonnegative. A
        dict maps numbers or names to 1 (nonnegative), -1 (nonpositive) or 0 (free). The minimum under the constraints
        is exact; a weight at its bound is exactly 0.

    Attributes
    ----------
    coef_ : ndarray of shape (n,) or (targets, n)
        Weights of the features; linear kernel only.
    dual_coef_ : ndarray of shape (m,) or (m, targets)
        Coefficients of the training items; dual only.
    X_fit_ : ndarray, sparse array or list
        Training items of ``dual_coef_``; for kernels other than linear and precomputed.
    alpha_ : float
    n_queries_ : int
        Number of queries; 1 if no qid was given.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Column names of X, if it has any.

    See Also
    --------
    RankRLSCV : Choose alpha and the other parameters by exact cross-validation.
    SparseRankRLS : Kernels over more than a few thousand items.
    CGRankRLS : Large sparse features.

    Notes
    -----
    Preferences: primal O(p n^2 + n^3) for p preferences, or O(m n^2) if there are more pairs than items; dual
    O(min(p, m)^3).

    There is no intercept: a constant cancels in every difference. A query with a single item, or with
    ``ties="exclude"`` a single label, has no effect. Rows of weight zero are dropped first. Integer weights equal
    repetition of rows, except with ``balance="queries"`` and ties included, where repetition adds compared pairs.

    References
    ----------
    Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski: Learning to rank with pairwise regularized least-squares.
    SIGIR 2007 workshop on learning to rank for information retrieval. Equations (8) and (11).

    Lawson, Hanson: Solving least squares problems. 1974. Chapter 23, for ``positive``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, 1.0], [2.0, 5.0]])
    >>> y = [1, 0, 1, 2, 0]
    >>> qid = ["a", "a", "a", "b", "b"]
    >>> model = RankRLS(alpha=0.1).fit(X, y, qid=qid)
    >>> model.rank(X, qid=qid)
    array([1, 3, 2, 1, 2])
    >>> model.score(X, y, qid=qid)
    1.0
    """

    _checks = ALPHA | KERNEL | GRAPH | {"solver": word(SOLVERS)}

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        kernel: KernelLike = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
        solver: str = "auto",
        positive: Positive = False,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.solver = solver
        self.positive = positive

    def _spec(self) -> LeastSquaresSpec:
        return self._least_squares(solver=self.solver, positive=self.positive).at(self.alpha)

    def _can_update(self) -> bool:
        return self.kernel == "linear" and self.solver != "dual"


class RankRLSCV(ExactChooser):
    r"""RankRLS whose regularization is selected by exact cross-validation, in about the time of one fit.

    Has the same objective as :class:`RankRLS`. One factorization gives the coefficients of every ``alpha`` (Pahikkala
    et al. 2007, section 2.4) and, without refitting, the held-out scores of every query (Pahikkala, Suominen, Boberg,
    Salakoski 2007).

    Parameters
    ----------
    alphas : "auto" or tuple of float, default="auto"
        Regularization values to choose from. "auto" is a geometric grid of 21 relative to the problem's spectrum.
    cv : None, int, "leave_pair_out", splitter or iterable of (train rows, test rows), default=None
        Held-out units:

        - None: each query, exactly. For one global ranking, each pair of rows, exactly, up to 5000 items, if the
          measure is over pairs and the graph allows it; otherwise 5 folds of rows.
        - An int: a number of folds of whole queries, exactly, drawn in the order of their ids, so that row order does
          not matter. For one global ranking, folds of rows, by refits, drawn by row number.
        - "leave_pair_out": each pair of rows of one query (or of the one ranking), exactly, for any number of items.
          ``cv_results_`` then contains confidence intervals. ``scoring`` must be a measure of pairs ("disagreement",
          "pair_accuracy").
        - A splitter, or an iterable of row numbers: these folds. If they do not hold out whole queries, each is
          refitted, with one factorization.

        For preferences, they depend on what will be new (:ref:`new`), and an int is a number of folds of these.
        "leave_pair_out" holds out the two items of each preference, and all other preferences of these items: O(m n)
        per preference, alpha and step of conjugate gradients, and m x m memory.
    scoring : str, Measure or callable, default="disagreement"
        Measure used for selection; see :func:`rankrls.metrics.resolve_measure`.
    rule : {"best", "one_se"}, default="best"
        Selection rule; "one_se" selects the largest alpha whose measure is within one standard error of the best.
    kernel, gamma, degree, coef0, ties, balance : as in :class:`RankRLS`, or a tuple of values to choose from
    regression_weight, solver, positive : as in :class:`RankRLS`
        With constraints on signs, the held-out scores are also exact: the constrained problem is solved again without
        each query, O(n^3) per query and alpha. Leave-pair-out is then impossible, so one global ranking uses 5 folds of
        rows.

    Attributes
    ----------
    alpha_ : float
    best_params_ : dict
        Selected alpha, ties, balance and parameters of the kernel.
    best_score_, best_score_error_ : float
        Held-out measure of the selected model, and its standard error.
    optimism_ : float
        Estimate of the selection bias of ``best_score_``: the selection is repeated on queries (groups, items)
        drawn with replacement, and evaluated on those not drawn (Tsamardinos et al. 2018). The estimate is multiplied
        by 1.15, which fits data without signal, where held-out queries share what they teach each other's models; with
        signal, it is conservative. NaN for fewer than three queries.
    best_index_ : int
        Row of ``cv_results_``.
    cv_results_ : dict of ndarray
        One entry per combination and alpha: the parameters, ``mean_score``, ``standard_error``; if pairs or folds of
        items were held out, also the bounds of a 95 % interval, ``low`` and ``high``.
    alpha_at_edge_ : bool
        Whether the selected alpha is the smallest or largest of a grid of three or more, and better than the next one.
        If so, use a wider grid.
    gamma_at_edge_, degree_at_edge_, coef0_at_edge_ : bool
        The same for each parameter of the selected kernel that has several values to choose from.
    selection_ : str
        Description of the selection.
    held_out_scores_ : ndarray of shape (m,) or (m, targets), or None
        Score of each training row by the selected model fitted without the row's query; NaN for rows of weight zero.
    query_scores_ : ndarray of shape (q,) or None
        Measure of each query for the selected model; None if items were held out.
    win_slope_ : float
        Slope used by :meth:`predict_win_probability`; set by ``fit_pairs``.
    coef_, dual_coef_, X_fit_, n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankRLS`

    See Also
    --------
    RankRLS : Fit one value of alpha.
    AutoRankRLS : Compare several models and scales of the features.
    SparseRankRLSCV : Kernels over more than a few thousand items.
    rankrls.model_selection.nested_estimate : Evaluate a model together with its choice.

    Notes
    -----
    Primal: O(m n^2 + n^3) for the spectrum, then O(m n^2) for leave-query-out of all alphas together; with a kernel
    O(m^3). The held-out scores of all alphas of a combination are in memory together, O(m alphas). If measures are
    equal, the largest alpha is selected, then the first combination.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> qid = np.repeat(np.arange(12), 5)
    >>> y = X @ [2.0, 1.0, 0.0, 0.0] + rng.normal(size=60) + 100 * qid
    >>> model = RankRLSCV().fit(X, y, qid=qid)
    >>> model.selection_
    'leave-query-out over 12 queries'
    >>> round(model.best_score_, 2), model.held_out_scores_.shape
    (0.13, (60,))
    """

    _checks = GRAPHS | SELECTION | {"solver": word(SOLVERS)}

    def __init__(
        self,
        alphas: Grid = "auto",
        *,
        kernel: Several[KernelLike] = "linear",
        gamma: Several[float | None] = None,
        degree: Several[int] = 3,
        coef0: Several[float] = 1.0,
        ties: Several[str] = "include",
        balance: Several[str] = "examples",
        regression_weight: float = 0.0,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        cv: ExactFoldsLike = None,
        solver: str = "auto",
        positive: Positive = False,
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.scoring = scoring
        self.rule = rule
        self.cv = cv
        self.solver = solver
        self.positive = positive

    def _spec(self) -> LeastSquaresSpec:
        spec = self._least_squares(solver=self.solver, positive=self.positive)
        return spec.choosing(descending_grid(self.alphas), self.scoring, self.rule, self.cv)


class SparseRankRLS(ExactRanker):
    r"""RankRLS whose function is an expansion over a basis of r items, fitted to all m items.

    Minimizes, over the functions :math:`f(x) = \sum_{j \in R} a_j k(x, z_j)`,

    .. math::

        \lVert F (y - K_{MR} a) \rVert^2 + \alpha \, a' K_{RR} a , \qquad
        a = ( K_{RM} L K_{MR} + \alpha K_{RR} )^{-1} K_{RM} L y ,

    where ``F'F = L`` is the Laplacian of the preference graph (Tsivtsivadze et al. 2008, equation 8). O(m r^2) time;
    the m x r kernel values are evaluated in blocks and never stored.

    Parameters
    ----------
    alpha : float, default=1.0
        Regularization parameter, the papers' lambda. 0 is the limit from above.
    n_basis : int, default=500
        Number of items in the basis, drawn at random; all rows if there are fewer.
    basis_indices : sequence of int, optional
        Row numbers in X of the basis, instead of ``n_basis`` random ones. Duplicates are allowed.
    kernel : str or callable, default="rbf"
        Kernel as in :class:`RankRLS`; it must be positive semidefinite on the basis.
    gamma, degree, coef0, ties, balance, regression_weight : as in :class:`RankRLS`
        ``regression_weight=1.0`` is sparse regularized least squares.
    random_state : int, Generator or RandomState, default=0
        Seed of the basis. Items are drawn by row number, so the basis depends on row order.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (r,) or (r, targets)
        Coefficients of the basis items.
    X_fit_ : ndarray, sparse array or list of r items
        Items of the basis; not for a precomputed kernel.
    basis_indices_ : ndarray of shape (r,)
        Row numbers in X of the basis.
    coef_ : ndarray of shape (n,) or (targets, n)
        Weights of the features; linear kernel only.
    alpha_ : float
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    SparseRankRLSCV : Choose alpha, kernels and graphs.
    RankRLS : The exact model, for up to a few thousand items.
    RankingPursuit : Select the basis using the labels.

    Notes
    -----
    Equal to :class:`RankRLS` if every row is in the basis, and always to RankRLS with the kernel :math:`k_R(x)'
    K_{RR}^{-1} k_R(x')`. Memory in addition to the data is O(r^2) and a block of a few thousand rows per thread. A
    singular ``K_RR`` (duplicate basis items, a wide Gaussian) is reduced to the functions that are resolved in floating
    point.

    O(m r n) for the kernel, O(m r^2) for its product, O(r^3) for the rest. With preferences, the basis is drawn from
    all items of X: O(p r^2) for p preferences, O(m r^2) if they are many more than items.

    A query with one item has no effect, but its row may be in the basis.

    References
    ----------
    Tsivtsivadze, Pahikkala, Airola, Boberg, Salakoski: A sparse regularized least-squares preference learning
    algorithm. SCAI 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import SparseRankRLS
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(3000, 2)), np.repeat(np.arange(300), 10)
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=3000)
    >>> model = SparseRankRLS(alpha=0.1, n_basis=100).fit(X, y, qid=qid)
    >>> model.dual_coef_.shape, model.score(X, y, qid=qid) > 0.9
    ((100,), True)
    """

    _checks = ALPHA | KERNEL | BASIS | GRAPH

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        n_basis: int = 500,
        basis_indices: Sequence[int] | None = None,
        kernel: KernelLike = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        ties: str = "include",
        balance: str = "examples",
        regression_weight: float = 0.0,
        random_state: RandomState = 0,
    ) -> None:
        self.alpha = alpha
        self.n_basis = n_basis
        self.basis_indices = basis_indices
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.random_state = random_state

    def _spec(self) -> LeastSquaresSpec:
        basis = BasisSpec(self.n_basis, self.basis_indices, self.random_state)
        return self._least_squares(basis=basis).at(self.alpha)

    def _can_update(self) -> bool:
        return self.kernel != "precomputed"


class SparseRankRLSCV(ExactChooser):
    r"""SparseRankRLS with regularization and kernel selected by exact cross-validation.

    Has the same objective as :class:`SparseRankRLS`. For each kernel, one pass over the data and one decomposition give
    the coefficients for every ``alpha`` (Tsivtsivadze et al. 2008, section 4.1) and, without refitting, the held-out
    scores of every query.

    Parameters
    ----------
    alphas, cv, scoring, rule : as in :class:`RankRLSCV`
    n_basis, basis_indices, random_state : as in :class:`SparseRankRLS`
    kernel, gamma, degree, coef0, ties, balance : as in :class:`SparseRankRLS`, or a tuple of values to choose from
    regression_weight : as in :class:`SparseRankRLS`

    Attributes
    ----------
    alpha_, best_params_, best_score_, best_score_error_, optimism_, best_index_, cv_results_, alpha_at_edge_,
    gamma_at_edge_, degree_at_edge_, coef0_at_edge_, selection_, held_out_scores_, query_scores_ : as in
        :class:`RankRLSCV`
    dual_coef_, X_fit_, basis_indices_, coef_, n_queries_, n_features_in_, feature_names_in_ : as in
        :class:`SparseRankRLS`

    See Also
    --------
    SparseRankRLS : Fit one value of alpha.
    RankRLSCV : The exact model, for up to a few thousand items.

    Notes
    -----
    O(m r^2 + r^3) per kernel and graph, and about as much again for leave-query-out of all alphas together. The basis
    is selected once, from all rows. Held-out queries may contribute items to it, but not labels.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import SparseRankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(2000, 2)), np.repeat(np.arange(200), 10)
    >>> y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=2000)
    >>> model = SparseRankRLSCV(n_basis=60, gamma=(0.1, 1.0, 10.0)).fit(X, y, qid=qid)
    >>> model.selection_, model.best_params_["gamma"], round(model.best_score_, 2)
    ('leave-query-out over 200 queries', 1.0, 0.06)
    """

    _checks = BASIS | GRAPHS | SELECTION

    def __init__(
        self,
        alphas: Grid = "auto",
        *,
        n_basis: int = 500,
        basis_indices: Sequence[int] | None = None,
        kernel: Several[KernelLike] = "rbf",
        gamma: Several[float | None] = None,
        degree: Several[int] = 3,
        coef0: Several[float] = 1.0,
        ties: Several[str] = "include",
        balance: Several[str] = "examples",
        regression_weight: float = 0.0,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        cv: ExactFoldsLike = None,
        random_state: RandomState = 0,
    ) -> None:
        self.alphas = alphas
        self.n_basis = n_basis
        self.basis_indices = basis_indices
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.scoring = scoring
        self.rule = rule
        self.cv = cv
        self.random_state = random_state

    def _spec(self) -> LeastSquaresSpec:
        basis = BasisSpec(self.n_basis, self.basis_indices, self.random_state)
        grid = descending_grid(self.alphas)
        return self._least_squares(basis=basis).choosing(grid, self.scoring, self.rule, self.cv)
