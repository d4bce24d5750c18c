"""``python -m fuzzing.faults``: commands that are killed or interrupted, full or read-only disks, closed pipes.

Each trial runs a command that replaces what an earlier one has written, in a forked child, and then looks at the
target: it is the old one or the new one as a whole, a success has replaced it, and whoever could not write says so in
one line with exit code 2. Only killed runs leave temporary files and folders.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import itertools
import json
import os
import random
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

STEPS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.scandir")
"""What a child may be killed at: each step that touches the folder that it writes to."""
REMOVALS = ("os.remove", "os.rmdir")
"""Steps of which a folder is removed; they have names without the folder."""

_LIBC = ctypes.CDLL(None)
_NEW_MOUNTS, _PRIVATE, _REMOUNT, _READ_ONLY, _PAGE = 0x20000, (1 << 18) | 16384, 32, 1, 4096
_STREAMS = {"closed": "exec >&-", "full": "exec > /dev/full", "unread": "exec > >(:)"}
_ENCODINGS = ("ascii", "latin-1", "cp1252", "cp437", "koi8-r", "shift_jis", "gb18030", "utf-16")
_PRINTING = (
    ["rank", "a.rankrls", "test.txt"],
    ["rank", "odd.rankrls", "odd.csv", "--id", "id"],
    ["evaluate", "odd.rankrls", "odd.csv", "--id", "id"],
    ["info", "odd.rankrls"],
    ["--help"],
)
"""Commands whose result is what they print."""
_LIMIT = 60.0
_SOON = 10.0
_DATA, _MODELS = ("train.txt", "test.txt"), ("a.rankrls", "b.rankrls")


@dataclass(frozen=True)
class Writer:
    """A command that writes a file or a folder; ``argv`` gives its arguments for a target and one of two results.

    ``prints`` says whether it also prints results, which standard output can lose.
    """

    target: str
    argv: Callable[[str, int], list[str]]
    prints: bool = False


WRITERS = (
    Writer("m.rankrls", lambda to, k: ["fit", "train.txt", "-q", "-m", to, "--alphas", f"{k + 1}"]),
    Writer("c.csv.gz", lambda to, k: ["convert", _DATA[k], to, "-q"]),
    Writer("c.parquet", lambda to, k: ["convert", _DATA[k], to, "-q"]),
    Writer("s.txt", lambda to, k: ["predict", _MODELS[k], "test.txt", "-q", "-o", to]),
    Writer("page.html", lambda to, k: ["compare", _DATA[k], *_MODELS, "-q", "--html", to], True),
    Writer("parts", lambda to, k: ["split", _DATA[k], to, "-q", "--folds", "3", "--force"]),
    Writer("shards", lambda to, k: ["convert", _DATA[k], to, "-q", "--rows-per-file", "100", "--force"]),
)


def _mount(where: bytes, flags: int = 0) -> bool:
    return _LIBC.mount(b"tmpfs", where, b"tmpfs", flags, b"" if flags else b"size=2m") == 0


class Fault(Exception):  # noqa: N818
    """A trial that is not sound."""


class Trials:
    """A folder with what the writers read and write; the current folder of the process, which must have no threads."""

    def __init__(self, folder: Path) -> None:
        from rankrls import RankRLS, save
        from rankrls.io import save_letor

        os.chdir(folder)
        os.mkdir("targets")
        # a small file system of its own, if this user may mount one
        self.disk = _LIBC.unshare(_NEW_MOUNTS) == 0 and _mount(b"/", _PRIVATE) and _mount(b"targets")
        rng = np.random.default_rng(0)
        for start, name in enumerate(_DATA):
            X, qid = rng.normal(size=(300, 6)), np.repeat(1000 * start + np.arange(30), 10)
            y = np.digitize(X[:, 0] + rng.normal(size=300), [0.0, 1.0])
            save_letor(name, X, y, qid)
            save(RankRLS(10.0**start).fit(X, y, qid=qid), _MODELS[start])
        names = ["größe", "値", "цена ─", "d", "e", "ﬁ"]
        save(RankRLS(1.0).fit(X, y, qid=qid), "odd.rankrls", provenance={"columns": {"label": "label", "qid": "qid"}})
        rows = [f"{y[i]},{qid[i]},Zürich 東{i},{','.join(map(repr, X[i].tolist()))}" for i in range(30)]
        Path("odd.csv").write_text("\n".join([f"label,qid,id,{','.join(names)}", *rows]), encoding="utf-8")
        self.results: dict[Writer, list[Any]] = {}
        self.seconds = 1.0

    def prepare(self, writer: Writer) -> None:
        """Run a writer both ways, undisturbed."""
        found = []
        for k in (0, 1):
            begin = time.monotonic()
            if self.run(writer, k) != 0:
                raise Fault(f"{writer.target} does not run: {Path('err').read_text()}")
            self.seconds = time.monotonic() - begin
            found.append(content(writer))
        if found[0] == found[1]:
            raise Fault(f"{writer.target}: the two results are the same")
        self.results[writer] = found

    def run(self, writer: Writer, k: int, *, step: int = 0, largest: int = 0, send: int = 0, after: float = 0.0) -> int:
        """The exit code of a command, negative for the signal it died of; what it says goes to the file ``err``."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
            child = os.fork()
        if child == 0:
            os._exit(_child(writer.argv(f"targets/{writer.target}", k), step, largest))
        until, limit = time.monotonic() + after, _LIMIT
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if send and time.monotonic() > until:
                os.kill(child, send)
                send, limit = 0, _SOON
                until = time.monotonic()
            if not send and time.monotonic() > until + limit:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                raise Fault("no end")
            time.sleep(0.002)

    def disturbed(self, writer: Writer, **how: Any) -> int:
        """Replace what is there by the other result while something happens; the exit code."""
        if writer not in self.results:
            self.prepare(writer)
        before = self.results[writer].index(content(writer))
        status = self.run(writer, 1 - before, **how)
        try:
            after = self.results[writer].index(content(writer))
        except (ValueError, OSError) as error:
            raise Fault(f"the target is torn: {error!r:.100}") from None
        if status == 0 and after == before:
            raise Fault("a success has left the old target")
        return status

    def left_behind(self) -> list[str]:
        """What is among the targets and is none."""
        return sorted({path.name for path in Path("targets").iterdir()} - {writer.target for writer in WRITERS})


