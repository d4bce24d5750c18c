"""Temporary files and folders that do not outlive their process for long.

A temporary stands beside its target, is named after it, and is locked for as long as its process lives; the system
drops the lock however the process ends. Whoever next makes a temporary for the same target removes those that nobody
locks. The name also says which machine made it, since another machine that shares the folder may not see the lock.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import zlib
from collections.abc import Callable
from typing import TypeVar

try:
    import fcntl
except ImportError:  # Windows, which does not let anybody remove a file that is open
    fcntl = None  # type: ignore[assignment]

OPEN_FILES_CAN_MOVE = fcntl is not None
_NAME = re.compile(r"\.(?P<target>.*)\.(?P<machine>[0-9a-f]{8})\.[0-9a-f]{12}\.tmp", re.DOTALL)
Handle = TypeVar("Handle", bound="int | None")
_LONGEST = 40  # characters of the target's name: at most 160 bytes of the 255 that a name may have


def claim_file(target: str, permissions: int) -> tuple[str, int]:
    """Make a temporary file beside a target; return its path and a descriptor to write, which holds its lock."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # made as `open` makes files, so that the umask applies without being read (reading it means setting it)
    return _claim(target, lambda path: os.open(path, flags, permissions))


def claim_folder(target: str) -> tuple[str, int | None]:
    """Make a temporary folder beside a target; return its path and the descriptor that holds its lock, if any."""

    def make(path: str) -> int | None:
        os.mkdir(path)
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY) if fcntl is not None else None

    return _claim(target, make)


def is_temporary(path: str) -> bool:
    """Whether a path is that of a temporary, by its name."""
    return _NAME.fullmatch(os.path.basename(path)) is not None


def remove(path: str) -> None:
    """Remove a temporary, as far as that can be done."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    with contextlib.suppress(OSError):
        os.unlink(path)


def _claim(target: str, make: Callable[[str], Handle]) -> tuple[str, Handle]:
    folder, name = os.path.split(target)
    _remove_abandoned(folder, name[:_LONGEST])
    while True:
        path = os.path.join(folder, f".{name[:_LONGEST]}.{_machine()}.{os.urandom(6).hex()}.tmp")
        handle = make(path)
        # between the two steps somebody else may have found it unlocked, and taken it for abandoned
        if handle is None or (_lock(handle) is not False and os.path.exists(path)):
            return path, handle
        os.close(handle)


def _remove_abandoned(folder: str, name: str) -> None:
    """Remove the temporaries of a target whose processes of this machine have ended."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _NAME.fullmatch(entry.name)
            if found is not None and (found["target"], found["machine"]) == (name, _machine()):
                with contextlib.suppress(OSError):
                    _remove_unlocked(entry.path, entry.is_dir(follow_symlinks=False))


def _remove_unlocked(path: str, folder: bool) -> None:
    if fcntl is None:
        if not folder:
            remove(path)
        return
    flags = os.O_RDONLY | os.O_DIRECTORY if folder else os.O_WRONLY | os.O_NONBLOCK
    handle = os.open(path, flags | os.O_NOFOLLOW)
    try:
        if _lock(handle):
            remove(path)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool | None:
    """Whether the lock was free and is now held; None where the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _machine() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"
