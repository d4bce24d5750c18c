"""The outside of a model file: an uncompressed zip archive whose sizes are checked before anything is allocated.

==============  ======================================================================================
``model.json``  one JSON document: what the file is, where the model comes from, and the model
``0.npy``, ...  one array of numbers each, in numpy's own format
==============  ======================================================================================

The document holds a SHA-256 of itself and of the checksums of the arrays, which zip files hold already.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from rankrls import __version__
from rankrls._errors import InputError, MissingPackageError
from rankrls.io import atomic_write
from rankrls.io._atomic import is_written_in_place
from rankrls.persistence._nodes import is_storable

FORMAT = "rankrls model"
FORMAT_VERSION = 1
_DOCUMENT = "model.json"
_LONGEST_HEADER = 1024


class ModelArchive:
    """An open model file of ``size`` bytes: its document, and its arrays, each of which is read at most once.

    Raises
    ------
    ValueError
        If anything is not as :func:`write` writes it.
    """

    def __init__(self, archive: ZipFile, size: int) -> None:
        members = archive.infolist()
        names = [member.filename for member in members]
        if names[-1:] != [_DOCUMENT] or names[:-1] != [f"{k}.npy" for k in range(len(names) - 1)]:
            raise ValueError(f"it does not hold {_DOCUMENT} and arrays alone")
        if any(m.compress_type != ZIP_STORED or m.file_size != m.compress_size or m.flag_bits & 1 for m in members):
            raise ValueError("a member is compressed or encrypted")
        if sum(member.file_size for member in members) > size:
            raise ValueError("its members claim to be larger than the file")
        self._archive, self.size = archive, size
        self._unread = {member.filename: member for member in members[:-1]}
        self.document = _checked(json.loads(archive.read(_DOCUMENT)), members[:-1])

    def array(self, name: Any) -> NDArray[Any]:
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

    def check_all_read(self) -> None:
        """Refuse arrays that no part of the model names."""
        if self._unread:
            raise ValueError(f"no part of the model names the array {next(iter(self._unread))}")


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[ModelArchive]:
    """Open a model file. Whatever a damaged or hostile file brings about inside is an :class:`InputError`.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ImportError
        If it holds boosted trees, and LightGBM is not installed.
    """
    name = os.fspath(path)
    with open(name, "rb") as file:
        start, size = file.read(2), file.seek(0, os.SEEK_END)
        try:
            with ZipFile(file) as archive:
                yield ModelArchive(archive, size)
        except (MemoryError, MissingPackageError):
            raise
        except Exception as error:
            hint = " It looks like a pickle, which can run code when it is read." if start[:1] == b"\x80" else ""
            reason = ascii(f"{type(error).__name__}: {error}"[:200])[1:-1]
            raise InputError(
                f"not a model file that rankrls.save wrote, or a damaged one ({reason}).{hint}", file=name
            ) from error


def write(path: str | os.PathLike[str], content: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> None:
    """Write a document and the arrays that it names, all or nothing."""
    with atomic_write(path) as file:
        whole: Any = io.BytesIO() if is_written_in_place(path) else file  # a device or a pipe cannot go back
        archive = ZipFile(whole, "w", ZIP_STORED)
        try:
            for number, array in enumerate(arrays):
                with archive.open(ZipInfo(f"{number}.npy"), "w", force_zip64=True) as member:
                    npy.write_array(member, array, version=(1, 0), allow_pickle=False)
            document = {"format": FORMAT, "format_version": FORMAT_VERSION, **content}
            document["sha256"] = checksum(document, archive.infolist())
            archive.writestr(ZipInfo(_DOCUMENT), json.dumps(document, separators=(",", ":")))
        except BaseException:
            archive.fp = None  # an interruption may leave a member open, and closing the archive would then fail
            raise
        archive.close()
        if whole is not file:
            file.write(whole.getvalue())


def checksum(document: dict[str, Any], arrays: Sequence[ZipInfo]) -> str:
    """The SHA-256 of a document without its own, and of the names and checksums of the arrays."""
    content = [{k: v for k, v in document.items() if k != "sha256"}, [[m.filename, m.CRC] for m in arrays]]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _checked(document: Any, arrays: Sequence[ZipInfo]) -> dict[str, Any]:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{_DOCUMENT} does not describe a rankrls model")
    if document.get("format_version") != FORMAT_VERSION:
        known = f"rankrls {__version__} reads version {FORMAT_VERSION}"
        raise ValueError(f"format version {document.get('format_version')!r}, and {known}: update rankrls")
    if document.get("sha256") != checksum(document, arrays):
        raise ValueError("its checksum is wrong: something was changed after it had been saved")
    return document
