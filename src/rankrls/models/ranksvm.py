"""RankSVM: the squared hinge of ordered pairs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Self

import numpy as np

from rankrls._comparisons import Comparisons, Setting
from rankrls._errors import InputError
from rankrls.kernels import Kernel
from rankrls.learners.ranksvm import Minimum
from rankrls.learners.ranksvm_problem import RankSVMProblem
from rankrls.metrics import resolve_measure
from rankrls.models import fitting
from rankrls.models.basis import make_basis
from rankrls.models.inputs.parameters import (
    BALANCES,
    KernelParameters,
    check_grid,
    check_parameters,
    choice,
    estimator,
    number,
    options,
    parameter,
)
from rankrls.models.ranker import NotConverged, Ranker
from rankrls.numerics.basis import Basis
from rankrls.numerics.scorer import Scorer
from rankrls.selection.folds import few_folds, few_preference_folds
from rankrls.selection.rules import RULES
from rankrls.selection.search import search

__all__ = ["RankSVM", "RankSVMCV"]

MOST_EXACT = 5000
"""Items whose kernel matrix is decomposed without being asked for."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RankSVMCandidate:
    """Features, or a basis of items, and what counts the same."""

    kernel: Kernel
    balance: str
    tol: float
    max_iter: int
    basis: Callable[[], Basis] | None = None
    choices: dict[str, Any] = field(default_factory=dict)
    square = False

    def problem(self, data: Comparisons) -> RankSVMProblem:
        """The problem of some data."""
        basis = None if self.basis is None else self.basis()
        return RankSVMProblem(data, self.balance, tol=self.tol, max_iter=self.max_iter, basis=basis)


@estimator
class RankSVMParameters(KernelParameters):
    """What both forms of RankSVM have."""

    balance: Any = parameter(default="examples", check=choice(*BALANCES), several=True)
    n_basis: Any = parameter(default=None, check=number(least=1, whole=True, none=True))
    basis: str = parameter(default="random", check=choice("random", "kmeans"))
    basis_indices: Any = parameter(default=None)
    tol: float = parameter(default=1e-6, check=number(above=0.0, below=1.0))
    max_iter: int = parameter(default=100, check=number(least=1, whole=True))
    random_state: Any = parameter(default=0)


def _candidates(model: Any, data: Comparisons) -> Iterator[RankSVMCandidate]:
    """Every kernel with every balance; those of one kernel share its basis."""
    for kernel, chosen in fitting.kernels_of(model, data.X):
        basis = None
        if not kernel.is_linear:
            _check_size(model, data.n_rows)
            basis = cache(partial(make_basis, model, data, kernel, Setting("exclude")))
        for balance in options(model.balance, "balance") if hasattr(data, "Y") else ("examples",):
            balances = {"balance": balance} if hasattr(data, "Y") else {}
            yield RankSVMCandidate(
                kernel=kernel,
                balance=balance,
                tol=float(model.tol),
                max_iter=int(model.max_iter),
                basis=basis,
                choices={**chosen, **balances},
            )


def _check_size(model: Any, m: int) -> None:
    if model.n_basis is None and model.basis_indices is None and m > MOST_EXACT:
        raise InputError(
            f"An exact kernel machine on {m} items needs a matrix of {m} x {m}. Give the number of items to "
            "expand over (n_basis), or as many as there are to have it all the same.",
            parameter="n_basis",
        )


def _keep(model: Any, data: Comparisons, candidate: RankSVMCandidate, function: Scorer, minimum: Minimum) -> None:
    """Store the function and how it was found; warn if it is not the minimum."""
    fitting.keep(model, function.over(data.kept), candidate.kernel)
    if candidate.basis is not None:
        numbers = candidate.basis().numbers
        model.basis_indices_ = None if numbers is None else data.given_numbers(numbers)
    model.support_ = data.given_numbers(np.flatnonzero(minimum.degree > 0.0))
    model.n_support_ = len(model.support_)
    model.n_iter_, model.objective_, model.dual_gap_ = minimum.n_iter, minimum.value, minimum.gap
    if minimum.status != "converged":
        why = f"max_iter={model.max_iter} Newton steps were taken"
        why = why if minimum.status == "max_iter" else "rounding leaves no better step"
        warnings.warn(
            NotConverged(
                f"{type(model).__name__} stopped before tol={model.tol:g} was reached: {why}. The objective is within "
                f"{minimum.gap / minimum.value:.2g} of the minimum, relatively. Scale the features, lower C, or raise "
                "max_iter or tol.",
                parameter="tol",
            ),
            stacklevel=4,
        )


