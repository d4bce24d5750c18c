"""Files that inputs refer to, none of which is overwritten; and atomic writing of files and folders."""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np

from rankrls._cells import cell_number
from rankrls._errors import InputError
from rankrls._queries import group_to_qid
from rankrls._typing import Array, Index, PathLike
from rankrls.io._text import few, quoted
from rankrls.io.formats import is_data

Paths = PathLike | Sequence[PathLike]
_SIZES = (".query", ".group")
"""Endings of files with the number of rows of each query, as used by LightGBM and XGBoost."""
POSITIONS = (".position",)
"""Ending of files with the position of each row, whose labels are then clicks."""
_LONGEST_NAME = 50  # names are limited to 255 bytes, and a letter has up to four


def path_list(paths: Paths) -> list[str]:
    """One or several paths as text."""
    return [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]


def expanded_paths(paths: Paths) -> list[str]:
    """Files that paths, patterns and folders refer to.

    Files of a pattern or a folder are in the order of their names, with numbers inside them by value. Folders are
    searched recursively for files with an ending of data, except hidden ones.

    Raises
    ------
    InputError
        If there is no such file.
    """
    found = {path: data_files(path) for path in path_list(paths)}
    missing = next((path for path, files in found.items() if not files), None if found else "path")
    if missing is not None:
        message = "there is no file of data (.parquet, .csv, .tsv, .jsonl, .txt)."
        message += " Name the files, a folder, or a pattern of them."
        raise InputError(message, file=missing, parameter="path")
    return [file for files in found.values() for file in files]


def data_files(path: str) -> list[str]:
    """Files that a folder or a pattern refers to, possibly none; any other path is returned unchanged."""
    if os.path.isdir(path):
        found = glob.glob(os.path.join(glob.escape(path), "**"), recursive=True)
        different: dict[str, str] = {}  # links may lead back to a folder above
        for file in _by_name(found):
            if _is_data(file, path):
                different.setdefault(os.path.realpath(file), file)
        return [*different.values()]
    if not os.path.exists(path) and glob.has_magic(path):
        return [file for file in _by_name(glob.glob(path, recursive=True)) if os.path.isfile(file)]
    return [path]


def _is_data(file: str, folder: str) -> bool:
    """Whether a path below a folder is a file of data and not hidden, unlike companion files of engines (_SUCCESS)."""
    inside = os.path.relpath(file, folder).split(os.sep)
    return is_data(file) and not os.path.isdir(file) and not any(name.startswith((".", "_")) for name in inside)


def _by_name(names: Iterable[str]) -> list[str]:
    """Names in order, with part-2 before part-10."""
    return sorted(names, key=lambda name: (re.sub("[0-9]+", lambda digits: digits[0].zfill(20), name), name))


def ids_of_sizes(
    path: Path, given: Path | None, rows: int, has_ids: bool, note: Callable[[str], object]
) -> tuple[Index, str] | None:
    """Query ids of rows without them, by query sizes from the given file or a companion file.

    Parameters
    ----------
    path : path
        File of the rows.
    given : path or None
        File of the sizes; by default the file with the name of the rows followed by ``.query`` or ``.group``, if it
        exists.
    rows : int
        Number of rows.
    has_ids : bool
        Whether the rows have query ids, which take precedence.
    note : callable
        Function that is called with the name of the file if it was not given.

    Returns
    -------
    tuple or None
        Query ids from 0, and the ending of the file's name.

    Raises
    ------
    InputError
        If the sizes are for another number of rows, or are given for rows with query ids.
    """
    if has_ids and given is not None:
        raise InputError("the rows have query ids already.", parameter="group", file=str(path))
    found = given or companion_file(path, _SIZES)
    if found is None or has_ids:
        return None
    sizes = number_lines(found, "size of one query", "group", whole=True)
    if sizes.sum() != rows:
        raise InputError(
            f"the sizes add up to {sizes.sum():.0f}, but {path} has {rows} rows.", file=str(found), parameter="group"
        )
    if given is None:
        note(f"the query sizes of {path} are read from {found}.")
    return group_to_qid(sizes), found.suffix if found.suffix in _SIZES else _SIZES[0]


def positions_beside(path: Path, rows: int, note: Callable[[str], object]) -> Array | None:
    """Position of each row, from the file with the name of the rows followed by ``.position``."""
    found = companion_file(path, POSITIONS)
    if found is None:
        return None
    positions = number_lines(found, "position of one row", "position", whole=True)
    if len(positions) != rows:
        raise InputError(
            f"there are {len(positions)} positions, but {path} has {rows} rows.", file=str(found), parameter="position"
        )
    note(f"the labels of {path} are clicks, at the positions of {found}.")
    return positions


