"""The format of model files: an uncompressed zip archive whose sizes are checked before anything is allocated.

==============  ======================================================================================
``model.json``  one JSON document: the kind of the file, the origin of the model, and the model
``0.npy``, ...  one array of numbers each, in numpy's own format
==============  ======================================================================================

The archive contains a checksum of each member, which is compared when the member is read.

The model in the document is plain JSON; other values cannot be stored.

Null, booleans, numbers, texts and lists are stored unchanged. Every other value is a JSON object:

============================================  ==========================================================
``{"tuple": [...]}``                          a tuple
``{"slice": [start, stop, step]}``            a slice
``{"pairs": [[key, value], ...]}``            a dictionary
``{"array": "3.npy"}``                        an array of numbers
``{"objects": [...], "shape": [...]}``        an array of texts or other objects, such as names
``{"csr": [...], "shape": [...]}``            a sparse array: data, indices and indptr
``{"object": "RankRLS", "state": {...}}``     an object of a listed class
============================================  ==========================================================

Each array is referenced at most once, and there are no other references, so a model is never larger than its file. A
class that is not listed can be neither saved nor loaded. A file does not depend on the module of a class.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import platform
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from math import prod
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
import scipy
import sklearn
from numpy.lib import format as npy
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import rankrls
from rankrls._arrays import on_device, to_host
from rankrls._errors import InputError
from rankrls._typing import AnyArray, Params, PathLike, Values
from rankrls.io import atomic_write
from rankrls.kernels import kernel_parameters
from rankrls.metrics._scorer import predict_by_query
from rankrls.models._pipelines import selected_features, selects_features
from rankrls.models.conditional import ConditionalRanker
from rankrls.models.fitted import FORMAT_VERSION, FormatVersionError, check_format
from rankrls.models.ranker import Ranker
from rankrls.preprocessing import TableEncoder

_UPDATES = "_update_state_"
_WIDEST = 1 << 21
_LONGEST = 200  # longest list in a description: a grid is useful there, row numbers of a split are not
FORMAT = "rankrls model"
_DOCUMENT = "model.json"
_LONGEST_HEADER = 1024


def save(
    model: Ranker | ConditionalRanker | Pipeline,
    path: PathLike,
    *,
    provenance: Params | None = None,
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
    arrays: list[AnyArray] = []
    about = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"rankrls": rankrls.__version__, "python": platform.python_version(), **versions},
        "given": json.loads(json.dumps(dict(provenance or {}), allow_nan=False)),
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


def read_info(path: PathLike) -> Values:
    """Read the description of a model file.

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


