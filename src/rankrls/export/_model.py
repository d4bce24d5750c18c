"""Fitted models as exports read them: the function of features, the scalers before it, and the columns of its table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from rankrls._errors import InputError
from rankrls._typing import Array, Index, Matrix, PathLike
from rankrls.io import atomic_write
from rankrls.kernels import Formula, Kernel
from rankrls.metrics._scorer import unwrapped
from rankrls.models._pipelines import fitted_names, names_of_features, table_encoder
from rankrls.models.co_regularized import CoRankRLS, ViewPursuer
from rankrls.models.rankboost import RankBoost
from rankrls.models.ranker import Ranker
from rankrls.preprocessing import EncodedFeature, LogScaler, QueryMinMaxScaler, QueryStandardScaler

SCALERS = "Fit with StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler of scikit-learn."


@dataclass(frozen=True)
class Exported:
    """A model in another system's format.

    Attributes
    ----------
    content : str or bytes
        Content of the file or the request; bytes for ONNX.
    notes : tuple of str
        Notes for deployment: limits of the system, and features that must be defined there.
    factor : float
        Scores in the system are ``factor * predict``, plus the offset. A power of ten; 1 in formats of float64.
    files : mapping of str to str
        Contents of further files by their names: for models with a :class:`~rankrls.preprocessing.TableEncoder`
        ``features.json``, the definitions of the features in Solr, Elasticsearch and OpenSearch, and ``fields.json``,
        the fields of the index; for JSON the scorers ``score.py`` and ``score.mjs``.
    """

    content: str | bytes
    notes: tuple[str, ...]
    factor: float = 1.0
    files: Mapping[str, str] = field(default_factory=dict)

    def save(self, path: PathLike) -> None:
        """Write the content to a file, and the further files to its folder, each atomically.

        Parameters
        ----------
        path : path

        Raises
        ------
        InputError
            If the file would have the name of a further file.
        OSError
            If a file cannot be written; a file of the same name keeps its old content.
        """
        target = Path(path)
        if target.name in self.files:
            problem = f"{target.name} is the name of a further file of this format. Give the model another name."
            raise InputError(problem, parameter="path")
        for name, data in {target.name: self.content, **self.files}.items():
            with atomic_write(target.with_name(name)) as file:
                file.write(data.encode() if isinstance(data, str) else data)

    def json(self) -> Any:
        """The content as Python objects, for a client that posts it; only for formats that are JSON."""
        return json.loads(self.content)


def json_text(value: Any) -> str:
    """Indented JSON that ends with a newline; arrays become lists."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, default=np.ndarray.tolist) + "\n"


@dataclass(frozen=True, eq=False)
class Weights:
    """``w'x`` for each target; weights of shape (n, targets)."""

    weights: Array


@dataclass(frozen=True, eq=False)
class Steps:
    """``sum_t weight_t [x_feature_t > threshold_t]``, one target."""

    features: Index
    thresholds: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Expansion:
    """``sum_j a_j k(x, z_j)`` over some features (None for all); coefficients of shape (items, targets)."""

    kernel: Kernel
    formula: Formula
    features: Index | None
    items: Array
    coefficients: Array


Function = Weights | Steps | list[Expansion]


def fitted_function(final: Ranker, system: str) -> Function:
    """Function of a ranker's scores; one without a formula is refused."""
    if hasattr(final, "coef_"):
        return Weights(np.atleast_2d(np.asarray(final.coef_, dtype=np.float64)).T)
    if isinstance(final, RankBoost):
        return Steps(final.features_, final.thresholds_, final.weights_)
    if isinstance(final, CoRankRLS | ViewPursuer):
        return [_expansion(*part) for part in final._expansions()]
    if not hasattr(final, "dual_coef_"):
        problem = f"A {type(final).__name__} cannot be exported as {system}, because it is not a kernel model."
        raise InputError(problem, parameter="model")
    return [_expansion(final._kernel_, None, vars(final).get("X_fit_"), final.dual_coef_)]