def companion_paths(path: str, ends: tuple[str, ...] = _SIZES + POSITIONS) -> list[str]:
    """Paths of possible companion files of a file of rows."""
    stems = [] if path == "-" else dict.fromkeys((path, path.removesuffix(".gz")))
    return [f"{stem}{end}" for stem in stems for end in ends]


def companion_file(path: Path, ends: tuple[str, ...]) -> Path | None:
    """The first companion file of a file of rows that exists."""
    return next((file for file in map(Path, companion_paths(str(path), ends)) if file.is_file()), None)


def number_lines(file: Path, each: str, parameter: str | None = None, *, whole: bool = False) -> Array:
    """Numbers in a file with one per line; "-" is standard input.

    Parameters
    ----------
    file : path
    each : str
        Meaning of a number, for errors.
    parameter : str, optional
        Wrong parameter, for errors.
    whole : bool, default=False
        Whether the numbers must be whole.

    Raises
    ------
    InputError
        For the first line that is not a finite number, or not a whole one.
    """
    raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    words = raw.decode("utf-8-sig", errors="replace").rstrip().split("\n")
    values = np.array([*map(cell_number, words)])
    good = np.isfinite(values)
    if whole:
        good &= (values >= 0.0) & (values == np.floor(values))
    if not good.all():
        line = int(np.argmin(good))
        kind = "whole number" if whole else "finite number"
        message = f"{quoted(words[line].strip())} is not a {kind}; the file needs the {each} per line."
        raise InputError(message, file=str(file), line=line + 1, parameter=parameter)
    return values


def read_names(path: Path) -> list[str]:
    """Names of features in a file with one per line."""
    try:
        return [line.strip() for line in path.read_text("utf-8-sig").strip().splitlines()]
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text. It needs one feature name per line.", file=str(path)) from None


