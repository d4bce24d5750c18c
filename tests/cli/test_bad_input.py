"""Bad input: status 2 and one clear line, no traceback, nothing written."""

import io
import pickle
import sys
import warnings

import pytest

from rankrls.cli import _training, main


@pytest.fixture
def model(files, rankrls):
    path = files / "m.rankrls"
    assert rankrls("fit", files / "train.txt", "-m", path, "-q").status == 0
    return path


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--kernel", "gaussian"], "--kernel must be one of linear, rbf"),
        (["--kernel", "precomputed"], "--kernel must be one of"),
        (["--kernel", ","], "--kernel needs a word"),
        (["--gamma", "x"], "--gamma needs a finite number; got 'x'"),
        (["--gamma", "0", "--kernel", "rbf"], "--gamma must be positive"),
        (["--gamma", "nan"], "--gamma needs a finite number"),
        (["--degree", "2.5"], "--degree needs a whole number"),
        (["--degree", "0"], "--degree must be at least 1"),
        (["--coef0", "inf"], "--coef0 needs a finite number"),
        (["--alphas", "-1"], "--alphas must not be negative; got -1"),
        (["--alphas", "1,nan"], "--alphas needs a finite number; got 'nan'"),
        (["--alphas", "1:2"], "lo:hi:n"),
        (["--ties", "maybe"], "--ties must be one of include, exclude"),
        (["--balance", "rows"], "--balance must be one of pairs, examples, queries"),
        (["--regression-weight", "1.5"], "--regression-weight must be a number from 0 to 1"),
        (["--regression-weight", "nan"], "--regression-weight must be a number from 0 to 1"),
        (["--regression-weight", "x"], "--regression-weight"),
        (["--scale", "robust"], "--scale must be one of none, minmax, standard"),
        (["--metric", "ngcd@10"], "unknown measure 'ngcd@10'"),
        (["--metrics", "map,foo"], "unknown measure 'foo'"),
        (["--metric", "p"], "needs a depth"),
        (["--convention", "trek"], "convention must be one of 'letor'"),
        (["--rule", "worst"], "--rule must be one of best, one_se"),
        (["--cv", "1"], "--cv must be at least 2"),
        (["--cv", "x"], "--cv"),
        (["--cv", "99"], "99"),
        (["--cv", "3", "--vali", "vali.txt"], "--vali and --cv exclude each other"),
        (["--threads", "0"], "--threads must be at least 1"),
        (["--features", "0"], "--features must be at least 1"),
        (["--features", "2"], "train.txt:1: "),
        (["--verbose", "--quiet"], "--verbose and --quiet exclude each other"),
        (["--no-such-option"], "No such option"),
        (["--vali", "none.txt"], "none.txt: No such file or directory"),
        (["--test", "none.txt"], "none.txt: No such file or directory"),
        (["--test", "."], "Is a directory"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_options(options, match, files, refused, monkeypatch):
    monkeypatch.chdir(files)
    refused("fit", "train.txt", "-m", "m.rankrls", *options, match=match)
    assert sorted(p.name for p in files.iterdir()) == ["test.txt", "train.txt", "vali.txt"]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", ": the file is empty"),
        (b"\n\n# only a comment\n", "bad.txt"),
        (b"1 qid:1 1:1\n0 qid:1 1:x\n", "bad.txt:2: "),
        (b"1 qid:1 1:1\n0 qid:1 1:nan\n", "bad.txt:2: "),
        (b"1 qid:1 1:1\ninf qid:1 1:1\n", "bad.txt:2: "),
        (b"1 qid:1 1:1\n0 1:2\n", "bad.txt:2: "),
        (b"1 1:1\n0 1:2\n", "no line has a qid. Pass --global"),
        (b"1 qid:1 1:1 1:2\n", "bad.txt:1: "),
        (b"hello world\n", "bad.txt:1: "),
        (b"\x1f\x8b\x08garbage", "bad.txt"),
        (b"\x00\x01\x02\xff", "bad.txt:1: "),
        (b"1 qid:1 1:1\n1 qid:1 1:2\n", "Nothing to compare"),
        (b"1 qid:1 1:1\n0 qid:2 1:2\n", "Nothing to compare"),
    ],
    ids=repr,
)
def test_training_files(content, match, tmp_path, refused):
    (tmp_path / "bad.txt").write_bytes(content)
    refused("fit", tmp_path / "bad.txt", "-m", tmp_path / "m.rankrls", match=match)
    refused("cv", tmp_path / "bad.txt", match=match)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.txt"]


