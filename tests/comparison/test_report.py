"""The report of several rankings: every number by other means, the page in a browser."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rankrls._errors import InputError
from rankrls.comparison import compare_rankings, holm
from rankrls.comparison._charts import tick_values
from rankrls.metrics import average_precision, disagreement_error

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
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
        assert report.measures[0].intervals[name].estimate == pytest.approx(average_precision(y, column, qid=qid))
        by_query = disagreement_error(y, column, qid=qid, per_query=True)
        np.testing.assert_array_equal(report.measures[1].per_query[name], by_query)
    assert report.qid == tuple(np.unique(qid)) or set(report.qid) == set(qid)
    assert report.items.sum() == len(y)
    assert [m.greater_is_better for m in report.measures] == [True, False]
    assert report.measures[1].best == "a"


def test_wilcoxon_is_scipys_and_holm_over_the_pairs(report):
    for m in report.measures:
        found = [line.p_value for line in m.wilcoxon]
        wanted = []
        for line in m.wilcoxon:
            gap = m.per_query[line.first] - m.per_query[line.second]
            gap = gap[~np.isnan(gap) & (np.abs(gap) > 1e-12)]
            wanted.append(scipy.stats.wilcoxon(gap, method="approx", correction=False).pvalue)
        np.testing.assert_allclose(found, wanted, atol=2e-3)
        np.testing.assert_allclose([line.p_holm for line in m.wilcoxon], holm(found))
        np.testing.assert_allclose([r.p_holm for r in m.randomization], holm([r.p_value for r in m.randomization]))
        assert [(r.first, r.second) for r in m.randomization] == [("a", AWKWARD), ("a", "c"), (AWKWARD, "c")]


def test_changed_queries_are_those_of_the_largest_difference(report):
    m = report.measures[1]
    gap = m.per_query["a"] - m.per_query["c"]
    changed = report.changed("disagreement", "a", "c", top=5)
    largest = np.sort(np.abs(gap[~np.isnan(gap)]))[::-1][:5]
    np.testing.assert_allclose([abs(c.difference) for c in changed], largest)
    for c in changed:
        k = report.qid.index(c.qid)
        assert (c.first, c.second) == (m.per_query["a"][k], m.per_query["c"][k])
        assert c.n_items == 12
    assert report.changed("map", "a", "a") == []
    with pytest.raises(InputError, match="No measure 'ndcg'.*map, disagreement"):
        report.changed("ndcg", "a", "c")
    with pytest.raises(InputError, match="No ranking 'd'"):
        report.changed("map", "a", "d")


def test_wins_count_the_better_side(report):
    line = report.measures[1].randomization.pairs[1]
    gap = report.measures[1].per_query["a"] - report.measures[1].per_query["c"]
    assert line.wins == (gap < 0).sum()
    assert line.losses == (gap > 0).sum()


def test_json_holds_everything(report):
    found = json.loads(json.dumps(report.as_dict(top=3), allow_nan=False))
    assert found["rankings"] == ["a", AWKWARD, "c"]
    assert found["measures"]["disagreement"]["values"]["a"]["queries"] == 29
    pair = found["measures"]["map"]["pairs"][0]
    assert len(pair["changed_most"]) == 3
    assert pair["wins"] + pair["ties"] + pair["losses"] == pair["queries"] == 30
    assert pair["p_randomization"] <= pair["p_randomization_holm"] <= 1.0


def test_prints_as_tables(report):
    text = str(report)
    assert "map (paired randomisation test over queries)" in text
    assert re.search(r"a - c +\+0\.\d{4}", text)


def test_same_seed_same_report():
    y, scores, qid = rankings(queries=8)
    one, two = (compare_rankings(y, scores, qid=qid, measures=["map"], random_state=3).as_dict() for _ in range(2))
    assert one == two


def test_one_baseline():
    y, scores, qid = rankings(queries=8)
    found = compare_rankings(y, scores, qid=qid, measures=["map"], baseline="c")
    assert [(r.first, r.second) for r in found.measures[0].wilcoxon] == [("a", "c"), (AWKWARD, "c")]


@pytest.mark.parametrize(
    ("options", "parameter", "words"),
    [
        ({"qid": None}, "qid", "only one here"),
        ({"scores": {"a": np.zeros(48)}}, None, "at least two rankings"),
        ({"scores": [np.zeros(48)]}, "scores", "mapping .*got list"),
        ({"scores": {"a": np.zeros(48), "c": np.zeros(5)}}, "scores", "^ranking 'c': scores has 5 rows"),
        ({"measures": []}, "measures", "nothing to compare"),
        ({"y_true": np.ones(48), "measures": ["disagreement"]}, None, "^disagreement: .*two judged"),
        ({"baseline": "d"}, "baseline", "'d'"),
    ],
)
def test_refusals(options, parameter, words):
    y, scores, qid = rankings(queries=4)
    good = {"y_true": y, "scores": scores, "qid": qid, "measures": ["map"]}
    with pytest.raises(InputError, match=words) as error:
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
    assert "a has the best mean: it is better than all others, beyond what chance explains" in text
    assert f"{report.measures[0].intervals['a'].estimate:.4f}" in text
    assert page.tags.count("svg") == 2 * (1 + 3)


def test_page_says_where_the_lead_may_be_chance():
    y, scores, qid = rankings(queries=6)
    close = {"a": scores["a"], "b": scores["a"] + 1e-3 * np.random.default_rng(0).normal(size=len(y))}
    close["b"] = close["b"] + 0.1 * np.random.default_rng(0).normal(size=len(y))
    assert "may be chance" in compare_rankings(y, close, qid=qid, measures=["map"]).to_html()
    same = compare_rankings(y, {"a": scores["a"], "b": scores["a"]}, qid=qid, measures=["map"]).to_html()
    assert "No query differs." in same
    assert "no ranking is ahead" in same
    assert "class=strong" not in same


def test_no_winner_is_named_without_its_test():
    rng = np.random.default_rng(0)
    qid, y = np.repeat(np.arange(40), 10), rng.integers(0, 2, 400)
    scores = {
        "best": y + 0.1 * rng.normal(size=400),
        "good": y + 0.8 * rng.normal(size=400),
        "base": rng.normal(size=400),
    }
    html = compare_rankings(y, scores, qid=qid, measures=["map"], baseline="base").to_html()
    assert "it is better than base" in html
    assert "it was not tested against good" in html
    (found,) = compare_rankings(y, scores, qid=qid, measures=["map"], baseline="base").measures
    assert found.winner(0.95) is None
    (found,) = compare_rankings(y, scores, qid=qid, measures=["map"]).measures
    assert found.winner(0.95) == "best"


def test_page_says_where_it_comes_from_and_has_one_minus(report):
    html = report.to_html(about={"data": "a<b.csv, SHA-256 12"}, date="2026-01-31")
    assert "a&lt;b.csv, SHA-256 12" in html
    assert "on 2026-01-31" in html
    body = html.partition("<body>")[2]
    assert re.findall(r">-[0-9.]", body) == []
    assert re.search(r">−[0-9.]", body)


def test_differences_point_to_the_better_ranking(report):
    """Of an error the winner is below zero: the words and colours turn with the measure."""
    from rankrls.comparison._charts import differences_chart

    gap = np.array([0.5, 0.2, -0.1])
    up, down = (differences_chart(gap, "a", "b", better) for better in (True, False))
    assert up.count('class="first"') == 2 == down.count('class="second"')
    assert up.index("a better") < up.index("b better")
    assert down.index("b better") < down.index("a better")


@given(st.floats(-1e3, 1e3), st.floats(1e-4, 1e3), st.integers(2, 8))
def test_ticks_are_few_and_inside(low, span, most):
    ticks = tick_values(low, low + span, most)
    assert 1 <= len(ticks) <= most + 1
    assert all(low - 1e-6 * span <= t <= low + span * (1 + 1e-6) for t in ticks)


def test_save_is_whole_or_nothing(report, tmp_path):
    report.save_html(tmp_path / "r.html", title="T")
    assert (tmp_path / "r.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(OSError, match="no"):
        report.save_html(tmp_path / "no" / "r.html")


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look with")
@pytest.mark.parametrize("width", [500, 1200])
def test_a_browser_shows_it_without_scrolling_sideways(report, tmp_path, width):
    probe = "<script>document.title = document.documentElement.scrollWidth + ' ' + innerWidth</script></body>"
    path = tmp_path / "r.html"
    path.write_text(report.to_html().replace("</body>", probe), encoding="utf-8")
    common = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900"]
    folder = f"--user-data-dir={tmp_path / 'profile'}"
    dumped = subprocess.run(
        [*common, folder, "--dump-dom", path.as_uri()], capture_output=True, encoding="utf-8", timeout=120, check=True
    ).stdout
    wide, inside = map(int, re.search(r"<title>(\d+) (\d+)</title>", dumped).groups())
    assert wide <= inside <= width
    shot = tmp_path / "shot.png"
    subprocess.run(
        [*common, folder, f"--screenshot={shot}", path.as_uri()], capture_output=True, timeout=120, check=True
    )
    pyplot = pytest.importorskip("matplotlib.pyplot")
    picture = pyplot.imread(shot)[..., :3]
    assert (picture.reshape(-1, 3).max(axis=1) < 0.5).mean() > 0.005  # text and charts are there
