"""The report of several rankings: every number by other means, and its page as text."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest

from rankrls._errors import InputError, InputWarning
from rankrls.comparison import compare_rankings
from rankrls.metrics import Measure

AWKWARD = 'b & <script>alert("x")</script>'


def rankings(queries=30, items=12, seed=0):
    rng = np.random.default_rng(seed)
    m = queries * items
    y = rng.integers(0, 3, size=m).astype(float)
    y[:items] = 1.0  # a query that disagreement error does not judge
    qid = np.repeat([f"q{k}" for k in range(queries)], items)
    shuffled = rng.permutation(m)
    scores = {"a": y + rng.normal(size=m), AWKWARD: y + 2 * rng.normal(size=m), "c": rng.normal(size=m)}
    return y[shuffled], {name: s[shuffled] for name, s in scores.items()}, qid[shuffled]


@pytest.fixture(scope="module")
def report():
    y, scores, qid = rankings()
    return compare_rankings(y, scores, qid=qid, measures=["map", "disagreement"], n_resamples=2000)


def test_values_are_the_measures(report):
    y, scores, qid = rankings()
    for name, column in scores.items():
        assert report.measures["map"].means[name].value == pytest.approx(
            Measure("average_precision")(y, column, qid=qid)
        )
        by_query = Measure("disagreement")(y, column, qid=qid, per_query=True)
        np.testing.assert_array_equal(report.measures["disagreement"].per_query[name], by_query)
    assert report.qid == tuple(dict.fromkeys(qid.tolist()))  # in order of first appearance, as the measures have them
    np.testing.assert_array_equal(report.items, [np.count_nonzero(qid == each) for each in report.qid])
    assert [m.greater_is_better for m in report.measures.values()] == [True, False]
    assert report.measures["disagreement"].best == "a"


def test_changed_queries_are_those_of_the_largest_difference(report):
    m = report.measures["disagreement"]
    gap = m.per_query["a"] - m.per_query["c"]
    changed = report.changed("disagreement", "a", "c", top=5)
    largest = np.sort(np.abs(gap[~np.isnan(gap)]))[::-1][:5]
    np.testing.assert_allclose([abs(c.difference) for c in changed], largest)
    for c in changed:
        k = report.qid.index(c.qid)
        assert (c.first, c.second) == (m.per_query["a"][k], m.per_query["c"][k])
        assert c.items == 12
    assert report.changed("map", "a", "a") == []
    for asked, unknown in ((("ndcg", "a", "c"), "ndcg"), (("map", "a", "d"), "d")):
        with pytest.raises(KeyError, match=unknown):
            report.changed(*asked)


def test_changed_queries_are_shown_of_pairs_with_the_best(report):
    shown = [columns[2:4] for title, columns, _ in report.tables(top=2) if "changed most" in title]
    assert shown == [["a", AWKWARD], ["a", "c"]]
    y, scores, qid = rankings()
    of_c = compare_rankings(y, scores, qid=qid, measures=["disagreement"], n_resamples=100, baseline="c")
    shown = [columns[2:4] for title, columns, _ in of_c.tables(top=2) if "changed most" in title]
    assert shown == [["a", "c"]]
    of_a = compare_rankings(y, scores, qid=qid, measures=["map"], n_resamples=100, baseline="a")
    shown = [columns[2:4] for title, columns, _ in of_a.tables(top=2) if "changed most" in title]
    assert shown == [[AWKWARD, "a"], ["c", "a"]]


def test_json_holds_everything(report):
    found = json.loads(json.dumps(report.as_dict(top=3), allow_nan=False))
    assert found["rankings"] == ["a", AWKWARD, "c"]
    assert found["measures"]["disagreement"]["values"]["a"]["n_queries"] == 29
    pair = found["measures"]["map"]["pairs"][0]
    assert len(pair["changed_most"]) == 3
    assert pair["wins"] + pair["ties"] + pair["losses"] == pair["n_queries"] == 30
    assert pair["p_randomization"] <= pair["p_randomization_holm"] <= 1.0


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"qid": None}, "qid"),
        ({"scores": {"a": np.zeros(48)}}, None),
        ({"scores": {"a": np.zeros(48), "c": np.zeros(5)}}, "scores"),
        ({"y_true": np.ones(48), "measures": ["disagreement"]}, None),
        ({"baseline": "d"}, "baseline"),
    ],
)
def test_refusals(options, parameter):
    y, scores, qid = rankings(queries=4)
    good = {"y_true": y, "scores": scores, "qid": qid, "measures": ["map"]}
    with pytest.raises(InputError) as error:
        compare_rankings(**(good | options))
    assert error.value.parameter == parameter


class Page(HTMLParser):
    """Balanced tags, what would be fetched, and the text."""

    VOID = ("meta", "line", "circle", "rect", "br")

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.fetched, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.fetched += [v for k, v in attrs if k in ("src", "href") and not v.startswith("#")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_page_is_whole_safe_and_alone(report):
    html = report.to_html(title="A & B")
    page = Page()
    page.feed(html)
    assert page.open == []
    assert page.fetched == []
    assert "script" not in page.tags
    assert "@import" not in html
    assert "url(" not in html
    text = "".join(page.text)
    assert AWKWARD in text
    assert "A & B" in text
    for title, columns, rows in report.tables():
        assert title in page.text
        assert {*columns, *(cell for row in rows for cell in row)} - {""} <= {*page.text}
    assert f"{report.measures['map'].means['a'].value:.4f} [" in text
    assert "Where it comes from" not in text
    assert "Where it comes from" in report.to_html(about={"data": "test.csv"})


def test_a_ranking_that_is_the_order_of_the_rows_is_noticed():
    """Half of the scores are equal in files whose relevant items come first."""
    rng = np.random.default_rng(1)
    y = np.tile([2.0, 1, 1, 0, 0, 0, 0, 0], 40)
    qid = np.repeat(np.arange(40), 8)
    scores = {"random": rng.normal(size=320), "coarse": (rng.random(320) < 0.2).astype(float)}
    measures = ["disagreement", "ndcg@5", "map"]
    with pytest.warns(InputWarning, match="Ranking 'coarse'.* ndcg@5 is .*in a random order") as caught:
        found = compare_rankings(y, scores, qid=qid, measures=measures, n_resamples=10)
    assert [warning.message.parameter for warning in caught] == ["scores"]
    assert f"{found.measures['ndcg@5'].means['coarse'].value:.3f}" in str(caught[0].message)
    mixed = rng.permutation(320)
    shuffled = {name: of_rows[mixed] for name, of_rows in scores.items()}
    compare_rankings(y[mixed], shuffled, qid=qid[mixed], measures=measures, n_resamples=10)
    compare_rankings(y, scores, qid=qid, measures=[Measure("ndcg", ties="average"), Measure("tau")], n_resamples=10)
    compare_rankings(y, scores, qid=qid, measures=["ndcg"], convention="trec", docno=mixed, n_resamples=10)
