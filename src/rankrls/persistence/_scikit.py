"""What scikit-learn's transformers must hold so that they transform, or refuse their input with a ValueError.

Their parameters are checked by scikit-learn itself; what they learned is checked here, where the forms of the registry
do not say enough.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import isroutine
from math import comb
from typing import Any

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from rankrls.persistence._checks import bad_value, require

__all__ = [
    "check_bins",
    "check_categories",
    "check_columns",
    "check_dropped",
    "check_encodings",
    "check_imputer",
    "check_output",
    "check_parameters",
    "check_polynomial",
    "check_scores",
    "check_splines",
    "check_steps",
    "check_union",
]

_CELLS = (str, int, float, bool, type(None), np.str_)
_WORDS = ("passthrough", "drop")
_MOST_DEGREE = 1000
"""Products of a higher degree are not counted, so that a file which claims them is refused at once."""
_NEEDED = {
    "StandardScaler": {"mean_": "with_mean", "scale_": "with_std"},
    "RobustScaler": {"center_": "with_centering", "scale_": "with_scaling"},
    "PowerTransformer": {"_scaler": "standardize"},
    "TfidfTransformer": {"idf_": "use_idf"},
}
"""What a setting makes a transformer learn."""


def check_parameters(owner: str, value: Any) -> None:
    """The parameters of an object are what its class allows. How many processes work is the machine's affair."""
    if not type(value).__module__.startswith("sklearn."):
        return
    if hasattr(value, "n_jobs"):
        value.n_jobs = None  # a file that asks for a thousand processes would get them
    if not hasattr(value, "_parameter_constraints"):
        return
    try:
        value._validate_params()
    except (InvalidParameterError, TypeError, AttributeError) as error:  # it looks at values that it does not know
        words = str(error).split("'")
        name = words[1] if len(words) > 1 and words[1] in vars(value) else "parameters"
        raise bad_value(owner, name, "is not what its class allows") from None
    for name, setting in vars(value).items():
        right = name == "score_func" if isroutine(setting) else name == "dtype" or not isinstance(setting, type)
        require(right, owner, name, "is a function or a class")
    for name, setting in _NEEDED.get(owner, {}).items() if "n_features_in_" in vars(value) else ():
        require(not getattr(value, setting) or vars(value).get(name) is not None, owner, name, "is missing")
    sizes = getattr(value, "ngram_range", (1, 1))
    require(all(type(size) is int for size in sizes), owner, "ngram_range", "are no whole numbers")
    if getattr(value, "analyzer", None) == "word":
        require(_is_pattern(value.token_pattern), owner, "token_pattern", "is no regular expression")
    stop = getattr(value, "stop_words", None)
    require(stop is None or all(type(word) is str for word in stop), owner, "stop_words", "are no words")
    try:
        found = np.dtype(getattr(value, "dtype", None))
    except (TypeError, ValueError):
        raise bad_value(owner, "dtype", "is no type of numbers") from None
    require(found.kind in "biufO", owner, "dtype", "is no type of numbers")


def _is_pattern(text: Any) -> bool:
    try:
        return isinstance(text, str) and bool(re.compile(text))
    except (re.error, RecursionError, OverflowError):
        return False


def check_output(owner: str, wanted: Any) -> None:
    """``set_output`` knows three forms."""
    right = type(wanted) is dict and all(form in ("default", "pandas", "polars") for form in wanted.values())
    require(right, owner, "_sklearn_output_config", "is no form of output")


def check_steps(owner: str, state: Mapping[str, Any]) -> None:
    """A pipeline of transformers, and at the end anything."""
    steps = state.get("steps")
    require(_are_named(steps, 2) and steps, owner, "steps", "are no named steps")
    require(
        all(_transforms(step, None, *_WORDS) for _, step in (steps or ())[:-1]),
        owner,
        "steps",
        "have one that does not transform",
    )


def check_union(owner: str, state: Mapping[str, Any]) -> None:
    """Transformers beside each other."""
    parts: Any = state.get("transformer_list")
    right = _are_named(parts, 2) and all(_transforms(part, *_WORDS) for _, part in parts)
    require(right, owner, "transformer_list", "are no named transformers")
    weights = state.get("transformer_weights")
    right = weights is None or (type(weights) is dict and all(type(w) in (int, float) for w in weights.values()))
    require(right, owner, "transformer_weights", "are no weights")


