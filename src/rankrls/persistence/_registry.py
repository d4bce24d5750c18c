"""The classes whose objects a model file may hold, by public name, and what is stored of each.

A class that is not listed here can be neither saved nor loaded. The names stand in files, so they stay; where a class
is defined does not matter to a file. Scikit-learn's classes were reviewed for what they keep: numbers, names, other
listed classes, and functions of a fixed list only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.kernels import KERNELS, kernel_parameters
from rankrls.persistence._archive import ModelFileError
from rankrls.persistence._checks import Facts, check_forms, distinct, inside, needs, shown_name
from rankrls.persistence._kinds import Kind, State
from rankrls.persistence._transformers import TRANSFORMERS


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


def _value(name: str, forms: Mapping[str, str], check: Any = None, home: str = "", parts: Sequence[str] = ()) -> Kind:
    """A value that its constructor makes of its attributes: of its fields, unless it is told of its parts."""
    take = lambda value: {part: getattr(value, part) for part in parts or [field.name for field in fields(value)]}
    return Kind(name, forms, check, take, lambda cls, state: cls(**state), home)


def _kernel_facts(state: State) -> Facts:
    yield state.get("name") in KERNELS, "name", "is no kernel's name"
    yield state.get("params") == {}, "params", "are not empty"
    yield state["gamma"] > 0, "gamma", "is not positive"
    whole = "degree" not in kernel_parameters(state["name"]) or (state["degree"] >= 1 and state["degree"] % 1 == 0)
    yield whole, "degree", "is no whole number of at least 1"


def _path_facts(state: State) -> Facts:
    yield len(state["losses"]) == len(state["indices"]) + 1, "losses", "are not one more than the stages"
    yield (state["indices"] >= 0).all(), "indices", "are negative"


_IDS = (str, int, float, bool, type(None))


def _take_queries(seen: Any) -> State:
    for value in _plain(seen.queries):
        if type(value) not in _IDS:
            raise InputError(
                "The model cannot be saved with its queries: an id is {0!r}, of type {1}, and a model file holds "
                "numbers, strings and tuples of them.",
                value,
                type(value).__name__,
                parameter="qid",
                remedy="save(..., updatable=False) leaves out what partial_fit and forget need, the ids with it.",
            )
    return {
        "ids": list(seen.queries),
        "rows": np.array([rows for rows, _ in seen.queries.values()], dtype=np.int64),
        "energies": np.array([energy for _, energy in seen.queries.values()], dtype=np.float64),
        "n_rows": int(seen.n_rows),
    }


def _plain(ids: Iterable[Any]) -> Iterator[Any]:
    """Ids, and the parts of those that are tuples."""
    for value in ids:
        yield from _plain(value) if type(value) is tuple else (value,)


def _id_facts(state: State) -> Facts:
    yield all(type(value) in _IDS for value in _plain(state["ids"])), "ids", "are no ids of queries"


def _make_queries(cls: Any, state: State) -> Any:
    entries = zip(state["rows"].tolist(), state["energies"].tolist(), strict=True)
    return cls(distinct(state["ids"], entries), int(state["n_rows"]))


_ROWS = {"indices": "whole s", "coefficients": "float s,s", "losses": "float l"}
_VIEWS = {**_ROWS, "indices": "whole s,v", "coefficients": "float s,s,v", "view_losses": "float l,v"}
_NUMBERS = {"gamma": "number", "degree": "number", "coef0": "number"}
_EQUATIONS = {"gram": "float p,p", "rhs": "float p,q", "energy": "float q"}
_QUERIES = {"ids": "[free] q", "rows": "whole q", "energies": "float q", "n_rows": "count"}
_FORWARD = {**_ROWS, "held_out": "float l"}
_CURVE = ("t", "c", "k", "extrapolate", "axis")
_VALUES = (
    _value("rankrls.kernels.Kernel", _NUMBERS, _kernel_facts),
    _value("rankrls.metrics.Measure", {}),
    _value("rankrls.preprocessing.ColumnUse", {}),
    _value("scipy.interpolate.BSpline", {"t": "float t", "c": "float c|c,d"}, parts=_CURVE),
    _value("NormalEquations", _EQUATIONS, None, "rankrls.equations.normal_equations"),
    _value("rankrls.Items", {"features": "rows k,n"}),
    _value("PursuitPath", _ROWS, _path_facts, "rankrls.greedy.walk"),
    _value("ForwardPath", _FORWARD, _path_facts, "rankrls.greedy.forward"),
    _value("CoPursuitPath", _VIEWS, _path_facts, "rankrls.greedy.walk"),
    Kind("SeenQueries", _QUERIES, _id_facts, _take_queries, _make_queries, "rankrls.models.families.updating"),
)

# Estimators -----------------------------------------------------------------------------------------------------------


def _choice_facts(state: State) -> Facts:
    """What chose says what it chose, and what that was worth."""
    if "selection_" in state:
        for name in ("best_params_", "best_score_", "best_score_error_"):
            yield name in state, name, "is missing"
    yield isinstance(state.get("best_params_", {}), dict), "best_params_", "is no dictionary"
    for name, value in state.items():
        yield isinstance(value, bool) or not name.endswith("_at_edge_"), name, "is neither true nor false"


def _expansion_facts(state: State) -> Facts:
    """There is what ``predict`` needs for the kernel, and the rows of a kernel matrix exist."""
    yield from _choice_facts(state)
    kernel, n = state["_kernel_"].name, state["n_features_in_"]
    if kernel == "linear":
        yield from needs(state, "coef_")
        return
    yield from needs(state, "dual_coef_")
    yield state["dual_coef_"].size, "dual_coef_", "is empty"
    if kernel != "precomputed":
        yield from needs(state, "X_fit_")
        return
    basis = state.get("basis_indices_")
    yield basis is None or inside(basis, n), "basis_indices_", "names an item that does not exist"
    items = n if basis is None or "path_" in state else len(basis)
    yield len(state["dual_coef_"]) == items, "dual_coef_", f"has not one coefficient for each of {items} items"


def _update_facts(state: State) -> Facts:
    yield from _expansion_facts(state)
    if state.get("_equations_") is None:
        return
    yield from needs(state, "_seen_")
    size, parts = state["n_features_in_"], state.get("_basis_parts_")
    if parts is not None:
        forms = {"to_items": "float k,p", "rows_first": "flag", "features?": "float n,p"}
        check_forms("_basis_parts_", parts, forms, ())
        size = parts["to_items"].shape[1]
    yield all(len(e.gram) == size for e in state["_equations_"]), "_equations_", f"are not of {size} unknowns"


def _pursuit_facts(state: State) -> Facts:
    yield from _expansion_facts(state)
    basis, rows = state["basis_indices_"], state.get("X_fit_")
    same = np.array_equal(np.unique(basis), np.unique(state["path_"].indices))
    yield same and len(np.unique(basis)) == len(basis), "basis_indices_", "are not those of the path"
    yield rows is not None or inside(basis, state["n_features_in_"]), "basis_indices_", "names what does not exist"
    yield rows is None or rows.shape[0] == len(basis), "X_fit_", "has not one row for each of basis_indices_"


def _view_facts(state: State) -> Facts:
    yield from _choice_facts(state)
    kernels, features, path = state["_view_kernels_"], state["_view_features_"], state["path_"]
    basis, rows, n = state["basis_indices_"], state.get("X_fit_"), state["n_features_in_"]
    yield len(kernels) == path.indices.shape[1], "_view_kernels_", "are not as many as the path has views"
    yield np.isin(path.indices, basis).all(), "basis_indices_", "are not those of the path"
    if state.get("coef_") is not None:
        yield inside(basis, n), "basis_indices_", "names a feature that does not exist"
        return
    given = {kernel.name == "precomputed" for kernel in kernels}
    yield given == {rows is None}, "X_fit_", "does not go with the kernels of the views"
    all_features = all(part is None for part in features) and inside(basis, n)
    yield rows is not None or all_features, "basis_indices_", "names an item that does not exist"


def _conditional_facts(state: State) -> Facts:
    yield from _choice_facts(state)
    for name in ("items_", "_item_kernel_"):
        yield name in state, name, "is missing"
    kernel, items = state["_kernel_"].name, state["items_"]
    yield from needs(state, "coef_" if kernel == "linear" else "dual_coef_")
    if kernel == "precomputed":
        yield len(state["dual_coef_"]) == state["n_features_in_"], "dual_coef_", "has not a row a query"
    elif kernel != "linear":
        yield from needs(state, "X_fit_")
    yield (items is None) == (state["_item_kernel_"] is None), "items_", "do not go with their kernel"
    yield items is None or items.n_items == state["n_items_"], "items_", "are not as many as n_items_"


def _agreeing_facts(state: State) -> Facts:
    yield from _choice_facts(state)
    alone = (state.get("coef_") is None) != (state.get("dual_coef_") is None)
    yield alone, "coef_", "do not go with dual_coef_"
    if state.get("dual_coef_") is not None:
        yield from needs(state, "X_fit_")
        right = state["dual_coef_"].shape[1] == len(state["_view_kernels_"]) == len(state["_view_features_"])
        yield right, "dual_coef_", "has not a column for each view"


def _auto_facts(state: State) -> Facts:
    yield from _choice_facts(state)
    chosen: Any = state["best_estimator_"]
    last = chosen.steps[-1][1] if type(chosen).__name__ == "Pipeline" else chosen
    right = type(last).__name__ in ("RankRLSCV", "SparseRankRLSCV") and last.n_features_in_ == state["n_features_in_"]
    yield right, "best_estimator_", "is no model of these features"


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
    "X_fit_?": "rows k,n",
    "alpha_?": "number",
    **{f"{name}?": "free" for name in _MAY_BE_NAN.split()},
}
_KERNEL = {
    **_FITTED,
    "_kernel_": "Kernel",
    "basis_indices_?": "whole b",
    "support_?": "whole u",
    "n_support_?": "free",
    "alphas_?": "float a",
    "C_?": "number",
}
_UPDATES = {**_KERNEL, "_equations_?": "[NormalEquations]", "_seen_?": "SeenQueries", "_basis_parts_?": "free"}
_PURSUIT = {**_KERNEL, "path_": "PursuitPath", "basis_indices_": "whole b"}
_GREEDY = {**_KERNEL, "coef_": "float n", "selected_": "index s", "path_": "ForwardPath", "alpha_": "number"}
_OF_VIEWS = {**_FITTED, "_view_kernels_": "[Kernel]", "_view_features_": "[index _?] v"}
_CO_PURSUIT = {
    **_OF_VIEWS,
    "path_": "CoPursuitPath",
    "basis_indices_": "whole k",
    "view_weights_?": "float v",
    "view_errors_?": "float v",
}
_AGREEING = {**_OF_VIEWS, "coef_?": "float n", "dual_coef_?": "float k,v", "alpha_": "number", "mu_": "number"}
_CONDITIONAL = {
    **{name: form for name, form in _FITTED.items() if name not in ("_fitted_with_qid", "_one_target")},
    "n_items_": "count d",
    "_kernel_": "Kernel",
    "_item_kernel_?": "Kernel",
    "items_?": "Items",
    "coef_?": "float d,n",
    "dual_coef_?": "float k,d",
    "intercept_": "float d",
    "alpha_": "number",
}
_BOOSTING = {
    **_FITTED,
    "features_": "index s",
    "thresholds_": "float s",
    "weights_": "float s",
    "n_estimators_": "size s",
}
_AUTO = {
    **_FITTED,
    "best_estimator_": "free",
    **{f"{name}?": "free" for name in ("results_", "optimism_", "nested_score_", "nested_score_error_")},
}
_MODELS = tuple(
    Kind(f"rankrls.{name}", forms, check, is_model=True)
    for name, forms, check in (
        ("RankRLS", _UPDATES, _update_facts),
        ("RankRLSCV", _UPDATES, _update_facts),
        ("CGRankRLS", _KERNEL, _expansion_facts),
        ("TransductiveRankRLS", _KERNEL, _expansion_facts),
        ("TransductiveRankRLSCV", _KERNEL, _expansion_facts),
        ("SparseRankRLS", _UPDATES, _update_facts),
        ("SparseRankRLSCV", _UPDATES, _update_facts),
        ("RankSVM", _KERNEL, _expansion_facts),
        ("RankSVMCV", _KERNEL, _expansion_facts),
        ("RankingPursuit", _PURSUIT, _pursuit_facts),
        ("RankingPursuitCV", _PURSUIT, _pursuit_facts),
        ("CoRankingPursuit", _CO_PURSUIT, _view_facts),
        ("CoRankingPursuitCV", {**_CO_PURSUIT, "n_basis_": "count"}, _view_facts),
        ("GreedyRankRLS", _GREEDY, _choice_facts),
        ("ConditionalRankRLS", _CONDITIONAL, _conditional_facts),
        ("ConditionalRankRLSCV", _CONDITIONAL, _conditional_facts),
        ("CoRankRLS", _AGREEING, _agreeing_facts),
        ("RankBoost", _BOOSTING, _choice_facts),
        ("AutoRankRLS", _AUTO, _auto_facts),
    )
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in (*_VALUES, *_MODELS, *TRANSFORMERS)}
"""Every class that a file may hold, by the name that stands in it."""

FUNCTIONS = tuple(
    f"sklearn.feature_selection.{name}"
    for name in ("chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression", "r_regression")
)
"""Every function that a file may name."""
