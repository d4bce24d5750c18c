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

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

__all__ = ["VERDICTS", "Finding", "Refused", "Tally", "Target", "Unclear", "Wrong", "generator", "run", "verdict_of"]

ROOT = Path(__file__).parents[1]
VERDICTS = ("read", "refused", "wrong", "crash", "hang", "unclear")
BAD = ("wrong", "crash", "hang", "unclear")
START_SECONDS = 300.0
"""Until the first case has begun: loops may have to be compiled."""

_MOST_KEPT = 3


class Refused(Exception):  # noqa: N818
    """The library refused the input with a documented error, and the slow code agrees."""


class Wrong(Exception):  # noqa: N818
    """The library and the slow code disagree."""


class Unclear(Exception):  # noqa: N818
    """The slow code cannot say what is right."""


@dataclass(frozen=True)
class Target:
    """Something to attack.

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
    file: str = ""


@dataclass
class Tally:
    """What became of the cases of a target."""

    target: str
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def inputs(self) -> int:
        """How many cases were judged."""
        return self.counts.total()

    def add(self, verdict: str, finding: Finding | None = None) -> None:
        """One more case."""
        self.counts[verdict] += 1
        if finding is not None:
            self.findings.append(finding)


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
    places, trace = [], error.__traceback__
    while trace is not None:
        places.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    ours = [p for p in places if f"{os.sep}rankrls{os.sep}" in p[0]] or places
    return f"{Path(ours[-1][0]).name}:{ours[-1][1]}"


def find(name: str) -> Target:
    """The target of a name such as ``attack.letor:TARGET``."""
    module, _, attribute = name.partition(":")
    found = getattr(import_module(module), attribute)
    assert isinstance(found, Target)
    return found


def run(name: str, seed: int, folder: Path, *, seconds: float = 1e9, cases: int = 1 << 62, first: int = 0) -> Tally:
    """Run cases of a target in watched children, until the time or the cases are over.

    Parameters
    ----------
    name : str
        As :func:`find` takes it.
    seed : int
    folder : path
        Where findings are written, at most three of one kind.
    seconds : float
        For all cases, without the start of the child.
    cases : int
        How many at most.
    first : int
        The number of the first case.
    """
    target = find(name)
    tally = Tally(target.name)
    kinds: Counter[str] = Counter()
    number, last = first, first + cases
    while number < last and tally.seconds < seconds:
        with _Child(name, seed, number, last) as child:
            child.wait_until_ready()
            begun = time.monotonic()
            while number < last:
                if tally.seconds + time.monotonic() - begun >= seconds:
                    break
                verdict, what = child.next(target.seconds)
                finding = None
                if verdict in BAD:
                    finding = Finding(target.name, seed, number, verdict, what)
                    kinds[_kind(finding)] += 1
                    if kinds[_kind(finding)] <= _MOST_KEPT:
                        finding.file = _keep(folder, target, finding)
                tally.add(verdict, finding)
                number += 1
                if child.gone:
                    break
            tally.seconds += time.monotonic() - begun
    return tally


def _kind(finding: Finding) -> str:
    """What findings of the same cause have in common: everything but numbers and quoted words."""
    words = "".join("0" if c.isdigit() else c for c in finding.what.partition(":")[0])
    return f"{finding.verdict} {words[:60]} {finding.what.rpartition('(')[2]}"


def _keep(folder: Path, target: Target, finding: Finding) -> str:
    """Write a case and how to run it again."""
    folder.mkdir(parents=True, exist_ok=True)
    case = target.make(generator(target.name, finding.seed, finding.number))
    path = folder / f"{target.name}-{finding.verdict}-{hashlib.sha256(case).hexdigest()[:12]}"
    path.write_bytes(case)
    path.with_suffix(".txt").write_text(
        f"{finding.verdict}: {finding.what}\n\npython -m attack.fuzz --replay {target.name} {path.name}\n"
        f"python -m attack.fuzz --targets {target.name} --seed {finding.seed} --first {finding.number} --cases 1\n"
    )
    return path.name


class _Child:
    """A process that judges cases one by one and says what became of each."""

    def __init__(self, name: str, seed: int, first: int, last: int) -> None:
        command = [sys.executable, "-m", "attack.worker", name, str(seed), str(first), str(last)]
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
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
    head = ("target", "inputs", *VERDICTS, "seconds")
    rows = [head]
    for tally in tallies:
        numbers = [tally.inputs, *(tally.counts[v] for v in VERDICTS)]
        rows.append((tally.target, *map(str, numbers), f"{tally.seconds:.0f}"))
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    rows.insert(1, tuple("-" * width for width in widths))
    return "\n".join(
        "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    )