def read_model(path: PathLike) -> tuple[Any, Values]:
    """A model, and further facts of its file: ``format_version``, ``created``, ``versions`` and ``given``.

    Any error that a damaged or hostile file causes is an :class:`InputError`.

    Raises
    ------
    OSError
        If the file cannot be opened.
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        try:
            with ZipFile(file) as members:
                archive = ModelArchive(members, file.seek(0, os.SEEK_END))
                about = {name: archive.document[name] for name in ("format_version", "created", "versions")}
                about["given"] = {**archive.document["given"]}
                model = decoded(archive.document["model"], archive.array)
            _check_predicts(model, archive.size)
            _described(model)
        except MemoryError:
            raise
        except FormatVersionError as error:
            raise error.replace(file=name) from None
        except Exception as error:
            reason = ascii(f"{type(error).__name__}: {error}"[:200])[1:-1]
            problem = f"this is not a model file as rankrls.save and rankrls fit write it, or it is damaged ({reason})."
            raise InputError(problem, file=name) from error
    return model, about


def steps_of(model: Any) -> list[Any]:
    """Steps of a pipeline, or a model alone."""
    return [step for _, step in model.steps if step != "passthrough"] if isinstance(model, Pipeline) else [model]


def _ranker(model: Any) -> Any:
    """A model, or the last step of a pipeline."""
    final = steps_of(model)[-1]
    if not isinstance(final, Ranker | ConditionalRanker):
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
    if len(scores) != 2 or not np.isfinite(scores).all():
        raise InputError("The model does not predict a finite score for each row.", parameter="model")


def _described(model: Any) -> Values:
    """Description of a model; see :func:`read_info`."""
    steps = steps_of(model)
    first = steps[0]
    final = steps[-1]
    known = vars(final)
    encodes = isinstance(first, TableEncoder)
    names = first.get_feature_names_out() if encodes else vars(first).get("feature_names_in_")
    primal = known.get("coef_")
    dual = known.get("dual_coef_")
    coefficients = dual if primal is None else primal.T  # one column per target
    kernel = known.get("_kernel_")
    found = {
        "estimator": type(final).__name__,
        "steps": [type(step).__name__ for step in steps[:-1]],
        "parameters": final.get_params(deep=False),
        "alpha": known.get("alpha_"),
        "kernel": None,
        "n_queries": int(final.n_queries_),
        "n_features": known.get("n_features_in_"),
        "n_targets": 1 if coefficients is None or coefficients.ndim == 1 else int(coefficients.shape[1]),
        "n_training_items": None if primal is not None or dual is None else int(dual.shape[0]),
        "selection": None,
        "examination": None,
    }
    if kernel is not None:
        parameters = {name: vars(kernel)[name] for name in kernel_parameters(kernel.name)}
        found["kernel"] = {"name": kernel.name, **parameters}
    if "propensities_" in known:
        found["examination"] = final.propensities_.as_dict()
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
        found["selected_features"] = selected_features(model)
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


class ModelArchive:
    """An open model file of ``size`` bytes: its document, and its arrays, each of which can be read once.

    Raises
    ------
    ValueError
        If the file differs from the format of :func:`write`.
    """

    def __init__(self, archive: ZipFile, size: int) -> None:
        members = archive.infolist()
        names = [member.filename for member in members]
        if names[-1:] != [_DOCUMENT] or names[:-1] != [f"{k}.npy" for k in range(len(names) - 1)]:
            raise ValueError(f"it contains more than {_DOCUMENT} and arrays")
        if any(m.compress_type != ZIP_STORED or m.file_size != m.compress_size or m.flag_bits & 1 for m in members):
            raise ValueError("a member is compressed or encrypted")
        if sum(member.file_size for member in members) > size:
            raise ValueError("its members claim to be larger than the file")
        self._archive = archive
        self.size = size
        self._unread = {member.filename: member for member in members[:-1]}
        self.document: Values = json.loads(archive.read(_DOCUMENT))
        if self.document["format"] != FORMAT:
            raise ValueError(f"{_DOCUMENT} does not describe a rankrls model")
        check_format(self.document["format_version"], "The model file")

    def array(self, name: Any) -> AnyArray:
        """The array of a member, which no other part of the model may name again."""
        with self._archive.open(self._unread.pop(name)) as stream:
            npy.read_magic(stream)
            shape, by_columns, dtype = npy.read_array_header_1_0(stream, max_header_size=_LONGEST_HEADER)
            if not is_storable(dtype):
                raise ValueError(f"the array {name} is of {dtype}")
            data = bytearray(stream.read())  # to the end of the member, where its checksum is compared
        found = np.frombuffer(data, dtype)
        if prod(shape) != found.size:
            raise ValueError(f"the array {name} is not of the size that it claims")
        found = found.reshape(shape, order="F" if by_columns else "C")
        return found.view(np.uint8) != 0 if dtype.kind == "b" else found


def write(path: PathLike, content: Values, arrays: Sequence[AnyArray]) -> None:
    """Write a document and the arrays that it references, atomically."""
    with atomic_write(path) as file, ZipFile(file, "w", ZIP_STORED) as archive:
        for number, array in enumerate(arrays):
            with archive.open(ZipInfo(f"{number}.npy"), "w", force_zip64=True) as member:
                npy.write_array(member, array, version=(1, 0), allow_pickle=False)
        document = {"format": FORMAT, "format_version": FORMAT_VERSION, **content}
        archive.writestr(ZipInfo(_DOCUMENT), json.dumps(document, separators=(",", ":")))


VALUES = {
    "Kernel": "rankrls.kernels",
    "Measure": "rankrls.metrics",
    "ColumnUse": "rankrls.preprocessing",
    **dict.fromkeys(("Numbers", "Categories", "Texts", "Vocabulary"), "rankrls.preprocessing._table_encoder"),
    "PursuitPath": "rankrls.learners.paths",
    "CoPursuitPath": "rankrls.learners.paths",
    "ForwardPath": "rankrls.learners.greedy",
    "Terms": "rankrls.learners.pursuit",
    "Propensities": "rankrls.clicks",
    "Trees": "rankrls.learners.trees",
    "Equations": "rankrls.numerics.smoother",
    "UpdateState": "rankrls.models.incremental",
    "Basis": "rankrls.numerics.scorer",
}
"""Frozen dataclasses that a fitted estimator may contain, with their modules."""

_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "QuantileTransformer")
CLASSES = {
    **dict.fromkeys(rankrls.__all__, "rankrls"),
    **dict.fromkeys(("LogScaler", "QueryMinMaxScaler", "QueryStandardScaler", "TableEncoder"), "rankrls.preprocessing"),
    **dict.fromkeys(_SCALERS, "sklearn.preprocessing"),
    "Pipeline": "sklearn.pipeline",
    **dict.fromkeys(("TreeRanker", "BlendRanker"), "rankrls.models.auto_rankrls"),
    **VALUES,
}
"""Every class name that a file may contain, with its module."""

_SKIPPED = ("_metadata_request",)  # requests of set_fit_request; a loaded model has the default ones


def class_of(name: Any) -> type:
    """Class of a name; ValueError if the name is not listed."""
    found = getattr(import_module(CLASSES[name]), name) if isinstance(name, str) and name in CLASSES else None
    if not isinstance(found, type) or not (issubclass(found, BaseEstimator) or dataclasses.is_dataclass(found)):
        raise ValueError(f"it names {str(name)[:80]!r}, which is not among the classes of model files")
    return found


def is_listed(value: Any) -> bool:
    """Whether a file may contain an object: its class, exactly, is listed."""
    try:
        return class_of(type(value).__name__) is type(value)
    except ValueError:
        return False


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Whether a model file can contain arrays of a type: booleans, and numbers of up to 64 bits."""
    return dtype.kind in "biuf" and dtype.itemsize <= 8 and dtype.names is None


