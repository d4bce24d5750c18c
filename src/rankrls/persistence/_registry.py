"""The classes whose objects a model file may hold, by public name, and what is stored of each.

A class that is not listed here can be neither saved nor loaded. The names stand in files, so they stay; where a class
is defined does not matter to a file. Scikit-learn's classes were reviewed for what they keep: numbers, names, other
listed classes, and functions of a fixed list only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.kernels import KERNELS, kernel_parameters
from rankrls.persistence._archive import ModelFileError
from rankrls.persistence._checks import check_forms, distinct, require, shown_name
from rankrls.persistence._kinds import Kind, State
from rankrls.persistence._transformers import TRANSFORMERS

__all__ = ["FUNCTIONS", "KINDS", "registered", "restored"]


def registered(value: Any) -> Kind | None:
    """The kind of an object; None if its class, exactly, is not listed."""
    name = type(value).__name__
    candidates = [kind for kind in KINDS.values() if kind.name.rpartition(".")[2] == name]
    return next((kind for kind in candidates if kind.cls is type(value)), None)


def restored(name: Any, state: State) -> Any:
    """The object of a class by its registered name, and the state that :attr:`Kind.take` gave."""
    kind = KINDS.get(name)
    if kind is None:
        raise ModelFileError(
            "holds a {0}, which is not among the classes that a model file may hold. Nothing of it was loaded.",
            shown_name(name),
        )
    return kind.restore(state)


# Values without a public class ----------------------------------------------------------------------------------------


def _value(name: str, fields: str, forms: Mapping[str, str], check: Any = None, home: str = "") -> Kind:
    """A value that its constructor makes of its attributes."""
    names = fields.split()
    take = lambda value: {part: getattr(value, part) for part in names}
    return Kind(name, forms, check, take, lambda cls, state: cls(**state), home)


def _check_kernel(owner: str, state: State) -> None:
    require(state.get("name") in KERNELS, owner, "name", "is no kernel's name")
    require(state.get("params") == {}, owner, "params", "are not empty")
    require(state["gamma"] > 0, owner, "gamma", "is not positive")
    whole = "degree" not in kernel_parameters(state["name"]) or (state["degree"] >= 1 and state["degree"] % 1 == 0)
    require(whole, owner, "degree", "is no whole number of at least 1")


def _check_path(owner: str, state: State) -> None:
    require(len(state["losses"]) == len(state["indices"]) + 1, owner, "losses", "are not one more than the stages")
    require((state["indices"] >= 0).all(), owner, "indices", "are negative")


_IDS = (str, int, float, bool, type(None))


def _take_queries(seen: Any) -> State:
    for query in seen.queries:
        _check_id(query)
    return {
        "ids": list(seen.queries),
        "rows": np.array([rows for rows, _ in seen.queries.values()], dtype=np.int64),
        "energies": np.array([energy for _, energy in seen.queries.values()], dtype=np.float64),
        "n_rows": int(seen.n_rows),
    }


def _check_id(value: Any) -> None:
    if type(value) is tuple:
        for part in value:
            _check_id(part)
    elif type(value) not in _IDS:
        raise InputError(
            "The model cannot be saved with its queries: an id is {0!r}, of type {1}, and a model file holds numbers, "
            "strings and tuples of them.",
            value,
            type(value).__name__,
            parameter="qid",
            remedy="save(..., updatable=False) leaves out what partial_fit and forget need, the ids with it.",
        )


def _is_id(value: Any) -> bool:
    return all(map(_is_id, value)) if type(value) is tuple else type(value) in _IDS


def _check_ids(owner: str, state: State) -> None:
    require(all(map(_is_id, state["ids"])), owner, "ids", "are no ids of queries")


def _make_queries(cls: Any, state: State) -> Any:
    entries = zip(state["rows"].tolist(), state["energies"].tolist(), strict=True)
    return cls(distinct(state["ids"], entries), int(state["n_rows"]))


_ROWS = {"indices": "whole s", "coefficients": "float s,s", "losses": "float l"}
_VIEWS = {**_ROWS, "indices": "whole s,v", "coefficients": "float s,s,v", "view_losses": "float l,v"}
_NUMBERS = {"gamma": "number", "degree": "number", "coef0": "number"}
_EQUATIONS = {"gram": "float p,p", "rhs": "float p,q", "energy": "float q"}
_QUERIES = {"ids": "list q", "rows": "whole q", "energies": "float q", "n_rows": "count"}
_MEASURE = "name k convention gain discount empty ties relevant denominator single_scores tied_labels average"
_VALUES = (
    _value("rankrls.kernels.Kernel", "name gamma degree coef0 params", _NUMBERS, _check_kernel),
    _value("rankrls.metrics.Measure", _MEASURE, {}),
    _value("rankrls.preprocessing.ColumnUse", "name kind reason n_missing n_distinct examples n_features", {}),
    _value("scipy.interpolate.BSpline", "t c k extrapolate axis", {"t": "float t", "c": "float c|c,d"}),
    _value("NormalEquations", "gram rhs energy", _EQUATIONS, None, "rankrls.equations.normal_equations"),
    _value("rankrls.Items", "features ids", {"features": "rows k,n"}),
    _value("PursuitPath", "indices coefficients losses", _ROWS, _check_path, "rankrls.greedy.walk"),
    _value(
        "ForwardPath",
        "indices coefficients losses held_out",
        {**_ROWS, "held_out": "float l"},
        _check_path,
        "rankrls.greedy.forward",
    ),
    _value("CoPursuitPath", " ".join(_VIEWS), _VIEWS, _check_path, "rankrls.greedy.walk"),
    Kind("SeenQueries", _QUERIES, _check_ids, _take_queries, _make_queries, "rankrls.models.families.updating"),
)

# Estimators -----------------------------------------------------------------------------------------------------------


def _check_expansion(owner: str, state: State) -> None:
    """There is what ``predict`` needs for the kernel, and the rows of a kernel matrix exist."""
    _check_choice(owner, state)
    kernel, n = state["_kernel_"].name, state["n_features_in_"]
    if kernel == "linear":
        require(state.get("coef_") is not None, owner, "coef_", "is missing")
        return
    require(state.get("dual_coef_") is not None, owner, "dual_coef_", "is missing")
    require(state["dual_coef_"].size, owner, "dual_coef_", "is empty")
    if kernel != "precomputed":
        require(state.get("X_fit_") is not None, owner, "X_fit_", "is missing")
        return
    basis = state.get("basis_indices_")
    if basis is not None:
        require(((basis >= 0) & (basis < n)).all(), owner, "basis_indices_", "names an item that does not exist")
    items = n if basis is None or "path_" in state else len(basis)
    require(
        len(state["dual_coef_"]) == items, owner, "dual_coef_", f"has not one coefficient for each of {items} items"
    )


def _check_choice(owner: str, state: State) -> None:
    """What chose says what it chose, and what that was worth."""
    for name in ("best_params_", "best_score_", "best_score_error_"):
        require("selection_" not in state or name in state, owner, name, "is missing")
    require(isinstance(state.get("best_params_", {}), dict), owner, "best_params_", "is no dictionary")
    for name, value in state.items():
        require(isinstance(value, bool) or not name.endswith("_at_edge_"), owner, name, "is neither true nor false")


def _check_updates(owner: str, state: State) -> None:
    _check_expansion(owner, state)
    if state.get("_equations_") is None:
        return
    require(state.get("_seen_") is not None, owner, "_seen_", "is missing")
    size, parts = state["n_features_in_"], state.get("_basis_parts_")
    if parts is not None:
        check_forms(owner, parts, {"to_items": "float k,p", "rows_first": "flag", "features?": "float n,p"}, ())
        size = parts["to_items"].shape[1]
    require(all(len(e.gram) == size for e in state["_equations_"]), owner, "_equations_", f"are not of {size} unknowns")


def _check_pursuit(owner: str, state: State) -> None:
    _check_expansion(owner, state)
    basis, rows = state["basis_indices_"], state.get("X_fit_")
    same = np.array_equal(np.unique(basis), np.unique(state["path_"].indices))
    require(same and len(np.unique(basis)) == len(basis), owner, "basis_indices_", "are not those of the path")
    if rows is None:
        require((basis < state["n_features_in_"]).all(), owner, "basis_indices_", "names what does not exist")
    else:
        require(rows.shape[0] == len(basis), owner, "X_fit_", "has not one row for each of basis_indices_")


def _check_view_features(owner: str, state: State) -> None:
    for part in state["_view_features_"]:
        inside = part is None or (part.dtype.kind in "iu" and ((part >= 0) & (part < state["n_features_in_"])).all())
        require(inside, owner, "_view_features_", "names a feature that does not exist")


def _check_views(owner: str, state: State) -> None:
    kernels, features, path = state["_view_kernels_"], state["_view_features_"], state["path_"]
    basis, rows, n = state["basis_indices_"], state.get("X_fit_"), state["n_features_in_"]
    _check_view_features(owner, state)
    _check_choice(owner, state)
    require(len(kernels) == path.indices.shape[1], owner, "_view_kernels_", "are not as many as the path has views")
    require(np.isin(path.indices, basis).all(), owner, "basis_indices_", "are not those of the path")
    if state.get("coef_") is not None:
        require((basis < n).all(), owner, "basis_indices_", "names a feature that does not exist")
        return
    given = {kernel.name == "precomputed" for kernel in kernels}
    require(given == {rows is None}, owner, "X_fit_", "does not go with the kernels of the views")
    all_features = all(part is None for part in features) and (basis < n).all()
    require(rows is not None or all_features, owner, "basis_indices_", "names an item that does not exist")


def _check_selected(owner: str, state: State) -> None:
    _check_choice(owner, state)
    taken = state["selected_"]
    inside = ((taken >= 0) & (taken < state["n_features_in_"])).all()
    require(inside, owner, "selected_", "names a feature that does not exist")


def _check_conditional(owner: str, state: State) -> None:
    _check_choice(owner, state)
    for name in ("items_", "_item_kernel_"):
        require(name in state, owner, name, "is missing")
    kernel, items = state["_kernel_"].name, state.get("items_")
    parts = "coef_" if kernel == "linear" else "dual_coef_"
    require(state.get(parts) is not None, owner, parts, "is missing")
    require(kernel in ("linear", "precomputed") or state.get("X_fit_") is not None, owner, "X_fit_", "is missing")
    rows = state["n_features_in_"] if kernel == "precomputed" else len(state["dual_coef_"]) if kernel != "linear" else 0
    require(kernel == "linear" or len(state["dual_coef_"]) == rows, owner, "dual_coef_", "has not a row a query")
    require(len(state["intercept_"]) == state["n_items_"], owner, "intercept_", "has not one for each item")
    require((items is None) == (state.get("_item_kernel_") is None), owner, "items_", "do not go with their kernel")
    require(items is None or items.n_items == state["n_items_"], owner, "items_", "are not as many as n_items_")


def _check_agreeing(owner: str, state: State) -> None:
    _check_view_features(owner, state)
    _check_choice(owner, state)
    require(
        (state.get("coef_") is None) != (state.get("dual_coef_") is None), owner, "coef_", "do not go with dual_coef_"
    )
    if state.get("dual_coef_") is not None:
        require(state.get("X_fit_") is not None, owner, "X_fit_", "is missing")
        right = state["dual_coef_"].shape[1] == len(state["_view_kernels_"]) == len(state["_view_features_"])
        require(right, owner, "dual_coef_", "has not a column for each view")


def _check_boosting(owner: str, state: State) -> None:
    _check_choice(owner, state)
    require(len(state["features_"]) == state["n_estimators_"], owner, "n_estimators_", "is not the number of stumps")


def _check_auto(owner: str, state: State) -> None:
    _check_choice(owner, state)
    chosen: Any = state["best_estimator_"]
    last = chosen.steps[-1][1] if type(chosen).__name__ == "Pipeline" else chosen
    right = type(last).__name__ in ("RankRLSCV", "SparseRankRLSCV") and last.n_features_in_ == state["n_features_in_"]
    require(right, owner, "best_estimator_", "is no model of these features")


_MAY_BE_NAN = (
    "best_params_ best_score_ best_score_error_ cv_results_ query_scores_ held_out_scores_ validation_surface_ "
    "validation_scores_ train_loss_ transduction_ iterations_ objective_ dual_gap_"
)
_FITTED = {
    "n_queries_": "count",
    "n_features_in_": "count",
    "feature_names_in_?": "names n",
    "_fitted_with_qid": "flag",
    "_one_target": "flag",
    "_kernel_?": "Kernel",
    "coef_?": "float n|t,n",
    "dual_coef_?": "float k|k,t",
    **{f"{name}?": "free" for name in _MAY_BE_NAN.split()},
}
_KERNEL = {
    **_FITTED,
    "_kernel_": "Kernel",
    "X_fit_?": "rows k,n",
    "basis_indices_?": "whole b",
    "support_?": "whole u",
    "n_support_?": "free",
    "alpha_?": "number",
    "alphas_?": "float a",
    "C_?": "number",
}
_UPDATES = {**_KERNEL, "_equations_?": "[NormalEquations]", "_seen_?": "SeenQueries", "_basis_parts_?": "free"}
_PURSUIT = {**_KERNEL, "path_": "PursuitPath", "basis_indices_": "whole b"}
_CO_PURSUIT = {
    **_FITTED,
    "path_": "CoPursuitPath",
    "basis_indices_": "whole k",
    "X_fit_?": "rows k,n",
    "_view_kernels_": "[Kernel]",
    "_view_features_": "list v",
    "view_weights_?": "float v",
    "view_errors_?": "float v",
}
_GREEDY = {
    **_FITTED,
    "_kernel_": "Kernel",
    "coef_": "float n",
    "selected_": "whole k",
    "path_": "ForwardPath",
    "alpha_": "number",
}
_AGREEING = {
    **_FITTED,
    "coef_?": "float n",
    "dual_coef_?": "float k,v",
    "X_fit_?": "rows k,n",
    "_view_kernels_": "[Kernel]",
    "_view_features_": "list v",
    "alpha_": "number",
    "mu_": "number",
}
_CONDITIONAL = {
    **{name: form for name, form in _FITTED.items() if name not in ("_fitted_with_qid", "_one_target")},
    "n_items_": "count",
    "_kernel_": "Kernel",
    "_item_kernel_?": "Kernel",
    "items_?": "Items",
    "coef_?": "float d,n",
    "dual_coef_?": "float k,d",
    "X_fit_?": "rows k,n",
    "intercept_": "float d",
    "alpha_": "number",
}
_BOOSTING = {
    **_FITTED,
    "features_": "index s",
    "thresholds_": "float s",
    "weights_": "float s",
    "n_estimators_": "free",
}
_AUTO = {
    **_FITTED,
    "best_estimator_": "free",
    **{f"{name}?": "free" for name in ("results_", "optimism_", "nested_score_", "nested_score_error_")},
}
_MODELS = tuple(
    Kind(f"rankrls.{name}", forms, check, is_model=True)
    for name, forms, check in (
        ("RankRLS", _UPDATES, _check_updates),
        ("RankRLSCV", _UPDATES, _check_updates),
        ("CGRankRLS", _KERNEL, _check_expansion),
        ("TransductiveRankRLS", _KERNEL, _check_expansion),
        ("TransductiveRankRLSCV", _KERNEL, _check_expansion),
        ("SparseRankRLS", _UPDATES, _check_updates),
        ("SparseRankRLSCV", _UPDATES, _check_updates),
        ("RankSVM", _KERNEL, _check_expansion),
        ("RankSVMCV", _KERNEL, _check_expansion),
        ("RankingPursuit", _PURSUIT, _check_pursuit),
        ("RankingPursuitCV", _PURSUIT, _check_pursuit),
        ("CoRankingPursuit", _CO_PURSUIT, _check_views),
        ("CoRankingPursuitCV", {**_CO_PURSUIT, "n_basis_": "count"}, _check_views),
        ("GreedyRankRLS", _GREEDY, _check_selected),
        ("ConditionalRankRLS", _CONDITIONAL, _check_conditional),
        ("ConditionalRankRLSCV", _CONDITIONAL, _check_conditional),
        ("CoRankRLS", _AGREEING, _check_agreeing),
        ("RankBoost", _BOOSTING, _check_boosting),
        ("AutoRankRLS", _AUTO, _check_auto),
    )
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (*_VALUES, *_MODELS, *TRANSFORMERS)}
"""Every class that a file may hold, by the name that stands in it."""

FUNCTIONS = tuple(
    f"sklearn.feature_selection.{name}"
    for name in ("chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression", "r_regression")
)
"""Every function that a file may name."""
