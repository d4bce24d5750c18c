"""The result of an export; a linear model and its scalers as one sum over an engine's features."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankrls._errors import InputError
from rankrls.io import atomic_write
from rankrls.metrics._scorer import unwrapped
from rankrls.models._pipelines import fitted_names, fitted_ranker, linear_weights, names_of_features, table_encoder
from rankrls.models.parameters import number
from rankrls.preprocessing import EncodedFeature, QueryMinMaxScaler, QueryStandardScaler

Array = NDArray[np.float64]
OFFSET_FEATURE = "rankrls_offset"
_EXPORTED = "Fit with StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler of scikit-learn."
_NEVER = dict.fromkeys(("similarity", "tfidf"), "the engine computes TF-IDF differently")


@dataclass(frozen=True)
class Exported:
    """A model in another system's format.

    Attributes
    ----------
    content : str or bytes
        The content of the file or the request; bytes for ONNX.
    notes : tuple of str
        What to know before deployment: what the system cannot express, and what must be defined there.
    definitions : str or None
        The content of a second file, which defines the features; for models with a
        :class:`~rankrls.preprocessing.TableEncoder`, in Solr, Elasticsearch and OpenSearch.
    """

    content: str | bytes
    notes: tuple[str, ...]
    definitions: str | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the content to a file, completely or not at all.

        Parameters
        ----------
        path : path

        Raises
        ------
        OSError
            If the file cannot be written; a file of the same name keeps its old content.
        """
        data = self.content.encode() if isinstance(self.content, str) else self.content
        with atomic_write(path) as file:
            file.write(data)

    def save_definitions(self, path: str | os.PathLike[str]) -> None:
        """Write the definitions of the features to a file, completely or not at all.

        Parameters
        ----------
        path : path

        Raises
        ------
        ValueError
            If there are none, because the model has no TableEncoder.
        OSError
            As :meth:`save`.
        """
        if self.definitions is None:
            raise InputError("This export has no feature definitions: only pipelines with a TableEncoder have them.")
        replace(self, content=self.definitions).save(path)

    def json(self) -> Any:
        """The content as Python objects, for a client that posts it; only for formats that are JSON."""
        return json.loads(self.content)


