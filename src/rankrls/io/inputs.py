"""The files that a command reads, however they are named, so that none of them is overwritten."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable
from pathlib import Path

from rankrls._errors import InputError
from rankrls.io._atomic import is_written_in_place
from rankrls.io.datasets.files import data_files, has_data_ending
from rankrls.io.sizes import beside

PathLike = str | os.PathLike[str]


def check_targets(targets: Iterable[PathLike | None], inputs: Iterable[PathLike | None]) -> None:
    """Refuse, before any work is done, a file that could not be written, or that is an input.

    Inputs are files, folders, patterns of files, and what is read from ``DATA.query``, ``DATA.group`` or
    ``DATA.position`` without being named. A new file that would become a member of a folder or pattern that is read is
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
            if _is_member(target, name):
                message = f"{target} would be overwritten, or read as part of {name} from then on: name another file."
                raise InputError(message, file=target)
        folder = os.path.dirname(os.path.realpath(target))
        if os.path.isdir(target):
            raise IsADirectoryError(21, "Is a directory, where a file should be written", target)
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise FileNotFoundError(2, f"There is no folder {folder!r} to write to", target)


def _is_member(target: str, name: str) -> bool:
    """Whether a file is an input, or becomes one when it is written."""
    real = os.path.realpath(target)
    for file in data_files(name):
        for each in (file, *beside(file)):
            if os.path.realpath(each) == real or (
                os.path.exists(each) and os.path.exists(real) and os.path.samefile(each, real)
            ):
                return True
    above = os.path.realpath(name)
    if os.path.isdir(above):
        inside = Path(above) in Path(real).parents and all(
            "=" in each for each in Path(real).relative_to(above).parts[:-1]
        )
        return inside and has_data_ending(real) and not os.path.basename(real).startswith((".", "_"))
    return not os.path.exists(above) and any(fnmatch.fnmatchcase(real, p) for p in (above, above.replace("**/", "")))
