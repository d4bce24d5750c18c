"""RankSVM that chooses its own C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.graph import OrderedPairs, PairGraph
from rankrls.hinge.ranksvm import HingeProblem
from rankrls.kernels import Kernel
from rankrls.models._hinge import HingeRanker, check_C
from rankrls.models._problems import BasisCandidate, FittedProblem
from rankrls.models._results import Results
from rankrls.models._selecting import SelectingRanker, options
from rankrls.models._selection import Plan, plan_selection
from rankrls.models._validation import TrainingData, check_choice
from rankrls.problems.subset import Basis

__all__ = ["RankSVMCV"]

_FOLDS = 5
_GRID = 15
_DECADES = 7.0


@dataclass(frozen=True)
class HingeCandidate(BasisCandidate):
    """One combination of a kernel with its basis (None for the features as they are) and a balance."""

    basis: Basis | None  # type: ignore[assignment]
    loss: str
    tol: float
    max_iter: int

    def problems(self, data: TrainingData, K: NDArray[np.float64] | None = None) -> list[FittedProblem]:
        """The one problem of the labels."""
        pairs = OrderedPairs.build(data.Y[:, 0], data.layout, weights=data.weights, balance=self.balance)
        problem = HingeProblem(data.X, pairs, self.loss, tol=self.tol, max_iter=self.max_iter, basis=self.basis)
        return [FittedProblem(problem, slice(0, 1))]  # type: ignore[arg-type]


class RankSVMCV(HingeRanker, SelectingRanker):
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
    scoring, rule : as in :class:`RankRLSCV`
        "one_se" takes the smallest C within one standard error of the best.
    loss, tol, max_iter, kernel_params, n_basis, basis, basis_indices, random_state : as in :class:`RankSVM`
    kernel, gamma, degree, coef0, balance : as in :class:`RankSVM`, or a tuple of values to choose from

    Attributes
    ----------
    C_ : float
    C_at_edge_ : bool
        Whether it is the smallest or largest of a grid of three or more: widen the grid then.
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

    ties = "exclude"
    regression_weight = 0.0

    def __init__(
        self,
        Cs: Any = "auto",
        *,
        cv: Any = None,
        scoring: Any = "disagreement",
        rule: str = "best",
        loss: str = "squared_hinge",
        kernel: Any = "linear",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1.0,
        kernel_params: dict[str, Any] | None = None,
        balance: Any = "examples",
        n_basis: int | None = None,
        basis: str = "random",
        basis_indices: Any = None,
        tol: float | None = None,
        max_iter: int = 100,
        random_state: Any = 0,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.balance = balance
        self.n_basis = n_basis
        self.basis = basis
        self.basis_indices = basis_indices
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _check_grid(self) -> NDArray[np.float64] | None:
        """Alphas, ``1 / (2 C)``, descending."""
        check_choice("rule", self.rule, ("best", "one_se"))
        for balance in options(self.balance):
            self._check_shared(balance)
        self._check_kernels()
        if isinstance(self.Cs, str) and self.Cs == "auto":
            return None
        if isinstance(self.Cs, str) or np.ndim(self.Cs) != 1 or not len(self.Cs):
            raise ValueError(f"Cs must be 'auto' or a sequence of at least one number; got {self.Cs!r}.")
        return np.asarray(0.5 / np.sort([check_C(C) for C in self.Cs]))

    def _automatic_grid(self, values: NDArray[np.float64], problems: list[Any]) -> NDArray[np.float64]:
        top = float(values.max(initial=0.0))
        if not top > 0.0:
            return np.ones(1)
        return np.asarray(np.geomspace(10.0 * top, 10.0 ** (1.0 - _DECADES) * top, _GRID))

    def _cv_plan(self, measure: Any, data: TrainingData) -> Plan:
        q, m = data.layout.n_queries, data.layout.n_rows
        cv = min(_FOLDS, q if q > 1 else m) if self.cv is None else self.cv
        return plan_selection(cv, measure, data, [], balances=options(self.balance), regression_weight=0.0)

    def _pair_folds(self, graph: PairGraph) -> Any:
        return min(_FOLDS, max(graph.n_blocks, 2)) if self.cv is None else self.cv

    def _share(self, search: Any, kernel: Kernel, data: TrainingData) -> Basis | None:
        return self._expansion_basis(data.X, kernel, data.kept)

    def _candidate(
        self, shared: Basis | None, kernel: Kernel, ties: Any, balance: Any, data: TrainingData
    ) -> HingeCandidate:
        return HingeCandidate(
            kernel, ties, balance, 0.0, "direct", shared, self.loss, self._tolerance(), int(self.max_iter)
        )

    def _pair_problem(self, search: Any, kernel: Kernel, X: Any, graph: PairGraph) -> HingeProblem:
        return self._problem(X, graph, self._expansion_basis(X, kernel, None))

    def _publish(self, results: Results, description: str, data: TrainingData | None) -> None:
        super()._publish(results, description, data)
        self.C_ = 0.5 / self.__dict__.pop("alpha_")
        self.C_at_edge_ = self.__dict__.pop("alpha_at_edge_")
        self.best_params_ = {k: v for k, v in self.best_params_.items() if k not in ("alpha", "ties")} | {"C": self.C_}
        table = {k: v for k, v in self.cv_results_.items() if k != "ties"}
        table["C"] = 0.5 / table.pop("alpha")
        self.cv_results_ = table
