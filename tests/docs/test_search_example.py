"""The demo, on the documentation of a few modules."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MODULES = ("numpy.linalg", "numpy.fft", "scipy.linalg", "scipy.fft")


@pytest.fixture(scope="module")
def demo():
    sys.path.insert(0, str(EXAMPLES))
    before = set(sys.modules)
    yield importlib.import_module("search_documentation")
    sys.path.remove(str(EXAMPLES))
    for name in set(sys.modules) - before:
        if str(EXAMPLES) in str(getattr(sys.modules[name], "__file__", "")):
            sys.modules.pop(name)


@pytest.fixture(scope="module")
def data(demo):
    return demo.read_documentation(MODULES)


def test_the_table(data, demo):
    answers = data.library.see_also()
    train, test = data.train, data.test
    assert not set(train.queries) & set(test.queries)
    for table in (train, test):
        assert np.isfinite(table.features).all()
        assert table.labels.any(axis=1).all()
        for query, items, labels in zip(table.queries, table.candidates, table.labels, strict=True):
            assert query not in items
            assert len(set(items)) == len(items)
            assert [item in answers[query] for item in items] == list(labels.astype(bool))
    words = test.features[:, :, test.names.index("words")]
    assert (np.diff(words, axis=1) <= 0).all()
    X, _, qid = test.rows(np.array([[2, 0]] * len(test.queries)))
    np.testing.assert_array_equal(X[:2], test.features[0, [2, 0]])
    np.testing.assert_array_equal(qid[:2], test.queries[0])


def test_the_held_out_shortlist_is_that_of_a_refit(demo, data):
    first = demo.linear(data.train)
    others = np.arange(len(data.train.queries)) != 3
    alpha = first.pipeline[-1].alpha_
    X, y, qid = data.train.of(others).rows()
    scaler = first.pipeline[0]
    refit = type(first.pipeline[-1])(alphas=[alpha]).fit(scaler.transform(X), y, qid=qid)
    scores = refit.predict(scaler.transform(data.train.of(~others).rows()[0]))
    held_out = first.held_out[3]
    np.testing.assert_allclose(held_out - held_out.mean(), scores - scores.mean(), atol=1e-8)


def test_in_one_go(demo, tmp_path, capsys):
    reached = demo.main(MODULES, tmp_path, n_basis=80)
    printed = capsys.readouterr().out
    assert max(reached["linear"], reached["Gaussian"]) > reached["words alone"]
    assert "chosen on the training queries" in printed
    assert f"{reached['linear']:.3f}" in printed
    files = {path.name for path in tmp_path.iterdir()}
    assert files >= {"comparison.html", "search_documentation.png", "linear.rankrls", "solr-model.json"}
