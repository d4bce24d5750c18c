"""What a terminal obeys never reaches it from a file, and closed streams are no fault of the program."""

import os
import subprocess
import sys

import pytest
from tests.refusals import Refusal

from rankrls.cli._report import printable
from rankrls.cli._supervisor import INTERRUPTED, interrupted

EVIL = "a\x1b]0;owned\x07\x9b31m\u202e"


@pytest.fixture
def evil(files, rankrls):
    """A table and a model whose names hold escape sequences, some of one byte as C1 has them."""
    lines = [f"{k * k % 3},{EVIL}{k // 6},{EVIL}{k},{k * 7 % 11},{k * 5 % 13}\n" for k in range(48)]
    (files / "evil.csv").write_text(f"label,qid,docid,{EVIL}b,c\n" + "".join(lines), encoding="utf-8")
    assert rankrls("fit", files / "evil.csv", "-m", files / "m.rankrls", "-q", "--alphas", "1,2").status == 0
    return files


def test_names_are_printed_without_what_a_terminal_obeys(evil, rankrls):
    data, model = evil / "evil.csv", evil / "m.rankrls"
    scores = evil / f"{EVIL}.txt"
    assert rankrls("predict", model, data, "-o", scores).status == 0
    for argv in (
        ("info", model),
        ("explain", model, data, f"{EVIL}0", f"{EVIL}1"),
        ("rank", model, data),
        ("evaluate", model, data, "--per-query"),
        ("compare", data, model, scores),
        ("fit", data, "-m", evil / f"{EVIL}.rankrls", "--verbose"),
        ("convert", data, evil / "out.txt"),
        ("split", data, evil / EVIL),
        ("explain", model, data, EVIL, f"{EVIL}1"),
    ):
        result = rankrls(*argv)
        shown = (result.out + result.err).replace("\n", "").replace("\t", "")
        assert shown.isprintable(), (argv[0], shown)
        assert "owned" in shown or argv[0] == "info"


def test_printable():
    assert printable("é ± x\ty\n", "\t\n") == "é ± x\ty\n"
    assert printable("\x1b[31m\x9b\x7f\udcff\n") == "\\x1b[31m\\x9b\\x7f\\udcff\\n"


def run(command, *argv, stdin=""):
    line = 'exec "$0" -m rankrls "$@" ' + command
    return subprocess.run(
        ["sh", "-c", line, sys.executable, *map(str, argv)], capture_output=True, text=True, timeout=300
    )


def test_closed_standard_output_is_an_error_of_its_own(files):
    done = run(">&-", "fit", files / "train.txt", "-m", files / "m.rankrls", "--alphas", "1")
    assert done.returncode == 2
    assert done.stderr.startswith("rankrls: error: standard output: ")
    assert (files / "m.rankrls").read_bytes()[:2] == b"PK"  # nothing printed went into it
    done = run(">&-", "fit", files / "train.txt", "-m", files / "m.rankrls", "--alphas", "1", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is full")
def test_full_standard_output_is_named(files):
    done = run("> /dev/full", "cv", files / "train.txt", "--alphas", "1")
    assert (done.returncode, done.stderr) == (2, "rankrls: error: standard output: No space left on device\n")


def test_closed_standard_error_keeps_errors_from_standard_output(files):
    done = run("2>&-", "info", files / "none.rankrls")
    assert (done.returncode, done.stdout) == (2, "")


def test_an_interruption_without_standard_error_says_nothing(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", None)
    assert interrupted() == INTERRUPTED
    assert capsys.readouterr().out == ""


def test_end_of_file_is_no_interruption(files, rankrls, monkeypatch):
    """As a damaged cache of compiled code may raise it."""

    def fail(*args):
        raise EOFError("Ran out of input")

    monkeypatch.setattr("rankrls.cli._training.train", fail)
    result = rankrls("fit", files / "train.txt", "-m", files / "m.rankrls")
    assert result.status == 1
    assert "EOFError" in result.err
    assert "interrupted" not in result.err


def test_no_memory_says_something(files, rankrls, monkeypatch):
    def fail(*args):
        raise MemoryError

    monkeypatch.setattr("rankrls.cli._training.train", fail)
    result = rankrls("fit", files / "train.txt", "-m", files / "m.rankrls")
    assert result.status == 1
    assert "not enough memory: the data" in result.err


def test_a_page_about_a_file_whose_name_is_not_utf8(files, rankrls):
    rankrls("fit", files / "train.txt", "-m", files / "a.rankrls", "-q", "--alphas", "1")
    rankrls("fit", files / "train.txt", "-m", files / "b.rankrls", "-q", "--alphas", "100")
    data = files / "caf\udce9.txt"
    try:
        data.write_bytes((files / "test.txt").read_bytes())
    except (OSError, UnicodeEncodeError):
        pytest.skip("the file system takes UTF-8 names only")
    result = rankrls("compare", data, files / "a.rankrls", files / "b.rankrls", "--html", files / "page.html")
    assert result.status == 0, result.err
    assert "Rankings of caf\\udce9.txt" in (files / "page.html").read_text("utf-8")


def test_threads_that_are_no_number(files, rankrls, refused, monkeypatch):
    monkeypatch.setenv("RANKRLS_NUM_THREADS", "many")
    refused("cv", files / "train.txt", "--alphas", "1", Refusal("RANKRLS_NUM_THREADS is 'many'"))
    assert rankrls("cv", files / "train.txt", "--alphas", "1", "--threads", "1").status == 0
