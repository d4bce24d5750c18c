"""Ranking pursuit that chooses how many terms it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls.graph import PairGraph, ScoredGraph
from rankrls.greedy.pursuit import PursuitPath
from rankrls.kernels import Kernel
from rankrls.models._problems import Candidate, FittedProblem, SelfScoring
from rankrls.models._pursuits import PathRanker, Pursuit, check_one_target
from rankrls.models._results import Results
from rankrls.models._selecting import SelectingRanker, options
from rankrls.models._selection import Plan, plan_selection, refitted
from rankrls.models._validation import TrainingData, check_count

__all__ = ["RankingPursuitCV"]

_FOLDS = 5


class PursuitProblem(SelfScoring):
    """A pursuit's path on some items, which answers for every number of stages.

    Parameters
    ----------
    pursuit : Pursuit
    X : rows
    graph : ScoredGraph or PairGraph
    target : ndarray of shape (rows of F,)
    n_basis : int
        Stages at most.
    """

    def __init__(
        self, pursuit: Pursuit, X: Any, graph: ScoredGraph | PairGraph, target: NDArray[np.float64], n_basis: int
    ) -> None:
        self.pursuit, self.n_basis = pursuit, n_basis
        self._X, self._graph = X, graph
        self.path = pursuit.path(X, graph, target, n_basis)

    def solve(self, stages: float) -> PursuitPath:
        """The path up to some stage."""
        return self.path.at(int(stages))

    def scores(self, X: Any, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores after some stages, (rows, values); a path that ended early stays where it ended."""
        reached = np.minimum(values.astype(np.intp), self.path.n_stages)
        found = self.pursuit.stage_scores(X, self._X, self.path)
        return np.column_stack((np.zeros(len(found)), found))[:, reached]

    def holdout(self, blocks: list[Any], stages: NDArray[np.float64]) -> NDArray[np.float64]:
        """Differences of each block's preferences by the path on all others, (preferences, stages, 1)."""
        graph = self._graph
        assert isinstance(graph, PairGraph)
        out = np.full((graph.n_rows, len(stages), 1), np.nan)
        for block in blocks:
            left = np.setdiff1d(np.arange(graph.n_rows), block)
            fewer = replace(
                graph,
                winners=graph.winners[left],
                losers=graph.losers[left],
                strength=graph.strength[left],
                weight=graph.weight[left],
                groups=None,
            )
            problem = PursuitProblem(self.pursuit, self._X, fewer, fewer.target, self.n_basis)
            out[block, :, 0] = graph.differences(problem.scores(self._X, stages), block)
        return out


@dataclass(frozen=True)
class PursuitCandidate(Candidate):
    """One dictionary and graph."""

    pursuit: Pursuit
    n_basis: int

    def problem(  # type: ignore[override]
        self,
        X: Any,
        graph: ScoredGraph | PairGraph,
        target: NDArray[np.float64],
        K: NDArray[np.float64] | None = None,
    ) -> PursuitProblem:
        """The path on one graph."""
        return PursuitProblem(self.pursuit, X, graph, target[:, 0], self.n_basis)


