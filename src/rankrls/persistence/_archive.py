"""The outside of a model file: a zip archive of uncompressed members, every size accounted for.

==============  ======================================================================================
``model.json``  what the file is, its format version, where the model comes from, and the model's tree
``0.npy``, ...  one array each, in numpy's own format
==============  ======================================================================================

Nothing is compressed, so a file cannot claim more than it holds: a member's size, and an array's shape, are checked
against the bytes that are there before anything is allocated.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from rankrls import __version__
from rankrls._errors import InputError
from rankrls.io import atomic_write

FORMAT = "rankrls model"
FORMAT_VERSION = 1
_DOCUMENT = "model.json"
_DEVELOPMENT = "schema.json"
_ARRAY_NAME = re.compile(r"\d{1,9}\.npy")
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '([<>|](?:b1|[iu][1248]|f[248]|U[1-9]\d{0,8}))', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)
_LONGEST_HEADER = 2048
_LAST_CODE_POINT = 0x10FFFF
_CHUNK = 1 << 20
_ZIP64_FROM = 1 << 30


class ModelFileError(InputError):
    """A file is not a model that this version of rankrls can trust and read. Names the file and what is wrong.

    ``parameter`` is the attribute of the model whose value is wrong, where it is one.
    """


class ModelArchive:
    """An open model file: its document, and its arrays, each of which is read at most once.

    Attributes
    ----------
    document : dict
        The file's JSON, of a format version that this version of rankrls reads.
    """

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._unread = {member.filename: member for member in archive.infolist() if member.filename != _DOCUMENT}
        self.document = _document(archive.read(_DOCUMENT))

    def array(self, name: Any) -> NDArray[Any]:
        """The array of a member, which no other part of the model may name again."""
        member = self._unread.pop(name, None)
        if member is None:
            raise ModelFileError("names the array {0!r}, which is not in the file or is named twice.", str(name)[:80])
        with self._archive.open(member) as stream:
            return _read_array(stream, member)

    def check_all_read(self) -> None:
        """Every member belongs to the model."""
        for name in self._unread:
            raise ModelFileError("holds the array {0!r}, which no part of the model names.", name)


@contextmanager
def opened(path: str) -> Iterator[ModelArchive]:
    """Open a model file and check its members. What goes wrong inside is a :class:`ModelFileError`.

    Raises
    ------
    OSError
        Where the file cannot be opened.
    """
    with open(path, "rb") as file:
        start = file.read(2)
        size = file.seek(0, 2)
        file.seek(0)
        try:
            if size == 0:
                raise ModelFileError("the file is empty.")
            with ZipFile(file) as archive:
                _check_members(archive, size)
                yield ModelArchive(archive)
        except ModelFileError as error:
            raise error.located(file=path) from error.__cause__
        except MemoryError:
            raise
        except BadZipFile as error:
            raise _no_archive(start, _first_line(error)).located(file=path) from error
        except Exception as error:  # whatever a damaged or hostile file brings about in zipfile, json or numpy
            reason = f"{type(error).__name__}: {_first_line(error)}"
            raise ModelFileError("the model file is damaged ({0}).", reason, file=path) from error


def read_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says about its model, without loading the model.

    Parameters
    ----------
    path : path

    Returns
    -------
    dict
        ``format_version``, ``created`` (UTC), ``versions``, ``estimator``, ``steps`` before it, ``parameters``,
        ``alpha``, ``kernel``, ``n_queries``, ``n_features``, ``feature_names``, ``n_targets``, ``n_training_items``
        (kernel models), ``selection`` (how it was chosen, the measure, its value and standard error; None where
        nothing was chosen), ``given`` (what the caller of ``save`` added) and ``updatable``.

    Raises
    ------
    ModelFileError, OSError
        As :func:`load`.
    """
    with opened(os.fspath(path)) as archive:
        document = archive.document
    return {"format_version": document["format_version"], **document["info"]}


def is_storable(dtype: np.dtype[Any]) -> bool:
    """Whether a model file can hold arrays of a type: booleans, integers, floats up to 64 bits, and text."""
    return dtype.kind in "biuU" or (dtype.kind == "f" and dtype.itemsize <= 8)


def write(path: str | os.PathLike[str], info: dict[str, Any], model: Any, arrays: Sequence[NDArray[Any]]) -> None:
    """Write a model's description, its tree and the arrays that the tree names, all or nothing."""
    document = {"format": FORMAT, "format_version": FORMAT_VERSION, "info": info, "model": model}
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    with atomic_write(path) as file:
        archive = ZipFile(file, "w", ZIP_STORED)
        try:
            archive.writestr(ZipInfo(_DOCUMENT), text)
            for number, array in enumerate(arrays):
                large = array.nbytes >= _ZIP64_FROM
                with archive.open(ZipInfo(f"{number}.npy"), "w", force_zip64=large) as member:
                    np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
        except BaseException:
            archive.fp = None  # an interruption may leave a member open, and closing the archive would then fail
            raise
        archive.close()