def json_text(value: Any) -> str:
    """Indented JSON that ends with a newline."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


Rows = list[tuple[str, float, float, float]]
"""Name, weight, centre and spread of each feature, of ``score = sum_j weight_j (x_j - centre_j) / spread_j``."""


@dataclass(frozen=True)
class Engine:
    """A search engine whose features are scores of queries, which are never negative.

    Attributes
    ----------
    name : str
    one : mapping
        The definition of a feature that is always 1, but for its name.
    conditions : mapping of str to str
        What has to hold in the engine for definitions to mean the same: of all features (""), and of kinds of them.
    refused : callable
        Why a column or a value cannot be named there; empty if it can.
    define : callable
        Definitions of a feature, the rules by its kind: of a number or an age the value itself, or its positive part
        and that of its negative; of a sine or cosine 1 more than it, and 1 where the date is missing.
    """

    name: str
    one: Mapping[str, Any]
    conditions: Mapping[str, str]
    refused: Callable[[EncodedFeature], str]
    define: Callable[[EncodedFeature], list[dict[str, Any]]]


def linear_model(
    model: Any, engine: Engine, feature_names: Sequence[str] | None, target: int | None, offset: float | None
) -> tuple[Rows, list[dict[str, Any]] | None, list[str]]:
    """The model as a sum over an engine's features, the features' definitions, and notes.

    Definitions are None if the model is not behind a TableEncoder. Errors say which part of a pipeline no engine can
    compute.
    """
    number(none=True)("offset", offset)
    remedy = " Fit a linear model. Kernel models and RankBoost can be exported as ONNX."
    what = "this format has one weight for each feature."
    weights = linear_weights(fitted_ranker(model), target, what, remedy).copy()
    centres, spreads = affine_steps(model, len(weights))
    encoder = table_encoder(model)
    constant, encoded = float(offset or 0.0), () if encoder is None else encoder.features_
    if encoder is None:
        names = _check_names(model, feature_names, len(weights))
    elif feature_names is not None:
        problem = "The TableEncoder names the features, so feature_names cannot be used. Leave it out."
        raise InputError(problem, parameter="feature_names")
    else:
        names = tuple(feature.name for feature in encoded)
        constant += _without_others(encoded, weights, centres, spreads)
    used = weights != 0.0
    if not used.any():
        raise InputError("All weights are 0: there is nothing to export.", parameter="model")
    left_out = int((~used).sum()) - sum(feature.kind == "other" for feature in encoded)
    encoded = tuple(compress(encoded, used))
    rows = list(zip(compress(names, used), *(v[used].tolist() for v in (weights, centres, spreads)), strict=True))
    notes, definitions = ["The engine computes in float32: scores agree with predict to about seven digits."], None
    if left_out:
        notes.append(f"{left_out} features have weight 0 and are left out: the engine does not need to compute them.")
    if encoded:
        kinds = {"": encoded[-1], **{feature.kind: feature for feature in encoded}}
        found = [(kinds[kind], text) for kind, text in engine.conditions.items() if kind in kinds]
        notes += [text.format(column=f.column, origin=instant(f.origin)) for f, text in found]
        rows, definitions, constant = _defined(rows, encoded, engine, constant)
    if offset is not None:
        if any(name == OFFSET_FEATURE for name, *_ in rows):
            problem = f"A feature is called {OFFSET_FEATURE!r}, which is the name of the offset."
            raise InputError(problem, parameter="feature_names", column=OFFSET_FEATURE)
        rows.append((OFFSET_FEATURE, constant, 0.0, 1.0))
        one = {"name": OFFSET_FEATURE, **engine.one}
        if definitions is None:
            notes.append(f"Define {OFFSET_FEATURE} in the engine: {json.dumps(one)}.")
        else:
            definitions.append(one)
    elif constant != 0.0:
        problem = f"{engine.name}'s linear model has no intercept: its scores are those of predict"
        notes.append(f"{problem} {-constant:+.6g}. The ranking is the same.")
    return rows, definitions, notes


def _defined(
    rows: Rows, encoded: Sequence[EncodedFeature], engine: Engine, constant: float
) -> tuple[Rows, list[dict[str, Any]], float]:
    """The sum over an engine's own features, with the scalers in the weights, their definitions, and the constant."""
    refused = [(f, why) for f in encoded if (why := _NEVER.get(f.kind) or engine.refused(f))]
    if refused:
        named = ((f.column if f.kind in (*_NEVER, "word") else f.name, why) for f, why in refused)
        listed = "; ".join(dict.fromkeys(f"{name!r} ({why})" for name, why in named))
        remedy = "Rename the columns, leave them out (ignore), or fit with text_features='matches'."
        problem, settings = f"{engine.name} cannot compute what the model needs: {listed}", {"text_features": "matches"}
        raise InputError(f"{problem}. {remedy}", parameter="model", column=refused[0][0].column, settings=settings)
    out, definitions = [], []
    for feature, name, (_, scaled, centre, spread) in zip(encoded, engine_names(encoded), rows, strict=True):
        weight = scaled / spread
        constant -= weight * (centre + (feature.kind in ("sine", "cosine")))
        for end, made, sign in zip(("", "_below_0"), engine.define(feature), (1.0, -1.0), strict=False):
            if sign > 0.0 or feature.kind == "age" or feature.least < 0.0:
                definitions.append({"name": name + end, **made})
                out.append((name + end, sign * weight, 0.0, 1.0))
    return out, definitions, constant


