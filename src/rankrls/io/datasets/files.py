"""The files of a data set: which ones they are, and whether they are still what they were."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

from rankrls._errors import InputError
from rankrls.io.tables.formats import table_format

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_END = 1 << 16
_TEXTS = (".txt", ".letor", ".svm", ".svmlight", ".libsvm", ".dat")
_REMEDY = "Open the data again, when nobody writes to them."


def _binary(path: str) -> BinaryIO:
    return open(path, "rb")


@dataclass(frozen=True)
class File:
    """What a file was when it was opened.

    Attributes
    ----------
    name : str
        The path as it was given, for errors.
    path : str
        Absolute.
    size, time : int
        Bytes, and when it was last changed, in nanoseconds.
    footer : str
        SHA-256 of a Parquet file's footer; of text, of its first and last 64 KiB.
    """

    name: str
    path: str
    size: int
    time: int
    footer: str

    @staticmethod
    def of(path: str) -> File:
        """Look at a file."""
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            footer = _footer(file, status.st_size)
            return File(path, os.path.abspath(path), status.st_size, status.st_mtime_ns, footer)

    @contextmanager
    def opened(self, opener: Callable[[str], Any] = _binary) -> Iterator[BinaryIO]:
        """The file, open to be read, if size and time are still the same."""
        with opener(self.path) as file:
            self.check_status(os.fstat(file.fileno()))
            yield file

    def check_status(self, status: os.stat_result) -> None:
        """Refuse a file that has changed in size or time."""
        if (status.st_size, status.st_mtime_ns) != (self.size, self.time):
            raise self.changed("the file has changed since it was opened.")

    def check(self) -> None:
        """Refuse a file that has changed in size, time or footer."""
        with self.opened() as file:
            if _footer(file, self.size) != self.footer:
                raise self.changed("the file has changed since it was opened.")

    def changed(self, problem: str, *values: Any) -> InputError:
        """An error about a file that is not what it was."""
        return InputError(problem, *values, remedy=_REMEDY, file=self.name)

    def describe(self) -> dict[str, Any]:
        """As plain values."""
        return {"path": self.path, "size": self.size, "mtime_ns": self.time, "footer_sha256": self.footer}


def refuse_packed(file: File, stream: BinaryIO) -> None:
    """Refuse text that is packed with gzip, whose bytes cannot be read from the middle on."""
    if stream.read(2) == b"\x1f\x8b":
        remedy = "Unpack it, or write shards: rankrls convert DATA FOLDER --rows-per-file N."
        raise InputError("packed text cannot be read a part at a time.", remedy=remedy, file=file.name)
    stream.seek(0)


def _footer(file: BinaryIO, size: int) -> str:
    digest = hashlib.sha256()
    file.seek(max(size - 8, 0))
    end = file.read(8)
    if end.endswith(b"PAR1"):
        length = int.from_bytes(end[:4], "little") + 8
        file.seek(max(size - length, 0))
        digest.update(file.read(length))
    else:
        for start in (0, max(size - _END, 0)):
            file.seek(start)
            digest.update(file.read(_END))
    file.seek(0)
    return digest.hexdigest()


def expanded_paths(paths: Paths) -> list[str]:
    """The files that paths, patterns and folders stand for.

    Files of a pattern or a folder are in the order of their names, numbers inside them by value. Of a folder those
    are taken whose ending says that they are data, hidden ones left out, and those of its partitions, which are folders
    called ``key=value``.

    Raises
    ------
    InputError
        Where there is no such file, or one is there twice.
    """
    given = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    out = [file for path in given for file in _expanded(path)]
    if not out:
        raise InputError("{path} is empty: there is no file to read.", parameter="path")
    known: dict[tuple[int, int], str] = {}
    for file in out:
        status = os.stat(file)
        key = (status.st_dev, status.st_ino)
        if key in known:
            remedy = "Every file is read once."
            raise InputError(
                "the file is there twice, as {0} too.", known[key], remedy=remedy, file=file, parameter="path"
            )
        known[key] = file
    return out


def _expanded(path: str) -> list[str]:
    if os.path.isdir(path):
        found = [*_inside(path)]
        if not found:
            problem = "the folder holds no file whose name ends in .parquet, .csv, .tsv or .txt."
            remedy = "Name the files, or a pattern of them such as '{0}'."
            pattern = os.path.join(path, "**", "*.parquet")
            raise InputError(problem, pattern, remedy=remedy, file=path, parameter="path")
        return found
    if not os.path.exists(path) and glob.has_magic(path):
        found = [file for file in _by_name(glob.glob(path, recursive=True)) if os.path.isfile(file)]
        if not found:
            raise InputError("no file is called like {0!r}.", path, parameter="path", file=path)
        return found
    return [path]


def _inside(folder: str) -> Iterator[str]:
    """Files of data in a folder, and behind them those of its partitions, ``key=value``."""
    names = [name for name in _by_name(os.listdir(folder)) if not name.startswith((".", "_"))]
    paths = [os.path.join(folder, name) for name in names]
    yield from (path for path in paths if os.path.isfile(path) and has_data_ending(path))
    for name, path in zip(names, paths, strict=True):
        if "=" in name and os.path.isdir(path):
            yield from _inside(path)


def has_data_ending(path: str) -> bool:
    """Whether a file's name says that it holds data."""
    return table_format(path) is not None or path.lower().removesuffix(".gz").endswith(_TEXTS)


def _by_name(names: Iterable[str]) -> list[str]:
    """Names in order, part-2 before part-10."""
    return sorted(names, key=lambda name: ([int(w) if w.isdigit() else w for w in re.split(r"([0-9]+)", name)], name))


def one_format(paths: Sequence[str]) -> str:
    """``"parquet"``, ``"csv"``, ``"arrow"`` or ``"letor"`` by the names of files, which have to agree."""
    first, *others = ((path, table_format(path) or "letor") for path in paths)
    for path, found in others:
        if found != first[1]:
            problem = "the file is {0}, but {1} is {2}: all files of a data set have one format."
            raise InputError(problem, found, *first, file=path)
    return first[1]
