"""What unscored rows of queries without any label can do, and what they cannot."""

import numpy as np
import pytest

from rankrls import CoRankingPursuit, CoRankRLS, TransductiveRankRLS
from tests.models.oracles import centred, ranking_data

X, Y, QID = ranking_data(31, queries=10)
SCORED = np.isin(QID, np.unique(QID)[:5])
PARTLY = np.where(SCORED, Y, np.nan)
NEW = np.random.default_rng(1).normal(size=(9, X.shape[1]))
LEARNERS = {
    "co_rankrls": lambda: CoRankRLS((1.0,), mu=0.5, kernel="rbf", gamma=0.2, n_views=2),
    "co_rankrls_linear": lambda: CoRankRLS((1.0,), mu=0.5, n_views=2),
    "co_pursuit": lambda: CoRankingPursuit(4, nu=0.5, gamma=0.1),
    "transductive": lambda: TransductiveRankRLS(1.0, penalty=0.5),
}


def new_scores(make, X, y, qid):
    return centred(make().fit(X, y, qid=qid).predict(NEW), np.zeros(len(NEW)))


@pytest.mark.parametrize("name", LEARNERS)
def test_they_change_the_ranking_of_new_rows(name):
    make = LEARNERS[name]
    with_them = new_scores(make, X, PARTLY, QID)
    assert np.abs(with_them - new_scores(make, X[SCORED], Y[SCORED], QID[SCORED])).max() > 1e-3


@pytest.mark.parametrize("name", LEARNERS)
def test_one_that_is_alone_in_its_query_does_nothing(name):
    """Nothing is compared with it, whatever its features and its label might be."""
    make, alone = LEARNERS[name], 500.0 + np.arange(6)
    rows = np.vstack((X, 5.0 * np.random.default_rng(2).normal(size=(6, X.shape[1]))))
    more = new_scores(make, rows, np.r_[PARTLY, np.full(6, np.nan)], np.r_[QID, alone])
    np.testing.assert_allclose(more, new_scores(make, X, PARTLY, QID), atol=1e-7)


@pytest.mark.parametrize("name", ["co_rankrls_linear", "transductive"])
def test_where_their_query_lies_does_not_matter_to_linear_functions(name):
    make, place = LEARNERS[name], np.where(SCORED, 0.0, QID)
    moved = new_scores(make, X + np.outer(place, np.arange(1.0, X.shape[1] + 1)), PARTLY, QID)
    np.testing.assert_allclose(moved, new_scores(make, X, PARTLY, QID), atol=1e-7)