def encoded(value: Any, arrays: list[AnyArray], where: str = "", leave_out: tuple[str, ...] = ()) -> Any:
    """JSON of a value, whose arrays are collected; attributes in ``leave_out`` are not stored.

    Raises
    ------
    InputError
        If model files cannot contain the value.
    """

    def inside(parts: Any) -> list[Any]:
        return [encoded(part, arrays, f"{where}[{k}]", leave_out) for k, part in enumerate(parts)]

    def stored(array: AnyArray) -> dict[str, str]:
        if not is_storable(array.dtype):
            raise _refused(where, f"an array of {array.dtype}")
        arrays.append(array)
        return {"array": f"{len(arrays) - 1}.npy"}

    value = to_host(value) if on_device(value) else value
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind is list:
        return inside(value)
    if kind is tuple:
        return {"tuple": inside(value)}
    if kind is slice:
        return {"slice": inside((value.start, value.stop, value.step))}
    if kind is dict:
        return {"pairs": [inside(pair) for pair in value.items()]}
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "OU":
            return {"objects": inside(value.ravel().tolist()), "shape": list(value.shape)}
        return stored(np.asarray(value))
    if sparse.issparse(value):
        matrix = sparse.csr_array(value)
        return {"csr": [stored(part) for part in (matrix.data, matrix.indices, matrix.indptr)], "shape": matrix.shape}
    if not is_listed(value):
        name = getattr(value, "__qualname__", getattr(value, "__name__", None))
        raise _refused(where, f"a {kind.__name__}" if name is None else f"the {kind.__name__} {name!r}")
    if isinstance(value, BaseEstimator):
        names = [name for name in vars(value) if name not in (*_SKIPPED, *leave_out) and _is_free(kind, name)]
    else:
        names = [field.name for field in dataclasses.fields(value) if field.init]
    prefix = f"{where}." if where else ""
    state = {name: encoded(vars(value)[name], arrays, prefix + name, leave_out) for name in names}
    return {"object": kind.__name__, "state": state}


