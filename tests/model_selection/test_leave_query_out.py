"""leave_query_out through its public face: refits, groupings, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankrls import RankRLS, RankRLSCV, TransductiveRankRLS
from rankrls.model_selection import leave_query_out
from tests.refusals import Refusal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
QID = RNG.permutation(np.repeat(np.arange(12), 5))
Y = np.round(X @ [1.0, 2.0, 0.0, -1.0] + RNG.normal(size=60))


def refit(model, held, y=Y, weights=None):
    train = ~held
    w = None if weights is None else weights[train]
    return model.fit(X[train], y[train], qid=QID[train], sample_weight=w).predict(X[held])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("grouped", [False, True])
def test_equals_refits(kernel, ties, grouped):
    weights = RNG.random(60) + 0.2
    groups = QID % 5 if grouped else None
    alphas = [0.05, 1.0, 20.0]
    model = RankRLS(kernel=kernel, ties=ties, balance="pairs")
    scores = leave_query_out(model, X, Y, qid=QID, alphas=alphas, groups=groups, sample_weight=weights)
    assert scores.shape == (60, 3)
    for block in np.unique(QID if groups is None else groups):
        held = (QID if groups is None else groups) == block
        for k, alpha in enumerate(alphas):
            expected = refit(RankRLS(alpha=alpha, kernel=kernel, ties=ties, balance="pairs"), held, weights=weights)
            np.testing.assert_allclose(scores[held, k], expected, rtol=1e-7, atol=1e-9)


def test_one_alpha_several_targets_and_shapes():
    two = np.column_stack((Y, -Y[::-1]))
    model = RankRLS(alpha=0.3)
    assert leave_query_out(model, X, Y, qid=QID).shape == (60,)
    scores = leave_query_out(model, X, two, qid=QID)
    assert scores.shape == (60, 2)
    assert leave_query_out(model, X, two, qid=QID, alphas=[1.0]).shape == (60, 1, 2)
    for t in range(2):
        np.testing.assert_allclose(scores[:, t], leave_query_out(model, X, two[:, t], qid=QID), rtol=1e-9)
    assert not hasattr(model, "coef_")  # the estimator is left as it was
    assert model.alpha == 0.3


def test_rows_of_weight_zero_are_nan_and_change_nothing():
    weights = np.ones(60)
    weights[[3, 17, 40]] = 0.0
    kept = weights > 0
    scores = leave_query_out(RankRLS(), X, Y, qid=QID, sample_weight=weights)
    assert np.isnan(scores[~kept]).all()
    np.testing.assert_allclose(scores[kept], leave_query_out(RankRLS(), X[kept], Y[kept], qid=QID[kept]), rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"qid": np.zeros(60)}, Refusal("single query", "leaves no data")),
        ({"qid": None}, Refusal("needs", parameter="qid")),
        ({"alphas": [1.0, 0.0]}, Refusal("alphas > 0", parameter="alphas")),
        ({"alphas": [-1.0]}, Refusal("at least 0", parameter="alpha")),
        ({"groups": np.arange(60)}, Refusal("in two groups", parameter="groups", row=1)),
        ({"groups": np.arange(50)}, Refusal("50 entries", "60 rows", parameter="groups")),
        ({"groups": np.zeros(60)}, Refusal("single group")),
        ({"y": np.where(QID == 3, Y, 0.0)}, Refusal("Without 3", "two different labels", parameter="qid")),
        ({"y": np.where(np.arange(60) == 7, np.nan, Y)}, Refusal("contains NaN", parameter="y", row=7)),
        ({"y": np.ones(60)}, Refusal("Nothing to compare", parameter="y")),
        ({"sample_weight": np.where(QID == 3, 1.0, 0.0)}, Refusal("single query")),
        ({"estimator": RankRLSCV()}, Refusal("got RankRLSCV", parameter="estimator", remedy="(best_params_)")),
        (
            {"estimator": make_pipeline(StandardScaler(), RankRLS())},
            Refusal("got Pipeline", parameter="estimator", remedy="transform"),
        ),
        ({"estimator": TransductiveRankRLS()}, Refusal("got TransductiveRankRLS", parameter="estimator")),
        ({"estimator": "ridge"}, Refusal("got str", parameter="estimator")),
    ],
)
def test_refusals(arguments, refusal):
    given = {"estimator": RankRLS(), "X": X, "y": Y, "qid": QID, **arguments}
    with refusal:
        leave_query_out(given.pop("estimator"), given.pop("X"), given.pop("y"), **given)