def check_targets(targets: Iterable[PathLike | None], inputs: Iterable[PathLike | None]) -> None:
    """Refuse a file that could not be written, or that is an input, before any work is done.

    Inputs are files, folders, patterns of files, and files that are read from ``DATA.query``, ``DATA.group`` or
    ``DATA.position`` without being named. A new file that would become a member of an input folder or pattern is also
    refused.

    Parameters
    ----------
    targets : iterable of path or None
        Files to write; "-" is standard output.
    inputs : iterable of path or None
        Inputs of the command, as named by the user.

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
                raise InputError(f"it would be overwritten, or become part of {name}. Name another file.", file=target)
        folder = os.path.dirname(os.path.realpath(target))
        if os.path.isdir(target):
            raise IsADirectoryError(21, "Is a directory, but a file is to be written here", target)
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise FileNotFoundError(2, f"There is no folder {folder!r} to write to", target)


def _is_member(target: str, name: str) -> bool:
    """Whether a file is an input, or would become one when written; or a folder contains inputs."""
    real = os.path.realpath(target)
    above = os.path.realpath(name)
    read = {Path(os.path.realpath(each)) for file in data_files(name) for each in (file, *companion_paths(file))}
    replaced = any(Path(real) in (file, *file.parents) for file in read)
    inside = Path(above) in Path(real).parents and _is_data(real, above)
    return replaced or inside or fnmatch.fnmatchcase(real, above.replace("**/", ""))


@contextlib.contextmanager
def atomic_write(path: PathLike, mode: Literal["wb", "w"] = "wb") -> Iterator[IO[Any]]:
    """Open a file that gets its name only when everything has been written.

    The content is written to a temporary file ``.NAME.tmp*`` in the target's directory. At the end of the block, it is
    flushed to the disk and renamed. If the block raises, or the disk is full, the temporary file is removed and the
    target keeps its old content. If the process is killed, the temporary file remains.

    Devices, pipes and standard output (``/dev/null``, ``/dev/stdout``) are not replaced: they are written to
    immediately.

    Parameters
    ----------
    path : path
        A file, existing or not; a symbolic link is followed and remains a link. A new file gets the permissions that
        ``open`` would give it, and a replaced one keeps its permissions.
    mode : {"wb", "w"}, default="wb"
        Bytes, or text in UTF-8.

    Yields
    ------
    file object
        File opened for writing.

    Raises
    ------
    OSError
        If the directory does not exist or is not writable, the target is a directory, or the disk is full. The error
        names the target.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankrls.io import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(os.path.join(folder, "scores.txt"), "w") as file:
    ...         _ = file.write("0.5")
    ...     os.listdir(folder)
    ['scores.txt']
    """
    encoding = "utf-8" if mode == "w" else None
    name = os.fspath(path)
    if is_written_in_place(name):
        # opening it again would empty the file that a shell has opened for standard output
        target: Any = os.dup(1) if _is_standard_output(name) else name
        with _naming(name), open(target, mode, encoding=encoding) as file:
            yield file
        return
    target = os.path.realpath(name)
    with _temporary(target) as temporary:
        with open(temporary, mode, encoding=encoding) as file:
            if os.path.exists(target):  # the copy of a private file is private before it has content
                os.chmod(temporary, os.stat(target).st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)


def check_outside(inputs: Iterable[PathLike], folder: PathLike) -> None:
    """Refuse to replace a folder from which files are read, and a new one whose files would be read with an input."""
    for name in path_list([*inputs]):
        if _is_member(os.fspath(folder), name) or _is_member(os.path.join(folder, "part.parquet"), name):
            message = f"its files would replace files of {name}, or become part of it. Name another folder."
            raise InputError(message, file=str(folder), parameter="folder")


@contextlib.contextmanager
def new_folder(folder: Path, ours: re.Pattern[str], *, force: bool) -> Iterator[Path]:
    """Create a folder for files that gets its name when all of them have been written.

    Parameters
    ----------
    folder : path
        Path of the folder, which is created if it does not exist.
    ours : pattern
        Pattern of the paths below the folder that may be replaced.
    force : bool
        Whether a folder that contains such files, and no others, is replaced.

    Raises
    ------
    InputError
        If a folder is not empty and may not be replaced, or is a mounted volume; nothing is then written.
    OSError
        If the files cannot be written.

    Notes
    -----
    When the new folder is complete, the old one is renamed to ``.NAME.rankrls-old``, the new one gets its name, and the
    old one is removed. If the process is killed between the two renames, the next call renames the old one back.
    """
    place = Path(os.path.realpath(folder))
    aside = place.parent / f".{place.name}.rankrls-old"
    _restore_or_remove(aside, place)
    if place.exists() and not place.is_dir():
        raise NotADirectoryError(20, "Is not a folder, but files are to be written into it", str(folder))
    held = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if not path.is_dir())
    if held and not force:
        message = f"the folder is not empty ({few(held, 3)}). Name another one, or replace its files (force)."
        raise InputError(message, file=str(folder), parameter="force")
    others = [name for name in held if not ours.fullmatch(name)]
    refused = f"it also contains {few(others, 3)}" if others else None
    if place == Path.cwd():
        refused = "it is the current one"
    if os.path.ismount(place):
        refused = "a volume is mounted there"
    if refused is not None:
        message = f"the folder cannot be replaced: {refused}. Name another one, or one inside it."
        raise InputError(message, file=str(folder), parameter="force")
    os.makedirs(place.parent, exist_ok=True)
    with _temporary(str(place)) as new:
        os.mkdir(new)
        yield Path(new)
        for path in Path(new).rglob("*"):
            if path.is_file():
                with open(path, "rb+") as file:
                    os.fsync(file.fileno())
        try:
            if place.exists():
                os.chmod(new, place.stat().st_mode & 0o777)
                os.rename(place, aside)
            os.rename(new, place)
        finally:
            _restore_or_remove(aside, place)


def _restore_or_remove(aside: Path, place: Path) -> None:
    """Rename a folder back that was set aside, if any; remove it if another one has its name."""
    if aside.exists() and not place.exists():
        os.rename(aside, place)
    shutil.rmtree(aside, ignore_errors=True)


def is_written_in_place(path: PathLike) -> bool:
    """Whether a path is written in place and never replaced: a device, a pipe, standard output."""
    with contextlib.suppress(OSError):
        kind = os.stat(path).st_mode
        return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) or _is_standard_output(path)
    return False


def _is_standard_output(path: PathLike) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(1))
    return False


@contextlib.contextmanager
def _temporary(target: str) -> Iterator[str]:
    """Path next to a target, of a file or folder to be renamed to it; what is there is removed if that fails."""
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:_LONGEST_NAME]}.tmp{os.urandom(6).hex()}")
    with _naming(target, temporary):
        try:
            yield temporary
        except BaseException:
            with contextlib.suppress(OSError):
                shutil.rmtree(temporary) if os.path.isdir(temporary) else os.unlink(temporary)
            raise


@contextlib.contextmanager
def _naming(target: str, temporary: str = "") -> Iterator[None]:
    """Make errors of the temporary file, and those without a name, name the target."""
    try:
        yield
    except OSError as error:
        name = error.filename
        if isinstance(name, str) and not (temporary and name.startswith(temporary)):
            raise
        raise type(error)(error.errno, f"{error.strerror or error}; nothing was written", target) from error
