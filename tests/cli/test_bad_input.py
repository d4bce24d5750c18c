"""Bad input: status 2 and one clear line, no traceback, nothing written."""

import io
import pickle
import sys
import warnings

import pytest
from tests.refusals import Refusal

from rankrls.cli import _training, main


@pytest.fixture
def model(files, rankrls):
    path = files / "m.rankrls"
    assert rankrls("fit", files / "train.txt", "-m", path, "-q").status == 0
    return path


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (["--kernel", "gaussian"], Refusal("--kernel", "linear, rbf", parameter="kernel")),
        (["--kernel", "precomputed"], Refusal("--kernel", "one of", parameter="kernel")),
        (["--kernel", ","], Refusal("--kernel", "a word", parameter="kernel")),
        (["--gamma", "x"], Refusal("--gamma", "finite number", "'x'", parameter="gamma")),
        (["--gamma", "0", "--kernel", "rbf"], Refusal("--gamma", "positive", parameter="gamma")),
        (["--gamma", "nan"], Refusal("--gamma", "a finite number", parameter="gamma")),
        (["--degree", "2.5"], Refusal("--degree", "a whole number", parameter="degree")),
        (["--degree", "0"], Refusal("--degree", "at least 1", parameter="degree")),
        (["--coef0", "inf"], Refusal("--coef0", "a finite number", parameter="coef0")),
        (["--alphas", "-1"], Refusal("--alphas", "negative", parameter="alphas")),
        (["--alphas", "1,nan"], Refusal("--alphas", "finite number", "'nan'", parameter="alphas")),
        (["--alphas", "1:2"], Refusal("lo:hi:n")),
        (["--ties", "maybe"], Refusal("--ties", "include, exclude", parameter="ties")),
        (["--balance", "rows"], Refusal("--balance", "pairs, examples, queries", parameter="balance")),
        (["--regression-weight", "1.5"], Refusal("--regression-weight", "from 0 to 1", parameter="regression_weight")),
        (["--regression-weight", "nan"], Refusal("--regression-weight", "from 0 to 1", parameter="regression_weight")),
        (["--regression-weight", "x"], Refusal("--regression-weight", kind=Exception)),
        (["--scale", "robust"], Refusal("--scale", "none, minmax, standard", parameter="scale")),
        (["--metric", "ngcd@10"], Refusal("unknown measure 'ngcd@10'", parameter="measure")),
        (["--metrics", "map,foo"], Refusal("unknown measure 'foo'", parameter="measure")),
        (["--metric", "p"], Refusal("a depth", parameter="k")),
        (["--convention", "trek"], Refusal("convention", "'letor'", parameter="convention")),
        (["--rule", "worst"], Refusal("--rule", "best, one_se", parameter="rule")),
        (["--cv", "1"], Refusal("--cv", "at least 2", parameter="cv")),
        (["--cv", "x"], Refusal("--cv", kind=Exception)),
        (["--cv", "99"], Refusal("99", parameter="cv")),
        (["--cv", "3", "--vali", "vali.txt"], Refusal("--vali", "--cv", "exclude", parameter="vali")),
        (["--threads", "0"], Refusal("--threads", "at least 1", parameter="threads")),
        (["--features", "0"], Refusal("--features", "at least 1", parameter="features")),
        (["--features", "2"], Refusal(parameter="n_features", file="train.txt", line=1)),
        (["--verbose", "--quiet"], Refusal("--verbose", "--quiet", "exclude", parameter="verbose")),
        (["--no-such-option"], Refusal("No such option", kind=Exception)),
        (["--vali", "none.txt"], Refusal("none.txt: No such file", kind=OSError)),
        (["--test", "none.txt"], Refusal("none.txt: No such file", kind=OSError)),
        (["--test", "."], Refusal("Is a directory", kind=OSError)),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_options(options, refusal, files, refused, monkeypatch):
    monkeypatch.chdir(files)
    refused("fit", "train.txt", "-m", "m.rankrls", *options, refusal)
    assert sorted(p.name for p in files.iterdir()) == ["test.txt", "train.txt", "vali.txt"]


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        (b"", Refusal("empty")),
        (b"\n\n# only a comment\n", Refusal(file="bad.txt")),
        (b"1 qid:1 1:1\n0 qid:1 1:x\n", Refusal(file="bad.txt", line=2)),
        (b"1 qid:1 1:1\n0 qid:1 1:nan\n", Refusal(file="bad.txt", line=2)),
        (b"1 qid:1 1:1\ninf qid:1 1:1\n", Refusal(file="bad.txt", line=2)),
        (b"1 qid:1 1:1\n0 1:2\n", Refusal(file="bad.txt", line=2)),
        (b"1 1:1\n0 1:2\n", Refusal("no line has a qid", "--global")),
        (b"1 qid:1 1:1 1:2\n", Refusal(file="bad.txt", line=1)),
        (b"hello world\n", Refusal(file="bad.txt", line=1)),
        (b"\x1f\x8b\x08garbage", Refusal(file="bad.txt")),
        (b"\x00\x01\x02\xff", Refusal(file="bad.txt", line=1)),
        (b"1 qid:1 1:1\n1 qid:1 1:2\n", Refusal("Nothing to compare", parameter="y")),
        (b"1 qid:1 1:1\n0 qid:2 1:2\n", Refusal("Nothing to compare", parameter="y")),
    ],
    ids=str,
)
def test_training_files(content, refusal, tmp_path, refused):
    (tmp_path / "bad.txt").write_bytes(content)
    refused("fit", tmp_path / "bad.txt", "-m", tmp_path / "m.rankrls", refusal)
    refused("cv", tmp_path / "bad.txt", refusal)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.txt"]


