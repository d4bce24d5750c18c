"""``python -m tests.mutations``: plants each fault in a copy of the project, and runs the tests that must notice it.

The exit code is 1 if a fault passes its tests, if the text that it changes is not in its module exactly once, or if the
tests fail without a fault.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.mutations.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
LEFT_OUT = (".git", ".venv", ".hypothesis", "build", "dist", "demo-output", "_build", "gallery", "fuzz-findings")
SOURCE = Path("src", "rankrls")
FOUND = "found"
PASSED, FAILED = 0, 1
"""Exit codes of pytest; others say that it could not run the tests."""


class Copy:
    """A copy of the project in which faults are planted."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._passing = dict[str, bool]()
        # with the compiled loops: their files are valid for a copy of the source with the same time
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns(*LEFT_OUT))
        settings = {"PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "tests/mutations/server.py"]
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._server = subprocess.Popen(command, cwd=root, env=os.environ | settings, text=True, **pipes)

    def run(self, tests: Sequence[str], loops: Path | None = None) -> tuple[int, str]:
        """The exit code of pytest, and the first test that failed."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        arguments = ["-q", "-p", "no:cacheprovider", "-m", "not slow", *tests]
        self._server.stdin.write(json.dumps([arguments, None if loops is None else str(loops)]) + "\n")
        self._server.stdin.flush()
        code, failed = json.loads(self._server.stdout.readline())
        return code, failed

    def passes(self, test: str) -> bool:
        """Whether a test passes without a fault, with all its parameters, whose names pytest cannot always select."""
        test = test.partition("[")[0]
        if test not in self._passing:
            self._passing[test] = self.run([test])[0] == PASSED
        return self._passing[test]

    def verdict(self, fault: Fault) -> str:
        """``found`` if the tests of a fault fail with it; else what happened."""
        path = self.root / SOURCE / fault.module
        text = path.read_text()
        stamp = path.stat()
        # loops that call a changed loop are compiled with it inside: all are compiled anew
        loops = self.root / "loops" if "@compiled" in text else None
        try:
            path.write_text(text.replace(fault.before, fault.after))
            code, failed = self.run(fault.tests, loops)
        finally:
            path.write_text(text)
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
            shutil.rmtree(self.root / "loops", ignore_errors=True)
        if code == PASSED:
            return "SURVIVED"
        if code != FAILED:
            return f"its tests did not run (exit code {code})"
        return f"{FOUND} by {failed}" if self.passes(failed) else f"{failed} fails without it"


def why_not(root: Path, fault: Fault) -> str:
    """Why a fault cannot be planted; empty if it can."""
    path = root / SOURCE / fault.module
    if not path.exists():
        return "its module is gone"
    times = path.read_text().count(fault.before)
    if times == 1:
        return ""
    return "its text is not found" if times == 0 else f"its text is found {times} times"


def main(arguments: list[str] | None = None) -> int:
    """Plant the faults. The exit code is 1 if one was not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("modules", nargs="*", help="beginnings of modules, such as io or models/spec (default: all)")
    parser.add_argument("--texts", action="store_true", help="only check that the texts of all faults are there")
    options = parser.parse_args(arguments)
    chosen = [fault for fault in FAULTS if fault.module.startswith(tuple(options.modules) or ("",))]
    planted = Counter(fault.package for fault in chosen)
    found = Counter[str]()
    if options.texts:
        problems = [f"{why}: {fault}" for fault in chosen if (why := why_not(ROOT, fault))]
        print(*problems, f"{len(chosen) - len(problems)} of {len(chosen)} faults can be planted", sep="\n")
        return int(bool(problems))
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder) / "project")
        for fault in chosen:
            start = perf_counter()
            verdict = why_not(copy.root, fault) or copy.verdict(fault)
            found[fault.package] += verdict.startswith(FOUND)
            print(f"{fault}\n    {verdict} ({perf_counter() - start:.0f} s)", flush=True)
    for package, count in planted.items():
        print(f"{package}: {found[package]} of {count} found")
    print(f"all: {found.total()} of {planted.total()} found")
    return int(found != planted)


if __name__ == "__main__":
    sys.exit(main())