def test_files_that_cannot_be_read(files, model, refused):
    for command in (("fit", "-m", files / "new.rankrls"), ("cv",), ("predict", model), ("evaluate", model)):
        refused(command[0], *command[1:], files / "none.txt", match=f"{files / 'none.txt'}: No such file or directory")
        refused(command[0], *command[1:], files, match=f"{files}: Is a directory")
    for command in (("predict", files / "no.rankrls", files / "test.txt"), ("info", files / "no.rankrls")):
        refused(*command, match="no.rankrls: No such file or directory")
    refused("info", files, match="Is a directory")


def test_models_that_are_none(files, refused):
    bad = files / "bad.rankrls"
    for content in (b"", b"text", pickle.dumps([1]), b"PK\x03\x04 and more"):
        bad.write_bytes(content)
        refused("predict", bad, files / "test.txt", match="bad.rankrls: ")
        refused("evaluate", bad, files / "test.txt", match="bad.rankrls: ")
        refused("info", bad, match="bad.rankrls: ")


def test_targets_that_cannot_be_written_are_refused_before_any_work(files, model, refused, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("work was done")

    monkeypatch.setattr("rankrls.cli._training.read_data", never)
    refused("fit", files / "train.txt", "-m", files, match="Is a directory")
    refused("fit", files / "train.txt", "-m", files / "no" / "m.rankrls", match="There is no folder")
    monkeypatch.setattr("rankrls.persistence._files.load", never)
    refused("predict", model, files / "test.txt", "-o", files / "no" / "s.txt", match="There is no folder")
    refused("predict", model, files / "test.txt", "-o", files, match="Is a directory")


@pytest.mark.parametrize("what", ["model", "scores"])
def test_a_full_disk_leaves_the_old_file(what, files, model, refused):
    resource = pytest.importorskip("resource", reason="limits on the size of a file are a POSIX matter")
    target = files / "target"
    target.write_text("old")
    command = {
        "model": ("fit", files / "train.txt", "-m", target),
        "scores": ("predict", model, files / "test.txt", "-o", target),
    }[what]
    before = sorted(files.iterdir())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (700, hard))
    try:
        refused(*command, match=f"{target}: File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read_text() == "old"
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("1\n2\n", "has 2 scores, but "),
        ("", "the file holds no scores"),
        ("1\n" * 95 + "x\n", "s.txt:96: a score must be one finite number; got 'x'"),
        ("1\n" * 7 + "nan\n" + "1\n" * 88, "s.txt:8: a score must be one finite number"),
        ("1\n" * 3 + "\n" + "1\n" * 92, "s.txt:4: a score must be one finite number; got ''"),
        ("1 2\n" * 96, "s.txt:1: a score must be one finite number; got '1 2'"),
        ("1\n1_000\n" + "1\n" * 94, "s.txt:2: a score must be one finite number; got '1_000'"),
        ("1\n\u0661\n" + "1\n" * 94, "s.txt:2: a score must be one finite number"),
        ("1\n1\f2\n" + "1\n" * 93, "s.txt:2: a score must be one finite number"),
        ("1\n1\u20282\n" + "1\n" * 93, "s.txt:2: a score must be one finite number"),
    ],
    ids=["too few", "empty", "word", "nan", "blank", "columns", "underscore", "digits", "form feed", "separator"],
)
def test_scores(content, match, files, refused):
    (files / "s.txt").write_text(content)
    refused("evaluate", "--scores", files / "s.txt", files / "test.txt", match=match)


