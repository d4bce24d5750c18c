"""``save`` and ``load``."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping
from typing import Any
from zipfile import ZIP_STORED, ZipFile

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from rankrls.io import atomic_write
from rankrls.models._base import Ranker
from rankrls.persistence._archive import (
    FORMAT,
    FORMAT_VERSION,
    HEADER,
    ModelFileError,
    check_arrays,
    opened,
    read_header,
    read_schema,
)
from rankrls.persistence._packing import pack, unpack
from rankrls.persistence._provenance import describe
from rankrls.persistence._trusted import ESTIMATORS, TRUSTED, audit, root_name

__all__ = ["load", "save"]

PathLike = str | os.PathLike[str]


def save(model: Any, path: PathLike, *, provenance: Mapping[str, Any] | None = None, updatable: bool = True) -> None:
    """Write a fitted model to a file.

    The file is a skops archive. It holds numbers and the names of types, never code, and says where the model comes
    from: versions, time, parameters, alpha, how they were chosen and the cross-validated measure. It is written to a
    temporary file and renamed: where anything fails, a file of the same name keeps its old content.

    Parameters
    ----------
    model : RankRLS, RankRLSCV, or a Pipeline that ends in one
        Fitted. Before it, a pipeline may have the scalers of :mod:`rankrls.preprocessing` and scikit-learn's
        StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler.
    path : path
        By custom it ends in ``.skops``.
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
        Before anything is written: for a model that is not fitted, and for one that :func:`load` could not trust, such
        as a kernel that is a function.
    OSError
        Where the file cannot be written, or the disk is full.

    Notes
    -----
    The file is put together in memory first: once the size of the model.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankrls import RankRLS, load, save
    >>> X, y, qid = [[1.0, 0.0], [0.0, 1.0], [2.0, 0.5]], [1, 0, 2], ["a", "a", "a"]
    >>> model = RankRLS().fit(X, y, qid=qid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.skops")
    ...     save(model, path, provenance={"data": "three items"})
    ...     again = load(path)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    final = _final_estimator(model)
    check_is_fitted(final)
    _refuse_code(final)
    info = describe(model, final, provenance)
    info["updatable"] = updatable and hasattr(final, "_equations")
    content = _dumped(pack(model, updatable=updatable), final)
    header = {"format": FORMAT, "format_version": FORMAT_VERSION, "info": info}
    with ZipFile(content, "a", ZIP_STORED) as archive:
        archive.writestr(HEADER, json.dumps(header, indent=1, allow_nan=False))
    with atomic_write(path) as file:
        file.write(content.getbuffer())


def load(path: PathLike) -> Any:
    """Read a model that :func:`save` wrote.

    Nothing that the file says is run: it may name types from a fixed list only
    (``rankrls.persistence._trusted.TRUSTED``), and it is audited as a whole before the first object is made.

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
        A ValueError that names the file and what is wrong: not a model file, truncated, damaged, holding a type that
        is not trusted, or written by a newer version of rankrls.
    OSError
        Where the file cannot be read.
    """
    with opened(os.fspath(path)) as (file, archive):
        read_header(archive)
        schema = read_schema(archive)
        if root_name(schema) not in ESTIMATORS:
            raise ModelFileError(f"holds a {root_name(schema)[:200]}, which is no model of rankrls.")
        found = audit(schema)
        if found:
            raise ModelFileError(
                f"holds a {found[0].name[:200]} at {found[0].where[:200] or 'its root'}, which is not among the types "
                "that a model file may hold. Nothing of it was loaded."
            )
        check_arrays(archive)
        import skops.io

        file.seek(0)
        model = unpack(skops.io.load(file, trusted=list(TRUSTED)))
        check_is_fitted(_final_estimator(model))
    return model


def _final_estimator(model: Any) -> Any:
    final = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(final, Ranker):
        what = f"a pipeline that ends in {type(final).__name__}" if final is not model else f"{type(model).__name__}"
        raise ValueError(f"A model file holds an estimator of rankrls, or a Pipeline that ends in one; got {what}.")
    return final


def _refuse_code(final: Any) -> None:
    """A message of its own for what people try: a kernel that is a function."""
    kernel = getattr(final, "_kernel_", None)
    name = None if kernel is None else kernel.name
    if callable(name):
        raise ValueError(
            f"The model cannot be saved: its kernel is the function {getattr(name, '__qualname__', name)!r}, and a "
            "model file holds no code that load could trust. Use a kernel by name, or compute the kernel matrix "
            "yourself and use kernel='precomputed'."
        )


def _parameter_at_fault(final: Any) -> str | None:
    """Which parameter of an estimator no file can hold, such as a pandas object; None where it is something else."""
    import skops.io

    for name, value in final.get_params(deep=False).items():
        try:
            skops.io.dumps(value)
        except Exception:  # whatever an object that is not made to be stored raises
            return f"{name} is a {type(value).__name__}. Set that parameter to a plain value before saving."
    return None


def _dumped(packed: Any, final: Any) -> io.BytesIO:
    """The skops archive of a packed model, audited as ``load`` will audit it."""
    import skops.io

    try:
        content = io.BytesIO()
        skops.io.dump(packed, content)
    except Exception as error:  # whatever an object that is not made to be stored raises
        raise ValueError(f"The model cannot be saved: {_parameter_at_fault(final) or error}") from error
    with ZipFile(content) as archive:
        found = audit(read_schema(archive))
        if found:
            raise ValueError(
                f"The model cannot be saved: {found[0].where or 'it'} is a {found[0].name}, which is not among the "
                "types that load would trust. Set that parameter to a plain value before saving."
            )
        try:
            check_arrays(archive)
        except ModelFileError as error:
            raise ValueError(f"The model cannot be saved: {error}") from None
    return content