@estimator
class RankSVM(Ranker, RankSVMParameters):
    r"""Learning to rank by the squared hinge of ordered pairs.

    Minimises, over all functions f of the kernel's space,

    .. math::

        \tfrac12 \lVert f \rVert^2 + C \sum_q \rho_q \sum_{y_i > y_j} w_i w_j \,
        \max(0, 1 - (f(x_i) - f(x_j)))^2 ,

    the inner sum over the pairs of query q with different labels. Nothing is divided by the number of pairs; C stands
    where :math:`1 / (2 \alpha)` does in :class:`RankRLS`. Pairs are counted, never listed.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    kernel : str or callable, default="linear"
        As in :class:`RankRLS`; it must be positive semidefinite.
    gamma, degree, coef0, kernel_params : as in :class:`RankRLS`
    balance : {"pairs", "examples", "queries"}, default="examples"
        What counts the same: each pair (:math:`\rho_q = 1`), each example (1 / the weight of the query's items), or
        each query (1 / the weight of its pairs).
    n_basis : int, optional
        Items that a kernel machine expands over (Kuo, Lee, Lin 2014): O(m r) memory for r of them. None takes all, up
        to 5000 items.
    basis : {"random", "kmeans"}, default="random"
        How they are chosen.
    basis_indices : sequence of int, optional
        Row numbers of X to be the basis instead.
    tol : float, default=1e-6
        The objective ends within this share of its minimum, by the duality gap.
    max_iter : int, default=100
        Newton steps.
    random_state : int, Generator or RandomState, default=0
        For choosing the basis.

    Attributes
    ----------
    coef_ : ndarray of shape (n,)
        Weights of the features; linear kernel only.
    dual_coef_ : ndarray of shape (r,)
        Coefficients of the basis items; other kernels.
    X_fit_ : ndarray, sparse array or list of r items
        The basis; not for linear or precomputed kernels.
    basis_indices_ : ndarray of shape (r,) or None
        Its row numbers in X.
    support_ : ndarray of int
        Rows in a pair with loss: the others could be left out without changing the solution.
    n_support_ : int
    objective_, dual_gap_ : float
        The objective's value, and by how much it may exceed the minimum.
    n_iter_ : int
        Newton steps.
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Truncated Newton steps; a value, a gradient or a product with the Hessian costs two products with X and O(m log m),
    whatever the number of pairs and of distinct labels. Joachims' RankSVM has the hinge itself,
    :math:`\max(0, 1 - \Delta)`; its square is smooth.

    Up to 1024 features O(m n^2 + n^3) once saves most products. ``fit_pairs`` minimises
    :math:`\tfrac12 \|f\|^2 + C \sum_e c_e \max(0, s_e - (f_{i_e} - f_{j_e}))^2`, whose ``strength`` is the margin
    that is asked for: 0 asks only that it is not behind, and a tie is two such preferences, one each way.

    Items with equal labels (``==`` in float64) are no pair. A query of one item or one label contributes nothing. Rows
    of weight zero are dropped first; integer weights equal repetition of rows.

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

    _single_target = True

    C: float = parameter(default=1.0, check=number(above=0.0), kw_only=False)

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Fit items with labels.

        Parameters
        ----------
        X, y, qid, sample_weight : as in :meth:`RankRLS.fit`, with one target

        Returns
        -------
        self
        """
        check_parameters(self)
        return self._solve(fitting.labelled(self, X, y, qid, sample_weight))

    def fit_pairs(self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None) -> Self:
        """Fit preferences, whose strengths are the margins that are asked for.

        Parameters
        ----------
        X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`

        Returns
        -------
        self
        """
        check_parameters(self)
        return self._solve(fitting.preferred(self, X, winners, losers, strength, weight))

    def _solve(self, data: Comparisons) -> Self:
        candidate = next(_candidates(self, data))
        solutions = candidate.problem(data).path(np.array([float(self.C)]))
        fitting.begin(self, data)
        _keep(self, data, candidate, solutions[0], solutions.details[0])
        return self


