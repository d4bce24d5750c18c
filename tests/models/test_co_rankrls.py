"""Co-regularized RankRLS against the joint system of all views, and its shortcut against refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankrls import CoRankRLS
from rankrls.metrics import Measure
from tests.oracles import explicit_laplacian, gaussian
from tests.refusals import Refusal

HALVES = ([0, 1, 2], [2, 3, 4, 5])


def made(seed=0, queries=9, items=4, scored=4):
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(queries), items))
    X = rng.normal(size=(len(qid), 6)) + 1.0
    y = np.where(qid < scored, X @ [1, -1, 0.5, 0, 1, 0] + rng.normal(size=len(qid)), np.nan)
    return X, y, qid


def joint_scores(X, y, qid, alpha, mu, kernels, new, **graph):
    """By one system of all views' coefficients and the consensus; C centres inside queries."""
    m, M = len(y), len(kernels)
    S = np.flatnonzero(~np.isnan(y))
    C = np.eye(m) - (qid[:, None] == qid) / np.bincount(qid)[qid]
    L = np.zeros((m, m))
    L[np.ix_(S, S)] = explicit_laplacian(y[S], qid[S], **graph)
    K = [kernel(X, X) for kernel in kernels]
    # Stationary points of the objective in (b_1, ..., b_M, h), each b_v times K_v.
    A, right = np.zeros(((M + 1) * m, (M + 1) * m)), np.zeros((M + 1) * m)
    h = slice(M * m, None)
    for v in range(M):
        own = slice(v * m, (v + 1) * m)
        A[own, own] = K[v] + mu * K[v] @ C @ K[v] + 1e-12 * np.eye(m)
        A[own, h] = -mu * K[v] @ C
        A[h, own] = -mu * alpha / M * C @ K[v]
        A[h, h] += mu * alpha / M * C
    A[h, h] += L
    right[h][S] = (L @ np.nan_to_num(y))[S]
    solution = np.linalg.lstsq(A, right, rcond=1e-13)[0]
    return sum(kernel(new, X) @ solution[v * m : (v + 1) * m] for v, kernel in enumerate(kernels)) / M


def centred(f, qid):
    return f - np.bincount(qid, f)[qid] / np.bincount(qid)[qid]


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("mu", [0.05, 2.0])
@pytest.mark.parametrize("graph", [{}, {"ties": "exclude", "balance": "queries"}])
def test_scores_are_those_of_the_joint_system(kernel, mu, graph):
    X, y, qid = made()
    y = np.round(y)
    form = {"linear": lambda A, B: A @ B.T, "rbf": lambda A, B: gaussian(A, B, 0.1)}[kernel]
    kernels = [lambda A, B, f=f: form(A[:, f], B[:, f]) for f in HALVES]
    new = np.random.default_rng(3).normal(size=(12, 6))
    model = CoRankRLS([0.7], mu=mu, views=HALVES, kernel=kernel, gamma=0.1, **graph).fit(X, y, qid=qid)
    for rows, q in ((X, qid), (new, np.zeros(12, dtype=int))):
        expected = joint_scores(X, y, qid, 0.7, mu, kernels, rows, **graph)
        np.testing.assert_allclose(centred(model.predict(rows), q), centred(expected, q), atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("scoring", ["disagreement", "pair_squared_error"])
def test_held_out_scores_are_those_of_refits_in_which_the_query_stays_unscored(kernel, scoring):
    X, y, qid = made(1)
    for alpha in (1e-3, 1.0, 1e3):
        options = {"mu": 0.5, "views": HALVES, "kernel": kernel, "gamma": 0.1}
        held = CoRankRLS([alpha], scoring=scoring, **options).fit(X, y, qid=qid).held_out_scores_
        assert (np.isnan(held) == np.isnan(y)).all()
        for q in range(4):
            U = qid == q
            refit = CoRankRLS([alpha], cv=3, scoring=scoring, **options).fit(X, np.where(U, np.nan, y), qid=qid)
            found = refit.predict(X[U])
            np.testing.assert_allclose(held[U] - held[U].mean(), found - found.mean(), atol=1e-7)


def test_sparse_rows_are_the_same_rows():
    X, y, qid = made(4)
    whole = CoRankRLS(n_views=3).fit(X, y, qid=qid)
    thin = CoRankRLS(n_views=3).fit(sparse.csr_array(X), y, qid=qid)
    np.testing.assert_allclose(thin.predict(sparse.csr_array(X)), whole.predict(X), atol=1e-7)


def test_weights_are_repetitions():
    X, y, qid = made(7)
    w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    w[:2] = 1.0
    again = np.repeat(np.arange(len(y)), w.astype(int))
    options = {"mu": 0.5, "views": HALVES, "kernel": "rbf", "gamma": 0.1}
    weighted = CoRankRLS([0.3], **options).fit(X, y, qid=qid, sample_weight=w)
    repeated = CoRankRLS([0.3], **options).fit(X[again], y[again], qid=qid[again])
    new = np.random.default_rng(1).normal(size=(20, 6))
    found, expected = weighted.predict(new), repeated.predict(new)
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-8)