def check_columns(owner: str, state: Mapping[str, Any]) -> None:
    """Transformers of columns: each finds its columns, and its place in what comes out."""
    parts: Any = state.get("transformers_")
    right = _are_named(parts, 3) and all(_transforms(part, "drop") and _selects(named) for _, part, named in parts)
    require(right, owner, "transformers_", "are no named transformers of columns")
    n, names = state["n_features_in_"], [name for name, _, _ in parts]
    columns: Any = state.get("_transformer_to_input_indices")
    right = type(columns) is dict and all(
        type(places) is list and all(type(k) is int and 0 <= k < n for k in places) for places in columns.values()
    )
    right = right and set(names) <= {*(columns or ())}
    known = {name: k for k, name in enumerate(state.get("feature_names_in_", ()))}
    for name, _, named in parts if right and columns else ():
        labels = [named] if type(named) is str else named if type(named) is list else []
        if labels and all(type(label) is str for label in labels):
            right = right and columns[name] == [known.get(label) for label in labels]
    require(right, owner, "_transformer_to_input_indices", "are not the columns of the transformers")
    given = state.get("_columns")
    right = type(given) is list and len(given) <= len(parts) and all(map(_selects, given))
    require(right, owner, "_columns", "are not those of the transformers")
    out = state.get("output_indices_")
    right = type(out) is dict and all(type(part) is slice and _is_range(part) for part in out.values())
    require(right and set(names) <= {*(out or ())}, owner, "output_indices_", "are no slices of the transformers")
    require(isinstance(state.get("sparse_output_"), bool), owner, "sparse_output_", "is neither true nor false")
    rest = state.get("_remainder")
    right = type(rest) is tuple and len(rest) == 3 and _selects(rest[2])
    require(right, owner, "_remainder", "is no transformer of columns")


def check_categories(owner: str, state: Mapping[str, Any]) -> None:
    """Categories are cells, each once; those that are missing are known by their places."""
    for values in state["categories_"]:
        right = isinstance(values, np.ndarray) and values.ndim == 1 and values.size
        right = right and (values.dtype != object or all(type(cell) in _CELLS for cell in values))
        require(right and len(set(values.tolist())) == len(values), owner, "categories_", "are no categories")
        if values.dtype.kind not in "OUS":  # they are searched, and their places become those of a sparse array
            known = values[:-1] if values[-1] != values[-1] else values
            require(bool((known[1:] > known[:-1]).all()), owner, "categories_", "are not in ascending order")
    enabled = "_infrequent_enabled"
    require(isinstance(state.get(enabled), bool), owner, enabled, "is neither true nor false")
    if "_missing_indices" in state:
        places, sizes = state["_missing_indices"], [len(values) for values in state["categories_"]]
        right = type(places) is dict and all(type(at) is int for pair in places.items() for at in pair)
        right = right and all(0 <= k < len(sizes) and 0 <= at < sizes[k] for k, at in places.items())
        require(right, owner, "_missing_indices", "are no places of categories")
    elif owner == "OrdinalEncoder":
        raise bad_value(owner, "_missing_indices", "is missing")
    if state[enabled]:
        _check_infrequent(owner, state)


def check_dropped(owner: str, state: Mapping[str, Any]) -> None:
    """Categories, and of each column the one that is dropped, if there is one: its place in the categories."""
    check_categories(owner, state)
    sizes = [len(values) for values in state["categories_"]]
    for name in ("drop_idx_", "_drop_idx_after_grouping"):
        places = state.get(name)
        right = places is None or (isinstance(places, np.ndarray) and places.shape == (len(sizes),))
        if right and places is not None:
            right = all(at is None or (_is_whole(at) and 0 <= at < k) for at, k in zip(places, sizes, strict=True))
        require(right, owner, name, "are no places of categories")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _check_infrequent(owner: str, state: Mapping[str, Any]) -> None:
    """Of each column that has infrequent categories: which they are, and what stands for each category."""
    rare, mappings = (state.get(name) for name in ("_infrequent_indices", "_default_to_infrequent_mappings"))
    missing = state.get("_missing_indices", {}) if owner == "OrdinalEncoder" else {}  # not among what is mapped
    sizes = [len(values) - (k in missing) for k, values in enumerate(state["categories_"])]
    for name, parts in (("_infrequent_indices", rare), ("_default_to_infrequent_mappings", mappings)):
        right = isinstance(parts, list) and len(parts) == len(sizes) and all(map(_is_none_or_whole, parts))
        require(right, owner, name, "are not lists of categories")
    for size, places, mapping in zip(sizes, rare or (), mappings or (), strict=True):
        right = (places is None) == (mapping is None)
        if right and places is not None and mapping is not None:
            left = size - len(places) + 1
            right = len(places) > 0 and len(mapping) == size and ((mapping >= 0) & (mapping < left)).all()
        right = right and (places is None or bool(((places >= 0) & (places < size)).all()))
        require(right, owner, "_default_to_infrequent_mappings", "are not those of the infrequent categories")


def _is_none_or_whole(part: Any) -> bool:
    return part is None or (isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind in "iu")


