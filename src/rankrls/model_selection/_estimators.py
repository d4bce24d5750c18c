"""What a function of held-out rankings was given: an estimator and data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankrls._comparisons import LabelledItems
from rankrls._errors import InputError
from rankrls.models.fitting import check_comparable, labelled
from rankrls.models.inputs.parameters import check_alphas, check_parameters
from rankrls.models.rankrls import RankRLS
from rankrls.models.sparse_rankrls import SparseRankRLS

_BY_REFITS = "use scikit-learn's cross_validate with LeaveOneGroupOut and groups=qid"


def checked_model(estimator: Any, alphas: Any, what: str, *, refits: bool = True) -> tuple[Any, NDArray[np.float64]]:
    """A clone with checked parameters, and the grid of alphas.

    ``refits``: whether refits can do the same for estimators that are refused.
    """
    if not isinstance(estimator, RankRLS | SparseRankRLS):
        name = type(estimator).__name__
        if hasattr(estimator, "alphas"):
            how = "It chooses a model: pass RankRLS with the parameters that it chose (best_params_)."
        elif hasattr(estimator, "steps"):
            how = f"Transform X first{f', or {_BY_REFITS}' if refits else ', and pass the last step'}."
        else:
            how = f"{_BY_REFITS[0].upper()}{_BY_REFITS[1:]}." if refits else "Pass RankRLS or SparseRankRLS."
        raise InputError(
            f"{what} works on the solver of an estimator such as RankRLS; got {name}. {how}", parameter="estimator"
        )
    model = clone(estimator)
    grid = check_alphas([model.alpha] if alphas is None else alphas)
    model.set_params(alpha=float(grid[0]))
    check_parameters(model)
    if getattr(model, "solver", None) == "cg":
        model.set_params(solver="auto")  # the same model, from a factorisation
    return model, grid


def labelled_data(model: Any, X: Any, y: Any, qid: Any, sample_weight: Any, beta: float = 0.0) -> LabelledItems:
    """Checked data with one target, which order something unless a part ``beta`` of the loss is regression."""
    data = labelled(model, X, y, qid, sample_weight, comparable=False)
    check_comparable(data, beta)
    if data.Y.shape[1] != 1:
        raise InputError(f"y must hold one target at a time; y has {data.Y.shape[1]}.", parameter="y")
    return data