def _expansion(kernel: Kernel | None, features: Index | None, items: Matrix, coefficients: Array) -> Expansion:
    assert kernel is not None  # sums over features have coef_
    if kernel.formula is None:
        what = "known only by its matrix" if kernel.name == "precomputed" else "a Python function"
        raise InputError(
            f"The model cannot be exported: its kernel is {what}. Kernels with a formula can.", parameter="model"
        )
    items = np.asarray(items.toarray() if sparse.issparse(items) else items, dtype=np.float64)
    coefficients = np.atleast_2d(np.asarray(coefficients, dtype=np.float64).T).T
    return Expansion(kernel, kernel.formula, features, items, coefficients)


@dataclass(frozen=True)
class Scaling:
    """One step of a pipeline: ``(x - centre) / spread``, with asinh(x) instead of x after a logarithm."""

    centre: Array
    spread: Array
    logarithm: bool = False


def scaling_steps(model: Any, n_features: int) -> list[Scaling]:
    """The scalers of a pipeline, one after another."""
    return [_scaling(step, n_features) for step in unwrapped(model)[0][table_encoder(model) is not None :]]


def _scaling(step: Any, n_features: int) -> Scaling:
    if isinstance(step, LogScaler):
        return replace(_scaling(step.scaler_, n_features), logarithm=True)
    name = type(step).__name__
    if isinstance(step, QueryMinMaxScaler | QueryStandardScaler):
        if step.fitted_with_qid_:
            problem = f"{name} scales within queries, but an engine scores each document on its own."
            raise InputError(f"{problem} {SCALERS}", parameter="model")
        return _scaling(step.scaler_, n_features)
    centre = None
    match step:
        case MinMaxScaler(clip=False):
            return Scaling(step.data_min_ - step.feature_range[0] / step.scale_, 1.0 / step.scale_)
        case StandardScaler():
            centre = step.mean_ if step.with_mean else None
        case RobustScaler():
            centre = step.center_
        case MaxAbsScaler():
            pass
        case _:
            clip = "(clip=True)" if isinstance(step, MinMaxScaler) else ""
            raise InputError(f"The pipeline's step {name}{clip} cannot be exported. {SCALERS}", parameter="model")
    spread = np.ones(n_features) if step.scale_ is None else step.scale_
    return Scaling(np.zeros(n_features) if centre is None else centre, spread)


def table_features(model: Any, feature_names: Sequence[str] | None, n: int) -> Sequence[EncodedFeature]:
    """Features of the TableEncoder, or numbers with the names of the columns, which must be unique."""
    encoder = table_encoder(model)
    if encoder is not None:
        if feature_names is not None:
            problem = "The TableEncoder names the features, so feature_names cannot be used. Leave it out."
            raise InputError(problem, parameter="feature_names")
        features: Sequence[EncodedFeature] = encoder.features_
        return features
    if feature_names is None and fitted_names(model) is None:
        problem = f"The engine identifies features by name, but this model was fitted to {n} columns without names."
        remedy = "Pass feature_names, one per column in their order, or fit to a data frame."
        raise InputError(f"{problem} {remedy}", parameter="feature_names")
    names = names_of_features(model, feature_names, n)
    twice = [name for j, name in enumerate(names) if name in names[:j]]
    if twice:
        raise InputError(f"Two features are called {twice[0]!r}: names must differ.", parameter="feature_names")
    return [EncodedFeature(name, "number") for name in names]


def refuse(system: str, reasons: Iterable[tuple[EncodedFeature, str]], matches: bool = True) -> None:
    """Raise one error about all features that a system cannot compute, with the reasons; empty reasons are supported.

    ``matches`` is whether the system can compare words with those of a query.
    """
    refused = dict.fromkeys((feature.column, why) for feature, why in reasons if why)
    if refused:
        listed = "; ".join(f"{column!r} ({why})" for column, why in refused)
        instead = ", or fit with text_features='matches'" if matches else ""
        problem = f"{system} cannot compute what the model needs: {listed}. Rename or leave out the columns (ignore)"
        settings = {"text_features": "matches"} if matches else {}
        raise InputError(f"{problem}{instead}.", parameter="model", column=next(iter(refused))[0], settings=settings)
