"""Results of a fit, from which an estimator's attributes are set in one place, at the very end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankrls._arrays import on_device, to_device_of
from rankrls._comparisons import Data
from rankrls._errors import InputError, InputWarning
from rankrls._problems import Solutions
from rankrls._typing import AnyArray, Array, Matrix, Params, Values
from rankrls.kernels import Kernel
from rankrls.metrics._measure import row_order_warning
from rankrls.numerics.scorer import Basis, Scorer
from rankrls.selection.optimism import search_bias
from rankrls.selection.plans import Plan
from rankrls.selection.search import SearchState

FORMAT_VERSION = 5
"""Version of the attributes of fitted models, for pickles and model files."""


class FormatVersionError(InputError):
    """A stored model whose attributes differ from those of this version."""


def check_format(version: object, model: str) -> None:
    """Refuse a stored model whose attributes have another version.

    Raises
    ------
    FormatVersionError
        If the versions differ, with the remedy.
    """
    if version != FORMAT_VERSION:
        remedy = "Update rankrls" if isinstance(version, int) and version > FORMAT_VERSION else "Fit the model again"
        problem = (
            f"{model} has the format version {ascii(version)[:40]}, and this rankrls reads version {FORMAT_VERSION}."
        )
        raise FormatVersionError(f"{problem} {remedy}.", parameter="model")


class NotConverged(InputWarning, ConvergenceWarning):
    """An iteration ended before its tolerance was reached."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """All results of a fit.

    Attributes
    ----------
    data : Data
        Fitted data.
    attributes : mapping
        Attributes of the estimator, by name.
    warnings : tuple of Warning
        Warnings to show the user.
    """

    data: Data
    attributes: Params
    warnings: tuple[Warning, ...] = field(default=())

    @classmethod
    def of(
        cls,
        data: Data,
        scorer: Scorer | None = None,
        kernel: Kernel | None = None,
        basis: Basis | None = None,
        **more: object,
    ) -> Fitted:
        """Attributes that follow from the data, scorer, kernel and basis, and further ones by name."""
        known = {**_of_data(data), **more}
        if scorer is not None:
            known |= _of_function(data, scorer)
        if kernel is not None:
            known["_kernel_"] = kernel
        if basis is not None:
            assert basis.numbers is not None
            known["basis_indices_"] = data.given_numbers(basis.numbers)
        return cls(data, known)

    def with_warnings(self, *warnings: Warning | None) -> Fitted:
        """A copy with more warnings, without None."""
        return replace(self, warnings=(*self.warnings, *filter(None, warnings)))

    def chosen_by(self, plan: Plan, data: Data, found: SearchState[Solutions]) -> Fitted:
        """A copy with the results of the selection; held-out scores are those of the rows of ``data``."""
        choice: Values = {
            f"{found.parameter}_": found.best_value,
            **{f"{name}_at_edge_": at_edge for name, at_edge in found.edges.items()},
            "best_params_": {**found.best_choices, found.parameter: found.best_value},
            "best_index_": found.best_index,
            "best_score_": found.best_score,
            "best_score_error_": found.best_error,
            "optimism_": search_bias(found),
            "cv_results_": found.table(),
            "selection_": described(plan.description, data),
            "query_scores_": found.best_block_scores if plan.blocks_are_queries else None,
            "held_out_scores_": None,
        }
        if found.best_scores is not None:
            choice |= data.held_out_attributes(found.best_scores)
        lost = None if found.lost_feature is None else lost_feature_warning(data, found.lost_feature)
        tied = row_order_warning(plan.measure, found.best_score, found.best_error, found.best_shift)
        # attributes set by the solver itself take precedence
        return replace(self, attributes={**choice, **self.attributes}).with_warnings(lost, tied)


class ChosenAttributes:
    """Attributes of an estimator that selects a model; see :class:`rankrls.RankRLSCV`."""

    best_params_: Values
    best_index_: int
    best_score_: float
    best_score_error_: float
    optimism_: float
    cv_results_: dict[str, AnyArray]
    selection_: str
    query_scores_: Array | None
    held_out_scores_: Array | None


def _of_data(data: Data) -> Values:
    known: Values = {
        "n_queries_": data.n_queries,
        "fitted_with_qid_": data.has_qid,
        "_one_target_": data.one_target,
    }
    if data.features.count is not None:
        known["n_features_in_"] = data.features.count
    if data.features.names is not None:
        known["feature_names_in_"] = data.features.names
    if data.propensities is not None:
        known["propensities_"] = data.propensities
    return known


def _of_function(data: Data, scorer: Scorer) -> Values:
    """Public coefficients of a function."""
    scorer = scorer.over(data.kept)
    known: Values = {}
    if scorer.weights is not None:
        weights = scorer.weights
        known["coef_"] = _stored(weights[:, 0] if data.one_target else weights.T, data.like)
    if scorer.coefficients is not None:
        coefficients = scorer.coefficients
        known["dual_coef_"] = _stored(coefficients[:, 0] if data.one_target else coefficients, data.like)
    if scorer.items is not None:
        known["X_fit_"] = to_device_of(scorer.items, data.like)
    return known


def _stored(values: Matrix, like: Matrix) -> Matrix:
    return values if on_device(values) else to_device_of(np.ascontiguousarray(values), like)


def described(description: str, data: Data) -> str:
    """Description of the selection, including a correction of clicks."""
    return description if data.propensities is None else f"{description}, clicks weighted by inverse propensities"


def lost_feature_warning(data: Data, feature: int) -> InputWarning:
    """Warning that rounding of a large feature hides a small one."""
    names = data.features.names
    return InputWarning(
        f"Feature {data.features.called(feature)} varies so much less than others that rounding hides it. Scale the "
        "features, for example with StandardScaler.",
        parameter="X",
        column=feature if names is None else str(names[feature]),
    )
