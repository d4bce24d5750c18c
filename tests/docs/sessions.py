"""Runs what pages show: interactive Python, and commands with their output."""

from __future__ import annotations

import doctest
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from rankrls.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_doctests(page: str) -> doctest.TestResults:
    report = StringIO()
    with redirect_stdout(report):
        found = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert found.failed == 0, report.getvalue()
    return found


def console_sessions(text: str) -> list[tuple[str, str]]:
    """Commands of ``.. code-block:: console`` blocks, each with the output shown."""
    sessions = []
    for block in re.findall(r"\.\. code-block:: console\n\n((?:   .*\n|\n)+)", text + "\n"):
        lines = [line[3:] for line in re.sub(r" \\\n +", " ", block).rstrip("\n").split("\n")]
        for line in lines:
            if line.startswith("$ "):
                sessions.append((line[2:], ""))
            else:
                command, output = sessions[-1]
                sessions[-1] = (command, output + line + "\n")
    return sessions


def run_command(command: str) -> str:
    """What a command prints, run in this process; :mod:`tests.cli.test_process` starts the program itself."""
    words = shlex.split(command)
    assert words[0] == "rankrls"
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(words[1:])
    assert (status == 0) != ("error:" in err.getvalue()), err.getvalue()
    return out.getvalue() + err.getvalue()


def assert_shown(shown: str, got: str) -> None:
    checker = doctest.OutputChecker()
    shown = re.sub(r"(?m)^\s*\.\.\.\s*$", "...", shown)
    assert checker.check_output(shown, got, FLAGS), f"shown:\n{shown}\ngot:\n{got}"
