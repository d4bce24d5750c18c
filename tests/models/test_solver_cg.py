"""RankRLS(solver="cg") against the factorisations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from rankrls import RankRLS, RankRLSCV
from rankrls.model_selection import leave_query_out
from tests.models.oracles import GRAPHS, KERNEL_PARAMETERS, graph_id, ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(70, n=5)
NEW = np.random.default_rng(71).normal(size=(8, 5))


@pytest.mark.parametrize("graph", GRAPHS, ids=graph_id)
def test_the_same_model(graph):
    w = np.random.default_rng(72).random(len(Y)) + 0.2
    for alpha in (0.01, 3.0):
        for form in (X, sparse.csr_array(X), X.astype(np.float32)):
            expected = RankRLS(alpha, **graph).fit(form, Y, qid=QID, sample_weight=w)
            model = RankRLS(alpha, solver="cg", **graph).fit(form, Y, qid=QID, sample_weight=w)
            np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
            assert not hasattr(model, "dual_coef_")
        kernel = {"kernel": "rbf", **KERNEL_PARAMETERS}
        expected = RankRLS(alpha, **kernel, **graph).fit(X, Y, qid=QID, sample_weight=w)
        model = RankRLS(alpha, solver="cg", **kernel, **graph).fit(X, Y, qid=QID, sample_weight=w)
        np.testing.assert_allclose(model.predict(NEW), expected.predict(NEW), atol=1e-6)


def test_several_targets_preferences_and_alpha_zero():
    two = np.column_stack((Y, -Y[::-1]))
    for ties in ("include", "exclude"):
        a, b = (RankRLS(0.5, solver=s, ties=ties).fit(X, two, qid=QID) for s in ("cg", "auto"))
        np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-7)
    wide = np.random.default_rng(73).normal(size=(len(Y), 90))
    a, b = (RankRLS(0.0, solver=s).fit(wide, Y, qid=QID) for s in ("cg", "primal"))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)  # minimum norm
    i, j = np.arange(10), np.arange(10, 20)
    for kernel in ("linear", "rbf"):
        a, b = (RankRLS(0.5, kernel=kernel, solver=s).fit_pairs(X, i, j) for s in ("cg", "auto"))
        np.testing.assert_allclose(a.predict(NEW), b.predict(NEW), atol=1e-7)
    K = X @ X.T
    a, b = (RankRLS(0.5, kernel="precomputed", solver=s).fit(K, Y, qid=QID) for s in ("cg", "auto"))
    np.testing.assert_allclose(a.predict(NEW @ X.T), b.predict(NEW @ X.T), atol=1e-6)


def test_what_needs_a_factorisation():
    model = RankRLS(0.5, solver="cg").fit(X, Y, qid=QID)
    assert not hasattr(model, "partial_fit")
    np.testing.assert_array_equal(leave_query_out(model, X, Y, qid=QID), leave_query_out(RankRLS(0.5), X, Y, qid=QID))
    with Refusal("'primal', 'dual'", parameter="solver"):
        RankRLSCV(solver="cg").fit(X, Y, qid=QID)


def test_not_converged_is_said():
    steep = np.random.default_rng(74).normal(size=(400, 300)) * np.geomspace(1e-9, 1e3, 300)
    with pytest.warns(ConvergenceWarning, match=r"ended with '\w+' after .* at a relative residual"):
        RankRLS(1e-12, solver="cg").fit(steep, np.arange(400.0))