def _child(argv: list[str], step: int, largest: int) -> int:
    """Run a command; kill it at the so-many-th step, or limit the size of files."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    if largest:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    left = step

    def count(event: str, arguments: Any) -> None:
        nonlocal left
        if event in STEPS and ("targets" in str(arguments[0]) or event in REMOVALS):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    if step:
        sys.addaudithook(count)
    try:
        from rankrls.cli import main

        return int(main(argv) or 0)
    except SystemExit as end:
        return int(end.code or 0)
    except KeyboardInterrupt:
        return 130
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def content(writer: Writer) -> Any:
    """What tells two results from each other and from anything else."""
    path = Path("targets", writer.target)
    if not path.exists():  # the next writer renames back what was killed between its two renames
        path = path.with_name(f".{writer.target}.rankrls-old")
    if path.is_dir():
        files = (file for file in path.rglob("*") if file.is_file())
        return {file.relative_to(path).as_posix(): file.read_bytes() for file in files}
    if path.suffix == ".rankrls":
        from rankrls import load

        return load(path).coef_.tolist()
    if path.suffix == ".html":
        text = path.read_text()
        if not text.rstrip().endswith("</html>"):
            raise ValueError("the page has no end")
        return text.partition("<title>")[2].partition("</title>")[0]  # names the data; the page has its date too
    return path.read_bytes()


def kill(trials: Trials, writer: Writer, rng: random.Random) -> None:
    """Kill -9 at a step that touches the folder, or at any moment."""
    how: dict[str, Any] = {"step": rng.randrange(1, 120)}
    if rng.random() < 0.5:
        how = {"send": signal.SIGKILL, "after": rng.uniform(0, 1.1) * trials.seconds}
    if trials.disturbed(writer, **how) not in (0, -signal.SIGKILL):
        raise Fault(f"{how}: {Path('err').read_text()[-300:]}")
    for left in Path("targets").glob(".*.tmp*"):
        shutil.rmtree(left) if left.is_dir() else left.unlink()
    if trials.disturbed(writer) != 0 or any(writer.target in name for name in trials.left_behind()):
        raise Fault(f"the next run: {Path('err').read_text()[-300:]}, and left: {trials.left_behind()}")


def interrupt(trials: Trials, writer: Writer, rng: random.Random) -> None:
    """Control-C, or an end from outside, at any moment."""
    number = rng.choice([signal.SIGINT, signal.SIGTERM])
    status = trials.disturbed(writer, send=number, after=rng.uniform(0, 1.1) * trials.seconds)
    if status not in (0, 130, -number):
        raise Fault(f"exit code {status}: {Path('err').read_text()[-300:]}")


def too_large(trials: Trials, writer: Writer, rng: random.Random) -> None:
    """A limit on the size of files, which is met at any byte."""
    target = Path("targets", writer.target)
    files = [*target.rglob("*.*")] if target.is_dir() else [target]
    size = max(file.stat().st_size for file in files)
    _clean(trials, writer, trials.disturbed(writer, largest=rng.randrange(200, max(201, size))))


def full(trials: Trials, writer: Writer, rng: random.Random) -> None:
    """A disk of a few free pages."""
    filler = Path("targets", "filler")
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(_PAGE)):
            pass
    os.truncate(filler, max(0, filler.stat().st_size - _PAGE * rng.randrange(14)))
    try:
        status = trials.disturbed(writer)
    finally:
        filler.unlink()
    _clean(trials, writer, status)


def read_only(trials: Trials, writer: Writer, rng: random.Random) -> None:
    """A disk that may not be written."""
    _mount(b"targets", _REMOUNT | _READ_ONLY)
    try:
        status = trials.disturbed(writer)
    finally:
        _mount(b"targets", _REMOUNT)
    _clean(trials, writer, status)
    if status != 2:
        raise Fault(f"exit code {status}")


def streams(trials: Trials, writer: Writer, rng: random.Random) -> None:
    """Standard output is closed, full, or read by nobody: an error if results are lost, and files are written."""
    printing = rng.random() < 0.7
    argv = rng.choice(_PRINTING) if printing else writer.argv(f"streams-{writer.target}", 0)
    kind = rng.choice([*_STREAMS])
    done = _process(argv, redirect=_STREAMS[kind])
    wanted = 2 if (printing or writer.prints) and kind != "unread" else 0
    printed = done.stderr.decode()
    if done.returncode != wanted or "Traceback" in printed or "internal" in printed:
        raise Fault(f"{kind}: {argv}: exit code {done.returncode}: {printed[-300:]}")


def encodings(trials: Trials, writer: Writer, rng: random.Random) -> None:
    """Standard output has another encoding: what is printed in UTF-8 is printed, with escapes for other signs."""
    argv, encoding = rng.choice(_PRINTING), rng.choice(_ENCODINGS)
    expected = _process(argv, encoding="utf-8").stdout.decode()
    done = _process(argv, encoding=encoding)
    if done.returncode != 0:
        raise Fault(f"{encoding}: {argv}: exit code {done.returncode}: {done.stderr.decode()[-300:]}")
    found = done.stdout.decode(encoding)
    for word, other in itertools.zip_longest(expected.split(), found.split(), fillvalue=""):
        if other not in (word, word.encode(encoding, "backslashreplace").decode(encoding)):
            raise Fault(f"{encoding}: {argv}: {other!r} in place of {word!r}")


def _process(argv: list[str], *, redirect: str = ":", encoding: str = "utf-8") -> subprocess.CompletedProcess[bytes]:
    """A command as a shell runs it."""
    command = ["bash", "-c", f'{redirect}; exec "$@"', "bash", sys.executable, "-m", "rankrls", *argv]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    return subprocess.run(command, capture_output=True, timeout=_LIMIT, check=False, env=environment)


def _clean(trials: Trials, writer: Writer, status: int) -> None:
    """A command that could not write has printed an error, and leaves nothing behind."""
    printed = Path("err").read_text()
    if status not in (0, 2) or (status == 2 and ("Traceback" in printed or "internal" in printed)):
        raise Fault(f"exit code {status}: {printed[-300:]}")
    if any(writer.target in name for name in trials.left_behind()):
        raise Fault(f"left behind: {trials.left_behind()}")


KINDS = {"kill": kill, "interrupt": interrupt, "too large": too_large, "streams": streams, "encodings": encodings}
ON_A_DISK = {"full": full, "read only": read_only}


def main(arguments: list[str] | None = None) -> int:
    """Run trials. The exit code is 1 if one of them was not sound."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, help="the same seed gives the same trials (default: a new one)")
    parser.add_argument("--json", type=Path, help="write what became of the trials to this file too")
    options = parser.parse_args(arguments)
    target = options.json and options.json.absolute()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    os.environ |= {"RANKRLS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    rng, counts = random.Random(seed), Counter[tuple[str, str]]()
    with tempfile.TemporaryDirectory() as folder:
        trials, back = Trials(Path(folder)), os.getcwd()
        for writer in WRITERS:
            trials.prepare(writer)
        kinds = [*KINDS.items(), *(ON_A_DISK.items() if trials.disk else ())]
        until = time.monotonic() + 60.0 * options.minutes
        while time.monotonic() < until:
            (kind, attempt), writer = rng.choice(kinds), rng.choice(WRITERS)
            try:
                attempt(trials, writer, rng)
                counts[kind, "sound"] += 1
            except Fault as fault:
                counts[kind, "wrong"] += 1
                print(f"{kind}: {writer.target}: {fault}", flush=True)
                trials.prepare(writer)
        if trials.disk:
            _LIBC.umount(b"targets")
        os.chdir(back)
    if target:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps({f"{kind}: {verdict}": n for (kind, verdict), n in counts.items()}) + "\n")
    print(*(f"{kind}: {n} {verdict}" for (kind, verdict), n in sorted(counts.items())), sep="\n")
    return int(any(verdict == "wrong" for _, verdict in counts))


if __name__ == "__main__":
    sys.exit(main())
