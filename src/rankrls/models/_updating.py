"""Estimators that take in further queries, and give queries back, exactly."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rankrls.equations.normal_equations import NormalEquations, normal_equations
from rankrls.features.rows import factor_rows
from rankrls.graph import ScoredGraph
from rankrls.models._base import KernelRanker
from rankrls.models._problems import FittedProblem, scored_graphs
from rankrls.models._updates import SeenQueries, query_energies
from rankrls.models._validation import TrainingData, check_no_extra_qid, training_data
from rankrls.problems.primal import PrimalProblem, solve_equations

__all__ = ["UpdatingRanker"]


def _can_update(model: Any) -> bool:
    model._check_updatable()
    return True


class UpdatingRanker(KernelRanker):
    """Keeps the normal equations, which add up over queries, and which queries are in them."""

    __metadata_request__partial_fit = {"qid": True}  # noqa: RUF012

    ties: Any
    balance: Any
    regression_weight: Any
    _equations: list[NormalEquations]
    _seen: SeenQueries
    _graph_parameters: dict[str, Any] | None = None  # of what was seen; model files of format 1 may lack it
    _not_updatable = "it was fitted in the dual or from pairs. Fit it with solver='primal', or start from a clone."

    def _check_updatable(self) -> None:
        """Raise an AttributeError where the parameters allow no exact updates."""

    def _check_parameters(self) -> float:
        raise NotImplementedError

    def _begin(self, data: TrainingData) -> None:
        """Settle what every batch shares, before the first one."""
        self._kernel_ = self._resolved_kernel(data.X)

    def _batch_equations(self, data: TrainingData, graph: ScoredGraph, part: slice) -> NormalEquations:
        """The normal equations of one batch."""
        return normal_equations(factor_rows(data.X, graph), graph.F @ data.Y[:, part])

    def _solve_batch(self, equations: NormalEquations, alpha: float, size: int, X: Any) -> NDArray[np.float64]:
        """The coefficients of all that was seen; X are the batch's rows."""
        return solve_equations(equations, alpha, size)

    def _take_solution(self, coefficients: list[Any]) -> None:
        """Take what solves the equations as this model's coefficients."""
        self._set_coefficients(coefficients, self._one_target)

    @available_if(_can_update)
    def partial_fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Add whole queries, exactly: the same model as one fit on everything seen so far.

        Continues after :meth:`fit` or an earlier ``partial_fit``. Only a model of few coefficients can do this: the
        weights of features, or of a basis.

        Parameters
        ----------
        X, y, sample_weight : as for :meth:`fit`
        qid : array-like of shape (m,)
            Query ids, none of which has been seen before. A model without qid takes each batch as a ranking of its
            own: items of different batches are not compared.

        Raises
        ------
        ValueError
            Where a query was seen before: pairs between its old and its new items would be missed.

        Notes
        -----
        O(m n^2 + n^3) for a batch of m rows and n coefficients.
        """
        return self._update(X, y, qid, sample_weight, add=True)

    @available_if(_can_update)
    def forget(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Remove whole queries, exactly up to rounding: the same model as a fit without them.

        Parameters
        ----------
        X, y, qid, sample_weight : as they were given to :meth:`fit` or :meth:`partial_fit`

        Raises
        ------
        ValueError
            Where a query has not been seen, or not with these labels and this number of rows.
        """
        return self._update(X, y, qid, sample_weight, add=False)

    def _update(self, X: Any, y: Any, qid: Any, sample_weight: Any, *, add: bool) -> Self:
        alpha = self._check_parameters()
        name = "partial_fit" if add else "forget"
        started = hasattr(self, "_equations")
        if hasattr(self, "alpha_") and not started:
            raise ValueError(f"{name} cannot continue this model: {self._not_updatable}")
        if not started and not add:
            check_is_fitted(self)
        data = training_data(self, X, y, qid, sample_weight, kernel=self.kernel, reset=not started)
        if started and self._graph_parameters not in (None, self._graph_settings()):
            raise ValueError(
                f"{name} cannot mix graphs: what the model has seen was compared with {self._graph_parameters}, its "
                f"parameters are now {self._graph_settings()}. Only alpha may change between updates."
            )
        if started:
            check_no_extra_qid(self._fitted_with_qid, qid, name)
            if qid is not None and not self._fitted_with_qid:
                raise ValueError(f"{name} was called with qid, but this model was fitted without.")
        if started and data.Y.shape[1] != self._equations_targets():
            raise ValueError(f"y has {data.Y.shape[1]} targets; the model has {self._equations_targets()}.")
        graphs = scored_graphs(data, self.ties, self.balance, float(self.regression_weight))
        energies = np.sum([query_energies(graph, data.Y[:, part]) for graph, part in graphs], axis=0)
        seen = self._seen if started else SeenQueries()
        layout = data.layout if data.has_qid else seen.unnamed_batch(data.layout, energies, add=add)
        seen = seen.with_queries(layout, energies) if add else seen.without_queries(layout, energies)
        if not started:
            self._begin(data)
        batch = [self._batch_equations(data, graph, part) for graph, part in graphs]
        if started:
            batch = [old + new if add else old - new for old, new in zip(self._equations, batch, strict=True)]
        else:
            self._one_target = data.one_target
            self._fitted_with_qid = data.has_qid
        size = max(seen.n_rows, batch[0].gram.shape[0])
        self._take_solution([self._solve_batch(e, alpha, size, data.X) for e in batch])
        self._seen = seen
        self._equations = batch
        self._graph_parameters = self._graph_settings()
        self.alpha_ = alpha
        self.n_queries_ = len(seen)
        return self

    def _graph_settings(self) -> dict[str, Any]:
        return {
            "ties": self.ties,
            "balance": self.balance,
            "regression_weight": float(self.regression_weight),
        }

    def _equations_targets(self) -> int:
        return sum(e.rhs.shape[1] for e in self._equations)

    def _remember(self, data: TrainingData, problems: list[FittedProblem]) -> None:
        """Keep what exact updates need: the normal equations, and which queries are in them."""
        if not all(isinstance(p.problem, PrimalProblem) for p in problems):
            return
        self._graph_parameters = self._graph_settings()
        self._equations = [p.problem.equations for p in problems]  # type: ignore[union-attr]
        energies = np.sum([query_energies(p.problem.graph, data.Y[:, p.targets]) for p in problems], axis=0)  # type: ignore[arg-type]
        seen = SeenQueries()
        layout = data.layout if data.has_qid else seen.unnamed_batch(data.layout, energies, add=True)
        self._seen = seen.with_queries(layout, energies)