def test_files_that_cannot_be_read(files, model, refused):
    for command in (("fit", "-m", files / "new.rankrls"), ("cv",), ("predict", model), ("evaluate", model)):
        refused(
            command[0],
            *command[1:],
            files / "none.txt",
            Refusal(f"{files / 'none.txt'}: No such file or directory", kind=OSError),
        )
        folder = files / "empty"
        folder.mkdir(exist_ok=True)
        right = Refusal("Is a directory", kind=OSError) if command == ("cv",) else Refusal("no file", "pattern")
        refused(command[0], *command[1:], folder, right)
    for command in (("predict", files / "no.rankrls", files / "test.txt"), ("info", files / "no.rankrls")):
        refused(*command, Refusal("no.rankrls: No such file", kind=OSError))
    refused("info", files / "empty", Refusal("no file", "pattern"))


def test_models_that_are_none(files, refused):
    bad = files / "bad.rankrls"
    for content in (b"", b"text", pickle.dumps([1]), b"PK\x03\x04 and more"):
        bad.write_bytes(content)
        refused("predict", bad, files / "test.txt", Refusal(file="bad.rankrls"))
        refused("evaluate", bad, files / "test.txt", Refusal(file="bad.rankrls"))
        refused("info", bad, Refusal(file="bad.rankrls"))


def test_targets_that_cannot_be_written_are_refused_before_any_work(files, model, refused, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("work was done")

    monkeypatch.setattr("rankrls.cli._training.read_data", never)
    refused("fit", files / "train.txt", "-m", files, Refusal("Is a directory", kind=OSError))
    refused("fit", files / "train.txt", "-m", files / "no" / "m.rankrls", Refusal("There is no folder", kind=OSError))
    monkeypatch.setattr("rankrls.persistence._files.load", never)
    refused(
        "predict", model, files / "test.txt", "-o", files / "no" / "s.txt", Refusal("There is no folder", kind=OSError)
    )
    refused("predict", model, files / "test.txt", "-o", files, Refusal("Is a directory", kind=OSError))


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
        refused(*command, Refusal(f"{target}: File too large", kind=OSError))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert target.read_text() == "old"
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "refusal"),
    [
        ("1\n2\n", Refusal("has 2 scores")),
        ("", Refusal("no scores")),
        ("1\n" * 95 + "x\n", Refusal("one finite number", "'x'", file="s.txt", line=96)),
        ("1\n" * 7 + "nan\n" + "1\n" * 88, Refusal("finite number", file="s.txt", line=8)),
        ("1\n" * 3 + "\n" + "1\n" * 92, Refusal("one finite number", "''", file="s.txt", line=4)),
        ("1 2\n" * 96, Refusal("'1 2'", file="s.txt", line=1)),
        ("1\n1_000\n" + "1\n" * 94, Refusal("'1_000'", file="s.txt", line=2)),
        ("1\n\u0661\n" + "1\n" * 94, Refusal("finite number", file="s.txt", line=2)),
        ("1\n1\f2\n" + "1\n" * 93, Refusal("finite number", file="s.txt", line=2)),
        ("1\n1\u20282\n" + "1\n" * 93, Refusal("finite number", file="s.txt", line=2)),
    ],
    ids=["too few", "empty", "word", "nan", "blank", "columns", "underscore", "digits", "form feed", "separator"],
)
def test_scores(content, refusal, files, refused):
    (files / "s.txt").write_text(content)
    refused("evaluate", "--scores", files / "s.txt", files / "test.txt", refusal)


def test_evaluate_needs_the_right_files(files, model, refused):
    refused("evaluate", files / "test.txt", Refusal("MODEL and DATA"))
    refused("evaluate", Refusal("Missing argument", kind=Exception))
    refused("evaluate", "--scores", files / "s.txt", model, files / "test.txt", Refusal("DATA only"))
    refused(
        "evaluate", model, files / "test.txt", "--metrics", "ndcg@x", Refusal("unknown measure", parameter="measure")
    )
    refused("evaluate", model, files / "test.txt", "--convention", "x", Refusal("convention", parameter="convention"))


def test_labels_that_a_measure_cannot_judge(files, rows, letor, refused):
    X, y, qid = rows(1)
    letor(files / "negative.txt", X, y - 5, qid)
    refused("cv", files / "negative.txt", "--metric", "ndcg@3", Refusal("negative label", parameter="gain", row=0))


def test_commands_that_are_none(refused):
    line = refused("train", "x", Refusal("No such command", "'train'", kind=Exception))
    assert "rankrls --help" in line
    assert "rankrls fit --help" in refused("fit", "x", Refusal("Missing option", kind=Exception))


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
    original = _training.study

    def warns(*args, **kwargs):
        for _ in range(2):
            warnings.warn("something\nodd", RuntimeWarning, stacklevel=1)
        warnings.warn("old style", DeprecationWarning, stacklevel=1)
        warnings.warn("unclosed file", ResourceWarning, stacklevel=1)
        return original(*args, **kwargs)

    monkeypatch.setattr(_training, "study", warns)
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
