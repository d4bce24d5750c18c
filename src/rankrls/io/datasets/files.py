"""The files of a data set: which ones they are, and whether they are still what they were."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from rankrls._errors import InputError
from rankrls.io.tables.opened import table_format

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_TEXTS = (".txt", ".letor", ".svm", ".svmlight", ".libsvm", ".dat")


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
    """

    name: str
    path: str
    size: int
    time: int

    @staticmethod
    def of(path: str) -> File:
        """Look at a file."""
        status = os.stat(path)
        return File(path, os.path.abspath(path), status.st_size, status.st_mtime_ns)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file, open to be read, if size and time are still the same."""
        with open(self.path, "rb") as file:
            status = os.fstat(file.fileno())
            if (status.st_size, status.st_mtime_ns) != (self.size, self.time):
                raise self.changed()
            yield file

    def changed(self) -> InputError:
        """An error about a file that is not what it was."""
        message = "the file has changed since it was opened. Open the data again, when nobody writes to them."
        return InputError(message, file=self.name)


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
        raise InputError("path is empty: there is no file to read.", parameter="path")
    known: dict[tuple[int, int], str] = {}
    for file in out:
        status = os.stat(file)
        key = (status.st_dev, status.st_ino)
        if key in known:
            message = f"the file is there twice, as {known[key]} too. Every file is read once."
            raise InputError(message, file=file, parameter="path")
        known[key] = file
    return out


def data_files(path: str) -> list[str]:
    """The files that a folder or a pattern stands for, possibly none; any other path is itself."""
    if os.path.isdir(path):
        return [*_inside(path)]
    if not os.path.exists(path) and glob.has_magic(path):
        return [file for file in _by_name(glob.glob(path, recursive=True)) if os.path.isfile(file)]
    return [path]


def _expanded(path: str) -> list[str]:
    found = data_files(path)
    if not found:
        message = "the folder holds no file whose name ends in .parquet, .csv, .tsv or .txt"
        message = message if os.path.isdir(path) else f"no file is called like {path!r}"
        raise InputError(f"{message}. Name the files, or a pattern of them.", file=path, parameter="path")
    return found


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
            message = f"the file is {found}, but {first[0]} is {first[1]}: all files of a data set have one format."
            raise InputError(message, file=path)
    return first[1]
