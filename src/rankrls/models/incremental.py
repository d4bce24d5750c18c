"""Exact updates of a model by batches of whole queries, whose normal equations are added."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from rankrls._arrays import host_only
from rankrls._comparisons import ComparedItems, GraphSetting, LabelledItems
from rankrls._errors import InputError
from rankrls._typing import Matrix, Values
from rankrls.models.fitted import Fitted
from rankrls.models.spec import LeastSquaresSpec
from rankrls.numerics.scorer import Basis
from rankrls.numerics.smoother import Equations


@dataclass(frozen=True, eq=False)
class UpdateState:
    """State of ``partial_fit``.

    Attributes
    ----------
    equations : list of Equations
        Equations of all rows so far, for each graph.
    queries : dict
        Ids of all queries so far, or numbers of batches without ids, in order; values are None.
    settings : dict
        Parameters that must not change, by name.
    basis : Basis, or None
        Basis of rows of the first batch, without its items, which the model contains.
    """

    equations: list[Equations]
    queries: dict[Hashable, None]
    settings: Values
    basis: Basis | None = None


@dataclass(frozen=True, eq=False)
class AddedItems(ComparedItems):
    """All items so far, of which only the equations are known."""

    total: Equations

    def equations(self, basis: Basis | None) -> Equations:
        return self.total


def updated(spec: LeastSquaresSpec, data: LabelledItems, state: UpdateState | None, items: Matrix) -> Fitted:
    """Model of all rows so far; ``items`` are the basis items of a model that is continued."""
    host_only(data.X, "partial_fit")
    candidate = next((spec if state is None else replace(spec, basis=None)).candidates(data))
    settings = _settings(spec, candidate.setting, data)
    if state is None:
        stored = candidate.basis
        if stored is not None:  # with row numbers among the given rows
            stored = replace(stored, items=None, numbers=data.given_numbers(np.asarray(stored.numbers)))
        state = UpdateState([], {}, settings, stored)
    elif state.basis is not None:
        candidate = replace(candidate, make_basis=partial(replace, state.basis, items=items))
    for name, value in state.settings.items():
        if settings[name] != value:
            problem = f"partial_fit cannot mix graphs: {name} was {value!r}, now {settings[name]!r}."
            raise InputError(f"{problem} Only alpha may change.", parameter=name)
    queries = data.layout.ids.tolist() if data.has_qid else [len(state.queries)]
    for query in queries:
        if query in state.queries:
            raise InputError(
                f"Query {query!r} has been seen before: all rows of a query must be added at once.", parameter="qid"
            )
    basis = candidate.basis
    whitening = None if basis is None else basis.whitening
    equations = [items.equations(basis).whitened(whitening) for items in data.compared(candidate.setting)]
    for k, old in enumerate(state.equations):
        equations[k] += old
    assert spec.grid is not None
    alpha = float(spec.grid[0])
    solutions = candidate.problem_of([AddedItems(total) for total in equations]).solve(alpha)
    state.queries.update(dict.fromkeys(queries))  # in place, because there may be very many
    known: Values = {} if state.basis is None else {"basis_indices_": state.basis.numbers}
    return Fitted.of(
        data,
        solutions[0],
        candidate.kernel,
        alpha_=alpha,
        n_queries_=len(state.queries),
        _update_state_=replace(state, equations=[replace(each, whitening=None) for each in equations]),
        **known,
    )


def _settings(spec: LeastSquaresSpec, setting: GraphSetting, data: LabelledItems) -> Values:
    """Parameters that must not change, by name."""
    (kernel,) = spec.kernels
    of_data = {"qid": "given" if data.has_qid else "not given", "y": f"of {data.n_targets} targets"}
    if kernel["kernel"] == "linear":
        kernel = {"kernel": "linear"}
    elif callable(kernel["kernel"]):
        kernel = {"kernel": "a function"}
    return {**asdict(setting), **kernel, **of_data}
