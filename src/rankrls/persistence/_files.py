"""``save``, ``load`` and ``read_info``."""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import rankrls
from rankrls._errors import InputError
from rankrls._typing import AnyArray
from rankrls.kernels import kernel_parameters
from rankrls.metrics._scorer import predict_by_query
from rankrls.models._pipelines import selected_features, selects_features
from rankrls.models.conditional import ConditionalRanker
from rankrls.models.ranker import Ranker
from rankrls.persistence._format import decoded, encoded, is_listed, opened, write
from rankrls.preprocessing import TableEncoder

PathLike = str | os.PathLike[str]
_UPDATES = "_update_state_"
_WIDEST = 1 << 21
_LONGEST = 200  # longest list in a description: a grid is useful there, row numbers of a split are not


def save(
    model: Ranker | ConditionalRanker | Pipeline,
    path: PathLike,
    *,
    provenance: Mapping[str, Any] | None = None,
    updatable: bool = True,
) -> None:
    """Write a fitted model to a file.

    The file is a zip archive of numpy arrays and one JSON document. It contains numbers, texts and the public names of
    classes, but no code, and the time and versions of its writing. It is written to a temporary file and renamed, so
    that a file of the same name keeps its old content if anything fails.

    Parameters
    ----------
    model : estimator of rankrls, or a Pipeline that ends in one
        A fitted model. A pipeline can have the transformers of ``rankrls.preprocessing`` and scikit-learn's
        StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and QuantileTransformer.
    path : path
        Usually it ends in ``.rankrls``.
    provenance : mapping, optional
        Values for JSON to store in the file, such as the name and hash of the data.
    updatable : bool, default=True
        Whether ``partial_fit`` can continue the loaded model, if ``partial_fit`` began it: the file then contains the
        normal equations, n x n numbers, and the query ids. False omits them, so that a linear model is about as large
        as its weights.

    Raises
    ------
    InputError
        If a model file cannot contain the model, such as one with a kernel function or another transformer, or if the
        model does not predict finite numbers. The error names the parameter or step, and nothing is written.
    NotFittedError
        If the model is not fitted.
    OSError
        If the file cannot be written, or the disk is full.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankrls import RankRLS, load, save
    >>> X, y, qid = [[1.0, 0.0], [0.0, 1.0], [2.0, 0.5]], [1, 0, 2], ["a", "a", "a"]
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.rankrls")
    ...     save(model, path, provenance={"data": "three items"})
    ...     again = load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    check_is_fitted(_ranker(model))
    versions = {"numpy": np.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__}
    try:
        given = dict(json.loads(json.dumps(dict(provenance or {}), allow_nan=False)))
    except (TypeError, ValueError) as error:
        problem = f"provenance must be a mapping of values for JSON: {error}."
        raise InputError(problem, parameter="provenance") from None
    arrays: list[AnyArray] = []
    about = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"rankrls": rankrls.__version__, "python": platform.python_version(), **versions},
        "given": given,
        "model": encoded(model, arrays, leave_out=() if updatable else (_UPDATES,)),
    }
    stored = decoded(about["model"], lambda name: arrays[int(name.removesuffix(".npy"))])  # arrays are on the host
    _check_predicts(stored, sum(array.nbytes for array in arrays))
    write(path, about, arrays)


def load(path: PathLike) -> Ranker | ConditionalRanker | Pipeline:
    """Read a model written by :func:`save`.

    The file contains no code, and names only classes of a fixed list. A damaged file is an error, and so is a model
    that does not predict finite numbers for rows of zeros and ones.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        The saved model.

    Raises
    ------
    InputError
        If the file is not a model file, is damaged or truncated, or has a newer format.
    OSError
        If the file cannot be read.
    """
    model: Ranker | ConditionalRanker | Pipeline = read_model(path)[0]
    return model


def read_info(path: PathLike) -> dict[str, Any]:
    """Read the description of a model file without loading the model.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict
        ``format_version``, ``created`` (UTC), ``versions``, ``given`` (the provenance passed to ``save``), and for the
        model: ``estimator``, ``steps`` before it, ``parameters``, ``alpha``, ``kernel``, ``n_queries``, ``n_features``,
        ``feature_names``, ``n_targets``, ``n_training_items`` (kernel models), ``updatable``, ``selection`` (its
        description, the measure, its value and standard error; None if nothing was selected) and ``examination`` (of
        each position, if the model was fitted to clicks; else None). For a model that selects features,
        ``selected_features``, each with its name, weight and held-out gain in the order of selection.

    Raises
    ------
    InputError, OSError
        For the same reasons as :func:`rankrls.load`.
    """
    model, about = read_model(path)
    return {**about, **_described(model), "updatable": _UPDATES in vars(_ranker(model))}


def read_model(path: PathLike) -> tuple[Any, dict[str, Any]]:
    """A model, and further facts of its file: ``format_version``, ``created``, ``versions`` and ``given``."""
    with opened(path) as archive:
        about = {name: archive.document[name] for name in ("format_version", "created", "versions")}
        about["given"] = {**archive.document["given"]}
        model = decoded(archive.document["model"], archive.array)
        _check_predicts(model, archive.size)
        _described(model)
    return model, about


def steps_of(model: Any) -> list[Any]:
    """Steps of a pipeline, or a model alone."""
    return [step for _, step in model.steps if step != "passthrough"] if isinstance(model, Pipeline) else [model]


def _ranker(model: Any) -> Any:
    """A model, or the last step of a pipeline."""
    final = steps_of(model)[-1]
    public = is_listed(final) and type(final).__name__ in rankrls.__all__
    if not (public and isinstance(final, Ranker | ConditionalRanker)):
        what = f"a pipeline that ends in {type(final).__name__}" if final is not model else type(model).__name__
        problem = f"A model file contains an estimator of rankrls, or a Pipeline that ends in one; got {what}."
        raise InputError(problem, parameter="model")
    return final


def _check_predicts(model: Any, size: int) -> None:
    """Refuse a model of ``size`` bytes that does not predict finite scores for rows of zeros and ones."""
    final = _ranker(model)
    first = steps_of(model)[0]
    items = vars(final).get("X_fit_")
    if items is not None and items.shape[1] != final.n_features_in_:
        problem = f"The model claims to have {final.n_features_in_} features, but its items have {items.shape[1]}."
        raise InputError(problem, parameter="model")
    if isinstance(first, TableEncoder):
        X: Any = first.example()
    else:
        n = first.n_features_in_
        if n > max(_WIDEST, size):
            raise InputError(f"The model claims to have {n} features.", parameter="model")
        X = np.array([np.zeros(n), np.ones(n)])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scores = predict_by_query(model, X, np.zeros(2, dtype=int))
    if not np.isfinite(scores).all():
        raise InputError("The model does not predict finite scores.", parameter="model")


def _described(model: Any) -> dict[str, Any]:
    """Description of a model; see :func:`read_info`."""
    *before, final = steps_of(model)
    first = [*before, final][0]
    known = vars(final)
    encodes = isinstance(first, TableEncoder)
    names = first.get_feature_names_out() if encodes else vars(first).get("feature_names_in_")
    primal = known.get("coef_")
    dual = known.get("dual_coef_")
    coefficients = dual if primal is None else primal.T  # one column per target
    kernel = known.get("_kernel_")
    found = {
        "estimator": type(final).__name__,
        "steps": [type(step).__name__ for step in before],
        "parameters": final.get_params(deep=False),
        "alpha": known.get("alpha_"),
        "kernel": kernel
        and {"name": kernel.name, **{name: vars(kernel)[name] for name in kernel_parameters(kernel.name)}},
        "n_queries": int(final.n_queries_),
        "n_features": known.get("n_features_in_"),
        "n_targets": 1 if coefficients is None or coefficients.ndim == 1 else int(coefficients.shape[1]),
        "n_training_items": None if primal is not None or dual is None else int(dual.shape[0]),
        "selection": None,
        "examination": known.get("propensities_") and final.propensities_.as_dict(),
    }
    if "selection_" in known:
        found["selection"] = {
            "how": final.selection_,
            "measure": str(final.scoring),
            "value": final.best_score_,
            "standard_error": final.best_score_error_,
            "rule": known.get("rule"),
            "chosen": final.best_params_,
        }
    if selects_features(final):
        found["selected_features"] = selected_features(model).records
    return {**_plain(found), "feature_names": None if names is None else [str(name) for name in names]}


def _plain(value: Any) -> Any:
    """A value for JSON: numbers, words and lists are unchanged, anything else is converted to text."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value] if len(value) <= _LONGEST else f"{len(value)} values"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
