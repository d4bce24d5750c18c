"""``save`` and ``load``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankrls._errors import InputError
from rankrls.models.families.base import Ranker
from rankrls.models.inputs.seen_labels import warn_of_seen_labels
from rankrls.persistence._archive import ModelFileError, opened, write
from rankrls.persistence._checks import shown_name
from rankrls.persistence._provenance import describe
from rankrls.persistence._registry import KINDS, registered
from rankrls.persistence._tree import Encoder, Unstorable, decoded

PathLike = str | os.PathLike[str]
_UPDATES = ("_equations_", "_seen_", "_basis_parts_")


def save(model: Any, path: PathLike, *, provenance: Mapping[str, Any] | None = None, updatable: bool = True) -> None:
    """Write a fitted model to a file.

    The file is a zip archive of numpy arrays and one JSON document. It holds numbers and the public names of classes,
    never code, and says where the model comes from: versions, time, parameters, alpha, how they were chosen and the
    cross-validated measure. It is written to a temporary file and renamed: if anything fails, a file of the same name
    keeps its old content.

    Parameters
    ----------
    model : RankRLS, RankRLSCV, or a Pipeline that ends in one
        Fitted; any estimator of this package. Before it, a pipeline may have the scalers of
        :mod:`rankrls.preprocessing` and the transformers of scikit-learn that the guide on model files lists.
    path : path
        By custom it ends in ``.rankrls``.
    provenance : mapping, optional
        Anything that JSON can hold, kept in the file beside what the model knows of itself: the data's name and hash
        (``LetorTable.sha256``), who made it, why.
    updatable : bool, default=True
        Whether ``partial_fit`` and ``forget`` work on the loaded model. They need the normal equations, n x n numbers,
        and the ids of the queries seen; False leaves them out, and a linear model is then about as large as its
        weights.

    Raises
    ------
    ValueError
        Before anything is written: for a model that is not fitted, and for one that holds what a model file cannot,
        such as a function as kernel. It names the parameter or step.
    OSError
        Where the file cannot be written, or the disk is full.

    Warns
    -----
    InputWarning
        If the last step chose by held-out queries, and a step before it had learned from their labels
        (``TargetEncoder``, ``SelectKBest``): the measure that the file states is then optimistic.

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
    if final is None:
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        what = f"a pipeline that ends in {type(last).__name__}" if last is not model else type(model).__name__
        raise InputError("A model file holds an estimator of rankrls, or a Pipeline that ends in one; got {0}.", what)
    check_is_fitted(final)
    info = describe(model, final, provenance)
    info["updatable"] = updatable and hasattr(final, "_equations_")
    encoder = Encoder(leave_out=() if updatable else _UPDATES)
    try:
        tree = encoder.node(model)
    except Unstorable as found:
        raise _unstorable(model, found.where, found.what) from None
    except ModelFileError as error:
        raise InputError(
            "The model cannot be saved: {0}", error.problem, parameter=error.parameter, remedy="Fit it again."
        ) from None
    warn_of_seen_labels(model, final, stacklevel=2)
    write(path, info, tree, encoder.arrays)


def load(path: PathLike) -> Any:
    """Read a model that :func:`save` wrote.

    Nothing that the file says is run: it names classes of a fixed list only, and the values of each are checked.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator
        What was saved.

    Raises
    ------
    ModelFileError
        A ValueError that names the file and what is wrong: not a model file, truncated, damaged, holding a class that
        is not listed or a value that does not fit the model, or written by a newer version of rankrls.
    OSError
        If the file cannot be read.

    Warns
    -----
    InconsistentVersionWarning
        If a pipeline was saved with another version of scikit-learn.
    """
    with opened(os.fspath(path)) as archive:
        node, versions = archive.document.get("model"), archive.document["info"].get("versions")
        name = node.get("object") if isinstance(node, dict) else None
        if not (isinstance(name, str) and name in KINDS and KINDS[name].is_model):
            raise ModelFileError("holds a {0}, which is no model of rankrls.", shown_name(name or node))
        model = decoded(node, archive)
        final = _ranker(model)
        if final is None:
            raise ModelFileError("holds a pipeline that does not end in an estimator of rankrls.", parameter="steps")
        check_is_fitted(final)
    written_with = versions.get("scikit-learn") if isinstance(versions, dict) else None
    if isinstance(model, Pipeline) and written_with != sklearn.__version__:
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=type(model).__name__,
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=str(written_with)[:80],
            ),
            stacklevel=2,
        )
    return model


def _ranker(model: Any) -> Any:
    """A model, or the last step of a pipeline; None if that is no estimator of rankrls."""
    final = model.steps[-1][1] if isinstance(model, Pipeline) else model
    kind = registered(final)
    return final if isinstance(final, Ranker) or (kind is not None and kind.is_model) else None


def _unstorable(model: Any, where: str, what: str) -> InputError:
    """The error of a value that no model file can hold: a kernel, a step of a pipeline, or a parameter."""
    parameter = where.partition(".")[0].partition("[")[0] or None
    last = f"steps[{len(model.steps) - 1}][1]." if isinstance(model, Pipeline) else ""
    if where.removeprefix(last).startswith("kernel"):
        parameter = "kernel"
        remedy = (
            "It would be code, which load could not trust: use a kernel by name, or compute the kernel matrix yourself "
            "and use {kernel='precomputed'}."
        )
    elif isinstance(model, Pipeline) and where.startswith("steps") and what.startswith("the function"):
        remedy = "Do what the function does before the pipeline, on the data; or name what scikit-learn has for it."
    elif isinstance(model, Pipeline) and where.startswith("steps"):
        remedy = "Use a transformer that a model file holds (the guide on model files lists them), or transform first."
    else:
        remedy = "Set that parameter to a plain value before saving."
    problem = "The model cannot be saved: {0} is {1}, which is not among the types that a model file holds."
    return InputError(problem, where or "it", what, parameter=parameter, remedy=remedy)
