"""What a function of held-out rankings was given: an estimator and data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankrls._comparisons import Comparisons, LabelledItems
from rankrls._errors import InputError
from rankrls.models.families.updating import UpdatingRanker
from rankrls.models.inputs.parameters import check_alphas
from rankrls.models.inputs.seen_labels import label_users
from rankrls.models.inputs.validation import check_comparable, labelled_items
from rankrls.selection.candidates import Candidate
from rankrls.selection.costs import cheaper, check_affordable

_BY_REFITS = "use scikit-learn's cross_validate with LeaveOneGroupOut and groups=qid"


def checked_model(estimator: Any, alphas: Any, what: str, *, refits: bool = True) -> tuple[Any, NDArray[np.float64]]:
    """A clone with checked parameters, and the grid of alphas.

    ``refits``: whether refits can do the same for estimators that are refused.
    """
    if not isinstance(estimator, UpdatingRanker):
        name = type(estimator).__name__
        if hasattr(estimator, "alphas"):
            how = "It chooses a model: pass RankRLS with the parameters that it chose (best_params_)."
        elif refits and (seen_by := label_users(estimator)):
            how = f"{' and '.join(seen_by)} would have learned from the labels that are held out: {_BY_REFITS}."
        elif hasattr(estimator, "steps"):
            how = f"Transform X first{f', or {_BY_REFITS}' if refits else ', and pass the last step'}."
        else:
            how = f"{_BY_REFITS[0].upper()}{_BY_REFITS[1:]}." if refits else "Pass RankRLS or SparseRankRLS."
        raise InputError(
            "{0} works on the solver of an estimator such as RankRLS; got {1}.",
            what,
            name,
            how,
            remedy="{2}",
            parameter="estimator",
        )
    model = clone(estimator)
    grid = check_alphas([model.alpha] if alphas is None else alphas)
    model.set_params(alpha=float(grid[0]))
    model._check()
    if getattr(model, "solver", None) == "cg":
        model.set_params(solver="auto")  # the same model, from a factorisation
    return model, grid


def labelled_data(model: Any, X: Any, y: Any, qid: Any, sample_weight: Any, beta: float = 0.0) -> LabelledItems:
    """Checked data with one target, which order something unless a part ``beta`` of the loss is regression."""
    data = labelled_items(model, X, y, qid, sample_weight, kernel=model.kernel)
    check_comparable(data, beta)
    if data.Y.shape[1] != 1:
        raise InputError("{y} must hold one target at a time; y has {0}.", data.Y.shape[1])
    return data


def affordable_candidate(model: Any, data: Comparisons, values: int, blocks: list[Any] | None = None) -> Candidate:
    """What is solved, if its cost allows it: with blocks held out without refitting, or one solution for each value."""
    candidate: Candidate = model._candidate(data)
    if blocks is None:
        cost = candidate.cost(data, None, 1).times(values)
    else:
        units = np.arange(data.n_units)
        cost = candidate.cost(data, np.array([len(units[block]) for block in blocks]), values)
    check_affordable(cost, remedy=cheaper(candidate.kernel.is_linear))
    return candidate
