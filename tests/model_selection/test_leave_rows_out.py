"""Labels of rows of one ranking as predicted without their group, against that many refits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from rankrls import InputWarning, RankRLS, SparseRankRLS
from rankrls.model_selection import leave_rows_out
from tests.refusals import Refusal

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 4)) + 5.0
Y = np.column_stack((X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=24), RNG.integers(0, 3, 24)))
GROUPS = RNG.integers(0, 6, 24)
WEIGHTS = RNG.choice([0.0, 0.5, 2.0], 24)


def by_refits(model, X, Y, groups, weights=None):
    out = np.full(Y.shape, np.nan)
    w = np.ones(len(Y)) if weights is None else weights
    for g in np.unique(groups):
        rest, own = (groups != g) & (w > 0), (groups == g) & (w > 0)
        if not own.any():
            continue
        given = {} if weights is None else {"sample_weight": w[rest]}
        model.fit(X[rest], Y[rest], **given)
        level = np.average(Y[rest] - model.predict(X[rest]), axis=0, weights=w[rest])
        out[own] = model.predict(X[own]) + level * (getattr(model, "regression_weight", 0.0) != 1.0)
    return out


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"balance": "pairs"},
        {"balance": "queries"},
        {"regression_weight": 1.0},
        {"kernel": "rbf", "gamma": 0.05},
        {"kernel": "rbf", "gamma": 0.05, "balance": "pairs"},
        {"sample_weight": WEIGHTS},
        {"sample_weight": WEIGHTS, "kernel": "rbf", "gamma": 0.05},
    ],
    ids=str,
)
def test_equals_refits(single, options):
    options = dict(options)
    weights = options.pop("sample_weight", None)
    groups = np.arange(24) if single else GROUPS
    alphas = [0.01, 3.0]
    found = leave_rows_out(
        RankRLS(**options), X, Y, groups=None if single else groups, alphas=alphas, sample_weight=weights
    )
    assert found.shape == (24, 2, 2)
    for k, alpha in enumerate(alphas):
        wanted = by_refits(RankRLS(alpha=alpha, **options), X, Y, groups, weights)
        np.testing.assert_allclose(found[:, k], wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_an_alpha_that_is_lost_in_rounding_is_not_evaluated(solver):
    """Each group alone determines a feature, so that nothing but alpha is left without it."""
    groups = np.array([0, 0, 1, 1])
    corners = 1e6 * np.eye(2)[groups]
    model = RankRLS(regression_weight=1.0, solver=solver)
    with pytest.warns(InputWarning, match="not evaluated"):
        found = leave_rows_out(model, corners, [0, 0, 2, 1], groups=groups, alphas=[1e13, 1e-3, 1e-9])
    np.testing.assert_allclose(found[:, 0], 0.0, atol=1e-12)
    assert np.isnan(found[:, 1:]).all()


def test_wide_data_and_a_basis():
    wide = np.random.default_rng(1).normal(size=(24, 60))
    found = leave_rows_out(RankRLS(alpha=2.0), wide, Y[:, 0], groups=GROUPS)
    np.testing.assert_allclose(found, by_refits(RankRLS(alpha=2.0), wide, Y[:, :1], GROUPS)[:, 0], rtol=1e-6)
    basis = {"basis_indices": [0, 5, 9, 14], "gamma": 0.1}
    found = leave_rows_out(SparseRankRLS(alpha=0.1, **basis), X, Y[:, 0], groups=GROUPS)
    assert np.corrcoef(found, Y[:, 0])[0, 1] > 0.5
    K = np.exp(-0.1 * ((X[:, None] - X[basis["basis_indices"]]) ** 2).sum(axis=2))
    inside = np.exp(-0.1 * ((X[basis["basis_indices"], None] - X[basis["basis_indices"]]) ** 2).sum(axis=2))
    Z = K @ np.linalg.inv(np.linalg.cholesky(inside)).T
    np.testing.assert_allclose(found, by_refits(RankRLS(alpha=0.1), Z, Y[:, :1], GROUPS)[:, 0], rtol=1e-5)


def test_pooled_rows_of_noise_are_below_one_half():  # which the docstring warns of
    aucs = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        noise, y = rng.normal(size=(30, 3)), rng.permutation(np.arange(30) % 2)
        aucs.append(roc_auc_score(y, leave_rows_out(RankRLS(alpha=100.0), noise, y)))
    assert np.mean(aucs) < 0.4


def test_refusals():
    y = Y[:, 0]
    with Refusal("ties", parameter="estimator"):
        leave_rows_out(RankRLS(ties="exclude"), X, Y[:, 1])
    with Refusal("single group", parameter="groups"):
        leave_rows_out(RankRLS(), X, y, groups=np.zeros(24))
    one = np.where(GROUPS == 2, 1.0, 0.0)
    with Refusal("different labels", parameter="groups"):
        leave_rows_out(RankRLS(), X, one, groups=GROUPS)
    with Refusal("signs", parameter="estimator"):
        leave_rows_out(RankRLS(positive=True), X, y)
    with Refusal("RankRLS", parameter="estimator"):
        leave_rows_out(object(), X, y)
