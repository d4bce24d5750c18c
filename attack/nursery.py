"""A process that has imported everything and forks children: each runs one command, and something happens to it.

It reads one request a line from standard input and answers each with a line, both JSON. Without it, every trial would
spend a second on imports, and most kills would strike there.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["Nursery"]

ROOT = Path(__file__).parents[1]
STEPS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.scandir")
"""What a child may be killed at: whatever touches the folder that it writes to."""

_SUBREAPER = 36


class Nursery:
    """The process, from outside.

    Parameters
    ----------
    folder : path
        The children's current folder. What they print goes to the files ``out`` and ``err`` of it.
    watched : path
        The folder whose steps are counted.
    """

    def __init__(self, folder: Path, watched: Path) -> None:
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "attack.nursery", str(watched)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, argv: list[str], **what: Any) -> dict[str, Any]:
        """Run a command in a child.

        Parameters
        ----------
        argv : list of str
            Of ``rankrls``; or ``["python", "module:function", ...]``, a function and its arguments.
        **what : object
            ``supervised``: as the program runs it, in a process below another one. ``signal``, ``after`` seconds, to
            the whole ``group`` or to the first process only. ``step``: kill -9 at the so-many-th step of :data:`STEPS`;
            ``soon``: so many seconds after a file was opened to be written. ``largest``: bytes that a file may have.
            ``limit``: seconds until the child hangs, or until it hangs after a signal.

        Returns
        -------
        dict
            ``status`` (negative: the signal it died of), ``hung``, and ``seconds``, those after the signal.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"argv": argv, **what}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def serve(watched: str) -> None:
    """Answer requests until there are no more."""
    import rankrls.cli._training  # what every command needs, and nothing that starts threads  # noqa: F401
    from rankrls.cli import _run  # noqa: F401

    ctypes.CDLL(None).prctl(_SUBREAPER, 1)  # children of killed children are ours
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is printed by commands that run here
    for line in sys.stdin:
        request = json.loads(line)
        if request.get("here"):  # so that later children find what it imports and compiles
            answer = {"status": _command(request["argv"], False), "hung": False, "seconds": 0.0}
        else:
            answer = _watched(request, watched)
        print(json.dumps(answer), file=answers, flush=True)


def _watched(request: dict[str, Any], watched: str) -> dict[str, Any]:
    waits = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, waits)  # the command's phases are of interest, not those of this module
    child = os.fork()
    if child == 0:
        os._exit(_child(request, watched))
    with contextlib.suppress(OSError):  # it may have done so itself
        os.setpgid(child, child)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, waits)
    begin, limit = time.monotonic(), request.get("limit", 60.0)
    number = request.get("signal")
    status = None
    if number is not None:
        status = _ended(child, begin + request["after"])
        begin = time.monotonic()
        if status is None:
            (os.killpg if request.get("group") else os.kill)(child, number)
    if status is None:
        status = _ended(child, begin + limit)
    seconds, hung = time.monotonic() - begin, status is None
    # nothing of it outlives it: a worker ends with its supervisor
    while time.monotonic() < begin + limit and not hung and _has_processes(child):
        time.sleep(0.002)
    if hung or _has_processes(child):
        hung = True
        os.killpg(child, signal.SIGKILL)
        while _has_processes(child):
            time.sleep(0.002)
    return {"status": status, "hung": hung, "seconds": seconds}


def _ended(child: int, until: float) -> int | None:
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            return None
        time.sleep(0.001)


def _has_processes(group: int) -> bool:
    try:
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _child(request: dict[str, Any], watched: str) -> int:
    os.setpgid(0, 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
    if "largest" in request:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest"], request["largest"]))
    if "step" in request or "soon" in request:
        _kill_at(request, watched)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        status = _command(request["argv"], request.get("supervised", False))
        sys.stdout.flush()
    except SystemExit as error:  # as the interpreter ends
        status = error.code if isinstance(error.code, int) else 1
    except BaseException as error:
        status = 130
        if not isinstance(error, KeyboardInterrupt) or _has_begun(error):
            traceback.print_exception(error)
            status = 70
        else:
            print("rankrls: interrupted", file=sys.stderr)
    sys.stderr.flush()
    return status


def _has_begun(error: BaseException) -> bool:
    """Whether an error came from the program, beyond the first line of its function ``main``."""
    frames = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    ours = [(code, line) for code, line in frames if f"{os.sep}rankrls{os.sep}" in code.co_filename]
    return any((code.co_name, line) != ("main", code.co_firstlineno) for code, line in ours)


def _kill_at(request: dict[str, Any], watched: str) -> None:
    seen = 0

    def hook(event: str, args: Any) -> None:
        nonlocal seen
        if event not in STEPS or not isinstance(args[0], str) or not os.path.abspath(args[0]).startswith(watched):
            return
        seen += 1
        if seen == request.get("step"):
            os.kill(os.getpid(), signal.SIGKILL)
        if "soon" in request and event == "open" and str(args[0]).endswith(".tmp"):
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process at once, whatever it is doing
            signal.setitimer(signal.ITIMER_REAL, max(request["soon"], 1e-6))

    sys.addaudithook(hook)


def _command(argv: list[str], supervised: bool) -> int:
    from rankrls.cli import main

    if argv[0] == "python":
        module, _, name = argv[1].partition(":")
        getattr(import_module(module), name)(*argv[2:])
        return 0
    if not supervised:
        return main(argv)
    sys.argv = ["rankrls", *argv]
    return main()


if __name__ == "__main__":
    serve(sys.argv[1])
