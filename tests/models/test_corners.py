"""Corners in which a model once went wrong, each against another form of itself."""

import numpy as np
import pytest
from scipy import sparse

from rankrls import (
    RankRLS,
    RankSVM,
    SparseRankRLS,
)
from rankrls.metrics import Measure
from rankrls.model_selection import leave_pair_out
from tests.models.oracles import ranking_data
from tests.refusals import Refusal

X, Y, QID = ranking_data(5, queries=20)


@pytest.mark.parametrize("density", [0.02, 0.05])
def test_ranksvm_on_features_of_low_density(density):
    noise = sparse.random_array((len(Y), 40), density=density, format="csr", rng=np.random.default_rng(1))
    S = sparse.csr_array(sparse.hstack(((Y * (np.arange(len(Y)) % 7 == 0))[:, None], noise)))
    models = [RankSVM(tol=1e-8).fit(Z, Y, qid=QID) for Z in (S, S.toarray())]
    np.testing.assert_allclose(models[0].predict(S), models[1].predict(S), atol=1e-3)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-5])
def test_ranksvm_ranks_however_small_its_weights(scale):
    """In value w = 0 is nearly optimal there, in its ranking it is not."""
    model = RankSVM().fit(scale * X, Y, qid=QID)
    assert np.linalg.norm(model.coef_) > 0.0
    tight = RankSVM(tol=1e-10).fit(scale * X, Y, qid=QID)
    distance = np.linalg.norm(model.coef_ - tight.coef_)
    assert distance <= 0.5 * np.linalg.norm(tight.coef_)
    errors = [Measure("disagreement")(Y, m.predict(X), qid=QID) for m in (model, tight)]
    assert errors[0] == pytest.approx(errors[1], abs=0.05)


def test_contradictory_preferences_still_end():
    model = RankSVM().fit_pairs(np.eye(3), [0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0])
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-6)


def test_weighted_pairs_of_different_items_are_no_ties():
    x = np.array([1.0, 2.0, -3.0, -2.0, -1.0, 4.0])[:, None]
    y, w = [1.0, 2.0, 0.0, -1.0, 0.5, 0.3], [4.0, 1.0, 1.0, 2.0, 3.0, 1.0]
    found = [
        leave_pair_out(RankRLS(solver=solver), x, y, sample_weight=w, pairs=[(1, 0)]) for solver in ("primal", "dual")
    ]
    assert found[0].differences[0] == pytest.approx(0.1108, abs=1e-3)
    np.testing.assert_allclose(found[1].differences, found[0].differences)
    assert found[1].score == pytest.approx(found[0].score)


def test_a_linear_basis_of_zeros_is_refused():
    Z, y = np.r_[np.zeros((2, 2)), np.ones((3, 2))], np.arange(5.0)
    with Refusal("zero under this kernel", kind=ValueError):
        SparseRankRLS(kernel="linear", basis_indices=[0, 1]).fit(Z, y)
