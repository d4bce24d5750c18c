"""Files and folders written whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from rankrls._errors import InputError
from rankrls.io._rows import few

_DESCRIPTOR = re.compile(r"/dev/fd/([0-9]+)|/proc/self/fd/([0-9]+)")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb", *, encoding: str | None = None) -> Iterator[IO[Any]]:
    """Open a file that takes its name only when everything has been written.

    What the block writes goes to a temporary file ``.NAME.tmp*`` in the target's directory. At the end of the block it
    is flushed to the disk and renamed. If the block raises, or the disk fills up, the temporary file is removed and the
    target keeps its old content. If the process is killed, the temporary file stays until the same target is written
    again.

    Devices, pipes and open descriptors (``/dev/null``, ``/dev/stdout``, ``/dev/fd/3``) are not replaced: they are
    written to as the block goes.

    Parameters
    ----------
    path : path
        A file, existing or not; a symbolic link is followed, so that the link stays one. A new file gets the
        permissions that ``open`` would have given it, a replaced one keeps its permissions.
    mode : {"wb", "w"}, default="wb"
        Bytes or text.
    encoding : str, optional
        Of text; UTF-8 by default.

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
    if mode not in ("wb", "w"):
        raise ValueError(f"mode must be 'wb' or 'w'; got {mode!r}.")
    encoding = (encoding or "utf-8") if mode == "w" else None
    name = os.fspath(path)
    if is_written_in_place(name):
        number = _descriptor(name)
        # opening /dev/stdout anew would empty the file that a shell has opened for it
        with _naming(name), open(name if number is None else os.dup(number), mode, encoding=encoding) as file:
            yield file
        return
    target = os.path.realpath(name)
    if os.path.isdir(target):
        raise IsADirectoryError(21, "Is a directory, where a file should be written", name)
    _remove_leftovers(target)
    temporary = _temporary(target)
    with _naming(target, temporary):
        try:
            # what replaces a private file is private from the start
            permissions = os.stat(target).st_mode & 0o777 if os.path.exists(target) else None
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            handle = os.open(temporary, flags, 0o666 if permissions is None else 0o600)
            with open(handle, mode, encoding=encoding) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if permissions is not None:
                os.chmod(temporary, permissions)
            os.replace(temporary, target)
        except BaseException:
            _remove(temporary)
            raise


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
        Whether a folder that holds such files, and no others, is replaced.

    Raises
    ------
    InputError
        Before anything is written, for a folder that is not empty and not to be replaced.
    OSError
        If the files cannot be written.
    """
    place = Path(os.path.realpath(folder))
    if place.exists() and not place.is_dir():
        raise NotADirectoryError(20, "Is no folder, where files should be written", str(folder))
    held = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if not path.is_dir())
    if held and not force:
        message = f"the folder is not empty ({few(held, 3)}). Name another one, or replace its files with force."
        raise InputError(message, file=str(folder), parameter="force")
    others = [name for name in held if not ours.fullmatch(name)]
    if others or (held and os.path.samefile(place, ".")):
        why = f"it also holds {few(others, 3)}" if others else "it is the current one"
        raise InputError(
            f"the folder cannot be replaced: {why}. Name another one.", file=str(folder), parameter="force"
        )
    os.makedirs(place.parent, exist_ok=True)
    _remove_leftovers(str(place))
    new = _temporary(str(place))
    with _naming(str(folder), new):
        try:
            os.mkdir(new)
            yield Path(new)
            _swap(Path(new), place)
        except BaseException:
            _remove(new)
            raise


def _swap(new: Path, place: Path) -> None:
    """Let a folder take the place of another one, which is removed."""
    if not place.exists():
        os.rename(new, place)
        return
    if not any(place.iterdir()):  # it may be the current one
        for path in new.iterdir():
            os.rename(path, place / path.name)
        new.rmdir()
        return
    os.chmod(new, place.stat().st_mode & 0o777)
    old = Path(_temporary(str(place)))
    os.rename(place, old)
    try:
        os.rename(new, place)
    except BaseException:
        os.rename(old, place)
        raise
    _remove(str(old))


def is_written_in_place(path: str | os.PathLike[str]) -> bool:
    """Whether a path names something that is written to and never replaced: a device, a pipe, an open descriptor."""
    name = os.fspath(path)
    if _descriptor(name) is not None:
        return True
    with contextlib.suppress(OSError):
        kind = os.stat(name).st_mode
        return not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)
    return False


def _descriptor(path: str) -> int | None:
    """The number of the descriptor of this process that a path stands for, as /dev/stdout and /dev/fd/3 do."""
    for _ in range(10):  # /dev/stdout is itself a link to a file that the shell has opened
        found = _DESCRIPTOR.fullmatch(path)
        if found or path in _STANDARD:
            return int(found[1] or found[2]) if found else _STANDARD[path]
        if not os.path.islink(path):
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return None


def _temporary(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, f"{_start(name)}{os.getpid()}.{os.urandom(6).hex()}")


def _start(name: str) -> str:
    encoded = os.fsencode(name)  # a name may have 255 bytes
    return f".{name if len(encoded) <= 200 else hashlib.sha256(encoded).hexdigest()}.tmp"


def _remove_leftovers(target: str) -> None:
    """Remove what processes that have ended left of the same target."""
    folder, name = os.path.split(target)
    start = os.path.join(folder, _start(name))
    for path in glob.glob(glob.escape(start) + "*." + 12 * "[0-9a-f]"):
        process = path[len(start) :].partition(".")[0]
        if process.isdigit() and not _runs(int(process)):
            _remove(path)


def _runs(process: int) -> bool:
    if os.name != "posix":  # os.kill would end it elsewhere
        return process == os.getpid()
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        os.unlink(path)


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