class RankingPursuitCV(PathRanker, SelectingRanker):
    r"""Ranking pursuit whose number of terms is chosen by cross-validation.

    Minimises what :class:`RankingPursuit` minimises. Each fold is one run, whose path is judged after every stage.

    Parameters
    ----------
    max_basis : int, default=50
        The largest number of stages to choose from.
    cv : None, int, splitter or iterable of (train rows, test rows), default=None
        None is 5 folds of whole queries, or of rows for one global ranking; an int is that many. Every fold is
        refitted; its dictionary are its own training rows, unless ``centers`` are given.
    scoring : as in :class:`RankRLSCV`
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

    _parameter = "n_basis"

    def __init__(
        self,
        max_basis: int = 50,
        *,
        cv: Any = None,
        scoring: Any = "disagreement",
        rule: str = "best",
        dictionary: str = "kernel",
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: Any = 3,
        coef0: Any = 1.0,
        kernel_params: dict[str, Any] | None = None,
        centers: Any = None,
        ties: Any = "include",
        balance: Any = "examples",
        regression_weight: float = 0.0,
        backfit: bool = True,
        cache_size: float = 4096,
    ) -> None:
        self.max_basis = max_basis
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.dictionary = dictionary
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.centers = centers
        self.ties = ties
        self.balance = balance
        self.regression_weight = regression_weight
        self.backfit = backfit
        self.cache_size = cache_size

    def fit_pairs(
        self,
        X: Any,
        winners: Any,
        losers: Any,
        *,
        strength: Any = None,
        weight: Any = None,
        groups: Any = None,
    ) -> Self:
        """Choose by folds of preferences, or of groups of them; then learn from all.

        Parameters
        ----------
        X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`
        groups : array-like of shape (p,), optional
            A group for each preference, held out together. ``cv`` is the number of folds, 5 by default.

        Returns
        -------
        self
        """
        return super().fit_pairs(X, winners, losers, strength=strength, weight=weight, groups=groups)

    def _check_grid(self) -> NDArray[np.float64]:
        self._check_choices()
        return np.arange(1.0, check_count("max_basis", self.max_basis) + 1.0)

    def _check_form(self) -> None:
        self._check_pursuit()

    def _training_data(self, X: Any, y: Any, qid: Any, sample_weight: Any, kernel: Any) -> TrainingData:
        data = super()._training_data(X, y, qid, sample_weight, kernel)
        check_one_target(self, data)
        return data

    def _some_kernel(self) -> Any:
        return "linear" if self.dictionary == "features" else super()._some_kernel()

    def _data_kernel(self) -> Any:
        return self._some_kernel()

    def _kernels(self, X: Any) -> Iterator[tuple[Kernel, dict[str, Any]]]:
        if self.dictionary == "features":
            yield Kernel("linear"), {}
        else:
            yield from super()._kernels(X)

    def _begin_search(self, X: Any, kept: NDArray[np.bool_] | None) -> Any:
        """The centres, the same for every kernel."""
        return self._checked_centers(X, self._some_kernel())

    def _share(self, search: Any, kernel: Kernel, data: TrainingData) -> Pursuit:
        return self._pursuit_with(None if self.dictionary == "features" else kernel, search)

    def _candidate(self, shared: Pursuit, kernel: Kernel, ties: Any, balance: Any, data: TrainingData) -> Candidate:
        return PursuitCandidate(kernel, ties, balance, float(self.regression_weight), "", shared, int(self.max_basis))

    def _pair_problem(self, search: Any, kernel: Kernel, X: Any, graph: PairGraph) -> PursuitProblem:
        pursuit = self._pursuit_with(None if self.dictionary == "features" else kernel, search)
        return PursuitProblem(pursuit, X, graph, graph.target, int(self.max_basis))

    def _cv_plan(self, measure: Any, data: TrainingData) -> Plan:
        cv = self.cv
        if cv is None:
            parts = data.layout.n_queries if data.layout.n_queries > 1 else data.layout.n_rows
            cv = min(_FOLDS, parts)
        plan = plan_selection(
            cv, measure, data, [], balances=options(self.balance), regression_weight=float(self.regression_weight)
        )
        return refitted(plan, data)

    def _pair_folds(self, graph: PairGraph) -> Any:
        return min(_FOLDS, graph.n_blocks) if self.cv is None else self.cv

    def _adopt(  # type: ignore[override]
        self, data: TrainingData, kernel: Kernel, problems: list[FittedProblem], solutions: list[PursuitPath]
    ) -> None:
        self._take_path(data.X, problems[0].problem.pursuit, solutions[0], data.kept)  # type: ignore[union-attr]
        self._fitted_with_qid = data.has_qid
        self.n_queries_ = data.layout.n_queries

    def _adopt_pairs(self, X: Any, kernel: Kernel, problem: Any, graph: PairGraph, solution: Any) -> None:
        self._take_path(X, problem.pursuit, solution, None)
        self._fitted_with_qid = False
        self.n_queries_ = 1

    def _publish_choice(self, results: Results) -> None:
        stages = int(results.best_alpha)
        self.best_params_ = {**results.best_params, "n_basis": stages}
        self.n_basis_at_edge_ = stages == int(self.max_basis) and self.path_.n_stages == stages
