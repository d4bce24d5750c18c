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


def numbers(library):
    return {name: number for number, page in enumerate(library.pages) for name in page.names}


def test_see_also_is_read_and_left_out_of_the_text(data):
    library, where = data.library, numbers(data.library)
    listed = library.see_also()[where["scipy.linalg.cho_factor"]]
    assert where["scipy.linalg.cho_solve"] in listed
    assert not [page.name for page in library.pages if "See Also\n---" in page.text()]
    page = library.pages[where["scipy.linalg.cho_factor"]]
    assert "cho_solve" in page.sections["See Also"]
    assert "cho_solve : Solve" not in page.text()


def test_aliases_are_one_page(data):
    names = [name for page in data.library.pages for name in page.names]
    assert len(names) == len(set(names))
    assert len({id(page.value) for page in data.library.pages}) == len(data.library)


def test_mentions_and_lists(data):
    library, where = data.library, numbers(data.library)
    mentions = library.mentions()
    assert mentions[where["scipy.linalg.cho_solve"], where["scipy.linalg.cho_factor"]] > 0  # in its example
    assert mentions.diagonal().sum() == 0
    together = [run for run in library.lists() if where["scipy.linalg.cholesky"] in run]
    assert any(where["scipy.linalg.cho_factor"] in run for run in together)


def test_names_are_found_from_inside_and_outside_their_module(data):
    find, where = data.library.finder(), numbers(data.library)
    assert find("solve", "numpy.linalg") == where["numpy.linalg.solve"]
    assert find("solve", "scipy.linalg") == where["scipy.linalg.solve"]
    assert find("np.linalg.solve", "scipy.linalg") == where["numpy.linalg.solve"]
    assert find("no_such_function", "scipy.linalg") is None


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


def test_a_second_model_orders_the_first_places_only(demo):
    scores = np.array([[5.0, 1.0, 4.0, 3.0]])
    merged = demo.put_first(scores, np.array([[0, 2]]), np.array([[-2.0, -1.0]]))
    assert list(np.argsort(-merged[0])) == [2, 0, 3, 1]


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


def test_lists_are_those_of_the_scores(demo, data):
    test = data.test
    scores = {"a": test.labels + 0.0, "b": -test.labels}
    name, (best, worst) = next(iter(demo.lists(data, scores).items()))
    number = numbers(data.library)[name]
    candidates = set(test.candidates[list(test.queries).index(number)])
    relevant = {data.name(item) for item in data.library.see_also()[number] & candidates}
    assert {item for item, right in best[: len(relevant)] if right} == relevant
    assert {item for item, right in worst[-len(relevant) :] if right} == relevant
