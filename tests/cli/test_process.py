"""The program as a process: help, imports, interrupts and closed pipes."""

import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points

import pytest

from rankrls.cli import main

COMMANDS = ("fit", "cv", "predict", "rank", "explain", "evaluate", "compare", "export", "convert", "split", "info")
HEAVY = ("numpy", "scipy", "sklearn", "numba", "rich", "pandas", "joblib", "threadpoolctl")


def python(*argv, **options):
    return subprocess.run([sys.executable, *map(str, argv)], capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["fit", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(argv):
    code = (
        "import sys; from rankrls.cli import main; status = main(sys.argv[1:]); "
        f"print('heavy:', [m for m in {HEAVY} if m in sys.modules], status)"
    )
    done = python("-c", code, *argv)
    assert done.stdout.splitlines()[-1] == "heavy: [] 0", done.stdout + done.stderr


def test_every_command_has_help_with_an_example(works):
    overview = works("--help").out
    for command in COMMANDS:
        assert f"  {command} " in overview
        shown = works(command, "--help").out
        assert f"Example: rankrls {command} " in " ".join(shown.split())
    assert "..." not in overview.partition("Commands:")[2], "the first line of a command's help is too long"
    assert works().out == overview


def test_fit_has_at_most_35_options_in_four_groups(works):
    shown = works("fit", "--help").out
    assert len(re.findall(r"(?m)^  -", shown)) <= 35
    assert re.findall(r"(?m)^(\w+):$", shown) == ["Data", "Model", "Choice", "Output"]
    assert len(shown.splitlines()) <= 80


def test_the_installed_program_is_this_one(files):
    (program,) = entry_points(group="console_scripts", name="rankrls")
    assert program.load() is main
    bad = python("-m", "rankrls", "fit", "-q", "none.txt", "-m", "m.rankrls")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "rankrls: error: none.txt: No such file or directory\n"


STUCK = """
import sys
from rankrls.cli import _study, main
from rankrls.io.files import atomic_write

def fit(found):
    with atomic_write("m.rankrls") as file:
        file.write(b"half")
        print("stuck", flush=True)
        sum(range(10**10))  # one step of the interpreter, as scipy's decompositions are

_study._fit = fit
sys.argv[1:] = ["fit", "train.txt", "-m", "m.rankrls"]
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="signals as Linux has them")
def test_an_interrupt_ends_a_command_at_once_and_keeps_the_target(files, works):
    (files / "m.rankrls").write_bytes(b"old")
    process = subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline() == "stuck\n"
    begin = time.perf_counter()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert time.perf_counter() - begin < 5.0
    assert (files / "m.rankrls").read_bytes() == b"old"
    works("fit", "train.txt", "-m", "m.rankrls")  # removes what was left
    assert [path.name for path in files.iterdir() if "m.rankrls" in path.name] == ["m.rankrls"]


def test_a_reader_that_leaves_early_is_no_error(files, works):
    works("fit", "train.txt", "-m", "m.rankrls")
    works("predict", "m.rankrls", "test.txt", "-o", "scores.txt")
    predict, compare = "predict -q m.rankrls test.txt", "compare -q test.txt m.rankrls scores.txt"
    for words in (predict.split(), compare.split(), ["--help"], ["fit", "--help"], []):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "rankrls", *words]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120)
        os.close(write)
        assert (done.returncode, done.stderr) == (0, "")


def test_an_interruption_that_python_handles_ends_with_130(files, rankrls, monkeypatch):
    from rankrls.cli import _study

    def interrupted(found):
        raise KeyboardInterrupt

    monkeypatch.setattr(_study, "_fit", interrupted)
    assert rankrls("fit", "train.txt", "-m", "m.rankrls").status == 130
    assert not (files / "m.rankrls").exists()


def test_long_work_tells_that_it_goes_on(monkeypatch, capsys):
    from rankrls.cli._report import Report

    report = Report()
    with report.watched():
        for k in range(4):  # many short steps are long work too
            with report.working("scoring", f"part {k}"):
                time.sleep(0.85)
    assert capsys.readouterr().err == "rankrls: scoring part 3: 3 s\n"


def test_nothing_that_a_terminal_obeys_is_printed(files, rankrls):
    (files / "odd\x1b[31m.txt").write_text("x\n")
    assert "\x1b" not in rankrls("fit", "odd\x1b[31m.txt", "-m", "m.rankrls").err


def test_a_closed_output_is_no_error(files, works):
    works("fit", "train.txt", "-m", "m.rankrls")
    command = [sys.executable, "-m", "rankrls", "rank", "-q", "m.rankrls", "test.txt"]
    command = ["sh", "-c", 'exec >&-; exec "$@"', "sh", *command]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