@estimator
class RankSVMCV(Ranker, RankSVMParameters):
    r"""RankSVM whose C, balance and kernel are chosen by held-out queries.

    Minimises what :class:`RankSVM` minimises. There is no shortcut for hold-out as there is for squared errors: every
    fold is learnt anew, along a path of C from the smallest up in which each minimum starts the search for the next.

    Parameters
    ----------
    Cs : "auto" or tuple of float, default="auto"
        Values to choose from. "auto" is a geometric grid of 15, from where the model is a constant direction up by
        seven decades.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of whole queries (of rows for one global ranking); otherwise as in :class:`RankRLSCV`, by
        refits.
    scoring, rule, verbose : as in :class:`RankRLSCV`
        "one_se" takes the smallest C within one standard error of the best.
    tol, max_iter, kernel_params, n_basis, basis, basis_indices, random_state : as in :class:`RankSVM`
    kernel, gamma, degree, coef0, balance : as in :class:`RankSVM`, or a tuple of values to choose from

    Attributes
    ----------
    C_ : float
    C_at_edge_ : bool
        Whether it is the smallest or largest of a grid of three or more: widen the grid then.
    gamma_at_edge_, degree_at_edge_, coef0_at_edge_ : bool
        Likewise, of each of the chosen kernel's parameters that has several values to choose from.
    best_params_, best_score_, best_score_error_, best_index_, cv_results_, selection_, held_out_scores_,
    query_scores_ : as in :class:`RankRLSCV`, with C in the place of alpha
    coef_, dual_coef_, X_fit_, basis_indices_, support_, n_support_, objective_, dual_gap_, n_iter_, n_queries_,
    n_features_in_, feature_names_in_ : as in :class:`RankSVM`

    Notes
    -----
    Equal measures: the smallest C, then the earliest combination. A kernel's basis is chosen once, from all rows:
    held-out queries lend it items, but not their labels.

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

    _single_target = True

    Cs: Any = parameter(default="auto", kw_only=False)
    cv: Any = parameter(default=None)
    scoring: Any = parameter(default="disagreement")
    rule: str = parameter(default="best", check=choice(*RULES))
    verbose: Any = parameter(default=0)

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
    ) -> Self:
        """Choose, then fit all rows of X.

        Parameters
        ----------
        X, y, qid, sample_weight, X_val, y_val, qid_val : as in :meth:`RankRLSCV.fit`, with one target

        Returns
        -------
        self
        """
        check_parameters(self, several=True)
        measure = resolve_measure(self.scoring)
        data = fitting.labelled(self, X, y, qid, sample_weight)
        plan = fitting.validation(self, measure, data, X_val, y_val, qid_val)
        return self._search(data, plan or few_folds(self.cv, measure, data, 0.0))

    def fit_pairs(
        self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None, groups: Any = None
    ) -> Self:
        """Choose by folds of preferences, or of groups of them; then fit all.

        Parameters
        ----------
        X, winners, losers, strength, weight, groups : as in :meth:`RankRLSCV.fit_pairs`

        Returns
        -------
        self
        """
        check_parameters(self, several=True)
        measure = resolve_measure(self.scoring)
        data = fitting.preferred(self, X, winners, losers, strength, weight, groups)
        return self._search(data, few_preference_folds(self.cv, measure, data))

    def _search(self, data: Comparisons, plan: Any) -> Self:
        Cs = None
        if not (isinstance(self.Cs, str) and self.Cs == "auto"):
            Cs = np.sort(check_grid("Cs", self.Cs, _checked_C))
        results = search(_candidates(self, data), data, plan, self.rule, Cs, int(self.verbose))
        chosen = results.best_state
        fitting.begin(self, data)
        _keep(self, data, chosen.candidate, chosen.solutions[0], chosen.solutions.details[0])
        fitting.publish(self, results, plan.description, data)
        return self


def _checked_C(C: Any) -> float:
    number(above=0.0)("C", C)
    return float(C)
