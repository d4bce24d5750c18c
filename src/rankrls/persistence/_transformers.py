"""What may stand before a ranker in a model file: encoders of tables, scalers, and classes of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rankrls.persistence._checks import Facts, is_finite, require
from rankrls.persistence._kinds import Kind, State, with_attributes
from rankrls.persistence._scikit import (
    bin_facts,
    category_facts,
    column_facts,
    encoding_facts,
    polynomial_facts,
    spline_facts,
    step_facts,
    union_facts,
)


def _statistics_facts(state: State) -> Facts:
    """Compiled loops walk these, which do not look where they read."""
    from rankrls.preprocessing._loops import FACTOR, SCALE

    yield "_statistics" in state, "_statistics", "is missing"
    statistics = state["_statistics"]
    right = statistics is None or (len(statistics) == 4 and statistics.dtype == np.float64)
    yield right, "_statistics", "are not four numbers of each feature"
    divisors = () if statistics is None else statistics[[FACTOR, SCALE]]
    yield np.all(divisors), "_statistics", "would divide by 0"
    ends = state.get("feature_range", (0, 1))
    right = (
        type(ends) in (tuple, list) and len(ends) == 2 and all(isinstance(end, int | float | np.number) for end in ends)
    )
    yield right and is_finite(ends) and ends[0] < ends[1], "feature_range", "is no range of two numbers"


def _table_facts(state: State) -> Facts:
    """The parts agree about the columns; the parts themselves are of listed classes, which check their own values."""
    kinds = {use.name: use.kind for use in state["columns_"]}
    of = lambda *wanted: [name for name, kind in kinds.items() if kind in wanted]
    yield [*kinds] == state["feature_names_in_"].tolist(), "columns_", "are not those of the table"
    filled = []
    for part in state["imputers_"]:
        right = len(part) == 2 and type(part[0]) is list and type(part[1]).__name__ == "SimpleImputer"
        yield right, "imputers_", "are no columns with imputers"
        yield len(part[0]) == part[1].n_features_in_, "imputers_", "are of another number of columns"
        filled += part[0]
    yield sorted(filled) == sorted(of("number", "date")), "imputers_", "are not those of the columns"
    encoder = state.get("one_hot_")
    found = 0 if encoder is None else encoder.n_features_in_
    yield found == len(of("category")), "one_hot_", "is not for the columns of categories"
    learned = {
        "least_": ("number", "date"),
        "origins_": ("date",),
        "periods_": ("date",),
        "lists_": ("list",),
        "vectorizers_": ("text",),
    }
    for name, kinds_of in learned.items():
        yield [*state[name]] == of(*kinds_of) and is_finite(state[name]), name, "are not those of the columns"
    right = all(type(part).__name__ == "SimpleImputer" for part in state["lists_"].values())
    yield right, "lists_", "are no imputers"
    wanted = [kind for kind in state["text_features_"] if kind != "matches"]
    same = all(type(made) is dict and [*made] == wanted for made in state["vectorizers_"].values())
    yield same, "vectorizers_", "are not those of text_features_"


def _vocabulary_facts(state: State) -> Facts:
    """The numbers become the columns of a sparse array, whose products walk them without looking."""
    words: Any = state.get("vocabulary_")
    right = isinstance(words, dict) and all(type(number) in (int, np.int64) for number in words.values())
    yield right and sorted(words.values()) == list(range(len(words))), "vocabulary_", "does not count words"


def _make_one_hot(cls: Any, state: State) -> Any:
    out = with_attributes(cls, state)
    if "categories_" in state:
        right = list(out._n_features_outs) == list(out._compute_n_features_outs())
        require(right, cls.__name__, "_n_features_outs", "are not the numbers of categories")
    return out


def _plain_facts(state: State) -> Facts:
    for name in ("func", "inverse_func"):
        yield state.get(name) is None, name, "is a function, where a model file holds none"


def _sklearn(name: str, forms: Mapping[str, str], check: Callable[[State], Facts] | None = None) -> Kind:
    """A class of scikit-learn that learns of columns."""
    return Kind(f"sklearn.{name}", {**_FEATURES, **forms}, check)


_FEATURES = {"n_features_in_": "count", "feature_names_in_?": "names n"}
_SCALER = {**_FEATURES, "fitted_with_qid_": "flag", "_statistics?": "float s,n"}
_TABLE = {
    "n_features_in_": "count",
    "feature_names_in_": "names n",
    "columns_": "[ColumnUse]",
    "imputers_": "[tuple]",
    "least_": "dict",
    "origins_": "dict",
    "periods_": "dict",
    "lists_": "dict",
    "one_hot_?": "OneHotEncoder",
    "text_features_": "[str]",
    "vectorizers_": "dict",
    "sparse_output_": "flag",
}
_CATEGORIES = {
    **_FEATURES,
    "categories_": "[any _] n",
    "_infrequent_enabled": "flag",
    "_missing_indices?": "dict",
    "_infrequent_indices?": "[whole _?] n",
    "_default_to_infrequent_mappings?": "[whole _?] n",
    "drop_idx_?": "any n",
    "_drop_idx_after_grouping?": "any n",
}
_ONE_HOT = {**_CATEGORIES, "_missing_indices?": "NoneType"}
_COLUMNS = {
    **_FEATURES,
    "_transformer_to_input_indices": "dict",
    "_columns": "list",
    "output_indices_": "dict",
    "sparse_output_": "flag",
    "_remainder": "tuple",
}
_BINS = {"n_bins_": "whole n", "_encoder?": "OneHotEncoder", "bin_edges_": "any n"}
_IMPUTER = {"statistics_": "any n", "indicator_?": "MissingIndicator", "_fit_dtype": "dtype", "_fill_dtype": "dtype"}
_DEGREES = ("_min_degree", "_max_degree", "n_output_features_", "_n_out_full")
TRANSFORMERS = (
    Kind("rankrls.preprocessing.TableEncoder", _TABLE, _table_facts),
    Kind("rankrls.preprocessing.QueryMinMaxScaler", _SCALER, _statistics_facts),
    Kind("rankrls.preprocessing.QueryStandardScaler", _SCALER, _statistics_facts),
    Kind("sklearn.pipeline.Pipeline", {}, step_facts, is_model=True),
    Kind("sklearn.pipeline.FeatureUnion", {}, union_facts, keeps_parts=True),
    Kind("sklearn.compose.ColumnTransformer", _COLUMNS, column_facts),
    Kind("sklearn.preprocessing.OneHotEncoder", _ONE_HOT, category_facts, make=_make_one_hot),
    Kind("sklearn.preprocessing.FunctionTransformer", {}, _plain_facts),
    Kind("sklearn.feature_extraction.text.CountVectorizer", {}, _vocabulary_facts),
    Kind("sklearn.feature_extraction.text.TfidfVectorizer", {"_tfidf": "TfidfTransformer"}, _vocabulary_facts),
    Kind("sklearn.feature_extraction.text.HashingVectorizer", {}),
    _sklearn("preprocessing.StandardScaler", {"mean_?": "float n", "var_?": "float n", "scale_?": "float n"}),
    _sklearn("preprocessing.MinMaxScaler", {"scale_": "float n", "min_": "float n"}),
    _sklearn("preprocessing.MaxAbsScaler", {"scale_": "float n"}),
    _sklearn("preprocessing.RobustScaler", {"center_?": "float n", "scale_?": "float n"}),
    _sklearn("preprocessing.QuantileTransformer", {"references_": "float q", "quantiles_": "float q,n"}),
    _sklearn("preprocessing.PowerTransformer", {"lambdas_": "float n", "_scaler?": "StandardScaler"}),
    _sklearn("preprocessing.Normalizer", {}),
    _sklearn("preprocessing.Binarizer", {}),
    _sklearn("preprocessing.OrdinalEncoder", {**_CATEGORIES, "_missing_indices": "dict"}, category_facts),
    _sklearn("preprocessing.TargetEncoder", {**_CATEGORIES, "encodings_": "[float _]"}, encoding_facts),
    _sklearn("preprocessing.KBinsDiscretizer", _BINS, bin_facts),
    _sklearn("preprocessing.SplineTransformer", {"bsplines_": "[BSpline] n", "n_features_out_": "count"}, spline_facts),
    _sklearn("preprocessing.PolynomialFeatures", dict.fromkeys(_DEGREES, "size"), polynomial_facts),
    _sklearn("impute.SimpleImputer", _IMPUTER),
    _sklearn("impute.MissingIndicator", {"features_": "index f", "_n_features": "count", "_precomputed": "flag"}),
    _sklearn("kernel_approximation.Nystroem", {"components_": "rows k,n", "normalization_": "float k,k"}),
    _sklearn("kernel_approximation.RBFSampler", {"random_weights_": "float n,k", "random_offset_": "float k"}),
    _sklearn("decomposition.PCA", {"components_": "float k,n", "mean_": "float n", "explained_variance_": "float k"}),
    _sklearn("decomposition.TruncatedSVD", {"components_": "float k,n"}),
    _sklearn("feature_extraction.text.TfidfTransformer", {"idf_?": "float n"}),
    _sklearn("feature_selection.VarianceThreshold", {"variances_": "float n"}),
    _sklearn("feature_selection.SelectKBest", {"scores_": "scores n", "pvalues_?": "scores n"}),
    _sklearn("feature_selection.SelectPercentile", {"scores_": "scores n", "pvalues_?": "scores n"}),
    # Settings of the estimators, such as RankRLSCV(cv=...).
    *(
        Kind(f"sklearn.model_selection.{name}")
        for name in ("GroupKFold", "GroupShuffleSplit", "KFold", "LeaveOneGroupOut", "PredefinedSplit", "ShuffleSplit")
    ),
)
