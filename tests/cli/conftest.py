import json
from pathlib import Path

import numpy as np
import pytest

from rankrls.cli import _program, main


def write_letor(path: Path, X, y, qid=None, *, docid=False) -> Path:
    lines = []
    for i, row in enumerate(X):
        features = " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()))
        query = "" if qid is None else f" qid:{qid[i]}"
        lines.append(f"{y[i]:g}{query} {features}" + (f" # docid = d{i}" if docid else ""))
    path.write_text("\n".join(lines) + "\n")
    return path


def make_rows(seed, queries=12, items=8, n=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * items, n))
    qid = np.repeat(np.arange(queries) + 100 * seed, items)
    useful = X @ ([2.0, -1.0, 0.5] + [0.0] * (n - 3)) + rng.normal(size=len(X))
    y = np.digitize(useful, [0.5, 2.0]).astype(float)
    return X, y, qid


@pytest.fixture
def letor():
    """``letor(path, X, y, qid)`` writes a file, every number as repr gives it."""
    return write_letor


@pytest.fixture
def rows():
    """``rows(seed)``: X, y, qid of three grades, as in the files."""
    return make_rows


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The working folder, with train.txt, vali.txt, test.txt: three grades, five features, ids."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("train", "vali", "test"), start=1):
        write_letor(tmp_path / f"{name}.txt", *make_rows(seed), docid=True)
    return tmp_path


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def rankrls(capsys):
    """Run the command in this process."""

    def run(*argv):
        capsys.readouterr()
        status = main([str(a) for a in argv])
        out, err = capsys.readouterr()
        return Result(status, out, err)

    return run


@pytest.fixture
def works(rankrls):
    """Run a command that must succeed."""

    def run(*argv):
        result = rankrls(*argv)
        assert result.status == 0, result.err
        return result

    return run


@pytest.fixture
def refused(rankrls, monkeypatch):
    """``refused("fit", ..., Refusal(...))``: the command must end with status 2 and one line, about these facts."""
    errors = []
    described = _program._status_and_text
    monkeypatch.setattr(_program, "_status_and_text", lambda error: errors.append(error) or described(error))

    def run(*argv):
        *words, refusal = argv
        result = rankrls(*words)
        assert result.status == 2, result.err
        lines = [line for line in result.err.splitlines() if not line.startswith("rankrls: note: ")]
        assert len(lines) == 1, result.err
        assert lines[0].startswith("rankrls: error: ")
        refusal.check(errors[-1], lines[0])
        assert result.out == ""
        return lines[0]

    return run
