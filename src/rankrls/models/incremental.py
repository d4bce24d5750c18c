"""Exact updates of a model by batches of whole queries, whose normal equations are added."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass, replace

import numpy as np

from rankrls._arrays import host_only
from rankrls._comparisons import ComparedItems, LabelledItems, Setting
from rankrls._errors import InputError
from rankrls._typing import Array, Index, Matrix, Values
from rankrls.models.fitted import Fitted
from rankrls.models.spec import LeastSquaresSpec
from rankrls.numerics.basis import Basis
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
    basis_indices : ndarray, or None
        Rows of the first batch that form the basis.
    to_items : ndarray, or None
        Coefficients of the basis items for orthonormal functions.
    rows_first : bool
    of_features : ndarray, or None
        Attributes of :class:`rankrls.numerics.basis.Basis`.
    """

    equations: list[Equations]
    queries: dict[Hashable, None]
    settings: Values
    basis_indices: Index | None = None
    to_items: Array | None = None
    rows_first: bool = False
    of_features: Array | None = None


@dataclass(frozen=True, eq=False)
class AddedItems(ComparedItems):
    """All items so far, of which only the equations are known."""

    total: Equations

    in_memory = None
    primal = True

    def equations(self, basis: Basis | None) -> Equations:
        return self.total


def updated(spec: LeastSquaresSpec, data: LabelledItems, state: UpdateState | None, items: Matrix) -> Fitted:
    """Model of all rows so far; ``items`` are the basis items of a model that is continued."""
    host_only(data.X, "partial_fit")
    candidate = next(spec.candidates(data))
    settings = _settings(spec, candidate.setting, data)
    if state is None:
        state = _first_state(candidate.basis, settings, data)
    _check_continued(state.settings, settings)
    if state.equations and state.to_items is not None:
        basis = Basis(candidate.kernel, items, state.to_items, state.rows_first, of_features=state.of_features)
        candidate = replace(candidate, make_basis=lambda: basis)
    new_queries = dict.fromkeys(_new_queries(state.queries, data))
    whitening = None if candidate.basis is None else candidate.basis.whitening
    equations = [items.equations(candidate.basis).whitened(whitening) for items in data.compared(candidate.setting)]
    for k, old in enumerate(state.equations):
        equations[k] += old
    assert spec.grid is not None
    alpha = float(spec.grid[0])
    solutions = candidate.problem_of([AddedItems(total) for total in equations]).solve(alpha)
    state.queries.update(new_queries)  # in place, because there may be very many
    known: Values = {} if state.basis_indices is None else {"basis_indices_": state.basis_indices}
    return Fitted.of(
        data,
        solutions[0],
        candidate.kernel,
        alpha_=alpha,
        n_queries_=len(state.queries),
        _update_state_=replace(state, equations=[replace(each, whitening=None) for each in equations]),
        **known,
    )


def _first_state(basis: Basis | None, settings: Values, data: LabelledItems) -> UpdateState:
    """State before the first batch, which determines the basis."""
    if basis is None:
        return UpdateState([], {}, settings)
    numbers = data.given_numbers(np.asarray(basis.numbers))
    return UpdateState([], {}, settings, numbers, basis.to_items, basis.rows_first, basis.of_features)


def _settings(spec: LeastSquaresSpec, setting: Setting, data: LabelledItems) -> Values:
    """Parameters that must not change, by name."""
    values = spec.kernels.values
    kernel = values["kernel"] if isinstance(values["kernel"], str) else "a function"
    numbers = {name: values[name] for name in ("gamma", "degree", "coef0")} if kernel != "linear" else {}
    of_data = {"qid": "given" if data.has_qid else "not given", "y": f"of {data.n_targets} targets"}
    return {**asdict(setting), "kernel": kernel, **numbers, **of_data}


def _check_continued(before: Values, now: Values) -> None:
    """Refuse a batch that is inconsistent with the earlier ones."""
    for name, value in before.items():
        if now.get(name) != value:
            problem = (
                f"partial_fit cannot mix graphs: {name} was {value!r}, now {now.get(name)!r}. Only alpha may change."
            )
            raise InputError(problem, parameter=name)


def _new_queries(seen: dict[Hashable, None], data: LabelledItems) -> list[Hashable]:
    """Ids of a batch, all of which must be new; a batch without qid is its own ranking."""
    if not data.has_qid:
        return [len(seen)]
    new = [value.item() if isinstance(value, np.generic) else value for value in data.layout.ids]
    again = [value for value in new if value in seen]
    if again:
        problem = f"Query {again[0]!r} has been seen before: all rows of a query must be added at once."
        raise InputError(problem, parameter="qid")
    return new
