"""What may stand before a ranker in a model file: encoders of tables, scalers, and classes of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankrls.persistence._checks import is_finite, require
from rankrls.persistence._kinds import Kind, State, with_attributes
from rankrls.persistence._scikit import (
    check_bins,
    check_categories,
    check_columns,
    check_dropped,
    check_encodings,
    check_imputer,
    check_polynomial,
    check_scores,
    check_splines,
    check_steps,
    check_union,
)

__all__ = ["TRANSFORMERS"]


def _check_statistics(owner: str, state: State) -> None:
    """Compiled loops walk these, which do not look where they read."""
    from rankrls.preprocessing._loops import FACTOR, SCALE

    require("_statistics" in state, owner, "_statistics", "is missing")
    statistics = state["_statistics"]
    right = statistics is None or (len(statistics) == 4 and statistics.dtype == np.float64)
    require(right, owner, "_statistics", "are not four numbers of each feature")
    divisors = () if statistics is None else statistics[[FACTOR, SCALE]]
    require(np.all(divisors), owner, "_statistics", "would divide by 0")
    ends = state.get("feature_range", (0, 1))
    right = (
        type(ends) in (tuple, list) and len(ends) == 2 and all(isinstance(end, int | float | np.number) for end in ends)
    )
    require(right and is_finite(ends) and ends[0] < ends[1], owner, "feature_range", "is no range of two numbers")


def _check_table(owner: str, state: State) -> None:
    """The parts agree about the columns; the parts themselves are of listed classes, which check their own values."""
    kinds = {use.name: use.kind for use in state["columns_"]}
    of = lambda *wanted: [name for name, kind in kinds.items() if kind in wanted]
    require([*kinds] == state["feature_names_in_"].tolist(), owner, "columns_", "are not those of the table")
    filled = []
    for part in state["imputers_"]:
        right = type(part) is tuple and len(part) == 2 and type(part[0]) is list
        require(right and type(part[1]).__name__ == "SimpleImputer", owner, "imputers_", "are no columns with imputers")
        require(len(part[0]) == part[1].n_features_in_, owner, "imputers_", "are of another number of columns")
        filled += part[0]
    require(sorted(filled) == sorted(of("number", "date")), owner, "imputers_", "are not those of the columns")
    for name, kinds_of in (("least_", ("number", "date")), ("origins_", ("date",)), ("periods_", ("date",))):
        right = [*state[name]] == of(*kinds_of) and is_finite(state[name])
        require(right, owner, name, "are not those of the columns")
    right = [*state["lists_"]] == of("list")
    right = right and all(type(part).__name__ == "SimpleImputer" for part in state["lists_"].values())
    require(right, owner, "lists_", "are not those of the columns")
    encoder, categories = state.get("one_hot_"), of("category")
    found = 0 if encoder is None else encoder.n_features_in_
    require(found == len(categories), owner, "one_hot_", "is not for the columns of categories")
    require([*state["vectorizers_"]] == of("text"), owner, "vectorizers_", "are not those of the columns")
    wanted = [kind for kind in state["text_features_"] if kind != "matches"]
    same = all(type(made) is dict and [*made] == wanted for made in state["vectorizers_"].values())
    require(same, owner, "vectorizers_", "are not those of text_features_")


def _check_vocabulary(owner: str, state: State) -> None:
    """The numbers become the columns of a sparse array, whose products walk them without looking."""
    words: Any = state.get("vocabulary_")
    right = isinstance(words, dict) and all(type(number) in (int, np.int64) for number in words.values())
    require(right and sorted(words.values()) == list(range(len(words))), owner, "vocabulary_", "does not count words")


def _make_one_hot(cls: Any, state: State) -> Any:
    out = with_attributes(cls, state)
    if "categories_" in state:
        right = list(out._n_features_outs) == list(out._compute_n_features_outs())
        require(right, cls.__name__, "_n_features_outs", "are not the numbers of categories")
    return out


def _check_no_function(owner: str, state: State) -> None:
    for name in ("func", "inverse_func"):
        require(state.get(name) is None, owner, name, "is a function, where a model file holds none")


_FEATURES = {"n_features_in_": "count", "feature_names_in_?": "names n"}
_SCALER = {**_FEATURES, "fitted_with_qid_": "flag", "_statistics?": "float s,n"}
_TABLE = {
    "n_features_in_": "count",
    "feature_names_in_": "names n",
    "columns_": "[ColumnUse]",
    "imputers_": "list i",
    "least_": "dict",
    "origins_": "dict",
    "periods_": "dict",
    "lists_": "dict",
    "one_hot_?": "OneHotEncoder",
    "text_features_": "list k",
    "vectorizers_": "dict",
    "sparse_output_": "flag",
}
TRANSFORMERS = (
    Kind("rankrls.preprocessing.TableEncoder", _TABLE, _check_table),
    Kind("rankrls.preprocessing.QueryMinMaxScaler", _SCALER, _check_statistics),
    Kind("rankrls.preprocessing.QueryStandardScaler", _SCALER, _check_statistics),
    Kind("sklearn.pipeline.Pipeline", {}, check_steps, is_model=True),
    Kind("sklearn.pipeline.FeatureUnion", {}, check_union, keeps_parts=True),
    Kind("sklearn.compose.ColumnTransformer", _FEATURES, check_columns),
    Kind("sklearn.preprocessing.OrdinalEncoder", {**_FEATURES, "categories_": "list n"}, check_categories),
    Kind(
        "sklearn.preprocessing.TargetEncoder",
        {**_FEATURES, "categories_": "list n", "encodings_": "list e"},
        check_encodings,
    ),
    *(
        Kind(f"sklearn.{name}", {**_FEATURES, **forms})
        for name, forms in (
            ("preprocessing.StandardScaler", {"mean_?": "float n", "var_?": "float n", "scale_?": "float n"}),
            ("preprocessing.MinMaxScaler", {"scale_": "float n", "min_": "float n"}),
            ("preprocessing.MaxAbsScaler", {"scale_": "float n"}),
            ("preprocessing.RobustScaler", {"center_?": "float n", "scale_?": "float n"}),
            ("preprocessing.QuantileTransformer", {"references_": "float q", "quantiles_": "float q,n"}),
            ("preprocessing.PowerTransformer", {"lambdas_": "float n", "_scaler?": "StandardScaler"}),
            ("preprocessing.Normalizer", {}),
            ("preprocessing.Binarizer", {}),
            ("impute.MissingIndicator", {"features_": "index f", "_n_features": "count", "_precomputed": "flag"}),
            ("kernel_approximation.Nystroem", {"components_": "rows k,n", "normalization_": "float k,k"}),
            ("kernel_approximation.RBFSampler", {"random_weights_": "float n,k", "random_offset_": "float k"}),
            ("decomposition.PCA", {"components_": "float k,n", "mean_": "float n", "explained_variance_": "float k"}),
            ("decomposition.TruncatedSVD", {"components_": "float k,n"}),
            ("feature_extraction.text.TfidfTransformer", {"idf_?": "float n"}),
            ("feature_selection.VarianceThreshold", {"variances_": "float n"}),
        )
    ),
    Kind(
        "sklearn.preprocessing.OneHotEncoder",
        {**_FEATURES, "categories_": "list n"},
        check_dropped,
        make=_make_one_hot,
    ),
    Kind(
        "sklearn.preprocessing.KBinsDiscretizer",
        {**_FEATURES, "n_bins_": "whole n", "_encoder?": "OneHotEncoder"},
        check_bins,
    ),
    Kind(
        "sklearn.preprocessing.SplineTransformer",
        {**_FEATURES, "bsplines_": "[BSpline]", "n_features_out_": "count"},
        check_splines,
    ),
    Kind("sklearn.preprocessing.PolynomialFeatures", _FEATURES, check_polynomial),
    *(
        Kind(f"sklearn.feature_selection.{name}", {**_FEATURES, "scores_": "free", "pvalues_?": "free"}, check_scores)
        for name in ("SelectKBest", "SelectPercentile")
    ),
    Kind(
        "sklearn.impute.SimpleImputer",
        {**_FEATURES, "statistics_": "free", "indicator_?": "MissingIndicator"},
        check_imputer,
    ),
    Kind("sklearn.preprocessing.FunctionTransformer", {}, _check_no_function),
    Kind("sklearn.feature_extraction.text.CountVectorizer", {}, _check_vocabulary),
    Kind("sklearn.feature_extraction.text.TfidfVectorizer", {"_tfidf": "TfidfTransformer"}, _check_vocabulary),
    Kind("sklearn.feature_extraction.text.HashingVectorizer", {}),
    # Settings of the estimators, such as RankRLSCV(cv=...).
    *(
        Kind(f"sklearn.model_selection.{name}")
        for name in ("GroupKFold", "GroupShuffleSplit", "KFold", "LeaveOneGroupOut", "PredefinedSplit", "ShuffleSplit")
    ),
)