def _without_others(encoded: Sequence[EncodedFeature], weights: Array, centres: Array, spreads: Array) -> float:
    """Take the features of rare and unseen categories out of the sum, in place; the constant that takes their place.

    The features of a column that has one add up to 1, so that no engine has to look for what is none of the others.
    """
    constant = 0.0
    for other in (j for j, feature in enumerate(encoded) if feature.kind == "other"):
        column, kinds = encoded[other].column, ("category", "none", "other")
        family = [j for j, feature in enumerate(encoded) if feature.column == column and feature.kind in kinds]
        weights[family] /= spreads[family]
        constant += float(weights[other] - weights[family] @ centres[family])
        weights[family] -= weights[other]
        centres[family], spreads[family] = 0.0, 1.0
    return constant


def affine_steps(model: Any, n_features: int) -> tuple[Array, Array]:
    """Centres and spreads of all scalers of a pipeline together."""
    centres, spreads = np.zeros(n_features), np.ones(n_features)
    for step in unwrapped(model)[0][table_encoder(model) is not None :]:
        centre, spread = _affine(step)
        centres += spreads * (0.0 if centre is None else centre)
        spreads *= 1.0 if spread is None else spread
    return centres, spreads


def _affine(step: Any) -> tuple[Any, Any]:
    """Centre and spread of a scaler: it makes ``(z - centre) / spread`` of z; None is 0 and 1."""
    name = type(step).__name__
    if isinstance(step, QueryMinMaxScaler | QueryStandardScaler):
        if step.fitted_with_qid_:
            problem = f"{name} scales within queries, but an engine scores each document on its own."
            raise InputError(f"{problem} {_EXPORTED}", parameter="model")
        return _affine(step.scaler_)
    if isinstance(step, MinMaxScaler) and not step.clip:
        return step.data_min_ - step.feature_range[0] / step.scale_, 1.0 / step.scale_
    if isinstance(step, StandardScaler):
        return step.mean_ if step.with_mean else None, step.scale_
    if isinstance(step, RobustScaler | MaxAbsScaler):
        return getattr(step, "center_", None), step.scale_
    clip = "(clip=True)" if isinstance(step, MinMaxScaler) else ""
    raise InputError(f"The pipeline's step {name}{clip} cannot be exported. {_EXPORTED}", parameter="model")


def _check_names(model: Any, given: Sequence[str] | None, n: int) -> tuple[str, ...]:
    """The features' names: one each, none twice."""
    if given is None and fitted_names(model) is None:
        problem = f"The engine identifies features by name, but this model was fitted on {n} columns without names."
        remedy = "Give feature_names, one per column in their order, or fit on a data frame."
        raise InputError(f"{problem} {remedy}", parameter="feature_names")
    names = names_of_features(model, given, n)
    for j, name in enumerate(names):
        if not name.strip() or name in names[:j]:
            problem = f"{name!r} cannot name column {j}: names must differ and not be empty."
            raise InputError(problem, parameter="feature_names", column=j)
    return names


def engine_names(features: Sequence[EncodedFeature]) -> list[str]:
    """Unique names of letters, digits and underscores, close to the features' own."""
    out: list[str] = []
    for feature in features:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", feature.name).strip("_") or "feature"
        plain = f"f_{plain}" if plain[0].isdigit() else plain
        out.append(next(name for name in (plain, *(f"{plain}_{k}" for k in range(2, len(out) + 3))) if name not in out))
    return out


def instant(days: float) -> str:
    """A day, counted from 1970, as ISO 8601 in UTC."""
    return (datetime(1970, 1, 1) + timedelta(days=days)).isoformat(timespec="milliseconds") + "Z"


def positive_offset(model: Any, X: Any) -> float:
    """The offset that makes the scores of some items positive.

    Some engines refuse negative scores. A constant does not change the ranking; its size depends on the items.

    Parameters
    ----------
    model : estimator of rankrls, or a Pipeline that ends in one
    X : as for ``predict``
        Representative items, such as the training data.

    Returns
    -------
    float
        ``max(0, 1 - least score)``. New items may have lower scores.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.export import positive_offset
    >>> model = RankRLS(alpha=1e-9).fit([[0.0], [1.0], [3.0]], [0, -1, -3])
    >>> round(positive_offset(model, [[0.0], [3.0]]), 6)
    4.0
    """
    return max(0.0, 1.0 - float(np.min(model.predict(X))))
