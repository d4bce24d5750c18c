"""RankSVM: the squared hinge of ordered pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rankrls._comparisons import Data, GraphSetting
from rankrls._errors import InputError
from rankrls._typing import FoldsLike, RandomState
from rankrls.learners.paths import PathSolutions
from rankrls.learners.ranksvm import Minimum, RankSVMCandidate
from rankrls.models.fitted import Fitted, NotConverged
from rankrls.models.parameters import (
    BALANCES,
    BASIS,
    KERNEL,
    SELECTION,
    Check,
    Grid,
    KernelLike,
    Scoring,
    Several,
    count,
    descending_grid,
    each_of,
    number,
    options,
    word,
)
from rankrls.models.ranker import Chooses, Fits, KernelEstimator
from rankrls.models.spec import Accepts, KernelSettings, SearchSpec, Solved, kernels_for, kind_of
from rankrls.selection.basis import BasisSpec, basis_numbers, make_basis

MOST_EXACT = 5000
"""Largest number of items whose kernel matrix is decomposed by default."""


_ACCEPTS = Accepts(several_targets=False, clicks=False)
_CHECKS: dict[str, Check] = BASIS | {
    "n_basis": number(least=1, whole=True, none=True),
    "tol": number(above=0.0, below=1.0),
    "max_iter": count,
}


@dataclass(frozen=True, eq=False, kw_only=True)
class RankSVMSpec(SearchSpec[PathSolutions[Minimum]]):
    """All kernels and balances; candidates with the same kernel share its basis."""

    kernels: KernelSettings
    balance: Several[str]
    basis: BasisSpec
    tol: float
    max_iter: int

    def candidates(self, data: Data) -> Iterator[RankSVMCandidate]:
        balances = options(self.balance, "balance")
        settings = data.settings([(GraphSetting("exclude", balance), {"balance": balance}) for balance in balances])
        numbers = None
        for kernel, choices in kernels_for(self.kernels, data.X):
            basis = None
            if not kernel.is_linear:
                if self.basis.n_basis is None and self.basis.indices is None and data.n_rows > MOST_EXACT:
                    m = data.n_rows
                    message = f"A kernel needs {m} x {m} numbers. Set n_basis; n_basis={m} uses all items."
                    raise InputError(message, parameter="n_basis")
                numbers = basis_numbers(self.basis, data) if numbers is None else numbers
                basis = make_basis(data, kernel, numbers)
            for setting, chosen in settings:
                yield RankSVMCandidate(
                    kernel=kernel,
                    choices={**choices, **chosen},
                    balance=setting.balance,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    basis=basis,
                )

    def fitted(self, data: Data, solved: Solved[PathSolutions[Minimum]]) -> Fitted:
        (minimum,) = solved.solutions.details
        support = data.given_numbers(np.flatnonzero(minimum.degree > 0.0))
        fitted = Fitted.of(
            data,
            solved.solutions[0],
            solved.candidate.kernel,
            solved.candidate.basis,
            support_=support,
            n_support_=len(support),
            n_iter_=minimum.n_iter,
            objective_=minimum.value,
            dual_gap_=minimum.gap,
        )
        return fitted if minimum.status == "converged" else fitted.with_warnings(self._not_converged(minimum))

    def _not_converged(self, minimum: Minimum) -> NotConverged:
        """Warning that a solution is not the minimum."""
        why = "rounding leaves no better step"
        if minimum.status == "max_iter":
            why = f"max_iter={self.max_iter} Newton steps were taken"
        return NotConverged(
            f"{self.name} stopped before tol={self.tol:g} was reached: {why}. The objective is within "
            f"{minimum.gap / minimum.value:.2g} of the minimum, relatively. Scale the features, lower C, or raise "
            "max_iter or tol.",
            parameter="tol",
        )


class RankSVM(KernelEstimator, Fits):
    r"""Learning to rank by the squared hinge loss of ordered pairs.

    Minimizes, over all functions f of the kernel's space,

    .. math::

        \tfrac12 \lVert f \rVert^2 + C \sum_q \rho_q \sum_{y_i > y_j} w_i w_j \,
        \max(0, 1 - (f(x_i) - f(x_j)))^2 ,

    where the inner sum is over the pairs of query q with different labels. The loss is not divided by the number of
    pairs; C corresponds to :math:`1 / (2 \alpha)` in :class:`RankRLS`. Pairs are counted but not listed.

    Parameters
    ----------
    C : float, default=1.0
        Positive weight of the loss.
    kernel : str or callable, default="linear"
        Kernel as in :class:`RankRLS`; it must be positive semidefinite.
    gamma, degree, coef0 : as in :class:`RankRLS`
    balance : {"pairs", "examples", "queries"}, default="examples"
        Units of equal weight: pairs (:math:`\rho_q = 1`), examples (1 / the weight of the query's items), or queries
        (1 / the weight of the query's pairs).
    n_basis : int, optional
        Number of items that a kernel machine expands over (Kuo, Lee, Lin 2014): O(m r) memory for r items. None uses
        all, up to 5000 items.
    basis_indices : sequence of int, optional
        Row numbers in X of the basis, instead of random ones.
    tol : float, default=1e-6
        Relative tolerance: the search ends when the duality gap is at most this share of the objective.
    max_iter : int, default=100
        Maximum number of Newton steps.
    random_state : int, Generator or RandomState, default=0
        Seed of the basis. Items are drawn by row number, so the basis depends on row order.

    Attributes
    ----------
    coef_ : ndarray of shape (n,)
        Weights of the features; linear kernel only.
    dual_coef_ : ndarray of shape (r,)
        Coefficients of the basis items; other kernels.
    X_fit_ : ndarray, sparse array or list of r items
        Items of the basis; not for linear or precomputed kernels.
    basis_indices_ : ndarray of shape (r,)
        Row numbers in X of the basis.
    support_ : ndarray of int
        Rows in a pair with nonzero loss. The other rows could be left out without changing the solution.
    n_support_ : int
    objective_, dual_gap_ : float
        Value of the objective, and an upper bound on its distance to the minimum.
    n_iter_ : int
        Number of Newton steps.
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    RankSVMCV : Choose C and the kernel.
    RankRLS : The squared loss, with exact hold-out.

    Notes
    -----
    Uses truncated Newton steps; a value, a gradient or a product with the Hessian costs two products with X and
    O(m log m), independently of the number of pairs and of distinct labels. Joachims' RankSVM uses the hinge itself,
    :math:`\max(0, 1 - \Delta)`; its square is smooth.

    For up to 1024 features, O(m n^2 + n^3) once saves most products. ``fit_pairs`` minimizes :math:`\tfrac12 \|f\|^2 +
    C \sum_e c_e \max(0, s_e - (f_{i_e} - f_{j_e}))^2`, where ``strength`` is the required margin. With strength 0, the
    winner only must not have the lower score; a tie is two such preferences, one in each direction.

    Items with equal labels (``==`` in float64) form no pair. A query with one item or one label has no effect. Rows of
    weight zero are dropped first; integer weights equal repetition of rows.

    References
    ----------
    Joachims: Optimizing search engines using clickthrough data. KDD 2002.

    Airola, Pahikkala, Salakoski: Training linear ranking SVMs in linearithmic time using red-black trees. Pattern
    Recognition Letters 32, 2011.

    Chapelle, Keerthi: Efficient algorithms for ranking with SVMs. Information Retrieval 13, 2010.

    Lee, Lin: Large-scale linear RankSVM. Neural Computation 26, 2014.

    Kuo, Lee, Lin: Large-scale kernel RankSVM. SDM 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankSVM
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [3.0, 1.0], [2.0, 5.0]])
    >>> y = [1, 0, 1, 2, 0]
    >>> qid = ["a", "a", "a", "b", "b"]
    >>> model = RankSVM(C=10.0).fit(X, y, qid=qid)
    >>> model.rank(X, qid=qid)
    array([1, 3, 2, 1, 2])
    >>> model.score(X, y, qid=qid)
    1.0
    """

    _accepts = _ACCEPTS
    _checks = _CHECKS | KERNEL | {"C": number(above=0.0), "balance": word(BALANCES)}

    C_: float

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: KernelLike = "linear",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        n_basis: int | None = None,
        basis_indices: Sequence[int] | None = None,
        balance: str = "examples",
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: RandomState = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_basis = n_basis
        self.basis_indices = basis_indices
        self.balance = balance
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _spec(self) -> RankSVMSpec:
        return _spec_of(self).at(self.C)


class RankSVMCV(KernelEstimator, Chooses):
    r"""RankSVM with C, balance and kernel selected by held-out queries.

    Has the same objective as :class:`RankSVM`. There is no hold-out shortcut as for squared errors: each fold is
    refitted along a path of increasing C, where each minimum is the start of the next search.

    Parameters
    ----------
    Cs : "auto" or tuple of float, default="auto"
        Values of C to choose from. "auto" is a geometric grid of 15, from where the model is a constant direction up by
        seven decades.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        Held-out units. None is 5 folds of whole queries (of rows for one global ranking, of what will be new for
        preferences); otherwise as in :class:`RankRLSCV`, by refits.
    scoring, rule : as in :class:`RankRLSCV`
        The rule "one_se" selects the smallest C within one standard error of the best.
    tol, max_iter, n_basis, basis_indices, random_state : as in :class:`RankSVM`
    kernel, gamma, degree, coef0, balance : as in :class:`RankSVM`, or a tuple of values to choose from

    Attributes
    ----------
    C_ : float
    C_at_edge_ : bool
        Whether the selected C is the smallest or largest of a grid of three or more, and better than the next one. If
        so, use a wider grid.
    gamma_at_edge_, degree_at_edge_, coef0_at_edge_ : bool
        The same for each parameter of the selected kernel that has several values to choose from.
    best_params_ : dict
        C, balance and the kernel's parameters.
    best_score_, best_score_error_, best_index_, cv_results_, selection_, held_out_scores_, query_scores_ : as in
        :class:`RankRLSCV`
    coef_, dual_coef_, X_fit_, basis_indices_, support_, n_support_, objective_, dual_gap_, n_iter_, n_queries_,
    n_features_in_, feature_names_in_ : as in :class:`RankSVM`

    See Also
    --------
    RankSVM : Fit one value of C.
    RankRLSCV : The squared loss, with exact hold-out.

    Notes
    -----
    If measures are equal, the smallest C is selected, then the first combination. The basis of a kernel is selected
    once, from all rows. Held-out queries may contribute items to it, but not labels.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankSVMCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> qid = np.repeat(np.arange(12), 5)
    >>> y = X @ [2.0, 1.0, 0.0, 0.0] + rng.normal(size=60) + 100 * qid
    >>> model = RankSVMCV().fit(X, y, qid=qid)
    >>> model.selection_, model.held_out_scores_.shape
    ('5 folds of 12 queries', (60,))
    """

    _accepts = _ACCEPTS
    _checks = _CHECKS | SELECTION | {"balance": each_of(word(BALANCES))}

    C_: float
    C_at_edge_: bool

    def __init__(
        self,
        Cs: Grid = "auto",
        *,
        kernel: Several[KernelLike] = "linear",
        gamma: Several[float | None] = None,
        degree: Several[int] = 3,
        coef0: Several[float] = 1.0,
        n_basis: int | None = None,
        basis_indices: Sequence[int] | None = None,
        balance: Several[str] = "examples",
        tol: float = 1e-6,
        max_iter: int = 100,
        scoring: Scoring = "disagreement",
        rule: str = "best",
        cv: FoldsLike = None,
        random_state: RandomState = 0,
    ) -> None:
        self.Cs = Cs
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_basis = n_basis
        self.basis_indices = basis_indices
        self.balance = balance
        self.tol = tol
        self.max_iter = max_iter
        self.scoring = scoring
        self.rule = rule
        self.cv = cv
        self.random_state = random_state

    def _spec(self) -> RankSVMSpec:
        spec = _spec_of(self)
        Cs = descending_grid(self.Cs, "Cs", positive=True)
        return spec.choosing(None if Cs is None else Cs[::-1], self.scoring, self.rule, self.cv)


def _spec_of(model: RankSVM | RankSVMCV) -> RankSVMSpec:
    """Specification from the parameters that both classes have."""
    kernels = model._kernels()
    return RankSVMSpec(
        name=type(model).__name__,
        accepts=model._accepts,
        kind=kind_of(kernels[0]["kernel"]),
        kernels=kernels,
        balance=model.balance,
        basis=BasisSpec(model.n_basis, model.basis_indices, model.random_state),
        tol=float(model.tol),
        max_iter=int(model.max_iter),
    )
