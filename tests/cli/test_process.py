"""The program as a process: help, imports, interrupts and closed pipes."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points

import click
import pytest

from rankrls.cli import _program, main
from rankrls.kernels import TABLE
from rankrls.metrics._table import CONVENTIONS

COMMANDS = ("fit", "cv", "predict", "rank", "explain", "evaluate", "compare", "export", "convert", "split", "info")
HEAVY = ("numpy", "scipy", "sklearn", "numba", "rich", "pandas", "joblib", "threadpoolctl")
NEEDED = "base callback exceptions externals feature_extraction pipeline preprocessing random_projection utils"
"""Parts of scikit-learn that commands on LETOR text import."""
ELSEWHERE = "matplotlib onnx dask lightgbm torch pyarrow.csv pyarrow.dataset pyarrow.parquet"
"""What is slow to import and only other commands need."""


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


STARTED = """
import gc, json, sys
from rankrls.cli import main
if sys.argv[1] == "within":
    argv = sys.argv[2:]
    status = main(argv)
else:
    del sys.argv[1]
    status = main()
found = {"modules": [*sys.modules], "searched": gc.isenabled(), "kept": gc.get_freeze_count()}
print(json.dumps({"status": status, **found}))
"""


def started(how, words):
    """What a command has done to a process: to its own, or within another program's."""
    done = python("-c", STARTED, how, *words.split())
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "words", ["fit train.txt -q -m n.rankrls", "predict m.rankrls test.txt -o s.txt", "evaluate m.rankrls test.txt"]
)
def test_a_command_imports_only_what_it_needs(words, files, works):
    works("fit", "train.txt", "-q", "-m", "m.rankrls")
    process = started("alone", words)
    assert process["status"] == 0
    modules = set(process["modules"])
    parts = {name.split(".")[1] for name in modules if re.match(r"sklearn\.[a-z]", name)}
    assert parts <= {*NEEDED.split()}, "this part of scikit-learn is slow to import"
    assert not modules & {*ELSEWHERE.split()}
    assert process["searched"], "garbage of the command is collected"
    assert process["kept"] > len(modules), "imported modules are not garbage"


def test_a_command_within_a_program_leaves_the_garbage_collector_alone(files):
    process = started("within", "convert train.txt out.csv")
    assert (process["status"], process["searched"], process["kept"]) == (0, True, 0)


def test_every_command_has_help_with_an_example(works):
    assert set(COMMANDS) == set(_program.root.commands)
    overview = works("--help").out
    for command in COMMANDS:
        assert f"  {command} " in overview
        shown = works(command, "--help").out
        assert f"Example: rankrls {command} " in " ".join(shown.split())
    assert "..." not in overview.partition("Commands:")[2], "the first line of a command's help is too long"
    assert works().out == overview


def test_fit_has_at_most_36_options_in_four_groups(works):
    shown = works("fit", "--help").out
    assert len(re.findall(r"(?m)^  -", shown)) <= 36
    assert re.findall(r"(?m)^(\w+):$", shown) == ["Data", "Model", "Choice", "Output"]
    assert len(shown.splitlines()) <= 80


def test_every_option_says_what_it_does_and_what_it_takes(works):
    for command in _program.root.commands.values():
        shown = " ".join(works(command.name, "--help").out.split())
        for option in command.params:
            if isinstance(option, click.Option):
                assert re.match(r"[A-Z].*\.$", option.help), option.opts
            if isinstance(option.type, click.Choice):
                assert f"One of {', '.join(option.type.choices)}." in shown


@pytest.mark.parametrize(
    ("flag", "known"), [("--kernel", [formula.names[0] for formula in TABLE]), ("--convention", CONVENTIONS)]
)
def test_the_help_lists_exactly_the_words_of_a_table(flag, known):
    (option,) = [each for each in _program.root.commands["fit"].params if flag in each.opts]
    listed = option.help.partition(": ")[2].partition(".")[0]
    words = re.split(", | or ", re.sub(r" \(.*?\)", "", listed))
    assert sorted(words) == sorted(known)


def test_the_installed_program_is_this_one(files):
    (program,) = entry_points(group="console_scripts", name="rankrls")
    assert program.load() is main
    bad = python("-m", "rankrls", "fit", "-q", "none.txt", "-m", "m.rankrls")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "rankrls: error: none.txt: No such file or directory\n"


