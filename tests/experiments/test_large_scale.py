"""The large scale experiment: its data, its protocol by plain computation, and what it says."""

import gzip
import importlib
import json
import sys
import types
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from scipy import sparse

ROOT = Path(__file__).parents[2]
EXPERIMENTS = ROOT / "experiments"


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    before = set(sys.modules)
    names = ("large_scale", "_large_scale_data", "_large_scale_protocol", "_large_scale_report")
    yield types.SimpleNamespace(**{name.lstrip("_"): importlib.import_module(name) for name in names})
    for name in set(sys.modules) - before:
        if str(EXPERIMENTS) in str(getattr(sys.modules[name], "__file__", "")):
            sys.modules.pop(name)


@pytest.fixture
def small(modules, monkeypatch):
    """Made-up documents, few of them."""
    monkeypatch.setitem(modules.large_scale_data._QUICK_ROWS, "synthetic", (300, 150, 200))
    monkeypatch.setattr("benchmarks._text.RCV1", (781_265, 800))
    return modules


def story(number, split, topics, text, kind="YES"):
    inside = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{kind}" LEWISSPLIT="{split}" CGISPLIT="X" NEWID="{number}">\n<TOPICS>{inside}</TOPICS>\n'
        f"<PLACES><D>usa</D></PLACES>\n<TEXT>&#2;\n<TITLE>{text}</TITLE><BODY>{text} says\n more.&#3;</BODY></TEXT>\n"
        "</REUTERS>\n"
    )


