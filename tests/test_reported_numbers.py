"""Numbers that users reported as wrong, through public functions alone: each is what refits give."""

from __future__ import annotations

import numpy as np
import pytest

from rankrls import InputWarning, RankRLS, RankRLSCV, TransductiveRankRLSCV
from rankrls.comparison import compare_rankings
from rankrls.model_selection import leave_pair_out


def test_a_feature_of_a_much_larger_spread_in_long_queries():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(5), 1000)
    X = rng.normal(size=(5000, 3)) * [1e6, 1, 1]
    y = X[:, 1] + 0.1 * rng.normal(size=5000)
    assert RankRLSCV(alphas=[1e6]).fit(X, y, qid=qid).best_score_ == pytest.approx(0.3653917, abs=1e-6)


def test_an_outlier_beside_a_thousand_close_scores():
    x = np.append(1e5, 0.001 * np.arange(999))
    X, y, qid = np.tile(x, 3)[:, None], np.tile(np.argsort(np.argsort(x)), 3), np.repeat([0, 1, 2], 1000)
    assert RankRLSCV(alphas=[1.0]).fit(X, y, qid=qid).best_score_ == 0.0


def test_every_alpha_of_leave_pair_out_is_evaluated_at_itself():
    rng = np.random.default_rng(1)
    X = 4.0 * rng.normal(size=(20, 2))
    y = np.round(X[:, 0] + X[:, 1] ** 2 / 4 + rng.normal(size=20), 1)
    options = {"kernel": "polynomial", "degree": 5, "gamma": 1.0}
    alphas, expected = np.geomspace(1e-6, 1e2, 5), []
    for alpha in alphas:
        right, pairs = 0.0, 0
        for i in range(20):
            for j in np.flatnonzero(y < y[i]):
                rest = np.delete(np.arange(20), [i, j])
                lead = np.subtract(*RankRLS(alpha, **options).fit(X[rest], y[rest]).predict(X[[i, j]]))
                right, pairs = right + (np.sign(lead) + 1) / 2, pairs + 1
        expected.append(right / pairs)
    found = leave_pair_out(RankRLS(**options), X, y, alphas=alphas).score
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert len(set(found)) > 2


def test_transduction_says_which_alphas_rounding_would_decide():
    rng = np.random.default_rng(0)
    X = 4.0 * rng.normal(size=(24, 2))
    y = np.round(X[:, 0] + X[:, 1] ** 2 / 4 + rng.normal(size=24), 1)
    y[20:] = np.nan
    model = TransductiveRankRLSCV((1e-8, 1e2, 1e4), kernel="polynomial", degree=5, gamma=1.0)
    with pytest.warns(InputWarning, match="not evaluated"):
        model.fit(X, y, qid=np.repeat(np.arange(6), 4))
    table = model.cv_results_
    assert (np.isnan(table["mean_score"]) == (table["alpha"] == 1e-8)).all()


@pytest.mark.parametrize("seed", [0, 2, 7])
def test_an_automatic_grid_goes_on_where_its_largest_alpha_is_the_best(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(60, 1))
    X, qid, y = z + 0.3 * rng.normal(size=(60, 6)), np.repeat(np.arange(10), 6), z[:, 0] + rng.normal(size=60)
    assert not RankRLSCV().fit(X, y, qid=qid).alpha_at_edge_


def test_a_page_shows_the_floor_of_sampling_as_a_bound():
    rng = np.random.default_rng(0)
    qid, y = np.repeat(np.arange(300), 5), np.tile([0.0, 0.0, 1.0, 1.0, 2.0], 300)
    scores = {name: y * sign + 0.5 * rng.normal(size=1500) for name, sign in (("a", 1), ("b", -1), ("c", 0))}
    page = compare_rankings(y, scores, qid=qid, measures=["map"]).to_html()
    assert "&lt; 0.0003" in page
