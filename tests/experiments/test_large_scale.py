"""The large scale experiment: its data, its protocol by plain computation, and what it says."""

import gzip
import types

import numpy as np
import pytest
from experiments._tables import MissingDataError
from scipy import sparse

from experiments import large_scale


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


def test_stories_of_reuters(tmp_path):
    write_reuters(tmp_path / "reuters21578")
    task = large_scale.reuters(tmp_path, quick=False)
    assert [part.X.shape[0] for part in (task.train, task.validation, task.test)] == [16, 4, 5]
    assert task.train.y.sum() + task.validation.y.sum() == 10
    assert sorted(task.test.y) == [0, 0, 0, 1, 1]
    assert len({part.X.shape[1] for part in (task.train, task.validation, task.test)}) == 1
    norms = np.sqrt(np.asarray(task.train.X.power(2).sum(axis=1)).ravel())
    np.testing.assert_allclose(norms, 1.0)
    # test documents have two words of the vocabulary, twice: words of one training document and markup are not in it
    assert (np.diff(task.test.X.indptr) >= 2).all()
    read = large_scale.stories_of(sorted((tmp_path / "reuters21578").iterdir())[0])
    assert read[0][0] == "TRAIN"
    assert "<ACME> w0" in read[0][1]
    assert "<b>" not in read[0][1]


def test_rcv1_and_its_split(monkeypatch, tmp_path):
    with pytest.raises(MissingDataError):
        large_scale.rcv1(tmp_path)
    monkeypatch.setattr(large_scale, "PAPER_TEST", 30)
    monkeypatch.setattr(large_scale, "PAPER_VALIDATION", 20)
    X = sparse.csr_matrix(np.arange(100.0)[:, None] + 1.0)
    target = sparse.csr_matrix(np.column_stack((np.zeros(100), np.arange(100) % 2)))
    bunch = types.SimpleNamespace(data=X, target=target, target_names=np.array(["C11", "CCAT"]))
    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", lambda **options: bunch)
    task = large_scale.rcv1(tmp_path)
    np.testing.assert_array_equal(task.test.X.toarray()[:, 0], np.arange(1, 31))
    both = np.concatenate((task.train.X.toarray(), task.validation.X.toarray()))[:, 0]
    np.testing.assert_array_equal(np.sort(both), np.arange(31, 101))
    assert len(task.validation.y) == 20
    np.testing.assert_array_equal(task.train.y, (task.train.X.toarray()[:, 0] - 1) % 2)


@pytest.fixture
def small(monkeypatch):
    """Made-up documents, few of them."""
    monkeypatch.setattr(large_scale, "QUICK_ROWS", (300, 150, 200))
    monkeypatch.setattr("benchmarks._text.RCV1", (781_265, 800))
    return large_scale.synthetic(quick=True)


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
    task = small
    training = large_scale.Training(task.train, number and large_scale.sampled_pairs(task.train, number))
    X, y = task.train.X.toarray(), task.train.y
    L = laplacian(task.train, training.pairs)
    A = X.T @ L @ X
    right = X.T @ L @ y  # all strengths are 1, and so are all differences of the labels
    outcome = large_scale.judge("Tikhonov", task, training)
    errors = {}
    for alpha in large_scale.ALPHAS:
        w = np.linalg.solve(A + alpha * np.eye(len(A)), right)
        errors[alpha] = wrong_pairs(task.validation.y, task.validation.X @ w)
        if alpha == outcome.alpha:
            assert outcome.test_error == pytest.approx(wrong_pairs(task.test.y, task.test.X @ w), abs=2e-4)
    assert outcome.validation_error == pytest.approx(min(errors.values()), abs=2e-4)
    assert errors[outcome.alpha] == pytest.approx(min(errors.values()), abs=2e-4)


def test_errors_seconds_and_figures(small, tmp_path, monkeypatch):
    monkeypatch.setattr(large_scale, "QUICK_PAIRS", 300)
    errors, seconds = large_scale.run(small, quick=True, figures=tmp_path / "figures")
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == ["synthetic-labels.png", "synthetic-pairs.png"]
    assert set(errors.ours) == set(seconds.ours) == set(errors.paper)
    assert errors.paper["pairs: hybrid"]["error"] == 0.0153


@pytest.mark.shared_data
@pytest.mark.slow
def test_reuters(data_dir):
    errors, _ = large_scale.run(large_scale.reuters(data_dir, quick=True), quick=True)
    for kind in ("labels", "pairs"):
        tikhonov, hybrid = (errors.ours[f"{kind}: {name}"]["error"] for name in ("Tikhonov", "hybrid"))
        assert tikhonov < 0.02
        assert abs(hybrid - tikhonov) < 0.002
