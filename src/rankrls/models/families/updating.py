"""Estimators that take in further queries, and give queries back, exactly."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from rankrls._comparisons import Comparison, Comparisons, LabelledItems
from rankrls._errors import InputError
from rankrls._queries import QueryLayout
from rankrls.equations.normal_equations import NormalEquations, normal_equations
from rankrls.graph import Graph
from rankrls.models.families.base import SingleRanker
from rankrls.models.inputs.parameters import GraphParameters
from rankrls.models.inputs.validation import check_no_extra_qid, labelled_items
from rankrls.problems.primal import EquationsProblem
from rankrls.problems.problem import Problem
from rankrls.problems.scorer import Scorer


def _can_update(model: Any) -> bool:
    model._check_updatable()
    return True


class UpdatingRanker(SingleRanker, GraphParameters):
    """Keeps the normal equations, which add up over queries, and which queries are in them."""

    __metadata_request__partial_fit = {"qid": True}  # noqa: RUF012

    _equations_: list[NormalEquations]
    _seen_: SeenQueries
    _seen_with_: dict[str, Any]
    _own_units = False  # whether features of very different spreads are told apart
    _not_updatable = (
        "it was fitted in the dual, from pairs or from a data set. Fit it with solver='primal', or start from a clone."
    )

    def _check_updatable(self) -> None:
        """Raise an AttributeError where the parameters allow no exact updates."""

    def _start(self, data: LabelledItems) -> None:
        """Settle what every batch shares, before the first one."""
        self._kernel_ = self._resolved_kernel(data.X)

    def _batch_equations(self, X: Any, comparison: Comparison) -> NormalEquations:
        """The normal equations of one batch."""
        return normal_equations(comparison.graph.factor_rows(X), comparison.target)

    def _read(self, coefficients: NDArray[np.float64]) -> Scorer:
        """What solves the equations, (size, targets), as functions."""
        return Scorer(coefficients)

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
        self._check()
        alpha = float(self.alpha)
        name = "partial_fit" if add else "forget"
        started = hasattr(self, "_equations_")
        if hasattr(self, "alpha_") and not started:
            raise InputError("{0} cannot continue this model: {1}", name, self._not_updatable)
        if not started and not add:
            check_is_fitted(self)
        data = labelled_items(self, X, y, qid, sample_weight, kernel=self.kernel, reset=not started)
        if started:
            self._check_continued(data, qid, name)
        parts = data.graphs(self._setting())
        energies = _energies(data, [part.graph for part in parts])
        seen = self._seen_ if started else SeenQueries()
        layout = data.layout if data.has_qid else seen.unnamed_batch(data.layout, energies, add=add)
        seen = seen.with_queries(layout, energies) if add else seen.without_queries(layout, energies)
        if not started:
            self._start(data)
            self._one_target, self._fitted_with_qid = data.one_target, data.has_qid
        batch = [self._batch_equations(data.X, part) for part in parts]
        if started:
            batch = [old + new if add else old - new for old, new in zip(self._equations_, batch, strict=True)]
        size = max(seen.n_rows, batch[0].gram.shape[0])
        solution = np.hstack(
            [self._solution(EquationsProblem(e, size, own_units=self._own_units), alpha) for e in batch]
        )
        self._take(self._read(solution), self._kernel_)
        self._seen_, self._equations_, self._seen_with_ = seen, batch, self._graph_settings()
        self.alpha_ = alpha
        self.n_queries_ = len(seen)
        return self

    def _check_continued(self, data: LabelledItems, qid: Any, name: str) -> None:
        """Refuse a batch that does not go with what was seen."""
        if self._seen_with_ != self._graph_settings():
            raise InputError(
                "{0} cannot mix graphs: what the model has seen was compared with {1}, its parameters are now {2}.",
                *(name, self._seen_with_, self._graph_settings()),
                remedy="Only alpha may change between updates.",
            )
        check_no_extra_qid(self._fitted_with_qid, qid, name)
        if qid is not None and not self._fitted_with_qid:
            raise InputError("{0} was called with {qid}, but this model was fitted without.", name)
        targets = sum(e.rhs.shape[1] for e in self._equations_)
        if data.Y.shape[1] != targets:
            raise InputError("{y} has {0} targets; the model has {1}.", data.Y.shape[1], targets)

    def _graph_settings(self) -> dict[str, Any]:
        return asdict(self._setting())

    def _remember(self, data: Comparisons, problem: Problem) -> None:
        """Keep what exact updates need, if the problem has normal equations: those, and which queries are in them."""
        equations = [e for part in problem.parts if (e := part.equations) is not None]
        if not isinstance(data, LabelledItems) or len(equations) < len(problem.parts):
            return
        energies, seen = _energies(data, [part.graph for part in problem.parts]), SeenQueries()
        layout = data.layout if data.has_qid else seen.unnamed_batch(data.layout, energies, add=True)
        self._seen_, self._equations_ = seen.with_queries(layout, energies), equations
        self._seen_with_ = self._graph_settings()


def _energies(data: LabelledItems, graphs: list[Graph]) -> NDArray[np.float64]:
    """One graph for all targets, or one for each."""
    if len(graphs) == 1:
        return query_energies(graphs[0], data.Y, data.layout)
    each = [query_energies(g, y[:, None], data.layout) for g, y in zip(graphs, data.Y.T, strict=True)]
    return np.asarray(np.sum(each, axis=0))


def query_energies(graph: Graph, Y: NDArray[np.float64], layout: QueryLayout) -> NDArray[np.float64]:
    """``y'Ly`` of each query, summed over targets: a fingerprint of its labels and weights. O(m).

    ``F`` has a row for each item.
    """
    FY = graph.F @ Y
    squares = np.einsum("ij,ij->i", FY, FY)
    return np.bincount(layout.codes, weights=squares, minlength=layout.n_queries).astype(np.float64)


@dataclass(frozen=True)
class SeenQueries:
    """Rows and label energy of each query seen, by id. A value: updating returns a new one."""

    queries: dict[Any, tuple[int, float]] = field(default_factory=dict)
    n_rows: int = 0

    def __len__(self) -> int:
        return len(self.queries)

    def with_queries(self, layout: QueryLayout, energies: NDArray[np.float64]) -> SeenQueries:
        """These and the layout's queries; an id that is here already is an error."""
        ids = [_key(i) for i in layout.ids]
        if self.queries:
            again = [i for i in ids if i in self.queries]
            if again:
                raise InputError(
                    "Query {0!r} has been seen before ({1} such queries in this batch): whole queries are added.",
                    again[0],
                    len(again),
                    remedy="Forget its old rows first, or give all its rows at once.",
                    parameter="qid",
                )
        entries = zip(layout.counts.tolist(), energies.tolist(), strict=True)
        return SeenQueries({**self.queries, **dict(zip(ids, entries, strict=True))}, self.n_rows + layout.n_rows)

    def unnamed_batch(self, layout: QueryLayout, energies: NDArray[np.float64], *, add: bool) -> QueryLayout:
        """A batch without qid, under a number of its own: a new one, or that of the batch with these very labels."""
        if add:
            number = max(self.queries, default=-1) + 1
        else:
            entry = (layout.n_rows, float(energies[0]))
            number = next((k for k, known in self.queries.items() if _same(known, entry)), -1)
            if number < 0:
                raise InputError(
                    "No batch with these labels and weights has been seen: it cannot be forgotten.", parameter="y"
                )
        return replace(layout, ids=np.array([number]))

    def without_queries(self, layout: QueryLayout, energies: NDArray[np.float64]) -> SeenQueries:
        """These without the layout's queries, which must be here with the same rows and labels."""
        left = dict(self.queries)
        for raw, count, energy in zip(layout.ids, layout.counts.tolist(), energies.tolist(), strict=True):
            key = _key(raw)
            if key not in left:
                raise InputError("Query {0!r} has not been seen: it cannot be forgotten.", key, parameter="qid")
            rows, old = left.pop(key)
            if not _same((rows, old), (count, energy)):
                raise InputError(
                    "Query {0!r} was seen with {1} rows and other labels or weights than these {2} rows: forget needs "
                    "the very rows that were added.",
                    *(key, rows, count),
                    parameter="qid",
                )
        if not left:
            raise InputError("forget would remove every query: nothing would be left of the model.", parameter="qid")
        return SeenQueries(left, self.n_rows - layout.n_rows)


def _same(a: tuple[int, float], b: tuple[int, float]) -> bool:
    return a[0] == b[0] and bool(np.isclose(a[1], b[1], rtol=1e-9, atol=1e-12))


def _key(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
