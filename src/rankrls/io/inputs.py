"""The files that a command reads, however they are named, so that none of them is overwritten."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rankrls._errors import InputError
from rankrls.io._atomic import is_written_in_place
from rankrls.io.datasets.files import data_files, has_data_ending
from rankrls.io.sizes import beside

PathLike = str | os.PathLike[str]


def check_targets(targets: Iterable[PathLike | None], inputs: Iterable[PathLike | None]) -> None:
    """Refuse, before any work is done, a file that could not be written, or that is an input.

    Inputs are files, folders, patterns of files, and the sizes of queries that are read from ``DATA.query`` or
    ``DATA.group`` without being named. A new file that would become a member of a folder or pattern that is read is
    refused as well.

    Parameters
    ----------
    targets : iterable of path or None
        Files to write; "-" is standard output.
    inputs : iterable of path or None
        What the command reads, as it was named.

    Raises
    ------
    InputError
        If a target is an input, or would become part of one.
    OSError
        If a target is a folder, or its folder does not exist or cannot be written.
    """
    given = [os.fspath(path) for path in inputs if path is not None and str(path) != "-"]
    for target in [os.fspath(path) for path in targets if path is not None]:
        if target == "-" or is_written_in_place(target):
            continue
        for name in given:
            if _is_read(target, name):
                problem = f"{target} is read by this command, as part of {name}, and would be overwritten"
                if not os.path.exists(target):
                    problem = f"{target} would be read as part of {name} from then on"
                elif _same(target, name):
                    problem = f"{target} is read by this command and would be overwritten"
                raise InputError(f"{problem}: name another file to write.", file=target)
        folder = os.path.dirname(os.path.realpath(target))
        if os.path.isdir(target):
            raise IsADirectoryError(21, "Is a directory, where a file should be written", target)
        if not os.path.isdir(folder):
            raise FileNotFoundError(2, f"There is no folder {folder!r} to write to", target)
        if not os.access(folder, os.W_OK):
            raise PermissionError(13, f"The folder {folder!r} may not be written", target)


def _is_read(target: str, name: str) -> bool:
    """Whether a file is an input, or becomes one when it is written."""
    if any(_same(target, file) for file in _files_of(name)):
        return True
    real = os.path.realpath(target)
    if os.path.isdir(name):
        above = Path(os.path.realpath(name))
        inside = above in Path(real).parents and all("=" in part for part in Path(real).relative_to(above).parts[:-1])
        return inside and has_data_ending(real) and not os.path.basename(real).startswith((".", "_"))
    pattern = os.path.realpath(name)
    here = any(fnmatch.fnmatchcase(real, p) for p in (pattern, pattern.replace("**" + os.sep, "")))
    return here and not os.path.exists(name)


def _files_of(name: str) -> Iterator[str]:
    """The files that a name stands for, and those that are read beside them."""
    for file in data_files(name):
        yield file
        yield from beside(file)


def _same(one: str, other: str) -> bool:
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)
