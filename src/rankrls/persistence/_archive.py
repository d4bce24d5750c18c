"""The outside of a model file: a zip archive of uncompressed members, every size accounted for.

================  =================================================================
``rankrls.json``  what the file is, its format version, where the model comes from
``schema.json``   skops' description of the objects
``*.npy``         one array each, in numpy's own format
================  =================================================================

Nothing is compressed, so a file cannot claim more than it holds: a member's size, and an array's shape, are checked
against the bytes that are there before anything is allocated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from rankrls import __version__

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "HEADER",
    "ModelFileError",
    "check_arrays",
    "opened",
    "read_header",
    "read_schema",
]

FORMAT = "rankrls model"
FORMAT_VERSION = 1
HEADER = "rankrls.json"
_SCHEMA = "schema.json"
_ARRAY_NAME = re.compile(r"[\w-]+\.npy")
_ARRAY_KINDS = "biufU"


class ModelFileError(ValueError):
    """A file is not a model that this version of rankrls can trust and read. Names the file and what is wrong."""


@contextmanager
def opened(path: str) -> Iterator[tuple[BinaryIO, ZipFile]]:
    """Open a model file and check its members. What goes wrong inside is a :class:`ModelFileError`.

    Raises
    ------
    OSError
        Where the file cannot be opened.
    """
    with open(path, "rb") as file:
        try:
            start = file.read(2)
            size = file.seek(0, 2)
            file.seek(0)
            if size == 0:
                raise ModelFileError("the file is empty.")
            with ZipFile(file) as archive:
                _check_members(archive, size)
                yield file, archive
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from error.__cause__
        except MemoryError:
            raise
        except BadZipFile as error:
            raise ModelFileError(f"{path}: {_no_archive(start, str(error))}") from error
        except Exception as error:  # whatever a damaged or hostile file brings about in zipfile, json, numpy or skops
            reason = f"{type(error).__name__}: {error}".split("\n")[0]
            raise ModelFileError(f"{path}: the model file is damaged ({reason}).") from error


def _no_archive(start: bytes, reason: str) -> str:
    if start[:1] == b"\x80":
        return "looks like a pickle, which can run code when it is read; rankrls reads only what rankrls.save wrote."
    if start == b"PK":
        return f"the model file is truncated or damaged ({reason})."
    return "not a model file: rankrls reads what rankrls.save wrote."


def _check_members(archive: ZipFile, size: int) -> None:
    members = archive.infolist()
    names = [m.filename for m in members]
    for name in names:
        if name not in (HEADER, _SCHEMA) and not _ARRAY_NAME.fullmatch(name):
            raise ModelFileError(f"holds {name[:80]!r}, which no rankrls model has.")
    if len(set(names)) != len(names):
        raise ModelFileError("holds two members of the same name.")
    total = 0
    for member in members:
        if member.compress_type != ZIP_STORED or member.file_size != member.compress_size or member.flag_bits & 1:
            raise ModelFileError(f"member {member.filename!r} is compressed or encrypted, which no rankrls model is.")
        total += member.file_size
    if total > size:
        raise ModelFileError(f"claims to hold {total} bytes, but the file has only {size}.")
    for required in (HEADER, _SCHEMA):
        if required not in names:
            raise ModelFileError(f"a zip archive without {required!r}: not written by rankrls.save.")


def read_header(archive: ZipFile) -> dict[str, Any]:
    """The file's header; a format version that this version cannot read is an error."""
    header = json.loads(archive.read(HEADER))
    if not isinstance(header, dict) or header.get("format") != FORMAT or not isinstance(header.get("info"), dict):
        raise ModelFileError(f"{HEADER} does not describe a rankrls model.")
    version = header.get("format_version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise ModelFileError(f"has the format version {version!r}, which does not exist.")
    if version > FORMAT_VERSION:
        raise ModelFileError(
            f"has format version {version}; rankrls {__version__} reads versions up to {FORMAT_VERSION}. "
            "Update rankrls to load it."
        )
    return header


def read_schema(archive: ZipFile) -> Any:
    """Skops' description of the objects, as it stands in the file."""
    return json.loads(archive.read(_SCHEMA))


def check_arrays(archive: ZipFile) -> None:
    """Every array is plain numbers or text, and exactly as long as its header says."""
    for member in archive.infolist():
        if member.filename.endswith(".npy"):
            _check_array(archive, member)


def _check_array(archive: ZipFile, member: ZipInfo) -> None:
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(stream)
        else:
            raise ModelFileError(f"array {member.filename!r} has the unknown version {version}.")
        if dtype.kind not in _ARRAY_KINDS or dtype.fields is not None or dtype.subdtype is not None:
            raise ModelFileError(f"array {member.filename!r} holds {dtype}, not numbers or text.")
        claimed = prod(shape) * dtype.itemsize
        there = member.file_size - stream.tell()
        if any(length < 0 for length in shape) or claimed != there:
            raise ModelFileError(f"array {member.filename!r} claims the shape {shape}, but holds {there} bytes.")
