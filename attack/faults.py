"""``python -m attack.faults``: kills, signals, full and read-only disks, closed pipes and forks, for some minutes.

What becomes of a trial:

=======  =====================================================================================================
sound    the target is the old or the new one as a whole, and the exit code and the messages say which
torn     the target is neither the old nor the new one
lost     the old one is gone and the new one is not there, or a success left the old one
hung     a process did not end in time
wrong    an exit code, a message or a file left behind that should not be
unclear  the trial itself could not be made
=======  =====================================================================================================
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from attack.nursery import ROOT, Nursery
from attack.writers import WRITERS, Writer, make_inputs

__all__ = ["KINDS", "VERDICTS", "Trials", "main"]

VERDICTS = ("sound", "torn", "lost", "hung", "wrong", "unclear")
_SOON = 10.0
"""Seconds after a signal; on a machine that does nothing else it is less than one. The slowest end is reported."""
_NEWNS, _REMOUNT, _READ_ONLY, _PRIVATE = 0x20000, 32, 1, (1 << 18) | 16384


class Fault(Exception):  # noqa: N818
    """A trial that is not sound: its verdict, and what was seen."""


class Trials:
    """A folder with what the writers read and write, and one trial after another in it.

    Parameters
    ----------
    folder : path
    nursery : Nursery
    rng : random.Random
    writers : sequence of Writer
    """

    def __init__(self, folder: Path, nursery: Nursery, rng: random.Random, writers: Sequence[Writer]) -> None:
        self.folder, self.nursery, self.rng, self.writers = folder, nursery, rng, writers
        self.targets = folder / "targets"
        self.counts: dict[str, Counter[str]] = {}
        self.findings: list[dict[str, Any]] = []
        self.slowest = 0.0
        self.results: dict[str, list[Any]] = {}
        self.seconds: dict[str, float] = {}

    def prepare(self) -> None:
        """Run every writer both ways, undisturbed: what it writes, how long it takes, and its loops compiled."""
        for writer in self.writers:
            both = []
            for k in (0, 1):
                if self.nursery.run(self.argv(writer, k), here=True)["status"] != 0:
                    raise RuntimeError(f"{writer.name} does not run: {(self.folder / 'err').read_text()}")
                begin = time.monotonic()
                self.nursery.run(self.argv(writer, k))
                self.seconds[writer.name] = time.monotonic() - begin
                both.append(writer.content(self.path(writer)))
            if both[0] == both[1]:
                raise RuntimeError(f"{writer.name}: the two results are the same")
            self.results[writer.name] = both

    def path(self, writer: Writer) -> Path:
        """Where it writes."""
        return self.targets / writer.target

    def argv(self, writer: Writer, k: int) -> list[str]:
        """Its arguments."""
        return writer.argv(f"targets/{writer.target}", k)

    def which(self, writer: Writer) -> int | None:
        """Which of its results is there; None if there is nothing."""
        path = self.path(writer)
        if not path.exists():
            return None
        try:
            return self.results[writer.name].index(writer.content(path))
        except Exception as error:
            raise Fault("torn", f"{type(error).__name__}: {str(error)[:200]}") from None

    def left_behind(self) -> list[str]:
        """What is among the targets and is none."""
        known = {writer.target for writer in self.writers} | {"filler"}
        return sorted({path.relative_to(self.targets).parts[0] for path in self.targets.rglob("*")} - known)

    def trial(self, kind: str, attempt: Callable[[Trials, Writer], str], writer: Writer) -> str:
        """Make one trial and count what became of it; what was done is in the finding."""
        counts, what = self.counts.setdefault(kind, Counter()), ""
        try:
            what = attempt(self, writer)
            verdict = "sound"
        except Fault as fault:
            verdict, what = fault.args
        except (OSError, ValueError) as error:
            verdict, what = "unclear", repr(error)
        counts[verdict] += 1
        if verdict != "sound":
            self.findings.append({"kind": kind, "writer": writer.name, "verdict": verdict, "what": what})
            print(f"{kind}: {writer.name}: {verdict}: {what}", flush=True)
        return verdict

    def disturbed(self, writer: Writer, **what: Any) -> tuple[dict[str, Any], int | None]:
        """Let it replace what is there by the other result while something happens; its answer, and what is there.

        The target is whole, whatever has happened, and a success has replaced it.
        """
        before = self.which(writer)
        if before is None or self.rng.random() < 0.1:
            k = self.rng.randrange(2)
        else:
            k = 1 - before
        answer = self.nursery.run(self.argv(writer, k), **what)
        if answer["hung"]:
            raise Fault("hung", f"{what}: no end in {answer['seconds']:.1f} s")
        after = self.which(writer)
        if answer["status"] == 0 and after != k:
            raise Fault("lost", f"{what}: success, but what is there is {after}")
        if before is not None and after is None:
            raise Fault("lost", f"{what}: nothing is there")
        if after is not None and after not in (before, k):
            raise Fault("wrong", f"{what}: {before} became {after}")
        return answer, after

    def whole_run(self, writer: Writer) -> None:
        """Undisturbed: it succeeds, and removes what killed runs have left."""
        answer, _ = self.disturbed(writer)
        if answer["status"] != 0:
            raise Fault("wrong", f"exit code {answer['status']}: {self.said()}")
        if left := [name for name in self.left_behind() if name.rsplit(".", 3)[0] == f".{writer.target}"]:
            raise Fault("wrong", f"left behind: {left}")

    def said(self) -> str:
        """What the last child wrote to standard error."""
        return (self.folder / "err").read_text(errors="replace").strip()

    def refused(self, status: int, largest: int | None = None) -> None:
        """See that a command that could not write has said so in one line, with status 2.

        The file that its messages go to may be limited too: what it says may then be the beginning of such a line.
        """
        if largest is not None and status == 2 and len(self.said()) >= largest - 2:
            if not "rankrls: ".startswith(self.said()[:9]) or self.left_behind():
                raise Fault("wrong", f"at most {largest} bytes: {self.said()[:300]}, and left: {self.left_behind()}")
            return
        lines = [line for line in self.said().splitlines() if not line.startswith("rankrls: note: ")]
        if status != 2 or len(lines) != 1 or not lines[0].startswith("rankrls: error: ") or "internal" in lines[0]:
            raise Fault("wrong", f"exit code {status}: {self.said()[-300:]}")
        if left := self.left_behind():
            raise Fault("wrong", f"left behind: {left}")


def kill(trials: Trials, writer: Writer) -> str:
    """Kill -9 at a moment, at a step that touches a file, or soon after a file was opened to be written."""
    rng = trials.rng
    how: dict[str, Any] = {"step": rng.randrange(1, 25)}
    if rng.random() < 0.4:
        how = {"soon": rng.uniform(0, 0.01)}
    elif rng.random() < 0.4:
        how = {"signal": signal.SIGKILL, "after": rng.uniform(0, 1.1) * trials.seconds[writer.name]}
        how |= {"supervised": writer.is_command, "group": rng.random() < 0.5}
    answer, _ = trials.disturbed(writer, **how)
    if answer["status"] not in (0, -signal.SIGKILL, -signal.SIGALRM):
        raise Fault("wrong", f"{how}: exit code {answer['status']}: {trials.said()[-300:]}")
    if rng.random() < 0.2:
        trials.whole_run(writer)
    return str(how)


def interrupt(trials: Trials, writer: Writer) -> str:
    """A signal at any phase: the command ends soon, says how, and leaves no temporary."""
    rng = trials.rng
    number = rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    how = {"signal": number, "after": rng.uniform(0, 0.01), "group": rng.random() < 0.5}
    if rng.random() < 0.8:  # the others while it starts
        how["after"] = rng.uniform(0, 1.1) * trials.seconds[writer.name]
    answer, _ = trials.disturbed(writer, **how, supervised=True, limit=_SOON)
    trials.slowest = max(trials.slowest, answer["seconds"])
    if answer["status"] not in (0, 130 if number == signal.SIGINT else -number):
        raise Fault("wrong", f"{how}: exit code {answer['status']}: {trials.said()[-300:]}")
    if trials.said() not in ("", "rankrls: interrupted") or (answer["status"] == 130) != bool(trials.said()):
        raise Fault("wrong", f"{how}: exit code {answer['status']}, and it says {trials.said()[-300:]!r}")
    if left := trials.left_behind():
        raise Fault("wrong", f"{how}: left behind: {left}")
    return str(how)


def too_large(trials: Trials, writer: Writer) -> str:
    """A limit on the size of files, which is met at any byte."""
    paths = [trials.path(writer), *trials.path(writer).rglob("*")]
    size = max((path.stat().st_size for path in paths if path.is_file()), default=1)
    how = {"largest": trials.rng.randrange(size)}
    answer, _ = trials.disturbed(writer, **how)
    if answer["status"] != 0 and writer.is_command:
        trials.refused(answer["status"], how["largest"])
    if left := trials.left_behind():
        raise Fault("wrong", f"{how}: left behind: {left}")
    return str(how)


def full(trials: Trials, writer: Writer) -> str:
    """A file system of a few free pages."""
    filler = trials.targets / "filler"
    try:
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(bytes(4096)):
                pass
        os.truncate(filler, max(0, os.stat(filler).st_size - 4096 * trials.rng.randrange(14)))
        answer, _ = trials.disturbed(writer)
        if answer["status"] != 0 and writer.is_command:
            trials.refused(answer["status"])
        if left := trials.left_behind():
            raise Fault("wrong", f"left behind: {left}")
    finally:
        filler.unlink()
    return "full"


def read_only(trials: Trials, writer: Writer) -> str:
    """A file system that may not be written."""
    before = trials.which(writer)
    _mount(trials.targets, _REMOUNT | _READ_ONLY)
    try:
        answer, after = trials.disturbed(writer)
        if after != before or answer["status"] == 0:
            raise Fault("wrong", f"exit code {answer['status']}: {before} became {after}")
        if writer.is_command:
            trials.refused(answer["status"])
    finally:
        _mount(trials.targets, _REMOUNT)
    return "read only"


_STREAMS = {
    "<": ["<&-", "< /dev/null", "< /dev/full"],
    ">": ["", ">&-", "> /dev/full", "| :", "> /dev/null"],
    "2>": ["", "2>&-", "2> /dev/full", "2>&1 | :"],
}
_PRINTING = (
    ["rank", "a.rankrls", "test.txt"],
    ["predict", "a.rankrls", "many.txt"],
    ["info", "a.rankrls"],
    ["info", "none.rankrls"],
    ["evaluate", "a.rankrls", "test.txt", "--per-query"],
    ["compare", "test.txt", "a.rankrls", "b.rankrls", "--json"],
    ["--help"],
    ["fit"],
)


def streams(trials: Trials, writer: Writer) -> str:
    """The program, with standard streams that are closed, full, or have lost their reader."""
    rng = trials.rng
    writes = writer.is_command and rng.random() < 0.5
    k = rng.randrange(2)
    argv = trials.argv(writer, k) if writes else rng.choice(_PRINTING)
    argv = [word for word in argv if word != "-q"]
    given, out, err = (rng.choice(choices) for choices in _STREAMS.values())
    if "|" in out and "|" in err:
        out = ""
    # the middle part of a pipeline, whose exit code goes to a file
    command = f'"$@" {given} {err if "|" not in err else "2>&1"} {out if "|" not in out else ""}; echo $? > status'
    command = f"({command}) {'| :' if '|' in out + err else ''}"
    before = trials.which(writer)
    (trials.folder / "status").unlink(missing_ok=True)
    try:
        done = subprocess.run(
            ["sh", "-c", command, "sh", sys.executable, "-m", "rankrls", *argv],
            cwd=trials.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])},
            capture_output=True,
            text=True,
            timeout=120,
        )
    except subprocess.TimeoutExpired:
        raise Fault("hung", f"{argv[:1]} {command}") from None
    until = time.monotonic() + 60
    while not (trials.folder / "status").exists() and time.monotonic() < until:
        time.sleep(0.02)  # the last part of a pipeline has ended first
    status = int((trials.folder / "status").read_text())
    what = f"{' '.join(argv)} {given} {err} {out}: {status}: {(done.stdout + done.stderr)[-300:]!r}"
    after = trials.which(writer)
    if status not in (0, 1, 2) or "Traceback" in done.stderr or "internal" in done.stderr + done.stdout:
        raise Fault("wrong", what)
    if "rankrls: error" in done.stdout and "2>&1" not in err:
        raise Fault("wrong", f"an error on standard output: {what}")
    if writes and ((status == 0 and after != k) or (before is not None and after is None)):
        raise Fault("lost", what)
    return what


def forks(trials: Trials, writer: Writer) -> str:
    """Children forked while threads fit: they fit too, and end."""
    seed = trials.rng.randrange(10**6)
    command = [sys.executable, "-m", "attack.forks", str(seed)]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=900, check=False
    )
    if done.returncode:
        raise Fault(
            "hung" if "hung" in done.stdout else "wrong", f"seed {seed}: {done.stdout[-300:]}{done.stderr[-300:]}"
        )
    return f"seed {seed}"


KINDS: dict[str, tuple[Callable[[Trials, Writer], str], float]] = {
    "kill": (kill, 0.4),
    "signal": (interrupt, 0.25),
    "too large": (too_large, 0.05),
    "full": (full, 0.05),
    "read-only": (read_only, 0.03),
    "streams": (streams, 0.12),
    "forks": (forks, 0.1),
}
"""Trials by name, each with its share of the time."""


def _mount(folder: Path, flags: int = 0, size: int = 2 << 20) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", flags, f"size={size}".encode()):
        raise OSError(ctypes.get_errno(), "mount", str(folder))


def _may_mount(folder: Path) -> bool:
    """Give this process a view of its own of what is mounted, and a small file system in a folder."""
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform != "linux" or libc.unshare(_NEWNS) or libc.mount(b"none", b"/", None, _PRIVATE, None):
        return False
    try:
        _mount(folder)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def open_trials(
    seed: int, *, mounted: bool = False, writers: Sequence[Writer] = WRITERS
) -> Iterator[tuple[Trials, bool]]:
    """A folder for trials, ready; and whether its targets lie in a small file system of their own."""
    folder = Path(tempfile.mkdtemp(prefix="rankrls-faults-")).resolve()
    try:
        (folder / "targets").mkdir()
        mounted = mounted and _may_mount(folder / "targets")
        make_inputs(folder)
        with Nursery(folder, folder / "targets") as nursery:
            trials = Trials(folder, nursery, random.Random(seed), writers)
            trials.prepare()
            yield trials, mounted
    finally:
        if mounted:
            ctypes.CDLL(None).umount2(os.fsencode(folder / "targets"), 2)
        shutil.rmtree(folder, ignore_errors=True)


def table(counts: dict[str, Counter[str]]) -> str:
    """The closing table."""
    rows = [["fault", "trials", *VERDICTS]]
    rows += [[kind, str(c.total()), *(str(c[verdict]) for verdict in VERDICTS)] for kind, c in counts.items()]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run the trials. The exit code is 1 if one was not sound."""
    parser = argparse.ArgumentParser(prog="python -m attack.faults", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=4.0, help="of all trials together (default 4)")
    parser.add_argument("--seed", type=int, help="the same seed makes the same choices (default: a new one)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS], metavar="KIND")
    parser.add_argument("--json", type=Path, help="write the table and the findings to this file too")
    options = parser.parse_args(arguments)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with open_trials(seed, mounted=True) as (trials, mounted):
        kinds = [kind for kind in options.kinds if mounted or kind not in ("full", "read-only")]
        if kinds != options.kinds:
            print("this user may not mount a file system: no full and no read-only one", flush=True)
        whole = sum(KINDS[kind][1] for kind in kinds)
        for kind in kinds:
            attempt, share = KINDS[kind]
            writers = [w for w in trials.writers if w.is_command or kind != "signal"]
            until, number = time.monotonic() + 60 * options.minutes * share / whole, 0
            while time.monotonic() < until:
                trials.trial(kind, attempt, writers[number % len(writers)])
                number += 1
            for writer in trials.writers:  # the next write removes what killed ones have left
                trials.trial("next write", lambda trials, writer: trials.whole_run(writer) or "", writer)
            if left := trials.left_behind():
                trials.findings.append({"kind": kind, "verdict": "wrong", "what": f"left behind: {left}"})
                trials.counts[kind]["wrong"] += 1
    print(table(trials.counts))
    print(f"slowest end after a signal: {trials.slowest:.2f} s")
    if options.json:
        found = {kind: {"trials": c.total(), **{v: c[v] for v in VERDICTS}} for kind, c in trials.counts.items()}
        report = {"seed": seed, "kinds": found, "slowest": trials.slowest, "findings": trials.findings}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return int(bool(trials.findings))


if __name__ == "__main__":
    sys.exit(main())