def write_reuters(folder):
    """20 training stories in 22 files, the odd ones about earnings; then test stories, and some of no split."""
    folder.mkdir()
    stories = [
        story(k, "TRAIN", ["earn", "acq"] if k % 2 else ["grain"], f"profit rises{k % 2} <b>net</b> &lt;ACME> w{k}")
        for k in range(20)
    ]
    stories += [story(90 + k, "TEST", ["earn"][: k % 2], "profit net caf\xe9") for k in range(5)]
    stories += [story(98, "NOT-USED", ["earn"], "unused"), story(99, "TRAIN", ["earn"], "bypassed", kind="BYPASS")]
    stories += [story(100, "TEST", [], "nobody gave it topics", kind="NO")]
    for k in range(22):
        content = ('<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + "".join(stories[k::22])).encode("latin-1")
        packed = k % 2 == 0
        path = folder / f"reut2-{k:03d}.sgm{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(content) if packed else content)


def test_stories_of_reuters(modules, tmp_path):
    write_reuters(tmp_path / "reuters21578")
    for data in (tmp_path, tmp_path / "reuters21578"):
        task = modules.large_scale_data.load("reuters", data, quick=False)
    assert [part.X.shape[0] for part in (task.train, task.validation, task.test)] == [16, 4, 5]
    assert task.train.y.sum() + task.validation.y.sum() == 10
    assert sorted(task.test.y) == [0, 0, 0, 1, 1]
    assert len({part.X.shape[1] for part in (task.train, task.validation, task.test)}) == 1
    norms = np.sqrt(np.asarray(task.train.X.power(2).sum(axis=1)).ravel())
    np.testing.assert_allclose(norms, 1.0)
    # test documents have two words of the vocabulary, twice: words of one training document and markup are not in it
    assert (np.diff(task.test.X.indptr) >= 2).all()
    read = modules.large_scale_data._stories(sorted((tmp_path / "reuters21578").iterdir())[0])
    assert read[0][0] == "TRAIN"
    assert "<ACME> w0" in read[0][1]
    assert "<b>" not in read[0][1]


def test_the_parse_sample(modules, tmp_path):
    folder = tmp_path / "parse_ranking"
    folder.mkdir()
    for name, last in (("train", 7), ("test", 9)):
        rows = [f"{(k % 3) / 4} qid:{k // 4} {1 + k % 5}:1 {last}:0.5" for k in range(40)]
        (folder / f"rank_{name}.light").write_text("\n".join(rows) + "\n")
    task = modules.large_scale_data.load("parse", tmp_path, quick=False)
    assert len(np.unique(task.validation.qid)) == 2
    assert not set(task.train.qid) & set(task.validation.qid)
    assert task.train.X.shape == (32, 9)
    assert not task.is_bipartite


def test_rcv1_and_its_split(modules, monkeypatch, capsys):
    data = modules.large_scale_data
    monkeypatch.setattr(data, "_PAPER_TEST", 30)
    monkeypatch.setattr(data, "_PAPER_VALIDATION", 20)
    X = sparse.csr_matrix(np.arange(100.0)[:, None] + 1.0)
    target = sparse.csr_matrix(np.column_stack((np.zeros(100), np.arange(100) % 2)))
    bunch = types.SimpleNamespace(data=X, target=target, target_names=np.array(["C11", "CCAT"]))
    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", lambda subset: bunch)
    task = data.load("rcv1", None, quick=False)
    np.testing.assert_array_equal(task.test.X.toarray()[:, 0], np.arange(1, 31))
    both = np.concatenate((task.train.X.toarray(), task.validation.X.toarray()))[:, 0]
    np.testing.assert_array_equal(np.sort(both), np.arange(31, 101))
    assert len(task.validation.y) == 20
    np.testing.assert_array_equal(task.train.y, (task.train.X.toarray()[:, 0] - 1) % 2)
    assert "773116" in task.how[0]

    def offline(subset):
        raise URLError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", offline)
    assert modules.large_scale.main(["rcv1"]) == 2
    error = capsys.readouterr().err
    assert "needs the internet" in error
    assert error.count("\n") == 1


def laplacian(items, pairs):
    m = len(items.y)
    if pairs is None:
        return np.eye(m) - 1.0 / m
    M = np.zeros((len(pairs[0]), m))
    M[np.arange(len(M)), pairs[0]] = 1.0
    M[np.arange(len(M)), pairs[1]] -= 1.0
    return M.T @ M


def wrong_pairs(y, scores):
    lead = (scores[y == 1][:, None] - scores[y == 0][None, :]).ravel()
    return ((lead < 0) + 0.5 * (lead == 0)).mean()


@pytest.mark.parametrize("number", [None, 400])
def test_tikhonov_by_dense_solves(small, number):
    protocol = small.large_scale_protocol
    task = small.large_scale_data.load("synthetic", None, quick=True)
    training = protocol.training_of(task, number)
    X, y = task.train.X.toarray(), task.train.y
    L = laplacian(task.train, training.pairs)
    A = X.T @ L @ X
    right = X.T @ L @ y  # all strengths are 1, and so are all differences of the labels
    outcome = protocol.run_method(protocol.METHODS[0], task, training)
    errors = {}
    for alpha in protocol.ALPHAS:
        w = np.linalg.solve(A + alpha * np.eye(len(A)), right)
        errors[alpha] = wrong_pairs(task.validation.y, task.validation.X @ w)
        if alpha == outcome.alpha:
            assert outcome.test_error == pytest.approx(wrong_pairs(task.test.y, task.test.X @ w), abs=2e-4)
    assert outcome.validation_error == pytest.approx(min(errors.values()), abs=2e-4)
    assert errors[outcome.alpha] == pytest.approx(min(errors.values()), abs=2e-4)


def test_everything_is_printed_and_drawn(small, tmp_path, capsys):
    options = ["synthetic", "--quick", "--pairs", "300"]
    assert small.large_scale.main([*options, "--json", "--plots", str(tmp_path / "figures")]) == 0
    scored, paired = json.loads(capsys.readouterr().out)
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == ["synthetic-pairs.png", "synthetic-scored.png"]
    assert (scored["kind"], paired["kind"], paired["pairs"]) == ("scored", "pairs", 300)
    for part in (scored, paired):
        tikhonov, early, hybrid = part["methods"]
        assert [m["method"] for m in part["methods"]] == [1, 2, 3]
        assert early["alpha"] == 0.0
        assert hybrid["validation_error"] <= min(tikhonov["validation_error"], early["validation_error"]) + 0.02
        assert set(part["figure"]) == {"0.0", *(str(2.0**k) for k in (-10, -5, 0, 5, 10))}
        assert part["paper"] is None
    assert small.large_scale.main(options) == 0
    text = capsys.readouterr().out
    assert "Generated, in RCV1's shape, labelled data" in text
    assert "300 sampled pairs" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["reuters", "--data", "{tmp}"], "No reuters21578 found"),
        (["parse", "--data", "{tmp}"], "rank_train.light"),
        (["parse"], "needs the folder of the data"),
    ],
)
def test_one_clear_line_on_bad_input(modules, tmp_path, capsys, monkeypatch, options, message):
    monkeypatch.delenv("RANKRLS_DATA", raising=False)
    assert modules.large_scale.main([option.format(tmp=tmp_path) for option in options]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_collection_with_missing_files(modules, tmp_path, capsys):
    (tmp_path / "reut2-000.sgm").write_text("")
    assert modules.large_scale.main(["reuters", "--data", str(tmp_path)]) == 2
    assert "holds 1 of the 22 files" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        modules.large_scale.main(["imaginary"])
    assert "unknown data set imaginary" in capsys.readouterr().err


@pytest.mark.shared_data
@pytest.mark.slow
def test_reuters(modules, data_dir, capsys):
    options = ["reuters", "--data", str(data_dir), "--quick", "--pairs", "20000", "--json"]
    assert modules.large_scale.main(options) == 0
    for part in json.loads(capsys.readouterr().out):
        tikhonov, _, hybrid = part["methods"]
        assert tikhonov["test_error"] < 0.02
        assert abs(hybrid["test_error"] - tikhonov["test_error"]) < 0.002
