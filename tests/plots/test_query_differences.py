"""The bars are the differences, and what is counted is what the comparison counts."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from tests.refusals import Refusal

from rankrls.comparison import compare_rankings
from rankrls.metrics import ndcg
from rankrls.plots import PerQueryDifferencesDisplay


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 3, size=300), np.repeat([f"q{k}" for k in range(30)], 10)
    y[qid == "q7"] = 1  # no pair to judge
    scores = {"new": y + rng.normal(size=300), "old": y + 2.0 * rng.normal(size=300), "other": rng.normal(size=300)}
    return y, qid, scores


@pytest.fixture(scope="module")
def report(data):
    y, qid, scores = data
    return compare_rankings(y, scores, qid=qid, measures=["disagreement", "p@1"], n_resamples=500)


def bars(display):
    return display.wins_.get_data().values + display.losses_.get_data().values


@pytest.mark.parametrize("measure", ["disagreement", "p@1"])
def test_a_report(report, measure):
    display = PerQueryDifferencesDisplay.from_report(report, "new", "old", measure=measure)
    found = next(m for m in report.measures if m.name == measure)
    line = next(p for p in found.randomization if (p.first, p.second) == ("new", "old"))
    assert (display.wins, display.ties, display.losses) == (line.wins, line.ties, line.losses)
    assert display.n_dropped == line.n_dropped
    assert display.mean == line.difference
    assert display.mean_.get_ydata()[0] == line.difference
    assert (display.band_.get_y(), display.band_.get_y() + display.band_.get_height()) == pytest.approx(
        (line.low, line.high)
    )
    gaps = dict(zip(report.qid, found.per_query["new"] - found.per_query["old"], strict=True))
    np.testing.assert_allclose(bars(display), [gaps[name] for name in display.qid], atol=1e-12)
    sign = 1 if found.greater_is_better else -1
    assert np.all(np.diff(sign * bars(display)) <= 0)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts[:2] == [f"new better: {line.wins}", f"old better: {line.losses}"]
    assert (f"equal: {line.ties}" in texts) == (line.ties > 0)
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == display.qid
    assert display.ax_.get_ylabel() == f"{measure}: new - old"
    changed = report.changed(measure, "new", "old", top=1)[0]
    assert changed.qid in (display.qid[0], display.qid[-1])


def test_the_other_way_round(report):
    one = PerQueryDifferencesDisplay.from_report(report, "new", "old")
    other = PerQueryDifferencesDisplay.from_report(report, "old", "new")
    assert (one.wins, one.losses) == (other.losses, other.wins)
    np.testing.assert_allclose(other.interval, -np.array(one.interval)[::-1])
    assert one.measure == "disagreement"


def test_no_interval_where_the_report_has_none(data):
    y, qid, scores = data
    report = compare_rankings(y, scores, qid=qid, measures=["map"], baseline="old", n_resamples=100)
    assert PerQueryDifferencesDisplay.from_report(report, "new", "other").band_ is None
    assert PerQueryDifferencesDisplay.from_report(report, "old", "new").band_ is not None


def test_scores(data):
    y, qid, scores = data
    figure, ax = plt.subplots()
    display = PerQueryDifferencesDisplay.from_predictions(
        y, scores["new"], scores["old"], qid=qid, scoring="ndcg@5", names=("a", "b"), ax=ax, alpha=0.5
    )
    gap = ndcg(y, scores["new"], qid=qid, k=5, per_query=True) - ndcg(y, scores["old"], qid=qid, k=5, per_query=True)
    np.testing.assert_allclose(bars(display), np.sort(gap[~np.isnan(gap)])[::-1], atol=1e-12)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.wins_.get_alpha() == 0.5
    assert display.band_ is None
    by_error = PerQueryDifferencesDisplay.from_predictions(y, scores["new"], scores["old"], qid=qid)
    assert by_error.n_dropped == 1
    assert by_error.differences[0] < 0 < by_error.wins


def test_rounding_is_no_difference():
    display = PerQueryDifferencesDisplay([0.1 + 0.2, 0.5], [0.3, 0.4]).plot()
    assert (display.wins, display.ties, display.losses) == (1, 1, 0)
    assert display.ax_.get_xticklabels() == []


def test_many_queries_have_no_names():
    display = PerQueryDifferencesDisplay(np.arange(50.0), np.zeros(50), qid=range(50)).plot()
    assert display.ax_.get_xticklabels() == []
    assert display.qid[:2] == [49, 48]


def test_errors(report):
    display = PerQueryDifferencesDisplay
    for call, parameter, refusal in (
        (lambda: display.from_report(report, "new", "old", measure="map"), None, Refusal("'map'", "disagreement, p@1")),
        (lambda: display.from_report(report, "newer", "old"), None, Refusal("'newer'", "new, old, other")),
        (lambda: display([1, 2], [1, 2], qid=["a"]), "qid", Refusal("2 queries", "1", parameter="qid")),
        (lambda: display([1, np.nan], [np.nan, 2]), None, Refusal("No query")),
        (lambda: display([1, 2], [1, 2, 3]), "first", Refusal("got 2 and 3")),
        (
            lambda: display.from_predictions([0, 1], [0, 1], [1], qid=[1, 1]),
            "y",
            Refusal("'second'", "shape", parameter="y"),
        ),
    ):
        with refusal as error:
            call()
        assert error.value.parameter == parameter