def test_automatic_agreements_follow_the_scale_of_the_kernels():
    X, y, qid = made()[:3]
    ours, tenfold = (
        np.unique(CoRankRLS(n_views=2).fit(Z, y, qid=qid).cv_results_["mu"].astype(float)) for Z in (X, 10.0 * X)
    )
    np.testing.assert_allclose(ours / ours[0], [1.0, 10.0, 100.0, 1000.0])
    np.testing.assert_allclose(tenfold, ours / 100.0, rtol=1e-5)


def test_mu_and_alpha_are_the_best_of_all():
    X, y, qid = made(5, queries=20, scored=8)
    model = CoRankRLS(mu=(0.01, 0.1, 1.0), n_views=4).fit(X, y, qid=qid)
    assert set(model.cv_results_["mu"]) == {0.01, 0.1, 1.0}
    assert model.best_score_ == model.cv_results_["mean_score"].min()
    known = ~np.isnan(y)
    assert model.best_score_ == pytest.approx(
        Measure("disagreement")(y[known], model.held_out_scores_[known], qid=qid[known])
    )
    assert model.mu_ == model.best_params_["mu"]


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"mu": 0.0}, "mu"),
        ({"mu": (1.0, -1.0)}, "mu"),
        ({"kernel": "precomputed"}, "kernel"),
        ({"kernel": ("rbf", "linear")}, "kernel"),
        ({"views": [{"rows": [0, 1]}]}, "views"),
        ({"views": [[7]]}, "views"),
        ({"alphas": [0.0]}, "alpha"),
    ],
)
def test_refusals(options, parameter):
    X, y, qid = made()
    with pytest.raises(ValueError) as error:
        CoRankRLS(**options).fit(X, y, qid=qid)
    assert error.value.parameter == parameter


@pytest.mark.parametrize("mu", ["auto", 5.0])
def test_an_indefinite_kernel_of_a_view_is_refused(mu):
    X, y, qid = made()
    for views in (["sigmoid"], ["rbf", lambda a, b: -float(a @ b)]):
        with Refusal("semidefinite", f"views[{len(views) - 1}]", parameter="kernel", remedy="kernel"):
            CoRankRLS(mu=mu, views=views, gamma=3.0, coef0=-2.0).fit(X, y, qid=qid)


def test_refusals_of_data():
    X, y, qid = made()
    for labels in (np.full(len(y), np.nan), np.where(np.isnan(y), np.nan, 1.0)):
        with Refusal(parameter="y"):
            CoRankRLS().fit(X, labels, qid=qid)


def test_a_function_as_kernel_takes_rows_of_lists():
    X, y, qid = made()
    linear = CoRankRLS([1.0], mu=1.0, n_views=2).fit(X, y, qid=qid)
    called = CoRankRLS([1.0], mu=1.0, n_views=2, kernel=lambda a, b: float(a @ b)).fit(X.tolist(), y, qid=qid)
    np.testing.assert_allclose(called.predict(X.tolist()), linear.predict(X), atol=1e-8)
