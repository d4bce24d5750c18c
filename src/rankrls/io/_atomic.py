"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import IO, Any

from rankrls._errors import InputError
from rankrls._temporary import OPEN_FILES_CAN_MOVE, claim_file, remove

_MOST_LINKS = 40


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb", *, encoding: str | None = None) -> Iterator[IO[Any]]:
    """Open a file that takes its name only when everything has been written.

    What the block writes goes to a temporary file in the target's directory. At the end of the block it is flushed to
    the disk and renamed. If the block raises, or the disk fills up, the temporary file is removed and the target keeps
    its old content. If the process is killed, the temporary file stays until the same target is written again on the
    same machine. The temporary file of a process that is still running is never removed.

    Devices, pipes and open descriptors (``/dev/null``, ``/dev/stdout``, ``/dev/fd/3``) are not replaced: they are
    written to as the block goes.

    Parameters
    ----------
    path : path
        A file, existing or not; a symbolic link is followed, so that the link stays one. A new file gets the
        permissions that ``open`` would have given it. A replaced one keeps its permissions, and its owner and group as
        far as the process may set them; otherwise it loses its setuid and setgid bits.
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
    with _in_place(name, mode, encoding) if is_written_in_place(name) else _replacing(name, mode, encoding) as file:
        yield file


@contextlib.contextmanager
def _replacing(path: str, mode: str, encoding: str | None) -> Iterator[IO[Any]]:
    target = os.path.realpath(path)
    old = _status(target)
    try:
        # what replaces a private file is private from the start
        temporary, handle = claim_file(target, 0o666 if old is None else 0o600)
    except OSError as error:
        raise _about(error, target) from None
    with contextlib.ExitStack() as held:
        if OPEN_FILES_CAN_MOVE:  # the lock lasts until the file has its name
            held.callback(os.close, os.dup(handle))
        try:
            with open(handle, mode, encoding=encoding) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if old is not None:
                take_over(temporary, old)
            os.replace(temporary, target)
        except BaseException as error:
            remove(temporary)
            # errors of the temporary file name it, or nothing; who reads the message knows the target only
            if isinstance(error, OSError) and error.filename in (None, handle, temporary):
                raise _about(error, target) from error
            raise
    sync_folder(os.path.dirname(target))


@contextlib.contextmanager
def _in_place(path: str, mode: str, encoding: str | None) -> Iterator[IO[Any]]:
    number = _descriptor(path)
    try:
        # opening /dev/stdout anew would empty the file that a shell has opened for it
        with open(path if number is None else os.dup(number), mode, encoding=encoding) as file:
            yield file
    except OSError as error:
        if error.filename is None:
            raise type(error)(error.errno, error.strerror, path) from error
        raise


def is_written_in_place(path: str | os.PathLike[str]) -> bool:
    """Whether a path names something that is written to and never replaced: a device, a pipe, an open descriptor."""
    name = os.fspath(path)
    if _descriptor(name) is not None:
        return True
    with contextlib.suppress(OSError):
        kind = os.stat(name).st_mode
        return not stat.S_ISREG(kind) and not stat.S_ISDIR(kind)
    return False


def check_target(path: str | os.PathLike[str], *inputs: str | os.PathLike[str] | None) -> None:
    """Refuse, before any work is done, a file that could not be written after it, or that is read.

    "-" is standard output.
    """
    if str(path) == "-" or is_written_in_place(path):
        return
    for given in inputs:
        if given is not None and os.path.exists(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise InputError("{0} is read by this command and would be overwritten: name another file to write.", path)
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(21, "Is a directory, where a file should be written", str(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(2, f"There is no folder {folder!r} to write to", str(path))
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, f"The folder {folder!r} may not be written", str(path))


def _descriptor(path: str) -> int | None:
    """The number of the descriptor of this process that a path stands for, as /dev/stdout and /dev/fd/3 do."""
    descriptors = {os.path.realpath(folder) for folder in ("/dev/fd", "/proc/self/fd")}
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(os.path.abspath(path))
        if os.path.realpath(folder) in descriptors and name.isdigit():
            return int(name)
        if not os.path.islink(path):
            return None
        path = os.path.join(folder, os.readlink(path))
    return None


def _status(target: str) -> os.stat_result | None:
    """What is known about the file to replace; None where there is none."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory, where a file should be written", target)
    return status


def take_over(path: str, old: os.stat_result) -> None:
    """Give a file or folder the owner, the group and the permissions of the one that it replaces.

    Only root may give a file away, and others may choose a group of their own only. Where owner or group become others
    than they were, the bits are dropped by which a file is run with the rights of its owner or group.
    """
    new = os.stat(path)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        for owner in (old.st_uid, -1):
            with contextlib.suppress(OSError):
                os.chown(path, owner, old.st_gid)
                break
        new = os.stat(path)
    permissions = stat.S_IMODE(old.st_mode)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        permissions &= ~(stat.S_ISUID | stat.S_ISGID)
    os.chmod(path, permissions)


def _about(error: OSError, target: str) -> OSError:
    """The same error, naming the target."""
    reason = f"{error.strerror or error}; nothing was written"
    return type(error)(error.errno, reason, target)


def sync_folder(folder: str) -> None:
    """Make a rename itself durable, where a directory can be opened and synced at all."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
