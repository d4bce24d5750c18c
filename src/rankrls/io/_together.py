"""Files of one folder that appear together or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rankrls._errors import InputError
from rankrls._temporary import claim_folder, is_temporary, remove
from rankrls.io._atomic import sync_folder, take_over
from rankrls.io._rows import few

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


@contextmanager
def written_together(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """A folder to write files into, which are then moved to ``folder`` together.

    If ``folder`` is new or empty, or holds files of these names and nothing else, a folder with all of them takes its
    place. If it holds other files, they stay, and the new ones are moved to them one by one.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    names : sequence of str
        Paths of the files below the folder.

    Raises
    ------
    InputError
        Before anything is written, if some of the files exist already and the folder cannot be replaced as a whole.
    OSError
        If the files cannot be written or moved.
    """
    place = _place(folder)
    why = _why_it_stays(place, names.__contains__)
    both = sorted({*names} & {*_files(place)}) if why else []
    if both:
        remedy = "Remove the old parts, or name another folder: parts of two splits are not mixed."
        raise InputError(
            "{0} cannot be replaced together, because {1}.", ", ".join(both), why, remedy=remedy, file=str(folder)
        )
    as_a_whole = not why
    with _claimed(place if as_a_whole else place / "parts", folder) as temporary:
        new = temporary / "new"
        _make_folders(new, names)
        yield new
        if as_a_whole:
            _replace(place, new, temporary / "old")
        else:
            _make_folders(place, names)
            for name in names:
                os.replace(new / name, place / name)
        sync_folder(str(place.parent if as_a_whole else place))


@contextmanager
def replaced_folder(folder: Path, ours: Callable[[str], object]) -> Iterator[tuple[Path, Path]]:
    """A folder to write files into, which takes the place of ``folder`` as a whole, and one to work in.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    ours : callable
        Says of a path below the folder whether such a file may be replaced.

    Raises
    ------
    InputError
        Before anything is written, if the folder holds something else, or cannot be replaced.
    OSError
        If the files cannot be written or moved.
    """
    place = _place(folder)
    why = _why_it_stays(place, ours)
    if why:
        problem, remedy = "it cannot be replaced, because {0}.", "Name another folder."
        raise InputError(problem, why, remedy=remedy, file=str(folder), parameter="folder")
    with _claimed(place, folder) as temporary:
        new, work = temporary / "new", temporary / "work"
        for path in (new, work):
            path.mkdir()
        yield new, work
        sync_folder(str(new))
        _replace(place, new, temporary / "old")
        sync_folder(str(place.parent))


def _place(folder: Path) -> Path:
    """What a path of a folder stands for."""
    place = Path(os.path.realpath(folder))
    if place.exists() and not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "Is no folder, where files should be written", str(folder))
    return place


@contextmanager
def _claimed(place: Path, folder: Path) -> Iterator[Path]:
    """A temporary folder beside a place that is removed in the end; errors name the folder that the user named."""
    try:
        os.makedirs(place.parent, exist_ok=True)
        temporary, lock = claim_folder(str(place))
    except OSError as error:
        raise _about(error, folder) from error
    new = Path(temporary, "new")
    try:
        yield Path(temporary)
    except OSError as error:
        name = str(error.filename or "")
        if not name and error.errno in _FULL:  # which only who writes is told
            raise OSError(error.errno, f"{error.strerror}; nothing was written", str(folder)) from error
        if not name.startswith(temporary):
            raise
        raise _about(error, folder / Path(name).relative_to(new) if name.startswith(str(new)) else folder) from error
    finally:
        remove(temporary)
        if lock is not None:
            os.close(lock)


def _about(error: OSError, path: Path) -> OSError:
    """The same error, naming what the user named."""
    return type(error)(error.errno, error.strerror, str(path))


def _make_folders(folder: Path, names: Sequence[str]) -> None:
    for parent in {folder, *((folder / name).parent for name in names)}:
        os.makedirs(parent, exist_ok=True)


def _files(folder: Path) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]
        for name in (*files, *links):
            if not is_temporary(name):
                yield Path(here, name).relative_to(folder).as_posix()


def _why_it_stays(folder: Path, ours: Callable[[str], object]) -> str:
    """Why a new folder may not take the place of this one; empty if it may."""
    if not folder.exists():
        return ""
    if others := sorted(name for name in _files(folder) if not ours(name)):
        return f"the folder also holds {few(others, 3)}"
    if os.path.samefile(folder, "."):
        return "the folder is the current one"
    if os.path.ismount(folder):
        return "the folder is the root of a file system"
    if not os.access(folder.parent, os.W_OK):
        return f"{folder.parent} may not be written"
    return ""


def _replace(folder: Path, new: Path, old: Path) -> None:
    if not folder.exists():
        os.rename(new, folder)
        return
    take_over(str(new), os.stat(folder))
    for name in _files(new):
        if (folder / name).is_file():
            take_over(str(new / name), os.stat(folder / name))
    if _exchanged(folder, new):
        return
    os.rename(folder, old)
    try:
        os.rename(new, folder)
    except BaseException:
        os.rename(old, folder)
        raise


_HERE, _EXCHANGE = -100, 2
"""``AT_FDCWD`` and ``RENAME_EXCHANGE`` of Linux."""


def _exchanged(one: Path, other: Path) -> bool:
    """Let two folders swap their names in one step, if the system can: a kill never leaves neither of them."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    return swap is not None and swap(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0
