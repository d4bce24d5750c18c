"""Long jobs say what they will take before they start, and show one bar."""

import io
import sys

import numpy as np
import pytest

from rankrls import RankRLSCV, survival_pairs
from rankrls._errors import InputWarning
from rankrls.comparison import compare_per_query
from rankrls.model_selection import permutation_test
from rankrls.selection.search import progress

RNG = np.random.default_rng(0)
X, QID = RNG.normal(size=(24, 3)), np.repeat(np.arange(6), 4)
Y = X[:, 0] + RNG.normal(size=24)
FIRST, SECOND = survival_pairs(np.exp(Y), np.ones(24))
CHOOSES = RankRLSCV(alphas=(0.1, 1.0), cv=2)
JOBS = {
    "kernel": (lambda: RankRLSCV(kernel="rbf", gamma=0.3).fit(X, Y, qid=QID), "24 rows .* SparseRankRLSCV"),
    "kernel of preferences": (
        lambda: RankRLSCV(kernel="rbf", gamma=0.3).fit_pairs(X, FIRST, SECOND),
        "24 rows .* SparseRankRLSCV",
    ),
    "signs": (lambda: RankRLSCV(positive=True).fit(X, Y, qid=QID), r"6 parts.*folds \(cv\)"),
    "permutations": (
        lambda: permutation_test(CHOOSES, X, np.exp(Y), event=np.ones(24), n_permutations=3),
        "each of 3 permutations",
    ),
    "comparison": (
        lambda: compare_per_query({name: RNG.random(9) for name in "abc"}, n_resamples=50),
        r"3 pairs of rankings with 50 resamples.*\(baseline\)",
    ),
}


@pytest.mark.parametrize("job", JOBS)
def test_a_long_job_says_what_it_will_take(job, monkeypatch):
    run, words = JOBS[job]
    run()  # which is short: a warning would be an error
    monkeypatch.setattr("rankrls._errors._LONG", 0.0)
    with pytest.warns(InputWarning, match=words):
        run()


def test_no_bar_is_shown_inside_another(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    for _ in progress(range(2), "permutations"):
        assert [*progress(range(3), "candidates")] == [0, 1, 2]
    shown = sys.stderr.getvalue()
    assert "permutations" in shown
    assert "candidates" not in shown
    assert [*progress(range(3), "candidates")] == [0, 1, 2]
    assert "candidates" in sys.stderr.getvalue()
