"""The command runs in a process of its own, so that an interruption ends it whatever it is doing.

A signal's handler runs between two steps of Python, and one step may be a decomposition that takes minutes. It may hold
the interpreter's lock all the while, so that no other thread of the process could act on the signal either. Another
process can: it does nothing but wait for signals and for the worker's end.
"""

from __future__ import annotations

import atexit
import contextlib
import mmap
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from rankrls._temporary import is_temporary, remove

INTERRUPTED = 130
_GRACE = 0.5  # seconds that an interrupted command has to end by itself
_AGAIN = 0.01  # seconds until what was interrupted where Python drops it is interrupted again
_KEEPS = ContextVar[mmap.mmap | None](
    "a byte that the supervisor reads: whether the command saves what it has", default=None
)


def supervise() -> int | None:
    """Become the supervisor of a new process.

    Returns
    -------
    int or None
        None in the new process, which is to run the command, and if there is none because the system has no ``fork`` or
        threads are running already. In the supervisor the exit status, once the command has ended.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return None
    ends = {n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN}
    waits_for = {*ends, signal.SIGCHLD, signal.SIGALRM}
    keeps = mmap.mmap(-1, 1)
    old = signal.signal(signal.SIGCHLD, lambda *_: None)  # some systems drop a signal without a handler, blocked or not
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {*waits_for, signal.SIGUSR1})
    supervisor = os.getpid()
    worker = os.fork()
    if worker:
        return _watch(worker, waits_for, keeps)
    signal.signal(signal.SIGCHLD, old)
    if signal.SIGINT in ends:  # a terminal sends it to both; the supervisor passes it on, as another signal
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, signal.default_int_handler)
    sys.unraisablehook = _again_if_interrupted
    for number in ends - {signal.SIGINT}:
        signal.signal(number, lambda number, _: os.kill(supervisor, number))
    _end_with(supervisor)
    _KEEPS.set(keeps)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return None


def interrupted() -> int:
    """Say once that the command was interrupted, here or by the supervisor; return the exit status."""
    if _KEEPS.get() is None and sys.stderr is not None:
        print("rankrls: interrupted", file=sys.stderr)
    return INTERRUPTED


def leave(status: int) -> None:
    """End the process with that status, if it is one that :func:`supervise` made.

    Python would take apart every module and object first, which takes as long as a tenth of a small command.
    """
    if _KEEPS.get() is None:
        return
    threading._shutdown()  # type: ignore[attr-defined]  # the three steps of a process of multiprocessing
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # there is none, or nobody reads it any more
            stream.flush()
    os._exit(status)


@contextlib.contextmanager
def keeping_its_best() -> Iterator[None]:
    """Inside, the command may take its time after a first interruption, because it saves what it has found so far."""
    keeps = _KEEPS.get()
    if keeps is None:
        yield
        return
    keeps[0] = 1
    try:
        yield
    finally:
        keeps[0] = 0


def _watch(worker: int, waits_for: set[signal.Signals], keeps: mmap.mmap) -> int:
    asked = False
    while True:
        number = signal.sigwait(waits_for)
        if number == signal.SIGCHLD:
            ended, status = os.waitpid(worker, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                if code < 0:
                    return _die_by(-code)
                return interrupted() if code == INTERRUPTED else code
        elif number == signal.SIGINT and not asked:
            asked = True
            os.kill(worker, signal.SIGUSR1)
            if not keeps[0]:
                signal.setitimer(signal.ITIMER_REAL, _GRACE)
        else:
            _kill(worker)
            if number in (signal.SIGTERM, signal.SIGHUP):
                return _die_by(number)
            return interrupted()


def _kill(worker: int) -> None:
    os.kill(worker, signal.SIGSTOP)  # so that it opens nothing more
    files = _temporaries(worker)
    os.kill(worker, signal.SIGKILL)
    for path in files:
        remove(path)
    if sys.stderr is not None and sys.stderr.isatty():  # the line of progress, and the cursor that it hides
        print("\r\x1b[2K\x1b[?25h", end="", file=sys.stderr, flush=True)


def _temporaries(process: int) -> list[str]:
    """Temporary files and folders that a process has open, where the system tells."""
    found = []
    folder = f"/proc/{process}/fd"
    with contextlib.suppress(OSError):
        for number in os.listdir(folder):
            with contextlib.suppress(OSError):
                path = os.readlink(os.path.join(folder, number))
                if is_temporary(path):
                    found.append(path)
    return found


def _die_by(number: int) -> int:
    """End by a signal, as the worker did; the status for a system that does not let it."""
    with contextlib.suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    return 128 + number


def _again_if_interrupted(what: Any) -> None:
    """Python drops what a handler raises inside of a ``__del__``; interrupt the command again once it is outside."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        return sys.__unraisablehook__(what)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN)


def _end_with(supervisor: int) -> None:
    """Do not go on when the supervisor is killed; Linux alone can promise that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(INTERRUPTED)