def test_evaluate_needs_the_right_files(files, model, refused):
    refused("evaluate", files / "test.txt", match="evaluate needs MODEL and DATA")
    refused("evaluate", match="Missing argument")
    refused("evaluate", "--scores", files / "s.txt", model, files / "test.txt", match="needs DATA only")
    refused("evaluate", model, files / "test.txt", "--metrics", "ndcg@x", match="unknown measure")
    refused("evaluate", model, files / "test.txt", "--convention", "x", match="convention must be one of")


def test_labels_that_a_measure_cannot_judge(files, rows, letor, refused):
    X, y, qid = rows(1)
    letor(files / "negative.txt", X, y - 5, qid)
    refused("cv", files / "negative.txt", "--metric", "ndcg@3", match="no gain for the negative label")


def test_commands_that_are_none(refused):
    line = refused("train", "x", match="No such command 'train'")
    assert "rankrls --help" in line
    assert "rankrls fit --help" in refused("fit", "x", match="Missing option")


def failing(error):
    def fail(*args, **kwargs):
        raise error

    return fail


def test_interruption(files, rankrls, monkeypatch):
    monkeypatch.setattr("rankrls.cli._training.train", failing(KeyboardInterrupt()))
    result = rankrls("fit", files / "train.txt", "-m", files / "m.rankrls")
    assert (result.status, result.out, result.err) == (130, "", "rankrls: interrupted\n")
    assert not (files / "m.rankrls").exists()


def test_what_is_no_bad_input(files, rankrls, monkeypatch):
    monkeypatch.setattr("rankrls.cli._training.train", failing(MemoryError()))
    result = rankrls("fit", files / "train.txt", "-m", files / "m.rankrls")
    assert result.status == 1
    assert result.err.startswith("rankrls: error: not enough memory")
    monkeypatch.setattr("rankrls.cli._training.train", failing(ZeroDivisionError("a bug")))
    result = rankrls("fit", files / "train.txt", "-m", files / "m.rankrls")
    assert result.status == 1
    assert result.err.startswith("rankrls: error: internal error: ZeroDivisionError: a bug")
    assert len(result.err.splitlines()) == 1


def test_debugging(rankrls, monkeypatch):
    shown = rankrls("--debug", "info", "/nowhere/m.rankrls")
    assert shown.status == 2
    assert "Traceback" in shown.err
    assert shown.err.splitlines()[-1] == "rankrls: error: /nowhere/m.rankrls: No such file or directory"
    assert "Traceback" in rankrls("info", "/nowhere/m.rankrls", "--debug").err
    assert "Traceback" not in rankrls("info", "/nowhere/m.rankrls").err
    monkeypatch.setenv("RANKRLS_DEBUG", "1")
    assert "Traceback" in rankrls("info", "/nowhere/m.rankrls").err
    monkeypatch.setenv("RANKRLS_DEBUG", "0")
    assert "Traceback" not in rankrls("info", "/nowhere/m.rankrls").err


def test_warnings_are_notes(files, rankrls, monkeypatch):
    original = _training.plan

    def warns(*args, **kwargs):
        for _ in range(2):
            warnings.warn("something\nodd", RuntimeWarning, stacklevel=1)
        warnings.warn("old style", DeprecationWarning, stacklevel=1)
        return original(*args, **kwargs)

    monkeypatch.setattr(_training, "plan", warns)
    result = rankrls("cv", files / "train.txt", "--json")
    assert result.status == 0
    assert result.err == "rankrls: note: something odd\n"
    assert result.json["command"] == "cv"


def test_the_reader_may_leave(model, files, monkeypatch, capsys):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stdout", Closed())
    monkeypatch.setattr(sys, "__stdout__", None)
    monkeypatch.setattr("os.dup2", lambda *a: None)
    assert main(["predict", str(model), str(files / "test.txt")]) == 1
    assert capsys.readouterr().err == ""
