"""Models as one expression of SQL, for features in a warehouse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rankrls._checks import check_word
from rankrls._errors import InputError
from rankrls.export._model import Exported, Steps, Weights, fitted_function, refuse, scaling_steps, table_features
from rankrls.export.engines import uses
from rankrls.models._pipelines import check_target, fitted_ranker, table_encoder
from rankrls.preprocessing import EncodedFeature, TableEncoder
from rankrls.preprocessing._table_encoder import TEXT_FEATURES

_DAYS = {
    "duckdb": "EPOCH(CAST({} AS TIMESTAMP)) / 864e2",
    "sqlite": "(JULIANDAY({}) - 2440587.5e0)",
    "postgresql": "EXTRACT(EPOCH FROM CAST({} AS TIMESTAMP)) / 864e2",
}
"""Days since 1970 of a date, in each dialect."""


def to_sql(
    model: Any,
    name: str = "rankrls",
    *,
    feature_names: Sequence[str] | None = None,
    offset: float | None = None,
    target: int | None = None,
    dialect: Literal["duckdb", "sqlite", "postgresql"] = "duckdb",
) -> Exported:
    """Export a linear model or RankBoost as one expression of SQL.

    Parameters
    ----------
    model : fitted linear estimator of rankrls or RankBoost, or a Pipeline that ends in one
        The pipeline can have a TableEncoder first, without features of texts, and LogScaler or scikit-learn's
        StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler.
    name : str, default="rankrls"
        The name of the column with the scores.
    feature_names : sequence of str, optional
        The names of the columns with the features. By default those of the data frame.
    offset : float, optional
        Constant to add to every score.
    target : int, optional
        Number of the target, for a model with several.
    dialect : {"duckdb", "sqlite", "postgresql"}, default="duckdb"
        The dialect, which makes a difference for dates.

    Returns
    -------
    Exported
        An item of a SELECT list, ``... AS "name"``. Scores are those of ``predict``, in double precision.

    Raises
    ------
    ValueError
        For kernel models, features of texts, scaling by query, missing or repeated names.

    Notes
    -----
    NULL is a missing cell. Without a TableEncoder, a row with NULL in a used column has the score NULL.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import to_sql
    >>> model = RankRLS(alpha=2.0).fit([[0.0, 1.0], [2.0, 1.0]], [0, 4])
    >>> print(to_sql(model, "score", feature_names=["clicks", "is_new"]).content)
    CAST(1.0e0 * CAST("clicks" AS DOUBLE PRECISION) AS DOUBLE PRECISION) AS "score"
    """
    check_word("dialect", dialect, tuple(_DAYS))
    final = fitted_ranker(model)
    function = fitted_function(final, "SQL")
    if not isinstance(function, Weights | Steps):
        problem = f"SQL has no kernels, which this {type(final).__name__} needs. Fit a linear model or RankBoost."
        raise InputError(problem, parameter="model")
    features = table_features(model, feature_names, final.n_features_in_)
    table = _Table(features, table_encoder(model), dialect)
    steps = scaling_steps(model, len(features))

    def scaled(j: int) -> str:
        text = table.value(features[j])
        for step in steps:
            text = f"ASINH({text})" if step.logarithm else text
            text = f"({text} - {_number(step.centre[j])})" if step.centre[j] != 0.0 else text
            text = f"({text} / {_number(step.spread[j])})" if step.spread[j] != 1.0 else text
        return text

    parts = [] if offset is None else [_number(offset)]
    if isinstance(function, Weights):
        weights = function.weights[:, check_target(target, function.weights.shape[1])]
        used = np.flatnonzero(weights)
        parts += [f"{_number(weights[j])} * {scaled(j)}" for j in used.tolist()]
    else:
        check_target(target, 1)
        used = function.features
        for j, threshold, weight in zip(function.features.tolist(), function.thresholds, function.weights, strict=True):
            value = scaled(j)
            limit = _number(threshold)
            parts.append(f"CASE WHEN {value} > {limit} THEN {_number(weight)} WHEN {value} <= {limit} THEN 0e0 END")
    reasons = dict.fromkeys(TEXT_FEATURES, "SQL does not find the words of texts")
    refuse("SQL", ((features[j], reasons.get(features[j].kind, "")) for j in used.tolist()), matches=False)
    text = f"CAST({_sum(parts or ['0e0'])} AS DOUBLE PRECISION) AS {_name(name)}"
    return Exported(text, ("NULL is a missing cell; NaN and empty texts are not.",))


@dataclass(frozen=True)
class _Table:
    """The features of a table as expressions of its columns."""

    features: Sequence[EncodedFeature]
    encoder: TableEncoder | None
    dialect: str

    def value(self, feature: EncodedFeature) -> str:
        """The value of a feature."""
        column = _name(feature.column)
        days = f"({_number(feature.origin)} - {_DAYS[self.dialect].format(column)})"
        match feature.kind:
            case "number" if self.encoder is None:
                return f"CAST({column} AS DOUBLE PRECISION)"
            case "number":
                return f"COALESCE(CAST({column} AS DOUBLE PRECISION), {_number(feature.fill)})"
            case "age":
                return f"COALESCE({days}, {_number(feature.fill)})"
            case "sine" | "cosine":
                wave = f"{feature.kind[:3].upper()}({_number(2.0 * np.pi / feature.days)} * {days})"
                return f"COALESCE({wave}, 0e0)"
            case "other":
                family = [f for f in self.features if f.column == feature.column and f is not feature]
                known = " OR ".join(self._is(f) for f in family)
                return f"CASE WHEN {known} THEN 0e0 ELSE 1e0 END"
        return f"CASE WHEN {self._is(feature)} THEN 1e0 ELSE 0e0 END"

    def _is(self, feature: EncodedFeature) -> str:
        """The condition of a category or a missing cell."""
        column = _name(feature.column)
        if feature.kind in ("missing", "none"):
            return f"{column} IS NULL"
        use = uses(self.encoder, [feature])[feature.column]
        word = {"number": feature.value, "boolean": feature.value.upper()}.get(use)
        return f"{column} = {word}" if word else f"TRIM({column}) = {_text(feature.value)}"


def _sum(parts: Sequence[str]) -> str:
    """A sum of small depth, which SQLite limits."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return f"({_sum(parts[:half])}\n+ {_sum(parts[half:])})"


def _number(value: float) -> str:
    """A number in double precision: without an exponent it would be a decimal."""
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if value < 0.0 else text


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