def _first_line(error: Exception) -> str:
    return f"{error}\n".splitlines()[0][:200]  # it may repeat what the file says


def _no_archive(start: bytes, reason: str) -> ModelFileError:
    if start[:1] == b"\x80":
        return ModelFileError(
            "looks like a pickle, which can run code when it is read; rankrls reads only what rankrls.save wrote."
        )
    if start == b"PK":
        return ModelFileError("the model file is truncated or damaged ({0}).", reason)
    return ModelFileError("not a model file: rankrls reads what rankrls.save wrote.")


def _check_members(archive: ZipFile, size: int) -> None:
    members = archive.infolist()
    names = [m.filename for m in members]
    if _DEVELOPMENT in names:
        raise ModelFileError(
            "was written in the format of a development version of rankrls, or by skops.",
            remedy="Fit the model again and save it.",
        )
    for name in names:
        if name != _DOCUMENT and not _ARRAY_NAME.fullmatch(name):
            raise ModelFileError("holds {0!r}, which no rankrls model has.", name[:80])
    if len(set(names)) != len(names):
        raise ModelFileError("holds two members of the same name.")
    total = 0
    for member in members:
        if member.compress_type != ZIP_STORED or member.file_size != member.compress_size or member.flag_bits & 1:
            raise ModelFileError("member {0!r} is compressed or encrypted, which no rankrls model is.", member.filename)
        total += member.file_size
    if total > size:
        raise ModelFileError("claims to hold {0} bytes, but the file has only {1}.", total, size)
    if _DOCUMENT not in names:
        raise ModelFileError("a zip archive without {0!r}: not written by rankrls.save.", _DOCUMENT)


def _document(text: bytes) -> dict[str, Any]:
    document = json.loads(text.decode(), object_pairs_hook=_distinct, parse_constant=_no_constant)
    if not isinstance(document, dict) or document.get("format") != FORMAT or not isinstance(document.get("info"), dict):
        raise ModelFileError("{0} does not describe a rankrls model.", _DOCUMENT)
    version = document.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ModelFileError("has the format version {0!r}, which does not exist.", version)
    if version > FORMAT_VERSION:
        raise ModelFileError(
            "has format version {0}; rankrls {1} reads versions up to {2}.",
            version,
            __version__,
            FORMAT_VERSION,
            remedy="Update rankrls to load it.",
        )
    return document


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ModelFileError("{0} gives a name twice.", _DOCUMENT)
    return out


def _no_constant(token: str) -> Any:
    raise ModelFileError("{0} has {1}, which is not a JSON number.", _DOCUMENT, token)


def _read_array(stream: Any, member: ZipInfo) -> NDArray[Any]:
    """An array of plain numbers or text, exactly as long as its header says."""
    start = stream.read(len(_MAGIC) + 2)
    length = int.from_bytes(start[len(_MAGIC) :], "little")
    found = _HEADER.fullmatch(stream.read(length)) if start.startswith(_MAGIC) and length <= _LONGEST_HEADER else None
    if found is None:
        raise ModelFileError("array {0!r} has no header of an array of numbers or text.", member.filename)
    dtype = np.dtype(found[1].decode())
    shape = tuple(int(size) for size in found[3].replace(b" ", b"").split(b",") if size)
    there = member.file_size - len(start) - length
    if prod(shape) * dtype.itemsize != there:
        raise ModelFileError("array {0!r} claims the shape {1}, but holds {2} bytes.", member.filename, shape, there)
    flat = np.empty(prod(shape), dtype=dtype)
    left = flat.view(np.uint8).data
    while left:
        n = stream.readinto(left[:_CHUNK])
        if not n:
            raise ModelFileError("array {0!r} is cut short.", member.filename)
        left = left[n:]
    stream.read()  # the end of the member, where its checksum is compared
    _check_content(flat, member)
    return flat.reshape(shape, order="F" if found[2] == b"True" else "C")


def _check_content(flat: NDArray[Any], member: ZipInfo) -> None:
    """Bytes that are no boolean and numbers that are no character are read by numpy without a look."""
    if flat.dtype.kind == "b":
        bad = flat.view(np.uint8) > 1
    elif flat.dtype.kind == "U":
        bad = flat.view(np.dtype("u4").newbyteorder(flat.dtype.byteorder)) > _LAST_CODE_POINT
    else:
        return
    if bad.any():
        raise ModelFileError("array {0!r} holds what is neither a boolean nor text.", member.filename)
