"""Results as they are printed, and the same by ``repr`` and in a notebook."""

import html

import numpy as np
import pytest

from rankrls import RankRLS
from rankrls.comparison import compare_rankings
from rankrls.inspection import explain, posterior
from rankrls.model_selection import leave_pair_out

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y, QID = (X[:, 0] > 0).astype(float), np.repeat(np.arange(4), 10)
MODEL = RankRLS().fit(X, Y, qid=QID)
KNOWN = posterior(RankRLS(), X, Y, qid=QID)
SCORES = {"new": MODEL.predict(X), "old": X[:, 1]}
REPORT = compare_rankings(Y, SCORES, qid=QID, measures=["map", "ndcg@5"])
RESULTS = {
    "pair": (explain(MODEL, X, qid=QID).pair(0, 1), ["row 0", "row 1", "x0"]),
    "posterior": (KNOWN, [f"{KNOWN.noise_variance:.4g}", "36"]),
    "leave_pair_out": (leave_pair_out(RankRLS(), X, Y, alphas=[1.0, 10.0]), ["alpha", "10"]),
    "compare_rankings": (REPORT, ["new", "old", "ndcg@5"]),
    "comparison": (REPORT.measures["map"], ["new vs. old"]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_way_shows_what_print_shows(name):
    result, words = RESULTS[name]
    shown = str(result)
    assert repr(result) == shown
    assert html.escape(shown) in result._repr_html_()
    assert [word for word in words if word not in shown] == []
    assert max(map(len, shown.splitlines())) <= 110


def test_nothing_is_lost_in_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    wide = str(REPORT)
    monkeypatch.setenv("COLUMNS", "40")
    narrow = str(REPORT)
    assert set(wide.split()) <= set(narrow.split())
    assert all(
        f"{word} " in line for line in narrow.splitlines() if " vs. " in line for word in ("interval", "p Wilcoxon")
    )
