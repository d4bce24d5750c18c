"""Posteriors against dense formulas, another tool's Gaussian process, and data drawn from what is assumed."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import ndtr
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from tests.models.oracles import GRAPHS, KERNEL_PARAMETERS, graph_id, kernel_matrix, laplacian, ranking_data
from tests.refusals import Refusal

from rankrls import RankRLS, RankRLSCV, SparseRankRLS
from rankrls.inspection import pair_posterior, posterior

X, Y, QID = ranking_data(3, queries=9, longest=9, n=4)
NEW = np.random.default_rng(5).normal(size=(12, 4))
A, B = NEW[:6], NEW[6:]


def dense(L, y, K, K_a, K_b, prior, alpha):
    """Means, variances and the noise by explicit inverses; ``prior`` is k(d, d) of each pair."""
    information = np.linalg.solve(L @ K + alpha * np.eye(len(y)), L)
    k_d = K_a - K_b
    mean = k_d @ (information @ y)
    f = K @ information @ y
    loss, penalty = (y - f) @ L @ (y - f), alpha * (information @ y) @ K @ (information @ y)
    rank = np.linalg.matrix_rank(L, tol=1e-9 * np.abs(L).max())
    freedom = np.trace(information @ K)
    s2 = (loss + penalty) / rank
    variance = s2 / alpha * (prior - np.einsum("ij,jk,ik->i", k_d, information, k_d))
    return mean, np.sqrt(variance), s2, rank, freedom


def prior_of(kernel):
    aa, bb, ab = (np.diagonal(kernel_matrix(kernel, *pair)) for pair in ((A, A), (B, B), (A, B)))
    return aa + bb - 2 * ab


@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
@pytest.mark.parametrize("setting", ["primal", "dual", "rbf", "polynomial"])
def test_labels_against_dense_formulas(setting, graph):
    kernel = "linear" if setting in ("primal", "dual") else setting
    model = RankRLS(
        alpha=0.7, kernel=kernel, solver=setting if kernel == "linear" else "auto", **KERNEL_PARAMETERS, **graph
    )
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(Y))
    L = laplacian(Y, QID, weight, graph)
    K, K_a, K_b = (kernel_matrix(kernel, U, X) for U in (X, A, B))
    found = posterior(model, X, Y, qid=QID, sample_weight=weight)
    mean, std, s2, rank, freedom = dense(L, Y, K, K_a, K_b, prior_of(kernel), 0.7)
    assert found.n_observations == rank
    assert found.degrees_of_freedom == pytest.approx(freedom, rel=1e-8)
    assert found.noise_variance == pytest.approx(s2, rel=1e-8)
    got = found.difference(A, B)
    np.testing.assert_allclose(got[0], mean, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(got[1], std, rtol=1e-7)
    fitted = model.fit(X, Y, qid=QID, sample_weight=weight)
    np.testing.assert_allclose(got[0], fitted.predict(A) - fitted.predict(B), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
@pytest.mark.parametrize("setting", ["primal", "dual", "rbf"])
def test_preferences_against_dense_formulas(setting, many):
    """More preferences than items too; repeated ones are observations of their own."""
    rng = np.random.default_rng(2)
    p = 150 if many else 12
    i, j = rng.integers(len(X), size=(2, 2 * p))
    i, j = i[i != j][:p], j[i != j][:p]
    strength, weight = rng.normal(1, 1, p), rng.uniform(0.2, 2.0, p)
    kernel = "rbf" if setting == "rbf" else "linear"
    model = RankRLS(alpha=0.3, kernel=kernel, solver="auto" if kernel == "rbf" else setting, gamma=0.2)
    M = np.zeros((p, len(X)))
    M[np.arange(p), i], M[np.arange(p), j] = 1.0, -1.0
    L = M.T @ (weight[:, None] * M)
    K, K_a, K_b = (kernel_matrix(kernel, U, X) for U in (X, A, B))
    information = np.linalg.solve(L @ K + 0.3 * np.eye(len(X)), np.eye(len(X)))
    a = information @ M.T @ (weight * strength)
    left = strength - M @ K @ a
    s2 = (left @ (weight * left) + 0.3 * a @ K @ a) / p
    k_d = K_a - K_b
    std = np.sqrt(s2 / 0.3 * (prior_of(kernel) - np.einsum("ij,jk,ik->i", k_d, information @ L, k_d)))
    found = pair_posterior(model, X, i, j, strength=strength, weight=weight)
    assert found.n_observations == p
    assert found.noise_variance == pytest.approx(s2, rel=1e-8)
    mean, got = found.difference(A, B)
    np.testing.assert_allclose(mean, k_d @ a, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(got, std, rtol=1e-7)


def test_a_basis_of_all_items_is_the_whole_kernel():
    """Between training items; far from the basis a sparse model is too sure, and so documented."""
    sparse_model = posterior(SparseRankRLS(alpha=0.5, n_basis=1000, kernel="rbf", gamma=0.2), X, Y, qid=QID)
    full = posterior(RankRLS(alpha=0.5, kernel="rbf", gamma=0.2), X, Y, qid=QID)
    for got, expected in zip(sparse_model.difference(X[:9], X[9:18]), full.difference(X[:9], X[9:18]), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-8)
    assert (sparse_model.difference(A, B)[1] <= full.difference(A, B)[1] * (1 + 1e-9)).all()
    linear = posterior(SparseRankRLS(alpha=0.5, n_basis=30, kernel="linear"), X, Y, qid=QID)
    primal = posterior(RankRLS(alpha=0.5), X, Y, qid=QID)
    for got, expected in zip(linear.difference(A, B), primal.difference(A, B), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("beta", [0.0, 1.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_gaussian_process_of_another_tool(kernel, beta):
    """Free levels of the queries as a prior of huge variance; regression as it stands."""
    alpha, s2 = 0.5, 0.8
    model = RankRLS(alpha=alpha, kernel=kernel, gamma=0.2, regression_weight=beta)
    found = posterior(model, X, Y, qid=QID, noise=s2)
    levels = 1e5 * (1 - beta)
    codes = np.unique(QID, return_inverse=True)[1]
    both = np.column_stack((X, codes))

    class OnFeatures(RBF):
        def __call__(self, U, V=None, eval_gradient=False):
            V = U if V is None else V
            same = U[:, -1:] == V[:, -1]
            return s2 / alpha * kernel_matrix(kernel, U[:, :-1], V[:, :-1]) + levels * same

        def diag(self, U):
            return np.diagonal(self(U))

    process = GaussianProcessRegressor(OnFeatures(1.0, "fixed"), alpha=s2, optimizer=None).fit(both, Y)
    new = np.column_stack((NEW, np.zeros(len(NEW))))
    mean, cov = process.predict(new, return_cov=True)
    got_mean, got_std = found.difference(A, B)
    np.testing.assert_allclose(got_mean, mean[:6] - mean[6:], rtol=1e-3, atol=1e-4)
    d = np.hstack((np.eye(6), -np.eye(6)))
    np.testing.assert_allclose(got_std**2, np.diagonal(d @ cov @ d.T), rtol=1e-3)


@pytest.mark.parametrize("setting", ["primal", "dual", "rbf"])
def test_evidence_is_the_density_of_the_labels(setting):
    """The maximum over a fine grid of log N(F y; 0, s^2 (I + FKF' / alpha)), s^2 maximised out."""
    kernel = "rbf" if setting == "rbf" else "linear"
    model = RankRLS(kernel=kernel, gamma=0.2, solver="auto" if kernel == "rbf" else setting)
    found = posterior(model, X, Y, qid=QID, alpha="evidence")
    L = laplacian(Y, QID, None, {"ties": "include", "balance": "examples", "regression_weight": 0.0})
    values, vectors = np.linalg.eigh(L)
    F = vectors[:, values > 1e-9].T  # L is a projection
    K = kernel_matrix(kernel, X)

    def density(alpha):
        C = np.eye(len(F)) + F @ K @ F.T / alpha
        s2 = (F @ Y) @ np.linalg.solve(C, F @ Y) / len(F)
        return multivariate_normal(np.zeros(len(F)), s2 * C).logpdf(F @ Y)

    best = density(found.alpha)
    assert best >= max(density(found.alpha * t) for t in np.geomspace(1e-4, 1e4, 41)) - 1e-9
    assert density(found.alpha * 1.2) < best > density(found.alpha / 1.2)


def test_sizes_and_scales_do_not_matter():
    """One query: every balance is the same model, up to alpha, and so is the posterior. Units of y scale it."""
    y, m = np.random.default_rng(0).normal(size=25), 25
    first = posterior(RankRLS(alpha=2.0), X[:25], y)
    for balance, alpha in (("pairs", 2.0 * m), ("queries", 2.0 * 2 / (m - 1))):
        other = posterior(RankRLS(alpha=alpha, balance=balance), X[:25], y)
        for got, expected in zip(other.difference(A, B), first.difference(A, B), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9)
    mean, std = first.difference(A, B)
    np.testing.assert_allclose(first.probability(A, B), ndtr(mean / std))
    scaled = posterior(RankRLS(alpha=2.0), X[:25], 10 * y)
    np.testing.assert_allclose(scaled.difference(A, B)[1], 10 * first.difference(A, B)[1])
    np.testing.assert_allclose(scaled.probability(A, B), first.probability(A, B))
    np.testing.assert_allclose(first.probability(A, B) + first.probability(B, A), 1.0)
    np.testing.assert_array_equal(first.probability(A, A), 0.5)


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_offsets_and_sparse_features(solver):
    model = RankRLS(alpha=0.7, solver=solver)
    expected = posterior(model, X, Y, qid=QID).difference(A, B)
    far = np.array([1e6, -1e6, 0.0, 1e5])
    got = posterior(model, X + far, Y, qid=QID).difference(A + far, B + far)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    stored = posterior(model, sparse.csr_array(X), Y, qid=QID)
    for U, V in ((A, B), (sparse.csr_array(A), sparse.csr_array(B)), (sparse.csr_array(A), B)):
        for one, other in zip(stored.difference(U, V), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_what_is_refused():
    good = posterior(RankRLS(), X, Y, qid=QID)
    line = np.ones((5, 3)) * np.arange(5)[:, None]
    for call, parameter in (
        (lambda: posterior(RankRLSCV(), X, Y, qid=QID), "estimator"),
        (lambda: posterior(make_pipeline(RankRLS()), X, Y), "estimator"),
        (lambda: posterior(RankRLS(positive=True), X, Y, qid=QID), "positive"),
        (lambda: posterior(RankRLS(kernel="precomputed"), X @ X.T, Y), "kernel"),
        (lambda: posterior(RankRLS(kernel="sigmoid", alpha=9.0), X, Y, qid=QID), "kernel"),  # a negative variance
        (lambda: posterior(RankRLS(), X, Y, qid=QID, alpha=-1.0), "alpha"),
        (lambda: posterior(RankRLS(alpha=0), X, Y, qid=QID), "alpha"),
        (lambda: posterior(RankRLS(), X, Y, qid=QID, alpha="best"), "alpha"),
        (lambda: posterior(RankRLS(alpha=1e-18), line, range(5)).difference(line[:1], line[1:2]), "alpha"),
        (lambda: posterior(RankRLS(), np.ones((5, 3)), range(5), alpha="evidence"), "X"),
        (lambda: posterior(RankRLS(), X, np.column_stack((Y, Y)), qid=QID), "y"),
        (lambda: posterior(RankRLS(), X, Y, qid=QID, noise=0.0), "noise"),
        (lambda: good.difference(A, B[:2]), "X_b"),
    ):
        with Refusal(parameter=parameter):
            call()
