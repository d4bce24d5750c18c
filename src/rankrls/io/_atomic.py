"""Files and folders written whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Literal

from rankrls._errors import InputError
from rankrls.io._rows import few


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: Literal["wb", "w"] = "wb") -> Iterator[IO[Any]]:
    """Open a file that takes its name only when everything has been written.

    What the block writes goes to a temporary file ``.NAME.tmp*`` in the target's directory. At the end of the block it
    is flushed to the disk and renamed. If the block raises, or the disk fills up, the temporary file is removed and the
    target keeps its old content. If the process is killed, the temporary file stays until the same target is written
    again.

    Devices, pipes and standard output (``/dev/null``, ``/dev/stdout``) are not replaced: they are written
    to as the block goes.

    Parameters
    ----------
    path : path
        A file, existing or not; a symbolic link is followed, so that the link stays one. A new file gets the
        permissions that ``open`` would have given it, a replaced one keeps its permissions.
    mode : {"wb", "w"}, default="wb"
        Bytes, or text in UTF-8.

    Yields
    ------
    file object
        Open for writing.

    Raises
    ------
    OSError
        If the directory does not exist or may not be written, the target is a directory, or the disk is full. The error
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
        # opening it anew would empty the file that a shell has opened for standard output
        target: Any = os.dup(1) if _is_standard_output(name) else name
        with _naming(name), open(target, mode, encoding=encoding) as file:
            yield file
        return
    target = os.path.realpath(name)
    if os.path.isdir(target):
        raise IsADirectoryError(21, "Is a directory, but a file is to be written here", name)
    with _temporary(target) as temporary:
        # what replaces a private file is private before anything is in it
        permissions = os.stat(target).st_mode & 0o777 if os.path.exists(target) else None
        with open(temporary, mode.replace("w", "x"), encoding=encoding) as file:
            if permissions is not None:
                os.chmod(temporary, permissions)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)


@contextlib.contextmanager
def new_folder(folder: Path, ours: re.Pattern[str], *, force: bool) -> Iterator[Path]:
    """A folder to write files into that takes its name when all of them have been written.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    ours : pattern
        The paths below the folder that may be replaced.
    force : bool
        Whether a folder that holds such files, and no others, is replaced: it is removed when the new one is complete.

    Raises
    ------
    InputError
        Before anything is written, for a folder that is not empty and not to be replaced.
    OSError
        If the files cannot be written.
    """
    place = Path(os.path.realpath(folder))
    if place.exists() and not place.is_dir():
        raise NotADirectoryError(20, "Is not a folder, but files are to be written into it", str(folder))
    held = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if not path.is_dir())
    if held and not force:
        message = f"the folder is not empty ({few(held, 3)}). Name another one, or replace its files with force."
        raise InputError(message, file=str(folder), parameter="force")
    others = [name for name in held if not ours.fullmatch(name)]
    if others or place == Path.cwd():
        why = f"it also holds {few(others, 3)}" if others else "it is the current one"
        message = f"the folder cannot be replaced: {why}. Name another one."
        raise InputError(message, file=str(folder), parameter="force")
    os.makedirs(place.parent, exist_ok=True)
    with _temporary(str(place)) as new:
        os.mkdir(new)
        yield Path(new)
        if place.exists():
            os.chmod(new, place.stat().st_mode & 0o777)
            shutil.rmtree(place)
        os.rename(new, place)


def is_written_in_place(path: str | os.PathLike[str]) -> bool:
    """Whether a path names what is written to and never replaced: a device, a pipe, standard output."""
    with contextlib.suppress(OSError):
        kind = os.stat(path).st_mode
        return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)) or _is_standard_output(path)
    return False


def _is_standard_output(path: str | os.PathLike[str]) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(1))
    return False


@contextlib.contextmanager
def _temporary(target: str) -> Iterator[str]:
    """A name beside the target, for what is renamed to it; removed if that fails, and what killed writers left.

    It begins with ``.NAME.tmp`` and the number of the process.
    """
    folder, name = os.path.split(target)
    start = os.path.join(folder, f".{name[:50]}.tmp")  # a name may have 255 bytes
    for path in glob.glob(glob.escape(start) + "*." + 12 * "[0-9a-f]"):
        process = path[len(start) :].partition(".")[0]
        if process.isdecimal() and not _runs(int(process)):
            _remove(path)
    temporary = f"{start}{os.getpid()}.{os.urandom(6).hex()}"
    with _naming(target, temporary):
        try:
            yield temporary
        except BaseException:
            _remove(temporary)
            raise


def _runs(process: int) -> bool:
    if os.name != "posix":  # os.kill would end it elsewhere
        return process == os.getpid()
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


@contextlib.contextmanager
def _naming(target: str, temporary: str = "") -> Iterator[None]:
    """Errors of the temporary file, and those without a name, name the target."""
    try:
        yield
    except OSError as error:
        name = error.filename
        if isinstance(name, str) and not (temporary and name.startswith(temporary)):
            raise
        raise type(error)(error.errno, f"{error.strerror or error}; nothing was written", target) from error
