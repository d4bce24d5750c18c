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
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import rankrls
from rankrls._errors import InputError
from rankrls.metrics._scorer import predict_by_query
from rankrls.persistence._archive import opened, write
from rankrls.persistence._provenance import describe
from rankrls.persistence._registry import is_listed
from rankrls.persistence._tree import Encoder, Unstorable, decoded
from rankrls.preprocessing import TableEncoder

PathLike = str | os.PathLike[str]
_UPDATES = "_update_state"
_WIDE, _WIDEST = 1 << 20, 1 << 22


def save(model: Any, path: PathLike, *, provenance: Mapping[str, Any] | None = None, updatable: bool = True) -> None:
    """Write a fitted model to a file.

    The file is a zip archive of numpy arrays and one JSON document. It holds numbers, texts and the public names of
    classes, never code, and says when and with which versions it was written. It is written to a temporary file and
    renamed: if anything fails, a file of the same name keeps its old content.

    Parameters
    ----------
    model : estimator of rankrls, or a Pipeline that ends in one
        Fitted. Before it, a pipeline may have the transformers of :mod:`rankrls.preprocessing` and scikit-learn's
        StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler and QuantileTransformer.
    path : path
        By custom it ends in ``.rankrls``.
    provenance : mapping, optional
        Anything that JSON can hold, kept in the file: the name and hash of the data, who made it, why.
    updatable : bool, default=True
        Whether ``partial_fit`` works on the loaded model. It needs the normal equations, n x n numbers, and the ids of
        the queries seen; False leaves them out, and a linear model is then about as large as its weights.

    Raises
    ------
    InputError
        Before anything is written: for a model that holds what a model file cannot, such as a function as kernel or
        another transformer, or that does not predict finite numbers. It names the parameter or step.
    NotFittedError
        For a model that is not fitted.
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
    final = _ranker(model)
    check_is_fitted(final)
    versions = {"numpy": np.__version__, "scipy": scipy.__version__, "scikit-learn": sklearn.__version__}
    about = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"rankrls": rankrls.__version__, "python": platform.python_version(), **versions},
        "given": _as_json(provenance),
    }
    encoder = Encoder(leave_out=() if updatable else (_UPDATES,))
    try:
        about["model"] = encoder.node(model)
    except Unstorable as found:
        raise _unstorable(model, found) from None
    _check_predicts(model, sum(array.nbytes for array in encoder.arrays))
    write(path, about, encoder.arrays)


def load(path: PathLike) -> Any:
    """Read a model that :func:`save` wrote.

    Nothing that the file says is run: it names classes of a fixed list only. A file that was changed or damaged is
    refused, and so is a model that does not predict finite numbers for rows of zeros and ones.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        What was saved.

    Raises
    ------
    InputError
        For a file that is no model file, is damaged, cut short or changed, or is of a newer format.
    OSError
        If the file cannot be read.
    """
    return read_model(path)[0]


def read_info(path: PathLike) -> dict[str, Any]:
    """What a model file says about its model.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict
        ``format_version``, ``created`` (UTC), ``versions``, ``given`` (what the caller of ``save`` added), and what the
        model says of itself: ``estimator``, ``steps`` before it, ``parameters``, ``alpha``, ``kernel``, ``n_queries``,
        ``n_features``, ``feature_names``, ``n_targets``, ``n_training_items`` (kernel models), ``updatable`` and
        ``selection`` (how it was chosen, the measure, its value and standard error; None if nothing was chosen).

    Raises
    ------
    InputError, OSError
        As :func:`load`.
    """
    model, about = read_model(path)
    return {**about, **describe(model, _ranker(model)), "updatable": hasattr(_ranker(model), _UPDATES)}


def read_model(path: PathLike) -> tuple[Any, dict[str, Any]]:
    """A model, and what its file says beside it: ``format_version``, ``created``, ``versions`` and ``given``."""
    with opened(path) as archive:
        about = {name: archive.document[name] for name in ("format_version", "created", "versions", "given")}
        model = decoded(archive.document["model"], archive)
        archive.check_all_read()
        _ranker(model)
        _check_predicts(model, archive.size)
        describe(model, _ranker(model))
    return model, about


def _check_predicts(model: Any, size: int) -> None:
    """Refuse a model, in so many bytes, that does not give finite scores to rows of zeros and ones."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    X: Any
    if isinstance(steps[0], TableEncoder):
        X = steps[0].example()
    else:
        n = next(step.n_features_in_ for step in steps if hasattr(step, "n_features_in_"))
        if n > max(_WIDEST, size):
            raise InputError(f"The model claims to have {n} features.", parameter="model")
        X = np.array([np.zeros(n), np.ones(n)]) if n <= max(_WIDE, size) else sparse.csr_array((2, n))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        scores = predict_by_query(model, X, np.zeros(2, dtype=int))
    if not np.isfinite(scores).all():
        raise InputError("The model does not predict finite scores.", parameter="model")


def _ranker(model: Any) -> Any:
    """A model, or the last step of a pipeline."""
    final = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not (is_listed(final) and type(final).__name__ in rankrls.__all__ and hasattr(final, "predict")):
        what = f"a pipeline that ends in {type(final).__name__}" if final is not model else type(model).__name__
        raise InputError(
            f"A model file holds an estimator of rankrls, or a Pipeline that ends in one; got {what}.",
            parameter="model",
        )
    return final


def _as_json(given: Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        return dict(json.loads(json.dumps(dict(given or {}), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"provenance must be a mapping of values that JSON can hold: {error}.", parameter="provenance"
        ) from None


def _unstorable(model: Any, found: Unstorable) -> InputError:
    """The error of a value that no model file can hold: a kernel, a step of a pipeline, or a parameter."""
    parameter = found.where.partition(".")[0].partition("[")[0] or "model"
    last = f"steps[{len(model.steps) - 1}][1]." if isinstance(model, Pipeline) else ""
    if found.where.removeprefix(last).startswith("kernel"):
        parameter = "kernel"
        remedy = "Use a kernel by name, or compute the kernel matrix yourself and use kernel='precomputed'."
    elif parameter == "steps" and not found.where.startswith(last):
        remedy = "Save such a pipeline with skops.io, whose files you trust yourself, or transform the data before."
    else:
        remedy = "Set that parameter to a plain value before saving."
    where = found.where or "it"
    text = f"The model cannot be saved: {where} is {found.what}, which is not among the types that a model file holds."
    return InputError(f"{text} {remedy}", parameter=parameter)