def decoded(node: Any, array: Callable[[Any], AnyArray]) -> Any:
    """Value of a node, given a function of array names; raises any exception if the node is invalid."""

    def inside(part: Any) -> Any:
        return decoded(part, array)

    if isinstance(node, list):
        return [inside(part) for part in node]
    if not isinstance(node, dict):
        return node
    match node:
        case {"tuple": list(parts)}:
            return tuple(map(inside, parts))
        case {"slice": [int() | None as start, int() | None as stop, int() | None as step]}:
            return slice(start, stop, step)
        case {"pairs": list(pairs)}:
            return dict(map(inside, pairs))
        case {"array": name}:
            return array(name)
        case {"objects": list(parts), "shape": list(shape)}:
            if max(shape, default=0) > len(parts):
                raise ValueError("an array of objects claims to be larger than it is")
            values = np.empty(len(parts), dtype=object)
            for k, part in enumerate(parts):
                values[k] = inside(part)
            return values.reshape(shape)
        case {"csr": list(parts), "shape": [int(rows), int(columns)]}:
            matrix = sparse.csr_array(tuple(map(inside, parts)), shape=(rows, columns))
            matrix.check_format(full_check=True)  # products do not check the indices
            if matrix.nnz < 0:  # which the check overlooks
                raise ValueError("a sparse array claims to have a negative number of entries")
            return matrix
        case {"object": name, "state": dict(state)}:
            return _restored(class_of(name), {key: inside(part) for key, part in state.items()})
    raise ValueError(f"it has a value of the unknown form {sorted(node)!r}"[:120])


def _restored(cls: type, state: Values) -> Any:
    """Object of a class, created from its parameters, with its other attributes restored."""
    if not issubclass(cls, BaseEstimator):
        if set(state) != {field.name for field in dataclasses.fields(cls) if field.init}:
            held = ", ".join(sorted(state))[:80]
            raise ValueError(f"this version reads no {cls.__name__} made of {held}: fit the model again")
        return cls(**state)
    known = inspect.signature(cls).parameters
    out = cls(**{name: part for name, part in state.items() if name in known})
    for attribute, part in state.items():
        if not _is_free(cls, attribute):
            raise ValueError(f"it sets {cls.__name__}.{attribute[:80]}, which is not an attribute of a fitted model")
        vars(out)[attribute] = part
    return out


def _is_free(cls: type, name: str) -> bool:
    """Whether an object may have an attribute of this name: not a method, property or special name of Python."""
    own = inspect.getattr_static(cls, name, None)
    return name.isidentifier() and not name.startswith("__") and not hasattr(own, "__get__")


def _refused(where: str, what: str) -> InputError:
    remedy = "Set it to a plain value before saving; a kernel may be a name, or kernel='precomputed'."
    if where.startswith("steps[") and where.endswith("]"):
        remedy = "Save such a pipeline with skops.io, whose files you trust yourself, or transform the data before."
    problem = f"The model cannot be saved: {where or 'it'} is {what}, and model files have no place for this type."
    return InputError(f"{problem} {remedy}", parameter=re.split(r"[.\[]", where)[0] or "model")