def check_bins(owner: str, state: Mapping[str, Any]) -> None:
    """Bins are numbered, and lie between numbers."""
    edges = state.get("bin_edges_")
    right = isinstance(edges, np.ndarray) and edges.shape == (state["n_features_in_"],) and edges.dtype == object
    right = right and all(
        isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind == "f" and len(part) > 1
        for part in (() if edges is None else edges)
    )
    require(right, owner, "bin_edges_", "are no edges of bins")
    encoder = state.get("_encoder")
    right = encoder is None or all(values.dtype.kind in "iuf" for values in vars(encoder).get("categories_", ()))
    require(right, owner, "_encoder", "has bins that are no numbers")


def check_imputer(owner: str, state: Mapping[str, Any]) -> None:
    """A value for each column, of the type that the columns had."""
    for name in ("_fit_dtype", "_fill_dtype"):
        require(isinstance(state.get(name), np.dtype), owner, name, "is no type")
    found = state.get("statistics_")
    right = isinstance(found, np.ndarray) and found.shape == (state["n_features_in_"],)
    require(right, owner, "statistics_", "are not a value for each column")


def check_scores(owner: str, state: Mapping[str, Any]) -> None:
    """Scores of features, which may be missing."""
    for name in ("scores_", "pvalues_"):
        value = state.get(name)
        right = isinstance(value, np.ndarray) and value.shape == (state["n_features_in_"],) and value.dtype.kind == "f"
        require(right or (value is None and name == "pvalues_"), owner, name, "are not a number for each feature")


def check_polynomial(owner: str, state: Mapping[str, Any]) -> None:
    """Degrees and numbers of columns."""
    for name in ("_min_degree", "_max_degree", "n_output_features_", "_n_out_full"):
        value: Any = state.get(name)
        require(type(value) in (int, np.int64) and value >= 0, owner, name, "is no number of degrees or columns")
    n, most = int(state["n_features_in_"]), int(state["_max_degree"])
    interactions, bias = bool(state.get("interaction_only", False)), bool(state.get("include_bias", True))
    for name, least in (("n_output_features_", int(state["_min_degree"])), ("_n_out_full", 0)):
        degrees = range(max(1, least), (min(most, n) if interactions else min(most, _MOST_DEGREE)) + 1)
        wanted = bias + sum(comb(n, degree) if interactions else comb(n + degree - 1, degree) for degree in degrees)
        require(state[name] == wanted, owner, name, "is not the number of products of the features")


def check_splines(owner: str, state: Mapping[str, Any]) -> None:
    """Curves of the degree that is set, as many for each feature as columns come out."""
    curves, n = state["bsplines_"], state["n_features_in_"]
    right = len(curves) == n and all(curve.k == state.get("degree") and curve.c.ndim == 2 for curve in curves)
    each = curves[0].c.shape[1] if right else 0
    right = right and all(curve.c.shape == (len(curve.t) - curve.k - 1, each) for curve in curves)
    require(right, owner, "bsplines_", "are no splines of its degree")
    out = n * (each - (not state.get("include_bias", True)))
    require(state["n_features_out_"] == out, owner, "n_features_out_", "is not the number of splines")


def check_encodings(owner: str, state: Mapping[str, Any]) -> None:
    """A number for each category, and for each class if there are several."""
    check_categories(owner, state)
    kind, classes = state.get("target_type_"), state.get("classes_")
    require(kind in ("continuous", "binary", "multiclass"), owner, "target_type_", "is no type of target")
    several = kind == "multiclass"
    right = not several or isinstance(classes, np.ndarray)
    require(right, owner, "classes_", "are missing")
    repeated = len(classes) if several and classes is not None else 1
    wanted = [len(values) for values in state["categories_"] for _ in range(repeated)]
    found = [part.shape for part in state["encodings_"] if isinstance(part, np.ndarray) and part.dtype.kind == "f"]
    require(found == [(size,) for size in wanted], owner, "encodings_", "are not numbers of the categories")
    mean = state.get("target_mean_")
    number = isinstance(mean, float | int | np.floating) or (isinstance(mean, np.ndarray) and len(mean) == repeated)
    require(number, owner, "target_mean_", "is not a number")


def _are_named(parts: Any, size: int) -> bool:
    right = isinstance(parts, list) and all(type(part) is tuple and len(part) == size for part in parts)
    return right and all(type(part[0]) is str for part in parts)


def _transforms(value: Any, *words: str | None) -> bool:
    return value in words if value is None or isinstance(value, str) else hasattr(value, "transform")


def _selects(columns: Any) -> bool:
    """Whether a value names columns: by name, number, slice, or several of them."""
    if isinstance(columns, np.ndarray):
        return columns.ndim == 1 and columns.dtype.kind in "biUO"
    if type(columns) is slice:
        columns = [end for end in (columns.start, columns.stop, columns.step) if end is not None]
    return type(columns) in (str, int) or (
        type(columns) in (list, tuple) and all(type(one) in (str, int, bool, np.str_, np.int64) for one in columns)
    )


def _is_range(part: slice) -> bool:
    return all(end is None or type(end) is int for end in (part.start, part.stop, part.step))
