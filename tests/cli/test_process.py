"""The program as a process: what it imports, how it ends."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from rankrls.cli import main

COMMANDS = ("fit", "cv", "predict", "evaluate", "info", "convert", "split")


def python(*argv, **options):
    return subprocess.run([sys.executable, *map(str, argv)], capture_output=True, text=True, timeout=120, **options)


HEAVY = ("numpy", "scipy", "sklearn", "numba", "rich", "pandas", "joblib", "threadpoolctl")


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["fit", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(argv):
    code = (
        "import sys; from rankrls.cli import main; status = main(sys.argv[1:]); "
        f"print('heavy:', [m for m in {HEAVY} if m in sys.modules], status)"
    )
    done = python("-c", code, *argv)
    assert done.stdout.splitlines()[-1] == "heavy: [] 0", done.stdout + done.stderr


def test_every_command_has_help_with_an_example(rankrls):
    overview = rankrls("--help")
    assert overview.status == 0
    for command in COMMANDS:
        assert f"  {command} " in overview.out
        shown = rankrls(command, "--help")
        assert shown.status == 0
        assert f"Example: rankrls {command} " in " ".join(shown.out.split())
        assert f"Usage: rankrls {command} [OPTIONS] " in shown.out
        assert not any(sign in shown.out for sign in ("{", "<path>", "<str>", "list[", "[[", "......")), shown.out
    assert "..." not in overview.out.partition("Commands:")[2], "a command's first line is too long"
    assert rankrls().out == overview.out


def test_the_installed_program_is_this_one():
    (program,) = entry_points(group="console_scripts", name="rankrls")
    assert program.load() is main


def test_as_a_module(files):
    done = python("-m", "rankrls", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("rankrls ")
    bad = python("-m", "rankrls", "fit", files / "none.txt", "-m", files / "m.rankrls")
    assert bad.returncode == 2
    assert bad.stderr == f"rankrls: error: {files / 'none.txt'}: No such file or directory\n"
    assert bad.stdout == ""


@pytest.mark.parametrize("queries", [12, 4000], ids=["less than a buffer", "more than a buffer"])
def test_the_reader_of_a_pipe_has_left(queries, files, rows, letor, rankrls):
    """``rankrls predict ... | head -n 1``: no message, neither at once nor at exit."""
    X, y, qid = rows(1, queries=queries)
    letor(files / "many.txt", X, y, qid)
    assert rankrls("fit", files / "train.txt", "-m", files / "m.rankrls", "-q").status == 0
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "rankrls", "predict", files / "m.rankrls", files / "many.txt"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=120)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_terminal_without_the_signs(files):
    """Box lines and plus-minus become something else; nothing fails."""
    command = ("-m", "rankrls", "fit", files / "train.txt", "-m", files / "m.rankrls", "--alphas", "1")
    done = python(*command, env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0, done.stderr
    assert "alpha" in done.stdout


def test_progress_does_not_touch_the_results(files, rankrls, monkeypatch):
    monkeypatch.setattr("rankrls.cli._report.Report._shows_progress", lambda self: True)
    result = rankrls("cv", files / "train.txt", "--json")
    assert result.json["command"] == "cv"
    assert result.status == 0


def test_an_interruption_while_the_program_is_imported():
    code = (
        "import sys\n"
        "class Key:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click':\n"
        "            raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Key())\n"
        "from rankrls.cli import main\n"
        "sys.exit(main(['--version']))\n"
    )
    done = python("-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "rankrls: interrupted\n")
