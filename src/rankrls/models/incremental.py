"""Exact updates of a model by batches of whole queries: its normal equations are added up."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import asdict, dataclass, replace

import numpy as np

from rankrls._arrays import host_only
from rankrls._comparisons import LabelledItems, Setting
from rankrls._errors import InputError
from rankrls._typing import Array, Index, Matrix, Values
from rankrls.kernels import Kernel
from rankrls.models.fitted import Fitted
from rankrls.models.spec import LeastSquaresSpec, feature_signs
from rankrls.numerics.basis import Basis
from rankrls.numerics.nonnegative import signed_path
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import Equations
from rankrls.selection.basis import basis_numbers, make_basis


@dataclass(frozen=True, eq=False)
class UpdateState:
    """State of ``partial_fit``.

    Attributes
    ----------
    equations : list of Equations
        Of all rows so far, for each graph.
    queries : dict
        The ids of all queries so far, or the numbers of batches without ids, in order; values are None.
    settings : dict
        Parameters that must stay as they are, by name.
    basis_indices : ndarray, or None
        Rows of the first batch that are the basis.
    to_items : ndarray, or None
        Coefficients of the basis's items for orthonormal functions.
    rows_first : bool
    of_features : ndarray, or None
        See :class:`rankrls.numerics.basis.Basis`.
    """

    equations: list[Equations]
    queries: dict[Hashable, None]
    settings: Values
    basis_indices: Index | None = None
    to_items: Array | None = None
    rows_first: bool = False
    of_features: Array | None = None


def updated(
    spec: LeastSquaresSpec, data: LabelledItems, state: UpdateState | None, kernel: Kernel | None, items: Matrix
) -> Fitted:
    """The model of all rows so far; ``kernel`` and basis ``items`` are those of a model that is continued."""
    host_only(data.X, "partial_fit")
    setting, _ = spec.graphs[0]
    settings = _settings(spec, setting, data)
    basis: Basis | None = None
    if state is None:
        kernel, _ = spec.kernels.resolved(data.X)[0]
        if spec.basis is not None:
            basis = make_basis(data, kernel, basis_numbers(spec.basis, data))
        indices = None if basis is None else data.given_numbers(np.asarray(basis.numbers))
        state = UpdateState([], {}, settings, indices)
    else:
        _check_continued(state.settings, settings)
        assert kernel is not None
        if spec.basis is not None:
            assert state.to_items is not None
            basis = Basis(kernel, items, state.to_items, state.rows_first, of_features=state.of_features)
    new_queries = _new_queries(state.queries, data)
    whitening = None if basis is None else basis.whitening
    equations = [items.equations(basis).whitened(whitening) for items in data.compared(setting)]
    if state.equations:
        for k, old in enumerate(state.equations):
            equations[k] += old
    assert spec.grid is not None
    alpha = float(spec.grid[0])
    coefficients = np.hstack([_solve(one, alpha, spec, data) for one in equations])
    scorer = Scorer(coefficients) if basis is None else basis.scorer(coefficients)
    queries = dict.fromkeys(new_queries)
    if state.queries:
        state.queries.update(queries)  # in its memory: there may be very many
        queries = state.queries
    plain = [replace(one, whitening=None) for one in equations]
    new = UpdateState(plain, queries, settings, state.basis_indices)
    if basis is not None:
        new = replace(new, to_items=basis.to_items, rows_first=basis.rows_first, of_features=basis.of_features)
    known: Values = {} if basis is None else {"basis_indices_": state.basis_indices}
    fitted = Fitted.of(data, scorer, kernel, alpha_=alpha, **known)
    return fitted.with_attributes(n_queries_=len(new.queries), _update_state_=new)


def _solve(equations: Equations, alpha: float, spec: LeastSquaresSpec, data: LabelledItems) -> Array:
    """Coefficients of one alpha, under constraints on signs."""
    signs = feature_signs(spec.positive, data.features)
    return equations.solve(alpha) if signs is None else signed_path(equations, np.array([alpha]), signs)[0]


def _settings(spec: LeastSquaresSpec, setting: Setting, data: LabelledItems) -> Values:
    """Parameters that must stay as they are, by name."""
    values = spec.kernels.values
    kernel = values["kernel"] if isinstance(values["kernel"], str) else "a function"
    numbers = {name: values[name] for name in ("gamma", "degree", "coef0")} if kernel != "linear" else {}
    of_data = {"qid": "given" if data.has_qid else "not given", "y": f"of {data.n_targets} targets"}
    return {**asdict(setting), "kernel": kernel, **numbers, **of_data}


def _check_continued(before: Values, now: Values) -> None:
    """Refuse a batch that does not go with what was seen."""
    for name, value in before.items():
        if now.get(name) != value:
            problem = (
                f"partial_fit cannot mix graphs: {name} was {value!r}, now {now.get(name)!r}. Only alpha may change."
            )
            raise InputError(problem, parameter=name)


def _new_queries(seen: dict[Hashable, None], data: LabelledItems) -> list[Hashable]:
    """The ids of a batch, none of which was seen; a batch without qid is a ranking by itself."""
    if not data.has_qid:
        return [len(seen)]
    new = [value.item() if isinstance(value, np.generic) else value for value in data.layout.ids]
    again = [value for value in new if value in seen]
    if again:
        problem = f"Query {again[0]!r} has been seen before: all rows of a query must be added at once."
        raise InputError(problem, parameter="qid")
    return new
