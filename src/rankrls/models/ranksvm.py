"""RankSVM: the squared hinge of ordered pairs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, Self

import numpy as np

from rankrls._comparisons import Comparisons, LabelledItems
from rankrls._errors import InputError
from rankrls.learners.ranksvm import RankSVMProblem
from rankrls.models import fitting
from rankrls.models.parameters import BALANCES, BasisParameters, estimator, options, parameter
from rankrls.models.ranker import Candidate, Chooses, Fits, Ranker
from rankrls.selection.basis import make_basis
from rankrls.selection.search import search

MOST_EXACT = 5000
"""Items whose kernel matrix is decomposed without being asked for."""


@estimator
class RankSVMParameters(Ranker, BasisParameters):
    """What both forms of RankSVM have."""

    _single_target = True
    _squared_loss = False

    balance: Any = parameter(default="examples", check=BALANCES, several=True)
    tol: float = parameter(default=1e-6, above=0.0, below=1.0)
    max_iter: int = parameter(default=100, least=1, whole=True)

    def _candidates(self, data: Comparisons) -> Iterator[Candidate]:
        """Every kernel with every balance; those of one kernel share its basis."""
        m, tol, steps = data.n_rows, float(self.tol), int(self.max_iter)
        for kernel, chosen in fitting.kernels_of(self, data.X):
            basis = None
            if not kernel.is_linear:
                if self.n_basis is None and self.basis_indices is None and m > MOST_EXACT:
                    message = f"A kernel needs {m} x {m} numbers. Set n_basis; n_basis={m} uses all items."
                    raise InputError(message, parameter="n_basis")
                basis = make_basis(self, data, kernel)
            labelled = isinstance(data, LabelledItems)
            for balance in options(self.balance, "balance") if labelled else ("examples",):
                choices = {"balance": balance} if labelled else {}
                problem = partial(RankSVMProblem, balance=balance, tol=tol, max_iter=steps, basis=basis)
                yield Candidate({**chosen, **choices}, problem, kernel, basis)

    def _keep(self, data: Comparisons, candidate: Candidate, solutions: Any) -> None:
        """Store the function and how it was found; warn if it is not the minimum."""
        fitting.begin(self, data)
        fitting.keep(self, solutions[0], candidate.kernel, data, candidate.basis)
        (minimum,) = solutions.details
        self.support_ = data.given_numbers(np.flatnonzero(minimum.degree > 0.0))
        self.n_support_ = len(self.support_)
        self.n_iter_, self.objective_, self.dual_gap_ = minimum.n_iter, minimum.value, minimum.gap
        if minimum.status != "converged":
            why = f"max_iter={self.max_iter} Newton steps were taken"
            why = why if minimum.status == "max_iter" else "rounding leaves no better step"
            warnings.warn(
                fitting.NotConverged(
                    f"{type(self).__name__} stopped before tol={self.tol:g} was reached: {why}. The objective is "
                    f"within {minimum.gap / minimum.value:.2g} of the minimum, relatively. Scale the features, lower "
                    "C, or raise max_iter or tol.",
                    parameter="tol",
                ),
                stacklevel=5,
            )


@estimator
class RankSVM(Fits, RankSVMParameters):
    r"""Learning to rank by the squared hinge of ordered pairs.

    Minimises, over all functions f of the kernel's space,

    .. math::

        \tfrac12 \lVert f \rVert^2 + C \sum_q \rho_q \sum_{y_i > y_j} w_i w_j \,
        \max(0, 1 - (f(x_i) - f(x_j)))^2 ,

    the inner sum over the pairs of query q with different labels. The loss is not divided by the number of pairs; C
    corresponds to :math:`1 / (2 \alpha)` in :class:`RankRLS`. Pairs are counted, but not listed.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss.
    kernel : str or callable, default="linear"
        As in :class:`RankRLS`; it must be positive semidefinite.
    gamma, degree, coef0, kernel_params : as in :class:`RankRLS`
    balance : {"pairs", "examples", "queries"}, default="examples"
        What has the same weight: each pair (:math:`\rho_q = 1`), each example (1 / the weight of the query's items), or
        each query (1 / the weight of its pairs).
    n_basis : int, optional
        Items that a kernel machine expands over (Kuo, Lee, Lin 2014): O(m r) memory for r of them. None takes all, up
        to 5000 items.
    basis_indices : sequence of int, optional
        Row numbers of X to be the basis instead.
    tol : float, default=1e-6
        The search ends when the duality gap is at most this share of the objective.
    max_iter : int, default=100
        Newton steps.
    random_state : int, Generator or RandomState, default=0
        Seed of the basis. Items are drawn by row number: with other orders of rows the basis is another draw.

    Attributes
    ----------
    coef_ : ndarray of shape (n,)
        Weights of the features; linear kernel only.
    dual_coef_ : ndarray of shape (r,)
        Coefficients of the basis items; other kernels.
    X_fit_ : ndarray, sparse array or list of r items
        The basis; not for linear or precomputed kernels.
    basis_indices_ : ndarray of shape (r,)
        Its row numbers in X.
    support_ : ndarray of int
        Rows in a pair with loss. The other rows could be left out without changing the solution.
    n_support_ : int
    objective_, dual_gap_ : float
        The value of the objective, and an upper bound of its distance to the minimum.
    n_iter_ : int
        Newton steps.
    n_queries_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Truncated Newton steps; a value, a gradient or a product with the Hessian costs two products with X and O(m log m),
    independently of the number of pairs and of distinct labels. Joachims' RankSVM has the hinge itself, :math:`\max(0,
    1 - \Delta)`; its square is smooth.

    Up to 1024 features O(m n^2 + n^3) once saves most products. ``fit_pairs`` minimises :math:`\tfrac12 \|f\|^2 + C
    \sum_e c_e \max(0, s_e - (f_{i_e} - f_{j_e}))^2`, where ``strength`` is the required margin. With strength 0 the
    winner only must not have the lower score; a tie is two such preferences, one in each direction.

    Items with equal labels (``==`` in float64) form no pair. A query of one item or one label has no effect. Rows of
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

    C: float = parameter(default=1.0, above=0.0, kw_only=False)

    def _solve(self, data: Comparisons) -> Self:
        candidate = next(self._candidates(data))
        self._keep(data, candidate, candidate.problem(data).path(np.array([float(self.C)])))
        return self


@estimator
class RankSVMCV(Chooses, RankSVMParameters):
    r"""RankSVM whose C, balance and kernel are chosen by held-out queries.

    Minimises what :class:`RankSVM` minimises. There is no hold-out shortcut as for squared errors: each fold is
    refitted along a path of increasing C, where each minimum starts the next search.

    Parameters
    ----------
    Cs : "auto" or tuple of float, default="auto"
        Values to choose from. "auto" is a geometric grid of 15, from where the model is a constant direction up by
        seven decades.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of whole queries (of rows for one global ranking, of what will be new in preferences);
        otherwise as in :class:`RankRLSCV`, by refits.
    scoring, rule, verbose : as in :class:`RankRLSCV`
        "one_se" takes the smallest C within one standard error of the best.
    tol, max_iter, kernel_params, n_basis, basis_indices, random_state : as in :class:`RankSVM`
    kernel, gamma, degree, coef0, balance : as in :class:`RankSVM`, or a tuple of values to choose from

    Attributes
    ----------
    C_ : float
    C_at_edge_ : bool
        Whether it is the smallest or largest of a grid of three or more, and better than the next one. If so, use a
        wider grid.
    gamma_at_edge_, degree_at_edge_, coef0_at_edge_ : bool
        The same for each parameter of the chosen kernel that has several values to choose from.
    best_params_, best_score_, best_score_error_, best_index_, cv_results_, selection_, held_out_scores_, query_scores_
    : as in :class:`RankRLSCV`, with C instead of alpha coef_, dual_coef_, X_fit_, basis_indices_, support_, n_support_,
    objective_, dual_gap_, n_iter_, n_queries_, n_features_in_, feature_names_in_ : as in :class:`RankSVM`

    Notes
    -----
    If measures are equal, the smallest C is chosen, then the first combination. The basis of a kernel is chosen once,
    from all rows. Held-out queries may contribute items to it, but not labels.

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

    Cs: Any = parameter(default="auto", kw_only=False)

    def _search(self, data: Comparisons, plan: Any) -> Self:
        Cs = fitting.alphas_of(self, "Cs", positive=True)
        Cs = None if Cs is None else Cs[::-1]
        results = search(self._candidates(data), data, plan, self.rule, Cs, int(self.verbose))
        self._keep(data, results.candidate, results.solutions)
        fitting.publish(self, results, plan.description, data)
        return self