STUCK = """
import sys
from rankrls.cli import main
from rankrls.cli.commands import fit as study
from rankrls.io.files import atomic_write

def fit(found):
    with atomic_write("m.rankrls") as file:
        file.write(b"half")
        print("stuck", flush=True)
        sum(range(10**10))  # one step of the interpreter, as scipy's decompositions are

study._fit = fit
sys.argv[1:] = ["fit", "train.txt", "-m", "m.rankrls"]
sys.exit(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="signals as Linux has them")
def test_an_interrupt_ends_a_command_at_once_and_keeps_the_target(files):
    (files / "m.rankrls").write_bytes(b"old")
    process = subprocess.Popen([sys.executable, "-c", STUCK], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout.readline() == "stuck\n"
    begin = time.perf_counter()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert time.perf_counter() - begin < 5.0
    assert (files / "m.rankrls").read_bytes() == b"old"


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
    from rankrls.cli.commands import fit

    def interrupted(found):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "_fit", interrupted)
    assert rankrls("fit", "train.txt", "-m", "m.rankrls").status == 130
    assert not (files / "m.rankrls").exists()


def test_a_terminal_shows_which_part_is_running(monkeypatch):
    from rankrls.cli._report import Report, Result

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal, out = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("TERM", "xterm")
    report = Report()
    with report.working("scoring", "part 3"):
        time.sleep(0.2)
    report.show(Result(text=["0.5\n"]))
    assert "scoring part 3" in terminal.getvalue()
    assert out.getvalue() == "0.5\n"


def test_nothing_that_a_terminal_obeys_is_printed(files, rankrls):
    (files / "odd\x1b[31m.txt").write_text("x\n")
    assert "\x1b" not in rankrls("fit", "odd\x1b[31m.txt", "-m", "m.rankrls").err


def redirected(how, words, **environment):
    """A command whose standard output the shell sends elsewhere."""
    command = ["sh", "-c", f'exec "$@" {how}', "sh", sys.executable, "-m", "rankrls", *words.split()]
    return subprocess.run(command, capture_output=True, timeout=120, env={**os.environ, **environment})


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
@pytest.mark.parametrize(("how", "reason"), [(">&-", b"is closed"), ("> /dev/full", b"No space left")])
def test_a_result_that_cannot_be_printed_is_an_error(how, reason, files, works):
    works("fit", "train.txt", "-m", "m.rankrls")
    for words in ("rank -q m.rankrls test.txt", "info m.rankrls --json", "--help", "fit --help", "--version", ""):
        done = redirected(how, words)
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), (words, done.stderr)
        if "help" not in words and "version" not in words:
            assert b"rankrls: error: " in done.stderr
            assert reason in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
@pytest.mark.parametrize("how", [">&-", "> /dev/full", "<&- >&-"])
def test_files_are_written_whatever_becomes_of_the_output(how, files, works):
    works("fit", "train.txt", "-q", "-m", "m.rankrls")
    works("predict", "m.rankrls", "test.txt", "-o", "m.txt")
    done = redirected(how, "predict m.rankrls test.txt -o scores.txt")
    assert (done.returncode, done.stderr) == (0, b"")
    assert (files / "scores.txt").read_text() == (files / "m.txt").read_text()
    assert redirected(how, "fit train.txt -m told.rankrls").returncode == 2
    works("predict", "told.rankrls", "test.txt", "-o", "told.txt")
    assert (files / "told.txt").read_text() == (files / "m.txt").read_text()


def printed(monkeypatch, encoding, *argv):
    """What a command prints where standard output has an encoding."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert main([*argv]) == 0
    return stream.buffer.getvalue()


@pytest.fixture
def odd(files, rows):
    """A table whose names have signs of several scripts."""
    X, y, qid = rows(1)
    lines = [f"{y[i]:g},{qid[i]},Zürich─{i},{X[i, 0]:.6f},{X[i, 1]:.6f}" for i in range(len(y))]
    (files / "odd.csv").write_text("\n".join(["label,qid,id,größe,値", *lines]), encoding="utf-8")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1", "cp437", "shift_jis", "utf-16"])
def test_every_encoding_of_the_output_prints_what_utf_8_does(encoding, odd, monkeypatch):
    fit = ["fit", "odd.csv", "--id", "id", "-m", "odd.rankrls"]
    rank = ["rank", "odd.rankrls", "odd.csv", "--id", "id", "--top", "2"]
    for argv in (fit, ["cv", *fit[1:4]], ["info", "odd.rankrls"], rank):
        expected = printed(monkeypatch, "utf-8", *argv).decode()
        found = printed(monkeypatch, encoding, *argv).decode(encoding)
        texts = [text.partition("Saved")[0].split() for text in (expected, found)]
        for word, other in zip(*texts, strict=True):
            assert other in (word, word.encode(encoding, "backslashreplace").decode(encoding))


def test_a_process_whose_output_is_not_utf_8_saves_and_prints(odd):
    done = redirected("", "fit odd.csv --id id -m odd.rankrls", PYTHONIOENCODING="cp1252")
    assert done.returncode == 0, done.stderr
    assert "größe, \\u5024" in done.stdout.decode("cp1252")
