"""Files written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from typing import IO, Any

__all__ = ["atomic_write"]


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb", *, encoding: str | None = None) -> Iterator[IO[Any]]:
    """Open a file that takes its name only when everything has been written.

    What the block writes goes to a temporary file in the target's directory. At the end of the block it is flushed to
    the disk and renamed. Where the block raises, or the disk fills up, the temporary file is removed and the target
    keeps its old content.

    Parameters
    ----------
    path : path
        A regular file, existing or not; a symbolic link is followed, so that the link stays one. A new file gets the
        permissions that ``open`` would have given it, a replaced one keeps its own.
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
        Where the directory does not exist or may not be written, the target is a directory or a device, or the disk
        is full. The error names the target.

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
    target = os.path.realpath(os.fspath(path))
    permissions = _permissions(target)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(6)}.tmp")
    try:
        # made as `open` makes files, so that the umask applies without being read (reading it means setting it)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        raise _about(error, target) from None
    try:
        with open(handle, mode, encoding=(encoding or "utf-8") if mode == "w" else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if permissions is not None:
            os.chmod(temporary, permissions)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        # errors of the temporary file name it, or nothing; who reads the message knows the target only
        if isinstance(error, OSError) and error.filename in (None, handle, temporary):
            raise _about(error, target) from error
        raise
    _sync_folder(folder)


def _permissions(target: str) -> int | None:
    """Permissions of the file to replace; None where there is none."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory, where a file should be written", target)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "Is no regular file, and cannot be replaced as a whole", target)
    return stat.S_IMODE(status.st_mode)


def _about(error: OSError, target: str) -> OSError:
    """The same error, naming the target."""
    reason = f"{error.strerror or error}; nothing was written"
    return type(error)(error.errno, reason, target)


def _sync_folder(folder: str) -> None:
    """Make the rename itself durable, where a directory can be opened and synced at all."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
