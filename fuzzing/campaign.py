"""Targets, verdicts, and the loop that runs a target's cases in a child that is watched.

A target makes a case of a random number generator and judges it. The same seed and number give the same case. Its
verdict is one of

=========  ===================================================================================================
read       the library took the input and gave what the slow code gives
refused    the library refused it with a documented error, and rightly so
wrong      a value differs, or input was refused that is right, or read that is not
crash      an error that is not documented, or the process died
hang       no answer within the time limit
unclear    the slow code cannot say what is right
=========  ===================================================================================================
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

ROOT = Path(__file__).parents[1]
VERDICTS = ("read", "refused", "wrong", "crash", "hang", "unclear")
BAD = ("wrong", "crash", "hang", "unclear")
START_SECONDS = 300.0
"""Until the first case has begun: loops may have to be compiled."""


class Refused(Exception):  # noqa: N818
    """The library refused the input with a documented error, and the slow code agrees."""


class Wrong(Exception):  # noqa: N818
    """The library and the slow code disagree."""


class Unclear(Exception):  # noqa: N818
    """The slow code cannot say what is right."""


@dataclass(frozen=True)
class Target:
    """Something to test.

    Attributes
    ----------
    name : str
    make : callable
        A case, as bytes that say everything about it, of a generator.
    judge : callable
        Returns if the library read the case rightly; raises :class:`Refused`, :class:`Wrong` or :class:`Unclear`.
        Any other exception is a crash.
    warm_up : callable, optional
        Called once before the limits hold: imports and compiled loops.
    share : float
        Of the time of a run, against that of other targets.
    seconds : float
        A case that takes longer hangs.
    memory : int
        Bytes of address space that a case may take, above what the process has when it starts.
    """

    name: str
    make: Callable[[Generator], bytes]
    judge: Callable[[bytes], None]
    warm_up: Callable[[], None] = lambda: None
    share: float = 1.0
    seconds: float = 20.0
    memory: int = 2 << 30


@dataclass
class Finding:
    """A case that went wrong."""

    target: str
    seed: int
    number: int
    verdict: str
    what: str


@dataclass
class Tally:
    """What became of the cases of a target."""

    target: str
    counts: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(VERDICTS, 0)))
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def inputs(self) -> int:
        """How many cases were judged."""
        return self.counts.total()


def generator(target: str, seed: int, number: int) -> Generator:
    """The generator of a case."""
    return np.random.default_rng([seed, zlib.crc32(target.encode()), number])


def verdict_of(target: Target, case: bytes) -> tuple[str, str]:
    """Judge a case in this process."""
    try:
        target.judge(case)
    except Refused:
        return "refused", ""
    except Wrong as error:
        return "wrong", str(error)
    except Unclear as error:
        return "unclear", str(error)
    except Exception as error:
        return "crash", f"{type(error).__name__}: {str(error)[:300]} ({_place(error)})"
    return "read", ""


def _place(error: BaseException) -> str:
    """The innermost line of the library, or else of anything, that an exception came through."""
    frames = traceback.extract_tb(error.__traceback__)
    place = ([frame for frame in frames if f"{os.sep}rankrls{os.sep}" in frame.filename] or frames)[-1]
    return f"{Path(place.filename).name}:{place.lineno}"


def find(name: str) -> Target:
    """The target of a name such as ``fuzzing.letor:TARGET``."""
    module, _, attribute = name.partition(":")
    found = getattr(import_module(module), attribute)
    assert isinstance(found, Target)
    return found


def run(
    name: str,
    seed: int,
    *,
    seconds: float = 1e9,
    cases: int = 1 << 62,
    first: int = 0,
    core: str | None = None,
) -> Tally:
    """Run cases of a target in watched children, until the time or the cases are over.

    Parameters
    ----------
    name : str
        As :func:`find` takes it.
    seed : int
    seconds : float
        For all cases, without the start of the child.
    cases : int
        How many at most.
    first : int
        The number of the first case.
    core : str, optional
        The processor whose loops OpenBLAS takes.
    """
    target = find(name)
    tally = Tally(target.name)
    number, last = first, first + cases
    while number < last and tally.seconds < seconds:
        with _Child(name, seed, number, last, core) as child:
            child.wait_until_ready()
            begun = time.monotonic()
            while number < last:
                if tally.seconds + time.monotonic() - begun >= seconds:
                    break
                verdict, what = child.next(target.seconds)
                tally.counts[verdict] += 1
                if verdict in BAD:
                    tally.findings.append(Finding(target.name, seed, number, verdict, what))
                number += 1
                if child.gone:
                    break
            tally.seconds += time.monotonic() - begun
    return tally


class _Child:
    """A process that judges cases one by one and says what became of each."""

    def __init__(self, name: str, seed: int, first: int, last: int, core: str | None) -> None:
        command = [sys.executable, "-m", "fuzzing.worker", name, str(seed), str(first), str(last)]
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        if core:
            environment |= {"OPENBLAS_CORETYPE": core}
            environment.pop("OPENBLAS_L2_SIZE", None)  # of another processor
        self._errors = subprocess.DEVNULL if not os.environ.get("ATTACK_VERBOSE") else None
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self._errors, env=environment, start_new_session=True
        )
        self._waiting = b""
        self.gone = False

    def __enter__(self) -> _Child:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def wait_until_ready(self) -> None:
        """Let the child import and compile what it needs."""
        answer = self._line(START_SECONDS)
        if answer != {"ready": True}:
            raise RuntimeError(f"the child did not start; its exit code is {self._process.poll()}")

    def next(self, seconds: float) -> tuple[str, str]:
        """The verdict of the next case."""
        answer = self._line(seconds)
        if answer is not None:
            return answer["verdict"], answer["what"]
        self.gone = True
        if self._process.poll() is None:
            self._process.kill()
            return "hang", f"no answer in {seconds:g} s"
        code = self._process.returncode
        return "crash", f"died of {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"

    def _line(self, seconds: float) -> Any:
        """The next line, as JSON; None if the time is over or the process has gone."""
        assert self._process.stdout is not None
        handle, until = self._process.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self._waiting:
            left = until - time.monotonic()
            if left <= 0 or not select.select([handle], [], [], left)[0]:
                return None
            piece = os.read(handle, 1 << 16)
            if not piece:
                self._process.wait()
                return None
            self._waiting += piece
        line, _, self._waiting = self._waiting.partition(b"\n")
        return json.loads(line)


def table(tallies: Iterable[Tally]) -> str:
    """The closing table."""
    rows: list[list[Any]] = [["target", "inputs", *VERDICTS, "seconds"]]
    rows += [[t.target, t.inputs, *(t.counts[v] for v in VERDICTS), round(t.seconds)] for t in tallies]
    return "\n".join("".join(f"{cell!s:<10}" for cell in row).rstrip() for row in rows)
