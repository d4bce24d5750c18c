"""The files of a data set."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence

from rankrls._errors import InputError
from rankrls.io.tables.opened import table_format

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_TEXTS = (".txt", ".letor", ".svm", ".svmlight", ".libsvm", ".dat")


def expanded_paths(paths: Paths) -> list[str]:
    """The files that paths, patterns and folders stand for.

    Files of a pattern or a folder are in the order of their names, numbers inside them by value. Of a folder those
    are taken whose ending says that they are data, hidden ones left out, and those of its partitions, which are folders
    called ``key=value``.

    Raises
    ------
    InputError
        Where there is no such file.
    """
    given = [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    found = {path: data_files(path) for path in given}
    missing = next((path for path, files in found.items() if not files), None if found else "path")
    if missing is not None:
        message = (
            "there is no file of data (.parquet, .csv, .tsv, .txt). Name the files, a folder, or a pattern of them."
        )
        raise InputError(message, file=missing, parameter="path")
    return [file for files in found.values() for file in files]


def data_files(path: str) -> list[str]:
    """The files that a folder or a pattern stands for, possibly none; any other path is itself."""
    if os.path.isdir(path):
        return [*_inside(path)]
    if not os.path.exists(path) and glob.has_magic(path):
        return [file for file in _by_name(glob.glob(path, recursive=True)) if os.path.isfile(file)]
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
