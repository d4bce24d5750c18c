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

from rankrls.persistence._checks import Facts, bad_value, inside, is_whole, needs, require

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


def step_facts(state: Mapping[str, Any]) -> Facts:
    """A pipeline of transformers, and at the end anything."""
    steps: Any = state.get("steps")
    yield _are_named(steps, 2) and steps, "steps", "are no named steps"
    right = all(_transforms(step, None, *_WORDS) for _, step in steps[:-1])
    yield right, "steps", "have one that does not transform"


def union_facts(state: Mapping[str, Any]) -> Facts:
    """Transformers beside each other."""
    parts: Any = state.get("transformer_list")
    right = _are_named(parts, 2) and all(_transforms(part, *_WORDS) for _, part in parts)
    yield right, "transformer_list", "are no named transformers"
    weights = state.get("transformer_weights")
    right = weights is None or (type(weights) is dict and all(type(w) in (int, float) for w in weights.values()))
    yield right, "transformer_weights", "are no weights"


def column_facts(state: Mapping[str, Any]) -> Facts:
    """Transformers of columns: each finds its columns, and its place in what comes out."""
    parts: Any = state.get("transformers_")
    right = _are_named(parts, 3) and all(_transforms(part, "drop") and _selects(named) for _, part, named in parts)
    yield right, "transformers_", "are no named transformers of columns"
    n, names = state["n_features_in_"], {name for name, _, _ in parts}
    places, wrong = state["_transformer_to_input_indices"], "are not the columns of the transformers"
    right = all(type(ks) is list and all(type(k) is int and 0 <= k < n for k in ks) for ks in places.values())
    yield right and names <= {*places}, "_transformer_to_input_indices", wrong
    known = {name: k for k, name in enumerate(state.get("feature_names_in_", ()))}
    for name, _, named in parts:
        labels = [named] if type(named) is str else named if type(named) is list else []
        if labels and all(type(label) is str for label in labels):
            right = places[name] == [known.get(label) for label in labels]
            yield right, "_transformer_to_input_indices", wrong
    given = state["_columns"]
    yield len(given) <= len(parts) and all(map(_selects, given)), "_columns", "are not those of the transformers"
    out = state["output_indices_"]
    right = names <= {*out} and all(type(part) is slice and _is_range(part) for part in out.values())
    yield right, "output_indices_", "are no slices of the transformers"
    rest = state["_remainder"]
    yield len(rest) == 3 and _selects(rest[2]), "_remainder", "is no transformer of columns"


def category_facts(state: Mapping[str, Any]) -> Facts:
    """Categories are cells, each once; those that are missing are known by their places."""
    sizes = [len(values) for values in state["categories_"]]
    for values in state["categories_"]:
        right = values.size and (values.dtype != object or all(type(cell) in _CELLS for cell in values))
        yield right and len(set(values.tolist())) == len(values), "categories_", "are no categories"
        if values.dtype.kind not in "OUS":  # they are searched, and their places become those of a sparse array
            known = values[:-1] if values[-1] != values[-1] else values
            yield (known[1:] > known[:-1]).all(), "categories_", "are not in ascending order"
    missing = state.get("_missing_indices", {})
    right = all(type(at) is int for pair in missing.items() for at in pair)
    right = right and all(0 <= k < len(sizes) and 0 <= at < sizes[k] for k, at in missing.items())
    yield right, "_missing_indices", "are no places of categories"
    for name in ("drop_idx_", "_drop_idx_after_grouping"):  # of each column the one that is dropped, if there is one
        if state.get(name) is not None:
            places = [at for at in zip(state[name], sizes, strict=True) if at[0] is not None]
            right = all(is_whole(at) and 0 <= at < size for at, size in places)
            yield right, name, "are no places of categories"
    if state["_infrequent_enabled"]:
        # Of each column that has infrequent ones: which they are, and what stands for each category that is there.
        yield from needs(state, "_infrequent_indices", "_default_to_infrequent_mappings")
        mapped = (size - (k in missing) for k, size in enumerate(sizes))
        parts = zip(mapped, state["_infrequent_indices"], state["_default_to_infrequent_mappings"], strict=True)
        for size, places, mapping in parts:
            right = (places is None) == (mapping is None)
            if right and places is not None:
                right = len(places) > 0 and len(mapping) == size and inside(mapping, size - len(places) + 1)
                right = right and inside(places, size)
            yield right, "_default_to_infrequent_mappings", "are not those of the infrequent categories"


def bin_facts(state: Mapping[str, Any]) -> Facts:
    """Bins are numbered, and lie between numbers."""
    right = all(
        isinstance(part, np.ndarray) and part.ndim == 1 and part.dtype.kind == "f" and len(part) > 1
        for part in state["bin_edges_"]
    )
    yield right, "bin_edges_", "are no edges of bins"
    encoder = state.get("_encoder")
    right = encoder is None or all(values.dtype.kind in "iuf" for values in vars(encoder).get("categories_", ()))
    yield right, "_encoder", "has bins that are no numbers"


def polynomial_facts(state: Mapping[str, Any]) -> Facts:
    """Numbers of columns are those of products of the degrees."""
    n, most = int(state["n_features_in_"]), int(state["_max_degree"])
    interactions, bias = bool(state.get("interaction_only", False)), bool(state.get("include_bias", True))
    for name, least in (("n_output_features_", int(state["_min_degree"])), ("_n_out_full", 0)):
        degrees = range(max(1, least), (min(most, n) if interactions else min(most, _MOST_DEGREE)) + 1)
        wanted = bias + sum(comb(n, degree) if interactions else comb(n + degree - 1, degree) for degree in degrees)
        yield state[name] == wanted, name, "is not the number of products of the features"


def spline_facts(state: Mapping[str, Any]) -> Facts:
    """Curves of the degree that is set, as many for each feature as columns come out."""
    curves = state["bsplines_"]
    right = all(curve.k == state.get("degree") and curve.c.ndim == 2 for curve in curves)
    each = curves[0].c.shape[1] if right else 0
    right = right and all(curve.c.shape == (len(curve.t) - curve.k - 1, each) for curve in curves)
    yield right, "bsplines_", "are no splines of its degree"
    out = state["n_features_in_"] * (each - (not state.get("include_bias", True)))
    yield state["n_features_out_"] == out, "n_features_out_", "is not the number of splines"


def encoding_facts(state: Mapping[str, Any]) -> Facts:
    """A number for each category, and for each class if there are several."""
    yield from category_facts(state)
    kind, classes = state.get("target_type_"), state.get("classes_")
    yield kind in ("continuous", "binary", "multiclass"), "target_type_", "is no type of target"
    several = kind == "multiclass"
    yield not several or isinstance(classes, np.ndarray), "classes_", "are missing"
    repeated = len(classes) if several and classes is not None else 1
    wanted = [(len(values),) for values in state["categories_"] for _ in range(repeated)]
    found = [part.shape for part in state["encodings_"]]
    yield found == wanted, "encodings_", "are not numbers of the categories"
    mean = state.get("target_mean_")
    number = isinstance(mean, float | int | np.floating) or (isinstance(mean, np.ndarray) and len(mean) == repeated)
    yield number, "target_mean_", "is not a number"


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
